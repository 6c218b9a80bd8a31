"""Expressions of JAX programs, as our packages of JAX mean them and as jax computes them."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest

from pscdsl._src.checker.check import deep_stack, quiet
from pscdsl._src.dialects.jax.definitions import JaxDefinition
from pscdsl._src.discover.equality import Array
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.modules.files import files_below
from pscdsl._src.frontend.modules.scope import Project, StaticModule
from pscdsl._src.ir.program import evaluate
from pscdsl.typing.diagnostics import Failure
from tests.interop.jax_runs import difference

HEAD: Final = """
import functools
import math
import operator
from functools import partial
from typing import NamedTuple

import jax
import jax.flatten_util
import jax.numpy as jnp
import jax.scipy as jsp
import jax.scipy.linalg
import jax.scipy.special
import jax.scipy.stats
import jax.tree_util
import numpy as np
from jax import lax, nn, random, tree_util
from jax.experimental import checkify
{more}
{types}


class Pair(NamedTuple):
    a: object
    b: object


@jax.custom_jvp
def halved(a):
    return a / 2


@halved.defjvp
def halved_jvp(primals, tangents):
    return halved(*primals), 3 * tangents[0]


@jax.custom_vjp
def doubled(a):
    return a * 2


def doubled_fwd(a):
    return doubled(a), a


def doubled_bwd(kept, cotangent):
    return (kept * cotangent,)


doubled.defvjp(doubled_fwd, doubled_bwd)


@jax.jit
def scoped(a):
    with jax.named_scope("part"):
        return a + 1
