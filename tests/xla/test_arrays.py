"""Results against NumPy: what can be read from an array, and computed with one outside a kernel."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import bool_, i32
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.xla.runtime.devices import from_dlpack, is_result, put
from pscdsl.arrays import Array
from pscdsl.typing import dtypes
from pscdsl.typing.dtypes import DType

pytestmark = pytest.mark.jaxlib

SHAPES = [(), (1,), (3,), (2, 3), (0,), (2, 0, 3)]


def example(dtype: DType, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    count = int(np.prod(shape))
    return (np.arange(count) % 5).reshape(shape).astype(to_numpy(dtype))


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_round_trip(dtype: DType, shape: tuple[int, ...]) -> None:
    x = example(dtype, shape)
    a = put(x)
    assert is_result(a)
    assert isinstance(a, Array)
    for field in ("shape", "dtype", "ndim", "size", "nbytes", "itemsize"):
        assert getattr(a, field) == getattr(x, field), field
    back = np.asarray(a)
    assert back.dtype == x.dtype
    assert back.shape == x.shape
    assert not back.flags.writeable
    assert back.tobytes() == x.tobytes()
    assert a.tolist() == x.tolist()
    assert a.to_numpy().dtype == x.dtype
    assert f"dtype={x.dtype}" in repr(a)


def test_conversion() -> None:
    a = put(np.arange(3))
    assert np.asarray(a, np.float32).dtype == np.float32
    assert np.array(a).flags.writeable
    assert np.array(a, copy=True).tolist() == [0, 1, 2]
    assert a.__array__(np.int64, copy=False).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="copy"):
        a.__array__(np.float32, copy=False)
    assert a.astype(np.int8).dtype == np.int8


def test_the_source_is_copied() -> None:
    raw = np.zeros(64 * 9, np.uint8)
    start = -raw.ctypes.data % 64
    aligned = raw[start : start + 256].view(np.float32)
    a = put(aligned)
    aligned[:] = 1
    assert not np.asarray(a).any()


def test_layouts_and_byte_orders() -> None:
    x = np.arange(24, dtype=np.float64).reshape(2, 3, 4)
    for given in (x.T, x[::-1, ::2], x.astype(">f8"), np.asfortranarray(x), x[:, 1]):
        np.testing.assert_array_equal(np.asarray(put(given)), given)
    assert put(2.5).dtype == np.float64
    assert put(True).dtype == np.bool_
    with pytest.raises(TypeError):
        put(np.array(["text"]))
    with pytest.raises(TypeError):
        put(np.array([object()]))


@psc.kernel
def truths(x: bool_["n"]) -> tuple[i32, i32, bool_["n"]]:
    return np.sum(x), np.argmax(x), x ^ True


@pytest.mark.parametrize("count", [1, 300, 30_000])
def test_bools_whose_bytes_are_not_0_or_1(count: int) -> None:
    x = np.tile(np.array([2, 0, 255, 1], np.uint8), count).view(np.bool_)
    plain = x.astype(np.uint8).view(np.bool_)
    matrix = np.broadcast_to(x[:, None], (len(x), 2))
    devices = put(x), from_dlpack(x), put(x.view(type("Other", (np.ndarray,), {})))
    for given in (x, x[::-1], matrix[:, 1], *devices, plain, x):
        total, place, other = truths(given)
        assert (int(total), int(place)) == (3 * count, 0)
        assert np.asarray(other).view(np.uint8).sum() == count
    assert np.asarray(put(np.array(x[2]))).view(np.uint8) == 1
    with pytest.raises(BufferError):
        from_dlpack(x, copy=False)


def test_sequence() -> None:
    x = np.arange(6.0).reshape(2, 3)
    a = put(x)
    assert len(a) == 2
    assert a[1, 2] == 5
    assert [row.tolist() for row in a] == x.tolist()
    np.testing.assert_array_equal(a[:, ::2], x[:, ::2])
    np.testing.assert_array_equal(a[put(np.array([1, 0]))], x[[1, 0]])
    assert 5.0 in a
    with pytest.raises(TypeError):
        a[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        a[0][0] = 1
    for call in (len, iter):
        with pytest.raises(TypeError):
            call(put(1.0))


def test_scalars() -> None:
    a = put(np.float32(2.5))
    assert (float(a), int(a), complex(a), bool(a)) == (2.5, 2, 2.5 + 0j, True)
    assert f"{a:.3f}" == "2.500"
    assert a.item() == 2.5
    assert operator.index(put(np.int32(3))) == 3
    assert [10, 20, 30][put(1)] == 20
    assert round(put(2.345), 2) == 2.34 or round(put(2.345), 2) == 2.35
    with pytest.raises(TypeError):
        operator.index(a)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(put(np.ones(2)))
    with pytest.raises(TypeError):
        float(put(np.ones(2)))


def test_text() -> None:
    a = put(np.array([1.5, 2], np.float32))
    assert repr(a) == "pscdsl.Array([1.5, 2. ], dtype=float32)"
    assert str(a) == "[1.5 2. ]"
    assert f"{a}" == "[1.5 2. ]"
    assert repr(put(np.ones((0, 2)))) == "pscdsl.Array([], shape=(0, 2), dtype=float64)"
    a.delete()
    assert "donated" in repr(a)


OPERATORS: list[Callable[[Any, Any], Any]] = [
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv),
    *(operator.mod, operator.pow, operator.eq, operator.ne, operator.lt, operator.le),
    *(operator.gt, operator.ge, divmod, operator.matmul),
]


@pytest.mark.parametrize("function", OPERATORS)
def test_operators(function: Callable[[Any, Any], Any]) -> None:
    x, y = np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 2.0])
    expected = function(x, y)
    for left, right in ((put(x), y), (x, put(y)), (put(x), put(y))):
        np.testing.assert_array_equal(function(left, right), expected)
    if function is not operator.matmul:
        np.testing.assert_array_equal(function(put(x), 2.0), expected)
        np.testing.assert_array_equal(function(2.0, put(x)), function(2.0, x))


def test_operators_of_integers_and_numpy_functions() -> None:
    x = np.array([5, -3])
    a = put(x)
    for function in (operator.and_, operator.or_, operator.xor, operator.lshift):
        np.testing.assert_array_equal(function(a, 2), function(x, 2))
        np.testing.assert_array_equal(function(np.abs(x), a * a), function(np.abs(x), x * x))
    for unary in (operator.neg, operator.pos, operator.invert, abs):
        np.testing.assert_array_equal(unary(a), unary(x))
    np.testing.assert_array_equal(np.exp(a), np.exp(x))
    np.testing.assert_array_equal(np.stack([a, a]), np.stack([x, x]))
    assert a.sum() == 2
    assert a.T.shape == (2,)
    assert np.allclose(a, x)


def test_arrays_are_not_hashable() -> None:
    with pytest.raises(TypeError):
        hash(put(1.0))


@pytest.mark.parametrize("dtype", [dtypes.F32, dtypes.BF16, dtypes.C64], ids=str)
def test_copies_and_pickles(dtype: DType) -> None:
    a = put(example(dtype, (2, 3)))
    for again in (copy.copy(a), copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        assert is_result(again)
        assert again is not a
        assert again.dtype == a.dtype
        assert again.tolist() == a.tolist()


def test_dlpack() -> None:
    x = np.arange(4, dtype=np.float32)
    a = put(x)
    assert a.__dlpack_device__()[0] == 1
    np.testing.assert_array_equal(np.from_dlpack(a), x)
    np.testing.assert_array_equal(np.asarray(from_dlpack(x)), x)
    assert from_dlpack(a) is a
    with pytest.raises(BufferError):
        a.__dlpack__(dl_device=(2, 0))


def test_a_deleted_array_has_no_contents() -> None:
    a = put(np.ones(2))
    a.delete()
    assert a.shape == (2,)
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(a)
    with pytest.raises(RuntimeError, match="deleted"):
        a.tolist()
