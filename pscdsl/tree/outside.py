"""Trees of real arrays: how they are taken apart outside of kernels, and what is computed there."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from pscdsl._src.calls import boundary
from pscdsl._src.calls.boundary import host_view
from pscdsl._src.calls.errors import ArgumentError
from pscdsl._src.frontend.annotations import static_fields
from pscdsl._src.frontend.modules.live import record_class
from pscdsl._src.frontend.trees import (
    Flat,
    Node,
    flattened,
    rebuilt,
    record_node,
    same_shapes,
    together,
)
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.program import kind_of
from pscdsl._src.language.instances import absent, construct, reader
from pscdsl.arrays import Array
from pscdsl.numpy.shorthand import wide
from pscdsl.typing.array_types import (
    NONE,
    ArrayType,
    DictType,
    container_kind,
    paths,
    without_order,
)
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import F32, PYTHON
from pscdsl.typing.python_containers import (
    NDArray,
)


class Outside:
    """How trees of Python's objects are taken apart."""

    def __init__(self, name: str) -> None:
        self.name = name

    def array(self, value: Any) -> ArrayType:
        """The type of an array or number."""
        if isinstance(value, bool | int | float | complex):
            return ArrayType(PYTHON[kind_of(value)])
        real = _class_of(value)
        try:
            if isinstance(value, np.ndarray | np.generic | Array):
                return boundary.array_type(value)
            if hasattr(value, "__dlpack__"):  # of another library
                return boundary.array_type(host_view(value))
            raise boundary.NotAnArgument(f"an object of class {real.__qualname__}")
        except (BufferError, RuntimeError) as problem:
            text = f"psc.tree.{self.name}: an array of another library cannot be read: {problem}"
            raise ArgumentError(text) from None
        except boundary.NotAnArgument as problem:
            plain = real is dict
            found = "a dict with other keys than strings" if plain else str(problem)
            text = f"psc.tree.{self.name}: a tree of arrays holds {found}"
            raise ArgumentError(text) from None

    def node(self, value: Any) -> Node[Any] | None:
        """What a tuple, list, record, map or vector holds."""
        if value is None:
            return Node((), lambda _: NONE, lambda _: None)
        if isinstance(value, str):
            return None
        kind = container_kind(value)
        if kind is DictType and not all(type(key) is str for key in value):
            return None
        if kind is not None:
            parts, keys = kind.apart(value)
            return Node(
                parts, lambda types: kind.of(keys, types), lambda items: kind.made(keys, items)
            )
        if isinstance(value, bool | int | float | complex | np.ndarray | np.generic | Array):
            return None
        if hasattr(value, "__dlpack__"):
            return None
        cls = record_class(_class_of(value))
        if cls is None or cls.kind == "namespace":
            return None
        if missing := absent(cls, value):
            names = ", ".join(f"`{each}`" for each in missing)
            what = f"an object of class {cls.title} without {names}"
            raise ArgumentError(f"psc.tree.{self.name}: {what}")
        read = reader(cls)
        fields = {name: read(value, name) for name in cls.field_names()}
        return record_node(cls, fields, static_fields(cls), lambda items: construct(cls, items))


def _class_of(value: object) -> type[Any]:
    return type(value)


def flat(name: str, tree: Any) -> Flat[Any]:
    """The leaves of a tree, and its type."""
    found = flattened(Outside(name), tree)
    return Flat(found.leaves, without_order(found.type))


def side_by_side(
    name: str, trees: Iterable[Any], absent: bool = False, shapes: bool = False
) -> list[tuple[Any, ...]]:
    """The leaves of trees of one structure, or of one and `shapes`; an ArgumentError if not."""
    known = [flat(name, each) for each in trees]
    try:
        rows = together(f"psc.tree.{name}", known, absent)
        for other in known[1:] if shapes else ():
            same_shapes(f"psc.tree.{name}", Assumptions(), known[0].type, other.type)
        return rows
    except Failure as failure:
        finding = failure.diagnostics[0]
        advice = f"; {finding.advice()}" if finding.advice() else ""
        raise ArgumentError(f"{finding.message()} ({finding.label()}){advice}") from None


def with_leaves(name: str, tree: Any, leaves: Iterable[Any]) -> Any:
    """The same tree with other leaves."""
    return rebuilt(Outside(name), tree, iter(leaves))


def summed(terms: Iterable[Any]) -> Any:
    """The sum of scalars in the widest of their dtypes; zero in f32 where there are none."""
    found = list(terms)
    return sum(found[1:], found[0]) if found else np.float32(0)


def accumulating(name: str, leaf: Any) -> NDArray:
    """A leaf in the dtype in which sums over it are taken: f32 for 16 bits."""
    dtype = Outside(name).array(leaf).dtype
    if not dtype.is_inexact:
        text = f"psc.tree.{name} is defined on floating or complex arrays, not on {dtype}"
        raise ArgumentError(text)
    return np.asarray(leaf, to_numpy(wide(dtype)))


def raveled(tree: Any) -> tuple[NDArray, Callable[[Any], Any]]:
    """All elements as one vector, and the function that makes a tree of such a vector."""
    name = "ravel"
    found = flat(name, tree)
    types = [each for _, each in paths(found.type)]
    for each in types[1:]:
        if each.dtype is not types[0].dtype:
            text = f"psc.tree.ravel takes leaves of one dtype, not {types[0]} and {each}"
            raise ArgumentError(text)
    dtype = to_numpy(types[0].dtype if types else F32)
    shapes = [np.shape(each) for each in found.leaves]
    ends = np.cumsum([0, *map(math.prod, shapes)]).tolist()
    arrays = [np.asarray(each, dtype).ravel() for each in found.leaves]

    def unravel(vector: Any) -> Any:
        given = np.asarray(vector)
        if given.shape != (ends[-1],):
            raise ArgumentError(f"unravel takes a vector of {ends[-1]}, not one of {given.shape}")
        pieces = zip(ends, ends[1:], shapes, strict=False)
        return with_leaves(name, tree, [given[a:b].reshape(shape) for a, b, shape in pieces])

    return np.concatenate(arrays) if arrays else np.zeros(0, dtype), unravel
