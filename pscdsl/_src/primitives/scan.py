"""Loops over the leading axis of arrays, the rules of their derivatives and batches, and rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from pscdsl._src.interpreters.cut import Cut, Halves, needed, split_block
from pscdsl._src.interpreters.replay import (
    Mask,
    batch_block,
    closed,
    jvp_block,
    repeated,
    replay,
    transpose_block,
    zeros,
)
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl._src.ir.program import Atom, Block, Var, has_effects
from pscdsl._src.primitives.control import Control
from pscdsl._src.primitives.effects import pure_block
from pscdsl._src.primitives.elementwise import Select, less
from pscdsl._src.primitives.reductions import Reduce
from pscdsl._src.primitives.regions import Group, Layout, Nesting, Region, Role
from pscdsl._src.primitives.shaping import Concatenate, Iota, Reshape, Transpose, part_of
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import I32, I64, KEY

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Builder, Value


# Loops over the leading axis of arrays.


@dataclass(frozen=True)
class Scan(Control, name="scan"):
    """A loop over the leading axis of arrays that carries values from step to step.

    Operands: the body's captures, the first carry, the arrays; the body takes a slice of each array
    and gives the next carry and the rows to stack. Results: the last carry, the stacks. `reverse`
    starts at the end; stacks keep the order of the arrays. If the scan is `counted`, the first
    captured operand, an i32, is the number of steps, at most `length`: they use the first slices in
    either direction; the rest of the stacks is zero. With `unordered_sums` a carry to which steps
    only add may be summed in any order.
    """

    body: Block
    captured: int
    carried: int
    length: Size
    reverse: bool = False
    counted: bool = False
    unordered_sums: bool = False

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        captured, carry, arrays = self.roles(operands)
        if self.counted and (not captured or captured[0] != ArrayType(I32)):
            self.ill_typed("it is counted, but takes no i32 first")
        slices: list[ArrayType] = []
        for array in arrays:
            if not array.shape or not facts.equal(array.shape[0], self.length):
                self.ill_typed(f"an operand is {array}, the length is {self.length}")
            slices.append(array.with_shape(array.shape[1:]))
        self.require(facts, "what the body takes", (*captured, *carry, *slices), self.body.in_types)
        results = self.body.out_types
        if len(carry) != self.carried:
            self.ill_typed(f"{self.carried} operands carried, {len(carry)} given")
        self.require(facts, "the next carry", results[: self.carried], carry)
        if not facts.proves(Fact("<=", 0, self.length)):
            self.ill_typed(f"the length {self.length} may be negative")
        stacks = [
            result.with_shape((self.length, *result.shape)) for result in results[self.carried :]
        ]
        return (*carry, *stacks)

    def roles(self, operands: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Operands by role: captured, the carry, the arrays."""
        first, second = self.captured, self.captured + self.carried
        return list(operands[:first]), list(operands[first:second]), list(operands[second:])

    @cached_property
    def layout(self) -> Layout:
        steps = Group(Role.DECISION, int(self.counted), "captured")
        captured = Group(Role.CONSTANT, self.captured - steps.count, "captured")
        carry = Group(Role.CARRY, self.carried, "carried", "carry")
        first = self.captured + self.carried
        rows = Group(Role.ROW, len(self.body.params) - first, label="over")
        stacks = Group(Role.STACK, len(self.body.results) - self.carried)
        takes, gives = (steps, captured, carry, rows), (carry, stacks)
        body = Region("body", self.body, takes, gives, Nesting.LOOP, self.length, "step")
        return Layout((*takes, stacks), (body,))

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        captured, carry, arrays = self.roles(operands)
        length = here.size(self.length)
        stacks: list[NDArray] = []
        for type_ in self.body.out_types[self.carried :]:
            shape = (length, *here.shape(type_.shape), *((2,) if type_.dtype is KEY else ()))
            stacks.append(np.zeros(shape, to_numpy(type_.dtype)))
        steps = range(min(max(int(captured[0]), 0), length) if self.counted else length)
        for step in reversed(steps) if self.reverse else steps:
            results = here.block(self.body, [*captured, *carry, *(x[step] for x in arrays)])
            carry = list(results[: self.carried])
            for stack, result in zip(stacks, results[self.carried :], strict=True):
                stack[step] = result
        return (*carry, *stacks)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        captured, carry, arrays = self.roles(operands)
        length = hlo.size(self.length)
        stacks = [hlo.full(0, type_) for type_ in outputs[self.carried :]]
        if length == 0:
            return (*carry, *stacks)
        counter = counter_type(length)
        limit = hlo.full(length, counter)
        if self.counted:
            limit = hlo.binary("minimum", hlo.convert(captured[0], counter), limit)
        taken = self.body.in_types[self.captured + self.carried :]
        row_types = self.body.out_types[self.carried :]

        def body(now: Sequence[H]) -> Sequence[H]:
            step, *state = now
            index = step
            if self.reverse:
                last = hlo.binary("subtract", limit, hlo.full(1, counter))
                index = hlo.binary("subtract", last, step)
            zero = hlo.full(0, counter)
            slices = [
                pick(hlo, x, index, zero, type_) for x, type_ in zip(arrays, taken, strict=True)
            ]
            results = hlo.block(self.body, [*captured, *state[: self.carried], *slices])
            stacked = [
                put(hlo, stack, result, index, zero, type_)
                for stack, result, type_ in zip(
                    state[self.carried :], results[self.carried :], row_types, strict=True
                )
            ]
            following = hlo.binary("add", step, hlo.full(1, counter))
            return (following, *results[: self.carried], *stacked)

        results = hlo.while_loop(
            (hlo.full(0, counter), *carry, *stacks),
            lambda now: hlo.compare("LT", now[0], limit),
            body,
        )
        return results[1:]

    # Derivatives and batches: see below.

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        return differentiate(self, primals, tangents)

    def split(self, cut: Cut, operands: Sequence[Value]) -> tuple[Value, ...]:
        return split(self, cut, operands)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        return transpose(self, cotangents, operands)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        return batch(self, operands, batched, size)


