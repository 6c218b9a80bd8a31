"""One pass from the first equation to the last, which replaces known results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import compress
from math import copysign, prod
from operator import is_not
from typing import Final, TypeAlias

import numpy as np

from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.primitive import NDArray, Primitive
from pscdsl._src.ir.program import (
    Atom,
    Block,
    Equation,
    Evaluator,
    Function,
    Literal,
    Scalar,
    Var,
    acts,
    holds_programs,
    is_plain,
    literal_array,
    rebuilt,
)
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.collectives import PlaceAlong
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.control import Control
from pscdsl._src.primitives.elementwise import Bitcast, Clamp, Convert, Elementwise, Select
from pscdsl._src.primitives.indexing import DynamicSlice
from pscdsl._src.primitives.regions import Group, Layout, Region, Role, by_group
from pscdsl._src.primitives.shaping import (
    Broadcast,
    Concatenate,
    Constant,
    Iota,
    Pad,
    Reshape,
    Reverse,
    SizeValue,
    Slice,
    Transpose,
)
from pscdsl._src.primitives.windows import ArgReduceWindow, Convolution, ReduceWindow
from pscdsl._src.support.tracebacks import OWN_PRIMITIVES
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dtypes import BOOL, I64, KEY, U64, DType, Kind

# Replacements of an equation: an existing result, or a known small array.


# Equations with existing results, and operands that are reached more directly.
#
# Only replacements that are correct for every value, including NaN.


Definitions: TypeAlias = Mapping[Atom, Equation]
Neutral: TypeAlias = Callable[[Scalar, DType], bool]


def _zero(value: Scalar, dtype: DType) -> bool:
    """Return whether subtracting a number changes nothing: 0 does, -0 does not."""
    if dtype.is_float:
        return value == 0 and copysign(1, value) == 1  # type: ignore[arg-type]
    return value == 0 and not dtype.is_complex


def _addend(value: Scalar, dtype: DType) -> bool:
    """Return whether adding a number changes nothing: -0 does, but 0 + -0 is 0."""
    if dtype.is_float:
        return value == 0 and copysign(1, value) == -1  # type: ignore[arg-type]
    return value == 0 and not dtype.is_complex


def _one(value: Scalar, dtype: DType) -> bool:
    return value == 1 and not dtype.is_complex


def _whole_one(value: Scalar, dtype: DType) -> bool:
    return value == 1 and dtype.is_integer


def _least(value: Scalar, dtype: DType) -> bool:
    if dtype.is_integer:
        return value == dtype.range[0]
    return value is False if dtype is BOOL else value == float("-inf")


def _largest(value: Scalar, dtype: DType) -> bool:
    if dtype.is_integer:
        return value == dtype.range[1]
    return value is True if dtype is BOOL else value == float("inf")


def _all_ones(value: Scalar, dtype: DType) -> bool:
    if dtype is BOOL:
        return value is True
    return value == (-1 if dtype.signed else dtype.range[1])


def _nothing(value: Scalar, dtype: DType) -> bool:
    return value == 0 and dtype.kind <= Kind.INT


NEUTRAL_RIGHT: dict[Primitive, Neutral] = {
    e.add: _addend,
    e.subtract: _zero,
    e.multiply: _one,
    e.divide: _one,
    e.power: _one,
    e.floor_divide: _whole_one,
    e.maximum: _least,
    e.minimum: _largest,
    e.bitwise_and: _all_ones,
    e.bitwise_or: _nothing,
    e.bitwise_xor: _nothing,
    e.left_shift: _nothing,
    e.right_shift: _nothing,
}
COMMUTATIVE: frozenset[Primitive] = frozenset(
    (e.add, e.multiply, e.maximum, e.minimum, e.bitwise_and, e.bitwise_or, e.bitwise_xor)
)
INVOLUTIONS: frozenset[Primitive] = frozenset((e.negative, e.invert, e.conjugate))


def same_as(
    primitive: Primitive, inputs: Sequence[Atom], output: Var, made: Definitions
) -> Atom | None:
    """Return the operand, or operand's operand, that the output of an equation always equals."""
    found: Atom | None = None
    if isinstance(primitive, e.Elementwise):
        found = _elementwise(primitive, inputs, made)
    elif isinstance(primitive, e.Select):
        found = _select(inputs)
    elif _keeps_everything(primitive, inputs, output):
        found = inputs[0]
    elif inputs:
        found = _undone(primitive, inputs[0], made)
    return found if found is not None and found.type == output.type else None


