"""One primitive of jax, when it is installed: the call of a typed program.

It is lowered to the StableHLO that the program would be compiled from here, as a function of the
module that jax is making.  Its derivatives and batches are calls of the programs that we derive;
a linear part is transposed by us as well, so that reverse mode saves what it saves here.
"""

# jax is not installed where types are checked.
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import functools
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.targets.pipeline import lower_module
from pscdsl._src.xla.emit.emit import module_text
from pscdsl._src.xla.runtime import boot
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dtypes import KEY

if TYPE_CHECKING:
    from pscdsl._src.interop.array_programs import ArrayProgram

NAME = "pscdsl_call"


def call(program: ArrayProgram, operands: Sequence[Any]) -> list[Any]:
    """The results of a program for arrays, or tracers, of jax."""
    results: list[Any] = primitive().bind(*operands, program=program)
    return results


@boot.once
def primitive() -> Any:
    """The primitive, with its rules; made when first asked for, because it imports jax."""
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
    """The shape of the array that stores one of a type; keys are pairs of words."""
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
