"""Structured control flow: `cond`, `switch`, `while_loop`, `fori_loop`, `scan`, `map`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pscdsl.builder import Builder, Program, Value, Weak, squeeze
from pscdsl.frontend.pytrees import flatten, leaf, unflatten
from pscdsl.frontend.values import (
    Applicable,
    Marker,
    Poison,
    Poisoned,
    StaticFunction,
    describe,
    is_traced,
)
from pscdsl.ir import Block
from pscdsl.meanings import MEANINGS
from pscdsl.primitives import elementwise as e
from pscdsl.primitives.control import Scan, Switch, While
from pscdsl.typing.arrays import ArrayType, show_shape
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.codes.control import (
    BadBody,
    BadPredicate,
    BranchMismatch,
    CarryMismatch,
    LoopLengthsDiffer,
)
from pscdsl.typing.codes.language import NotCallable, NotStatic
from pscdsl.typing.codes.shapes import disagreement
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, Size, maximum
from pscdsl.typing.dtypes import BOOL, I32, DType, accepts_weak
from pscdsl.typing.trees import Type, map_leaves, paths, same_structure

MAX_ROUNDS = 4


@dataclass
class Traced:
    """A function elaborated into a block: what it returned, before the block is finished."""

    block: Block
    captured: tuple[Value, ...]
    tree: Type
    types: tuple[ArrayType, ...]


def applicable(function: Any, combinator: str) -> Applicable:
    """A function argument; a Failure if it cannot be called."""
    if not isinstance(function, Applicable):
        raise Failure(NotCallable(found=f"{describe(function)}, given to `{combinator}`,"))
    return function


def trees_of(here: Builder, value: Any, what: str) -> tuple[list[Value | Weak], Type]:
    """The arrays of a tree, and its type."""
    return flatten(here, value, what)


def strong(values: Sequence[Value | Weak]) -> list[Value]:
    """Weak arrays in their default dtypes."""
    return [each.default() if isinstance(each, Weak) else each for each in values]


def at(value: Value | Weak, dtype: DType) -> Value:
    """A value in a dtype, if it is weak and can take it; else as it is."""
    if isinstance(value, Value):
        return value
    return value.at(dtype) if accepts_weak(dtype, value.kind) else value.default()


def of_values(tree: Type, values: Sequence[Value]) -> Type:
    """A tree with the types of these values."""
    remaining = iter(values)
    return map_leaves(tree, lambda _: next(remaining).type)


class Attempt:
    """Findings of a first try that a second one would repeat."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.count = len(program.findings)
        self.revealed = len(program.revealed)

    def forget(self) -> None:
        """Drop what was found since."""
        del self.program.findings[self.count :]
        del self.program.revealed[self.revealed :]


# Loops over a carry.


@dataclass
class Carry:
    """A loop's carry: its initial leaves, some of them weak until the body decides."""

    loop: str
    leaves: list[Value | Weak]
    tree: Type
    dtypes: list[DType]

    @classmethod
    def of(cls, here: Builder, loop: str, init: Any) -> Carry:
        """The carry with this initial value."""
        leaves, tree = trees_of(here, init, f"the initial carry of `{loop}`")
        return cls(loop, leaves, tree, [each.dtype for each in leaves])

    def initial_types(self) -> list[ArrayType]:
        """The types of the initial leaves in the dtypes found so far."""
        return [each.type.with_dtype(d) for each, d in zip(self.leaves, self.dtypes, strict=True)]

    def initial(self) -> list[Value]:
        """The initial leaves in the dtypes found so far."""
        return [at(each, dtype) for each, dtype in zip(self.leaves, self.dtypes, strict=True)]

    def settle(
        self, facts: Assumptions, returned: Sequence[Value | Weak], tree: Type
    ) -> list[Value] | None:
        """What the body returned as the next carry; None if a weak leaf changes dtype first."""
        initial = self.initial_types()
        remaining = iter(initial)
        own = map_leaves(self.tree, lambda _: next(remaining))
        if not same_structure(tree, own):
            raise Failure(
                CarryMismatch(
                    loop=self.loop,
                    path="",
                    given=str(own),
                    returned=str(tree),
                    why="the trees differ",
                )
            )
        changed = False
        values: list[Value] = []
        problems: list[CarryMismatch] = []
        places = [path for path, _ in paths(own)]
        for index, (path, start, each) in enumerate(zip(places, initial, returned, strict=True)):
            value = at(each, start.dtype)
            if value.dtype is not start.dtype and isinstance(self.leaves[index], Weak):
                if accepts_weak(value.dtype, self.leaves[index].kind):  # type: ignore[union-attr]
                    self.dtypes[index] = value.dtype
                    changed = True
                    continue
            values.append(value)
            found = self.mismatch(facts, path, start, value.type)
            if found is not None:
                problems.append(found)
        if changed:
            return None
        if problems:
            raise Failure(*problems)
        return values

    def mismatch(
        self, facts: Assumptions, path: str, given: ArrayType, returned: ArrayType
    ) -> CarryMismatch | None:
        """How one leaf differs."""
        why = type_difference(facts, returned, given)
        if why is None:
            return None
        rewrite = ""
        if given.rank == returned.rank and given.dtype is not returned.dtype:
            rewrite = (
                f"start with a carry of dtype {returned.dtype}, "
                f"or return `.astype(psc.{given.dtype})`"
            )
        elif given.rank != returned.rank:
            rewrite = (
                f"start with a carry of shape [{show_shape(returned.shape)}], "
                "or reduce what is returned"
            )
        return CarryMismatch(
            loop=self.loop,
            path=path,
            given=str(given),
            returned=str(returned),
            why=why,
            rewrite=rewrite,
        )