def _elementwise(
    primitive: e.Elementwise, inputs: Sequence[Atom], made: Definitions
) -> Atom | None:
    neutral = NEUTRAL_RIGHT.get(primitive)
    if neutral is not None:
        left, right = inputs
        if isinstance(right, Literal) and neutral(right.value, right.type.dtype):
            return left
        if (
            primitive in COMMUTATIVE
            and isinstance(left, Literal)
            and neutral(left.value, left.type.dtype)
        ):
            return right
        return None
    inner = made.get(inputs[0])
    if inner is None:
        return None
    if primitive in INVOLUTIONS and inner.primitive is primitive:
        return inner.inputs[0]
    if inner.primitive is e.make_complex:
        if primitive is e.real:
            return inner.inputs[0]
        if primitive is e.imag:
            return inner.inputs[1]
    return None


def _select(inputs: Sequence[Atom]) -> Atom | None:
    predicate, x, y = inputs
    if isinstance(predicate, Literal):
        return x if predicate.value else y
    return x if x is y else None


def _keeps_everything(primitive: Primitive, inputs: Sequence[Atom], output: Var) -> bool:
    match primitive:
        case e.Convert() | Reshape():
            return inputs[0].type == output.type
        case Broadcast(dims=dims):
            return dims == tuple(range(len(output.type.shape)))
        case Transpose(permutation=permutation):
            return permutation == tuple(range(len(permutation)))
        case Slice(start=start, stride=stride):
            whole = all(each == 0 for each in start) and all(each == 1 for each in stride)
            return whole and inputs[0].type == output.type
        case Pad(low=low, high=high, interior=interior):
            return all(each == 0 for each in (*low, *high, *interior))
        case Reverse(axes=axes):
            return not axes
        case Concatenate():
            return len(inputs) == 1
        case _:
            return False


def _undone(primitive: Primitive, operand: Atom, made: Definitions) -> Atom | None:
    """Return the operand's operand, if the equation inverts the one that made the operand."""
    inner = made.get(operand)
    if inner is None:
        return None
    match primitive, inner.primitive:
        case Reshape(), Reshape():
            return inner.inputs[0]
        case Reverse(axes=outer), Reverse(axes=axes) if set(outer) == set(axes):
            return inner.inputs[0]
        case Transpose(permutation=outer), Transpose(permutation=permutation):
            undone = all(permutation[axis] == place for place, axis in enumerate(outer))
            return inner.inputs[0] if undone else None
        case _:
            return None


def without_transposes(
    dot: DotGeneral, inputs: tuple[Atom, ...], made: Definitions
) -> tuple[DotGeneral, tuple[Atom, ...]]:
    """Contract the arrays before their transposes, if the result's axes stay in order.

    XLA's CPU backend copies a transposed operand, which can take longer than the products.
    """
    batched, contract, operands = list(dot.batched), list(dot.contract), list(inputs)
    for place, operand in enumerate(inputs):
        inner = made.get(operand)
        if inner is None or not isinstance(inner.primitive, Transpose):
            continue
        permutation = inner.primitive.permutation
        used = {*batched[place], *contract[place]}
        free = [axis for place, axis in enumerate(permutation) if place not in used]
        if free == sorted(free):
            batched[place] = tuple([permutation[axis] for axis in batched[place]])
            contract[place] = tuple([permutation[axis] for axis in contract[place]])
            operands[place] = inner.inputs[0]
    if all(a is b for a, b in zip(operands, inputs, strict=True)):
        return dot, inputs
    left, right = zip(batched, contract, strict=True)
    direct = DotGeneral((left[1], right[1]), (left[0], right[0]), dot.result)
    return direct, tuple(operands)


