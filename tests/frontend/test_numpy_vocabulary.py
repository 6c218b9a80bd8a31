"""What programs of others say to NumPy: calls and programs that kernels answer as NumPy does."""

from __future__ import annotations

import pytest

from pscdsl._src.checker.check import deep_stack
from tests.frontend.test_numpy_calls import difference, in_kernel, in_numpy
from tests.fuzz.numpy_differences import tried

HEAD = """\
import numpy as np
import pscdsl as psc
from pscdsl import f32, f64, i64
"""

CALLS = (
    *(f"np.sort(v, kind={kind!r})" for kind in ("quick", "q", "Heap", "merge", "STABLE", None)),
    *("np.argsort(v, kind='quick')", "np.sort(x, order=None)", "np.sort(v, kind='stabel')"),
    *("np.partition(v, np.array([1, 2]))[2]", "np.argpartition(v, np.array((0, 1)))"),
    *("np.partition(v, np.array([1, 0], np.uint8))", "np.partition(v, (0, 1))"),
    *(f"np.unravel_index(k, (3, 4), {order!r})" for order in "CcFf"),
    *("np.unravel_index(k, (2, 2, 3), order='F')", "np.unravel_index(5, (2, 3), 'F')"),
    *(
        f"np.ravel_multi_index((k, {other}), (5, 4), {mode!r}, {order!r})"
        for other in ("k - 2", "k * 2", "k - 9", "i")
        for mode in ("wrap", "clip", ("clip", "wrap"), ("raise", "wrap"))
        for order in "CF"
    ),
    "np.ravel_multi_index((k, k), (5, 4), order='F')",
    "np.ravel_multi_index((k, 7), (5, 4), mode='clip')",
    "np.ravel_multi_index((k, u, -k), (5, 4, 3), mode='wrap', order='f')",
    *("np.median(x, overwrite_input=False)", "np.percentile(v, 30, overwrite_input=False)"),
    *("np.sum(x, where=True)", "np.mean(x, 0, where=True)", "np.zeros(3, like=None) + v"),
    *("np.isscalar(x[0, 1])", "np.isscalar(np.sum(x))", "np.isscalar(v.max() * 2)"),
    *(f"v {sign} [1.5, 2, 3]" for sign in "+ - * / // % ** < <= == != > >= @".split()),
    *(f"[3, 2, 1] {sign} k" for sign in "+ - * // % & | ^ << >> == < @".split()),
    *("(1.0, 2.0, 3.0) - x", "[1, 2] @ x", "z * [1j, 2, 3]"),
    *("b & [True, False, True]", "b + [1, 2, 3]", "b ** [1, 2, 3]", "v + [v[0], 1, 2]"),
    *("v + [[1], [2]]", "[1, 2] * k[:1]", "[v, v] + x[:, :1]", "k + [2**40, 1, 2]"),
    *("np.array([1, 2]) * [3, 4]", "np.ones(2) @ [3, 4]", "k == (3, 1, 2)", "[1] * 3 + k"),
    *("np.r_[v, 1]", "np.r_[s, 0.5]", "np.r_[u, 1]", "np.r_[k, True]", "np.r_[x, x]", "np.r_[1]"),
    *("np.r_[0:1:5j, 2] + v[0]", "np.r_[:3] * k", "np.r_[0:1:0.25] + x[0, 0]", "np.r_[5:0:-2] * k"),
    *("np.r_[0:1:-3j] * v", "np.r_[v[0], v, v[1:], 0]", "np.r_[v, [v[0], 1]]", "np.r_[v, 0:3]"),
    *("np.r_[k, 0:6:2]", "np.r_[b, True]", "np.r_[z, 1j, 2]", "np.r_[b, v]", "np.r_[0, x[1]]"),
    *(
        "np.c_[k, k]",
        "np.c_[x.T, v]",
        "np.c_[0:3, k + 1]",
        "np.c_[k]",
        "np.c_[x]",
        "np.c_[v[0], 1]",
    ),
    *("np.c_[v, [1, 2, 3]]", "np.c_[v, (0.5, 1, 2)]", "np.c_[[1, 2], [3, 4]] * k[:2, None]"),
    *("np.c_[x[:, 0], x]", "np.c_[x[None], x[None]]", "np.r_[np.array(2.0), v]"),
    *("np.isscalar(3)", "np.isscalar(v)", "np.isscalar('a')", "np.isscalar([1])"),
)


