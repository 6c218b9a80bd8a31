"""Our packages of JAX: each expression has the dtypes, shapes and values that jax computes."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from pscdsl._src.checker.jax_functions import PROVEN
from pscdsl._src.frontend.values import Poisoned
from pscdsl._src.support.tracebacks import JAX_PACKAGES
from pscdsl.typing.diagnostics import Failure
from tests.interop.jax_law import Ours, given, parameters, program, reason, rows, verdict
from tests.interop.jax_law_rows import TABLES
from tests.support.share import some

jax: Any = pytest.importorskip("jax")

ALL: Final = [(module, *row) for module, table in TABLES.items() for row in rows(table)]
"""The module, the name and the expression of each row."""
ROWS: Final = [row for row in ALL if row[0].startswith("jax")]
OTHERS: Final = [row for row in ALL if not row[0].startswith("jax")]
"""Rows of packages that are not installed: an expression, and a simpler one for the same."""
PARTS: Final = 16
MARKS: Final = "~?#"


@pytest.fixture(autouse=True)
def _narrow() -> Iterator[None]:
    """JAX's usual precision, which other tests may have changed."""
    with jax.enable_x64(False):
        yield


@pytest.mark.parametrize("part", range(PARTS))
def test_expressions_are_what_jax_computes(part: int, tmp_path: Path) -> None:
    own = [row for row in some(ROWS, 4) if hash_of(row[2]) % PARTS == part]
    expressions = [expression.lstrip(MARKS) for _, _, expression in own]
    ours = Ours(tmp_path, expressions)
    names: dict[str, Any] = {}
    exec(program(expressions, types=False), names)
    wrong: list[tuple[str, str]] = []
    for number, (_, _, written) in enumerate(own):
        found = outcome(ours, number, names[f"f{number}"])
        if not is_right(written, found):
            wrong.append((written, found))
    assert not wrong


def hash_of(text: str) -> int:
    """Return a number that a text has in every run."""
    return sum(map(ord, text))


def outcome(ours: Ours, number: int, function: Any) -> str:
    """Return the verdict on an expression."""
    mine: Any
    theirs: Any
    try:
        mine = ours.results(number)
    except Failure as failure:
        mine = reason(failure)
    except Poisoned:
        mine = "PSC000: unknown"
    try:
        arguments = [given(name) for name in parameters(ours.expressions[number])]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            leaves = jax.tree.leaves(function(*arguments))
            theirs = [np.asarray(jax.numpy.asarray(x)) for x in leaves]
    except Exception as error:
        theirs = f"{type(error).__name__}: {error}"
    return verdict(mine, theirs)


def is_right(written: str, found: str) -> bool:
    """Return whether a verdict is what the mark of an expression says.

    `~`: it is left out. `?`: it may be left out, or jax may refuse it. `#`: other draws.
    What jax computes is never a fault of the program.
    """
    kind, _, text = found.partition(": ")
    left_out = kind == "refused" and text.partition(":")[0] not in PROVEN
    if written.startswith("~"):
        return left_out
    if written.startswith("#"):
        return kind in ("same", "values")
    if written.startswith("?") and (left_out or kind == "jax raises"):
        return True
    return kind in ("same", "both")


def exported(path: Path) -> set[str]:
    """Return the public names that a module binds."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {each.id for each in node.targets if isinstance(each, ast.Name)}
    return {name for name in found if not name.startswith("_")}


def public_modules() -> Mapping[str, Path]:
    """Return the public modules of our packages by name."""
    root = Path(JAX_PACKAGES)
    found: dict[str, Path] = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if not any(part.startswith("_") for part in parts):
            found[".".join(parts)] = path
    return found


def test_expressions_of_other_packages_are_simpler_ones(tmp_path: Path) -> None:
    both = [row[2].split(" => ") for row in OTHERS]
    head = "import chex\nimport equinox as eqx\nfrom flax import nnx"
    ours = Ours(tmp_path, [each for pair in both for each in pair], head)
    for number, pair in enumerate(both):
        assert verdict(ours.results(2 * number), ours.results(2 * number + 1)) == "same", pair


def test_every_name_has_a_row() -> None:
    covered = {f"{module}.{name}" for module, name, _ in ALL if "._" not in module}
    modules = public_modules()
    names = {f"{module}.{name}" for module, path in modules.items() for name in exported(path)}
    assert names - modules.keys() - covered == set()
    assert covered - names == set()


def test_rows_are_enough() -> None:
    assert len(ROWS) > 2500
