"""Names of entries on disk, and what all of them hold: the machine, jaxlib, ourselves, settings.

Code that was compiled under other conditions must never be loaded: it may use instructions that
this processor lacks, and nothing below would notice.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import jaxlib
import numpy as np

from pscdsl._src.support.tracebacks import FOLDER
from pscdsl._src.xla.device import CPU, Device
from pscdsl._src.xla.runtime import boot, plugins
from pscdsl._src.xla.runtime.devices import Placement
from pscdsl._src.xla.runtime.settings import PROCESSORS_VARIABLE, processors

_VERSION: Final = "pscdsl executables 4"
"""Of the form of the entries; to be raised when they change."""
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
"""The folders of ours that decide what is emitted for a typed program, with the files beside.

Those that decide whether it is emitted are among them: what an older version did not refuse
must not be found.
"""


def digest(*parts: str | bytes) -> str:
    """The name of an entry: different if any of the parts is."""
    made = blake2b(_VERSION.encode(), digest_size=32)
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode(errors="surrogateescape")
        made.update(len(data).to_bytes(8, "little") + data)
    return made.hexdigest()


@cache
def backend(device: Device = CPU) -> tuple[str, ...]:
    """The compiler, its settings and the device."""
    here = device.placement
    others = () if device.platform == "cpu" else plugins.versions(device.platform)
    return (
        *others,
        f"jaxlib {_version()}",
        f"{here.client.platform} {here.client.platform_version} {here.device_list[0].device_kind}",
        f"{platform.system()} {platform.machine()} {sys.byteorder}",
        f"topology {_topology(here)}",
        f"processors {processors()}",
        *[f"{name}={os.environ.get(name, '')}" for name in _VARIABLES],
        f"flags {_flags_in_a_file()}",
    )


@boot.once
def choosing() -> str:
    """What stands for the rules by which modules get options: the content of their files."""
    made = blake2b(digest_size=32)
    for name in _CHOOSING:
        made.update(Path(FOLDER, "_src", f"{name}.py").read_bytes())
    return made.hexdigest()


@boot.once
def emission() -> str:
    """What stands for our own translation to StableHLO: the content of the files it is made of."""
    folder = Path(FOLDER)
    made = blake2b(digest_size=32)
    for path in emission_sources():
        content = path.read_bytes()
        made.update(f"{path.relative_to(folder)} {len(content)}\n".encode())
        made.update(content)
    return made.hexdigest()


@boot.once
def reading() -> tuple[str, ...]:
    """What a kernel's meaning depends on besides its source: Python, NumPy, and our own files.

    These are identified by when they were written, like Python's bytecode: there are hundreds.
    """
    folder = Path(FOLDER)
    made = blake2b(digest_size=32)
    for state in sorted(own_states(str(folder))):
        made.update(state.encode(errors="surrogateescape"))
    return (sys.version, f"numpy {np.__version__}", f"{folder} {made.hexdigest()}")


def own_states(folder: str) -> Iterator[str]:
    """Every file of ours below a folder, with what changes when it is written."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                state = entry.stat()
                yield f"{entry.path} {state.st_size} {state.st_mtime_ns} {state.st_ctime_ns}\n"
            elif entry.name != "__pycache__" and not entry.name.startswith(".") and entry.is_dir():
                yield from own_states(entry.path)


def emission_sources() -> Iterator[Path]:
    """The files of ours that decide what is emitted, and whether it is."""
    folder = Path(FOLDER)
    yield from sorted(folder.glob("*.py"))
    for name in _EMITTING:
        for place, _, files in sorted(os.walk(folder / name)):
            yield from (Path(place, file) for file in sorted(files) if file.endswith(".py"))


def dumps() -> bool:
    """Whether the compiler was asked to write down what it does: then it has to do it."""
    return "xla_dump" in os.environ.get("XLA_FLAGS", "") + _flags_in_a_file()


def _version() -> str:
    library: Any = jaxlib
    return f"{library.__version__} {getattr(boot.xla, '_version', '')}"


def _topology(here: Placement) -> str:
    """The processor's features among other things, as the compiler sees them."""
    return str(boot.jax.get_topology_for_devices(here.device_list).fingerprint())


def _flags_in_a_file() -> str:
    """XLA's flags if they are in a file that the variable names."""
    named = os.environ.get("XLA_FLAGS", "").strip()
    if not named or named.startswith("-"):
        return ""
    try:
        return Path(named).read_text(errors="replace")
    except OSError:
        return ""