C = TypeVar("C", bound=Control)


def with_effects_by_lane(
    loop: C, operands: Sequence[Value], batched: Sequence[bool], size: Size
) -> C:
    """Bind the effects of a choice or a loop whose lanes decide alone; return it without effects.

    The lanes of the batch run one after another there, so that a lane has the effects of the branch
    that it takes, and of its own steps.
    """
    if not any(map(has_effects, loop.blocks())):
        return loop
    here = operands[0].builder.program.current
    pairs = list(zip(operands, batched, strict=True))
    captured, rows = [x for x, many in pairs if not many], [x for x, many in pairs if many]

    def step(inner: Builder, params: list[Value]) -> list[Value]:
        once, lane = iter(params[: len(captured)]), iter(params[len(captured) :])
        inner.bind(loop, [next(lane) if many else next(once) for many in batched])
        return []

    types = [x.type for x in captured]
    types += [x.type.with_shape(x.shape[1:]) for x in rows]
    lanes = Scan(closed(here.facts, types, step), len(captured), 0, size)
    here.bind(lanes, [*captured, *rows])
    return loop.with_blocks([pure_block(block) for block in loop.blocks()])


def counter_type(length: int) -> ArrayType:
    """Return the type of a counter of `length` steps."""
    return ArrayType(I32 if length <= I32.range[1] else I64)


def pick(hlo: Hlo, x: H, index: H, zero: H, type: ArrayType) -> H:  # noqa: A002
    """Emit the slice of an array at an index of its leading axis."""
    stored = hlo.type_of(x).shape  # a key has one more axis than its type says
    (row,) = hlo.op(
        "dynamic_slice",
        (x, index, *(zero for _ in stored[1:])),
        (type.with_shape((1, *type.shape)),),
        {"slice_sizes": hlo.i64_array((1, *stored[1:]))},
    )
    return hlo.reshape(row, type)