@pytest.mark.parametrize("call", CALLS)
def test_a_call_is_answered_as_numpy_answers_it(call: str) -> None:
    found = in_kernel(call)
    assert found is not None, "refused"
    assert not difference(found, in_numpy(call))


REFUSED_CALLS = (
    *("np.sort(v, kind='bubble')", "np.sort(v, kind='')", "np.sort(v, kind=1)"),
    *("np.partition(v, np.array([[1]]))", "np.partition(v, np.array([3]))"),
    *("np.partition(v, np.array([1.0]))", "np.partition(v, k)", "np.partition(v, [True])"),
    *("np.partition(v, np.array([True]))", "np.unravel_index(k, (3, 4), order='A')"),
    *(
        f"np.ravel_multi_index((k, k), (5, 4), mode={mode!r})"
        for mode in ("Clip", "c", ("clip",), None, "")
    ),
    *("np.ravel_multi_index((k, k), (5, 0), mode='wrap')", "np.median(x, overwrite_input=True)"),
    *("np.exp(x, overwrite_input=False)", "np.sort(x, where=True)"),
    *("v * [1, 2]", "v[0] * [1, 2]", "[1, 2] * k[0]", "v + []", "v + ['a']", "v * [None, 1, 2]"),
    *("v * {1, 2, 3}", "u * [1, 2, 3]", "i + [1, 2, 3]", "np.array(2) * [1, 2]", "x[0] + [[1], 2]"),
    *("np.r_[u, 300]", "np.r_[u, [1, 2]]", "np.r_[x, 1]", "np.r_['0,2', k, k]", "np.r_[()]"),
    *("np.c_[v, 1]", "np.c_[0:2, k]", "np.r_[2j:3]", "np.r_[v:3]", "np.c_[u, [1, 2, 3]]"),
    *("np.isscalar(np.array(1.0))", "np.isscalar(np.array(v[0]))"),
)


@pytest.mark.parametrize("call", REFUSED_CALLS)
def test_a_call_is_refused(call: str) -> None:
    assert in_kernel(call) is None


