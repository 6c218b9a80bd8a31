"""The cost of a program, as polynomials in its sizes: operations, and bytes of memory.

Operations are floating-point operations as textbooks count them: 2*m*n*k for a product of matrices,
one for each element of a sum. A `while_loop` counts with all the steps that it may take, if it has
`max_steps`. Memory is counted as if every equation wrote its result: XLA fuses many and needs less,
so this is an upper bound, except for the memory of its library calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from typing import TypeAlias

from pscdsl._src.ir.program import Atom, Block, Equation, Function, Literal, Var, walk
from pscdsl._src.primitives.collectives import SENDING, Collective, CollectivePermute
from pscdsl._src.primitives.control import Call, Control, function_cost
from pscdsl._src.primitives.indexing import DynamicSlice, DynamicUpdate, Gather, Scatter
from pscdsl._src.primitives.matrices import Diagonal
from pscdsl._src.primitives.shaping import Reshape, Slice
from pscdsl.typing.array_types import ArrayType, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.diagnostics import Span
from pscdsl.typing.dims import Size, maximum, minimum, substitute
from pscdsl.typing.facts import Fact

# The bytes that a program reads and writes, as a polynomial in its sizes.
#
# They are counted as if every equation read its operands from memory and wrote its results to it.
# XLA fuses many, and moves less. An equation that only reads a part of an array moves that part.


def bytes_of(array: ArrayType) -> Size:
    """Return the bytes of an array's elements."""
    return size_of(array.shape) * max(1, array.dtype.bits // 8)


def total_bytes(types: Iterable[ArrayType]) -> Size:
    """Return the bytes of several arrays."""
    total: Size = 0
    for type_ in types:
        total = total + bytes_of(type_)
    return total


@lru_cache(maxsize=1024)
def function_traffic(function: Function) -> Size:
    """Return the bytes that one run of a function moves, in its own sizes."""
    return block_traffic(function.body)


def block_traffic(block: Block) -> Size:
    """Return the bytes that one run of a block moves."""
    total: Size = 0
    for equation in block.equations:
        total = total + traffic(equation)
    return total


def traffic(equation: Equation) -> Size:
    """Return the bytes that an equation moves; for a loop with unknown steps, those of one step."""
    primitive = equation.primitive
    if isinstance(primitive, Call):
        return substitute(function_traffic(primitive.function), dict(primitive.sizes))
    if isinstance(primitive, Control):
        return primitive.layout.total(block_traffic)
    return _bytes_moved(equation)


def _bytes_moved(equation: Equation) -> Size:
    """Return the elements and bytes that an equation without blocks moves."""
    primitive = equation.primitive
    given = [atom.type for atom in equation.inputs if not isinstance(atom, Literal)]
    made = [var.type for var in equation.outputs]
    match primitive:
        case Reshape():
            return 0
        case Slice() | Diagonal() | DynamicSlice() | Gather():
            return 2 * total_bytes(made) + total_bytes(given[1:])
        case DynamicUpdate():
            return 2 * bytes_of(equation.inputs[1].type) + total_bytes(given[2:])
        case Scatter():
            indices, updates = equation.inputs[1].type, equation.inputs[2].type
            return 3 * bytes_of(updates) + bytes_of(indices)
        case _:
            return total_bytes(given) + total_bytes(made)


# What the devices of a mesh send each other.
#
# The bytes of the results of collectives on a device are counted. A ring of R devices sends and
# receives `2*(R-1)/R` times as many for a sum, `(R-1)/R` times for an array that is put together.


Sent: TypeAlias = Mapping[tuple[str, type[Collective]], Size]
"""Bytes by the axes of the mesh, `data@model`, and the collective."""


@lru_cache(maxsize=256)
def function_received(function: Function) -> Sent:
    """Return the bytes that one run of a function gets from other devices, by collectives."""
    return _received(function.body)


def function_sent(function: Function) -> Mapping[str, Size]:
    """Return the bytes that one run of a function gets from other devices, by mesh axes."""
    return _by_axes(function_received(function))


def _received(block: Block) -> Sent:
    total: dict[tuple[str, type[Collective]], Size] = {}
    for equation in block.equations:
        for key, size in _of_equation(equation).items():
            total[key] = total.get(key, 0) + size
    return total


def _of_equation(equation: Equation) -> Sent:
    primitive = equation.primitive
    if isinstance(primitive, SENDING):
        return {("@".join(primitive.over), type(primitive)): _sent_by(primitive, equation)}
    if isinstance(primitive, Call):
        env = dict(primitive.sizes)
        inner = function_received(primitive.function)
        return {key: substitute(size, env) for key, size in inner.items()}
    if isinstance(primitive, Control):
        layout = primitive.layout
        inside = dict.fromkeys(key for region in layout.run for key in _received(region.block))
        return {key: layout.total(partial(_received_by, key)) for key in inside}
    return {}


def _sent_by(primitive: Collective, equation: Equation) -> Size:
    size = bytes_of(equation.outputs[0].type)
    if isinstance(primitive, CollectivePermute) and abs(primitive.by) != 1:
        return size * minimum(1, primitive.by % primitive.count)
    return size


def _received_by(key: tuple[str, type[Collective]], block: Block) -> Size:
    return _received(block).get(key, 0)


def _by_axes(received: Sent) -> Mapping[str, Size]:
    total: dict[str, Size] = {}
    for (axes, _), size in received.items():
        total[axes] = total.get(axes, 0) + size
    return total


def sent_axis(measure: str) -> str | None:
    """Return the axis of the mesh of a measure such as `sent[data]`; None for another measure."""
    return measure[5:-1] if measure.startswith("sent[") else None


def sent_along(axis: str, equation: Equation) -> Size:
    """Return the bytes that one equation gets from other devices along an axis of the mesh."""
    return _total_along(axis, _by_axes(_of_equation(equation)).items())


def _total_along(axis: str, sent: Iterable[tuple[str, Size]]) -> Size:
    total: Size = 0
    for axes, size in sent:
        if axis in axes.split("@"):
            total = total + size
    return total


@dataclass(frozen=True)
class Cost:
    """The cost of one call of a program."""

    flops: Size
    """Floating-point operations; of loops without a bound those of one step."""
    bytes: Size
    """That are read and written, if every operation reads its operands and writes its results."""
    arguments: Size
    """Bytes."""
    results: Size
    """Bytes."""
    peak: Size
    """The most bytes in memory at any time, including arguments and results."""
    loops: tuple[Span, ...]
    """The loops without a known number or bound of steps."""
    sent: tuple[tuple[str, Size], ...] = ()
    """The bytes that a device gets from others, by the mesh axes along which they are sent."""

    def measure(self, name: str) -> Size:
        """Return a number: `flops`, or `sent[data]` for all that is sent along an axis."""
        axis = sent_axis(name)
        if axis is not None:
            return _total_along(axis, self.sent)
        found: Size = getattr(self, name)
        return found

    def at(self, sizes: Mapping[str, Size]) -> Cost:
        """Return the cost with numbers in place of sizes."""
        numbers = {
            field.name: substitute(getattr(self, field.name), sizes)
            for field in fields(self)
            if field.name not in ("loops", "sent")
        }
        sent = tuple([(axes, substitute(size, sizes)) for axes, size in self.sent])
        return Cost(**numbers, loops=self.loops, sent=sent)


def cost(function: Function) -> Cost:
    """Return the cost of one call of a program; raise a Failure if a primitive has no cost."""
    facts, body = function.facts, function.body
    return Cost(
        facts.simplify(function_cost(function)),
        facts.simplify(function_traffic(function)),
        facts.simplify(total_bytes(body.in_types)),
        facts.simplify(total_bytes(body.out_types)),
        facts.simplify(_largest(facts, moments(facts, body))),
        _loops(function),
        tuple([(axes, facts.simplify(n)) for axes, n in sorted(function_sent(function).items())]),
    )


def moments(facts: Assumptions, block: Block) -> Iterator[Size]:
    """Yield the bytes alive during each equation: values needed later, and its results."""
    last: dict[Atom, int] = {}
    for place, equation in enumerate(block.equations):
        last.update(dict.fromkeys(equation.inputs, place))
    end = len(block.equations)
    last.update(dict.fromkeys((*block.results, *block.params), end))
    dying: dict[int, list[ArrayType]] = {}
    for atom, place in last.items():
        if isinstance(atom, Var):
            dying.setdefault(place, []).append(atom.type)
    alive = total_bytes(block.in_types)
    yield alive
    for place, equation in enumerate(block.equations):
        made = [var.type for var in equation.outputs]
        alive = alive + total_bytes(made)
        yield alive + _inner_bytes(facts, equation)
        unused = [var.type for var in equation.outputs if var not in last]
        alive = alive - total_bytes((*unused, *dying.get(place, ())))


def _inner_bytes(facts: Assumptions, equation: Equation) -> Size:
    """Return the bytes that an equation needs besides its operands and results."""
    primitive = equation.primitive
    if isinstance(primitive, Call):
        function = primitive.function
        inner = substitute(_peak(function), dict(primitive.sizes))
        return inner - total_bytes([atom.type for atom in (*equation.inputs, *equation.outputs)])
    return _largest(facts, [_extra_bytes(facts, equation, block) for block in primitive.blocks()])


def _extra_bytes(facts: Assumptions, equation: Equation, block: Block) -> Size:
    """Return the bytes that a block needs besides its operands: slices and intermediate values."""
    there = Counter(atom.type for atom in equation.inputs)
    given: Size = 0
    for type_ in block.in_types:
        if there[type_]:
            there[type_] -= 1
            given = given + bytes_of(type_)
    return _largest(facts, moments(facts, block)) - given


@lru_cache(maxsize=1024)
def _peak(function: Function) -> Size:
    return _largest(function.facts, moments(function.facts, function.body))


def _largest(facts: Assumptions, sizes: Iterable[Size]) -> Size:
    """Return the largest of sizes, without those that are provably not above another one."""
    kept: list[Size] = []
    for size in dict.fromkeys(sizes):
        if any(facts.proves(Fact("<=", size, each)) for each in kept):
            continue
        kept = [each for each in kept if not facts.proves(Fact("<=", each, size))]
        kept.append(size)
    total: Size = 0
    for size in kept:
        total = size if total == 0 else maximum(total, size)
    return total


@lru_cache(maxsize=1024)
def _loops(function: Function) -> tuple[Span, ...]:
    return unbounded_loops(function.body)


def unbounded_loops(block: Block) -> tuple[Span, ...]:
    """Return the loops in a block and in what it calls, each once, that have no known bound."""
    spans: dict[Span, None] = {}
    for equation in walk(block):
        primitive = equation.primitive
        if isinstance(primitive, Call):
            spans.update(dict.fromkeys(_loops(primitive.function)))
        elif isinstance(primitive, Control):
            if any(region.times is None for region in primitive.layout.regions):
                spans[equation.span] = None
    return tuple(spans)