def put(hlo: Hlo, stack: H, x: H, index: H, zero: H, type: ArrayType) -> H:  # noqa: A002
    """Emit the array with a slice replaced at an index of its leading axis."""
    stored = hlo.type_of(stack)
    row = hlo.reshape(x, type.with_shape((1, *type.shape)))
    starts = (index, *(zero for _ in stored.shape[1:]))
    return hlo.op("dynamic_update_slice", (stack, row, *starts), (stored,))[0]


@dataclass(frozen=True)
class Rows(Scan):
    """The origin of a batch: a loop over its rows that never runs (see `ir.Origin`)."""


# Differentiation, partition, transposition and batching of scans.


T = TypeVar("T")


def parts(items: Sequence[T], *counts: int) -> list[list[T]]:
    """Return a sequence in parts of these lengths, and the rest."""
    pieces: list[list[T]] = []
    first = 0
    for count in counts:
        pieces.append(list(items[first : first + count]))
        first += count
    return [*pieces, list(items[first:])]


def differentiate(
    scan: Scan, primals: Sequence[Value], tangents: Sequence[Value | None]
) -> tuple[Sequence[Value], Sequence[Value | None]]:
    """Bind a scan that carries its tangents along."""
    here = primals[0].builder.program.current
    count, body = scan.carried, scan.body
    roles = scan.roles(tangents)
    captured, carry, arrays = [[tangent is not None for tangent in part] for part in roles]
    ys = [False] * (len(body.results) - count)
    while True:
        active = (*captured, *carry, *arrays)
        block, active_results = jvp_block(here.facts, body, active, (*carry, *ys))
        moving = list(active_results[:count])
        if moving == carry:
            break
        carry = moving
    start = [
        t if t is not None or not moves else zeros(here, p.type)
        for t, p, moves in zip(roles[1], scan.roles(primals)[1], carry, strict=True)
    ]
    counts = (scan.captured, count, len(arrays), sum(captured), sum(carry))
    a, b, c, da, db, dc = parts(block.params, *counts)
    params = (*a, *da, *b, *db, *c, *dc)
    first, second, third, fourth = parts(block.results, count, len(ys), sum(carry))
    block = Block(params, block.equations, (*first, *third, *second, *fourth))
    together = replace(
        scan, body=block, captured=scan.captured + sum(captured), carried=count + sum(carry)
    )
    old = scan.roles(primals)
    new = [
        [tangent for tangent in part if tangent is not None] for part in (roles[0], start, roles[2])
    ]
    operands = [value for pair in zip(old, new, strict=True) for part in pair for value in part]
    results = here.bind(together, operands)
    outputs, moved, stacks, moved_stacks = parts(results, count, sum(carry), len(ys))
    remaining = iter((*moved, *moved_stacks))
    return [*outputs, *stacks], [next(remaining) if moves else None for moves in active_results]


def split(scan: Scan, cut: Cut, operands: Sequence[Value]) -> tuple[Value, ...]:
    """Bind an early scan that stacks what the late one needs of each step.

    Values that are equal in every step are not stacked, nor are slices of an existing array.
    """
    captured, carry, arrays = scan.roles(operands)
    halves, late_carry = halves_of_loop(
        cut.early.facts, scan.body, list(map(cut.is_late, captured)),
        list(map(cut.is_late, carry)), list(map(cut.is_late, arrays)),
    )  # fmt: skip
    saving = Saving(halves, cut, captured, carry, arrays)
    early = replace(
        scan, body=saving.early, captured=len(saving.captured), carried=len(saving.carry)
    )
    results = cut.early.bind(early, [*saving.captured, *saving.carry, *saving.arrays])
    late_ones = [v for v, lateness in zip(carry, late_carry, strict=True) if lateness]
    steps = captured[0] if scan.counted else None
    last = saving.late_scan(
        steps, results, late_ones, [v for v in arrays if cut.is_late(v)],
        scan.length, scan.reverse,
    )  # fmt: skip
    count = len(halves.late_results) - sum(halves.late_results)
    return halves.merged(results[:count], last)


