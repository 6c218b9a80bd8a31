"""Indexing and functional update against NumPy."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pscdsl._src.ir.builder import Program
from pscdsl._src.ir.program import evaluate_block
from pscdsl._src.language.meanings import MEANINGS
from pscdsl.numpy.indexing import getitem
from pscdsl.numpy.updating import update
from pscdsl.typing import dims
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.element_types import DtypesDiffer, ScalarDoesNotFit
from pscdsl.typing.codes.shapes import (
    DataDependentShape,
    IndexOutOfRange,
    NotAnIndex,
    ShapesDoNotBroadcast,
    TooManyIndices,
    UnprovenSize,
)
from pscdsl.typing.diagnostics import Diagnostic, Failure
from pscdsl.typing.dims import name
from pscdsl.typing.dtypes import I32, KEY
from tests.support.numpy_harness import (
    S,
    Static,
    build,
    run,
    run_bounded,
    run_compiled,
    run_symbolic,
)

pytestmark = pytest.mark.quick_code(but=4)

FEW = settings(max_examples=150, deadline=None)
X = np.arange(60.0, dtype=np.float32).reshape(3, 4, 5)


def counted(shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
    return np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)


def agree(wanted: Any, got: Any) -> None:
    assert got.shape == wanted.shape
    np.testing.assert_array_equal(got, wanted)


@st.composite
def slices(draw: Any, size: int) -> slice:
    bound = st.none() | st.integers(-size - 2, size + 2)
    step = draw(st.none() | st.sampled_from([-3, -2, -1, 1, 2, 3]))
    return slice(draw(bound), draw(bound), step)


@st.composite
def cases(draw: Any, unique: bool = False) -> tuple[Any, tuple[Any, ...]]:
    """An array and an index for it that NumPy accepts."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    common = draw(st.sampled_from([(), (1,), (2,), (2, 1), (2, 3), (0,)]))
    index: list[Any] = []
    used = draw(st.integers(0, len(shape)))
    dots = draw(st.integers(-1, used))
    several = draw(st.sampled_from(["array", "list"]))
    axis = 0
    for position in range(used):
        if position == dots:
            index.append(Ellipsis)
            axis = len(shape) - (used - position)
        size = shape[axis]
        axis += 1
        if draw(st.integers(0, 5)) == 0:
            index.append(None)
        kinds = ["slice", "int", "scalar", *(() if unique else (several,))]
        kind = draw(st.sampled_from(kinds))
        place = st.integers(-size, size - 1)
        if kind == "slice":
            index.append(draw(slices(size)))
        elif kind == "int":
            index.append(draw(place))
        elif kind == "scalar":
            index.append(np.asarray(draw(place), draw(st.sampled_from(["i4", "i8", "i1"]))))
        elif kind == "list" and len(common) == 1 and common[0]:
            index.append(draw(st.lists(place, min_size=common[0], max_size=common[0])))
        else:
            own = common if draw(st.booleans()) else tuple(1 for _ in common)
            count = int(np.prod(own))
            places = draw(st.lists(place, min_size=count, max_size=count))
            dtype = draw(st.sampled_from([np.int32, np.int64]))
            index.append(np.asarray(places, dtype).reshape(own))
    return counted(tuple(shape)), tuple(index)


@FEW
@given(cases())
def test_getitem(case: tuple[Any, tuple[Any, ...]]) -> None:
    x, index = case
    agree(x[index], run(getitem, x, index))
    agree(x[index], run_bounded(getitem, x, index))
    if not any(isinstance(each, int | list) for each in index):
        agree(x[index], run_symbolic(getitem, x, index))


@FEW
@given(cases(unique=True), st.sampled_from(["set", "add", "multiply", "minimum", "maximum"]))
def test_update_of_single_places(case: tuple[Any, tuple[Any, ...]], combine: str) -> None:
    x, index = case
    check_update(x, index, combine)


