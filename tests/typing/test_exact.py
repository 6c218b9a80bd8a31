"""When static values are the same to every program."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum, IntEnum
from itertools import combinations
from typing import NamedTuple

import pyrsistent
import pytest

from pscdsl.typing.array_types import StaticType
from pscdsl.typing.static_values import equality_tells, exact


class Mode(Enum):
    """A choice."""

    ONE = 1
    TWO = 2


class Level(IntEnum):
    """A choice that is a number."""

    ONE = 1


class Point(NamedTuple):
    """A tuple of a class of its own."""

    x: float


@dataclass(frozen=True)
class Config:
    """Static values by name."""

    rate: float
    note: str = ""


@dataclass(frozen=True, eq=False)
class Alone:
    """Equal to itself only."""

    rate: float


APART: list[object] = [
    *[True, 1, 1.0, complex(1), "1", b"1", Mode.ONE, Mode.TWO, Level.ONE, (1,), Point(1), None],
    *[0.0, -0.0, complex(0, 0.0), complex(0, -0.0), complex(-0.0, 0), (0.0,), (-0.0,), ((-0.0,),)],
    *[(True,), (1.0,), Point(1.0), frozenset({1}), frozenset({1.0}), range(1), math.nan, math.inf],
    *[Config(0.0), Config(-0.0), Config(1), Config(1.0), Alone(1), Alone(1), int, Config, exact],
    *[pyrsistent.pvector([1]), pyrsistent.pvector([1.0]), pyrsistent.m(a=1), pyrsistent.m(a=1.0)],
]


def test_values_that_differ_have_different_keys() -> None:
    for one, other in combinations(APART, 2):
        assert exact(one) != exact(other), (one, other)
        assert StaticType(one) != StaticType(other), (one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (float("nan"), float("nan")),
        ((1, "a"), (1, "a")),
        (range(0, 3), range(3)),
        (Config(0.5, "a"), Config(0.5, "a")),
        (pyrsistent.m(a=1, b=2), pyrsistent.m(b=2, a=1)),
    ],
    ids=["NaN", "tuples", "ranges", "data classes", "maps"],
)
def test_values_that_are_alike_have_one_key(one: object, other: object) -> None:
    assert exact(one) == exact(other)
    assert hash(StaticType(one)) == hash(StaticType(other))


@pytest.mark.parametrize("value", [[1], {"a": 1}, ([1],), {1}], ids=str)
def test_what_may_change_has_no_key(value: object) -> None:
    with pytest.raises(TypeError):
        exact(value)


def test_where_equality_tells_no_other_value_is_equal() -> None:
    for one in APART:
        if equality_tells(one):
            assert [each for each in APART if type(each) is type(one) and each == one] in (
                [one],
                [],
            )
