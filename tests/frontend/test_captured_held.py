"""What a kernel captured is held: a write raises where it happens, or the next call raises."""

from __future__ import annotations

import array
import ctypes
import functools
import gc
import importlib.util
import sys
import types
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl._src.frontend.modules.snapshots import MOST_BYTES, MOST_ITEMS, lock
from tests.support.captured_ways import Way, ways, writes
from tests.support.share import due, some

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

X = np.ones(3, np.float32)


@pytest.mark.parametrize("kind", ["array", "list", "name", "class"])
def test_no_way_to_write_leaves_a_stale_result(kind: str, tmp_path: Path) -> None:
    found = [each for each in ways() if each.kind == kind]
    one_in = {"array": 32, "list": 2, "name": 2, "class": 2}[kind]
    tried = [each for each in some(found, one_in) if writes(each)]
    least = {"array": 2400, "list": 60, "name": 35, "class": 17}[kind]
    assert len(tried) > due(least, one_in) * 0.7
    stale = [way.label for number, way in enumerate(tried) if _is_stale(way, tmp_path, number)]
    assert not stale


@contextmanager
def _loaded(folder: Path, name: str, text: str) -> Generator[Any]:
    """A module of this text, while it is there."""
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules[name]


def _is_stale(way: Way, folder: Path, number: int) -> bool:
    """Whether a kernel answers with what was there before something was written."""
    value = way.text.rpartition(" * ")[2]
    try:
        with warnings.catch_warnings(), _loaded(folder, f"way_{number}", way.text) as module:
            warnings.simplefilter("ignore")
            module.f(X)
            try:
                module.update()
            except Exception:
                pass  # the write itself may be refused
            try:
                result = np.asarray(module.f(X))
            except psc.CheckError:
                return False
            wanted = X * np.asarray(eval(value, module.__dict__))
            return bool(result.tolist() != wanted.tolist())
    finally:
        np.seterr()


# Who else may write the memory of an array.


def _large() -> Any:
    return np.zeros(5000)


def _module_with(value: Any) -> types.ModuleType:
    module = types.ModuleType("holding")
    module.T = value  # type: ignore[attr-defined]
    module.f = _large  # type: ignore[attr-defined]
    return module


def _is_alone(array: Any, holder: object = None) -> bool:
    known = lock(array)
    known.holders.append(holder)
    del array  # which is counted, as a variable is
    known.settle()
    return known.is_alone


HOLD: dict[str, Callable[[Any], Any]] = {
    "view": lambda a: a[1:],
    "view in a list": lambda a: [a[1:]],
    "view of a view": lambda a: a[1:][1:],
    "memoryview": memoryview,
    "data": lambda a: a.data,
    "ctypes": lambda a: a.ctypes,
    "from_buffer": lambda a: (ctypes.c_double * 5000).from_buffer(a),
    "as_strided": np.lib.stride_tricks.as_strided,
    "flat": lambda a: a.flat,
    "nditer": lambda a: np.nditer(a, op_flags=["readwrite"]),
    "rows": lambda a: iter(a.reshape(50, -1)),
    "matrix": lambda a: a.view(np.matrix),
    "recarray": lambda a: a.view(np.recarray),
    "masked": lambda a: np.ma.masked_array(a, copy=False),
    "dlpack": lambda a: a.__dlpack__(),
    "from_dlpack": np.from_dlpack,
    "split": lambda a: np.array_split(a, 3),
    "namespace": lambda a: types.SimpleNamespace(v=a[1:]),
    "partial": lambda a: functools.partial(np.copyto, a[1:]),
    "method": lambda a: a[1:].fill,
    "generator": lambda a: _started(a[1:]),
    "real": lambda a: a.real[1:],
    "cell": lambda a: _in_cell(a[1:]),
}


def _started(view: Any) -> Any:
    def wait(v: Any) -> Any:
        yield
        v[0] = 1

    made = wait(view)
    next(made)
    return made


def _in_cell(view: Any) -> Any:
    return lambda: view


@pytest.mark.parametrize("how", HOLD)
def test_whoever_has_a_view_is_found(how: str) -> None:
    module = _module_with(_large())
    older = HOLD[how](module.T)
    assert not _is_alone(module.T)
    assert older is not None


