"""What operations are drawn with: the values in reach, random choices, and operands that fit."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np

from tests.differential import awkward
from tests.differential.enclosures import SURELY, Exact, Real, Value, known, real
from tests.differential.formats import DTYPES, FORMATS, NAMES, NDArray

T = TypeVar("T")


class Inapplicable(Exception):
    """An operation does not fit the values in reach; another one may."""


def need(condition: bool) -> None:
    """Raise Inapplicable unless a condition holds."""
    if not condition:
        raise Inapplicable


@dataclass(frozen=True)
class Operand:
    """An expression as it is written, and what its value may be."""

    text: str
    value: Value

    @property
    def dtype(self) -> str:
        """Its dtype, as we call it."""
        return dtype_of(self.value)

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self.value.shape

    @property
    def is_float(self) -> bool:
        """Whether it is of floating-point numbers."""
        return isinstance(self.value, Real)

    @property
    def real(self) -> Real:
        """Its value, of floating-point numbers."""
        assert isinstance(self.value, Real)
        return self.value

    @property
    def exact(self) -> Exact:
        """Its value, of integers or truth values."""
        assert isinstance(self.value, Exact)
        return self.value


def dtype_of(value: Value) -> str:
    """The dtype of a value, as we call it."""
    return value.format.name if isinstance(value, Real) else NAMES[value.array.dtype]


Meaning: TypeAlias = Callable[[Any], Value]
"""The enclosure of an operation on a value of the dtype that the operation was drawn for."""


@dataclass(frozen=True)
class Step:
    """An operation on one value: how it is written, and its enclosure."""

    text: str
    meaning: Meaning


Operation: TypeAlias = Callable[["Body", Operand], Step]


class Body:
    """The values in reach while a program is drawn."""

    def __init__(self, rng: random.Random, operands: Sequence[Operand], most: int) -> None:
        self.rng = rng
        self.operands = list(operands)
        self.most = most
        """So many elements a value may have."""
        self.documented = False
        """Whether NumPy's manual or ours says that NumPy's results differ."""

    def choice(self, options: Sequence[T]) -> T:
        """One of these."""
        return self.rng.choice(options)

    def chance(self, probability: float) -> bool:
        """Whether something happens that has this probability."""
        return self.rng.random() < probability

    def axis(self, x: Operand) -> int:
        """One of its axes."""
        need(bool(x.shape))
        return self.rng.randrange(len(x.shape))

    def axes(self, x: Operand) -> tuple[int, ...]:
        """Some of its axes, at least one."""
        need(bool(x.shape))
        count = self.rng.randrange(1, len(x.shape) + 1) if self.chance(0.3) else 1
        return tuple(sorted(self.rng.sample(range(len(x.shape)), count)))

    def number(self, dtype: str) -> Operand:
        """A constant."""
        text, value = awkward.number(self.rng, dtype)
        array = np.asarray(value).astype(DTYPES[dtype])
        return Operand(text, real(FORMATS[dtype], array) if dtype in FORMATS else known(array))

    def partner(self, x: Operand, constants: float = 0.4) -> Operand:
        """A constant, or a value of the same dtype that broadcasts with it."""
        if self.chance(constants):
            return self.number(x.dtype)
        found: list[Operand] = []
        for y in self.operands:
            if y.dtype == x.dtype and fits(self, x.shape, y.shape):
                found.append(y)
        return self.choice(found) if found else self.number(x.dtype)


def fits(g: Body, *shapes: tuple[int, ...]) -> bool:
    """Whether shapes broadcast together to no more elements than a value may have."""
    try:
        together = np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return int(np.prod(together, dtype=np.int64)) <= g.most


def worth(value: Value) -> float:
    """The share of elements of which something is known."""
    if isinstance(value, Exact):
        return 1 - float(np.mean(value.unknown))
    return 1 - float(np.mean(is_open(value)))


def is_open(value: Real) -> NDArray:
    """Where nothing is known of a value."""
    everything = (value.low == -np.inf) & (value.high == np.inf)
    return np.asarray(everything & (value.nan != SURELY))