def halves_of_loop(
    facts: Assumptions, body: Block, captured: list[bool], carry: list[bool], arrays: list[bool]
) -> tuple[Halves, list[bool]]:
    """Cut a loop's body in two, and return which carries are late; one computed late is late."""
    count = len(carry)
    first, second = len(captured), len(captured) + count
    ys = [False] * (len(body.results) - count)
    while True:
        late = (*captured, *carry, *arrays)
        halves = split_block(
            facts, body, late, (*carry, *ys),
            lambda at: not first <= at < second, lambda at: at >= count,
        )  # fmt: skip
        now = list(halves.late_results[:count])
        if now == carry:
            return halves, carry
        carry = now


class Saving:
    """The early half of a loop's body, which returns the rows to stack, and their use."""

    def __init__(
        self,
        halves: Halves,
        cut: Cut,
        captured: Sequence[Value],
        carry: Sequence[Value],
        arrays: Sequence[Value],
    ) -> None:
        self.halves = halves
        self.cut = cut
        self.captured = [v for v in captured if not cut.is_late(v)]
        self.carry = [v for v in carry if not cut.is_late(v)]
        self.arrays = [v for v in arrays if not cut.is_late(v)]
        late_carry = halves.late_results[: len(carry)]
        self.carry = [v for v, late in zip(carry, late_carry, strict=True) if not late]
        self.late_captured = [v for v in captured if cut.is_late(v)]
        self.early, self.sources = self._sources()

    def _sources(self) -> tuple[Block, list[tuple[str, int]]]:
        """Return the early block with all stacks as results, and the source of each saved value.

        A source is `captured`, `hoisted`, `array` or `result`, with a place.
        """
        early = self.halves.early
        first, second = len(self.captured), len(self.captured) + len(self.carry)
        results = list(early.results)
        invariant = _invariant(early, first)
        sources: list[tuple[str, int]] = []
        self.hoisted: list[Var] = []
        for kind, index in self.halves.saved:
            if kind == "parameter":
                if index < first:
                    sources.append(("captured", index))
                elif index >= second:
                    sources.append(("array", index - second))
                else:
                    place = _stacked_at(results, len(self.carry), early.params[index])
                    sources.append(("result", place))
                continue
            atom = early.results[index]
            if isinstance(atom, Var) and atom in invariant:
                sources.append(("hoisted", len(self.hoisted)))
                self.hoisted.append(atom)
            elif index < len(self.carry):  # the next carry is returned, but not stacked
                sources.append(("result", _stacked_at(results, len(self.carry), atom)))
            else:
                sources.append(("result", index))
        return Block(early.params, early.equations, tuple(results)), sources

    def hoist(self, here: Builder, captured: Sequence[Value]) -> list[Value]:
        """Return the saved values that are equal in every step, computed once."""
        params = self.early.params[: len(captured)]
        equations, _ = needed(Block(params, self.early.equations, tuple(self.hoisted)))
        return replay(here, Block(params, equations, tuple(self.hoisted)), captured)

    def late_scan(
        self,
        steps: Value | None,
        found: Sequence[Value],
        carry: Sequence[Value],
        arrays: Sequence[Value],
        length: Size,
        reverse: bool,
    ) -> tuple[Value, ...]:
        """Bind the late loop, given the results of the early one and the late operands."""
        later = self.cut.later
        hoisted = self.hoist(self.cut.early, self.captured)
        return self.scan_of(
            self.cut.late,
            None if steps is None else later(steps),
            [later(self._source(source, self.captured, hoisted, found)) for source in self.sources],
            self.late_captured,
            [later(value) for value in carry],
            arrays,
            length,
            reverse,
        )

    def again(
        self,
        here: Builder,
        steps: Value,
        captured: Sequence[Value],
        found: Sequence[Value],
        moving: tuple[Sequence[Value], Sequence[Value]],
        length: Size,
    ) -> tuple[Value, ...]:
        """Bind the late loop after the early one has run again; `moving` are the late operands."""
        hoisted = self.hoist(here, captured)
        saved = [self._source(source, captured, hoisted, found) for source in self.sources]
        return self.scan_of(here, steps, saved, *moving, [], length, False)

    def _source(
        self,
        source: tuple[str, int],
        captured: Sequence[Value],
        hoisted: Sequence[Value],
        found: Sequence[Value],
    ) -> Value:
        kind, index = source
        places = {"captured": captured, "hoisted": hoisted, "array": self.arrays, "result": found}
        return places[kind][index]

    def scan_of(
        self,
        here: Builder,
        steps: Value | None,
        saved: Sequence[Value],
        captured: Sequence[Value],
        carry: Sequence[Value],
        arrays: Sequence[Value],
        length: Size,
        reverse: bool,
    ) -> tuple[Value, ...]:
        """Bind the late scan of the saved values and the late operands."""
        late = self.halves.late
        a, b, c = parts(late.params[len(saved) :], len(captured), len(carry))
        fixed: list[tuple[Var, Value]] = []
        rows: list[tuple[Var, Value]] = []
        for var, value, (kind, _) in zip(late.params, saved, self.sources, strict=False):
            (fixed if kind in ("captured", "hoisted") else rows).append((var, value))
        if steps is not None:
            fixed.insert(0, (Var(ArrayType(I32), "steps"), steps))
        params = (*[v for v, _ in fixed], *a, *b, *[v for v, _ in rows], *c)
        block = Block(params, late.equations, late.results)
        held = [*[v for _, v in fixed], *captured]
        scan = Scan(block, len(held), len(carry), length, reverse, steps is not None)
        return here.bind(scan, [*held, *carry, *[v for _, v in rows], *arrays])


