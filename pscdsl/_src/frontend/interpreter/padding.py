"""Capacities and masks in place of sizes that depend on a loop's counter.

While the body of a loop is elaborated its counter is a size, so that `x[:i]` is `f64[i]`. When the
outermost such loop is complete, its body is rewritten: an axis of size `i` gets its capacity, the
largest possible size, and only its first elements are valid. The elements behind them may have any
value. They are replaced before an operation in which one element can reach others, such as a sum, a
product, or a broadcast in the reverse pass: no derivative of an invalid element reaches a valid
one.

`RULES` rewrites each primitive. A primitive without a rule is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, TypeAlias

from pscdsl._src.frontend.interpreter.counters import depends_on_counter
from pscdsl._src.interpreters.replay import append
from pscdsl._src.ir.builder import Builder, Program, Value
from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import Atom, Block, Equation, Function, Literal, Var
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.control import Switch
from pscdsl._src.primitives.custom_derivatives import StopGradient
from pscdsl._src.primitives.elementwise import Clamp, Convert, Select
from pscdsl._src.primitives.indexing import DynamicSlice, DynamicUpdate, Gather
from pscdsl._src.primitives.pointwise import Pointwise
from pscdsl._src.primitives.reductions import ArgReduce, Cumulative, Reduce, identity
from pscdsl._src.primitives.scan import Scan
from pscdsl._src.primitives.shaping import (
    Broadcast,
    Concatenate,
    Iota,
    Pad,
    Reshape,
    Reverse,
    SizeValue,
    Slice,
    Transpose,
)
from pscdsl._src.primitives.while_loop import While
from pscdsl.typing import dims
from pscdsl.typing.array_types import ArrayType, Shape
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.codes.limits import IllTypedEquation
from pscdsl.typing.counters import Counter, InLoop, bound, counters_in
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, Size, maximum
from pscdsl.typing.dtypes import BOOL, I32, KEY, DType


def padded(
    program: Program, block: Block, captured: Sequence[Value]
) -> tuple[Block, tuple[Value, ...]]:
    """Return the body of a loop without sizes that name counters, and its captured values."""
    writer = _BlockWriter(program)
    if not writer.is_open(block):
        return block, tuple(captured)
    assert not isinstance(program.facts, InLoop)
    own = block.params[len(captured) :]
    span = program.span
    try:
        with program.inside() as inner:
            params = [inner.parameter(var.type, var.hint) for var in own]
            wanted = (*(var.type for var in own), *block.out_types[len(own) :])
            results = writer.block(block, [*captured, *params], wanted)
            made, taken = inner.finish(params, results)
    except dims.DimTooLarge:
        raise Failure(depends_on_counter("a part of an array")) from None
    program.span = span
    if names_counters(made):
        raise Failure(depends_on_counter("a part of an array"))
    return made, taken


Part: TypeAlias = "Size | ArrayType | Sequence[Part] | Block | Function | Primitive"
"""A part of a program that may name a counter."""


def names_counters(part: Part) -> bool:
    """Return whether a size, a type, a primitive, a block or a function names a counter."""
    match part:
        case Dim():
            return bool(counters_in(part))
        case ArrayType():
            return any(isinstance(size, Dim) and counters_in(size) for size in part.shape)
        case list() | tuple():
            return any(map(names_counters, part))
        case Block():
            return any(names_counters(var.type) for var in part.params) or any(
                names_counters(equation.primitive)
                or any(names_counters(var.type) for var in equation.outputs)
                for equation in part.equations
            )
        case Function():
            return names_counters(part.body)
        case Primitive() if is_dataclass(part):
            own = (getattr(part, field.name) for field in fields(part))
            return any(names_counters(x) for x in own if not isinstance(x, Block | Function))
        case _:
            return False


class _BlockWriter:
    """A rewriter of blocks that removes the counters of loops from sizes."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.loops: dict[str, tuple[Counter, Value]] = {}
        """The counters of the enclosing loops, outermost first, with the number of the step."""
        self._open: dict[int, tuple[Block, bool]] = {}

    @property
    def here(self) -> Builder:
        return self.program.current

    @property
    def facts(self) -> Assumptions:
        return self.program.facts

    # Blocks and equations to rewrite.

    def is_open(self, block: Block) -> bool:
        """Return whether a block names counters, or is well-typed only if the loop takes a step."""
        known = self._open.get(id(block))
        if known is None:
            found = any(names_counters(var.type) for var in block.params)
            known = block, found or any(map(self._is_open, block.equations))
            self._open[id(block)] = known
        return known[1]

    def _is_open(self, equation: Equation) -> bool:
        primitive, inputs = equation.primitive, [atom.type for atom in equation.inputs]
        if any(map(names_counters, (*inputs, *(var.type for var in equation.outputs)))):
            return True
        blocks = primitive.blocks()
        if names_counters(primitive) or any(map(self.is_open, blocks)):
            return True
        if blocks:
            return False
        try:
            primitive.type_rule(self.facts, *inputs)
        except Failure:
            return True
        return False

    # Sizes: their capacities, and their values as numbers.

    def capacity(self, size: Size) -> Size:
        """Return the maximum of a size over all steps of all loops."""
        if isinstance(size, int) or not counters_in(size):
            return size
        found: Size | None = size
        for counter, _ in reversed(self.loops.values()):
            if found is not None:
                found = bound(found, counter, upper=True)
        if found is None or counters_in(found):
            raise Failure(depends_on_counter(f"a part with {size} elements"))
        found = self.facts.simplify(found)
        if not self.facts.proves(Fact("<=", 0, found)):
            found = self.facts.simplify(maximum(found, 0))
        return found

    def is_natural(self, size: Size) -> bool:
        """Return whether a size is never negative."""
        least: Size | None = size
        for counter, _ in reversed(self.loops.values()):
            if least is not None and counters_in(least):
                least = bound(least, counter, upper=False)
        return least is not None and self.facts.proves(Fact("<=", 0, least))

    def shape(self, shape: Sequence[Size]) -> Shape:
        """Return the capacities of several axes."""
        return tuple([self.capacity(size) for size in shape])

    def type(self, given: ArrayType) -> ArrayType:
        """Return the type of a rewritten array."""
        return given.with_shape(self.shape(given.shape))

    def number(self, size: Size, dtype: DType = I32) -> Value:
        """Return a size as a number of the step."""
        if isinstance(size, int) or not counters_in(size):
            return self.here.size(size, dtype)
        rest: Size = 0
        total: Value | None = None
        for monomial, coefficient in dims.as_terms(size):
            alone = dims.from_terms({monomial: coefficient})
            if not counters_in(alone):
                rest = rest + alone
                continue
            outside: Size = coefficient
            product: Value | None = None
            for factor in monomial:
                if counters_in(dims.from_terms({(factor,): 1})):
                    each = self._factor(factor, dtype)
                    product = each if product is None else self.bind(e.multiply, product, each)
                else:
                    outside = outside * dims.from_terms({(factor,): 1})
            assert product is not None
            if outside != 1:
                product = self.bind(e.multiply, product, self.here.size(outside, dtype))
            total = product if total is None else self.bind(e.add, total, product)
        assert total is not None
        return total if rest == 0 else self.bind(e.add, total, self.here.size(rest, dtype))

    def _factor(self, factor: dims.Factor, dtype: DType) -> Value:
        if factor.kind == "name":
            counter, position = self.loops[str(factor)]
            position = position if position.dtype is dtype else Convert(dtype)(position)
            if counter.first == 0 and counter.step == 1:
                return position
            first = self.number(counter.first, dtype)
            return self.bind(e.add if counter.step == 1 else e.subtract, first, position)
        primitives = {
            "min": e.minimum,
            "max": e.maximum,
            "//": e.floor_divide,
            "%": e.remainder,
        }
        found, *others = [self.number(each, dtype) for each in factor.args]
        for other in others:
            found = primitives[factor.kind](found, other)
            assert isinstance(found, Value)
        return found

    def bind(self, primitive: Primitive, *operands: Value) -> Value:
        """Append an equation, and return its only result."""
        return self.here.bind(primitive, operands)[0]

    # Arrays with their capacities, valid elements first.

    def ragged(self, shape: Sequence[Size]) -> list[int]:
        """Return the axes whose sizes name counters."""
        return [
            axis for axis, size in enumerate(shape) if isinstance(size, Dim) and counters_in(size)
        ]

    def fit(self, x: Value, shape: Shape, part: str = "a part of an array") -> Value:
        """Return an array with axes extended or cut behind the valid elements."""
        if x.shape == shape:
            return x
        if all(map(self.facts.equal, x.shape, shape)):
            return Reshape(shape)(x)
        if x.dtype is KEY:
            raise Failure(depends_on_counter(part))
        more = tuple([wanted - size for size, wanted in zip(x.shape, shape, strict=True)])
        none = (0,) * x.ndim
        found = Pad(none, more, none)(x, self._any(x.dtype))
        return found if found.shape == shape else Reshape(shape)(found)

    def _any(self, dtype: DType) -> Value:
        """Return the value behind the valid elements, for which functions are defined."""
        return self.here.literal(False if dtype is BOOL else 1, dtype)

    def counts(self, shape: Shape, true: Sequence[Size], axes: Sequence[int]) -> Value | None:
        """Return the mask of valid elements along some axes."""
        found: Value | None = None
        for axis in axes:
            if self.ragged(true[axis : axis + 1]):
                places = self.here.bind(Iota(shape, axis, I32), ())[0]
                inside = self.bind(e.less, places, self.number(true[axis]))
                found = inside if found is None else self.bind(e.bitwise_and, found, inside)
        return found

    def masked(
        self, x: Value, true: Sequence[Size], axes: Sequence[int], fill: Value | None = None
    ) -> Value:
        """Return an array with invalid elements along some axes replaced."""
        if not self.ragged([true[axis] for axis in axes]):
            return x
        if x.dtype is KEY:
            raise Failure(depends_on_counter("a part of an array of keys"))
        mask = self.counts(x.shape, true, axes)
        assert mask is not None
        return Select()(mask, x, self._any(x.dtype) if fill is None else fill)

    def window(
        self, x: Value, starts: Sequence[Value | None], sizes: Shape, true: Sequence[Size]
    ) -> Value:
        """Return a part of an array at computed starts; None is the first element.

        The valid elements of the part are in the array; the rest may be past the end.
        """
        least = tuple(
            [self.smaller(size, whole) for size, whole in zip(sizes, x.shape, strict=True)]
        )
        beyond = [
            start is not None and bool(self.ragged((own,)))
            for start, own in zip(starts, true, strict=True)
        ]
        inside = tuple(
            [
                x.shape[a] if far else size
                for a, (far, size) in enumerate(zip(beyond, least, strict=True))
            ]
        )
        near = [None if far else at for far, at in zip(beyond, starts, strict=True)]
        x = self._cut(x, near, inside)
        if any(beyond):
            more = tuple([size if far else 0 for far, size in zip(beyond, sizes, strict=True)])
            none = (0,) * x.ndim
            x = Pad(none, more, none)(x, self._any(x.dtype))
            far = [at if out else None for out, at in zip(beyond, starts, strict=True)]
            both = zip(beyond, sizes, x.shape, strict=True)
            x = self._cut(x, far, tuple([size if out else own for out, size, own in both]))
        return self.fit(x, sizes)

    def smaller(self, part: Size, whole: Size) -> Size:
        """Return the size of a part, in an array that may be empty if no step is taken."""
        if self.at_most(part, whole):
            return part
        return self.facts.simplify(dims.minimum(part, whole))

    def _cut(self, x: Value, starts: Sequence[Value | None], sizes: Shape) -> Value:
        """Return a part that is inside the array."""
        if all(start is None for start in starts):
            none = (0,) * x.ndim
            return x if x.shape == sizes else Slice(none, sizes, (1,) * x.ndim)(x)
        zero = self.here.literal(0, I32)
        return DynamicSlice(sizes)(x, *[zero if each is None else each for each in starts])

    def at_most(self, low: Size, high: Size) -> bool:
        """Return whether a size is never above another."""
        return low == high or self.facts.proves(Fact("<=", low, high))

    def placed(self, part: Value, axis: int, start: Value | None, size: Size) -> Value:
        """Put a part at a position of a longer axis."""
        shape = tuple([size if a == axis else s for a, s in enumerate(part.shape)])
        if start is None:
            return self.fit(part, shape)
        around = tuple([size if a == axis else 0 for a in range(part.ndim)])
        none = (0,) * part.ndim
        longer = Pad(around, around, none)(part, self._any(part.dtype))
        first = self.bind(e.subtract, self.here.size(size, start.dtype), start)
        zero = self.here.literal(0, I32)
        return DynamicSlice(shape)(
            longer, *[first if a == axis else zero for a in range(part.ndim)]
        )

    # Blocks and equations.

    def block(
        self, block: Block, arguments: Sequence[Value], wanted: Sequence[ArrayType]
    ) -> list[Value]:
        """Rewrite a block here, and return its results in these types."""
        env: dict[Atom, Value] = dict(zip(block.params, arguments, strict=True))
        own: list[str] = []
        for var in block.params:
            counter = self.program.counters.get(var)
            if counter is not None:
                self.loops[counter.name] = counter, env[var]
                own.append(counter.name)

        def value(atom: Atom) -> Value:
            return Value(self.here, atom) if isinstance(atom, Literal) else env[atom]

        try:
            for equation in block.equations:
                self.program.span = equation.span
                results = self._equation(equation, list(map(value, equation.inputs)))
                for var, result in zip(equation.outputs, results, strict=True):
                    env[var] = self.fit(result, self.shape(var.type.shape))
                    if var in self.program.names:
                        self.program.named(self.program.names[var], env[var])
            return [
                self.fit(value(atom), self.shape(given.shape))
                for atom, given in zip(block.results, wanted, strict=True)
            ]
        finally:
            for name in own:
                del self.loops[name]

    def _equation(self, equation: Equation, operands: list[Value]) -> Sequence[Value]:
        primitive = equation.primitive
        if not self._is_open(equation):
            return append(self.here, equation, operands)
        rule = next((rule for kind, rule in RULES.items() if isinstance(primitive, kind)), None)
        if rule is None:
            raise self.refusal(equation)
        try:
            return rule(self, primitive, equation, operands)
        except Failure as failure:
            if any(isinstance(each, IllTypedEquation) for each in failure.diagnostics):
                raise self.refusal(equation) from failure
            raise failure.at(equation.span) from None

    def refusal(self, equation: Equation) -> Failure:
        """Return the refusal of an equation without a rule."""
        what = f"`{equation.primitive.label}` of a part of an array"
        return Failure(depends_on_counter(what)).at(equation.span)

    def inner(self, block: Block, wanted: Sequence[ArrayType]) -> tuple[Block, list[Value]]:
        """Rewrite a block of an equation; return it with the values that it also captures."""
        with self.program.inside() as inner:
            params = [inner.parameter(self.type(var.type), var.hint) for var in block.params]
            results = self.block(block, params, wanted)
            made, captured = inner.finish(params, results)
        return made, list(captured)


