"""`value[index]`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, Final

from pscdsl._src.frontend.interpreter.equality import MISSING, found_key
from pscdsl._src.frontend.interpreter.frames import Frame
from pscdsl._src.frontend.interpreter.records import RecordClass
from pscdsl._src.frontend.text.source import Source
from pscdsl._src.frontend.text.uses import uses
from pscdsl._src.frontend.trees.pytrees import condition
from pscdsl._src.frontend.values.closed import is_closed
from pscdsl._src.frontend.values.numbers_of_sizes import Number
from pscdsl._src.frontend.values.purity import external_value
from pscdsl._src.frontend.values.values import (
    Alias,
    External,
    MapValue,
    Marker,
    RecordValue,
    StaticFunction,
    Undecided,
    VectorValue,
    describe,
    is_traced,
)
from pscdsl._src.ir.builder import Weak
from pscdsl.numpy import indexing
from pscdsl.typing.codes.language_evaluation import NoSuchItem
from pscdsl.typing.codes.shapes import DataDependentShape
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import BOOL, DType, Kind
from pscdsl.typing.python_containers import is_dict, is_known_array, is_sequence, is_tuple
from pscdsl.typing.signatures import DTypeClass

# Reductions of what a mask selects, `x[mask].mean()`, as ones of arrays that keep their shape.


_SUM: Final = "np.sum(np.where({m}, {x}, 0))"
_MOST: Final = "np.max(np.where({m}, {x}, {low}))"
_LEAST: Final = "np.min(np.where({m}, {x}, {high}))"
_COUNT: Final = "np.count_nonzero({m})"
WRITTEN: Final = {
    "sum": _SUM,
    "mean": f"{_SUM} / np.sum({{m}}).astype({{x}}.dtype)",
    "prod": "np.prod(np.where({m}, {x}, 1))",
    "max": _MOST,
    "amax": _MOST,
    "min": _LEAST,
    "amin": _LEAST,
    "any": "np.any(np.where({m}, {x}, 0))",
    "all": "np.all(np.where({m}, {x}, 1))",
    "len": _COUNT,
    "size": _COUNT,
}
"""The same of all elements, by functions of NumPy; `{m}` stands for the mask."""
_NAMED: Final = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)


def around(source: Source, node: ast.Subscript) -> tuple[ast.expr, str] | None:
    """The call or attribute that reduces `x[mask]` as a whole, and its name; None if none does."""
    parents = uses(source).parents
    parent = parents.get(node)
    if isinstance(parent, ast.Attribute):
        call = parents.get(parent)
        if parent.attr == "size":
            return parent, "size"
        if isinstance(call, ast.Call) and call.func is parent and not call.args:
            return None if call.keywords else (call, parent.attr)
    if isinstance(parent, ast.Call) and parent.args == [node] and not parent.keywords:
        function = parent.func
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            return parent, function.attr
        if isinstance(function, ast.Name) and function.id == "len":
            return parent, "len"
    return None


def reduced(source: Source, node: ast.Subscript, dtype: DType) -> str:
    """What is written for the reduction around `x[mask]`; empty if nothing is known."""
    found = around(source, node)
    if found is None:
        return ""
    name = found[1]
    counted = WRITTEN.get(name) == _COUNT
    if not counted and (dtype is BOOL or (name == "mean" and not dtype.is_inexact)):
        return ""
    x, mask = source.text_of(node.value), source.text_of(node.slice)
    written = x if isinstance(node.value, _NAMED) else f"({x})"
    limits = ("-np.inf", "np.inf")
    if dtype.is_integer:
        limits = (f"np.iinfo({written}.dtype).min", f"np.iinfo({written}.dtype).max")
    return WRITTEN.get(name, "").format(x=written, m=mask, low=limits[0], high=limits[1])


def subscript(frame: Frame, node: ast.Subscript, value: Any, index: Any) -> Any:
    """What `value[index]` is; a Failure if it has no meaning."""
    if isinstance(index, Undecided):
        index = condition(frame.here(node), index)
    if isinstance(index, External):
        raise Failure(external_value(index))
    if frame.program is not None and is_known_array(value):
        value = frame.here(node).constant(value)
    if isinstance(value, Weak) and not value.ndim:
        raise Failure(
            NoSuchItem(found="a number", index=describe(index), reason="numbers have no items")
        )
    if is_traced(value):
        frame.here(node)
        _require_known_places(frame, node, index)
        try:
            return indexing.getitem(value, index)
        except Failure as failure:
            raise _selected(failure, frame, node, value, index) from None
    if isinstance(value, MapValue):
        if isinstance(index, str) and index in value.items:
            return value.items[index]
        raise Failure(
            NoSuchItem(found=describe(value), index=describe(index), reason="no such key")
        )
    if isinstance(value, VectorValue):
        items = _sequence(value.items, index, describe(value))
        return VectorValue(items) if isinstance(index, slice) else items
    if isinstance(value, RecordValue):
        value.cls.refuse_special("__getitem__")
    if isinstance(value, RecordValue) and value.cls.kind == "precord":
        if isinstance(index, str) and index in value.fields:
            return value.fields[index]
        raise Failure(
            NoSuchItem(found=describe(value), index=describe(index), reason="no such key")
        )
    if isinstance(value, RecordValue) and value.cls.kind == "namedtuple":
        return _sequence(tuple(value.fields.values()), index, describe(value))
    if is_sequence(value) or isinstance(value, str | bytes | range):
        return _sequence(value, index, describe(value))
    if is_dict(value):
        found = MISSING if is_traced(index) else found_key(index, value)
        if found is not MISSING:
            return value[found]
        raise Failure(NoSuchItem(found="a dict", index=describe(index), reason="no such key"))
    if is_known_array(value):
        return value[index]
    if isinstance(value, Marker) and value.name in ("numpy.s_", "numpy.index_exp"):
        return index
    if isinstance(value, RecordClass) and value.enumeration:
        return value.enum_member(index)
    if _is_applied(frame, value, index):
        return Alias(value, frame, node)
    if isinstance(value, External):
        raise Failure(external_value(value))
    raise Failure(
        NoSuchItem(found=describe(value), index=describe(index), reason="it has no items")
    )


def _selected(
    failure: Failure, frame: Frame, node: ast.Subscript, value: Any, index: Any
) -> Failure:
    """The refusal of `x[mask]`, with what to write for the reduction around it."""
    (found,) = failure.diagnostics if len(failure.diagnostics) == 1 else (None,)
    if not isinstance(found, DataDependentShape) or not is_traced(index):
        return failure
    written = reduced(frame.source, node, value.dtype) if index.ndim == value.ndim else ""
    return Failure(found.replaced(written=written)) if written else failure


def _require_known_places(frame: Frame, node: ast.Subscript, index: Any) -> None:
    """A Failure for an index of Python's that may be out of range, where Python raises."""
    for part in index if is_tuple(index) else (index,):
        if isinstance(part, Number) and part.kind is Kind.INT:
            text = frame.source.text_of(node.slice)
            reason = f"it may be out of range; `np.asarray({text})` takes the nearest item there"
            raise Failure(NoSuchItem(found="an array", index=describe(part), reason=reason))