def type_difference(facts: Assumptions, found: ArrayType, wanted: ArrayType) -> str | None:
    """Why two types differ, in words; None if they are the same for all sizes."""
    if found.rank != wanted.rank:
        return f"{found.rank} axes, not {wanted.rank}"
    for mine, other in zip(found.shape, wanted.shape, strict=True):
        if not facts.equal(mine, other):
            return disagreement(facts, mine, other)
    if found.dtype is not wanted.dtype:
        return f"dtype {found.dtype}, not {wanted.dtype}"
    return None


def trace_carry(
    here: Builder,
    carry: Carry,
    extra: Sequence[ArrayType],
    run: Callable[[Builder, Any, list[Value]], tuple[Any, list[Value | Weak]]],
) -> tuple[Block, tuple[Value, ...], list[Value], Type]:
    """Elaborate a loop body until the dtypes of the weak leaves of its carry are settled.

    `run(inner, carry, extra)` gives the next carry and further results.  The block takes the
    captured values, the carry, then the extra parameters.
    """
    program = here.program
    for _ in range(MAX_ROUNDS):
        attempt = Attempt(program)
        with program.inside() as inner:
            params = [inner.parameter(t) for t in carry.initial_types()]
            more = [inner.parameter(t) for t in extra]
            next_carry, results = run(inner, unflatten(carry.tree, iter(params)), more)
            leaves, tree = trees_of(inner, next_carry, f"the carry that `{carry.loop}` returns")
            settled = carry.settle(here.facts, leaves, tree)
            if settled is None:
                attempt.forget()
                continue
            block, captured = inner.finish([*params, *more], [*settled, *strong(results)])
            return block, captured, settled, tree
    raise Failure(
        CarryMismatch(
            loop=carry.loop,
            path="",
            given="of one dtype",
            returned="another one each time",
            why="the dtypes do not settle",
        )
    )


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
    carry = Carry.of(here, "psc.scan", init)
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
    leaves, xs_tree = trees_of(here, xs, f"the `xs` of `{name}`")
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
        if not isinstance(result, tuple) or len(result) != 2:  # pyright: ignore
            found = describe(result)
            raise Failure(BadBody(combinator=name, needs="a pair (carry, y)", found=found))
        outputs, tree = trees_of(inner, result[1], f"what the body of `{name}` returns")
        ys_tree[:] = [of_values(tree, strong(outputs))]
        return result[0], outputs

    block, captured, settled, _ = trace_carry(here, carry, rows, run)
    primitive = Scan(block, len(captured), len(settled), steps, reverse)
    initial = carry.initial()
    results = here.bind(primitive, (*captured, *initial, *columns))
    count = len(settled)
    final = unflatten(carry.tree, iter(results[:count]))
    ys = unflatten(ys_tree[0], iter(results[count:]))
    return ys if only == "ys" else (final, ys)


def scan_length(facts: Assumptions, name: str, columns: Sequence[Value], length: Any) -> Size:
    """The common length of the leading axes."""
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
    if len(xs) != 1:
        return _scan(
            here, _Spread(function), Carry.of(here, "psc.map", ()), xs, None, False, "psc.map", "ys"
        )
    return _scan(here, function, Carry.of(here, "psc.map", ()), xs[0], None, False, "psc.map", "ys")


