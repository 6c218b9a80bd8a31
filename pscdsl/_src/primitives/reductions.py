"""Primitives that combine the elements along axes: into one, each prefix, a place, a recurrence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from pscdsl._src.ir.axis_rules import AxisRule, along, kept_factors
from pscdsl._src.ir.numpy_dtypes import from_numpy, to_numpy
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl._src.primitives.elementwise import (
    Convert,
    Select,
    add,
    bitwise_and,
    bitwise_or,
    divide,
    equal,
    exp,
    greater,
    kink,
    maximum,
    multiply,
    not_equal,
    subtract,
)
from pscdsl._src.primitives.pointwise import WithoutTangents
from pscdsl._src.primitives.shaping import (
    Broadcast,
    Iota,
    Pad,
    Reshape,
    Transpose,
    are_axes,
    at_most,
    each_batched,
    inverted,
    same_sizes,
    without,
)
from pscdsl.typing.array_types import ArrayType, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BF16, BOOL, F32, I8, I16, I32, I64, DType

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value


# Primitives that combine the elements along axes: into one, into each prefix, or to a place.


# Floats as integers in the same order, which machines compare without exceptions for NaN.


SIGNED: Final[dict[int, DType]] = {8: I8, 16: I16, 32: I32, 64: I64}
"""The signed integers by their number of bits."""


def ordered(hlo: Hlo, x: H, given: ArrayType, nan: int) -> H:
    """Signed integers in the order of floats, and a number of choice for each NaN."""
    whole = given.with_dtype(SIGNED[given.dtype.bits])
    (number,) = hlo.op("bitcast_convert", (x,), (whole,))
    number = _flip_negative(hlo, number, whole)
    return hlo.select(hlo.compare("NE", x, x), hlo.full(nan, whole), number)


def from_ordered(hlo: Hlo, number: H, to: ArrayType) -> H:
    """Emit the floats again; the integers at the ends of the order are NaN."""
    number = _flip_negative(hlo, number, to.with_dtype(SIGNED[to.dtype.bits]))
    return hlo.op("bitcast_convert", (number,), (to,))[0]


def _flip_negative(hlo: Hlo, number: H, whole: ArrayType) -> H:
    """Negative numbers in the other order: of the bits of floats in theirs; and back."""
    negative = hlo.compare("LT", number, hlo.full(0, whole))
    other = hlo.binary("xor", number, hlo.full(whole.dtype.range[1], whole))
    return hlo.select(negative, other, number)


# Primitives that combine the elements along axes: into one, into one for each prefix, or a place.
#
# Sums and products of 16-bit floats are accumulated in f32.


Extreme: TypeAlias = Literal["maximum", "minimum"]
Accumulation: TypeAlias = Literal["sum", "product", "maximum", "minimum"]
Reduction: TypeAlias = Literal[
    "sum", "product", "maximum", "minimum", "all", "any", "and", "or", "xor"
]

UFUNCS: dict[Reduction, np.ufunc] = {
    "sum": np.add,
    "product": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "all": np.logical_and,
    "any": np.logical_or,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
OPERATIONS: dict[Reduction, str] = {
    "sum": "add",
    "product": "multiply",
    "maximum": "maximum",
    "minimum": "minimum",
    "all": "and",
    "any": "or",
    "and": "and",
    "or": "or",
    "xor": "xor",
}
"""The operation of StableHLO that combines two elements."""


def _ordered(dtype: DType) -> bool:
    return dtype is BOOL or dtype.is_integer or dtype.is_float


def _bitwise(dtype: DType) -> bool:
    return dtype is BOOL or dtype.is_integer


_REDUCIBLE: dict[Reduction, Callable[[DType], bool]] = {
    "sum": lambda dtype: dtype.is_number,
    "product": lambda dtype: dtype.is_number,
    "maximum": _ordered,
    "minimum": _ordered,
    "all": lambda dtype: dtype is BOOL,
    "any": lambda dtype: dtype is BOOL,
    "and": _bitwise,
    "or": _bitwise,
    "xor": _bitwise,
}


def reducible(kind: Reduction, dtype: DType) -> bool:
    """Return whether elements of a dtype can be combined in this way."""
    return _REDUCIBLE[kind](dtype)


def identity(kind: Reduction, dtype: DType) -> bool | int | float:
    """Return the neutral element of a reduction."""
    if kind in ("maximum", "minimum"):
        lowest = kind == "maximum"
        if dtype is BOOL:
            return not lowest
        if dtype.is_integer:
            return dtype.range[0 if lowest else 1]
        return float("-inf") if lowest else float("inf")
    if kind == "product":
        return 1
    if kind in ("all", "and"):
        return True if dtype is BOOL else dtype.range[1] if dtype.is_unsigned else -1
    return False if dtype is BOOL else 0


def accumulator(kind: Reduction, dtype: DType) -> DType:
    """Return the dtype in which elements are combined."""
    return F32 if dtype.is_float and dtype.bits == 16 and kind in ("sum", "product") else dtype


def combinable(x: NDArray) -> NDArray:
    """Convert elements to a dtype in which NumPy's loops can combine them."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x


