"""Large results take the memory of earlier ones, and of none that anybody can still see."""

from __future__ import annotations

import os
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Shaped, f32, i32
from pscdsl._src.xla.runtime import boot, memory
from pscdsl._src.xla.runtime.boot import Aval
from pscdsl._src.xla.runtime.devices import put
from pscdsl._src.xla.runtime.executable import Executable
from pscdsl._src.xla.runtime.memory import POOL, Recipe

pytestmark = pytest.mark.jaxlib

ROOT = str(Path(__file__).parents[2])
N = 4096


@pytest.fixture(autouse=True)
def _small_is_large(  # pyright: ignore[reportUnusedFunction]
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    """Results of 16 kB are large, and a second executable is made at the first chance."""
    monkeypatch.setattr(memory, "LARGE", 4 * N)
    monkeypatch.setattr(memory, "GAIN", 1.0)
    monkeypatch.setattr(memory, "_is_asked_for", lambda: True)
    POOL.clear()
    yield
    POOL.clear()


def scaled() -> Callable[..., Any]:
    """A kernel that nothing is known of yet."""

    @psc.kernel
    def scaled(x: f32["n"], a: f32) -> f32["n"]:
        return x * a + 1

    return scaled


def executable(kernel: Any) -> Executable:
    """What a kernel that was called once came to."""
    (made,) = kernel.dispatcher.programs
    found: Executable = made.executable
    return found


X = np.arange(N, dtype=np.float32)


def wanted(a: float) -> Any:
    """The result for a number."""
    return X * np.float32(a) + 1


def test_results_take_the_memory_of_those_that_nobody_holds() -> None:
    kernel, x = scaled(), put(X)
    for a in range(4):
        kernel(x, a)
    held = [kernel(x, 0), kernel(x, 0)]  # whatever is free
    places: set[int] = set()
    for a in range(12):
        result = kernel(x, a)
        places.add(result.unsafe_buffer_pointer())
        np.testing.assert_array_equal(np.asarray(result), wanted(a))
    assert len(places) == 2  # one while the other is held
    assert len(held) == 2


def held_array(result: Any) -> Any:
    return lambda: np.asarray(result)


def held_numpy(result: Any) -> Any:
    view = np.asarray(result)
    return lambda: view


def held_memory(result: Any) -> Any:
    view = memoryview(result)
    return lambda: np.asarray(view)


def held_dlpack(result: Any) -> Any:
    view = np.from_dlpack(result)
    return lambda: view


def held_weakly_too(result: Any) -> Any:
    reference, holder = weakref.ref(result), [result]
    return lambda: np.asarray(holder[0] if reference() is holder[0] else None)


def held_by_another_call(result: Any) -> Any:
    copy = scaled()(result, 1)
    return lambda: np.asarray(copy) - 1


@pytest.mark.parametrize(
    "hold",
    [
        held_array,
        held_numpy,
        held_memory,
        held_dlpack,
        held_weakly_too,
        held_by_another_call,
    ],
)
def test_what_is_held_in_any_way_is_not_written_to(hold: Callable[[Any], Any]) -> None:
    kernel, x = scaled(), put(X)
    held = [(a, hold(kernel(x, a))) for a in range(6)]
    for a in range(100, 112):
        np.testing.assert_array_equal(np.asarray(kernel(x, a)), wanted(a))
    for a, contents in held:
        np.testing.assert_array_equal(contents(), wanted(a))


def test_a_weak_reference_alone_keeps_the_contents() -> None:
    kernel, x = scaled(), put(X)
    references = [weakref.ref(kernel(x, a)) for a in range(6)]
    for a in range(100, 112):
        kernel(x, a)
    for a, reference in enumerate(references):
        array = reference()
        if array is not None:
            np.testing.assert_array_equal(np.asarray(array), wanted(a))


def test_several_results_of_which_some_are_large() -> None:
    @psc.kernel
    def parts(x: f32["n"], k: i32) -> tuple[f32["n"], f32, i32["n"], f32["n"]]:
        y = x + k.astype(f32)
        return y, y[0], psc.numpy.full_like(x, k, dtype=i32), y

    x, pointers = put(X), list[list[int]]()
    for k in range(6):
        results: Any = parts(x, k)
        y, first, ks, same = results
        for same_again in (y, same):
            np.testing.assert_array_equal(np.asarray(same_again), X + k)
        assert int(first) == k
        np.testing.assert_array_equal(np.asarray(ks), np.full(N, k))
        pointers.append([each.unsafe_buffer_pointer() for each in (y, ks, same)])
        assert len(set(pointers[-1])) == 3
    assert set(pointers[-1]) <= set(pointers[-2] + pointers[-3])


@pytest.mark.parametrize("dtype", "bool int8 uint16 complex64 float64 bfloat16".split())
def test_all_dtypes(dtype: str) -> None:
    @psc.kernel
    def mirrored(x: Shaped["*b n"]) -> Shaped["*b n"]:
        return x[..., ::-1]

    source = np.random.default_rng(0).integers(0, 2, (3, 4 * N))
    x = source.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    for _ in range(6):
        np.testing.assert_array_equal(np.asarray(mirrored(put(x))), x[:, ::-1])
    assert executable(mirrored).reuse is not None


def test_a_loop_that_would_copy_its_result_does_without() -> None:
    @psc.kernel
    def repeated(x: f32["n"], k: i32) -> f32["n"]:
        return psc.fori_loop(0, k, lambda i, s: s * 1.5 + 1, x)

    x = put(X)
    for _ in range(4):
        repeated(x, np.int32(3))
    assert executable(repeated).recipe is not None
    assert executable(repeated).reuse is None


def test_donated_arguments_are_enough() -> None:
    @psc.kernel(donate="x")
    def scaled(x: f32["n"]) -> f32["n"]:
        return x * 2

    scaled(put(X))
    assert executable(scaled).recipe is None


def test_threads_do_not_share() -> None:
    kernel, x = scaled(), put(X)

    def work(a: int) -> bool:
        return all(np.array_equal(np.asarray(kernel(x, a + i)), wanted(a + i)) for i in range(40))

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, range(0, 400, 40)))


