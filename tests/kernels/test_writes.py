"""Calls of kernels that write to their arguments, from Python."""

from __future__ import annotations

import importlib.util
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32, f64, i64
from pscdsl._src.calls.errors import ArgumentError, CheckError

pytestmark = pytest.mark.quick_code

NDArray = np.ndarray[Any, np.dtype[Any]]
CAPTURING = """
import numpy as np
import pscdsl as psc
from pscdsl import f64

HELD_BY_WRITES = np.arange(3.0)

@psc.kernel(writes="x")
def kernel(x: f64["n"]) -> None:
    x[0] = HELD_BY_WRITES.sum()
"""


@psc.kernel(writes="a")
def scale(a: f64["n m"], s: float) -> None:
    a *= s


@psc.kernel(writes=("b", "a"))
def eliminate(a: f64["n n"], b: f64["n"], tolerance: f64 = 0.0) -> f64:
    """Branches, loops and a `return` in a loop, with stores before and after."""
    for i in range(a.shape[0]):
        if a[i, i] < tolerance:
            b[i] = -1.0
            return b.sum()
        for j in range(i + 1, a.shape[0]):
            factor = a[j, i] / a[i, i]
            a[j] -= factor * a[i]
            b[j] -= factor * b[i]
    return b.sum()


@psc.kernel(writes="x")
def shift(x: psc.Float["n"], y: psc.Float["n"]):  # type: ignore[no-untyped-def]
    """The result is not declared; it is given back what is a part of the argument."""
    assert len(x) >= 2
    x[1:] = x[:-1] + y[1:]
    return x[::-1]


@psc.kernel(writes="x")
def of_any_rank(x: f32["*batch"]) -> None:
    x += 1


@psc.kernel(writes="counts")
def count(counts: i64["m"], at: i64["n"]) -> None:
    np.add.at(counts, at, 1)


class Step(psc.Record):
    """A record with a method that writes."""

    size: f64

    @psc.kernel(writes="x")
    def along(self, x: f64["n"], g: f64["n"]) -> None:
        """Move `x` along a direction."""
        x -= self.size * g


def plain(kernel: Any) -> Any:
    """The function of NumPy."""
    return kernel.__wrapped__


def matrix(n: int = 4, m: int = 3) -> NDArray:
    return np.random.default_rng(n * m).uniform(0.5, 1.5, (n, m))


LAYOUTS: dict[str, Callable[[NDArray], NDArray]] = {
    "C order": lambda x: x.copy(),
    "Fortran order": np.asfortranarray,
    "reversed": lambda x: x.copy()[::-1, ::-1],
    "every other": lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3],
    "transposed": lambda x: x.T.copy().T,
    "a part": lambda x: np.pad(x, 2)[2:-2, 2:-2],
    "a field": lambda x: np.stack([x, x], -1).view([("a", "f8"), ("b", "f8")])["b"][..., 0],
    "big-endian": lambda x: x.astype(">f8"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arrays_of_any_layout_are_written(layout: str) -> None:
    given = LAYOUTS[layout](matrix())
    wanted = given * 2.5
    assert scale(given, 2.5) is None
    assert np.array_equal(given, wanted)


def test_nothing_beside_a_view_is_written() -> None:
    whole = np.pad(matrix(), 2, constant_values=7.0)
    scale(whole[2:-2, 2:-2], 2.5)
    assert np.array_equal(whole, np.pad(matrix() * 2.5, 2, constant_values=7.0))


@pytest.mark.parametrize("tolerance", [0.0, 0.9, 10.0])
def test_stores_in_branches_and_loops_are_those_of_numpy(tolerance: float) -> None:
    ours = (np.eye(5) + matrix(5, 5), np.arange(5.0))
    theirs = tuple(x.copy() for x in ours)
    found = eliminate(*ours, tolerance)
    wanted = plain(eliminate)(*theirs, tolerance)
    for one, other in zip((found, *ours), (wanted, *theirs), strict=True):
        assert np.allclose(np.asarray(one), other, rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_result_that_is_not_declared(dtype: Any) -> None:
    x, y = np.arange(4, dtype=dtype), np.ones(4, dtype)
    other = x.copy()
    result = shift(x, y)
    wanted = plain(shift)(other, y)
    assert np.array_equal(np.asarray(result), wanted)
    assert np.array_equal(x, other)
    assert x.dtype == dtype


@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0, 2)])
def test_arrays_of_any_rank(shape: tuple[int, ...]) -> None:
    if 0 in shape:
        with pytest.raises(ArgumentError, match="at least 1"):
            of_any_rank(np.zeros(shape, np.float32))
        return
    x = np.zeros(shape, np.float32)
    of_any_rank(x)
    assert np.array_equal(x, np.ones(shape, np.float32))


