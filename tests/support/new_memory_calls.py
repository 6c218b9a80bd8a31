"""Calls of library functions with arrays, to see whether results are memory of their own.

Each function is called in many ways, most of which fail: with arrays of several ranks and dtypes,
and with numbers, shapes and options by which functions of NumPy often give back what they are
given.
"""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final

import numpy as np

from pscdsl._src.frontend.modules.scope import Project
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl.numpy.methods import AS_FUNCTION
from pscdsl.typing.python_containers import is_sequence

Project()  # declares the meanings

VECTOR: Final = np.array([1.0, 2.0, 3.0], np.float32)
MATRIX: Final = np.array([[2.0, 1.0], [1.0, 3.0]])
FIRST: Final[tuple[Any, ...]] = (
    VECTOR,
    MATRIX,
    np.array([3, 1, 2], np.int32),
    np.array([True, False, True]),
    np.array([1 + 2j, 3j], np.complex64),
    np.ones((1, 2, 2)),
    [VECTOR],
    [VECTOR, VECTOR],
    [MATRIX, MATRIX],
    3,
    (2, 2),
    "i->i",
    "ij->ij",
    2.0,
)
OTHERS: Final[tuple[Any, ...]] = (
    VECTOR,
    MATRIX,
    np.array([0, 1, 2], np.int32),
    np.array([True, True, True]),
    0,
    1,
    -1,
    (2, 2),
    (3,),
    (),
    (0, 1),
    None,
    np.float32,
    2.0,
    "ij,jk->ik",
)
OPTIONS: Final[tuple[Any, ...]] = (
    0,
    1,
    (),
    None,
    True,
    False,
    2,
    "C",
    "A",
    np.float32,
    "ij",
    ((0, 0),),
)
PASSED: Final = frozenset({"out", "copy", "subok", "where", "self", "casting", "device", "like"})
"""Not passed here: no call with `out` or `copy` is taken for new memory."""


def real(name: str) -> Any:
    """The library function of a qualified name; None if there is none in this version."""
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
            for part in parts[length:]:
                found = getattr(found, part)
        except (ImportError, AttributeError):
            continue
        return found
    return None


def candidates() -> list[str]:
    """Every name of NumPy, of SciPy's special functions and of ours that has a meaning."""
    kept = ("numpy.", "scipy.special.", "pscdsl.special.", "pscdsl.random.", "pscdsl.update")
    return [n for n, each in MEANINGS.items() if n.startswith(kept) and isinstance(each, Meaning)]


def ways(function: Any) -> Iterator[tuple[Sequence[Any], Mapping[str, Any]]]:
    """Arguments of many kinds."""
    for first in FIRST:
        yield (first,), {}
        for second in OTHERS:
            yield (first, second), {}
    for first, second, third in product(FIRST[:3], (*OTHERS[:3], 1, (0,)), OTHERS[:6]):
        yield (first, second, third), {}
    for first, option, value in product(FIRST[:9], _options(function), OPTIONS):
        yield (first,), {option: value}
    for first, option, value in product(FIRST[:9], _options(function), OPTIONS[:3]):
        yield (first, first), {option: value}


def _options(function: Any) -> list[str]:
    try:
        names = [*inspect.signature(function).parameters]
    except (TypeError, ValueError):
        names = ["x", "axis", "keepdims", "dtype", "n", "k"]
    return [each for each in names[1:] if each not in PASSED]


def _most(function: Any) -> int:
    """How many arguments there are before one that is written to."""
    if isinstance(function, np.ufunc):
        return function.nin
    try:
        names = [*inspect.signature(function).parameters]
    except (TypeError, ValueError):
        return 2
    return names.index("out") if "out" in names else 3


