"""Portable modules on their way to executables: those that are kept on disk need no MLIR."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pscdsl._src.ir.forms import VARIABLE
from pscdsl._src.xla.compilation import conditions
from pscdsl._src.xla.compilation.stored import digest, keep, load, opened
from pscdsl._src.xla.device import CPU, Device
from pscdsl._src.xla.runtime import boot, lapack
from pscdsl._src.xla.runtime.boot import Aval
from pscdsl._src.xla.runtime.executable import Executable, compile_options
from pscdsl._src.xla.specialisation import LOOP_BYTES

if TYPE_CHECKING:
    from pscdsl._src.artefacts.contents import Module


class Unreadable(Exception):
    """No portable module, or one that must not be used; says why."""


class Refused(Exception):
    """XLA does not compile a module; the cause is its own exception."""


def executable(
    module: Module,
    inputs: Sequence[Aval],
    outputs: Sequence[Aval],
    compiled: Callable[[Any], Executable],
    admitted: Sequence[str] = (),
    device: Device = CPU,
) -> Executable:
    """The executable of a portable module, which is read and compiled only if it is not kept.

    It may call LAPACK's routines, and the custom calls that are `admitted`.  `Unreadable` says
    what is wrong with it, also if it takes or gives other arrays than those.
    """
    store = opened()
    key = _key(module, inputs, outputs, device)
    found = None if store is None else load(store, key, inputs, outputs, device)
    if found is not None:
        return found
    from pscdsl._src.xla.compilation.portable import foreign

    read = verified(module, inputs, outputs, admitted)
    if any(each.startswith(lapack.PREFIX) for each in module.calls):
        boot.lapack()
    try:
        made = compiled(read)
    except Exception as error:
        raise Refused(str(error)) from error
    if store is not None and not foreign(module.calls):  # whose routines may be elsewhere next time
        keep(store, key, made)
    return made


def verified(
    module: Module, inputs: Sequence[Aval], outputs: Sequence[Aval], admitted: Sequence[str] = ()
) -> Any:
    """The module, read, which holds what kernels hold, and is what the artefact says of it."""
    from pscdsl._src.xla import admission
    from pscdsl._src.xla.compilation.compile import signature
    from pscdsl._src.xla.compilation.portable import module_of, targets

    read = module_of(module.code)
    try:
        admission.require(read, module.donate, admitted)
        if signature(read) != (list(inputs), list(outputs)):
            raise Unreadable("its module takes or gives other arrays than it says")
        if targets(read) != sorted(module.calls):
            raise Unreadable("its module makes other custom calls than it says")
    except admission.Refused as problem:
        raise Unreadable(str(problem)) from None
    except Unreadable:
        raise
    except Exception as problem:  # whatever jaxlib makes of what it has read
        told = f"{type(problem).__name__}: {problem}"
        raise Unreadable(f"its module is not what kernels are ({told})") from None
    return read


def text(code: bytes) -> str:
    """A portable module as text; `Unreadable` if it is none."""
    from pscdsl._src.xla.compilation.portable import module_of
    from pscdsl._src.xla.emit.emit import module_text

    return module_text(module_of(code))


def _key(module: Module, inputs: Sequence[Aval], outputs: Sequence[Aval], device: Device) -> str:
    options = compile_options(LOOP_BYTES, {}, device).SerializeAsString()
    settings = f"without {os.environ.get(VARIABLE, '')}"
    here = (*conditions.backend(device), conditions.choosing())
    said = f"{inputs} -> {outputs}, {module.calls}, {sorted(module.donate)}"
    return digest("portable 3", *here, options, settings, module.code, said)
