"""Fingerprints: equal for equal programs in any process, different for all that is emitted."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32
from pscdsl._src.analysis.fingerprint import NoFingerprint, fingerprint, own_functions
from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import Block, Equation, Function, Literal, Var
from pscdsl._src.primitives.control import Call
from pscdsl._src.primitives.elementwise import TABLE, add, multiply
from pscdsl._src.primitives.shaping import Constant
from pscdsl._src.targets.pipeline import lower_module
from pscdsl._src.xla.emit.context import module_text
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.diagnostics import Span
from pscdsl.typing.dims import name
from pscdsl.typing.dtypes import F32
from tests.primitives.test_primitive_laws import ROWS
from tests.support.law_rows import array_type, array_types

X = array_type("f32[n]")


def of(
    primitive: Primitive, operands: Sequence[ArrayType], label: str = "f", span: Span | None = None
) -> Function:
    """A program of one equation."""
    facts = Assumptions()
    params = tuple(Var(each, label) for each in operands)
    outputs = tuple(Var(each) for each in primitive.type_rule(facts, *operands))
    equation = Equation(primitive, params, outputs, span or Span("a.py", 1, 0, 1, 1))
    dims = tuple(sorted({each for type_ in operands for each in type_.names()}))
    return Function(label, dims, facts, Block(params, (equation,), outputs))


@pytest.mark.parametrize("primitive", sorted(ROWS.keys() - {"custom"}))
def test_programs_that_are_emitted_differently_have_other_fingerprints(primitive: str) -> None:
    emitted: dict[bytes, str] = {}
    for row in ROWS[primitive]:
        params = tuple(Var(each) for each in row.operands)
        types = row.primitive.type_rule(row.facts, *row.operands)
        outputs = tuple(map(Var, types))
        block = Block(params, (Equation(row.primitive, params, outputs),), outputs)
        env = row.env()
        function = Function("f", tuple(sorted(env)), row.facts, block)
        text = f"{sorted(env.items())} {module_text(lower_module(function, env))}"
        key = fingerprint(function) + repr(sorted(env.items())).encode()
        assert emitted.setdefault(key, text) == text, row


def test_elementwise_functions_are_known_by_their_names() -> None:
    names = sorted(own_functions(again=True).values())
    assert names == sorted(set(names))
    assert set(names) == set(TABLE)


def test_names_and_places_do_not_count() -> None:
    other = of(add, (X, X), "g", Span("b.py", 7, 3, 7, 9))
    assert fingerprint(of(add, (X, X))) == fingerprint(other)


def test_all_that_is_computed_counts() -> None:
    x, y = Var(X), Var(X)
    out = Var(X)
    programs = [
        of(add, (X, X)),
        of(multiply, (X, X)),
        of(add, array_types("f64[n], f64[n]")),
        of(add, array_types("f32[m], f32[m]")),
        of(add, array_types("f32[n m], f32[n m]")),
    ]

    def block(*inputs: Var | Literal, results: tuple[Var, ...] = (out,)) -> Function:
        body = Block((x, y), (Equation(add, inputs, (out,)),), results)
        return Function("f", ("n",), Assumptions(), body)

    programs += [block(x, x), block(y, y), block(y, x), block(x, y, results=(out, out))]
    numbers = (0.0, -0.0, 1.0, float("nan"), float("inf"))
    programs += [block(x, Literal(each, F32)) for each in numbers]
    constants = ([1.0, 2.0], [1.0, 3.0], [0.0, 0.0], [-0.0, 0.0])
    programs += [of(Constant.of(np.array(each), F32), ()) for each in constants]
    assert len({fingerprint(each) for each in programs}) == len(programs)


def test_functions_that_are_called_count() -> None:
    def calling(callee: Function) -> Function:
        x, out = Var(X), Var(X)
        call = Call(callee, (("n", name("n")),))
        return Function(
            "f", ("n",), Assumptions(), Block((x,), (Equation(call, (x,), (out,)),), (out,))
        )

    def callee(primitive: Primitive, label: str = "inner") -> Function:
        x, out = Var(X), Var(X)
        body = Block((x,), (Equation(primitive, (x, x), (out,)),), (out,))
        return Function(label, ("n",), Assumptions(), body)

    same = fingerprint(calling(callee(add)))
    assert same == fingerprint(calling(callee(add)))
    assert same != fingerprint(calling(callee(multiply)))
    assert same != fingerprint(calling(callee(add, "other")))


@psc.primitive
def twice(x: f32["n"]) -> f32["n"]:
    return x + x


def test_primitives_of_users_have_none() -> None:
    @psc.kernel
    def f(x: f32["n"]) -> f32["n"]:
        return twice(x)

    with pytest.raises(NoFingerprint, match="twice"):
        fingerprint(f.ir())


PROGRAM = """\
import numpy as np
import pscdsl as psc
from pscdsl import Float, Key, f32


class P(psc.Record):
    w: f32["d d"]
    b: f32["d"]


SCALES = {"b": 2.0, "a": 3.0}
NAMES = {"x", "y", "z", "u", "v"}


def layer(p: P, x: f32["d"]) -> f32["d"]:
    return np.tanh(p.w @ x + p.b) * SCALES["a"] + len(NAMES)


@psc.kernel
def loss(p: P, xs: f32["t d"]) -> f32:
    h, _ = psc.scan(lambda h, x: (layer(p, h) + x, None), np.zeros(xs.shape[1]), xs)
    return np.sum(psc.special.gammaln(h * h + 1))


@psc.kernel
def step(p: P, xs: f32["t d"], key: psc.Key) -> tuple[f32, P]:
    value, slope = psc.value_and_grad(loss)(p, xs)
    noise = psc.random.normal(key, p.b.shape)
    return value, P(p.w - slope.w, p.b - slope.b + noise)


@psc.kernel
def flexible(x: Float["*s"]) -> Float["*s"]:
    return np.linalg.norm(x, keepdims=True) * x
"""
PRINT = """
from pscdsl._src.calls.choices import chosen
from pscdsl._src.analysis.fingerprint import fingerprint
from pscdsl._src.kernels.kernel import load_kernel
import program
for name in ("loss", "step", "flexible"):
    kernels = getattr(program, name), load_kernel("program.py", name)
    choices = [chosen(each.definition, each.signature, {}) for each in kernels]
    programs = [each.optimised(choice) for each, choice in zip(kernels, choices)]
    print(name, *[fingerprint(each).hex() for each in programs])
"""


def test_processes_agree_whether_a_file_is_loaded_or_read(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    found: set[str] = set()
    for seed in ("1", "2"):
        root = str(Path(__file__).parents[2])
        command = [sys.executable, "-c", PRINT]
        environment = {"PYTHONPATH": root, "PYTHONHASHSEED": seed, "PSCDSL_CACHE": "off"}
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
        )
        found.add(done.stdout)
    (text,) = found
    for line in text.splitlines():
        label, loaded, read = line.split()
        assert loaded == read, label
