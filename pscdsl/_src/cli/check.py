"""Prove kernels pure and well-shaped for every size, from their source alone.

Without a path, what `[tool.pscdsl]` in pyproject.toml names is checked, or the current folder.
Exit code 0: no errors (with --strict: no warnings either, and every kernel was checked);
1: findings; 2: could not run.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pscdsl._src.caching import store
from pscdsl._src.checker import baseline
from pscdsl._src.checker.baseline import Baseline, BaselineError, Fingerprints, Triage, triage
from pscdsl._src.checker.check import CheckResult, check_paths
from pscdsl._src.checker.configuration import Settings, find_settings, read_settings
from pscdsl._src.checker.fixing import Fixed, Wanted, fix_all
from pscdsl._src.checker.report import terminal
from pscdsl._src.checker.report.summary import fixable, ordered, sentence
from pscdsl._src.checker.report.terminal import ProgressBar
from pscdsl._src.checker.selection import Layer, is_known
from pscdsl._src.checker.workers import Options, check_project
from pscdsl._src.cli import Unusable, say, version, wants_colour
from pscdsl._src.frontend.modules.files import files_below, python_files
from pscdsl._src.frontend.text.display import (
    Sources,
    decode,
    is_command,
    printable,
    printable_path,
    shown_path,
)
from pscdsl._src.frontend.text.source import limit
from pscdsl._src.support.paths import Folder, NotAFile, admitted, inside, resolved
from pscdsl.typing.diagnostics import Diagnostic, Failure

# `pscdsl check --fix` and `--diff`: files are read, fixed in memory, and written or compared.


@dataclass(frozen=True)
class FixOutcome:
    """What became of a check with fixes."""

    result: CheckResult
    """What is found afterwards."""
    diffs: dict[str, str]
    """What was changed in each file, or would be."""
    summary: str
    """How many findings were fixed."""


def fix(
    typed: Sequence[str],
    paths: Sequence[str],
    excluded: Callable[[str], bool],
    wanted: Wanted,
    *,
    unsafe: bool,
    write: bool,
) -> FixOutcome:
    """Fix what is wanted; files that cannot be written stay as they are, and are named.

    `paths` are the ends of what was typed.
    """
    files = files_below(paths, excluded, settled=True)
    own = set(files.given)
    changing = [path for path in may_change(typed, paths, excluded) if path in own]
    fixed = fix_all(files, changing, wanted, unsafe=unsafe)
    diffs = {path: _diff(path, files.data(path), new) for path, new in fixed.contents.items()}
    left = [
        path
        for path, new in fixed.contents.items()
        if write and not save(path, files.data(path), new)
    ]
    # Files that are left are as they were, and so is what is found in them.
    result = check_paths(paths, excluded) if left else fixed.result
    if not fixed.complete:
        _say("there is more to fix: run it again")
    for note in caveats(fixed, left):
        _say(note)
    return FixOutcome(result, diffs, _sentence(fixed, left))


def _sentence(fixed: Fixed, left: Sequence[str]) -> str:
    made = [each for each in fixed.made if each.path not in left]
    files = {each.path for each in made}
    if not made:
        return ""
    findings = "1 finding" if len(made) == 1 else f"{len(made)} findings"
    return f"{findings} fixed in {'1 file' if len(files) == 1 else f'{len(files)} files'}"


def caveats(fixed: Fixed, left: Sequence[str] = ()) -> Iterator[str]:
    """What means something else after the fixes, once for each file."""
    made = [each for each in fixed.made if each.path not in left and each.fix.caveat]
    yield from dict.fromkeys(
        f"{shown_path(each.path)}: {each.fix.message}: {each.fix.caveat}" for each in made
    )


def _say(message: str) -> None:
    say(f"pscdsl: {message}", error=True)


def show(path: str, diff: str) -> None:
    """Print the changes of a file; to a terminal, without what could steer it.

    Elsewhere a patch must be exact.  One that a workflow's runner would take commands from is left
    out: a context line begins with a blank, which runners skip.
    """
    if sys.stdout.isatty():
        sys.stdout.write(printable(diff))
    elif any(map(is_command, re.split(r"[\r\n]", diff))):
        _say(f"the changes of {shown_path(path)} are not printed: they hold commands for workflows")
    else:
        sys.stdout.write(diff)


def may_change(
    typed: Sequence[str], paths: Sequence[str], excluded: Callable[[str], bool] | None = None
) -> Iterator[str]:
    """The files that may be changed: not those that a link leads to from elsewhere."""
    excluded = excluded or (lambda path: False)
    direct = [end for given, end in zip(typed, paths, strict=True) if not _is_led_to(given)]
    for file in python_files(direct, excluded, settled=True):
        if not _is_led_to(file):
            yield resolved(file)


def _is_led_to(given: str) -> bool:
    """Whether a file is a link out of its folder; said so."""
    end, folder = resolved(given), resolved(os.path.dirname(os.path.abspath(given)))
    if not os.path.islink(given) or os.path.isdir(end) or inside(end, folder):
        return False
    _say(f"{given} is a link to {end}, which is left alone: name it to fix it")
    return True


def _diff(path: str, old: bytes, new: bytes) -> str:
    """The changes as a unified diff."""
    name = shown_path(path)
    before, after = (_lines(decode(data)) for data in (old, new))
    rows = difflib.unified_diff(before, after, name, name, lineterm="")
    return "".join(map(_row, rows))


def _row(row: str) -> str:
    """A line of a diff; one without an end in the file says so."""
    if row.startswith(("---", "+++", "@@")) or row.endswith("\n"):
        return row.rstrip("\n") + "\n"
    return f"{row}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    """The lines with their ends; only newline characters count, as they do for `patch`."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def save(path: str, old: bytes, new: bytes) -> bool:
    """Write a file as a whole or not at all; whether it was written."""
    name, base = shown_path(path), os.path.basename(path)
    try:
        with Folder(os.path.dirname(path)) as folder:
            if folder.read(base, limit(path)) != old:
                raise NotAFile("it was changed while it was checked")
            if not os.access(path, os.W_OK):
                raise NotAFile("it may not be written")
            folder.replace(base, new, keep=True)
    except (OSError, ValueError) as error:
        _say(f"{name} is left alone: {getattr(error, 'strerror', None) or error}")
        return False
    return True


