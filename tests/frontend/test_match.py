"""`match` in a helper takes the case that CPython takes."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32

pytestmark = pytest.mark.quick_code
X = np.array([1, -2, 3], np.float32)


class Two(NamedTuple):
    """A sequence with names."""

    a: Any
    b: Any


def number(node: Any) -> Any:
    """Which case it is, and some of what is bound."""
    match node:
        case None:
            return 1
        case True | False:
            return 2
        case 0:
            return 3
        case 1.5:
            return 4
        case "a" | "b" as text:
            return 5 + len(text)
        case int(n) if n > 100:
            return n
        case int():
            return 7
        case []:
            return 8
        case [x]:
            return 9 + number(x)
        case [1, *_, 2]:
            return 10
        case (a, b) if number(a) < number(b):
            return 11
        case Two(a=1):
            return 12
        case [_, *rest]:
            return 13 + len(rest)
        case str():
            return 14
        case dict():
            return 15
        case _:
            return 17


NODES: list[Any] = [
    *(None, True, False, 0, 1, 1.5, 2.5, "a", "c", 7, 1000, (), [], [None], ((1,),), {}, ...),
    *((1, 2), (1, 5, 2), (2, 1), (7, None), Two(1, 0), Two(2, 1), range(3), [1, "x", 3], b"ab"),
    *([[], []], ("a", "b"), -0.0, 1j, frozenset(), {"k": 1}, [True, 0, 2], (1.0, 2)),
]


@psc.kernel
def scaled(x: f32["n"], node: psc.Static[Any]) -> f32["n"]:
    return x * number(node)


@pytest.mark.parametrize("node", NODES, ids=repr)
def test_the_case_is_that_of_python(node: Any) -> None:
    if isinstance(node, list | dict):
        pytest.skip("a list is no static argument")
    found = scaled(X, node)
    np.testing.assert_array_equal(found, X * number(node))


LISTS: tuple[Any, ...] = ([], [None], [1, "x", 3], [[], []], [1, 5, 2], {}, {"k": 1})


@psc.kernel
def of_lists(x: f32["n"]) -> tuple[f32, ...]:
    nodes: tuple[Any, ...] = ([], [None], [1, "x", 3], [[], []], [1, 5, 2], {}, {"k": 1})
    return tuple(np.sum(x) * number(node) for node in nodes)


def test_lists_inside_of_a_kernel() -> None:
    found: Any = of_lists(X)
    for each, node in zip(found, LISTS, strict=True):
        assert float(each) == np.sum(X) * number(node)
