"""The axes of an equation's operands and results along which it acts in the same way everywhere.

A factor is a number that names such an axis: an equation with its operands cut along the axes of a
factor gives its results cut along the axes of that factor. A factor that no result has is combined:
the results of the parts, combined once more, are the result. Along a factor that no operand has, an
equation can make a part of its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

Factors: TypeAlias = tuple[int | None, ...]
"""The factor of each axis of an array; None for an axis that has to be whole."""


@dataclass(frozen=True, slots=True)
class AxisRule:
    """The factors of an equation; see the module."""

    operands: tuple[Factors, ...]
    results: tuple[Factors, ...]
    combine: str = "sum"
    """The reduction that combines along factors which no result has."""
    linear: Sequence[Sequence[int]] = ()
    """Sets of operands in which the results are linear together, the others constant."""
    counted: Sequence[int] = ()
    """Factors that the equation makes, along which its elements depend on their places."""

    @classmethod
    def leading(
        cls,
        number: int,
        operands: Sequence[int],
        results: Sequence[int],
        linear: Sequence[Sequence[int]] = (),
    ) -> AxisRule:
        """Return the rule of an equation that is the same along a number of first axes.

        Operands and results are given by their ranks; their further axes have to be whole.
        """

        def factors(rank: int) -> Factors:
            return tuple([axis if axis < number else None for axis in range(rank)])

        return cls(
            tuple(map(factors, operands)),
            tuple(map(factors, results)),
            linear=linear,
        )

    def reduced(self) -> frozenset[int]:
        """Return the factors that no result has."""
        given = {factor for each in self.operands for factor in each if factor is not None}
        return frozenset(given.difference(*self.results))


def along(rank: int, axes: Sequence[int]) -> Factors:
    """Return factors of an array whose given axes have to be whole."""
    return tuple([None if axis in axes else axis for axis in range(rank)])


def kept_factors(rank: int, axes: Sequence[int]) -> Factors:
    """Return the factors of an array without some axes, as `range` numbers those of the whole."""
    return tuple([axis for axis in range(rank) if axis not in axes])


def matched(old: Sequence[object], new: Sequence[object]) -> tuple[Factors, Factors]:
    """Return the factors of a reshape: equal axes at both ends, and the first ones between them.

    The elements between are in the same order, so that parts along the first axis are parts along
    the first axis of the result, where that has such parts.
    """
    first: list[int | None] = [None] * len(old)
    second: list[int | None] = [None] * len(new)
    numbers = count()
    shared = 0
    while shared < min(len(old), len(new)) and old[shared] == new[shared]:
        first[shared] = second[shared] = next(numbers)
        shared += 1
    left = min(len(old), len(new)) - shared
    back = 1
    while back <= left and old[-back] == new[-back]:
        first[-back] = second[-back] = next(numbers)
        back += 1
    if shared + back <= min(len(old), len(new)):
        first[shared] = second[shared] = next(numbers)
    return tuple(first), tuple(second)


__all__ = ["AxisRule", "Factors", "along", "kept_factors", "matched"]
