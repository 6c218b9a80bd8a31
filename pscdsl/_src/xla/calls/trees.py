"""How arguments and results are taken apart into leaves at a call.

tuple, list, None and NamedTuples are built in; other containers are registered by exact class.  The
registries are ours alone: nothing is shared with a jax in the same process.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from enum import Enum, Flag
from operator import is_
from threading import Lock
from typing import Any, Final

import numpy as np

from pscdsl._src.language.records import field_names, plain_fields, ways_of_container
from pscdsl._src.support.processes import keep_for_ever
from pscdsl._src.xla.runtime import boot
from pscdsl.typing.static_values import exact

boot.boot()
registry: Final[Any] = boot.jax.pytree.PyTreeRegistry(enable_dict=False)
with_values: Final[Any] = boot.jax.pytree.PyTreeRegistry(enable_dict=False)
"""The same, but numbers and strings are a part of the structure: it tells static values apart."""
_in_results: Final[Any] = boot.jax.pytree.PyTreeRegistry(enable_dict=False)
"""The same, for making results that have static values in them."""
VALUES: Final = (bool, int, float, complex, str, bytes)
"""The classes whose instances are a part of the structure in `with_values`."""
_ALL: Final = (registry, with_values, _in_results)
_known: Final[dict[int, set[type]]] = {id(each): set() for each in _ALL}
_lock: Final = Lock()


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
    for each in _ALL:
        _register(each, cls, to_children, from_children)


def _register(where: Any, cls: type, to_children: Any, from_children: Any) -> None:
    names = plain_fields(cls)

    def register() -> None:
        if names is None:
            where.register_node(cls, to_children, from_children)
        else:
            where.register_dataclass_node(cls, names, ())

    _once(where, cls, register)


def _once(where: Any, cls: type, register: Callable[[], None]) -> None:
    with _lock:
        if cls not in _known[id(where)]:
            register()
            _known[id(where)].add(cls)
            # jaxlib never lets go of a class, nor of the names of its module.  As long as there is
            # the module itself, Python clears these names when it ends, before its own builtins.
            keep_for_ever(sys.modules.get(cls.__module__))


def is_registered(cls: type) -> bool:
    """Whether `register_class` has been called for this class."""
    return cls in _known[id(registry)]


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves, and the structure, which is hashable and can `unflatten`."""
    leaves, structure = registry.flatten(tree)
    return leaves, structure


def places(leaves: Sequence[Any], among: Sequence[Any]) -> list[int] | None:
    """Where leaves are among others, the first places that they can have in order; None if none."""
    found: list[int] = []
    place = 0
    for leaf in leaves:
        while place < len(among) and among[place] is not leaf:
            place += 1
        if place == len(among):
            return None
        found.append(place)
        place += 1
    return found


def show(value: Any) -> bool:
    """Make what a static value holds, or itself, a part of the structure in `with_values`.

    False if that cannot be, since its class may also be one of containers of arrays.
    """
    cls: type[Any] = value.__class__
    names = field_names(cls)
    if names is not None:
        _register(with_values, cls, *ways_of_container(cls, names))
        return True
    if isinstance(value, Enum) and not isinstance(value, Flag):  # flags combined have no name
        _once(with_values, cls, lambda: with_values.register_dataclass_node(cls, (), ("_name_",)))
        return True
    if isinstance(value, Mapping | Sequence | Set | np.generic):
        return False
    _register(with_values, cls, _exactly, _given)
    return True


def result_structure(result: Any, outputs: Sequence[Any]) -> Any:
    """What makes a result like this one of outputs in order; None if that takes more."""
    for _ in range(2):
        leaves, structure = _in_results.flatten(result)
        if len(leaves) == len(outputs) and all(map(is_, leaves, outputs)):
            return structure
        for leaf in leaves:
            cls: type[Any] = leaf.__class__
            if all(leaf is not output for output in outputs) and field_names(cls) is None:
                _register(_in_results, cls, _as_it_is, _given)
    return None


def _as_it_is(value: object) -> tuple[tuple[()], object]:
    return (), value


def _exactly(value: object) -> tuple[tuple[()], object]:
    return (), exact(value)


def _given(rest: Any, children: Any) -> Any:
    del children
    return rest


def _of_dict(value: dict[Any, Any]) -> tuple[list[Any], tuple[Any, ...]]:
    keys: tuple[Any, ...] = tuple(value)
    try:
        keys = tuple(sorted(keys))
    except TypeError:  # jaxlib's own way stops here; who takes no dicts, says so
        pass
    return [value[key] for key in keys], keys


def _to_dict(keys: tuple[Any, ...], items: Iterable[Any]) -> dict[Any, Any]:
    return dict(zip(keys, items, strict=True))


def _register_values() -> None:
    for whole in (bool, int):
        with_values.register_dataclass_node(whole, (), ("real",))  # C++ reads it without Python
    for text in (str, bytes):
        with_values.register_node(text, _as_it_is, _given)
    for number in (float, complex):
        with_values.register_node(number, _exactly, _given)
    for cls in VALUES:
        _in_results.register_node(cls, _as_it_is, _given)
        _known[id(with_values)].add(cls)
        _known[id(_in_results)].add(cls)


register_class(dict, _of_dict, _to_dict)
_register_values()
