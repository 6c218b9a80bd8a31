"""Which programs are compiled for vectors of 512 bits.

XLA on CPUs prefers 256 bits where the processor has 512.  The wider ones take half the operations,
which pays where each element takes many; but with them XLA's own arcus tangent is wrong (by a
factor of over 10, f32 and f64, from 64 elements on).  So only operations of `VALIDATED` may occur,
which a test compares with and without.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any, Final

from pscdsl._src.targets.forms import Form, switched_off
from pscdsl._src.xla.emit import context as c
from pscdsl._src.xla.runtime import boot

WIDE_VECTORS = Form(
    "wide_vectors",
    "Vectors of 512 bits instead of 256 for programs of elementwise operations, some of them "
    "expensive, on processors with AVX-512: 0.4 to 0.95 of the time for a million elements.",
)
OPTION: Final = "xla_cpu_prefer_vector_width"
EXPENSIVE: Final = frozenset(
    "divide exponential exponential_minus_one log log_plus_one logistic rsqrt sqrt tanh".split()
)
"""Functions that take more than a few operations of the processor, but for `chlo.erf`."""
QUOTIENTS: Final = frozenset({"stablehlo.logistic", "stablehlo.tanh"})
"""Those that are a quotient and an exponential or polynomials: they count twice."""
PLAIN: Final = frozenset(
    "abs add and bitcast_convert broadcast_in_dim ceil clamp compare constant convert floor iota "
    "is_finite maximum minimum multiply negate not or reshape return round_nearest_even select "
    "shift_left shift_right_arithmetic shift_right_logical sign subtract xor".split()
)
"""Operations that are a few of the processor's."""
VALIDATED: Final = frozenset(
    [
        *[f"stablehlo.{name}" for name in EXPENSIVE | PLAIN],
        *["chlo.erf", "builtin.module", "func.func", "func.return", "func.call"],
    ]
)
"""What may occur, with real numbers; nothing that calls the C library."""
LEAST_EXPENSIVE: Final = 2
"""So many of the expensive ones: one alone waits for the memory."""
PRODUCTS: Final = 8
"""So many multiplications, as polynomials have them, are as expensive."""
FEWEST: Final = 1 << 14
"""From so many elements of a parameter or a result on."""


def options(module: Any) -> Mapping[str, Any]:
    """The options for a module, which are a part of its key."""
    if WIDE_VECTORS.name in switched_off() or not has_wide_vectors() or not fits(module):
        return {}
    return {OPTION: "512"}


@boot.once
def has_wide_vectors() -> bool:
    """Whether this processor has vectors of 512 bits, and nobody has chosen others."""
    if "vector_width" in (flags := os.environ.get("XLA_FLAGS", "")) or "max_isa" in flags:
        return False
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return False
    features = next((line for line in lines if line.startswith("flags")), "").split()
    return {"avx512f", "avx512dq", "avx512bw", "avx512vl"} <= set(features)


def expensive(module: Any) -> int | None:
    """How many operations are expensive; None if one occurs that is not validated."""
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


def fits(module: Any) -> bool:
    """Whether a module consists of validated operations, enough of them expensive."""
    if (expensive(module) or 0) < LEAST_EXPENSIVE:
        return False
    inputs, outputs = c.boundary(module)
    large = any(prod(c.facts(each).shape) >= FEWEST for each in (*inputs, *outputs))
    return large and c.is_real(module)
