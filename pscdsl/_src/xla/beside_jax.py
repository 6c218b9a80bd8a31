"""One class with two meanings: results of kernels and jax's arrays in one process.

Both are instances of jaxlib's class `ArrayImpl`, to which jax adds its attributes when it is
imported. From then on, each attribute that both define is looked up for the array at hand:
importing jax does not change our results, and we do not change jax's arrays.

* An array is recognised by its `aval`: results carry our class (`boot.is_ours`).
* jax sees a result as one of its arrays without a chosen device, so that all of its functions
  accept it and compute where they would for a NumPy array.
* An operation on a result and an array of jax's is jax's, as for a NumPy array.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import MethodType, ModuleType
from typing import Any, Final

import numpy as np

from pscdsl._src.xla.runtime import boot
from pscdsl._src.xla.runtime.boot import ArrayImpl, is_ours, raw_aval

_ATTACHING: Final = frozenset({"jax", "jax.numpy", "jax._src.array"})
"""The modules of jax that give attributes to the class."""
_PLAIN: Final = frozenset(
    (*(bool, int, float, complex, str, slice, range, np.ndarray), type(None), type(Ellipsis))
)
"""Classes that are certainly no arrays of jax's."""


class SharedAttribute:
    """An attribute of the class with two meanings; `theirs` is None where jax has none."""

    def __init__(self, name: str, ours: Any, theirs: Any) -> None:
        self.name = name
        self.ours = ours
        self.theirs = theirs

    def _jax_attribute(self, array: Any, owner: Any) -> Any:
        """Return the attribute that jax's arrays have."""
        theirs = self.theirs
        if theirs is None:
            text = f"{type(array).__name__!r} object has no attribute {self.name!r}"
            raise AttributeError(text, name=self.name, obj=array)
        bind = getattr(type(theirs), "__get__", None)
        return theirs if bind is None else bind(theirs, array, owner)


class SharedMethod(SharedAttribute):
    """A method; `ours` is a function."""

    def __get__(self, array: Any, owner: Any = None) -> Any:
        if array is None:
            return self.either
        if type(raw_aval(array)) is boot.Aval:
            return MethodType(self.ours, array)
        return self._jax_attribute(array, owner)

    @functools.cached_property
    def either(self) -> Callable[..., Any]:
        """Return the function that the class has: `copy.copy` and others ask the class."""

        def call(array: Any, /, *args: Any, **options: Any) -> Any:
            if type(array) is ArrayImpl and is_ours(array):
                return self.ours(array, *args, **options)
            return self._jax_attribute(array, type(array))(*args, **options)

        return functools.update_wrapper(call, self.ours if self.theirs is None else self.theirs)


class SharedProperty(SharedAttribute):
    """A property; `ours` is a function of the array."""

    def __get__(self, array: Any, owner: Any = None) -> Any:
        if array is None:
            return self if self.theirs is None else self.theirs
        if type(raw_aval(array)) is boot.Aval:
            return self.ours(array)
        return self._jax_attribute(array, owner)

    def __set__(self, array: Any, value: Any) -> None:
        self._changer(array, "__set__", "setter")(array, value)

    def __delete__(self, array: Any) -> None:
        self._changer(array, "__delete__", "deleter")(array)

    def _changer(self, array: Any, method: str, what: str) -> Callable[..., None]:
        """Return the setter or deleter of this array's attribute, or raise AttributeError."""
        attribute = property(self.ours) if is_ours(array) else self.theirs
        found: Any = getattr(attribute, method, None)
        if found is None:
            raise AttributeError(f"property of {type(array).__name__!r} object has no {what}")
        changer: Callable[..., None] = found
        return changer


def share(surface: Mapping[str, Any]) -> None:
    """Give the class our attributes, together with those of jax if it is loaded.

    Call it again whenever jax has changed the attributes.
    """
    if not boot.jax_is_loaded():
        boot.attach(ArrayImpl, **surface)
        return
    known = vars(ArrayImpl)
    for name, ours in {**surface, **_WHERE_JAX_HAS_THEM, **_SHOWN_TO_JAX}.items():
        theirs = known.get(name)
        if isinstance(theirs, SharedAttribute) or name in _LEFT_ALONE:
            continue
        if theirs is ours:  # attached before there was a jax
            theirs = None
        if theirs is None and name in _WHERE_JAX_HAS_THEM:
            continue
        if isinstance(ours, property):
            setattr(ArrayImpl, name, SharedProperty(name, ours.fget, theirs))
        elif callable(ours):
            setattr(ArrayImpl, name, SharedMethod(name, _mix(ours, theirs), theirs))
    ArrayImpl.__dir__ = _dir


