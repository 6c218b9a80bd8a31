"""Discovery of functions that nobody wrote for it: an answer within bounds for each."""

from __future__ import annotations

import pytest

from pscdsl._src.discover import search, verdicts
from pscdsl._src.discover.search import MAX_STEPS, Trials
from pscdsl._src.discover.verdicts import discover_source
from tests.support.share import due

MAX_WORK = due(search.MAX_WORK, 6)
_TWENTY = range(20)
SOURCES: dict[str, tuple[str, set[str]]] = {
    "an expression of 3000 terms": (
        f"def f(x):\n    return x{' + x' * 3000}\n",
        {"psc", "unknown"},
    ),
    "parentheses 150 deep": (
        f"def f(x):\n    return {'(' * 150}x{'+ 1)' * 150}\n",
        {"psc"},
    ),
    "300 parameters": (
        f"def f({', '.join(f'a{i}' for i in range(300))}):\n    return a0\n",
        {"obstacle"},
    ),
    "a product of 20 matrices": (
        f"def f({', '.join(f'A{i}' for i in _TWENTY)}):\n"
        f"    return {' @ '.join(f'A{i}' for i in _TWENTY)}\n",
        {"psc"},
    ),
    "20 flags": (
        f"def f(x, {', '.join(f'a{i}=False' for i in _TWENTY)}):\n"
        + "".join(f"    if a{i}:\n        x = x + 1\n" for i in _TWENTY)
        + "    return x\n",
        {"psc"},
    ),
    "a loop of 10**9 steps": (
        "def f(x, n=10**9):\n    for i in range(n):\n        x = x + i\n    return x\n",
        {"psc", "obstacle", "unknown"},
    ),
    "loops in a loop": (
        "def f(x, n=300):\n    for i in range(n):\n        for j in range(n):\n"
        "            x = x + i\n    return x\n",
        {"psc", "unknown"},
    ),
    "a huge number": ("def f(x):\n    return x + 10**10**10\n", {"obstacle"}),
    "functions that call each other": (
        "def f(x):\n    return g(x)\n\n\ndef g(x):\n    return f(x) + f(x)\n",
        {"obstacle"},
    ),
    "calls that double 15 times": (
        "def f0(x):\n    return x\n"
        + "".join(f"def f{i}(x):\n    return f{i - 1}(x) + f{i - 1}(x)\n" for i in range(1, 16)),
        {"psc", "unknown"},
    ),
    "a docstring of parentheses": (
        f'def f(x):\n    """x : ndarray of shape {"(" * 5000}"""\n    return x\n',
        {"psc"},
    ),
    "an annotation that is no expression": (
        f'def f(x: "{"(" * 100}"):\n    return x\n',
        {"psc"},
    ),
    "a default of a billion items": ("def f(x=[0] * 10**9):\n    return x\n", {"obstacle"}),
    "no body but a docstring": ('def f(x):\n    """Nothing."""\n', {"psc"}),
    "names of ours that mean something else": (
        "psc = Float = Literal = 1\n\n\ndef f(x, flag=True):\n    return x if flag else -x\n",
        {"psc"},
    ),
    "a name that is only in messages": (
        "def f(x, x__0=1.0):\n    return x + x__0\n",
        {"psc"},
    ),
}


@pytest.mark.parametrize("name", SOURCES)
def test_there_is_an_answer_within_bounds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, statuses = SOURCES[name]
    work: list[int] = []

    class Counted(Trials):
        def __del__(self) -> None:
            work.append(self.work)

    monkeypatch.setattr(verdicts, "Trials", Counted)
    monkeypatch.setattr(search, "MAX_WORK", MAX_WORK)
    found = discover_source("import numpy as np\n\n\n" + text, "hostile.py")
    assert {each.status for each in found.verdicts} <= statuses
    assert found.verdicts
    assert "PSC999" not in {each.code for v in found.verdicts for each in v.findings}
    largest = MAX_STEPS + len(text)
    assert all(each <= MAX_WORK + largest for each in work)


def test_what_is_no_python_is_said() -> None:
    found = discover_source("def f(x):\n    return \x00\n", "hostile.py")
    assert [each.code for each in found.problems] == ["PSC100"]


def test_nothing_is_run() -> None:
    text = "raise SystemExit\n\n\ndef f(x=open('/nowhere', 'w')):\n    return x\n"
    assert [each.status for each in discover_source(text, "hostile.py").verdicts] == ["obstacle"]
