"""A small model of types, made without the checker: sizes, dtypes, and what values may be.

It is what makes generated programs well typed by construction, so it shares nothing with
`pscdsl.typing`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace


class Inapplicable(Exception):
    """An operation does not fit the values in reach; another one may."""


@dataclass(frozen=True)
class Size:
    """A polynomial in the names of a signature: `((names, factor), …)`."""

    terms: tuple[tuple[tuple[str, ...], int], ...]

    @classmethod
    def of(cls, value: int | str | Size) -> Size:
        """A number or a name as a size."""
        if isinstance(value, Size):
            return value
        if isinstance(value, str):
            return cls((((value,), 1),))
        return cls((((), value),)) if value else cls(())

    @classmethod
    def _collect(cls, terms: list[tuple[tuple[str, ...], int]]) -> Size:
        found: dict[tuple[str, ...], int] = {}
        for names, factor in terms:
            found[names] = found.get(names, 0) + factor
        return cls(tuple(sorted((n, f) for n, f in found.items() if f)))

    def __add__(self, other: int | Size) -> Size:
        """The sum."""
        return self._collect([*self.terms, *Size.of(other).terms])

    def __mul__(self, other: int | Size) -> Size:
        """The product."""
        return self._collect(
            [(tuple(sorted(a + b)), x * y) for a, x in self.terms for b, y in Size.of(other).terms]
        )

    def __sub__(self, other: int | Size) -> Size:
        """The difference."""
        return self + Size.of(other) * -1

    @property
    def number(self) -> int | None:
        """The number that it is, if it names nothing."""
        if not self.terms:
            return 0
        return self.terms[0][1] if self.terms[-1][0] == () else None

    @property
    def name(self) -> str | None:
        """The name that it is, if it is nothing but a name."""
        if len(self.terms) == 1 and len(self.terms[0][0]) == 1 and self.terms[0][1] == 1:
            return self.terms[0][0][0]
        return None

    def names(self) -> frozenset[str]:
        """The names in it."""
        return frozenset(name for names, _ in self.terms for name in names)

    def at(self, sizes: Mapping[str, int]) -> int:
        """Its value."""
        total = 0
        for names, factor in self.terms:
            for name in names:
                factor *= sizes[name]
            total += factor
        return total

    def substituted(self, sizes: Mapping[str, Size]) -> Size:
        """With sizes for names."""
        total = Size(())
        for names, factor in self.terms:
            term = Size.of(factor)
            for name in names:
                term = term * sizes[name]
            total = total + term
        return total

    def least(self, bounds: Mapping[str, int]) -> int:
        """A lower bound, where every name is at least 1 or what `bounds` says."""
        return sum(
            factor * (_product(names, bounds) if factor > 0 else 10**6) if names else factor
            for names, factor in self.terms
        )

    def written(self, texts: Mapping[str, str] | None = None) -> str:
        """As it is written in a signature, or in code with a text for each name."""
        parts: list[str] = []
        for names, factor in sorted(self.terms, key=lambda term: (not term[0], term)):
            words = [name if texts is None else _text(texts, name) for name in names]
            if abs(factor) != 1 or not words:
                words.insert(0, str(abs(factor)))
            sign = "-" if factor < 0 else "+" if parts else ""
            parts.append(sign + "*".join(words))
        return "".join(parts) or "0"


def _product(names: tuple[str, ...], bounds: Mapping[str, int]) -> int:
    total = 1
    for name in names:
        total *= bounds.get(name, 1)
    return total


def _text(texts: Mapping[str, str], name: str) -> str:
    if name not in texts:
        raise Inapplicable
    return texts[name]


LARGEST_SIZE = 4
"""No name stands for more when programs run; bounds of sums rest on it."""

Shape = tuple[Size, ...]
BATCH = Size.of("*b")
"""Stands for any number of leading axes."""

SIGNED = ("i8", "i16", "i32", "i64", "Int")
UNSIGNED = ("u8", "u16", "u32", "u64", "UInt")
FLOATS = ("f16", "bf16", "f32", "f64", "Float")
COMPLEX = ("c64", "c128")
PART = {"c64": "f32", "c128": "f64"}
"""The dtype of the parts of a complex number."""
INTEGERS = SIGNED + UNSIGNED
CLASSES = ("Float", "Int", "UInt")
BITS = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53, "Float": 8}
LIMIT = {
    **dict.fromkeys(("f16", "bf16", "Float", "u8", "Int", "UInt"), 200.0),
    **dict.fromkeys(("i16", "u16"), 3e4),
    **dict.fromkeys(("i8", "Int"), 100.0),
}
"""Beyond this a value of the dtype might overflow or be too coarse."""

NUMPY = {
    "f16": "np.float16",
    "bf16": "psc.bf16",
    "f32": "np.float32",
    "f64": "np.float64",
    "c64": "np.complex64",
    "c128": "np.complex128",
    "bool_": "np.bool_",
    **{f"i{bits}": f"np.int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"np.uint{bits}" for bits in (8, 16, 32, 64)},
}


@dataclass(frozen=True)
class Array:
    """An array value: how it is written, its type, and what its elements may be.

    Elements lie within `low` and `high`.  They are multiples of `grid`, and computed without
    rounding; 0 where that is not so.
    """

    text: str
    dtype: str
    shape: Shape
    low: float = -4.0
    high: float = 4.0
    grid: float = 0.0

    @property
    def ndim(self) -> int:
        """The number of axes; the batch counts as one."""
        return len(self.shape)

    @property
    def most(self) -> float:
        """The largest magnitude."""
        return max(abs(self.low), abs(self.high))

    @property
    def is_float(self) -> bool:
        """Whether its elements are real floating-point numbers."""
        return self.dtype in FLOATS

    @property
    def is_integer(self) -> bool:
        """Whether its elements are integers."""
        return self.dtype in INTEGERS

    @property
    def is_real(self) -> bool:
        """Whether its elements are real numbers."""
        return self.is_float or self.is_integer

    @property
    def is_exact(self) -> bool:
        """Whether every execution computes the very same elements."""
        if self.is_float:
            return self.grid > 0 and self.most / self.grid <= 2 ** BITS[self.dtype]
        return self.dtype not in COMPLEX

    @property
    def is_batched(self) -> bool:
        """Whether it has the leading axes of a signature that leaves their number open."""
        return BATCH in self.shape

    @property
    def fits(self) -> bool:
        """Whether no element can overflow."""
        lowest = 0 if self.dtype in UNSIGNED else -1e30
        return self.low >= lowest and self.most <= LIMIT.get(self.dtype, 1e5)

    def named(self, text: str) -> Array:
        """The same value under another name."""
        return replace(self, text=text)

    def annotation(self) -> str:
        """Its type as an annotation."""
        dims = " ".join(size.written() for size in self.shape)
        return f'{self.dtype}["{dims}"]' if self.shape else self.dtype


@dataclass(frozen=True)
class Group:
    """A tuple or record of values."""

    text: str
    fields: tuple[tuple[str, Value], ...]
    record: str = ""
    """The name of its class; empty for a tuple."""

    def annotation(self) -> str:
        """Its type as an annotation."""
        if self.record:
            return self.record
        return f"tuple[{', '.join(value.annotation() for _, value in self.fields)}]"

    def built(self, texts: list[str]) -> str:
        """The expression that makes one of these fields."""
        if self.record:
            return f"{self.record}({', '.join(texts)})"
        return f"({', '.join(texts)},)"


@dataclass(frozen=True)
class Static:
    """A value that is known while checking."""

    text: str
    kind: str
    """What stands in the brackets of `psc.Static[…]`."""
    values: tuple[object, ...]

    def annotation(self) -> str:
        """Its type as an annotation."""
        return f"psc.Static[{self.kind}]"


Value = Array | Group | Static


def leaves(value: Value) -> list[Array]:
    """The arrays of a value, in order."""
    if isinstance(value, Array):
        return [value]
    if isinstance(value, Static):
        return []
    return [leaf for _, item in value.fields for leaf in leaves(item)]


def at(value: Value, text: str) -> Value:
    """A value that is written in another way."""
    if isinstance(value, Group):
        fields = tuple(
            (name, at(item, f"{text}.{name}" if value.record else f"{text}[{name}]"))
            for name, item in value.fields
        )
        return replace(value, text=text, fields=fields)
    return replace(value, text=text)
