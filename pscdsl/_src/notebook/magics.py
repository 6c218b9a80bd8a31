"""The magic `%psc` of IPython: checks of cells, costs, programs and explanations.

IPython is not imported: it passes its shell.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any, Final

from pscdsl._src.calls.errors import ArgumentError, CheckError
from pscdsl._src.checker.report.terminal import render_text
from pscdsl._src.cli import Unusable
from pscdsl._src.cli.cost import KernelCosts, costs_of
from pscdsl._src.cli.explain import explanation
from pscdsl._src.frontend.text.display import CodeCell, Sources
from pscdsl._src.ir.program import Function
from pscdsl._src.kernels.kernel import Kernel
from pscdsl._src.notebook import kernels, markup
from pscdsl._src.notebook.cells import CellFindings, check_cell
from pscdsl.typing.diagnostics import Failure

USAGE: Final = """\
%%psc check                   check the cell, and run it if there are no errors
%psc cost KERNEL [NAME=SIZE]  the cost of a call, with numbers in place of some sizes
%psc ir KERNEL [NAME=VALUE]   the typed program, for a choice of what the signature leaves open
%psc explain CODE             what a code of a finding means"""


class RefusedCell(CheckError):
    """A cell has errors and was not run."""

    __module__ = "pscdsl"

    def __init__(self, found: CellFindings, *, colour: bool) -> None:
        super().__init__(found.diagnostics)
        self._text = found.text(colour=colour)

    def __str__(self) -> str:
        return self._text

    def _render_traceback_(self) -> list[str]:
        """Return all that IPython shows of the error."""
        return [self._text, "", "the cell was not run"]


class Costs:
    """The costs of a kernel, as text and HTML."""

    def __init__(self, known: KernelCosts) -> None:
        self._known = known

    def __repr__(self) -> str:
        return str(self._known)

    def _repr_html_(self) -> str:
        title = f"<div>{markup.code(self._known.kernel.signature)}</div>"
        return markup.box(title, kernels.costs(self._known))


class Page:
    """A text in Markdown."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text.rstrip()

    def _repr_markdown_(self) -> str:
        return self._text


def load(shell: Any) -> None:
    """Register the magic in a shell."""
    magic = Magic(shell)
    shell.register_magic_function(magic, "line", "psc")
    shell.input_transformers_cleanup.append(magic.read)


class Magic:
    """The function that IPython calls for a line `%psc`."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.text = ""
        """The cell that is run."""
        self.refused: set[int] = set()
        """The numbers of cells that were not run."""
        self.__doc__ = USAGE  # shown by `%psc?`

    def read(self, lines: list[str]) -> list[str]:
        """Note a cell before it is run; make `%%psc check` a line of it, which runs first."""
        self.text = "".join(lines)
        if lines and lines[0].split() == ["%%psc", "check"]:
            return ["%psc check\n", *lines[1:]]
        return lines

    def __call__(self, line: str) -> Any:
        """Run one of the magics of `USAGE`."""
        command, *words = line.split() or [""]
        if command not in _COMMANDS or bool(words) is (command == "check"):
            raise _usage_error(f"usage:\n{USAGE}")
        try:
            return _COMMANDS[command](self, *words)
        except RefusedCell:
            raise
        except (Unusable, CheckError, ArgumentError) as problem:
            raise _usage_error(str(problem).rstrip()) from None
        except Failure as failure:  # of the settings
            said = render_text(failure.diagnostics, Sources(toml=True)).rstrip()
            raise _usage_error(said) from None

    def check(self) -> None:
        """Check the cell; raise an error, so that the rest of it is not run, if it has errors."""
        history: list[str] = self.shell.history_manager.input_hist_raw
        number: int = self.shell.execution_count
        if self.text.strip() in history[-1]:  # the number is one more already in new versions
            number = len(history) - 1
        ran = [
            CodeCell(place, each)
            for place, each in enumerate(history[:number])
            if place and place not in self.refused
        ]
        found = check_cell(ran, CodeCell(number, self.text.rstrip("\n")), self.shell.user_ns)
        colour = str(self.shell.colors).lower() != "nocolor"
        if found.has_errors:
            self.refused.add(number)
            raise RefusedCell(found, colour=colour)
        if found.diagnostics:
            print(found.text(colour=colour))

    def cost(self, name: str, *sizes: str) -> Costs:
        """Return the cost of a kernel, with numbers in place of some sizes."""
        given = _values(sizes)
        found = costs_of(self.kernel(name), given)
        if unknown := given.keys() - found.known:
            raise Unusable(f"{name} has no size {', '.join(sorted(unknown))}")
        return Costs(found)

    def ir(self, name: str, *choices: str) -> Function:
        """Return the typed program of a kernel."""
        kernel, given = self.kernel(name), _values(choices)
        if unknown := given.keys() - kernel.signature.open_parts():
            raise Unusable(f"{name} does not leave {', '.join(sorted(unknown))} open")
        return kernel.ir(**given)

    def explain(self, code: str) -> Page:
        """Return the explanation of a code."""
        return Page(explanation(code))

    def kernel(self, name: str) -> Kernel[..., Any]:
        """Return the kernel of a name, or of a name with dots, in the user's namespace."""
        first, *rest = name.split(".")
        found = self.shell.user_ns.get(first)
        for each in rest:
            found = getattr(found, each, None)
        if not isinstance(found, Kernel):
            raise Unusable(f"`{name}` is no kernel here")
        kernel: Kernel[..., Any] = found  # pyright: ignore[reportUnknownVariableType]
        return kernel


_COMMANDS: Final[Mapping[str, Callable[..., Any]]] = {
    "check": Magic.check,
    "cost": Magic.cost,
    "ir": Magic.ir,
    "explain": Magic.explain,
}


def _values(words: tuple[str, ...]) -> dict[str, Any]:
    """Return the values of words like `n=8`; text that is no literal is itself."""
    found: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise Unusable(f"`{word}` is not NAME=VALUE")
        try:
            found[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            found[name] = text
    return found


def _usage_error(text: str) -> Exception:
    """Return IPython's error for wrong arguments, which is shown without a traceback."""
    from IPython.core.error import UsageError

    return UsageError(text)
