"""`pscdsl check --fix` and `--diff`: files are read, fixed in memory, and written or compared."""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pscdsl._src.checker.check import CheckResult, check_paths
from pscdsl._src.checker.fixing import Fixed, Wanted, fix_all
from pscdsl._src.cli import say
from pscdsl._src.frontend.modules.files import files_below, python_files
from pscdsl._src.frontend.text.display import decode, is_command, printable, shown_path
from pscdsl._src.frontend.text.source import limit
from pscdsl._src.support.paths import Folder, NotAFile, inside, resolved


@dataclass(frozen=True)
class Outcome:
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
) -> Outcome:
    """Fix what is wanted; files that cannot be written stay as they are, and are named.

    `paths` are the ends of what was typed.
    """
    files = files_below(paths, excluded, settled=True)
    own = set(files.given)
    may_change = [path for path in _may_change(typed, paths, excluded) if path in own]
    fixed = fix_all(files, may_change, wanted, unsafe=unsafe)
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
    return Outcome(result, diffs, _sentence(fixed, left))


def _sentence(fixed: Fixed, left: Sequence[str]) -> str:
    made = [each for each in fixed.made if each.path not in left]
    files = {each.path for each in made}
    if not made:
        return ""
    findings = "1 finding" if len(made) == 1 else f"{len(made)} findings"
    return f"{findings} fixed in {'1 file' if len(files) == 1 else f'{len(files)} files'}"


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


def _may_change(
    typed: Sequence[str], paths: Sequence[str], excluded: Callable[[str], bool]
) -> Iterator[str]:
    """The files that may be changed: not those that a link leads to from elsewhere."""
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
