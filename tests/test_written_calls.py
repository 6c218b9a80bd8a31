"""Calls with NumPy arrays: what C++ would misread is noticed, also when calls are fast."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Float, Int, f32
from pscdsl.xla import trees
from pscdsl.xla.arrays import to_numpy
from pscdsl.xla.client import put
from pscdsl.xla.fast_path import fast_path_works
from pscdsl.xla.places import places_of
from pscdsl.xla.rows import Row
from pscdsl.xla.staging import Unlike
from pscdsl.xla.written_calls import WrittenCall
from tests.test_direct_calls import frames

X = np.arange(8, dtype=np.float32)


class Point(NamedTuple):
    """Two arrays."""

    x: f32["n"]
    y: f32["n"]


class Scaled(psc.Record):
    """An array and what it is multiplied by."""

    x: f32["n"]
    times: psc.Static[int]


class Subclass(np.ndarray[Any, Any]):
    """NumPy's arrays under another name."""


@psc.kernel
def doubled(x: f32["n"]) -> f32["n"]:
    return x * 2


@psc.kernel
def total(
    xs: tuple[f32["n"], ...],
    point: Point,
    scaled: Scaled,
    plus: f32["n"] | None = None,
) -> f32["n"]:
    found = point.x - point.y + scaled.x * scaled.times
    for x in xs:
        found = found + x
    return found if plus is None else found + plus


TOTAL: Any = total


def swapped(x: Any) -> Any:
    return x.astype(">f4")


def masked(x: Any) -> Any:
    return np.ma.masked_array(x, mask=x > 3)


def arguments(wrap: Any = np.copy, count: int = 2) -> Any:
    """What `total` takes, each array of its own."""
    one = [wrap(X) for _ in range(count)]
    return [tuple(one), Point(wrap(X * 2), wrap(X)), Scaled(wrap(X), 3)]


WANTED = X * (2 + 1 + 3)


@pytest.fixture(autouse=True)
def fast() -> None:
    """Calls that have found their program."""
    for _ in range(3):
        doubled(X)
        TOTAL(*arguments())
        TOTAL(*arguments(), X)


@pytest.mark.parametrize("size", [8, 1 << 14, 1 << 16])
def test_other_byte_orders_and_strides(size: int) -> None:
    x = np.arange(size, dtype=np.float32)
    for _ in range(3):
        for given in (x, swapped(x), np.repeat(x, 2)[::2], x[::-1], swapped(x)[::-1]):
            np.testing.assert_array_equal(doubled(given), np.asarray(given, np.float32) * 2)


def test_subclasses_are_read_and_masks_refused() -> None:
    for _ in range(3):
        np.testing.assert_array_equal(doubled(X.view(Subclass)), X * 2)
        np.testing.assert_array_equal(doubled(swapped(X).view(Subclass)), X * 2)
        with pytest.raises(psc.ArgumentError, match="mask"):
            doubled(masked(X))


@pytest.mark.parametrize("place", ["tuple", "point", "record", "optional"])
@pytest.mark.parametrize("wrap", [swapped, masked, put, np.float64, list])
def test_arrays_within_arguments_are_looked_at(place: str, wrap: Any) -> None:
    for _ in range(3):
        args: Any = [*arguments(), X.copy()]
        if place == "tuple":
            args[0] = (args[0][0], wrap(args[0][1]))
        elif place == "point":
            args[1] = Point(args[1].x, wrap(args[1].y))
        elif place == "record":
            args[2] = Scaled(wrap(args[2].x), 3)
        else:
            args[3] = wrap(args[3])
        if wrap in (swapped, put):
            np.testing.assert_array_equal(TOTAL(*args), WANTED + X)
        else:
            with pytest.raises(psc.ArgumentError):
                TOTAL(*args)


@psc.kernel(donate=("xs", "point"))
def exchanged(
    xs: tuple[f32["n"], f32["n"]], point: Point, scaled: Scaled
) -> tuple[tuple[f32["n"], f32["n"]], Point]:
    return (xs[0] + point.y, xs[1] - scaled.x), Point(point.x * scaled.times, point.y)


EXCHANGED: Any = exchanged


@pytest.mark.parametrize("place", ["first", "tuple", "point", "record"])
@pytest.mark.parametrize("wrap", [swapped, masked, np.copy, np.float64, list])
def test_what_lies_beside_arrays_of_the_device_is_looked_at(place: str, wrap: Any) -> None:
    for _ in range(3):
        for _ in range(3):
            xs, point, scaled = arguments(put)
            EXCHANGED(xs, point, scaled)
            assert all(x.is_deleted() for x in (*xs, *point))
            assert not scaled.x.is_deleted()
        xs, point, scaled = arguments(put)
        other = wrap(X * 2)
        if place == "first":
            xs = (other, xs[1])
        elif place == "tuple":
            xs = (xs[0], other)
        elif place == "point":
            point = Point(point.x, other)
        else:
            scaled = Scaled(other, 3)
        if wrap in (swapped, np.copy):
            wanted = [np.asarray(each) for each in (*xs, *point, scaled.x)]
            (a, b), (x, y) = EXCHANGED(xs, point, scaled)
            np.testing.assert_array_equal(a, wanted[0] + wanted[3])
            np.testing.assert_array_equal(b, wanted[1] - wanted[4])
            np.testing.assert_array_equal(x, wanted[2] * 3)
            np.testing.assert_array_equal(y, wanted[3])
            np.testing.assert_array_equal(other, X * 2)
        else:
            with pytest.raises(psc.ArgumentError):
                EXCHANGED(xs, point, scaled)


