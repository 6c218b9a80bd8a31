"""From modules to executables, and modules in the form that outlives jaxlib's versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.xla import disk, exactness, lapack
from pscdsl._src.xla.depths import DEEPEST, Depths
from pscdsl._src.xla.device import CPU, Device
from pscdsl._src.xla.disk import digest, load, offer, opened, save
from pscdsl._src.xla.emit import context as c
from pscdsl._src.xla.runtime import boot, memory
from pscdsl._src.xla.runtime.boot import Aval
from pscdsl._src.xla.runtime.executable import (
    CompilationFailed,
    Executable,
    Groups,
    compile_options,
)
from pscdsl._src.xla.runtime.memory import Recipe
from pscdsl._src.xla.runtime.settings import LOOP_BYTES, without

if TYPE_CHECKING:
    from pscdsl._src.artefacts.format import SizedProgram
    from pscdsl._src.primitives.effects import Effect


# From modules to executables.


# Modules that take arrays whose memory their large results reuse; see `runtime.memory`.


def with_scratch(module: Any, outputs: Sequence[Aval]) -> Any:
    """Return a copy of a module that takes an array for each large result, after its parameters.

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


# Modules that take numbers together; see `specialisation`.


def with_groups(module: Any, groups: Groups) -> Any:
    """Return a copy of a module that takes an array for each group of its scalars, after others."""
    dialect = boot.untyped("mlir.dialects.stablehlo")
    copy = module.operation.clone()
    main = c.main(copy)
    kind = c.mlir.FunctionType(main.attributes["function_type"].value)
    inputs, block = list(kind.inputs), main.regions[0].blocks[0]
    packed = {at for group in groups for at in group}
    with c.context(), c.unknown(), c.mlir.InsertionPoint.at_block_begin(block):
        together: list[Any] = []
        for group in groups:
            element = c.mlir.RankedTensorType(inputs[group[0]]).element_type
            together.append(c.mlir.RankedTensorType.get([len(group)], element))
            array = block.add_argument(together[-1], c.unknown())
            for index, at in enumerate(group):
                part = dialect.slice(array, [index], [index + 1], [1])
                scalar = dialect.reshape(inputs[at], part)
                block.arguments[at].replace_all_uses_with(scalar)
        rest = [each for at, each in enumerate(inputs) if at not in packed]
        main.attributes["function_type"] = c.mlir.TypeAttr.get(
            c.mlir.FunctionType.get([*rest, *together], kind.results)
        )
        if "arg_attrs" in main.attributes:
            known = list(c.mlir.ArrayAttr(main.attributes["arg_attrs"]))
            left = [each for at, each in enumerate(known) if at not in packed]
            main.attributes["arg_attrs"] = c.mlir.ArrayAttr.get(
                [*left, *[c.mlir.DictAttr.get({}) for _ in groups]]
            )
        for at in sorted(packed, reverse=True):
            block.erase_argument(at)
    return copy


def compile_module(
    module: Any,
    *,
    loop_bytes: int | None = LOOP_BYTES,
    options: Mapping[str, Any] | None = None,
    device: Device = CPU,
    effects: Sequence[Effect] = (),
    groups: Groups = (),
) -> Executable:
    """Compile a module for a device; its host calls run the `effects` of its program.

    A loop whose body moves fewer than `loop_bytes` becomes one native function; larger ones are
    interpreted step by step, with parallelism inside a step. `loops.loop_bytes` chooses it for a
    program; None leaves XLA's own bound, which is 1 kB or more. Bodies that are too deep for native
    functions are interpreted. `options` are XLA's debug options, by name, in addition to those of
    `exactness`.
    """
    inputs, outputs = signature(module)
    if Depths(module).loops > DEEPEST:
        loop_bytes = 0
    every = {**exactness.options(module), **(options or {})}
    chosen = compile_options(loop_bytes, every, device)
    if groups:
        module = with_groups(module, groups)
    bytecode = c.module_bytecode(module)  # a context of its own: compilation lets other threads run
    here = device.placement
    started = perf_counter()
    if effects:
        from pscdsl._src.xla.runtime.effects import (  # which few programs have
            EffectfulExecutable,
            Effects,
        )

        heard = Effects()
        functions = [heard.host_function(effect) for effect in effects]
        copy = c.mlir.Module.parse(bytecode, c.another_context())
        loaded = here.client.compile_and_load(copy, here.devices, chosen, host_callbacks=functions)
        return EffectfulExecutable(loaded, inputs, outputs, device, heard)
    loaded = here.client.compile_and_load(bytecode, here.devices, chosen)
    made = Executable(loaded, inputs, outputs, device)
    made.groups = groups
    seconds = perf_counter() - started
    reusing = with_scratch(module, outputs) if device.platform == "cpu" else None
    if reusing is not None:
        offer(made, Recipe(c.module_bytecode(reusing), chosen.SerializeAsString(), seconds))
    return made


def signature(module: Any) -> tuple[list[Aval], list[Aval]]:
    """Return the types of the parameters and results of `main`."""
    inputs, outputs = c.boundary(module)
    return [_aval(t) for t in inputs], [_aval(t) for t in outputs]