@dataclass(frozen=True)
class Reduce(Primitive, name="reduce"):
    """All elements along some axes combined into one; of none the identity of the combination."""

    kind: Reduction
    axes: tuple[int, ...]

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (x,) = operands
        if not are_axes(self.axes, x.rank) or not reducible(self.kind, x.dtype):
            self.ill_typed(f"{self.kind} of {x} along axes {self.axes}")
        return (x.with_shape(without(x.shape, self.axes)),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        (x,) = operands
        wide = combinable(x)
        initial = wide.dtype.type(identity(self.kind, from_numpy(wide.dtype)))
        with np.errstate(all="ignore"):
            result = UFUNCS[self.kind].reduce(
                wide, axis=self.axes, dtype=wide.dtype, initial=initial
            )
        return (np.asarray(result).astype(x.dtype),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (x,), (given,), (output,) = operands, inputs, outputs
        dtype = accumulator(self.kind, given.dtype)
        wide = hlo.convert(x, given.with_dtype(dtype))
        partial = output.with_dtype(dtype)
        given = given.with_dtype(dtype)
        if dtype.is_float and (self.kind == "maximum" or self.kind == "minimum"):
            result = extreme(hlo, self.kind, wide, self.axes, given, partial)
        else:
            result = combined(hlo, self.kind, wide, self.axes, given, partial)
        return (hlo.convert(result, output),)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        (tangent,) = tangents
        assert tangent is not None
        if self.kind == "sum" or not self.axes:
            return (self(tangent),)
        (x,), (result,) = primals, outputs
        total = Reduce("sum", self.axes)
        if self.kind == "product":
            return (total(multiply(tangent, product_of_others(x, self.axes))),)
        if self.kind not in ("maximum", "minimum"):
            return (None,)
        # Those that are the extreme share the tangent; if there is a NaN, all that are NaN.
        spread = Broadcast(x.shape, without(range(x.ndim), self.axes))
        chosen = bitwise_or(equal(x, spread(result)), not_equal(x, x))
        taken = Select()(chosen, tangent, x.builder.literal(0, x.dtype))
        return (multiply(total(taken), self._share(chosen, result)),)

    def _share(self, chosen: Value, result: Value) -> Value:
        """Return one over the number chosen along the axes; of several it has a kink."""
        dtype = result.dtype
        wide = accumulator("sum", dtype)
        count = Reduce("sum", self.axes)(Convert(wide)(chosen))
        if not at_most(
            chosen.builder.facts, 1, size_of(tuple([chosen.shape[a] for a in self.axes]))
        ):
            count = maximum(count, 1)
        share: Value = divide(1, count)
        share = share if wide is dtype else Convert(dtype)(share)
        one = chosen.builder.literal(1, dtype)
        tied = Select()(greater(count, 1), multiply(result, 0), one)
        return add(share, kink(tied))

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,), (x,) = cotangents, operands
        if self.kind != "sum" and self.axes:
            self.ill_typed(f"{self.kind} is not linear")
        assert cotangent is not None
        assert isinstance(x, ArrayType)
        return (Broadcast(x.shape, without(range(x.rank), self.axes))(cotangent),)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        axes = tuple([axis + 1 for axis in self.axes])
        return (Reduce(self.kind, axes)(*operands),), (True,)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(inputs[0].shape)

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        rank = inputs[0].rank
        linear = ((0,),) if self.kind == "sum" else ()
        kept = kept_factors(rank, self.axes)
        return AxisRule((tuple(range(rank)),), (kept,), self.kind, linear)


def product_of_others(x: Value, axes: tuple[int, ...]) -> Value:
    """In place of each element the product of all others along the axes.

    It is the product of all before with that of all after, so zeros are no exception; and a
    polynomial, so neither are they in its own derivatives.
    """
    kept = without(range(x.ndim), axes)
    if len(axes) == 1:
        (axis,) = axes
        earlier = Cumulative("product", axis)(before(x, axis, 1))
        later = Cumulative("product", axis, reverse=True)(before(x, axis, 1, reverse=True))
        return multiply(earlier, later)
    order = (*kept, *axes)
    x = Transpose(order)(x)
    last = size_of(x.shape[len(kept) :])
    flat = Reshape((*x.shape[: len(kept)], last))(x)
    found = Reshape(x.shape)(product_of_others(flat, (len(kept),)))
    return Transpose(inverted(order))(found)


NAN_IS_KEPT = 1024
"""XLA's CPU backend hands large extrema to a library that drops NaN, from 4096 elements on."""
SHORT_ROW = 64
"""See `kept_extreme`."""


def extreme(
    hlo: Hlo, kind: Extreme, x: H, axes: tuple[int, ...], given: ArrayType, output: ArrayType
) -> H:
    """Emit the extremum of floats along axes, NaN if any is."""
    if prod(hlo.shape(given.shape)) <= NAN_IS_KEPT:
        return combined(hlo, kind, x, axes, given, output)
    x, axes, given = with_one_last_axis(hlo, x, axes, given)
    return kept_extreme(hlo, kind, x, axes, given, output)


def with_one_last_axis(
    hlo: Hlo, x: H, axes: tuple[int, ...], given: ArrayType
) -> tuple[H, tuple[int, ...], ArrayType]:
    """Join the last axes of an array into one, if elements are combined along exactly these."""
    shape, first = hlo.shape(given.shape), given.rank - len(axes)
    if len(axes) > 1 and axes == tuple(range(first, len(shape))):
        given = given.with_shape((*shape[:first], prod(shape[first:])))
        x, axes = hlo.reshape(x, given), (first,)
    return x, axes, given


def row_length(hlo: Hlo, axes: tuple[int, ...], given: ArrayType) -> int:
    """Return the number of neighbours that are combined; 0 if none are."""
    return hlo.size(given.shape[-1]) if given.rank - 1 in axes else 0


def combined(
    hlo: Hlo, kind: Reduction, x: H, axes: tuple[int, ...], given: ArrayType, output: ArrayType
) -> H:
    """Combine all elements along axes; of large arrays of floats an extreme may lose NaN."""
    init = hlo.full(identity(kind, given.dtype), ArrayType(given.dtype))
    return hlo.reduce((x,), (init,), axes, (output,), combiner(hlo, kind))[0]


def kept_extreme(
    hlo: Hlo, kind: Extreme, x: H, axes: tuple[int, ...], given: ArrayType, output: ArrayType
) -> H:
    """Emit an extremum in a form that XLA does not change; rows must have elements.

    There are two forms, each fast where the other is up to five times slower: for long rows of
    neighbouring elements, the extremum together with whether there is a NaN; otherwise the extremum
    of integers in the same order, among which NaN is the most extreme.
    """
    if row_length(hlo, axes, given) <= SHORT_ROW or given.dtype is BF16:
        return ordered_extreme(hlo, kind, x, axes, given, output)
    plain = combiner(hlo, kind)

    def both(old: Sequence[H], new: Sequence[H]) -> Sequence[H]:
        (a, a_nan), (b, b_nan) = old, new
        return *plain((a,), (b,)), hlo.binary("or", a_nan, b_nan)

    inits = identity(kind, given.dtype), False
    extreme, is_nan = hlo.reduce(
        (x, hlo.compare("NE", x, x)),
        [hlo.full(init, ArrayType(t)) for init, t in zip(inits, (given.dtype, BOOL), strict=True)],
        axes,
        (output, output.with_dtype(BOOL)),
        both,
    )
    return hlo.select(is_nan, hlo.full(float("nan"), output), extreme)


def ordered_extreme(
    hlo: Hlo, kind: Extreme, x: H, axes: tuple[int, ...], given: ArrayType, output: ArrayType
) -> H:
    """Emit the extremum of integers in the order of floats, among which NaN is the most extreme."""
    signed = SIGNED[given.dtype.bits]
    number = ordered(hlo, x, given, signed.range[1 if kind == "maximum" else 0])
    whole, found = given.with_dtype(signed), output.with_dtype(signed)
    (best,) = hlo.lower(Reduce(kind, axes), (number,), (whole,), (found,))
    return from_ordered(hlo, best, output)


def combiner(hlo: Hlo, kind: Reduction) -> Callable[[Sequence[H], Sequence[H]], Sequence[H]]:
    """Return a function that combines an accumulator with an element."""
    name = OPERATIONS[kind]
    return lambda accumulators, elements: (hlo.binary(name, *accumulators, *elements),)


@dataclass(frozen=True)
class Cumulative(Primitive, name="cumulative"):
    """Each element combined with those before it along an axis; if `reverse`, with those after."""

    kind: Accumulation
    axis: int
    reverse: bool = False

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (x,) = operands
        if not are_axes((self.axis,), x.rank) or not reducible(self.kind, x.dtype):
            self.ill_typed(f"cumulative {self.kind} of {x} along axis {self.axis}")
        return (x,)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        (x,) = operands
        wide = combinable(x)
        wide = np.flip(wide, self.axis) if self.reverse else wide
        with np.errstate(all="ignore"):
            result = UFUNCS[self.kind].accumulate(wide, axis=self.axis, dtype=wide.dtype)
            result = result.astype(x.dtype)
        return (np.flip(result, self.axis) if self.reverse else result,)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (x,), (given,), (output,) = operands, inputs, outputs
        count = hlo.size(given.shape[self.axis])
        if count <= 1 or 0 in hlo.shape(given.shape):
            return (x,)
        dtype = accumulator(self.kind, given.dtype)
        combine = combiner(hlo, self.kind)
        wide = given.with_dtype(dtype)
        # A window over all that comes before; XLA makes a tree of it, so its work is linear.
        window = [1] * given.rank
        padding = [(0, 0)] * given.rank
        window[self.axis] = count
        padding[self.axis] = (0, count - 1) if self.reverse else (count - 1, 0)
        scalar = ArrayType(dtype)
        region = hlo.region((scalar, scalar), lambda pair: combine(pair[:1], pair[1:]))
        attributes = {
            "window_dimensions": hlo.i64_array(window),
            "padding": hlo.i64_elements(padding),
        }
        init = hlo.full(identity(self.kind, dtype), scalar)
        (result,) = hlo.op(
            "reduce_window", (hlo.convert(x, wide), init), (wide,), attributes, (region,)
        )
        return (hlo.convert(result, output),)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        from pscdsl._src.primitives.indexing import take_along  # whose derivatives are sums

        (x,), (tangent,), (result,) = primals, tangents, outputs
        assert tangent is not None
        if self.kind == "sum":
            return (self(tangent),)
        if self.kind == "product":
            earlier = before(result, self.axis, 1, reverse=self.reverse)
            return (LinearRecurrence(self.axis, self.reverse)(x, multiply(earlier, tangent)),)
        return (take_along(tangent, self._places(result), self.axis),)

    def _places(self, result: Value) -> Value:
        """Return the places along the axis at which each extreme so far was first reached."""
        here, last = result.builder, result.shape[self.axis] - 1
        earlier = before(result, self.axis, 0, reverse=self.reverse)
        is_new = bitwise_and(not_equal(result, earlier), equal(earlier, earlier))  # not NaN again
        (count,) = here.bind(Iota(result.shape, self.axis, I32), ())
        if self.reverse:
            new = Select()(is_new, count, here.size(last, I32))
            return Cumulative("minimum", self.axis, reverse=True)(new)
        new = Select()(is_new, count, here.literal(0, I32))
        return Cumulative("maximum", self.axis)(new)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,) = cotangents
        if self.kind != "sum":
            self.ill_typed(f"a cumulative {self.kind} is not linear")
        assert cotangent is not None
        return (Cumulative("sum", self.axis, not self.reverse)(cotangent),)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        return (Cumulative(self.kind, self.axis + 1, self.reverse)(*operands),), (True,)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(inputs[0].shape)

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        factors = along(inputs[0].rank, (self.axis,))
        linear = ((0,),) if self.kind == "sum" else ()
        return AxisRule((factors,), (factors,), linear=linear)