Values: TypeAlias = Sequence[Value]
Rule: TypeAlias = Callable[[_BlockWriter, Any, Equation, Values], Values]
"""Rewrites an equation of a primitive of the class under which `RULES` has the rule."""


def _types(equation: Equation) -> tuple[list[ArrayType], ArrayType]:
    """Return the types of the operands, and of the only result."""
    return [atom.type for atom in equation.inputs], equation.outputs[0].type


def _pointwise(
    writer: _BlockWriter, primitive: Primitive, at: Equation, operands: Values
) -> Values:
    types, result = _types(at)
    shape = writer.shape(result.shape)
    every = range(len(shape))
    found: list[Value] = []
    for x, given in zip(operands, types, strict=True):
        if given.shape:
            found.append(writer.fit(x, shape))
        elif shape and given.dtype.is_inexact and not isinstance(x.atom, Literal):
            whole = writer.here.spread(x, shape, ())
            found.append(writer.masked(whole, result.shape, every))
        else:
            found.append(x)
    return writer.here.bind(primitive, found)


def _size(writer: _BlockWriter, primitive: SizeValue, at: Equation, operands: Values) -> Values:
    return [writer.number(primitive.size, primitive.dtype)]


def _iota(writer: _BlockWriter, primitive: Iota, at: Equation, operands: Values) -> Values:
    return writer.here.bind(replace(primitive, shape=writer.shape(primitive.shape)), ())


