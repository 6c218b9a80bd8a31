"""The layout of a primitive that holds blocks agrees with its type rule, on every law row."""

from __future__ import annotations

import pytest

from pscdsl._src.ir.program import Block, Equation, Var
from pscdsl._src.primitives.control import Call, Control
from pscdsl._src.primitives.regions import Layout, Role
from pscdsl._src.transforms.simplify import Pruner
from pscdsl.typing.array_types import ArrayType
from tests.primitives.test_primitive_laws import ROWS
from tests.support.law_rows import Row

CONTROL = [
    row
    for rows in ROWS.values()
    for row in rows
    if isinstance(row.primitive, Control) and not isinstance(row.primitive, Call)
]


def _name(row: Row) -> str:
    return row.primitive.name


def _layout(row: Row) -> Layout:
    assert isinstance(row.primitive, Control)
    return row.primitive.layout


@pytest.mark.parametrize("row", CONTROL, ids=_name)
def test_groups_are_the_operands_and_the_results(row: Row) -> None:
    layout = _layout(row)
    outputs = row.primitive.type_rule(row.facts, *row.operands)
    assert layout.inputs(layout.operands(row.operands)) == row.operands
    assert layout.outputs(layout.results(outputs)) == outputs


@pytest.mark.parametrize("row", CONTROL, ids=_name)
def test_parameters_have_the_types_that_their_roles_say(row: Row) -> None:
    layout, facts = _layout(row), row.facts
    operands = layout.operands(row.operands)
    results = layout.results(row.primitive.type_rule(facts, *row.operands))
    for region in layout.regions:
        assert sum(group.count for group in region.takes) == len(region.block.params)
        assert sum(group.count for group in region.gives) == len(region.block.results)
        for group, params in region.params():
            wanted = operands.get(group)
            if wanted is not None and group.role is Role.ROW:
                wanted = [each.with_shape(each.shape[1:]) for each in wanted]
            if wanted is not None and group.role is not Role.PARTIAL:
                assert all(
                    _same(row, var.type, each) for var, each in zip(params, wanted, strict=True)
                )
        for group, atoms in region.results():
            wanted = results.get(group, ())
            if group.role is Role.STACK:
                wanted = [each.with_shape(each.shape[1:]) for each in wanted]
            if group.role in (Role.CARRY, Role.STACK, Role.RESULT) and region in layout.run:
                assert all(
                    _same(row, atom.type, each) for atom, each in zip(atoms, wanted, strict=True)
                )


def _same(row: Row, one: ArrayType, other: ArrayType) -> bool:
    return one.dtype is other.dtype and all(map(row.facts.equal, one.shape, other.shape))


@pytest.mark.parametrize("row", CONTROL, ids=_name)
def test_counts_and_blocks_make_the_primitive_again(row: Row) -> None:
    primitive = row.primitive
    assert isinstance(primitive, Control)
    members = {group: range(group.count) for group in primitive.layout.groups}
    counts = primitive.layout.counts(members)
    assert primitive.with_blocks(primitive.blocks(), counts) == primitive


@pytest.mark.parametrize("row", CONTROL, ids=_name)
def test_one_result_alone_is_computed_of_less(row: Row) -> None:
    """What is left out of operands, results and blocks fits together."""
    inputs = tuple([Var(each) for each in row.operands])
    types = row.primitive.type_rule(row.facts, *row.operands)
    outputs = tuple([Var(each) for each in types])
    equation = Equation(row.primitive, inputs, outputs)
    for output in outputs:
        block = Pruner().block(Block(inputs, (equation,), (output,)))
        (left,) = block.equations
        given = [each.type for each in left.inputs]
        found = left.primitive.type_rule(row.facts, *given)
        assert [each.type for each in left.outputs] == [*found]
        assert output in left.outputs


@pytest.mark.parametrize("row", CONTROL, ids=_name)
def test_regions_that_take_a_carry_capture(row: Row) -> None:
    """A carry that stays as it is becomes one of those."""
    for region in _layout(row).regions:
        roles = [group.role for group in region.takes]
        assert Role.CARRY not in roles or Role.CONSTANT in roles
