"""The compiled programs of one kernel: where they come from, and why they were compiled."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pscdsl._src.calls.errors import CheckError
from pscdsl._src.support.processes import require_modules
from pscdsl._src.xla.device import CPU, Device

if TYPE_CHECKING:
    from pscdsl._src.caching.store import Store
    from pscdsl._src.ir.program import Function
    from pscdsl._src.targets.rewriting import Target
    from pscdsl._src.xla.runtime.executable import Executable
    from pscdsl._src.xla.specialisation import Compiler, Key, Specialisation


class CacheInfo(NamedTuple):
    """How the compiled programs of a kernel came about."""

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
    """What the misses took, together."""


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
        """What has happened so far."""
        counts = self._counts
        return CacheInfo(
            counts.hits,
            counts.misses,
            len(self._made),
            counts.disk_hits,
            counts.seconds,
        )

    def forget(self) -> None:
        """Make all anew: the kernel is another one."""
        with self._lock:
            self._made, self._ahead = {}, set()

    def take_over(self, key: Key, executable: Executable) -> None:
        """Have a program that was found on disk for the arguments of a call."""
        with self._lock:
            if self._made.get(key) is executable:
                self._counts.hits += 1
            else:
                self._made[key] = executable
                self._counts.disk_hits += 1

    def get(self, wanted: Specialisation, *, ahead: bool = False) -> Executable:
        """The compiled program; several threads may ask.  See `is_ahead` for what is `ahead`."""
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
        """Whether a program need not be compiled: it is in this process, or on disk."""
        from pscdsl._src.xla.compilation import executable_store

        return wanted.key in self._made or _on_disk(wanted, executable_store.is_there)

    def is_ahead(self, wanted: Specialisation) -> bool:
        """Whether a program was compiled ahead of all calls, in this process or by `compile`."""
        from pscdsl._src.xla.compilation import executable_store

        return wanted.key in self._ahead or _on_disk(wanted, executable_store.is_ahead)

    def _make(self, wanted: Specialisation) -> Executable:
        executable = obtained(wanted)
        with self._lock:
            if executable.source == "disk":
                self._counts.disk_hits += 1
            else:
                self._counts.misses += 1
                self._counts.seconds += executable.seconds
            self._reasons.tell(wanted, executable.source, executable.seconds)
        return executable


def target_of(device: Device) -> Target:
    """The target of a device; an `UnsupportedDeviceError` if there is none."""
    device.require_supported()
    if device.platform == "cuda":
        from pscdsl._src.targets.gpu.table import CUDA

        return CUDA
    if device.platform == "tpu":
        from pscdsl._src.targets.tpu import TPU

        return TPU
    from pscdsl._src.targets.cpu.table import CPU as TARGET

    return TARGET


def compiler_of(device: Device) -> Compiler:
    """What compiles the modules of the same target."""
    device.require_supported()
    if device.platform != "cpu":
        from pscdsl._src.targets.gpu.module_options import Accelerators

        return Accelerators(device.platform)
    from pscdsl._src.targets.cpu import module_options

    return module_options


def _with_options(wanted: Specialisation) -> Specialisation:
    """A specialisation with the options that its target chooses for its program."""
    if wanted.device.platform != "cpu":
        return replace(wanted, loop_bytes=None)
    from pscdsl._src.targets.cpu.loop_bodies import loop_bytes

    return replace(wanted, loop_bytes=loop_bytes(wanted.program, wanted.sizes))


def _on_disk(wanted: Specialisation, holds: Callable[[Specialisation, Store], bool]) -> bool:
    """Whether something holds of a program on disk, if there is any."""
    from pscdsl._src.xla.compilation import disk

    store = disk.opened()
    return store is not None and holds(_with_options(wanted), store)


def obtained(wanted: Specialisation, *, ahead: bool = False) -> Executable:
    """The executable of a program, from disk or compiled.

    With `ahead`, other processes are told that it was compiled for all calls.
    """
    from pscdsl._src.xla.compilation import disk, executable_store
    from pscdsl._src.xla.runtime.executable import Refused

    wanted, store = _with_options(wanted), disk.opened()
    try:
        executable = executable_store.obtain(wanted, store, compiler_of(wanted.device), _module)
    except Refused as refusal:
        raise _rejected(wanted.program, refusal) from refusal.__cause__
    if ahead and store is not None:
        executable_store.set_ahead(wanted, store)
    return executable


def emitted(
    program: Function,
    sizes: Mapping[str, int],
    donate: Sequence[int] = (),
    *,
    device: Device = CPU,
    portable: bool = False,
) -> Any:
    """The module of a program at these sizes, for a device; CheckError where a rule is missing.

    One that is `portable` is for all devices.
    """
    from pscdsl._src.analysis.numbers.made_of_sizes import require_fitting
    from pscdsl._src.targets.pipeline import lower_module
    from pscdsl._src.targets.portable import PORTABLE
    from pscdsl._src.transforms.written_out import require_compilable
    from pscdsl.typing.diagnostics import Failure

    try:
        require_compilable(program)
        require_fitting(program, sizes)
        target = PORTABLE if portable else target_of(device)
        return lower_module(program, sizes, donate=donate, target=target)
    except Failure as failure:
        raise CheckError(failure.at(program.span).diagnostics) from None


def _module(wanted: Specialisation) -> Any:
    return emitted(wanted.program, wanted.sizes, wanted.donate, device=wanted.device)


def _rejected(program: Function, error: object) -> Exception:
    """What to say of a module that XLA refuses: whose mistake it is."""
    from pscdsl._src.extensions.custom import Custom
    from pscdsl._src.ir.program import walk

    custom = [
        equation.primitive
        for equation in walk(program.body)
        if isinstance(equation.primitive, Custom)
    ]
    if custom:
        names = ", ".join(sorted({f"`{equation.label}`" for equation in custom}))
        return ValueError(f"XLA refuses the program; is the translation of {names} right? {error}")
    name = program.name
    return RuntimeError(f"internal error: XLA refuses the checked `{name}`; please report: {error}")


# Why a kernel was compiled again: what of its arguments differs from those of an earlier time.


MANY: Final = 10
"""How often a kernel is compiled before this is warned of."""
_SHOWN: Final = 3
"""How many arguments, or values of one part, are listed."""

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
    """What differs, as `from → to`."""
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
    """What takes most values, and what to do about it."""
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
