"""Executables on disk: the names and conditions of entries, storing and loading."""

from __future__ import annotations

import logging
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import jaxlib
import numpy as np

from pscdsl._src.caching import store as places
from pscdsl._src.caching.store import Store
from pscdsl._src.support.tracebacks import FOLDER
from pscdsl._src.xla.device import CPU, JOB, Device
from pscdsl._src.xla.runtime import boot, memory
from pscdsl._src.xla.runtime.boot import Aval
from pscdsl._src.xla.runtime.devices import cpu_devices
from pscdsl._src.xla.runtime.executable import Executable, compile_options, load_executable
from pscdsl._src.xla.runtime.memory import Recipe, Reuse
from pscdsl._src.xla.runtime.settings import PROCESSORS_VARIABLE, processors

# Names of entries on disk, and the conditions in all names: machine, jaxlib, our files, settings.
#
# Code that was compiled under other conditions must never be loaded: it may use instructions that
# this processor lacks, and no later check would notice.


_VERSION: Final = "pscdsl executables 4"
"""The version of the entries' form; raise it whenever the form changes."""
_VARIABLES: Final = ("XLA_FLAGS", PROCESSORS_VARIABLE)
"""The environment variables that XLA's compiler reads."""
_CHOOSING: Final = (
    "xla/exactness",
    "xla/runtime/executable",
    "targets/cpu/module_options",
)
"""The files of ours that decide with which options a module is compiled."""
_EMITTING: Final = (
    *(f"_src/{name}" for name in "analysis interpreters ir primitives".split()),
    *(f"_src/{name}" for name in "support targets transforms xla".split()),
    "typing",
)
"""Our folders that decide what is emitted for a typed program, together with the files next to
them.

They include the code that decides whether a program is emitted at all: a program that an older
version failed to refuse must not be found in the cache.
"""


def digest(*parts: str | bytes) -> str:
    """Return the name of an entry: different if any of the parts is."""
    made = blake2b(_VERSION.encode(), digest_size=32)
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode(errors="surrogateescape")
        made.update(len(data).to_bytes(8, "little") + data)
    return made.hexdigest()


@cache
def backend(device: Device = CPU) -> tuple[str, ...]:
    """Return the compiler, its settings and the device."""
    count = cpu_devices()
    return (*mesh_backend(device), *([f"devices {count}"] if count > 1 else []))


@cache
def mesh_backend(device: Device) -> tuple[str, ...]:
    """Return the compiler, its settings and the kind of device, in any process of any job."""
    here = device.placement
    others = () if device.platform == "cpu" else _plugin_versions(device.platform)
    return (
        *others,
        f"jaxlib {version()}",
        f"{here.client.platform} {here.client.platform_version} {here.device_list[0].device_kind}",
        f"{platform.system()} {platform.machine()} {sys.byteorder}",
        f"topology {_topology(device)}",
        f"processors {processors()}",
        *[f"{name}={os.environ.get(name, '')}" for name in _VARIABLES],
        f"flags {_flags_in_a_file()}",
    )


def _plugin_versions(platform: str) -> tuple[str, ...]:
    from pscdsl._src.xla.runtime.plugins import versions  # programs on CPUs start without it

    return versions(platform)


@boot.once
def options_digest() -> str:
    """Return a digest of the files whose rules choose the options of modules."""
    made = blake2b(digest_size=32)
    for name in _CHOOSING:
        made.update(Path(FOLDER, "_src", f"{name}.py").read_bytes())
    return made.hexdigest()


@boot.once
def emission_digest() -> str:
    """Return a digest of the files that translate to StableHLO."""
    folder = Path(FOLDER)
    made = blake2b(digest_size=32)
    for path in emission_sources():
        content = path.read_bytes()
        made.update(f"{path.relative_to(folder)} {len(content)}\n".encode())
        made.update(content)
    return made.hexdigest()


@boot.once
def reading_conditions() -> tuple[str, ...]:
    """Return all that a kernel's meaning depends on besides its source: Python, NumPy, our files.

    The files are identified by their times of writing, as Python identifies bytecode: there are
    hundreds.
    """
    folder = Path(FOLDER)
    made = blake2b(digest_size=32)
    for state in sorted(own_states(str(folder))):
        made.update(state.encode(errors="surrogateescape"))
    return (sys.version, f"numpy {np.__version__}", f"{folder} {made.hexdigest()}")


