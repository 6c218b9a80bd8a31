"""Operands of all pairs of dtypes, and numbers without one, meet where jax's do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from pscdsl.typing.diagnostics import Failure
from tests.interop.jax_law import Ours, given, parameters, program, reason
from tests.support.share import some

jax: Any = pytest.importorskip("jax")

ARRAYS: Final = ("b", "u", "uu", "q", "c", "d", "k", "h", "f", "x", "z")
"""An operand of each dtype that JAX has without its 64 bits."""
NUMBERS: Final = ("True", "2", "2.5", "1j", "jnp.asarray(2)", "jnp.asarray(2.0)", "jnp.array([2])")
OPERATORS: Final = ("+", "-", "*", "/", "//", "%", "**", "<", "==", ">=", "@", "&", "^", ">>")
PAIRS: Final = [
    (a, b) for a in (*ARRAYS, *NUMBERS) for b in (*ARRAYS, *NUMBERS) if {a, b}.intersection(ARRAYS)
]
EXPRESSIONS: Final = [
    *(f"{a} {operator} {b}" for operator in OPERATORS for a, b in PAIRS),
    *(f"jnp.where(b, {a}, {b})" for a, b in PAIRS),
    *(f"jnp.stack([jnp.ravel({a})[0], jnp.ravel({b})[0]])" for a, b in PAIRS),
    *(f"({a} if len(b) > 1 else 0) * ({b})" for a, b in PAIRS),
]
REFUSED: Final = "refused"


@pytest.fixture(autouse=True)
def _narrow() -> Iterator[None]:
    """JAX's usual precision, which other tests may have changed."""
    with jax.enable_x64(False):
        yield


def test_results_have_jaxs_dtypes(tmp_path: Path) -> None:
    expressions = some(EXPRESSIONS, 6)
    ours = Ours(tmp_path, expressions)
    names: dict[str, Any] = {}
    exec(program(expressions, types=False), names)
    wrong: list[tuple[str, str, str]] = []
    both = 0
    for number, expression in enumerate(expressions):
        mine, theirs = own_dtype(ours, number), dtype_of(names[f"f{number}"], expression)
        if mine != theirs and not mine.startswith(REFUSED):
            wrong.append((expression, mine, theirs))
        both += mine == theirs != REFUSED
    assert not wrong
    assert both > len(expressions) / 2


def own_dtype(ours: Ours, number: int) -> str:
    """Return the dtype and shape of a result, or the reason why there is none."""
    try:
        (found,) = ours.results(number)
    except Failure as failure:
        return f"{REFUSED}: {reason(failure)}"
    return f"{found.dtype}{found.shape}"


def dtype_of(function: Any, expression: str) -> str:
    """Return the dtype and shape of jax's result."""
    try:
        found = jax.eval_shape(function, *map(given, parameters(expression)))
    except Exception:
        return REFUSED
    return f"{found.dtype}{found.shape}"
