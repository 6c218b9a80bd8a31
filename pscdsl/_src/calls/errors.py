"""What calling a kernel from Python can raise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pscdsl._src.support.tracebacks import UsersError

if TYPE_CHECKING:
    from pscdsl.typing.diagnostics import Diagnostic


class CheckError(UsersError):
    """A kernel has errors; the text is the output of `pscdsl check`."""

    __module__ = "pscdsl"

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        from pscdsl._src.checker.triage import at_call

        super().__init__(diagnostics)
        self.diagnostics = tuple(map(at_call, diagnostics))

    def __str__(self) -> str:
        from pscdsl._src.checker.report.terminal import render_text

        count = len(self.diagnostics)
        return f"{count} finding{'s' * (count != 1)}\n\n{render_text(self.diagnostics)}"


class ArgumentError(UsersError, TypeError):
    """An argument does not fit the signature of the called kernel."""

    __module__ = "pscdsl"
