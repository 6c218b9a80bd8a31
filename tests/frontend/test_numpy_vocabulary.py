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
    *("np.isscalar(np.array(1.0))", "np.isscalar(np.array(v[0]))"),
)


@pytest.mark.parametrize("call", REFUSED_CALLS)
def test_a_call_is_refused(call: str) -> None:
    assert in_kernel(call) is None


PROGRAMS = {
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