Add: TypeAlias = Callable[[Primitive, tuple[Atom, ...], ArrayType], Atom]
"""Adds an equation of one result of a type, and returns that."""


def without_slices(
    part: DynamicSlice, inputs: tuple[Atom, ...], made: Definitions, add: Add
) -> tuple[Atom, ...]:
    """Take a part of the whole array instead of a slice of it.

    In a loop that changes the array, XLA would copy all of the slice in each step.
    """
    x, *starts = inputs
    inner = made.get(x)
    if inner is None or not isinstance(inner.primitive, Slice):
        return inputs
    cut, whole = inner.primitive, inner.inputs[0]
    if any(stride != 1 for stride in cut.stride) or any(at.type.dtype is U64 for at in starts):
        return inputs
    left = [n - size for n, size in zip(whole.type.shape, x.type.shape, strict=True)]
    if not all(isinstance(each, int) for each in left):  # else it is harder to see that parts fit
        return inputs
    places: list[Atom] = []
    number = ArrayType(I64)
    for axis, start in enumerate(starts):
        first, size = cut.start[axis], x.type.shape[axis]
        if size == part.sizes[axis]:  # it can only be there, for any start
            places.append(add(SizeValue(first, I64), (), number))
            continue
        if first == 0 and size == whole.type.shape[axis]:
            places.append(start)
            continue
        if start.type.dtype is not I64:
            start = add(Convert(I64), (start,), number)
        last = add(SizeValue(size - part.sizes[axis], I64), (), number)
        start = add(Clamp(), (Literal(0, I64), start, last), number)
        if first != 0:
            start = add(e.add, (start, add(SizeValue(first, I64), (), number)), number)
        places.append(start)
    return whole, *places


# Equations of known small arrays, computed by their NumPy meaning.


MAX_ELEMENTS = 64

POINTWISE: Final = (Elementwise, Convert, Bitcast, Select, Clamp)
"""Primitives that commute with repeating a scalar."""
_COMPACT: Final = (Constant, Iota, Broadcast)
"""Primitives that describe an array compactly: it is known, but stays as it is."""
_WIDE: Final = (Convolution, ReduceWindow, ArgReduceWindow)
"""Primitives that may need far more memory than their operands and results."""
_HERE: Final = Evaluator({})
"""The evaluator of meanings that may run while compiling; a user's never do."""

Known = dict[Atom, NDArray]


def fold(
    primitive: Primitive, inputs: Sequence[Atom], outputs: Sequence[Var], known: Known
) -> list[NDArray] | None:
    """Return an equation's results, if they replace it; `known` gets all results found."""
    for var in outputs:
        if not _is_small(var.type):
            return None
    operands: list[NDArray] = []
    for atom in inputs:
        array = literal_array(atom) if isinstance(atom, Literal) else known.get(atom)
        if array is None:
            return None
        operands.append(array)
    if isinstance(primitive, _WIDE) or holds_programs(primitive):
        return None  # not bounded by the sizes of operands and results
    if not type(primitive).__module__.startswith(OWN_PRIMITIVES):
        return None
    results = _evaluated(primitive, operands, outputs)
    if results is None:
        return None
    known.update(zip(outputs, results, strict=True))
    if isinstance(primitive, _COMPACT) and outputs[0].type.shape:
        return None
    return results


def fold_scalars(primitive: Primitive, scalars: Sequence[Literal], output: Var) -> Literal | None:
    """Return the number that a pointwise function of arrays of one number each has everywhere."""
    result = Var(ArrayType(output.type.dtype))
    found = _evaluated(primitive, [literal_array(scalar) for scalar in scalars], (result,))
    return None if found is None else literal_of(found[0], result.type)


def literal_of(array: NDArray, of: ArrayType) -> Literal:
    """Return an array of rank 0 as a literal."""
    return Literal(array.item(), of.dtype)