@dataclass(frozen=True)
class _Spread:
    """A function of several arguments as one of a tuple."""

    function: Applicable

    def apply(self, here: Builder, args: Sequence[Any], kwargs: Any) -> Any:
        return self.function.apply(here, tuple(args[0]), kwargs)


def fori_loop(here: Builder, lower: Any, upper: Any, body_fun: Any, init_val: Any) -> Any:
    """`val = body_fun(i, val)` for i from `lower` to `upper` (excluded); `i` is an i32 scalar."""
    function = applicable(body_fun, "psc.fori_loop")
    carry = Carry.of(here, "psc.fori_loop", init_val)
    if isinstance(lower, int | Dim) and isinstance(upper, int | Dim):
        return _counted(here, function, carry, lower, upper)
    low, high = (_index(here, each) for each in (lower, upper))
    dtype = low.dtype if not isinstance(lower, int) else high.dtype
    low, high = (e.Convert(dtype)(x) if x.dtype is not dtype else x for x in (low, high))
    whole = Carry("psc.fori_loop", [low, *carry.leaves], carry.tree, [dtype, *carry.dtypes])

    return _while_counted(here, function, whole, high)


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
    """Known bounds: a scan without rows, its counter a part of the carry."""
    length = upper - lower
    if not here.facts.proves(Fact("<=", 0, length)):
        length = maximum(length, 0)
    start = here.size(lower, I32)
    whole = Carry("psc.fori_loop", [start, *carry.leaves], carry.tree, [I32, *carry.dtypes])
    block, captured, settled = trace_counter(here, function, whole)
    primitive = Scan(block, len(captured), len(settled), length, False)
    results = here.bind(primitive, (*captured, *whole.initial()))
    return unflatten(carry.tree, iter(results[1:]))


def trace_counter(
    here: Builder, function: Applicable, whole: Carry
) -> tuple[Block, tuple[Value, ...], list[Value]]:
    """The body of a counting loop: the counter leads the carry."""
    program = here.program
    inner_carry = Carry(whole.loop, whole.leaves[1:], whole.tree, whole.dtypes[1:])
    for _ in range(MAX_ROUNDS):
        attempt = Attempt(program)
        with program.inside() as inner:
            counter = inner.parameter(ArrayType(whole.dtypes[0]), "i")
            params = [inner.parameter(t) for t in inner_carry.initial_types()]
            state = unflatten(whole.tree, iter(params))
            returned = function.apply(inner, (counter, state), {})
            leaves, tree = trees_of(inner, returned, f"the carry that `{whole.loop}` returns")
            settled = inner_carry.settle(here.facts, leaves, tree)
            if settled is None:
                whole.dtypes[1:] = inner_carry.dtypes
                attempt.forget()
                continue
            following = counter + 1
            block, captured = inner.finish([counter, *params], [following, *settled])
            return block, captured, [following, *settled]
    raise Failure(
        CarryMismatch(
            loop=whole.loop, path="", given="of one dtype", returned="another one", why=""
        )
    )


def _while_counted(here: Builder, function: Applicable, whole: Carry, high: Value) -> Any:
    body, captured, settled = trace_counter(here, function, whole)
    program = here.program
    with program.inside() as inner:
        counter = inner.parameter(ArrayType(whole.dtypes[0]), "i")
        rest = [inner.parameter(each.type) for each in settled[1:]]
        condition, cond_captured = inner.finish([counter, *rest], [counter < high])
    primitive = While(condition, body, len(cond_captured), len(captured))
    results = here.bind(primitive, (*cond_captured, *captured, *whole.initial()))
    return unflatten(whole.tree, iter(results[1:]))


def while_loop(
    here: Builder, cond_fun: Any, body_fun: Any, init_val: Any, max_steps: Any = None
) -> Any:
    """`val = body_fun(val)` while `cond_fun(val)`, at most `max_steps` times if that is given."""
    condition = applicable(cond_fun, "psc.while_loop")
    body = applicable(body_fun, "psc.while_loop")
    carry = Carry.of(here, "psc.while_loop", init_val)

    def run(inner: Builder, state: Any, more: list[Value]) -> tuple[Any, list[Value | Weak]]:
        return body.apply(inner, (state,), {}), []

    block, captured, settled, _ = trace_carry(here, carry, (), run)
    if max_steps is not None:
        return _bounded_while(here, condition, carry, block, captured, settled, max_steps)
    with here.program.inside() as inner:
        params = [inner.parameter(each.type) for each in settled]
        found = condition.apply(inner, (unflatten(carry.tree, iter(params)),), {})
        predicate = bool_scalar(inner, found, "psc.while_loop")
        test, test_captured = inner.finish(params, [predicate])
    primitive = While(test, block, len(test_captured), len(captured))
    results = here.bind(primitive, (*test_captured, *captured, *carry.initial()))
    return unflatten(carry.tree, iter(results))


