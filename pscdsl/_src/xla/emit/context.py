"""The MLIR context of this process, with the types, attributes and places already made in it."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from pscdsl._src.xla.runtime.boot import boot, once, untyped
from pscdsl.typing import dtypes
from pscdsl.typing.codes.limits import TooLargeToCompile
from pscdsl.typing.diagnostics import Failure, Span
from pscdsl.typing.dtypes import DType

mlir: Final = untyped("mlir.ir")
"""jaxlib's MLIR bindings."""
Shape = tuple[int, ...]

_LIMIT = 1 << 16
"""The number of attributes or places that are remembered before all are forgotten."""


def _empty_context() -> Any:
    base = mlir.Context
    of_base: Any = super

    def initialise(self: Any) -> None:
        of_base(base, self).__init__()  # not base's own, which loads every dialect of the site

    return type("Context", (base,), {"__init__": initialise})()


@once
def context() -> Any:
    """Return the one context; every module of this process lives in it."""
    return another_context()


def another_context() -> Any:
    """Return a new context, for a module that is used while other threads use the one of all."""
    boot()
    registry = mlir.DialectRegistry()
    untyped("mlir._mlir_libs._jax_mlir_ext").register_dialects(registry)
    made = _empty_context()
    made.append_dialect_registry(registry)
    made.load_all_available_dialects()
    for dialect in ("stablehlo", "chlo", "sdy"):
        untyped(f"mlir.dialects.{dialect}").register_dialect(made)
    made.enable_multithreading(False)
    return made


@cache
def element(name: str) -> Any:
    """Return the element type of a dtype, by its name."""
    with context():
        if name == "bool":
            return mlir.IntegerType.get_signless(1)
        if name == "Key":
            return mlir.IntegerType.get_unsigned(32)
        if name[0] == "i":
            return mlir.IntegerType.get_signless(int(name[1:]))
        if name[0] == "u":
            return mlir.IntegerType.get_unsigned(int(name[1:]))
        if name[0] == "c":
            return mlir.ComplexType.get(element(f"f{int(name[1:]) // 2}"))
        return {
            "bf16": mlir.BF16Type, "f16": mlir.F16Type, "f32": mlir.F32Type, "f64": mlir.F64Type
        }[name].get()  # fmt: skip


@once
def _dtype_names() -> dict[Any, str]:
    return {element(dtype.name): dtype.name for dtype in dtypes.ALL}


_MOST_ELEMENTS: Final = 1 << 59
"""XLA ends the process where the bytes of an array have more than 63 bits."""
_tensors: dict[tuple[str, Shape], Any] = {}


def tensor(name: str, shape: Shape) -> Any:
    """Return the tensor type of a dtype's name and a shape; keys have a trailing axis of 2.

    A Failure if such an array can never be.
    """
    found = _tensors.get((name, shape))
    if found is None:
        full = (*shape, 2) if name == "Key" else shape
        if math.prod([max(size, 1) for size in full]) >= _MOST_ELEMENTS:
            raise Failure(TooLargeToCompile(what=f"an array of shape {[*shape]}"))
        found = mlir.RankedTensorType.get(full, element(name), None, unknown())
        _tensors[name, shape] = found
    return found


class TensorFacts:
    """The often needed facts about a tensor type."""

    __slots__ = ("dtype", "shape")

    def __init__(self, type: Any) -> None:  # noqa: A002
        self.dtype: DType = dtypes.dtype(_dtype_names()[type.element_type])
        self.shape: Shape = tuple(type.shape)


def is_known(type: Any) -> bool:  # noqa: A002
    """Return whether kernels have the dtype of a tensor's elements."""
    return type.element_type in _dtype_names()


_facts: dict[Any, TensorFacts] = {}


def facts(type: Any) -> TensorFacts:  # noqa: A002
    """Return the dtype and shape of a tensor type; a key reads as the u32 array that it is."""
    cached = _facts.get(type)
    if cached is None:
        cached = _facts[type] = TensorFacts(type)
    return cached


@once
def unknown() -> Any:
    """No place."""
    return mlir.Location.unknown(context())


_places: dict[Span, Any] = {}


def place(span: Span) -> Any:
    """Return a span as a location, with the calls that led to it."""
    found = _places.get(span)
    if found is None:
        if len(_places) > _LIMIT:
            _places.clear()
        frames = [mlir.Location.file(f.path, f.line, f.column, context()) for f in span.frames()]
        with context():
            found = frames[0]
            if len(frames) > 1:
                found = mlir.Location.callsite(found, frames[1:])
        _places[span] = found
    return found


def main(module: Any) -> Any:
    """Return the function of a module that is called from outside."""
    return mlir.SymbolTable(module.operation)["main"]