@FEW
@given(cases(), st.sampled_from(["add", "multiply", "minimum", "maximum"]))
def test_update_combines_repeated_places(case: tuple[Any, tuple[Any, ...]], combine: str) -> None:
    x, index = case
    check_update(x, index, combine)


def check_update(x: Any, index: tuple[Any, ...], combine: str) -> None:
    value = 100 + x[index]
    ufunc = {
        "add": np.add,
        "multiply": np.multiply,
        "minimum": np.minimum,
        "maximum": np.maximum,
    }.get(combine)
    wanted = x.copy()
    if ufunc is None:
        wanted[index] = value
    else:
        ufunc.at(wanted, index, value)
    agree(wanted, run("pscdsl.update", x, index, value, combine=combine))

    def program(x: Any, index: Any) -> Any:
        return update.apply(x.builder, (x, index, getitem(x, index) + 100, combine), {})

    agree(wanted, run_bounded(program, x, index))


@pytest.mark.parametrize(
    "index",
    [
        [0, 2],
        [[0, 1], [2, -1]],
        (slice(None), [1, 1], slice(1, 3)),
        ([0, 1], slice(None), [0, 1]),
        ([0, 1], None, [0, 1]),
        (0, slice(None), [0, 1]),
        (Ellipsis, [0, 4]),
        ([2], Ellipsis, [0, 4]),
        ([2, 1], [0, 1], Ellipsis, [0, 4]),
        (slice(None, None, -2), slice(3, 0, -2), [0]),
        None,
        Ellipsis,
        (),
        -1,
    ],
)
def test_forms_of_an_index(index: Any) -> None:
    agree(X[index], run(getitem, X, index))
    agree(X[index], run_bounded(getitem, X, index))
    agree(X[index], run_compiled(getitem, X, index))
    wanted = X.copy()
    wanted[index] = 7
    agree(wanted, run("pscdsl.update", X, index, 7))
    agree(wanted, run_bounded("pscdsl.update", X, index, 7))
    agree(wanted, run_compiled("pscdsl.update", X, index, 7))


def test_a_scalar_takes_new_axes() -> None:
    agree(np.full((1, 1), 3, np.float32), run(getitem, np.float32(3), (None, None)))
    agree(np.asarray(np.float32(3)), run(getitem, np.float32(3), ()))


def test_an_empty_array() -> None:
    x = np.zeros((0, 3), np.float32)
    agree(x[1:], run(getitem, x, slice(1, None)))
    agree(x[::-2, 1], run(getitem, x, (slice(None, None, -2), 1)))
    agree(x, run("pscdsl.update", x, slice(0, 5), 1))
    assert rejected(UnprovenSize, getitem, x, np.int32(0))
    assert rejected(IndexOutOfRange, getitem, x, 0)


def test_symbolic_indices() -> None:
    agree(X[2], run_symbolic(lambda x, n: getitem(x, n - 1), X, S(3)))
    agree(X[1:], run_symbolic(lambda x, n: getitem(x, slice(1, n)), X, S(3)))
    agree(X[:3], run_symbolic(lambda x, n: getitem(x, slice(None, 2 * n)), X, S(3)))
    agree(X[-3:], run_symbolic(lambda x, n: getitem(x, slice(-n, None)), X, S(3)))
    agree(X[::-1], run_symbolic(lambda x, n: getitem(x, slice(n, None, -1)), X, S(3)))
    agree(X[:2], run_symbolic(getitem, X, slice(None, 2)))
    agree(X[[0, 2]], run_symbolic(lambda x, n: getitem(x, [0, n - 1]), X, S(3)))
    agree(X[:, 2:10], run_symbolic(getitem, X, (slice(None), slice(2, 10))))
    agree(X[:, 0], run_symbolic(getitem, X, (slice(None), 0)))


def test_computed_indices_are_clamped() -> None:
    for place, wanted in ((7, 2), (-1, 2), (-3, 0), (-9, 0), (1, 1)):
        agree(X[wanted], run(getitem, X, np.int32(place)))
        agree(X[[wanted]], run(getitem, X, np.array([place])))
        agree(X[wanted], run_compiled(getitem, X, np.int64(place)))
    agree(X[2], run(getitem, X, np.uint8(200)))