def _stacked_at(results: list[Atom], first: int, atom: Atom) -> int:
    """Return the index of an atom among the stacked results; append it if it is missing."""
    if atom not in results[first:]:
        results.append(atom)
    return results.index(atom, first)


def _invariant(block: Block, captured: int) -> set[Atom]:
    """Return the variables of a loop's body that only depend on its captures."""
    atoms: set[Atom] = set(block.params[:captured])
    for equation in block.equations:
        if all(not isinstance(atom, Var) or atom in atoms for atom in equation.inputs):
            atoms.update(equation.outputs)
    return atoms


def transpose(
    scan: Scan, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
) -> Sequence[Value | None]:
    """Bind a scan in the other direction, which sums the cotangents of captures."""
    captured, _, arrays = scan.roles(operands)
    here = next(v for v in cotangents if v is not None).builder.program.current
    facts, count = here.facts, scan.carried
    linear = _linear(scan, [isinstance(operand, ArrayType) for operand in operands])
    has_cotangent = [cotangent is not None for cotangent in cotangents[count:]]
    always = (True,) * count
    wanted = ((False,) * len(captured)) + always + (False,) * len(arrays)
    block, with_cotangents = transpose_block(
        facts, scan.body, linear, (*always, *has_cotangent), wanted
    )
    sums = [t for t, keeps in zip(captured, with_cotangents, strict=False) if keeps]
    known = [value for value in captured if not isinstance(value, ArrayType)]
    slices = [array for array in arrays if not isinstance(array, ArrayType)]
    starts = [
        zeros(here, atom.type) if cotangent is None else cotangent
        for cotangent, atom in zip(cotangents, scan.body.results[:count], strict=False)
    ]
    stacks = [cotangent for cotangent in cotangents[count:] if cotangent is not None]
    held = scan.body.out_types
    types = (
        *[value.type for value in known],
        *[type_ for type_ in sums if isinstance(type_, ArrayType)],
        *held[:count],
        *[slice_.type.with_shape(slice_.shape[1:]) for slice_ in slices],
        *compress(held[count:], has_cotangent),
    )

    def build(inner: Builder, params: list[Value]) -> list[Value]:
        a, totals, state, rows, more = parts(params, len(known), len(sums), count, len(slices))
        returned = replay(inner, block, [*a, *rows, *state, *more])
        more_sums, rest = returned[: len(sums)], returned[len(sums) :]
        return [*[x + y for x, y in zip(totals, more_sums, strict=True)], *rest]

    backward = replace(
        scan,
        body=closed(facts, types, build),
        captured=len(known),
        carried=len(sums) + count,
        reverse=not scan.reverse,
        unordered_sums=True,
    )
    first = [zeros(here, type_) for type_ in sums if isinstance(type_, ArrayType)]
    results = iter(here.bind(backward, [*known, *first, *starts, *slices, *stacks]))
    operand_cotangents = [next(results) if keeps else None for keeps in with_cotangents]
    # A carry may start with a known value, such as zeros, that needs no cotangent.
    return [
        x if isinstance(o, ArrayType) else None
        for x, o in zip(operand_cotangents, operands, strict=True)
    ]