def _is_applied(frame: Frame, value: Any, index: Any) -> bool:
    """Whether `value[index]` applies a type; in a kernel, of records alone."""
    if isinstance(value, RecordClass) and value.kind != "namespace":
        return isinstance(index, str) or len(value.variables) > 0
    outside = frame.program is None or frame.session.annotating
    return outside and isinstance(value, Marker | DType | DTypeClass | RecordClass | StaticFunction)


def _sequence(items: Sequence[Any], index: Any, found: str) -> Any:
    if is_traced(index):
        raise Failure(
            NoSuchItem(
                found=found,
                index=describe(index),
                reason="an array cannot select from a Python sequence",
                rewrite="stack the items with `np.stack` and index that, or use `psc.switch`",
            )
        )
    try:
        if not is_closed(index):
            raise TypeError
        return items[index]
    except IndexError:
        reason = f"it has {len(items)} items"
        raise Failure(NoSuchItem(found=found, index=str(index), reason=reason)) from None
    except ValueError:
        reason = "the step of a slice is not 0"
        raise Failure(NoSuchItem(found=found, index=describe(index), reason=reason)) from None
    except TypeError:
        reason = "the index is not an integer or a slice"
        raise Failure(NoSuchItem(found=found, index=describe(index), reason=reason)) from None
