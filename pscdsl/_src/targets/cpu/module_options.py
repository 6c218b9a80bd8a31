"""XLA's options for a module, and which programs get which."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, Final

from pscdsl._src.primitives.effects import Effect
from pscdsl._src.targets.forms import Form, switched_off
from pscdsl._src.xla import exactness
from pscdsl._src.xla.compilation import compile_module
from pscdsl._src.xla.depths import DEEPEST, Depths
from pscdsl._src.xla.device import CPU, Device
from pscdsl._src.xla.emit import context as c
from pscdsl._src.xla.emit.facts import is_apart
from pscdsl._src.xla.runtime import boot
from pscdsl._src.xla.runtime.boot import LOOP_BYTES
from pscdsl._src.xla.runtime.executable import Executable, known
from pscdsl.typing.dtypes import F64

# Programs that are compiled for vectors of 512 bits.
#
# XLA on CPUs prefers 256 bits where the processor has 512. The wider ones take half the operations,
# which pays where each element takes many; but with them XLA's own arcus tangent is wrong (by a
# factor of over 10, f32 and f64, from 64 elements on). So only operations of `VALIDATED` may occur,
# which a test compares with and without.


WIDE_VECTORS = Form(
    "wide_vectors",
    "Vectors of 512 bits instead of 256 for programs of elementwise operations, some of them "
    "expensive, on processors with AVX-512: 0.4 to 0.95 of the time for a million elements.",
)
VECTOR_WIDTH: Final = "xla_cpu_prefer_vector_width"
EXPENSIVE: Final = frozenset(
    "divide exponential exponential_minus_one log log_plus_one logistic rsqrt sqrt tanh".split()
)
"""Functions that take more than a few operations of the processor, except `chlo.erf`."""
QUOTIENTS: Final = frozenset({"stablehlo.logistic", "stablehlo.tanh"})
"""Those that are a quotient and an exponential or polynomials: they count twice."""
PLAIN: Final = frozenset(
    "abs add and bitcast_convert broadcast_in_dim ceil clamp compare constant convert floor iota "
    "is_finite maximum minimum multiply negate not optimization_barrier or reshape return "
    "round_nearest_even select shift_left shift_right_arithmetic shift_right_logical sign subtract "
    "xor".split()
)
"""Operations that are a few of the processor's, or none, as barriers are: XLA takes them away."""
VALIDATED: Final = frozenset(
    [
        *[f"stablehlo.{name}" for name in EXPENSIVE | PLAIN],
        *["chlo.erf", "builtin.module", "func.func", "func.return", "func.call"],
    ]
)
"""The operations that may occur, with real numbers; none of them calls the C library."""
LEAST_EXPENSIVE: Final = 2
"""The least number of expensive operations: a program with one waits for the memory."""
PRODUCTS: Final = 8
"""The number of multiplications, as in polynomials, that count as an expensive operation."""
FEWEST: Final = 1 << 14
"""The least number of elements of the largest parameter or result."""


def wide_options(module: Any) -> Mapping[str, Any]:
    """Return the options for a module, which are a part of its key."""
    if WIDE_VECTORS.name in switched_off() or not has_wide_vectors() or not fits_wide(module):
        return {}
    return {VECTOR_WIDTH: "512"}


@boot.once
def has_wide_vectors() -> bool:
    """Return whether this processor has vectors of 512 bits, and XLA_FLAGS chooses no others."""
    if "vector_width" in (flags := os.environ.get("XLA_FLAGS", "")) or "max_isa" in flags:
        return False
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return False
    features = next((line for line in lines if line.startswith("flags")), "").split()
    return {"avx512f", "avx512dq", "avx512bw", "avx512vl"} <= set(features)


def expensive(module: Any) -> int | None:
    """Count the expensive operations; None if one occurs that is not validated."""
    found = products = 0
    allowed = True

    def visit(operation: Any) -> Any:
        nonlocal found, products, allowed
        name = operation.name
        if name not in VALIDATED:
            allowed = False
            return c.mlir.WalkResult.INTERRUPT
        found += name == "chlo.erf" or name.removeprefix("stablehlo.") in EXPENSIVE
        found += name in QUOTIENTS
        products += name == "stablehlo.multiply"
        return c.mlir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found + products // PRODUCTS if allowed else None


def fits_wide(module: Any) -> bool:
    """Return whether a module consists of validated operations, enough of them expensive."""
    if (expensive(module) or 0) < LEAST_EXPENSIVE:
        return False
    inputs, outputs = c.boundary(module)
    large = any(prod(c.facts(atom).shape) >= FEWEST for atom in (*inputs, *outputs))
    return large and c.is_real(module)


# Programs that are compiled for vectors of 128 bits.
#
# XLA on CPUs prefers 256 bits. Where the arrays of a loop are one and a half such vectors long, as
# six f64 are, LLVM leaves single elements of its functions; vectors of half the width take all
# elements. The option is used only for operations that a test has compared with and without it:
# `NARROW_VALIDATED`.


