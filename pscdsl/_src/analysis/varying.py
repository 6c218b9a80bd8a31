"""Checks of one device's part of a program: which of its values devices have in common.

A value varies along an axis of a mesh if it depends on what only one device has: on an argument
that is cut, or on the place of the device. All other values are equal, and so are sums over devices
and what is put together of all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pscdsl._src.ir.program import Atom, Block, Equation, walk_called
from pscdsl._src.primitives.across import Across, AcrossSum
from pscdsl._src.primitives.collectives import PlaceAlong
from pscdsl._src.primitives.control import Call, Control, substitute_block
from pscdsl._src.primitives.random import RandomBits, SplitKey
from pscdsl._src.primitives.regions import Role
from pscdsl.typing.codes.keys import KeyOfAllDevices
from pscdsl.typing.codes.placements import MeshAxisMisused, SummedAgain, WaitsForOthers
from pscdsl.typing.diagnostics import NOWHERE, Diagnostic, Span


def device_findings(block: Block, varies: Sequence[bool], axis: str) -> list[Diagnostic]:
    """Return what is wrong with a block that each device along an axis runs on its part."""
    found = dict.fromkeys(_placed(block, axis))
    visit = _Visit(axis)
    visit.block(block, tuple(varies))
    found.update(dict.fromkeys(visit.findings()))
    return [*found]


def _placed(block: Block, axis: str) -> Iterator[Diagnostic]:
    for equation in walk_called(block):
        primitive = equation.primitive
        if isinstance(primitive, PlaceAlong):
            if any(axis in along for along in primitive.axes if along is not None):
                problem = (
                    f"is inside of `psc.on_each`, where each device has a piece along `{axis}`"
                )
                yield MeshAxisMisused(placement=f"_@{axis}", problem=problem, span=equation.span)


class _Visit:
    """Follows which values vary through a block, and the blocks in it."""

    def __init__(self, axis: str) -> None:
        self._axis = axis
        self._varies: dict[Block, tuple[bool, ...]] = {}
        """The parameters of each block that vary: the last answer is for all steps of a loop."""
        self._called: dict[Equation, Block] = {}
        self._places: dict[Block, Span] = {}
        """The place of the call for blocks of functions that are called."""
        self._place = NOWHERE
        self._decided: dict[Equation, bool] = {}
        """For each equation with blocks, whether devices decide differently."""

    def block(self, block: Block, varies: tuple[bool, ...]) -> tuple[bool, ...]:
        """Return which results of a block vary."""
        self._varies[block], self._places[block] = varies, self._place
        known = self._values(block)
        return tuple([atom in known for atom in block.results])

    def _values(self, block: Block) -> set[Atom]:
        pairs = zip(block.params, self._varies[block], strict=True)
        known: set[Atom] = {var for var, flag in pairs if flag}
        for equation in block.equations:
            flags = [atom in known for atom in equation.inputs]
            made = zip(equation.outputs, self._results(equation, flags), strict=True)
            known.update([var for var, flag in made if flag])
        return known

    def _results(self, equation: Equation, flags: Sequence[bool]) -> Sequence[bool]:
        primitive = equation.primitive
        count = len(equation.outputs)
        if isinstance(primitive, Across):
            return [flags[0] and (primitive.keeps or primitive.axis != self._axis)]
        if isinstance(primitive, Call):
            body = self._called.get(equation)
            if body is None:
                body = substitute_block(primitive.function.body, dict(primitive.sizes))
                self._called[equation] = body
            outer = self._place
            self._place = equation.span if outer is NOWHERE else outer
            results = self.block(body, tuple(flags))
            self._place = outer
            return results
        if isinstance(primitive, Control) and primitive.layout.groups:
            layout = primitive.layout
            groups = layout.dependent(flags, self.block)
            deciding = [each for each in layout.groups if each.role is Role.DECISION]
            self._decided[equation] = any([any(groups[each]) for each in deciding])
            return layout.outputs(groups)
        return [any(flags)] * count

    def findings(self) -> Iterator[Diagnostic]:
        """Yield what is wrong in the blocks that were visited."""
        for block in [*self._varies]:
            known, called = self._values(block), self._places[block]
            for equation in block.equations:
                primitive = equation.primitive
                span = equation.span if called is NOWHERE else called
                if not equation.inputs or equation.inputs[0] in known:
                    pass
                elif isinstance(primitive, AcrossSum) and primitive.axis == self._axis:
                    yield SummedAgain(axis=self._axis, span=span)
                elif isinstance(primitive, RandomBits | SplitKey):
                    if self._axis in equation.outputs[0].type.names():
                        yield KeyOfAllDevices(axis=self._axis, span=span)
                if self._decided.get(equation):
                    for inner in primitive.blocks():
                        yield from self._waiting(inner)

    def _waiting(self, block: Block) -> Iterator[Diagnostic]:
        for equation in walk_called(block):
            primitive = equation.primitive
            if isinstance(primitive, Across) and primitive.axis == self._axis:
                label = f"psc.{primitive.label}"
                yield WaitsForOthers(function=label, axis=self._axis, span=equation.span)
