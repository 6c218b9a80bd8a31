"""Portable modules on their way to executables: those that are kept on disk need no MLIR."""

from __future__ import annotations

import os
from collections.abc import Sequence

from pscdsl.forms import VARIABLE
from pscdsl.xla import boot, conditions, lapack
from pscdsl.xla.boot import Aval
from pscdsl.xla.executable import LOOP_BYTES, Executable, compile_options
from pscdsl.xla.kept import digest, keep, load, opened


class Unreadable(Exception):
    """No portable module, or one that must not be used; says why."""


class Refused(Exception):
    """XLA does not compile a module; the cause is its own exception."""


def executable(
    code: bytes, inputs: Sequence[Aval], outputs: Sequence[Aval], admitted: Sequence[str] = ()
) -> Executable:
    """The executable of a portable module, which is read and translated only if it is not kept.

    It may call LAPACK's routines, and the custom calls that are `admitted`.  `Unreadable` says
    what is wrong with it, also if it takes or gives other arrays than those.
    """
    store = opened()
    key = _key(code, inputs, outputs)
    found = None if store is None else load(store, key, inputs, outputs)
    if found is not None:
        return found
    from pscdsl.xla import module_options
    from pscdsl.xla.compile import signature
    from pscdsl.xla.portable import foreign, module_of, targets

    module = module_of(code)
    calls = targets(module)
    if unknown := [each for each in foreign(calls) if each not in admitted]:
        raise Unreadable(f"it calls {', '.join(unknown)}, which must be admitted by name")
    if signature(module) != (list(inputs), list(outputs)):
        raise Unreadable("its module takes or gives other arrays than it says")
    if any(each.startswith(lapack.PREFIX) for each in calls):
        boot.lapack()
    try:
        made = module_options.compiled(module)
    except Exception as error:
        raise Refused(str(error)) from error
    if store is not None and not foreign(calls):  # whose routines may be elsewhere next time
        keep(store, key, made)
    return made


def text(code: bytes) -> str:
    """A portable module as text; `Unreadable` if it is none."""
    from pscdsl.xla.emit import module_text
    from pscdsl.xla.portable import module_of

    return module_text(module_of(code))


def _key(code: bytes, inputs: Sequence[Aval], outputs: Sequence[Aval]) -> str:
    options = compile_options(LOOP_BYTES, {}).SerializeAsString()
    settings = f"without {os.environ.get(VARIABLE, '')}"
    here = (*conditions.backend(), conditions.choosing())
    arrays = f"{inputs} -> {outputs}"
    return digest("portable 2", *here, options, settings, code, arrays)
