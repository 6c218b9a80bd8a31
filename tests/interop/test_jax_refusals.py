"""Our packages of JAX beside jax on expressions that it may refuse.

Each is an expression of the law with another operand in one place: of another dtype, another shape,
or both, or a list. What jax refuses is not accepted, and what it computes is never called a fault.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.interop.jax_law import OPERANDS, Ours, parameters, program
from tests.support.share import some

jax: Any = pytest.importorskip("jax")

from tests.interop.test_jax_packages import ROWS, is_right, outcome  # noqa: E402  it needs jax

PARTS: Final = 4
COUNT: Final = 1000
"""The expressions of each part."""
LISTS: Final = 0.15
"""How often the operand is a list of two instead."""
_WRITTEN: Final = [row[2] for row in ROWS if row[2][0] not in "~#"]


def changed(rng: random.Random) -> Iterator[str]:
    """Yield expressions of the law with another operand."""
    known = {each.lstrip("?") for each in _WRITTEN}
    while True:
        expression = rng.choice(_WRITTEN).lstrip("?")
        operands = [each for each in parameters(expression) if each in OPERANDS]
        if not operands:
            continue
        tree = ast.parse(expression, mode="eval")
        own = rng.choice(operands)
        places = [x for x in ast.walk(tree) if isinstance(x, ast.Name) and x.id == own]
        other = rng.choice([*OPERANDS])
        given = {id(x) for call in ast.walk(tree) if isinstance(call, ast.Call) for x in call.args}
        if rng.random() < LISTS and all(id(each) in given for each in places):
            other = f"[{own}, {own}]"
        for each in places if rng.random() < 0.5 else [rng.choice(places)]:
            each.id = other
        made = ast.unparse(tree)
        if made not in known:
            known.add(made)
            yield made


@pytest.mark.parametrize("part", range(PARTS))
def test_what_jax_refuses_is_not_accepted(part: int, tmp_path: Path) -> None:
    made = changed(random.Random(part))
    expressions = some([next(made) for _ in range(COUNT)], 10)
    ours = Ours(tmp_path, expressions)
    names: dict[str, Any] = {}
    exec(program(expressions, types=False), names)
    wrong: list[tuple[str, str]] = []
    with jax.enable_x64(False):
        for number, expression in enumerate(expressions):
            found = outcome(ours, number, names[f"f{number}"])
            is_false = found.startswith("refused") and not is_right(f"?{expression}", found)
            if found.startswith("jax raises") or is_false:
                wrong.append((expression, found))
    assert not wrong
