"""Views, and of which kind they are: what is known of them, beside NumPy."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import pytest

from pscdsl._src.frontend.interpreter import arrangements
from pscdsl._src.frontend.interpreter.arrangements import arrangement
from pscdsl._src.frontend.interpreter.places import Arranged, is_basic, keeps_an_axis
from pscdsl._src.language.results import Result
from tests.support.numpy_harness import build
from tests.support.sample_calls import declared, real

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


@pytest.mark.parametrize("name", declared(Result.ARRANGED))
def test_arrangements_are_those_of_numpy(name: str) -> None:
    if real(name) is not None:  # older versions lack some
        assert mistakes(name) == []


@pytest.mark.parametrize("name", ["flip", "transpose"])
def test_a_wrong_arrangement_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def other(name: str, rank: int, args: Any, kwargs: Any) -> Any:
        found = arrangements.arrangement(name, rank, args, kwargs)
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
