"""How arguments and results are taken apart into leaves at a call.

tuple, list, dict, None and NamedTuples are built in; other containers are registered by exact
class.  The registry is ours alone: nothing is shared with a jax in the same process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any, Final

from pscdsl.containers import plain_fields
from pscdsl.xla import boot

boot.boot()
registry: Final[Any] = boot.jax.pytree.PyTreeRegistry()
_known: set[type] = set()
_lock = Lock()


def register_class(
    cls: type,
    to_children: Callable[[Any], tuple[Iterable[Any], Any]],
    from_children: Callable[[Any, Iterable[Any]], Any],
) -> None:
    """Make instances of exactly this class containers; again for the same class does nothing.

    `to_children(x)` gives the children and a hashable rest; `from_children(rest, children)`
    undoes it.  Where that is what reading and setting the fields of a data class comes to, jaxlib
    does it in C++, in half of the time.
    """
    with _lock:
        if cls not in _known:
            names = plain_fields(cls)
            if names is None:
                registry.register_node(cls, to_children, from_children)
            else:
                registry.register_dataclass_node(cls, names, ())
            _known.add(cls)


def is_registered(cls: type) -> bool:
    """Whether `register_class` has been called for this class."""
    return cls in _known


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves, and the structure, which is hashable and can `unflatten`."""
    leaves, structure = registry.flatten(tree)
    return leaves, structure
