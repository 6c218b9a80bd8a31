"""Compiled programs on disk, so that a process finds what another one has compiled.

An executable is kept under the module it was compiled from: StableHLO without locations.  A second
entry leads there from the typed program and its sizes, so that a program that is known needs no
module.  `keys` says what the keys are made of.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Final

from pscdsl._src.caching.store import Store
from pscdsl._src.xla.compilation.compile import signature
from pscdsl._src.xla.compilation.keys import NoKey, module_key, program_key
from pscdsl._src.xla.compilation.stored import digest, keep, load
from pscdsl._src.xla.emit.emit import lower_module
from pscdsl._src.xla.runtime.executable import Executable, Source, aval_of
from pscdsl._src.xla.specialisation import Compiler, Specialisation

log: Final = logging.getLogger("pscdsl.compile")


class Refused(Exception):
    """XLA does not compile a module; the cause is its own exception."""


def obtain(
    wanted: Specialisation,
    store: Store | None,
    compiler: Compiler,
    emit: Callable[[Specialisation], Any] | None = None,
) -> Executable:
    """The executable, from disk if it is there; else compiled, and kept if it can be.

    It says where it comes from, how long that took, and why it is not on disk if it is not.
    `emit` makes the module in place of `emitted`.
    """
    started = time.perf_counter()

    def obtained(executable: Executable, source: Source, unkept: str = "") -> Executable:
        if unkept:
            log.debug("`%s` is not kept: %s", wanted.program.name, unkept)
        executable.source, executable.unkept = source, unkept
        executable.seconds = time.perf_counter() - started
        return executable

    emit = emit or emitted
    if store is None:
        made = _compiled(emit(wanted), wanted, compiler)
        return obtained(made, "compiled", "there is no cache")
    short = program_key(wanted)
    known = _led(store, short, wanted)
    if known is not None:
        return obtained(known, "disk")
    module = emit(wanted)
    try:
        key = module_key(module, wanted, compiler)
    except NoKey as reason:
        return obtained(_compiled(module, wanted, compiler), "compiled", str(reason))
    known = load(store, key, *signature(module), wanted.device)
    made = known or _compiled(module, wanted, compiler)
    if known is None and not keep(store, key, made):
        return obtained(made, "compiled", f"{store.folder} does not take it")
    if short is not None:
        store.put(short, key.encode())
    return obtained(made, "compiled" if known is None else "disk")


def is_there(wanted: Specialisation, store: Store) -> bool:
    """Whether a program is on disk under its own key."""
    short = program_key(wanted)
    return short is not None and store.get(short) is not None


def set_ahead(wanted: Specialisation, store: Store) -> None:
    """Say that a program was compiled ahead of all calls."""
    if (short := program_key(wanted)) is not None:
        store.put(_ahead(short), b"")


def is_ahead(wanted: Specialisation, store: Store) -> bool:
    """Whether that was said of a program."""
    short = program_key(wanted)
    return short is not None and store.get(_ahead(short)) is not None


def _ahead(key: str) -> str:
    return digest("ahead", key)


def emitted(wanted: Specialisation) -> Any:
    """The module of a specialisation."""
    return lower_module(wanted.program, wanted.sizes, donate=wanted.donate)


def _compiled(module: Any, wanted: Specialisation, compiler: Compiler) -> Executable:
    try:
        made: Executable = compiler.compiled(module, wanted.loop_bytes)
        return made
    except Exception as error:
        raise Refused(str(error)) from error


def _led(store: Store, short: str | None, wanted: Specialisation) -> Executable | None:
    """The executable to which the program's own key leads."""
    key = None if short is None else store.get(short)
    if key is None:
        return None
    body = wanted.program.body
    inputs = [aval_of(each, wanted.sizes) for each in body.in_types]
    outputs = [aval_of(each, wanted.sizes) for each in body.out_types]
    return load(store, key.decode("ascii", "replace"), inputs, outputs, wanted.device)