def _is_small(given: ArrayType) -> bool:
    shape = given.shape
    if not shape:
        return given.dtype is not KEY
    if given.dtype is KEY or not all(isinstance(size, int) for size in shape):
        return False
    return prod(size for size in shape if isinstance(size, int)) <= MAX_ELEMENTS


def _evaluated(
    primitive: Primitive, operands: Sequence[NDArray], outputs: Sequence[Var]
) -> list[NDArray] | None:
    """Return the results; None if the meaning needs a size or fails."""
    try:
        with np.errstate(all="ignore"):
            results = primitive.evaluate(_HERE, *operands)
    except Exception:  # any error is to occur when the program runs
        return None
    for result, var in zip(results, outputs, strict=True):
        if result.shape != var.type.shape or result.dtype != to_numpy(var.type.dtype):
            return None
    return list(results)


# One pass from the first equation to the last, which replaces known results.
#
# Values known outside of a block are known inside: blocks lose the parameters for them.


# Replacements of an equation, given the equations before it; control flow comes later.


_TAKE_SCALARS = (Elementwise, Select, Clamp)
"""Functions of several operands where one of rank 0 applies everywhere."""
_MOVE = (Broadcast, Reshape, Transpose, Slice, Reverse)
"""Primitives that repeat a scalar, given a scalar that is repeated."""


@dataclass(slots=True)
class BlockScope:
    """The known values in one block during the pass."""

    names: dict[Atom, Atom]
    """The atoms to use instead of variables."""
    equations: list[Equation] = field(default_factory=list[Equation])
    made: dict[Atom, Equation] = field(default_factory=dict[Atom, Equation])
    """By which equation, for those with one output."""
    found: dict[object, Equation] = field(default_factory=dict[object, Equation])
    """Equations by the values that they compute."""
    scalars: dict[Atom, Atom] = field(default_factory=dict[Atom, Atom])
    """The scalar that an array repeats."""
    arrays: Known = field(default_factory=dict[Atom, NDArray])

    def use(self, atoms: Sequence[Atom]) -> tuple[Atom, ...]:
        """Return the replacements of some operands."""
        names = self.names
        return tuple([names.get(atom, atom) for atom in atoms])


