"""Counters of loops as sizes: parts that grow, beside NumPy, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f64
from pscdsl._src.checker.check import check_source, deep_stack
from tests.fuzz.numpy_differences import CAMPAIGN, tried

pytestmark = pytest.mark.quick_code

HEAD = """\
import numpy as np
import pscdsl as psc
from pscdsl import f64, i64
"""

WHOLE = """
@psc.kernel
def main(x: f64["n"], a: f64["n n"]):
    n = len(x)
    y = x.copy()
    q = a.copy()
    s = 0.0
{}
    return y, q, s
"""

TEXTS = """\
a part before
for i in range(n):
    y[i] = x[:i].sum()
---
a part behind
for i in range(n):
    y[i] = x[i:].sum() - x[i + 1:].sum()
---
products
for i in range(n):
    y[i] = x[:i] @ a[:i, i] + (a[i, i:] @ x[i:]) + (a[:i, :i] @ x[:i]).sum()
---
a window
for i in range(n - 1):
    y[i] = x[i:i + 2].max()
---
a window that may not fit
for i in range(n - 2):
    y[i:i + 3] = x[i:i + 3][::-1]
---
windows of matrices
for i in range(n - 1):
    for j in range(n - 1):
        q[i, j] = a[i:i + 2, j:j + 2].sum()
---
a window that is clipped
for i in range(n):
    y[i] = x[i:i + 3].sum() + x[max(i - 2, 0):i].sum()
---
flips
for i in range(n):
    y[:i] = np.flip(y[:i]) + y[:i][::-1]
    y[:] = np.clip(y, -9, 9)
---
down
for i in range(n - 1, -1, -1):
    y[i] = x[i + 1:].sum() - y[i + 1:].sum()
    y[:] = np.clip(y, -9, 9)
---
in steps
for i in range(1, n, 2):
    y[:i] += x[i:2 * i].sum() + x[:i]
    y[:] = np.clip(y, -9, 9)
---
reversed
for i in reversed(range(n)):
    y[i] = y[i:].sum() % 7
---
enumerated
for i, v in enumerate(x):
    y[i:] += v * x[:n - i]
    y[:] = np.clip(y, -9, 9)
---
nested
for i in range(n):
    for j in range(i):
        q[i, j] = (a[i, :j] @ a[:j, j]) % 9
    for j in range(i, n):
        q[i, j] = (q[i, :i] @ q[:i, j]) % 9
---
outer products
for k in range(n):
    q[k + 1:, k + 1:] -= np.outer(q[k + 1:, k], q[k, k + 1:])
    q[:] = np.clip(q, -3, 3)
---
new arrays
for i in range(n):
    t = np.zeros(i)
    t[:] = x[:i]
    u = np.arange(n - i)
    s += t.sum() + u.sum()
---
stores into new arrays
for i in range(1, n):
    t = np.zeros_like(x[:i])
    t[0] = x[i]
    t[i - 1] += 1.0
    for j in range(i):
        t[j] += y[j]
    y[:i] = np.clip(t, -9, 9)
---
joined
for i in range(n):
    t = np.concatenate((x[i:], y[:i]))
    y[:] = np.clip(t + np.append(x[:i], y[i:]), -9, 9)
---
extremes
for i in range(1, n):
    y[i] = x[:i].max() + x[:i].min() + x[np.argmax(x[:i])]
    y[i] += x[i + np.argmin(x[i:])]
---
prefixes
for i in range(n):
    y[:i + 1] = np.cumsum(x[:i + 1]) % 5 + np.cumprod(np.sign(x[:i + 1]))
---
selected
for i in range(n):
    y[:i] = np.where(x[:i] > y[i], x[:i], y[i])
---
lengths
for i in range(n):
    p = x[:i]
    s += len(p) * 1.0 + p.shape[0] + p.size
---
a length as a bound
for i in range(n):
    p = x[i:]
    for j in range(len(p)):
        y[j] += p[j]
    y[:] = np.clip(y, -9, 9)
---
rows of a part
for i in range(n):
    for row in q[:i]:
        row[0] += 1.0
    for v in x[i:]:
        s += v
---
a guard
for i in range(n):
    for j in range(n):
        if j - 1 >= 0 and i + 1 < n:
            q[i, j] = (q[i, j - 1] + a[i + 1, j]) % 9
---
a guard in a value
for i in range(n):
    y[i] = x[i - 1] if i > 0 else x[:i].sum()
---
a guard that is denied
for i in range(n):
    if i == 0:
        continue
    y[i] = x[:i - 1].sum() + y[i - 1]
    y[:] = np.clip(y, -9, 9)
