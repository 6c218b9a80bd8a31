"""What an equation is replaced by, given the equations before it: no control flow yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pscdsl._src.ir.primitive import NDArray, Primitive
from pscdsl._src.ir.program import Atom, Block, Equation, Function, Literal, Var
from pscdsl._src.ir.regions import is_plain, rebuilt
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.creation import Constant
from pscdsl._src.primitives.elementwise import Clamp, Elementwise, Select
from pscdsl._src.primitives.shaping import Broadcast, Reshape, Reverse, Slice, Transpose
from pscdsl._src.transforms.simplify.identities import same_as, without_transposes
from pscdsl._src.transforms.simplify.known_arrays import (
    POINTWISE,
    Known,
    fold,
    fold_scalars,
    literal_of,
)
from pscdsl.typing.array_types import ArrayType

_TAKE_SCALARS = (Elementwise, Select, Clamp)
"""Functions of several operands where one of rank 0 applies everywhere."""
_MOVE = (Broadcast, Reshape, Transpose, Slice, Reverse)
"""What repeats a scalar, given a scalar that is repeated."""


@dataclass(slots=True)
class Scope:
    """What is known in one block, on the way through it."""

    names: dict[Atom, Atom]
    """What to use instead of a variable."""
    equations: list[Equation] = field(default_factory=list[Equation])
    made: dict[Atom, Equation] = field(default_factory=dict[Atom, Equation])
    """By which equation, for those with one output."""
    found: dict[object, Equation] = field(default_factory=dict[object, Equation])
    """Equations by what they compute."""
    scalars: dict[Atom, Atom] = field(default_factory=dict[Atom, Atom])
    """The scalar that an array repeats."""
    arrays: Known = field(default_factory=dict[Atom, NDArray])

    def use(self, atoms: Sequence[Atom]) -> tuple[Atom, ...]:
        """What to use for some operands."""
        names = self.names
        return tuple([names.get(atom, atom) for atom in atoms])


class Straight:
    """Goes through blocks from the first equation to the last; subclasses do control flow.

    `functions` says what to call instead of what.
    """

    def __init__(self, functions: Mapping[Function, Function]) -> None:
        self.functions = functions
        self._blocks: dict[Block, Block] = {}

    def block(self, block: Block) -> Block:
        """A closed block, simplified; itself if there was nothing to do."""
        found = self._blocks.get(block)
        if found is None:
            found = self._blocks[block] = self.specialised(block, Scope({}))
        return found

    def specialised(self, block: Block, scope: Scope) -> Block:
        """A block in a scope that knows some of its parameters."""
        prologue = len(scope.equations)
        for equation in block.equations:
            self.equation(equation, scope)
        results = scope.use(block.results)
        equations = scope.equations
        if (
            not prologue
            and len(equations) == len(block.equations)
            and all(a is b for a, b in zip(equations, block.equations, strict=True))
            and all(a is b for a, b in zip(results, block.results, strict=True))
        ):
            return block
        return Block(block.params, tuple(equations), results)

    def equation(self, equation: Equation, scope: Scope) -> None:
        """Add an equation to a scope, or what takes its place."""
        primitive, outputs = equation.primitive, equation.outputs
        inputs = scope.use(equation.inputs)
        if scope.scalars and len(outputs) == 1:
            if self.repeated(equation, inputs, scope):
                return
            inputs = _with_scalars(primitive, inputs, outputs[0], scope)
        if not is_plain(primitive):
            primitive = rebuilt(primitive, self.block, self._function)
        self.plain(primitive, inputs, outputs, equation, scope)

    def _function(self, function: Function) -> Function:
        return self.functions.get(function, function)

    def plain(
        self,
        primitive: Primitive,
        inputs: tuple[Atom, ...],
        outputs: tuple[Var, ...],
        equation: Equation,
        scope: Scope,
    ) -> None:
        """Add an equation in the place of another, unless its results are known."""
        if isinstance(primitive, DotGeneral):
            primitive, inputs = without_transposes(primitive, inputs, scope.made)
        if len(outputs) == 1:
            same = same_as(primitive, inputs, outputs[0], scope.made)
            if same is not None:
                scope.names[outputs[0]] = same
                return
        arrays = fold(primitive, inputs, outputs, scope.arrays)
        if arrays is None:
            self.add(primitive, inputs, outputs, equation, scope)
            return
        for array, var in zip(arrays, outputs, strict=True):
            self.known(array, var, equation, scope)

    def known(self, array: NDArray, var: Var, equation: Equation, scope: Scope) -> None:
        """A variable whose value has been computed."""
        if not var.type.shape:
            scope.names[var] = literal_of(array, var.type)
            return
        first = array.reshape(-1)[:1] if array.size else np.zeros(1, array.dtype)
        if array.tobytes() == first.tobytes() * array.size:
            scalar = literal_of(first.reshape(()), ArrayType(var.type.dtype))
            self.repeat(scalar, var, equation, scope)
        else:
            self.add(Constant.of(array, var.type.dtype), (), (var,), equation, scope)

    def repeat(self, scalar: Atom, var: Var, equation: Equation, scope: Scope) -> None:
        """A variable that is a scalar everywhere."""
        if var.type.shape:
            self.add(Broadcast(var.type.shape, ()), (scalar,), (var,), equation, scope)
        else:
            scope.names[var] = scalar

    def repeated(self, equation: Equation, inputs: Sequence[Atom], scope: Scope) -> bool:
        """Add an equation all of whose operands are repeated scalars, as one of scalars."""
        primitive, (output,) = equation.primitive, equation.outputs
        if isinstance(primitive, _MOVE):
            scalar = scope.scalars.get(inputs[0])
            if scalar is None:
                return False
            self.repeat(scalar, output, equation, scope)
            return True
        if not isinstance(primitive, POINTWISE) or not output.type.shape:
            return False
        scalars = [scope.scalars.get(atom, atom) for atom in inputs]
        if any(scalar.type.shape for scalar in scalars):
            return False
        literals = [scalar for scalar in scalars if isinstance(scalar, Literal)]
        if len(literals) == len(scalars):
            folded = fold_scalars(primitive, literals, output)
            if folded is not None:
                self.repeat(folded, output, equation, scope)
                return True
        result = Var(ArrayType(output.type.dtype))
        self.plain(primitive, tuple(scalars), (result,), equation, scope)
        self.repeat(scope.names.get(result, result), output, equation, scope)
        return True

    def add(
        self,
        primitive: Primitive,
        inputs: tuple[Atom, ...],
        outputs: tuple[Var, ...],
        equation: Equation,
        scope: Scope,
    ) -> None:
        """Add an equation in the place of another, unless an equal one stands there already."""
        if (
            primitive is not equation.primitive
            or inputs != equation.inputs
            or outputs != equation.outputs
        ):
            equation = Equation(primitive, inputs, outputs, equation.span)
        key = (primitive, *[identity_of(atom) for atom in inputs])
        try:
            found = scope.found.setdefault(key, equation)
        except TypeError:  # a field that has no hash
            found = equation
        if found is not equation and _types(found.outputs) == _types(outputs):
            scope.names.update(zip(outputs, found.outputs, strict=True))
            return
        scope.equations.append(equation)
        if len(outputs) == 1:
            scope.made[outputs[0]] = equation
            if type(primitive) is Broadcast and not primitive.dims:
                scope.scalars[outputs[0]] = inputs[0]


def identity_of(atom: Atom) -> object:
    """What tells an atom from all others: a literal's bits, a variable itself."""
    if isinstance(atom, Literal):
        return atom.type.dtype.name, repr(atom.value)
    return atom


def _types(outputs: Sequence[Var]) -> list[ArrayType]:
    return [var.type for var in outputs]


def _with_scalars(
    primitive: Primitive, inputs: tuple[Atom, ...], output: Var, scope: Scope
) -> tuple[Atom, ...]:
    """Operands with scalars for arrays that repeat them, where another has the result's shape."""
    if not isinstance(primitive, _TAKE_SCALARS) or not output.type.shape or len(inputs) < 2:
        return inputs
    shape, scalars = output.type.shape, scope.scalars
    if any(atom not in scalars and atom.type.shape == shape for atom in inputs):
        return tuple([scalars.get(atom, atom) for atom in inputs])
    return inputs
