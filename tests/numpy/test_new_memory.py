"""What makes new memory, what makes views, and of which kind: the tables, beside NumPy."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import pytest

from pscdsl._src.frontend.interpreter import new_memory
from pscdsl._src.frontend.interpreter.new_memory import (
    ARRANGING,
    C_ORDER,
    NEW_CALLS,
    NEW_FUNCTIONS,
    NEW_METHODS,
    OF_THE_SAME,
    SCALAR_FUNCTIONS,
    SCALAR_METHODS,
    arrangement,
    call_makes_new,
    lies_in_c_order,
    names_of,
)
from pscdsl._src.frontend.interpreter.places import Arranged, is_basic, keeps_an_axis
from pscdsl._src.ir.numpy_dtypes import from_numpy
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl.typing.dtypes import DType
from tests.support.new_memory_calls import (
    candidates,
    creations,
    is_new,
    kinds,
    kinds_of_method,
    lacking_axes,
    method_is_new,
    methods,
    outcomes,
    real,
    ways_without_axes,
)
from tests.support.numpy_harness import build


@pytest.mark.filterwarnings("ignore")
def test_functions_that_make_new_memory_do() -> None:
    assert set(candidates()) >= NEW_FUNCTIONS
    for name in sorted(NEW_FUNCTIONS):
        function = real(name)
        assert function is None or is_new(function), name  # older versions lack some


@pytest.mark.parametrize("name", methods())
def test_methods_that_make_new_memory_do(name: str) -> None:
    assert method_is_new(name) == (name in NEW_METHODS) or name == "round"  # new since NumPy 2.1


@dataclass(frozen=True)
class Seen:
    """An array as the interpreter sees it."""

    ndim: int
    dtype: DType


def seen(value: Any) -> Any:
    """An argument as the interpreter sees it: of an array, rank and dtype."""
    found = isinstance(value, np.ndarray)
    return Seen(value.ndim, from_numpy(value.dtype)) if found else value


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(NEW_CALLS))
def test_calls_that_make_new_memory_do(name: str) -> None:
    function = real(name)
    given = [*ways_without_axes(function), *more_ways(name)]
    known = [
        (args, kwargs)
        for args, kwargs in given
        if call_makes_new(name, [seen(each) for each in args], kwargs)
    ]
    assert all(new for _, new in outcomes(function, known))
    assert all(scalar for _, scalar in lacking_axes(function, known, 9))
    assert len([*outcomes(function, known), *lacking_axes(function, known, 9)]) > 3


def more_ways(name: str) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Calls of a function that have options of its own."""
    for x in (np.ones(1), np.ones((1, 1)), np.ones((2, 2)), np.zeros(0), np.arange(3)):
        for n in (-2, -1, 0, 1, 2, 3):
            yield (x, n), {}
        for text in ("i,i->i", "i,i->", "ij,j->i", "ij,jk->ik", "ij,jk->ki", "i,i", "ii,i->i"):
            yield (text, x, x), {}
            yield (text, x, np.ones(x.shape[-1:])), {}
        yield ("...,->...", x, np.array(2.0)), {}
        yield (",->", np.array(2.0), np.array(3.0)), {}
        for name_of, value in (("axis", -1), ("decimals", 3), ("nan", 1.0), ("n", 2)):
            yield (x,), {name_of: value}


@pytest.mark.parametrize("name", sorted(OF_THE_SAME))
def test_what_gives_the_elements_of_one_array_gives_each_once(name: str) -> None:
    function = real(name)
    found = 0
    for x, more in product(ARRAYS, ((), (-1,), (0,), ((4,),))):
        try:
            result = function(x.copy(), *more)
        except (TypeError, ValueError, np.exceptions.AxisError):
            continue
        if isinstance(result, tuple):
            continue  # of several arrays
        found += 1
        assert isinstance(result, np.ndarray)
        assert result.flags.writeable
        result[...] = np.arange(result.size).reshape(result.shape)  # each has a place of its own
        assert sorted(result.ravel().tolist()) == list(range(result.size))
    assert found > 3


ARRAYS = (np.ones(4), np.ones((2, 2)), np.ones((2, 2)).T, np.ones((1, 4, 1)), np.array(1.0))


@pytest.mark.parametrize("name", ["reshape", "ravel", "diff", "einsum", "linalg.matrix_power"])
def test_views_are_seen(name: str) -> None:
    assert not is_new(real(f"numpy.{name}"))
    assert f"numpy.{name}" not in NEW_FUNCTIONS


