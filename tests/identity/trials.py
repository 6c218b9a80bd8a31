"""Runs both programs of a pair, in one process or in two, and tells whether one was the other."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import types
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

import pscdsl as psc
from pscdsl._src.frontend.modules.live import trace_of
from pscdsl._src.frontend.modules.traces import Opaque, follow, from_text, recorded, to_text
from pscdsl._src.ir.program import evaluate
from tests.identity.pairs import HELPER, MODULE, WHICH, Pair, Program, pair
from tests.support.projects import module_of

TIME = 1_700_000_000
"""When every file was last written, as far as files say."""


@dataclass
class Figures:
    """What came out."""

    counts: Counter[str] = field(default_factory=Counter[str])
    problems: list[str] = field(default_factory=list[str])
    tell: bool = False
    """Whether to print why programs are refused."""

    def confused(self, made: Pair, what: str) -> None:
        """One program was taken for another, or gave something else than it is."""
        self.problems.append(f"seed {made.seed} ({made.mode}; {made.ways}): {what}")


def written(folder: Path, program: Program, seconds: int = 0) -> None:
    """Write a program's files, unless they are what is there."""
    for name, text in ((HELPER, program.helper), (MODULE, program.text)):
        path = folder / f"{name}.py"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            os.utime(path, (TIME + seconds, TIME + seconds))


def loaded(folder: Path, program: Program) -> types.ModuleType:
    """The module of a program, as a new process would have it."""
    which = types.ModuleType(WHICH)
    vars(which)["W"] = program.which
    sys.modules[WHICH] = which
    modules: list[types.ModuleType] = []
    for name in (HELPER, MODULE):
        module = module_of(folder / f"{name}.py", name)
        modules.append(module)
    helper, module = modules
    for path, value in program.pokes:
        owner: Any = helper if path.startswith(HELPER) else module
        *parts, last = path.removeprefix(f"{HELPER}.").split(".")
        for each in parts:
            owner = getattr(owner, each)
        setattr(owner, last, value)
    return module


def reloaded(folder: Path) -> types.ModuleType:
    """The module as its files have it now, by `importlib.reload`."""
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        importlib.reload(sys.modules[HELPER])
        return importlib.reload(sys.modules[MODULE])
    finally:
        sys.path.remove(str(folder))


def value_of(kernel: Any, args: Sequence[Any]) -> Any:
    """What the typed program of a kernel gives; nothing is compiled."""
    lowered = kernel.lower_for(*args)
    arrays = [np.asarray(each) for each in kernel.arguments(args, {})[0]]
    with np.errstate(all="ignore"):
        return evaluate(lowered.program, lowered.sizes, arrays)[0]


def same(found: Any, wanted: Any) -> bool:
    """Whether two arrays have the same bits, NaN apart."""
    found = np.asarray(found)
    return (
        found.dtype == wanted.dtype
        and np.array_equal(found, wanted, equal_nan=True)
        and np.array_equal(
            np.signbit(found) | np.isnan(found), np.signbit(wanted) | np.isnan(found)
        )
    )


class Known(TypedDict):
    """What one process tells another of the first program of a pair."""

    names: str
    digest: str
    start: str


@contextlib.contextmanager
def refusals(figures: Figures) -> Generator[None]:
    """Counts programs that are refused: they are never others."""
    try:
        yield
    except (psc.CheckError, psc.ArgumentError) as error:
        codes = [each.code for each in getattr(error, "diagnostics", ())]
        figures.counts[f"refused {' '.join(sorted(set(codes)))}"] += 1
        if figures.tell:
            print(error, file=sys.stderr)


def trace(kernel: Any, figures: Figures) -> Known | None:
    """What a kernel was read from."""
    try:
        found = recorded(kernel, trace_of)
    except Opaque as reason:
        figures.counts[f"opaque: {reason}"] += 1
        return None
    return Known(names=to_text(found.names), digest=found.digest.hex(), start=found.start.hex())


def is_known(kernel: Any, known: Known) -> bool:
    """Whether a kernel is taken for one that was read before."""
    try:
        return follow(kernel, from_text(known["names"])).hex() == known["digest"]
    except Opaque:
        return False


def one_process(made: Pair, folder: Path, figures: Figures, *, calls: bool) -> Known | None:
    """Both programs in this process; gives what the first was read from."""
    first, second = made.programs
    count = figures.counts
    written(folder, first)
    module = loaded(folder, first)
    known: Known | None = None
    if made.mode == "edit":
        written(folder, second)
    with refusals(figures):
        found = value_of(module.k, first.args)
        count["read"] += 1
        known = trace(module.k, figures)
        if not same(found, made.wanted(0)):
            figures.confused(made, f"the first gives {found}, not {made.wanted(0)}")
    if calls and made.mode != "edit":
        with refusals(figures):
            called = loaded(folder, first).k(*first.args)
            count["called"] += 1
            if not same(called, made.wanted(0)):
                figures.confused(made, f"a call of the first gives {np.asarray(called)}")
    if made.mode == "edit":
        return None
    if made.is_static:
        known = None  # the kernel is the same; what it is given differs
    if known is not None and first.text == second.text and first.helper == second.helper:
        again = is_known(loaded(folder, first).k, known)
        count["found again" if again else "not found again"] += 1
    written(folder, second, seconds=5 if made.mode == "reload" else 0)
    other = reloaded(folder) if made.mode == "reload" else loaded(folder, second)
    _second(made, other, known, figures, calls=calls)
    return known


def _second(
    made: Pair, module: types.ModuleType, known: Known | None, figures: Figures, *, calls: bool
) -> None:
    count, second = figures.counts, made.programs[1]
    if known is not None and is_known(module.k, known):
        figures.confused(made, "the second has the look-ups of the first")
    with refusals(figures):
        if calls:
            called = module.k(*second.args)
            count["called"] += 1
            if not same(called, made.wanted(1)):
                figures.confused(made, f"a call of the second gives {np.asarray(called)}")
        found = value_of(module.k, second.args)
        count["read"] += 1
        if not same(found, made.wanted(1)):
            figures.confused(made, f"the second gives {found}, not {made.wanted(1)}")


def other_process(
    made: Pair, folder: Path, known: Known | None, figures: Figures, *, calls: bool
) -> None:
    """The second program, then the first again, where another process has had the first."""
    first, second = made.programs
    if made.mode == "edit":
        return
    written(folder, second)
    _second(made, loaded(folder, second), known, figures, calls=calls)
    if calls:
        written(folder, first)
        kernel = loaded(folder, first).k
        with refusals(figures):
            called = kernel(*first.args)
            figures.counts["unread" if _is_unread(kernel) else "called again"] += 1
            if not same(called, made.wanted(0)):
                figures.confused(made, f"a call of the first gives {np.asarray(called)} later")


def _is_unread(kernel: Any) -> bool:
    return kernel.trace is None and kernel._made_of is None


def pairs(first: int, count: int) -> list[Pair]:
    """The pairs of some seeds."""
    return [pair(seed) for seed in range(first, first + count)]
