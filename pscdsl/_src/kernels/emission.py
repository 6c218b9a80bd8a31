"""The StableHLO of a program at numbers for its sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pscdsl._src.analysis.intervals import require_fitting
from pscdsl._src.calls.errors import CheckError
from pscdsl._src.ir.program import Function
from pscdsl._src.targets.cpu.table import CPU as CPU_TARGET
from pscdsl._src.targets.pipeline import PORTABLE, lower_module
from pscdsl._src.targets.rewriting import Target
from pscdsl._src.transforms.simplify import require_compilable
from pscdsl._src.xla.device import CPU, Device
from pscdsl._src.xla.emit.context import module_text
from pscdsl._src.xla.specialisation import Specialisation
from pscdsl.typing.diagnostics import Failure


def target_of(device: Device) -> Target:
    """Return the target of a device; an `UnsupportedDeviceError` if there is none."""
    device.require_supported()
    if device.platform == "cuda":
        from pscdsl._src.targets.gpu.table import CUDA  # most programs are for CPUs alone

        return CUDA
    if device.platform == "tpu":
        from pscdsl._src.targets.tpu import TPU

        return TPU
    return CPU_TARGET


def emitted(
    program: Function,
    sizes: Mapping[str, int],
    donate: Sequence[int] = (),
    *,
    device: Device = CPU,
    portable: bool = False,
) -> Any:
    """Return the module of a program at these sizes, for a device; CheckError without a rule.

    One that is `portable` is for all devices.
    """
    try:
        require_compilable(program)
        require_fitting(program, sizes)
        target = PORTABLE if portable else target_of(device)
        return lower_module(program, sizes, donate=donate, target=target)
    except Failure as failure:
        raise CheckError(failure.at(program.span).diagnostics) from None


def text(wanted: Specialisation) -> str:
    """Return the text of the module to compile."""
    return module_text(emitted(wanted.program, wanted.sizes, wanted.donate, device=wanted.device))