def _broadcast(
    writer: _BlockWriter, primitive: Broadcast, at: Equation, operands: Values
) -> Values:
    (x,) = operands
    shape = writer.shape(primitive.shape)
    x = writer.fit(x, tuple([shape[axis] for axis in primitive.dims]))
    (found,) = writer.here.bind(replace(primitive, shape=shape), (x,))
    if not x.dtype.is_inexact or isinstance(x.atom, Literal):
        return [found]
    new = [axis for axis in range(len(shape)) if axis not in primitive.dims]
    return [writer.masked(found, primitive.shape, new)]


def _transpose(
    writer: _BlockWriter, primitive: Primitive, at: Equation, operands: Values
) -> Values:
    return writer.here.bind(primitive, operands)


def _reshape(writer: _BlockWriter, primitive: Primitive, at: Equation, operands: Values) -> Values:
    """Reshape by inserting and removing axes of size 1; the others keep their order."""
    (before,), after = _types(at)
    old = [size for size in before.shape if size != 1]
    new = [size for size in after.shape if size != 1]
    if old != new:
        raise writer.refusal(at)
    return [Reshape(writer.shape(after.shape))(operands[0])]


def _slice(writer: _BlockWriter, primitive: Slice, at: Equation, operands: Values) -> Values:
    (x,) = operands
    _, result = _types(at)
    starts = [None if start == 0 else writer.number(start) for start in primitive.start]
    true = [limit - start for start, limit in zip(primitive.start, primitive.limit, strict=True)]
    x = writer.window(x, starts, writer.shape(true), true)
    if any(stride != 1 for stride in primitive.stride):
        x = Slice((0,) * x.ndim, x.shape, primitive.stride)(x)
    x = writer.fit(x, writer.shape(result.shape))
    return [writer.masked(x, result.shape, range(x.ndim))]


