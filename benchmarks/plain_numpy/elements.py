"""Programs that go through single elements, as filters, dynamic programming and counting do."""

from __future__ import annotations

from typing import Final

import numpy as np

from pscdsl import f64, i64
from tests.plain_numpy.program import Program, sizes


def biquad(x: f64["n"], b: f64["3"], a: f64["2"]) -> f64["n"]:
    y = np.zeros(len(x))
    z1 = z2 = 0.0
    for i in range(len(x)):
        y[i] = b[0] * x[i] + z1
        z1 = b[1] * x[i] - a[0] * y[i] + z2
        z2 = b[2] * x[i] - a[1] * y[i]
    return y


def smoothed(x: f64["n"], alpha: f64) -> f64["n"]:
    y = np.empty_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = alpha * x[i] + (1.0 - alpha) * y[i - 1]
    return y


def drawdown(x: f64["n"], limit: f64) -> f64["n"]:
    y = np.zeros(len(x))
    peak = x[0]
    for i in range(len(x)):
        if x[i] > peak or peak - x[i] > limit:
            peak = x[i]
        y[i] = peak - x[i]
    return y


def tridiagonal(a: f64["n"], b: f64["n"], c: f64["n"], d: f64["n"]) -> f64["n"]:
    n = len(d)
    cp = np.zeros(n)
    x = np.zeros(n)
    cp[0] = c[0] / b[0]
    x[0] = d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / m
        x[i] = (d[i] - a[i] * x[i - 1]) / m
    for i in range(n - 2, -1, -1):
        x[i] -= cp[i] * x[i + 1]
    return x


