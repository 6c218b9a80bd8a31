"""Sums of exponentials, and the largest numbers, by which they are shifted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl._src.primitives.elementwise import add, exp, multiply, subtract
from pscdsl._src.primitives.reductions import Reduce, combinable, combined
from pscdsl._src.primitives.shaping import Broadcast, are_axes, each_batched, without
from pscdsl.typing.array_types import ArrayType, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value

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


@dataclass(frozen=True)
class ExponentialSum(Primitive, name="exponential_sum"):
    """`sum(exp(x - shift)) - 1` along axes of x, which shift has not.

    If the shift is the largest along the axes it is accurate also where that is small: the largest
    terms are ones, and counted.
    """

    axes: tuple[int, ...]
    beside_shift: bool = False
    """Whether it is added to the shift, beside which it is not seen more accurately."""

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
            count = np.sum(top, self.axes) - 1
            return (np.asarray(np.sum(terms, self.axes) + count).astype(x.dtype),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        x, shift = operands
        (given, _), (output,) = inputs, outputs
        terms = self.terms(hlo, x, shift, given)
        (sums,) = hlo.lower(Reduce("sum", self.axes), (terms,), (given,), (output,))
        return (self.above_one(hlo, terms, sums, given, output),)

    def terms(self, hlo: Hlo, x: H, shift: H, given: ArrayType) -> H:
        """The exponentials."""
        spread = hlo.broadcast(shift, given, without(range(given.rank), self.axes))
        return hlo.unary("exponential", hlo.binary("subtract", x, spread))

    def above_one(self, hlo: Hlo, terms: H, sums: H, given: ArrayType, output: ArrayType) -> H:
        """The sums of all terms less 1; where that is small, of those that are not 1."""
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


def less_one(hlo: Hlo, x: H, given: ArrayType) -> H:
    """Numbers less 1."""
    return hlo.binary("subtract", x, hlo.full(1, given))


def near_one(hlo: Hlo, sums: H, output: ArrayType) -> H:
    """Whether sums are near 1."""
    distance = hlo.unary("abs", less_one(hlo, sums, output))
    return hlo.compare("LT", distance, hlo.full(NEAR_ONE, output))
