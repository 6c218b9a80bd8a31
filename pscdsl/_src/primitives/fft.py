"""The discrete Fourier transform along the last axes, of complex numbers and of real ones.

Of the transform of real numbers only half of the last axis is stored: the other half is its
conjugate, counted from the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from pscdsl._src.ir.axis_rules import AxisRule
from pscdsl._src.ir.numpy_dtypes import from_numpy, to_numpy
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl._src.primitives.elementwise import (
    Select,
    add,
    bitwise_or,
    conjugate,
    equal,
    multiply,
)
from pscdsl._src.primitives.shaping import Iota, at_most
from pscdsl.typing.array_types import ArrayType, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import F32, F64, I32

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value

FftKind: TypeAlias = Literal["fft", "ifft", "rfft", "irfft"]
MOST_AXES: Final = 3
"""Along how many axes one primitive transforms at most; StableHLO's operation has this bound."""
FLOPS: Final = 50
"""For each complex element and axis: 5 times the logarithm of about a thousand, the length being
a size, and sizes having no logarithms."""
_MEANINGS: Final[dict[FftKind, Callable[..., Any]]] = {
    "fft": np.fft.fftn,
    "ifft": np.fft.ifftn,
    "rfft": np.fft.rfftn,
    "irfft": np.fft.irfftn,
}


@dataclass(frozen=True)
class Fft(Primitive, name="fft"):
    """The Fourier transform along the last `axes` axes.

    fft     sums of x[j] exp(-2 pi i j k / n); complex to complex
    ifft    its inverse, divided by the number of elements
    rfft    fft of real numbers: the first n // 2 + 1 elements of the last axis
    irfft   its inverse: `length` real numbers along the last axis; the imaginary parts that the
            transform of real numbers has not are ignored
    """

    kind: FftKind
    axes: int = 1
    length: Size | None = None

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (x,) = operands
        if not 1 <= self.axes <= min(MOST_AXES, x.rank):
            self.ill_typed(f"{self.axes} axes of {x}")
        if (self.length is not None) != (self.kind == "irfft"):
            self.ill_typed(f"{self.kind} to the length {self.length}")
        if x.dtype not in (F32, F64) if self.kind == "rfft" else not x.dtype.is_complex:
            self.ill_typed(f"{self.kind} of {x}")
        lengths = x.shape[-self.axes :] if self.length is None else (*x.shape[:-1], self.length)
        if not all(at_most(facts, 1, size) for size in lengths[-self.axes :]):
            self.ill_typed(f"{x} may have no elements to transform")
        if self.kind == "rfft":
            half = x.shape[-1] // 2 + 1
            return (ArrayType(x.dtype.complex, (*x.shape[:-1], half)),)
        if self.length is None:
            return (x,)
        if not facts.equal(x.shape[-1], self.length // 2 + 1):
            self.ill_typed(f"{x} is not half a transform of length {self.length}")
        return (ArrayType(x.dtype.real, (*x.shape[:-1], self.length)),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        (x,) = operands
        axes = range(x.ndim - self.axes, x.ndim)
        lengths = list(x.shape[x.ndim - self.axes :])
        if self.length is not None:
            lengths[-1] = here.size(self.length)
        with np.errstate(all="ignore"):
            result = _MEANINGS[self.kind](x, lengths, axes)
        given = from_numpy(x.dtype)
        wanted = given.real if self.kind == "irfft" else given.complex
        return (np.asarray(result, to_numpy(wanted)),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (x,), (given,), (output,) = operands, inputs, outputs
        lengths = hlo.shape(output.shape if self.kind == "irfft" else given.shape)
        lengths = lengths[len(lengths) - self.axes :]
        if self.kind == "irfft" and self.axes > 1:
            # Devices differ on numbers that are no transform of real ones, along several axes.
            x = _inverse_before_last(hlo, x, given, lengths[:-1])
            lengths = lengths[-1:]
        return (transform(hlo, self.kind, x, output, lengths),)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        (tangent,) = tangents
        return (None if tangent is None else self(tangent),)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        """Return the cotangent; the matrix of a whole transform is symmetric.

        Elements of half a transform represent two, except the first, and the last of an even
        length: those count once.
        """
        (ct,), (x,) = cotangents, operands
        if ct is None or self.kind in ("fft", "ifft"):
            return (None if ct is None else self(ct),)
        whole = x.shape if self.kind == "rfft" else ct.shape
        count = ct.builder.size(size_of(whole[-self.axes :]), ct.dtype.real)
        if self.kind == "rfft":
            inverse = Fft("irfft", self.axes, x.shape[-1])
            return (multiply(inverse(_double(conjugate(ct), whole[-1], ends=True)), count * 0.5),)
        forward = Fft("rfft", self.axes)(multiply(ct, 1 / count))
        return (_double(conjugate(forward), whole[-1], ends=False),)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        return self.bind(*operands), (True,)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        """Return an estimate; half as much for real numbers."""
        real = outputs[0] if self.kind == "irfft" else inputs[0]
        flops = FLOPS * self.axes
        return size_of(real.shape) * (flops if real.dtype.is_complex else flops // 2)

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        rank = inputs[0].rank
        return AxisRule.leading(rank - self.axes, (rank,), (rank,))


def _double(z: Value, length: Size, ends: bool) -> Value:
    """Half a transform with its first element doubled, and the last of an even length; or the rest.

    Whether the length is even is not known, but which element is at half of it.
    """
    here = z.builder
    (place,) = here.bind(Iota(z.shape, z.ndim - 1, I32), ())
    at_end = bitwise_or(equal(place, 0), equal(add(place, place), here.size(length, I32)))
    twice: Value = add(z, z)
    return Select()(at_end, twice, z) if ends else Select()(at_end, z, twice)


def transform(hlo: Hlo, kind: str, x: H, output: ArrayType, lengths: Sequence[int]) -> H:
    """Emit a transform along the last axes, of these lengths."""
    attributes = {
        "fft_type": hlo.parse_attribute(f"#stablehlo<fft_type {kind.upper()}>"),
        "fft_length": hlo.i64_array(lengths),
    }
    return hlo.op("fft", (x,), (output,), attributes)[0]


def _inverse_before_last(hlo: Hlo, x: H, given: ArrayType, lengths: Sequence[int]) -> H:
    """Emit the inverse transform along the axes before the last."""
    kept = given.rank - len(lengths) - 1
    to_front = (*range(kept), given.rank - 1, *range(kept, given.rank - 1))
    to_back = (*range(kept), *range(kept + 1, given.rank), kept)
    moved = given.with_shape(tuple([given.shape[axis] for axis in to_front]))
    (x,) = hlo.op("transpose", (x,), (moved,), {"permutation": hlo.i64_array(to_front)})
    x = transform(hlo, "ifft", x, moved, lengths)
    return hlo.op("transpose", (x,), (given,), {"permutation": hlo.i64_array(to_back)})[0]
