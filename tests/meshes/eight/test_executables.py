"""Programs over a mesh: collectives, donation, the disk, and what is refused before a call."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32
from pscdsl._src.xla.mesh_executable import MeshExecutable, mesh_executable
from pscdsl._src.xla.runtime.executable import CompilationFailed
from pscdsl.typing.placements import Placement

MESH = psc.Mesh(data=4, model=2)
X = np.arange(64, dtype=np.float32).reshape(8, 8)
ADD = """({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %t = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %t : tensor<f32>
})"""
ALONG_DATA = "dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>"
"""The devices that differ in `data` alone."""
RING = "dense<[[0, 2], [2, 4], [4, 6], [6, 0], [1, 3], [3, 5], [5, 7], [7, 1]]> : tensor<8x2xi64>"
BLOCKS = X.reshape(4, 2, 2, 4)
"""data, row, model, column."""


def tensor(*shape: int) -> str:
    return "tensor<" + "".join(f"{size}x" for size in shape) + "f32>"


def module(operation: str, result: str, argument: str = "2x4", attributes: str = "") -> str:
    taken = f"tensor<{argument}xf32>"
    return f"""func.func public @main(%l: {taken} {attributes}) -> {result} {{
        %s = {operation} : ({taken}) -> {result}
        return %s : {result}
    }}"""


def compiled(
    text: str, arguments: str = "n@data d@model", results: str = "n@data d@model", **options: Any
) -> MeshExecutable:
    mesh = options.pop("mesh", MESH)
    return mesh_executable(
        text,
        mesh,
        [Placement.parse(each) for each in arguments.split(";")],
        [Placement.parse(each) for each in results.split(";")],
        **options,
    )


def all_reduce(attributes: str = "") -> str:
    operation = f'"stablehlo.all_reduce"(%l) {ADD} {{replica_groups = {ALONG_DATA}}}'
    return module(operation, tensor(2, 4), attributes=attributes)


COLLECTIVES: dict[str, tuple[str, tuple[int, int], str, Any]] = {
    "all_reduce": (
        f'"stablehlo.all_reduce"(%l) {ADD} {{replica_groups = {ALONG_DATA}}}',
        (2, 4),
        "n d@model",
        BLOCKS.sum(0).reshape(2, 8),
    ),
    "all_gather": (
        f'"stablehlo.all_gather"(%l) {{all_gather_dim = 0 : i64, replica_groups = {ALONG_DATA}}}',
        (8, 4),
        "n d@model",
        X,
    ),
    "reduce_scatter": (
        f'"stablehlo.reduce_scatter"(%l) {ADD} '
        f"{{scatter_dimension = 1 : i64, replica_groups = {ALONG_DATA}}}",
        (2, 1),
        "n d@model@data",
        BLOCKS.sum(0).reshape(2, 8),
    ),
    "collective_permute": (
        f'"stablehlo.collective_permute"(%l) {{source_target_pairs = {RING}}}',
        (2, 4),
        "n@data d@model",
        np.roll(X, 2, 0),
    ),
    "all_to_all": (
        '"stablehlo.all_to_all"(%l) {split_dimension = 1 : i64, concat_dimension = 0 : i64, '
        f"split_count = 4 : i64, replica_groups = {ALONG_DATA}}}",
        (8, 1),
        "n d@model@data",
        X,
    ),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives(name: str) -> None:
    operation, piece, placement, wanted = COLLECTIVES[name]
    program = compiled(module(operation, tensor(*piece)), results=placement)
    for _ in range(3):
        (result,) = program.run([X])
        assert result.placement == Placement.parse(placement)
        assert np.array_equal(result, wanted)
        for shard in result.shards:  # on the devices along which it is whole, too
            assert np.array_equal(shard.data, wanted[shard.index])


@pytest.mark.parametrize("place", [slice(0, 4), slice(4, 8), slice(None, None, -2)])
def test_some_of_the_devices_in_any_order(place: slice) -> None:
    mesh = psc.Mesh(psc.devices()[place], data=4)
    text = module(
        '"stablehlo.all_gather"(%l) {all_gather_dim = 0 : i64, '
        "replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}",
        tensor(8, 8),
        "2x8",
    )
    (result,) = compiled(text, "n@data d", "n d", mesh=mesh).run([mesh.put(X, "n@data d")])
    assert np.array_equal(result, X)


def test_one_device() -> None:
    mesh = psc.Mesh(data=1)
    text = module("stablehlo.negate %l", tensor(8, 8), "8x8").replace("(%l)", "%l")
    text = text.replace(" : (tensor<8x8xf32>) -> tensor<8x8xf32>\n", " : tensor<8x8xf32>\n", 1)
    program = compiled(text, "n@data d", "n d", mesh=mesh)
    assert np.array_equal(program.run([mesh.put(X, "n d")])[0], -X)
    assert np.array_equal(memoryview(program.run([X])[0]), -X)


def test_numbers_are_copied_to_all_devices() -> None:
    text = """func.func public @main(%x: tensor<2x8xf32>, %r: tensor<f32>) -> tensor<2x8xf32> {
        %b = stablehlo.broadcast_in_dim %r, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
        %y = stablehlo.multiply %x, %b : tensor<2x8xf32>
        return %y : tensor<2x8xf32>
    }"""
    program = compiled(text, "n@data d;", "n@data d")
    assert np.array_equal(program.run([MESH.put(X, "n@data d"), 0.5])[0], X / 2)
    assert np.array_equal(program.run([X, np.float32(0.5)])[0], X / 2)


def test_the_text_names_the_collectives_and_the_costs_are_those_of_a_device() -> None:
    program = compiled(all_reduce(), results="n d@model")
    assert program.text().count(" all-reduce(") == 1
    assert program.memory()["arguments"] == 2 * 4 * 4


def test_donated_arguments_give_their_memory() -> None:
    program = compiled(all_reduce("{tf.aliasing_output = 0 : i32}"))
    assert program.donated == (0,)
    array = MESH.put(X, "n@data d@model")
    before = [each.data.unsafe_buffer_pointer() for each in array.shards]
    (result,) = program.run([array])
    assert [each.data.unsafe_buffer_pointer() for each in result.shards] == before
    assert repr(array).startswith("pscdsl.Array(<donated>")
    for _ in range(2):
        with pytest.raises(psc.PlacementError, match="argument 0 was deleted, or donated"):
            program.run([array])
    with pytest.raises(psc.PlacementError, match="was deleted, or donated"):
        np.asarray(array)
    assert np.array_equal(program.run([X])[0], np.tile(BLOCKS.sum(0).reshape(2, 8), (4, 1)))


SUM = """func.func public @main(
    %x: tensor<2x4xf32> {tf.aliasing_output = 0 : i32}, %y: tensor<2x4xf32>
) -> tensor<2x4xf32> {
    %z = stablehlo.add %x, %y : tensor<2x4xf32>
    return %z : tensor<2x4xf32>
}"""


def test_a_donated_array_that_is_given_twice() -> None:
    program = compiled(SUM, "n@data d@model;n@data d@model", names=("x", "y"))
    array = MESH.put(X, "n@data d@model")
    with pytest.raises(psc.PlacementError, match="argument `x` is the same array as `y`"):
        program.run([array, array])
    assert np.array_equal(program.run([array, MESH.put(X, "n@data d@model")])[0], 2 * X)


@psc.kernel
def doubled(x: f32["n d"]) -> f32["n d"]:
    return x + x


@cache
def gathering() -> MeshExecutable:
    return compiled(all_reduce(), results="n d@model", names=("x",))


def deleted(is_piece: bool) -> Any:
    array = MESH.put(X, "n@data d@model")
    (array.shards[5].data if is_piece else array).delete()
    return array


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "placed otherwise": (
        lambda: MESH.put(X, "n@model d"),
        r"argument `x` lies `_@model _` on Mesh\(data=4, model=2\), and is wanted `_@data _@model`",
    ),
    "whole": (lambda: MESH.put(X, "n d"), "lies `_ _` on Mesh"),
    "on one device": (lambda: doubled(X), "argument `x` lies on one device, .*0.*, and is wanted"),
    "a piece": (
        lambda: psc.Mesh(psc.devices()[3:4], data=1).put(X, "n d").shards[0].data,
        "lies on one device, .*3",
    ),
    "in another order": (
        lambda: psc.Mesh(psc.devices()[::-1], data=4, model=2).put(X, "n@data d@model"),
        "lies on a mesh of other devices, or in another order: cpu:7, cpu:6",
    ),
    "on another mesh": (
        lambda: psc.Mesh(data=2, model=4).put(X, "n@data d@model"),
        r"on Mesh\(data=2, model=4\), on another mesh, and is wanted",
    ),
    "with axes in another order": (
        lambda: psc.Mesh(model=2, data=4).put(X, "n@data d@model"),
        "on another mesh",
    ),
    "of another dtype": (
        lambda: MESH.put(X.astype("f8"), "n@data d@model"),
        r"is float64\[8,8\], expected float32\[8,8\]",
    ),
    "of another shape": (
        lambda: MESH.put(X[:4], "n@data d@model"),
        r"is float32\[4,8\], expected float32\[8,8\]",
    ),
    "deleted": (lambda: deleted(False), "argument `x` was deleted, or donated"),
    "one piece deleted": (lambda: deleted(True), "argument `x` was deleted, or donated"),
    "of NumPy, another dtype": (lambda: X.astype("f8"), "is float64, expected float32"),
    "of NumPy, another shape": (lambda: X[:4], r"is \(4, 8\), expected \(8, 8\)"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_arguments_are_refused_before_jaxlib_has_them(what: str) -> None:
    make, message = WRONG[what]
    program = gathering()
    with pytest.raises(ValueError, match=message):
        program.run([make()])
    if not isinstance(value := make(), np.ndarray):
        with pytest.raises(ValueError, match=message):
            program.execute([value])
    assert np.array_equal(program.run([X])[0], BLOCKS.sum(0).reshape(2, 8))


def test_wrong_numbers_of_arguments() -> None:
    for call in (gathering().run, gathering().execute):
        with pytest.raises(ValueError, match="0 arguments for 1 parameters"):
            call([])
        with pytest.raises(ValueError, match="2 arguments for 1 parameters"):
            call([X, X])
    with pytest.raises(TypeError, match="argument `x` is no array on devices"):
        gathering().execute([X])
    with pytest.raises(TypeError, match="argument `x` is a masked array"):
        gathering().run([np.ma.array(X)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: compiled(all_reduce(), "n@data d;n"), "2 placements for 1 arguments"),
        (lambda: compiled(all_reduce(), "n@data"), "`_@data` is given for pieces"),
        (lambda: compiled(all_reduce(), "n@rows d"), "names the mesh axis `rows`"),
        (
            lambda: compiled(
                f"module attributes {{mhlo.num_replicas = 4 : i32}} {{{all_reduce()}}}"
            ),
            "the module has mhlo.num_replicas = 4 : i32, not 8",
        ),
        (
            lambda: compiled(
                f"module attributes {{mhlo.num_partitions = 8 : i32}} {{{all_reduce()}}}"
            ),
            "mhlo.num_partitions",
        ),
    ],
)
def test_placements_that_do_not_fit_the_module(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_modules_that_do_not_compile() -> None:
    text = module("stablehlo.custom_call @nobody(%l)", tensor(2, 4))
    with pytest.raises(CompilationFailed, match="nobody"):
        compiled(text)


def test_the_disk_has_programs_by_the_shape_of_their_mesh(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PSCDSL_CACHE", str(tmp_path))
    text = module(
        f'"stablehlo.all_reduce"(%l) {ADD} '
        "{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}",
        tensor(2, 8),
        "2x8",
    )
    sources: list[str] = []
    for mesh in (
        psc.Mesh(data=4),
        psc.Mesh(data=4),
        psc.Mesh(psc.devices()[:3:-1], data=4),
        psc.Mesh(rows=4),
        psc.Mesh(data=2, model=2),
    ):
        axis = "@".join(mesh.axes)
        program = compiled(text, f"n@{axis} d", "n d", mesh=mesh)
        sources.append(program.source)
        assert np.array_equal(program.run([X])[0], X.reshape(4, 2, 8).sum(0))
    assert sources == ["compiled", "disk", "disk", "compiled", "compiled"]
    for path in tmp_path.rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[:-100])
    program = compiled(text, "n@data d", "n d", mesh=psc.Mesh(data=4))
    assert np.array_equal(program.run([X])[0], X.reshape(4, 2, 8).sum(0))


def test_threads_on_one_mesh_and_on_halves() -> None:
    halves = [psc.Mesh(psc.devices()[at : at + 4], data=4) for at in (0, 4)]
    text = module(
        f'"stablehlo.all_reduce"(%l) {ADD} '
        "{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}",
        tensor(2, 8),
        "2x8",
    )
    programs = [
        (gathering(), BLOCKS.sum(0).reshape(2, 8)),
        *[(compiled(text, "n@data d", "n d", mesh=m), X.reshape(4, 2, 8).sum(0)) for m in halves],
    ]
    wrong: list[int] = []

    def work(at: int) -> None:
        for step in range(50):
            program, wanted = programs[(at + step) % 3]
            if not np.array_equal(program.run([X])[0], wanted):
                wrong.append(at)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


def test_many_steps_of_eight_devices_end() -> None:
    """With as many threads as processors, XLA's collectives would block each other for ever."""
    size = 64
    text = f"""func.func public @main(
        %w: {tensor(size, size)} {{tf.aliasing_output = 0 : i32}}, %x: {tensor(16, size)}
    ) -> {tensor(size, size)} {{
        %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
            : ({tensor(16, size)}, {tensor(size, size)}) -> {tensor(16, size)}
        %g = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0]
            : ({tensor(16, size)}, {tensor(16, size)}) -> {tensor(size, size)}
        %s = "stablehlo.all_reduce"(%g) {ADD}
            {{replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>}}
            : ({tensor(size, size)}) -> {tensor(size, size)}
        %c = stablehlo.constant dense<1.0e-5> : {tensor(size, size)}
        %d = stablehlo.multiply %s, %c : {tensor(size, size)}
        %r = stablehlo.subtract %w, %d : {tensor(size, size)}
        return %r : {tensor(size, size)}
    }}"""
    program = compiled(text, "n d;n@data@model d", "n d")
    random = np.random.default_rng(0)
    x = random.normal(size=(128, size)).astype(np.float32)
    host: Any = random.normal(size=(size, size)).astype(np.float32)
    w, rows = MESH.put(host, "n d"), MESH.put(x, "n@data@model d")
    for _ in range(100):
        (w,) = program.run([w, rows])
        host = host - np.float32(1e-5) * (x.T @ (x @ host))
    assert np.allclose(w, host, atol=1e-4)
    assert os.environ.get("PJRT_NPROC") is None