# The command.


def checked(
    arguments: argparse.Namespace,
    paths: Sequence[str],
    excluded: Callable[[str], bool],
    root: str,
) -> CheckResult:
    """What is found in files and below folders, given by resolved paths.

    Results are stored in the user's folder for caches, or where it is said, but not behind a link
    that leads out of `root` or the current folder.
    """
    cache = None if arguments.no_cache else _cache(arguments.cache_dir, root)
    with ProgressBar() as bar:
        options = Options(cache, arguments.jobs, bar.update)
        return check_project(files_below(paths, excluded, settled=True), options)


def _cache(given: str | None, root: str) -> str | None:
    if given:
        return admitted(given, [root, os.getcwd()])
    try:
        return str(store.user_folder())
    except RuntimeError:  # a user without a home
        return None


# The outcome of a check in each format; a format is loaded only when it is the one asked for.


@dataclass(frozen=True, slots=True)
class Outcome:
    """A check, what became of its findings, and the exit code."""

    result: CheckResult
    triage: Triage
    fingerprints: Fingerprints
    sources: Sources
    has_baseline: bool
    exit_code: int
    fixed: str = ""
    """How many findings were fixed, in words."""


def render(name: str, outcome: Outcome, *, types: bool, colour: bool, hide_suppressed: bool) -> str:
    """The report in the format of this name."""
    result, found = outcome.result, outcome.triage.reported
    hidden = outcome.triage.hidden()
    rows = _types(result) if types else ""
    last = f"{sentence(found, result.kernels, result.files, hidden, result.of_jax)}\n"
    if name == "concise":
        return terminal.render_concise(found) + rows
    if name == "text":
        notes = "".join(f"{note}\n" for note in (outcome.fixed, fixable(found)) if note)
        return terminal.render_text(found, outcome.sources, colour=colour) + rows + notes + last
    from pscdsl._src.checker.report import machine_readable  # which most checks do without

    if name == "github":
        return machine_readable.render_github(found) + rows + last
    if name == "json":
        return machine_readable.render_json(
            found, result.kernels, result.files, hidden, result.of_jax
        )
    results = [machine_readable.Result(*each) for each in _numbered(outcome, hide_suppressed)]
    return machine_readable.render_sarif(
        results,
        outcome.sources,
        version=version(),
        exit_code=outcome.exit_code,
        kernels=result.kernels,
    )


