"""Functions of elements, whose operands have one dtype and one shape."""

from enum import Enum

import numpy as np

import pscdsl as psc
from jax._checks import BOOL, COMPLEX, INEXACT, NUMBER, REAL, WHOLE, of_kinds, of_one_dtype
from pscdsl import special


class Precision(Enum):
    """The precision of products."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


def alike(*arrays):
    """Return arrays of one dtype and one shape; a scalar meets any shape."""
    found = of_one_dtype(*arrays)
    whole = [each for each in found if np.ndim(each)]
    for each in whole:
        if np.shape(each) != np.shape(whole[0]):
            raise TypeError("arrays must have the same shapes")
    return found


def _strict(function, kinds):
    """Return a function of arrays of one shape and one dtype, which is of one of some kinds."""

    def strict(*arrays):
        return function(*[of_kinds(each, kinds) for each in alike(*arrays)])

    return strict


abs = _strict(np.abs, NUMBER)
acos = _strict(np.acos, INEXACT)
acosh = _strict(np.acosh, INEXACT)
add = _strict(np.add, NUMBER)
asin = _strict(np.asin, INEXACT)
asinh = _strict(np.asinh, INEXACT)
atan = _strict(np.atan, INEXACT)
atan2 = _strict(np.atan2, REAL)
atanh = _strict(np.atanh, INEXACT)
bessel_i0e = _strict(special.i0e, REAL)
bessel_i1e = _strict(special.i1e, REAL)
betainc = _strict(special.betainc, REAL)
bitwise_and = _strict(np.bitwise_and, (*BOOL, *WHOLE))
bitwise_not = _strict(np.bitwise_not, (*BOOL, *WHOLE))
bitwise_or = _strict(np.bitwise_or, (*BOOL, *WHOLE))
bitwise_xor = _strict(np.bitwise_xor, (*BOOL, *WHOLE))
cbrt = _strict(np.cbrt, REAL)
ceil = _strict(np.ceil, REAL)
conj = _strict(np.conj, COMPLEX)
cos = _strict(np.cos, INEXACT)
cosh = _strict(np.cosh, INEXACT)
digamma = _strict(special.digamma, REAL)
eq = _strict(np.equal, (*BOOL, *NUMBER))
erf = _strict(special.erf, REAL)
erf_inv = _strict(special.erfinv, REAL)
erfc = _strict(special.erfc, REAL)
exp = _strict(np.exp, INEXACT)
exp2 = _strict(np.exp2, INEXACT)
expm1 = _strict(np.expm1, INEXACT)
floor = _strict(np.floor, REAL)
ge = _strict(np.greater_equal, (*BOOL, *WHOLE, *REAL))
gt = _strict(np.greater, (*BOOL, *WHOLE, *REAL))
igamma = _strict(special.gammainc, REAL)
igammac = _strict(special.gammaincc, REAL)
imag = _strict(np.imag, COMPLEX)
is_finite = _strict(np.isfinite, REAL)
le = _strict(np.less_equal, (*BOOL, *WHOLE, *REAL))
lgamma = _strict(special.gammaln, REAL)
log = _strict(np.log, INEXACT)
log1p = _strict(np.log1p, INEXACT)
logistic = _strict(special.expit, INEXACT)
lt = _strict(np.less, (*BOOL, *WHOLE, *REAL))
max = _strict(np.maximum, (*BOOL, *WHOLE, *REAL))
min = _strict(np.minimum, (*BOOL, *WHOLE, *REAL))
mul = _strict(np.multiply, NUMBER)
ne = _strict(np.not_equal, (*BOOL, *NUMBER))
neg = _strict(np.negative, NUMBER)
nextafter = _strict(np.nextafter, REAL)
polygamma = _strict(special.polygamma, REAL)
real = _strict(np.real, COMPLEX)
rem = _strict(np.fmod, (*WHOLE, *REAL))
shift_left = _strict(np.left_shift, WHOLE)
shift_right_arithmetic = _strict(np.right_shift, WHOLE)
sign = _strict(np.sign, NUMBER)
sin = _strict(np.sin, INEXACT)
sinh = _strict(np.sinh, INEXACT)
sqrt = _strict(np.sqrt, INEXACT)
square = _strict(np.square, NUMBER)
sub = _strict(np.subtract, NUMBER)
tan = _strict(np.tan, INEXACT)
tanh = _strict(np.tanh, INEXACT)
zeta = _strict(special.zeta, REAL)


def pow(x, y):
    """Return powers; the exponent may be an integer."""
    x, y = np.asarray(x), np.asarray(y)
    if not np.issubdtype(y.dtype, np.integer):
        x, y = alike(x, y)
    elif np.ndim(x) and np.ndim(y) and np.shape(x) != np.shape(y):
        raise TypeError("arrays must have the same shapes")
    return np.power(of_kinds(x, INEXACT), y)


def clamp(min, x, max):
    """Return the elements between two bounds; at these, gradients are 0."""
    low, found, high = of_one_dtype(
        *[of_kinds(each, (*BOOL, *WHOLE, *REAL)) for each in (min, x, max)]
    )
    for bound in (low, high):
        if np.ndim(bound) and np.shape(bound) != np.shape(found):
            raise TypeError("bounds must be scalars, or of the shape of the array")
    bounded = np.minimum(np.maximum(found, low), high)
    return np.where((found > low) & (found < high), found, psc.stop_gradient(bounded))


def convert_element_type(operand, new_dtype):
    """Return the elements in another dtype."""
    return np.asarray(operand).astype(new_dtype)


def div(x, y):
    """Return quotients; those of integers are cut off."""
    x, y = np.broadcast_arrays(*[of_kinds(each, NUMBER) for each in alike(x, y)])
    if not np.issubdtype(x.dtype, np.integer):
        return np.divide(x, y)
    rest = np.remainder(x, y)
    one = ((rest != 0) & ((x < 0) != (y < 0))).astype(x.dtype)
    return np.floor_divide(x, y) + one


def integer_pow(x, y):
    """Return powers with an integer that is known."""
    return np.power(of_kinds(x, NUMBER), y)


def round(x, rounding_method=0):
    """Return the nearest whole numbers; halves go away from zero."""
    whole = np.trunc(of_kinds(x, REAL))
    return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole)


def rsqrt(x):
    """Return the inverse of the square root."""
    return 1 / np.sqrt(of_kinds(x, INEXACT))


def select(pred, on_true, on_false):
    """Return elements of two arrays."""
    return select_n(of_kinds(pred, BOOL), on_false, on_true)


def select_n(which, *cases):
    """Return elements of several arrays."""
    which = np.asarray(which)
    first = np.asarray(cases[0])
    for case in cases:
        case = np.asarray(case)
        if case.dtype != first.dtype or np.shape(case) != np.shape(first):
            raise TypeError("cases must have one dtype and one shape")
    if np.ndim(which) and np.shape(which) != np.shape(first):
        raise TypeError("the choice must be a scalar, or of the shape of the cases")
    if which.dtype != bool and which.dtype != np.int32:
        raise TypeError("the choice must be bool or int32")
    found = first
    for number, case in enumerate(cases):
        if number:
            found = np.where(which == number, case, found)
    return found