class Straight:
    """A pass over blocks from the first equation to the last; subclasses treat control flow.

    `functions` maps called functions to their replacements. With `effects`, equations that have
    effects keep their operands and results, and are simplified inside. With `one_device`, values
    have no placement.
    """

    def __init__(
        self,
        functions: Mapping[Function, Function],
        effects: bool = False,
        one_device: bool = False,
    ) -> None:
        self.functions = functions
        self.effects = effects
        self.one_device = one_device
        self._blocks: dict[Block, Block] = {}

    def block(self, block: Block) -> Block:
        """Return a closed block, simplified; itself if there was nothing to do."""
        cached = self._blocks.get(block)
        if cached is None:
            cached = self._blocks[block] = self.specialised(block, BlockScope({}))
        return cached

    def specialised(self, block: Block, scope: BlockScope) -> Block:
        """Return a block in a scope that knows some of its parameters."""
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

    def equation(self, equation: Equation, scope: BlockScope) -> None:
        """Add an equation to a scope, or its replacement."""
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
        scope: BlockScope,
    ) -> None:
        """Add an equation in the place of another, unless its results are known."""
        if isinstance(primitive, DotGeneral):
            primitive, inputs = without_transposes(primitive, inputs, scope.made)
        elif isinstance(primitive, DynamicSlice):
            add = partial(self.added, equation, scope)
            inputs = without_slices(primitive, inputs, scope.made, add)
        if self.one_device and isinstance(primitive, PlaceAlong):
            scope.names[outputs[0]] = inputs[0]
            return
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

    def added(
        self,
        equation: Equation,
        scope: BlockScope,
        primitive: Primitive,
        inputs: tuple[Atom, ...],
        result: ArrayType,
    ) -> Atom:
        """Add an equation for a part of another one, and return its result."""
        var = Var(result)
        self.plain(primitive, inputs, (var,), equation, scope)
        return scope.names.get(var, var)

    def known(self, array: NDArray, var: Var, equation: Equation, scope: BlockScope) -> None:
        """Record a variable whose value has been computed."""
        if not var.type.shape:
            scope.names[var] = literal_of(array, var.type)
            return
        first = array.reshape(-1)[:1] if array.size else np.zeros(1, array.dtype)
        if array.tobytes() == first.tobytes() * array.size:
            scalar = literal_of(first.reshape(()), ArrayType(var.type.dtype))
            self.repeat(scalar, var, equation, scope)
        else:
            self.add(Constant.of(array, var.type.dtype), (), (var,), equation, scope)

    def repeat(self, scalar: Atom, var: Var, equation: Equation, scope: BlockScope) -> None:
        """Record a variable that is a scalar everywhere."""
        if var.type.shape:
            self.add(Broadcast(var.type.shape, ()), (scalar,), (var,), equation, scope)
        else:
            scope.names[var] = scalar

    def repeated(self, equation: Equation, inputs: Sequence[Atom], scope: BlockScope) -> bool:
        """Add an equation whose operands are all repeated scalars, as one of scalars."""
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
        scope: BlockScope,
    ) -> None:
        """Add an equation in the place of another, unless an equal one exists already."""
        if (
            primitive is not equation.primitive
            or inputs != equation.inputs
            or outputs != equation.outputs
        ):
            equation = Equation(primitive, inputs, outputs, equation.span)
        key = (primitive, *[identity_of(atom) for atom in inputs])
        try:
            first = scope.found.setdefault(key, equation)
        except TypeError:  # a field that has no hash
            first = equation
        if first is not equation and _types(first.outputs) == _types(outputs):
            scope.names.update(zip(outputs, first.outputs, strict=True))
            return
        scope.equations.append(equation)
        if len(outputs) == 1:
            scope.made[outputs[0]] = equation
            if type(primitive) is Broadcast and not primitive.dims:
                scope.scalars[outputs[0]] = inputs[0]


def identity_of(atom: Atom) -> object:
    """Return an identity of an atom: a literal's bits, a variable itself."""
    if isinstance(atom, Literal):
        return atom.type.dtype.name, repr(atom.value)
    return atom


def _types(outputs: Sequence[Var]) -> list[ArrayType]:
    return [var.type for var in outputs]


def _with_scalars(
    primitive: Primitive, inputs: tuple[Atom, ...], output: Var, scope: BlockScope
) -> tuple[Atom, ...]:
    """Operands with scalars for arrays that repeat them, where another has the result's shape."""
    if not isinstance(primitive, _TAKE_SCALARS) or not output.type.shape or len(inputs) < 2:
        return inputs
    shape, scalars = output.type.shape, scope.scalars
    if any(atom not in scalars and atom.type.shape == shape for atom in inputs):
        return tuple([scalars.get(atom, atom) for atom in inputs])
    return inputs


# The whole pass, through control flow.


Members: TypeAlias = Mapping[Group, Sequence[Atom]]
Pairs: TypeAlias = list[tuple[Var, Atom]]
"""Parameters with their operands."""


