"""What holds of every primitive's derivatives and batches, on every row of the law table.

Each row becomes a program of one equation, in f64.  Its tangents are compared with differences of
the values, its transpose with its tangents, its second derivative with differences of the first,
and a batch with a loop; each also under the others.  Every program passes the verifier with its
sizes as symbols.
"""

# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from pscdsl._src.analysis.verify import verify
from pscdsl._src.interpreters.cut import split_block
from pscdsl._src.interpreters.replay import (
    Mask,
    batch_block,
    has_tangent,
    jvp_block,
    transpose_block,
)
from pscdsl._src.ir.program import Block, Equation, Function, Var, evaluate
from pscdsl._src.primitives.control import Lanes
from pscdsl._src.primitives.custom_derivatives import CustomVjp, StopGradient
from pscdsl._src.primitives.while_loop import While
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import name
from pscdsl.typing.dtypes import KEY
from tests.primitives.test_primitive_laws import COVERED, ROWS
from tests.support.law_rows import NDArray, Row
from tests.support.share import some
from tests.support.widening import Widening, wide

STEP = 1e-6
BATCH = 3
LARGEST = 4000
"""Rows with larger operands are run at smaller sizes."""


def in_f64(row: Row) -> Row | None:
    """The row in f64, at small sizes; None where there is no such row."""
    primitive = Widening().primitive(row.primitive)
    operands = tuple(each.with_dtype(wide(each.dtype)) for each in row.operands)
    sizes = {key: min(size, 5) if size > 100 else size for key, size in row.sizes.items()}
    result = replace(row, primitive=primitive, operands=operands, sizes=sizes)
    try:
        primitive.type_rule(row.facts, *operands)
    except Failure:
        return None
    return result


@dataclass(frozen=True, eq=False)
class Case:
    """A program of one equation, and operands for it."""

    row: Row
    block: Block
    operands: tuple[NDArray, ...]
    active: Mask

    def run(
        self, block: Block, operands: Sequence[NDArray], batched: bool = False
    ) -> list[NDArray]:
        """The results of a block in the row's sizes, after its verification."""
        sizes = {**self.row.env(), **({"batch": BATCH} if batched else {})}
        known = [fact for fact in self.row.facts.facts if fact.names() <= sizes.keys()]
        function = Function("law", tuple(sizes), Assumptions(tuple(known)), block)
        verify(function)
        return list(evaluate(function, sizes, operands))


def block_of(row: Row) -> Block:
    """The program of one equation."""
    inputs = tuple(Var(each) for each in row.operands)
    outputs = tuple(Var(t) for t in row.primitive.type_rule(row.facts, *row.operands))
    return Block(inputs, (Equation(row.primitive, inputs, outputs),), outputs)


@cache
def cases_of(primitive: str) -> list[Case]:
    """The different programs that the rows of a primitive make."""
    found: dict[object, Case] = {}
    for row in ROWS[primitive]:
        wider = in_f64(row)
        if wider is None:
            continue
        operands = wider.draw_smooth(np.random.default_rng(1))
        block = block_of(wider)
        active = active_in(wider, block)
        key = (repr(wider), wider.facts)
        found.setdefault(key, Case(wider, block, operands, active))
    return list(found.values())


def active_in(row: Row, block: Block) -> Mask:
    """Which operands are moved: those with tangents in which there is a derivative."""
    return tuple([has_tangent(t) and i not in row.held for i, t in enumerate(block.in_types)])


OF_THEIR_OWN = (StopGradient, Lanes, CustomVjp)
"""What is no derivative in the sense of differences, or has no tangents; tested elsewhere."""


def differentiable(primitive: str) -> Iterator[Case]:
    """Those with tangents."""
    for case in cases_of(primitive):
        if isinstance(case.row.primitive, OF_THEIR_OWN):
            continue
        has_tangents = any(case.active) and any(map(has_tangent, case.block.out_types))
        if has_tangents and not case.row.refused:
            yield case


def reversible(primitive: str) -> Iterator[Case]:
    """Those with tangents that can be run backwards: all but loops without a bound."""
    for case in differentiable(primitive):
        if not isinstance(case.row.primitive, While) or case.row.primitive.bound is not None:
            yield case


def tangents(
    case: Case, types: Sequence[ArrayType], arrays: Sequence[NDArray], active: Mask | None = None
) -> list[NDArray]:
    """Directions, one for each array that has a tangent, or is active."""
    rng = np.random.default_rng(2)
    found: list[NDArray] = []
    moving = active or tuple(map(has_tangent, types))
    for type_, array, moves in zip(types, arrays, moving, strict=True):
        if moves:
            direction = np.asarray(rng.normal(size=array.shape)).astype(array.dtype)
            if type_.dtype.is_complex:
                direction = direction + np.asarray(1j * rng.normal(size=array.shape))
            found.append(direction)
    return found


