"""What the programs of various kinds compute, by libraries or element by element."""

# SciPy has no stubs.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

import binascii
from functools import cache
from typing import Any

import numpy as np
import scipy.signal
import scipy.sparse

from tests.plain_numpy.program import NDArray


def compute(array_1: NDArray, array_2: NDArray, a: int, b: int, c: int) -> Any:
    clipped = np.where(array_1 < 2, 2, np.where(array_1 > 10, 10, array_1))
    return a * clipped + b * array_2 + c


def go_fast(a: NDArray) -> Any:
    return a + np.tanh(np.diag(a)).sum()


def reflected(number: int, bits: int) -> int:
    return int(f"{number:0{bits}b}"[::-1], 2)


def crc16(data: NDArray) -> Any:
    """Python's own sum has the bits in the other order."""
    plain = binascii.crc_hqx(bytes(reflected(int(byte), 8) for byte in data), 0xFFFF)
    low, high = (reflected(plain, 16) ^ 0xFFFF).to_bytes(2, "little")
    return low << 8 | high


def orbit(c: complex, limit: int, horizon: float) -> list[complex]:
    """The points until one is beyond the horizon; that one is the last."""
    points = [0j]
    while len(points) <= limit and abs(points[-1]) < horizon:
        points.append(points[-1] ** 2 + c)
    return points


def plane(xmin: float, xmax: float, ymin: float, ymax: float, xn: int, yn: int) -> NDArray:
    x, y = np.linspace(xmin, xmax, xn), np.linspace(ymin, ymax, yn)
    return np.array([[complex(a, b) for a in x] for b in y])


def mandelbrot1(*given: Any) -> Any:
    *corners, limit, horizon = given
    c = plane(*corners)
    z, counts = np.zeros_like(c), np.zeros(c.shape, np.int64)
    for at in np.ndindex(*c.shape):
        points = orbit(complex(c[at]), limit, horizon)
        z[at] = points[-1]
        counts[at] = max(len(points) - 2, 0)
        if counts[at] == limit - 1:
            counts[at] = 0
    return z, counts


def mandelbrot2(*given: Any) -> Any:
    *corners, limit, horizon = given
    c = plane(*corners).T
    z, counts = np.zeros_like(c), np.zeros(c.shape, np.int64)
    for at in np.ndindex(*c.shape):
        points = orbit(complex(c[at]), limit, horizon)
        if abs(points[-1]) > horizon:
            z[at], counts[at] = points[-1], len(points) - 1
    return z, counts


def stockham_fft(n: int, radix: int, stages: int, x: NDArray, y: NDArray) -> Any:
    return np.fft.fft(x)


def spmv(row_starts: NDArray, columns: NDArray, values: NDArray, x: NDArray) -> Any:
    shape = (row_starts.size - 1, x.size)
    return scipy.sparse.csr_matrix((values, columns, row_starts), shape) @ x


def nussinov(seq: NDArray) -> Any:
    @cache
    def pairs(i: int, j: int) -> int:
        """The most pairs from i to j: i stays alone, or pairs with one that is not beside it."""
        if j <= i:
            return 0
        partners = [k for k in range(i + 2, j + 1) if seq[i] + seq[k] == 3]
        paired = (1 + pairs(i + 1, k - 1) + pairs(k + 1, j) for k in partners)
        return max(pairs(i + 1, j), *paired, 0)

    table = np.zeros((len(seq), len(seq)), np.int32)
    for i, j in np.ndindex(*table.shape):
        table[i, j] = pairs(i, j)
    return table


def floyd_warshall(path: NDArray) -> Any:
    """The shortest ways by at most twice as many edges, until nothing is shorter."""
    while path.size:
        shorter = np.minimum(path, (path[:, :, None] + path[None]).min(axis=1))
        if np.array_equal(shorter, path):
            break
        path = shorter
    return path


def deriche(alpha: float, image: NDArray) -> Any:
    decay = np.exp(-alpha)
    k = (1 - decay) ** 2 / (1 + 2 * alpha * decay - np.exp(2 * alpha))
    forward = [k, k * decay * (alpha - 1)]
    backward = [0.0, k * decay * (alpha + 1), -k * decay**2]
    recursion = [1.0, -(2.0**-alpha), decay**2]

    def smoothed(x: NDArray, axis: int) -> NDArray:
        there = scipy.signal.lfilter(forward, recursion, x, axis=axis)
        back = scipy.signal.lfilter(backward, recursion, np.flip(x, axis), axis=axis)
        return np.asarray(there + np.flip(back, axis))

    return smoothed(smoothed(image, 1), 0)
