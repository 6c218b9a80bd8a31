"""Errors of calls from Python, and the places of these calls in the source."""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from pscdsl._src.support.tracebacks import UsersError

# All public modules import this one: the dependencies of an error are loaded when there is one.
if TYPE_CHECKING:
    from pscdsl._src.frontend.text.source import Source
    from pscdsl.typing.diagnostics import Diagnostic, Span


# The place of a call of our functions in the caller's source.


_THROUGH: Final = "pscdsl._src.support.tracebacks"
"""Stands between our functions and their callers."""


class CallSite:
    """An instruction of loaded code; two calls from the same place are equal."""

    __slots__ = ("code", "instruction", "namespace")

    def __init__(self, code: types.CodeType, instruction: int, namespace: dict[str, Any]) -> None:
        self.code = code
        self.instruction = instruction
        self.namespace = namespace

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CallSite):
            return False
        # Python compares code without the columns before 3.12, and 0.0 with -0.0 as equal.
        return self.code is other.code and self.instruction == other.instruction

    def __hash__(self) -> int:
        return hash((id(self.code), self.instruction))

    def place(self) -> tuple[Source, Span] | None:
        """Return the text that contains the call, and the place in it; None if there is no text."""
        from pscdsl._src.frontend.modules.loaded_code import current_source
        from pscdsl.typing.diagnostics import Span

        source = current_source(self.code.co_filename, self.namespace, self.code)
        positions = list(self.code.co_positions())[self.instruction // 2]
        line, last, first, end = positions
        if source is None or line is None or line > len(source.lines):
            return None
        path, row = source.locate(line)
        last = line if last is None else last
        if first is None or end is None:
            return source, Span(path, row, 1, row, len(source.lines[line - 1]) + 1)
        columns = source.column(line, first), source.column(last, end)
        return source, Span(path, row, columns[0], row + last - line, columns[1])


def call_site(module: str) -> CallSite:
    """Return the innermost call that does not come from the module of this name."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None and frame.f_globals.get("__name__") in (module, _THROUGH):
        frame = frame.f_back
    return CallSite(frame.f_code, frame.f_lasti, frame.f_globals)


# Errors of calls of kernels from Python.


class CheckError(UsersError):
    """A kernel has errors; the text is the output of `pscdsl check`.

    Examples:
        >>> @psc.kernel
        ... def added(x: f32["n"], y: f32["m"]) -> f32["n"]:
        ...     return x + y
        >>> added(np.ones(3, np.float32), np.ones(3, np.float32))
        Traceback (most recent call last):
        pscdsl.CheckError: 1 finding

        error[PSC300]: shapes [n] and [m] do not broadcast together
          ┌─ <session[0]>:3:12
          │
         2│ def added(x: f32["n"], y: f32["m"]) -> f32["n"]:
          │              --------     -------- f32[m]
          │              │
          │              f32[n]
         3│     return x + y
          │            ^^^^^ axis -1: n is not m, for instance m=2, n=3
    """

    __module__ = "pscdsl"

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        from pscdsl._src.checker.baseline import at_call

        super().__init__(diagnostics)
        self.diagnostics = tuple(map(at_call, diagnostics))

    def __str__(self) -> str:
        from pscdsl._src.checker.report.terminal import render_text

        count = len(self.diagnostics)
        return f"{count} finding{'s' * (count != 1)}\n\n{render_text(self.diagnostics)}"


class ArgumentError(UsersError, TypeError):
    """An argument does not fit the signature of the called kernel.

    Examples:
        >>> @psc.kernel
        ... def added(x: f32["n"], y: f32["n"]) -> f32["n"]:
        ...     return x + y
        >>> added(np.ones(3, np.float32), np.ones(2, np.float32))
        Traceback (most recent call last):
        pscdsl.ArgumentError: argument `y` of `added` is f32[2], but f32[n] is declared…
    """

    __module__ = "pscdsl"