class Forward(Straight):
    """The pass."""

    def equation(self, equation: Equation, scope: BlockScope) -> None:
        """Add an equation to a scope, or its replacement."""
        primitive = equation.primitive
        if self.effects and acts(equation):
            primitive = rebuilt(primitive, self.block, self._function)
            inputs = scope.use(equation.inputs)
            if primitive is not equation.primitive or inputs != equation.inputs:
                equation = Equation(primitive, inputs, equation.outputs, equation.span)
            scope.equations.append(equation)
            return
        if not isinstance(primitive, Control) or not primitive.layout.regions:
            super().equation(equation, scope)
            return
        layout, inputs = primitive.layout, scope.use(equation.inputs)
        operands, number = layout.operands(inputs), primitive.chosen(inputs)
        if number is not None:
            region = layout.regions[number]
            taken = [atom for group in region.takes for atom in operands[group]]
            results = self.inline(region.block, taken, scope)
            scope.names.update(zip(equation.outputs, results, strict=True))
        elif layout.is_repeated:
            self.control(primitive, layout, operands, equation, scope)
        else:
            super().equation(equation, scope)

    def control(
        self,
        primitive: Control,
        layout: Layout,
        operands: Members,
        equation: Equation,
        scope: BlockScope,
    ) -> None:
        """Add a loop or choice with an unknown decision, without the carries that stay constant."""
        outputs = layout.results(equation.outputs)
        keeps = {group: [True] * group.count for group in layout.groups}
        for group, moves in _carries(layout):
            keeps[group] = moves
            for var, atom, moving in zip(outputs[group], operands[group], moves, strict=True):
                if not moving:
                    scope.names[var] = atom
        left, known = dict(operands), dict[Group, Pairs]()
        blocks: list[Block] = []
        for region in layout.regions:
            block, taken = self.region(region, operands, keeps, scope)
            blocks.append(block)
            known.update(taken)
            left.update({group: [atom for _, atom in pairs] for group, pairs in taken.items()})
        for region, block in zip(layout.regions, blocks, strict=True):
            for group, results in by_group(region.gives, block.results):
                if group.role is Role.DECISION and _is_false(results[0]):  # no step is taken
                    scope.names.update(zip(equation.outputs, layout.outputs(operands), strict=True))
                    return
                if group.role is Role.STACK:
                    pairs = list(zip(results, outputs[group], strict=True))
                    keeps[group] = self.stacks(region, pairs, known, equation, scope)
                elif group.role is Role.RESULT and region is layout.regions[0]:
                    captured = [atom for each in region.takes for atom in left[each]]
                    for place, var in enumerate(outputs[group]):
                        same = _same_in_all(blocks, place, captured)
                        if same is not None:
                            scope.names[var] = same
                            keeps[group][place] = False
        for at, (region, block) in enumerate(zip(layout.regions, blocks, strict=True)):
            flags = [flag for group in region.gives for flag in keeps[group]]
            if not all(flags):
                results = tuple(compress(block.results, flags))
                blocks[at] = Block(block.params, block.equations, results)
        if any(map(is_not, blocks, primitive.blocks())):
            primitive = primitive.with_blocks(blocks, layout.counts(left))
        wanted = tuple(compress(equation.outputs, layout.outputs(keeps)))
        if wanted:
            self.add(primitive, layout.inputs(left), wanted, equation, scope)

    def region(
        self,
        region: Region,
        operands: Members,
        keeps: Mapping[Group, list[bool]],
        scope: BlockScope,
    ) -> tuple[Block, dict[Group, Pairs]]:
        """Return a region's block with its unknown parameters, and the operands of these."""
        inner, params, taken = BlockScope({}), list[Var](), dict[Group, Pairs]()
        decisions: Pairs = []
        fixed: Pairs = []
        for group, own in region.params():
            if group.role is Role.CARRY:
                carried = zip(own, operands[group], keeps[group], strict=True)
                fixed += [(var, atom) for var, atom, moves in carried if not moves]
        captures = list(fixed)  # they are captured now
        for group, own in region.params():
            if group.role is Role.PARTIAL:
                params += own
                continue
            pairs = list(zip(own, operands[group], strict=True))
            if group.role is Role.DECISION:
                decisions = pairs
            elif group.role is Role.CONSTANT:
                pairs = self.bind([*pairs, *captures], inner, scope, decisions)
                captures = []
            elif group.role is Role.ROW:
                pairs = self.bind(pairs, inner, scope)
            else:
                pairs = list(compress(pairs, keeps[group]))
            taken[group] = pairs
            params += [var for var, _ in pairs]
        block = region.block
        if not fixed and len(params) == len(block.params):
            return self.block(block), taken
        return self.specialised(Block(tuple(params), block.equations, block.results), inner), taken

    def stacks(
        self,
        region: Region,
        pairs: Sequence[tuple[Atom, Var]],
        known: Mapping[Group, Pairs],
        equation: Equation,
        scope: BlockScope,
    ) -> list[bool]:
        """Return whether to make each stack, given the results of each step."""
        constants, rows = [
            dict(pair for group in region.takes if group.role is role for pair in known[group])
            for role in (Role.CONSTANT, Role.ROW)
        ]
        ends_early = any(group.count for group in region.takes if group.role is Role.DECISION)
        stacked: dict[Atom, Var] = {}
        made: list[bool] = []
        for result, var in pairs:
            if not ends_early and self.stack(result, constants, rows, var, equation, scope):
                made.append(False)
            elif result in stacked:
                scope.names[var] = stacked[result]
                made.append(False)
            else:
                stacked[result] = var
                made.append(True)
        return made

    def stack(
        self,
        result: Atom,
        captured: Mapping[Var, Atom],
        passed: Mapping[Var, Atom],
        var: Var,
        equation: Equation,
        scope: BlockScope,
    ) -> bool:
        """Add a stack of equal rows, or of an array's own slices."""
        shape = var.type.shape
        if isinstance(result, Literal):
            self.repeat(result, var, equation, scope)
            return True
        if result in captured and captured[result].type.shape == shape[1:]:
            repeat = Broadcast(shape, tuple(range(1, len(shape))))
            self.plain(repeat, (captured[result],), (var,), equation, scope)
            return True
        if result in passed and passed[result].type == var.type:
            scope.names[var] = passed[result]
            return True
        return False

    def inline(self, block: Block, atoms: Sequence[Atom], scope: BlockScope) -> tuple[Atom, ...]:
        """Add the equations of a block with fresh variables, and return its results."""
        names: dict[Atom, Atom] = dict(zip(block.params, atoms, strict=True))
        for equation in block.equations:
            outputs = tuple([Var(var.type, var.hint) for var in equation.outputs])
            inputs = tuple([names.get(atom, atom) for atom in equation.inputs])
            names.update(zip(equation.outputs, outputs, strict=True))
            self.equation(Equation(equation.primitive, inputs, outputs, equation.span), scope)
        return scope.use([names.get(atom, atom) for atom in block.results])

    def bind(
        self,
        pairs: Pairs,
        inner: BlockScope,
        scope: BlockScope,
        before: Sequence[tuple[Var, Atom]] = (),
    ) -> Pairs:
        """Bind parameters in an inner scope, and return those that stay parameters, with operands.

        The ones in `before` are parameters in any case.
        """
        left: Pairs = []
        first: dict[Atom, Var] = {atom: param for param, atom in before}
        for param, atom in pairs:
            scalar = scope.scalars.get(atom)
            if isinstance(atom, Literal):
                inner.names[param] = atom
            elif isinstance(scalar, Literal):
                if param.type.shape:
                    source = Equation(Broadcast(param.type.shape, ()), (scalar,), (param,))
                    self.add(source.primitive, source.inputs, source.outputs, source, inner)
                else:
                    inner.names[param] = scalar
            elif atom in first:
                inner.names[param] = first[atom]
            else:
                first[atom] = param
                left.append((param, atom))
        return left


def _carries(layout: Layout) -> Iterator[tuple[Group, list[bool]]]:
    """Yield the carries, with flags that tell whether a step changes them."""
    for region in layout.regions:
        taken = dict(region.params())
        for group, results in region.results():
            if group.role is Role.CARRY:
                yield group, list(map(is_not, results, taken[group]))


def _is_false(atom: Atom) -> bool:
    return isinstance(atom, Literal) and not atom.value


def _same_in_all(branches: Sequence[Block], place: int, given: Sequence[Atom]) -> Atom | None:
    """Return the literal or operand that is a result in every branch."""
    first = branches[0].results[place]
    if isinstance(first, Literal):
        same = all(identity_of(branch.results[place]) == identity_of(first) for branch in branches)
        return first if same else None
    for index, atom in enumerate(given):
        if all(branch.results[place] is branch.params[index] for branch in branches):
            return atom
    return None
