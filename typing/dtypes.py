"""Element types, their classes, and promotion.

Floats of one kind never promote each other. Integers, and operands of a lower kind, take the dtype
of an operand that holds them (`widens`). A *weak* operand (a Python scalar, a size, a creation
function without a dtype) has only a kind and takes the dtype of the arrays it meets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final


class Kind(IntEnum):
    """The kind of a number, in the order in which arrays accept weak operands."""

    BOOL = 0
    INT = 1
    FLOAT = 2
    COMPLEX = 3
    KEY = 4


class DType:
    """One element type; compared by identity, with one instance for each type."""

    __slots__ = (
        "bits",
        "is_complex",
        "is_float",
        "is_inexact",
        "is_integer",
        "is_number",
        "is_unsigned",
        "kind",
        "name",
        "signed",
    )

    def __init__(self, name: str, kind: Kind, bits: int, signed: bool = True) -> None:
        self.name: Final = name
        self.kind: Final = kind
        self.bits: Final = bits
        self.signed: Final = signed
        # Asked for so often that they are not properties.
        self.is_integer: Final = kind is Kind.INT
        """Whether this is a signed or unsigned integer."""
        self.is_unsigned: Final = kind is Kind.INT and not signed
        """Whether this is an unsigned integer."""
        self.is_float: Final = kind is Kind.FLOAT
        """Whether this is a real floating-point type."""
        self.is_complex: Final = kind is Kind.COMPLEX
        """Whether this is a complex type."""
        self.is_inexact: Final = kind is Kind.FLOAT or kind is Kind.COMPLEX
        """Whether this is floating-point or complex."""
        self.is_number: Final = Kind.INT <= kind <= Kind.COMPLEX
        """Whether arithmetic is defined (neither bool nor key)."""

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return dtype, (self.name,)

    @property
    def real(self) -> DType:
        """The type of a complex number's parts; itself otherwise."""
        return {"c64": F32, "c128": F64}.get(self.name, self)

    @property
    def complex(self) -> DType:
        """Return the complex type whose parts have at least this type's precision."""
        return self if self.is_complex else (C128 if self is F64 else C64)

    @property
    def range(self) -> tuple[int, int]:
        """Smallest and largest value of an integer type."""
        if self.signed:
            return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        return 0, (1 << self.bits) - 1


BOOL = DType("bool", Kind.BOOL, 8, signed=False)
I8, I16, I32, I64 = (DType(f"i{bits}", Kind.INT, bits) for bits in (8, 16, 32, 64))
U8, U16, U32, U64 = (DType(f"u{bits}", Kind.INT, bits, signed=False) for bits in (8, 16, 32, 64))
BF16 = DType("bf16", Kind.FLOAT, 16)
F16, F32, F64 = (DType(f"f{bits}", Kind.FLOAT, bits) for bits in (16, 32, 64))
C64 = DType("c64", Kind.COMPLEX, 64)
C128 = DType("c128", Kind.COMPLEX, 128)
KEY = DType("Key", Kind.KEY, 64, signed=False)

ALL: Final = (BOOL, I8, I16, I32, I64, U8, U16, U32, U64, BF16, F16, F32, F64, C64, C128)
_BY_NAME: Final = {each.name: each for each in (*ALL, KEY)}

DEFAULT: Final = {Kind.BOOL: BOOL, Kind.INT: I32, Kind.FLOAT: F32, Kind.COMPLEX: C64}
"""The dtypes of weak operands if nothing decides, in a kernel of 32-bit floats."""

PYTHON: Final = {Kind.BOOL: BOOL, Kind.INT: I64, Kind.FLOAT: F64, Kind.COMPLEX: C128}
"""NumPy's dtypes of Python's numbers, and those of other kernels, if nothing decides."""


def defaults(signature: Iterable[DType]) -> Mapping[Kind, DType]:
    """Return the default dtypes: 32 bits if a signature has floats, and all are narrow.

    They are NumPy's otherwise.
    """
    floats = {each.real for each in signature if each.is_inexact}
    return DEFAULT if floats and F64 not in floats else PYTHON


CLASSES: Final[dict[str, tuple[DType, ...]]] = {
    "Bool": (BOOL,),
    "Int": (I8, I16, I32, I64),
    "UInt": (U8, U16, U32, U64),
    "Integer": (I8, I16, I32, I64, U8, U16, U32, U64),
    "Float": (BF16, F16, F32, F64),
    "Complex": (C64, C128),
    "Inexact": (BF16, F16, F32, F64, C64, C128),
    "Num": (I8, I16, I32, I64, U8, U16, U32, U64, BF16, F16, F32, F64, C64, C128),
    "Shaped": ALL,
}
"""Classes of dtypes that an annotation can range over."""


def dtype(name: str) -> DType:
    """Return the dtype with this name; raise KeyError if there is none."""
    return _BY_NAME[name]


def is_dtype_name(name: str) -> bool:
    """Return whether a dtype has this name."""
    return name in _BY_NAME


def accepts_weak(strong: DType, weak: Kind) -> bool:
    """Return whether an array accepts a weak operand: an i32 array accepts 2 but not 0.5."""
    return weak is strong.kind or (strong.kind is not Kind.KEY and weak < strong.kind)


def becomes(given: DType, number: DType) -> bool:
    """Return whether a scalar of a dtype becomes a Python number of a dtype of `PYTHON`."""
    if given is BOOL or number is BOOL:
        return given is number
    return given.kind <= number.kind and not (given is U64 and number.is_integer)


_DIGITS: Final = {"bf16": 8, "f16": 11, "f32": 24, "f64": 53}
"""The bits of integers that a floating-point type represents exactly."""


def widens(narrow: DType, wide: DType) -> bool:
    """Return whether NumPy promotes two dtypes to `wide`, and a kernel does too.

    A kernel promotes truth values, and integers to wider ones that hold them. It promotes integers
    to floats and complex numbers that hold them, and integers of 64 bits to f64 and c128, as NumPy
    has no wider dtypes. It promotes floats to complex numbers of their precision. Numbers of one
    floating-point kind stay apart: a mixed precision is rarely intended.
    """
    if narrow is wide:
        return True
    if Kind.KEY in (narrow.kind, wide.kind) or narrow.kind > wide.kind:
        return False
    if narrow is BOOL:
        return True
    if wide.is_integer:
        (low, high), (least, most) = narrow.range, wide.range
        return least <= low and high <= most
    if narrow.is_integer:
        holds = narrow.bits - narrow.signed <= _DIGITS[wide.real.name]
        return wide is not BF16 and (holds or wide.real is F64)
    return narrow.kind < wide.kind and wide.real is narrow


def common(dtypes: Iterable[DType]) -> DType | None:
    """Return the dtype that all share, or None if they differ or there are none."""
    found: DType | None = None
    for each in dtypes:
        if found is None:
            found = each
        elif found is not each:
            return None
    return found
