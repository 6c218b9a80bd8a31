"""What NumPy's functions return: new memory, a view of a known kind, a scalar, or who knows.

The tables are lists of what is known.  Whatever is in none of them may give back a view, or the
very array that it was given, and is followed as such: `tests/numpy/test_new_memory.py` calls each
function that kernels know in many ways, and asks NumPy whether results share arguments' memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from pscdsl._src.frontend.interpreter.places import Arranged
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl.typing.python_containers import is_known_array


def _qualified(table: Mapping[str, str]) -> frozenset[str]:
    """The qualified names of functions that are written by modules."""
    return frozenset(f"{module}.{name}" for module in table for name in table[module].split())


_FUNCTIONS: Final = {
    "numpy": (
        "abs absolute acos acosh add add.accumulate add.outer add.reduce all amax amin angle "
        "any append arange arccos arccosh arcsin arcsinh arctan arctan2 arctan2.outer arctanh "
        "argmax argmin argpartition argsort argwhere array asin asinh astype atan atan2 "
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
        "maximum.accumulate maximum.outer maximum.reduce mean meshgrid min minimum "
        "minimum.accumulate minimum.outer minimum.reduce mod mod.outer modf multiply "
        "multiply.accumulate multiply.outer multiply.reduce nanargmax nanargmin nancumprod "
        "nancumsum nanmax nanmean nanmin nanpercentile nanprod nanquantile nanstd "
        "nansum nanvar negative nextafter nonzero not_equal not_equal.outer ones ones_like "
        "outer pad partition percentile polyadd polymul polysub polyval positive pow power "
        "power.outer prod ptp quantile rad2deg radians reciprocal remainder remainder.outer "
        "repeat resize right_shift rint roll row_stack searchsorted select setdiff1d "
        "setxor1d spacing sign signbit sin sinc sinh sort sort_complex sqrt square stack std "
        "subtract subtract.outer sum take take_along_axis tan tanh tensordot tile trace trapezoid "
        "tri tril tril_indices triu triu_indices true_divide true_divide.outer trunc union1d "
        "unique unique_all unique_counts unique_inverse unique_values unravel_index unwrap vander "
        "var vecdot vecmat vstack where zeros zeros_like"
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
NEW_FUNCTIONS: Final = _qualified(_FUNCTIONS)
"""Functions whose results are arrays of their own, whatever they are given."""

NEW_METHODS: Final = frozenset(
    (
        "all any argmax argmin argpartition argsort astype choose clip compress copy cumprod "
        "cumsum dot flatten max mean min nonzero prod repeat searchsorted std sum take "
        "trace var"
    ).split()
)
"""Methods of arrays whose results are arrays of their own."""

_SCALARS: Final = {
    "numpy": (
        "exp expm1 log log1p sqrt sin cos tan arcsin asin arccos acos arctan atan sinh cosh tanh "
        "arcsinh asinh arccosh acosh arctanh atanh cbrt arctan2 atan2 copysign nextafter add "
        "subtract multiply divide true_divide floor_divide remainder mod fmod negative positive "
        "absolute abs fabs sign square signbit floor ceil trunc rint bitwise_and bitwise_or "
        "bitwise_xor invert bitwise_not bitwise_invert left_shift bitwise_left_shift right_shift "
        "bitwise_right_shift equal not_equal less less_equal greater greater_equal maximum "
        "minimum conjugate conj power pow float_power divmod modf reciprocal exp2 log2 log10 "
        "logaddexp logaddexp2 hypot heaviside deg2rad radians rad2deg degrees ldexp "
        "bitwise_count gcd lcm logical_and logical_or logical_xor logical_not isnan isfinite "
        "isinf fmax fmin spacing "
        "sum prod max amax min amin ptp all any count_nonzero nansum nanprod nanmax nanmin "
        "argmax argmin nanargmax nanargmin mean var std nanmean nanvar nanstd average "
        "quantile percentile nanquantile nanpercentile corrcoef around round fix clip sinc angle "
        "isclose iscomplex isreal isneginf isposinf choose take digitize interp polyval lexsort "
        "kron unravel_index add.outer arctan2.outer bitwise_and.outer bitwise_or.outer "
        "bitwise_xor.outer divide.outer equal.outer float_power.outer floor_divide.outer "
        "fmax.outer fmin.outer greater.outer greater_equal.outer hypot.outer less.outer "
        "less_equal.outer logaddexp.outer logical_and.outer logical_or.outer logical_xor.outer "
        "maximum.outer minimum.outer mod.outer multiply.outer not_equal.outer power.outer "
        "remainder.outer subtract.outer true_divide.outer "
        "matmul vecdot dot inner vdot trace trapezoid searchsorted add.reduce multiply.reduce "
        "maximum.reduce minimum.reduce logical_and.reduce logical_or.reduce bitwise_and.reduce "
        "bitwise_or.reduce bitwise_xor.reduce"
    ),
    "numpy.linalg": (
        "det matrix_rank norm vector_norm matrix_norm cond trace vecdot matmul multi_dot slogdet "
        "lstsq"
    ),
}
SCALAR_FUNCTIONS: Final = _qualified(_SCALARS)
"""Functions whose results without axes are scalars, which no name can change for another."""
SCALAR_METHODS: Final = frozenset(
    (
        "all any argmax argmin choose clip dot item max mean min prod round searchsorted std sum "
        "take trace var"
    ).split()
)
"""Methods of which the same holds."""

C_ORDER: Final = frozenset(
    f"numpy.{name}" for name in "zeros ones empty full eye identity arange".split()
)
"""Functions whose results lie in C order."""

ARRANGING: Final = frozenset(
    f"numpy.{name}"
    for name in (
        "transpose permute_dims matrix_transpose swapaxes moveaxis rollaxis "
        "flip fliplr flipud rot90 linalg.matrix_transpose"
    ).split()
)
"""Functions that give a view with the axes in another order, or backwards."""


def _of_a_vector(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """`np.median(x)`, `np.median(x, axis=0)`: of an array with axes, along one of them or all."""
    axis = kwargs.get("axis", args[1] if len(args) == 2 else None)
    plain = len(args) <= 2 and kwargs.keys() <= {"axis"}
    return plain and _has_axes(args) and (axis is None or type(axis) is int)


def _of_floats(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """`np.round(x, 2)` of no integers, which older versions of NumPy give back."""
    plain = len(args) <= 2 and kwargs.keys() <= {"decimals"}
    return plain and _has_axes(args) and getattr(args[0].dtype, "is_inexact", False)


def _of_steps(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """`np.diff(x)`, which gives back what it is given where `n` is 0."""
    n = kwargs.get("n", args[1] if len(args) > 1 else 1)
    return _has_axes(args) and type(n) is int and n > 0


def _of_operands(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """`np.einsum("ij,j->i", a, x)`: a sum over several arrays shows none of them."""
    return not kwargs and len(args) > 2 and isinstance(args[0], str)


def _of_powers(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """`np.linalg.matrix_power(a, 3)`: the first power is the matrix."""
    return not kwargs and len(args) == 2 and type(args[1]) is int and args[1] != 1


def _of_points(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """`np.polyfit(x, y, 2)`: the coefficients alone."""
    return len(args) == 3 and kwargs.keys() <= {"rcond", "w"}


def _whatever(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """A function that is known to make new memory if `copy` is not given."""
    return "copy" not in kwargs and len(args) == 1 and _has_axes(args)


def _has_axes(args: Sequence[Any]) -> bool:
    return bool(args) and getattr(args[0], "ndim", 0) > 0


NEW_CALLS: Final[dict[str, Callable[[Sequence[Any], Mapping[str, Any]], bool]]] = {
    "numpy.median": _of_a_vector,
    "numpy.nanmedian": _of_a_vector,
    "numpy.round": _of_floats,
    "numpy.around": _of_floats,
    "numpy.diff": _of_steps,
    "numpy.einsum": _of_operands,
    "numpy.nan_to_num": _whatever,
    "numpy.linalg.matrix_power": _of_powers,
    "numpy.polyfit": _of_points,
}
"""Which calls of functions that may give views give an array of their own, or a scalar."""


def call_makes_new(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether the result of a call is known to be new, and without axes a scalar."""
    known = NEW_CALLS.get(name)
    return known is not None and known(args, kwargs)


