"""Soundness: a program that safe fixes mend computes what it computed in place under NumPy."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pscdsl._src.checker.check import check_source
from pscdsl._src.checker.fixing import fix_all
from pscdsl._src.frontend.modules.files import Files
from pscdsl._src.ir.program import evaluate
from tests.support.kernels_of import kernels_of

PATH = os.path.realpath("program.py")

VECTORS = st.lists(st.integers(-4, 4), min_size=5, max_size=5)
STATEMENTS = (
    "x[0] = 2.0",
    "x[-1] += 3.0",
    "x[1:3] = y[2:4]",
    "x[::2] *= 2.0",
    "x[1:] = x[:-1]",
    "x[k] = 1.0",
    "x[k] += 1.0",
    "x[k] -= y[0]",
    "x[x > 0] = -1.0",
    "np.add.at(x, k, 2.0)",
    "np.maximum.at(x, k, 0.0)",
    "x.sort()",
    "x.fill(3.0)",
    "x = x + y",
    "x += y",
    "x = np.where(not y[0] > 0, x, y)",
    "x = np.where(-1 < y < 2, x, y)",
    "x = x * 2 if y[0] > 0 and y[1] > 0 else x",
    "for i in range(2):\n        x[i] += y[i + 1]",
)


ALIASES = (
    "z = x",
    "z = x[:]",
    "z = x[::-1]",
    "z = x.T",
    "z = np.ravel(x)",
    "z = x.reshape(5)",
    "z = np.flip(x)",
    "z = (x, y)[0]",
    "z = [x][0]",
    "z = np.asarray(x)",
    "z = x if True else y",
    "z = np.stack([x, y])[0]",
    "z = x + 0",
    "z = x.copy()",
    "z = put(x)",
    "z = fresh(x)",
    "z = same(x)",
    "x = same(x)",
    "y = x",
    "x = y",
    "x = z",
    "z[1] = 7.0",
    "z[2:] += 5.0",
    "z += 4.0",
    "z.sort()",
    "y[0] = 9.0",
    "put(x)",
    "z = add(x)",
    "def g():\n        return x\n    x[3] = -9.0\n    z = g()",
    "rows = [x]\n    rows.append(y)\n    z = rows[0]",
    "rows = [x]\n    more = rows\n    rows.append(y)\n    z = float(len(more)) * x",
)
"""Statements by which an array gets another name, or is changed by one."""

HEAD = """\
import numpy as np
import pscdsl as psc
from pscdsl import f32, i32


def put(v):
    v[1] = 8.0
    return v


def add(v):
    v += 6.0
    return v


def fresh(v):
    w = v + 1
    w[1] = 8.0
    return w


def same(v):
    return v


@psc.kernel
def f(x: f32["5"], y: f32["5"], k: i32["3"]) -> f32["5"]:
    z = x * 0
"""


def program(statements: list[str]) -> str:
    """A kernel with these statements, whose result tells the arrays apart."""
    body = "".join(f"    {each}\n" for each in statements)
    return f"{HEAD}{body}    return x + 100 * z + 10_000 * y\n"


def fixed(text: str) -> str:
    """The program with its safe fixes."""
    files = Files([PATH]).changed({PATH: text.encode()})
    contents = fix_all(files, [PATH], lambda found, _: found).contents
    return contents.get(PATH, text.encode()).decode()


def errors(text: str) -> list[str]:
    found = check_source(text, "program.py").diagnostics
    return [each.code for each in found if each.severity.value == "error"]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(STATEMENTS), min_size=1, max_size=4), VECTORS, VECTORS)
def test_where_nothing_is_shared_everything_is_mended(
    statements: list[str], x: list[int], y: list[int]
) -> None:
    after = fixed(program(statements))
    assert not errors(after)
    assert_same(program(statements), after, x, y)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(STATEMENTS + ALIASES), min_size=2, max_size=6), VECTORS, VECTORS)
def test_what_is_mended_is_mended_soundly(
    statements: list[str], x: list[int], y: list[int]
) -> None:
    after = fixed(program(statements))
    if not errors(after):
        assert_same(program(statements), after, x, y)


def assert_same(before: str, after: str, x: list[int], y: list[int]) -> None:
    """One under plain NumPy, the other by the interpreter of the typed program."""
    plain = before.replace("-1 < y < 2", "(-1 < y) & (y < 2)")  # NumPy refuses the chain
    arguments = [np.array(each, np.float32) for each in (x, y)]
    k = np.array([1, 3, 1], np.int32)
    expected = run_plainly(plain, *(each.copy() for each in arguments), k)
    np.testing.assert_array_equal(evaluated(after, *arguments, k), expected)


def run_plainly(program: str, *arguments: np.ndarray) -> np.ndarray:
    """The function as plain NumPy runs it."""
    names: dict[str, object] = {}
    exec(program.replace("@psc.kernel\n", ""), names)
    function: Callable[..., np.ndarray] = names["f"]  # type: ignore[assignment]
    return function(*arguments)


def evaluated(program: str, *arguments: np.ndarray) -> np.ndarray:
    """The kernel, by the interpreter of its typed program."""
    [definition] = kernels_of(program).values()
    choices = definition.signature.choices()
    assert choices is not None
    [choice] = choices
    [found] = evaluate(definition.instance(choice), {}, arguments)
    return found
