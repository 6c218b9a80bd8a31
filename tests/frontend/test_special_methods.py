"""Methods that syntax calls: operators, comparisons, indices, `in`, `len` and loops of records."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, NamedTuple

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32, f64

pytestmark = pytest.mark.quick_code


@dataclass(frozen=True)
class Dual:
    """A value and its derivative."""

    value: Any
    slope: Any

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Dual):
            return Dual(self.value + other.value, self.slope + other.slope)
        return Dual(self.value + other, self.slope)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, Dual):
            return Dual(self.value * other, self.slope * other)
        return Dual(self.value * other.value, self.value * other.slope + self.slope * other.value)

    def __rmul__(self, other: Any) -> Any:
        return self * other

    def __truediv__(self, other: Any) -> Any:
        if not isinstance(other, Dual):
            return NotImplemented
        return Dual(self.value / other.value, self.slope)

    def __rtruediv__(self, other: Any) -> Any:
        return NotImplemented

    def __rpow__(self, other: Any) -> Any:
        return Dual(other**self.value, self.slope)

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.slope)

    def __pos__(self) -> Dual:
        return self

    def __invert__(self) -> Any:
        return self.slope

    def __abs__(self) -> Any:
        return np.abs(self.value)

    def __matmul__(self, other: Any) -> Any:
        return self.value @ other.slope

    def __lt__(self, other: Any) -> Any:
        return self.value < (other.value if isinstance(other, Dual) else other)

    def __gt__(self, other: Any) -> Any:
        return self.value > (other.value if isinstance(other, Dual) else other)

    def __eq__(self, other: object) -> Any:
        return self.value == other.value if isinstance(other, Dual) else NotImplemented

    def __getitem__(self, index: Any) -> Any:
        return self.value[index]

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.value, self.slope))

    def __contains__(self, item: Any) -> Any:
        return np.any(self.value == item)

    def __call__(self, scale: Any) -> Any:
        """The value, scaled."""
        return self.value * scale


@dataclass(frozen=True)
class Vector:
    """Two components."""

    x: Any
    y: Any

    def __add__(self, other: Vector) -> Vector:
        return Vector(self.x + other.x, self.y + other.y)

    def __mul__(self, factor: Any) -> Any:
        return Vector(self.x * factor, self.y * factor)

    def __rmul__(self, factor: Any) -> Any:
        return self * factor

    def __radd__(self, other: Any) -> Any:
        if isinstance(other, Dual):
            return Vector(self.x + other.value, self.y)
        return Vector(self.x + other, self.y)

    def __rtruediv__(self, other: Any) -> Any:
        return other.value / self.x


class Pair(NamedTuple):
    """A tuple with operators of its own."""

    first: Any
    second: Any

    def __add__(self, other: Any) -> Any:
        return Pair(self.first + other.first, self.second + other.second)

    def __iter__(self) -> Iterator[Any]:
        yield self.second
        yield from (self.first, self.first)


class Shift(psc.Record):
    """A record of the library."""

    by: f64["n"]

    def __add__(self, other: Any) -> Any:
        return self.by + other


def operators(x: f64["n"]) -> tuple[f64["n"], f64["n"], f64["n"], f64["n"]]:
    a, b = Dual(x, x * 2), Dual(x + 1, x)
    c = a * b + 1.0 - 2 * a + a * x
    return c.value, (a / b).value, (2.0**b).value, (+a + (-b)).slope


def others(x: f64["n"]) -> tuple[f64["n"], f64, f64["n"], f64["n"], f64]:
    a = Dual(x, x * 2)
    return ~a, a @ a, abs(a), a(3.0), a[0] + a[-1] * len(a)


def compared(x: f64["n"]) -> tuple[psc.bool_["n"], psc.bool_["n"], psc.bool_["n"], f64["n"]]:
    a, b = Dual(x, x), Dual(x * x, x)
    return a < b, 1 < a, a == b, x + (3.0 in a)


def updated(x: f64["n"]) -> tuple[f64["n"], f64["n"]]:
    a = Dual(x, x)
    a += x
    a *= 2
    held = [a]
    held[0] += a
    s: Any = 1.5
    s += a
    return held[0].value, s.value


def scalars(x: f64["n"]) -> tuple[f64["n"], f32["n"], f64["n"]]:
    v = Vector(x, x + 1)
    t = x[0] * 0.5
    w = t * v + v * t
    narrow = t * Vector(x.astype(np.float32), 0)
    return w.x, narrow.x, (t + w).x


def two_classes(x: f64["n"]) -> tuple[f64["n"], f64["n"]]:
    return (Dual(x, x) / Vector(x * 2, x)), (Shift(x) + x)


def steps(x: f64["n"]) -> tuple[f64["n"], f64["n"]]:
    p, v = Vector(x, x), Vector(x * 0, x)
    for _ in range(50):
        v = v + 0.01 * (p * -1.0)
        p = p + 0.01 * v
    return p.x, p.y


def iterated(x: f64["n"]) -> tuple[f64["n"], f64["n"], f64["n"], f64["n"]]:
    a = Dual(x, x * 2)
    total = np.zeros(len(x))
    for each in a:
        total += each
    value, slope = a
    stacked = sum([each * 2 for each in a])
    first, *rest = [*a, *Pair(x, x + 1)]
    for i, (each, other) in enumerate(zip(Pair(x, x * 3), a, strict=False)):
        total = total + each * i - other
    held = list(Pair(x, x * 7))
    return total, value - slope, stacked + first, rest[1] + held[0] + (a + a)[0]


def tuples(x: f64["n"]) -> tuple[f64["n"], f64["n"]]:
    a = Pair(x, x * 2) + Pair(x, x)
    return a.first, a.second


def branched(x: f64["n"]) -> f64["n"]:
    a = Dual(x, x)
    if x[0] > 1:
        a = a + a
    else:
        a = a * 3.0
    return a.value


def stored(x: f64["n"]) -> tuple[f64["n"], f64["n"]]:
    """What a method made may be written where NumPy would write to it alone."""
    y = x * 2
    z = Dual(y, y) * 3
    w = z.value.copy()
    w[0] = 7
    return w, y


FUNCTIONS = [
    operators,
    others,
    compared,
    updated,
    scalars,
    two_classes,
    steps,
    iterated,
    tuples,
    branched,
    stored,
]


def matched(wanted: Any, found: Any) -> None:
    """The same values, dtypes and shapes."""
    if type(wanted) is tuple:
        assert len(wanted) == len(found)
        for one, other in zip(wanted, found, strict=True):
            matched(one, other)
        return
    one, other = np.asarray(wanted), np.asarray(found)
    assert (one.dtype, one.shape) == (other.dtype, other.shape)
    np.testing.assert_allclose(other, one, rtol=1e-6 if one.dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda x: x.__name__)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_as_under_python(function: Callable[..., Any], size: int) -> None:
    x = np.array([3.0, -0.5, 2.5, 8.0, 0.25])[:size]
    kernel: Any = psc.kernel(function)
    matched(function(x.copy()), kernel(x))


class Way(Enum):
    """How a step is taken."""

    FORWARD = "f"
    BACK = "b"


class Level(IntEnum):
    """A number with a name."""

    LOW = 1
    HIGH = 2


def test_enumerations() -> None:
    def of_enumerations(x: f64["n"]) -> f64["n"]:
        for each in Way:
            x = x * 2 if each is Way.BACK else x + 1
        for level in reversed(Level):
            x = x * 3 + level
        if Way("b") is Way.BACK and Level(1) == Level.LOW:
            x = x + len(Way)
        return x

    x = np.arange(3.0)
    matched(of_enumerations(x), psc.kernel(of_enumerations)(x))


def array_first(x: f64["n"]) -> f64["n"]:
    return (x * Vector(x, x)).x


def array_of_a_sequence(x: f64["n"]) -> f64["n"]:
    return (x[0] * Dual(x, x)).value


def not_implemented(x: f64["n"]) -> f64["n"]:
    return (Dual(x, x) / x).value


def not_reflected(x: f64["n"]) -> f64["n"]:
    _ = 2.0 / Dual(x, x)
    return x


def of_tuples(x: f64["n"]) -> f64["n"]:
    return ((x, x) + Pair(x, x))[0]  # noqa: RUF005


@dataclass(frozen=True)
class Longer(Vector):
    """A class that may go first."""

    z: Any = 0

    def __radd__(self, other: Any) -> Any:
        return other


def derived_first(x: f64["n"]) -> f64["n"]:
    return (Vector(x, x) + Longer(x, x)).x


@dataclass(frozen=True)
class Inherits(Dual):
    """Python makes another `__eq__`, which hides the inherited one."""

    more: Any = 0


def hidden(x: f64["n"]) -> f64["n"]:
    return Inherits(x, x) == Inherits(x, x)


@dataclass(frozen=True)
class Counter:
    """What `+=` calls."""

    x: Any

    def __iadd__(self, other: Any) -> Any:
        return other

    def __add__(self, other: Any) -> Any:
        return self.x

    def __iter__(self) -> Any:
        items = [self.x]
        return iter(items)

    def __len__(self) -> Any:
        return -1


def in_place(x: f64["n"]) -> f64["n"]:
    a: Any = Counter(x)
    a += x
    return a


def into_an_array(x: f64["n"]) -> f64["n"]:
    y = x * 2
    y += Vector(x, x)
    return y


def other_loops(x: f64["n"]) -> f64["n"]:
    return [each for each in Counter(x)][0]  # noqa: RUF015


def below_zero(x: f64["n"]) -> f64["n"]:
    return x + len(Counter(x))


def written(x: f64["n"]) -> f64["n"]:
    y = Counter(x * 2) + 1  # the array that the record holds
    y += 1
    return y


def chained(x: f64["n"]) -> f64["n"]:
    return Dual(x, x) < Dual(x, x) < Dual(x, x)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (array_first, "operator of its own"),
        (array_of_a_sequence, "a sequence"),
        (not_implemented, "NotImplemented"),
        (not_reflected, "NotImplemented"),
        (of_tuples, "PSC110"),
        (derived_first, "may go first"),
        (hidden, "PSC"),
        (in_place, "__iadd__"),
        (into_an_array, "PSC110"),
        (other_loops, "one `yield` after the other"),
        (below_zero, "a length that is -1"),
        (written, "PSC205"),
        (chained, "chain of comparisons"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_what_is_refused(function: Callable[..., Any], words: str) -> None:
    with pytest.raises(psc.CheckError, match=words):
        psc.kernel(function)(np.ones(3))
