# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false
"""Kernels and loaded kernels as functions of jax arrays, around which jax can `jit`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from pscdsl._src.calls import boundary
from pscdsl._src.calls.errors import ArgumentError
from pscdsl._src.frontend.arguments import are_numbers
from pscdsl._src.interop.array_programs import ArrayProgram, as_function, narrowed
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.program import Function
from pscdsl._src.language.elements import Array
from pscdsl._src.targets.pipeline import lower_module
from pscdsl._src.xla.emit.context import module_text
from pscdsl._src.xla.runtime import boot
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dtypes import KEY

if TYPE_CHECKING:
    from pscdsl._src.kernels.kernel import Kernel
    from pscdsl._src.kernels.loaded import Loaded, Variant
    from pscdsl._src.xla.specialisation import Specialisation


# One primitive of jax, if jax is installed: the call of a typed program.
#
# It is lowered to the StableHLO from which the program would be compiled here, as a function of the
# module that jax is making. Its derivatives and batches are calls of the programs that we derive;
# we transpose its linear part as well, so that reverse mode saves the same values as here.


# jax is not installed where types are checked.


NAME = "pscdsl_call"


def call(program: ArrayProgram, operands: Sequence[Any]) -> list[Any]:
    """Return the results of a program for arrays, or tracers, of jax."""
    results: list[Any] = primitive().bind(*operands, program=program)
    return results


@boot.once
def primitive() -> Any:
    """Return the primitive, with its rules; made when first asked for, because it imports jax."""
    jax: Any = import_module("jax")
    ad: Any = import_module("jax.interpreters.ad")
    batching: Any = import_module("jax.interpreters.batching")
    mlir: Any = import_module("jax.interpreters.mlir")
    made = import_module("jax.extend.core").Primitive(NAME)
    made.multiple_results = True

    @functools.partial(jax.jit, static_argnames="program")
    def run(*operands: Any, program: ArrayProgram) -> Any:
        return made.bind(*operands, program=program)

    made.def_impl(run)

    def types(*operands: Any, program: ArrayProgram) -> list[Any]:
        del operands
        return [
            jax.core.ShapedArray(shape(output), to_numpy(output.dtype))
            for output in program.outputs
        ]

    made.def_abstract_eval(types)

    def lower(ctx: Any, *operands: Any, program: ArrayProgram) -> Any:
        return _call(mlir, ctx.module_context.module, program, operands)

    mlir.register_lowering(made, lower)

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], *, program: ArrayProgram) -> Any:
        active = tuple(
            type(tangent) is not ad.Zero and operand.dtype.is_inexact
            for tangent, operand in zip(tangents, program.inputs, strict=True)
        )
        found = program.linearized(active)
        results = made.bind(*primals, program=found.values)
        count = len(program.outputs)
        moving = [tangent for tangent, moves in zip(tangents, active, strict=True) if moves]
        linear = iter(made.bind(*results[count:], *moving, program=found.tangents))
        return results[:count], [
            next(linear) if moves else still(result)
            for result, moves in zip(results, found.moving, strict=False)
        ]

    ad.primitive_jvps[made] = jvp

    def still(result: Any) -> Any:
        return ad.Zero(jax.core.ShapedArray(result.shape, jax.dtypes.float0))

    def transpose(cotangents: Sequence[Any], *operands: Any, program: ArrayProgram) -> list[Any]:
        linear = tuple(ad.is_undefined_primal(operand) for operand in operands)
        given = tuple(type(cotangent) is not ad.Zero for cotangent in cotangents)
        known = [
            operand for operand, is_linear in zip(operands, linear, strict=True) if not is_linear
        ]
        known += [
            cotangent for cotangent, is_given in zip(cotangents, given, strict=True) if is_given
        ]
        remaining = iter(made.bind(*known, program=program.transposed(linear, given)))
        return [next(remaining) if is_linear else None for is_linear in linear]

    ad.primitive_transposes[made] = transpose

    def batch(operands: Sequence[Any], axes: Sequence[Any], *, program: ArrayProgram) -> Any:
        many = tuple(axis is not None for axis in axes)
        moved = [
            jax.numpy.moveaxis(operand, axis, 0) if is_batched else operand
            for operand, axis, is_batched in zip(operands, axes, many, strict=True)
        ]
        size = moved[many.index(True)].shape[0]
        found, kept = program.batched(many, size)
        results = made.bind(*moved, program=found)
        return results, [0 if is_batched else None for is_batched in kept]

    batching.primitive_batchers[made] = batch
    return made


def shape(type: ArrayType) -> tuple[int, ...]:  # noqa: A002
    """Return the shape of the array that stores one of a type; keys are pairs of words."""
    sizes: Any = type.shape
    return (*sizes, 2) if type.dtype is KEY else tuple(sizes)


def _call(mlir: Any, module: Any, program: ArrayProgram, operands: Sequence[Any]) -> Any:
    """Call a program in a module that jax is making."""
    func: Any = boot.untyped("mlir.dialects.func")
    text = module_text(lower_module(program.function, program.sizes))
    with module.context:
        made = mlir.ir.Module.parse(text)
    entry = next(statement for statement in made.body if statement.name.value == "main")
    results = entry.type.results
    symbol = mlir.merge_mlir_modules(module, program.function.name, made)
    return func.CallOp(results, mlir.ir.FlatSymbolRefAttr.get(symbol), list(operands)).results


# The functions.


# A kernel as a function of jax arrays, around which jax can `jit`, `grad` and `vmap`.


_registered: set[type] = set()


@Array.register
class TracedArray:
    """A tracer of jax on its way into a kernel: an array with only its type known."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.shape = value.shape
        self.dtype = value.dtype


