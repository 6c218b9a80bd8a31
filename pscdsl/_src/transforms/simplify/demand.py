"""What is asked of each array in a block: all of it, its first or last row alone, or nothing.

A stack of what a loop's steps give, of which only the last row is used, is a carry: no step need
write it to memory.  Elementwise functions, joins and repetitions of such arrays are of rows too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal as OneOf
from typing import TypeAlias

from pscdsl._src.ir.program import Atom, Block, Equation, Literal, Var
from pscdsl._src.primitives.control import Call, Scan
from pscdsl._src.primitives.shaping import Broadcast, Concatenate, Reshape, Slice
from pscdsl._src.transforms.simplify.known_arrays import POINTWISE
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import KEY

End: TypeAlias = OneOf["first", "last"]
Demand: TypeAlias = OneOf["first", "last", "all"]


class Demands:
    """What a block asks of each of its variables."""

    def __init__(self, facts: Assumptions, block: Block) -> None:
        self._facts = facts
        self.of: dict[Atom, Demand] = {}
        self.joined: dict[Atom, Atom] = {}
        """Stacks, perhaps empty, of which the last row is asked for, and the row before them."""
        self.single_steps: set[Equation] = set()
        """Loops without carries, of which one row alone is asked for."""
        self._joins: dict[Atom, Var] = {}
        """By stack, the array that it is joined to the row as."""
        self._made = {var: each for each in block.equations for var in each.outputs}
        self._place = {each: at for at, each in enumerate(block.equations)}
        for atom in block.results:
            self._ask(atom, "all")
        for equation in reversed(block.equations):
            self._equation(equation)

    def end(self, var: Atom) -> End | None:
        """The row that alone is asked for, if it is one alone."""
        found = self.of.get(var)
        return None if found == "all" else found

    def _ask(self, atom: Atom, demand: Demand) -> None:
        if not isinstance(atom, Literal):
            self.of[atom] = demand if self.of.get(atom, demand) == demand else "all"

    def _ask_all(self, atoms: Iterable[Atom]) -> None:
        for atom in atoms:
            self._ask(atom, "all")

    def _equation(self, equation: Equation) -> None:
        """What an equation asks of its operands, given what is asked of its results."""
        primitive, outputs = equation.primitive, equation.outputs
        if not any(var in self.of for var in outputs):
            return
        if isinstance(primitive, Slice):
            self._ask(equation.inputs[0], end_of(primitive, equation.inputs[0].type) or "all")
            return
        if isinstance(primitive, Scan):
            self._scan(primitive, equation)
            return
        end = self.end(outputs[0])
        if isinstance(primitive, Call):
            for var in outputs:
                if self.end(var) and not self._has_rows(var.type):
                    self.of[var] = "all"
        elif end is not None:
            if isinstance(primitive, POINTWISE):
                for atom in equation.inputs:
                    self._ask(atom, end if atom.type.shape else "all")
                return
            if isinstance(primitive, Broadcast) and primitive.dims[:1] == (0,):
                self._ask(equation.inputs[0], end)
                return
            if isinstance(primitive, Concatenate) and not primitive.axis:
                if self._join(equation, end):
                    return
                self.of[outputs[0]] = "all"
            elif not isinstance(primitive, Broadcast):
                self.of[outputs[0]] = "all"
        self._ask_all(equation.inputs)

    def _join(self, equation: Equation, end: End) -> bool:
        """The end of arrays that are joined: a row of the part there, or of the one next to it."""
        parts = equation.inputs if end == "last" else equation.inputs[::-1]
        *others, part = parts
        if self._has_rows(part.type):
            self._ask(part, end)
            return True
        made = self._made.get(part)  # type: ignore[arg-type]
        if made is None or not isinstance(made.primitive, Scan) or not others or part in self.of:
            return False
        row = self._row_before(others[-1], made)
        if row is None or not _is_stack(made.primitive, made, part, end):
            return False
        self._ask_all(others)
        self.of[part], self.joined[part] = end, row
        self._joins[part] = equation.outputs[0]
        return True

    def _row_before(self, part: Atom, scan: Equation) -> Atom | None:
        """A single row that is there before a loop, without its first axis."""
        made = self._made.get(part)  # type: ignore[arg-type]
        if made is None or part.type.shape[0] != 1:
            return None
        (row, *_) = made.inputs or (None,)
        shape = part.type.shape[1:]
        moved = isinstance(made.primitive, Broadcast) and made.primitive.dims == tuple(
            range(1, part.type.rank)
        )
        if (
            row is None
            or row.type.shape != shape
            or not (moved or isinstance(made.primitive, Reshape))
        ):
            return None
        source = self._made.get(row)  # type: ignore[arg-type]
        return row if source is None or self._place[source] < self._place[scan] else None

    def _scan(self, scan: Scan, equation: Equation) -> None:
        """A loop gives the last of its rows as a carry; one without carries can take one step."""
        stacks = equation.outputs[scan.carried :]
        used = [var for var in stacks if var in self.of]
        end = self.end(used[0]) if used else None
        alone = end is not None and all(self.of[var] == end for var in used)
        joined = any(var in self.joined for var in stacks)
        if end is not None and alone and not (scan.carried or scan.counted or joined):
            captured, _, arrays = scan.roles(equation.inputs)
            self.single_steps.add(equation)
            self._ask_all(captured)
            for each in arrays:
                self._ask(each, end)
            return
        for var in stacks:
            end = self.end(var)
            if end and not _is_stack(scan, equation, var, end):
                self.of[var] = "all"
            if self.of.get(var) == "all" and var in self.joined:
                del self.joined[var]
                self.of[self._joins[var]] = "all"
        self._ask_all(equation.inputs)

    def _has_rows(self, array: ArrayType) -> bool:
        """Whether there is at least one row."""
        return self._facts.proves(Fact("<=", 1, array.shape[0]))


def end_of(cut: Slice, array: ArrayType) -> End | None:
    """Which row of an array a slice takes, if it is its first or its last one."""
    if not array.shape or array.shape[0] == 1 or cut.stride[0] != 1:
        return None
    first, limit, size = cut.start[0], cut.limit[0], array.shape[0]
    if (first, limit) == (0, 1):
        return "first"
    return "last" if limit == size and first == size - 1 else None


def end_slice(array: ArrayType, end: End) -> Slice:
    """The slice that takes the first or the last row."""
    size, *rest = array.shape
    start: Size = 0 if end == "first" else size - 1
    limits = (start + 1, *rest)
    return Slice((start, *[0] * len(rest)), limits, (1,) * array.rank)


def _is_stack(scan: Scan, equation: Equation, var: Atom, end: End) -> bool:
    """Whether this is the stack of a loop whose last step gives this row."""
    if scan.counted or end != ("first" if scan.reverse else "last"):
        return False
    places: Mapping[Atom, int] = {each: at for at, each in enumerate(equation.outputs)}
    place = places[var]
    result = scan.body.results[place]
    return place >= scan.carried and (
        var.type.dtype is not KEY or result in scan.body.results[: scan.carried]
    )
