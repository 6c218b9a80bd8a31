"""The compiled programs of one kernel: where they come from, and why they were compiled."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from threading import RLock
from typing import TYPE_CHECKING, Final, NamedTuple

from pscdsl._src.support.processes import require_modules

# Each kernel has its `Executables` from the start: the compiler is loaded when it is needed.
if TYPE_CHECKING:
    from pscdsl._src.xla.device import Device
    from pscdsl._src.xla.runtime.executable import Executable
    from pscdsl._src.xla.specialisation import Compiler, Key, Specialisation


class CacheInfo(NamedTuple):
    """The history of the compiled programs of a kernel."""

    hits: int
    """Look-ups that found their program in this process; a call whose kind of arguments was seen
    before makes none."""
    misses: int
    """Programs that were compiled."""
    entries: int
    """Programs that are there now."""
    disk_hits: int
    """Programs that were found on disk."""
    compile_seconds: float
    """The total time of the misses."""


class _Counts:
    def __init__(self) -> None:
        self.hits = self.misses = self.disk_hits = 0
        self.seconds = 0.0


class Executables:
    """The compiled programs of a kernel by choice, sizes and constants, each made once."""

    def __init__(self) -> None:
        self._made: dict[Key, Executable] = {}
        self._ahead: set[Key] = set()
        self._locks: dict[Key, RLock] = {}
        self._lock = RLock()
        self._counts = _Counts()
        self._reasons = Reasons()

    @property
    def info(self) -> CacheInfo:
        """Return the counts so far."""
        counts = self._counts
        return CacheInfo(
            counts.hits,
            counts.misses,
            len(self._made),
            counts.disk_hits,
            counts.seconds,
        )

    def forget(self) -> None:
        """Forget all programs: the kernel has changed."""
        with self._lock:
            self._made, self._ahead = {}, set()

    def take_over(self, key: Key, executable: Executable) -> None:
        """Add a program that was found on disk for the arguments of a call."""
        with self._lock:
            if self._made.get(key) is executable:
                self._counts.hits += 1
            else:
                self._made[key] = executable
                self._counts.disk_hits += 1

    def get(self, wanted: Specialisation, *, ahead: bool = False) -> Executable:
        """Return the compiled program; several threads may ask. See `is_ahead` for `ahead`."""
        require_modules()
        key = wanted.key
        with self._lock:
            lock = self._locks.setdefault(key, RLock())
            if ahead:
                self._ahead.add(key)
        with lock:
            executable = self._made.get(key)
            if executable is None:
                executable = self._made[key] = self._make(wanted)
            else:
                self._counts.hits += 1
        return executable

    def is_there(self, wanted: Specialisation) -> bool:
        """Return whether a program need not be compiled: it is in this process, or on disk."""
        return wanted.key in self._made or _is_on_disk(wanted, ahead=False)

    def is_ahead(self, wanted: Specialisation) -> bool:
        """Return whether a program was compiled ahead of all calls, here or by `compile`."""
        return wanted.key in self._ahead or _is_on_disk(wanted, ahead=True)

    def _make(self, wanted: Specialisation) -> Executable:
        from pscdsl._src.kernels.compiling import obtained

        executable = obtained(wanted)
        with self._lock:
            if executable.source == "disk":
                self._counts.disk_hits += 1
            else:
                self._counts.misses += 1
                self._counts.seconds += executable.seconds
            self._reasons.tell(wanted, executable.source, executable.seconds)
        return executable


def _is_on_disk(wanted: Specialisation, *, ahead: bool) -> bool:
    from pscdsl._src.kernels.compiling import is_on_disk

    return is_on_disk(wanted, ahead=ahead)


def compiler_of(device: Device) -> Compiler:
    """Return the compiler for the modules of a device's target.

    An `UnsupportedDeviceError` if there is none.
    """
    device.require_supported()
    if device.platform != "cpu":
        from pscdsl._src.targets.gpu.module_options import Accelerators

        return Accelerators(device.platform)
    from pscdsl._src.targets.cpu import module_options

    return module_options


# The reason for compiling a kernel again: the differences between its arguments and earlier ones.


MANY: Final = 10
"""The number of compilations of a kernel that causes a warning."""
_SHOWN: Final = 3
"""The most arguments, or values of one part, that are listed."""

log: Final = logging.getLogger("pscdsl.compile")


class Reasons:
    """The specialisations of one kernel, reported as they come."""

    def __init__(self) -> None:
        self._known: list[Specialisation] = []
        self._compiled: list[Specialisation] = []
        self._warned = False

    def tell(self, wanted: Specialisation, source: str, seconds: float) -> None:
        """Log where a program came from and why it was wanted; warn once if there are many."""
        name = wanted.program.name
        if log.isEnabledFor(logging.INFO):
            did = "compiled" if source == "compiled" else "loaded from disk"
            log.info("`%s` was %s in %.2f s: %s", name, did, seconds, self._why(wanted))
        self._known.append(wanted)
        if source == "compiled":
            self._compiled.append(wanted)
        if len(self._compiled) >= MANY and not self._warned:
            self._warned = True
            advice = _advice(self._compiled)
            log.warning("`%s` was compiled %d times%s", name, len(self._compiled), advice)

    def _why(self, wanted: Specialisation) -> str:
        if not self._known:
            return _listed([f"{part} is {value}" for part, value in wanted.parts.items()], "")
        before = min(  # the latest of those that differ least
            reversed(self._known), key=lambda old: len(_changes(old.parts, wanted.parts))
        )
        changes = _changes(before.parts, wanted.parts)
        moved = _changes(before.arguments, wanted.arguments)
        arguments = [f"`{path}` {change}" for path, change in moved.items()]
        text = "; ".join(f"{part} {change}" for part, change in changes.items())
        return text + (f" ({_listed(arguments, 'arguments')})" if arguments else "")


def _changes(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """Return the differences as `from → to`."""
    every = [*new, *[part for part in old if part not in new]]
    return {
        part: f"{old.get(part, 'nothing')} → {new.get(part, 'nothing')}"
        for part in every
        if old.get(part) != new.get(part)
    }


def _listed(items: list[str], what: str) -> str:
    more = f" and {len(items) - _SHOWN} more {what}".rstrip() if len(items) > _SHOWN else ""
    return ", ".join(items[:_SHOWN]) + more or "the first time"


def _advice(compiled: list[Specialisation]) -> str:
    """Return the part with the most values, and advice about it."""
    values: dict[str, dict[str, None]] = {}
    for wanted in compiled:
        for part, value in wanted.parts.items():
            values.setdefault(part, {})[value] = None
    part = max(values, key=lambda name: len(values[name]), default="")
    if not part or len(values[part]) == 1:
        return ""
    taken = list(values[part])
    few = ", ".join(taken[:_SHOWN]) + (", …" if len(taken) > _SHOWN else "")
    text = f", for {len(taken)} values of {part} ({few}): "
    if part.startswith("size "):
        return text + "pad to a few sizes, or compile ahead by `psc.compile_all`"
    if part.startswith("static "):
        return text + "if these are many, let it be an array"
    return text + "each of them is another program"
