"""Every public kernel of the standard library says in its docstring what it costs, and it is so.

`--update-golden` writes what does not hold or is missing.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Float, f32
from pscdsl._src.kernels.kernel import Kernel
from tests.support.cost_bounds import cost_line
from tests.support.cost_lines import WIDTH, Line, counted_choices, line_of

FOLDER = Path(__file__).parents[2] / "stdlib"


def public_kernels(module: str) -> Iterator[tuple[Kernel[..., Any], ast.FunctionDef]]:
    """The public ones, and where they are written."""
    found = importlib.import_module(f"pscdsl.stdlib.{module}")
    tree = ast.parse((FOLDER / f"{module}.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            kernel = getattr(found, node.name)
            if isinstance(kernel, Kernel):
                yield kernel, node


def is_proven(said: Line, kernel: Kernel[..., Any]) -> bool:
    """Whether what a docstring says is proven."""
    found, one_step = counted_choices(kernel)
    return bool(found) and said.one_step == one_step and said.is_proven(found)


@pytest.mark.parametrize("module", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_costs(module: str, update_golden: bool) -> None:
    wrong: list[tuple[ast.FunctionDef, Line | None]] = []
    for kernel, node in public_kernels(module):
        said = line_of(ast.get_docstring(node) or "")
        if said is None or not is_proven(said, kernel):
            known = cost_line(kernel)
            if said is not None or known is not None:
                wrong.append((node, known))
    if update_golden:
        _write(FOLDER / f"{module}.py", wrong)
    else:
        assert not wrong, "\n".join(f"{node.name}: {known}" for node, known in wrong)


def _write(path: Path, lines: list[tuple[ast.FunctionDef, Line | None]]) -> None:
    """Put lines, or none, in the places of those that the docstrings have."""
    text = path.read_text(encoding="utf-8").split("\n")
    for node, known in reversed(lines):
        said = ast.get_docstring(node) or ""
        before, _, last = said.rpartition("\n\n")
        body = before if last.startswith("Cost: ") else said
        rest = [] if known is None else ["", *wrap(str(known), WIDTH, break_long_words=False)]
        shown = [*body.rstrip().split("\n"), *rest]
        if len(shown) > 1:
            shown.append("")
        quoted = ('"""' + "\n".join(shown) + '"""').split("\n")
        place = node.body[0]
        assert place.end_lineno is not None
        text[place.lineno - 1 : place.end_lineno] = [
            " " * node.body[0].col_offset + each if each or number == len(quoted) - 1 else ""
            for number, each in enumerate(quoted)
        ]
    path.write_text("\n".join(text), encoding="utf-8")


@psc.kernel
def scaled(
    x: Float["*batch n"], times: psc.Static[int], shift: f32 | None = None
) -> Float["*batch n"]:
    """Multiplied again and again."""
    for _ in range(times):
        x = x * 2
    return x if shift is None else x + shift.astype(x.dtype)


@psc.kernel
def listed(xs: tuple[f32["n"], ...]) -> tuple[f32["n"], ...]:
    """Of any length, so that there is no cost in the sizes alone."""
    return tuple(np.exp(x) for x in xs)


def test_lines() -> None:
    assert str(cost_line(scaled)) == "Cost: at most batch*n*times + batch*n flops."
    assert cost_line(listed) is None
    for text in ("n*m + 2 flops.", "at most 3*(n//2) flops, with one step of its loop."):
        said = line_of(f"Something.\n\nCost: {text}")
        assert str(said) == f"Cost: {text}".replace("n*m", "m*n")
    more = line_of("Cost: at most 2*batch*n*times flops.")
    assert more is not None
    assert not is_proven(more, scaled), "without a step there is the shift"
    assert line_of("Cost: much") is None
