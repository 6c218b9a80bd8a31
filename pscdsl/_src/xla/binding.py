"""Argument binding: where the arguments of a call go, and how trees are taken apart for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from enum import Enum, Flag
from inspect import Signature as PythonSignature
from operator import is_
from threading import Lock
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from pscdsl._src.ir.numpy_dtypes import NUMPY, is_masked
from pscdsl._src.language.records import field_names, plain_fields, ways_of_container
from pscdsl._src.support.processes import keep_for_ever
from pscdsl._src.xla.runtime import boot
from pscdsl._src.xla.runtime.boot import ArrayImpl, Aval, is_committed
from pscdsl._src.xla.runtime.devices import LiveDevice, host_view, plain_truths, to_numpy
from pscdsl.typing.array_types import DictType
from pscdsl.typing.static_values import exact

# The containers of arguments and results, which a call flattens into leaves.
#
# tuple, list, None and NamedTuples are built in; other containers are registered by exact class.
# The registries are ours alone: a jax in the same process does not share them.


boot.boot()
registry: Final[Any] = boot.jax.pytree.PyTreeRegistry(enable_dict=False)
with_values: Final[Any] = boot.jax.pytree.PyTreeRegistry(enable_dict=False)
"""A registry in which numbers and strings belong to the structure, which tells static values
apart."""
_in_results: Final[Any] = boot.jax.pytree.PyTreeRegistry(enable_dict=False)
"""A registry to make results that contain static values."""
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
    """Make the instances of exactly this class containers; a second call for it does nothing.

    `to_children(x)` gives the children and a hashable rest; `from_children(rest, children)` undoes
    it. If that amounts to reading and setting the fields of a data class, jaxlib does it in C++, in
    half of the time.
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
            # jaxlib never releases a class, nor the names of its module. As long as the module
            # itself exists, Python clears these names when it ends, before its own builtins.
            keep_for_ever(sys.modules.get(cls.__module__))


def is_registered(cls: type) -> bool:
    """Return whether `register_class` has been called for this class."""
    return cls in _known[id(registry)]


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """Return the leaves, and the structure, which is hashable and can `unflatten`."""
    leaves, structure = registry.flatten(tree)
    return leaves, structure


def places(leaves: Sequence[Any], among: Sequence[Any]) -> list[int] | None:
    """Return the first ascending indices of the leaves in `among`; None if there are none."""
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
    """Make a static value, or its contents, a part of the structure in `with_values`.

    Return False if its class may also be a class of containers of arrays, so that this is
    impossible.
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
    """Return the structure that makes such a result of its outputs; None if more is needed."""
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


register_class(dict, DictType.apart, DictType.made)
_register_values()


# Argument binding: the parameters of a call's arguments, and the arguments that C++ may get.


# Python's numbers as arguments of calls.


NUMBERS: Final[frozenset[type]] = frozenset((bool, int, float, complex))
"""The classes of Python's numbers."""


# Which arguments a call gives by position, by name and by default.


Args: TypeAlias = tuple[Any, ...]
Kwargs: TypeAlias = dict[str, Any]

ABSENT: Final = object()
"""The mark of an argument that is not given, and of a parameter without a default."""


class BindingParameter(NamedTuple):
    """A parameter of a function, with the ways to give it."""

    name: str
    default: Any = ABSENT
    positional: bool = True
    """Whether a call may give it by position."""
    named: bool = True
    """Whether a call may give it by name."""
    constant: Any = ABSENT
    """A default that stays away where programs have it as a constant; ABSENT if it never does."""


def parameters(
    names: Sequence[str],
    positional: int,
    python: PythonSignature | None,
    constants: Collection[str],
) -> list[BindingParameter]:
    """Return the parameters; a call may give the first `positional` ones by position.

    `python`, if there is one, adds their defaults, and says which have no name.
    """
    if python is None:
        return [BindingParameter(name, positional=at < positional) for at, name in enumerate(names)]
    found: list[BindingParameter] = []
    for parameter in python.parameters.values():
        default = ABSENT if parameter.default is parameter.empty else parameter.default
        is_constant = parameter.name in constants
        found.append(
            BindingParameter(
                parameter.name,
                ABSENT if is_constant else default,
                positional=parameter.kind is not parameter.KEYWORD_ONLY,
                named=parameter.kind is not parameter.POSITIONAL_ONLY,
                constant=default if is_constant else ABSENT,
            )
        )
    return found


def bind_arguments(
    parameters: Sequence[BindingParameter], args: Args, kwargs: Kwargs
) -> tuple[Args, Kwargs]:
    """Return the arguments, as many by position as possible, the others in order, with defaults.

    Wrong arguments stay wrong. Without parameters all arguments stay as they are.
    """
    if len(args) == len(parameters) and not kwargs:
        return args, kwargs
    rest = dict(kwargs)
    late = list(args)
    ordered: Kwargs = {}
    gap = False
    for parameter in parameters[len(args) :]:
        value = (
            rest.pop(parameter.name, parameter.default) if parameter.named else parameter.default
        )
        if parameter.positional and not gap and value is not ABSENT:
            late.append(value)
        elif value is not ABSENT:
            ordered[parameter.name] = value
        gap = gap or value is ABSENT
    return tuple(late), {**ordered, **rest}


