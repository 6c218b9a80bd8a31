"""Rows combined by an associative function, as programs of loops: one after the other or blockwise.

Blockwise, the rows are cut into blocks of one length, and a loop goes through all blocks at once,
a row of each in every step (Blelloch, "Prefix sums and their applications", 1990, section 1.2.1).
A second loop goes through the totals of the blocks.  For prefixes, what comes before a block is
then combined with each prefix inside of it.  Programs are of one size, however many rows there
are, and are made of loops, whose derivatives are known.

A loop over the rows themselves takes as many steps as there are rows, but half of the work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from pscdsl._src.interpreters.replay import closed, zeros
from pscdsl._src.ir.program import Atom, Block
from pscdsl._src.primitives.control.call import Call
from pscdsl._src.primitives.control.rows import (
    Fold,
    joined,
    one_after_the_other,
    row,
    rows_of,
    side_by_side,
    single,
)
from pscdsl._src.primitives.control.scan import Scan
from pscdsl._src.primitives.control.switch import Switch
from pscdsl._src.primitives.control.while_loop import While
from pscdsl._src.primitives.elementwise import equal
from pscdsl._src.primitives.random import SeedKey
from pscdsl._src.primitives.shaping import Broadcast
from pscdsl.typing.array_types import ArrayType, size_of
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, I32, KEY

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Builder, Value

LENGTH = 128
"""How many rows a block has where the number of rows is not known."""
FEW = 4096
"""So many rows are combined one after the other."""
NARROW = 2
"""So are rows of more elements than that: a step has enough to do."""
CACHED = 1 << 18
"""So are rows of more elements in all: blocks need several passes through them."""


def block_length(facts: Assumptions, length: Size, width: Size) -> int | None:
    """How long the blocks are of which prefixes are made; None where there are to be none.

    `width` is how many elements a row has.  Measured on CPUs, where the steps of a loop cost
    little: XLA makes one function of a loop whose steps are simple.
    """
    if not facts.proves(Fact("<=", width, NARROW)):
        return None
    if not isinstance(length, int):
        return LENGTH
    if length <= FEW or not facts.proves(Fact("<=", length * width, CACHED)):
        return None
    return 1 << length.bit_length() // 2


def width_of(types: Sequence[ArrayType]) -> Size:
    """How many elements arrays have together."""
    total: Size = 0
    for each in types:
        total = total + size_of(each.shape)
    return total


def goes_apart(block: Block, shared: int) -> bool:
    """Whether a block, for many of all but its first operands, would wait or take all branches."""
    return _goes_apart(block, [place >= shared for place in range(len(block.params))])


def _goes_apart(block: Block, many: Sequence[bool]) -> bool:
    varying: set[Atom] = {var for var, each in zip(block.params, many, strict=True) if each}
    for equation in block.equations:
        flags = [atom in varying for atom in equation.inputs]
        if not any(flags):
            continue
        primitive = equation.primitive
        if isinstance(primitive, While) or (isinstance(primitive, Switch) and flags[0]):
            return True
        if isinstance(primitive, Switch):
            inner = [(branch, flags[1:]) for branch in primitive.branches]
        elif isinstance(primitive, Call):
            inner = [(primitive.function.body, flags)]
        else:
            inner = [(each, [True] * len(each.params)) for each in primitive.blocks()]
        if any(_goes_apart(each, varies) for each, varies in inner):
            return True
        varying.update(equation.outputs)
    return False


Build: TypeAlias = "Callable[[Builder, list[Value], bool], list[Value]]"
"""What makes the results of the parameters, with many rows at once or one after the other."""


def many_at_once(
    facts: Assumptions, operands: Sequence[ArrayType], build: Build, many: bool
) -> Block:
    """A program with many rows at once, if so asked and if all that is done has a batching rule."""
    if many:
        try:
            return closed(facts, operands, lambda here, params: build(here, params, True))
        except Failure:  # a primitive of a user's has no such rule
            pass
    return closed(facts, operands, lambda here, params: build(here, params, False))


def prefixes(
    here: Builder, combine: Fold, rows: Sequence[Value], length: Size, block: int | None
) -> list[Value]:
    """The rows up to each one combined, of at least one."""
    if not here.facts.proves(Fact("<=", 1, length)):
        return _prefixes_of_any(here, combine, rows, length)
    start = [row(x, 0) for x in rows]
    rest = [rows_of(x, 1, length) for x in rows]
    count = length - 1
    if block is None:
        found, last = combine.before(here, start, rest, count)
        return [joined([x, single(y)]) for x, y in zip(found, last, strict=True)]
    blocks = count // block
    columns = [side_by_side(x, block, blocks) for x in rest]
    many = combine.over(here.facts, blocks)
    first, others = [row(x, 0) for x in columns], [rows_of(x, 1, block) for x in columns]
    inside, totals = many.before(here, first, others, block - 1)
    before, last = combine.before(here, start, totals, blocks)
    after = many.over_rows(here.facts, block - 1).once(here, before, inside)
    columns = [joined([single(x), y]) for x, y in zip(before, after, strict=True)]
    pieces = [[one_after_the_other(x)] for x in columns]
    done = blocks * block
    if done != count:
        rest = [rows_of(x, done, count) for x in rest]
        tail, last = combine.before(here, last, rest, count - done)
        pieces = [[*known, x] for known, x in zip(pieces, tail, strict=True)]
    return [joined([*known, single(x)]) for known, x in zip(pieces, last, strict=True)]


def _prefixes_of_any(
    here: Builder, combine: Fold, rows: Sequence[Value], length: Size
) -> list[Value]:
    """The same for rows of which there may be none; nothing is combined that should not be."""
    captured = list(combine.captured)
    own, carried = len(captured), combine.carried
    types = [each.type for each in combine.block.params]
    first = closed(here.facts, types, lambda inner, params: params[own + carried :])
    choice = Switch((combine.block, first))

    def build(inner: Builder, params: list[Value]) -> list[Value]:
        held, (step, *state) = params[:own], params[own : own + 1 + carried]
        found = choice.bind(equal(step, 0), *held, *state, *params[own + 1 + carried :])
        return [step + 1, *found, *found]

    counter = ArrayType(I32)
    body = closed(here.facts, (*types[:own], counter, *types[own:]), build)
    scan = Scan(body, own, 1 + carried, length)
    start = [_something(here, each) for each in types[own : own + carried]]
    found = here.bind(scan, [*captured, here.literal(0, I32), *start, *rows])
    return list(found[1 + carried :])


def _something(here: Builder, type: ArrayType) -> Value:  # noqa: A002
    """An array of this type, of whatever values."""
    if type.dtype is not KEY:
        return here.full(False, type.shape, BOOL) if type.dtype is BOOL else zeros(here, type)
    key = SeedKey()(here.literal(0, I32))
    return here.bind(Broadcast(type.shape, ()), (key,))[0] if type.shape else key
