"""Which programs are compiled for vectors of 128 bits.

XLA on CPUs prefers 256 bits.  Where the arrays of a loop are one and a half such vectors long, as
six f64 are, LLVM leaves single elements of its functions; vectors of half the width take them all.
An option is for operations alone that a test has compared with and without it: `VALIDATED`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from pscdsl._src.targets.cpu.options.wide import OPTION as OPTION
from pscdsl._src.targets.cpu.options.wide import VALIDATED as ELEMENTWISE
from pscdsl._src.targets.forms import Form, switched_off
from pscdsl._src.xla.emit import context as c

NARROW_VECTORS = Form(
    "narrow_vectors",
    "Vectors of 128 bits instead of 256 for programs in whose loops all arrays are 3, 5 or 7 such "
    "vectors long (6, 10 or 14 of f64, 12, 20 or 28 of f32): 0.5 to 0.85 of the time for hidden "
    "Markov models and their derivatives.",
)
BITS: Final = 128
LENGTHS: Final = frozenset((3, 5, 7))
"""Longer arrays are mostly whole vectors of twice the width, and are slower by 1.2 to 1.7."""
VALIDATED: Final = ELEMENTWISE | frozenset(
    f"stablehlo.{name}"
    for name in "concatenate dot_general dynamic_slice dynamic_update_slice "
    "gather pad reduce reverse scatter slice transpose while".split()
)
"""What may occur, with real numbers."""


def options(module: Any) -> Mapping[str, Any]:
    """The options for a module, which are a part of its key."""
    set_already = "vector_width" in os.environ.get("XLA_FLAGS", "")
    if set_already or NARROW_VECTORS.name in switched_off() or not fits(module):
        return {}
    return {OPTION: str(BITS)}


def fits(module: Any) -> bool:
    """Whether all that the innermost loops of a module carry is of such lengths."""
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
        allowed = allowed and operation.name in VALIDATED
        return c.mlir.WalkResult.ADVANCE if allowed else c.mlir.WalkResult.INTERRUPT

    module.operation.walk(visit)
    return found and allowed


def _lengths(loop: Any) -> list[float]:
    """How many vectors long the last axes are of the arrays that a loop carries.

    Of other numbers than f32 and f64 they are 0, which is no length that fits.
    """
    found: list[float] = []
    for result in loop.results:
        known = c.facts(result.type)
        if known.dtype.is_inexact and known.shape and known.shape[-1] > 1:
            real = known.dtype.is_float and known.dtype.bits >= 32
            found.append(known.shape[-1] * known.dtype.bits / BITS if real else 0)
    return found
