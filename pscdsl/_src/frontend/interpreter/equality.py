"""Equality, identity and membership of static values.

Closed values are compared by CPython. Static arguments and fields are Python objects that a call
passes, and the source names them as it reads them: `mode == Mode.FAST`, `dtype == np.float32`, `f
is relu`. Both are converted to the value that the source would give. Sizes are compared as facts
about them. Anything else is refused.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from types import NoneType
from typing import Any, Final, NoReturn, TypeGuard

import numpy as np

from pscdsl._src.frontend.interpreter import python_numbers
from pscdsl._src.frontend.interpreter.frames import NoProgram
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.interpreter.iteration import Long
from pscdsl._src.frontend.interpreter.records import RecordClass
from pscdsl._src.frontend.modules.traces import Trace
from pscdsl._src.frontend.purity import Sets, by_python, external_value, is_closed
from pscdsl._src.frontend.size_numbers import Number
from pscdsl._src.frontend.values import (
    PYTHON_DTYPES,
    AnyValue,
    EnumMember,
    External,
    KnownModule,
    MapValue,
    Marker,
    Place,
    PythonObject,
    RecordValue,
    StaticFunction,
    Undecided,
    VectorValue,
    as_static,
    describe,
    is_traced,
)
from pscdsl._src.ir.builder import Builder, PythonNumber, Value
from pscdsl._src.ir.numpy_dtypes import meant_by
from pscdsl._src.language.meanings import Meaning
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.language import BadArguments, NotStatic
from pscdsl.typing.codes.purity import HiddenInput
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, Size
from pscdsl.typing.dtypes import DType
from pscdsl.typing.python_containers import is_tuple

Decide = Callable[[Fact], "bool | Undecided"]
"""Decides a fact about sizes, as far as it is known."""

_PLAIN: Final[tuple[type, ...]] = (
    *(bool, int, float, complex, str, bytes, range, slice, tuple, list, dict, set, frozenset),
    *(type(None), type(Ellipsis), np.ndarray),
)
_DERIVED: Final = (*_PLAIN, Enum, np.dtype)
"""Classes of static arguments whose derived classes may compare their instances otherwise."""
_COMPARING: Final = frozenset({"builtins", "enum", "numpy"})
_SAME_THING: Final = (StaticFunction, Meaning, RecordClass, KnownModule, EnumMember, Closure)
"""Values that are equal only to themselves, and to no closed value."""


def meant(value: AnyValue) -> AnyValue:
    """Return a value as the source would name it; a Failure if that does not identify it."""
    kind: type[Any] = value.__class__
    derived = kind not in _PLAIN and issubclass(kind, _DERIVED) and not issubclass(kind, np.generic)
    if derived or isinstance(value, PythonObject):
        from pscdsl._src.frontend.modules.live import abstract  # of loaded modules only

        # It is compared as it is: its identity was recorded where it was found, or given.
        held = as_static(value)
        value = abstract(held, "a static value", Trace(held))
    if isinstance(value, External):
        raise Failure(external_value(value))
    return value


def compares_as_itself(value: object) -> bool:
    """Return whether Python compares a value, and not a method of its class."""
    for cls in value.__class__.__mro__:
        if any(name in vars(cls) for name in ("__eq__", "__ne__")):
            return cls.__module__ in _COMPARING
    return True


def equal(left: AnyValue, right: AnyValue, decide: Decide) -> bool | Undecided:
    """Return whether two static values are equal; a Failure if that is unknown."""
    left, right = meant(left), meant(right)
    if is_closed(left) and is_closed(right):
        return bool(by_python("==", operator.eq, (left, right), sets=Sets.UNORDERED))
    if _is_integer(left) and _is_integer(right):
        sizes = [int(x) if isinstance(x, bool) else x for x in (left, right)]
        return decide(Fact("==", sizes[0], sizes[1]))
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Dim) and isinstance(other, float):
            return decide(Fact("==", one, int(other))) if other.is_integer() else False
    if is_tuple(left) and is_tuple(right):
        return _equal_items(left, right, decide)
    if isinstance(left, DType) or isinstance(right, DType):
        return _equal_dtypes(left, right)
    found = _one_thing(left, right)
    if found is None:
        raise _unknown(left, right)
    return found


def _is_integer(value: AnyValue) -> TypeGuard[Size]:
    return isinstance(value, int | Dim) and not isinstance(value, Enum)


def _equal_items(
    left: tuple[AnyValue, ...], right: tuple[AnyValue, ...], decide: Decide
) -> bool | Undecided:
    """Compare tuples item by item up to the first difference, then by their lengths."""
    facts: list[Fact] = []
    for one, other in zip(left, right, strict=False):
        if is_traced(one) or is_traced(other):
            raise _unknown(left, right)
        found = equal(one, other, decide)
        if found is False:
            return False
        if isinstance(found, Undecided):
            if found.any_of:
                raise _unknown(left, right)
            facts.extend(found.facts)
    if len(left) != len(right):
        return False
    return Undecided(tuple(facts)) if facts else True


def _one_thing(left: AnyValue, right: AnyValue) -> bool | None:
    """Compare values that are equal only to themselves; None if that does not decide it."""
    real = [isinstance(each, Enum) for each in (left, right)]
    if any(real) and all(r or is_closed(x) for r, x in zip(real, (left, right), strict=True)):
        return bool(left == right)  # Python decides for real members
    for one, other in ((left, right), (right, left)):
        if is_closed(other):
            return _is_closed_one(one, other)
        if isinstance(one, RecordValue) and isinstance(other, (*_SAME_THING, Enum)):
            return _is_closed_one(one, None)
    if isinstance(left, Closure) and isinstance(right, Closure):
        return left is right or _same_function(left, right)
    if isinstance(left, (*_SAME_THING, Enum)) and isinstance(right, (*_SAME_THING, Enum)):
        if left.__class__ is not right.__class__:
            return False
        if isinstance(left, RecordClass) and isinstance(right, RecordClass):
            alike = left.title == right.title and left.module == right.module
            return True if left is right else None if alike else False
        if isinstance(left, EnumMember) and isinstance(right, EnumMember):
            apart = left.owner != right.owner and not (left.alone and right.alone)
            return None if apart else left == right
        return bool(left == right)
    return None


def _is_closed_one(value: AnyValue, closed: AnyValue) -> bool | None:
    """Return whether a value that is not closed equals a closed one; None if that is unknown."""
    if isinstance(value, Dim):
        return None if isinstance(closed, int | float | complex) else False
    if isinstance(value, EnumMember):
        return False if value.alone else None
    if isinstance(value, RecordValue):
        alike = {"namedtuple": tuple, "precord": dict}.get(value.cls.kind)
        own = any(name in value.cls.members for name in ("__eq__", "__ne__"))
        own |= value.cls.has_unseen_bases
        return None if own or (alike is not None and isinstance(closed, alike)) else False
    return False if isinstance(value, _SAME_THING) else None


def _unknown(left: AnyValue, right: AnyValue) -> Failure:
    shown = [describe(each) for each in (left, right)]
    rewrite = "compare field by field" if RecordValue in (type(left), type(right)) else ""
    return Failure(NotStatic(what=f"whether {shown[0]} and {shown[1]} are equal", rewrite=rewrite))


def _equal_dtypes(left: AnyValue, right: AnyValue) -> bool:
    one, other = _dtype(left), _dtype(right)
    for each in (left, right):
        if not (is_closed(each) or isinstance(each, (*_SAME_THING, Enum, DType))):
            raise _unknown(left, right)
        if isinstance(each, tuple | list | dict | bytes):
            raise _unknown(left, right)  # NumPy makes a dtype of it
    return one is not None and one == other


def _dtype(value: AnyValue) -> DType | None:
    """Return the dtype for which NumPy takes a value in a comparison with a dtype."""
    if isinstance(value, StaticFunction):
        value = PYTHON_DTYPES.get(value.name)
    if value is None or isinstance(value, DType):
        return value
    return meant_by(value) if isinstance(value, str) else None


def _same_function(left: Closure, right: Closure) -> bool:
    """Return whether two functions as read from the source are the same."""
    if left.node is not right.node:
        return False
    cells = [getattr(each.scope, "cells", None) for each in (left, right)]
    if cells[0] == {} == cells[1] and not left.defaults and not right.defaults:
        return True
    raise Failure(NotStatic(what=f"whether two functions made as `{left.name}` are the same one"))


def identical(left: AnyValue, right: AnyValue) -> bool:
    """Evaluate `is`: by identity for functions, classes and members; an address is refused."""
    left, right = meant(left), meant(right)
    for one, other in ((left, right), (right, left)):
        if one is None or one is ... or isinstance(one, bool):
            if isinstance(other, Undecided | Number | PythonNumber) and isinstance(one, bool):
                raise Failure(NotStatic(what=f"whether {describe(other)} is {one}"))
            return one is other
    for each in (left, right):
        if is_traced(each) or is_closed(each) or not isinstance(each, (*_SAME_THING, Enum)):
            raise Failure(
                HiddenInput(function="is", what="an address in memory", rewrite="`==` compares")
            )
    found = _one_thing(left, right)
    if found is None:
        raise _unknown(left, right)
    return found


def is_among(item: AnyValue, items: Iterable[AnyValue], decide: Decide) -> bool | Undecided:
    """Evaluate `in` over items in order: the first equal item decides."""
    facts: list[Fact] = []
    for each in items:
        found = equal(item, each, decide)
        if found is True:
            return True  # for any result of the items before
        if isinstance(found, Undecided):
            if len(found.facts) > 1:
                raise _unknown(item, each)
            facts.extend(found.facts)
    return Undecided(tuple(facts), any_of=len(facts) > 1) if facts else False


def surely_equal(left: AnyValue, right: AnyValue) -> bool:
    """Return whether two static values are equal; a Failure if it depends on sizes."""
    answer = equal(left, right, _no_facts)
    assert not isinstance(answer, Undecided)
    return answer


def _no_facts(fact: Fact) -> NoReturn:
    raise Failure(NotStatic(what=f"whether {fact}"))


def place(items: Sequence[AnyValue], item: AnyValue, /) -> int:
    """Return `items.index(item)` for items that are not all closed; a Failure if it is unknown."""
    for index, each in enumerate(items):
        if surely_equal(each, item):
            return index
    raise Failure(BadArguments(function="index", problem=f"finds no {describe(item)}"))


def times(items: Sequence[AnyValue], item: AnyValue, /) -> int:
    """Return `items.count(item)` for items that are not all closed; a Failure if it is unknown."""
    return sum([surely_equal(each, item) for each in items])


def is_key(value: AnyValue) -> bool:
    """Return whether a value can be a key: its hash and its equality are known."""
    if is_tuple(value):
        return all(map(is_key, value))
    if isinstance(value, slice | list | dict | set):
        return False
    return is_closed(value) or isinstance(value, (*_SAME_THING, Enum))


def require_key(value: AnyValue) -> AnyValue:
    """Return a valid key, or item of a set; a Failure for other values."""
    if isinstance(value, External):
        raise Failure(external_value(value))
    if not is_key(value):
        raise Failure(NotStatic(what=f"{describe(value)} as a key"))
    return value


def found_key(key: AnyValue, keys: Iterable[AnyValue]) -> AnyValue | Absent:
    """Return the equal key of a dict or item of a set; ABSENT if there is none.

    Dtypes are no keys: equal ones may have different hashes.
    """
    key = require_key(meant(key))
    if is_closed(key) and isinstance(keys, dict | set | frozenset) and key in keys:
        return key
    closed = is_closed(key)
    for each in keys:
        if not (closed and is_closed(each)) and surely_equal(key, each):
            return each
    return ABSENT


class Table:
    """A dict under construction, which also compares keys that are not closed."""

    def __init__(self, items: Mapping[Any, Place] | None = None) -> None:
        self.items: dict[Any, Place] = dict(items or {})
        self._open = [key for key in self.items if not is_closed(key)]

    def put(self, key: AnyValue, value: Place) -> None:
        """Set `items[key] = value`; a Failure if it cannot be a key."""
        key = require_key(meant(key))
        closed = is_closed(key)
        if not (closed and key in self.items):
            for each in self._open if closed else self.items:
                if surely_equal(key, each):
                    key = each
                    break
            else:
                if not closed:
                    self._open.append(key)
        self.items[key] = value


class Absent:
    """The marker for a key that is not there, and for an argument that is not given."""


ABSENT: Final = Absent()


# `isinstance`, as far as the class of a value is known while checking.


PYTHON: dict[str, type] = {
    f"builtins.{each.__name__}": each
    for each in (
        bool, int, float, complex, str, tuple, list, dict, set, frozenset, range, slice,
    )
} | {"types.NoneType": NoneType}  # fmt: skip
NUMBERS = {f"builtins.{each.__name__}" for each in (bool, int, float, complex)}
OURS = {
    "record": {"pscdsl.Record"},
    "namedtuple": {"builtins.tuple"},
    "precord": {"pyrsistent.PRecord", "pyrsistent.PMap"},
}
"""The additional classes of instances, by kind of record class."""
_WITHOUT_ARRAYS = ("flax.", "optax.", "haiku.")
"""The prefixes of libraries for JAX of whose classes no array and no number is an instance."""
OPEN = ("typing.", "collections.", "numbers.", "abc.")
"""The modules of classes whose instances are decided by their abilities."""


def isinstance_(here: Builder, value: AnyValue, classes: AnyValue, /) -> bool:
    """Return whether a value is an instance of some classes; a Failure if that is unknown."""
    value = meant(value)
    in_jax = not isinstance(here, NoProgram) and here.program.jax is not None
    for cls in _flat(classes):
        is_array = in_jax and (is_traced(value) or python_numbers.is_number(value))
        found = _is_in_jax(value, cls) if is_array else _is(value, cls)
        if found is None:  # perhaps no class at all, which Python finds before it tries the next
            what = f"whether {describe(value)} is an instance of {describe(cls)}"
            raise Failure(NotStatic(what=what))
        if found:
            return True
    return False


def _flat(classes: AnyValue) -> Iterator[AnyValue]:
    if is_tuple(classes):
        for class_ in classes:
            yield from _flat(class_)
    else:
        yield classes


def _is_in_jax(value: AnyValue, cls: AnyValue) -> bool | None:
    """Return whether an array or number of a JAX program is an instance of a class."""
    if isinstance(cls, Marker | External) and cls.name == "jax.typing.ArrayLike":
        return True
    if isinstance(cls, External) and cls.library and cls.name.startswith(_WITHOUT_ARRAYS):
        return False
    if isinstance(cls, RecordClass):
        return None if cls.kind == "namespace" else False
    if python_numbers.is_number(value):  # an array of JAX where the function is traced
        found = _is(value, cls)
        is_object = isinstance(cls, Marker) and cls.name == "builtins.object"
        return None if found and not is_object else found
    if not isinstance(value, Value):  # an array of JAX, or a number of Python's or NumPy's
        return _is(value, cls)
    if isinstance(cls, Marker) and cls.name in ("jaxtyping.Array", "builtins.object"):
        return True
    if not isinstance(cls, Marker | StaticFunction) or cls.name.startswith(OPEN):
        return None
    return False


def _may_be_any(value: AnyValue) -> bool:
    """Return whether a value is an instance of a class with bases that are not followed."""
    return isinstance(value, RecordValue) and value.cls.has_unseen_bases


def _is(value: AnyValue, cls: AnyValue) -> bool | None:
    name = getattr(cls, "name", None)
    if isinstance(cls, RecordClass):
        if cls.kind in ("namespace", "typeddict"):
            return None  # a protocol, a class without instances, or one that Python does not ask
        found = isinstance(value, RecordValue) and cls in value.cls.ancestry()
        return found or (None if _may_be_any(value) else False)
    if not isinstance(name, str) or not isinstance(cls, Marker | External | StaticFunction):
        return None
    if isinstance(cls, StaticFunction) and name not in PYTHON:
        return None  # Python takes a function for no class
    if name == "builtins.object":
        return True
    if name.startswith(OPEN) or _may_be_any(value):
        return None
    if python_numbers.is_number(value):
        return python_numbers.is_of(value, name, PYTHON)
    if isinstance(value, Long):
        return name == "builtins.list" if name in PYTHON else None
    if isinstance(value, Undecided) or (is_traced(value) and not value.ndim):
        # A number of Python's or NumPy's, or an array: it is no container.
        return False if name in PYTHON.keys() - NUMBERS else None
    if is_traced(value):
        return name in ("numpy.ndarray", "pscdsl.Array")
    if isinstance(value, RecordValue):
        return name in OURS.get(value.cls.kind, ())
    if isinstance(value, MapValue | VectorValue):
        return name == ("pyrsistent.PMap" if isinstance(value, MapValue) else "pyrsistent.PVector")
    if isinstance(value, Dim):
        return name == "builtins.int"
    if is_closed(value) or isinstance(value, tuple | list | dict | slice):
        known = name in PYTHON or not name.startswith(("builtins.", "enum."))
        return (name in PYTHON and isinstance(value, PYTHON[name])) if known else None
    if isinstance(value, EnumMember) and name in PYTHON:
        return False
    if isinstance(value, (DType, *_SAME_THING)) and name in (*NUMBERS, "jaxtyping.Array"):
        return False
    return None