---
a guard by not
for i in range(n):
    if not (i == 0 or i == n - 1):
        y[i - 1:i + 2] = x[i - 1:i + 2]
---
negative indices
for i in range(n):
    y[i] = x[i - 1] + x[-i - 1]
---
numbers
best = -1
for i in range(n):
    if x[i] > s:
        s, best = x[i] + i * 0.5, i
y[best] += best
---
a break
for i in range(n):
    s += x[:i].sum()
    if s > 4:
        break
---
a break within
for i in range(n):
    for j in range(i):
        if a[i, j] > 2:
            break
        y[j] += a[i, :j].sum() % 4
    y[:] = np.clip(y, -9, 9)
---
a while within
for i in range(n):
    j = i
    while j > 0 and y[j - 1] > y[j]:
        y[j - 1], y[j] = y[j], y[j - 1]
        j -= 1
    s += y[:i].sum()
---
a counted loop in while
k = 3
while k > 0:
    for i in range(n):
        y[i] = (y[:i].sum() + k) % 5
    k -= 1
---
known steps
for i in range(20):
    if i < n:
        y[i] = x[:i].sum() + i
---
a part of a known step is read later
t = np.arange(20.0)
for i in range(20):
    p = t[:i]
s = s + p.sum()
---
a function
def f(v, k):
    v[:k] += 1.0
    return v[k:].sum()
for i in range(n):
    s += f(y, i) + f(y[i:], 0)
---
batches
for i in range(n):
    y[i] = psc.vmap(lambda r: r[:i].sum())(a).sum()
---
gradients
for i in range(n):
    y[i] = psc.grad(lambda v: (v[:i] * v[:i]).sum())(x).sum()
---
loops in functions of combinators
def f(v):
    t = v * 1.0
    for j in range(len(v)):
        t[j] += v[j]
    return t.sum()
for i in range(n):
    y[i] = psc.grad(f)(x)[i]
---
diagonals
for i in range(n):
    q[i, i] = a[:i, i].sum() - a[i, :i].sum()
    q[:i, i] = 1.0
    q[i, :i] = q[:i, i]
---
steps in parts
for i in range(n):
    y[i] = x[:i:2].sum() + x[i::2].sum() + x[:i][::-2].sum()
---
turned
for i in range(n):
    q[:i, i:] = a.T[:i, i:]
    q[i:, :i].T[:] = q[:i, i:]
---
gathered
for i in range(n):
    j = np.arange(i)
    y[i] = x[j].sum() + a[j, j].sum()
---
minima of bounds
for i in range(0, n, 2):
    y[i:min(i + 2, n)] = x[i:min(i + 2, n)][::-1]
