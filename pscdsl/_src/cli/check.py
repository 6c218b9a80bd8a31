"""Prove kernels pure and well-shaped for every size, from their source alone.

Without a path, what `[tool.pscdsl]` in pyproject.toml names is checked, or the current folder.
Exit code 0: no errors (with --strict: no warnings either, and every kernel was checked);
1: findings; 2: could not run.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pscdsl._src.caching import store
from pscdsl._src.checker import baseline
from pscdsl._src.checker.baseline import Baseline, BaselineError, Fingerprints, Triage, triage
from pscdsl._src.checker.configuration import (
    Settings,
    find_settings,
    possible_files,
    read_settings,
)
from pscdsl._src.checker.project import CheckOptions, check_project
from pscdsl._src.checker.report import terminal
from pscdsl._src.checker.report.summary import fixable, ordered, sentence
from pscdsl._src.checker.report.terminal import ProgressBar
from pscdsl._src.checker.results import CheckResult
from pscdsl._src.checker.selection import Layer, Selection, is_known
from pscdsl._src.cli import Unusable, say, version, wants_colour
from pscdsl._src.dialects.jax.unknown import CAUSES, Annotated, Inferred, UnknownCall
from pscdsl._src.frontend.modules.files import Files, files_below, python_files
from pscdsl._src.frontend.text.display import (
    NotANotebook,
    Sources,
    cell_path,
    code_cells,
    decode,
    in_order,
    is_command,
    printable,
    printable_path,
    shown_path,
)
from pscdsl._src.frontend.text.source import STANDARD_INPUT, limit
from pscdsl._src.support.paths import Folder, NotAFile, admitted, inside, resolved
from pscdsl.typing.diagnostics import Diagnostic, Failure

if TYPE_CHECKING:
    from pscdsl._src.checker.fixing import Fixed, Wanted
    from pscdsl._src.cli.watching import Watched

# The input of a check: files and folders, or a text from standard input as a file.


INPUT = "-"
"""The path that means standard input."""


@dataclass(frozen=True, slots=True)
class CheckTarget:
    """The files to check, the settings, and the selection of findings to report."""

    settings: Settings
    selection: Selection
    typed: list[str]
    paths: list[str]
    """The resolved paths of the arguments, or of the settings' paths."""
    excluded: Callable[[str], bool]
    text: bytes | None = None
    """The text from standard input, in place of the only path."""

    def files(self) -> Files:
        """Return the files, each read when it is needed."""
        files = files_below(self.paths, self.excluded, settled=True)
        files.dialect = self.settings.dialect
        return files if self.text is None else files.changed({self.paths[0]: self.text})

    def texts(self) -> dict[str, str]:
        """Return the texts that are not read from disk, by displayed path."""
        if self.text is None:
            return {}
        shown = shown_path(self.paths[0])
        if not shown.endswith(".ipynb"):
            return {shown: decode(self.text)}
        with contextlib.suppress(NotANotebook):
            return {cell_path(shown, cell.number): cell.text for cell in code_cells(self.text)}
        return {}

    def may_change(self) -> Iterator[str]:
        """Yield the files that may be changed."""
        if self.text is None:
            return may_change(self.typed, self.paths, self.excluded)
        return iter(self.paths)


def standard_input(path: str) -> bytes:
    """Return all of standard input, as the content of a file of this name."""
    most = limit(path)
    try:
        if sys.stdin is None:
            raise Unusable("there is no standard input")
        data = sys.stdin.buffer.read(most + 1)
    except OSError as problem:
        raise Unusable(f"standard input cannot be read: {problem.strerror}") from None
    if len(data) > most:
        raise Unusable(f"standard input has more than {most:,} bytes")
    if not data:
        _say("standard input is empty")
    return data


# `pscdsl check --fix` and `--diff`: files are read, fixed in memory, and written or compared.


@dataclass(frozen=True)
class FixOutcome:
    """The outcome of a check with fixes."""

    result: CheckResult
    """The findings after the fixes."""
    diffs: dict[str, str]
    """The actual or possible changes of each file."""
    summary: str
    """A sentence about the number of fixed findings."""
    contents: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """The files that changed, or would, by real path."""


def fix(target: CheckTarget, wanted: Wanted, *, unsafe: bool, write: bool) -> FixOutcome:
    """Fix the wanted findings; files that cannot be written stay as they are, and are named."""
    from pscdsl._src.checker.check import check_paths
    from pscdsl._src.checker.fixing import fix_all

    files = target.files()
    own = set(files.given)
    changing = [path for path in target.may_change() if path in own]
    fixed = fix_all(files, changing, wanted, unsafe=unsafe)
    diffs = {path: _diff(path, files.data(path), new) for path, new in fixed.contents.items()}
    left = [
        path
        for path, new in fixed.contents.items()
        if write and not save(path, files.data(path), new)
    ]
    # Unwritten files and their findings stay as they are.
    result = check_paths(target.paths, target.excluded) if left else fixed.result
    if not fixed.complete:
        _say("there is more to fix: run it again")
    for note in caveats(fixed, left):
        _say(note)
    return FixOutcome(result, diffs, _sentence(fixed, left), fixed.contents)


