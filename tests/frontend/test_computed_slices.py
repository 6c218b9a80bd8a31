"""Slices between bounds that a kernel computes: as under NumPy, or refused."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl._src.checker.check import check_source
from pscdsl._src.kernels.kernel import load_kernel
from pscdsl.typing.diagnostics import Severity

pytestmark = pytest.mark.quick_code

HEAD = """import numpy as np
import pscdsl as psc
from pscdsl import f64, i32, i64, u64

@psc.kernel
def f(x: f64["n"], w: f64["n"], p: i32["n"], a: i64, b: i64) -> f64:
"""

ACCEPTED = {
    "sums": "return x[a:b].sum() + 2 * x[a:].sum() + 3 * x[:b].sum() + len(x[a:b]) + x[b:a].size",
    "from_the_end": "return x[-a:].sum() + x[:-b].prod()",
    "elements": "return (np.exp(x[a:b]) * 2 + x[a:b] ** 2 - np.maximum(w[a:b], 0)).sum()",
    "products": "return x[a:b] @ w[a:b] + np.dot(x[b:], x[b:])",
    "means": "return np.where(x[a:b] > 0, x[a:b], 1.0).mean()",
    "taken": "return x[p[a:b]] @ w[a:b] + x[p[p[a:b]]].sum()",
    "passed_on": "def h(z):\n    return z.sum() * len(z)\nreturn h(x[a:b])",
    "copies": "y = x.copy()\nz, q = y[a:b].copy(), y[a:b] * 1\ny[0] = 5\nreturn (z + q).sum()",
    "stores": "y = x.copy()\ny[a:b] = 7\ny[a:] += 1\ny[:b] *= w[:b]\nreturn y @ w",
    "store_of_itself": "y = x.copy()\ny[a:b] = y[a:b] + 2 * w[a:b]\nreturn y @ w",
    "store_through_a_view": "y = x.copy()\ny[::-1][a:b] = 3\nreturn y @ w",
    "a_view_of_a_view": "y = x.copy()\nv = y[::-1]\ny[0] = 8\nreturn v[a:b] @ w[a:b]",
    "steps": "s = 0.0\nfor i in range(len(x)):\n    s += x[i:b].sum() + x[a:i].sum()\nreturn s",
    "steps_store": (
        "y = x.copy()\nfor i in range(len(x)):\n    y[p[i]:b] += y[p[i]:b] * 0.5\nreturn y.sum()"
    ),
    "of_a_row": "m = np.outer(x, w)\nreturn m[0, a:b].sum() + m[a:b, 0] @ w[a:b] - m[-1, :b].sum()",
    "of_a_computed_row": "m = np.outer(x, w)\nk = p[0]\nreturn m[k, a:b].sum() + m[a:, k].sum()",
    "of_one_of_many_rows": "m = x[:, None, None] * w[:, None] + w\nreturn m[0, p[0], a:b].sum()",
    "stores_into_rows": (
        "m = np.outer(x, w)\nfor i in range(len(x)):\n    m[i, a:b] = 0.5\n    m[i, p[i]:] += 2\n"
        "    m[:b, i] *= 3\nreturn m.sum()"
    ),
    "while": "s = 0.0\nwhile a < b:\n    s += x[a:b].sum()\n    a = a + 1\nreturn s",
}
REFUSED = {
    "read_after_a_store": ("y = x.copy()\nz = y[a:b]\ny[0] = 5\nreturn z.sum()", "PSC210"),
    "by_another_name": ("y = x.copy()\nq, z = y, y[a:b]\nq += 1\nreturn z.sum()", "PSC210"),
    "in_a_list": ("y = x.copy()\nz = [y[a:b]]\ny[0] = 9\nreturn z[0].sum()", "PSC210"),
    "in_a_closure": (
        "y = x.copy()\nz = y[a:b]\nh = lambda: z.sum()\ny[0] = 9\nreturn h()",
        "PSC210",
    ),
    "in_a_branch": (
        "y = x.copy()\nz = y[a:b]\nif a > 0:\n    y[0] = 9\nreturn z.sum()",
        "PSC210",
    ),
    "in_a_loop": (
        "y, s = x.copy(), 0.0\nz = y[a:b]\nfor i in range(3):\n    s += z.sum()\n    y[0] += 1\n"
        "return s",
        "PSC210",
    ),
    "written": ("y = x.copy()\nz = y[a:b]\nz[0] = 1\nreturn y.sum()", "PSC317"),
    "updated": ("y = x.copy()\nz = y[a:b]\nz += 1\nreturn y.sum()", "PSC317"),
    "sorted": ("y = x.copy()\ny[a:b].sort()\nreturn y[0]", "PSC317"),
    "filled": ("y = x.copy()\ny[a:b][:] = 0\nreturn y[0]", "PSC317"),
    "as_out": ("y = x.copy()\nnp.add(w, 1, out=y[a:b])\nreturn y[0]", "PSC317"),
    "other_bounds": ("return (x[a:b] + w[b:a]).sum()", "PSC317"),
    "whole_arrays": ("return (x[a:b] + w).sum()", "PSC317"),
    "items": ("return x[a:b][0]", "PSC317"),
    "iterated": ("s = 0.0\nfor v in x[a:b]:\n    s += v\nreturn s", "PSC317"),
    "vectors_stored": ("y = x.copy()\ny[a:b] = w\nreturn y.sum()", "PSC317"),
    "swapped": ("y = x.copy()\ny[a:b], y[:a] = y[:a], y[a:b]\nreturn y.sum()", "PSC317"),
    "flags": ("return x[(x > 0)[a:b]].sum()", "PSC317"),
    "steps": ("return x[a:b:2].sum()", "PSC317"),
    "floats": ("return x[x[0]:].sum()", "PSC317"),
    "truth_values": ("return x[x[0] > 0:].sum()", "PSC317"),
    "wide_unsigned": ("return x[a.astype(np.uint64):].sum()", "PSC317"),
    "one_of_two": ("z = x[a:b] if a > 0 else w[a:b]\nreturn z.sum()", "PSC317"),
    "parameters": ("x[a:b] = 0\nreturn x.sum()", "PSC205"),
}


def source(body: str) -> str:
    return HEAD + textwrap.indent(body, "    ") + "\n"


def calls() -> Iterator[tuple[Any, ...]]:
    rng = np.random.default_rng(0)
    for n in (1, 2, 5):
        for a in range(-n - 1, n + 2):
            for b in range(-n - 1, n + 2):
                x, w = rng.integers(-4, 5, (2, n)).astype(float)
                yield x, w, rng.integers(0, n, n).astype(np.int32), np.int64(a), np.int64(b)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ACCEPTED)
def test_as_under_numpy(name: str, tmp_path: Any) -> None:
    text = source(ACCEPTED[name])
    path = tmp_path / "kernel.py"
    path.write_text(text, encoding="utf-8")
    kernel: Any = load_kernel(path, "f")
    names: dict[str, Any] = {}
    exec(text.replace("@psc.kernel\n", ""), names)
    for args in calls():
        wanted = names["f"](*(each.copy() for each in args))
        np.testing.assert_allclose(float(kernel(*args)), wanted, rtol=1e-12, err_msg=str(args))


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    body, code = REFUSED[name]
    found = check_source(source(body), "kernel.py").diagnostics
    assert code in [each.code for each in found if each.severity is Severity.ERROR]


@psc.kernel
def squares(x: psc.f64["n"], a: psc.i64, b: psc.i64) -> psc.f64:
    return np.log(x[a:b] ** 2).sum() + x[a:b] @ x[a:b]


def test_derivatives() -> None:
    x = np.array([0.0, 2.0, -3.0, 0.0])
    found = psc.grad(squares)(x, np.int64(1), np.int64(3))
    np.testing.assert_allclose(found, [0.0, 2 / 2 + 4.0, -2 / 3 - 6.0, 0.0])
