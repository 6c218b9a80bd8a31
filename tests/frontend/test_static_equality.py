"""Static values of calls, compared in kernels with what the source names, as Python does it."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from tests.support.projects import module_of
from tests.support.share import some

MODULE = """
from dataclasses import dataclass
from enum import Enum, Flag, IntEnum
from typing import Any, NamedTuple

import numpy as np
import pscdsl as psc
from pscdsl import f32, f64


class Mode(Enum):
    ADD = 1
    TAKE = 2
    PLUS = 1


class Bits(Flag):
    ONE = 1
    TWO = 2


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Strange(Enum):
    ONE = 1
    TWO = 2

    def __eq__(self, other):
        return True

    __hash__ = object.__hash__


class Point(NamedTuple):
    x: float


@dataclass(frozen=True)
class Config:
    rate: float


class Plain:
    pass


def relu(x):
    return np.maximum(x, 0)


def made(k):
    def times(x):
        return k * x
    return times


twice, thrice, alias, PLAIN, MODE = made(2), made(3), relu, Plain(), Mode.ADD


@psc.kernel
def k(x: f32["n"], s: psc.Static[Any]) -> f32["n"]:
    return x if EXPRESSION else -x


@psc.kernel
def inner(x: f32["n"], s: psc.Static[Any]) -> f32["n"]:
    return x if s is relu else -x


@psc.kernel
def outer(x: f32["n"], s: psc.Static[Any]) -> f32["n"]:
    return inner(x, s)
"""
VALUES = (
    *"Mode.ADD Mode.TAKE MODE Bits.ONE Level.LOW Level.HIGH Strange.ONE Config(1.0) PLAIN".split(),
    *"relu alias twice thrice np.sin np.float32 np.float64 int float bool None".split(),
    *["np.dtype('float32')", "'float32'", "'a'", "b'a'", "1", "True", "1.0", "0.0", "-0.0"],
    *["(1, relu)", "(1, np.float32)", "(Mode.ADD,)", "()", "range(3)", "frozenset({1})"],
    *["Point(1.0)", "(1.0,)"],
)
OTHERS = (
    *"Mode.ADD Mode.PLUS Mode.TAKE MODE Bits.ONE Level.LOW 1 2 relu alias twice np.sin".split(),
    *"np.float32 f32 float int None 'float32' 'a' (1,relu) (Mode.ADD,) () PLAIN".split(),
    *["Config(1.0)", "1.0", "0.0", "True", "Point(1.0)", "Strange.TWO"],
)
DTYPES = ("np.float32", "np.float64", "f32", "float", "int", "np.dtype('float32')", "'float32'")
"""In kernels these are one kind of values: dtypes, which are equal to their names."""
FORMS = ("s == {}", "{} != s", "s in ({}, 'b')", "s in {{{}: 1}}", "(1, s) == (1, {})")


def loaded(folder: Path, expression: str) -> Any:
    """The module with an expression in its kernel."""
    path = folder / "told_apart.py"
    path.write_text(MODULE.replace("EXPRESSION", expression))
    return module_of(path, "told_apart")


X = np.ones(1, np.float32)


@pytest.mark.parametrize("form", FORMS)
def test_kernels_compare_as_python_does_or_refuse(form: str, tmp_path: Path) -> None:
    answered = tried = 0
    others = OTHERS[FORMS.index(form) :: len(FORMS)]
    for number, other in enumerate(others):
        folder = tmp_path / str(number)
        folder.mkdir()
        expression = form.format(other)
        module = loaded(folder, expression)
        for text in some(VALUES, 3, expression):
            tried += 1
            if text in DTYPES and other in DTYPES:
                continue
            value = eval(text, dict(vars(module)))
            try:
                found = np.asarray(module.k(X, value))[0] > 0
            except (psc.CheckError, psc.ArgumentError):
                continue
            expected = bool(eval(expression, {**vars(module), "s": value}))
            assert found == expected, f"{expression} with s = {text}"
            answered += 1
    least = 0.3 if ": 1}" in form else 0.6  # dtypes and records are no keys
    assert answered > least * tried


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("isinstance(s, Config)", "Config(1.0)"),
        ("isinstance(s, Point)", "Point(1.0)"),
        ("not isinstance(s, Point)", "(1.0,)"),
        ("s is Mode.ADD", "Mode.PLUS"),
        ("s is not Mode.ADD", "Mode.TAKE"),
        ("s is relu", "alias"),
        ("s == np.float32 and s == f32", "psc.f32"),
        ("{Mode.ADD: 1, Mode.TAKE: 2}[s] == 2", "Mode.TAKE"),
        ("{relu: 1}.get(s, 0) == 1", "alias"),
        ("(made, relu).count(s) == 1", "alias"),
        ("(Mode.ADD, Mode.TAKE).index(s) == 1", "Mode.TAKE"),
        ("s.value == 2 and s.name == 'TAKE'", "Mode.TAKE"),
        ("x.dtype in ('float32', 'a') and x.dtype not in ('float64', 1)", "1"),
        ("x.dtype == 'float32' and x.dtype == s and x.dtype != float", "'f4'"),
    ],
)
def test_what_a_static_value_is(expression: str, value: str, tmp_path: Path) -> None:
    module = loaded(tmp_path, expression)
    given = eval(value, dict(vars(module)))
    assert np.asarray(module.k(X, given)).tolist() == [1], expression


def test_a_kernel_hands_a_static_value_on(tmp_path: Path) -> None:
    module = loaded(tmp_path, "True")
    for value, expected in ((module.alias, 1), (module.twice, -1), (module.Mode.ADD, -1)):
        assert np.asarray(module.outer(X, value)).tolist() == [expected]


@pytest.mark.parametrize(
    "expression",
    [
        *["{np.float32: 1}.get(x.dtype, 0) == 0", "x.dtype in {'float32'}", "s is made(2)"],
        *["x.dtype is np.float32", "np.float32 is not s"],
        *["(1, s) in ((1, PLAIN),)", "((1, s),).count((1, PLAIN)) == 0"],
    ],
)
def test_what_is_not_known_is_refused(expression: str, tmp_path: Path) -> None:
    module = loaded(tmp_path, expression)
    values = {"relu": module.relu, "PLAIN": module.PLAIN}
    value = next((v for name, v in values.items() if name in expression), module.twice)
    with pytest.raises(psc.CheckError):
        module.k(X, value)