@pytest.mark.filterwarnings("ignore")
def test_functions_that_give_scalars_do() -> None:
    assert set(candidates()) >= SCALAR_FUNCTIONS
    for name in sorted(SCALAR_FUNCTIONS):
        function = real(name)
        assert function is None or kinds(function) == {"scalar"}, name  # older versions lack some


@pytest.mark.filterwarnings("ignore")
def test_of_new_memory_without_axes_it_is_known_whether_it_is_an_array() -> None:
    # `t = s; s += 1` changes `t` if `s` is an array without axes, and not if it is a scalar.
    for name in sorted(NEW_FUNCTIONS - SCALAR_FUNCTIONS):
        function = real(name)
        assert function is None or kinds(function) <= {"array"}, name


@pytest.mark.parametrize("name", sorted(NEW_METHODS | SCALAR_METHODS))
def test_methods_that_give_scalars_do(name: str) -> None:
    assert kinds_of_method(name) <= {"scalar" if name in SCALAR_METHODS else "array"}


@pytest.mark.parametrize("name", ["real", "copy", "array", "squeeze", "median"])
def test_arrays_without_axes_are_seen(name: str) -> None:
    assert "array" in kinds(real(f"numpy.{name}"))
    assert f"numpy.{name}" not in SCALAR_FUNCTIONS


@pytest.mark.parametrize("table", [NEW_FUNCTIONS, SCALAR_FUNCTIONS, C_ORDER])
def test_a_function_is_in_a_table_by_all_of_its_names(table: frozenset[str]) -> None:
    # A function is looked up by all names that it has; one that is missing takes it out.
    for name in sorted(table):
        function = MEANINGS[name]
        assert isinstance(function, Meaning)
        assert names_of(function) <= table, name


@pytest.mark.parametrize("name", sorted(C_ORDER))
def test_what_lies_in_c_order_does(name: str) -> None:
    made = list(creations(name.removeprefix("numpy.")))
    assert len(made) > 3
    assert all(each.flags.c_contiguous for each in made)


def test_other_orders_are_seen() -> None:
    assert not all(each.flags.c_contiguous for each in creations("linspace"))
    for name in ("zeros_like", "copy", "stack", "linspace"):
        function = MEANINGS[f"numpy.{name}"]
        assert isinstance(function, Meaning)
        assert not lies_in_c_order(function)


def test_no_function_takes_an_order_by_position() -> None:
    # Only the keyword `order` is looked at.
    for name in sorted(C_ORDER):
        function: Any = MEANINGS[name]
        options = function.signature.parameters.values()
        orders = [each for each in options if each.name == "order"]
        assert all(each.kind is each.KEYWORD_ONLY for each in orders), name


# Views with the axes in another order, or backwards.


def arranged(name: str, rank: int) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The static arguments of a view of a rank, by position and by name; some do not fit."""
    axes = range(-rank - 1, rank + 1)
    yield (), {}
    match name.rpartition(".")[2]:
        case "transpose" | "permute_dims":
            for order in permutations(range(rank)):
                backwards = tuple([axis - rank for axis in order])
                for each in (order, list(order), backwards, order[1:]):
                    yield (each,), {}
                    yield (), {"axes": each}
            yield (None,), {}
        case "swapaxes":
            for one, other in product(axes, repeat=2):
                yield (one, other), {}
                yield (), {"axis1": one, "axis2": other}
        case "moveaxis":
            for one, other in product(axes, repeat=2):
                yield (one, other), {}
                yield (), {"source": one, "destination": other}
            for pair, places in product(permutations(range(rank), 2), repeat=2):
                yield (pair, places), {}
                yield (list(pair), tuple(place - rank for place in places)), {}
        case "rollaxis":
            for one, other in product(axes, repeat=2):
                yield (one, other), {}
                yield (one,), {"start": other}
            for axis in axes:
                yield (axis,), {}
        case "flip":
            for axis in (*axes, None, ()):
                yield (axis,), {}
                yield (), {"axis": axis}
            for count in range(2, rank + 1):
                for some in combinations(range(rank), count):
                    yield (some,), {}
                    yield (), {"axis": tuple(axis - rank for axis in some)}
        case "rot90":
            for k in range(-5, 6):
                yield (k,), {}
                yield (), {"k": k}
                for plane in product(axes, repeat=2):
                    yield (k, plane), {}
                    yield (), {"k": k, "axes": list(plane)}
        case _:
            pass


def mistakes(name: str) -> list[str]:
    """Calls for which the arrangement is not what NumPy's function makes."""
    wrong: list[str] = []
    function = real(name)
    found = 0
    for rank, order in product(range(5), "CF"):
        whole = np.arange(np.prod(range(2, 2 + rank)), dtype=np.int64)
        whole = np.asarray(whole.reshape(tuple(range(2, 2 + rank))), order=order)  # type: ignore[call-overload]
        for args, kwargs in arranged(name, rank):
            step = arrangement(name, rank, args, kwargs)
            try:
                view = function(whole, *args, **kwargs)
            except (TypeError, ValueError, IndexError):
                wrong += [f"{args} {kwargs}"] if step is not None else []
                continue
            if not isinstance(view, np.ndarray):
                continue  # a scalar: the next test
            if step is None:
                wrong.append(f"no arrangement of rank {rank}: {args} {kwargs}")
                continue
            found += 1
            put = whole.copy()
            shown = function(put, *args, **kwargs)
            shown[...] = -view
            read = build(step.read, (whole,), {}).evaluated()
            back = build(lambda x, y, at=step: at.write(x.builder, x, y), (whole, -view), {})
            same = np.shares_memory(view, whole) and np.array_equal(view, read)
            if not same or not np.array_equal(put, back.evaluated()):
                wrong.append(f"rank {rank}, order {order}: {args} {kwargs}")
    assert found >= 4
    return wrong


