"""Carries of loops and branches of conditions beside jax: what we call a fault, jax refuses."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from pscdsl._src.checker.jax_functions import annotated_functions
from pscdsl._src.frontend.modules.files import files_below
from pscdsl._src.frontend.modules.scope import Project

jax: Any = pytest.importorskip("jax")

_HEAD: Final = """\
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


"""
_VALUES: Final = (
    "0; 0.0; True; jnp.zeros(()); jnp.zeros((), jnp.int32); jnp.array(0); jnp.float32(0); x[0]; i; "
    "np.float32(0); np.int32(1); jnp.zeros(2); x[0] > 0; x[0].astype(jnp.float16); jnp.sum(i)"
).split("; ")
_NEXT: Final = (
    "c + v; c * 2; c + 0.5; v; c[None]; c > 0; jnp.where(c > 0, c, 0); c / 2; 1.0; -c; c + i[0]"
).split("; ")
_TREES: Final = ("(x, 1)", "(x, 1.0)", "(x, i)", "[x, 1]", "None", "{'a': x}", "{'b': x}")


def _programs() -> list[str]:
    branches = (*_VALUES, *_TREES)
    return [
        *(f"lax.scan(lambda c, v: ({b}, None), {a}, x)" for a, b in product(_VALUES, _NEXT)),
        *(f"lax.fori_loop(0, 3, lambda v, c: {b}, {a})" for a, b in product(_VALUES, _NEXT)),
        *(f"lax.cond(x[0] > 0, lambda: {a}, lambda: {b})" for a, b in product(branches, branches)),
    ]


def _text(programs: list[str], *, x: str, i: str) -> str:
    """Return a module with a function for each program, whose parameters have these annotations."""
    imported = "from jaxtyping import Array, Float, Int\n" if x else ""
    functions = [
        f"def f{number}(x{x}, i{i}):\n    return {each}\n" for number, each in enumerate(programs)
    ]
    return "\n".join([imported + _HEAD, *functions])


def test_what_is_a_fault_is_refused_by_jax(tmp_path: Path) -> None:
    programs = _programs()
    path = tmp_path / "programs.py"
    path.write_text(_text(programs, x=": Float[Array, '2']", i=": Int[Array, '2']"))
    files = files_below([str(path)])
    module = Project(files=files).at(files.given[0])
    found = [bool(each.found) for each in annotated_functions(module)]
    names: dict[str, Any] = {}
    exec(_text(programs, x="", i=""), names)
    refused: list[bool] = []
    with jax.enable_x64(False):  # another test may have it on
        x, i = jax.numpy.array([1.0, 2.0]), jax.numpy.array([1, 2])
        for number in range(len(programs)):
            try:
                jax.eval_shape(names[f"f{number}"], x, i)
            except (TypeError, ValueError):
                refused.append(True)
            else:
                refused.append(False)
    answers = zip(programs, found, refused, strict=True)
    wrong = [each for each, ours, theirs in answers if ours > theirs]
    assert not wrong
    assert sum(found) > 0.9 * sum(refused)
