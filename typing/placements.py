"""Placements: along which axes of a mesh each axis of an array is cut into pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

MeshAxes: TypeAlias = tuple[tuple[str, ...], ...]
"""For each word of a shape, the axes of a mesh along which it is cut: `n@data d`."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The pieces of an array: for every axis, the mesh axes that it is cut along.

    `Placement((("data",), ()))` has the rows of a matrix in pieces along `data`. An axis that is
    cut along several mesh axes is cut along the first of them first. Along mesh axes that are not
    named, every device has the same piece. A placement has no numbers: it fits every mesh with
    these axes.

    Examples:
        >>> psc.Placement.parse("n@data d")
        Placement(axes=(('data',), ()))
        >>> str(psc.Placement.parse("n@data@model d"))
        '_@data@model _'
    """

    axes: MeshAxes

    def __post_init__(self) -> None:
        used = self.used
        again = next((name for at, name in enumerate(used) if name in used[:at]), None)
        if again is not None:
            raise ValueError(f"the mesh axis `{again}` is used more than once in `{self}`")

    @classmethod
    def parse(cls, text: str) -> Placement:
        """Return the placement that a text in the notation of shapes describes.

        Args:
            text: A word for each axis, with a mesh axis after each `@`: `"n@data d"`. The text
                before the first `@` is not read, and may be `_`.

        Raises:
            ValueError: A word has no size or no mesh axis where one has to be, or a mesh axis is
                used more than once.

        Examples:
            >>> psc.Placement.parse("n@data d")
            Placement(axes=(('data',), ()))
        """
        try:
            return cls(read_mesh_axes(text))
        except ShapeSyntaxError as error:
            raise ValueError(f"the placement `{text}` is not right: {error}") from None

    @classmethod
    def whole(cls, rank: int) -> Placement:
        """Return the placement that has an array of so many axes whole on every device.

        Examples:
            >>> psc.Placement.whole(2)
            Placement(axes=((), ()))
        """
        return cls(((),) * rank)

    @property
    def rank(self) -> int:
        """The number of axes.

        Examples:
            >>> psc.Placement.parse("n@data d").rank
            2
        """
        return len(self.axes)

    @property
    def used(self) -> tuple[str, ...]:
        """The mesh axes along which something is cut, in the order of the array's axes.

        Examples:
            >>> psc.Placement.parse("n@data d@model").used
            ('data', 'model')
        """
        return tuple([name for names in self.axes for name in names])

    @property
    def is_whole(self) -> bool:
        """True if every device has the whole array.

        Examples:
            >>> psc.Placement.parse("n@data d").is_whole, psc.Placement.whole(2).is_whole
            (False, True)
        """
        return not self.used

    def cuts(self, mesh: Mapping[str, int]) -> tuple[int, ...]:
        """Return the number of pieces along each axis, for a mesh of these sizes.

        Examples:
            >>> psc.Placement.parse("n@data d").cuts({"data": 4, "model": 2})
            (4, 1)
        """
        return tuple([prod([mesh[name] for name in names]) for names in self.axes])

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return iter(self.axes)

    def __str__(self) -> str:
        return " ".join([placed_word("_", names) for names in self.axes])

    __module__ = "pscdsl"


def placed_word(size: object, names: Sequence[str]) -> str:
    """Return a word of a shape with the mesh axes that it is cut along: `n@data`."""
    return "@".join([str(size), *names])


class ShapeSyntaxError(ValueError):
    """A text is not a shape; `offset` is where in the text."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


@lru_cache(maxsize=4096)
def read_mesh_axes(text: str) -> MeshAxes:
    """Read the axes of a mesh in a shape, `n@data d`; raise ShapeSyntaxError."""
    found: list[tuple[str, ...]] = []
    used: set[str] = set()
    for word, offset in shape_words(text):
        size, *axes = word.split("@")
        if not size:
            raise ShapeSyntaxError("expected a size before `@`: `_` is any", offset)
        for axis in axes:
            if not axis.isidentifier():
                raise ShapeSyntaxError("expected the name of a mesh axis after `@`", offset)
            if axis in used:
                raise ShapeSyntaxError(f"the mesh axis `{axis}` cuts more than one axis", offset)
            used.add(axis)
        if axes and (size == "..." or size.startswith("*")):
            raise ShapeSyntaxError("a mesh axis cuts one axis, not a group of them", offset)
        found.append(tuple(axes))
    return tuple(found)


def shape_words(text: str) -> list[tuple[str, int]]:
    """Return the words of a shape, each with its offset: spaces in parentheses end none."""
    words: list[tuple[str, int]] = []
    start, depth = -1, 0
    for index, character in enumerate(text):
        if character.isspace() and depth == 0:
            if start >= 0:
                words.append((text[start:index], start))
            start = -1
            continue
        if start < 0:
            start = index
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
            if depth < 0:
                raise ShapeSyntaxError("unmatched `)`", index)
    if depth > 0:
        raise ShapeSyntaxError("`(` is never closed", text.rindex("("))
    if start >= 0:
        words.append((text[start:], start))
    return words
