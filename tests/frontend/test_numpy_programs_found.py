"""Programs of plain NumPy that were once accepted and wrong, or showed an error of ours.

Each is refused, or has the results of the same text under Python and changes nothing else.
"""

from __future__ import annotations

import pytest

from pscdsl._src.checker.check import deep_stack
from tests.fuzz.numpy_differences import tried

HEAD = """\
import numpy as np
import pscdsl as psc
from pscdsl import f64, i64
"""

JUMPS = {
    "a return in a loop that is unrolled": """
@psc.kernel
def main(x: f64["n"]) -> f64:
    for step in range(3):
        if x[-1] > 1.0:
            return x[-1] * 2.0
    return x[0] - 4.0
""",
    "a return in an unrolled loop in a branch": """
@psc.kernel
def main(x: f64["n"], s: f64) -> f64:
    total = x.sum()
    if s > 0.0:
        for step in range(2):
            if x[0] < 3.0:
                return s
        total = total + 5.0
    return total
""",
    "a return in an unrolled loop of a helper": """
def until(z, limit):
    for step in range(3):
        z[-1] += 2.0
        if z[-1] >= limit:
            return z[0] + step
    return z[-1] - 1.0


@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    y = x.copy()
    y[0] = until(y, 4.0)
    return y
""",
    "a break at the end of an unrolled loop": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    y = np.zeros_like(x)
    for step in range(3):
        y[-1] += x[0]
        if y[-1] > 3.0:
            break
    return y
""",
    "a break between statements of an unrolled loop": """
@psc.kernel
def main(x: f64["n"]) -> tuple[f64["n"], f64]:
    y, total = x * 2.0, x[0] * 0.0
    for step in range(4):
        y[0] -= 1.0
        if total < -2.0:
            break
        total += y[0]
    return y, total
""",
    "the else of an unrolled loop that is left": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    y = x.copy()
    seen = 0.0
    for step in range(2):
        if seen > 0.0:
            break
        seen = x[-1]
    else:
        y[:] = -5.0
    return y
""",
}

CONDITIONS = {
    "quantiles at computed places": """
@psc.kernel
def main(x: f64["n"]) -> f64["3"]:
    tail = 0.5 / (2.0 + np.abs(x[0]))
    return np.round(np.quantile(x, [tail, 0.5, 1 - tail]), 9)
""",
    "a view by a computed index where a loop ends early": """
@psc.kernel
def main(z: f64["n n"], x: f64["n"], c: i64["n"]) -> f64:
    z = z.copy()
    step = 0
    while step < 4 and x[0] > -3.0:
        step += 1
        z[0, 0] += 2.0
        if x[c[0]] == 1.0:
            return z.sum()
        column = z[:, c[-1]]
    return z[0, 0]
""",
    "a branch on sizes": """
@psc.kernel
def main(x: f64["n"]) -> f64:
    if len(x) > 4:
        return x.mean()
    m = 2.0 if len(x) % 2 else 3.0
    return x.sum() * m
""",
    "a branch on the counter of a loop of few steps": """
@psc.kernel
def main(x: f64["n"]) -> f64["7"]:
    y = np.zeros(7)
    for i in range(7):
        if i % len(x) == 0:
            y[i] = x[0]
    return y
""",
    "an index that counts from either end": """
@psc.kernel
def main(x: f64["n"]) -> f64:
    return x[1 - len(x)]
""",
    "a comparison of sizes or one of numbers": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    y = x + 1.0
    if len(x) == 3 or x[0] > 2.0:
        y[-1] = 0.0
    return y
""",
    "a comparison of counters or one of numbers": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    y = np.zeros_like(x)
    for i in range(len(x)):
        for j in range(len(x)):
            if i > j or x[j] < 0.0:
                continue
            y[i] += 1.0
    return y
""",
    "fill with a number that a size decides": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    y = np.ones(x.shape[0])
    y.fill(x[-1] if x.shape[0] > 3 else x[0])
    return y - x
""",
}

COPIES = {
    "a lambda that returns its argument": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    y = x * 1.0
    same = lambda z: z
    same(y)[-1] = 8.0
    return y
""",
    "a lambda that returns a part of a parameter": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    part = (lambda z: z[::-1])(x)
    part[0] = 8.0
    return part
""",
    "astype that need not copy": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    y = x.astype(np.float64, copy=False)
    y += 1.0
    return y
""",
    "astype that need not copy an array of the kernel": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    y = x * 2.0
    z = y.astype(np.float64, copy=False)
    z[0] = 9.0
    return y
""",
    "np.array without a copy": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    y = x * 2.0
    z = np.array(y, copy=False)
    z[-1] = 9.0
    return y
""",
}

