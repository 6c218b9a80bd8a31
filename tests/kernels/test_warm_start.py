"""Kernels that an earlier process compiled are called without being read, and never wrongly."""

from __future__ import annotations

import importlib.util
import json
import linecache
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32, u8
from pscdsl._src.caching.store import Store
from pscdsl._src.frontend.modules.live import trace_of
from pscdsl._src.frontend.modules.traces import (
    Opaque,
    RecordedLookups,
    follow,
    from_text,
    recorded,
    to_text,
)
from pscdsl._src.kernels.kernel import Kernel

pytestmark = pytest.mark.jaxlib

ROOT = Path(__file__).parents[2]
READING = {
    "pscdsl._src.frontend.interpreter.expressions",
    "pscdsl._src.ir.program",
    "pscdsl._src.primitives.elementwise",
    "pscdsl._src.transforms.simplify",
    "pscdsl.numpy.elementwise",
}
X = np.arange(3, dtype=np.float32)

PROGRAM = """\
import json
import sys
from typing import NamedTuple

import numpy as np
import pscdsl as psc
from pscdsl import f32, value_and_grad


class Layer(NamedTuple):
    w: f32["n n"]
    b: f32["n"]


class State(psc.Record):
    layer: Layer
    count: f32


def forward(layer, x):
    return np.tanh(layer.w @ x + layer.b)


def loss(layer: Layer, x: f32["n"]) -> f32:
    return np.sum(forward(layer, x) ** 2)


@psc.kernel
def step(state: State, x: f32["n"], rate: f32 = 0.5) -> tuple[f32, State]:
    value, slope = value_and_grad(loss)(state.layer, x)
    moved = Layer(state.layer.w - rate * slope.w, state.layer.b - rate * slope.b)
    return value, State(moved, state.count + 1)


@psc.kernel
def power(x: f32["n"], times: psc.Static[int], *, shift: f32 = 1) -> f32["n"]:
    return x**times + shift


rng = np.random.default_rng(0)
w, x = [rng.random(shape, dtype=np.float32) for shape in ((3, 3), (3,))]
state = State(Layer(w, x), np.float32(0))
found = []
for rate in (0.5, 0.25, None):
    value, state = step(state, x) if rate is None else step(state, x, rate)
    found += [float(value), float(state.count), *np.asarray(state.layer.w).ravel().tolist()]
slope = psc.grad(loss)(state.layer, x)
found += np.asarray(slope.b).tolist()
found += np.asarray(power(x, 2)).tolist() + np.asarray(power(x, 3, shift=2.5)).tolist()
parts = {str(n) for n in sys.modules}
counts = [sum(each) for each in zip(*[k.cache_info()[:4] for k in (step, power)])]
print(json.dumps([found, sorted(parts), counts]))
"""


