"""Linear recurrences along an axis, and neighbours along one.

They are what cumulative products have as derivatives, to any order and also at zeros, where
dividing by an element is no way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from pscdsl._src.ir.numpy_dtypes import from_numpy, to_numpy
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl._src.primitives.elementwise import add, multiply
from pscdsl._src.primitives.shaping import Pad, are_axes, each_batched, same_sizes
from pscdsl.typing.array_types import ArrayType, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import F32, DType

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value


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
        # What is added at k reaches k, and by way of the factor there k + 1.
        factors = before(a, self.axis, 0, reverse=not self.reverse)
        return None, LinearRecurrence(self.axis, not self.reverse)(factors, cotangent)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        both = each_batched(operands, batched, size)
        return (LinearRecurrence(self.axis + 1, self.reverse)(*both),), (True,)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(outputs[0].shape) * 2


def _accumulator(dtype: DType) -> DType:
    return F32 if dtype.is_float and dtype.bits == 16 else dtype


CHUNK = 8
"""So many steps are taken one after the other, the rest by a recurrence of so much fewer steps."""


@dataclass(frozen=True, slots=True)
class _Lines:
    """Emits the recurrence along the second of three axes."""

    hlo: Hlo
    dtype: DType

    def prefixes(self, a: H, b: H, shape: tuple[int, int, int]) -> H:
        """The recurrence: of chunks, each as one step, then of the steps within each.

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
            # Before the first chunk there is nothing: its first factor, which may be infinite,
            # must not be used.
            first = self.moved(self.moved(factors[0], single, -1), single, 1)
            results = self.steps([first, *factors[1:-1]], self.moved(ends, single, 1), terms[:-1])
            results = [*results[1:], ends]
        (joined,) = self.hlo.op("concatenate", results, (self.type(split),), {"dimension": 2})
        flat = (outer, chunks * length, inner)
        return self.padded(self.hlo.reshape(joined, self.type(flat)), flat, 0, count - flat[1])

    def steps(self, factors: Sequence[H], start: H, terms: Sequence[H]) -> list[H]:
        """The start, and what each step makes of it."""
        results = [start]
        for factor, term in zip(factors, terms, strict=True):
            product = self.hlo.binary("multiply", factor, results[-1])
            results.append(self.hlo.binary("add", product, term))
        return results

    def split(self, x: H, shape: Sequence[int], split: Sequence[int]) -> list[H]:
        """The first, second, … elements of the chunks."""
        outer, chunks, length, inner = split
        x = self.padded(x, shape, 0, chunks * length - shape[1])
        x = self.hlo.reshape(x, self.type(split))
        return [
            self.hlo.slice(x, (0, 0, place, 0), (outer, chunks, place + 1, inner))
            for place in range(length)
        ]

    def moved(self, x: H, shape: Sequence[int], by: int) -> H:
        """Elements at places further on, zeros in front; further back if negative."""
        return self.padded(x, shape, by, -by)

    def padded(self, x: H, shape: Sequence[int], low: int, high: int) -> H:
        """More zeros, or fewer elements, at the ends of the second axis."""
        if not low and not high:
            return x
        rest = (0,) * (len(shape) - 2)
        zero = self.hlo.full(0, ArrayType(self.dtype))
        return self.hlo.pad(x, zero, (0, low, *rest), (0, high, *rest))

    def type(self, shape: Sequence[int]) -> ArrayType:
        """The type of an array of this shape."""
        return ArrayType(self.dtype, tuple(shape))
