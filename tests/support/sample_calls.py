"""Calls of library functions with arrays, to see what they give back.

Each function is called in many ways, most of which fail: with arrays of several ranks and dtypes,
and with numbers, shapes and options by which functions of NumPy often give back what they are
given.
"""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, Final

import numpy as np

from pscdsl._src.frontend.modules.scope import Project
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl._src.language.results import Result
from pscdsl.numpy.methods import NAMES
from pscdsl.typing.python_containers import is_sequence, is_tuple

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
"""Not passed here."""


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


def functions() -> list[str]:
    """The names of NumPy's functions in kernels."""
    known = MEANINGS.items()
    return sorted(n for n, each in known if n.startswith("numpy.") and isinstance(each, Meaning))


def declared(result: Result) -> list[str]:
    """The names of the functions of which every call gives this."""
    known = ((name, MEANINGS[name]) for name in functions())
    return [name for name, each in known if isinstance(each, Meaning) and each.result is result]


def more_ways(name: str) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Calls of functions that have options of their own."""
    edges = np.array([0.0, 1.0, 3.0, 4.0])
    places = np.array([0, 1]), np.array([1, 1])
    match name.removeprefix("numpy."):
        case "histogram" | "histogram_bin_edges":
            for bins in (3, edges, [0, 1, 5], "auto", edges[:2]):
                yield (VECTOR, bins), {}
                yield (VECTOR,), {"bins": bins}
        case "histogram2d":
            for pair in ([2, 3], (2, edges), (edges, edges), ([0, 1], [2, 3])):
                yield (VECTOR, VECTOR, pair), {}
            for bins in (3, edges, [0, 1, 5]):
                yield (VECTOR, VECTOR, bins), {}
        case "ravel_multi_index":
            yield (places, (2, 2)), {}
            yield ((np.array(1), 1), (2, 2)), {}
        case "apply_along_axis":
            for function, x in product((np.sum, np.sort, np.array), (VECTOR, MATRIX)):
                yield (function, 0, x), {}
        case "piecewise":
            for x in (VECTOR, LACKING_AXES[0]):
                yield (x, [x > 1, x < 1], [1.0, np.array]), {}
        case "einsum":
            for x, text in product((VECTOR, MATRIX), ("i,i->i", "i,i->", "ij,j->i", "ij,jk->ki")):
                yield (text, x, x), {}
                yield (text, x, VECTOR[: x.shape[-1]]), {}
                yield (text, x, x), {"optimize": True}
            yield ("...,->...", VECTOR, LACKING_AXES[0]), {}
            yield (",->", *LACKING_AXES[:2]), {}
        case "swapaxes":
            yield (MATRIX, 0, 1), {}
        case "apply_over_axes":
            yield (np.sum, MATRIX, (0, 1)), {}
        case _:
            for n, x in product((-2, -1, 0, 1, 2, 3), (VECTOR, MATRIX, np.ones((1, 1)))):
                yield (x, n), {}
            for x, option, value in product((VECTOR, MATRIX), *_NAMED):
                yield (x,), {option: value}


_NAMED: Final = (
    ("copy", "axis", "axes", "s", "decimals", "m"),
    (True, False, (), (0,), (0, 1), -1, 3),
)


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


def most(function: Any) -> int:
    """How many arguments there are before one that is written to."""
    if isinstance(function, np.ufunc):
        return function.nin
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return 2
    if any(each.kind is each.VAR_POSITIONAL for each in parameters.values()):
        return 9
    return [*parameters].index("out") if "out" in parameters else 3


def arrays(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """The arrays in an argument or a result."""
    if isinstance(value, np.ndarray):
        yield value
    elif is_sequence(value):
        for each in value:
            yield from arrays(each)


@dataclass(frozen=True)
class Outcome:
    """A call that works: its arguments, what it returned, and which of that is new memory."""

    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    result: Any

    def __str__(self) -> str:
        return f"{self.args}, {self.kwargs}"

    @property
    def parts(self) -> tuple[Any, ...]:
        """The items of a tuple, or the one result."""
        return self.result if is_tuple(self.result) else (self.result,)

    def is_new(self, *places: int) -> bool:
        """Whether parts, by default all, are memory of their own, each element at its own place."""
        chosen = places or range(len(self.parts))
        found = [x for place in chosen for x in arrays(self.parts[place]) if x.ndim]
        held = [*arrays(self.args), *arrays(tuple(self.kwargs.values()))]
        for place, part in enumerate(self.parts):
            held += [] if place in chosen else arrays(part)
        pairs = (*product(found, held), *combinations(found, 2))
        return all(x.flags.writeable and not _overlaps(x) for x in found) and not any(
            np.shares_memory(x, y) for x, y in pairs
        )


def _overlaps(x: np.ndarray[Any, Any]) -> bool:
    steps = zip(x.strides, x.shape, strict=True)
    return x.size > 0 and any(not stride and size > 1 for stride, size in steps)


def outcomes(call: Callable[..., Any], given: Any) -> Iterator[Outcome]:
    """What comes of the calls that work."""
    for args, kwargs in given:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                result = call(*args, **kwargs)
        except Exception:  # what a call does not take, it need not take
            continue
        yield Outcome(args, kwargs, result)


def methods_of_arrays() -> list[str]:
    """The methods of arrays that kernels have."""
    return sorted(name for name in NAMES if callable(getattr(np.ndarray, name, None)))


LACKING_AXES: Final[tuple[Any, ...]] = (
    np.array(2.0),
    np.array(1),
    np.array(True),
    np.array(1 + 2j),
)
"""Arrays without axes."""
for _array in arrays((*FIRST, *OTHERS, *LACKING_AXES)):
    _array.flags.writeable = False  # some functions write to what they are given


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


def leaves(value: Any) -> Iterator[Any]:
    """What a result consists of."""
    if is_sequence(value):
        for each in value:
            yield from leaves(each)
    else:
        yield value


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
