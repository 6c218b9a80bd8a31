"""Keywords of NumPy's functions that there are none of here, and what is written instead."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from pscdsl._src.language.meanings import Meaning
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.diagnostics import Failure

_OF_UFUNCS: Final = frozenset("where casting order dtype subok signature".split())
_OF_AXES: Final = frozenset("axes axis keepdims".split())
"""Those of functions that work along axes, such as `np.matmul`."""
_NEUTRAL: Final[dict[str, str]] = {
    **dict.fromkeys(("sum", "nansum", "count_nonzero"), "0"),
    **dict.fromkeys(("prod", "nanprod"), "1"),
    "all": "True",
    "any": "False",
    **dict.fromkeys(("max", "amax", "nanmax"), "-np.inf"),
    **dict.fromkeys(("min", "amin", "nanmin"), "np.inf"),
}
"""What leaves the result of a reduction as it is."""
_LEFT_OUT: Final = frozenset("casting subok signature like device copy overwrite_input".split())
_COUNTING: Final[dict[str, str]] = {
    "reshape": "`np.reshape(x.T, shape[::-1]).T` counts the first axis fastest",
    **dict.fromkeys(("ravel", "flatten"), "`x.T.ravel()` counts the first axis fastest"),
}
"""What `order="F"` is about values, and how that is written."""
_FIELDS: Final[dict[str, str]] = dict.fromkeys(
    ("sort", "argsort", "partition", "argpartition"), "an array has no fields: leave it out"
)
_OF_METHODS: Final = {"numpy.astype": ("order", "casting", "subok")}
"""What the method has besides the keywords of the function."""
_USUAL: Final = frozenset("order dtype casting subok copy where keepdims axis like device".split())
"""Keywords of NumPy's functions, of which some do not say what they take."""


def refuse_missing(function: Meaning, called: str, given: Mapping[str, Any]) -> None:
    """A Failure for a keyword that NumPy's function of this name has, and ours has not."""
    parameters = function.signature.parameters
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return  # it says itself why it is refused
    for keyword, value in given.items():
        if keyword not in parameters and keyword in _of_numpy(called):
            problem = f"has no keyword `{keyword}` here, which NumPy's function has"
            instead = _instead(called.removeprefix("numpy."), keyword, value)
            raise Failure(BadArguments(function=called, problem=problem, instead=instead))


def _of_numpy(called: str) -> Iterable[str]:
    """The keywords of NumPy's function of a name."""
    found: Any = np
    for part in called.split(".")[1:]:
        found = getattr(found, part, getattr(np.ndarray, part, None))
    if isinstance(found, np.ufunc):
        return _OF_UFUNCS | _OF_AXES if found.signature else _OF_UFUNCS
    try:
        return (*inspect.signature(found).parameters, *_OF_METHODS.get(called, ()))
    except (TypeError, ValueError):
        return _USUAL


def _instead(name: str, keyword: str, value: object) -> str:
    if keyword == "where":
        if name in ("mean", "average", "nanmean"):
            return "`np.sum(np.where(mask, x, 0)) / np.sum(mask).astype(x.dtype)`"
        if name in _NEUTRAL:
            return f"`np.{name}(np.where(mask, x, {_NEUTRAL[name]}))`"
        return f"`np.where(mask, np.{name}(…), other)`"
    if keyword == "order":
        counting = _COUNTING.get(name) if value in ("F", "f") else _FIELDS.get(name)
        return counting or "an array has one order in memory here: leave it out"
    if keyword == "dtype":
        return "cast the arrays, as in `x.astype(dtype)`, or the result"
    return "leave it out" if keyword in _LEFT_OUT else ""
