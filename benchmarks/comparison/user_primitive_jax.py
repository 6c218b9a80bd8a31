"""A primitive of one's own: a meaning in NumPy, and a rule for its lowering to StableHLO."""

# pyright: standard, reportMissingImports=false

from typing import Any

import jax
import numpy as np
from jax import Array
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import mlir
from jaxtyping import Float32, Int32, jaxtyped
from typeguard import typechecked

nearest_number_p = Primitive("nearest_number")


@nearest_number_p.def_impl
def nearest_number(x: Array, *, bits: int) -> np.ndarray:
    """The meaning: of two numbers that are equally near, the even one."""
    dropped = np.uint32(23 - bits)
    one = np.uint32(1)
    word = np.asarray(x).view(np.uint32)
    last_kept = (word >> dropped) & one
    word = word + last_kept + (one << (dropped - one)) - one
    return (word >> dropped << dropped).view(np.float32)


@nearest_number_p.def_abstract_eval
def same_type(x: ShapedArray, *, bits: int) -> ShapedArray:
    """The type of the result."""
    return ShapedArray(x.shape, x.dtype)


def reduce_precision(ctx: mlir.LoweringRuleContext, x: ir.Value, *, bits: int) -> Any:
    """The StableHLO operation that is emitted."""
    i32 = ir.IntegerType.get_signless(32)
    exponent, mantissa = ir.IntegerAttr.get(i32, 8), ir.IntegerAttr.get(i32, bits)
    return [stablehlo.reduce_precision(x, exponent, mantissa)]


mlir.register_lowering(nearest_number_p, reduce_precision)


@jaxtyped(typechecker=typechecked)
def keep_7_bits(x: Float32[Array, "*s"]) -> Float32[Array | np.ndarray, "*s"]:
    """The nearest number with 7 fractional bits, as f32."""
    return nearest_number_p.bind(x, bits=7)


@jaxtyped(typechecker=typechecked)
def keep_1_bit(x: Float32[Array, "*s"]) -> Float32[Array | np.ndarray, "*s"]:
    """The nearest number with 1 fractional bit, as f32."""
    return nearest_number_p.bind(x, bits=1)


@jax.jit
@jaxtyped(typechecker=typechecked)
def distances(x: Float32[Array, "n d"], centres: Float32[Array, "k d"]) -> Float32[Array, "n k"]:
    """The squared distance of each image from each centre."""
    return ((x[:, None] - centres) ** 2).sum(axis=-1)


@jax.jit
@jaxtyped(typechecker=typechecked)
def nearest(x: Float32[Array, "n d"], centres: Float32[Array, "k d"]) -> Int32[Array, "n"]:
    """The nearest centre of each image."""
    return distances(x, centres).argmin(axis=1).astype(np.int32)


@jax.jit
@jaxtyped(typechecker=typechecked)
def nearest_with_7_bits(
    x: Float32[Array, "n d"], centres: Float32[Array, "k d"]
) -> Int32[Array, "n"]:
    """The same from rounded numbers."""
    return nearest(keep_7_bits(x), keep_7_bits(centres))


@jax.jit
@jaxtyped(typechecker=typechecked)
def nearest_with_1_bit(
    x: Float32[Array, "n d"], centres: Float32[Array, "k d"]
) -> Int32[Array, "n"]:
    """The same from numbers that are rounded to one fractional bit."""
    return nearest(keep_1_bit(x), keep_1_bit(centres))


@jax.jit
@jaxtyped(typechecker=typechecked)
def rounded(x: Float32[Array, "n"]) -> tuple[Float32[Array, "n"], Float32[Array, "n"]]:
    """Both primitives, to be compared with their meanings."""
    return keep_7_bits(x), keep_1_bit(x)
