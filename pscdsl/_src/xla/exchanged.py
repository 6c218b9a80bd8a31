"""The collectives of an optimised program, as its text has them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Final, NamedTuple

_COLLECTIVE: Final = re.compile(
    r" = (\(.*?\)|\S+) "
    r"(all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?:-done)?\("
)
"""One that is started and ended apart is counted where it ends: there its type is the result's."""
_ARRAY: Final = re.compile(r"\b([a-z]+)(\d*)\w*\[([\d,]*)\]")


class Exchanged(NamedTuple):
    """The collectives of a kind in a program."""

    times: int
    size: int
    """The bytes of their results on a device."""


def exchanged(text: str) -> Mapping[str, Exchanged]:
    """Return the collectives of a program by their kinds; those in loops count for one step."""
    found: dict[str, Exchanged] = {}
    for kind, sizes in collectives(text):
        count, before = found.get(kind, Exchanged(0, 0))
        found[kind] = Exchanged(count + 1, before + sum(sizes))
    return found


def collectives(text: str) -> Iterator[tuple[str, Sequence[int]]]:
    """Yield the kind of each collective, and the bytes of each array that it gives."""
    for result, kind in _COLLECTIVE.findall(text):
        yield kind, [_bytes(*array) for array in _ARRAY.findall(result)]


def _bytes(kind: str, bits: str, shape: str) -> int:
    """Return the bytes of an array, by the name of its type: `f32`, `pred`, and its shape."""
    width = int(bits) // 8 if bits else 1
    return width * prod([int(size) for size in shape.split(",") if size])
