"""`value.name`: arrays, records, modules, and the few methods of static Python values."""

from __future__ import annotations

import ast
import copy
import functools
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from pscdsl._src.frontend import purity
from pscdsl._src.frontend.interpreter.arrangements import arrangement
from pscdsl._src.frontend.interpreter.containers import ContainerMethod
from pscdsl._src.frontend.interpreter.equality import Absent, found_key, place, times
from pscdsl._src.frontend.interpreter.frames import Frame
from pscdsl._src.frontend.interpreter.functions import Closure, items_of
from pscdsl._src.frontend.interpreter.places import (
    BoundArrayMethod,
    ComplexPart,
    Located,
    Ref,
    shared,
)
from pscdsl._src.frontend.interpreter.python_numbers import is_number
from pscdsl._src.frontend.interpreter.records import RecordClass
from pscdsl._src.frontend.interpreter.stores import STORING_METHODS
from pscdsl._src.frontend.modules.files import LIBRARY_NAME
from pscdsl._src.frontend.modules.known import known_attribute
from pscdsl._src.frontend.purity import by_python, is_closed, is_set, require_closed
from pscdsl._src.frontend.size_numbers import Number
from pscdsl._src.frontend.values import (
    AnyValue,
    Array,
    CPythonFunction,
    EnumMember,
    External,
    Given,
    KnownModule,
    MapValue,
    Marker,
    Once,
    Place,
    RecordValue,
    StaticFunction,
    UnorderedView,
    VectorValue,
    View,
    describe,
    is_traced,
    require_short,
)
from pscdsl._src.ir.builder import Builder, Value, Weak, may_be_array, note_array
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl._src.support.tracebacks import LIBRARY
from pscdsl.numpy import methods
from pscdsl.typing.codes.language import NoSuchAttribute, NotStatic
from pscdsl.typing.codes.language_evaluation import NoSuchItem
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import DType, is_dtype_name
from pscdsl.typing.python_containers import NDArray, is_constant, is_dict


def _library_module(frame: Frame, name: str) -> AnyValue:
    """Return `psc.stdlib.name`; a Failure if the library has no such module."""
    modules = sorted(path.stem for path in Path(LIBRARY).glob("[!_]*.py"))
    if name not in modules:
        owner = f"module `{LIBRARY_NAME}`"
        raise Failure(NoSuchAttribute(owner=owner, attribute=name, known=tuple(modules)))
    module: AnyValue = frame.scope.library_module(name)
    return module


def attribute(frame: Frame, node: ast.Attribute, value: AnyValue, name: str) -> AnyValue:
    """Return `value.name`; a Failure if it has no meaning."""
    if is_constant(value):
        if frame.program is None:
            return _of_constant(value, name)
        value = frame.here(node).constant(value)
    if isinstance(value, Number) or is_number(value):
        instead = f"`np.asarray({frame.source.text_of(node.value)})` is an array"
        raise Failure(NoSuchAttribute(owner=describe(value), attribute=name, instead=instead))
    match value:
        case Value() | Weak():
            return _of_array(frame, node, value, name)
        case KnownModule():
            is_library = value.name == LIBRARY_NAME
            return _library_module(frame, name) if is_library else known_attribute(value, name)
        case RecordValue():
            return value.cls.attribute(frame.here(node), value, name)
        case RecordClass():
            return value.class_attribute(name)
        case External() | Marker() | StaticFunction() | Meaning() if (
            qualified := f"{value.name}.{name}"
        ) in MEANINGS:
            return MEANINGS[qualified]
        case Marker():
            raise Failure(NoSuchAttribute(owner=f"`{value.name}`", attribute=name))
        case External():
            if not value.library:
                raise Failure(purity.external_value(value))
            return External(f"{value.name}.{name}", value.why, library=True)
        case Meaning() if name == "at":
            raise Failure(purity.ufunc_at(value.name))
        case MapValue() | VectorValue():
            return _of_pyrsistent(value, name)
        case _:
            pass
    lookup: Callable[[str], AnyValue] | None = getattr(value, "lookup_attribute", None)
    if lookup is not None:
        return lookup(name)
    try:
        return _of_static(value, name, frame.source.text_of(node.value))
    except Failure as failure:
        if isinstance(value, list | dict) and isinstance(node.value, ast.Name):
            frame.poison(node.value.id)  # the program no longer determines its value
        raise failure from None


