"""Small arrays and numbers lie in memory that call after call writes into; no result shows it."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import os
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32
from pscdsl.xla import staging
from pscdsl.xla.arrays import to_numpy
from pscdsl.xla.client import put
from pscdsl.xla.fast_path import fast_path_works
from pscdsl.xla.staging import MOST, STAGED_BYTES, writable
from tests.test_direct_calls import frames

pytestmark = pytest.mark.skipif(
    not fast_path_works(), reason="this jaxlib is called from Python, which stages nothing"
)
WAYS = (np.copy, put)


def kernel() -> Any:
    """One whose results are its arguments, and a sum."""

    @psc.kernel
    def made(
        x: f32["*s"], y: f32["*s"], by: f32
    ) -> tuple[f32["*s"], tuple[f32["*s"], f32], f32["*s"]]:
        return x, (y, by), x + y * by

    return made


def is_right(result: Any, x: Any, y: Any, by: float) -> bool:
    """Whether this is what the kernel gives."""
    wanted = (x, y, np.float32(by), x + y * np.float32(by))
    found = (result[0], *result[1], result[2])
    return all(np.array_equal(f, w) for f, w in zip(found, wanted, strict=True))


def test_results_stay_what_they_were() -> None:
    made, rng = kernel(), np.random.default_rng(0)
    known: list[Any] = []
    for _ in range(50):
        x, y = rng.integers(-99, 99, (2, 8)).astype(np.float32)
        by = float(rng.integers(-99, 99))
        known.append((made(x, y, by), x.copy(), y.copy(), by))
        x[:], y[:] = 0, 0
    assert all(is_right(*each) for each in known)


@pytest.mark.parametrize("size", [1, 8, STAGED_BYTES // 4, STAGED_BYTES // 4 + 1, 1 << 18])
@pytest.mark.parametrize("other", WAYS)
def test_sizes(size: int, other: Any) -> None:
    made, rng = kernel(), np.random.default_rng(size)
    for _ in range(6):
        x, y = rng.integers(-99, 99, (2, size)).astype(np.float32)
        by = float(rng.integers(-99, 99))
        given = other(y)
        assert is_right(made(x, given, by), x, y, by)


def test_shapes_are_not_broadcast() -> None:
    made, x = kernel(), np.ones((4, 4), np.float32)
    shapes = [(4, 4), (4, 1), (1, 4), (4,), (), (1,), (2, 8), (16,)]
    for _ in range(4):
        for shape in shapes:
            for other in shapes:
                y = np.full(shape, 3, np.float32)
                z = np.full(other, 5, np.float32)
                if shape == other:
                    assert is_right(made(y, z, 2.0), y, z, 2.0)
                else:
                    with pytest.raises(psc.ArgumentError):
                        made(y, z, 2.0)
    assert is_right(made(x, x, 2.0), x, x, 2.0)


@pytest.mark.parametrize(
    "code", [*"?bhiqBHIQefdFD", ml_dtypes.bfloat16], ids=lambda code: np.dtype(code).name
)
@pytest.mark.parametrize("wrap", [np.copy, np.asfortranarray, np.flip])
def test_dtypes_and_strides(code: Any, wrap: Any) -> None:
    @psc.kernel
    def same(
        x: psc.Shaped["n m"], y: psc.Shaped["n m"]
    ) -> tuple[psc.Shaped["n m"], psc.Shaped["m n"]]:
        return x, y.T

    rng = np.random.default_rng(1)
    for _ in range(6):
        x, y = (wrap(rng.integers(0, 9, (3, 5)).astype(code)) for _ in range(2))
        found = same(x, y)
        assert found[0].dtype == code
        np.testing.assert_array_equal(to_numpy(found[0]), x)
        np.testing.assert_array_equal(to_numpy(found[1]), y.T)


def test_read_only_and_unaligned_arrays_and_scalars() -> None:
    made = kernel()
    raw = np.zeros(33, np.uint8)[1:].view(np.float32)
    fixed = np.arange(8, dtype=np.float32)
    fixed.flags.writeable = False
    for value in range(5):
        raw[:] = value
        assert is_right(made(raw, fixed, value), raw, fixed, value)
        assert is_right(made(fixed, raw, np.float32(value)), fixed, raw, value)
        assert is_right(made(raw, raw, np.array(value, "f4")), raw, raw, value)
        one = np.float32(value)
        assert is_right(made(one, one, value), one, one, value)


def test_memory_that_calls_take_is_not_staged() -> None:
    @psc.kernel(donate=("x", "by"))
    def moved(x: f32["n"], y: f32["n"], by: f32) -> tuple[f32["n"], f32]:
        return x + y, by + 1

    known: list[Any] = []
    for turn in range(8):
        x, y = np.full(8, turn, np.float32), np.full(8, 2, np.float32)
        known.append((moved(x, y, float(turn)), turn))
        assert np.all(x == turn)
        x[:], y[:] = -1, -1
    for (found, number), turn in known:
        np.testing.assert_array_equal(found, np.full(8, turn + 2, np.float32))
        assert float(number) == turn + 1


def test_threads_do_not_share() -> None:
    @psc.kernel
    def powers(a: f32["n n"], x: f32["n"], by: f32) -> f32["n"]:
        found = a
        for _ in range(3):
            found = found @ a
        return (found @ x) * by  # they are read at the end

    a = put(np.eye(300, dtype=np.float32))
    wrong: list[Any] = []

    def work(number: int) -> None:
        for turn in range(30):
            x = np.full(300, number, np.float32)
            result = powers(a, x, float(turn))
            x[:] = -1
            if not np.all(np.asarray(result) == number * turn):
                wrong.append((number, turn))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 7)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong
    assert frames(partial(powers, a, np.ones(300, np.float32), 2.0)) == ["call"]


def test_calls_that_fail_keep_nothing_back() -> None:
    made = kernel()
    x, y = np.ones(8, np.float32), put(np.ones(8, np.float32))
    gone = put(np.ones(8, np.float32))
    assert is_right(made(x, y, 2.0), x, np.asarray(y), 2.0)
    gone.delete()
    for value in range(5):
        with pytest.raises((psc.ArgumentError, ValueError, RuntimeError), match=r"deleted|memory"):
            made(x, gone, 2.0)
        x[:] = value
        assert is_right(made(x, y, float(value)), x, np.asarray(y), value)


@pytest.mark.parametrize("count", [MOST - 1, MOST, MOST + 1])
def test_many_arrays(count: int) -> None:
    @psc.kernel
    def total(xs: tuple[f32["n"], ...], by: f32) -> f32["n"]:
        found = xs[0] * 0
        for x in xs:
            found = found + x * by
        return found

    call: Any = total
    for turn in range(4):
        xs = tuple([np.full(2, n + turn, np.float32) for n in range(count)])
        wanted = float(turn) * sum(n + turn for n in range(count))
        np.testing.assert_allclose(call(xs, float(turn)), wanted, rtol=1e-5)


def test_calls_at_once_have_arrays_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many are made as calls are under way, and no more."""
    made, count = kernel(), []

    def counted(aval: Any) -> Any:
        count.append(aval)
        return writable(aval)

    monkeypatch.setattr(staging, "writable", counted)
    x = np.ones(8, np.float32)
    for _ in range(20):
        made(x, x, 2.0)
    assert len(count) == 3


ASYNC = """
import numpy as np
import pscdsl as psc
from pscdsl import f32
from pscdsl.xla import staging

staging.writable = None


@psc.kernel
def powers(a: f32["n n"], x: f32["n"], by: f32) -> f32["n"]:
    found = a
    for _ in range(5):
        found = found @ a
    return (found @ x) * by


a = np.eye(400, dtype=np.float32)
for turn in range(12):
    x = np.full(400, 3, np.float32)
    result = powers(a, x, float(turn))
    x[:] = -1
    assert (np.asarray(result) == 3 * turn).all()
"""


def test_where_calls_do_not_wait_nothing_is_staged(tmp_path: Path) -> None:
    file = tmp_path / "calls.py"
    file.write_text(ASYNC)
    run = subprocess.run(
        [sys.executable, file],
        env={**os.environ, "PSCDSL_CALLS": "async", "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
