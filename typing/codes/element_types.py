"""PSC4xx: element types that do not fit."""

from __future__ import annotations

from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.dtypes import BOOL, C64, F32, F64, I32, I64, KEY, DType

# PSC4xx: element types that do not fit.


_DIGITS = 20
"""Longer numbers fit no integer dtype."""


class DtypesDiffer(Diagnostic, code="PSC401"):
    """Two arrays of different dtypes meet.

    Floats of two precisions never promote each other, because a silent promotion changes accuracy
    and speed far from where it happens.  Integers, truth values, and floats beside complex numbers
    of their precision take the dtype of what they meet, if NumPy's result has that dtype: `i32`
    beside `f32` is `f64` in NumPy, and is refused.  Python scalars and creation functions without a
    dtype adapt to what they meet anywhere in the kernel; what a loop or a branch carries adapts to
    one dtype.

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
    open: bool = False
    """Whether one of them has its dtype because of what it meets."""
    precision: DType | None = None
    """The floating-point dtype of the kernel, by its signature."""

    def message(self) -> str:
        """The two dtypes."""
        return f"arrays of different dtypes meet: {self.left} and {self.right}"

    def help(self) -> str:
        """The cast."""
        if self.open:
            return (
                "one of them was made without a dtype, and meets arrays of several: write the "
                "dtype where it is made, for instance `np.zeros(n, dtype=psc.f64)`"
            )
        other, to = self.cast()
        if to.is_integer:  # of which neither holds the other
            return "cast both, with `.astype(psc.i64)`"
        return f"cast one of them, for instance the {other} one with `.astype(psc.{to})`"

    def cast(self) -> tuple[DType, DType]:
        """The dtype to cast, and to which: the declared one, failing that the wider one."""
        both = (self.left.dtype, self.right.dtype)
        low, high = sorted(both, key=lambda d: (d.kind, d.bits))
        same_kind = low.kind is high.kind
        return (high, low) if low is self.precision and same_kind else (low, high)


class ScalarDoesNotFit(Diagnostic, code="PSC402"):
    """A scalar, or another operand without a dtype of its own, does not fit the array it meets.

    A Python scalar takes the dtype of the array, but never loses what it says: an integer stays
    within the range of the dtype, and where an array is only changed, as by `psc.update`, a float
    does not become an integer.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import i8, i32


    @psc.kernel
    def f(x: i8["n"]) -> i32["n"]:
        return x + 300
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import i8, i32


    @psc.kernel
    def f(x: i8["n"]) -> i32["n"]:
        return x.astype(i32) + 300
    ```
    """

    scalar: str
    dtype: DType
    remedy: str = ""
    precision: DType | None = None
    """The floating-point dtype of the kernel, by its signature."""

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
            return F64 if "weak f64" in self.scalar else self.precision or F32
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


# PSC410 to PSC419: element types in functions of the library.


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
    precision: DType | None = None
    """The floating-point dtype of the kernel, by its signature."""

    def message(self) -> str:
        """Base and exponent."""
        return f"{self.base} is raised to the negative power {self.exponent}"

    def help(self) -> str:
        """The cast."""
        if self.precision is None:
            return "cast the array to floats first, for instance with `.astype(float)`"
        return f"cast the array first, with `.astype(psc.{self.precision})`"


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
    instead: str = ""

    def message(self) -> str:
        """What was given."""
        return f"{self.given} is not a dtype of arrays here"

    def help(self) -> str:
        """What to write for it, or the dtypes that there are."""
        known = "the dtypes are bool, i8 to i64, u8 to u64, bf16, f16, f32, f64, c64 and c128"
        return self.instead or known


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


class StoreChangesKind(Diagnostic, code="PSC413"):
    """What is stored is of another kind than the array.

    An array keeps its dtype.  A store casts within a kind and to a higher one: `f64` into `f32`,
    integers into floats.  A float stored into integers would lose its fraction, and is undefined in
    NumPy where it is too large; a complex number would lose its imaginary part.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32, i32


    @psc.kernel
    def f(x: f32["n"]) -> i32["n"]:
        y = np.zeros(x.shape[0], np.int32)
        y[0] = x[0]
        return y
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32, i32


    @psc.kernel
    def f(x: f32["n"]) -> i32["n"]:
        y = np.zeros(x.shape[0], np.int32)
        y[0] = x[0].astype(np.int32)
        return y
    ```
    """

    found: ArrayType
    stored: ArrayType
    open: bool
    """Whether the array has no dtype yet, and the value would give it a lower kind."""
    precision: DType | None = None
    """The floating-point dtype of the kernel, by its signature."""

    def message(self) -> str:
        """What is stored into what."""
        return f"{self.found} is stored into an array of dtype {self.stored.dtype}"

    def help(self) -> str | None:
        """The dtype, or the cast."""
        if self.open:
            return "give the array its dtype where it is made, with `dtype=`"
        if KEY in (self.found.dtype, self.stored.dtype):
            return "random keys are not stored: make a tuple of them"
        if self.found.dtype.is_complex:
            return "store its real part, `.real`"
        if self.found.dtype.is_float and self.precision is not None:
            dtype = f"give the array floats where it is made, with `dtype=psc.{self.precision}`"
            return f"{dtype}, or cut what is stored, with `.astype(psc.{self.stored.dtype})`"
        return f"cast what is stored, with `.astype(psc.{self.stored.dtype})`"


class CastDropsImaginaryPart(Diagnostic, code="PSC414"):
    """A cast of complex numbers to real ones drops their imaginary parts.

    NumPy warns of it (`ComplexWarning`) and goes on with the real parts.  They are `z.real`, which
    says so; the absolute values are `np.abs(z)`.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import c64, f32


    @psc.kernel
    def f(z: c64["n"]) -> f32["n"]:
        return z.astype(np.float32)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import c64, f32


    @psc.kernel
    def f(z: c64["n"]) -> f32["n"]:
        return z.real
    ```
    """

    given: ArrayType
    wanted: DType

    def message(self) -> str:
        """What is cast to what."""
        return f"{self.given} is cast to {self.wanted}, which drops its imaginary parts"

    def help(self) -> str | None:
        """The real part."""
        real = self.given.dtype.real
        cast = "" if self.wanted is real else f".astype(psc.{self.wanted})"
        return f"to go on with the real parts, write `.real{cast}`"


# PSC420 to PSC429: dtypes in which something cannot be accumulated.


class AccumulatorTooNarrow(Diagnostic, code="PSC420"):
    """The `dtype` of a reduction cannot hold what is reduced.

    Each element is converted before it is added, so a sum of fractions in an integer dtype, or of
    complex numbers in a real one, drops a part of every element.  Convert the array or the result,
    and it is plain which of the two is meant.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32, i32


    @psc.kernel
    def f(x: f32["n"]) -> i32:
        return np.sum(x, dtype=i32)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32, i32


    @psc.kernel
    def f(x: f32["n"]) -> i32:
        return np.sum(x).astype(i32)
    ```
    """

    function: str
    given: ArrayType
    dtype: DType

    def message(self) -> str:
        """What does not fit where."""
        return f"{self.function}: elements of {self.given} do not fit into {self.dtype}"

    def help(self) -> str:
        """The two ways to write it."""
        return (
            f"convert the result with `.astype(psc.{self.dtype})`, or the array, "
            "if every element is to be cut"
        )


# PSC4xx: element types that do not fit a signature.


def _number(declared: str) -> str:
    """The numbers that a declared dtype accepts, in words; empty for keys and complex numbers."""
    for start, words in (
        (("bool", "Bool"), "`True` or `False`"),
        (("i", "u", "Int"), "a whole number"),
        (("f", "bf", "Float"), "a real number"),
    ):
        if declared.startswith(start):
            return words
    return ""


class ArgumentDtype(Diagnostic, code="PSC404"):
    """An argument's dtype does not fit the signature of the kernel that is called.

    Arrays are never converted silently, not even to a wider dtype: a cast costs memory and may
    change what is computed.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32, f64


    @psc.kernel
    def double(x: f32["n"]) -> f32["n"]:
        return 2 * x


    @psc.kernel
    def f(x: f64["n"]) -> f32["n"]:
        return double(x)
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32, f64


    @psc.kernel
    def double(x: f32["n"]) -> f32["n"]:
        return 2 * x


    @psc.kernel
    def f(x: f64["n"]) -> f32["n"]:
        return double(x.astype(f32))
    ```
    """

    function: str
    argument: str
    declared: str
    given: ArrayType
    swapped: str = ""
    """The other argument with which it fits in the other order."""

    def message(self) -> str:
        """Which argument, and both types."""
        return (
            f"argument `{self.argument}` of `{self.function}` is {self.given}, "
            f"but {self.declared} is declared"
        )

    def help(self) -> str:
        """The cast; a key has none."""
        if self.swapped:
            return f"`{self.argument}` and `{self.swapped}` fit in the other order"
        if self.declared.startswith(KEY.name):
            return "keys come from `psc.random.key(seed)` and `psc.random.split(key)`"
        if self.given.dtype is KEY:
            return "draw numbers from the key, for instance by `psc.random.uniform(key)`"
        number = "" if self.given.shape else _number(self.declared)
        if number and number != _number(self.given.dtype.name):
            return f"give {number}; an array is cast with `.astype(...)`, never silently"
        return "cast it with `.astype(...)`; arrays are never converted silently"


class ReturnDtype(Diagnostic, code="PSC405"):
    """The result of a kernel does not have the declared dtype.

    Python scalars adapt to the declared dtype; arrays do not.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32, f64


    @psc.kernel
    def f(x: f32["n"]) -> f64["n"]:
        return x * 2
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32, f64


    @psc.kernel
    def f(x: f32["n"]) -> f64["n"]:
        return (x * 2).astype(f64)
    ```
    """

    function: str
    path: str
    declared: ArrayType
    found: ArrayType

    def message(self) -> str:
        """Both types."""
        part = f"result{self.path} of " if self.path else ""
        return f"{part}`{self.function}` returns {self.found}, but {self.declared} is declared"

    def help(self) -> str:
        """The cast."""
        if self.found.dtype.is_complex and not self.declared.dtype.is_complex:
            return f"`.real` is its real part, `abs(…)` its magnitude; or declare {self.found}"
        return f"`.astype(psc.{self.declared.dtype})`, or declare {self.found}"
