"""The executable of a program: found on disk, or compiled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pscdsl._src.ir.program import Function, walk
from pscdsl._src.kernels.executables import compiler_of
from pscdsl._src.support.tracebacks import OWN_PRIMITIVES
from pscdsl._src.targets.cpu.loops import loop_bytes
from pscdsl._src.xla import disk, executable_store
from pscdsl._src.xla.runtime.executable import CompilationFailed, Executable
from pscdsl._src.xla.specialisation import Specialisation


def _with_options(wanted: Specialisation) -> Specialisation:
    """Return a specialisation with the options that its target chooses for its program."""
    if wanted.device.platform != "cpu":
        return replace(wanted, loop_bytes=None)
    return replace(wanted, loop_bytes=loop_bytes(wanted.program, wanted.sizes))


def is_on_disk(wanted: Specialisation, *, ahead: bool) -> bool:
    """Return whether a program is on disk; with `ahead`, whether it was compiled for all calls."""
    store = disk.opened()
    if store is None:
        return False
    holds = executable_store.is_ahead if ahead else executable_store.is_there
    return holds(_with_options(wanted), store)


def obtained(wanted: Specialisation, *, ahead: bool = False) -> Executable:
    """Return the executable of a program, from disk or compiled.

    With `ahead`, other processes see that it was compiled for all calls.
    """
    wanted, store = _with_options(wanted), disk.opened()
    if wanted.groups and store is not None and not executable_store.is_there(wanted, store):
        single = replace(wanted, groups=())
        wanted = single if executable_store.is_there(single, store) else wanted
    try:
        executable = executable_store.obtain(wanted, store, compiler_of(wanted.device), _module)
    except CompilationFailed as refusal:
        raise _rejected(wanted.program, refusal) from refusal.__cause__
    if ahead and store is not None:
        executable_store.set_ahead(wanted, store)
    return executable


def _module(wanted: Specialisation) -> Any:
    from pscdsl._src.kernels.emission import emitted  # programs on disk do not need it

    return emitted(wanted.program, wanted.sizes, wanted.donate, device=wanted.device)


def _rejected(program: Function, error: object) -> Exception:
    """Return the exception for a module that XLA refuses; it says whose mistake it is."""
    foreign = [
        equation
        for equation in walk(program.body)
        if not type(equation.primitive).__module__.startswith(OWN_PRIMITIVES)
    ]
    if foreign:
        names = ", ".join(sorted({f"`{equation.primitive.label}`" for equation in foreign}))
        return ValueError(f"XLA refuses the program; is the translation of {names} right? {error}")
    name = program.name
    return RuntimeError(f"internal error: XLA refuses the checked `{name}`; please report: {error}")
