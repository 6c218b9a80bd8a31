"""Programs of various kinds, as they are written in plain NumPy: integers, grids, signals."""

# Python numbers become arrays.
# mypy: disable-error-code="assignment"

import numpy as np

from pscdsl import Static, c128, f64, i32, i64, u8
from tests.plain_numpy.program import Program, sizes


def compute(array_1: i64["n m"], array_2: i64["n m"], a: i64, b: i64, c: i64) -> i64["n m"]:
    return np.clip(array_1, 2, 10) * a + array_2 * b + c


def go_fast(a: f64["n n"]) -> f64["n n"]:
    trace = 0.0
    for i in range(a.shape[0]):
        trace += np.tanh(a[i, i])
    return a + trace


def crc16(data: u8["n"], poly: i64 = 0x8408) -> i64:
    crc = 0xFFFF
    for byte in data:
        rest = 0xFF & byte
        for _ in range(8):
            if (crc & 1) ^ (rest & 1):
                crc = (crc >> 1) ^ poly
            else:
                crc >>= 1
            rest >>= 1
    crc = ~crc & 0xFFFF
    return ((crc << 8) | (crc >> 8 & 0xFF)) & 0xFFFF


def mandelbrot1(
    xmin: f64,
    xmax: f64,
    ymin: f64,
    ymax: f64,
    xn: Static[int],
    yn: Static[int],
    maxiter: i64,
    horizon: f64,
) -> tuple[c128["yn xn"], i64["yn xn"]]:
    x = np.linspace(xmin, xmax, xn)
    y = np.linspace(ymin, ymax, yn)
    c = x + y[:, None] * 1j
    counts = np.zeros(c.shape, dtype=np.int64)
    z = np.zeros(c.shape, dtype=np.complex128)
    for n in range(maxiter):
        inside = np.abs(z) < horizon
        counts[inside] = n
        z[inside] = z[inside] ** 2 + c[inside]
    counts[counts == maxiter - 1] = 0
    return z, counts


def mandelbrot2(
    xmin: f64,
    xmax: f64,
    ymin: f64,
    ymax: f64,
    xn: Static[int],
    yn: Static[int],
    maxiter: i64,
    horizon: f64,
) -> tuple[c128["xn yn"], i64["xn yn"]]:
    assert xn >= 1
    assert yn >= 1
    i, j = np.mgrid[0:xn, 0:yn]
    c = (np.linspace(xmin, xmax, xn)[i] + 1j * np.linspace(ymin, ymax, yn)[j]).ravel()
    counts = np.zeros((xn, yn), dtype=np.int64)
    last = np.zeros((xn, yn), dtype=np.complex128)
    left = np.arange(xn * yn)
    z = np.zeros(left.shape, dtype=np.complex128)
    for n in range(maxiter):
        if left.size == 0:
            break
        np.multiply(z, z, out=z)
        z += c[left]
        escaped = np.abs(z) > horizon
        counts.ravel()[left[escaped]] = n + 1
        last.ravel()[left[escaped]] = z[escaped]
        z = z[~escaped]
        left = left[~escaped]
    return last, counts


