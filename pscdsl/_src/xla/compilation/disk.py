"""Executables in the store on disk: their names, how they get there, and back."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from pscdsl._src.caching import store as places
from pscdsl._src.caching.store import Store
from pscdsl._src.xla.compilation import keys
from pscdsl._src.xla.device import CPU, Device
from pscdsl._src.xla.runtime import boot, memory
from pscdsl._src.xla.runtime.boot import Aval
from pscdsl._src.xla.runtime.executable import Executable, compile_options, load_executable
from pscdsl._src.xla.runtime.memory import Recipe, Reuse

log: Final = logging.getLogger("pscdsl.compile")


def opened() -> Store | None:
    """The store that the environment names; None if nothing is to be stored."""
    folder = places.cache_folder()
    if folder is None or keys.dumps():
        return None
    return Store(folder, places.cache_limit())


def load(
    store: Store,
    key: str,
    inputs: Sequence[Aval],
    outputs: Sequence[Aval],
    device: Device = CPU,
) -> Executable | None:
    """The executable under a key; None if there is none that can be used."""
    code = store.get(key)
    if code is None:
        return None
    try:
        executable = load_executable(code, inputs, outputs, device)
        executable.entry = key
        _offer_again(store, executable)
        return executable
    except Exception as error:  # whatever jaxlib makes of code that it cannot use
        log.info("compiled code cannot be loaded, and is removed: %s", error)
        store.remove(key)
        return None


def save(store: Store, key: str, executable: Executable) -> bool:
    """Keep an executable; whether that could be done."""
    try:
        code = executable.serialize()
    except Exception as error:  # a backend that cannot
        log.debug("compiled code cannot be written down: %s", error)
        return False
    if not store.put(key, code):
        return False
    executable.entry = key
    if executable.recipe is not None:
        store.put(keys.digest("recipe", key), executable.recipe.pack())
    return True


def offer(executable: Executable, recipe: Recipe) -> None:
    """Have a program with large results reuse memory, by an executable that is made when due."""
    executable.recipe = recipe
    if memory.pools_results():
        executable.reuse = Reuse(
            executable.outputs, executable.start, partial(_reusing, executable), recipe.seconds
        )


def _offer_again(store: Store, executable: Executable) -> None:
    if memory.pooled(executable.outputs) and memory.pools_results():
        content = store.get(keys.digest("recipe", executable.entry))
        if content is not None:
            offer(executable, Recipe.unpack(content))


def _reusing(first: Executable) -> Any:
    """What a recipe gives, from disk if it is there; None if it takes more memory or copies more.

    Where a loop carries a large result, XLA computes beside it, and copies that in the end.
    """
    assert first.recipe is not None
    inputs = [*first.inputs, *[first.outputs[place] for place in memory.pooled(first.outputs)]]
    options = boot.xla.CompileOptions.ParseFromString(first.recipe.options)
    store, key = opened() if first.entry else None, keys.digest("reusing", first.entry)
    executable = _obtained(
        store, key, first.recipe.code, options, inputs, first.outputs, first.device
    )
    if executable.memory()["temporaries"] > first.memory()["temporaries"] + memory.LARGE // 2:
        first.reuse = None
        return None
    return executable.start


def from_text(
    text: str, inputs: Sequence[Aval], outputs: Sequence[Aval], device: Device = CPU
) -> Executable:
    """The executable of a small module of our own, given as text."""
    options = compile_options(None, {}, device)
    key = text_key(text, options, device)
    return _obtained(opened(), key, text, options, inputs, outputs, device)


def _obtained(
    store: Store | None,
    key: str,
    code: str | bytes,
    options: Any,
    inputs: Sequence[Aval],
    outputs: Sequence[Aval],
    device: Device,
) -> Executable:
    """The executable under a key; else compiled, and stored if there is a store."""
    executable = None if store is None else load(store, key, inputs, outputs, device)
    if executable is None:
        here = device.placement
        loaded = here.client.compile_and_load(code, here.devices, options)
        executable = Executable(loaded, inputs, outputs, device)
        if store is not None:
            save(store, key, executable)
    return executable


def text_key(text: str, options: Any, device: Device = CPU) -> str:
    """The key of a module that is given as text."""
    return keys.digest("text", *keys.backend(device), options.SerializeAsString(), text)
