"""Programs compiled for a described GPU, on a machine that need not have one.

The plugin's compiler needs no GPU and no library of CUDA for that. It tunes nothing either: the
fastest of several ways can only be measured on a GPU, so this predicts no times.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Final

from pscdsl._src.targets.gpu.described import Gpu
from pscdsl._src.targets.gpu.module_options import compiled_by
from pscdsl._src.xla.device import UnsupportedDeviceError
from pscdsl._src.xla.exchanged import Exchanged, exchanged
from pscdsl._src.xla.runtime import boot, plugins
from pscdsl._src.xla.runtime.executable import CompilationFailed, memory_of, set_replicas, text_of

_CALLED: Final = re.compile(r'custom_call_target="([^"]+)"')


@dataclass(frozen=True)
class CompiledAhead:
    """A program compiled for a GPU that need not be here."""

    gpu: Gpu
    text: str
    """The optimised program, in XLA's text form."""
    ptx: str
    """The code of the generated device functions, in NVIDIA's assembly; empty if there are none."""
    memory: Mapping[str, int]
    """Bytes for arguments, results, temporaries, and results in donated arguments."""
    seconds: float
    """The time of compilation."""

    @property
    def functions(self) -> int:
        """Return the number of generated device functions."""
        return self.ptx.count(".entry ")

    @property
    def libraries(self) -> dict[str, int]:
        """The routines of libraries that it calls, and how many times: `cusolver_getrf_ffi`."""
        return dict(Counter(_CALLED.findall(self.text)))

    @property
    def collectives(self) -> Mapping[str, Exchanged]:
        """The collectives by kind, as `all-reduce`: how many, and the bytes of their results."""
        return exchanged(self.text)


_GPUS_A_HOST: Final = 8


@cache
def _devices(gpu: Gpu, count: int) -> list[Any]:
    """Return devices to compile programs for, which run none: of hosts with 8 of them each."""
    interface = plugins.load("cuda")
    if interface is None:
        raise UnsupportedDeviceError(
            "another library loaded the CUDA plugin in this process: compile ahead in a process "
            "of its own, or before that library starts"
        )
    hosts = -(-count // _GPUS_A_HOST)
    topology = boot.xla.make_c_api_device_topology(
        interface, "", target_config=gpu.config, topology=f"1x{hosts}x{min(count, _GPUS_A_HOST)}"
    )
    made: list[Any] = topology._make_compile_only_devices()
    return made[:count]


def compile_ahead(module: Any, gpu: Gpu, count: int = 1) -> CompiledAhead:
    """Compile a module for so many GPUs of a model; `CompilationFailed` if XLA refuses it."""
    devices = _devices(gpu, count)
    with TemporaryDirectory(prefix="pscdsl-") as folder:
        dumps = {"xla_dump_to": folder, "xla_dump_emitter_re": ".*"}

        def compile_with(chosen: Mapping[str, Any]) -> Any:
            # No option is left out that XLA does not know: the program would mean something else.
            for path in Path(folder).iterdir():
                path.unlink()
            options = boot.xla.CompileOptions()
            set_replicas(options, [each.id for each in devices])
            options.env_option_overrides = [*chosen.items(), *dumps.items()]
            return devices[0].client.compile(module, boot.jax.DeviceList(tuple(devices)), options)

        started = perf_counter()
        try:
            made = compiled_by(compile_with, module, "cuda")
        except boot.jax.JaxRuntimeError as problem:
            raise CompilationFailed(str(problem)) from problem
        seconds = perf_counter() - started
        files = sorted(Path(folder).glob("*.ptx"))
        ptx = "\n".join([path.read_text() for path in files])
    return CompiledAhead(gpu, text_of(made), ptx, memory_of(made), seconds)
