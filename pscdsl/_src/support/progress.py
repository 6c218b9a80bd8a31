"""Bars for loops that report how far they are, in terminals and notebooks."""

from __future__ import annotations

import atexit
from threading import RLock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


_PER_SECOND: Final = 2
"""How often bars are drawn anew; a drawing takes milliseconds."""


class _Bars:
    """The bars that are drawn now, by label; one display has all of them."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._display: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def update(self, label: str, done: int, total: int) -> None:
        """Draw a bar for `done` of `total` steps; the last step ends it."""
        with self._lock:
            if self._display is None:
                self._display = _new_display()
            display = self._display
            if label not in self._tasks:
                self._tasks[label] = display.add_task(label, total=total)
            display.update(self._tasks[label], completed=done, total=total)
            if done >= total:
                del self._tasks[label]
            if not self._tasks:
                self.stop()

    def stop(self) -> None:
        """End the display, also of loops that were left early."""
        with self._lock:
            if self._display is not None:
                self._display.stop()
            self._display, self._tasks = None, {}


def _new_display() -> Progress:
    from rich import console, progress  # which are large

    columns = (
        *(progress.TextColumn("{task.description}"), progress.BarColumn()),
        *(progress.MofNCompleteColumn(), progress.TimeRemainingColumn()),
    )
    made = progress.Progress(
        *columns, console=console.Console(stderr=True), refresh_per_second=_PER_SECOND
    )
    made.start()
    return made


BARS: Final = _Bars()
atexit.register(BARS.stop)
