"""How trees are taken apart in kernels: tuples, records, maps and vectors of traced arrays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any

from pscdsl._src.frontend.interpreter.records import RecordClass
from pscdsl._src.frontend.trees.pytrees import leaf
from pscdsl._src.frontend.trees.walks import Node
from pscdsl._src.frontend.values.purity import external_value
from pscdsl._src.frontend.values.values import (
    External,
    MapValue,
    RecordValue,
    VectorValue,
    describe,
    is_traced,
)
from pscdsl._src.ir.builder import Builder
from pscdsl.typing.array_types import (
    NONE,
    ArrayType,
    MapType,
    RecordType,
    StaticType,
    TupleType,
    Type,
    VectorType,
)
from pscdsl.typing.codes.control import NotATree
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.python_containers import is_dict, is_sequence


class Inside:
    """How trees of the values of a kernel are taken apart."""

    def __init__(self, here: Builder, name: str) -> None:
        self.here = here
        self.name = name

    def array(self, value: Any) -> ArrayType:
        """The type of an array or number of the program."""
        found = leaf(self.here, value)
        if found is not None:
            return found.type
        if isinstance(value, External):
            raise Failure(external_value(value))
        what = f"a tree of `{self.name}`"
        rewrite = "use a `psc.Record`, or `pyrsistent.pmap`, in its place" if is_dict(value) else ""
        raise Failure(NotATree(what=what, found=describe(value), rewrite=rewrite))

    def node(self, value: Any) -> Node | None:
        """What a tuple, list, record, map or vector holds."""
        if value is None:
            return Node((), lambda _: NONE, lambda _: None)
        if is_sequence(value):
            return Node(value, TupleType, list if isinstance(value, list) else tuple)
        if isinstance(value, RecordValue):
            return self._record(value)
        if isinstance(value, MapValue):
            keys = sorted(value.items)
            return Node(
                [value.items[key] for key in keys],
                lambda types: MapType(tuple(zip(keys, types, strict=True))),
                lambda items: MapValue(dict(zip(keys, items, strict=True))),
            )
        if isinstance(value, VectorValue):
            return Node(value.items, VectorType, lambda items: VectorValue(tuple(items)))
        if isinstance(value, str):
            return Node((), lambda _: StaticType(value), lambda _: value)
        return None

    def _record(self, value: RecordValue) -> Node:
        from pscdsl._src.frontend.specs.annotations import static_fields

        cls, fields = value.cls, value.fields
        static = {
            name
            for name in static_fields(cls)
            if isinstance(fields[name], Hashable) and not is_traced(fields[name])
        }

        def made(items: list[Any]) -> RecordValue:
            return RecordValue(cls, dict(zip(fields, items, strict=True)))

        return record_node(cls, fields, static, made)


def record_node(
    cls: RecordClass,
    fields: Mapping[str, Any],
    static: Collection[str],
    made: Callable[[list[Any]], Any],
) -> Node:
    """A record: static fields belong to its structure, the others are its parts."""

    def type_of(types: tuple[Type, ...]) -> Type:
        rest = iter(types)
        known = ((n, StaticType(v) if n in static else next(rest)) for n, v in fields.items())
        return RecordType(cls.name, tuple(known))

    def filled(items: list[Any]) -> Any:
        rest = iter(items)
        return made([v if n in static else next(rest) for n, v in fields.items()])

    return Node([v for n, v in fields.items() if n not in static], type_of, filled)