def _pad(writer: _BlockWriter, primitive: Pad, at: Equation, operands: Values) -> Values:
    """Put the operand at its position, with the scalar around it."""
    (x, scalar) = operands
    (given, _), result = _types(at)
    if any(primitive.interior) or not all(map(writer.is_natural, primitive.low)):
        raise writer.refusal(at)
    shape = writer.shape(result.shape)
    mask: Value | None = None
    for axis, low in enumerate(primitive.low):
        x = writer.placed(x, axis, None if low == 0 else writer.number(low), shape[axis])
    for axis, (low, size) in enumerate(zip(primitive.low, given.shape, strict=True)):
        places = writer.here.bind(Iota(shape, axis, I32), ())[0]
        inside = writer.bind(
            e.bitwise_and,
            writer.bind(e.greater_equal, places, writer.number(low)),
            writer.bind(e.less, places, writer.number(low + size)),
        )
        mask = inside if mask is None else writer.bind(e.bitwise_and, mask, inside)
    if mask is None:
        return [x]
    around = writer.here.spread(scalar, shape, ())
    if x.dtype.is_inexact and not isinstance(scalar.atom, Literal):
        around = writer.masked(around, result.shape, range(len(shape)))
    return [Select()(mask, x, around)]


def _reverse(writer: _BlockWriter, primitive: Reverse, at: Equation, operands: Values) -> Values:
    """Reverse, and move the valid elements from the end to the front."""
    (x,) = operands
    (given,), _ = _types(at)
    shape = x.shape
    (x,) = writer.here.bind(primitive, (x,))
    starts: list[Value | None] = [None] * x.ndim
    for axis in writer.ragged(given.shape):
        if axis in primitive.axes:
            starts[axis] = writer.number(shape[axis] - given.shape[axis])
    return [writer.window(x, starts, shape, given.shape)]