OF_THE_SAME: Final = frozenset(
    f"numpy.{name}"
    for name in (
        "reshape ravel squeeze expand_dims asarray ascontiguousarray atleast_1d atleast_2d "
        "atleast_3d"
    ).split()
)
"""Functions that give the elements of one array, each once: that array, a view or a copy of it."""


@lru_cache(maxsize=1024)
def names_of(function: Meaning) -> frozenset[str]:
    """The qualified names under which a function is known."""
    return frozenset(name for name, meaning in MEANINGS.items() if meaning is function)


def makes_new(function: Meaning) -> bool:
    """Whether all that a function returns are arrays that nobody else holds."""
    return _has_names_in(function, NEW_FUNCTIONS)


def gives_scalars(function: Meaning) -> bool:
    """Whether what a function returns without axes is a scalar."""
    return _has_names_in(function, SCALAR_FUNCTIONS)


def lies_in_c_order(function: Meaning) -> bool:
    """Whether what a function returns lies in C order, if it is asked for no other."""
    return _has_names_in(function, C_ORDER)


def _has_names_in(function: Meaning, table: frozenset[str]) -> bool:
    """Whether a function has names, and all of them stand in a table."""
    names = names_of(function)
    return bool(names) and names <= table


def inputs_of_ufunc(name: str) -> int | None:
    """How many arrays a ufunc takes before the one that it writes to; None if it is none."""
    found = getattr(np, name.removeprefix("numpy."), None) if name.startswith("numpy.") else None
    return found.nin if isinstance(found, np.ufunc) and found.nout == 1 else None


def arrangement(
    name: str, rank: int, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Arranged | None:
    """How a view shows an array of a rank, as NumPy makes it; None if it makes none."""
    function: Any = np
    for part in name.split(".")[1:]:
        function = getattr(function, part, None)
    # An array without memory of its own: its shape and its strides say what became of each axis.
    shape = tuple(range(2, 2 + rank))
    strides = tuple(8 * 10**axis for axis in range(rank))
    whole = np.lib.stride_tricks.as_strided(np.zeros(1), shape, strides, writeable=False)
    try:
        found = function(whole, *args, **kwargs)
    except (TypeError, ValueError, IndexError):
        return None
    if not is_known_array(found):
        return None
    view: Any = found
    if sorted(view.shape) != sorted(shape):
        return None
    axes = tuple(size - 2 for size in view.shape)
    backwards = tuple(axis for axis, stride in enumerate(view.strides) if stride < 0)
    return Arranged(axes, backwards)
