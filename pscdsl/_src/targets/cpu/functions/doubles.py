"""Functions of single precision that are computed in double precision, and rounded once."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from pscdsl._src.ir.hlo import TargetHlo
from pscdsl._src.ir.primitive import H, Hlo
from pscdsl._src.primitives.formulas.arithmetic import Emitted, Number, OverOperations
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dtypes import F32, F64, I32, I64

_SHIFT = 1.5 * 2.0**52
"""Added to an integer below 2^51 in size, it moves that to the lowest bits."""
FEWEST = 1 << 14
"""From so many elements on it pays: a program with few operations, as XLA counts them, is run at
once, by the thread that calls it, and a function of the C library counts as none."""
FEWEST_IN_LOOPS = 32


def pays(hlo: TargetHlo, given: ArrayType) -> bool:
    """Whether an array is large enough for it."""
    return prod(hlo.shape(given.shape)) >= (FEWEST_IN_LOOPS if hlo.in_loop else FEWEST)


class Doubles:
    """Arithmetic of 64 bits on arrays of one shape, with that of 32 bits beside it."""

    def __init__(self, hlo: Hlo, given: ArrayType) -> None:
        self.hlo = hlo
        self.double = OverOperations(hlo, given.with_dtype(F64))
        self.single = OverOperations(hlo, given.with_dtype(F32))
        self.int32 = OverOperations(hlo, given.with_dtype(I32))
        self.int64 = OverOperations(hlo, given.with_dtype(I64))

    def wide(self, x: Number) -> Emitted:
        """A number of 32 bits as one of 64."""
        return Emitted(self.double, self.hlo.convert(x.handle, self.double.type))

    def narrow(self, x: Number) -> Emitted:
        """A number of 64 bits rounded to 32."""
        return Emitted(self.single, self.hlo.convert(x.handle, self.single.type))

    def same_bits(self, x: Number, to: OverOperations) -> Emitted:
        """The bits of a number as another dtype of the same width."""
        return Emitted(to, self.hlo.op("bitcast_convert", (x.handle,), (to.type,))[0])

    def nearest(self, x: Number) -> Emitted:
        """The nearest integer, as a floating-point number."""
        return Emitted(x.at, self.hlo.unary("round_nearest_even", x.handle))

    def shifted(self, x: Number, operation: str, count: int) -> Emitted:
        """The bits of an integer moved, by the operation's name."""
        by = self.hlo.full(count, x.at.type)
        return Emitted(x.at, self.hlo.binary(operation, x.handle, by))

    def masked(self, x: Number, mask: int) -> Emitted:
        """These bits of an integer."""
        return Emitted(x.at, self.hlo.binary("and", x.handle, self.hlo.full(mask, x.at.type)))

    def low_bits(self, x: Number) -> Emitted:
        """An integral number below 2^51 in size, right in the lowest 51 bits of an i64."""
        return self.same_bits(x + _SHIFT, self.int64)


def emitted(x: H, at: OverOperations) -> Emitted:
    """A value of the module with operators."""
    return Emitted(at, x)


def series(x: Number, coefficients: Sequence[float]) -> Number:
    """A polynomial by Estrin's scheme, in few steps after one another; lowest power first."""
    terms: list[Number] = list(coefficients)
    while len(terms) > 1:
        pairs = zip(terms[::2], terms[1::2], strict=False)
        rest = terms[-1:] if len(terms) % 2 else []
        terms = [*(high * x + low for low, high in pairs), *rest]
        x = x * x
    return terms[0]