def _numbered(
    outcome: Outcome, hide_suppressed: bool
) -> Iterator[tuple[Diagnostic, str, str, str]]:
    """All findings with fingerprints, how they are suppressed, and whether they are new.

    They are in one order, so that those of equal fingerprints keep their numbers.
    """
    sorted_out = outcome.triage
    suppressed: dict[int, str] = {}
    for kind, group in (("inSource", sorted_out.suppressed), ("external", sorted_out.baselined)):
        suppressed |= {id(finding): kind for finding in group}

    def state(finding: Diagnostic) -> str:
        if not outcome.has_baseline:
            return ""
        return "unchanged" if suppressed.get(id(finding)) == "external" else "new"

    everything = ordered((*sorted_out.reported, *sorted_out.suppressed, *sorted_out.baselined))
    for finding, print_ in outcome.fingerprints.numbered(everything):
        if not (hide_suppressed and id(finding) in suppressed):
            yield finding, print_, suppressed.get(id(finding), ""), state(finding)


def _types(result: CheckResult) -> str:
    rows: list[str] = []
    for kernel in result.kernels:
        place = f"{printable_path(kernel.path)}:{kernel.line}:{kernel.column}"
        status = "" if kernel.status == "ok" else f"  [{kernel.status}]"
        rows.append(printable(f"{place}: {kernel.name}{kernel.signature}{status}") + "\n")
        for line, _, text in kernel.loops:
            rows.append(printable(f"  line {line}: {text}") + "\n")
    return "".join(rows)


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

        def wanted(found: Sequence[Diagnostic], texts: Mapping[str, str]) -> Sequence[Diagnostic]:
            prints = Fingerprints(Sources(texts))
            return triage(found, (), selection, known, (), prints).reported

        unsafe, write = arguments.unsafe_fixes, not arguments.diff
        made = fix(typed, paths, excluded, wanted, unsafe=unsafe, write=write)
        if arguments.diff:
            for name, diff in made.diffs.items():
                show(name, diff)
            found = triage(
                *(made.result.diagnostics, made.result.suppressed, selection, known),
                *(made.result.checked(), Fingerprints(Sources())),
            )
            failed = found.fails(strict=settings.strict)
            if failed and not made.diffs:
                others = fixable(found.reported)
                _say(f"no fix applies{f': {others}' if others else ''}; see `pscdsl check`")
            return int(failed or bool(made.diffs))
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
    nothing = settings.strict and not result.kernels
    if nothing:
        _say("there is no kernel to check, which --strict does not accept")
    code = int(sorted_out.fails(strict=settings.strict) or stale or nothing)
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
    given = [str(Path(path)) for path in arguments.paths]
    own = [os.path.join(settings.root, path) for path in settings.paths]
    paths = given or own or [os.curdir]
    for path in paths:
        if not os.path.exists(path):
            raise Unusable(f"no such file or folder: {path}")
    return paths, [admitted(path, [settings.root, os.getcwd()]) for path in paths]


def _excluded(
    arguments: argparse.Namespace, settings: Settings, paths: list[str]
) -> Callable[[str], bool]:
    """A test for files to leave out; files given by name are left out only if that is forced."""
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
