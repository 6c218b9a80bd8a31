"""PSC4xx: element types that do not fit."""

from __future__ import annotations

from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.dtypes import BOOL, C64, F32, F64, I32, I64, KEY, DType

# PSC4xx: element types that do not fit.


_DIGITS = 20
"""Longer numbers fit no integer dtype."""


class DtypesDiffer(Diagnostic, code="PSC401"):
    """Two arrays of different dtypes are combined."""

    left: ArrayType
    right: ArrayType
    open: bool = False
    """Whether one of them takes its dtype from the other operand."""
    precision: DType | None = None
    """The floating-point dtype of the kernel, by its signature."""

    def message(self) -> str:
        return f"arrays of different dtypes meet: {self.left} and {self.right}"

    def help(self) -> str:
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
    """A scalar or other operand without a dtype of its own does not fit the array it meets."""

    scalar: str
    dtype: DType
    remedy: str = ""
    precision: DType | None = None
    """The floating-point dtype of the kernel, by its signature."""

    def message(self) -> str:
        return f"{self.scalar} does not fit into an array of dtype {self.dtype}"

    def help(self) -> str | None:
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
    """A function is applied to a dtype for which it is not defined."""

    function: str
    given: ArrayType
    accepts: str

    def message(self) -> str:
        return f"`{self.function}` is defined on {self.accepts} arrays, not on {self.given}"


# PSC410 to PSC419: element types in functions of the library.


class NegativePowerOfInteger(Diagnostic, code="PSC410"):
    """An integer array is raised to a negative power."""

    base: ArrayType
    exponent: int
    precision: DType | None = None
    """The floating-point dtype of the kernel, by its signature."""

    def message(self) -> str:
        return f"{self.base} is raised to the negative power {self.exponent}"

    def help(self) -> str:
        if self.precision is None:
            return "cast the array to floats first, for instance with `.astype(float)`"
        return f"cast the array first, with `.astype(psc.{self.precision})`"


class NoSuchDType(Diagnostic, code="PSC411"):
    """A value is used as a dtype, but is not one or has no counterpart here."""

    given: str
    instead: str = ""

    def message(self) -> str:
        return f"{self.given} is not a dtype of arrays here"

    def help(self) -> str:
        known = "the dtypes are bool, i8 to i64, u8 to u64, bf16, f16, f32, f64, c64 and c128"
        return self.instead or known


class IntegersMakeAnArray(Diagnostic, code="PSC412"):
    """Integers that NumPy converts to an array meet narrower or unsigned integers."""

    function: str
    dtype: DType

    def message(self) -> str:
        return f"`{self.function}` makes an i64 array of integers, which meets {self.dtype}"

    def help(self) -> str:
        made = self.scalar()
        return (
            f"write `np.{made}(…)` of a number, `np.array(…, dtype=np.{made})` of a list, "
            "or cast the array with `.astype(psc.i64)`"
        )

    def scalar(self) -> str:
        """NumPy's name of the dtype of the array."""
        return {"i": "int", "u": "uint"}[self.dtype.name[0]] + str(self.dtype.bits)


class StoreChangesKind(Diagnostic, code="PSC413"):
    """The stored value is of another kind than the array."""

    found: ArrayType
    stored: ArrayType
    open: bool
    """Whether the array has no dtype yet, and the value would give it a lower kind."""
    precision: DType | None = None
    """The floating-point dtype of the kernel, by its signature."""

    def message(self) -> str:
        return f"{self.found} is stored into an array of dtype {self.stored.dtype}"

    def help(self) -> str | None:
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
    """A cast of complex numbers to real ones drops their imaginary parts."""

    given: ArrayType
    wanted: DType

    def message(self) -> str:
        return f"{self.given} is cast to {self.wanted}, which drops its imaginary parts"

    def help(self) -> str | None:
        real = self.given.dtype.real
        cast = "" if self.wanted is real else f".astype(psc.{self.wanted})"
        return f"to go on with the real parts, write `.real{cast}`"


# PSC420 to PSC429: dtypes in which something cannot be accumulated.


class AccumulatorTooNarrow(Diagnostic, code="PSC420"):
    """The `dtype` of a reduction cannot represent the elements that are reduced."""

    function: str
    given: ArrayType
    dtype: DType

    def message(self) -> str:
        return f"{self.function}: elements of {self.given} do not fit into {self.dtype}"

    def help(self) -> str:
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
    """An argument's dtype does not fit the signature of the kernel that is called."""

    function: str
    argument: str
    declared: str
    given: ArrayType
    swapped: str = ""
    """The other argument with which it fits in the other order."""

    def message(self) -> str:
        return (
            f"argument `{self.argument}` of `{self.function}` is {self.given}, "
            f"but {self.declared} is declared"
        )

    def wants_keys(self) -> bool:
        """Return whether keys are declared."""
        return self.declared.startswith(KEY.name)

    def help(self) -> str:
        if self.swapped:
            return f"`{self.argument}` and `{self.swapped}` fit in the other order"
        if self.wants_keys():
            return "keys come from `psc.random.key(seed)` and `psc.random.split(key)`"
        if self.given.dtype is KEY:
            return "draw numbers from the key, for instance by `psc.random.uniform(key)`"
        number = "" if self.given.shape else _number(self.declared)
        if number and number != _number(self.given.dtype.name):
            return f"give {number}; an array is cast with `.astype(...)`, never silently"
        return "cast it with `.astype(...)`; arrays are never converted silently"


class ReturnDtype(Diagnostic, code="PSC405"):
    """The result of a kernel does not have the declared dtype."""

    function: str
    path: str
    declared: ArrayType
    found: ArrayType

    def message(self) -> str:
        part = f"result{self.path} of " if self.path else ""
        return f"{part}`{self.function}` returns {self.found}, but {self.declared} is declared"

    def help(self) -> str:
        if self.found.dtype.is_complex and not self.declared.dtype.is_complex:
            return f"`.real` is its real part, `abs(…)` its magnitude; or declare {self.found}"
        return f"`.astype(psc.{self.declared.dtype})`, or declare {self.found}"
