"""From a specialisation to its executable: found on disk, or compiled and kept there.

An executable is stored under its module: StableHLO without locations.  A second
entry leads there from the typed program and its sizes, so that a program that is known needs no
module.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from pscdsl._src.analysis.fingerprint import NoFingerprint, fingerprint
from pscdsl._src.caching.store import Store
from pscdsl._src.xla import disk
from pscdsl._src.xla.compilation import foreign, signature, targets
from pscdsl._src.xla.disk import digest, load, save
from pscdsl._src.xla.emit import context as c
from pscdsl._src.xla.emit.context import module_bytecode
from pscdsl._src.xla.runtime import boot
from pscdsl._src.xla.runtime.executable import (
    CompilationFailed,
    Executable,
    Source,
    aval_of,
    compile_options,
)
from pscdsl._src.xla.runtime.settings import without
from pscdsl._src.xla.specialisation import Compiler, Specialisation

# The names under which executables are stored on disk.
#
# The key of a module holds its bytecode without locations, the compile options, and the conditions
# under which the compiler runs (`conditions.backend`).  The key of a program holds its fingerprint,
# the numbers that its sizes are, which parameters are donated, the options, the conditions, and the
# content of the files that make modules of programs (`conditions.emission`).  A key that differs
# without need costs time; one that does not differ where it must gives wrong results.


log: Final = logging.getLogger("pscdsl.compile")


class NotStorable(Exception):
    """A module that must not be stored; says why."""


def program_key(wanted: Specialisation) -> str | None:
    """Return the key of a program without its module; None if it cannot be written down."""
    program = wanted.program
    try:
        content = fingerprint(program)
    except NoFingerprint as reason:
        log.debug("`%s` is looked up by its module: it holds %s", program.name, reason)
        return None
    sizes = ",".join(f"{name}={wanted.sizes[name]}" for name in program.dims)
    decided = _conditions(wanted, {})
    return digest("program", *decided, disk.emission_digest(), content, sizes)


def module_key(module: Any, wanted: Specialisation, compiler: Compiler) -> str:
    """Return the key of a module; raise `NoKey` for calls that another process may not have."""
    if wanted.effects:
        raise NotStorable("it has effects, whose functions are in this process")
    calls = foreign(targets(module))
    if calls:
        raise NotStorable(f"it calls {', '.join(calls)}, which may be elsewhere in another process")
    decided = _conditions(wanted, compiler.options(module))
    return digest("module", *decided, without_places(module))


def _conditions(wanted: Specialisation, chosen: Mapping[str, Any]) -> tuple[str | bytes, ...]:
    """Return the conditions besides the computation and options that decide a program's code."""
    device = wanted.device
    # Some of our own options are in a map without an order.
    defaults = compile_options(None, {}, device).SerializeAsString()
    options = repr((wanted.loop_bytes, sorted(chosen.items()), wanted.groups))
    forms = ",".join(sorted(without()))
    donated = repr(sorted(wanted.donate))
    return (*disk.backend(device), defaults, options, donated, f"without {forms}")


def without_places(module: Any) -> bytes:
    """Return the bytecode of a module without the places in the source."""
    passes = boot.untyped("mlir.passmanager").PassManager
    with c.context():
        copy = module.operation.clone()
        passes.parse("builtin.module(strip-debuginfo)").run(copy)
        return module_bytecode(copy)


# The executables.


def obtain(
    wanted: Specialisation,
    store: Store | None,
    compiler: Compiler,
    emit: Callable[[Specialisation], Any],
) -> Executable:
    """Return the executable from disk, or else compiled, and stored if possible.

    The executable has its origin, the time taken, and the reason why it is not on disk, if any.
    `emit` makes the module if it is needed.
    """
    started = time.perf_counter()

    def obtained(executable: Executable, source: Source, not_stored: str = "") -> Executable:
        if not_stored:
            log.debug("`%s` is not kept: %s", wanted.program.name, not_stored)
        executable.source, executable.not_stored = source, not_stored
        executable.seconds = time.perf_counter() - started
        return executable

    if store is None:
        made = _compile(emit(wanted), wanted, compiler)
        return obtained(made, "compiled", "there is no cache")
    short = program_key(wanted)
    known = _follow_key(store, short, wanted)
    if known is not None:
        return obtained(known, "disk")
    module = emit(wanted)
    try:
        key = module_key(module, wanted, compiler)
    except NotStorable as reason:
        return obtained(_compile(module, wanted, compiler), "compiled", str(reason))
    known = load(store, key, *signature(module), wanted.device)
    made = known or _compile(module, wanted, compiler)
    if known is None and not save(store, key, made):
        return obtained(made, "compiled", f"{store.folder} does not take it")
    if short is not None:
        store.put(short, key.encode())
    return obtained(made, "compiled" if known is None else "disk")


def is_there(wanted: Specialisation, store: Store) -> bool:
    """Return whether a program is on disk under its own key."""
    short = program_key(wanted)
    return short is not None and store.get(short) is not None


def set_ahead(wanted: Specialisation, store: Store) -> None:
    """Say that a program was compiled ahead of all calls."""
    if (short := program_key(wanted)) is not None:
        store.put(_ahead(short), b"")


def is_ahead(wanted: Specialisation, store: Store) -> bool:
    """Return whether a program was compiled ahead of all calls."""
    short = program_key(wanted)
    return short is not None and store.get(_ahead(short)) is not None


def _ahead(key: str) -> str:
    return digest("ahead", key)


def _compile(module: Any, wanted: Specialisation, compiler: Compiler) -> Executable:
    try:
        made: Executable = compiler.compiled(
            module, wanted.loop_bytes, wanted.device, wanted.effects, wanted.groups
        )
        return made
    except Exception as error:
        raise CompilationFailed(str(error)) from error


def _follow_key(store: Store, short: str | None, wanted: Specialisation) -> Executable | None:
    """Return the executable to which the program's own key leads."""
    key = None if short is None else store.get(short)
    if key is None:
        return None
    body = wanted.program.body
    inputs = [aval_of(type_, wanted.sizes) for type_ in body.in_types]
    outputs = [aval_of(type_, wanted.sizes) for type_ in body.out_types]
    return load(store, key.decode("ascii", "replace"), inputs, outputs, wanted.device)