def kernel_to_jax(kernel: Kernel[..., Any]) -> Callable[..., Any]:
    """Return a function of jax arrays that computes the kernel.

    Records and pyrsistent containers become pytrees of jax. Raise ImportError without jax, the
    ArgumentErrors of the kernel, and one if the kernel needs 64-bit types that are switched off in
    jax.
    """
    jax = imported()
    register = functools.partial(register_class, jax)
    boundary.register_signature(kernel.signature, register, apart=True)
    programs: dict[tuple[Function, tuple[tuple[str, int], ...], bool], ArrayProgram] = {}

    def program(specialisation: Specialisation) -> ArrayProgram:
        whole, sizes = specialisation.program, specialisation.sizes
        wide = bool(jax.config.jax_enable_x64)
        key = whole, tuple(sorted(sizes.items())), wide
        if key not in programs:
            flat = as_function(whole, whole.body)
            specs = {each.name: each.spec for each in kernel.signature.parameters}
            numbers = [
                is_number
                for name, tree in whole.parameters
                for is_number in are_numbers(specs[name], tree)
            ]
            programs[key] = ArrayProgram(flat if wide else narrowed(flat, numbers), sizes)
        return programs[key]

    @functools.wraps(kernel)
    def function(*args: Any, **kwargs: Any) -> Any:

        boundary.register_value((args, kwargs), register, kernel.record_class, apart=True)
        given, named = jax.tree.map(lambda leaf: standing_in(jax, leaf), (args, kwargs))
        specialisation = kernel.without_effects(kernel.specialisation_for(given, named))
        found = program(specialisation)
        leaves = jax.tree.map(lambda leaf: traced(jax, leaf), (args, kwargs))
        operands = [
            operand(jax, each, type_)
            for each, type_ in zip(kernel.arguments(*leaves)[0], found.inputs, strict=True)
        ]
        admit_types(jax, kernel.name, (*found.inputs, *found.outputs))
        tree = specialisation.program.result
        assert tree is not None
        boundary.register_result(tree, register, apart=True)
        return boundary.result(tree, iter(call(found, operands)))

    return function


def imported() -> Any:
    """Return the package jax, with our arrays prepared for it; raise ImportError without jax."""
    try:
        jax: Any = import_module("jax")
    except ImportError as error:
        raise ImportError("to_jax needs jax, which is not installed: `pip install jax`") from error
    from pscdsl._src.xla.runtime.devices import prepare  # jax was found

    prepare()
    return jax


