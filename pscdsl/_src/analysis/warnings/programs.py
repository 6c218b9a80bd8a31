"""A finished program as the rules see it: what defines a variable, what uses it, what is alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import Atom, Block, Equation, Function, Literal, Var
from pscdsl._src.primitives.control import AssociativeScan, Call, MapReduce, Scan, Switch, While
from pscdsl._src.primitives.elementwise import Convert, Elementwise
from pscdsl._src.primitives.shaping import Broadcast, Reshape

_ALIKE = 7
"""How deep two expressions are compared."""


class Program:
    """The equations of a function that its results depend on, nested blocks included."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self._by_kind: dict[object, list[tuple[Block, Equation]]] = {}
        self._definitions: dict[Var, Equation] = {}
        self._outside: dict[Var, Atom] = {}
        """What stands outside of a block for the parameters by which it is captured."""
        self._uses: dict[Var, list[Equation]] | None = None
        self._blocks: list[Block] = []
        self._add(function.body)

    def _add(self, block: Block) -> None:
        self._blocks.append(block)
        live = set(block.results)
        kept: list[Equation] = []
        for equation in reversed(block.equations):
            if not live.isdisjoint(equation.outputs):
                live.update(equation.inputs)
                kept.append(equation)
        for equation in reversed(kept):
            primitive = equation.primitive
            kind = primitive if isinstance(primitive, Elementwise) else type(primitive)
            self._by_kind.setdefault(kind, []).append((block, equation))
            for var in equation.outputs:
                self._definitions[var] = equation
            self._enter(equation)

    def _enter(self, equation: Equation) -> None:
        """Go into the blocks of an equation."""
        primitive, operands = equation.primitive, equation.inputs
        match primitive:
            case Scan():
                self._capture(primitive.body, operands[: primitive.captured])
            case AssociativeScan():
                self._capture(primitive.combine, operands[: primitive.captured])
            case MapReduce():
                by_body, by_combine, _, _ = primitive.roles(operands)
                self._capture(primitive.body, by_body)
                self._capture(primitive.combine, by_combine)
            case While():
                by_cond, by_body, _ = primitive.roles(operands)
                self._capture(primitive.cond, by_cond)
                self._capture(primitive.body, by_body)
            case Switch():
                for branch in primitive.branches:
                    self._capture(branch, operands[1:])
            case _:
                for block in primitive.blocks():
                    self._add(block)

    def _capture(self, block: Block, operands: tuple[Atom, ...] | list[Atom]) -> None:
        self._outside.update(zip(block.params, operands, strict=False))
        self._add(block)

    def placed(self, *kinds: Elementwise | type[Primitive]) -> Iterator[tuple[Block, Equation]]:
        """The equations of elementwise functions or classes of primitives, and their blocks."""
        for kind in kinds:
            yield from self._by_kind.get(kind, ())

    def made(self, *kinds: Elementwise | type[Primitive]) -> Iterator[Equation]:
        """The equations of elementwise functions or classes of primitives."""
        for _, equation in self.placed(*kinds):
            yield equation

    def source(self, atom: Atom) -> Atom:
        """What a captured variable is where it is defined."""
        while isinstance(atom, Var) and atom in self._outside:
            atom = self._outside[atom]
        return atom

    def definition(self, atom: Atom) -> Equation | None:
        """The equation that gives a variable its value; None for parameters and literals."""
        atom = self.source(atom)
        return self._definitions.get(atom) if isinstance(atom, Var) else None

    def bare(self, atom: Atom) -> Atom:
        """What an atom repeats or casts from one floating-point type to another."""
        while True:
            atom = self.source(atom)
            at = self.definition(atom)
            if at is None or not _repeats(at):
                return atom
            atom = at.inputs[0]

    def made_by(self, atom: Atom) -> Equation | None:
        """The equation of the bare atom, also where it stands in a function that is called."""
        atom = self.bare(atom)
        at = self.definition(atom)
        if at is None or not isinstance(at.primitive, Call):
            return at
        inner = Program(at.primitive.function)
        place = at.outputs.index(atom)
        self._definitions.update(inner._definitions)
        return self.made_by(at.primitive.function.body.results[place])

    def alike(self, a: Atom, b: Atom, depth: int = _ALIKE) -> bool:
        """Whether two atoms are the same expression, up to repetition along axes."""
        a, b = self.bare(a), self.bare(b)
        if a is b:
            return True
        if isinstance(a, Literal) or isinstance(b, Literal):
            return isinstance(a, Literal) and isinstance(b, Literal) and a.value == b.value
        one, other = self.definition(a), self.definition(b)
        if one is None or other is None or not depth or one.primitive != other.primitive:
            return False
        if len(one.inputs) != len(other.inputs) or one.outputs.index(a) != other.outputs.index(b):
            return False
        return all(map(self.alike, one.inputs, other.inputs, [depth - 1] * len(one.inputs)))

    def ancestors(self, atom: Atom, depth: int) -> Iterator[Equation]:
        """The equations that an atom comes from, up to some steps back."""
        at = self.definition(atom)
        if at is not None:
            yield at
            if depth:
                for each in at.inputs:
                    yield from self.ancestors(each, depth - 1)

    @property
    def uses(self) -> Mapping[Var, list[Equation]]:
        """The equations that take each variable as an operand, in its own block."""
        if self._uses is None:
            self._uses = {}
            for group in self._by_kind.values():
                for _, equation in group:
                    for atom in equation.inputs:
                        if isinstance(atom, Var):
                            self._uses.setdefault(atom, []).append(equation)
        return self._uses

    def is_result(self, var: Var) -> bool:
        """Whether a variable is a result of some block."""
        return any(var in block.results for block in self._blocks)


def _repeats(at: Equation) -> bool:
    primitive = at.primitive
    if isinstance(primitive, Convert):
        return primitive.dtype.is_float and at.inputs[0].type.dtype.is_float
    if isinstance(primitive, Reshape):
        old = [size for size in at.inputs[0].type.shape if size != 1]
        return old == [size for size in primitive.shape if size != 1]
    return isinstance(primitive, Broadcast)
