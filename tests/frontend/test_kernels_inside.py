"""Kernels that are methods of records, or made by functions: checked from the text."""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32
from pscdsl._src.calls.errors import ArgumentError, CheckError
from pscdsl._src.checker.check import check_source
from pscdsl._src.checker.results import CheckResult

HEAD = """\
from typing import Literal
import numpy as np
import pscdsl as psc
from pscdsl import f32, f64

"""


def check(body: str) -> tuple[CheckResult, dict[str, tuple[str, str]]]:
    """What is found, and of each kernel its status and signature."""
    result = check_source(HEAD + textwrap.dedent(body), "inside.py")
    return result, {each.name: (each.status, each.signature) for each in result.kernels}


def load(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The text as a module."""
    path = folder / "inside.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("inside", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "inside", module)
    spec.loader.exec_module(module)
    return module


METHODS = """
class Layer(psc.Record, dims="n m"):
    w: f32["n m"]
    b: f32["n"]

    @psc.kernel
    def apply(self, x: f32["m"]) -> f32["n"]:
        return self.w @ x + self.b

    @staticmethod
    @psc.kernel
    def double(x: f32["k"]) -> f32["k"]:
        return 2 * x

    def plain(self, x):
        return self.apply(x) + 1

@psc.kernel
def twice(layer: Layer["n n"], x: f32["n"]) -> f32["n"]:
    return layer.double(layer.plain(Layer.apply(layer, x)))
"""


def test_methods_of_records_are_checked() -> None:
    result, kernels = check(METHODS)
    assert not result.diagnostics
    assert kernels["Layer.apply"] == ("ok", "(self: Layer[n m], x: f32[m]) -> f32[n]")
    assert kernels["Layer.double"][0] == kernels["twice"][0] == "ok"
    wrong, _ = check(METHODS.replace("self.w @ x", "x @ self.w"))
    assert {each.code for each in wrong.diagnostics} == {"PSC301"}


def test_methods_of_records_run_as_they_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = load(tmp_path, HEAD + METHODS, monkeypatch)
    layer = module.Layer(np.eye(3, dtype=np.float32), np.ones(3, np.float32))
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(layer.apply(x), x + 1)
    np.testing.assert_array_equal(module.twice(layer, x), 2 * (x + 3))
    with pytest.raises(ArgumentError, match="argument `x` of `apply`"):
        layer.apply(np.ones(4, np.float32))


def test_a_method_of_what_is_no_record_has_to_say_what_its_parameter_is() -> None:
    result, kernels = check("""
        class Plain:
            @psc.kernel
            def apply(self, x: f32["n"]) -> f32["n"]:
                return x
    """)
    assert [each.code for each in result.diagnostics] == ["PSC903"]
    assert kernels["Plain.apply"][0] == "unchecked"


MADE = {
    "scale: float": ("return x * scale", "ok"),
    "scale: complex": ("return (x.astype(np.complex64) * scale).real", "ok"),
    "count: int": ("return x / (count + 1)", "ok"),
    "turns: int": ("for _ in range(turns): x = x + 1\n        return x", "ok"),
    'w: f32["m"]': ("return x * w.sum()", "unchecked"),  # whoever gives it may write it
    'w: f32[""]': ("return x * w", "unchecked"),
    'm: Literal["a", "b"]': ("return x if m == 'a' else -x", "ok"),
    "up: bool": ("return x if up else x.sum()", "error"),
    "a": ("return x * a", "unchecked"),
    "name: str": ("return x if name else -x", "unchecked"),
    "parts: tuple[float, ...]": ("return x * parts[0]", "unchecked"),
    "low: float": ("return x if low > 0 else -x", "ok"),
    "low: float, k: int": ("return x @ x if low > 0 else -x", "error"),
    "*rest: float": ("return x * rest[0]", "unchecked"),
}


@pytest.mark.parametrize("parameters", MADE)
def test_kernels_follow_from_what_their_function_is_given(parameters: str) -> None:
    body, status = MADE[parameters]
    _, kernels = check(f"""
def make({parameters}):
    @psc.kernel
    def made(x: f32["n"]) -> f32["n"]:
        {body}
    return made
""")
    assert kernels["make.made"][0] == status


AROUND = {
    "b = 2 * k": "ok",
    "b = 2 * k\n    def twice(y): return 2 * y": "ok",
    "b: int = k": "ok",
    "assert k > 1\n    b = 1 // (k - 1)": "ok",
    "b, c = k, k": "ok",
    "b = k\n    b = k + 1": "unchecked",
    "b = 0\n    for b in range(k): pass": "unchecked",
    "b = [k]": "unchecked",
    "b = psc.constant(np.arange(3)).sum()": "unchecked",
    "b = np.sqrt(k)": "unchecked",  # f64, not a number of Python's
    "b = open(k)": "unchecked",
    "if k: b = 1": "unchecked",
    "from os import sep as b": "unchecked",
    "b = k\n    def change():\n        nonlocal b\n        b = 5": "unchecked",
    "global b\n    b = 3": "unchecked",
}


@pytest.mark.parametrize("statements", AROUND)
def test_names_of_the_function_are_followed_if_they_are_bound_once(statements: str) -> None:
    _, kernels = check(f"""
def make(k: int):
    {statements}
    @psc.kernel
    def made(x: f32["n"]) -> f32["n"]:
        return x * b
    return made
""")
    assert kernels["make.made"][0] == AROUND[statements]


@pytest.mark.parametrize(
    ("change", "status"),
    [("pass", "ok"), ("w[0] = 1", "unchecked"), ("w = -w", "unchecked")],
)
def test_arrays_that_the_function_may_write_are_not_known(change: str, status: str) -> None:
    result, kernels = check(f"""
def make(w: f32["m"]):
    {change}
    w = psc.constant(w)
    @psc.kernel
    def made(x: f32["n"]) -> f32["n"]:
        return x * w.sum()
    @psc.kernel
    def other(x: f32["n"]) -> f32["n"]:
        return made(x) / w.max()
    return made, other
""")
    assert [kernels[name][0] for name in ("make.made", "make.other")] == [status, status]
    assert {each.code for each in result.diagnostics} <= {"PSC903"}


def test_other_decorators_and_other_places_are_known_at_run_time() -> None:
    _, kernels = check("""
import functools

@functools.cache
def cached(k: int):
    @psc.kernel
    def made(x: f32["n"]) -> f32["n"]:
        return x * k
    return made

def outer(k: int):
    if k:
        @psc.kernel
        def branch(x: f32["n"]) -> f32["n"]:
            return x * k
    def inner():
        @psc.kernel
        def made(x: f32["n"]) -> f32["n"]:
            return x * k
        return made
    @psc.kernel
    def itself(x: f32["n"]) -> f32["n"]:
        return itself(x)
    return inner()
""")
    assert {name: status for name, (status, _) in kernels.items()} == {
        "cached.made": "unchecked",
        "outer.branch": "unchecked",
        "outer.inner.made": "unchecked",
        "outer.itself": "unchecked",
    }


def test_sizes_of_the_function_are_others_than_those_of_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """
def make(w: f32["n"]):
    w = psc.constant(w)
    @psc.kernel
    def made(x: f32["n"]) -> f32["n"]:
        return x * w
    return made
"""
    result, _ = check(text)
    (found,) = result.diagnostics
    assert "shapes [n] and [make_n]" in found.message()
    module = load(tmp_path, HEAD + text, monkeypatch)
    with pytest.raises(CheckError):  # at run time, too
        module.make(np.ones(3, np.float32))(np.ones(3, np.float32))


STATICS = {
    'f32["k"]': ("return np.zeros(k, np.float32) + x.sum()", "every k >= 1"),
    'f32["n"]': ("return x * k", "every k >= 0"),
    'f32["n k"]': ("return np.tile(x[:, None], (1, k))", "every k >= 1"),
    'f32[""]': ("assert k < x.shape[0]\n    return x[k]", "every k >= 0"),
    'f32[" n "]': ("for _ in range(k): x = x + 1\n    return x", "every k >= 0"),
    'f32["n  "]': ("return x if k % 2 else -x", "every k >= 0"),
    'f32["n   "]': ("for _ in (0,) * k: x = x + 1\n    return x", "k over 0, 1, 2, 3, 4"),
}


@pytest.mark.parametrize("result", STATICS)
def test_static_integers_that_are_sizes_are_proven_for_all(result: str) -> None:
    body, tried = STATICS[result]
    checked, kernels = check(f"""
@psc.kernel
def f(x: f32["n"], k: psc.Static[int]) -> {result}:
    {body}
""")
    assert kernels["f"][0] == "ok"
    assert kernels["f"][1].endswith(f"({tried})")
    assert checked.kernels[0].examples == ((tried,) if "over" in tried else ())


@psc.kernel
def of_three(x: f32[3]) -> f32[3]:
    return 2 * x


def test_a_shape_may_be_a_number() -> None:
    of_three.check()
    np.testing.assert_array_equal(of_three(np.ones(3, np.float32)), [2, 2, 2])
