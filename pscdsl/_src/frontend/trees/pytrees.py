"""Trees of arrays: taking values apart into leaves, and putting them together again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np

from pscdsl._src.frontend.interpreter.records import RecordClass
from pscdsl._src.frontend.values.purity import external_value
from pscdsl._src.frontend.values.values import (
    External,
    MapValue,
    Poisoned,
    RecordValue,
    Undecided,
    VectorValue,
    describe,
    is_poisoned,
    is_traced,
)
from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl.typing.array_types import (
    NONE,
    ArrayType,
    MapType,
    NoneType,
    RecordType,
    StaticType,
    TupleType,
    Type,
    VectorType,
)
from pscdsl.typing.codes.control import NotATree
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim
from pscdsl.typing.python_containers import is_dict, is_sequence


def leaf(here: Builder, value: Any) -> Value | Weak | None:
    """A value as an array of the program, or None if it is not a number."""
    if isinstance(value, Value | Weak):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return here.constant(value)
    if isinstance(value, bool | int | float | complex | Dim):
        return here.weak(value)
    if isinstance(value, Undecided):
        return condition(here, value)
    return None


def condition(here: Builder, value: Undecided) -> Value:
    """A condition on sizes as a bool of the program."""
    from pscdsl._src.frontend.modules.known import compare_sizes

    return compare_sizes(here, value.facts, value.any_of)


def flatten(here: Builder, value: Any, what: str) -> tuple[list[Value | Weak], Type]:
    """The arrays of a tree, and its type; numbers count as weak arrays."""
    if is_poisoned(value):
        raise Poisoned
    leaves: list[Value | Weak] = []
    return leaves, _flatten(here, value, what, leaves)


def _flatten(here: Builder, value: Any, what: str, leaves: list[Value | Weak]) -> Type:
    found = leaf(here, value)
    if found is not None:
        leaves.append(found)
        return found.type
    if value is None:
        return NONE
    if is_sequence(value):
        return TupleType(tuple(_flatten(here, each, what, leaves) for each in value))
    if isinstance(value, RecordValue):
        return _flatten_record(here, value, what, leaves)
    if isinstance(value, MapValue):
        entries = sorted(value.items.items())
        return MapType(tuple((k, _flatten(here, v, what, leaves)) for k, v in entries))
    if isinstance(value, VectorValue):
        return VectorType(tuple(_flatten(here, each, what, leaves) for each in value.items))
    if isinstance(value, str):
        return StaticType(value)
    if isinstance(value, External):
        raise Failure(external_value(value))
    rewrite = "use a `psc.Record`, or `pyrsistent.pmap`, in its place" if is_dict(value) else ""
    raise Failure(NotATree(what=what, found=describe(value), rewrite=rewrite))


def _flatten_record(
    here: Builder, value: RecordValue, what: str, leaves: list[Value | Weak]
) -> RecordType:
    from pscdsl._src.frontend.specs.annotations import static_fields

    static = static_fields(value.cls)
    fields: list[tuple[str, Type]] = []
    for name, item in value.fields.items():
        stays = name in static and isinstance(item, Hashable) and not is_traced(item)
        fields.append((name, StaticType(item) if stays else _flatten(here, item, what, leaves)))
    return RecordType(value.name, tuple(fields))


def unflatten(tree: Type, leaves: Iterator[Any], array: Callable[[Any], Any] | None = None) -> Any:
    """The value with this type and these leaves."""
    if isinstance(tree, ArrayType):
        each = next(leaves)
        return each if array is None else array(each)
    if isinstance(tree, NoneType):
        return None
    if isinstance(tree, StaticType):
        return tree.value
    if isinstance(tree, TupleType):
        return tuple(unflatten(each, leaves, array) for each in tree.items)
    if isinstance(tree, RecordType):
        cls = tree.record.definition
        assert isinstance(cls, RecordClass)
        return RecordValue(cls, {n: unflatten(each, leaves, array) for n, each in tree.fields})
    if isinstance(tree, MapType):
        return MapValue({key: unflatten(each, leaves, array) for key, each in tree.items})
    assert isinstance(tree, VectorType)
    return VectorValue(tuple(unflatten(each, leaves, array) for each in tree.items))