ALONE: dict[str, Callable[[], Any]] = {
    "zeros": _large,
    "a view whose owner is gone": lambda: _large()[1:],
    "reshaped": lambda: np.arange(5000.0).reshape(50, -1),
    "transposed": lambda: np.ones((100, 50)).T,
    "broadcast": lambda: np.broadcast_to(3.0, 5000),
    "bytes": lambda: np.frombuffer(bytes(40_000)),
    "constant": lambda: psc.constant(_large()),
}


@pytest.mark.parametrize("how", ALONE)
def test_an_array_that_nobody_else_can_write_is_not_compared(how: str) -> None:
    module = _module_with(ALONE[how]())
    cell = _in_cell(module.T)
    alone = _is_alone(module.T)
    assert alone
    assert cell is not None


@pytest.mark.parametrize("container", [list, tuple, lambda a: {"w": a[0]}])
def test_an_array_in_a_container_is_not_compared(container: Callable[[Any], Any]) -> None:
    module = _module_with(container([_large()]))
    gc.collect()  # which forgets tuples of arrays
    key: Any = "w" if isinstance(module.T, dict) else 0
    alone = _is_alone(module.T[key], module.T)
    assert alone


def test_foreign_memory_is_compared() -> None:
    for memory in (bytearray(40_000), array.array("d", [0.0] * 5000)):
        assert not _is_alone(np.frombuffer(memory))


LIMITS = """
import numpy as np
import pscdsl as psc
from pscdsl import f32

T = np.ones({size}, np.float32)
V = T[1:]
L = [1.0] * {items}
K = psc.constant(T)


@psc.kernel
def large(x: f32["3"]) -> f32["3"]:
    return x * T[:3]


@psc.kernel
def long(x: f32["3"]) -> f32["3"]:
    return x * L[0]


@psc.kernel
def constant(x: f32["3"]) -> f32["3"]:
    return x * K[:3]
"""


def test_what_is_too_large_to_be_compared_is_refused(tmp_path: Path) -> None:
    text = LIMITS.format(size=MOST_BYTES, items=MOST_ITEMS + 1)
    with _loaded(tmp_path, "limits", text) as module:
        for kernel, name in ((module.large, "T"), (module.long, "L")):
            with pytest.raises(psc.CheckError, match=rf"PSC954.*`{name}`"):
                kernel(X)
        assert module.constant(X).tolist() == [1, 1, 1]


MEMBERS = """
import numpy as np
import pscdsl as psc
from pscdsl import f32


class Seen:
    calls = []
    scale = [2.0]

    @staticmethod
    def scaled(x):
        return x * 3.0


@psc.kernel
def member(x: f32["3"]) -> f32["3"]:
    return x * Seen.scale[0]


@psc.kernel
def method(x: f32["3"]) -> f32["3"]:
    return Seen.scaled(x)
"""


def test_members_that_no_kernel_reads_are_not_compared(tmp_path: Path) -> None:
    with _loaded(tmp_path, "members", MEMBERS) as module:
        for _ in range(2):
            assert module.member(X).tolist() == [2, 2, 2]
            assert module.method(X).tolist() == [3, 3, 3]
            module.Seen.calls.append(1)
        module.Seen.scale[0] = 5.0
        with pytest.raises(psc.CheckError, match=r"PSC917.*`Seen.scale`"):
            module.member(X)


LATER = """
import numpy as np
import pscdsl as psc
from pscdsl import f32

T = np.ones(3, np.float32)
MEMORY = bytearray(np.ones(3, np.float32).tobytes())
M = np.frombuffer(MEMORY, np.float32)
S = np.arange(6, dtype=np.float32)


@psc.kernel
def first(x: f32["3"]) -> f32["3"]:
    return x * T * M * S[:3]


@psc.kernel
def second(x: f32["3"]) -> f32["3"]:
    return x * T + M + S.shape[0]
"""


def test_a_kernel_that_is_read_later_takes_what_is_there_then(tmp_path: Path) -> None:
    with _loaded(tmp_path, "later", LATER) as module:
        assert module.first(X).tolist() == [0, 1, 2]
        module.T.setflags(write=True)
        module.T[:] = 5
        module.MEMORY[:] = np.full(3, 7, np.float32).tobytes()
        assert module.second(X).tolist() == [18, 18, 18]
        with pytest.raises(psc.CheckError, match="PSC917"):
            module.first(X)