def shifted(
    arrays: Sequence[NDArray], mask: Sequence[bool], directions: Sequence[NDArray], by: float
) -> list[NDArray]:
    """The arrays moved along directions."""
    moves = iter(directions)
    return [x + by * next(moves) if moving else x for x, moving in zip(arrays, mask, strict=True)]


def differences(
    case: Case,
    block: Block,
    operands: Sequence[NDArray],
    mask: Sequence[bool],
    directions: Sequence[NDArray],
    batched: bool = False,
) -> list[NDArray]:
    """How fast results change along directions, by central differences."""
    after = case.run(block, shifted(operands, mask, directions, STEP), batched)
    before = case.run(block, shifted(operands, mask, directions, -STEP), batched)
    return [_rate(a, b) for a, b in zip(after, before, strict=True)]


def _rate(after: NDArray, before: NDArray) -> NDArray:
    """The difference by the step; none between infinities that are the same."""
    if after.dtype.kind not in "fc":
        return np.zeros(after.shape)
    with np.errstate(invalid="ignore"):
        return np.where(after == before, 0, (after - before) / (2 * STEP))


def assert_close(found: NDArray, wanted: NDArray, case: Case, tolerance: float = 2e-5) -> None:
    scale = max(1.0, float(np.max(np.abs(wanted), initial=0)))
    assert np.allclose(found, wanted, rtol=tolerance, atol=tolerance * scale), case.row


def assert_settled(
    case: Case,
    block: Block,
    found: Iterator[NDArray],
    wanted: Sequence[NDArray],
    tolerance: float = 2e-5,
) -> None:
    """The tangents of a block's results are these, but for those of phases that are chosen."""
    types, count = block.out_types, len(case.block.results)
    moving = [i for i in range(count) if has_tangent(types[i])]
    results = [*range(count), *moving]  # of which each is, or is the tangent
    for index, type_, limit in zip(results, types, wanted, strict=False):
        if has_tangent(type_):
            tangent = next(found)
            if index not in case.row.chosen or not type_.dtype.is_complex:
                assert_close(tangent, limit, case, tolerance)


@pytest.mark.parametrize("primitive", COVERED)
def test_derivatives_that_are_refused(primitive: str) -> None:
    for case in cases_of(primitive):
        if case.row.refused:
            with pytest.raises(Failure):
                derivative(case)
        for index in case.row.held:
            active = tuple(i == index for i in range(len(case.active)))
            with pytest.raises(Failure):
                jvp_block(case.row.facts, case.block, active)


@cache
def derivative(case: Case) -> tuple[Block, list[NDArray]]:
    """The block with its tangents, and directions."""
    wanted = tuple(map(has_tangent, case.block.out_types))
    block, kept = jvp_block(case.row.facts, case.block, case.active, wanted)
    assert kept == wanted, (case.row, kept)
    return block, tangents(case, case.block.in_types, case.operands, case.active)


@pytest.mark.parametrize("primitive", COVERED)
def test_tangents_are_limits_of_differences(primitive: str) -> None:
    for case in differentiable(primitive):
        block, directions = derivative(case)
        results = case.run(block, [*case.operands, *directions])
        values, found = results[: len(case.block.results)], iter(results[len(case.block.results) :])
        plain = case.run(case.block, case.operands)
        wanted = differences(case, case.block, case.operands, case.active, directions)
        for one, other in zip(values, plain, strict=True):
            assert np.array_equal(one, other, equal_nan=True), case.row
        assert_settled(case, case.block, found, wanted)


@cache
def linear_part(case: Case) -> tuple[Block, list[NDArray], list[NDArray]]:
    """The late half of the derivative, what is saved for it, and directions."""
    block, directions = derivative(case)
    late = tuple(i >= len(case.operands) for i in range(len(block.params)))
    halves = split_block(case.row.facts, block, late)
    early = case.run(halves.early, case.operands)
    return halves.late, halves.gather(list(case.operands), early), directions


@pytest.mark.parametrize("primitive", COVERED)
def test_transposes_are_adjoint(primitive: str) -> None:
    for case in reversible(primitive):
        block, saved, directions = linear_part(case)
        forward = case.run(block, [*saved, *directions])
        cotangents = tangents(case, block.out_types, forward)
        linear = tuple(i >= len(saved) for i in range(len(block.params)))
        given = (True,) * len(block.results)
        backward, kept = transpose_block(case.row.facts, block, linear, given, linear)
        assert kept == linear
        found = case.run(backward, [*saved, *cotangents])
        one = sum(np.sum(c * y) for c, y in zip(cotangents, forward, strict=True))
        other = sum(np.sum(c * x) for c, x in zip(found, directions, strict=True))
        for x, direction in zip(found, directions, strict=True):
            assert x.dtype == direction.dtype, case.row
            assert x.shape == direction.shape, case.row
        # Complex numbers are pairs of real ones: only the real part of the product is kept.
        assert_close(np.real(np.asarray(one)), np.real(np.asarray(other)), case, 1e-9)


