"""Functions that XLA on CPUs computes as NumPy does, without what other devices need."""

from __future__ import annotations

from collections.abc import Sequence

from pscdsl._src.ir.hlo import TargetHlo
from pscdsl._src.ir.primitive import H, Types
from pscdsl._src.primitives.fft import Fft, transform
from pscdsl._src.primitives.pointwise import Elementwise
from pscdsl._src.targets.forms import Translation


@Translation
def inverse_of_real(
    primitive: Fft, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H] | None:
    """The inverse transform to real numbers along several axes at once."""
    if primitive.kind != "irfft" or primitive.axes == 1:
        return None
    lengths = hlo.shape(outputs[0].shape)[-primitive.axes :]
    return (transform(hlo, "irfft", operands[0], outputs[0], lengths),)


@Translation
def erf(
    primitive: Elementwise, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H]:
    """The error function, of tiny numbers too."""
    return (hlo.unary("chlo.erf", operands[0]),)
