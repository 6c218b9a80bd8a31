"""Devices send the bytes that are predicted, whatever the elements are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import pscdsl as psc
from pscdsl._src.interpreters.replay import closed
from pscdsl._src.ir.builder import Value
from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import Function, evaluate
from pscdsl._src.primitives.collectives import AllGather, ReduceScatter
from pscdsl._src.primitives.fft import Fft
from pscdsl._src.primitives.reductions import Reduce
from pscdsl._src.primitives.shaping import Reshape, Rotate
from pscdsl._src.targets.pipeline import lower_module
from pscdsl._src.transforms.partition import partition
from pscdsl._src.xla.mesh_executable import mesh_executable
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.dims import parse
from pscdsl.typing.placements import Placement
from tests.support.law_rows import array_types
from tests.support.law_rows_b import block
from tests.support.sent import compiled, emitted, predicted

MESH = psc.Mesh(data=4)
SIZES = {"n": 8, "d": 12}
DEVICES = parse("data")
INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
FLOATS = ("bf16", "f16", "f32", "f64")
NUMBERS = (*INTEGERS, *FLOATS, "c64", "c128")


def itself(x: Value) -> Sequence[Value]:
    return [x]


def sums(x: Value) -> Sequence[Value]:
    return [Reduce("sum", (0,))(x)]


def maxima(x: Value) -> Sequence[Value]:
    return [Reduce("maximum", (0,))(x)]


def parities(x: Value) -> Sequence[Value]:
    return [Reduce("xor", (0,))(x)]


def next_pieces(x: Value) -> Sequence[Value]:
    n, d = x.shape
    pieces = Reshape((DEVICES, n // DEVICES, d))(x)
    return [Reshape((n, d))(Rotate(0, 3)(pieces))]


PROGRAMS: dict[str, tuple[str, Callable[[Value], Sequence[Value]], Sequence[str]]] = {
    "all_gather": ("n d", itself, ("bool", *NUMBERS)),
    "all_to_all": ("n d@data", itself, ("bool", *NUMBERS)),
    "all_reduce": ("d", sums, NUMBERS),
    "all_reduce of maxima": ("d", maxima, (*INTEGERS, *FLOATS)),
    "all_gather of bits": ("d", parities, ("bool", *INTEGERS)),
    "reduce_scatter": ("d@data", sums, NUMBERS),
    "collective_permute": ("n@data d", next_pieces, ("bool", *NUMBERS)),
}


@pytest.mark.parametrize(
    ("name", "dtype"), [(name, each) for name in PROGRAMS for each in PROGRAMS[name][2]]
)
def test_bytes_of_each_dtype(name: str, dtype: str) -> None:
    result, build, _ = PROGRAMS[name]
    facts = Assumptions((Fact("==", parse("n") % DEVICES, 0),))
    types = array_types(f"{dtype}[n d]")
    body = closed(facts, types, lambda _, operands: build(*operands))
    function = Function("f", ("n", "d", "data"), facts, body, mesh=("data",))
    placed = partition(
        function, [Placement.parse("n@data d")], [Placement.parse(result)], ("data",)
    )
    own = placed.sizes(SIZES, MESH.axes)
    module = lower_module(placed.function, own)
    wanted = predicted(placed.function.body, own)
    assert [kind for kind, _ in wanted] == [name.partition(" ")[0]]
    assert emitted(module) == wanted
    program = mesh_executable(module, MESH, placed.arguments, placed.results)
    assert compiled(program.text()) == predicted(placed.function.body, own, on_cpu=True)
    x = (np.arange(96).reshape(8, 12) % 7).astype(program.inputs[0].dtype)
    (found,) = program.run([MESH.put(x, "n@data d")])
    (whole,) = evaluate(function, {**SIZES, **MESH.axes}, [x])
    assert np.array_equal(found, whole)


OVER = ("data",), (("data", 4),)


@pytest.mark.parametrize(
    ("move", "result", "added"),
    [
        (AllGather(*OVER, 1, 16), "a n m", 1),
        (ReduceScatter(*OVER, 1, 1), "a n@data m", 4),
    ],
)
def test_spectra_move_along_an_inner_axis(move: Primitive, result: str, added: int) -> None:
    """XLA's `fft` on CPUs takes only arrays whose first axis is the major one in memory."""

    def build(x: Value) -> Sequence[Value]:
        return move.bind(Fft("fft")(x))

    function = Function("f", (), Assumptions(), block("c64[3 4 8]", build))
    placements = [Placement.parse(each) for each in ("a n@data m", result)]
    module = lower_module(function, {})
    program = mesh_executable(module, MESH, placements[:1], placements[1:])
    x = np.random.default_rng(0).normal(size=(3, 16, 8)).astype(np.complex64)
    (found,) = program.run([x])
    wanted = np.fft.fft(x).reshape(3, added, -1, 8).sum(1)
    assert np.allclose(found, wanted, rtol=1e-4, atol=1e-4)