def test_functions_that_store_and_repeated_indices() -> None:
    counts = np.zeros(3, np.int64)
    count(counts, np.array([0, 2, 2, 2]))
    assert counts.tolist() == [1, 0, 3]


def test_a_method() -> None:
    x = np.ones(3)
    Step(0.5).along(x, np.arange(3.0))
    assert x.tolist() == [1.0, 0.5, 0.0]


def test_a_memory_map_is_written(tmp_path: Path) -> None:
    mapped = np.memmap(tmp_path / "array", np.float64, "w+", shape=(2, 3))
    mapped[:] = 1.0
    scale(mapped, 3.0)
    mapped.flush()
    assert np.array_equal(np.fromfile(tmp_path / "array"), np.full(6, 3.0))


def overlapping() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    a, b, x = np.eye(3), np.ones(3), np.arange(6.0)
    return {
        "both written": (eliminate, (a, a[0])),
        "the diagonal": (eliminate, (a, np.einsum("ii->i", a))),
        "written and read": (shift, (x[:3], x[1:4])),
        "reversed": (shift, (b, b[::-1])),
        "of another dtype": (shift, (b, b.view(np.float64))),
    }


@pytest.mark.parametrize("name", overlapping())
def test_arguments_that_overlap_are_refused(name: str) -> None:
    kernel, arguments = overlapping()[name]
    before = [x.copy() for x in arguments]
    with pytest.raises(ArgumentError, match="may share memory with argument"):
        kernel(*arguments)
    for one, other in zip(arguments, before, strict=True):
        assert np.array_equal(one, other)


def test_arguments_that_interleave_do_not_overlap() -> None:
    x = np.arange(6.0)
    shift(x[::2], x[1::2])
    assert x.tolist() == [0.0, 1.0, 3.0, 3.0, 7.0, 5.0]


def test_device_arrays_in_the_memory_of_an_argument_overlap() -> None:
    memory = np.zeros(80)
    start = -memory.ctypes.data % 64 // 8
    x = memory[start : start + 8]
    y: Any = psc.from_dlpack(x, copy=False)
    with pytest.raises(ArgumentError, match="may share memory with argument `y`"):
        shift(x, y)
    assert not x.any()


def test_captured_arrays_are_not_written(tmp_path: Path) -> None:
    path = tmp_path / "capturing_table.py"
    path.write_text(CAPTURING)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    table, view = module.HELD_BY_WRITES, module.HELD_BY_WRITES[:]
    x = np.zeros(2)
    module.kernel(x)
    assert x.tolist() == [3.0, 0.0]
    with pytest.raises(ArgumentError, match="captured"):
        module.kernel(view)
    with pytest.raises(ArgumentError, match="read-only"):
        module.kernel(table)
    assert table.tolist() == [0.0, 1.0, 2.0]