OWNERS = {
    "a captured array in a list": """
TABLE = np.array([1.0, -2.0, 3.0])


@psc.kernel
def main(x: f64["n"]) -> f64:
    arrays = [TABLE, x]
    others = arrays
    others[0] += 1.0
    return arrays[0].sum()
""",
    "a tuple that is a parameter, unpacked": """
@psc.kernel
def main(pair: tuple[f64["n"], f64["n"]]) -> f64["n"]:
    left, right = pair
    left[-1] = 20.0
    return left - right
""",
    "a tuple that is a parameter, looped over": """
@psc.kernel
def main(pair: tuple[f64["n"], f64["n"]]) -> f64["n"]:
    for each in pair:
        each += 1.0
    return pair[1]
""",
    "a tuple that is a parameter, as a list": """
@psc.kernel
def main(pair: tuple[f64["n"], f64["n"]]) -> f64["n"]:
    both = [*pair]
    both[0][0] = 20.0
    return pair[1]
""",
    "np.asarray of an array of the module": """
TABLE = np.array([3.0, 4.0])


@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    table = np.asarray(TABLE)
    table[1] = 0.0
    return x * table[1]
""",
    "a list of the module": """
LOG = [np.ones(2)]


@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    LOG.append(np.zeros(2))
    return x + len(LOG)
""",
    "a dict of the module": """
TABLES = {"one": np.ones(2)}


@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    TABLES["two"] = np.full(2, 2.0)
    return x + TABLES["one"][1]
""",
}

ERRORS = {
    "a list changed in a branch": """
@psc.kernel
def main(x: f64["n"], s: f64) -> f64["n"]:
    both = [x - 1.0, x.copy()]
    if s < 1.0:
        both[1] = x * 3.0
    return both[1] + both[0]
""",
    "a list made in a branch": """
@psc.kernel
def main(x: f64["n"], s: f64) -> f64["n"]:
    y = x * 1.0
    if s < 1.0:
        more = [y]
        more.append(x - 1.0)
        y += more[1]
    return y
""",
    "a list of numbers stored at a list of indices": """
@psc.kernel
def main(x: f64["n"]) -> f64["4"]:
    y = np.zeros(4)
    y[[1, -1]] = [x.sum(), 5.0]
    return y
""",
    "vmap over an array without a dtype": """
@psc.kernel
def main(x: f64["n"]) -> f64["2"]:
    def total(v):
        t = x * 1.0
        t[0] -= v
        return t.sum() + v

    return psc.vmap(total)(np.ones(2))
""",
    "values of a loop in a branch on sizes": """
@psc.kernel
def main(a: f64["n n"], x: f64["n"], c: i64["n"]) -> tuple[f64["n n"], f64]:
    y, z = np.ones_like(a), a.copy()
    if x.shape[0] > 3:
        y[a > 0.0] = y[c[0], c[-1]]
    elif len(a) > 2 and x[c[-1]] > 0.0:
        for v, row in zip(x, a):
            y[c[0], 0] = v + row[0]
        step = 0
        while step < 4 and x[0] > -3.0:
            step += 1
            z[c[0], ::-1] += 2.0
            if x[c[0]] == 1.0:
                return y, z.sum()
            column = z[:, c[-1]]
    else:
        y, z = z, y
    return y + 2.0 * z, x.sum()
""",
}

SLOW = {
    "while loops in each other that write rows": """
@psc.kernel
def main(a: f64["n n"], x: f64["n"], c: i64["n"]) -> f64["n n"]:
    n = len(x)
    y, rows = x.copy(), np.array(a)
    if np.all(x < 4.0):
        low, high = 0, n - 1
        while low < high:
            y[high], y[low] = y[low], y[high]
            low += 1
            high -= 1
        i = 0
        while i < n:
            rows[i].fill(a[i, 0])
            j = 0
            while True:
                if j >= n or rows[n - 1 - i, -1] != 2.0:
                    break
                j += 1
                rows[c[i]].sort()
            i += 1
    return rows + y
"""
}

