"""Arguments of a call on their way to a declared specification: weak ones take its dtype."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from pscdsl.builder import Builder, Value, Weak
from pscdsl.frontend.pytrees import flatten
from pscdsl.frontend.tracing import of_values
from pscdsl.typing.dtypes import DType, accepts_weak
from pscdsl.typing.signatures import (
    ArraySpec,
    DTypeClass,
    MapSpec,
    OptionalSpec,
    RecordSpec,
    RepeatedSpec,
    Spec,
    TreeSpec,
    TupleSpec,
)
from pscdsl.typing.trees import (
    MapType,
    NoneType,
    RecordType,
    StaticType,
    TupleType,
    Type,
    VectorType,
    map_leaves,
)
from pscdsl.typing.trees import leaves as leaves_of


def settle(
    here: Builder,
    spec: Spec,
    value: Any,
    function: str,
    chosen: dict[str, DType],
) -> tuple[list[Value], Type]:
    """An argument's arrays and its type, weak ones in the dtype that the specification asks for.

    `chosen` keeps the dtypes that strong arguments give to dtype classes.
    """
    leaves, tree = flatten(here, value, f"an argument of `{function}`")
    settled = [
        each if isinstance(each, Value) else each.at(dtype)
        for each, dtype in zip(leaves, dtypes_of(spec, leaves, tree, chosen), strict=True)
    ]
    return settled, of_values(tree, settled)


def static_type(here: Builder, value: Any) -> Type:
    """A static argument's type; arrays keep theirs, so that matching refuses them."""
    if isinstance(value, Value | Weak):
        return value.type
    try:
        hash(value)
    except TypeError:
        return flatten(here, value, "a static argument")[1]
    return StaticType(value)


def dtypes_of(
    spec: Spec, leaves: Sequence[Value | Weak], tree: Type, chosen: dict[str, DType]
) -> list[DType]:
    """The dtypes of the arrays of a tree, weak ones in that which the specification asks for.

    A dtype class that is not `chosen` yet is what its first strong array has.
    """
    wanted = list(_dtypes(spec, tree))
    for each, dtype in zip(leaves, wanted, strict=False):
        if isinstance(each, Value) and isinstance(dtype, DTypeClass):
            chosen.setdefault(dtype.name, each.dtype)
    found: list[DType] = []
    for each, asked in zip_longest(leaves, wanted[: len(leaves)]):
        dtype = chosen.get(asked.name) if isinstance(asked, DTypeClass) else asked
        if not isinstance(each, Value) and dtype is not None and accepts_weak(dtype, each.kind):
            found.append(dtype)
        else:
            found.append(each.dtype)
    return found


def as_asked(
    spec: Spec, leaves: Sequence[Value | Weak], tree: Type, chosen: Mapping[str, DType]
) -> Type:
    """The type of a tree whose weak arrays have the dtypes that the specification asks for."""
    dtypes = iter(dtypes_of(spec, leaves, tree, dict(chosen)))
    return map_leaves(tree, lambda leaf: leaf.with_dtype(next(dtypes)))


def _dtypes(spec: Spec, tree: Type) -> Iterator[DType | DTypeClass | None]:
    """What is asked of each leaf of a tree; None where the tree does not fit the specification."""
    if isinstance(spec, ArraySpec):
        yield spec.dtype
    elif isinstance(spec, TreeSpec):
        yield from [spec.dtype for _ in leaves_of(tree)]
    elif isinstance(spec, TupleSpec) and isinstance(tree, TupleType):
        for item, part in zip(spec.items, tree.items, strict=False):
            yield from _dtypes(item, part)
    elif isinstance(spec, RepeatedSpec) and isinstance(tree, TupleType | VectorType):
        for part in tree.items:
            yield from _dtypes(spec.item, part)
    elif isinstance(spec, RecordSpec) and isinstance(tree, RecordType):
        for (_, item), (_, part) in zip(spec.fields, tree.fields, strict=False):
            yield from _dtypes(item, part)
    elif isinstance(spec, OptionalSpec) and not isinstance(tree, NoneType):
        yield from _dtypes(spec.item, tree)
    elif isinstance(spec, MapSpec) and isinstance(tree, MapType):
        for _, part in tree.items:
            yield from _dtypes(spec.item, part)
    elif not isinstance(tree, StaticType | NoneType):
        yield None
