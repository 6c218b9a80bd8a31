"""From modules to executables."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any

import numpy as np

from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.xla import exactness
from pscdsl._src.xla.compilation.scratch import with_scratch
from pscdsl._src.xla.compilation.stored import offer
from pscdsl._src.xla.depths import DEEPEST, Depths
from pscdsl._src.xla.device import CPU, Device
from pscdsl._src.xla.emit import context as c
from pscdsl._src.xla.emit.emit import module_bytecode
from pscdsl._src.xla.runtime.boot import Aval
from pscdsl._src.xla.runtime.executable import Executable, compile_options
from pscdsl._src.xla.runtime.pool import Recipe
from pscdsl._src.xla.specialisation import LOOP_BYTES


def compile_module(
    module: Any,
    *,
    loop_bytes: int | None = LOOP_BYTES,
    options: Mapping[str, Any] | None = None,
    device: Device = CPU,
) -> Executable:
    """Compile a module for a device.

    A loop whose body moves fewer than `loop_bytes` becomes one native function; larger ones are
    interpreted step by step, with parallelism inside a step.  `loops.loop_bytes` chooses it for a
    program; None leaves XLA's own bound, which is 1 kB or more.  Bodies that are too deep for
    native functions are interpreted.
    `options` are XLA's debug options, by name, besides those of `exactness`.
    """
    inputs, outputs = signature(module)
    if Depths(module).loops > DEEPEST:
        loop_bytes = 0
    every = {**exactness.options(module), **(options or {})}
    chosen = compile_options(loop_bytes, every, device)
    bytecode = module_bytecode(module)  # a context of its own: compilation lets other threads run
    here = device.placement
    started = perf_counter()
    loaded = here.client.compile_and_load(bytecode, here.devices, chosen)
    made = Executable(loaded, inputs, outputs, device)
    seconds = perf_counter() - started
    other = with_scratch(module, outputs)
    if other is not None:
        offer(made, Recipe(module_bytecode(other), chosen.SerializeAsString(), seconds))
    return made


def signature(module: Any) -> tuple[list[Aval], list[Aval]]:
    """What `main` takes and gives."""
    inputs, outputs = c.boundary(module)
    return [_aval(t) for t in inputs], [_aval(t) for t in outputs]


def _aval(tensor: Any) -> Aval:
    known = c.facts(tensor)
    return Aval(known.shape, np.dtype(to_numpy(known.dtype)))
