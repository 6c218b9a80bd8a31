"""What is declared of each function: beside NumPy, in many calls."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import numpy as np
import pytest

from pscdsl._src.ir.numpy_dtypes import from_numpy
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl._src.language.results import Result, Results
from pscdsl.numpy import methods
from pscdsl.typing.dtypes import DType
from tests.support.sample_calls import (
    Outcome,
    creations,
    declared,
    functions,
    leaves,
    methods_of_arrays,
    more_ways,
    most,
    outcomes,
    real,
    ways_without_axes,
)

pytestmark = pytest.mark.filterwarnings("ignore")


@dataclass(frozen=True)
class Seen:
    """An array as the interpreter sees it."""

    ndim: int
    dtype: DType


def seen(value: Any) -> Any:
    """An argument as the interpreter sees it: of an array, rank and dtype."""
    if isinstance(value, list | tuple):
        return type(value)(map(seen, value))
    return Seen(value.ndim, from_numpy(value.dtype)) if isinstance(value, np.ndarray) else value


Says = Callable[[Sequence[Any], Mapping[str, Any]], Results]


def told(says: Says, call: Outcome) -> list[Result]:
    """What is declared of each part of a result."""
    kwargs = {name: seen(each) for name, each in call.kwargs.items()}
    known = says([seen(each) for each in call.args], kwargs)
    return list(known) if isinstance(known, tuple) else [known] * len(call.parts)


def mistakes(says: Says, calls: Sequence[Outcome]) -> Iterator[str]:
    """What is declared otherwise than NumPy has it."""
    for call in calls:
        results = told(says, call)
        new = [place for place, known in enumerate(results) if known.is_new]
        if new and not call.is_new(*new):
            yield f"{call}: not new memory"
        for known, part in zip(results, call.parts, strict=True):
            for each in leaves(part):
                if known.is_new and not np.ndim(each):
                    if known.scalars == isinstance(each, np.ndarray):
                        yield f"{call}: {type(each).__name__} without axes"


def known(name: str) -> Meaning:
    function = MEANINGS[name]
    assert isinstance(function, Meaning)
    return function


def calls_of(name: str) -> list[Outcome]:
    function = real(name)
    if function is None:
        pytest.skip("NumPy has it in newer versions")
    given, count = [*ways_without_axes(function), *more_ways(name)], most(function)
    return list(outcomes(function, [each for each in given if len(each[0]) <= count]))


@pytest.mark.parametrize("name", functions())
def test_results_are_what_is_declared(name: str) -> None:
    function, calls = known(name), calls_of(name)
    assert calls or function.result is Result.UNKNOWN
    assert list(mistakes(function.result_of, calls))[:3] == []
    made = [call for call in calls if any(map(np.ndim, leaves(call.result)))]
    if isinstance(function.result, Result) and not function.makes_new:
        # What always makes new memory, or scalars, is to be declared so.
        assert not made or not all(call.is_new() for call in made)


def calls_of_method(name: str) -> list[Outcome]:
    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(x, name)(*args, **kwargs)

    method = getattr(np.ndarray, name)
    given = [each for each in ways_without_axes(method) if len(each[0]) < 3]
    given += more_ways(name)
    given += [((x,), {"axis": a}) for x in (np.ones(3), np.ones((2, 2))) for a in (0, (0, 1), None)]
    return list(outcomes(call, [each for each in given if isinstance(each[0][0], np.ndarray)]))


@pytest.mark.parametrize("name", methods_of_arrays())
def test_results_of_methods_are_what_is_declared(name: str) -> None:
    def says(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Results:
        return methods.result_of(name, args, kwargs)

    calls = calls_of_method(name)
    assert calls
    assert list(mistakes(says, calls))[:3] == []


ARRAYS_ALONE: Final = ("numpy.ndarray.view", "numpy.take_along_axis")
"""Where a kernel takes lists, and NumPy none."""


@pytest.mark.parametrize("name", [each for each in functions() if known(each).lists])
def test_lists_stand_for_arrays(name: str) -> None:
    if name in ARRAYS_ALONE:
        return
    for call in calls_of(name):
        if call.kwargs or not all(isinstance(x, np.ndarray) for x in call.args):
            continue
        for place, array in enumerate(call.args):
            taken = any(known(name).place(each) == place for each in known(name).lists)
            if taken and array.ndim and array.dtype.kind != "c":
                args = [*call.args[:place], array.tolist(), *call.args[place + 1 :]]
                other = list(map(np.shape, leaves(real(name)(*args))))
                assert other == list(map(np.shape, leaves(call.result))), call


def test_mistakes_are_seen() -> None:
    def says(known: Results) -> Says:
        return lambda _args, _kwargs: known

    for name in ("reshape", "ravel", "diff", "fft.fft2", "polyder", "diag_indices", "broadcast_to"):
        assert list(mistakes(says(Result.NEW), calls_of(f"numpy.{name}")))
    assert list(mistakes(says(Result.NEW), calls_of("numpy.copy")))
    assert list(mistakes(says(Result.ARRAY), calls_of("numpy.sum")))
    pairs = calls_of("numpy.histogram")
    assert list(mistakes(says((Result.NEW, Result.NEW)), pairs))
    assert not list(mistakes(says((Result.NEW, Result.UNKNOWN)), pairs))


@pytest.mark.parametrize("name", [*declared(Result.SAME_ELEMENTS), "numpy.asarray"])
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


@pytest.mark.parametrize("name", declared(Result.IN_C_ORDER))
def test_what_lies_in_c_order_does(name: str) -> None:
    made = list(creations(name.removeprefix("numpy.")))
    assert len(made) > 3
    assert all(each.flags.c_contiguous for each in made)


def test_other_orders_are_seen() -> None:
    assert not all(each.flags.c_contiguous for each in creations("linspace"))
    for name in ("zeros_like", "copy", "stack", "linspace"):
        function = MEANINGS[f"numpy.{name}"]
        assert isinstance(function, Meaning)
        assert function.result is not Result.IN_C_ORDER


def test_no_function_takes_copy_or_order_by_position() -> None:
    # Where the result is the same in all other calls, the keywords alone are looked at.
    for name in functions():
        function: Any = MEANINGS[name]
        if function.makes_new:
            options = function.signature.parameters.values()
            looked_at = {"copy", "order"} if function.result.in_c_order else {"copy"}
            found = [each for each in options if each.name in looked_at]
            assert all(each.kind is each.KEYWORD_ONLY for each in found), name