"""
_NAMES: Final = "Array BFloat16 Bool Complex64 Float16 Float32 Int8 Int16 Int32 UInt8 UInt16 UInt32"
TYPES: Final = f"from jaxtyping import {', '.join(_NAMES.split())}"
_CLASSES: Final = {
    "float32": "Float32", "bfloat16": "BFloat16", "float16": "Float16", "int32": "Int32",
    "int8": "Int8", "int16": "Int16", "uint8": "UInt8", "uint16": "UInt16", "uint32": "UInt32",
    "bool": "Bool", "complex64": "Complex64",
}  # fmt: skip
_RANDOM: Final = np.random.default_rng(7)


def _normal(*shape: int) -> Array:
    return np.round(_RANDOM.normal(size=shape), 2).astype(np.float32)


_SQUARE: Final = _normal(3, 3)
OPERANDS: Final[Mapping[str, Array]] = {
    "s": np.array(1.5, np.float32),
    "x": np.array([0.5, -1.25, 2.0, 0.75], np.float32),
    "y": np.array([1.5, 0.25, -2.0, 3.0], np.float32),
    "pos": np.array([0.25, 1.5, 2.0, 0.75], np.float32),
    "unit": np.array([0.25, -0.5, 0.125, 0.75], np.float32),
    "p": np.array([0.125, 0.5, 0.25, 0.125], np.float32),
    "tie": np.array([2.0, 1.0, 2.0, 1.0, 0.0], np.float32),
    "nan": np.array([1.0, np.nan, 3.0, np.nan, -2.0], np.float32),
    "inf": np.array([np.inf, 1.0, -np.inf, 0.0, -0.0], np.float32),
    "m": _normal(3, 4),
    "w": _normal(4, 2),
    "t": _normal(2, 3, 4),
    "sq": _SQUARE,
    "pd": _SQUARE @ _SQUARE.T + 3 * np.eye(3, dtype=np.float32),
    "tri": np.tril(_SQUARE) + 4 * np.eye(3, dtype=np.float32),
    "v": np.array([1.0, -2.0, 0.5], np.float32),
    "nanm": np.array([[1, np.nan, 2], [4, 5, 6]], np.float32),
    "one": np.array([[2.5, -1.0, 3.0]], np.float32),
    "empty": np.zeros((0, 3), np.float32),
    "none": np.zeros((0,), np.float32),
    "h": np.array([1.5, -2.0, 0.25, 4.0], ml_dtypes.bfloat16),
    "f": np.array([1.5, -2.0, 0.25, 4.0], np.float16),
    "k": np.array([3, -1, 0, 7], np.int32),
    "l": np.array([2, 5, -3, 1], np.int32),
    "km": np.arange(12, dtype=np.int32).reshape(3, 4),
    "n": np.array(2, np.int32),
    "far": np.array([0, 5, -1, -9, 2], np.int32),
    "seg": np.array([0, 2, 0, 7], np.int32),
    "c": np.array([100, -100, 7, 0], np.int8),
    "d": np.array([1000, -100, 7, 0], np.int16),
    "u": np.array([200, 3, 0, 255], np.uint8),
    "uu": np.array([200, 3, 0, 65535], np.uint16),
    "q": np.array([2, 3, 0, 7], np.uint32),
    "b": np.array([True, False, True, True]),
    "bm": np.array([[True, False, True, True], [False] * 4, [True] * 4]),
    "true": np.array(True),
    "z": np.array([1 + 2j, -0.5j, 3, -1 + 1j], np.complex64),
    "zm": (_normal(3, 3) + 1j * _normal(3, 3)).astype(np.complex64),
}
"""The arguments, by the name that an expression uses."""
KEY: Final = "key"


def parameters(expression: str) -> list[str]:
    """Return the operands that an expression uses, in order."""
    tree = ast.parse(expression, mode="eval")
    names = [each.id for each in ast.walk(tree) if isinstance(each, ast.Name)]
    bound = {each.arg for each in ast.walk(tree) if isinstance(each, ast.arg)}
    bound |= {
        each.id
        for each in ast.walk(tree)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    known = [each for each in names if each in OPERANDS or each == KEY]
    return [each for each in dict.fromkeys(known) if each not in bound]


def annotation(name: str) -> str:
    """Return the annotation of an operand."""
    if name == KEY:
        return "PRNGKeyArray"
    value = OPERANDS[name]
    return f'{_CLASSES[value.dtype.name]}[Array, "{" ".join(map(str, value.shape))}"]'


def program(expressions: Sequence[str], *, types: bool, more: str = "") -> str:
    """Return a module with a function for each expression."""
    parts = [HEAD.format(types=TYPES if types else "", more=more)]
    for number, each in enumerate(expressions):
        given = [f"{name}: {annotation(name)}" if types else name for name in parameters(each)]
        parts.append(f"\n\ndef f{number}({', '.join(given)}):\n    return {each}\n")
    return "".join(parts)


class Ours:
    """The functions of a module, elaborated."""

    def __init__(self, folder: Path, expressions: Sequence[str], more: str = "") -> None:
        path = folder / "program.py"
        path.write_text(program(expressions, types=True, more=more))
        files = files_below([str(path)])
        self.expressions = expressions
        self.module: StaticModule = Project(files=files).at(files.given[0])
        self.nodes = {
            each.name: each
            for each in self.module.source.tree.body
            if isinstance(each, ast.FunctionDef)
        }

    def results(self, number: int) -> tuple[Array, ...]:
        """Return the results of an expression; raise a Failure if it is refused."""
        with deep_stack(), quiet():
            closure = self.module.function(self.nodes[f"f{number}"])
            assert isinstance(closure, Closure)
            definition = JaxDefinition(closure)
            choices = definition.signature.choices()
            assert choices is not None
            function = definition.instance(choices[0])
            names = parameters(self.expressions[number])
            given = [np.array([0, 42], np.uint32) if n == KEY else OPERANDS[n] for n in names]
            with np.errstate(all="ignore"):
                return evaluate(function, {}, given)


def reason(failure: Failure) -> str:
    """Return the code and the text of a refusal."""
    first = failure.diagnostics[0]
    return f"{first.code}: {first.message()}"


def rows(table: str) -> list[tuple[str, str]]:
    """Return the names and expressions of a table with lines `name | expression | …`.

    The marks `~` and `?` before an expression stay.
    """
    found: list[tuple[str, str]] = []
    for line in filter(None, map(str.strip, table.splitlines())):
        name, *expressions = re.split(r" \| ", line)
        found += [(name, each) for each in expressions]
    return found


def given(name: str) -> Any:
    """Return an operand as jax takes it."""
    jax: Any = pytest.importorskip("jax")
    return jax.numpy.asarray(OPERANDS[name])


def verdict(ours: Sequence[Array] | str, theirs: Sequence[Array] | str) -> str:
    """Return "same", "both" if there are no outcomes, or how these differ."""
    if isinstance(ours, str) and isinstance(theirs, str):
        return "both"
    return difference(ours, theirs, _close) or "same"


def _close(ours: Array, theirs: Array) -> bool:
    kind = ours.dtype
    if kind.kind in "biu":
        return bool(np.array_equal(ours, theirs))
    wide = np.complex128 if kind.kind == "c" else np.float64
    ours, theirs = ours.astype(wide), theirs.astype(wide)
    near = 2e-2 if kind == ml_dtypes.bfloat16 else 4e-3 if kind == np.float16 else 2e-5
    return bool(np.allclose(ours, theirs, rtol=near, atol=near / 10, equal_nan=True))
