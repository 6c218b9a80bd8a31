"""Kernels under decorators and import hooks that wrap or rewrite what was written."""

from __future__ import annotations

import functools
import importlib
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jaxtyping
import numpy as np
import pytest
import typeguard

import pscdsl as psc
from pscdsl import f32
from pscdsl._src.checker.check import check_definition, load_definition
from tests.support.projects import module_of

X = np.arange(3, dtype=np.float32)
MODULE = """
from dataclasses import dataclass
from typing import NamedTuple
import numpy as np
import pscdsl as psc
from pscdsl import f32

class P(psc.Record):
    w: f32["n"]
    def of(self, by: float = 3.0):
        return self.w * by

@dataclass(frozen=True)
class Q:
    w: f32["n"]
    @property
    def twice(self):
        return self.w * 2
    @staticmethod
    def add(x, y):
        return x + y

class R(NamedTuple):
    w: f32["n"]

def helper(x: f32["n"]) -> f32["n"]:
    return x * 2

@psc.kernel
def k(p: P, q: Q, r: R) -> f32["n"]:
    return helper(p.of()) + q.twice + Q.add(r.w, 1)

def loss(x: f32["n"]) -> f32:
    return (helper(x) ** 2).sum()

@psc.kernel
def slope(x: f32["n"]) -> f32["n"]:
    return psc.grad(loss)(x)
"""


HOOKS: dict[str, Callable[[str], Any]] = {
    "jaxtyping": lambda name: jaxtyping.install_import_hook(name, None),
    "both": lambda name: jaxtyping.install_import_hook(name, "typeguard.typechecked"),
    "typeguard": lambda name: typeguard.install_import_hook([name]),
}


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.filterwarnings("ignore::typeguard.InstrumentationWarning")
def test_import_hooks(hook: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if hook != "typeguard" and sys.version_info >= (3, 15):
        pytest.skip("jaxtyping's hook passes an argument that Python 3.15 has removed")
    (tmp_path / "hooked_module.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with HOOKS[hook]("hooked_module"):
        module: Any = importlib.import_module("hooked_module")
    try:
        found = module.k(module.P(X), module.Q(X), module.R(X))
        assert np.array_equal(found, 9 * X + 1)
        assert np.array_equal(module.slope(X), 8 * X)
    finally:
        del sys.modules["hooked_module"]


def through(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


def thrice(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(x: Any) -> Any:
        return 3 * function(x)

    return wrapper


@through
def wrapped(x: f32["n"]) -> f32["n"]:
    return x + 1


@thrice
@through
def wrapped_twice(x: f32["n"]) -> f32["n"]:
    return x + 1


def test_what_decorators_wrap_is_called() -> None:
    @psc.kernel
    def both(x: f32["n"]) -> f32["n"]:
        return wrapped(x) + wrapped_twice(x)

    assert np.array_equal(both(X), 4 * (X + 1))


def test_a_wrapper_is_no_kernel_by_its_own_parameters() -> None:
    kernel: Any = psc.kernel(wrapped)
    with pytest.raises(psc.CheckError, match=r"takes `\*args`, which has no fixed types"):
        kernel(X)


FROZEN: Any = frozenset({1, 2})
SETS = {FROZEN, frozenset({3})}
LARGER = types.MethodType(max, 3)
SINGLE = functools.partial(np.float32, 2)


@functools.lru_cache(typed=True)
def _sum(x: int, y: int) -> int:
    return x + y


CACHED_METHOD: Any = types.MethodType(_sum, 3)


@psc.kernel
def sets(x: f32["n"]) -> f32["n"]:
    """Sets that cannot change."""
    return x * isinstance(FROZEN, frozenset) * len({FROZEN}) * len(SETS) * (FROZEN in SETS)


@psc.kernel
def methods(x: f32["n"]) -> f32["n"]:
    """Methods of functions that are not written in Python."""
    return x * LARGER(2) * CACHED_METHOD(4)


@psc.kernel
def of_a_dtype(x: f32["n"]) -> f32["n"]:
    """A dtype with an argument."""
    return x * SINGLE()


def test_captured_objects_keep_their_kind() -> None:
    np.testing.assert_array_equal(sets(X), 2 * X)
    np.testing.assert_array_equal(methods(X), 21 * X)


def test_a_partial_of_what_kernels_cannot_call_is_refused() -> None:
    with pytest.raises(psc.CheckError, match="`SINGLE` cannot be called in a kernel"):
        of_a_dtype(X)


FACTORY = """
import numpy as np
import pscdsl as psc
from pscdsl import f32
from pyrsistent import PRecord, field

class Scaled(PRecord):
    w = field(type=f32["n"], factory=np.float32)

@psc.kernel
def scaled(x: f32["n"]) -> Scaled:
    return Scaled(w=x)
"""


def test_a_factory_that_kernels_cannot_call_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "factory_of_a_field.py"
    path.write_text(FACTORY, encoding="utf-8")
    loaded = module_of(path, path.stem).scaled.definition
    for definition in loaded, load_definition(path, "scaled"):
        assert [each.code for each in check_definition(definition)[0]] == ["PSC111"]