def refused() -> dict[str, tuple[Any, str]]:
    read_only = matrix()
    read_only.flags.writeable = False
    return {
        "read-only": (read_only, "read-only"),
        "a repeated row": (np.lib.stride_tricks.as_strided(matrix(), (2, 3), (0, 8)), "share"),
        "a sliding window": (
            np.lib.stride_tricks.sliding_window_view(np.arange(5.0), 3, writeable=True),
            "share memory",
        ),
        "another dtype": (matrix().astype(np.float32), "f32"),
        "a device array": (scale.functional(matrix(), 1.0), "scale.functional"),
        "a record array": (matrix().view(np.recarray), "recarray"),
        "a masked array": (np.ma.array(matrix()), "MaskedArray"),
        "a list": ([[1.0, 2.0]], "list"),
        "another rank": (np.ones(3), "f64"),
        "a number": (1.0, "float"),
    }


@pytest.mark.parametrize("name", refused())
def test_what_cannot_be_written_is_refused(name: str) -> None:
    given, says = refused()[name]
    with pytest.raises(ArgumentError, match=says):
        scale(given, 2.0)
    assert np.array_equal(np.asarray(given), np.asarray(refused()[name][0]))


def test_a_call_that_fails_writes_nothing() -> None:
    a, b = matrix(3, 3), np.arange(4.0)
    before = a.copy()
    with pytest.raises(ArgumentError, match="4 is not 3"):
        eliminate(a, b)
    with pytest.raises(ArgumentError, match="missing"):
        eliminate(a)  # type: ignore[call-arg]
    assert np.array_equal(a, before)
    assert np.array_equal(b, np.arange(4.0))


def test_results_do_not_change_with_the_arguments() -> None:
    x = np.arange(4.0)
    result = shift(x, np.ones(4))
    before = np.array(result)
    x[:] = 9.0
    assert np.array_equal(np.asarray(result), before)