DATA: Final = frozenset("shape ndim size dtype itemsize nbytes".split())
"""Attributes of an array that do not depend on its elements."""


def attribute_of(frame: Frame, node: ast.Attribute, owner: Located, name: str) -> Place:
    """Return `owner.name` of a located array: a fact, a view or a method."""
    seen = owner.seen()
    if name in DATA:
        return attribute(frame, node, seen, name)
    if name in STORING_METHODS:
        return BoundArrayMethod(owner, name)
    found = attribute(frame, node, seen, name)  # a Failure if it has no meaning
    if isinstance(found, RecordValue | StaticFunction):  # of JAX
        return attribute(frame, node, owner.load(), name)
    if not is_traced(found):
        return BoundArrayMethod(owner, name)
    if name == "real" and not owner.type.dtype.is_complex:
        return owner
    found = attribute(frame, node, owner.load(), name)
    if isinstance(owner, Ref) and is_traced(found):
        if name in ("real", "imag") and isinstance(found, Value) and owner.type.dtype.is_complex:
            return owner.view(ComplexPart(name), found)
        if name in ("T", "mT"):
            function = "numpy.transpose" if name == "T" else "numpy.matrix_transpose"
            step = arrangement(function, owner.ndim, (), {})
            if step is not None:
                return owner.view(step, found)
    return shared(found, owner.cells(), f"`.{name}`")


def _of_array(frame: Frame, node: ast.Attribute, value: Array, name: str) -> AnyValue:
    here = frame.here(node)
    if here.program.jax is not None and (own := frame.scope.jax_array_member(name)) is not None:
        return _bound_in_jax(here, own, value)
    if purity.is_refused(name):
        raise Failure(purity.array_attribute(name, frame.source.text_of(node.value)))
    found = methods.attribute(value, name)
    if found is None:
        owner = f"an array ({value.type})"
        text = frame.source.text_of(node.value)
        instead = methods.INSTEAD.get(name, "").format(x=text)
        if function := methods.FUNCTIONS_ELSEWHERE.get(name):
            instead = f"`{purity.written(function)}` is its name here, a function of `{text}`"
        known = () if instead else methods.NAMES
        raise Failure(NoSuchAttribute(owner=owner, attribute=name, known=known, instead=instead))
    return note_array(found) if may_be_array(value) and is_traced(found) else found