def test_places_in_u64_count_as_i64() -> None:
    places = np.array([0, 1, 2], np.uint64) - np.uint64(1)
    pair = (places, places[::-1])
    for runner in (run, run_compiled):
        agree(X[places], runner(getitem, X, places))
        agree(X[pair], runner(getitem, X, pair))
        agree(X[:, places], runner(getitem, X, (slice(None), places)))
        agree(np.take(X, places, 1), runner("numpy.take", X, places, 1))
        for combine, ufunc in (("add", np.add), ("multiply", np.multiply)):
            wanted = X.copy()
            ufunc.at(wanted, places, np.float32(3))
            agree(wanted, runner("pscdsl.update", X, places, 3.0, combine))
        agree(X[-1], runner(getitem, X, np.uint64(2**64 - 1)))


def test_an_open_array_stays_open() -> None:
    def program(x: Any) -> Any:
        return x + getitem(call("arange", x.builder, 5), slice(1, 3))

    agree(np.array([1.5, 2.5]), run(program, np.array([0.5, 0.5])))


def test_an_open_array_is_updated() -> None:
    def program(value: Any) -> Any:
        return update.apply(value.builder, (call("zeros", value.builder, 4), 1, value), {})

    agree(np.array([0, 2.5, 0, 0]), run(program, np.float64(2.5)))

    def open_value(x: Any) -> Any:
        made = update.apply(x.builder, (call("zeros", x.builder, 3), 0, 0.1), {})
        return x + made

    agree(np.array([0.1, 0, 0]), run(open_value, np.zeros(3)))


def test_keys() -> None:
    here = Program().current
    keys, index = here.parameter(ArrayType(KEY, (4,))), here.parameter(ArrayType(I32, (2,)))
    results: list[Any] = [
        getitem(keys, 1),
        getitem(keys, slice(None, None, -2)),
        getitem(keys, index),
        update.apply(here, (keys, index, getitem(keys, slice(0, 2))), {}),
    ]
    block, _ = here.finish((keys, index), results)
    words = np.arange(8, dtype=np.uint32).reshape(4, 2)
    got = evaluate_block(block, {}, (words, np.array([3, 0], np.int32)))
    changed = words.copy()
    changed[[3, 0]] = words[0:2]
    for wanted, one in zip((words[1], words[::-2], words[[3, 0]], changed), got, strict=True):
        np.testing.assert_array_equal(one, wanted)


def call(of: str, here: Any, *args: Any) -> Any:
    meaning: Any = MEANINGS[f"numpy.{of}"]
    return meaning.apply(here, args, {})


def test_constants_as_indices() -> None:
    agree(X[[0, 2, -1]], run(getitem, X, Static(np.array([0, 2, -1]))))
    agree(X[[0, 2, -1]], run_bounded(getitem, X, Static(np.array([0, 2, -1]))))
    made = [0, 2, -1]
    agree(X[made], run(lambda x: getitem(x, call("array", x.builder, made)), X))
    assert rejected(IndexOutOfRange, lambda x: getitem(x, call("array", x.builder, [3])), X)
    agree(X[[True, False, True]], run(getitem, X, Static(np.array([True, False, True]))))
    agree(X[[True, False, True]], run(getitem, X, [True, False, True]))
    agree(X[:, [True, False, False, True]], run(getitem, X, np.s_[:, [True, False, False, True]]))


def test_masks_in_updates() -> None:
    mask = X % 2 == 0
    wanted = X.copy()
    wanted[mask] = -1
    agree(wanted, run("pscdsl.update", X, mask, -1))
    agree(wanted, run_symbolic("pscdsl.update", X, (mask,), -1))
    rows = np.array([True, False, True])
    value = counted((5,))
    wanted = X.copy()
    wanted[rows] += value
    agree(wanted, run("pscdsl.update", X, rows, value, combine="add"))
    assert rejected(DataDependentShape, "pscdsl.update", X, rows, counted((2, 4, 5)))