---
halves
for i in range(n):
    y[i] = x[:i // 2].sum() + x[i % 2:].sum()
"""

BODIES: dict[str, str] = {
    name: body
    for name, _, body in (text.partition("\n") for text in TEXTS.strip().split("\n---\n"))
}
"""Loops, by what they are about."""


def indented(body: str) -> str:
    return "\n".join("    " + line for line in body.splitlines())


def program(body: str, empty: bool = False) -> str:
    text = WHOLE.format(indented(body))
    return HEAD + (text.replace("    y = x", "    assert n >= 0\n    y = x") if empty else text)


@pytest.mark.parametrize("name", BODIES)
def test_it_is_what_numpy_has(name: str) -> None:
    with deep_stack():
        found = tried(program(BODIES[name]), 0, whole=True)
        assert found.kind == "equal", found
        found = tried(program(BODIES[name]), 1)
        assert found.kind == "equal", found


@pytest.mark.parametrize(
    "name", ["a part before", "products", "nested", "a window", "down", "new arrays", "diagonals"]
)
def test_a_loop_may_make_no_step(name: str) -> None:
    with deep_stack():
        found = tried(program(BODIES[name], empty=True), 0)
    assert found.kind == "equal", found


REFUSED = {
    "for i in range(n):\n s += (x[:i] @ y[:i + 1])": (
        "PSC301",
        "f64[i] @ f64[i+1]: i is not i+1, for instance i=0",
    ),
    "for i in range(n):\n y[:i] = x[i:]": ("PSC300", "[n-i]"),
    "for i in range(n):\n s += x[:i - 1].sum()": ("PSC320", "i"),
    "for i in range(n):\n s += x[:i].max()": ("PSC330", "f64[i]"),
    "for i in range(n):\n s += np.sort(x[:i]).sum()": ("PSC317", "a loop's counter"),
    "for i in range(n):\n s += np.linalg.inv(a[:i, :i]).sum()": ("PSC317", "a loop's counter"),
    "for i in range(n):\n p = x[:i]\ns = p.sum()": ("PSC528", "`p`"),
    "for i in range(n):\n assert len(x[:i]) < 3": ("PSC121", ""),
    "p = x\nfor i in range(n):\n s += p.sum()\n p = x[:i]": ("PSC527", "f64[i]"),
    "for i in range(n):\n if x[i] > 0:\n  return x[:i]": ("PSC317", "a loop's counter"),
}


@pytest.mark.parametrize("body", REFUSED)
def test_what_is_wrong_for_some_step_is_refused(body: str) -> None:
    code, text = REFUSED[body]
    result = check_source(program(body), "program.py")
    errors = [each for each in result.diagnostics if each.severity.value == "error"]
    assert errors
    assert errors[0].code == code, errors
    said = " ".join(filter(None, (errors[0].message(), errors[0].label(), errors[0].help() or "")))
    assert text in said, said
    assert "\N{WORD JOINER}" not in said
    assert "assert" not in (errors[0].help() or "")


def test_random_programs_are_what_numpy_has() -> None:
    figures = CAMPAIGN.here(range(70000, 70012), "--grammar", "counters")
    assert not figures.problems, figures.shown
    assert figures.count("equal") >= 9


# Derivatives: those of a padded loop are those of the loop unrolled.


def lower(x: f64["n"], a: f64["n n"]) -> f64:
    y = x.copy()
    for i in range(x.shape[0]):
        y[i] = (y[i] - a[i, :i] @ y[:i]) / a[i, i]
    return (y * y).sum()


def growing(x: f64["n"], a: f64["n n"]) -> f64:
    s = x[0] * 0.0
    y = x.copy()
    for i in range(1, x.shape[0]):
        scale = x[i] / np.exp(x[:i])
        y[:i] = np.log(2.0 + np.sin(y[:i] * np.flip(scale))) / x[i]
        s += np.sqrt(1.0 + scale).sum() / y[:i].mean() + x[i:].max() * np.cumsum(x[i:])[0]
    return s + y @ a @ y


def factors(x: f64["n"], a: f64["n n"]) -> f64:
    q = a + np.eye(a.shape[0]) * 3.0
    for k in range(a.shape[0]):
        q[k + 1 :, k] /= q[k, k]
        q[k + 1 :, k + 1 :] -= np.outer(q[k + 1 :, k], q[k, k + 1 :])
    for i in range(a.shape[0]):
        for j in range(i):
            if j > 0:
                q[i, j] += q[i, j - 1] * (q[i, :j] @ q[:j, j])
    return (q @ x).sum() + x[0]


def windows(x: f64["n"], a: f64["n n"]) -> f64:
    s = x[0] * 0.0
    for i in range(x.shape[0] - 1):
        for j in range(x.shape[0] - 1):
            s += (a[i : i + 2, j : j + 2] * np.outer(x[i : i + 2], x[j : j + 2])).max()
    return s


def places(n: int) -> tuple[np.ndarray, np.ndarray]:
    numbers = np.random.default_rng(n)
    return numbers.uniform(0.5, 1.5, n), numbers.uniform(0.5, 1.5, (n, n)) + np.eye(n)


@pytest.mark.parametrize("function", [lower, growing, factors, windows])
def test_derivatives_are_those_of_differences(function: Callable[[Any, Any], Any]) -> None:
    kernel = psc.kernel(function)
    backward = psc.grad(kernel, argnums=(0, 1))
    for n in (1, 2, 5):
        x, a = places(n)
        towards = np.random.default_rng(n + 7)
        dx, da = towards.normal(size=n), towards.normal(size=(n, n))
        gx, ga = map(np.asarray, backward(x, a))
        along = gx @ dx + (ga * da).sum()
        step = 1e-6
        ends = [function(x + e * dx, a + e * da) for e in (step, -step)]
        assert np.isclose(along, (ends[0] - ends[1]) / (2 * step), rtol=1e-5, atol=1e-6)
        _, forward = psc.jvp(kernel, (x, a), (dx, da))
        assert np.isclose(along, np.asarray(forward), rtol=1e-9)
        assert np.isclose(np.asarray(kernel(x, a)), function(x, a), rtol=1e-12)


@pytest.mark.parametrize("function", [lower, growing, factors])
def test_a_batch_is_a_loop(function: Callable[[Any, Any], Any]) -> None:
    pairs = [places(4) for _ in range(3)]
    xs, matrices = (np.stack(part) for part in zip(*pairs, strict=True))
    xs = xs + np.arange(3.0)[:, None]
    found = np.asarray(psc.vmap(psc.kernel(function))(xs, matrices))
    wanted = [function(x, a) for x, a in zip(xs, matrices, strict=True)]
    assert np.allclose(found, wanted, rtol=1e-12)