def _bound_in_jax(here: Builder, member: AnyValue, array: Array) -> AnyValue:
    """Return a method of JAX's arrays, which is a function; a property is a class, called here."""
    assert isinstance(member, RecordClass | Closure)
    if isinstance(member, RecordClass):
        return member.apply(here, (array,), {})

    def apply(here: Builder, *args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        return member.apply(here, (array, *args), kwargs)

    return StaticFunction(member.name, apply)


def _of_constant(value: NDArray | np.generic[Any], name: str) -> AnyValue:
    """Return an attribute of a NumPy array at module level, as in NumPy."""
    found: AnyValue = getattr(value, name, None) if name in methods.NAMES else None
    if callable(found):
        method = cast("Callable[..., AnyValue]", found)

        def apply(here: Builder, *args: AnyValue, **kwargs: AnyValue) -> AnyValue:
            if not all(is_closed(x) or isinstance(x, DType) for x in (*args, *kwargs.values())):
                raise Failure(NotStatic(what=f"an argument of `{name}`"))
            plain = [to_numpy(x) if isinstance(x, DType) else x for x in args]
            named = {k: to_numpy(x) if isinstance(x, DType) else x for k, x in kwargs.items()}
            return method(*plain, **named)

        return StaticFunction(name, apply)
    if found is None:
        raise Failure(NoSuchAttribute(owner="a NumPy array", attribute=name))
    return found


def _of_pyrsistent(value: MapValue | VectorValue, name: str) -> AnyValue:
    """Return a method of a PMap or a PVector, or the value of a key as an attribute."""
    methods = MAP if isinstance(value, MapValue) else VECTOR
    if name in methods:
        method = methods[name]

        def apply(here: Builder, *args: AnyValue) -> AnyValue:
            return method(value, *args)

        return StaticFunction(name, apply)
    if isinstance(value, MapValue) and name in value.items:
        return value.items[name]
    raise Failure(NoSuchAttribute(owner=describe(value), attribute=name, known=tuple(methods)))


def _text_key(key: AnyValue) -> str:
    if not isinstance(key, str):
        raise Failure(NotStatic(what=f"{describe(key)} as a key of a PMap"))
    return key


def _updated(value: MapValue, other: AnyValue, /) -> MapValue:
    items = other.items if isinstance(other, MapValue) else other
    if not is_dict(items):
        raise Failure(NotStatic(what=f"`update` with {describe(other)}"))
    return MapValue({**value.items, **{_text_key(key): each for key, each in items.items()}})


def _without(value: MapValue, key: AnyValue, /, *, there: bool = False) -> MapValue:
    text = _text_key(key)
    if there and text not in value.items:
        raise Failure(NoSuchItem(found=describe(value), index=text, reason="no such key"))
    return MapValue({name: item for name, item in value.items.items() if name != text})


def _with_item(value: MapValue, key: AnyValue, item: AnyValue, /) -> MapValue:
    return MapValue({**value.items, _text_key(key): item})


def _item(value: MapValue, key: AnyValue, default: AnyValue = None, /) -> AnyValue:
    return value.items.get(_text_key(key), default)


def _keys(value: MapValue, /) -> View:
    return _view_of("the keys of a PMap", list(value.items))


def _values(value: MapValue, /) -> View:
    return _view_of("the values of a PMap", list(value.items.values()))


def _pairs(value: MapValue, /) -> View:
    return _view_of("the items of a PMap", list(value.items.items()))


def _longer(value: VectorValue, item: AnyValue, /) -> VectorValue:
    return VectorValue((*value.items, item))


def _extended(value: VectorValue, items: AnyValue, /) -> VectorValue:
    return VectorValue((*value.items, *items_of(items)))


def _placed(value: VectorValue, index: AnyValue, item: AnyValue, /) -> VectorValue:
    items = list(value.items)
    if type(index) is not int or not -len(items) <= index < len(items):
        found = describe(index)
        raise Failure(NoSuchItem(found="a PVector", index=found, reason=f"it has {len(items)}"))
    items[index] = item
    return VectorValue(tuple(items))


def _view_of(kind: str, items: list[AnyValue]) -> View:
    return View(kind, items) if len(items) < 2 else UnorderedView(kind, items)


MAP: dict[str, Callable[..., AnyValue]] = {
    "set": _with_item,
    "update": _updated,
    "remove": functools.partial(_without, there=True),
    "discard": _without,
    "get": _item,
    "keys": _keys,
    "values": _values,
    "items": _pairs,
}
VECTOR: dict[str, Callable[..., AnyValue]] = {
    "append": _longer,
    "extend": _extended,
    "set": _placed,
}


def _method(value: AnyValue, name: str) -> ContainerMethod:
    """Return a method of a Python value; for closed arguments it is CPython's."""

    def apply(here: Builder, *args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        walks = name == "join" or is_set(value)
        given: list[AnyValue]
        given = [tuple(x.take()) if walks and isinstance(x, Once) else x for x in args]
        rule = RULES.get((value.__class__, name))
        if rule is not None and (isinstance(value, dict) or not is_closed((value, *given))):
            ruled: AnyValue = rule(value, *given, **kwargs)
            return ruled
        require_closed(f"what `{name}` is given", value, *given, *kwargs.values())
        if isinstance(value, str):
            require_short(name, value, given, kwargs)
        found: AnyValue = by_python(name, getattr(value, name), given, kwargs)
        return found

    hands_on = Given.FOLLOWED if name in _FOLLOWED else Given.HELD
    return ContainerMethod(name, apply, name == "join", hands_on, name == "copy", owner=value)


def _get(value: dict[AnyValue, AnyValue], key: AnyValue, default: AnyValue = None, /) -> AnyValue:
    found = found_key(key, value)
    return default if isinstance(found, Absent) else value[found]


def _view(name: str) -> Callable[[dict[AnyValue, AnyValue]], View]:
    def view(value: dict[AnyValue, AnyValue], /) -> View:
        return View(f"the {name} of a dict", [*getattr(value, name)()])

    return view


RULES: dict[tuple[type, str], CPythonFunction] = {
    (dict, "get"): _get,
    **{(kind, "index"): place for kind in (tuple, list)},
    **{(kind, "count"): times for kind in (tuple, list)},
    **{(kind, "copy"): copy.copy for kind in (list, dict)},
    **{(dict, name): _view(name) for name in ("items", "keys", "values")},
}
"""Methods that are supported for arguments that are not closed."""
_FOLLOWED: Final = frozenset(name for _, name in RULES)
METHODS: dict[type, frozenset[str]] = {
    str: frozenset(
        "format join split startswith endswith lower upper strip replace count find index "
        "isdigit isalpha isidentifier lstrip rstrip removeprefix removesuffix title".split()
    ),
    tuple: frozenset(("index", "count")),
    list: frozenset(("index", "count", "copy")),
    dict: frozenset(("items", "keys", "values", "get", "copy")),
    range: frozenset(("index", "count")),
    **dict.fromkeys(
        (set, frozenset),
        frozenset("union intersection difference isdisjoint issubset issuperset".split()),
    ),
    float: frozenset(("is_integer",)),
    int: frozenset(("bit_length",)),
    complex: frozenset(("conjugate",)),
}
"""Methods that only compute a result from a closed value."""
PROPERTIES: dict[type, frozenset[str]] = {
    **{kind: frozenset(("real", "imag")) for kind in (bool, int, float, complex)},
    int: frozenset(("real", "imag", "numerator", "denominator")),
    **{kind: frozenset(("start", "stop", "step")) for kind in (range, slice)},
}


def _of_static(value: AnyValue, name: str, owner: str) -> AnyValue:
    refusal = purity.static_attribute(value, name, owner)
    if refusal is not None:
        raise Failure(refusal)
    kind: type[Any] = value.__class__
    if name in METHODS.get(kind, ()):
        return _method(value, name)
    holder = value
    if isinstance(value, DType) and name in ("char", "itemsize", "kind", "name"):
        module, _, last = owner.rpartition(".")
        if module and (is_dtype_name(last) or isinstance(MEANINGS.get(f"numpy.{last}"), DType)):
            instead = f"`np.dtype({owner})` has it, the class has not"
            raise Failure(
                NoSuchAttribute(owner=f"the class `{owner}`", attribute=name, instead=instead)
            )
        holder = to_numpy(value)
    elif not (
        name in PROPERTIES.get(kind, ())
        or (name in ("name", "value") and isinstance(value, Enum | EnumMember))
        or name in getattr(value, "STATIC_ATTRIBUTES", ())
    ):
        raise Failure(NoSuchAttribute(owner=describe(value), attribute=name))
    found: AnyValue = getattr(holder, name)
    return found