NUMBERS = {
    "a comparison of an integer that a loop makes large": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    n = 1
    for _ in range(40):
        n = n * 2
    return x * (2.0 if n > 5 else 1.0)
""",
    "floats that are added and compared": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    t = 0.0
    count = 0.0
    for _ in range(100):
        t = t + 0.1
        if t < 5.0:
            count = count + 1.0
    return x * count
""",
    "differences of floats that are close": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    t = 1.0
    for _ in range(100):
        t = t + 2.0**-40
    return x * (t - 1.0 > 100 * 2.0**-41)
""",
    "a large integer that one of two paths leaves": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    n = 1
    if x[0] > -100:
        n = 4294967297
    return x * (n % 10) * (1 if n > 5 else 0)
""",
    "the remainder and the extremes of a large integer": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    n = 1
    for _ in range(33):
        n = n * 2
    return x * (n % 7) + min(n, 5) + max(n, 3) + abs(-n)
""",
    "while up to a size": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    y = x.copy()
    low, high = 0, len(y) - 1
    while low < high:
        y[low], y[high] = y[high], y[low]
        low += 1
        high -= 1
    i = 0
    while i < len(y):
        y[i] += i
        i += 1
    return y
""",
    "a number that a round has built, and the next one uses": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    y = x.copy()
    gap = len(x) // 2
    while gap:
        for i in range(gap, len(x)):
            t = y[i]
            j = i
            while j >= gap and y[j - gap] > t:
                y[j] = y[j - gap]
                j -= gap
            y[j] = t
        gap //= 2
    return y
""",
}

VIEWS = {
    "a view that each step binds": """
@psc.kernel
def main(x: f64["n"], s: f64) -> f64["n"]:
    out = np.zeros((len(x), 2))
    y = out[0] + s
    for i in range(len(x) - 1):
        y = out[i]
        out[i + 1] = y + x[i]
    return out[:, 0]
""",
    "a parameter that each step binds to a view": """
@psc.kernel
def main(x: f64["n"], y: f64["n"]) -> f64:
    out = np.zeros((len(x), len(y)))
    out[0] = y
    for i in range(len(x) - 1):
        y = out[i]
        out[i + 1] = y + x[i]
    return out[-1].sum()
""",
    "a view that is written later in its step": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    out = np.outer(x, x)
    y = x
    for i in range(len(x) - 1):
        y = out[i]
        out[i + 1] = y + x[i]
        out[i] = 7.0 * y
    return out[-1] + y
""",
    "a view in a loop that may end": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    out = np.outer(x, x)
    y, i = x, 0
    while i < len(x) - 1:
        y = out[i]
        if y[0] > 3.0:
            break
        out[i + 1] = y + x[i]
        i += 1
    return out[-1] + y
""",
    "a view in a loop within a loop": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    out = np.outer(x, x)
    y = x
    for j in range(len(x)):
        for i in range(len(x) - 1):
            y = out[i]
            out[i + 1] = 0.5 * y + x[j]
        out[0] = out[-1]
    return out[-1]
""",
}
SHOWN = {
    "a view that a store after the loop changes": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    out = np.outer(x, x)
    y = x
    for i in range(len(x) - 1):
        y = out[i]
        out[i + 1] = y + x[i]
    out[:] = 3.0
    return out[-1] + y
""",
    "a view that the next step reads": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    out = np.outer(x, x)
    y = x
    for i in range(len(x) - 1):
        z = y + 0.0
        y = out[i]
        out[i + 1] = y + z
        out[i] = 5.0
    return out[-1] + y
""",
    "a view that a function reads in the next step": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    out = np.outer(x, x)
    y = x
    f = lambda: y
    for i in range(len(x) - 1):
        z = f() + 0.0
        y = out[i]
        out[i + 1] = y + z
        out[i] = 5.0
    return out[-1]
""",
    "a view that the loop around reads": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    out = np.outer(x, x)
    y = x
    s = 0.0
    for j in range(len(x)):
        s += y.sum()
        for i in range(len(x) - 1):
            y = out[i]
            out[i + 1] = 0.5 * y + x[j]
        out[:] = out + 1.0
    return out[-1] + s
""",
    "another array that a step binds": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    z, y = np.zeros(2), x[:2]
    out = np.zeros((len(x), 2))
    for i in range(len(x) - 1):
        z[0] += 1.0
        y = z
        out[i + 1] = y + x[i]
    z[0] = 100.0
    return out[:, 0] + y.sum()
""",
}

PROGRAMS = VIEWS | SHOWN | JUMPS | CONDITIONS | COPIES | OWNERS | ERRORS


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_refused_or_right(name: str) -> None:
    with deep_stack():
        for seed in range(3):
            found = tried(HEAD + PROGRAMS[name], seed, whole=not seed)
            assert found.kind in ("refused", "equal"), found
            if found.kind == "refused":
                break


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_that_each_step_binds_is_no_view_of_the_next_step(name: str) -> None:
    for seed in range(3):
        assert tried(HEAD + PROGRAMS[name], seed).kind == "equal"


@pytest.mark.parametrize("name", OWNERS)
def test_what_the_caller_holds_is_not_written(name: str) -> None:
    assert tried(HEAD + PROGRAMS[name], 0).kind == "refused"


@pytest.mark.parametrize("name", SLOW)
def test_it_is_checked_in_time(name: str) -> None:
    with deep_stack():
        assert tried(HEAD + SLOW[name], 0).kind in ("refused", "equal")


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_loops_are_those_of_python(name: str) -> None:
    with deep_stack():
        for seed in range(3):
            found = tried(HEAD + NUMBERS[name], seed, whole=not seed)
            assert found.kind == "equal", found
