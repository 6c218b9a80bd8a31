"""The state of a class when it is read: its members, its bases, and the names that it lacks."""

from __future__ import annotations

import types
from enum import Enum
from operator import itemgetter
from typing import Final

from pscdsl._src.frontend.modules.snapshots import Absent, Part, Snapshot, class_of
from pscdsl._src.frontend.text.code_texts import is_outside

_DESCRIPTORS: Final = (types.GetSetDescriptorType, types.MemberDescriptorType)
_KINDS: Final = (object, int, float, complex, tuple, list, dict, set, str, type(iter(())))
_SPECIAL: Final = frozenset(
    "__array__ __array_function__ __array_priority__ __array_ufunc__ __bool__ __enter__ __exit__ "
    "__getattr__ __imatmul__ __index__ __match_args__ __matmul__ __missing__ __post_init__ "
    "__rmatmul__".split()
).union(*map(dir, _KINDS)) - frozenset(
    "__delattr__ __dir__ __doc__ __getnewargs__ __getstate__ __init_subclass__ __reduce__ "
    "__reduce_ex__ __setattr__ __sizeof__ __subclasshook__".split()
)
"""The names that syntax looks up in classes."""


_BY_PYTHON: Final = frozenset(
    "__abstractmethods__ __annotate__ __annotate_func__ __annotations__ __annotations_cache__ "
    "__delattr__ __doc__ __parameters__ __setattr__ __signature__ __slotnames__".split()
)
"""Members that Python itself may add later, or that no kernel reads."""


CODE_PARTS: Final = ("__code__", "__defaults__", "__kwdefaults__")
"""The parts of a function besides its cells."""


def add_class(snapshot: Snapshot, cls: type) -> None:
    """Take a class with those that it derives from, without libraries'.

    Of a class that holds nothing but fields without defaults, nothing else can be read.
    """
    bases = [base for base in cls.__mro__ if not is_outside(base.__module__)]
    if all(map(_holds_fields_alone, bases)):
        return
    for base in bases:
        _add_members(snapshot, base)
        snapshot.absent.append(_absent_from(base))


def _add_members(snapshot: Snapshot, cls: type) -> None:
    held = dict(vars(cls))
    members = {name: held[name] for name in held if name not in _BY_PYTHON}
    if members:
        snapshot.parts.append(Part.by_name(itemgetter, vars(cls), members, cls.__name__))
    for name, member in members.items():
        snapshot.add_member(f"{cls.__name__}.{name}", member)
    for name in ("__init__", "__new__"):  # dataclasses and named tuples keep their defaults here
        function = getattr(held.get(name), "__func__", held.get(name))
        if isinstance(function, types.FunctionType) and function.__defaults__:
            snapshot.attributes(cls.__name__, function, CODE_PARTS)
    if issubclass(cls, Enum):
        for member in cls:
            snapshot.add(f"{cls.__name__}.{member.name}", member)


def _holds_fields_alone(cls: type) -> bool:
    """Return whether a class has only fields and generated members, no methods or values."""
    for name, member in vars(cls).items():
        function = getattr(member, "__func__", member)
        if isinstance(function, types.FunctionType):
            if not is_generated(function):
                return False
        elif name == "_field_defaults":
            if member:
                return False
        elif not (
            isinstance(member, _DESCRIPTORS)
            or class_of(member).__name__ == "_tuplegetter"
            or name in ("_fields", "_abc_impl")
            or (name.startswith("__") and not callable(member))
            or member is None
        ):
            return False
    return not issubclass(cls, Enum)


def _absent_from(cls: type) -> Absent:
    """Return the missing names that could override inherited members or the meaning of syntax."""
    inherited = {name for base in cls.__mro__[1:] for name in vars(base)}
    names = _SPECIAL | {name for name in inherited if not name.startswith("__")}
    return Absent.of(names - vars(cls).keys(), vars(cls), cls.__name__)


_GENERATING: Final = ("dataclasses", "reprlib", "collections", "typing")


def is_generated(function: types.FunctionType) -> bool:
    """Return whether Python, `dataclass` or `NamedTuple` generated a method."""
    home = function.__globals__.get("__name__")
    code = function.__code__
    generated = code.co_name == "__annotate__" or code.co_qualname.startswith("__create_fn__.")
    return generated or home in _GENERATING or str(home).startswith("namedtuple_")
