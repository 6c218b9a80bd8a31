"""What NumPy has and kernels do not: keywords, layouts in memory, sizes that the data say."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, Final, NoReturn

import numpy as np

from pscdsl._src.language.meanings import Meaning, function
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import DataDependentShape
from pscdsl.typing.diagnostics import Failure

# Keywords of NumPy's functions that there are none of here, and what is written instead.


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


# Keywords that say how an array lies in memory: they have no meaning for values, and no effect.


ORDERS = frozenset("C F A K c f a k".split())
MAKING = frozenset(
    f"numpy.{name}"
    for name in (
        "array asarray asanyarray ascontiguousarray copy eye zeros ones empty full zeros_like "
        "ones_like empty_like full_like astype"
    ).split()
)
"""Functions whose `order=` is about memory alone."""
COUNTING = frozenset(("numpy.reshape", "numpy.ravel", "numpy.flatten"))
"""Functions whose `order=` says how elements are counted: "C" is how it is done here."""


def values_only(name: str, kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keywords of a call without an `order=` that does not change the result."""
    order = kwargs.get("order", "")
    if not isinstance(order, str) or not (
        (name in MAKING and order in ORDERS) or (name in COUNTING and order in ("C", "c"))
    ):
        return kwargs
    return {key: value for key, value in kwargs.items() if key != "order"}


# NumPy's functions whose results have as many elements as the data say: each is refused.


_MASK = "keep the shape: `np.where(condition, x, neutral)` puts a neutral value elsewhere"
_SORTED = (
    "sort with `np.sort(x)`, mark what differs from the element before, and keep the shape, "
    "or count known values with `np.bincount(x, length=k)`"
)
_MEMBERS = "test for membership with `np.isin(x, y)`, and keep the shape"
_PLACES = (
    "use the mask itself, as in `np.where(condition, x, y)`; for the first place that holds, "
    "`np.argmax(condition)`"
)

for _names, _replacement in (
    ("nonzero flatnonzero argwhere", _PLACES),
    ("extract compress", _MASK),
    ("unique unique_values unique_counts unique_inverse unique_all", _SORTED),
    ("union1d intersect1d setdiff1d setxor1d", _MEMBERS),
    ("trim_zeros", _MASK),
):

    def _refused(name: str, instead: str) -> None:
        @function(f"numpy.{name}")
        def refuse(*args: Any, **kwargs: Any) -> NoReturn:
            """Refused: the shape of the result depends on the data."""
            raise Failure(DataDependentShape(what=f"the result of `numpy.{name}`", instead=instead))

    for _name in _names.split():
        _refused(_name, _replacement)
