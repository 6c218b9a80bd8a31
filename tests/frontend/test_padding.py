"""Each primitive that is written with masks, beside the slices of NumPy, for every step."""

from __future__ import annotations

import pytest

from pscdsl._src.checker.check import deep_stack
from pscdsl._src.frontend.interpreter.padding import RULES
from tests.fuzz.numpy_differences import tried

MODULE = """\
import numpy as np
import pscdsl as psc
from pscdsl import f64


@psc.kernel
def main(x: f64["n"], a: f64["n m"], b: f64["n n"]):
    n, m = a.shape
{empty}    y = np.zeros((n, 3))
    z = b.copy()
    for i in {steps}:
        for j in range(2):
            t = {expression}
            y[i, j] = t + z[:i, i].sum() * j
    return y, z
"""

EXPRESSIONS = {
    "Pointwise": "(np.abs(x[:i]) * x[i] + np.maximum(a[:i, 0], 1.0)).sum()",
    "SizeValue": "(n - i) * (2.0 * i + 1)",
    "Iota": "(np.arange(n - i) * x[i:]).sum()",
    "Broadcast": "(a[:i] + x[:i, None] * x[i]).sum()",
    "Transpose": "(x[:i] @ a[:i] + a[:i].T @ x[:i]).sum()",
    "Reshape": "(x[:i].reshape(i, 1, 1) * np.expand_dims(a[:i], 1)).sum()",
    "Slice": "(x[i // 2:i] * 2).sum() + x[:i][:i // 2].sum() + x[i::2].sum()",
    "Pad": "(np.pad(x[:i], (1, 2)) * np.pad(x[n - i:], (i, 3 - i))).sum() if i < 3 else 0.0",
    "Reverse": "(x[:i][::-1] * a[:i, 0]).sum() + (np.flip(b[i:, i:]) @ x[i:]).sum()",
    "Concatenate": "(np.concatenate((x[i:], x[:i], x[i:])) * np.append(x, x[:n - i])).sum()",
    "Reduce": "x[i:].max() + x[:i].prod() * np.where(np.all(x[:i] > 0), 2.0, b[i:].max())",
    "ArgReduce": "x[i + np.argmax(x[i:])] + x[np.argmin(b[i:], axis=0)].sum()",
    "Cumulative": "(np.cumsum(x[i:]) * x[i:]).sum() + np.cumsum(a[:i], axis=0).sum()",
    "DotGeneral": "(b[:i, :i] @ a[:i]).sum() + (b[i:, :i] @ x[:i] + np.outer(x[i:], x) @ x).sum()",
    "Gather": "x[np.arange(i)].sum() + b[np.arange(i), np.arange(i)].sum()",
    "DynamicSlice": "x[i] + x[i:][j % (n - i)] + b[i, :i].sum()",
    "DynamicUpdate": "stored(b.copy(), x, i).sum()",
    "Scan": "rows(x[:i])",
    "While": "ended(x[i:])",
    "Switch": "(x[:i] if x[i] > 0 else 2.0 * x[:i]).sum()",
}  # fmt: skip

FUNCTIONS = """
def stored(q, v, i):
    q[:i, i] = v[:i]
    q[i, i:] += v[i:]
    q[i:, :i] *= 2.0
    t = v[:i] * 1.0
    if i > 0:
        t[i - 1] = 5.0
    q[0, :i] = t
    return q @ v


def rows(v):
    s = 0.0
    for i in range(len(v)):
        s = 2.0 * s + v[i] + v[:i].sum()
    for u in v:
        s += u
    return s % 1000


def ended(v):
    s = 0.0
    for i in range(len(v)):
        s += v[i] + v[i:].sum()
        if s > 5:
            break
    return s

"""

STEPS = ("range(n)", "range(n - 1, -1, -1)", "range(0, n, 2)")


@pytest.mark.parametrize("kind", EXPRESSIONS)
def test_it_is_what_numpy_has_in_every_step(kind: str) -> None:
    head, body = MODULE.split("@psc", 1)
    for seed, steps in enumerate(STEPS):
        for empty in ("", "    assert n >= 0\n") if not seed else ("",):
            text = body.replace("{steps}", steps).replace("{empty}", empty)
            text = head + FUNCTIONS + "@psc" + text.replace("{expression}", EXPRESSIONS[kind])
            with deep_stack():
                found = tried(text, seed)
            # An index may be that of an axis which is empty where no step is taken.
            refused = empty and kind in ("ArgReduce", "Gather")
            assert found.kind == ("refused" if refused else "equal"), found


def test_every_rule_is_tried() -> None:
    names = {primitive.__name__ for primitive in RULES} - {"StopGradient"}
    assert names == set(EXPRESSIONS)
