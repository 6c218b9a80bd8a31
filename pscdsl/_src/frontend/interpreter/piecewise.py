"""`np.piecewise`: functions of the elements that conditions select, stored at their places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pscdsl._src.frontend.interpreter import masks
from pscdsl._src.frontend.interpreter.frames import session_of
from pscdsl._src.frontend.interpreter.functions import BoundMethod, Closure
from pscdsl._src.frontend.interpreter.places import apply_numpy, fitted, load
from pscdsl._src.frontend.values import (
    AnyValue,
    Applicable,
    Args,
    Array,
    Kwargs,
    Place,
    Poisoned,
    StaticFunction,
    describe,
    is_poisoned,
)
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import DataDependentShape
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import BOOL
from pscdsl.typing.python_containers import is_sequence

NAME = "numpy.piecewise"


class _Piecewise(StaticFunction):
    """A function that reads its arguments, and returns a new array."""

    returns_new_arrays: ClassVar = True


def piecewise(
    here: Builder,
    x: AnyValue,
    condlist: AnyValue,
    funclist: AnyValue,
    *args: AnyValue,
    **kw: AnyValue,
) -> Array:
    """Return an array like `x` with the result of each function where its condition holds.

    `funclist` has one function of selected elements, or number, for each condition, and optionally
    another one for all other places. The functions get the other arguments, too.
    """
    if not isinstance(x, Value) or not x.ndim:
        raise _bad(f"takes an array with axes, not {describe(x)}")
    conditions: Sequence[Array] = _conditions(x, condlist)
    if not is_sequence(funclist):
        raise _bad(f"takes a list of functions or numbers, not {describe(funclist)}")
    if len(funclist) == len(conditions) + 1:
        held: Array = conditions[0]
        for each in conditions[1:]:
            held = apply_numpy(here, "logical_or", held, each)
        conditions = [*conditions, apply_numpy(here, "logical_not", held)]
    if len(funclist) != len(conditions):
        raise _bad(f"got {len(funclist)} functions for {len(conditions)} conditions")
    result = apply_numpy(here, "zeros_like", x)
    for condition, function in zip(conditions, funclist, strict=True):
        if isinstance(function, Applicable):
            written = session_of(here).stores
            value = _applied(here, function, (_chosen(here, x, condition), *args), kw)
            if session_of(here).stores != written:  # NumPy calls no function if nothing is selected
                raise _bad("takes functions that change nothing")
        else:
            value = function
        result = _stored(here, result, condition, value)
    return result


def _conditions(x: Value, given: AnyValue) -> list[Value]:
    """Return the conditions, each in the shape of the array."""
    if not is_sequence(given) or not given:
        raise _bad(f"takes a list of conditions, not {describe(given)}")
    conditions: list[Value] = []
    for each in given:
        if not (
            isinstance(each, Value)
            and each.dtype is BOOL
            and each.ndim == x.ndim
            and all(map(x.builder.facts.equal, each.shape, x.shape))
        ):
            raise _bad(f"takes conditions in the shape of {x.type}, not {describe(each)}")
        conditions.append(each)
    return conditions


def _chosen(here: Builder, x: Value, condition: Array) -> masks.Selected:
    """Return `x[condition]`."""
    instead = "`np.where(condition, …, …)` takes values for all places"
    refusal = Failure(DataDependentShape(what="the part that a condition selects", instead=instead))
    found = masks.selected(here, x, condition, refusal)
    if found is None:
        raise refusal
    return found


def _applied(here: Builder, function: Applicable, args: Args, kwargs: Kwargs) -> Place:
    """Apply a function to selected elements; the result has the same places, or is a number."""
    found: Place
    match function:
        case BoundMethod(function=Closure() as method, self_value=owner):
            found = method.enter(session_of(here), method.bind((owner, *args), kwargs))
        case Closure():
            found = function.enter(session_of(here), function.bind(args, kwargs))
        case Meaning():
            found = masks.called(here, function, args, kwargs)
        case _:
            given = describe(function)
            raise _bad(f"takes functions that are written here, and NumPy's, not {given}")
    if is_poisoned(found):
        raise Poisoned
    return found


def _stored(here: Builder, whole: Array, condition: Array, value: Place) -> Array:
    """Execute `whole[condition] = value`."""
    if isinstance(value, masks.Selected):
        masks.require_same_mask(here, whole, condition, value)
        new = fitted(here, whole, value.full)
    else:
        new = fitted(here, whole, load(value))
        if new.ndim:
            raise _bad(f"takes functions that give elements or a number, not {new.type}")
    return apply_numpy(here, "where", condition, new, whole)


def _bad(problem: str) -> Failure:
    return Failure(BadArguments(function="np.piecewise", problem=problem))


def register() -> None:
    """Register the function by name."""
    MEANINGS[NAME] = _Piecewise(NAME, piecewise)
