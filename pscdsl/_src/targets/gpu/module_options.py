"""XLA's options for a module on accelerators that keep its arithmetic as written.

As on CPUs (`xla.exactness`), XLA rewrites arithmetic by laws that hold for real numbers only. On
accelerators it also leaves out roundings: of f64 to f32 and back, and to f16 and bf16. Sums by
atomic operations would have another order in every run of a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pscdsl._src.xla.compilation import compile_module
from pscdsl._src.xla.device import Device
from pscdsl._src.xla.emit import context as c
from pscdsl._src.xla.exactness import DISABLED, EXCESS, MOVER, SIMPLIFIER
from pscdsl._src.xla.runtime import boot
from pscdsl._src.xla.runtime.executable import Executable, Groups

if TYPE_CHECKING:
    from pscdsl._src.primitives.effects import Effect

DETERMINISTIC: Final = "xla_gpu_deterministic_ops"
"""The option for equal results in every run: no atomic operations in sums, scatters,
convolutions."""

ROW_FUSIONS: Final = "triton-softmax-rewriter"
"""The pass that fuses sums along rows with the operations before and after them."""

PRODUCT_FUSIONS: Final = "xla_gpu_enable_triton_gemm"
"""The option for fusions of products of matrices; without them cuBLAS computes these.

XLA chooses by trial how a fusion computes a product, which differs from run to run: where results
must not, it has no way left, and refuses the program.
"""


def exact_options(module: Any, platform: str) -> Mapping[str, Any]:
    """Return the options for a module on a platform."""
    found: dict[str, Any] = {}
    if platform == "cuda":
        found = {DETERMINISTIC: True, PRODUCT_FUSIONS: False}
    if not c.is_fast(module):
        found |= {DISABLED: f"{SIMPLIFIER},{MOVER}", EXCESS: False}
    return found


def alternatives(module: Any, platform: str) -> Iterator[Mapping[str, Any]]:
    """Yield the options to compile a module with; the next if XLA refuses the previous ones.

    Without its simplifier, XLA's compiler for GPUs makes fusions around sums along rows that its
    own code generator refuses, where arrays of one element are joined: then without these.
    """
    first = exact_options(module, platform)
    yield first
    if platform == "cuda":
        disabled = [first[DISABLED]] if DISABLED in first else []
        yield {**first, DISABLED: ",".join([*disabled, ROW_FUSIONS])}


Made = TypeVar("Made")


def compiled_by(
    compile_with: Callable[[Mapping[str, Any]], Made], module: Any, platform: str
) -> Made:
    """Compile by the first options that XLA accepts; raise its first error if it accepts none."""
    problem: Exception | None = None
    for options in alternatives(module, platform):
        try:
            return compile_with(options)
        except boot.jax.JaxRuntimeError as refusal:
            problem = problem or refusal
    assert problem is not None
    raise problem


class Accelerators:
    """Compiles modules for the devices of a platform."""

    def __init__(self, platform: str) -> None:
        self._platform = platform

    def options(self, module: Any) -> Mapping[str, Any]:
        """Return the options with which a module is compiled first, which are a part of its key."""
        return exact_options(module, self._platform)

    def compiled(
        self,
        module: Any,
        loop_bytes: int | None,
        device: Device,
        effects: Sequence[Effect] = (),
        groups: Groups = (),
    ) -> Executable:
        """Compile a module for a device, without a bound of native loops, as it has none."""

        def compile_with(options: Mapping[str, Any]) -> Executable:
            return compile_module(
                module,
                loop_bytes=None,
                options=options,
                device=device,
                effects=effects,
                groups=groups,
            )

        return compiled_by(compile_with, module, self._platform)
