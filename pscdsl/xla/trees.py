"""How arguments and results are taken apart into leaves at a call.

tuple, list, dict, None and NamedTuples are built in; other containers are registered by exact
class.  The registry is ours alone: nothing is shared with a jax in the same process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any, Final

from pscdsl.containers import plain_fields
from pscdsl.typing.exact import exact
from pscdsl.xla import boot

boot.boot()
registry: Final[Any] = boot.jax.pytree.PyTreeRegistry()
_known: set[type] = set()
_lock = Lock()


def _with_values() -> Any:
    made = boot.jax.pytree.PyTreeRegistry()

    def nothing(*_: Any) -> Any:
        raise NotImplementedError("these structures are for comparing; nothing is made of them")

    for whole in (bool, int):
        made.register_dataclass_node(whole, (), ("real",))  # which C++ reads without Python
    for text in (str, bytes):
        made.register_node(text, _as_it_is, nothing)
    for number in (float, complex):
        made.register_node(number, _exactly, nothing)
    return made


def _as_it_is(value: object) -> tuple[tuple[()], object]:
    return (), value


def _exactly(value: object) -> tuple[tuple[()], object]:
    return (), exact(value)


with_values: Final[Any] = _with_values()
"""The same, but numbers and strings are a part of the structure: it tells static values apart."""


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
            for each in (registry, with_values):
                if names is None:
                    each.register_node(cls, to_children, from_children)
                else:
                    each.register_dataclass_node(cls, names, ())
            _known.add(cls)


def is_registered(cls: type) -> bool:
    """Whether `register_class` has been called for this class."""
    return cls in _known


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves, and the structure, which is hashable and can `unflatten`."""
    leaves, structure = registry.flatten(tree)
    return leaves, structure