def run(program: Path, cache: Path) -> tuple[list[float], set[str], list[int]]:
    """What a new process prints: results, the modules that it has loaded, and counts."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PSCDSL_CACHE": str(cache)}
    command = [sys.executable, str(program)]
    out = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found, parts, counts = json.loads(out.stdout)
    return found, set(parts), counts


def test_a_second_process_reads_nothing(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    wanted, parts, _ = run(program, tmp_path / "cache")
    assert parts >= READING
    found, parts, (_, misses, entries, hits) = run(program, tmp_path / "cache")
    assert found == wanted
    assert not parts & (READING | {"jaxlib.mlir", "rich", "pyrsistent", "typeguard"})
    assert (misses, entries, hits) == (0, 4, 4)
    program.write_text(PROGRAM.replace("x**times", "x*times"), encoding="utf-8")
    assert run(program, tmp_path / "cache")[0] != wanted


MODULE = '''\
import numpy as np
import pscdsl as psc
import helper_of_starts as helper
from pscdsl import f32

N = 3
UNRELATED = 4
TABLE = np.arange(3, dtype=np.float32)


class P(psc.Record):
    w: f32["n"]
    rate = 2.0

    def scaled(self):
        return self.w * OTHER


OTHER = 1.5


def inner(x, k=2):
    return x * k


def make(c):
    def shift(x):
        return x + c

    return shift


shift = make(1.0)
size = f32["3"]


def inside(m, x):
    return x * m.LATER


@psc.kernel
def f(x: "size") -> f32["3"]:
    """What `UNRELATED` is does not matter."""
    y = P(shift(inner(x)) * N + helper.RATE + TABLE)
    return y.scaled() * P.rate + helper.more(x) + inside(helper, x)


g = psc.vmap(psc.grad(lambda x: x * N), in_axes=0)
'''
HELPER = "RATE = 0.5\nLATER = 7\nDEEP = 8\n\n\ndef more(x):\n    return x + DEEP\n"


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Loads the module anew, as a new process would."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    def made(text: str = MODULE, helper: str = HELPER) -> Any:
        for name, content in (("helper_of_starts", helper), ("module_of_starts", text)):
            path = tmp_path / f"{name}.py"
            if not path.exists() or path.read_text(encoding="utf-8") != content:
                path.write_text(content, encoding="utf-8")
            linecache.checkcache(str(path))
            spec = importlib.util.spec_from_file_location(name, path)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            monkeypatch.setitem(sys.modules, name, module)
            spec.loader.exec_module(module)
        return sys.modules["module_of_starts"]

    return made


def _set(path: str, value: Any) -> Callable[[Any], None]:
    def change(module: Any) -> None:
        *owners, name = path.split(".")
        for each in owners:
            module = getattr(module, each)
        setattr(module, name, value)

    return change


def unread_method(self: Any) -> Any:
    """Another method."""
    return self.w


def other_function(x: Any) -> Any:
    """Another function."""
    return x


CHANGES: dict[str, Callable[[Any], None]] = {
    "a global number": _set("N", 4),
    "its class": _set("N", 3.0),
    "a global array": _set("TABLE", np.arange(3, dtype=np.float32) + 1),
    "its dtype": _set("TABLE", np.arange(3)),
    "what a method reads": _set("OTHER", 2.5),
    "a class attribute": _set("P.rate", 3.0),
    "a method": _set("P.scaled", unread_method),
    "a default": _set("inner.__defaults__", (3,)),
    "another function": _set("inner", other_function),
    "a capture": lambda module: setattr(module, "shift", module.make(2.0)),
    "another module's value": _set("helper.RATE", 1.5),
    "what its function reads": _set("helper.DEEP", 1.5),
    "what is read of an argument": _set("helper.LATER", 1.5),
    "a name in an annotation": _set("size", f32["3 m"]),
}


def read(kernel: Any) -> RecordedLookups:
    """What is looked up when a kernel is read."""
    kernel.ir()
    return recorded(kernel, trace_of)


def is_known(kernel: Any, known: RecordedLookups) -> bool:
    """Whether the same look-ups find the same."""
    try:
        return follow(kernel, from_text(to_text(known.names))) == known.digest
    except Opaque:
        return False


@pytest.mark.parametrize("change", CHANGES)
def test_what_a_kernel_is_read_from_is_found_again(change: str, load: Callable[..., Any]) -> None:
    known = read(load().f)
    again = load()
    assert is_known(again.f, known)
    again.UNRELATED = 5
    assert is_known(again.f, known)
    CHANGES[change](again)
    assert not is_known(again.f, known)


TYPES = """
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from helper_of_starts import RATE as Rate

    Other = int


@psc.kernel
def h(x: 'Rate') -> 'f32["n"]':
    return x
"""


def test_what_is_imported_for_type_checkers_is_not_written_down(load: Callable[..., Any]) -> None:
    module = load(MODULE + TYPES)
    assert read(module.f)
    with pytest.raises(psc.CheckError):
        module.h.check()
    with pytest.raises(Opaque, match="imports when it is read"):
        recorded(module.h, trace_of)


def test_texts_count(load: Callable[..., Any]) -> None:
    known = read(load().f)
    assert not is_known(load(MODULE + "\nMORE = 1\n").f, known)
    assert not is_known(load(MODULE, HELPER + "\nMORE = 1\n").f, known)
    assert is_known(load().f, known)


def test_options_of_transformations_count() -> None:
    def f(x: f32["n"]) -> f32:  # pyright: ignore
        return np.sum(x)

    made = [psc.kernel(f), psc.grad(f), psc.vmap(f), psc.vmap(f, in_axes=1), psc.checkpoint(f)]
    made += [psc.vmap(f, axis_size=3), psc.grad(f, has_aux=True), psc.value_and_grad(f)]
    made += [psc.kernel(f, donate="x")]
    known = [recorded(each, trace_of) for each in made]
    for place, kernel in enumerate(made):
        assert [is_known(kernel, each) for each in known].index(True) == place
        assert sum([is_known(kernel, each) for each in known]) == 1


class Strange:
    """An object that does not let itself be looked at."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


