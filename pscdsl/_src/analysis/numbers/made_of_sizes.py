"""Integers made of sizes, counts and literals alone: they must fit once the sizes are numbers.

Python's integers have no end, and NumPy counts in 64 bits; a program computes them in the dtype of
the array that they meet.  So where the sizes are numbers, every such integer has to be provably
inside its dtype: otherwise it would wrap around in silence.  What depends on the elements of
arrays is computed in their dtype by NumPy, too, and 64 bits are what NumPy itself has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pscdsl._src.analysis.numbers.intervals import Intervals, counts
from pscdsl._src.analysis.numbers.ranges import Range, limits, single
from pscdsl._src.ir.evaluate import Evaluator, literal_array
from pscdsl._src.ir.primitive import NDArray
from pscdsl._src.ir.program import Atom, Block, Equation, Function, Literal, Var
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.control.base import Control, substitute_block
from pscdsl._src.primitives.control.regions import Layout, Role
from pscdsl._src.primitives.creation import Iota, SizeValue
from pscdsl._src.primitives.elementwise import Bitcast
from pscdsl._src.support.tracebacks import OWN_PRIMITIVES
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.element_types import ScalarDoesNotFit
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import I64


def require_fitting(function: Function, sizes: Mapping[str, int]) -> None:
    """A Failure if an integer that is made of sizes may not fit its dtype at these sizes."""
    body = substitute_block(function.body, sizes)
    made = MadeOfSizes(body)
    suspects = [equation for equation in made.equations if not _is_wide(equation)]
    if not suspects:
        return
    for equation in suspects:
        if isinstance(equation.primitive, SizeValue) and not _holds(equation.primitive):
            raise _failure(equation, sizes)
    ranges = Intervals(Function(function.name, (), Assumptions(), body), made.ranges).ranges
    for equation in suspects:
        outputs = [var for var in equation.outputs if var.type.dtype.is_integer]
        if not all(_is_bounded(var.type, ranges.get(var)) for var in outputs):
            raise _failure(equation, sizes)


def _combines(layout: Layout) -> bool:
    """Whether rows are combined: in which order is not known, nor what each step gives."""
    return any(group.role is Role.PARTIAL for group in layout.groups)


def _is_wide(at: Equation) -> bool:
    return not isinstance(at.primitive, SizeValue) and at.outputs[0].type.dtype is I64


def _holds(primitive: SizeValue) -> bool:
    dtype, size = primitive.dtype, primitive.size
    if not dtype.is_integer or not isinstance(size, int):
        return True
    least, most = limits(dtype)
    return least <= size <= most


def _is_bounded(given: ArrayType, known: Range | None) -> bool:
    """Whether a range says more than the dtype does; of no elements nothing has to be said."""
    if 0 in given.shape:
        return True
    if known is None:
        return False
    whole = (known.low, known.high) == limits(given.dtype)
    return not whole or (known.low_reached and known.high_reached)


def _failure(at: Equation, sizes: Mapping[str, int]) -> Failure:
    where = ", ".join(f"{name}={size}" for name, size in sizes.items())
    what = f"an integer made of sizes{f', at {where},' if where else ''}"
    return Failure(
        ScalarDoesNotFit(
            scalar=what,
            dtype=at.outputs[0].type.dtype,
            remedy="compute in 64 bits: cast what it meets with `.astype(psc.i64)`",
            span=at.span,
        )
    )


class MadeOfSizes:
    """The integer variables of a block, and of those nested in it, that depend on no array."""

    def __init__(self, body: Block) -> None:
        self.variables: set[Atom] = set()
        self.equations: list[Equation] = []
        """Those that compute such integers, without blocks, and that something depends on."""
        self.ranges: dict[Var, Range] = {}
        """Integers that are cast from numbers that are known, such as roots of sizes."""
        self._numbers: dict[Atom, NDArray] = {}
        """The scalars that are known where they are computed, now that sizes are numbers."""
        self._block(body, [False] * len(body.params))
        self._needed(body)

    def _is_made(self, atom: Atom) -> bool:
        return isinstance(atom, Literal) or atom in self.variables

    def _block(self, block: Block, params: Sequence[bool]) -> list[bool]:
        """Flags of a block's results: whether each is made of sizes, if these parameters are."""
        self._mark(block.params, params)
        for equation in block.equations:
            self._mark(equation.outputs, self._results(equation))
            self._compute(equation)
        return [self._is_made(atom) for atom in block.results]

    def _compute(self, at: Equation) -> None:
        """Note the number that an equation gives, if all that it is given is known."""
        if not isinstance(at.primitive, SizeValue | e.Elementwise | e.Convert | e.Select):
            return
        output = at.outputs[0]
        given = [
            literal_array(operand) if isinstance(operand, Literal) else self._numbers.get(operand)
            for operand in at.inputs
        ]
        known = [each for each in given if each is not None]
        if output.type.shape or len(known) < len(given):
            return
        if isinstance(at.primitive, SizeValue) and not _holds(at.primitive):
            return
        with np.errstate(all="ignore"):
            (number,) = at.primitive.evaluate(Evaluator({}), *known)
        self._numbers[output] = number
        if isinstance(at.primitive, e.Convert) and output.type.dtype.is_integer:
            (x,) = known
            least, most = limits(output.type.dtype)
            if x.dtype.kind == "f":
                self.variables.add(output)
                if np.isfinite(x) and least <= int(x) <= most:
                    self.ranges[output] = single(int(x))

    def _mark(self, variables: Sequence[Var], made: Sequence[bool]) -> None:
        for var, is_made in zip(variables, made, strict=True):
            if is_made and counts(var.type):
                self.variables.add(var)
            else:
                self.variables.discard(var)

    def _results(self, at: Equation) -> Sequence[bool]:
        given = [self._is_made(atom) for atom in at.inputs]
        match at.primitive:
            case Iota() | SizeValue():
                return [True]
            case e.Select():
                return [all(given[1:])]
            case Control(layout=layout) if layout.is_repeated and not _combines(layout):
                others = layout.spread([not flag for flag in given], self._others)
                return [not flag for flag in others]
            case primitive if primitive.blocks():
                for block in primitive.blocks():
                    self._block(block, [False] * len(block.params))
                return [False] * len(at.outputs)
            case primitive:
                ours = type(primitive).__module__.startswith(OWN_PRIMITIVES)
                reads = ours and bool(given) and not isinstance(primitive, Bitcast)
                return [reads and all(given)] * len(at.outputs)

    def _others(self, block: Block, params: Sequence[bool]) -> list[bool]:
        """Which of a block's results depend on arrays, if these parameters do."""
        return [not made for made in self._block(block, [not flag for flag in params])]

    def _needed(self, block: Block) -> None:
        needed = {atom for atom in block.results if not isinstance(atom, Literal)}
        for equation in reversed(block.equations):
            if needed.isdisjoint(equation.outputs):
                continue
            needed.update(atom for atom in equation.inputs if not isinstance(atom, Literal))
            if equation.primitive.blocks():
                for inner in equation.primitive.blocks():
                    self._needed(inner)
            elif any(
                var in self.variables and var.type.dtype.is_integer for var in equation.outputs
            ):
                self.equations.append(equation)