@pytest.mark.parametrize("primitive", COVERED)
def test_second_derivatives_are_limits_of_differences_of_the_first(primitive: str) -> None:
    for case in differentiable(primitive):
        first, directions = derivative(case)
        operands = [*case.operands, *directions]
        active = (*case.active, *(False for _ in directions))
        wanted = tuple(map(has_tangent, first.out_types))
        second, _ = jvp_block(case.row.facts, first, active, wanted)
        others = tangents(case, case.block.in_types, case.operands, case.active)
        found = iter(case.run(second, [*operands, *others])[len(first.results) :])
        limits = differences(case, first, operands, active, others)
        assert_settled(case, first, found, limits, 2e-4)


def batches(case: Case) -> Iterator[Mask]:
    """Yield which operands are batched: all, and each alone or, without `SHARE=1`, one alone."""
    count = len(case.block.params)
    if count:
        yield (True,) * count
    if count > 1:
        for index in some(range(count), count, case.row):
            yield tuple(i == index for i in range(count))


def batch_operands(case: Case, batched: Mask) -> list[NDArray]:
    """Operands over a batch."""
    rows = [case.row.draw_smooth(np.random.default_rng(10 + lane)) for lane in range(BATCH)]
    return [
        np.stack([row[i] for row in rows]) if many else case.operands[i]
        for i, many in enumerate(batched)
    ]


def assert_batch(case: Case, block: Block, batched: Mask, operands: Sequence[NDArray]) -> None:
    """A block over a batch gives what a loop over the batch gives."""
    over, kept = batch_block(case.row.facts, block, batched, name("batch"))
    found = case.run(over, operands, batched=True)
    for lane in range(BATCH):
        each = [x[lane] if many else x for x, many in zip(operands, batched, strict=True)]
        wanted = case.run(block, each)
        for result, many, want in zip(found, kept, wanted, strict=True):
            got = result[lane] if many else result
            assert got.shape == want.shape, (case.row, batched)
            assert got.dtype == want.dtype, (case.row, batched)
            assert np.allclose(got, want, rtol=1e-9, atol=1e-12, equal_nan=True), case.row


@pytest.mark.parametrize("primitive", COVERED)
def test_a_batch_is_a_loop(primitive: str) -> None:
    for case in cases_of(primitive):
        for batched in batches(case):
            assert_batch(case, case.block, batched, batch_operands(case, batched))


@pytest.mark.parametrize("primitive", COVERED)
def test_batches_of_tangents(primitive: str) -> None:
    for case in differentiable(primitive):
        block, directions = derivative(case)
        batched = tuple(i >= len(case.operands) for i in range(len(block.params)))
        many = [np.stack([x * (lane + 1) for lane in range(BATCH)]) for x in directions]
        assert_batch(case, block, batched, [*case.operands, *many])


@pytest.mark.parametrize("primitive", COVERED)
def test_batches_of_cotangents(primitive: str) -> None:
    for case in reversible(primitive):
        _, directions = derivative(case)
        late, saved, _ = linear_part(case)
        linear = tuple(i >= len(saved) for i in range(len(late.params)))
        given = (True,) * len(late.results)
        backward, _ = transpose_block(case.row.facts, late, linear, given)
        received = tangents(case, late.out_types, case.run(late, [*saved, *directions]))
        rows = [np.stack([x * (lane + 1) for lane in range(BATCH)]) for x in received]
        assert_batch(
            case,
            backward,
            tuple(i >= len(saved) for i in range(len(backward.params))),
            [*saved, *rows],
        )


@pytest.mark.parametrize("primitive", COVERED)
def test_derivatives_of_batches(primitive: str) -> None:
    for case in differentiable(primitive):
        batched = (True,) * len(case.block.params)
        operands = batch_operands(case, batched)
        over, kept = batch_block(case.row.facts, case.block, batched, name("batch"))
        assert any(kept), case.row
        active = active_in(case.row, over)
        wanted = tuple(map(has_tangent, over.out_types))
        block, _ = jvp_block(case.row.facts, over, active, wanted)
        directions = tangents(case, over.in_types, operands, active)
        found = iter(case.run(block, [*operands, *directions], batched=True)[len(over.results) :])
        limits = differences(case, over, operands, active, directions, batched=True)
        assert_settled(case, over, found, limits)


def test_keys_are_not_differentiated() -> None:
    assert not has_tangent(ArrayType(KEY))
