"""Arguments of a call on their way to a declared specification: weak ones take its dtype."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from itertools import zip_longest
from typing import Any

import numpy as np

from pscdsl._src.frontend.interpreter.functions import BoundMethod, Closure
from pscdsl._src.frontend.trees.pytrees import flatten, of_values
from pscdsl._src.frontend.values.closed import is_closed, parts
from pscdsl._src.frontend.values.values import (
    EnumMember,
    External,
    KnownModule,
    Partial,
    RecordValue,
    StaticFunction,
    Undecided,
    describe,
    is_type,
)
from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl.typing.array_types import (
    ArrayType,
    MapType,
    NoneType,
    RecordType,
    StaticType,
    TupleType,
    Type,
    VectorType,
    leaves,
    map_leaves,
    paths,
    show_shape,
)
from pscdsl.typing.array_types import leaves as leaves_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.control import ReturnTree
from pscdsl.typing.codes.element_types import ReturnDtype
from pscdsl.typing.codes.language import NotStatic
from pscdsl.typing.codes.shapes import axes, disagreement
from pscdsl.typing.codes.shapes_of_arguments import ReturnShape
from pscdsl.typing.diagnostics import Diagnostic, Failure
from pscdsl.typing.dims import Dim
from pscdsl.typing.dtypes import DType, accepts_weak
from pscdsl.typing.python_containers import is_constant, is_tuple
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
from pscdsl.typing.tree_differences import repair, structure_differences


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
        leaf if isinstance(leaf, Value) else leaf.at(dtype)
        for leaf, dtype in zip(leaves, dtypes_of(spec, leaves, tree, chosen), strict=True)
    ]
    return settled, of_values(tree, settled)


def static_type(here: Builder, value: Any) -> Type:
    """A static argument's type; arrays keep theirs, so that matching refuses them."""
    if isinstance(value, Value | Weak):
        return value.type
    if not _is_in_sizes(value) and holds_sizes(value):
        what = f"{describe(value)}, which holds sizes of the kernel around, in another kernel"
        raise Failure(NotStatic(what=what))
    try:
        hash(value)
    except TypeError:
        return flatten(here, value, "a static argument")[1]
    return StaticType(value)


_WITHOUT_SIZES = (Closure, KnownModule, External, EnumMember, Enum, Meaning)


def _is_in_sizes(value: Any) -> bool:
    """Whether a value consists of sizes and of what is closed, as far as tuples have it."""
    if is_tuple(value):
        return all(map(_is_in_sizes, value))
    return isinstance(value, Dim) or is_closed(value)


def holds_sizes(value: Any) -> bool:
    """Whether a static value may hold a size; what a function captures is seen where it is read."""
    if isinstance(value, Dim | Undecided):
        return True
    if isinstance(value, StaticFunction):
        return MEANINGS.get(value.name) is not value  # a method of something, else
    if is_closed(value) or is_type(value) or isinstance(value, _WITHOUT_SIZES):
        return False
    if is_tuple(value) or isinstance(value, list | dict):
        return any(map(holds_sizes, parts(value)))
    if is_constant(value):
        return False
    if isinstance(value, RecordValue):
        return any(map(holds_sizes, value.fields.values()))
    if isinstance(value, Partial):
        return any(map(holds_sizes, (value.function, *value.args, *value.kwargs.values())))
    if isinstance(value, BoundMethod):
        return holds_sizes(value.self_value)
    return not hasattr(value, "__pscdsl_definition__") and not isinstance(value, np.dtype | type)


def dtypes_of(
    spec: Spec, leaves: Sequence[Value | Weak], tree: Type, chosen: dict[str, DType]
) -> list[DType]:
    """The dtypes of the arrays of a tree, weak ones in that which the specification asks for.

    A dtype class that is not `chosen` yet is what its first strong array has.
    """
    wanted = list(_dtypes(spec, tree))
    for leaf, dtype in zip(leaves, wanted, strict=False):
        if isinstance(leaf, Value) and isinstance(dtype, DTypeClass):
            chosen.setdefault(dtype.name, leaf.dtype)
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


# What a function returns beside what it declares.


def result_problems(
    facts: Assumptions, function: str, found: Type, declared: Type
) -> list[Diagnostic]:
    """How the type that was found differs from the one declared."""
    problems: list[Diagnostic] = [
        ReturnTree(
            function=function,
            path=each.path,
            declared=str(each.wanted),
            found=str(each.found),
            why=each.why,
        )
        for each in structure_differences(found, declared)
    ]
    if problems:
        return problems
    for (path, wanted), mine in zip(paths(declared), leaves(found), strict=True):
        why = differs(facts, mine, wanted)
        if why is not None:
            problems.append(
                ReturnShape(
                    function=function,
                    path=path,
                    declared=wanted,
                    found=mine,
                    why=why,
                    rewrite=repair(facts, mine, wanted, "return it"),
                )
            )
        elif mine.dtype is not wanted.dtype:
            problems.append(ReturnDtype(function=function, path=path, declared=wanted, found=mine))
    return problems


def differs(facts: Assumptions, found: ArrayType, declared: ArrayType) -> str | None:
    """Why the shape that was found is not the declared one, or None; `_1` fits everything."""
    if found.rank != declared.rank:
        return f"[{show_shape(found.shape)}] has {axes(found.rank)}, not {declared.rank}"
    for mine, wanted in zip(found.shape, declared.shape, strict=True):
        if isinstance(wanted, Dim) and str(wanted).startswith("_"):
            continue
        if not facts.equal(mine, wanted):
            return disagreement(facts, mine, wanted)
    return None
