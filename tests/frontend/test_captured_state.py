"""Captured state at run time: arrays are locked, and names compared, whatever the text shows."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32
from tests.support.hidden_writes import fill_cell, rebound, replaced_code, write_item
from tests.support.python_places import results

HERE = __name__
X = np.ones(3, np.float32)
SCALE = 2.0
TABLE = np.full(3, 3, np.float32)
VIEWED = np.arange(6, dtype=np.float32).reshape(2, 3)[1]


def doubled(x: Any) -> Any:
    """Doubled, by a name that is global."""
    return x * SCALE


class Scaled(psc.Record, dims="n"):
    """A record that the kernel makes."""

    w: f32["n"]


@psc.kernel
def scaled(x: f32["n"]) -> f32["n"]:
    return doubled(x)


@psc.kernel
def outer(x: f32["n"]) -> f32["n"]:
    return scaled(x) + 1


@psc.kernel
def made(x: f32["n"]) -> Scaled["n"]:
    return Scaled(x)


@psc.kernel
def plain(x: f32["n"]) -> f32["n"]:
    return np.exp(x)


@psc.kernel
def tabled(x: f32["3"]) -> f32["3"]:
    return x * TABLE


@psc.kernel
def viewed(x: f32["3"]) -> f32["3"]:
    return x * VIEWED


CHANGES: list[tuple[Callable[..., Any], str, Any]] = [
    (scaled, "SCALE", 3.0),
    (scaled, "SCALE", True),
    (scaled, "doubled", abs),
    (outer, "SCALE", 3.0),
    (outer, "scaled", plain),
    (made, "Scaled", object),
    (tabled, "TABLE", np.full(3, 3, np.float32)),
]


@pytest.mark.parametrize(("kernel", "name", "value"), CHANGES)
def test_a_name_that_is_bound_anew_is_found(
    kernel: Callable[..., Any], name: str, value: Any
) -> None:
    kernel(X)
    with rebound(f"{HERE}.{name}", value):
        for _ in range(2):
            with pytest.raises(psc.CheckError, match=f"PSC917.*`{name}` is not what it was"):
                kernel(X)
    kernel(X)  # it is what it was


def test_other_options_and_derivatives_ask_too() -> None:
    fast = scaled.with_options(fast_math=True)
    rows = psc.vmap(scaled)
    fast(X)
    rows(X[None])
    with rebound(f"{HERE}.SCALE", 5.0):
        for call in (fast, lambda x: rows(x[None])):
            with pytest.raises(psc.CheckError, match="PSC917"):
                call(X)


def test_an_equal_number_is_the_same() -> None:
    scaled(X)
    with rebound(f"{HERE}.SCALE", float("2.0")):
        assert scaled(X).tolist() == [2, 2, 2]


def test_code_and_defaults_of_a_doubled_are_compared() -> None:
    scaled(X)
    with replaced_code(f"{HERE}.doubled", lambda x: x * 7):
        with pytest.raises(psc.CheckError, match="`doubled`"):
            scaled(X)


def test_cells_are_compared() -> None:
    scale = 2.0

    def local(x: Any) -> Any:
        return x * scale

    @psc.kernel
    def kernel(x: f32["n"]) -> f32["n"]:
        return local(x)

    kernel(X)
    fill_cell(local, 3.0)
    with pytest.raises(psc.CheckError, match="`scale`"):
        kernel(X)


def ruled(function: Callable[..., Any]) -> Any:
    """A function with a rule."""
    made = psc.custom_jvp(function)
    made.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
    return made


@pytest.mark.parametrize("made", [psc.vmap, psc.checkpoint, ruled])
def test_arguments_of_partials_given_to_transformations_are_compared(
    made: Callable[..., Any],
) -> None:
    factors = [2.0]
    call = made(functools.partial(lambda factors, x: factors[0] * x, factors))

    @psc.kernel
    def kernel(x: f32["n"]) -> f32["n"]:
        return call(x)

    assert kernel(X).tolist() == [2, 2, 2]
    factors[0] = 3.0
    with pytest.raises(psc.CheckError, match=r"PSC917.*args\[0\]"):
        kernel(X)


@pytest.mark.parametrize(("kernel", "name"), [(tabled, "TABLE"), (viewed, "VIEWED")])
def test_captured_arrays_are_locked(kernel: Callable[..., Any], name: str) -> None:
    kernel(X)
    with pytest.raises(ValueError, match="read-only"):
        write_item(f"{HERE}.{name}")


def test_kernels_that_capture_nothing_of_the_project_are_called_directly() -> None:
    plain(X)
    assert plain.__call__ is plain.dispatcher.entry


LIBRARY = """
import numpy as np
import pscdsl as psc
from pscdsl import f32

SCALES = [1.0, 2.0]
SCALE = 2.0

@psc.kernel
def f(x: f32["n"]) -> f32["n"]:
    return x * SCALES[1] * SCALE
"""
CLASSES = """
import dataclasses, enum
from typing import NamedTuple
import numpy as np
import pscdsl as psc
from pscdsl import f32

