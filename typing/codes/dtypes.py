"""PSC4xx: element types that do not fit."""

from __future__ import annotations

from pscdsl.typing.arrays import ArrayType
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.dtypes import BOOL, C64, F32, I32, I64, KEY, DType

_DIGITS = 20
"""Longer numbers fit no integer dtype."""


class DtypesDiffer(Diagnostic, code="PSC401"):
    """Two arrays of different dtypes meet.

    Arrays never promote each other, because a silent promotion changes accuracy and speed far
    from where it happens.  Python scalars and creation functions without a dtype adapt by
    themselves.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32, f64


    @psc.kernel
    def f(x: f32["n"], y: f64["n"]) -> f64["n"]:
        return x + y
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32, f64


    @psc.kernel
    def f(x: f32["n"], y: f64["n"]) -> f64["n"]:
        return x.astype(f64) + y
    ```
    """

    left: ArrayType
    right: ArrayType

    def message(self) -> str:
        """The two dtypes."""
        return f"arrays of different dtypes meet: {self.left} and {self.right}"

    def help(self) -> str:
        """The cast."""
        low, high = sorted((self.left.dtype, self.right.dtype), key=lambda d: (d.kind, d.bits))
        return f"cast one of them, for instance the {low} one with `.astype(psc.{high})`"


class ScalarDoesNotFit(Diagnostic, code="PSC402"):
    """A scalar, or another operand without a dtype of its own, does not fit the array it meets.

    A Python scalar takes the dtype of the array, but never loses what it says: a float does not
    become an integer, and an integer stays within the range of the dtype.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32, i32


    @psc.kernel
    def f(x: i32["n"]) -> f32["n"]:
        return x * 0.5
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32, i32


    @psc.kernel
    def f(x: i32["n"]) -> f32["n"]:
        return x.astype(f32) * 0.5
    ```
    """

    scalar: str
    dtype: DType
    remedy: str = ""

    def message(self) -> str:
        """What does not fit where."""
        return f"{self.scalar} does not fit into an array of dtype {self.dtype}"

    def help(self) -> str | None:
        """The cast."""
        if self.remedy:
            return self.remedy
        if self.dtype is KEY:
            return "draw numbers from the key: `psc.random.uniform(key)`"
        cast = self.cast()
        if cast is None:
            return None
        text = f"cast the array first, with `.astype(psc.{cast})`"
        return f"{text}; `psc.complex` takes two parts" if cast.is_complex else text

    def cast(self) -> DType | None:
        """The dtype of arrays into which the scalar fits, if there is one."""
        if self.remedy or self.dtype is KEY:
            return None
        if "j" in self.scalar or "weak c" in self.scalar:
            return self.dtype.complex if self.dtype.is_float else C64
        if self.dtype.is_inexact:
            return None
        if self.dtype is BOOL and "weak i" in self.scalar:
            return I32
        if not self.scalar.lstrip("-").isdigit() or len(self.scalar) > _DIGITS:
            return F32
        number = int(self.scalar)
        fitting = (each for each in (I32, I64) if each.range[0] <= number <= each.range[1])
        return next(fitting, F32)


class DtypeNotAccepted(Diagnostic, code="PSC403"):
    """A function was given a dtype on which it is not defined.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32["n"]:
        return np.bitwise_and(x, x)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import i32


    @psc.kernel
    def f(x: i32["n"]) -> i32["n"]:
        return np.bitwise_and(x, x)
    ```
    """

    function: str
    given: ArrayType
    accepts: str

    def message(self) -> str:
        """What was given and what is accepted."""
        return f"`{self.function}` is defined on {self.accepts} arrays, not on {self.given}"