def _concatenate(
    writer: _BlockWriter, primitive: Concatenate, at: Equation, operands: Values
) -> Values:
    types, result = _types(at)
    axis = primitive.axis
    shape = writer.shape(result.shape)
    fitted = [
        writer.fit(x, tuple([x.shape[a] if a == axis else s for a, s in enumerate(shape)]))
        for x in operands
    ]
    if not any(writer.ragged(given.shape[axis : axis + 1]) for given in types):
        return writer.here.bind(primitive, fitted)
    found = writer.fit(fitted[0], shape)
    start: Size = types[0].shape[axis]
    places = writer.here.bind(Iota(shape, axis, I32), ())[0]
    for x, given in zip(fitted[1:], types[1:], strict=True):
        first = writer.number(start)
        behind = writer.here.bind(e.less, (places, writer.here.spread(first, shape, ())))[0]
        found = Select()(behind, found, writer.placed(x, axis, first, shape[axis]))
        start = start + given.shape[axis]
    return [found]


def _reduce(writer: _BlockWriter, primitive: Reduce, at: Equation, operands: Values) -> Values:
    (x,) = operands
    (given,), _ = _types(at)
    neutral = writer.here.literal(identity(primitive.kind, x.dtype), x.dtype)
    return writer.here.bind(primitive, (writer.masked(x, given.shape, primitive.axes, neutral),))