def _dir(array: Any) -> list[str]:
    """Return the attributes of one array; those that only results have are left out for jax's."""
    names = [*object.__dir__(array)]
    if is_ours(array):
        return names
    absent = {
        name
        for name, each in vars(ArrayImpl).items()
        if isinstance(each, SharedAttribute) and each.theirs is None
    }
    return [name for name in names if name not in absent]


_LEFT_ALONE: Final = frozenset(
    {"shape", "dtype", "ndim", "size", "itemsize", "nbytes", "__hash__", "__array_priority__"}
)
"""Attributes of jax's class that mean the same for results."""


def _mix(ours: Callable[..., Any], theirs: Any) -> Callable[..., Any]:
    """Return our method, which calls jax's if an argument is one of jax's arrays."""
    if not callable(theirs):
        return ours

    @functools.wraps(ours)
    def call(array: Any, *args: Any, **options: Any) -> Any:
        if any(map(_has_theirs, args)) or (options and any(map(_has_theirs, options.values()))):
            return theirs(array, *args, **options)
        return ours(array, *args, **options)

    return call


def _has_theirs(value: Any) -> bool:
    """Return whether a value is an array of jax's, traced or not, or a sequence with one."""
    kind: type[Any] = value.__class__
    if kind is ArrayImpl:
        return not is_ours(value)
    if kind is tuple or kind is list:
        return any(map(_has_theirs, value))
    if kind in _PLAIN or issubclass(kind, np.generic):
        return False
    theirs: Any = getattr(sys.modules.get("jax"), "Array", None)
    return theirs is not None and isinstance(value, theirs)


def as_jax(array: Any) -> Any:
    """Return a result as an array of jax's in the same dtype, on jax's default device."""
    from pscdsl._src.xla.runtime.devices import to_numpy  # whose arrays this is about

    jax: Any = sys.modules["jax"]
    if not _is_too_wide(array):
        return jax.device_put(to_numpy(array))
    with jax.enable_x64(True):  # an array keeps its dtype, as it does as an argument of `jax.jit`
        return jax.device_put(to_numpy(array))


def _is_too_wide(array: Any) -> bool:
    """Return whether jax's configuration excludes the dtype of an array."""
    wide = raw_aval(array).dtype.name in ("int64", "uint64", "float64", "complex128")
    return wide and not sys.modules["jax"].config.jax_enable_x64


def _devices(array: Any) -> set[Any]:
    """Return the devices of an array.

    jax asks for them before it copies an array to a device that it knows. If the array belongs to
    another client of jaxlib, that would go by way of 32-bit numbers.
    """
    if _is_too_wide(array):
        raise ValueError(
            f"jax has 64-bit types switched off, and would round {raw_aval(array)}: "
            "`jax.numpy.asarray(x)` keeps it as it is"
        )
    return set(array.sharding.device_set)


_WHERE_JAX_HAS_THEM: Final[Mapping[str, Any]] = {
    "__reversed__": lambda array: iter([array[at] for at in reversed(range(len(array)))]),
}
"""Operations that Python makes of others, unless a class has them."""

_SHOWN_TO_JAX: Final[Mapping[str, Any]] = {
    "aval": property(lambda array: raw_aval(array).of_jax()),
    "devices": _devices,
    "committed": property(lambda array: False),
    "_committed": property(lambda array: False),
    "__jax_array__": property(lambda array: functools.partial(as_jax, array)),
}
"""The attributes that jax looks up, with their values for results."""


class _JaxFinder:
    """Finds modules of jax as others do, and shares the class once they are loaded."""

    def __init__(self, loaded: Callable[[], None]) -> None:
        self.loaded = loaded

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in _ATTACHING:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                self._follow(spec)
                return spec
        return None

    def _follow(self, spec: ModuleSpec) -> None:
        loader: Any = spec.loader
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module
            run(module)
            self.loaded()

        loader.exec_module = exec_module


def whenever_jax_is_loaded(then: Callable[[], None]) -> None:
    """Call a function each time that jax has given attributes to the class."""
    sys.meta_path.insert(0, _JaxFinder(then))
