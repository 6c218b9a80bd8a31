"""PSC410 to PSC419: element types in functions of the library."""

from __future__ import annotations

from pscdsl.typing.arrays import ArrayType
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.dtypes import DType


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
    """A value is used as a dtype and is not one, or has no counterpart here.

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


class IntegersMakeAnArray(Diagnostic, code="PSC412"):
    """Integers that NumPy turns into an array meet narrower or unsigned integers.

    In arithmetic a Python number takes the dtype of the array that it meets.  A list does not, and
    neither does a number where a function makes an array of it first, as `np.append`, `np.diff` and
    `np.kron` do.  NumPy makes i64 of these integers, and of the result, and arrays of different
    dtypes do not meet without a cast.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import u8


    @psc.kernel
    def f(x: u8["n"]) -> u8["n"]:
        return np.diff(x, prepend=0)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import u8


    @psc.kernel
    def f(x: u8["n"]) -> u8["n"]:
        return np.diff(x, prepend=np.uint8(0))
    ```
    """

    function: str
    dtype: DType

    def message(self) -> str:
        """Which function, and which dtypes."""
        return f"`{self.function}` makes an i64 array of integers, which meets {self.dtype}"

    def help(self) -> str:
        """The number in the dtype of the array, or the array in i64."""
        made = self.scalar()
        return (
            f"write `np.{made}(…)` of a number, `np.array(…, dtype=np.{made})` of a list, "
            "or cast the array with `.astype(psc.i64)`"
        )

    def scalar(self) -> str:
        """NumPy's name of the dtype of the array."""
        return {"i": "int", "u": "uint"}[self.dtype.name[0]] + str(self.dtype.bits)
