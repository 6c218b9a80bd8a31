"""In-place operators, for all ways to make, share and update an array: what is accepted is NumPy's.

Each program makes `a` in some way, uses it in some way before and after `a += e`, and returns all
that it can still see.  Where the kernel is accepted, it gives what its function gives in Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pscdsl._src.checker.check import check_source
from pscdsl._src.ir.program import Evaluator
from tests.support.linear_programs import elaborated

HEAD = """\
import numpy as np
import pscdsl as psc
from pscdsl import f32


class Held(psc.Record):
    a: f32["n n"]

    def copy(self):
        return self.a


def same(a):
    return a


def plus(a):
    return a + 1


def showing(a):
    return a.T


"""

OWN = (
    "x + 1", "-x", "x.copy()", "np.array(x)", "np.zeros_like(x)", "x.astype(np.float32)", "x @ x",
    "np.exp(x)", "np.concatenate([x[:1], x[1:]])", "np.where(x > 1, x, 0)", "abs(x)",
    "np.sort(x)", "np.tile(x, 1)", "np.roll(x, 0)", "np.clip(x, 0, 1)", "x.round()", "np.triu(x)",
    "np.copy(x)",
)  # fmt: skip
"""What makes an array of its own."""
SHARED = (
    "x", "x.T", "x[:]", "x[::-1]", "np.reshape(x, x.shape)", "x.reshape(x.shape)",
    "np.asarray(x)", "np.flip(x)", "np.transpose(x)", "same(x)", "plus(x)", "showing(x + 1)",
    "Held(x).a", "b", "Held(x).copy()", "x if x.shape[0] else x + 1", "(x, x)[0]", "np.real(x)",
    "np.diff(x, n=0)", "np.linalg.matrix_power(x, 1)", "np.einsum('ij->ij', x)", "np.squeeze(x)",
    "np.atleast_2d(x)", "np.broadcast_to(x, x.shape)", "np.nan_to_num(x, copy=False)",
    "x.astype(np.float32, copy=False)", "np.array(x, copy=None)", "x or b", "np.rot90(x, 0)",
    "np.swapaxes(x, 0, 1)", "(c := x)", "[x][0]",
)  # fmt: skip
"""What may be an array of somebody else."""
BEFORE = (
    "seen = a", "seen = a.T", "seen = a[0]", "seen = (a, x)[0]", "seen = same(a)", "seen = [a]",
    "seen = a.reshape(-1)", "seen = Held(a)", "seen = np.asarray(a)", "seen = a if 1 else x",
    "seen = lambda: a", "seen = lambda a=a: a", "seen = {'a': a}", "seen = (c := a)",
    "c = seen = a", "seen = a + 1", "seen = a.sum()", "seen = np.stack([a, x])", "seen = a.T @ a",
    "seen = a.shape[0]", "seen = a.copy()", "seen = np.exp(a)", "seen = x[0] * a",
    "seen = a.T.copy()", "seen = len(a)", "seen = np.flip(a)", "seen = [row for row in a][0]",
    "seen = [v + a for v in (1, 2)][0]", "for seen in (a,): pass", "seen, c = a, x",
    "seen, *c = (a, x)", "a = seen = a", "seen = same(a=a)", "seen = np.concatenate((a, a))",
    "seen = max((a,), key=len)", "seen = psc.update(a, 0, 1.0)", "seen = a.sum(axis=0)",
    "seen = -a.T", "seen = same(*[a])", "seen = a.max() + a.dtype.itemsize",
)  # fmt: skip
"""Ways to use the array, some of which keep it."""
UPDATES = ("a += 1", "a *= x", "a -= a[0]", "a @= x", "a **= 2", "for i in range(2): a += i")


HELD = {"seen = [a]": "seen[0]", "seen = {'a': a}": "seen['a']", "seen = Held(a)": "seen.a"}
"""How what is held is shown, where it is not the array itself."""


def program(make: str, before: str, update: str, after: str = "pass") -> str:
    """A module with one kernel."""
    kept = after if before == "seen = 1" else before
    shown = "seen()" if "lambda" in kept else HELD.get(kept, "seen")
    lines = [
        "@psc.kernel",
        'def f(x: f32["n n"], b: f32["n n"]):',
        f"    a = {make}",
        f"    {before}",
        f"    {update}",
        f"    {after}",
        *(["    a += 2"] if after != "pass" else []),
        f"    return a, {shown} * 1.0, x, b",
    ]
    return HEAD + "\n".join(lines) + "\n"


def accepted(text: str) -> bool:
    """Whether a program is accepted; if so, it gives what plain Python gives."""
    if check_source(text, "program.py").diagnostics:
        return False
    names: dict[str, Any] = {"__name__": __name__}  # of a module, where records look names up
    exec(compile(text.replace("@psc.kernel\n", ""), "program.py", "exec"), names)
    theirs = names["f"](*_arguments())
    ours = Evaluator({"n": 3}).block(elaborated(text).body, _arguments())
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, np.asarray(other), rtol=1e-4, err_msg=text)
    return True


def _arguments() -> list[np.ndarray[Any, Any]]:
    x = np.linspace(0.5, 2, 9, dtype=np.float32).reshape(3, 3)
    return [x, x + 1]


@pytest.mark.parametrize("update", UPDATES)
def test_arrays_of_ones_own_are_updated(update: str) -> None:
    for make in OWN:
        text = program(make, "seen = a + 1", update)
        assert accepted(text), text


@pytest.mark.parametrize("update", UPDATES[:2])
def test_arrays_of_others_are_not(update: str) -> None:
    for make in SHARED:
        assert not accepted(program(make, "seen = 1", update)), make


@pytest.mark.parametrize("update", UPDATES[:3])
@pytest.mark.parametrize("at_the_end", [False, True])
def test_what_is_accepted_is_what_numpy_does(update: str, at_the_end: bool) -> None:
    counts = {True: 0, False: 0}
    for use in BEFORE:
        parts = ("seen = 1", update, use) if at_the_end else (use, update)
        counts[accepted(program("x + 1", *parts))] += 1
    assert counts[True] >= 10 <= counts[False], counts


def test_the_comparison_sees_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    from pscdsl._src.frontend.interpreter import expressions

    def nobody(*_: object) -> str:
        return ""

    monkeypatch.setattr(expressions, "held_elsewhere", nobody)
    with pytest.raises(AssertionError, match="seen = a"):
        accepted(program("x + 1", "seen = a", "a += 1"))
    with pytest.raises(AssertionError, match="a = x"):
        accepted(program("x.T", "seen = 1", "a += 1"))
