"""From modules to executables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.xla import exactness
from pscdsl._src.xla.compilation.disk import offer
from pscdsl._src.xla.depths import DEEPEST, Depths
from pscdsl._src.xla.device import CPU, Device
from pscdsl._src.xla.emit import context as c
from pscdsl._src.xla.emit.emit import module_bytecode
from pscdsl._src.xla.runtime import memory
from pscdsl._src.xla.runtime.boot import Aval
from pscdsl._src.xla.runtime.executable import Executable, compile_options
from pscdsl._src.xla.runtime.memory import Recipe
from pscdsl._src.xla.runtime.settings import LOOP_BYTES

# Modules that take arrays whose memory their large results get; see `pool`.


def with_scratch(module: Any, outputs: Sequence[Aval]) -> Any:
    """A copy of a module that takes an array for each large result, after its parameters.

    None if it has none, or donated parameters: these give their memory to results as XLA sees fit.
    """
    places = memory.pooled(outputs)
    if not places or _donates(c.main(module).attributes):
        return None
    copy = module.operation.clone()
    main = c.main(copy)
    kind = c.mlir.FunctionType(main.attributes["function_type"].value)
    large = [kind.results[place] for place in places]
    with c.context(), c.unknown():
        main.attributes["function_type"] = c.mlir.TypeAttr.get(
            c.mlir.FunctionType.get([*kind.inputs, *large], kind.results)
        )
        main.attributes["arg_attrs"] = c.attribute(
            [{} for _ in kind.inputs]
            + [{"tf.aliasing_output": c.parsed(f"{place} : i32")} for place in places]
        )
    block = main.regions[0].blocks[0]
    for tensor in large:
        block.add_argument(tensor, c.unknown())
    return copy


def _donates(attributes: Any) -> bool:
    return "arg_attrs" in attributes and "jax.buffer_donor" in str(attributes["arg_attrs"])


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
    reusing = with_scratch(module, outputs) if device.platform == "cpu" else None
    if reusing is not None:
        offer(made, Recipe(module_bytecode(reusing), chosen.SerializeAsString(), seconds))
    return made


def signature(module: Any) -> tuple[list[Aval], list[Aval]]:
    """What `main` takes and gives."""
    inputs, outputs = c.boundary(module)
    return [_aval(t) for t in inputs], [_aval(t) for t in outputs]


def _aval(tensor: Any) -> Aval:
    known = c.facts(tensor)
    return Aval(known.shape, np.dtype(to_numpy(known.dtype)))