def _sentence(fixed: Fixed, left: Sequence[str]) -> str:
    made = [each for each in fixed.made if each.path not in left]
    files = {each.path for each in made}
    if not made:
        return ""
    findings = "1 finding" if len(made) == 1 else f"{len(made)} findings"
    return f"{findings} fixed in {'1 file' if len(files) == 1 else f'{len(files)} files'}"


def caveats(fixed: Fixed, left: Sequence[str] = ()) -> Iterator[str]:
    """Yield notes about changes of meaning by the fixes, once for each file."""
    made = [each for each in fixed.made if each.path not in left and each.fix.caveat]
    yield from dict.fromkeys(
        f"{shown_path(each.path)}: {each.fix.message}: {each.fix.caveat}" for each in made
    )


def _say(message: str) -> None:
    say(f"pscdsl: {message}", error=True)


def show(path: str, diff: str) -> None:
    """Print the changes of a file; to a terminal, without text that could steer it.

    Elsewhere a patch must be exact. A patch that contains commands for a workflow's runner is left
    out: a context line begins with a blank, which runners skip.
    """
    if sys.stdout.isatty():
        sys.stdout.write(printable(diff))
    elif any(map(is_command, re.split(r"[\r\n]", diff))):
        _say(f"the changes of {shown_path(path)} are not printed: they hold commands for workflows")
    else:
        sys.stdout.write(diff)


def write_text(data: bytes) -> None:
    """Write a program to standard output: exactly, except that it must not steer a terminal."""
    if sys.stdout.isatty():
        sys.stdout.write(printable(decode(data)))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)


def may_change(
    typed: Sequence[str], paths: Sequence[str], excluded: Callable[[str], bool] | None = None
) -> Iterator[str]:
    """Yield the files that may be changed: not the targets of links from elsewhere."""
    excluded = excluded or (lambda path: False)
    direct = [end for given, end in zip(typed, paths, strict=True) if not _is_led_to(given)]
    for file in python_files(direct, excluded, settled=True):
        if not _is_led_to(file):
            yield resolved(file)


def _is_led_to(given: str) -> bool:
    """Return whether a file is a link out of its folder, and report it."""
    end, folder = resolved(given), resolved(os.path.dirname(os.path.abspath(given)))
    if not os.path.islink(given) or os.path.isdir(end) or inside(end, folder):
        return False
    _say(f"{given} is a link to {end}, which is left alone: name it to fix it")
    return True


def _diff(path: str, old: bytes, new: bytes) -> str:
    """Return the changes as a unified diff."""
    name = shown_path(path)
    before, after = (_lines(decode(data)) for data in (old, new))
    rows = difflib.unified_diff(before, after, name, name, lineterm="")
    return "".join(map(_row, rows))


