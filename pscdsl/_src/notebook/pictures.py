"""Small pictures of arrays of numbers: lines of 1-d ones as SVG, heat maps of 2-d ones as PNG."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from pscdsl._src.ir.primitive import NDArray
from pscdsl._src.notebook import markup

# Summaries of arrays in cells of a grid. Each element is read, in parts, so that no NaN is missed.


@dataclass(frozen=True)
class Grid:
    """The elements of a matrix in the cells of a grid."""

    low: NDArray
    """The least finite element of each cell; infinite where there is none."""
    high: NDArray
    mean: NDArray
    """The mean of the finite elements of each cell; NaN where there is none."""
    nans: NDArray
    """The number of NaNs in each cell."""
    above: NDArray
    """The number of positive infinities."""
    below: NDArray

    @property
    def range(self) -> tuple[float, float] | None:
        """The least and the greatest finite element; None if there is none."""
        low, high = float(self.low.min(initial=np.inf)), float(self.high.max(initial=-np.inf))
        return (low, high) if low <= high else None

    @property
    def strange(self) -> list[tuple[str, str, int]]:
        """The elements that are not finite: name, colour and number of each kind."""
        counts = (self.nans.sum(), self.above.sum(), self.below.sum())
        kinds = zip(_STRANGE, counts, strict=True)
        return [(name, colour, int(count)) for (name, colour), count in kinds if count]


_STRANGE = (("NaN", "#e03131"), ("+inf", "#f08c00"), ("-inf", "#22b8cf"))


def numbers(array: NDArray) -> NDArray:
    """Return elements as float64: of complex ones the magnitude, of bools 0 and 1."""
    if array.dtype.kind == "c":
        array = np.abs(array.astype(np.complex128))
    return array.astype(np.float64)


def grid(matrix: NDArray, most: tuple[int, int]) -> Grid:
    """Return a matrix that is not empty, in at most so many rows and columns of cells."""
    across = _bounds(matrix.shape[1], most[1])[:-1]
    parts: list[list[NDArray]] = []
    with np.errstate(all="ignore"):
        for first, last in pairwise(_bounds(matrix.shape[0], most[0])):
            parts.append(_row(numbers(matrix[first:last]), across))
    return Grid(*(np.array(column) for column in zip(*parts, strict=True)))


def _bounds(length: int, most: int) -> NDArray:
    cells = min(length, most)
    return np.arange(cells + 1) * length // cells


def _row(values: NDArray, starts: NDArray) -> list[NDArray]:
    """Return the entries of a `Grid` for one row of cells."""

    def reduced(operation: np.ufunc, each: Any) -> NDArray:
        made: NDArray = operation.reduceat(operation.reduce(each, axis=0), starts)
        return made

    finite = np.isfinite(values)
    low = reduced(np.minimum, np.where(finite, values, np.inf))
    high = reduced(np.maximum, np.where(finite, values, -np.inf))
    count = reduced(np.add, finite.astype(np.int64))
    total = reduced(np.add, np.where(finite, values, 0.0))
    mean = np.where(count > 0, np.clip(total / count, low, high), np.nan)
    strange = (np.isnan(values), np.isposinf(values), np.isneginf(values))
    return [low, high, mean, *(reduced(np.add, each.astype(np.int64)) for each in strange)]


def _scaled(values: NDArray, low: float, high: float) -> NDArray:
    """Return values from `low` to `high` as numbers from 0 to 1; 0.5 where all are the same."""
    if low == high:
        return np.where(np.isnan(values), np.nan, 0.5)
    with np.errstate(all="ignore"):
        scaled: NDArray = (values / 2 - low / 2) / (high / 2 - low / 2)  # halves do not overflow
    return scaled


# Lines.


BINS = 160
_WIDTH, _HEIGHT, _EDGE = 320, 56, 5
_BLUE = "#3b8eea"


def line(found: Grid) -> str:
    """Return the grid of one column as a line, with the ranges of cells behind it."""
    cells = len(found.mean)
    low, high = found.range or (0.0, 0.0)
    x = _EDGE + (np.arange(cells) + 0.5) * (_WIDTH - 2 * _EDGE) / cells
    lower, upper, mean = (
        _HEIGHT - _EDGE - _scaled(each[:, 0], low, high) * (_HEIGHT - 2 * _EDGE)
        for each in (found.low, found.high, found.mean)
    )
    drawn: list[str] = []
    if low < 0 < high:
        zero = _HEIGHT - _EDGE - float(_scaled(np.array(0.0), low, high)) * (_HEIGHT - 2 * _EDGE)
        drawn.append(
            f'<path d="M0 {zero:.1f}H{_WIDTH}" stroke="currentColor" opacity=".35"'
            ' stroke-dasharray="2 3"/>'
        )
    for first, last in _runs(~np.isnan(mean)):
        part = slice(first, last)
        if last - first == 1:
            drawn.append(
                f'<circle cx="{x[first]:.1f}" cy="{mean[first]:.1f}" r="2" fill="{_BLUE}"/>'
            )
        around = [*zip(x[part], upper[part], strict=True)]
        around += reversed([*zip(x[part], lower[part], strict=True)])
        if np.any(lower[part] != upper[part]):
            drawn.append(f'<polygon points="{_points(around)}" fill="{_BLUE}" opacity=".35"/>')
        course = _points(zip(x[part], mean[part], strict=True))
        drawn.append(
            f'<polyline points="{course}" fill="none" stroke="{_BLUE}" stroke-width="1.5"/>'
        )
    ends = (f"V{_HEIGHT}", f"V{_EDGE + 3}", f"V{_HEIGHT}")
    starts = (0, 0, _HEIGHT - _EDGE - 3)
    counts = (found.nans, found.above, found.below)
    for (_, colour), count, start, end in zip(_STRANGE, counts, starts, ends, strict=True):
        marks = "".join(f"M{x[place]:.1f} {start}{end}" for place in np.flatnonzero(count[:, 0]))
        if marks:
            drawn.append(f'<path d="{marks}" stroke="{colour}" stroke-width="2"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}"'
        f' viewBox="0 0 {_WIDTH} {_HEIGHT}" style="display:block">{"".join(drawn)}</svg>'
    )


def _runs(there: NDArray) -> Iterator[tuple[int, int]]:
    """Yield the first and the end of each run of true elements."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], there, [False])).astype(np.int8)))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def _points(places: Any) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