def test_what_was_not_there_is_looked_at_when_it_comes() -> None:
    for count in (0, 1, 2, 3, 0):
        for wrap in (np.copy, swapped):
            found = TOTAL(*arguments(wrap, count))
            np.testing.assert_array_equal(found, X * (1 + 3 + count))
    for plus in (None, X, swapped(X), None, put(X)):
        wanted = WANTED if plus is None else WANTED + X
        np.testing.assert_array_equal(TOTAL(*arguments(), plus), wanted)
        np.testing.assert_array_equal(TOTAL(*arguments(), plus=plus), wanted)
    for times in (3, 4, 3):
        args = arguments()
        args[2] = Scaled(X, times)
        np.testing.assert_array_equal(TOTAL(*args), X * (3 + times))


def test_an_empty_tuple_comes_first() -> None:
    @psc.kernel
    def summed(first: f32["n"], rest: tuple[f32["n"], ...] = ()) -> f32["n"]:
        found = first
        for x in rest:
            found = found + x
        return found

    for _ in range(3):
        np.testing.assert_array_equal(summed(X, ()), X)
        np.testing.assert_array_equal(summed(X, (X,)), X * 2)
        np.testing.assert_array_equal(summed(X, (swapped(X),)), X * 2)
        np.testing.assert_array_equal(summed(X), X)


@pytest.mark.parametrize(
    ("args", "kwargs"), [((), {}), ((X, X), {}), ((X,), {"x": X}), ((X,), {"y": X}), ((), {"y": X})]
)
def test_wrong_calls_are_told_as_any(args: Any, kwargs: Any) -> None:
    for _ in range(3):
        with pytest.raises(psc.ArgumentError, match="doubled"):
            doubled(*args, **kwargs)


def test_keywords() -> None:
    for _ in range(3):
        np.testing.assert_array_equal(doubled(x=X), X * 2)
        np.testing.assert_array_equal(doubled(x=swapped(X)), X * 2)
        xs, point, scaled = arguments()
        found = TOTAL(xs, scaled=scaled, point=point, plus=X)
        np.testing.assert_array_equal(found, WANTED + X)


def test_results_share_no_memory_with_arguments() -> None:
    @psc.kernel
    def same(x: f32["n"]) -> f32["n"]:
        return x

    space = np.empty(64, np.float32)
    for start in range(16):
        x = space[start : start + 32]
        x[:] = start
        found = same(x)
        x[:] = -1
        assert (to_numpy(found) == start).all()


@pytest.fixture
def moved() -> Any:
    """A kernel that was never called."""

    @psc.kernel
    def made(x: Float["n"], by: Float, turns: Int, back: psc.Static[bool] = False) -> Float["n"]:
        by = by * turns.astype(by.dtype)
        return x - by if back else x + by

    return made


@pytest.mark.parametrize("wrap", [np.copy, put])
@pytest.mark.parametrize("code", ["f4", "f8", "f2"])
def test_numbers_are_brought_to_their_dtype(code: str, wrap: Any, moved: Any) -> None:
    x = wrap(np.arange(4).astype(code))
    for _ in range(3):
        for by, turns, back in (
            (0.5, 3, False),
            (0.25, -700, True),
            (1, 2, False),
            (-2.5, 4, True),
        ):
            wanted = np.arange(4) + by * turns * (-1 if back else 1)
            found = moved(x, by, turns, back)
            assert found.dtype == code
            np.testing.assert_array_equal(found, wanted.astype(code))
            np.testing.assert_array_equal(moved(x, by, turns=turns, back=back), found)
        for by in (float("inf"), float("nan"), -0.0):
            np.testing.assert_array_equal(moved(x, by, 2), (np.arange(4) + by * 2).astype(code))


@pytest.mark.parametrize("wrap", [np.copy, put])
def test_numbers_that_do_not_fit(wrap: Any, moved: Any) -> None:
    x = wrap(X)
    for _ in range(3):
        assert np.asarray(moved(x, 3e38, 1))[0] == np.float32(3e38)
        for wrong in ((1e39, 1), (0.5, 2**40), (0.5, 1.5), (0.5, "1"), (None, 1)):
            with pytest.raises((psc.ArgumentError, OverflowError, FloatingPointError)):
                moved(x, *wrong)