def _row(row: str) -> str:
    """Return a line of a diff, with a note if the file's last line has no end."""
    if row.startswith(("---", "+++", "@@")) or row.endswith("\n"):
        return row.rstrip("\n") + "\n"
    return f"{row}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    """Return the lines with their ends; only newline characters count, as they do for `patch`."""
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


def checked(arguments: argparse.Namespace, target: CheckTarget) -> CheckResult:
    """Return the findings in the files.

    Results are stored in the user's folder for caches, or in the given one, but not behind a link
    that leads out of the settings' folder or the current one. Those of a text from standard input
    are not stored: it replaces a file only once.
    """
    stored = not arguments.no_cache and target.text is None
    cache = _cache(arguments.cache_dir, target.settings.root) if stored else None
    files = target.files()
    if arguments.infer:
        files.further = "pscdsl._src.discover.jax_inference", arguments.infer_seconds
    with ProgressBar() as bar:
        options = CheckOptions(cache, arguments.jobs, bar.update)
        return check_project(files, options)


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
    """A check, the treatment of its findings, and the exit code."""

    result: CheckResult
    triage: Triage
    fingerprints: Fingerprints
    sources: Sources
    has_baseline: bool
    exit_code: int
    fixed: str = ""
    """A sentence about the number of fixed findings."""
    strict: bool = False
    """Whether the summary names the obligations that are checked when kernels run."""


def render(
    name: str,
    outcome: Outcome,
    *,
    types: bool = False,
    unknown: bool = False,
    colour: bool = False,
    hide_suppressed: bool = False,
    statistics: bool = False,
) -> str:
    """Return the report in the format of this name."""
    result, found = outcome.result, outcome.triage.reported
    hidden = outcome.triage.hidden()
    rows = (_types(result) if types else "") + (_unknown(result) if unknown else "")
    of_jax = (result.of_jax, result.unknown_calls, result.annotated, result.inferred)
    facts = (found, result.kernels, result.files, hidden, *of_jax)
    last = f"{sentence(*facts, result.captured if outcome.strict else ())}\n"
    counts = terminal.render_statistics(found) if statistics else ""
    if name == "concise":
        return (counts if statistics else terminal.render_concise(found)) + rows
    if name == "text":
        shown = counts or terminal.render_text(found, outcome.sources, colour=colour)
        notes = "".join(f"{note}\n" for note in (outcome.fixed, fixable(found)) if note)
        return shown + rows + notes + last
    from pscdsl._src.checker.report import machine_readable  # which most checks do without

    if name == "github":
        return machine_readable.render_github(found) + rows + last
    if name == "json":
        return machine_readable.render_json(*facts, result.captured, counted=statistics)
    results = [machine_readable.SarifResult(*each) for each in _number(outcome, hide_suppressed)]
    return machine_readable.render_sarif(
        results,
        outcome.sources,
        version=version(),
        exit_code=outcome.exit_code,
        kernels=result.kernels,
    )


def _number(outcome: Outcome, hide_suppressed: bool) -> Iterator[tuple[Diagnostic, str, str, str]]:
    """Yield all findings with fingerprints, their suppression, and whether they are new.

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
    for each in result.inferred:
        if each.typing:
            place = f"{printable_path(each.path)}:{each.line}:{each.column}"
            rows.append(printable(f"{place}: {each.typing}") + "\n")
    for function in result.annotated:
        if function.is_proven and (function.tried or function.outside):
            place = f"{printable_path(function.path)}:{function.line}:{function.column}"
            chosen = f" with {function.tried}" if function.tried else ""
            outside = f" but for calls of {', '.join(function.outside)}" if function.outside else ""
            rows.append(printable(f"{place}: {function.name} is right{chosen}{outside}") + "\n")
    return "".join(rows)


def _unknown(result: CheckResult) -> str:
    """Return a row for each call and each function that cannot be followed."""
    rows: list[tuple[UnknownCall | Annotated | Inferred, str, str]] = []
    tried = {(each.path, each.line) for each in result.inferred}
    rows.extend((each, each.called, CAUSES[each.cause]) for each in result.unknown_calls)
    untried = (each for each in result.annotated if (each.path, each.line) not in tried)
    rows.extend((each, each.name, each.unknown) for each in untried if each.unknown)
    rows.extend((each, each.name, each.unknown) for each in result.inferred if each.unknown)
    rows.sort(key=lambda row: (*in_order(row[0].path), row[0].line, row[0].column))
    shown = (
        f"{printable_path(each.path)}:{each.line}:{each.column}: `{name}` is not followed: {why}"
        for each, name, why in rows
    )
    return "".join(printable(row) + "\n" for row in dict.fromkeys(shown))


def run(arguments: argparse.Namespace) -> int:
    """Check, report, and say by the exit code whether there were findings."""
    if arguments.watch:
        from pscdsl._src.cli.watching import watch  # which most checks do without

        return watch(lambda: once(arguments), lambda: _find_watched(arguments))
    return once(arguments)


def once(arguments: argparse.Namespace) -> int:
    """Run one check, and return it with its report."""
    target = _target(arguments)
    settings, selection = target.settings, target.selection
    writing = arguments.write_baseline is not None
    known = Baseline() if writing or not settings.baseline else _baseline(settings.baseline)
    if arguments.paths == [INPUT]:
        target = replace(target, text=standard_input(target.paths[0]))
    fixed = ""
    report = sys.stdout
    if arguments.fix or arguments.diff:

        def wanted(found: Sequence[Diagnostic], texts: Mapping[str, str]) -> Sequence[Diagnostic]:
            prints = Fingerprints(Sources({**target.texts(), **texts}))
            return triage(found, (), selection, known, (), prints).reported

        write = not arguments.diff and target.text is None
        made = fix(target, wanted, unsafe=arguments.unsafe_fixes, write=write)
        if arguments.diff:
            for name, diff in made.diffs.items():
                show(name, diff)
            found = triage(
                *(made.result.diagnostics, made.result.suppressed, selection, known),
                *(made.result.checked(), Fingerprints(Sources(target.texts()))),
            )
            failed = found.fails(strict=settings.strict)
            if failed and not made.diffs:
                others = fixable(found.reported)
                _say(f"no fix applies{f': {others}' if others else ''}; see `pscdsl check`")
            return int(failed or bool(made.diffs))
        result, fixed = made.result, made.summary
        if target.text is not None:
            new = made.contents.get(target.paths[0], target.text)
            write_text(new)
            target, report = replace(target, text=new), sys.stderr
        if arguments.infer:
            result = replace(result, inferred=checked(arguments, target).inferred)
    else:
        result = checked(arguments, target)
    sources = Sources(target.texts())
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
    nothing = settings.strict and not (result.kernels or result.of_jax)
    if nothing:
        _say("there is no kernel to check, which --strict does not accept")
    code = int(sorted_out.fails(strict=settings.strict) or stale or nothing)
    entries = bool(known.entries)
    outcome = Outcome(
        *(result, sorted_out, fingerprints, sources, entries, code, fixed), strict=settings.strict
    )
    shown = render(
        settings.format,
        outcome,
        types=arguments.show_types,
        unknown=arguments.show_unknown,
        colour=wants_colour(arguments, report),
        hide_suppressed=arguments.hide_suppressed,
        statistics=arguments.statistics,
    )
    report.write(shown)
    return code


