"""Parts of complex numbers, defined on real arrays too."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pscdsl._src.ir.builder import Value, Weak
from pscdsl._src.language.meanings import function
from pscdsl._src.primitives import elementwise as e
from pscdsl.numpy.calling import of_arrays, of_numbers
from pscdsl.numpy.elementwise import REAL, require, to_inexact
from pscdsl.numpy.shorthand import filled
from pscdsl.typing.codes.language import NotStatic
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim
from pscdsl.typing.dtypes import Kind


@of_arrays("numpy.real", together=("val",))
def real(val: Value) -> Value:
    """The real part; a real array is its own."""
    return e.real(val) if val.dtype.is_complex else val


@of_arrays("numpy.imag", together=("val",))
def imag(val: Value) -> Value:
    """The imaginary part; of a real array, zeros."""
    return e.imag(val) if val.dtype.is_complex else filled(val, False)


@of_arrays("numpy.conjugate", "numpy.conj", together=("x",))
def conjugate(x: Value, /) -> Value:
    """The complex conjugate; a real array is its own."""
    require("numpy.conjugate", x, "numeric")
    return e.conjugate(x) if x.dtype.is_complex else x


@of_numbers("pscdsl.complex", together=("x", "y"))
def make_complex(x: Value, y: Value) -> Value:
    """The complex numbers with these real and imaginary parts."""
    for each in (x, y):
        require("pscdsl.complex", each, REAL)
    return e.make_complex(to_inexact(x), to_inexact(y))  # type: ignore[no-any-return]


@of_arrays("numpy.angle", together=("z",))
def angle(z: Value, deg: bool = False) -> Value:
    """The angle of each number in the complex plane; pi for a negative real number."""
    z = to_inexact(z)
    if z.dtype.is_complex:
        result: Value = e.atan2(e.imag(z), e.real(z))
    else:
        result = e.atan2(filled(z, 0.0), z)
    return e.multiply(result, 180 / math.pi) if deg else result


@function("numpy.iscomplexobj")
def iscomplexobj(x: object) -> bool:
    """Whether the dtype is complex; known while checking."""
    if isinstance(x, Value):
        return x.dtype.is_complex
    if isinstance(x, Weak):
        return x.kind is Kind.COMPLEX
    if not issubclass(x.__class__, (int, float, complex, np.ndarray, np.generic, Dim)):
        raise Failure(NotStatic(what="the dtype of what `np.iscomplexobj` is given"))
    known: Any = x
    return not isinstance(x, Dim) and np.iscomplexobj(known)


@function("numpy.isrealobj")
def isrealobj(x: object) -> bool:
    """Whether the dtype is not complex; known while checking."""
    return not iscomplexobj(x)
