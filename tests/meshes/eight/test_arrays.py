"""Meshes, and arrays in pieces over them."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32
from pscdsl._src.xla.mesh import current_mesh

MESH = psc.Mesh(data=4, model=2)
X = np.arange(64, dtype=np.float32).reshape(8, 8)
PLACEMENTS = (
    *("n d", "n@data d", "n@model d", "n d@model", "n@data d@model", "n@model d@data"),
    *("n@data@model d", "n@model@data d", "n d@model@data"),
)


@psc.kernel
def doubled(x: f32["n d"]) -> f32["n d"]:
    return x + x


class Params(NamedTuple):
    """A record of two arrays."""

    w: Any
    b: Any


def test_meshes_are_values() -> None:
    again = psc.Mesh(psc.devices()[:8], data=4, model=2)
    assert again == MESH
    assert hash(again) == hash(MESH)
    assert pickle.loads(pickle.dumps(MESH)) == MESH
    assert psc.Mesh(model=2, data=4) != MESH
    assert psc.Mesh(psc.devices()[::-1], data=4, model=2) != MESH
    assert repr(MESH) == "Mesh(data=4, model=2)"
    assert dict(MESH.axes) == {"data": 4, "model": 2}
    assert (MESH.size, psc.Mesh(data=3).devices) == (8, psc.devices()[:3])
    with pytest.raises(AttributeError, match="a mesh is immutable"):
        MESH.size = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        MESH.axes["data"] = 3  # type: ignore[index]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: psc.Mesh(data=16), "needs 16 devices, and there are 8 of platform cpu"),
        (lambda: psc.Mesh(data=0), "the mesh axis `data` has size 0: a positive integer"),
        (lambda: psc.Mesh(data=True), "has size True: a positive integer"),
        (lambda: psc.Mesh(data=2.0), "has size 2.0: a positive integer"),  # type: ignore[arg-type]
        (lambda: psc.Mesh(), "a mesh has at least one axis"),
        (lambda: psc.Mesh(psc.devices()[:3], data=4), "needs 4 devices, and 3 are given"),
        (lambda: psc.Mesh(psc.devices()[:1] * 2, data=2), "is given a device more than once"),
        (
            lambda: psc.Mesh((psc.Device("cpu"), psc.Device("cuda")), data=2),
            "is given devices of cpu and cuda",
        ),
    ],
)
def test_wrong_meshes(make: Callable[[], psc.Mesh], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_mesh_with_a_device_that_is_not_there() -> None:
    mesh = psc.Mesh((psc.Device("cpu", 9),), data=1)
    with pytest.raises(psc.UnsupportedDeviceError, match="has the device cpu:9, which is not"):
        mesh.put(X, "n d")


def test_the_current_mesh_is_that_of_the_innermost_block_of_a_thread() -> None:
    inner, seen = psc.Mesh(data=2), list[psc.Mesh | None]()
    with MESH:
        with inner, MESH, inner:
            assert current_mesh() is inner
        assert current_mesh() is MESH
        thread = threading.Thread(target=lambda: seen.append(current_mesh()))
        thread.start()
        thread.join()
    assert current_mesh() is None
    assert seen == [None]


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "?", "i1", "u8", "c8", "c16", ml_dtypes.bfloat16])
def test_pieces_are_the_parts_that_the_placement_says(placement: str, dtype: Any) -> None:
    value = (X % 3).astype(dtype)
    array = MESH.put(value, placement)
    assert array.placement == psc.Placement.parse(placement)
    assert (array.shape, array.dtype) == (value.shape, value.dtype)
    assert np.array_equal(np.asarray(array), value)
    assert [shard.device for shard in array.shards] == list(MESH.devices)
    cuts = array.placement.cuts(MESH.axes)
    for shard in array.shards:
        assert shard.data.shape == (8 // cuts[0], 8 // cuts[1])
        assert np.array_equal(np.asarray(shard.data), value[shard.index])


def test_which_device_has_which_piece() -> None:
    rows = [
        [shard.index[0].start for shard in MESH.put(X, text).shards]
        for text in ("n@data d", "n@model d", "n@data@model d", "n@model@data d")
    ]
    assert rows == [
        [0, 0, 2, 2, 4, 4, 6, 6],
        [0, 4, 0, 4, 0, 4, 0, 4],
        [0, 1, 2, 3, 4, 5, 6, 7],
        [0, 4, 1, 5, 2, 6, 3, 7],
    ]


@pytest.mark.parametrize("value", [X.T, X[::-1], X[:, ::-1], X.astype(">f4"), np.asfortranarray(X)])
@pytest.mark.parametrize("placement", ["n d", "n@data d", "n d@model", "n@data d@model"])
def test_memory_in_any_order(value: np.ndarray[Any, Any], placement: str) -> None:
    assert np.array_equal(np.asarray(MESH.put(value, placement)), value)


def test_the_memory_is_copied() -> None:
    value = X.copy()
    array = MESH.put(value, "n@data d")
    value[:] = 0
    assert np.array_equal(np.asarray(array), X)
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(array)[0, 0] = 1


def test_arrays_in_pieces_work_as_others() -> None:
    array = MESH.put(X, "n@data d@model")
    assert np.array_equal(array + 1, X + 1)
    assert np.array_equal(array[3], X[3])
    assert np.array_equal(pickle.loads(pickle.dumps(array)), X)
    assert len(array) == 8
    assert float(MESH.put(2.5, "")) == 2.5
    assert str(array) == str(X)
    for again in (copy.copy(array), copy.deepcopy(array)):
        assert again is not array
        assert again.placement == array.placement
        assert np.array_equal(again, X)


def test_empty_arrays() -> None:
    assert np.asarray(MESH.put(np.zeros((0, 3)), "n@data d")).shape == (0, 3)


def test_memory_in_one_place_is_refused() -> None:
    array = MESH.put(X, "n@data d")
    for read in (memoryview, np.from_dlpack, lambda x: x.__dlpack__()):
        with pytest.raises(BufferError):
            read(array)
    with pytest.raises(BufferError, match="the array lies in pieces on 8 devices"):
        array.__dlpack__()


def test_an_array_that_is_there_stays() -> None:
    array = MESH.put(X, "n@data d")
    assert MESH.put(array, "n@data d") is array
    moved = MESH.put(array, "n d@model")
    assert moved.placement == psc.Placement.parse("n d@model")
    assert np.array_equal(moved, X)
    back = psc.Mesh(psc.devices()[::-1], data=8).put(moved, "n@data d")
    assert np.array_equal(back, X)
    assert np.array_equal(MESH.put(doubled(X), "n@model d"), X + X)


@pytest.mark.parametrize(
    ("value", "placement", "message"),
    [
        (
            X[:6],
            "n@data d",
            r"axis 0 of an array of shape \(6, 8\) does not divide along data=4: "
            "6 is not a multiple of 4",
        ),
        (X[:, :4], "n d@data@model", "does not divide along data=4@model=2: 4 is not a multiple"),
        (X[0], "n@data d", r"is one of 2 axes, and the array has shape \(8,\)"),
        (X, "n", "is one of 1 axis, and the array has shape"),
        (X, "n@dta d", "the axes of Mesh.* are data, model"),
    ],
)
def test_what_does_not_fit(value: Any, placement: str, message: str) -> None:
    with pytest.raises(psc.PlacementError, match=message):
        MESH.put(value, placement)


def test_masked_arrays_and_objects_are_refused() -> None:
    with pytest.raises(TypeError, match="a masked array"):
        MESH.put(np.ma.array(X), "n d")
    with pytest.raises(TypeError):
        MESH.put(np.array([object()]), "n")
    with pytest.raises(TypeError, match="a placement is a text such as"):
        MESH.put(X, 3)


def test_trees() -> None:
    tree = Params(X, {"a": X[0], "b": (X[1], None)})
    whole = MESH.put(tree.b, "n")
    assert [each.placement for each in (whole["a"], whole["b"][0])] == [psc.Placement.whole(1)] * 2
    put = MESH.put(tree, Params("n@data d", {"a": "n@model", "b": ("n", None)}))
    assert type(put) is Params
    assert str(put.w.placement) == "_@data _"
    assert str(put.b["a"].placement) == "_@model"
    assert np.array_equal(put.b["b"][0], X[1])
    put = MESH.put(tree, Params("n@data d", psc.Placement.whole(1)))
    assert put.b["a"].placement.is_whole
    with pytest.raises(psc.PlacementError, match=r"no tree like the arrays: at `tree\[1\]`"):
        MESH.put(tree, Params("n d", ("n", "n")))


def test_kernels_for_one_device_refuse_pieces() -> None:
    array = MESH.put(X, "n@data d")
    for _ in range(3):
        assert np.array_equal(doubled(X), X + X)
        with pytest.raises(psc.PlacementError, match="an argument lies `_@data _` on Mesh"):
            doubled(array)
        assert np.array_equal(doubled(doubled(X)), 4 * X)
    part = array.shards[3]
    assert np.array_equal(doubled(part.data), 2 * X[part.index])


@psc.kernel
def centred(x: f32["n@data d"]) -> f32["n@data d"]:
    return x - np.mean(x, axis=0)


KEY = b"k" * 32


def test_what_was_lowered_is_for_one_device_and_exports_without_a_mesh() -> None:
    compiled = centred.lower(n=8, d=8).compile()
    loaded = psc.load(centred.export(None, n=8, d=8, key=KEY), trust=KEY)
    for call in (compiled, loaded):
        with MESH:
            assert np.array_equal(call(X), X - X.mean(0))
            with pytest.raises(psc.PlacementError, match="exported with `mesh=`"):
                call(MESH.put(X, "n@data d"))
            assert np.array_equal(centred(MESH.put(X, "n@data d")), X - X.mean(0))


@psc.kernel(donate="x")
def stepped(x: f32["n@data d@model"], key: psc.Key) -> tuple[f32["n@data d@model"], f32["d"]]:
    rows = psc.place(x + psc.random.normal(key, x.shape), "n d@data")
    return x - np.mean(x, axis=0), np.sum(rows, axis=0)


@psc.kernel
def roots(a: f32["n@data 2 2"]) -> f32["n@data 2 2"]:
    return np.linalg.cholesky(a)


def test_an_export_for_a_mesh_runs_on_it_alone() -> None:
    mesh, key = {"data": 4, "model": 2}, psc.random.key(1)
    data = stepped.export(None, {"n": 8}, {"n": 16}, d=8, mesh=mesh, key=KEY)
    loaded = psc.load(data, trust=KEY)
    wanted = stepped(X, key)
    for _ in range(2):
        with psc.Mesh(**mesh) as here:
            x = here.put(X, "n@data d@model")
            found = loaded(x, key)
            assert x.is_deleted()
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
        assert str(found[0].placement) == "_@data _@model"
    places = "n=8, d=8 on Mesh(data=4, model=2); n=16, d=8 on Mesh(data=4, model=2)"
    with pytest.raises(psc.ArgumentError, match="was not exported for n=8, d=8; it was") as no:
        loaded(X, key)
    assert places in str(no.value)
    with psc.Mesh(model=2, data=4), pytest.raises(psc.ArgumentError, match=r"on Mesh\(model=2, "):
        loaded(X, key)
    matrices = np.tile(np.eye(2, dtype=np.float32) * 4, (8, 1, 1))
    lapack = psc.load(roots.export(n=8, target="cpu", mesh={"data": 8}, key=KEY), trust=KEY)
    with psc.Mesh(data=8):
        assert np.array_equal(lapack(matrices), matrices / 2)


@pytest.mark.parametrize(
    ("mesh", "message"),
    [
        ({}, "a mesh has at least one axis"),
        ({"data": 0}, "a positive integer"),
        ({"data": 3}, "no 3 equal pieces"),
    ],
)
def test_meshes_for_which_nothing_is_exported(mesh: dict[str, int], message: str) -> None:
    with pytest.raises(psc.ArgumentError, match=message):
        centred.export(n=8, d=8, mesh=mesh, key=KEY)
    with pytest.raises(psc.ArgumentError, match="names no mesh axis"):
        doubled.export(n=8, d=8, mesh={"data": 2}, key=KEY)


def test_an_array_on_one_device_has_one_piece() -> None:
    array: Any = doubled(X)
    assert array.placement == psc.Placement.whole(2)
    (shard,) = array.shards
    assert (shard.device, shard.index) == (psc.Device("cpu"), (slice(0, 8), slice(0, 8)))
    assert np.array_equal(shard.data, array)


@pytest.mark.parametrize("is_piece", [False, True])
def test_deleted_arrays(is_piece: bool) -> None:
    array = MESH.put(X, "n@data d")
    (array.shards[5].data if is_piece else array).delete()
    uses: tuple[Callable[[], Any], ...] = (
        lambda: np.asarray(array),
        lambda: array.shards,
        lambda: MESH.put(array, "n@data d"),
        lambda: MESH.put(array, "n d"),
    )
    for use in uses:
        with pytest.raises(psc.PlacementError, match="the array was deleted, or donated"):
            use()
    assert repr(array) == "pscdsl.Array(<donated>, shape=(8, 8), dtype=float32)"
