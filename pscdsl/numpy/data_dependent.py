"""NumPy's functions whose results have as many elements as the data say: each is refused."""

from __future__ import annotations

from typing import Any, NoReturn

from pscdsl._src.language.meanings import function
from pscdsl.typing.codes.shapes_manipulation import DataDependentShape
from pscdsl.typing.diagnostics import Failure

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

for _names, _instead in (
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
        _refused(_name, _instead)