def _arg_reduce(
    writer: _BlockWriter, primitive: ArgReduce, at: Equation, operands: Values
) -> Values:
    (x,) = operands
    (given,), _ = _types(at)
    neutral = writer.here.literal(identity(primitive.kind, x.dtype), x.dtype)
    return writer.here.bind(primitive, (writer.masked(x, given.shape, (primitive.axis,), neutral),))


def _cumulative(
    writer: _BlockWriter, primitive: Cumulative, at: Equation, operands: Values
) -> Values:
    (x,) = operands
    (given,), _ = _types(at)
    axes = (primitive.axis,)
    neutral = writer.here.literal(identity(primitive.kind, x.dtype), x.dtype)
    (found,) = writer.here.bind(primitive, (writer.masked(x, given.shape, axes, neutral),))
    return [writer.masked(found, given.shape, axes)]


def _dot_general(
    writer: _BlockWriter, primitive: DotGeneral, at: Equation, operands: Values
) -> Values:
    (x, y) = operands
    (left, right), _ = _types(at)
    shape = list(y.shape)
    for pair in (primitive.contract, primitive.batched):
        for a, b in zip(*pair, strict=True):
            shape[b] = x.shape[a]
    y = writer.fit(y, tuple(shape))
    zero = writer.here.literal(0, x.dtype)
    x = writer.masked(x, left.shape, range(x.ndim), zero)
    y = writer.masked(y, right.shape, range(y.ndim), zero)
    return writer.here.bind(primitive, (x, y))


def _gather(writer: _BlockWriter, primitive: Gather, at: Equation, operands: Values) -> Values:
    """Gather elements of an array of known size; only some indices are valid."""
    (x, indices) = operands
    (given, places), result = _types(at)
    if writer.ragged([given.shape[axis] for axis in primitive.axes]):
        raise writer.refusal(at)
    shape = list(indices.shape)
    shape[: primitive.batched] = x.shape[: primitive.batched]
    indices = writer.fit(indices, tuple(shape))
    indices = writer.masked(
        indices, places.shape, range(places.rank), writer.here.literal(0, indices.dtype)
    )
    (found,) = writer.here.bind(replace(primitive, unique=False), (x, indices))
    return [writer.masked(found, result.shape, range(found.ndim))]


def _starts(
    writer: _BlockWriter, starts: Sequence[Value], whole: Shape, part: Shape
) -> list[Value | None]:
    """Return the starts of a part, clamped by the valid sizes; None is the first element."""
    found: list[Value | None] = []
    for start, size, length in zip(starts, whole, part, strict=True):
        if size == length or (isinstance(start.atom, Literal) and start.atom.value == 0):
            found.append(None)
        elif counters_in(size - length):
            wide = start if start.dtype is I32 else Convert(I32)(start)
            last = writer.number(size - length)
            found.append(Clamp()(writer.here.literal(0, I32), wide, last))
        else:
            found.append(start)
    return found


def _dynamic_slice(
    writer: _BlockWriter, primitive: DynamicSlice, at: Equation, operands: Values
) -> Values:
    (x, *given) = operands
    whole, result = at.inputs[0].type, at.outputs[0].type
    starts = _starts(writer, given, whole.shape, primitive.sizes)
    x = writer.window(x, starts, writer.shape(primitive.sizes), primitive.sizes)
    return [writer.masked(x, result.shape, range(x.ndim))]


def _dynamic_update(
    writer: _BlockWriter, primitive: Primitive, at: Equation, operands: Values
) -> Values:
    """Put the update at its position, and select its valid elements."""
    x, part, *given = operands
    whole, replaced = at.inputs[0].type, at.inputs[1].type
    here = writer.here
    starts = _starts(writer, given, whole.shape, replaced.shape)
    # These axes use the whole array; the others use a part of the update's size.
    seen = writer.ragged(replaced.shape)
    part = writer.fit(
        part,
        tuple(
            [
                length if axis in seen else writer.smaller(length, size)
                for axis, (length, size) in enumerate(zip(part.shape, x.shape, strict=True))
            ]
        ),
    )
    sizes = tuple([x.shape[a] if a in seen else size for a, size in enumerate(part.shape)])
    zero = here.literal(0, I32)
    outer = [zero if a in seen or at is None else at for a, at in enumerate(starts)]
    if not seen:
        return here.bind(primitive, (x, part, *outer))
    is_whole = sizes == x.shape
    window = x if is_whole else DynamicSlice(sizes)(x, *outer)
    mask: Value | None = None
    for axis in seen:
        start, length = starts[axis], replaced.shape[axis]
        part = writer.placed(part, axis, start, x.shape[axis])
        places = here.bind(Iota(sizes, axis, I32), ())[0]
        first = zero if start is None else start
        first = first if first.dtype is I32 else Convert(I32)(first)
        end = writer.number(length)
        end = end if start is None else writer.bind(e.add, first, end)
        inside = here.bind(e.less, (places, end))[0]
        if start is not None:
            after = here.bind(e.greater_equal, (places, first))[0]
            inside = here.bind(e.bitwise_and, (inside, after))[0]
        mask = inside if mask is None else here.bind(e.bitwise_and, (mask, inside))[0]
    assert mask is not None
    changed = Select()(mask, part, window)
    return [changed if is_whole else DynamicUpdate()(x, changed, *outer)]


