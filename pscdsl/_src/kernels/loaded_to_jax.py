"""A loaded kernel as a function of jax arrays: its StableHLO, as jax exports its own."""

# jax is not installed where types are checked.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pscdsl._src.calls import boundary
from pscdsl._src.interop.to_jax import (
    admit_types,
    imported,
    operand,
    register_class,
    standing_in,
    traced,
)
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl.typing.arrays import ArrayType
from pscdsl.typing.dtypes import KEY

if TYPE_CHECKING:
    from pscdsl._src.kernels.loaded import Loaded, Variant


def to_jax(loaded: Loaded) -> Callable[..., Any]:
    """A function of jax arrays that computes what the loaded kernel does; jax can `jit` it."""
    jax = imported()
    register = functools.partial(register_class, jax)
    boundary.register_signature(loaded.signature, register, apart=True)
    for layout in loaded.layouts:
        boundary.register_record(layout, register, apart=True)
    made: dict[Variant, Any] = {}

    def function(*args: Any, **kwargs: Any) -> Any:
        boundary.register_value((args, kwargs), register, loaded.record_class, apart=True)
        given, named = jax.tree.map(lambda leaf: standing_in(jax, leaf), (args, kwargs))
        variant, tree = loaded.found(loaded.arguments(given, named)[1])
        inputs, outputs = variant.types()
        admit_types(jax, loaded.name, (*inputs, *outputs))
        leaves = jax.tree.map(lambda leaf: traced(jax, leaf), (args, kwargs))
        operands = [
            operand(jax, each, type_)
            for each, type_ in zip(loaded.arguments(*leaves)[0], inputs, strict=True)
        ]
        if variant not in made:
            loaded.verify(variant)
            made[variant] = _exported(jax, loaded.name, variant)
        boundary.register_result(tree, register, apart=True)
        return boundary.result(tree, iter(made[variant].call(*operands)))

    function.__name__ = function.__qualname__ = loaded.name
    return function


def _exported(jax: Any, name: str, variant: Variant) -> Any:
    """What `jax.export.export` would have made."""
    export: Any = import_module("jax.export")
    # With one platform the module has no parameter that says which; portable ones run on any.
    checks = () if variant.module.calls else (export.DisabledSafetyCheck.platform(),)
    inputs, outputs = variant.types()
    avals = _avals(jax, inputs), _avals(jax, outputs)
    known: dict[str, Any] = {
        "fun_name": name,
        "in_tree": jax.tree.structure((tuple(avals[0]), {})),
        "in_avals": avals[0],
        "out_tree": jax.tree.structure(avals[1]),
        "out_avals": avals[1],
        "_has_named_shardings": False,
        "_in_named_shardings": (None,) * len(inputs),
        "_out_named_shardings": (None,) * len(outputs),
        "in_shardings_hlo": (None,) * len(inputs),
        "out_shardings_hlo": (None,) * len(outputs),
        "nr_devices": 1,
        "platforms": ("cpu",),
        "ordered_effects": (),
        "unordered_effects": (),
        "disabled_safety_checks": checks,
        "mlir_module_serialized": variant.module.code,
        "calling_convention_version": export.maximum_supported_calling_convention_version,
        "module_kept_var_idx": tuple(range(len(inputs))),
        "uses_global_constants": False,
        "_get_vjp": None,
    }
    fields = [each.name for each in dataclasses.fields(export.Exported)]
    return export.Exported(**{field: known[field] for field in fields})


def _avals(jax: Any, types: Sequence[ArrayType]) -> tuple[Any, ...]:
    made: list[Any] = []
    for each in types:
        shape = (*each.shape, 2) if each.dtype is KEY else each.shape
        made.append(jax.core.ShapedArray(shape, to_numpy(each.dtype)))
    return tuple(made)
