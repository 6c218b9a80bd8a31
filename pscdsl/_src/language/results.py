"""The memory of library functions' results: new, or possibly that of arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, TypeAlias

from pscdsl.typing.python_containers import is_sequence


class Result(Enum):
    """The memory of a result, which may be an argument or a view of one unless known to be new.

    New memory is not shared: neither with an argument nor with another part of the result.
    """

    UNKNOWN = "may be an argument, or a view of one"
    NEW = "new memory; a scalar where it has no axes"
    ARRAY = "new memory; an array also where it has no axes"
    IN_C_ORDER = "new memory in C order; an array also where it has no axes"
    ARRANGED = "a view with the axes in another order, or backwards"
    SAME_ELEMENTS = "the elements of one array, each once: that array, a view or a copy of it"

    def __init__(self, _: str) -> None:
        self.is_new = self.name in ("NEW", "ARRAY", "IN_C_ORDER")
        self.scalars = self.name == "NEW"
        """Whether a result without axes is an immutable scalar."""
        self.in_c_order = self.name == "IN_C_ORDER"


Results: TypeAlias = "Result | tuple[Result, ...]"
"""The results of a call: one, or one for each of its parts."""
OfCall: TypeAlias = Callable[[Mapping[str, Any]], Results]
"""Returns the results of a call, given its arguments by the names of their parameters."""
Declared: TypeAlias = Result | OfCall


def new_if(holds: Callable[[Mapping[str, Any]], bool]) -> OfCall:
    """Return the declaration of a function whose result is new in some calls."""
    return lambda given: Result.NEW if holds(given) else Result.UNKNOWN


def has_axes(x: object) -> bool:
    """Return whether an argument is an array with axes, or a list that becomes one."""
    return is_sequence(x) or getattr(x, "ndim", 0) > 0