def edit_distance(s: i64["n"], t: i64["m"]) -> i64:
    n, m = len(s), len(t)
    d = np.zeros((n + 1, m + 1), dtype=np.int64)
    for i in range(n + 1):
        d[i, 0] = i
    for j in range(m + 1):
        d[0, j] = j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = 0 if s[i - 1] == t[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d[n, m]


def run_lengths(x: i64["n"]) -> tuple[i64["n"], i64]:
    lengths = np.zeros(len(x), dtype=np.int64)
    k = 0
    lengths[0] = 1
    for i in range(1, len(x)):
        if x[i] != x[i - 1]:
            k += 1
        lengths[k] += 1
    return lengths, k + 1


def kalman(z: f64["n"], x: f64, p: f64, q: f64, r: f64) -> tuple[f64["n"], f64["n"]]:
    xs = np.zeros(len(z))
    ps = np.zeros(len(z))
    for i in range(len(z)):
        p = p + q
        k = p / (p + r)
        x = x + k * (z[i] - x)
        p = (1.0 - k) * p
        xs[i] = x
        ps[i] = p
    return xs, ps


def reflected(steps: f64["n"], x: f64, low: f64, high: f64) -> f64["n"]:
    path = np.empty_like(steps)
    for i in range(len(steps)):
        x = x + steps[i]
        if x > high:
            x = 2.0 * high - x
        elif x < low:
            x = 2.0 * low - x
        path[i] = x
    return path


def binned(x: f64["n"], w: f64["n"], low: f64, high: f64, sums: f64["k"]) -> None:
    k = len(sums)
    scale = k / (high - low)
    for i in range(len(x)):
        if low <= x[i] < high:
            j = int((x[i] - low) * scale)
            if j >= k:
                j = k - 1
            sums[j] += w[i]


def labels(mask: i64["n m"]) -> i64["n m"]:
    n, m = mask.shape
    found = np.zeros((n, m), dtype=np.int64)
    parent = np.arange(n * m + 1)
    count = 0
    for i in range(n):
        for j in range(m):
            if mask[i, j] == 0:
                continue
            above = found[i - 1, j] if i > 0 else 0
            left = found[i, j - 1] if j > 0 else 0
            if above == 0 and left == 0:
                count += 1
                found[i, j] = count
            elif above == 0 or left == 0:
                found[i, j] = max(above, left)
            else:
                a, b = above, left
                while parent[a] != a:
                    a = parent[a]
                while parent[b] != b:
                    b = parent[b]
                root = min(a, b)
                parent[a] = root
                parent[b] = root
                found[i, j] = root
    for i in range(n):
        for j in range(m):
            a = found[i, j]
            while parent[a] != a:
                a = parent[a]
            found[i, j] = a
    return found


def lagged(x: f64["n"], lags: i64["k"]) -> f64["n k"]:
    out = np.zeros((len(x), len(lags)))
    for i in range(len(x)):
        for j in range(len(lags)):
            if i >= lags[j]:
                out[i, j] = x[i] - x[i - lags[j]]
    return out


def warped(x: f64["n"], y: f64["m"]) -> f64:
    n, m = len(x), len(y)
    d = np.full((n + 1, m + 1), np.inf)
    d[0, 0] = 0.0
    for i in range(n):
        for j in range(m):
            best = min(d[i, j + 1], d[i + 1, j], d[i, j])
            d[i + 1, j + 1] = abs(x[i] - y[j]) + best
    return d[n, m]


def sieved(prime: i64["n"]) -> i64:
    n = len(prime)
    count = 0
    for i in range(2, n):
        if prime[i] == 1:
            count += 1
            j = i * i
            while j < n:
                prime[j] = 0
                j += i
    return count


def collatz(start: i64["n"]) -> i64["n"]:
    steps = np.zeros(len(start), dtype=np.int64)
    for i in range(len(start)):
        x = start[i]
        while x > 1:
            x = x // 2 if x % 2 == 0 else 3 * x + 1
            steps[i] += 1
    return steps


def levinson(r: f64["n"]) -> tuple[f64["n"], f64]:
    n = len(r)
    a = np.zeros(n)
    old = np.zeros(n)
    a[0] = 1.0
    error = r[0]
    for i in range(1, n):
        total = 0.0
        for j in range(i):
            total += a[j] * r[i - j]
        k = -total / error
        for j in range(i + 1):
            old[j] = a[j]
        for j in range(1, i + 1):
            a[j] = old[j] + k * old[i - j]
        error *= 1.0 - k * k
    return a, error


def merged(x: f64["n"], y: f64["m"], out: f64["k"]) -> None:
    i = j = 0
    for k in range(len(out)):
        if j >= len(y) or (i < len(x) and x[i] <= y[j]):
            out[k] = x[i]
            i += 1
        else:
            out[k] = y[j]
            j += 1


ELEMENTS: Final = (
    Program(
        biquad, lambda d, s: (d.reals(s.n), d.reals(3), np.array([-0.5, 0.2])), sizes("n", 1, 9)
    ),
    Program(smoothed, lambda d, s: (d.reals(s.n), 0.3), sizes("n", 1, 9)),
    Program(drawdown, lambda d, s: (np.cumsum(d.reals(s.n)), 3.0), sizes("n", 1, 9)),
    Program(
        tridiagonal,
        lambda d, s: (d.reals(s.n), 4.0 + d.reals(s.n), d.reals(s.n), d.reals(s.n)),
        sizes("n", 2, 9),
    ),
    Program(
        edit_distance,
        lambda d, s: (d.integers(0, 4, s.n), d.integers(0, 4, s.m)),
        sizes("n m", (1, 1), (5, 7)),
    ),
    Program(run_lengths, lambda d, s: (d.integers(0, 2, s.n),), sizes("n", 1, 9)),
    Program(kalman, lambda d, s: (d.reals(s.n), 0.0, 1.0, 0.01, 0.5), sizes("n", 1, 9)),
    Program(reflected, lambda d, s: (d.reals(s.n), 0.0, -2.0, 2.0), sizes("n", 1, 9)),
    Program(
        binned,
        lambda d, s: (d.reals(s.n), d.reals(s.n), -0.9, 0.9, np.zeros(s.k)),
        sizes("n k", (1, 1), (9, 3)),
        writes=("sums",),
    ),
    Program(labels, lambda d, s: (d.integers(0, 2, s.n, s.m),), sizes("n m", (1, 1), (5, 7))),
    Program(
        lagged,
        lambda d, s: (d.reals(s.n), np.arange(1, s.k + 1) * 3),
        sizes("n k", (1, 1), (9, 3)),
    ),
    Program(warped, lambda d, s: (d.reals(s.n), d.reals(s.m)), sizes("n m", (1, 1), (5, 7))),
    Program(sieved, lambda d, s: (np.ones(s.n, np.int64),), sizes("n", 3, 30), writes=("prime",)),
    Program(collatz, lambda d, s: (d.integers(1, 10000, s.n),), sizes("n", 1, 9)),
    Program(
        levinson,
        lambda d, s: (0.9 ** np.arange(s.n) + np.eye(1, s.n)[0] + 0.01 * d.reals(s.n),),
        sizes("n", 1, 9),
    ),
    Program(
        merged,
        lambda d, s: (np.sort(d.reals(s.n)), np.sort(d.reals(s.m)), np.zeros(s.n + s.m)),
        sizes("n m", (1, 1), (5, 7)),
        writes=("out",),
    ),
)
"""Loops whose steps read what others before them have stored, at computed places, or stop early."""