def test_the_pool_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "KEPT", 40 * N)
    kernel, x = scaled(), put(X)
    results = [kernel(x, a) for a in range(40)]
    del results
    assert len(POOL.take([executable(kernel).outputs[0]] * 10)) == 10
    assert not POOL.take([executable(kernel).outputs[0]])


def test_results_that_the_pool_could_not_hold_twice_are_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    aval = Aval((N,), np.dtype(np.float32))
    assert memory.pooled([aval]) == (0,)
    monkeypatch.setattr(memory, "KEPT", 6 * N)
    assert memory.pooled([aval]) == ()


def test_beside_a_jax_nothing_is_pooled(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, x = scaled(), put(X)
    for a in range(4):
        kernel(x, a)
    monkeypatch.setattr(boot, "jax_is_loaded", lambda: True)
    places = list(map(id, POOL.take([])))
    for a in range(4):
        np.testing.assert_array_equal(np.asarray(kernel(x, a)), wanted(a))
    assert places == []
    assert not POOL.take(executable(kernel).outputs)
    other = scaled()
    other(x, 1)
    assert executable(other).reuse is None


def test_a_program_that_was_compiled_by_another_process(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_"))}
    cache = str(tmp_path / "cache")
    settings = {"PYTHONPATH": ROOT, "PSCDSL_CACHE": cache, "PSCDSL_MEMORY": "reuse"}

    def run(**more: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, script],
            check=True,
            capture_output=True,
            text=True,
            env=kept | settings | more,
            timeout=100,
        )
        return done.stdout.split()

    assert run() == ["compiled", "1"]
    assert run() == ["disk", "1"]
    assert run(PSCDSL_MEMORY="system")[0] == "disk"


PROGRAM = """
import numpy as np
import pscdsl as psc
from pscdsl import f32
from pscdsl._src.xla.runtime import memory
from pscdsl._src.xla.runtime.devices import put

memory.LARGE, memory.GAIN = 1 << 14, 1.0

@psc.kernel
def scaled(x: f32["n"], a: f32) -> f32["n"]:
    return x * a

x = put(np.ones(1 << 12, np.float32))
for a in range(4):
    scaled(x, a)
places = {scaled(x, a).unsafe_buffer_pointer() for a in range(8)}
print("compiled" if scaled.cache_info().misses else "disk", len(places))
"""


def test_recipes_are_read_as_they_were_written() -> None:
    for recipe in (Recipe(b"", b"", 0.0), Recipe(b"code", b"options", 1.25)):
        assert Recipe.unpack(recipe.pack()) == recipe
