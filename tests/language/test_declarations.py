"""Public functions are declared once: in kernels and outside they take the same arguments."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32, i32
from pscdsl._src.frontend.modules import known
from pscdsl._src.frontend.values import StaticFunction
from pscdsl._src.language.declarations import DECLARED, completed
from pscdsl._src.language.meanings import MEANINGS, Meaning

known.load_all()

ALSO_REFUSED = {"pscdsl.kernel"}
"""What takes more in kernels, to say why it is refused there."""


def public(qualified: str) -> Any:
    """The public function of a name, None if there is none."""
    found: Any = psc
    for part in qualified.split(".")[1:]:
        found = getattr(found, part, None)
    return found


FUNCTIONS = {
    name: meaning
    for name, meaning in MEANINGS.items()
    if name.startswith("pscdsl.") and isinstance(meaning, Meaning | StaticFunction)
}


def parameters(function: Callable[..., Any] | inspect.Signature) -> list[tuple[str, Any, Any]]:
    """Names, kinds and defaults."""
    signature = function if isinstance(function, inspect.Signature) else inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.name != "here"]
    return [(each.name, each.kind, each.default) for each in own]


def test_every_declaration_has_a_meaning() -> None:
    assert len(DECLARED) > 80
    assert set(DECLARED) <= set(MEANINGS)
    for name, declared in DECLARED.items():
        assert inspect.unwrap(public(name)) is declared
        assert inspect.signature(public(name)) == inspect.signature(declared)
        assert public(name).__doc__ == declared.__doc__


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - ALSO_REFUSED))
def test_a_function_takes_the_same_in_kernels_and_outside(name: str) -> None:
    meaning = FUNCTIONS[name]
    inside = meaning.signature if isinstance(meaning, Meaning) else meaning.body
    assert parameters(inside) == parameters(public(name))


def test_functions_are_where_their_names_say() -> None:
    for name in ("scan", "random.normal", "special.erf"):
        function = public(f"pscdsl.{name}")
        assert inspect.isfunction(function)
        assert pickle.loads(pickle.dumps(function)) is function
    assert psc.special.erf.__module__ == "pscdsl.special"
    assert psc.random.normal.__module__ == "pscdsl.random"


def test_wrong_arguments_are_refused_as_python_does() -> None:
    without: Any = psc.special.erf
    with pytest.raises(TypeError, match=r"erf\(\) missing 1 required positional argument: 'x'"):
        without()
    with pytest.raises(TypeError, match=r"normal\(\) got an unexpected keyword argument 'size'"):
        psc.random.normal(psc.random.key(0), size=3)  # type: ignore[call-arg] # pyright: ignore


def test_a_meaning_has_the_parameters_that_are_declared() -> None:
    def body(x: Any) -> Any:
        return x

    with pytest.raises(AssertionError, match=r"pscdsl\.special\.erf is declared otherwise"):
        completed("pscdsl.special.erf", body)  # there x is positional only


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_rows_of_several_trees_are_taken_together() -> None:
    np.testing.assert_array_equal(psc.map(lambda x, y: x - 2 * y, X, X), -X)
    np.testing.assert_array_equal(psc.map(f=lambda x: 2 * x, xs=X), 2 * X)


def test_the_largest_along_an_axis() -> None:
    @psc.kernel
    def largest(x: f32["n m"]) -> tuple[f32["1 m"], i32["1 m"]]:
        return psc.top_k(x, 1, axis=0)

    for found in (psc.top_k(X, 1, axis=0), largest(X)):
        np.testing.assert_array_equal(found[0], X[1:])
        np.testing.assert_array_equal(found[1], [[1, 1, 1]])


def test_windows_count_their_padding_if_asked() -> None:
    x = np.ones((1, 1, 4), np.float32)
    found = psc.avg_pool(x, 2, 1, padding=((1, 0),), count_padding=True)
    np.testing.assert_array_equal(found[0, 0], [0.5, 1, 1, 1])
    spread = psc.max_pool(np.arange(4, dtype=np.float32).reshape(1, 1, 4), 2, 1, dilation=2)
    np.testing.assert_array_equal(spread[0, 0], [2, 3])
