"""PSC907 and on: loaded code that is not what its text says."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic


class TextChanged(Diagnostic, code="PSC907"):
    """A loaded function differs from the text of its file.

    A kernel is read from the text of its functions.  If a file was changed after Python loaded it,
    the text is that of another program than the one that runs; so a function is read only if its
    text compiles to the very code that Python has of it, and if its annotations are those that
    Python evaluated.  A kernel that was read before stays what it was.

    ## No example

    Only a function that is loaded can differ from its text: a file that is checked is the text.
    """

    function: str
    where: str

    def message(self) -> str:
        """Which function."""
        return f"`{self.function}` is not what its text says: {self.where} was changed since"

    def help(self) -> str:
        """What to do."""
        return "load it again: `importlib.reload` its module, run its cell again, or restart Python"


class SeveralFunctions(Diagnostic, code="PSC908"):
    """A line has several lambdas, and their code has no columns to distinguish them.

    With `python -X no_debug_ranges`, or `PYTHONNODEBUGRANGES` in the environment, code does not
    know in which columns of its text it stands.

    ## No example

    Only a function that is loaded can lack its columns: a file that is checked is the text.
    """

    line: str

    def message(self) -> str:
        """Where."""
        return f"several lambdas begin at {self.line}, and code has no columns here"

    def help(self) -> str:
        """What to do."""
        return "write them on lines of their own, or run Python without `-X no_debug_ranges`"
