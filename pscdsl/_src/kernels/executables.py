"""The compiled programs of one kernel, and what is told of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

from pscdsl._src.calls.errors import CheckError
from pscdsl._src.support.processes import require_modules

if TYPE_CHECKING:
    from pscdsl._src.caching.store import Store
    from pscdsl._src.ir.program import Function
    from pscdsl._src.kernels.recompilation import Reasons
    from pscdsl._src.kernels.specialisation import Key, Variant
    from pscdsl._src.kernels.warm_start.starts import Kind
    from pscdsl._src.xla.compilation.cache import Answer
    from pscdsl._src.xla.compilation.keys import Request
    from pscdsl._src.xla.runtime.executable import Executable


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
        self._started: dict[Kind, Executable] = {}

    @cached_property
    def _reasons(self) -> Reasons:
        from pscdsl._src.kernels.recompilation import Reasons

        return Reasons()

    @property
    def info(self) -> CacheInfo:
        """What has happened so far."""
        counts = self._counts
        return CacheInfo(
            counts.hits,
            counts.misses,
            len(self._made) + len(self._started),
            counts.disk_hits,
            counts.seconds,
        )

    def forget(self) -> None:
        """Make all anew: the kernel is another one."""
        with self._lock:
            self._made, self._started, self._ahead = {}, {}, set()

    def started(self, kind: Kind, executable: Executable) -> None:
        """Take over a program that was found on disk for arguments of a kind."""
        with self._lock:
            if self._started.get(kind) is executable:
                self._counts.hits += 1
            else:
                self._started[kind] = executable
                self._counts.disk_hits += 1

    def _taken(self, key: Key) -> Any:
        """One of these, if it is what is asked for."""
        choice, *wanted = key
        if choice != type(choice)():
            return None
        with self._lock:
            for kind in self._started:
                if kind.closed and [kind.sizes, kind.donate, kind.constants] == wanted:
                    return self._started.pop(kind)
        return None

    def get(self, variant: Variant, *, ahead: bool = False) -> Executable:
        """The compiled program; several threads may ask.  See `is_ahead` for what is `ahead`."""
        require_modules()
        key = variant.key
        with self._lock:
            lock = self._locks.setdefault(key, RLock())
            if ahead:
                self._ahead.add(key)
        with lock:
            found = self._made.get(key)
            if found is None:
                found = self._taken(key)
                if found is None:
                    found = self._make(variant)
                else:
                    self._counts.hits += 1
                self._made[key] = found
            else:
                self._counts.hits += 1
        return found

    def is_there(self, variant: Variant) -> bool:
        """Whether a program need not be compiled: it is in this process, or on disk."""
        from pscdsl._src.xla.compilation import cache

        return variant.key in self._made or _on_disk(variant, cache.is_there)

    def is_ahead(self, variant: Variant) -> bool:
        """Whether a program was compiled ahead of all calls, in this process or by `compile`."""
        from pscdsl._src.xla.compilation import cache

        return variant.key in self._ahead or _on_disk(variant, cache.is_ahead)

    def _make(self, variant: Variant) -> Executable:
        answer = obtained(variant)
        with self._lock:
            self._count(answer)
            self._reasons.tell(variant, answer.source, answer.seconds)
        return answer.executable

    def _count(self, answer: Answer) -> None:
        if answer.source == "disk":
            self._counts.disk_hits += 1
        else:
            self._counts.misses += 1
            self._counts.seconds += answer.seconds


def _request(variant: Variant) -> Request:
    from pscdsl._src.targets.cpu.options.loop_bodies import loop_bytes
    from pscdsl._src.xla.compilation.keys import Request

    program, sizes = variant.program, variant.sizes
    return Request(program, sizes, variant.donate, loop_bytes(program, sizes))


def _on_disk(variant: Variant, is_so: Callable[[Request, Store], bool]) -> bool:
    """Whether something holds of a program on disk, if there is any."""
    from pscdsl._src.xla.compilation import stored as kept

    store = kept.opened()
    return store is not None and is_so(_request(variant), store)


def obtained(variant: Variant, *, ahead: bool = False) -> Answer:
    """The executable of a program, from disk or compiled.

    Other processes are told that it was compiled `ahead`, for all calls.
    """
    from pscdsl._src.xla.compilation import cache
    from pscdsl._src.xla.compilation import stored as kept

    try:
        request, store = _request(variant), kept.opened()
        answer = cache.obtain(request, store, _module)
    except cache.Refused as refusal:
        raise _rejected(variant.program, refusal) from refusal.__cause__
    if ahead and store is not None:
        cache.set_ahead(request, store)
    return answer


def emitted(
    program: Function,
    sizes: Mapping[str, int],
    donate: Sequence[int] = (),
    *,
    portable: bool = False,
) -> Any:
    """The module of a program at these sizes; CheckError where a rule is missing.

    One that is `portable` is for other devices than CPUs too.
    """
    from pscdsl._src.analysis.numbers.made_of_sizes import require_fitting
    from pscdsl._src.transforms.written_out import require_compilable
    from pscdsl._src.xla.emit.emit import lower_module
    from pscdsl.typing.diagnostics import Failure

    try:
        require_compilable(program)
        require_fitting(program, sizes)
        return lower_module(program, sizes, donate=donate, portable=portable)
    except Failure as failure:
        raise CheckError(failure.at(program.span).diagnostics) from None


def _module(request: Request) -> Any:
    return emitted(request.program, request.sizes, request.donate)


def _rejected(program: Function, error: object) -> Exception:
    """What to say of a module that XLA refuses: whose mistake it is."""
    from pscdsl._src.extensions.custom import Custom
    from pscdsl._src.ir.program import walk

    custom = [each.primitive for each in walk(program.body) if isinstance(each.primitive, Custom)]
    if custom:
        names = ", ".join(sorted({f"`{each.label}`" for each in custom}))
        return ValueError(f"XLA refuses the program; is the translation of {names} right? {error}")
    name = program.name
    return RuntimeError(f"internal error: XLA refuses the checked `{name}`; please report: {error}")
