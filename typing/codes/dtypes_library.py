"""PSC410 to PSC419: element types in functions of the library."""

from __future__ import annotations

from pscdsl.typing.arrays import ArrayType
from pscdsl.typing.diagnostics import Diagnostic


class NegativePowerOfInteger(Diagnostic, code="PSC410"):
    """An integer array is raised to a negative power.

    The result would not be an integer.  An exponent that is computed by the program is not
    checked: there, a negative power of an integer is the quotient rounded towards zero.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32, i32


    @psc.kernel
    def f(x: i32["n"]) -> f32["n"]:
        return x**-1
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32, i32


    @psc.kernel
    def f(x: i32["n"]) -> f32["n"]:
        return x.astype(f32) ** -1
    ```
    """

    base: ArrayType
    exponent: int

    def message(self) -> str:
        """Base and exponent."""
        return f"{self.base} is raised to the negative power {self.exponent}"

    def help(self) -> str:
        """The cast."""
        return "cast the array first, for instance with `.astype(psc.f32)`"


class NoSuchDType(Diagnostic, code="PSC411"):
    """Something was given as a dtype that is none, or that has no counterpart here.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32["n"]:
        return np.zeros(x.shape, dtype="S4")
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32["n"]:
        return np.zeros(x.shape, dtype="float32")
    ```
    """

    given: str

    def message(self) -> str:
        """What was given."""
        return f"{self.given} is not a dtype of arrays here"

    def help(self) -> str:
        """The dtypes that there are."""
        return "the dtypes are bool, i8 to i64, u8 to u64, bf16, f16, f32, f64, c64 and c128"
