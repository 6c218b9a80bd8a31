"""Which library functions make new memory: results that no argument and nobody else holds.

The table says what NumPy's own functions do, under plain Python.  Whatever is not in it may give
back a view, or the very array that it was given: `tests/numpy/test_new_memory.py` calls each
function that kernels know in many ways, and asks NumPy whether results share arguments' memory.
"""

from __future__ import annotations

from typing import Any, Final

from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl.numpy.methods import BoundMethod

_FUNCTIONS: Final = {
    "numpy": (
        "abs absolute acos acosh add add.accumulate add.outer add.reduce all amax amin angle "
        "any append arange arccos arccosh arcsin arcsinh arctan arctan2 arctan2.outer arctanh "
        "argmax argmin argpartition argsort argwhere around array asin asinh astype atan atan2 "
        "atanh average bartlett bincount bitwise_and bitwise_and.outer bitwise_and.reduce "
        "bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or "
        "bitwise_or.outer bitwise_or.reduce bitwise_right_shift bitwise_xor bitwise_xor.outer "
        "bitwise_xor.reduce blackman block cbrt ceil choose clip column_stack compress concat "
        "concatenate conj conjugate convolve copy copysign corrcoef correlate cos cosh "
        "count_nonzero cov cross cumprod cumsum cumulative_prod cumulative_sum deg2rad degrees "
        "delete diag_indices diagflat digitize divide divide.outer divmod dot dstack ediff1d "
        "empty empty_like equal equal.outer exp exp2 expm1 extract eye fabs fix flatnonzero "
        "float_power float_power.outer floor floor_divide floor_divide.outer fmax fmax.outer "
        "fmin fmin.outer fmod full full_like gcd geomspace gradient greater greater.outer "
        "greater_equal greater_equal.outer hamming hanning heaviside hstack hypot hypot.outer "
        "i0 identity indices inner insert interp intersect1d invert isclose iscomplex isfinite "
        "isin isinf isnan isneginf isposinf isreal kaiser kron lcm ldexp left_shift less "
        "less.outer less_equal less_equal.outer lexsort linspace log log10 log1p log2 logaddexp "
        "logaddexp.outer logaddexp2 logical_and logical_and.accumulate logical_and.outer "
        "logical_and.reduce logical_not logical_or logical_or.accumulate logical_or.outer "
        "logical_or.reduce logical_xor logical_xor.outer logspace matmul matvec max maximum "
        "maximum.accumulate maximum.outer maximum.reduce mean median meshgrid min minimum "
        "minimum.accumulate minimum.outer minimum.reduce mod mod.outer modf multiply "
        "multiply.accumulate multiply.outer multiply.reduce nanargmax nanargmin nancumprod "
        "nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd "
        "nansum nanvar negative nextafter nonzero not_equal not_equal.outer ones ones_like "
        "outer pad partition percentile polyadd polymul polysub polyval positive pow power "
        "power.outer prod ptp quantile rad2deg radians reciprocal remainder remainder.outer "
        "repeat resize right_shift rint roll round row_stack searchsorted select setdiff1d "
        "setxor1d sign signbit sin sinc sinh sort sort_complex sqrt square stack std subtract "
        "subtract.outer sum take take_along_axis tan tanh tensordot tile trace trapezoid tri "
        "tril tril_indices triu triu_indices true_divide true_divide.outer trunc union1d unique "
        "unique_all unique_counts unique_inverse unique_values unravel_index unwrap vander var "
        "vecdot vecmat vstack where zeros zeros_like"
    ),
    "numpy.linalg": (
        "cholesky cond cross det eig eigh eigvals eigvalsh inv lstsq matmul matrix_norm "
        "matrix_rank multi_dot norm outer pinv qr slogdet solve svd svdvals tensordot tensorinv "
        "tensorsolve trace vecdot vector_norm"
    ),
    "numpy.fft": (
        "fft fftfreq fftshift hfft ifft ifftshift ihfft irfft irfft2 irfftn rfft rfft2 rfftfreq "
        "rfftn"
    ),
}
NEW_FUNCTIONS: Final = frozenset(
    f"{module}.{name}" for module, names in _FUNCTIONS.items() for name in names.split()
)
"""Functions whose results are arrays of their own, whatever they are given."""

NEW_METHODS: Final = frozenset(
    (
        "all any argmax argmin argpartition argsort astype choose clip compress copy cumprod "
        "cumsum dot flatten max mean min nonzero prod repeat round searchsorted std sum take "
        "trace var"
    ).split()
)
"""Methods of arrays whose results are arrays of their own."""


def makes_new(function: Any) -> bool:
    """Whether a function, or a method of an array, gives an array that nobody else holds."""
    if isinstance(function, BoundMethod):
        return function.name in NEW_METHODS
    if not isinstance(function, Meaning):
        return False
    # One meaning may have several names, of which some give views.
    names = {name for name, meaning in MEANINGS.items() if meaning is function}
    return bool(names) and names <= NEW_FUNCTIONS