@pytest.mark.skipif(not fast_path_works(), reason="this jaxlib is called from Python")
@pytest.mark.parametrize("wrap", [np.copy, put])
def test_numbers_are_transferred_by_no_python(wrap: Any, moved: Any) -> None:
    x = wrap(X)
    for _ in range(3):
        moved(x, 0.5, 1000, True)
        moved(wrap(np.ones(3)), 0.5, 1000, True)
    new = wrap(np.ones(3))
    for other in (x, new):
        assert set(frames(partial(moved, other, 0.25, 2000, True))) <= {"call", "leave"}
        assert set(frames(partial(moved, other, turns=2000, by=0.25, back=True))) <= {
            *("call", "leave", "partly")
        }
    assert frames(partial(moved, new, 0.25, 2000, True)) == ["call"]


@pytest.mark.parametrize("numbers", [(0.5,), (0.0, -0.0), (1.0, 0.5, 0.5), (-0.0,), range(1, 40)])
def test_numbers_that_come_again_are_the_same(numbers: Any) -> None:
    @psc.kernel
    def signed(x: f32["n"], by: f32) -> f32["n"]:
        return np.copysign(x, by) * np.abs(by)

    for by in [each for each in numbers for _ in range(4)] + list(numbers) * 4:
        wanted = np.copysign(X, by) * abs(by)
        assert str(to_numpy(signed(X, float(by)))) == str(wanted.astype(np.float32))


@pytest.mark.parametrize("wrap", [np.copy, put])
def test_what_is_missing_is_not_what_was_given(wrap: Any) -> None:
    @psc.kernel
    def less(x: f32["n"], y: f32["n"]) -> f32["n"]:
        return x - y

    call: Any = less
    x, y = wrap(X), wrap(X * 3)
    for _ in range(3):
        for found in (call(x, y), call(x, y=y), call(y=y, x=x)):
            np.testing.assert_array_equal(found, -2 * X)
        for args, kwargs, wrong in (
            ((), {"y": y}, "missing a required argument: 'x'"),
            ((x,), {"x": y}, "multiple values for argument 'x'"),
            ((x, y), {"y": y}, "multiple values for argument 'y'"),
            ((x,), {"y": y, "z": y}, "unexpected keyword argument 'z'"),
            ((x, y, y), {}, "too many positional arguments"),
        ):
            with pytest.raises(psc.ArgumentError, match=wrong):
                call(*args, **kwargs)


@pytest.mark.parametrize("wrap", [np.copy, put])
@pytest.mark.parametrize("names", [("b", "a"), ("a", "b"), ("c", "b", "a"), ("b", "c", "a")])
def test_one_array_by_two_names_says_nothing_of_their_order(
    names: tuple[str, ...], wrap: Any
) -> None:
    @psc.kernel
    def weighed(*, c: f32["n"] | None = None, b: f32["n"], a: f32["n"]) -> f32["n"]:
        return a + 10 * b if c is None else a + 10 * b + 100 * c

    one = wrap(X)
    for same in (True, False, True, False, False):
        given = {name: one if same else wrap(X + i) for i, name in enumerate(names)}
        read = {name: np.asarray(x) for name, x in given.items()}
        wanted = read["a"] + 10 * read["b"] + 100 * read.get("c", np.zeros_like(X))
        np.testing.assert_array_equal(weighed(**given), wanted)


def made(*args: Any) -> list[Any]:
    """What the function for such arguments is called with, by tens of calls."""
    calls: list[Any] = []
    places = places_of((), len(args), ())
    call = WrittenCall(Row(places, args), trees.flatten, {}).written(
        lambda *given: calls.append(given), lambda *_: calls.append(None)
    )
    return [call, calls]


@pytest.mark.skipif(not fast_path_works(), reason="this jaxlib is called from Python")
@pytest.mark.parametrize(
    ("value", "other"),
    [
        (X, X.astype(np.float64)),
        ((X, X), [X, X]),
        ((X, X.astype(np.int32)), (X, X)),
        ((X, X.astype(np.int32)), (X, X.astype(np.int32), X)),
        ((X, (X, X)), (X, X)),
        (Point(X, X), (X, X)),
        (Point(X, X), Point(X, swapped(X))),
        ((), (X,)),
        (None, X),
        (np.float32(1), np.float64(1)),
        (np.float32(1), 1.0),
        ((None, X), (X, X)),
    ],
)
def test_a_function_takes_what_is_like_its_arguments(value: Any, other: Any) -> None:
    call, calls = made(value, X)
    call(value, X)
    assert calls.pop() is not None
    for wrong in ((other, X), (value, None), (value,), (value, X, X), ()):
        call(*wrong)
        assert calls.pop() is None


@pytest.mark.parametrize("value", [object(), {"a": X}, (X, object())])
def test_there_is_none_for_other_values(value: Any) -> None:
    with pytest.raises(Unlike):
        WrittenCall(Row(places_of((), 1, ()), (value,)), trees.flatten, {})
