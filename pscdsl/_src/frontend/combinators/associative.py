"""`associative_scan` and `map_reduce`: rows combined by an associative function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pscdsl._src.frontend.combinators.carries import Carry, TracedBody, returned_by, trace_carry
from pscdsl._src.frontend.combinators.loops import scan_length
from pscdsl._src.frontend.interpreter.frames import inner_block
from pscdsl._src.frontend.transformations.mapping import to_front
from pscdsl._src.frontend.trees.pytrees import flatten, unflatten
from pscdsl._src.frontend.trees.tracing import Attempt, applicable, at, of_values, strong
from pscdsl._src.frontend.values.values import Applicable
from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives.control import AssociativeScan, MapReduce
from pscdsl._src.primitives.shaping import Reverse, Transpose
from pscdsl.numpy.arguments import normalize_axis
from pscdsl.typing.array_types import ArrayType, Shape, Type
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.control import LoopLengthsDiffer
from pscdsl.typing.codes.shapes_of_arguments import EmptyReduction
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import I32, DType


def associative_scan(
    here: Builder, fn: Any, elems: Any, reverse: bool = False, axis: Any = 0
) -> Any:
    """`y[i] = fn(y[i-1], x[i])` along an axis, all rows combined in any grouping."""
    name = "psc.associative_scan"
    function = applicable(fn, name)
    leaves, tree = flatten(here, elems, f"the `elems` of `{name}`")
    axes = [_axis(axis, each, name) for each in leaves]
    rows = [_row_of(each, place) for each, place in zip(leaves, axes, strict=True)]
    carry = Carry(name, rows, tree, [each.dtype for each in rows], function)
    body = trace_combination(here, carry, function)
    arrays = [
        to_front(at(each, dtype), place)
        for each, dtype, place in zip(leaves, carry.dtypes, axes, strict=True)
    ]
    length = scan_length(here.facts, name, arrays, None)
    if reverse:
        arrays = [Reverse((0,))(x) for x in arrays]
    primitive = AssociativeScan(body.block, len(body.captured), length)
    found = here.bind(primitive, (*body.captured, *arrays))
    if reverse:
        found = tuple([Reverse((0,))(x) for x in found])
    results = [_from_front(x, place) for x, place in zip(found, axes, strict=True)]
    return unflatten(tree, iter(results))


def _axis(axis: Any, leaf: Value | Weak, name: str) -> int:
    """The axis of one array, counted from the front."""
    if not leaf.ndim:
        why = f"{leaf.type} has no axis"
        raise Failure(LoopLengthsDiffer(combinator=name, lengths=("none (a scalar)",), why=why))
    return normalize_axis(axis, leaf.ndim, name)


def _row_of(array: Value | Weak, axis: int) -> Value | Weak:
    """What stands for a row of an array: of its type, as weak as it is."""
    shape = (*array.shape[:axis], *array.shape[axis + 1 :])
    return _stand_in(array, shape)


def _stand_in(array: Value | Weak, shape: Shape) -> Value | Weak:
    """An array of this shape, of which nothing is known but what kind of array it is."""
    here = array.builder
    if isinstance(array, Value):
        return here.parameter(ArrayType(array.dtype, shape))

    def at(dtype: DType) -> Value:
        return here.parameter(ArrayType(dtype, shape))

    return Weak(here, array.kind, shape, at, whole=I32)


def _from_front(x: Value, axis: int) -> Value:
    """An array with its first axis moved to this place."""
    if not axis:
        return x
    order = list(range(1, x.ndim))
    order.insert(axis, 0)
    return Transpose(tuple(order))(x)


def trace_combination(here: Builder, carry: Carry, function: Applicable) -> TracedBody:
    """A function of two rows, whose types the carry says, that gives another one."""

    def run(inner: Builder, state: Any, more: list[Value]) -> tuple[Any, list[Value | Weak]]:
        other = unflatten(carry.tree, iter(more))
        return function.apply(inner, (state, other), {}), []

    return trace_carry(here, carry, (), run, pairs=True)


def map_reduce(here: Builder, map_fn: Any, combine: Any, xs: Any, init: Any = None) -> Any:
    """`map_fn` of each row of `xs`, combined with each other, after `init` if that is given."""
    name = "psc.map_reduce"
    function, combination = applicable(map_fn, name), applicable(combine, name)
    leaves, tree = flatten(here, xs, f"the `xs` of `{name}`")
    columns = strong(leaves)
    length = scan_length(here.facts, name, columns, None)
    if init is None and not here.facts.proves(Fact("<=", 1, length)):
        given, remedy = columns[0].type, "pass `init`, which is what there is of no rows"
        raise Failure(EmptyReduction(function=name, given=given, size=length, remedy=remedy))
    start = None if init is None else Carry.of(here, name, init, function)
    mapping = _Mapping(here, function, columns, tree, start)
    attempt = Attempt(here.program)
    mapped = mapping.trace(None)
    again = any(isinstance(each, Weak) for each in mapped.leaves)
    if again:
        attempt.forget()
    rows = [_stand_in(each, each.shape) for each in mapped.leaves]
    dtypes = [each.dtype for each in rows] if start is None else list(start.dtypes)
    carry = Carry(name, rows, mapped.tree, dtypes, combination)
    body = trace_combination(here, carry, combination)
    if again:
        mapped = mapping.trace(carry.dtypes)
    initial: list[Value] = []
    if start is not None:
        initial = [at(x, dtype) for x, dtype in zip(start.leaves, carry.dtypes, strict=True)]
    counts = len(mapped.captured), len(body.captured), len(initial)
    primitive = MapReduce(mapped.block, body.block, *counts, length)
    operands = (*mapped.captured, *body.captured, *initial, *columns)
    return unflatten(carry.tree, iter(here.bind(primitive, operands)))


@dataclass(frozen=True)
class _Mapped:
    """What a function makes of a row, as a block of what it captures and of the row."""

    block: Block
    captured: tuple[Value, ...]
    leaves: list[Value | Weak]
    """The results; weak ones where their dtypes are still open."""
    tree: Type


@dataclass(frozen=True)
class _Mapping:
    """A function of rows, and what its results have to agree with."""

    here: Builder
    function: Applicable
    columns: Sequence[Value]
    tree: Type
    start: Carry | None

    def trace(self, dtypes: Sequence[DType] | None) -> _Mapped:
        """Elaborate it; weak results in these dtypes, if they are known."""
        here, start = self.here, self.start
        with inner_block(here) as inner:
            params = [inner.parameter(ArrayType(x.dtype, x.shape[1:])) for x in self.columns]
            result = self.function.apply(inner, (unflatten(self.tree, iter(params)),), {})
            leaves, tree = flatten(inner, result, "what `map_fn` of `psc.map_reduce` returns")
            found = strong(leaves)
            if dtypes is not None:
                found = [at(x, dtype) for x, dtype in zip(leaves, dtypes, strict=True)]
            elif start is not None:
                found, leaves = self._agreeing(start, leaves, tree)
            block, captured = inner.finish(params, found)
        return _Mapped(block, captured, leaves, of_values(tree, found))

    def _agreeing(
        self, start: Carry, leaves: Sequence[Value | Weak], tree: Type
    ) -> tuple[list[Value], list[Value | Weak]]:
        """Results of the types of what is combined first; weak ones where both are."""
        facts = self.here.facts
        try:
            found = start.settle(facts, leaves, tree) or start.settle(facts, leaves, tree)
        except Failure as failure:
            raise failure.labelled(*returned_by(self.here, self.function)) from None
        assert found is not None
        open_ = [
            x if isinstance(x, Weak) and isinstance(first, Weak) else value
            for x, first, value in zip(leaves, start.leaves, found, strict=True)
        ]
        return found, open_
