"""`scan`, `map`, `fori_loop`, `while_loop`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pscdsl._src.frontend.combinators.carries import Carry, TracedBody, trace_carry, trace_counter
from pscdsl._src.frontend.interpreter.frames import inner_block
from pscdsl._src.frontend.trees.pytrees import flatten, unflatten
from pscdsl._src.frontend.trees.tracing import applicable, bool_scalar, of_values, strong
from pscdsl._src.frontend.values.values import Applicable, Poison, Poisoned, describe
from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.control import Scan, While
from pscdsl.typing.array_types import ArrayType, Type
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.codes.control import BadBody, LoopLengthsDiffer
from pscdsl.typing.codes.language import NotStatic
from pscdsl.typing.codes.shapes import disagreement
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, Size, maximum
from pscdsl.typing.dtypes import I32
from pscdsl.typing.python_containers import is_integer_scalar, is_tuple


def scan(
    here: Builder,
    f: Any,
    init: Any,
    xs: Any = None,
    length: Any = None,
    reverse: bool = False,
    unroll: int = 1,
) -> Any:
    """`carry, y = f(carry, x)` over the leading axis of `xs`: the final carry, the stacked ys."""
    del unroll  # a hint that costs more than it gives on this backend
    function = applicable(f, "psc.scan")
    carry = Carry.of(here, "psc.scan", init, function)
    return _scan(here, function, carry, xs, length, bool(reverse), "psc.scan")


def _scan(
    here: Builder,
    function: Applicable,
    carry: Carry,
    xs: Any,
    length: Any,
    reverse: bool,
    name: str,
    only: str = "both",
) -> Any:
    leaves, xs_tree = flatten(here, xs, f"the `xs` of `{name}`")
    columns = strong(leaves)
    steps = scan_length(here.facts, name, columns, length)
    rows = [ArrayType(x.dtype, x.shape[1:]) for x in columns]
    ys_tree: list[Type] = []

    def run(inner: Builder, state: Any, row: list[Value]) -> tuple[Any, list[Value | Weak]]:
        x = unflatten(xs_tree, iter(row))
        if only == "ys":
            result: Any = (state, function.apply(inner, (x,), {}))
        else:
            result = function.apply(inner, (state, x), {})
        if isinstance(result, Poison):
            raise Poisoned
        if not is_tuple(result) or len(result) != 2:
            found = describe(result)
            needs = "a body that returns a pair (carry, y)"
            raise Failure(BadBody(combinator=name, needs=needs, found=found))
        outputs, tree = flatten(inner, result[1], f"what the body of `{name}` returns")
        ys_tree[:] = [of_values(tree, strong(outputs))]
        return result[0], outputs

    body = trace_carry(here, carry, rows, run)
    count = len(body.carry)
    primitive = Scan(body.block, len(body.captured), count, steps, reverse)
    results = here.bind(primitive, (*body.captured, *carry.initial(), *columns))
    final = unflatten(carry.tree, iter(results[:count]))
    ys = unflatten(ys_tree[0], iter(results[count:]))
    return ys if only == "ys" else (final, ys)


def scan_length(facts: Assumptions, name: str, columns: Sequence[Value], length: Any) -> Size:
    """The common length of the leading axes."""
    if is_integer_scalar(length):
        length = int(length)
    if length is not None and not isinstance(length, int | Dim):
        raise Failure(NotStatic(what=f"the length of `{name}`"))
    for each in columns:
        if not each.ndim:
            raise Failure(
                LoopLengthsDiffer(
                    combinator=name,
                    lengths=("none (a scalar)",),
                    why=f"{each.type} has no leading axis",
                )
            )
    sizes: list[Size] = [each.shape[0] for each in columns]
    if length is not None:
        sizes.append(length)
    if not sizes:
        raise Failure(LoopLengthsDiffer(combinator=name, lengths=(), why=""))
    for size in sizes[1:]:
        if not facts.equal(sizes[0], size):
            raise Failure(
                LoopLengthsDiffer(
                    combinator=name,
                    lengths=tuple(map(str, dict.fromkeys(sizes))),
                    why=disagreement(facts, sizes[0], size),
                )
            )
    return sizes[0]


def map_(here: Builder, f: Any, *xs: Any) -> Any:
    """`f(x)` for each x along the leading axis, results stacked."""
    function = applicable(f, "psc.map")
    carry = Carry.of(here, "psc.map", (), function)
    if len(xs) != 1:
        function, rows = _Spread(function), xs
    else:
        rows = xs[0]
    return _scan(here, function, carry, rows, None, False, "psc.map", "ys")


@dataclass(frozen=True)
class _Spread:
    """A function of several arguments as one of a tuple."""

    function: Applicable

    def apply(self, here: Builder, args: Sequence[Any], kwargs: Any) -> Any:
        return self.function.apply(here, tuple(args[0]), kwargs)


def fori_loop(here: Builder, lower: Any, upper: Any, body_fun: Any, init_val: Any) -> Any:
    """`val = body_fun(i, val)` for i from `lower` to `upper` (excluded); `i` is an i32 scalar."""
    function = applicable(body_fun, "psc.fori_loop")
    carry = Carry.of(here, "psc.fori_loop", init_val, function)
    if isinstance(lower, int | Dim) and isinstance(upper, int | Dim):
        return _counted(here, function, carry, lower, upper)
    low, high = (_index(here, each) for each in (lower, upper))
    dtype = low.dtype if not isinstance(lower, int) else high.dtype
    low, high = (e.Convert(dtype)(x) if x.dtype is not dtype else x for x in (low, high))
    body = trace_counter(here, function, carry, dtype)
    return _counted_while(here, carry, body, Limits(low, high), None)


def _index(here: Builder, value: Any) -> Value:
    if isinstance(value, int | Dim):
        return here.size(value, I32)
    if isinstance(value, Weak):
        value = value.default()
    if isinstance(value, Value) and not value.ndim and value.dtype.is_integer:
        return value
    raise Failure(
        BadBody(
            combinator="psc.fori_loop", needs="integer scalars as bounds", found=describe(value)
        )
    )


def _counted(here: Builder, function: Applicable, carry: Carry, lower: Size, upper: Size) -> Any:
    """Known bounds: a scan without rows, its counter the last of its carry."""
    length = upper - lower
    if not here.facts.proves(Fact("<=", 0, length)):
        length = maximum(length, 0)
    body = trace_counter(here, function, carry, I32)
    count = len(body.carry)
    primitive = Scan(body.block, len(body.captured), count + 1, length, False)
    start = here.size(lower, I32)
    results = here.bind(primitive, (*body.captured, *carry.initial(), start))
    return unflatten(carry.tree, iter(results[:count]))


def while_loop(
    here: Builder,
    cond_fun: Any,
    body_fun: Any,
    init_val: Any,
    max_steps: Any = None,
    checkpoint_every: Any = None,
) -> Any:
    """`val = body_fun(val)` while `cond_fun(val)`, at most `max_steps` times if that is given."""
    if checkpoint_every is not None:
        every = checkpoint_every
        if isinstance(every, bool) or not isinstance(every, int | Dim):
            raise Failure(NotStatic(what="`checkpoint_every`"))
        if not here.facts.proves(Fact("<=", 1, every)):
            needs = "a positive number of steps as `checkpoint_every`"
            raise Failure(BadBody(combinator="psc.while_loop", needs=needs, found=str(every)))
    condition = applicable(cond_fun, "psc.while_loop")
    body = applicable(body_fun, "psc.while_loop")
    carry = Carry.of(here, "psc.while_loop", init_val, body)

    def run(inner: Builder, state: Any, more: list[Value]) -> tuple[Any, list[Value | Weak]]:
        return body.apply(inner, (state,), {}), []

    if max_steps is None:
        traced = trace_carry(here, carry, (), run)
        return _while(here, carry, traced, condition)
    limit = _index(here, max_steps)
    stepping = trace_counter(here, _WithoutCounter(body), carry, limit.dtype)
    bound = max_steps if isinstance(max_steps, int | Dim) else None
    if isinstance(bound, int):
        bound = max(bound, 0)
    elif bound is not None and not here.facts.proves(Fact("<=", 0, bound)):
        bound = maximum(bound, 0)
    limits = Limits(here.literal(0, limit.dtype), limit, bound, checkpoint_every)
    return _counted_while(here, carry, stepping, limits, condition)


@dataclass(frozen=True)
class _WithoutCounter:
    """A body of the carry alone as one that is given the counter too."""

    function: Applicable

    def apply(self, here: Builder, args: Sequence[Any], kwargs: Any) -> Any:
        return self.function.apply(here, args[1:], kwargs)


def _while(here: Builder, carry: Carry, body: TracedBody, condition: Applicable) -> Any:
    with inner_block(here) as inner:
        params = [inner.parameter(each.type) for each in body.carry]
        found = condition.apply(inner, (unflatten(carry.tree, iter(params)),), {})
        test, captured = inner.finish(params, [bool_scalar(inner, found, carry.loop)])
    primitive = While(test, body.block, len(captured), len(body.captured))
    results = here.bind(primitive, (*captured, *body.captured, *carry.initial()))
    return unflatten(carry.tree, iter(results))


@dataclass(frozen=True)
class Limits:
    """Where a counter starts and ends, the steps between if they are known, and checkpoints."""

    start: Value
    limit: Value
    bound: Size | None = None
    every: Size | None = None


def _counted_while(
    here: Builder, carry: Carry, body: TracedBody, limits: Limits, condition: Applicable | None
) -> Any:
    """While the counter, the last of the carry, is below a limit, and the condition holds."""
    start = limits.start
    with inner_block(here) as inner:
        params = [inner.parameter(each.type) for each in body.carry]
        counter = inner.parameter(start.type, "step")
        predicate = counter < limits.limit
        if condition is not None:
            found = condition.apply(inner, (unflatten(carry.tree, iter(params)),), {})
            predicate = bool_scalar(inner, found, carry.loop) & predicate
        test, captured = inner.finish([*params, counter], [predicate])
    counts = len(captured), len(body.captured)
    primitive = While(test, body.block, *counts, limits.bound, limits.every)
    results = here.bind(primitive, (*captured, *body.captured, *carry.initial(), start))
    return unflatten(carry.tree, iter(results[: len(body.carry)]))
