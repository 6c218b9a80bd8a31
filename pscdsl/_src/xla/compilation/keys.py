"""Under which names executables are kept on disk.

The key of a module holds its bytecode without locations, the compile options, and the conditions
under which the compiler runs (`conditions.backend`).  The key of a program holds its fingerprint,
the numbers that its sizes are, which parameters are donated, the options, the conditions, and the
content of the files that make modules of programs (`conditions.emission`).  A key that differs
without need costs time; one that does not differ where it must gives wrong results.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pscdsl._src.analysis.fingerprint import NoFingerprint, fingerprint
from pscdsl._src.ir.forms import switched_off
from pscdsl._src.ir.program import Function
from pscdsl._src.targets.cpu.options import module_options
from pscdsl._src.xla.compilation import conditions
from pscdsl._src.xla.compilation.portable import foreign, targets
from pscdsl._src.xla.compilation.stored import digest
from pscdsl._src.xla.emit import context as c
from pscdsl._src.xla.emit.emit import module_bytecode
from pscdsl._src.xla.runtime import boot
from pscdsl._src.xla.runtime.executable import LOOP_BYTES, compile_options

log: Final = logging.getLogger("pscdsl.compile")


class NoKey(Exception):
    """A module that must not be kept; says why."""


@dataclass(frozen=True, slots=True)
class Request:
    """A program that is wanted at certain sizes."""

    program: Function
    sizes: Mapping[str, int]
    donate: Sequence[int] = ()
    """The parameters whose memory may be reused."""
    loop_bytes: int | None = LOOP_BYTES
    """See `compile_module`."""


def program_key(request: Request) -> str | None:
    """The key of a program, without its module; None if its content cannot be written down."""
    try:
        content = fingerprint(request.program)
    except NoFingerprint as reason:
        log.debug("`%s` is looked up by its module: it holds %s", request.program.name, reason)
        return None
    sizes = ",".join(f"{name}={request.sizes[name]}" for name in request.program.dims)
    return digest("program", *_conditions(request), conditions.emission(), content, sizes)


def module_key(module: Any, request: Request) -> str:
    """The key of a module; `NoKey` if it calls what another process may not have."""
    calls = foreign(targets(module))
    if calls:
        raise NoKey(f"it calls {', '.join(calls)}, which may be elsewhere in another process")
    return digest("module", *_conditions(request, module), _without_places(module))


def _conditions(request: Request, module: Any = None) -> tuple[str | bytes, ...]:
    chosen: Mapping[str, Any] = {} if module is None else module_options.options(module)
    defaults = compile_options(None, {}).SerializeAsString()  # of ours some are an unordered map
    options = repr((request.loop_bytes, sorted(chosen.items())))
    forms = ",".join(sorted(switched_off()))
    donated = repr(sorted(request.donate))
    return (*conditions.backend(), defaults, options, donated, f"without {forms}")


def _without_places(module: Any) -> bytes:
    passes = boot.untyped("mlir.passmanager").PassManager
    with c.context():
        copy = module.operation.clone()
        passes.parse("builtin.module(strip-debuginfo)").run(copy)
        return module_bytecode(copy)
