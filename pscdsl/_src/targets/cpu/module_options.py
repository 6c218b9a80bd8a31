"""XLA's options for a module, and which programs get which."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pscdsl._src.targets.forms import Form, switched_off
from pscdsl._src.xla import exactness
from pscdsl._src.xla.compilation import compile_module
from pscdsl._src.xla.device import CPU, Device
from pscdsl._src.xla.emit import context as c
from pscdsl._src.xla.runtime.executable import Executable, Groups, known
from pscdsl._src.xla.runtime.settings import LOOP_BYTES

if TYPE_CHECKING:
    from pscdsl._src.primitives.effects import Effect

# Programs that are compiled for vectors of 128 bits.
#
# XLA on CPUs prefers 256 bits. Where the arrays of a loop are one and a half such vectors long, as
# six f64 are, LLVM leaves single elements of its functions; vectors of half the width take all
# elements. The option is used only for operations that a test has compared with and without it:
# `VALIDATED`.


NARROW_VECTORS = Form(
    "narrow_vectors",
    "Vectors of 128 bits instead of 256 for programs in whose loops all arrays are 3, 5 or 7 such "
    "vectors long (6, 10 or 14 of f64, 12, 20 or 28 of f32): 0.5 to 0.85 of the time for hidden "
    "Markov models and their derivatives.",
)
VECTOR_WIDTH: Final = "xla_cpu_prefer_vector_width"
BITS: Final = 128
LENGTHS: Final = frozenset((3, 5, 7))
"""Longer arrays are mostly whole vectors of twice the width, and are slower by 1.2 to 1.7."""
ELEMENTWISE: Final = frozenset(
    [
        *[
            f"stablehlo.{name}"
            for name in "abs add and bitcast_convert broadcast_in_dim ceil clamp compare constant "
            "convert divide exponential exponential_minus_one floor iota is_finite log "
            "log_plus_one logistic maximum minimum multiply negate not optimization_barrier or "
            "reshape return round_nearest_even rsqrt select shift_left shift_right_arithmetic "
            "shift_right_logical sign sqrt subtract tanh xor".split()
        ],
        *["chlo.erf", "builtin.module", "func.func", "func.return", "func.call"],
    ]
)
VALIDATED: Final = ELEMENTWISE | frozenset(
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
        allowed = allowed and operation.name in VALIDATED
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


# The options of a module, of all these kinds.


FORMS: Final = (NARROW_VECTORS,)
"""The forms that are options."""


def options(module: Any) -> Mapping[str, Any]:
    """Return the options with which a module is compiled, which are a part of its key.

    Of those that the parts below want, these are the ones that XLA knows.
    """
    return known({**exactness.options(module), **narrow_options(module)})


def compiled(
    module: Any,
    loop_bytes: int | None = LOOP_BYTES,
    device: Device = CPU,
    effects: Sequence[Effect] = (),
    groups: Groups = (),
) -> Executable:
    """Compile a module with its options."""
    return compile_module(
        module,
        loop_bytes=loop_bytes,
        options=options(module),
        device=device,
        effects=effects,
        groups=groups,
    )
