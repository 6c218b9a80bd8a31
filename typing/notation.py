"""The notation of shapes: the text inside `f32["n d+1 *batch _ ..."]`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import TypeAlias

from pscdsl.typing.dims import Dim, DimSyntaxError, Size, parse, substitute

ALLOWED = (
    "a dimension is a name, an integer, an expression such as `n+1`, `2*n` or `n//2`, "
    "`_`, `*batch` or `...`"
)


class ShapeSyntaxError(ValueError):
    """A text is not a shape; `offset` is where in the text."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Anonymous:
    """`_`: any size, another one at each occurrence."""

    def __str__(self) -> str:
        return "_"


@dataclass(frozen=True, slots=True)
class Variadic:
    """Any number of dimensions: `*batch` is the same group wherever named, `...` has no name."""

    name: str | None

    def __str__(self) -> str:
        return "..." if self.name is None else f"*{self.name}"


DimSpec: TypeAlias = Size | Anonymous | Variadic
"""What one word of a shape says."""


@lru_cache(maxsize=4096)
def parse_shape(text: str) -> tuple[DimSpec, ...]:
    """Read a shape: dimensions separated by whitespace, spaces only inside parentheses."""
    return tuple(_parse_word(word, offset) for word, offset in _words(text))


def _words(text: str) -> list[tuple[str, int]]:
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


def _parse_word(word: str, offset: int) -> DimSpec:
    if word == "_":
        return Anonymous()
    if word == "...":
        return Variadic(None)
    if word[0] == "*":
        return _parse_group(word, offset)
    if word[0] in "#?":
        meaning = "broadcastable sizes" if word[0] == "#" else "sizes that differ per leaf"
        raise ShapeSyntaxError(f"`{word[0]}` ({meaning}) is not supported: {ALLOWED}", offset)
    if word.endswith(","):
        raise ShapeSyntaxError(
            "dimensions are separated by spaces, without commas", offset + len(word) - 1
        )
    label, equals, size = word.partition("=")
    if equals:
        if not label.isidentifier():
            raise ShapeSyntaxError(f"expected a name before `=`: {ALLOWED}", offset)
        return _parse_size(size, offset + len(label) + 1)
    return _parse_size(word, offset)


def _parse_group(word: str, offset: int) -> Variadic:
    group = word[1:]
    if group == "_":
        return Variadic(None)
    if not group.isidentifier():
        raise ShapeSyntaxError(f"expected a name after `*`: {ALLOWED}", offset + 1)
    return Variadic(group)


def _parse_size(text: str, offset: int) -> Size:
    try:
        size = parse(text)
    except DimSyntaxError as error:
        raise ShapeSyntaxError(f"{error.message}: {ALLOWED}", offset + error.offset) from None
    if isinstance(size, int) and size < 0:
        raise ShapeSyntaxError(f"a size is never negative, found {size}", offset)
    return size


# Sizes given to a record: `Layer["d 2*h"]`, and `Window["o i 3 3"]` where `*window` takes two.


Renaming: TypeAlias = Mapping[str, tuple[DimSpec, ...]]
"""What stands in place of a name: one size, or any number for a group, `*window`."""


def given(names: Sequence[str], arguments: Sequence[DimSpec]) -> Renaming | None:
    """What each name stands for; None if the arguments do not fit them."""
    one_each: list[tuple[DimSpec, ...]] = [(argument,) for argument in arguments]
    groups = [place for place, name in enumerate(names) if name.startswith("*")]
    if not groups:
        if len(arguments) != len(names):
            return None
        pieces = one_each
    else:
        start = groups[0]
        after = len(names) - start - 1
        end = len(arguments) - after
        if len(groups) > 1 or end < start:
            return None
        pieces = [*one_each[:start], tuple(arguments[start:end]), *one_each[end:]]
    found = dict(zip(names, pieces, strict=True))
    for name, piece in found.items():
        open_parts = sum(isinstance(each, Variadic) for each in piece)
        if open_parts > int(name.startswith("*")):
            return None
    return found


def applied(dims: Iterable[DimSpec], renaming: Renaming) -> tuple[DimSpec, ...]:
    """A shape with what the names stand for; a name given as `_` keeps its own."""
    sizes: dict[str, Size] = {}
    for name, piece in renaming.items():
        if len(piece) == 1 and isinstance(piece[0], int | Dim) and not name.startswith("*"):
            sizes[name] = piece[0]

    def one(dim: DimSpec) -> tuple[DimSpec, ...]:
        if isinstance(dim, Dim):
            return (substitute(dim, sizes),)
        if isinstance(dim, Variadic):
            return renaming.get(str(dim), (dim,))
        return (dim,)

    return tuple(chain.from_iterable(map(one, dims)))