def _bounded_while(
    here: Builder,
    condition: Applicable,
    carry: Carry,
    block: Block,
    captured: tuple[Value, ...],
    settled: list[Value],
    max_steps: Any,
) -> Any:
    """A while loop with a step counter leading its carry."""
    limit = _index(here, max_steps)
    program = here.program
    with program.inside() as inner:
        counter = inner.parameter(ArrayType(limit.dtype), "step")
        params = [inner.parameter(each.type) for each in settled]
        found = condition.apply(inner, (unflatten(carry.tree, iter(params)),), {})
        predicate = bool_scalar(inner, found, "psc.while_loop") & (counter < limit)
        test, test_captured = inner.finish([counter, *params], [predicate])
    count = len(captured)
    with program.inside() as inner:
        outer = [inner.parameter(var.type) for var in block.params[:count]]
        counter = inner.parameter(ArrayType(limit.dtype), "step")
        params = [inner.parameter(each.type) for each in settled]
        results = inner.bind(Switch((block,)), (inner.literal(0, I32), *outer, *params))
        body, _ = inner.finish([*outer, counter, *params], [counter + 1, *results])
    primitive = While(test, body, len(test_captured), count)
    start = here.literal(0, limit.dtype)
    results = here.bind(primitive, (*test_captured, *captured, start, *carry.initial()))
    return unflatten(carry.tree, iter(results[1:]))


def bool_scalar(here: Builder, value: Any, construct: str) -> Value:
    """A predicate as a bool scalar; a Failure if it is something else."""
    if isinstance(value, Poison):
        raise Poisoned
    found = leaf(here, value)
    if isinstance(found, Weak):
        found = found.default()
    if found is None or found.dtype is not BOOL or found.ndim:
        if found is not None and found.dtype is BOOL and all(size == 1 for size in found.shape):
            return squeeze(found, tuple(range(found.ndim)))
        raise Failure(BadPredicate(construct=construct, found=describe(value)))
    return found


# Branches.


def cond(here: Builder, pred: Any, true_fun: Any, false_fun: Any, *operands: Any) -> Any:
    """`true_fun(*operands)` if `pred` else `false_fun(*operands)`; one of them is run."""
    branches = [applicable(each, "psc.cond") for each in (false_fun, true_fun)]
    if isinstance(pred, bool):
        return branches[pred].apply(here, operands, {})
    predicate = bool_scalar(here, pred, "psc.cond")
    return _branches(here, "psc.cond", predicate, branches, operands)


def switch(here: Builder, index: Any, branches: Any, *operands: Any) -> Any:
    """`branches[index](*operands)`, the index clamped to the branches there are."""
    from pscdsl.frontend.python_library import items_of

    functions = [applicable(each, "psc.switch") for each in items_of(branches)]
    if not functions:
        raise Failure(
            BadBody(
                combinator="psc.switch", needs="something: there are no branches", found="nothing"
            )
        )
    if isinstance(index, int):
        return functions[min(max(index, 0), len(functions) - 1)].apply(here, operands, {})
    if isinstance(index, Weak | Dim):
        index = here.size(index, I32) if isinstance(index, Dim) else index.default()
    if not isinstance(index, Value) or index.ndim or not index.dtype.is_integer:
        raise Failure(
            BadBody(
                combinator="psc.switch", needs="an integer scalar as index", found=describe(index)
            )
        )
    return _branches(here, "psc.switch", _as_i32(index, len(functions)), functions, operands)


def _as_i32(index: Value, count: int) -> Value:
    if index.dtype is I32:
        return index
    low, high = index.dtype.range
    here = index.builder
    top = here.literal(min(count - 1, high), index.dtype)
    bottom = here.literal(max(0, low), index.dtype)
    return e.Convert(I32)(e.Clamp()(bottom, index, top))


