"""A picture of the Mandelbrot set: a while loop over all points at once, written as a PNG.

The first argument on the command line names the file, `mandelbrot.png` without one.
"""

from __future__ import annotations

import struct
import sys
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

import pscdsl as psc
from pscdsl import bool_, f64, i32, u8

LEAST = 0.99
"""How many of the counts must be NumPy's: a chaotic orbit may tell two roundings from one."""


class Orbits(psc.Record, dims="h w"):
    """One orbit of `z * z + c` for each point of the plane."""

    x: f64["h w"]
    y: f64["h w"]
    count: i32["h w"]
    """How many steps it took until the orbit was seen to escape."""
    inside: bool_["h w"]
    """Which orbits have not escaped."""
    steps: i32


@psc.kernel
def orbits(real: f64["w"], imaginary: f64["h"], limit: i32) -> Orbits["h w"]:
    """Follow the orbits of all points until none is left, for at most `limit` steps."""

    def unfinished(at: Orbits["h w"]) -> bool_:
        return np.any(at.inside) & (at.steps < limit)

    def step(at: Orbits["h w"]) -> Orbits["h w"]:
        # An orbit that has escaped stays where it is, so that it cannot overflow.
        x = np.where(at.inside, at.x * at.x - at.y * at.y + real, at.x)
        y = np.where(at.inside, 2 * at.x * at.y + imaginary[:, None], at.y)
        inside = at.inside & (x * x + y * y <= 256)
        return Orbits(x, y, at.count + inside.astype(np.int32), inside, at.steps + 1)

    h, w = imaginary.shape[0], real.shape[0]
    zero = np.zeros((h, w), np.float64)
    start = Orbits(zero, zero, np.zeros((h, w), np.int32), np.full((h, w), True), np.int32(0))
    return psc.while_loop(unfinished, step, start)


@psc.kernel
def picture(found: Orbits["h w"]) -> u8["h w 3"]:
    """The colours of the points: black inside, and by the speed of escape outside."""
    distance = np.where(found.inside, 256, found.x * found.x + found.y * found.y)
    speed = found.count.astype(np.float64) + 1 - np.log2(np.log2(distance) / 8)
    hue = 0.6 * np.log1p(speed)[:, :, None] + np.array([0.0, 0.1, 0.2])
    colour = np.where(found.inside[:, :, None], 0, 0.5 - 0.5 * np.cos(2 * np.pi * hue))
    return (255 * colour).astype(np.uint8)


def plane(width: int, height: int) -> tuple[np.ndarray, np.ndarray]:
    """The coordinates of a picture's columns and rows, the highest row first."""
    return np.linspace(-2.3, 1.15, width), np.linspace(1.15, -1.15, height)


def escape_counts_in_numpy(real: np.ndarray, imaginary: np.ndarray, limit: int) -> np.ndarray:
    """The counts of `orbits`, point by point."""
    counts = np.zeros((len(imaginary), len(real)), np.int32)
    for row, b in enumerate(imaginary):
        for column, a in enumerate(real):
            z = 0j
            while counts[row, column] < limit:
                z = z * z + complex(a, b)
                if z.real * z.real + z.imag * z.imag > 256:
                    break
                counts[row, column] += 1
    return counts


def png(pixels: np.ndarray) -> bytes:
    """A PNG file of RGB bytes."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    height, width, _ = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


class Result(NamedTuple):
    """What the orbits do."""

    agree: float
    """On a small grid, how many points escape after as many steps as in NumPy."""
    pixels: np.ndarray
    steps: int
    area: float
    """Of the set, by the share of points that are inside."""


def run(width: int = 960, height: int = 640, limit: int = 200) -> Result:
    """Check a small grid against NumPy, then make a picture."""
    small = plane(48, 32)
    counts = np.asarray(orbits(*small, np.int32(50)).count)
    agree = float((counts == escape_counts_in_numpy(*small, 50)).mean())
    np.testing.assert_array_less(LEAST, agree)
    found = orbits(*plane(width, height), np.int32(limit))
    area = float(np.mean(found.inside)) * 3.45 * 2.3
    return Result(agree, np.asarray(picture(found)), int(found.steps), area)


def main() -> None:
    """Write a picture, and print how right it is."""
    result = run()
    print(f"escape counts on a 48 x 32 grid: {result.agree:.1%} as in NumPy", end=", ")
    print(f"at least {LEAST:.0%} must be")
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "mandelbrot.png")
    target.write_bytes(png(result.pixels))
    height, width, _ = result.pixels.shape
    print(f"{target}: {width} x {height} points, {result.steps} steps")
    print(f"area of the set, by counting points: {result.area:.3f} (1.507 is known)")


if __name__ == "__main__":
    main()
