"""`value.name`: arrays, records, modules, and the few methods of static Python values."""

from __future__ import annotations

import ast
from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np

from pscdsl.builder import Builder
from pscdsl.frontend import purity
from pscdsl.frontend.equality import meant
from pscdsl.frontend.frames import Frame
from pscdsl.frontend.functions import Closure
from pscdsl.frontend.known import known_attribute
from pscdsl.frontend.memory import viewed
from pscdsl.frontend.records import RecordClass
from pscdsl.frontend.values import (
    EnumMember,
    External,
    KnownModule,
    MapValue,
    Marker,
    Once,
    RecordValue,
    StaticFunction,
    VectorValue,
    describe,
    is_traced,
)
from pscdsl.frontend.weights import require_short
from pscdsl.meanings import MEANINGS, Meaning
from pscdsl.narrowing import is_constant, is_dict, is_sequence, is_slice, is_tuple
from pscdsl.numpy import methods
from pscdsl.numpy_dtypes import to_numpy
from pscdsl.typing.codes.language import NoSuchAttribute, NotStatic
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import DType

STRING = ("format", "join", "split", "startswith", "endswith", "lower", "upper", "strip", "replace")
SEQUENCE = ("index", "count")
CONSTANT_PROPERTIES = ("T", "shape", "ndim", "dtype", "size", "real", "imag")
CONSTANT_METHODS = tuple(
    "reshape astype sum mean max min prod std var transpose ravel flatten copy cumsum round dot "
    "argmax argmin argsort tolist item any all squeeze repeat swapaxes clip".split()
)


def attribute(frame: Frame, node: ast.Attribute, value: Any, name: str) -> Any:
    """What `value.name` is; a Failure if it has no meaning."""
    if is_constant(value) and frame.program is not None:
        value = frame.here(node).constant(value)
    if is_constant(value):
        return _of_constant(value, name)
    if is_traced(value):
        return _of_array(frame, node, value, name)
    if isinstance(value, KnownModule):
        return known_attribute(value, name)
    if isinstance(value, RecordValue):
        return value.cls.attribute(frame.here(node), value, name)
    if isinstance(value, RecordClass):
        return value.class_attribute(name)
    if isinstance(value, External | Marker):
        found = MEANINGS.get(f"{value.name}.{name}")
        if found is not None:
            return found
        return External(f"{value.name}.{name}", getattr(value, "why", ()))
    if isinstance(value, Meaning):
        found = MEANINGS.get(f"{value.name}.{name}")
        if found is not None:
            return found
        if name == "at":
            raise Failure(purity.ufunc_at(value.name))
    if isinstance(value, MapValue | VectorValue):
        return _of_pyrsistent(value, name)
    lookup = getattr(value, "lookup_attribute", None)
    if lookup is not None:
        return lookup(name)
    try:
        return _of_static(value, name)
    except Failure as failure:
        if isinstance(value, list | dict) and isinstance(node.value, ast.Name):
            frame.poison(node.value.id)  # it is not what the program says any more
        raise failure from None


def _of_array(frame: Frame, node: ast.Attribute, value: Any, name: str) -> Any:
    if purity.is_refused(name):
        raise Failure(purity.array_attribute(name, frame.source.text_of(node.value)))
    frame.here(node)
    found = methods.attribute(value, name)
    if found is None:
        known = tuple(each for each in dir(np.ndarray) if not each.startswith("_"))
        owner = f"an array ({value.type})"
        raise Failure(NoSuchAttribute(owner=owner, attribute=name, known=known))
    return viewed(frame.session, value, found)


def _of_constant(value: Any, name: str) -> Any:
    """An attribute of a NumPy array at module level: NumPy's own."""
    if name in CONSTANT_PROPERTIES:
        return getattr(value, name)
    if name in CONSTANT_METHODS:

        def apply(here: Any, *args: Any, **kwargs: Any) -> Any:
            plain = [to_numpy(x) if isinstance(x, DType) else x for x in args]
            named = {k: to_numpy(x) if isinstance(x, DType) else x for k, x in kwargs.items()}
            return getattr(value, name)(*plain, **named)

        return StaticFunction(name, apply)
    raise Failure(NoSuchAttribute(owner="a NumPy array", attribute=name))