def _branches(
    here: Builder,
    construct: str,
    index: Value,
    functions: Sequence[Applicable],
    operands: Sequence[Any],
) -> Any:
    program = here.program
    wanted: list[DType] | None = None
    for _ in range(MAX_ROUNDS):
        attempt = Attempt(program)
        traced: list[tuple[Builder, list[Value | Weak], Type]] = []
        for function in functions:
            with program.inside() as inner:
                result = function.apply(inner, operands, {})
                leaves, tree = trees_of(inner, result, f"a branch of `{construct}`")
                if wanted is not None:
                    leaves = [at(v, d) for v, d in zip(leaves, wanted, strict=True)]
                traced.append((inner, leaves, tree))
        joined = join_branches(here.facts, construct, traced)
        if wanted is not None or all(
            isinstance(v, Value) for _, leaves, _ in traced for v in leaves
        ):
            break
        wanted = joined
        attempt.forget()
    return _bind_branches(here, index, traced)


def join_branches(
    facts: Assumptions, construct: str, traced: Sequence[tuple[Builder, list[Value | Weak], Type]]
) -> list[DType]:
    """The dtype of each result leaf; a Failure where branches differ."""
    tree = traced[0][2]
    for number, (_, _, other) in enumerate(traced[1:], 1):
        if not same_structure(tree, other):
            raise Failure(
                BranchMismatch(
                    construct=construct,
                    path="",
                    first=str(tree),
                    other=str(other),
                    index=number,
                    why="the trees differ",
                )
            )
    dtypes: list[DType] = []
    problems: list[BranchMismatch] = []
    for position, (path, _) in enumerate(paths(tree)):
        column = [leaves[position] for _, leaves, _ in traced]
        decided = next((v.dtype for v in column if isinstance(v, Value)), None)
        if decided is None:
            top = max(column, key=lambda v: v.dtype.kind)
            decided = top.dtype
        dtypes.append(decided)
        types = [
            v.type.with_dtype(decided)
            if isinstance(v, Weak) and accepts_weak(decided, v.kind)
            else v.type
            for v in column
        ]
        for number, other_type in enumerate(types[1:], 1):
            why = type_difference(facts, other_type, types[0])
            if why is not None:
                rewrite = ""
                if other_type.shape == types[0].shape:
                    rewrite = f"`.astype(psc.{types[0].dtype})` in branch {number}"
                problems.append(
                    BranchMismatch(
                        construct=construct,
                        path=path,
                        first=str(types[0]),
                        other=str(other_type),
                        index=number,
                        why=why,
                        rewrite=rewrite,
                    )
                )
                break
    if problems:
        raise Failure(*problems)
    return dtypes


def _bind_branches(
    here: Builder, index: Value, traced: Sequence[tuple[Builder, list[Value | Weak], Type]]
) -> Any:
    """Make every branch take the same captured values, then append the equation."""
    finished: list[tuple[Builder, list[Value]]] = []
    for inner, leaves, _ in traced:
        values = [v for v in leaves if isinstance(v, Value)]
        assert len(values) == len(leaves)
        for each in values:
            inner.atom(each)
        finished.append((inner, values))
    captured = list(dict.fromkeys(var for inner, _ in finished for var in inner.captured))
    blocks: list[Block] = []
    for inner, values in finished:
        for var in captured:
            inner.atom(Value(here, var))
        inner.captured = {var: inner.captured[var] for var in captured}
        block, _ = inner.finish([], values)
        blocks.append(block)
    results = here.bind(Switch(tuple(blocks)), (index, *(Value(here, var) for var in captured)))
    return unflatten(traced[0][2], iter(results))


def reveal_type(here: Builder, value: Any) -> Any:
    """Report the type of an expression, for tests and for the curious."""
    leaves, tree = trees_of(here, value, "the argument of `reveal_type`")
    del leaves
    program = here.program
    program.revealed.append((program.span.line, str(tree)))
    return value


def scope(here: Builder, name: Any) -> Marker:
    """`with psc.scope(name):` names a part of a kernel."""
    return Marker("pscdsl.scope")


def register() -> None:
    """Give the combinators their names."""
    combinators: dict[str, Callable[..., Any]] = {
        "scan": scan,
        "map": map_,
        "fori_loop": fori_loop,
        "while_loop": while_loop,
        "cond": cond,
        "switch": switch,
        "reveal_type": reveal_type,
        "scope": scope,
    }
    for name, body in combinators.items():
        MEANINGS[f"pscdsl.{name}"] = StaticFunction(f"psc.{name}", body)
    MEANINGS["builtins.reveal_type"] = MEANINGS["typing.reveal_type"] = MEANINGS[
        "pscdsl.reveal_type"
    ]


__all__ = ["is_traced", "register"]
