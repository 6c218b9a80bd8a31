"""The command line: one file for each command, loaded only when the command is called.

A command's module has `run(arguments)`, which returns the exit code: 0 for success, 1 for findings,
2 if it could not run. Its arguments are declared in `parsers`, and its one-line description is
here, so that help loads none of them.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import gc
import importlib
import io
import os
import re
import sys
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NoReturn, TextIO

from pscdsl._src.support.paths import Refused

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

COMMANDS = {
    "check": "prove kernels pure and well-shaped, without running them",
    "discover": "find the functions of plain NumPy code that are PSC already",
    "port": "write the functions of a JAX file as kernels, each checked to be equal",
    "server": "serve an editor: findings while one types, fixes, types, costs",
    "explain": "say what a diagnostic code means, with an example and its fix",
    "ir": "print the typed program of a kernel",
    "hlo": "print the StableHLO of a kernel, or what XLA makes of it",
    "cost": "say what a kernel costs: operations and memory, in its sizes",
    "compile": "compile kernels ahead and keep them for the programs that call them",
    "export": "write a kernel into a file that psc.load and jax call without its source",
    "run": "call a kernel on files, literals or random data",
    "completion": "print a script that completes commands and options in a shell",
}

_EPILOG = "commands:\n" + "\n".join(f"  {name:<10} {text}" for name, text in COMMANDS.items())


class Unusable(Exception):
    """The command cannot run as it was called; the message says why."""


def say(text: object, *, error: bool = False) -> None:
    """Print lines that may contain a stranger's text; to standard error if `error`."""
    print(_printable(str(text)), file=sys.stderr if error else sys.stdout)


def _printable(text: str) -> str:
    from pscdsl._src.frontend.text.display import printable  # a check has it loaded anyway

    return printable(text)


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the end of a message that suggests the known word nearest to a mistyped one."""
    from difflib import get_close_matches  # only mistakes need it

    near = get_close_matches(word.lower(), list(known), 1)
    return f"; did you mean `{near[0]}`?" if near else ""


class Parser(argparse.ArgumentParser):
    """A parser of arguments; some may be names of files that a stranger has chosen."""

    given: Sequence[str] = ()
    """The arguments that are parsed."""

    def actions(self) -> list[argparse.Action]:
        """Return its options and positional arguments."""
        return self._actions

    def error(self, message: str) -> NoReturn:
        """Report the error and exit; name a nonexistent option before its consequences."""
        known = self._option_string_actions
        for argument in self.given:
            name = argument.partition("=")[0]
            if name == "--":
                break
            if re.fullmatch(r"--?[A-Za-z][\w-]*", name) and name not in known:
                more = nearest(name, known) or f" (`{self.prog} --help` lists them)"
                self.exit(2, f"{self.prog}: unknown option `{name}`{more}\n")
        super().error(message)

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        super()._print_message(_printable(message), file)


def command() -> NoReturn:
    """Run the command line as the whole process.

    At the end of a check Python would collect garbage and free each object, which takes half as
    long as the check itself.
    """
    checks = sys.argv[1:2] in (["check"], ["discover"])
    if checks:
        gc.disable()
    code = main()
    if checks and threading.active_count() == 1:
        if sys.gettrace() is None and sys.getprofile() is None:  # no debugger needs an ordinary end
            atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
            os._exit(code)
    sys.exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # never fail on what the terminal cannot show
            stream.reconfigure(errors="backslashreplace")
    try:
        _here()
        code = _dispatch(arguments)
        sys.stdout.flush()
    except (Unusable, Refused) as problem:
        say(f"pscdsl: {problem}", error=True)
        return 2
    except BrokenPipeError:  # the reader, a pager for instance, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except OSError as problem:  # where results are written, for instance
        say(f"pscdsl: {problem}", error=True)
        return 2
    except Exception:
        import traceback  # nothing else needs it

        say(traceback.format_exc().rstrip(), error=True)
        print("pscdsl: internal error, please report it with the above", file=sys.stderr)
        return 2
    return code


def _here() -> None:
    try:
        os.getcwd()
    except OSError as problem:
        raise Unusable(f"the current folder cannot be found: {problem.strerror}") from None


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] not in COMMANDS:
        return _top(arguments)
    name, *rest = arguments
    from pscdsl._src.cli import parsers  # the list of commands needs none

    parser = Parser(
        prog=f"pscdsl {name}",
        description=parsers.description(name),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parsers.PARSERS[name](parser)
    parser.given = rest
    try:
        parsed = parser.parse_args(rest)
    except SystemExit as stop:
        return int(stop.code or 0)
    return int(importlib.import_module(f"pscdsl._src.cli.{name}").run(parsed))


def _top(arguments: list[str]) -> int:
    if arguments and not arguments[0].startswith("-"):
        name = arguments[0]
        more = nearest(name, COMMANDS) or " (`pscdsl --help` lists them)"
        raise Unusable(f"unknown command `{name}`{more}")
    parser = Parser(
        prog="pscdsl",
        description="A static checker for NumPy code, and a compiler for the code that it accepts.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    parser.add_argument("command", nargs="?", metavar="COMMAND", choices=tuple(COMMANDS))
    parser.given = arguments
    try:
        parsed = parser.parse_args(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)
    if parsed.version:
        print(f"pscdsl {version()}")
        return 0
    parser.print_help()
    return 0 if parsed.command else 2


def version() -> str:
    """Return the version that is installed."""
    from importlib import metadata  # which is large

    try:
        return metadata.version("pscdsl")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def wants_colour(arguments: argparse.Namespace, stream: TextIO | None = None) -> bool:
    """Return whether to colour the output.

    The option decides, then `NO_COLOR`, then `FORCE_COLOR`, each if it is not empty; otherwise a
    terminal that is not dumb is coloured.
    """
    if arguments.colour != "auto":
        return bool(arguments.colour == "always")
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return os.environ.get("TERM") != "dumb" and (stream or sys.stdout).isatty()