@pytest.mark.parametrize("name", sorted(ARRANGING))
def test_arrangements_are_those_of_numpy(name: str) -> None:
    if real(name) is not None:  # older versions lack some
        assert mistakes(name) == []


@pytest.mark.parametrize("name", ["flip", "transpose"])
def test_a_wrong_arrangement_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def other(name: str, rank: int, args: Any, kwargs: Any) -> Any:
        found = new_memory.arrangement(name, rank, args, kwargs)
        return found and Arranged(found.axes[::-1], found.reversed)

    monkeypatch.setitem(globals(), "arrangement", other)
    assert mistakes(f"numpy.{name}")


def test_an_array_without_axes_has_no_order_to_reverse() -> None:
    # `np.flip` of one is a scalar.
    assert not isinstance(np.flip(np.zeros(())), np.ndarray)
    assert arrangement("numpy.flip", 0, (), {}) is None


def test_what_is_no_arrangement_of_axes_is_none() -> None:
    for name, args in (("ravel", ()), ("expand_dims", (0,)), ("diagonal", ()), ("sum", ())):
        assert arrangement(f"numpy.{name}", 2, args, {}) is None


# Basic indices, and those that preserve an axis.

PARTS: tuple[Any, ...] = (
    0, -1, np.int64(1), np.uint8(0), True, False, np.True_, None, ..., slice(None), slice(1, 2),
    slice(None, None, -1), [0, 1], [True, False], [0], (0, 1), np.array([1, 0]),
    np.array([True, False]), np.array([[0, 1]]), np.array(1), np.array(True), np.array(0, np.uint8),
)  # fmt: skip
INDICES: tuple[Any, ...] = (
    *(part for part in PARTS if not isinstance(part, tuple)),
    *((part,) for part in PARTS),
    *product(PARTS, repeat=2),
    *product(PARTS[:10], repeat=3),
    (),
)


def test_basic_indices_give_views_and_others_copies() -> None:
    counts = {True: 0, False: 0}
    for rank, index in product(range(4), INDICES):
        whole = np.arange(2**rank).reshape((2,) * rank)
        try:
            part = whole[index]
        except IndexError:
            continue
        if isinstance(part, np.ndarray) and part.size:
            counts[is_basic(index)] += 1
            assert np.shares_memory(part, whole) == is_basic(index), index
    assert min(counts.values()) > 300


def test_what_has_no_axes_is_an_array_if_the_index_preserves_one() -> None:
    counts = {True: 0, False: 0}
    for rank, index in product(range(4), INDICES):
        whole = np.arange(2**rank).reshape((2,) * rank)
        try:
            part: Any = whole[index]
        except IndexError:
            continue
        if not np.ndim(part):
            counts[keeps_an_axis(index)] += 1
            assert isinstance(part, np.ndarray) == keeps_an_axis(index), index
    assert min(counts.values()) > 10
