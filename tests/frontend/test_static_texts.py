"""Messages write static values as the program does: no object of the checker, no address."""

from __future__ import annotations

import enum

import numpy as np
import pytest

from pscdsl._src.checker.check import check_source
from pscdsl.typing.array_types import static_text

HEAD = """
import enum
import numpy as np
import pscdsl as psc
from pscdsl import f32


class E(enum.Enum):
    A = 1


class S(psc.Record):
    u: f32["n"]


def double(v):
    return 2 * v


@psc.kernel
def g(x: f32["n"], k: psc.Static[int]) -> f32["n"]:
    return x


@psc.kernel
def f(x: f32["n"]) -> f32["n"]:
    return g(x, {given})
"""


class Colour(enum.Enum):
    """What a process has loaded."""

    RED = 1


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("E.A", "E.A"),
        ("S", "the class S"),
        ("double", "the function double"),
        ("lambda v: v", "a lambda"),
        ("(E.A, S, 3)", "(E.A, the class S, 3)"),
        ("np.exp", "numpy.exp"),
        ("np", "the module numpy"),
        ("x.shape", "(n,)"),
        ("'u'", "'u'"),
        ("np.float32", "f32"),
    ],
)
def test_a_static_argument_in_a_message(given: str, shown: str) -> None:
    (found,) = check_source(HEAD.replace("{given}", given), "k.py").diagnostics
    assert found.message() == f"argument `k` of `g` is Static[{shown}], but Static[int] is declared"


def test_values_of_a_process() -> None:
    assert static_text(Colour.RED) == "Colour.RED"
    assert static_text(len) == "len"
    assert static_text(np.float32) == "float32"
    assert static_text((Colour.RED, 1.5)) == "(Colour.RED, 1.5)"
    assert len(static_text("x" * 1000)) < 300
