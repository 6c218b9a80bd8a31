"""What makes new memory: the tables, beside NumPy."""

from __future__ import annotations

import pytest

from pscdsl._src.frontend.interpreter.new_memory import NEW_FUNCTIONS, NEW_METHODS
from tests.support.new_memory_calls import candidates, is_new, method_is_new, methods, real


@pytest.mark.filterwarnings("ignore")
def test_functions_that_make_new_memory_do() -> None:
    assert set(candidates()) >= NEW_FUNCTIONS
    for name in sorted(NEW_FUNCTIONS):
        function = real(name)
        assert function is None or is_new(function), name  # older versions lack some


@pytest.mark.parametrize("name", methods())
def test_methods_that_make_new_memory_do(name: str) -> None:
    assert method_is_new(name) == (name in NEW_METHODS)


@pytest.mark.parametrize("name", ["reshape", "ravel", "diff", "einsum", "linalg.matrix_power"])
def test_views_are_seen(name: str) -> None:
    assert not is_new(real(f"numpy.{name}"))
    assert f"numpy.{name}" not in NEW_FUNCTIONS