def _linear(scan: Scan, given: Sequence[bool]) -> Mask:
    """Return the operands in which a scan is linear, including carries that become so."""
    captured, carry, arrays = scan.roles(given)
    while True:
        moving: set[Atom] = set(compress(scan.body.params, (*captured, *carry, *arrays)))
        for equation in scan.body.equations:
            if not moving.isdisjoint(equation.inputs):
                moving.update(equation.outputs)
        now = [x or atom in moving for x, atom in zip(carry, scan.body.results, strict=False)]
        if now == carry:
            break
        carry = now
    if not all(carry):
        scan.ill_typed("a scan with carries of both kinds is cut before it is transposed")
    return (*captured, *carry, *arrays)


def batch(
    scan: Scan, operands: Sequence[Value], batched: Sequence[bool], size: Size
) -> tuple[Sequence[Value], Sequence[bool]]:
    """Return a scan over the same axis, each step of it over the batch."""
    here = operands[0].builder.program.current
    many, carry_many, arrays_many = scan.roles(batched)
    captured, carry, arrays = scan.roles(operands)
    if scan.counted and many[0]:
        scan = with_effects_by_lane(scan, operands, batched, size)
        most = Reduce("maximum", (0,))(captured[0])
        counts = Iota((scan.length,), 0, I32)
        numbers = here.bind(counts, ())[0]
        guarded = _guard_steps(here.facts, scan)
        guarded_operands = [most, *captured, *carry, numbers, *arrays]
        return batch(
            guarded, guarded_operands, [False, *many, *carry_many, False, *arrays_many], size
        )
    count, body = scan.carried, scan.body
    ys = [False] * (len(body.results) - count)
    while True:
        flags = (*many, *carry_many, *arrays_many)
        block, batched_results = batch_block(here.facts, body, flags, size, (*carry_many, *ys))
        if list(batched_results[:count]) == carry_many:
            break
        carry_many = list(batched_results[:count])
    starts = [
        repeated(x, size) if becomes and not is_batched else x
        for x, becomes, is_batched in zip(carry, carry_many, scan.roles(batched)[1], strict=True)
    ]
    rows = [
        swapped(x) if is_batched else x for x, is_batched in zip(arrays, arrays_many, strict=True)
    ]
    outputs = here.bind(replace(scan, body=block), [*captured, *starts, *rows])
    results = [
        swapped(x) if is_batched and place >= count else x
        for place, (x, is_batched) in enumerate(zip(outputs, batched_results, strict=True))
    ]
    return results, batched_results


def swapped(x: Value) -> Value:
    """Return an array with its first two axes exchanged."""
    return Transpose((1, 0, *range(2, x.ndim)))(x)


def _guard_steps(facts: Assumptions, scan: Scan) -> Scan:
    """Return a counted scan with `length` steps or more; the additional ones change nothing.

    It captures the number of steps, then the captures of the scan; its first array counts the
    steps.
    """
    captured, carry, rows = scan.roles(scan.body.in_types)

    def build(here: Builder, params: list[Value]) -> list[Value]:
        _, own, state, (number,), slices = parts(params, 1, len(captured), len(carry), 1)
        results = replay(here, scan.body, [*own, *state, *slices])
        goes_on = less(number, own[0])
        ys = results[len(carry) :]
        before = [*state, *[zeros(here, y.type) for y in ys]]
        return [Select()(goes_on, x, y) for x, y in zip(results, before, strict=True)]

    types = (ArrayType(I32), *captured, *carry, ArrayType(I32), *rows)
    return replace(scan, body=closed(facts, types, build), captured=scan.captured + 1)


