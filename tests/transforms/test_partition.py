"""A program on the devices of a mesh gives what it gives as a whole.

The devices are threads that run the NumPy meaning in step (`devices`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32
from pscdsl._src.analysis.cost import function_sent
from pscdsl._src.analysis.verify import verify
from pscdsl._src.ir.builder import Value
from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import Block, Equation, Evaluator, Function, Var, evaluate, walk
from pscdsl._src.primitives.associative import AssociativeScan, MapReduce
from pscdsl._src.primitives.collectives import SENDING, AllGather, PlaceAlong
from pscdsl._src.primitives.elementwise import add, multiply
from pscdsl._src.primitives.reductions import Cumulative, LinearRecurrence
from pscdsl._src.primitives.shaping import Reshape
from pscdsl._src.transforms.partition import partition, pieces_along
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.placements import AxesDiffer, UnequalPieces
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, parse
from pscdsl.typing.placements import Placement
from pscdsl.typing.signatures import Choice
from tests.primitives.test_primitive_laws import COVERED, ROWS, _close  # pyright: ignore[reportPrivateUsage]
from tests.support.law_rows import Row
from tests.support.law_rows_b import block
from tests.transforms.devices import run

MESH = {"data": 2, "model": 2}
COLLECTIVES = frozenset(
    ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "device_place", "own_part")
)


def _doubled(row: Row) -> Row:
    """The row with even numbers for its sizes, where its facts admit them."""
    env = {name: size * 2 for name, size in row.env().items()}
    facts = [fact for fact in row.facts.facts if fact.names() <= env.keys()]
    return replace(row, sizes=env) if all(fact.holds(env) for fact in facts) else row


def _placements(row: Row, rng: np.random.Generator) -> Iterator[tuple[Placement, ...]]:
    """Each axis of each operand cut alone, then several at random."""
    spots = [
        (n, axis)
        for n, type_ in enumerate(row.operands)
        for axis, size in enumerate(type_.shape)
        if isinstance(size, Dim)
    ]

    def cut(chosen: Sequence[tuple[tuple[int, int], str]]) -> tuple[Placement, ...]:
        axes: list[list[tuple[str, ...]]] = [[()] * type_.rank for type_ in row.operands]
        for (n, axis), name in chosen:
            if all(name not in along for along in axes[n]):
                axes[n][axis] = (*axes[n][axis], name)
        return tuple([Placement(tuple(each)) for each in axes])

    for spot in spots:
        yield cut([(spot, "data")])
    for _ in range(2 if spots else 0):
        chosen = [(spot, name) for spot, name in product(spots, MESH) if rng.random() < 0.4]
        yield cut(chosen)


def _program(row: Row) -> Function:
    inputs = tuple([Var(each) for each in row.operands])
    types = row.primitive.type_rule(row.facts, *row.operands)
    equation = Equation(row.primitive, inputs, tuple([Var(each) for each in types]))
    block = Block(inputs, (equation,), equation.outputs)
    return Function("law", tuple(row.env()), row.facts, block)


@pytest.mark.parametrize("name", [name for name in COVERED if name not in COLLECTIVES])
def test_a_primitive_on_pieces_gives_the_whole(name: str) -> None:
    rng = np.random.default_rng(0)
    of_shapes = {(str(x.primitive), *[t.shape for t in x.operands]): x for x in ROWS[name]}
    for given in of_shapes.values():
        row = _doubled(given)
        operands = row.draw(np.random.default_rng(0))
        wanted = row.primitive.evaluate(Evaluator(row.env()), *operands)
        function = _program(row)
        for placements in _placements(row, rng):
            try:
                program = partition(function, placements, [None] * len(wanted), tuple(MESH))
                program.sizes(row.env(), MESH)
            except Failure as failure:
                if not all(isinstance(x, AxesDiffer | UnequalPieces) for x in failure.diagnostics):
                    raise
                continue
            results = run(program, operands, row.env(), MESH)
            for n, (got, want) in enumerate(zip(results, wanted, strict=True)):
                dtype = function.body.out_types[n].dtype
                if n in row.chosen:
                    got, want, dtype = np.abs(got), np.abs(want), dtype.real
                close = _close(row, dtype, got, want)
                assert np.all(close), (row, [str(p) for p in placements], got, want)


def _function(types: str, build: Callable[..., Sequence[Value]]) -> Function:
    body = block(types, build)
    return Function("program", ("n",), Assumptions(), body)


def test_a_power_of_a_size_is_cut_along_two_axes() -> None:
    n = parse("n")

    def build(x: Value) -> list[Value]:
        flat = PlaceAlong((("data", "model"),))(x)
        return [PlaceAlong((("model",),))(flat), Reshape((n * n, n))(flat)]

    function = _function("f64[n*n*n]", build)
    x = np.arange(64.0)
    for axes in ("data",), ("model",), ("data", "model"):
        placement = Placement((axes,))
        program = partition(function, [placement], [None, None], tuple(MESH))
        verify(program.function)
        for got, want in zip(run(program, [x], {"n": 4}, MESH), (x, x), strict=True):
            assert np.array_equal(got.reshape(64), want)


def _affine(a: Value, b: Value, c: Value, d: Value) -> list[Value]:
    return [multiply(a, c), add(multiply(b, c), d)]


def _both(x: Value, y: Value) -> list[Value]:
    return [x, y]


AFFINE = block("f64[3], f64[3], f64[3], f64[3]", _affine)
BOTH = block("f64[3], f64[3]", _both)
IN_ORDER: dict[str, tuple[Primitive, int]] = {
    "cumulative": (Cumulative("sum", 0), 1),
    "reversed": (Cumulative("maximum", 0, reverse=True), 1),
    "recurrence": (LinearRecurrence(0), 2),
    "prefixes": (AssociativeScan(AFFINE, 0, parse("n")), 2),
    "total": (MapReduce(BOTH, AFFINE, 0, 0, 0, parse("n")), 2),
}


@pytest.mark.parametrize("name", IN_ORDER)
def test_one_row_of_each_piece_is_sent(name: str) -> None:
    primitive, count = IN_ORDER[name]
    types = ", ".join(["f64[n 3]"] * count)
    function = _function(types, lambda *arrays: primitive.bind(*arrays))
    operands = [np.random.default_rng(n).uniform(-1, 1, (24, 3)) for n in range(count)]
    wanted = evaluate(function, {"n": 24}, operands)
    for axes in ("data",), ("data", "model"):
        placements = [Placement((axes, ()))] * count
        program = partition(function, placements, [None] * len(wanted), tuple(MESH))
        gathered = [
            each.outputs[0].type.shape[0]
            for each in walk(program.function.body)
            if isinstance(each.primitive, SENDING)
        ]
        assert gathered
        assert {*gathered} == {pieces_along(axes)}
        found = run(program, operands, {"n": 24}, MESH)
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12)


@psc.kernel
def scaled(x: f32["n@data d"], y: f32["d"]) -> f32["d"]:
    return np.sum(x, axis=0) * y


def test_parts_are_added_before_they_are_multiplied() -> None:
    """A factor may be infinite where a part is zero, or make a part infinite."""
    program = scaled.reading.definition.partitioned(scaled.ir(), Choice(), ("data",))
    x = np.array([[1, 3e38, 1], [0, -3e38, 0]], np.float32)
    y = np.array([np.inf, 10, 2], np.float32)
    (found,) = run(program, (x, y), {"n": 2, "d": 3}, {"data": 2})
    np.testing.assert_array_equal(found, np.array([np.inf, 0, 2], np.float32))


@psc.kernel
def recurrent(w: f32["h h@model"], xs: f32["t h"]) -> f32["h"]:
    def body(state: f32["h"], x: f32["h"]) -> tuple[f32["h"], tuple[()]]:
        inner = psc.fori_loop(0, 3, lambda _, y: y @ psc.place(2 * w, "h h"), state)
        return np.tanh(inner @ psc.place(w, "h h") + x), ()

    return psc.scan(body, np.zeros(w.shape[0], np.float32), xs)[0]


def test_what_all_steps_need_is_sent_once() -> None:
    program = recurrent.reading.definition.partitioned(recurrent.ir(), Choice(), ("model",))
    verify(program.function)
    assert function_sent(program.function) == {"model": parse("8*h*h")}
    random = np.random.default_rng(0)
    operands = [random.uniform(-1, 1, shape).astype(np.float32) for shape in ((4, 4), (5, 4))]
    (found,) = run(program, operands, {"h": 4, "t": 5}, {"model": 2})
    np.testing.assert_allclose(found, recurrent(*operands), rtol=1e-5)


@psc.kernel
def moved(x: f32["n@data d"]) -> f32["n@data d"]:
    z = x + 1
    y = psc.place(z, "n d@data")
    return psc.place(y, "n@data d") * psc.place(z, "n d") * np.cumsum(psc.place(y, "n d"), 0)


def test_what_devices_have_in_two_placements_is_not_sent_again() -> None:
    program = moved.reading.definition.partitioned(moved.ir(), Choice(), ("data",))
    kinds = [type(each.primitive) for each in walk(program.function.body)]
    assert [kind for kind in kinds if kind in SENDING] == [AllGather]
    x = np.random.default_rng(0).uniform(-1, 1, (4, 6)).astype(np.float32)
    (found,) = run(program, [x], {"n": 4, "d": 6}, {"data": 2})
    np.testing.assert_allclose(found, moved(x), rtol=1e-5)