def _of_pyrsistent(value: MapValue | VectorValue, name: str) -> Any:
    def table(here: Any, *args: Any) -> Any:
        if isinstance(value, MapValue):
            items = dict(value.items)
            if name == "set":
                return MapValue({**items, args[0]: args[1]})
            if name == "update":
                other = args[0]
                return MapValue(
                    {**items, **(other.items if isinstance(other, MapValue) else other)}
                )
            if name in ("remove", "discard"):
                return MapValue({k: v for k, v in items.items() if k != args[0]})
            if name == "get":
                return items.get(args[0], args[1] if len(args) > 1 else None)
            pairs = sorted(items.items())
            return {
                "keys": [k for k, _ in pairs],
                "values": [v for _, v in pairs],
                "items": pairs,
            }[name]
        vector = list(value.items)
        if name == "append":
            return VectorValue((*vector, args[0]))
        if name == "extend":
            return VectorValue((*vector, *args[0]))
        vector[args[0]] = args[1]
        return VectorValue(tuple(vector))

    known = (
        ("set", "update", "remove", "discard", "get", "keys", "values", "items")
        if isinstance(value, MapValue)
        else ("append", "extend", "set")
    )
    if name in known:
        return StaticFunction(name, table)
    if isinstance(value, MapValue) and name in value.items:
        return value.items[name]
    raise Failure(NoSuchAttribute(owner=describe(value), attribute=name, known=known))


def _method(value: Any, name: str) -> Callable[..., Any]:
    def apply(here: Builder, *args: Any, **kwargs: Any) -> Any:
        plain = [each.take() if isinstance(each, Once) else each for each in args]
        for each in (*plain, *kwargs.values()):
            if isinstance(each, External):
                raise Failure(purity.external_value(each))
        if (name != "get" and any(map(is_traced, plain))) or any(map(is_traced, plain[:1])):
            raise Failure(NotStatic(what=f"an argument of `{name}`"))
        if isinstance(value, str):
            require_short(name, value, plain, kwargs)
        elif name in _SEEKING:
            plain = list(map(_sought, plain))
        return getattr(value, name)(*plain, **kwargs)

    return apply


_SEEKING = ("get", "index", "count")


def _sought(item: Any) -> Any:
    """What is looked for among items; a Failure if Python's equality does not find it."""
    item = meant(item)
    if is_tuple(item):
        return tuple(map(_sought, item))
    if isinstance(item, Closure):
        raise Failure(NotStatic(what=f"where the function `{item.name}` is among others"))
    return item


def _listed(value: Any, name: str) -> Callable[..., Any]:
    def apply(here: Builder) -> list[Any]:
        return list(getattr(value, name)())

    return apply


def _of_static(value: Any, name: str) -> Any:
    refusal = purity.static_attribute(value, name)
    if refusal is not None:
        raise Failure(refusal)
    if isinstance(value, str) and name in STRING:
        return StaticFunction(name, _method(value, name))
    if is_sequence(value) and name in SEQUENCE:
        return StaticFunction(name, _method(value, name))
    if is_dict(value):
        if name in ("items", "keys", "values"):
            return StaticFunction(name, _listed(value, name))
        if name == "get":
            return StaticFunction(name, _method(value, name))
    if is_slice(value) and name in ("start", "stop", "step"):
        return getattr(value, name)
    if isinstance(value, int | float | complex) and name in ("real", "imag"):
        return getattr(value, name)
    if isinstance(value, DType) and name in ("char", "itemsize", "kind", "name"):
        return getattr(to_numpy(value), name)
    if isinstance(value, Enum | EnumMember) and name in ("name", "value"):
        return getattr(value, name)
    static = getattr(value, "STATIC_ATTRIBUTES", ())
    if name in static:
        return getattr(value, name)
    raise Failure(NoSuchAttribute(owner=describe(value), attribute=name))