def test_update_broadcasts_the_value() -> None:
    wanted = X.copy()
    wanted[1] = np.ones((1, 1, 5))
    agree(wanted, run("pscdsl.update", X, 1, np.ones((1, 1, 5), np.float32)))
    assert rejected(ShapesDoNotBroadcast, "pscdsl.update", X, 1, counted((4,)))
    assert rejected(DtypesDiffer, "pscdsl.update", X, 1, 1 + counted((5,), np.float64))
    assert rejected(ScalarDoesNotFit, "pscdsl.update", counted((3,), np.int32), 1, 0.5)


def test_the_last_of_several_updates_counts() -> None:
    index, value = np.array([0, 1, 0]), np.array([1.0, 2.0, 3.0], np.float32)
    x = np.zeros(2, np.float32)
    agree(np.array([3.0, 2.0]), run("pscdsl.update", x, index, value))


def test_dynamic_slice_and_update() -> None:
    starts = (np.int32(1), 2, np.int64(9))
    agree(X[1:3, 2:4, 4:], run("pscdsl.dynamic_slice", X, starts, (2, 2, 1)))
    part = np.full((2, 2, 1), -1, np.float32)
    wanted = X.copy()
    wanted[1:3, 2:4, 4:] = part
    agree(wanted, run("pscdsl.dynamic_update", X, part, starts))
    agree(wanted, run_compiled("pscdsl.dynamic_update", X, part, starts))
    assert rejected(UnprovenSize, "pscdsl.dynamic_slice", X, starts, (4, 2, 1))


@pytest.mark.parametrize(
    ("kind", "index"),
    [
        (IndexOutOfRange, 3),
        (IndexOutOfRange, -4),
        (IndexOutOfRange, (0, [0, 4])),
        (TooManyIndices, (0, 0, 0, 0)),
        (NotAnIndex, True),
        (NotAnIndex, "a"),
        (NotAnIndex, 1.5),
        (NotAnIndex, np.float32(1)),
        (NotAnIndex, (Ellipsis, Ellipsis)),
        (DataDependentShape, X > 1),
        (NotAnIndex, [True, False]),
        (NotAnIndex, [True, 2]),
        (DataDependentShape, slice(0, np.int32(2))),
    ],
)
def test_refused(kind: type[Diagnostic], index: Any) -> None:
    assert rejected(kind, getitem, X, index)


def test_refused_for_some_sizes() -> None:
    (found,) = rejected(IndexOutOfRange, getitem, X, 2, symbolic=True)
    assert found.label() == "for instance n3=1"
    assert found.help() == "add `assert n3 >= 3`"
    x, facts = X, (Fact("<=", 3, name("n3")),)
    assert build(getitem, (x, 2), {}, True, facts).evaluated().shape == (4, 5)
    (found,) = rejected(
        UnprovenSize, lambda x, n: getitem(x, slice(n - 2, None)), X, S(3), symbolic=True
    )
    assert found.help() == "add `assert n3 >= 2`"
    assert dims.name("n3") == name("n3")


def test_slices_use_no_gather() -> None:
    for index in (1, slice(1, 3), (slice(None, None, -2), None, 0), np.int32(1)):
        for function, extra in ((getitem, ()), ("pscdsl.update", (0,))):
            built = build(function, (X, index, *extra), {}, symbolic=False)
            names = {each.primitive.label for each in built.function.body.equations}
            if "update" not in str(function) or not isinstance(index, tuple):
                assert not names & {"gather", "scatter"}


def rejected(
    kind: type[Diagnostic], function: Any, *args: Any, symbolic: bool = False, **kwargs: Any
) -> tuple[Diagnostic, ...]:
    with pytest.raises(Failure) as caught:
        build(function, args, kwargs, symbolic)
    found = caught.value.diagnostics
    assert all(type(each) is kind for each in found), found
    assert all(each.message() and each.message()[0] != " " for each in found)
    return found