def function(
    module: Any,
    name: str,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    place: Any,
    visibility: str = "private",
    attributes: Mapping[str, object] = MappingProxyType({}),
) -> Any:
    """Return the empty block of a new function of a module, which takes and gives these types."""
    kind = mlir.FunctionType.get(inputs, outputs, context())
    named: dict[str, object] = {
        "sym_name": name,
        "function_type": mlir.TypeAttr.get(kind, context()),
        "sym_visibility": visibility,
        **attributes,
    }
    made = mlir.Operation.create(
        "func.func",
        attributes={key: attribute(value) for key, value in named.items()},
        regions=1,
        loc=place,
        ip=mlir.InsertionPoint(module.body),
    )
    return made.regions[0].blocks.append(*inputs, arg_locs=[place] * len(inputs))


def boundary(module: Any) -> tuple[list[Any], list[Any]]:
    """Return the types that `main` takes and gives."""
    kind = mlir.FunctionType(main(module).attributes["function_type"].value)
    return list(kind.inputs), list(kind.results)


def is_real(module: Any) -> bool:
    """Return whether `main` neither takes nor gives complex numbers."""
    inputs, outputs = boundary(module)
    return not any(facts(atom).dtype.is_complex for atom in (*inputs, *outputs))


_ATTRIBUTES: Final = "mhlo.frontend_attributes"
_FAST: Final = "pscdsl.fast_math"
FAST: Final[Mapping[str, object]] = {_ATTRIBUTES: {_FAST: "true"}}
"""The attributes of modules that may be computed by the laws of real numbers."""


def set_fast(module: Any) -> None:
    """Say of a module that it may be computed by the laws of real numbers."""
    for name, value in FAST.items():
        module.operation.attributes[name] = attribute(value)


def is_fast(module: Any) -> bool:
    """Return whether a module may be computed by the laws of real numbers."""
    attributes = module.operation.attributes
    return _ATTRIBUTES in attributes and _FAST in attributes[_ATTRIBUTES]


_parsed: dict[str, Any] = {}


def parsed(text: str) -> Any:
    """Return an attribute from its text form."""
    cached = _parsed.get(text)
    if cached is None:
        if len(_parsed) > _LIMIT:
            _parsed.clear()
        cached = _parsed[text] = mlir.Attribute.parse(text, context())
    return cached


def layout(axes: Sequence[int]) -> Any:
    """Return the axes of a tensor from the fastest varying on, as an attribute."""
    text = str(list(axes)) if axes else ""
    return parsed(f"dense<{text}> : tensor<{len(axes)}xindex>")


@once
def i64() -> Any:
    """Return the 64-bit integer type."""
    return mlir.IntegerType.get_signless(64, context())


def attribute(value: Any) -> Any:
    """Return a Python value as an attribute; attributes pass through."""
    kind = value.__class__
    if kind is bool:
        return mlir.BoolAttr.get(value, context())
    if kind is int:
        return mlir.IntegerAttr.get(i64(), value)
    if kind is str:
        return mlir.StringAttr.get(value, context())
    if kind is dict:
        return mlir.DictAttr.get({k: attribute(v) for k, v in value.items()}, context())
    if kind is list or kind is tuple:
        return mlir.ArrayAttr.get([attribute(v) for v in value], context())
    return value


_arrays: dict[Shape, Any] = {}


def i64_array(values: Shape) -> Any:
    """Return numbers as an attribute."""
    found = _arrays.get(values)
    if found is None:
        if len(_arrays) > _LIMIT:
            _arrays.clear()
        found = mlir.DenseI64ArrayAttr.get(list(values), context())
        _arrays[values] = found
    return found


def dense(array: np.ndarray[Any, Any], name: str, shape: Shape) -> Any:
    """Return the elements of a constant tensor; equal elements are given once."""
    if array.size == 1 and 0 in shape:
        array = np.zeros(shape, array.dtype)
    array = np.ascontiguousarray(array).reshape(array.shape)  # which makes rank 0 rank 1
    if array.size > 1:
        bits = array.reshape(-1, 1).view(np.uint8)  # as numbers, -0.0 would equal 0.0
        if (bits[0] == bits[-1]).all() and (bits == bits[0]).all():
            array = array.reshape(-1)[0].reshape(())
    with unknown():
        return mlir.DenseElementsAttr.get(array, type=element(name), shape=shape)


# Modules as text and as bytecode.


def module_text(module: Any, *, places: bool = False) -> str:
    """Return a module as text, with source locations if asked for."""
    return str(module.operation.get_asm(enable_debug_info=places))


def module_bytecode(module: Any) -> bytes:
    """Return a module as bytecode."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()