# Rows, the parts of arrays along their first axis, and functions that fold them into one.


def row_type(array: ArrayType) -> ArrayType:
    """Return the type of the rows of an array."""
    return array.with_shape(array.shape[1:])


def row(x: Value, index: int) -> Value:
    """Return one row."""
    return Reshape(x.shape[1:])(rows_of(x, index, index + 1))


def rows_of(x: Value, start: Size, stop: Size) -> Value:
    """Return the rows from one to another, which is not included."""
    if start == 0 and stop == x.shape[0]:
        return x
    return part_of(x.shape, 0, start, stop)(x)


def single(x: Value) -> Value:
    """Return an array of one row."""
    return Reshape((1, *x.shape))(x)


def joined(arrays: Sequence[Value]) -> Value:
    """Return the rows of all arrays."""
    return arrays[0] if len(arrays) == 1 else Concatenate(0)(*arrays)


def side_by_side(x: Value, length: Size, count: Size) -> Value:
    """Blocks of rows side by side: the first row of each block, then the second of each."""
    whole = rows_of(x, 0, count * length)
    return swapped(Reshape((count, length, *x.shape[1:]))(whole))


def one_after_the_other(x: Value) -> Value:
    """Return the rows of parallel blocks, block after block."""
    length, count, *rest = x.shape
    return Reshape((count * length, *rest))(swapped(x))


@dataclass(frozen=True)
class Fold:
    """A function of accumulated values and rows; its block takes the captured values first."""

    block: Block
    captured: Sequence[Value]
    carried: int

    def over(self, facts: Assumptions, size: Size) -> Fold:
        """Return the fold of many accumulations with their own rows; they share the captures."""
        return Fold(self._batch_block(facts, size, len(self.captured)), self.captured, self.carried)

    def over_rows(self, facts: Assumptions, size: Size) -> Fold:
        """Return the fold of many rows, each with the same accumulated values."""
        own = len(self.captured) + self.carried
        return Fold(self._batch_block(facts, size, own), self.captured, self.carried)

    def _batch_block(self, facts: Assumptions, size: Size, shared: int) -> Block:
        many = tuple([place >= shared for place in range(len(self.block.params))])
        wanted = (True,) * len(self.block.results)
        return batch_block(facts, self.block, many, size, wanted)[0]

    def after(self, facts: Assumptions, body: Fold) -> Fold:
        """Return the fold that combines the results of a function of rows."""
        own, others = len(self.captured), len(body.captured)
        types = [var.type for var in self.block.params[: own + self.carried]]
        rows = [var.type for var in body.block.params[others:]]

        def build(here: Builder, params: list[Value]) -> list[Value]:
            held, mine, state, slices = parts(params, others, own, self.carried)
            value = replay(here, body.block, [*held, *slices])
            return replay(here, self.block, [*mine, *state, *value])

        block = closed(facts, [*[v.type for v in body.captured], *types, *rows], build)
        return Fold(block, [*body.captured, *self.captured], self.carried)

    def once(self, here: Builder, *operands: Sequence[Value]) -> list[Value]:
        """Apply it."""
        arguments = [value for group in operands for value in group]
        return replay(here, self.block, [*self.captured, *arguments])

    def last(
        self, here: Builder, start: Sequence[Value], rows: Sequence[Value], length: Size
    ) -> list[Value]:
        """Return the accumulated values after all rows."""
        if length == 0:
            return list(start)
        scan = Scan(self.block, len(self.captured), self.carried, length)
        return list(here.bind(scan, [*self.captured, *start, *rows]))

    def before(
        self, here: Builder, start: Sequence[Value], rows: Sequence[Value], length: Size
    ) -> tuple[list[Value], list[Value]]:
        """Return the accumulated values before each row, stacked, and after all rows."""
        block, count = self.block, len(self.captured)
        state = block.params[count : count + self.carried]
        block = Block(block.params, block.equations, (*block.results, *state))
        scan = Scan(block, count, self.carried, length)
        results = here.bind(scan, [*self.captured, *start, *rows])
        return list(results[self.carried :]), list(results[: self.carried])
