"""Prove kernels pure and well-shaped for every size, from their source alone.

Exit code 0: no errors (with --strict: no warnings either); 1: findings; 2: could not run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from pscdsl.cli import Unusable
from pscdsl.cli.colour import add_colour, wants_colour
from pscdsl.report.sources import printable, shown_path
from pscdsl.report.summary import sentence
from pscdsl.typing.diagnostics import Diagnostic, Severity

if TYPE_CHECKING:
    from pscdsl.frontend.check import CheckResult

FORMATS = ("text", "concise", "json")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("paths", nargs="+", metavar="PATH", type=Path, help="a file or a folder")
    parser.add_argument("--format", choices=FORMATS, default="text")
    parser.add_argument(
        "--select",
        action="append",
        default=[],
        metavar="CODES",
        help="report only these codes or families, for instance PSC3,PSC401",
    )
    parser.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="CODES",
        help="do not report these codes or families",
    )
    parser.add_argument("--strict", action="store_true", help="fail on warnings too")
    parser.add_argument("--show-types", action="store_true", help="print the type of each kernel")
    add_colour(parser)


def run(arguments: argparse.Namespace) -> int:
    """Check, report, and say by the exit code whether there were findings."""
    select, ignore = _codes(arguments.select), _codes(arguments.ignore)
    for path in arguments.paths:
        if not path.exists():
            raise Unusable(f"no such file or folder: {path}")

    from pscdsl.frontend.check import check_paths

    result = check_paths(arguments.paths)
    found = tuple(d for d in result.diagnostics if _reported(d, select, ignore))
    sys.stdout.write(_render(arguments, result, found))
    failing = {Severity.ERROR, Severity.WARNING} if arguments.strict else {Severity.ERROR}
    return int(any(type(diagnostic).severity in failing for diagnostic in found))


def _render(
    arguments: argparse.Namespace, result: CheckResult, found: tuple[Diagnostic, ...]
) -> str:
    if arguments.format == "json":
        from pscdsl.report import json

        return json.render(found, result.kernels, result.files)
    if arguments.format == "concise":
        from pscdsl.report import concise

        return concise.render(found) + (_types(result) if arguments.show_types else "")
    from pscdsl.report import text

    body = text.render(found, colour=wants_colour(arguments))
    types = _types(result) if arguments.show_types else ""
    return f"{body}{types}{sentence(found, result.kernels, result.files)}\n"


def _types(result: CheckResult) -> str:
    rows: list[str] = []
    for kernel in result.kernels:
        place = f"{shown_path(kernel.path)}:{kernel.line}:{kernel.column}"
        status = "" if kernel.status == "ok" else f"  [{kernel.status}]"
        rows.append(printable(f"{place}: {kernel.name}{kernel.signature}{status}\n"))
    return "".join(rows)


def _codes(options: Iterable[str]) -> tuple[str, ...]:
    """Codes and families from an option, each the start of a code that exists."""
    given = [code.strip() for option in options for code in option.split(",")]
    codes = tuple(code.upper() for code in given if code)
    if codes:
        from pscdsl.report.kinds import all_kinds

        known = tuple(kind.code for kind in all_kinds())
        for code in codes:
            if not any(other.startswith(code) for other in known):
                raise Unusable(f"no such code: {code} (`pscdsl explain` lists them)")
    return codes


def _reported(diagnostic: Diagnostic, select: tuple[str, ...], ignore: tuple[str, ...]) -> bool:
    code = diagnostic.code
    return (not select or code.startswith(select)) and not (ignore and code.startswith(ignore))
