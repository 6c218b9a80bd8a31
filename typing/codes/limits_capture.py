"""PSC917: what was captured changes where the analysis sees nothing."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic


class CapturedStateChanged(Diagnostic, code="PSC917"):
    """A name that a kernel captured refers to another value by the time of a call.

    A kernel keeps what it was compiled with, so that it would go on using what was there before.
    The checker refuses whatever the files that it is given may write; this finds at run time what
    they do not show: names that are computed, files that were not checked, and other libraries.

    ## No example

    It is found at run time, where the checker saw nothing: what it sees is PSC206.
    """

    name: str
    function: str

    def message(self) -> str:
        """Which name."""
        return (
            f"captured state changed: `{self.name}` is not what it was when `{self.function}` "
            f"was compiled"
        )

    def help(self) -> str:
        """What to write instead."""
        return "pass it to the kernel as an argument"
