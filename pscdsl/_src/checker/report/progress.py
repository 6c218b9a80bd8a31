"""A bar on a terminal, once something has taken a while; it leaves nothing behind."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_PATIENCE = 1.0
"""Seconds before the bar is shown."""


class ProgressBar:
    """Shown where somebody is watching; to be used in a `with` statement.

    `doing` is what is done, `items` what is counted.
    """

    def __init__(self, doing: str = "checking", items: str = "files") -> None:
        self._doing, self._items = doing, items
        self._started = time.monotonic()
        self._watched = sys.stderr.isatty() and not os.environ.get("CI")
        self._shown: tuple[Progress, TaskID] | None = None

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._shown is not None:
            self._shown[0].stop()

    def update(self, done: int, total: int) -> None:
        """So much is done."""
        if not self._watched:
            return
        if self._shown is None:
            if time.monotonic() - self._started < _PATIENCE or done >= total:
                return
            self._shown = self._show(total)
        progress, task = self._shown
        progress.update(task, completed=done)

    def _show(self, total: int) -> tuple[Progress, TaskID]:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (
            *(TextColumn(self._doing), BarColumn()),
            *(MofNCompleteColumn(), TextColumn(self._items)),
        )
        progress = Progress(*columns, console=Console(file=sys.stderr), transient=True)
        progress.start()
        return progress, progress.add_task(self._doing, total=total)
