"""`pscdsl explain`: the text of a diagnostic code, or the list of them."""

from __future__ import annotations

import argparse
import re

from pscdsl._src.checker.selection import all_kinds
from pscdsl._src.cli import Unusable, wants_colour
from pscdsl.typing.diagnostics import Diagnostic, find


def run(arguments: argparse.Namespace) -> int:
    """Print the explanation, or the list."""
    if arguments.code is None:
        for kind in all_kinds():
            print(f"{kind.code}  {kind.severity.value:<7}  {kind.title()}")
        return 0
    document = explanation(arguments.code)
    if wants_colour(arguments):
        from rich import console, markdown  # which are large

        # By itself, rich would decide on colours as well, in another way.
        coloured = console.Console(force_terminal=True, no_color=False, color_system="256")
        coloured.print(markdown.Markdown(document))
    else:
        print(document, end="")
    return 0


def explanation(code: str) -> str:
    """Return the page of a code, a number or a slug, in Markdown."""
    kind = _find(code, all_kinds())
    return f"# {kind.code}: {kind.explanation()}\n"


def _find(text: str, kinds: tuple[type[Diagnostic], ...]) -> type[Diagnostic]:
    """Return the kind with this code, number or slug."""
    code = f"PSC{text}" if re.fullmatch(r"\d{3}", text) else text
    if (kind := find(code)) is not None:
        return kind
    for kind in kinds:
        if kind.slug() == text.lower():
            return kind
    raise Unusable(f"no such code: {text} (`pscdsl explain` lists them)")