# NumPy arrays that C++ reads correctly, and replacements for the others.


_TRUTH: Final = np.dtype(np.bool_)
NARROW: Final = NUMPY - {np.dtype(wide) for wide in ("f8", "i8", "u8", "c16")}
"""Dtypes that C++ reads rightly also where a jax in the process keeps 64-bit types off."""


def is_native(value: Any) -> bool:
    """Return whether a value is NumPy's, exactly an array or a scalar, in our byte order."""
    kind: type[Any] = value.__class__
    return (kind is np.ndarray or issubclass(kind, np.generic)) and value.dtype in NUMPY


def dtypes() -> frozenset[np.dtype[Any]]:
    """Return the dtypes, as NumPy has them, that C++ reads rightly just now."""
    config = sys.modules.get(boot.JAX)
    wide = config is None or getattr(getattr(config, "enable_x64", None), "value", False)
    return NUMPY if wide else NARROW


def is_placed(value: Any) -> bool:
    """Return whether a value is an array committed to a device."""
    return type(value) is ArrayImpl and bool(is_committed(value))


def readable(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], here: LiveDevice
) -> tuple[tuple[Any, ...], Mapping[str, Any]] | None:
    """Replace the arguments that C++ would misread.

    C++ recognises NumPy's arrays by their class, or a subclass of it, and by the size and kind of
    their dtype: it would misread another byte order, and ignore a mask. Arrays of bool with bytes
    other than 0 and 1 are replaced too. Return None if C++ must not be called.
    """
    leaves, structure = flatten((args, kwargs))
    known = dtypes()
    replaced: list[Any] = []
    for leaf in leaves:
        kind = leaf.__class__
        if kind is np.ndarray and leaf.dtype in known:
            replaced.append(plain_truths(leaf) if leaf.dtype is _TRUTH else leaf)
        elif kind is ArrayImpl and is_committed(leaf):
            replaced.append(leaf)
        elif is_masked(leaf):
            return None
        else:
            replaced.append(_brought(leaf, known, here))
    if all(map(is_, leaves, replaced)):
        return args, kwargs
    args, kwargs = structure.unflatten(replaced)
    return tuple(args), kwargs


def _brought(value: Any, known: frozenset[np.dtype[Any]], here: LiveDevice) -> Any:
    kind: type[Any] = value.__class__
    if kind is ArrayImpl:  # not committed to a device: C++ would take it for a NumPy array
        return value if value.is_deleted() else here.put(to_numpy(value))
    if not issubclass(kind, np.ndarray | np.generic):
        return value
    dtype = value.dtype.newbyteorder("=")
    if dtype not in NUMPY:
        return value  # later checks report the error
    if issubclass(kind, np.ndarray):
        value = np.asarray(value, dtype)
        if dtype == _TRUTH:
            value = plain_truths(value)
    return value if dtype in known else here.copied(np.asarray(value), Aval(value.shape, dtype))


# The leaves of a call: those that C++ may get, and those that decide which program is called.


ARRAYS: Final = (ArrayImpl, np.ndarray)
"""The classes of arrays that are taken as they are."""


def kind(leaf: Any) -> object:
    """Return the properties of a leaf that decide which program is called; None if unknown."""
    cls: type[Any] = leaf.__class__
    if cls is ArrayImpl:
        return leaf.aval.dtype, leaf.aval.shape
    if cls is np.ndarray or issubclass(cls, np.generic):
        return leaf.dtype, leaf.shape
    return cls if cls in NUMBERS else None


def needs_no_help(leaf: Any) -> bool:
    """Return whether a leaf is on a device already, or left for `specialise` to judge."""
    if type(leaf) is ArrayImpl:
        return is_placed(leaf)
    return kind(leaf) is None and not hasattr(leaf, "__dlpack__")


def is_foreign(leaf: Any) -> bool:
    """Return whether a leaf is another library's array."""
    return kind(leaf) is None and hasattr(leaf, "__dlpack__") and not is_masked(leaf)


def all_arrays(leaves: Sequence[Any]) -> bool:
    """Return whether all leaves are arrays, so that none is a static value."""
    return all(type(x) in ARRAYS for x in leaves)


def without_foreign(args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs] | None:
    """Return the arguments with NumPy's for other libraries' arrays; None without such arrays."""
    leaves, structure = flatten((args, kwargs))
    if not any(map(is_foreign, leaves)):
        return None
    try:
        known = [host_view(leaf) if is_foreign(leaf) else leaf for leaf in leaves]
    except (BufferError, RuntimeError, TypeError):
        return None  # the boundary reports the error
    args, kwargs = structure.unflatten(known)
    return tuple(args), kwargs