PROGRAMS = {
    "a dict that a loop fills": """
@psc.kernel
def main(x: f64["25"]) -> f64:
    h = {}
    h[-1] = x[0]
    for t in range(len(x)):
        h[t] = np.tanh(h[t - 1] + x[t] * x.sum())
    return h[24]
""",
    "an array that an unrolled loop makes longer": """
@psc.kernel
def main(x: f64["12"]) -> tuple[f64["12"], f64["12"], f64["13 2"]]:
    y, z, w = x[:1], np.array([]), np.zeros((1, 2))
    for k in range(1, len(x)):
        y = np.concatenate((y, y[-1:] + x[k : k + 1]))
    for v in x:
        z = np.append(z, 2 * v)
        w = np.vstack((w, w[-1] + v))
    return y, z, w
""",
    "lists of arrays put together": """
@psc.kernel
def main(x: f64["n"], a: f64["n 3"]) -> tuple[f64["n"], f64["n 3"], f64["3*n"], f64["2*n 3"]]:
    pieces, rows, blocks = [], [], []
    for k in range(len(x)):
        pieces.append(x[k : k + 1])
        rows.append(x[k] * a[k])
        blocks.append(a[k] * np.ones((2, 1)))
    z = np.concatenate(pieces)
    z[0] = 1.0
    return z, np.vstack(rows), np.hstack(rows), np.concatenate(blocks)
""",
    "an ordered dataclass": """
from dataclasses import dataclass

@dataclass(frozen=True, order=True)
class Pair:
    first: float
    second: float

@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    pair = Pair(x[0], 2.0)
    return x * pair.first + pair.second
""",
    "r_ and c_": """
@psc.kernel
def main(x: f64["n"], c: float, s: f64) -> tuple[f64["n+3"], f64["n 2"], f64["2*n"]]:
    z = np.r_[c, x, s, 0.5]
    z[0] = 2.0
    for i in range(len(x)):
        z[i + 1] += i
    return z, np.c_[x, np.r_[s, x[1:]]], np.r_[0 : len(x), x]
""",
    "a mask and an index on both sides": """
@psc.kernel
def main(a: f64["n m 3"]) -> f64["n m 3"]:
    out = np.zeros_like(a)
    idx = a[..., 0] > a[..., 1]
    out[idx, 0] = a[idx, 1] - a[idx, 2]
    return out
""",
    "updates at a mask and an index": """
@psc.kernel
def main(a: f64["n m 3"]) -> f64["n m 3"]:
    out = a.copy()
    idx = a[..., 0] > a[..., 1]
    out[idx, 0] = 1.5
    out[idx, 1] += a[idx, 0] * 2
    out[~idx, -1] -= 3
    return out
""",
    "a mask behind an index": """
@psc.kernel
def main(a: f64["3 n m"]) -> f64["3 n m"]:
    out = a * 2
    idx = a[0] > a[1]
    for c in range(3):
        out[c, idx] = a[c, idx] ** 2
    out[0, idx] *= out[1, idx]
    return out
""",
    "sums at a mask and an index": """
@psc.kernel
def main(a: f64["n 3"]) -> tuple[f64, f64]:
    idx = a[:, 0] > 0
    return a[idx, 1].sum(), np.mean(a[idx, 2] * a[idx, 0])
""",
    "a mask and a counter": """
@psc.kernel
def main(a: f64["n m"]) -> f64["n m"]:
    out = np.zeros_like(a)
    for j in range(a.shape[1]):
        neg = a[:, j] < 0
        out[neg, j] = -a[neg, j]
        out[~neg, j] = 1.0
    return out
""",
    "a mask and a computed index": """
@psc.kernel
def main(a: f64["n 3"], b: f64["n"]) -> f64["n 3"]:
    out = a.copy()
    idx = a[:, 0] > 0
    out[idx, 0] = b[idx]
    out[idx, 1] = out[idx, 0]
    j = np.argmax(a[0])
    out[idx, j] = out[idx, 0] + 1
    return out
""",
    "lists that loops make beside arrays": """
@psc.kernel
def main(x: f64["n"]) -> tuple[f64["n"], f64["n"], f64["2*n"], f64["n 2"], f64["n"]]:
    y = []
    for i in range(len(x)):
        y.append(x[i] * 2)
    first = np.clip([v * 2 for v in x], 0, 1) + [v for v in x]
    second = x * y - np.maximum(y, 0.1) + np.where(x > y, x, y)
    return first, second, np.concatenate([y, x]), np.column_stack((x, y)), np.sort(a=y)
""",
    "as many items as a size says": """
@psc.kernel
def main(x: f64["n"]) -> tuple[f64["n"], i64["n"], f64["n"], f64]:
    y = np.array([0.0] * len(x))
    for i in range(len(x)):
        y[i] = 2 * x[i]
    ones = [1] * len(x)
    total = 0.0
    for one, v in zip(ones, x):
        total = total + one * v
    return y, np.array(ones), x + len(x) * [0.5], total + len(ones)
""",
    "generators that are unpacked": """
@psc.kernel
def main(x: f64["n"], y: f64["n"], z: f64["3"]) -> tuple[f64["n n"], f64["n"], f64["3"]]:
    p, q = (v[:, None] for v in (x, y))
    first, *rest = map(np.exp, (x, y, x))
    u, v, w = (2 * v for v in z)
    x, y = (v + 1 for v in (y, x))
    return p @ q.T, first - rest[1] + x * y, z * [u, v, w]
""",
    "a list in an update": """
@psc.kernel
def main(z: f64["3"]) -> f64["3"]:
    y = z.copy()
    y += [1, 2, 3]
    y *= (z[0], 2, 3)
    y[:2] -= [z[0], 1]
    return y
""",
    "seterr": """
@psc.kernel
def main(x: f64["n"], y: f64["n"]) -> f64["n"]:
    np.seterr(all="ignore")
    old = np.seterr(divide="ignore", invalid="warn")
    with np.errstate(divide="ignore", over="warn"):
        return x / y
""",
    "isscalar": """
def double(z):
    return 2 * z if np.isscalar(z) else z

@psc.kernel
def main(x: f64["n"], c: float) -> tuple[f64["n"], f64]:
    return double(x) + double(c), double(x[0])
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_has_the_results_of_numpy(name: str) -> None:
    with deep_stack():
        for seed in range(3):
            found = tried(HEAD + PROGRAMS[name], seed, whole=not seed)
            assert found.kind == "equal", found


REFUSED = {
    "an array that a loop makes longer": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    y = x[:1]
    for k in range(1, len(x)):
        y = np.concatenate((y, x[k : k + 1]))
    return y
""",
    "a dict by a computed key": """
@psc.kernel
def main(x: f64["n"]) -> f64:
    h = {-1: x[0]}
    for t in range(len(x)):
        h[t] = h[t - 1] + x[t]
    return h[0]
""",
    "no arrays to put together": """
@psc.kernel
def main(x: f64["n"]) -> f64["n-1"]:
    pieces = []
    for k in range(len(x) - 1):
        pieces.append(x[k : k + 1])
    return np.concatenate(pieces)
""",
    "ordered records": """
from dataclasses import dataclass

@dataclass(frozen=True, order=True)
class Pair:
    first: float

@psc.kernel
def main(x: f64["n"]) -> f64:
    return x[0] if Pair(1.0) < Pair(2.0) else x[1]
""",
    "two masks": """
@psc.kernel
def main(a: f64["n n"]) -> f64["n n"]:
    out = a.copy()
    idx = a[0] > 0
    out[idx, idx] = 1.0
    return out
""",
    "a mask behind a slice": """
@psc.kernel
def main(a: f64["n m 3"]) -> f64["n m 3"]:
    out = a.copy()
    idx = a[:, 0, 0] > 0
    out[0, :, idx[:3]] = 1.0
    return out
""",
    "as many values as there are places": """
@psc.kernel
def main(a: f64["n 3"], b: f64["n"]) -> f64["n 3"]:
    out = a.copy()
    idx = a[:, 0] > 0
    out[idx, 0] = b
    return out
""",
    "a mask of another axis": """
@psc.kernel
def main(a: f64["n 3"], b: f64["m"]) -> f64["n 3"]:
    out = a.copy()
    idx = b > 0
    out[idx, 0] = 2
    return out
""",
    "an index that is not on the axis": """
@psc.kernel
def main(a: f64["n 3"]) -> f64["n 3"]:
    out = a.copy()
    idx = a[:, 0] > 0
    out[idx, 5] = 2
    return out
""",
    "a mask and a truth value": """
@psc.kernel
def main(a: f64["n 3"], c: f64["3"]) -> f64["n 3"]:
    out = a.copy()
    idx = a[:, 0] > 0
    out[idx, True] = 2
    return out
""",
    "a mask of one place": """
@psc.kernel
def main(a: f64["n 3"], b: f64["1"]) -> f64["n 3"]:
    out = a.copy()
    out[b > 0, 0] = 2
    return out
""",
    "a mask in a tuple": """
@psc.kernel
def main(a: f64["n 3"]) -> f64["n 3"]:
    out = a.copy()
    out[(a[:, 0] > 0,), 0] = 2
    return out
""",
    "a store into as many items as a size says": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    y = [0] * len(x)
    y[0] = 1.5
    return x + y
""",
    "a generator with two names": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    (a, b) = c = (2 * v for v in (x, x))
    return a + b
""",
    "a generator with too many items": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    a, b = (2 * v for v in (x, x, x))
    return a + b
""",
    "seterr that raises": """
@psc.kernel
def main(x: f64["n"]) -> f64["n"]:
    np.seterr(divide="raise")
    return 1 / x
""",
    "isscalar of an argument that may be an array": """
@psc.kernel
def main(x: f64) -> f64:
    return 2 * x if np.isscalar(x) else x
""",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_program_is_refused(name: str) -> None:
    with deep_stack():
        assert tried(HEAD + REFUSED[name], 0, whole=True).kind == "refused"