# Equations with blocks.


def _scan(writer: _BlockWriter, primitive: Scan, at: Equation, operands: Values) -> Values:
    """Rewrite a loop with a varying number of steps as the first steps of the longest loop."""
    carry = primitive.body.in_types[primitive.captured :][: primitive.carried]
    stacked = primitive.body.out_types[primitive.carried :]
    body, more = writer.inner(primitive.body, (*carry, *stacked))
    length = writer.capacity(primitive.length)
    captured, initial, rows = primitive.roles(operands)
    rows = [writer.fit(x, (length, *x.shape[1:])) for x in rows]
    counted, params = primitive.counted, list(body.params)
    first: list[Value] = []
    if counted:  # the number of steps comes first
        first = [captured.pop(0)]
        params.insert(0, params.pop(len(more)))
    if writer.ragged((primitive.length,)):
        if counted:
            first = [writer.bind(e.minimum, first[0], writer.number(primitive.length))]
        else:
            first, counted = [writer.number(primitive.length)], True
            params.insert(0, Var(ArrayType(I32)))
    made = replace(
        primitive,
        body=Block(tuple(params), body.equations, body.results),
        captured=len(first) + len(more) + len(captured),
        length=length,
        counted=counted,
    )
    return writer.here.bind(made, (*first, *more, *captured, *initial, *rows))


def _while(writer: _BlockWriter, primitive: While, at: Equation, operands: Values) -> Values:
    carry = primitive.body.in_types[primitive.body_captured :]
    cond, by_cond = writer.inner(primitive.cond, primitive.cond.out_types)
    body, by_body = writer.inner(primitive.body, carry)
    first, second, initial = primitive.roles(operands)
    made = While(
        cond,
        body,
        len(by_cond) + len(first),
        len(by_body) + len(second),
        None if primitive.bound is None else writer.capacity(primitive.bound),
        None if primitive.every is None else writer.capacity(primitive.every),
    )
    return writer.here.bind(made, (*by_cond, *first, *by_body, *second, *initial))


def _switch(writer: _BlockWriter, primitive: Switch, at: Equation, operands: Values) -> Values:
    (index, *rest) = operands
    wanted = [var.type for var in at.outputs]
    made = [writer.inner(block, wanted) for block in primitive.branches]
    more = {value.atom: value for _, captured in made for value in captured}
    blocks: list[Block] = []
    for block, captured in made:
        own = dict(zip([value.atom for value in captured], block.params, strict=False))
        front = [own.get(atom) or Var(value.type) for atom, value in more.items()]
        params = (*front, *block.params[len(captured) :])
        blocks.append(Block(params, block.equations, block.results))
    return writer.here.bind(Switch(tuple(blocks)), (index, *more.values(), *rest))


RULES: Final[dict[type[Primitive], Rule]] = {
    Pointwise: _pointwise,
    StopGradient: _transpose,
    SizeValue: _size,
    Iota: _iota,
    Broadcast: _broadcast,
    Transpose: _transpose,
    Reshape: _reshape,
    Slice: _slice,
    Pad: _pad,
    Reverse: _reverse,
    Concatenate: _concatenate,
    Reduce: _reduce,
    ArgReduce: _arg_reduce,
    Cumulative: _cumulative,
    DotGeneral: _dot_general,
    Gather: _gather,
    DynamicSlice: _dynamic_slice,
    DynamicUpdate: _dynamic_update,
    Scan: _scan,
    While: _while,
    Switch: _switch,
}
"""The rewrite rule of each primitive, for arrays whose first elements are valid."""
