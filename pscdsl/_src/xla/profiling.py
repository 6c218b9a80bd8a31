"""Profiles: a trace for Perfetto and TensorBoard, and the time that each source line takes."""

from __future__ import annotations

import linecache
import re
import warnings
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, Final, NamedTuple

from pscdsl._src.xla.device import default_device
from pscdsl._src.xla.runtime import boot

_INSTRUCTION: Final = re.compile(r"^\s*(?:ROOT )?%([\w.\-]+) = (.*)$", re.MULTILINE)
_ARRAY: Final = re.compile(r"\b([a-z]+)(\d*)\w*\[([\d,]*)\]")
_OPERAND: Final = re.compile(r"%([\w.\-]+)")
_PLACE: Final = re.compile(r'source_file="([^"]*)" source_line=(\d+)')


class Line(NamedTuple):
    """A line of the source."""

    path: str
    number: int

    def __str__(self) -> str:
        if not self.number:
            return "(no line)"
        text = linecache.getline(self.path, self.number).strip()
        return f"{Path(self.path).name}:{self.number}  {text}"


@dataclass
class Profile:
    """The operations that ran inside of a `with psc.profile(path):` block."""

    path: Path
    """The folder with the trace."""
    seconds: Mapping[Line, float] = field(default_factory=dict[Line, float])
    """The time of the operations of each source line, without that of the operations in them."""
    calls: Mapping[Line, int] = field(default_factory=dict[Line, int])
    """The number of operations that ran for each line."""
    bytes: Mapping[Line, int] = field(default_factory=dict[Line, int])
    """The bytes of the operands and results of these operations."""

    def table(self, most: int = 20) -> str:
        """Return the lines that took most of the time, as text."""
        total = sum(self.seconds.values()) or 1.0
        rows = sorted(self.seconds.items(), key=lambda row: -row[1])[:most]
        lines = [f"{'ms':>10} {'%':>6} {'MB':>10} {'runs':>8}  line"]
        for line, seconds in rows:
            share, moved = 100 * seconds / total, self.bytes[line] / 1e6
            runs = self.calls[line]
            lines.append(f"{1e3 * seconds:10.3f} {share:6.1f} {moved:10.3f} {runs:8}  {line}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.table()


@contextmanager
def profile(path: str | Path) -> Generator[Profile]:
    """Trace all that runs inside of a `with` block, and write it to a folder.

    The folder has a trace that TensorBoard's profile plug-in opens (`tensorboard --logdir PATH`),
    and one for Perfetto (`*.trace.json.gz`). An operation belongs to the line of the source that it
    was made of; where XLA joins several to one, to one of their lines. Programs from the compile
    cache have the lines that their source had when they were compiled.

    Args:
        path: The folder; it is made if it does not exist.

    Returns:
        The profile, filled when the block ends: `.seconds` and `.calls` by line, and `.table()`.

    Examples:
        >>> @psc.kernel
        ... def gram(x: f32["n n"]) -> f32["n n"]:
        ...     return x @ x.T
        >>> x = np.ones((500, 500), np.float32)
        >>> gram(x).shape
        (500, 500)
        >>> with psc.profile("trace") as found:
        ...     y = gram(x).block_until_ready()
        >>> print(found.table(most=1))
                ms      %         MB     runs  line
        …  100.0      2.000        1  <session[0]>:3  return x @ x.T
    """
    found = Profile(Path(path))
    session = boot.untyped("_profiler").ProfilerSession()
    try:
        yield found
    finally:
        data = session.stop()
        found.path.mkdir(parents=True, exist_ok=True)
        session.export(data, str(found.path))
        _fill(found, data)


class _Event(NamedTuple):
    start: float
    end: float
    operation: str
    program: Any


def _fill(found: Profile, data: bytes) -> None:
    """Add up the time of the operations by line."""
    seconds: defaultdict[Line, float] = defaultdict(float)
    calls: defaultdict[Line, int] = defaultdict(int)
    moved: defaultdict[Line, int] = defaultdict(int)
    own: dict[Any, list[tuple[str, float]]] = defaultdict(list)
    read = boot.untyped("_profile_data").ProfileData.from_serialized_xspace(data)
    with warnings.catch_warnings():
        # jaxlib's classes have no module, of which Python 3.15 warns where nothing can be raised.
        warnings.simplefilter("ignore", DeprecationWarning)
        for plane in read.planes:
            for track in plane.lines:
                for program, operation, spent in _own_times(_operations(track)):
                    own[program].append((operation, spent))
    programs = [_instructions(executable) for executable in _live_executables()]
    unknown: dict[str, tuple[Line, int]] = {}
    for times in own.values():
        operations = {operation for operation, _ in times}
        known = next((each for each in programs if operations <= each.keys()), unknown)
        for operation, spent in times:
            line, traffic = known.get(operation, (Line("", 0), 0))
            seconds[line] += spent
            calls[line] += 1
            moved[line] += traffic
    found.seconds, found.calls, found.bytes = dict(seconds), dict(calls), dict(moved)


def _operations(track: Any) -> Iterator[_Event]:
    """Yield the operations among the events of a thread or of a device's stream."""
    for event in track.events:
        stats = dict(event.stats)
        operation = stats.get("hlo_op")
        if operation and not event.name.startswith("end: "):
            start = float(event.start_ns)
            program = stats.get("program_id"), stats.get("hlo_module")
            yield _Event(start, start + float(event.duration_ns), str(operation), program)


def _own_times(events: Iterator[_Event]) -> Iterator[tuple[Any, str, float]]:
    """Yield the program, the name and the seconds of each event, without events inside of it."""
    open_events: list[tuple[_Event, float]] = []

    def close() -> tuple[Any, str, float]:
        event, inside = open_events.pop()
        if open_events:
            outer, before = open_events[-1]
            open_events[-1] = outer, before + event.end - event.start
        return event.program, event.operation, (event.end - event.start - inside) * 1e-9

    for event in sorted(events, key=lambda each: (each.start, -each.end)):
        while open_events and open_events[-1][0].end <= event.start:
            yield close()
        open_events.append((event, 0.0))
    while open_events:
        yield close()


def _live_executables() -> Sequence[Any]:
    executables: Sequence[Any] = default_device().placement.client.live_executables()
    return executables


def _instructions(executable: Any) -> dict[str, tuple[Line, int]]:
    """Return the source line of each operation of a program, and the bytes that it moves."""
    found: dict[str, tuple[Line, int]] = {}
    for module in executable.hlo_modules():
        instructions = _INSTRUCTION.findall(module.to_string())
        sizes = {name: _bytes_of(rest.partition("(")[0]) for name, rest in instructions}
        for name, rest in instructions:
            place = _PLACE.search(rest)
            line = Line(place[1], int(place[2])) if place else Line("", 0)
            operands = _OPERAND.findall(rest.partition("(")[2].partition(")")[0])
            found[name] = line, sizes[name] + sum(sizes.get(each, 0) for each in operands)
    return found


def _bytes_of(types: str) -> int:
    """Return the bytes of the arrays whose types stand in a text of XLA's: `f32[5,3]{1,0}`."""
    total = 0
    for kind, bits, shape in _ARRAY.findall(types):
        width = {"pred": 1, "token": 0}.get(kind, int(bits or 0) // 8)
        total += width * prod([int(size) for size in shape.split(",") if size])
    return total