def standing_in(jax: Any, leaf: Any) -> Any:
    """Return a stand-in of a leaf's type: a Python scalar for a weak scalar."""
    found = traced(jax, leaf)
    if isinstance(found, TracedArray) and leaf.aval.weak_type and not found.shape:
        return np.zeros((), found.dtype).item()
    return found


def traced(jax: Any, leaf: Any) -> Any:
    """Return a leaf that kernels take: a tracer is wrapped."""
    return TracedArray(leaf) if isinstance(leaf, jax.core.Tracer) else leaf


def operand(jax: Any, leaf: Any, type_: ArrayType) -> Any:
    """Return a leaf as jax takes it, with the dtype of a type."""
    from pscdsl._src.xla.runtime.devices import is_result  # as above

    if isinstance(leaf, TracedArray):
        return jax.lax.convert_element_type(leaf.value, to_numpy(type_.dtype))
    if isinstance(leaf, jax.Array) and not is_result(leaf):
        return leaf
    return jax.numpy.asarray(np.asarray(leaf, to_numpy(type_.dtype)))


def admit_types(jax: Any, name: str, types: Iterable[ArrayType]) -> None:
    """Refuse types of 64 bits where jax has none."""
    if jax.config.jax_enable_x64:
        return
    for type_ in types:
        if type_.dtype.is_inexact or type_.dtype.is_integer:
            if type_.dtype.bits // (2 if type_.dtype.is_complex else 1) == 64:
                raise ArgumentError(
                    f"{name} has {type_}, and 64-bit types are switched off in jax; "
                    'jax.config.update("jax_enable_x64", True) switches them on'
                )


def register_class(jax: Any, cls: type, to_children: Any, from_children: Any) -> None:
    """Make a class one of jax's pytrees, unless it is one."""
    if cls not in _registered:
        _registered.add(cls)
        try:
            jax.tree_util.register_pytree_node(cls, to_children, from_children)
        except ValueError:
            pass  # its author, or another library, has done so


# A loaded kernel as a function of jax arrays: its StableHLO, as jax exports its own.


def loaded_to_jax(loaded: Loaded) -> Callable[..., Any]:
    """Return a function of jax arrays that computes the loaded kernel; jax can `jit` it."""
    jax = imported()
    register = functools.partial(register_class, jax)
    boundary.register_signature(loaded.signature, register, apart=True)
    for layout in loaded.layouts:
        boundary.register_record(layout, register, apart=True)
    made: dict[Variant, Any] = {}

    def function(*args: Any, **kwargs: Any) -> Any:
        boundary.register_value((args, kwargs), register, loaded.record_class, apart=True)
        given, named = jax.tree.map(lambda leaf: standing_in(jax, leaf), (args, kwargs))
        variant, tree = loaded.variant_for(loaded.arguments(given, named)[1])
        inputs, outputs = variant.types()
        admit_types(jax, loaded.name, (*inputs, *outputs))
        leaves = jax.tree.map(lambda leaf: traced(jax, leaf), (args, kwargs))
        operands = [
            operand(jax, each, type_)
            for each, type_ in zip(loaded.arguments(*leaves)[0], inputs, strict=True)
        ]
        if variant not in made:
            loaded.verify(variant)
            made[variant] = _export(jax, loaded.name, variant)
        boundary.register_result(tree, register, apart=True)
        return boundary.result(tree, iter(made[variant].call(*operands)))

    function.__name__ = function.__qualname__ = loaded.name
    return function


def _export(jax: Any, name: str, variant: Variant) -> Any:
    """Return the equivalent of `jax.export.export`."""
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
    fields = [field.name for field in dataclasses.fields(export.Exported)]
    return export.Exported(**{field: known[field] for field in fields})


def _avals(jax: Any, types: Sequence[ArrayType]) -> tuple[Any, ...]:
    made: list[Any] = []
    for type_ in types:
        shape = (*type_.shape, 2) if type_.dtype is KEY else type_.shape
        made.append(jax.core.ShapedArray(shape, to_numpy(type_.dtype)))
    return tuple(made)
