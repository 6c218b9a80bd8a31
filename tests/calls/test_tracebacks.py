"""Errors of users have no frames of ours, whatever way they were called."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32
from pscdsl._src.support.tracebacks import FULL, VARIABLE

PACKAGE = str(Path(psc.__file__).parent)
X = np.ones((2, 2), np.float32)


@psc.kernel
def wrong(x: f32["n d"], y: f32["d"]) -> f32["n"]:
    return x @ y + x


@psc.kernel
def right(x: f32["n d"], s: f32 = 2.0) -> f32["n d"]:
    return x + s


@psc.kernel
def static(x: f32["n d"], k: psc.Static[int]) -> f32["n d"]:
    return x * k


@psc.kernel(donate="x")
def donating(x: f32["n d"]) -> f32["n d"]:
    return x + 1


def plain(x: f32["n"]) -> f32:
    return x.sum()


@psc.kernel
def capturing(x: f32["n d"]) -> f32:
    return psc.grad(plain)(x[0]).sum()


def warm() -> None:
    """Have all kinds of entries."""
    for given in (X, right(X), np.float32(1) * X):
        right(given)
        right(given)
    static(X, 3)
    capturing(X)
    capturing(X)
    psc.grad(plain)(X[0])
    donating(donating(X))


_row = right(X)[0]
_compiled = right.compile(n=2, d=2)
CASES: list[Callable[[], object]] = [
    lambda: wrong(X, X[0]),
    lambda: wrong.check(),
    lambda: wrong.lower(n=2, d=2),
    lambda: right(X[0]),
    lambda: right(_row),
    lambda: right(3, 4, 5),  # type: ignore[call-arg]
    lambda: right(X, s=X),
    lambda: right(wrong=3),  # type: ignore[call-arg]
    lambda: static(X, [3]),  # type: ignore[arg-type]
    lambda: static(X, "a"),  # type: ignore[arg-type]
    lambda: donating(X[0]),
    lambda: _compiled(X[0], 2.0),
    lambda: right.lower(n=3),
    lambda: right.lower(n="a", d=3),
    lambda: psc.grad(3),  # type: ignore[arg-type]
    lambda: psc.grad(right)(X),
    lambda: psc.vmap(right, in_axes=5)(X),
    lambda: psc.jvp(right, (X,), (X[0],)),
    lambda: psc.load(b"nothing"),
    lambda: capturing(X[0]),
    lambda: psc.grad(plain)(X),
    lambda: psc.random.normal(3, (2,)),
    lambda: psc.random.normal(),  # type: ignore[call-arg]
    lambda: psc.random.split(psc.random.key(0), -1),
    lambda: psc.special.betainc(X, np.ones(3, np.float32), X),
    lambda: psc.scan(lambda c, x: c, X, X),  # type: ignore[arg-type, return-value]
    lambda: psc.update(X, "a", 1),
    lambda: psc.top_k(X, 7),
    lambda: psc.tree.map(lambda a, b: a, (X,), (X, X)),
    lambda: psc.constant(object()),
]


def frames(error: BaseException) -> list[str]:
    return [each.filename for each in traceback.extract_tb(error.__traceback__)]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("is_warm", [False, True])
def test_no_frame_is_ours(case: Callable[[], object], is_warm: bool) -> None:
    if is_warm:
        warm()
    with pytest.raises(Exception) as caught:  # noqa: PT011
        case()
    assert frames(caught.value) == [__file__, __file__]
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (type(copy), str(copy)) == (type(caught.value), str(caught.value))


def test_all_frames_where_they_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, FULL)
    with pytest.raises(psc.ArgumentError) as caught:
        right(X[0])
    assert any(name.startswith(PACKAGE) for name in frames(caught.value))


def test_errors_of_ours_keep_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("a mistake of ours")

    monkeypatch.setattr("pscdsl._src.kernels.emission.lower_module", broken)
    with pytest.raises(KeyError) as caught:
        right(np.ones((7, 3), np.float32))
    assert any(name.startswith(PACKAGE) for name in frames(caught.value))