def stockham_fft(
    n: Static[int], radix: Static[int], stages: Static[int], x: c128["n"], y: c128["n"]
) -> None:
    assert radix >= 2
    assert n == radix**stages
    i, j = np.mgrid[0:radix, 0:radix]
    dft = np.exp(-2j * np.pi * i * j / radix)
    y[:] = x
    for stage in range(stages):
        length = radix ** (stages - stage)
        rest = length // radix
        parts = np.reshape(y, (radix, rest, n // length))
        twiddles = np.empty((rest, radix), dtype=np.complex128)
        p, t = np.mgrid[0:rest, 0:radix]
        twiddles[:] = np.exp(-2j * np.pi * p * t / length)
        mixed = np.transpose(np.tensordot(dft, parts, axes=1), (1, 0, 2))
        y[:] = np.reshape(mixed * twiddles[:, :, np.newaxis], (n,))


def spmv(row_starts: i32["r"], columns: i32["nnz"], values: f64["nnz"], x: f64["m"]) -> f64["r-1"]:
    y = np.empty(row_starts.size - 1, dtype=values.dtype)
    for i in range(row_starts.size - 1):
        start, stop = row_starts[i], row_starts[i + 1]
        y[i] = values[start:stop] @ x[columns[start:stop]]
    return y


def match(b1: i32, b2: i32) -> i32:
    if b1 + b2 == 3:
        return 1
    return 0


def nussinov(seq: i32["n"]) -> i32["n n"]:
    n = seq.shape[0]
    table = np.zeros((n, n), np.int32)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            if j - 1 >= 0:
                table[i, j] = max(table[i, j], table[i, j - 1])
            if i + 1 < n:
                table[i, j] = max(table[i, j], table[i + 1, j])
            if j - 1 >= 0 and i + 1 < n:
                if i < j - 1:
                    paired = table[i + 1, j - 1] + match(seq[i], seq[j])
                    table[i, j] = max(table[i, j], paired)
                else:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
    return table


def floyd_warshall(path: i32["n n"]) -> None:
    for k in range(path.shape[0]):
        path[:] = np.minimum(path, np.add.outer(path[:, k], path[k, :]))


def deriche(alpha: f64, image: f64["w h"]) -> f64["w h"]:
    w, h = image.shape
    assert w >= 3
    assert h >= 3
    k = (1.0 - np.exp(-alpha)) ** 2
    k /= 1.0 + 2.0 * alpha * np.exp(-alpha) - np.exp(2.0 * alpha)
    a1 = k
    a2 = k * np.exp(-alpha) * (alpha - 1.0)
    a3 = k * np.exp(-alpha) * (alpha + 1.0)
    a4 = -k * np.exp(-2.0 * alpha)
    b1 = 2.0 ** (-alpha)
    b2 = -np.exp(-2.0 * alpha)
    y1 = np.empty_like(image)
    y1[:, 0] = a1 * image[:, 0]
    y1[:, 1] = a1 * image[:, 1] + a2 * image[:, 0] + b1 * y1[:, 0]
    for j in range(2, h):
        y1[:, j] = a1 * image[:, j] + a2 * image[:, j - 1] + b1 * y1[:, j - 1] + b2 * y1[:, j - 2]
    y2 = np.empty_like(image)
    y2[:, -1] = 0.0
    y2[:, -2] = a3 * image[:, -1]
    for j in range(h - 3, -1, -1):
        y2[:, j] = a3 * image[:, j + 1] + a4 * image[:, j + 2]
        y2[:, j] += b1 * y2[:, j + 1] + b2 * y2[:, j + 2]
    across = y1 + y2
    y1[0] = a1 * across[0]
    y1[1] = a1 * across[1] + a2 * across[0] + b1 * y1[0]
    for i in range(2, w):
        y1[i] = a1 * across[i] + a2 * across[i - 1] + b1 * y1[i - 1] + b2 * y1[i - 2]
    y2[-1] = 0.0
    y2[-2] = a3 * across[-1]
    for i in range(w - 3, -1, -1):
        y2[i] = a3 * across[i + 1] + a4 * across[i + 2]
        y2[i] += b1 * y2[i + 1] + b2 * y2[i + 2]
    return y1 + y2


PLANE = (-1.75, 0.25, -1.0, 1.0)

PROGRAMS = (
    Program(
        compute,
        lambda draw, s: (
            *(draw.integers(0, 1000, s.n, s.m), draw.integers(0, 1000, s.n, s.m)),
            *(4, 3, 9),
        ),
        sizes("n m", (0, 2), (1, 1), (2, 3), (19, 7)),
    ),
    Program(go_fast, lambda draw, s: (draw.reals(s.n, s.n),), sizes("n", 0, 1, 2, 3, 19)),
    Program(
        crc16,
        lambda draw, s: (draw.integers(0, 256, s.n).astype(np.uint8),),
        sizes("n", 0, 1, 2, 3, 19, 100),
    ),
    Program(
        mandelbrot1,
        lambda draw, s: (*PLANE, s.xn, s.yn, s.maxiter, 2.0),
        sizes("xn yn maxiter", (1, 1, 1), (2, 3, 2), (3, 2, 0), (19, 13, 10)),
        tolerance=1e-9,
    ),
    Program(
        mandelbrot2,
        lambda draw, s: (*PLANE, s.xn, s.yn, s.maxiter, 2.0),
        sizes("xn yn maxiter", (1, 1, 1), (2, 3, 2), (3, 2, 0), (19, 13, 10)),
        tolerance=1e-9,
    ),
    Program(
        stockham_fft,
        lambda draw, s: (s.r**s.k, s.r, s.k, draw.complexes(s.r**s.k), draw.complexes(s.r**s.k)),
        sizes("r k", (2, 1), (2, 2), (3, 2), (2, 5), (4, 3)),
        writes=("y",),
    ),
    Program(
        spmv,
        lambda draw, s: (
            np.sort(np.append(draw.integers(0, s.nnz + 1, s.n), [0, s.nnz])).astype(np.int32),
            draw.integers(0, s.m, s.nnz).astype(np.int32),
            *(draw.reals(s.nnz), draw.reals(s.m)),
        ),
        sizes("n m nnz", (1, 1, 1), (2, 3, 2), (4, 2, 9), (19, 13, 50)),
    ),
    Program(
        nussinov,
        lambda draw, s: (draw.integers(0, 4, s.n).astype(np.int32),),
        sizes("n", 0, 1, 2, 3, 6, 19),
    ),
    Program(
        floyd_warshall,
        lambda draw, s: (draw.integers(1, 100, s.n, s.n).astype(np.int32),),
        sizes("n", 0, 1, 2, 3, 6, 19),
        writes=("path",),
    ),
    Program(
        deriche,
        lambda draw, s: (0.25, draw.reals(s.w, s.h)),
        sizes("w h", (3, 3), (3, 5), (6, 4), (19, 13)),
    ),
)
