"""Say what a diagnostic code means, with a failing example and its fix.

Without a code, list them all.
"""

from __future__ import annotations

import argparse
import re

from pscdsl._src.checker.selection import all_kinds
from pscdsl._src.cli import Unusable, add_colour, wants_colour
from pscdsl.typing.diagnostics import Diagnostic, find


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("code", nargs="?", metavar="CODE", help="for instance PSC301")
    add_colour(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the explanation, or the list."""
    kinds = all_kinds()
    if arguments.code is None:
        for kind in kinds:
            print(f"{kind.code}  {kind.severity.value:<7}  {_title(kind)}")
        return 0
    kind = _find(arguments.code, kinds)
    if not kind.explanation():
        raise Unusable("explanations are not available under `python -OO`")
    document = f"# {kind.code}: {kind.explanation()}\n"
    if wants_colour(arguments):
        from rich.console import Console
        from rich.markdown import Markdown

        Console(force_terminal=True).print(Markdown(document))
    else:
        print(document, end="")
    return 0


def _find(text: str, kinds: tuple[type[Diagnostic], ...]) -> type[Diagnostic]:
    """The kind with this code, number or slug."""
    code = f"PSC{text}" if re.fullmatch(r"\d{3}", text) else text
    if (kind := find(code)) is not None:
        return kind
    for kind in kinds:
        if kind.slug() == text.lower():
            return kind
    raise Unusable(f"no such code: {text} (`pscdsl explain` lists them)")


def _title(kind: type[Diagnostic]) -> str:
    return kind.title() or kind.slug()