TABLE = np.arange(2, dtype=np.float32)

def helper(x):
    return x * 2

def other(x):
    return x * 9

class C:
    v = 5.0

class E(enum.Enum):
    A = 2.0

class R(psc.Record):
    a: f32["n"]

    def go(self):
        return self.a * 3

    @property
    def half(self):
        return self.a / 2

    @psc.kernel
    def inner(self) -> f32["n"]:
        return self.a * 6

    def __add__(self, other):
        return self.a + other

class D(R):
    pass

class P(NamedTuple):
    a: f32["n"]
    k: float = 2.0

@dataclasses.dataclass(frozen=True)
class Config:
    scale: float = 3.0

CONFIG = Config(4.0)
DEFAULT = E.A

@psc.kernel
def f(x: f32["n"]) -> f32["n"]:
    r, d = R(x), D(x)
    y = r.go() + r.half + r.inner() + (r + 1) + d.go()
    z = P(x).k + E.A.value + DEFAULT.value + CONFIG.scale + Config().scale
    return y * C.v * z + helper(x) + TABLE[1]
"""
WRITER = """
import importlib, sys
import numpy as np
import pscdsl as psc
lib = importlib.import_module("lib")
x = np.ones(2, np.float32)
print("RESULT", lib.f(x).tolist())
{write}
try:
    print("RESULT", lib.f(x).tolist())
except psc.CheckError as error:
    print("RESULT", error.diagnostics[0].code)
"""


@pytest.mark.parametrize(
    ("write", "found"),
    [
        ("setattr(lib, 'SC' + 'ALE', 3.0)", "PSC917"),
        ("getattr(lib, 'SC' + 'ALES').append(3.0)", "PSC917"),
        ("getattr(lib, 'SC' + 'ALES')[0] = 1.5", "PSC917"),
        ("getattr(lib, 'SC' + 'ALES')[0] = float('1')", "[4.0, 4.0]"),
        ("pass", "[4.0, 4.0]"),
    ],
)
def test_what_is_outside_of_the_project_writes(write: str, found: str, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "lib.py").write_text(LIBRARY, encoding="utf-8")
    (tmp_path / "main.py").write_text(WRITER.format(write=write), encoding="utf-8")
    setting = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "lib"), *sys.path]),
        "PSCDSL_CACHE": str(tmp_path / "cache"),
    }
    for _ in range(2):  # the second time, kernels may be found on disk
        done = subprocess.run(
            [sys.executable, "main.py"], cwd=tmp_path, env=setting, capture_output=True, text=True
        )
        assert results(done.stdout) == ["RESULT [4.0, 4.0]", f"RESULT {found}"], done.stderr


CHANGED = """
import importlib
import numpy as np
import pscdsl as psc
lib = importlib.import_module("lib")
x = np.ones(2, np.float32)
MISSING = object()

def result():
    try:
        return lib.f(x).tolist()
    except psc.CheckError as error:
        return error.diagnostics[0].code

before = result()
print("RESULT", before)
for owner, name, value in [
    (lib.C, "v", 9.0),
    (lib.C, "v", 5),
    (lib.R, "go", lambda self: self.a),
    (lib.D, "go", lambda self: self.a),
    (lib.R, "__add__", lambda self, other: self.a),
    (lib.R, "__bool__", lambda self: False),
    (lib.R, "half", property(lambda self: self.a)),
    (lib.R, "inner", lambda self: self.a),
    (lib.P.__new__, "__defaults__", (9.0,)),
    (lib.Config.__init__, "__defaults__", (9.0,)),
    (lib.CONFIG, "scale", 9.0),
    (lib.E.A, "_value_", 9.0),
    (lib.helper, "__code__", lib.other.__code__),
    (lib.helper, "__defaults__", (9.0,)),
]:
    set_ = object.__setattr__ if owner is lib.CONFIG else setattr
    old = vars(owner).get(name, MISSING) if isinstance(owner, type) else getattr(owner, name)
    set_(owner, name, value)
    now = result()
    if old is MISSING:
        delattr(owner, name)
    else:
        set_(owner, name, old)
    print("RESULT", name, now, result() == before)
try:
    getattr(lib, "TA" + "BLE")[0] = 9.0
except ValueError:
    print("RESULT locked")
"""


def test_what_classes_functions_and_arrays_hold_is_compared_cold_and_warm(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "lib.py").write_text(CLASSES, encoding="utf-8")
    (tmp_path / "main.py").write_text(CHANGED, encoding="utf-8")
    setting = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "lib"), *sys.path]),
        "PSCDSL_CACHE": str(tmp_path / "cache"),
    }
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "main.py"], cwd=tmp_path, env=setting, capture_output=True, text=True
        )
        value, *changes, locked = results(done.stdout)
        assert value == "RESULT [945.5, 945.5]"
        assert len(changes) == 14
        assert all(each.endswith(" PSC917 True") for each in changes), done.stdout
        assert locked == "RESULT locked"
