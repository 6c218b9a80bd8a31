"""Prove kernels pure and well-shaped for every size, from their source alone.

Without a path, what `[tool.pscdsl]` in pyproject.toml names is checked, or the current folder.
Exit code 0: no errors (with --strict: no warnings either, and every kernel was checked);
1: findings; 2: could not run.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pscdsl._src.checker import baseline
from pscdsl._src.checker.baseline import Baseline, BaselineError, Fingerprints
from pscdsl._src.checker.configuration import FORMATS, Settings, find_settings, read_settings
from pscdsl._src.checker.selection import Layer, is_known
from pscdsl._src.checker.triage import Triage, triage
from pscdsl._src.cli import Unusable, say
from pscdsl._src.cli.checking import add_checking, checked
from pscdsl._src.cli.colour import add_colour, wants_colour
from pscdsl._src.cli.formats import Outcome, render
from pscdsl._src.frontend.text.sources import Sources
from pscdsl._src.support.paths import admitted, resolved
from pscdsl.typing.diagnostics import Diagnostic, Failure


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("paths", nargs="*", metavar="PATH", type=Path, help="a file or a folder")
    parser.add_argument("--format", choices=FORMATS)
    for name, text in (
        ("--select", "report only these codes or families, for instance PSC3,PSC401"),
        ("--extend-select", "report these codes or families too"),
        ("--ignore", "do not report these codes or families"),
    ):
        parser.add_argument(name, action="append", default=[], metavar="CODES", help=text)
    parser.add_argument(
        "--strict",
        action=argparse.BooleanOptionalAction,
        help="fail on warnings too, and on kernels that were not checked",
    )
    add_checking(parser)
    parser.add_argument("--fix", action="store_true", help="make the fixes that keep the meaning")
    parser.add_argument(
        "--unsafe-fixes", action="store_true", help="with --fix or --diff: make the others too"
    )
    parser.add_argument(
        "--diff",
        action="store_true",
        help="print what --fix would change and write nothing; exit code 1 if that is something",
    )
    parser.add_argument("--show-types", action="store_true", help="print the type of each kernel")
    add_colour(parser)
    files = parser.add_argument_group("settings and baseline")
    files.add_argument("--config", metavar="FILE", help="a TOML file with a table [tool.pscdsl]")
    files.add_argument(
        "--force-exclude", action="store_true", help="leave out excluded files even if given"
    )
    files.add_argument("--baseline", metavar="FILE", help="do not report what this file knows")
    files.add_argument("--no-baseline", action="store_const", const="", dest="baseline")
    files.add_argument(
        "--write-baseline", metavar="FILE", help="write all findings into a baseline and exit"
    )
    files.add_argument(
        "--strict-baseline",
        action=argparse.BooleanOptionalAction,
        help="fail if the baseline knows what is found no more",
    )
    files.add_argument(
        "--hide-suppressed",
        action="store_true",
        help="leave suppressed and baselined findings out of SARIF",
    )


def run(arguments: argparse.Namespace) -> int:
    """Check, report, and say by the exit code whether there were findings."""
    settings = _settings(arguments)
    select, extend, ignore = map(
        _codes, (arguments.select, arguments.extend_select, arguments.ignore)
    )
    selection = settings.selection(Layer(select or None, extend, ignore))
    writing = arguments.write_baseline is not None
    known = Baseline() if writing or not settings.baseline else _baseline(settings.baseline)
    typed, paths = _paths(arguments, settings)

    if arguments.unsafe_fixes and not (arguments.fix or arguments.diff):
        raise Unusable("--unsafe-fixes goes with --fix or --diff")

    excluded = _excluded(arguments, settings, paths)
    fixed = ""
    if arguments.fix or arguments.diff:
        from pscdsl._src.cli import fixing

        def wanted(found: Sequence[Diagnostic], texts: Mapping[str, str]) -> Sequence[Diagnostic]:
            prints = Fingerprints(Sources(texts))
            return triage(found, (), selection, known, (), prints).reported

        unsafe, write = arguments.unsafe_fixes, not arguments.diff
        made = fixing.fix(typed, paths, excluded, wanted, unsafe=unsafe, write=write)
        if arguments.diff:
            for name, diff in made.diffs.items():
                fixing.show(name, diff)
            return int(bool(made.diffs))
        result, fixed = made.result, made.summary
    else:
        result = checked(arguments, paths, excluded, settings.root)
    sources = Sources()
    fingerprints = Fingerprints(sources)
    sorted_out = triage(
        result.diagnostics,
        result.suppressed,
        selection,
        known,
        result.checked(),
        fingerprints,
    )
    if writing:
        return _write_baseline(arguments.write_baseline, sorted_out, fingerprints)
    stale = settings.strict_baseline and bool(sorted_out.stale)
    code = int(sorted_out.fails(strict=settings.strict) or stale)
    outcome = Outcome(result, sorted_out, fingerprints, sources, bool(known.entries), code, fixed)
    shown = render(
        settings.format,
        outcome,
        types=arguments.show_types,
        colour=wants_colour(arguments),
        hide_suppressed=arguments.hide_suppressed,
    )
    sys.stdout.write(shown)
    return code


def _settings(arguments: argparse.Namespace) -> Settings:
    """The settings of the project, with what the command line says instead."""
    from pscdsl._src.checker.report import terminal

    try:
        if arguments.config:
            found = read_settings(admitted(arguments.config, [os.getcwd()]))
        else:
            found = find_settings(os.curdir)
    except Failure as failure:
        said = terminal.render_text(failure.diagnostics, Sources(toml=True), colour=False).rstrip()
        raise Unusable(f"the settings are wrong\n\n{said}") from None
    given = {
        name: value
        for name in ("format", "strict", "strict_baseline", "baseline")
        if (value := getattr(arguments, name)) is not None
    }
    if "baseline" not in given and found.baseline:
        given["baseline"] = os.path.join(found.root, found.baseline)
    if given.get("baseline"):
        given["baseline"] = admitted(given["baseline"], [found.root, os.getcwd()])
    return replace(found, **given)


def _paths(arguments: argparse.Namespace, settings: Settings) -> tuple[list[str], list[str]]:
    """The files and folders to check, as they were named and where that leads.

    What is typed may lie anywhere; what the settings name does not lead out of their folder.
    """
    given = [str(path) for path in arguments.paths]
    own = [os.path.join(settings.root, path) for path in settings.paths]
    paths = given or own or [os.curdir]
    for path in paths:
        if not os.path.exists(path):
            raise Unusable(f"no such file or folder: {path}")
    return paths, [admitted(path, [settings.root, os.getcwd()]) for path in paths]


def _excluded(
    arguments: argparse.Namespace, settings: Settings, paths: list[str]
) -> Callable[[str], bool]:
    """Which files are left out; those that are given by name only if that is forced."""
    named = {resolved(path) for path in paths if os.path.isfile(path)}
    kept = frozenset[str]() if arguments.force_exclude else frozenset(named)
    return lambda path: settings.excludes(path) and resolved(path) not in kept


def _baseline(path: str) -> Baseline:
    try:
        return baseline.read(path)
    except BaselineError as problem:
        raise Unusable(str(problem)) from None


def _write_baseline(path: str, sorted_out: Triage, fingerprints: Fingerprints) -> int:
    admitted(os.path.dirname(path) or os.curdir, [os.getcwd()])
    try:
        number = baseline.write(path, sorted_out.reported, fingerprints)
    except BaselineError as problem:
        raise Unusable(str(problem)) from None
    say(f"{number} finding{'' if number == 1 else 's'} written to {path}")
    return 0


def _codes(options: Iterable[str]) -> tuple[str, ...]:
    """Codes and families from an option, each the start of a code that exists."""
    given = [code.strip() for option in options for code in option.split(",")]
    codes = tuple(code.upper() for code in given if code)
    for code in codes:
        if not is_known(code):
            raise Unusable(f"no such code: {code} (`pscdsl explain` lists them)")
    return codes
