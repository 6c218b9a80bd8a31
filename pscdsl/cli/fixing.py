"""`pscdsl check --fix` and `--diff`: files are read, fixed in memory, and written or compared."""

from __future__ import annotations

import difflib
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pscdsl.frontend.check import CheckResult, check_paths
from pscdsl.frontend.files import files_below, python_files
from pscdsl.frontend.fixes.applying import Fixed, Wanted, fix_all
from pscdsl.report.sources import decode, shown_path


@dataclass(frozen=True)
class Outcome:
    """What became of a check with fixes."""

    result: CheckResult
    """What is found afterwards."""
    diff: str
    """What was changed, or would be."""
    summary: str
    """How many findings were fixed."""


def fix(
    paths: Sequence[str],
    excluded: Callable[[str], bool],
    wanted: Wanted,
    *,
    unsafe: bool,
    write: bool,
) -> Outcome:
    """Fix what is wanted; files that cannot be written stay as they are, and are named."""
    files = files_below(paths, excluded)
    own = set(files.given)
    may_change = [path for path in _may_change(paths) if path in own]
    fixed = fix_all(files, may_change, wanted, unsafe=unsafe)
    diff = "".join(_diff(path, files.data(path), new) for path, new in fixed.contents.items())
    left = [
        path
        for path, new in fixed.contents.items()
        if write and not save(path, files.data(path), new)
    ]
    # Files that are left are as they were, and so is what is found in them.
    result = check_paths(paths, excluded) if left else fixed.result
    if not fixed.complete:
        _say("there is more to fix: run it again")
    return Outcome(result, diff, _sentence(fixed, left))


def _sentence(fixed: Fixed, left: Sequence[str]) -> str:
    made = [each for each in fixed.made if each.path not in left]
    files = {each.path for each in made}
    if not made:
        return ""
    findings = "1 finding" if len(made) == 1 else f"{len(made)} findings"
    return f"{findings} fixed in {'1 file' if len(files) == 1 else f'{len(files)} files'}"


def _say(message: str) -> None:
    print(f"pscdsl: {message}", file=sys.stderr)


def _may_change(paths: Sequence[str]) -> Iterator[str]:
    """The files that may be changed: not those that a link leads to from elsewhere."""
    for given in python_files(paths):
        real = os.path.realpath(given)
        folder = os.path.realpath(os.path.dirname(os.path.abspath(given)))
        if os.path.islink(given) and not real.startswith(os.path.join(folder, "")):
            _say(f"{given} is a link to {real}, which is left alone: name it to fix it")
        else:
            yield real


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
    name, temporary = shown_path(path), ""
    try:
        if Path(path).read_bytes() != old:
            _say(f"{name} is left alone: it was changed while it was checked")
            return False
        if not os.access(path, os.W_OK):
            raise PermissionError(None, "it may not be written")
        mode = stat.S_IMODE(os.stat(path).st_mode)
        handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".pscdsl-")
        with os.fdopen(handle, "wb") as stream:
            stream.write(new)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except OSError as error:
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)
        _say(f"{name} is left alone: {error.strerror or error}")
        return False
    return True
