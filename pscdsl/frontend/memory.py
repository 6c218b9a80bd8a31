"""Which arrays would share memory under plain NumPy.

Arrays have no memory in a kernel, but `y += 1` changes it where there is one: the warning about
that asks here.  A view has the array that it shows as its base; a copy is a value of its own, even
where the program computes nothing for it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pscdsl.builder import Value, Weak
from pscdsl.narrowing import is_sequence, is_tuple

if TYPE_CHECKING:
    from pscdsl.frontend.frames import Session

VIEWS = frozenset(
    (
        "T asanyarray asarray ascontiguousarray atleast_1d atleast_2d atleast_3d broadcast_to "
        "diagonal expand_dims flip fliplr flipud imag mT matrix_transpose moveaxis permute_dims "
        "ravel real reshape rollaxis rot90 squeeze swapaxes transpose view"
    ).split()
)
"""Functions, methods and properties whose result shows the elements of the array itself."""


def viewed(session: Session, of: Any, result: Any) -> Any:
    """A result that shows the elements of another array."""
    if isinstance(of, Value | Weak) and isinstance(result, Value | Weak) and result is not of:
        session.bases[id(result)] = (result, base(session, of))
    return result


def applied(session: Session, name: str, args: Sequence[Any], result: Any) -> Any:
    """The result of a library function: a view, or memory of its own."""
    if args and name.rpartition(".")[2] in VIEWS:
        return viewed(session, args[0], result)
    return fresh(result, args)


def fresh(result: Any, args: Sequence[Any]) -> Any:
    """A result that is no argument, even where it has the same elements."""
    if isinstance(result, Value | Weak) and any(_holds(each, result) for each in args):
        return copy.copy(result)
    return result


def _holds(argument: Any, result: Any) -> bool:
    if is_sequence(argument):
        return any(each is result for each in argument)
    return argument is result


def indexed(session: Session, value: Any, index: Any, result: Any) -> Any:
    """`value[index]`: a view unless the index has arrays or lists in it."""
    parts: Sequence[Any] = index if is_tuple(index) else (index,)
    if any(isinstance(each, list) or getattr(each, "ndim", 0) for each in parts):
        return fresh(result, (value,))
    return viewed(session, value, result)


def base(session: Session, value: Any) -> Any:
    """The array whose memory a value would share; the value itself if it has its own."""
    found = session.bases.get(id(value))
    return value if found is None else found[1]
