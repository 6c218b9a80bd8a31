"""Under which names executables are kept on disk.

The key of a module holds its bytecode without locations, the compile options, and the conditions
under which the compiler runs (`conditions.backend`).  The key of a program holds its fingerprint,
the numbers that its sizes are, which parameters are donated, the options, the conditions, and the
content of the files that make modules of programs (`conditions.emission`).  A key that differs
without need costs time; one that does not differ where it must gives wrong results.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from pscdsl._src.analysis.fingerprint import NoFingerprint, fingerprint
from pscdsl._src.ir.forms import switched_off
from pscdsl._src.xla.compilation import conditions
from pscdsl._src.xla.compilation.portable import foreign, targets
from pscdsl._src.xla.compilation.stored import digest
from pscdsl._src.xla.emit import context as c
from pscdsl._src.xla.emit.emit import module_bytecode
from pscdsl._src.xla.runtime import boot
from pscdsl._src.xla.runtime.executable import compile_options
from pscdsl._src.xla.specialisation import Compiler, Specialisation

log: Final = logging.getLogger("pscdsl.compile")


class NoKey(Exception):
    """A module that must not be kept; says why."""


def program_key(wanted: Specialisation) -> str | None:
    """The key of a program, without its module; None if its content cannot be written down."""
    program = wanted.program
    try:
        content = fingerprint(program)
    except NoFingerprint as reason:
        log.debug("`%s` is looked up by its module: it holds %s", program.name, reason)
        return None
    sizes = ",".join(f"{name}={wanted.sizes[name]}" for name in program.dims)
    decided = _conditions(wanted, {})
    return digest("program", *decided, conditions.emission(), content, sizes)


def module_key(module: Any, wanted: Specialisation, compiler: Compiler) -> str:
    """The key of a module; `NoKey` if it calls what another process may not have."""
    calls = foreign(targets(module))
    if calls:
        raise NoKey(f"it calls {', '.join(calls)}, which may be elsewhere in another process")
    decided = _conditions(wanted, compiler.options(module))
    return digest("module", *decided, _without_places(module))


def _conditions(wanted: Specialisation, chosen: Mapping[str, Any]) -> tuple[str | bytes, ...]:
    """What decides the code of a program besides what it computes, with the chosen options."""
    device = wanted.device
    # Of our own options some are in a map without an order.
    defaults = compile_options(None, {}, device).SerializeAsString()
    options = repr((wanted.loop_bytes, sorted(chosen.items())))
    forms = ",".join(sorted(switched_off()))
    donated = repr(sorted(wanted.donate))
    return (*conditions.backend(device), defaults, options, donated, f"without {forms}")


def _without_places(module: Any) -> bytes:
    passes = boot.untyped("mlir.passmanager").PassManager
    with c.context():
        copy = module.operation.clone()
        passes.parse("builtin.module(strip-debuginfo)").run(copy)
        return module_bytecode(copy)
