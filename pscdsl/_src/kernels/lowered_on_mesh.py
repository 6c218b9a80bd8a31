"""Kernels at given sizes on a mesh that need not be here: the program of each device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

from pscdsl._src.analysis.cost import function_sent
from pscdsl._src.kernels.mesh_programs import DeviceProgram, device_program, require_axes
from pscdsl._src.xla.device import Device
from pscdsl.typing.dims import evaluate

if TYPE_CHECKING:
    from pscdsl._src.kernels.lowered import Lowered
    from pscdsl._src.targets.gpu.ahead import CompiledAhead


@dataclass(frozen=True)
class LoweredOnMesh:
    """A kernel at given sizes, as the program of each device of a mesh."""

    lowered: Lowered
    axes: Mapping[str, int]
    """The sizes of the mesh's axes, in order."""

    def __post_init__(self) -> None:
        require_axes(self.lowered.kernel.name, self.lowered.kernel.signature, self.axes)

    @cached_property
    def device_program(self) -> DeviceProgram:
        """The typed program of a device, at numbers for its sizes."""
        known = self.lowered.specialisation
        return device_program(self.lowered.kernel.reading, known.choice, known.sizes, self.axes)

    @property
    def sent(self) -> dict[str, int]:
        """The bytes that a device gets from others in a call, by mesh axes."""
        made = self.device_program
        counted = function_sent(made.placed.function)
        return {
            axes: evaluate(size, made.sizes)
            for axes, size in counted.items()
            if any(self.axes[axis] > 1 for axis in axes.split("@"))
        }

    def __repr__(self) -> str:
        mesh = ", ".join([f"{name}={size}" for name, size in self.axes.items()])
        return f"<lowered {self.lowered.kernel.name} on Mesh({mesh}); .text() is its StableHLO>"

    def text(self, *, target: str | None = None) -> str:
        """Return the StableHLO module of a device as text.

        Args:
            target: A model of GPU, as in `compile_for`; by default the device that calls run on.
        """
        from pscdsl._src.xla.emit.context import module_text  # costs need no compiler

        return module_text(self._module(self._device(target)))

    def compile(self) -> Any:
        """Return the program compiled for the first devices of this process; see `Mesh`."""
        from pscdsl._src.kernels.mesh_calls import compiled
        from pscdsl._src.xla.mesh import Mesh

        known = self.lowered.specialisation
        mesh = Mesh(**self.axes)
        executable, _ = compiled(self.lowered.kernel.reading, known.choice, known.sizes, mesh)
        return executable

    def compile_for(self, target: str) -> CompiledAhead:
        """Return the program compiled for a mesh of GPUs that need not be here, to be read.

        See `Lowered.compile_for`.
        """
        from pscdsl._src.targets.gpu.ahead import compile_ahead
        from pscdsl._src.targets.gpu.described import gpu_named

        gpu = gpu_named(target)
        return compile_ahead(self._module(Device(gpu.platform)), gpu, prod(self.axes.values()))

    def _module(self, device: Device) -> Any:
        from pscdsl._src.xla.emit.replicas import for_replicas

        return for_replicas(self.device_program.module(device), prod(self.axes.values()))

    def _device(self, target: str | None) -> Device:
        from pscdsl._src.targets.gpu.described import gpu_named

        if target is None:
            return self.lowered.specialisation.device
        return Device(gpu_named(target).platform)