def own_states(folder: str) -> Iterator[str]:
    """Yield the state of each of our files below a folder; writing a file changes its state."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                state = entry.stat()
                yield f"{entry.path} {state.st_size} {state.st_mtime_ns} {state.st_ctime_ns}\n"
            elif entry.name != "__pycache__" and not entry.name.startswith(".") and entry.is_dir():
                yield from own_states(entry.path)


def emission_sources() -> Iterator[Path]:
    """Yield our files that decide what is emitted, and whether it is."""
    folder = Path(FOLDER)
    yield from sorted(folder.glob("*.py"))
    for name in _EMITTING:
        for place, _, files in sorted(os.walk(folder / name)):
            yield from (Path(place, file) for file in sorted(files) if file.endswith(".py"))


def dumps() -> bool:
    """Return whether XLA is asked to dump its work, and so has to compile."""
    return "xla_dump" in os.environ.get("XLA_FLAGS", "") + _flags_in_a_file()


def version() -> str:
    """Return the version of jaxlib, and of its interface."""
    library: Any = jaxlib
    return f"{library.__version__} {getattr(boot.xla, '_version', '')}"


def _topology(device: Device) -> str:
    """Return the processor's features among other things, as the compiler sees them."""
    devices = device.placement.device_list
    if device.platform == "cpu" and (JOB.cluster is not None or cpu_devices() > 1):
        # The fingerprint depends on the other devices and on the process, unless there is one.
        devices = boot.xla.make_cpu_client(asynchronous=False).devices()
    return str(boot.jax.get_topology_for_devices(devices).fingerprint())


def _flags_in_a_file() -> str:
    """XLA's flags if they are in a file that the variable names."""
    named = os.environ.get("XLA_FLAGS", "").strip()
    if not named or named.startswith("-"):
        return ""
    try:
        return Path(named).read_text(errors="replace")
    except OSError:
        return ""


# Executables in the store on disk: their names, how they get there, and back.


log: Final = logging.getLogger("pscdsl.compile")


def opened() -> Store | None:
    """Return the store that the environment names; None if storing is switched off."""
    folder = places.cache_folder()
    if folder is None or dumps():
        return None
    return Store(folder, places.cache_limit())


def load(
    store: Store,
    key: str,
    inputs: Sequence[Aval],
    outputs: Sequence[Aval],
    device: Device = CPU,
) -> Executable | None:
    """Return the executable under a key; None if there is no usable one."""
    code = store.get(key)
    if code is None:
        return None
    try:
        executable = load_executable(code, inputs, outputs, device)
        executable.entry = key
        _offer_again(store, executable)
        return executable
    except Exception as error:  # any error of jaxlib's
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
        store.put(digest("recipe", key), executable.recipe.pack())
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
        content = store.get(digest("recipe", executable.entry))
        if content is not None:
            offer(executable, Recipe.unpack(content))


def _reusing(first: Executable) -> Any:
    """Return the start of a recipe's executable; None if it takes more memory or copies more.

    Where a loop carries a large result, XLA computes it in other memory, and copies it at the end.
    """
    assert first.recipe is not None
    inputs = [*first.inputs, *[first.outputs[place] for place in memory.pooled(first.outputs)]]
    options = boot.xla.CompileOptions.ParseFromString(first.recipe.options)
    store, key = opened() if first.entry else None, digest("reusing", first.entry)
    executable = _obtain(
        store, key, first.recipe.code, options, inputs, first.outputs, first.device
    )
    if executable.memory()["temporaries"] > first.memory()["temporaries"] + memory.LARGE // 2:
        first.reuse = None
        return None
    return executable.start


def from_text(
    text: str, inputs: Sequence[Aval], outputs: Sequence[Aval], device: Device = CPU
) -> Executable:
    """Return the executable of a small module of our own, given as text."""
    options = compile_options(None, {}, device)
    key = text_key(text, options, device)
    return _obtain(opened(), key, text, options, inputs, outputs, device)


def _obtain(
    store: Store | None,
    key: str,
    code: str | bytes,
    options: Any,
    inputs: Sequence[Aval],
    outputs: Sequence[Aval],
    device: Device,
) -> Executable:
    """Return the executable under a key, or compile it, and store it if there is a store."""
    executable = None if store is None else load(store, key, inputs, outputs, device)
    if executable is None:
        here = device.placement
        loaded = here.client.compile_and_load(code, here.devices, options)
        executable = Executable(loaded, inputs, outputs, device)
        if store is not None:
            save(store, key, executable)
    return executable


def text_key(text: str, options: Any, device: Device = CPU) -> str:
    """Return the key of a module that is given as text."""
    return digest("text", *backend(device), options.SerializeAsString(), text)