# Sums of exponentials, and the largest numbers, by which they are shifted.


NEAR_ONE = 0.5
"""Closer to 1 than this, a sum of exponentials is computed without the ones among them."""


@dataclass(frozen=True)
class Largest(Primitive, name="largest"):
    """The largest real numbers along axes; where one is NaN, anything.

    For those who see NaN elsewhere: `Reduce` keeps it, and takes more time.
    """

    axes: tuple[int, ...]

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (x,) = operands
        if not are_axes(self.axes, x.rank) or not x.dtype.is_float:
            self.ill_typed(f"the largest of {x} along axes {self.axes}")
        return (x.with_shape(without(x.shape, self.axes)),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        (x,) = operands
        found = np.max(combinable(x), axis=self.axes, initial=-np.inf)
        return (np.asarray(found).astype(x.dtype),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (x,), (given,), (output,) = operands, inputs, outputs
        return (combined(hlo, "maximum", x, self.axes, given, output),)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        return Reduce("maximum", self.axes).jvp(outputs, primals, tangents)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        return (Largest(tuple([axis + 1 for axis in self.axes]))(*operands),), (True,)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(inputs[0].shape)

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        rank = inputs[0].rank
        return AxisRule((tuple(range(rank)),), (kept_factors(rank, self.axes),), "maximum")


@dataclass(frozen=True)
class ExponentialSum(Primitive, name="exponential_sum"):
    """`sum(exp(x - shift)) - 1` along axes of x, which shift has not.

    If the shift is the largest along the axes it is accurate also where that is small: the largest
    terms are ones, and counted.
    """

    axes: tuple[int, ...]
    beside_shift: bool = False
    """Whether the sum is added to the shift, so that more accuracy would not be seen."""

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        x, shift = operands
        if not are_axes(self.axes, x.rank) or not x.dtype.is_float or x.dtype.bits < 32:
            self.ill_typed(f"exponential sum of {x} along axes {self.axes}")
        if shift != x.with_shape(without(x.shape, self.axes)):
            self.ill_typed(f"{x} shifted by {shift} along axes {self.axes}")
        return (shift,)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        x, shift = operands
        shift = np.expand_dims(shift, self.axes)
        with np.errstate(all="ignore"):
            top = x == shift
            terms = np.where(top, 0, np.exp(x - shift))
            count = top.sum(self.axes) - 1
            return (np.asarray(np.sum(terms, self.axes) + count).astype(x.dtype),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        x, shift = operands
        (given, _), (output,) = inputs, outputs
        terms = self.terms(hlo, x, shift, given)
        (sums,) = hlo.lower(Reduce("sum", self.axes), (terms,), (given,), (output,))
        return (self.above_one(hlo, terms, sums, given, output),)

    def terms(self, hlo: Hlo, x: H, shift: H, given: ArrayType) -> H:
        """Emit the exponentials."""
        spread = hlo.broadcast(shift, given, without(range(given.rank), self.axes))
        return hlo.unary("exponential", hlo.binary("subtract", x, spread))

    def above_one(self, hlo: Hlo, terms: H, sums: H, given: ArrayType, output: ArrayType) -> H:
        """Emit the sums of all terms less 1; where that is small, sums of terms other than 1."""
        others = hlo.binary("subtract", terms, hlo.unary("floor", terms))
        (others,) = hlo.lower(Reduce("sum", self.axes), (others,), (given,), (output,))
        # The sum of few ones and others, all to be below 2, tells how many ones there are.
        count = hlo.unary("round_nearest_even", hlo.binary("subtract", sums, others))
        exact = hlo.binary("add", others, less_one(hlo, count, output))
        near = near_one(hlo, sums, output)
        return hlo.select(near, exact, less_one(hlo, sums, output))

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        (x, shift), (dx, dshift) = primals, tangents
        spread = Broadcast(x.shape, without(range(x.ndim), self.axes))
        terms = exp(subtract(x, spread(shift)))
        total: Value | None = None
        if dx is not None:
            total = Reduce("sum", self.axes)(multiply(terms, dx))
        if dshift is not None:
            moved = multiply(-add(outputs[0], 1), dshift)
            total = moved if total is None else add(total, moved)
        return (total,)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        x, shift = each_batched(operands, batched, size)
        axes = tuple([axis + 1 for axis in self.axes])
        return (replace(self, axes=axes)(x, shift),), (True,)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return 6 * size_of(inputs[0].shape)

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        rank = inputs[0].rank
        kept = kept_factors(rank, self.axes)
        return AxisRule((along(rank, self.axes), kept), (kept,))


def less_one(hlo: Hlo, x: H, given: ArrayType) -> H:
    """Emit numbers less 1."""
    return hlo.binary("subtract", x, hlo.full(1, given))


def near_one(hlo: Hlo, sums: H, output: ArrayType) -> H:
    """Return whether sums are near 1."""
    distance = hlo.unary("abs", less_one(hlo, sums, output))
    return hlo.compare("LT", distance, hlo.full(NEAR_ONE, output))


# The place of the extreme along an axis.


def first_extreme(
    hlo: Hlo, kind: Extreme, dtype: DType
) -> Callable[[Sequence[H], Sequence[H]], Sequence[H]]:
    """Return a function that keeps the more extreme of two elements with places, or the first.

    A NaN is more extreme than all numbers.
    """
    better = "GT" if kind == "maximum" else "LT"

    def combine(old: Sequence[H], new: Sequence[H]) -> Sequence[H]:
        (x, i), (y, j) = old, new
        x_wins = hlo.compare(better, x, y)
        tied = hlo.compare("EQ", x, y)
        if dtype.is_float:
            x_nan, y_nan = hlo.compare("NE", x, x), hlo.compare("NE", y, y)
            x_wins = hlo.binary("or", x_wins, x_nan)  # unless y is NaN too
            tied = hlo.binary("or", tied, hlo.binary("and", x_nan, y_nan))
        first = hlo.compare("LT", i, j)
        takes_x = hlo.select(tied, first, x_wins)
        return hlo.select(takes_x, x, y), hlo.select(takes_x, i, j)

    return combine


@dataclass(frozen=True)
class ArgReduce(WithoutTangents, name="arg_reduce"):
    """The place along an axis at which the extreme is first reached; NaN is the most extreme."""

    kind: Extreme
    axis: int
    dtype: DType

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (x,) = operands
        if (
            not are_axes((self.axis,), x.rank)
            or not reducible(self.kind, x.dtype)
            or not self.dtype.is_integer
        ):
            self.ill_typed(f"{self.dtype} index of the {self.kind} of {x} along axis {self.axis}")
        return (ArrayType(self.dtype, without(x.shape, (self.axis,))),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        x = combinable(operands[0])
        if not x.shape[self.axis]:
            return (np.zeros(without(x.shape, (self.axis,)), to_numpy(self.dtype)),)
        find = np.argmax if self.kind == "maximum" else np.argmin
        return (np.asarray(find(x, axis=self.axis)).astype(to_numpy(self.dtype)),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (x,), (given,), (output,) = operands, inputs, outputs
        counted = given.with_dtype(self.dtype)
        (counts,) = hlo.op("iota", (), (counted,), {"iota_dimension": self.axis})
        inits = (
            hlo.full(identity(self.kind, given.dtype), ArrayType(given.dtype)),
            hlo.full(0, ArrayType(self.dtype)),
        )
        best = given.with_shape(output.shape)
        combine = first_extreme(hlo, self.kind, given.dtype)
        _, place = hlo.reduce((x, counts), inits, (self.axis,), (best, output), combine)
        return (place,)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        return (ArgReduce(self.kind, self.axis + 1, self.dtype)(*operands),), (True,)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(inputs[0].shape)

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        rank, axes = inputs[0].rank, (self.axis,)
        return AxisRule((along(rank, axes),), (kept_factors(rank, axes),))


# Linear recurrences along an axis, and neighbours along one.
#
# They are the derivatives of cumulative products, to any order and also at zeros, where dividing by
# an element is impossible.


def before(x: Value, axis: int, fill: float, *, reverse: bool = False) -> Value:
    """In place of each element the one before it along an axis, a number before the first.

    If `reverse`, the one after it.
    """
    step = -1 if reverse else 1
    low = tuple([step if a == axis else 0 for a in range(x.ndim)])
    high = tuple([-each for each in low])
    return Pad(low, high, (0,) * x.ndim)(x, x.builder.literal(fill, x.dtype))


@dataclass(frozen=True)
class LinearRecurrence(Primitive, name="linear_recurrence"):
    """`h[k] = a[k] * h[k-1] + b[k]` along an axis, and `h[0] = b[0]`; operands a, b, of one type.

    If `reverse`, from the end: `h[k] = a[k] * h[k+1] + b[k]`.  Floats of 16 bits are computed in
    f32.  The work is linear in the size, the steps that depend on each other are logarithmic;
    factors are multiplied with each other first, so that infinities may end as NaN.
    """

    axis: int
    reverse: bool = False

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        a, b = operands
        if (
            a.dtype is not b.dtype
            or not a.dtype.is_number
            or a.rank != b.rank
            or not are_axes((self.axis,), a.rank)
            or not same_sizes(facts, a.shape, b.shape)
        ):
            self.ill_typed(f"operands are {a} and {b}, along axis {self.axis}")
        return (b,)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        dtype = operands[0].dtype
        wide = to_numpy(_accumulator(from_numpy(dtype)))
        a, b = (np.moveaxis(operand, self.axis, 0).astype(wide) for operand in operands)
        result = np.empty_like(b)
        if self.reverse:
            a, b = np.flip(a, 0), np.flip(b, 0)
        result[:1] = b[:1]
        with np.errstate(all="ignore"):
            for k in range(1, len(b)):
                result[k] = a[k] * result[k - 1] + b[k]
        result = np.flip(result, 0) if self.reverse else result
        return (np.moveaxis(result.astype(dtype), 0, self.axis),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (output,) = outputs
        shape = hlo.shape(output.shape)
        if 0 in shape:
            return (operands[1],)
        lines = (prod(shape[: self.axis]), shape[self.axis], prod(shape[self.axis + 1 :]))
        wide = ArrayType(_accumulator(output.dtype), lines)
        a, b = (hlo.convert(hlo.reshape(x, output.with_shape(lines)), wide) for x in operands)
        along = {"dimensions": hlo.i64_array((1,))}
        if self.reverse:
            a, b = (hlo.op("reverse", (x,), (wide,), along)[0] for x in (a, b))
        result = _Lines(hlo, wide.dtype).prefixes(a, b, lines)
        if self.reverse:
            (result,) = hlo.op("reverse", (result,), (wide,), along)
        return (hlo.reshape(hlo.convert(result, output.with_shape(lines)), output),)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        (a, _), (da, db), (h,) = primals, tangents, outputs
        added = db
        if da is not None:
            change = multiply(before(h, self.axis, 0, reverse=self.reverse), da)
            added = change if db is None else add(change, db)
        assert added is not None
        return (self(a, added),)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,), (a, _) = cotangents, operands
        assert cotangent is not None
        if isinstance(a, ArrayType):
            self.ill_typed("it is linear in what is added, not in the factors")
        # A summand at k affects k, and through the factor there k + 1.
        factors = before(a, self.axis, 0, reverse=not self.reverse)
        return None, LinearRecurrence(self.axis, not self.reverse)(factors, cotangent)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        both = each_batched(operands, batched, size)
        return (LinearRecurrence(self.axis + 1, self.reverse)(*both),), (True,)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(outputs[0].shape) * 2

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        factors = along(inputs[0].rank, (self.axis,))
        return AxisRule((factors, factors), (factors,))


def _accumulator(dtype: DType) -> DType:
    return F32 if dtype.is_float and dtype.bits == 16 else dtype


CHUNK = 8
"""The number of steps in turn; a shorter recurrence does the rest."""


@dataclass(frozen=True, slots=True)
class _Lines:
    """Emits the recurrence along the second of three axes."""

    hlo: Hlo
    dtype: DType

    def prefixes(self, a: H, b: H, shape: tuple[int, int, int]) -> H:
        """Emit the recurrence: over chunks, each as one step, then over the steps within each.

        Two steps are one, of `a[k] * a[k-1]` and `a[k] * b[k-1] + b[k]` (Blelloch, "Prefix sums
        and their applications", 1990, section 1.4).
        """
        outer, count, inner = shape
        length = min(count, CHUNK)
        chunks = -(-count // length)
        split = (outer, chunks, length, inner)
        factors, terms = (self.split(x, shape, split) for x in (a, b))
        if chunks == 1:
            results = self.steps(factors[1:], terms[0], terms[1:])
        else:
            factor = factors[0]
            for each in factors[1:]:
                factor = self.hlo.binary("multiply", each, factor)
            term = self.steps(factors[1:], terms[0], terms[1:])[-1]
            line = (outer, chunks, inner)
            factor, term = (self.hlo.reshape(x, self.type(line)) for x in (factor, term))
            single = (outer, chunks, 1, inner)
            ends = self.hlo.reshape(self.prefixes(factor, term, line), self.type(single))
            # Before the first chunk there is nothing: its first factor, which may be infinite, must
            # not be used.
            first = self.moved(self.moved(factors[0], single, -1), single, 1)
            results = self.steps([first, *factors[1:-1]], self.moved(ends, single, 1), terms[:-1])
            results = [*results[1:], ends]
        (joined,) = self.hlo.op("concatenate", results, (self.type(split),), {"dimension": 2})
        flat = (outer, chunks * length, inner)
        return self.padded(self.hlo.reshape(joined, self.type(flat)), flat, 0, count - flat[1])

    def steps(self, factors: Sequence[H], start: H, terms: Sequence[H]) -> list[H]:
        """Return the start, and the state after each step."""
        results = [start]
        for factor, term in zip(factors, terms, strict=True):
            product = self.hlo.binary("multiply", factor, results[-1])
            results.append(self.hlo.binary("add", product, term))
        return results

    def split(self, x: H, shape: Sequence[int], split: Sequence[int]) -> list[H]:
        """Emit the first, second, … elements of the chunks."""
        outer, chunks, length, inner = split
        x = self.padded(x, shape, 0, chunks * length - shape[1])
        x = self.hlo.reshape(x, self.type(split))
        return [
            self.hlo.slice(x, (0, 0, place, 0), (outer, chunks, place + 1, inner))
            for place in range(length)
        ]

    def moved(self, x: H, shape: Sequence[int], by: int) -> H:
        """Move elements to later places, with zeros in front; to earlier ones if negative."""
        return self.padded(x, shape, by, -by)

    def padded(self, x: H, shape: Sequence[int], low: int, high: int) -> H:
        """More zeros, or fewer elements, at the ends of the second axis."""
        if not low and not high:
            return x
        rest = (0,) * (len(shape) - 2)
        zero = self.hlo.full(0, ArrayType(self.dtype))
        return self.hlo.pad(x, zero, (0, low, *rest), (0, high, *rest))

    def type(self, shape: Sequence[int]) -> ArrayType:
        """Return the type of an array of this shape."""
        return ArrayType(self.dtype, tuple(shape))