def test_threads_write_arrays_of_their_own() -> None:
    arrays = [np.full((5, 7), float(i)) for i in range(8)]

    def work(array: NDArray) -> None:
        for _ in range(20):
            scale(array, 1.5)

    threads = [threading.Thread(target=work, args=(array,)) for array in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, array in enumerate(arrays):
        wanted = np.full((5, 7), float(i))
        for _ in range(20):
            wanted *= 1.5
        assert np.array_equal(array, wanted)


def test_the_functional_form_writes_nothing() -> None:
    a, b = np.eye(3) + matrix(3, 3), np.arange(3.0)
    before = a.copy(), b.copy()
    result, new_a, new_b = eliminate.functional(a, b)
    assert np.array_equal(a, before[0])
    assert np.array_equal(b, before[1])
    assert np.array_equal(np.asarray(result), np.asarray(eliminate(a, b)))
    assert np.array_equal(np.asarray(new_a), a)
    assert np.array_equal(np.asarray(new_b), b)
    (new,) = (scale.functional(before[0], 2.0),)
    assert np.array_equal(np.asarray(new), before[0] * 2)
    assert scale.functional.functional is scale.functional


def test_device_arrays_are_given_to_the_functional_form() -> None:
    x: Any = scale.functional(matrix(), 1.0)
    for _ in range(3):
        x = scale.functional(x, 2.0)
    assert np.array_equal(np.asarray(x), matrix() * 8)


def test_derivatives_and_batches_take_the_functional_form() -> None:
    @psc.kernel
    def loss(a: f64["n m"], s: float) -> f64:
        return (scale.functional(a, s) ** 2).sum()

    a = matrix()
    assert np.allclose(np.asarray(psc.grad(loss)(a, 3.0)), 18 * a)
    batched = psc.vmap(scale.functional, (0, None))
    assert np.allclose(np.asarray(batched(np.stack([a, a]), 2.0)), np.stack([a, a]) * 2)


USES: dict[str, Callable[[Any], Any]] = {
    "grad": psc.grad,
    "vmap": psc.vmap,
    "checkpoint": psc.checkpoint,
    "value_and_grad": psc.value_and_grad,
    "jvp": lambda kernel: psc.jvp(kernel, (np.eye(2), 1.0), (np.eye(2), 0.0)),
    "vjp": lambda kernel: psc.vjp(kernel, np.eye(2), 1.0),
    "lower": lambda kernel: kernel.lower(n=2, m=2),
    "compile": lambda kernel: kernel.compile(n=2, m=2),
    "lower_for": lambda kernel: kernel.lower_for(np.eye(2), 1.0),
    "export": lambda kernel: kernel.export(n=2, m=2),
    "check_grads": lambda kernel: psc.check_grads(kernel, (np.eye(2), 1.0)),
    "compile_all": lambda kernel: psc.compile_all([(kernel, {"n": 2, "m": 2})]),
}


@pytest.mark.parametrize("use", USES)
def test_other_uses_are_refused_by_name(use: str) -> None:
    with pytest.raises(ArgumentError, match=r"scale\.functional"):
        USES[use](scale)


def test_combinators_refuse_it() -> None:
    with pytest.raises(CheckError, match="changes an array that is given to `<lambda>`"):
        psc.map(lambda row: scale(row, 2.0), np.ones((2, 3, 3)))
    with pytest.raises(CheckError, match="functional"):
        psc.map(scale, np.ones((2, 3, 3)))  # type: ignore[arg-type]


def test_artefacts_are_made_of_the_functional_form() -> None:
    loaded: Any = psc.load(scale.functional.export(n=2, m=3))
    a = matrix(2, 3)
    assert np.array_equal(np.asarray(loaded(a, 2.0)), a * 2)


def test_options_and_pickles() -> None:
    a = matrix()
    quick = scale.with_options(fast_math=True)
    quick(a, 2.0)
    assert np.array_equal(a, matrix() * 2)
    assert pickle.loads(pickle.dumps(scale)) is scale
    assert pickle.loads(pickle.dumps(scale.functional)) is scale.functional
    pickle.loads(pickle.dumps(quick))(a, 2.0)
    assert np.array_equal(a, matrix() * 4)
    again = pickle.loads(pickle.dumps(scale.functional.with_options(fast_math=True)))
    assert np.array_equal(np.asarray(again(a, 1.0)), a)
    assert again.writes == ()
    assert again.functional is again
    with pytest.raises(TypeError, match="writes"):
        psc.kernel(scale, writes="s")


def test_signatures_say_what_is_written() -> None:
    assert str(scale.signature) == "scale(a: f64[n m], s: float) -> None writes a"
    assert str(eliminate.signature).endswith("-> f64 writes a, b")
    assert str(shift.signature).endswith("y: Float[n]) writes x")


def test_what_is_declared_must_be_an_array_parameter() -> None:
    for writes in ("z", ("x", 1), "s", "k", "d"):

        @psc.kernel(writes=writes)  # type: ignore[arg-type]
        def wrong(x: f32["n"], s: f32, k: psc.Static[int], d: f32["n"] = np.zeros(2)) -> f32:  # noqa: B008
            return s

        with pytest.raises(CheckError, match="writ"):
            wrong.check()


STORED = """
import sys
import numpy as np
import pscdsl as psc
from pscdsl import f64

@psc.kernel(writes="{writes}")
def kernel(a: f64["n"], b: f64["n"]) -> f64:
    {writes} += 1
    return a @ b

def main() -> None:
    a, b = np.ones(3), np.ones(3)
    found = kernel(a, b)
    print(float(found), a.sum(), b.sum(), "pscdsl._src.frontend.definitions" in sys.modules)
"""


def test_another_process_finds_the_program_on_disk(tmp_path: Path) -> None:
    environment = os.environ | {
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(__file__).parents[2]}",
        "PSCDSL_CACHE": str(tmp_path / "cache"),
    }

    def printed() -> str:
        command = [sys.executable, "-c", "import stored; stored.main()"]
        return subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True, cwd=tmp_path
        ).stdout.strip()

    (tmp_path / "stored.py").write_text(STORED.format(writes="a"))
    assert printed() == "6.0 6.0 3.0 True"
    assert printed() == "6.0 6.0 3.0 False"
    (tmp_path / "stored.py").write_text(STORED.format(writes="b"))
    assert printed() == "6.0 3.0 6.0 True"
