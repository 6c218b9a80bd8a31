"""Compiled programs on disk, so that a process finds what another one has compiled.

An executable is kept under the module it was compiled from: StableHLO without locations.  A second
entry leads there from the typed program and its sizes, so that a program that is known needs no
module.  `keys` says what the keys are made of.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from pscdsl._src.caching.store import Store
from pscdsl._src.targets.cpu.options import module_options
from pscdsl._src.xla.compilation.compile import signature
from pscdsl._src.xla.compilation.keys import NoKey, Request, module_key, program_key
from pscdsl._src.xla.compilation.stored import digest, keep, load
from pscdsl._src.xla.emit.emit import lower_module
from pscdsl._src.xla.runtime.executable import Executable, aval_of

Source: TypeAlias = Literal["compiled", "disk"]

log: Final = logging.getLogger("pscdsl.compile")


class Refused(Exception):
    """XLA does not compile a module; the cause is its own exception."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An executable, where it came from, and how many seconds that took."""

    executable: Executable
    source: Source
    seconds: float
    unkept: str = ""
    """Why it is not on disk now, if it is not."""


def obtain(
    request: Request, store: Store | None, emit: Callable[[Request], Any] | None = None
) -> Answer:
    """The executable, from disk if it is there; else compiled, and kept if it can be.

    `emit` makes the module in place of `emitted`.
    """
    started = time.perf_counter()

    def answer(found: Executable, source: Source, unkept: str = "") -> Answer:
        if unkept:
            log.debug("`%s` is not kept: %s", request.program.name, unkept)
        return Answer(found, source, time.perf_counter() - started, unkept)

    if store is None:
        return answer(
            _compiled((emit or emitted)(request), request), "compiled", "there is no cache"
        )
    short = program_key(request)
    found = _led(store, short, request)
    if found is not None:
        return answer(found, "disk")
    module = (emit or emitted)(request)
    try:
        key = module_key(module, request)
    except NoKey as reason:
        return answer(_compiled(module, request), "compiled", str(reason))
    found = load(store, key, *signature(module))
    source: Source = "compiled" if found is None else "disk"
    if found is None:
        found = _compiled(module, request)
        if not keep(store, key, found):
            return answer(found, source, f"{store.folder} does not take it")
    if short is not None:
        store.put(short, key.encode())
    return answer(found, source)


def is_there(request: Request, store: Store) -> bool:
    """Whether a program is on disk under its own key."""
    short = program_key(request)
    return short is not None and store.get(short) is not None


def set_ahead(request: Request, store: Store) -> None:
    """Say that a program was compiled ahead of all calls."""
    if (short := program_key(request)) is not None:
        store.put(_ahead(short), b"")


def is_ahead(request: Request, store: Store) -> bool:
    """Whether that was said of a program."""
    short = program_key(request)
    return short is not None and store.get(_ahead(short)) is not None


def _ahead(key: str) -> str:
    return digest("ahead", key)


def emitted(request: Request) -> Any:
    """The module of a request."""
    return lower_module(request.program, request.sizes, donate=request.donate)


def _compiled(module: Any, request: Request) -> Executable:
    try:
        return module_options.compiled(module, request.loop_bytes)
    except Exception as error:
        raise Refused(str(error)) from error


def _led(store: Store, short: str | None, request: Request) -> Executable | None:
    """The executable to which the program's own key leads."""
    key = None if short is None else store.get(short)
    if key is None:
        return None
    body = request.program.body
    inputs = [aval_of(each, request.sizes) for each in body.in_types]
    outputs = [aval_of(each, request.sizes) for each in body.out_types]
    return load(store, key.decode("ascii", "replace"), inputs, outputs)