# Heat maps.


SIDE = 64
_LARGEST = 256
"""The length of the longer side, in pixels of the page."""
_SCALE = np.array(
    [(68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)], np.float64
)
"""Colours of least to greatest elements: five of the scale viridis."""


def heat_map(found: Grid) -> str:
    """Return a grid as an image, with cells in other colours that hold NaNs and infinities."""
    low, high = found.range or (0.0, 0.0)
    place = np.nan_to_num(_scaled(found.mean, low, high)) * (len(_SCALE) - 1)
    image = np.empty((*place.shape, 3), np.uint8)
    for channel, colours in enumerate(_SCALE.T):
        image[..., channel] = 0.5 + np.interp(place, np.arange(len(_SCALE)), colours)
    counts = (found.below, found.above, found.nans)  # NaNs are never hidden
    for (_, colour), count in zip(reversed(_STRANGE), counts, strict=True):
        image[count > 0] = tuple(bytes.fromhex(colour[1:]))
    height, width = place.shape
    zoom = max(1, min(16, _LARGEST // max(height, width)))
    return (
        f'<img alt="heat map" width="{width * zoom}" height="{height * zoom}"'
        f' style="image-rendering:pixelated;display:block;margin:.3em 0"'
        f' src="data:image/png;base64,{b64encode(_png(image)).decode()}">'
    )


def _png(image: NDArray) -> bytes:
    """Return an array of bytes, by row, column and channel, as a file."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    height, width, _ = image.shape
    raw = b"".join(b"\0" + row.tobytes() for row in image)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(raw)), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def legend(found: Grid) -> str:
    """Return the colours and numbers of elements that are not finite."""
    return " ".join(
        f'<span style="color:{colour}">&#9632;</span> {markup.text(f"{count:,} {name}")}'
        for name, colour, count in found.strange
    )