STRANGE: dict[str, Any] = {
    "one that raises": Strange(),
    "object": object(),
    "inside": [object()],
    "objects": np.array([None]),
    "a set": {1: {2}},
    "masked": np.ma.masked_array([1.0], [True]),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_strange_objects_are_not_written_down(kind: str) -> None:
    value = STRANGE[kind]

    def f(x: f32["n"]) -> Any:  # pyright: ignore
        return x, value

    with pytest.raises(Opaque):
        recorded(psc.kernel(f), trace_of)


def test_a_value_that_holds_itself_has_an_end() -> None:
    items: list[Any] = []
    items.append(items)
    with pytest.raises(Opaque):
        recorded(items, trace_of)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "cache"
    monkeypatch.setenv("PSCDSL_CACHE", str(found))
    return found


def scaled(factor: Any) -> Kernel[[Any], Any]:
    """Kernels of one text that differ in what they capture."""

    @psc.kernel
    def f(x: f32["n"]) -> f32["n"]:
        return x * factor

    return f


def summed(factor: Any) -> Kernel[[Any], Any]:
    """The same, of numbers or arrays."""

    @psc.kernel
    def f(x: f32["n"]) -> f32["n"]:
        return x * np.sum(np.asarray(factor, np.float32))

    return f


def unread(kernel: Any) -> bool:
    """Whether a kernel was never read."""
    return "_reading" not in vars(kernel)


@pytest.mark.usefixtures("folder")
def test_captured_values_are_told_apart() -> None:
    array = psc.constant(np.array([1, 2], np.float32))
    for factor in (2.0, 3.0, np.float32(2), array, (4.0, 5.0)):
        for again in (False, True):
            kernel = summed(factor)
            wanted = X * np.sum(np.asarray(factor, np.float32))
            np.testing.assert_array_equal(np.asarray(kernel(X)), wanted)
            assert unread(kernel) is again


@pytest.mark.usefixtures("folder")
def test_other_arguments_are_read_and_refused_as_ever() -> None:
    def make() -> Any:
        @psc.kernel
        def f(x: f32["n"], k: psc.Static[int], small: u8 = 1) -> f32["n"]:
            assert x.shape[0] > 1
            return x * k + np.float32(1) * np.float32(3) * x.astype(np.float32)

        return f

    make()(X, 2)
    kernel = make()
    np.testing.assert_array_equal(np.asarray(kernel(X, 2)), np.asarray(make()(X, k=2)))
    assert unread(kernel)
    for args, kwargs in (
        ((X.astype(np.float64), 2), {}),
        ((X[:1], 2), {}),
        ((X, 2, 300), {}),
        ((X, 2), {"small": -1}),
        ((X, X), {}),
        ((X,), {}),
        (([1.0, 2.0], 2), {}),
    ):
        with pytest.raises(psc.ArgumentError):
            make()(*args, **kwargs)
        with pytest.raises(psc.ArgumentError):
            kernel(*args, **kwargs)
    np.testing.assert_array_equal(np.asarray(make()(X, 3)), X * 6)
    np.testing.assert_array_equal(np.asarray(make()(np.append(X, X), 3)), np.append(X, X) * 6)


SHAPE = "(((3,), 'float32'),)"
WRONG = [
    *["", "(", "()", "(1, 2)", "[]", "None", "\xff", "('f', 1, 2, 3, 4, 5)", "(" * 9999],
    "('f', ('x',), 1, ('x',), False, False)",
    "('a', 1, 2, 3, 4, 5, 6)",
    f"('a', {SHAPE}, {SHAPE}, 'array', (), (), True)",
    f"('a', (((3,), 'float9'),), {SHAPE}, 'array', (), (), True)",
    f"('a', {SHAPE}, {SHAPE}, ('record', 'os', 'x'), (), (), True)",
]


@pytest.mark.parametrize("content", WRONG)
def test_entries_that_are_no_entries_are_nothing(content: str, folder: Path) -> None:
    scaled(2.0)(X)
    store = Store(folder, 1 << 30)
    for name in store.names():
        found = store.get(name)
        assert found is not None
        if found.startswith(b"("):
            store.put(name, content.encode())
    np.testing.assert_array_equal(np.asarray(scaled(2.0)(X)), X * 2)


def test_an_executable_that_was_removed_is_made_again(folder: Path) -> None:
    scaled(2.0)(X)
    store = Store(folder, 1 << 30)
    for name in store.names():
        if len(store.get(name) or b"") > 1000:
            store.remove(name)
    for again in (False, True):
        kernel = scaled(2.0)
        np.testing.assert_array_equal(np.asarray(kernel(X)), X * 2)
        assert unread(kernel) is again


@pytest.mark.usefixtures("folder")
def test_what_was_read_before_a_name_was_bound_anew_is_not_kept(load: Callable[..., Any]) -> None:
    text = "import pscdsl as psc\nfrom pscdsl import f32\nN = 2\n\n\n"
    text += '@psc.kernel\ndef f(x: f32["n"]) -> f32["n"]:\n    return x * N\n\n\n'
    text += '@psc.kernel\ndef g(x: f32["n"]) -> f32["n"]:\n    return f(x)\n'
    module = load(text)
    module.f.check()
    module.N = 3
    with pytest.raises(psc.CheckError, match=r"PSC917.*`N`"):
        module.g(X)  # `f` is read once
    other = load(text)
    other.N = 3
    np.testing.assert_array_equal(np.asarray(other.g(X)), X * 3)


@pytest.mark.usefixtures("folder")
def test_several_sizes_and_calls_of_one_kernel() -> None:
    kernel = scaled(2.5)
    for n in (3, 4):
        kernel(np.ones(n, np.float32))
    again = scaled(2.5)
    for n in (4, 3, 4):
        np.testing.assert_array_equal(np.asarray(again(np.ones(n, np.float32))), np.full(n, 2.5))
    assert unread(again)
    assert again.cache_info().disk_hits == 2
    again(np.ones(5, np.float32))
    again.compile(n=3)
    assert again.cache_info()[:3] == (1, 1, 3)


@pytest.mark.usefixtures("folder")
def test_methods_and_partial_applications() -> None:
    for again in (False, True):
        kernel = scaled(4.0)
        assert np.asarray(partial(kernel, X)()).tolist() == [0, 4, 8]
        assert unread(kernel) is again
