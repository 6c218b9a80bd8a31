"""Random programs of plain NumPy, beside NumPy; `make fuzz` tries many more."""

from __future__ import annotations

import ast
import re

import numpy as np
import pytest

from pscdsl._src.checker.check import deep_stack
from tests.fuzz.numpy_differences import CAMPAIGN, minimised, tried
from tests.fuzz.numpy_programs import generate
from tests.fuzz.numpy_templates import MAYBE_VIEWS, ORDERS
from tests.support.share import due

HEAD = """\
import functools

import numpy as np
import pscdsl as psc
from pscdsl import f64
"""

PATTERNS = (
    r"\w\[.*\] = ",
    r"\w\[.*\] [+*-]= ",
    r"\w\[\(\w.* [<>=!]+ .*\)\] = ",
    r"\n +\w+ = \w+\n",
    r" \w+, \w+ = \w+, \w+\n",
    r" \w+ = \w+ = ",
    r"\.sort\(\)",
    r"\.fill\(",
    r"np\.\w+\.at\(",
    r"np\.copyto\(",
    r", out=\w",
    r" = \[\w+, \w+.*\]\n",
    r'\["u"\]',
    r"\.append\(",
    r"for .* in range\(",
    r"for .* in enumerate\(",
    r"for .* in zip\(",
    r"for .* in \(\w+, ",
    r"while .*:\n",
    r"\n +else:\n",
    r"\n +elif .*:\n",
    r" and | or ",
    r" if .* else ",
    r"\n +break\n",
    r"\n +continue\n",
    r"\n     +return .*\n",
    r"\n    +def \w+\(",
    r"\ndef \w+\(",
    r"lambda",
    r"psc\.(vmap|scan)\(",
    r"psc\.grad\(",
    r"Pair\(",
    r"sum\(\w+\)",
)
"""What stands somewhere in some programs of 300."""


@pytest.mark.parametrize("shared", [(), ("--shared",)], ids=["own", "shared"])
def test_what_is_accepted_has_the_results_of_numpy(shared: tuple[str, ...]) -> None:
    figures = CAMPAIGN.here(range(due(30, 2)), *shared)
    assert not figures.problems, figures.shown
    assert figures.count("equal") + figures.count("refused") >= due(27, 2)


@pytest.mark.parametrize("shared", [(), ("--shared",)], ids=["own", "shared"])
def test_what_is_written_to_arguments_is_what_numpy_writes(shared: tuple[str, ...]) -> None:
    figures = CAMPAIGN.here(range(due(40, 2)), *shared, "--grammar", "writes")
    assert not figures.problems, figures.shown
    assert figures.count("equal") >= due(5, 2)
    assert figures.count("equal") + figures.count("refused") >= due(37, 2)


def test_programs_are_those_that_numpy_programmers_write() -> None:
    texts = [generate(seed) for seed in range(600)]
    for text in texts:
        ast.parse(text)
    joined = "\n".join(texts)
    assert [each for each in PATTERNS if not re.search(each, joined)] == []
    assert generate(7) == texts[7] != generate(7, shared=True)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("return psc.associative_scan(lambda a, b: b, x)", "equal"),
        ("return psc.checkpoint(lambda e: e)(x) + 1.0", "different"),
        ("return [x]", "refused"),
    ],
)
def test_what_becomes_of_a_program(body: str, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def other(_: object) -> object:
        return np.negative

    monkeypatch.setattr("tests.fuzz.reference.checkpoint", other)
    with deep_stack():
        text = f'{HEAD}\n@psc.kernel\ndef main(x: f64["n"]) -> f64["n"]:\n    {body}\n'
        assert tried(text, 0).kind == what


def test_a_program_is_minimised() -> None:
    lines = (
        "def main(x):",
        "    a = 1",
        "    for i in x:",
        "        if a:",
        "            x[0] = 1",
    )
    found = minimised("\n".join(lines), lambda each: "def" in each and "x[0]" in each)
    assert found == "def main(x):\n    x[0] = 1\n"


VIEWS = [each.strip() for each in MAYBE_VIEWS.split(";")]


def kinds(statements: str, before: str = "") -> set[str]:
    """What becomes of a program of two vectors `y` and `z`."""
    lines = ["n = len(x)", "y = x + 1.0", "z = x * 2.0", *statements.split("\n"), "return y, z, t"]
    body = "\n".join("    " + line for line in lines)
    text = f'{HEAD}\n{before}\n@psc.kernel\ndef main(x: f64["n"]):\n{body}\n'
    with deep_stack():
        first = tried(text, 0).kind
        return {first} if first == "refused" else {first, tried(text, 1).kind}


@pytest.mark.parametrize("view", VIEWS)
def test_what_may_be_a_view(view: str) -> None:
    made = view.replace("$y", "y").replace("$z", "z").replace("$n", "n")
    for store in ("y[0] = 7.0", "t[0] = 7.0\ny[-1] = 5.0"):
        assert kinds(f"t = {made}\n{store}") <= {"equal", "refused", "NumPy raises"}


@pytest.mark.parametrize("order", [each for orders in ORDERS.values() for each in orders])
def test_the_order_in_which_operands_are_read(order: str) -> None:
    before = "def f(z, v):\n    z[::-1] = z + v\n    return v\n"
    text = order.format(y="y", i="-1", f="f(y, 3.0)")
    text = f"{text}\nt = z" if order in ORDERS["stores"] else f"t = {text}"
    assert kinds(text, before) <= {"equal", "refused"}
