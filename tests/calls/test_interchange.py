"""Arrays of other libraries, by DLPack: shared where layout allows, read by kernels, kept safe."""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32

pytestmark = pytest.mark.jaxlib

F32: TypeAlias = np.ndarray[Any, np.dtype[np.float32]]


class Exporter:
    """An array of a library that is not known here."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class Refusing(Exporter):
    """An array whose library does not give it away."""

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("it requires a gradient")


def exported(array: Any) -> Any:
    """An exporter, which type checkers take for an array."""
    return Exporter(array)


def refusing(array: Any) -> Any:
    """The same of one that refuses."""
    return Refusing(array)


class Pair(psc.Record):
    """Numbers and what they are multiplied by."""

    x: f32["n"]
    factor: f32


@psc.kernel
def scaled(pair: Pair, y: f32["n"]) -> f32["n"]:
    """A record and an array."""
    return pair.x * pair.factor + y


def aligned(count: int, offset: int = 0) -> F32:
    """Zeros that begin so many bytes after an address that 64 divides."""
    room = np.zeros(4 * count + 128, np.uint8)
    start = -room.ctypes.data % 64 + offset
    return room[start : start + 4 * count].view(np.float32)


def test_memory_is_shared_where_layout_allows() -> None:
    x = aligned(16)
    shared, copied = psc.from_dlpack(Exporter(x)), psc.from_dlpack(Exporter(x), copy=True)
    x[0] = 7
    assert (np.asarray(shared)[0], np.asarray(copied)[0]) == (7, 0)
    assert np.from_dlpack(shared).ctypes.data == x.ctypes.data
    assert psc.from_dlpack(shared) is shared


@pytest.mark.parametrize(
    "odd",
    [aligned(16, 4), aligned(16)[::2], aligned(16).reshape(4, 4).T, aligned(4)[::-1]],
    ids=["unaligned", "strided", "transposed", "reversed"],
)
def test_memory_is_copied_where_it_does_not(odd: F32) -> None:
    odd[...] = np.arange(odd.size).reshape(odd.shape)
    wanted = odd.copy()
    found = psc.from_dlpack(Exporter(odd))
    with pytest.raises(BufferError, match="cannot be shared"):
        psc.from_dlpack(Exporter(odd), copy=False)
    odd[...] = -1
    np.testing.assert_array_equal(np.asarray(found), wanted)


def test_an_array_outlives_its_owner() -> None:
    kept = [psc.from_dlpack(Exporter(aligned(1024) + np.float32(i))) for i in range(50)]
    assert [float(np.asarray(each).sum()) for each in kept] == [1024.0 * i for i in range(50)]


def test_bf16_which_numpy_does_not_exchange() -> None:
    half = np.arange(3).astype(ml_dtypes.bfloat16)

    @psc.kernel
    def same(x: psc.bf16["n"]) -> psc.bf16["n"]:
        return x

    found = psc.from_dlpack(Exporter(same(half)))
    assert (found.dtype, found.tolist()) == (half.dtype, [0, 1, 2])


def test_kernels_take_arrays_of_other_libraries() -> None:
    x = aligned(4)
    x[:] = range(4)
    for _ in range(3):
        result = scaled(Pair(exported(x), 2.0), exported(x))
        wanted = (3 * x).tolist()
        x += 1  # which no result may see
        assert np.asarray(result).tolist() == wanted
    compiled = scaled.compile(n=4)
    np.testing.assert_array_equal(np.asarray(compiled(Pair(x, 2.0), exported(x))), 3 * x)


def test_what_cannot_be_read_is_named() -> None:
    x = aligned(4)
    with pytest.raises(psc.ArgumentError, match="`y` of `scaled` is an array of class Refusing"):
        scaled(Pair(x, 2.0), refusing(x))
    with pytest.raises(BufferError, match="requires a gradient"):
        psc.from_dlpack(refusing(x))
    with pytest.raises(psc.ArgumentError, match=r"`y` of `scaled` is f32\[2 2\]"):
        scaled(Pair(x, 2.0), exported(x.reshape(2, 2)))
    with pytest.raises(psc.ArgumentError, match="longdouble"):
        scaled(Pair(x, 2.0), exported(np.zeros(4, np.longdouble)))