NARROW_VECTORS = Form(
    "narrow_vectors",
    "Vectors of 128 bits instead of 256 for programs in whose loops all arrays are 3, 5 or 7 such "
    "vectors long (6, 10 or 14 of f64, 12, 20 or 28 of f32): 0.5 to 0.85 of the time for hidden "
    "Markov models and their derivatives.",
)
BITS: Final = 128
LENGTHS: Final = frozenset((3, 5, 7))
"""Longer arrays are mostly whole vectors of twice the width, and are slower by 1.2 to 1.7."""
NARROW_VALIDATED: Final = VALIDATED | frozenset(
    f"stablehlo.{name}"
    for name in "concatenate dot_general dynamic_slice dynamic_update_slice "
    "gather pad reduce reverse scatter slice transpose while".split()
)
"""The operations that may occur, with real numbers."""


def narrow_options(module: Any) -> Mapping[str, Any]:
    """Return the options for a module, which are a part of its key."""
    set_already = "vector_width" in os.environ.get("XLA_FLAGS", "")
    if set_already or NARROW_VECTORS.name in switched_off() or not fits_narrow(module):
        return {}
    return {VECTOR_WIDTH: str(BITS)}


def fits_narrow(module: Any) -> bool:
    """Return whether all arrays that the innermost loops of a module carry have such lengths."""
    if not c.is_real(module):
        return False
    outer: list[Any] = []
    found = False
    allowed = True

    def visit(operation: Any) -> Any:
        nonlocal found, allowed
        if operation.name == "stablehlo.while":  # inner ones come first
            lengths = () if operation in outer else _lengths(operation)
            found = found or bool(lengths)
            allowed = allowed and LENGTHS.issuperset(lengths)
            parent = operation.parent
            while parent is not None:
                outer.append(parent)
                parent = parent.parent
        allowed = allowed and operation.name in NARROW_VALIDATED
        return c.mlir.WalkResult.ADVANCE if allowed else c.mlir.WalkResult.INTERRUPT

    module.operation.walk(visit)
    return found and allowed


def _lengths(loop: Any) -> list[float]:
    """Return the lengths of the last axes that a loop carries, in vectors.

    The length is 0 for dtypes other than f32 and f64, which never fits.
    """
    found: list[float] = []
    for result in loop.results:
        known = c.facts(result.type)
        if known.dtype.is_inexact and known.shape and known.shape[-1] > 1:
            real = known.dtype.is_float and known.dtype.bits >= 32
            found.append(known.shape[-1] * known.dtype.bits / BITS if real else 0)
    return found


# Programs that XLA compiles with its older emitter of loops.
#
# XLA on CPUs has two emitters of loops of fused operations. The newer one, which uses MLIR, makes
# better code where several results share work, where a fusion reads moved elements, and inside of
# loops; for a single result of elementwise operations both make the same code, and the older one
# needs less time. The older one is slower for some functions, and for numbers of 64 bits. Where XLA
# makes several loops, one of which overwrites its operand, the older one's code takes single
# elements, five times as long.


PLAIN_LOOPS = Form(
    "plain_loops",
    "Programs of elementwise operations with one result are compiled by XLA's older emitter of "
    "loops: 0.4 to 0.85 of the time to compile, and the same results in the same time.",
)
FUSION_EMITTERS: Final = "xla_cpu_use_fusion_emitters"
ELEMENTWISE: Final = VALIDATED | frozenset(
    f"stablehlo.{name}" for name in "cbrt clamp cosine power remainder sine tan".split()
)
"""The operations that may occur, with real numbers of up to 32 bits."""


def plain_loop_options(module: Any) -> Mapping[str, Any]:
    """Return the options for a module, which are a part of its key."""
    return (
        {}
        if PLAIN_LOOPS.name in switched_off() or not fits_plain_loops(module)
        else {FUSION_EMITTERS: False}
    )


def fits_plain_loops(module: Any) -> bool:
    """Return whether a module computes one array elementwise, without stages or deep nesting."""
    _, outputs = c.boundary(module)
    if len(outputs) != 1 or not c.is_real(module):
        return False
    allowed = True

    def visit(operation: Any) -> Any:
        nonlocal allowed
        double = any(c.facts(x.type).dtype is F64 for x in operation.results)
        if operation.name in ELEMENTWISE and not double and not is_apart(operation):
            return c.mlir.WalkResult.ADVANCE
        allowed = False
        return c.mlir.WalkResult.INTERRUPT

    module.operation.walk(visit)
    return allowed and Depths(module).main <= DEEPEST


# The options of a module, of all these kinds.


FORMS: Final = (NARROW_VECTORS, WIDE_VECTORS, PLAIN_LOOPS)
"""The forms that are options."""


def options(module: Any) -> Mapping[str, Any]:
    """Return the options with which a module is compiled at first, which are a part of its key.

    Of those that the parts below want, these are the ones that XLA knows.
    """
    return known(
        {
            **exactness.options(module),
            **narrow_options(module),
            **wide_options(module),
            **plain_loop_options(module),
        }
    )


def compiled(
    module: Any,
    loop_bytes: int | None = LOOP_BYTES,
    device: Device = CPU,
    effects: Sequence[Effect] = (),
) -> Executable:
    """Compile a module with its options, but without the older emitter if it has more loops."""
    chosen = options(module)
    compile_with = partial(
        compile_module, module, loop_bytes=loop_bytes, device=device, effects=effects
    )
    found = compile_with(options=chosen)
    if FUSION_EMITTERS not in chosen or found.text().count(" fusion(") < 2:
        return found
    others = {name: value for name, value in chosen.items() if name != FUSION_EMITTERS}
    return compile_with(options=others)