_APART = {
    "--watch": ("--fix", "--diff", "--write-baseline", "`-`", "--format json", "--format sarif"),
    "--statistics": ("--diff", "--write-baseline", "--format sarif", "--format github"),
}
"""Options, and others that have no meaning with them."""


def _require_together(arguments: argparse.Namespace, settings: Settings) -> None:
    """Refuse options that do not go together."""
    given = {
        "--fix": arguments.fix,
        "--diff": arguments.diff,
        "--write-baseline": arguments.write_baseline is not None,
        "`-`": INPUT in arguments.paths,
        f"--format {settings.format}": True,
    }
    for option, others in _APART.items():
        for other in others:
            if getattr(arguments, option[2:]) and given.get(other):
                raise Unusable(f"{option} does not go with {other}")
    if arguments.unsafe_fixes and not (arguments.fix or arguments.diff):
        raise Unusable("--unsafe-fixes goes with --fix or --diff")
    if INPUT in arguments.paths and len(arguments.paths) > 1:
        raise Unusable("`-` is standard input, beside which no other path is checked")
    if arguments.stdin_filename is not None and arguments.paths != [INPUT]:
        raise Unusable("--stdin-filename goes with the path `-`")


def _target(arguments: argparse.Namespace) -> CheckTarget:
    """Return the files to check; standard input has not been read yet."""
    settings = _settings(arguments)
    _require_together(arguments, settings)
    select, extend, ignore = map(
        _codes, (arguments.select, arguments.extend_select, arguments.ignore)
    )
    selection = settings.selection(Layer(select or None, extend, ignore))
    typed, paths = _paths(arguments, settings)
    return CheckTarget(settings, selection, typed, paths, _exclusion(arguments, settings, paths))


def _find_watched(arguments: argparse.Namespace) -> Watched:
    """Return the files that a check depends on."""
    from pscdsl._src.cli.watching import Watched  # loaded by now

    target = _target(arguments)
    files = target.files()
    of_settings = [arguments.config] if arguments.config else possible_files(os.curdir)
    others = {*files.all(), *of_settings, *filter(None, [target.settings.baseline])}
    folders = {*files.roots, *map(os.path.dirname, files.all())}
    return Watched(tuple(target.paths), target.excluded, frozenset(others), frozenset(folders))


def _settings(arguments: argparse.Namespace) -> Settings:
    """Return the settings of the project, overridden by the command line."""
    try:
        if arguments.config:
            found = read_settings(admitted(arguments.config, [os.getcwd()]))
        else:
            found = find_settings(os.path.dirname(arguments.stdin_filename or "") or os.curdir)
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
    """Return the files and folders to check, as they were named and as resolved.

    A typed path may lead anywhere; a path in the settings must not lead out of their folder.
    """
    if arguments.paths == [INPUT]:
        name = STANDARD_INPUT if arguments.stdin_filename is None else arguments.stdin_filename
        end = admitted(name, [settings.root, os.getcwd()])
        if os.path.isdir(end):
            raise Unusable(f"--stdin-filename names a file, and `{name}` is a folder")
        return [name], [end]
    given = [str(Path(path)) for path in arguments.paths]
    own = [os.path.join(settings.root, path) for path in settings.paths]
    paths = given or own or [os.curdir]
    for path in paths:
        if not os.path.exists(path):
            raise Unusable(f"no such file or folder: {path}")
    return paths, [admitted(path, [settings.root, os.getcwd()]) for path in paths]


def _exclusion(
    arguments: argparse.Namespace, settings: Settings, paths: list[str]
) -> Callable[[str], bool]:
    """Return a test for files to leave out; files given by name stay unless that is forced."""
    named = {resolved(path) for path in paths if not os.path.isdir(path)}
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
