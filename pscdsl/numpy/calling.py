"""Library functions whose arrays may be given as lists, as in `np.convolve(x, [1, 2, 1])`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from pscdsl.builder import Value, Weak
from pscdsl.ir import Literal
from pscdsl.meanings import Meaning, function
from pscdsl.numpy.shorthand import joined, listed, reshaped
from pscdsl.primitives.creation import Constant
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes_manipulation import PiecesDoNotFit
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import DType


def of_arrays(
    *names: str,
    together: Sequence[str] = (),
    alone: Sequence[str] = (),
    traced: Sequence[str] = (),
) -> Callable[[Callable[..., Any]], Meaning]:
    """Declare as `function` does; a list in the place of an array is stacked to one first.

    Of the other parameters only those in `traced` may be computed by the program.
    """
    arrays = frozenset((*together, *alone))

    def declare(body: Callable[..., Any]) -> Meaning:
        parameters = inspect.signature(body).parameters
        places = list(parameters)
        optional = {name for name in arrays if parameters[name].default is None}

        def given(name: str, x: Any) -> Any:
            if name not in arrays:
                if name not in traced:
                    require_static(x, names[0], name)
                return x
            if isinstance(x, Value) or (x is None and name in optional):
                return x
            return as_array(x, names[0], name)

        @wraps(body)
        def stacked(*args: Any, **kwargs: Any) -> Any:
            known = [given(name, x) for name, x in zip(places, args, strict=False)]
            return body(*known, **{name: given(name, x) for name, x in kwargs.items()})

        return function(*names, together=together, alone=alone)(stacked)

    return declare


def require_static(x: object, name: str, parameter: str) -> None:
    """Refuse what the program computes, and a dtype that is none."""
    if isinstance(x, Value | Weak):
        problem = f"takes a `{parameter}` that is known while checking, not an array"
        raise Failure(BadArguments(function=name, problem=problem))
    if parameter == "dtype" and not (x is None or isinstance(x, DType)):
        raise Failure(BadArguments(function=name, problem=f"takes no dtype {x!r}"))


def as_array(x: object, name: str, parameter: str) -> Value:
    """An array, or a list of arrays of one shape as one array."""
    if isinstance(x, Value):
        return x
    items = listed(x)
    if not items:
        what = repr(x) if items is None else "an empty list"
        problem = f"takes an array as `{parameter}`, not {what}"
        raise Failure(BadArguments(function=name, problem=problem))
    numbers = _literals(items)
    if numbers is not None:
        first = _first(items)
        return first.builder.bind(Constant.of(numbers, first.dtype), ())[0]
    parts = [as_array(item, name, parameter) for item in items]
    _require_one_shape(parts, name)
    return joined([reshaped(part, (1, *part.shape)) for part in parts], 0)


def _literals(items: Sequence[object]) -> list[Any] | None:
    """The numbers in nested lists, if that is all they hold."""
    found: list[Any] = []
    lengths: set[int] = set()
    for item in items:
        if isinstance(item, Value) and isinstance(item.atom, Literal):
            found.append(item.atom.value)
            lengths.add(-1)
            continue
        inner = listed(item)
        numbers = _literals(inner) if inner else None
        if numbers is None:
            return None
        found.append(numbers)
        lengths.add(len(numbers))
    return found if len(lengths) == 1 else None


def _first(items: Sequence[Any]) -> Value:
    first = items[0]
    return first if isinstance(first, Value) else _first(first)


def _require_one_shape(parts: Sequence[Value], name: str) -> None:
    facts, shape = parts[0].builder.facts, parts[0].shape
    for each in parts[1:]:
        shapes = (shape, each.shape)
        if each.ndim != len(shape):
            raise Failure(PiecesDoNotFit(function=name, shapes=shapes, why="their ranks differ"))
        for axis, sizes in enumerate(zip(shape, each.shape, strict=True)):
            if not facts.equal(*sizes):
                raise Failure(PiecesDoNotFit.of(facts, name, shapes, axis, sizes))