def _aval(tensor: Any) -> Aval:
    known = c.facts(tensor)
    return Aval(known.shape, np.dtype(to_numpy(known.dtype)))


# Modules in a form that outlives jaxlib's versions: StableHLO's portable artefacts.
#
# They are written in a fixed version of StableHLO, which every supported jaxlib reads, as does any
# other reader of that version or a later one. Modules whose executables are on disk need no MLIR,
# so functions import it.


VERSION: Final = "1.9.0"
"""The version of StableHLO; jaxlib's is later. Earlier versions cannot express LAPACK's calls."""


class UnusableModule(Exception):
    """No portable module, or one that must not be used; says why."""


def executable(
    module: SizedProgram,
    inputs: Sequence[Aval],
    outputs: Sequence[Aval],
    compiled: Callable[[Any], Executable],
    admitted: Sequence[str] = (),
    device: Device = CPU,
) -> Executable:
    """Return the executable of a portable module, compiled only if it is not in the cache.

    It may call LAPACK's routines, and the custom calls in `admitted`. Raise `Unreadable` with a
    reason if it is wrong, or takes or gives other arrays than `inputs` and `outputs`.
    """
    store = opened()
    key = _key(module, inputs, outputs, device)
    known = None if store is None else load(store, key, inputs, outputs, device)
    if known is not None:
        return known
    read = verified(module, inputs, outputs, admitted)
    if any(call.startswith(lapack.PREFIX) for call in module.calls):
        boot.lapack()
    try:
        made = compiled(read)
    except Exception as error:
        raise CompilationFailed(str(error)) from error
    if store is not None and not foreign(module.calls):  # whose routines may be elsewhere next time
        save(store, key, made)
    return made


def verified(
    module: SizedProgram,
    inputs: Sequence[Aval],
    outputs: Sequence[Aval],
    admitted: Sequence[str] = (),
) -> Any:
    """Read the module, and check its contents and that it is as the artefact describes it."""
    from pscdsl._src.xla import admission

    read = module_of(module.code)
    try:
        devices = 1 if module.mesh is None else module.mesh.devices
        admission.require(read, module.donate, admitted, devices)
        if signature(read) != (list(inputs), list(outputs)):
            raise UnusableModule("its module takes or gives other arrays than it says")
        if targets(read) != sorted(module.calls):
            raise UnusableModule("its module makes other custom calls than it says")
    except admission.NotAdmitted as problem:
        raise UnusableModule(str(problem)) from None
    except UnusableModule:
        raise
    except Exception as problem:  # any error of jaxlib's
        reason = f"{type(problem).__name__}: {problem}"
        raise UnusableModule(f"its module is not what kernels are ({reason})") from None
    return read


def text(code: bytes) -> str:
    """Return a portable module as text; raise `Unreadable` if it is none."""
    return c.module_text(module_of(code))


def _key(
    module: SizedProgram, inputs: Sequence[Aval], outputs: Sequence[Aval], device: Device
) -> str:
    options = compile_options(LOOP_BYTES, {}, device).SerializeAsString()
    settings = f"without {','.join(sorted(without()))}"
    here = (*disk.backend(device), disk.options_digest())
    said = f"{inputs} -> {outputs}, {module.calls}, {sorted(module.donate)}"
    return digest("portable 3", *here, options, settings, module.code, said)


def portable(module: Any) -> bytes:
    """Return a module as a portable artefact, without the places in the source it came from."""
    dialect, passes = boot.untyped("mlir.dialects.stablehlo"), boot.untyped("mlir.passmanager")
    _register_passes()
    with c.context():
        copy = module.operation.clone()
        for name in ("func.func(chlo-legalize-to-stablehlo)", "strip-debuginfo"):
            passes.PassManager.parse(f"builtin.module({name})").run(copy)
        plain = c.mlir.Module.parse(c.module_bytecode(copy))
        code: bytes = dialect.serialize_portable_artifact(plain, VERSION)
        return code


@boot.once
def _register_passes() -> None:
    boot.untyped("mlir.dialects.stablehlo").register_stablehlo_passes()


def module_of(code: bytes) -> Any:
    """Return the module of a portable artefact."""
    try:
        module = boot.untyped("mlir.dialects.stablehlo").deserialize_portable_artifact(
            c.context(), code
        )
        module.operation.verify()
    except Exception as problem:  # ValueError or MLIRError, by version
        raise UnusableModule(str(problem)) from None
    return module


def targets(module: Any) -> list[str]:
    """Return the targets of a module's custom calls: LAPACK's, or a user's, or Python functions."""
    names: dict[str, None] = {}

    def visit(operation: Any) -> Any:
        if operation.name.endswith(".custom_call"):
            names[operation.attributes["call_target_name"].value] = None
        return c.mlir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return sorted(names)


def foreign(calls: Sequence[str]) -> list[str]:
    """Return the custom calls among `calls` that are not LAPACK's."""
    return [call for call in calls if not call.startswith(lapack.PREFIX)]