def arrays(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """The arrays in an argument or a result."""
    if isinstance(value, np.ndarray):
        yield value
    elif is_sequence(value):
        for each in value:
            yield from arrays(each)


def outcomes(call: Callable[..., Any], given: Any) -> Iterator[tuple[str, bool]]:
    """For each call that works: how it was made, and whether its arrays are memory of their own."""
    for args, kwargs in given:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                result = call(*args, **kwargs)
        except Exception:  # what a call does not take, it need not take
            continue
        found = [each for each in arrays(result) if each.ndim]
        held = [*arrays(args), *arrays(tuple(kwargs.values()))]
        if found:
            yield (
                f"{args}, {kwargs}",
                all(
                    each.flags.writeable
                    and not any(np.shares_memory(each, other) for other in held)
                    for each in found
                ),
            )


def is_new(function: Callable[..., Any]) -> bool:
    """Whether all calls that give an array give memory of its own, and there are any."""
    most = _most(function)
    given = [each for each in ways(function) if len(each[0]) <= most]
    found = [own for _, own in outcomes(function, given)]
    return bool(found) and all(found)


def methods() -> list[str]:
    """The methods of arrays that kernels have."""
    return sorted({*AS_FUNCTION, "reshape", "transpose", "flatten", "astype", "view"})


def method_is_new(name: str) -> bool:
    """Whether all calls of a method that give an array give memory of its own."""

    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(x, name)(*args, **kwargs)

    method = getattr(VECTOR, name)
    given = [each for each in ways(method) if isinstance(each[0][0], np.ndarray)]
    given = [each for each in given if len(each[0]) < 3]
    options = ("axis", "keepdims", "dtype", "order", "decimals")
    given += [((x,), {o: v}) for x, o, v in product(FIRST[:6], options, OPTIONS)]
    found = [own for _, own in outcomes(call, given)]
    return bool(found) and all(found)


LACKING_AXES: Final[tuple[Any, ...]] = (
    np.array(2.0),
    np.array(1),
    np.array(True),
    np.array(1 + 2j),
)
"""Arrays without axes."""


def ways_without_axes(function: Any) -> Iterator[tuple[Sequence[Any], Mapping[str, Any]]]:
    """Arguments whose results often have no axes."""
    yield from ways(function)
    for first in LACKING_AXES:
        yield (first,), {}
        for second in (*LACKING_AXES, VECTOR, MATRIX, 1, 2.0):
            yield (first, second), {}
            yield (second, first), {}
        for option, value in product(_options(function), OPTIONS):
            yield (first,), {option: value}
    numbers = (*LACKING_AXES, 2.0)
    for first, second, third in product(numbers, (*numbers, VECTOR), (*numbers, VECTOR)):
        yield (first, second, third), {}


def lacking_axes(call: Callable[..., Any], given: Any, most: int) -> Iterator[tuple[str, bool]]:
    """For each result without axes: how it was made, and whether it is a scalar."""
    for args, kwargs in given:
        if len(args) > most:
            continue  # it is written to
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                result = call(*args, **kwargs)
        except Exception:  # what a call does not take, it need not take
            continue
        for each in leaves(result):
            if not np.ndim(each):
                yield f"{args}, {kwargs}", not isinstance(each, np.ndarray)


def leaves(value: Any) -> Iterator[Any]:
    """What a result consists of."""
    if is_sequence(value):
        for each in value:
            yield from leaves(each)
    else:
        yield value


def kinds(function: Callable[..., Any]) -> set[str]:
    """What a function returns where that has no axes: scalars, arrays, or now these, now those."""
    given = ways_without_axes(function)
    found = lacking_axes(function, given, _most(function))
    return {"scalar" if scalar else "array" for _, scalar in found}


def kinds_of_method(name: str) -> set[str]:
    """The same of a method."""

    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(x, name)(*args, **kwargs)

    given = [
        each
        for each in ways_without_axes(getattr(VECTOR, name))
        if isinstance(each[0][0], np.ndarray)
    ]
    given += [((x,), {"axis": axis}) for x in (VECTOR, MATRIX) for axis in (0, (0, 1), None)]
    return {"scalar" if scalar else "array" for _, scalar in lacking_axes(call, given, 2)}


_SIZES: Final = (3, (3,), (2, 3), (3, 1, 2), (), (0, 2), np.float32(3), 3.0, VECTOR, MATRIX, [1, 2])
_CREATION_OPTIONS: Final = {
    "dtype": (np.float32, np.int64, None),
    "axis": (0, 1, -1),
    "num": (1, 2, 5),
    "endpoint": (False,),
    "retstep": (True,),
    "k": (1, -1),
    "M": (1, 4),
    "step": (2, -1),
}


def creations(name: str) -> Iterator[np.ndarray[Any, Any]]:
    """Whatever a function that makes arrays returns, for arguments without `order`."""
    function = getattr(np, name)
    names = ["start", "stop", "step", "dtype"] if name == "arange" else _options(function)
    names = [each for each in names if each in _CREATION_OPTIONS]
    chosen = [[{}, *({key: v} for v in _CREATION_OPTIONS[key])] for key in names]
    for count in (1, 2, 3):
        for args in product(_SIZES, repeat=count):
            if count == 3 and name not in ("linspace", "arange"):
                break
            for options in product(*chosen):
                merged = {key: value for each in options for key, value in each.items()}
                try:
                    with warnings.catch_warnings(), np.errstate(all="ignore"):
                        warnings.simplefilter("ignore")
                        result = function(*args, **merged)
                except Exception:  # what a call does not take, it need not take
                    continue
                yield from arrays(result)
