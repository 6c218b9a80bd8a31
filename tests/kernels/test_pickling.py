"""Kernels, records and results in other processes, and their copies."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from pickle import PicklingError
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from tests.support import pickled

X = np.arange(3, dtype=np.float32)


@pytest.mark.parametrize(
    "name",
    "square donating made gradient giving partial rows row_gradients giving_gradient "
    "compiled".split(),
)
def test_kernels_come_back(name: str) -> None:
    kernel = getattr(pickled, name)
    given = np.stack([X, X + 1]) if name.startswith("row") else X
    back: Any = None
    for _ in range(2):  # also once it has been called, and its class is another one
        back = pickle.loads(pickle.dumps(kernel))
        assert np.array_equal(back(given), kernel(given))
        assert copy.deepcopy([kernel])[0](given) is not None
    if name in ("square", "donating"):
        assert back is kernel
    if name.startswith("giv"):
        on_device = psc.from_dlpack(X.copy())
        back(on_device)
        with pytest.raises(psc.ArgumentError, match="donate"):
            back(on_device)


def test_copies_are_the_kernel() -> None:
    for kernel in (pickled.square, pickled.gradient, pickled.nested()):
        assert copy.copy(kernel) is kernel
        assert copy.deepcopy(kernel) is kernel


def test_rules_and_lowered_kernels() -> None:
    assert pickle.loads(pickle.dumps(pickled.sine)) is pickled.sine
    back = pickle.loads(pickle.dumps(pickled.lowered))
    assert back.text() == pickled.lowered.text()
    loaded = psc.load(pickled.square.export(n=3))
    loaded(X)
    assert np.array_equal(pickle.loads(pickle.dumps(loaded))(X), X * X)


@pytest.mark.parametrize(
    "kernel", [pickled.anonymous, pickled.nested(), psc.grad(pickled.nested())]
)
def test_what_has_no_name_says_so(kernel: Any) -> None:
    with pytest.raises(PicklingError, match=r"cannot be pickled.*define it with `def`"):
        pickle.dumps(kernel)


def test_a_name_that_was_bound_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = pickled.square
    monkeypatch.setattr(pickled, "square", pickled.nested())
    with pytest.raises(PicklingError, match="is something else by now"):
        pickle.dumps(kernel)


def test_records_and_results() -> None:
    record = pickled.Weights(pickled.square(X))
    for back in (pickle.loads(pickle.dumps(record)), copy.copy(record), copy.deepcopy(record)):
        assert type(back) is pickled.Weights
        assert np.array_equal(back.w, X * X)
    method = pickle.loads(pickle.dumps(record.doubled))
    assert np.array_equal(method(), 2 * X * X)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_pools(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip("there is no such method here")
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert np.array_equal(pool.map(pickled.square, [X, X + 1]), [X * X, (X + 1) ** 2])
        assert np.array_equal(pool.map(pickled.gradient, [X])[0], 2 * X)
        with pytest.raises(psc.ArgumentError, match="argument `x` of `square`"):
            pool.map(pickled.square, [np.ones((2, 2), np.float32)])
