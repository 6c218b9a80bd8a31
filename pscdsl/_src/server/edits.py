"""The files of a check after an edit, and the facts about other files that remain valid.

The writes of a file depend on its text and on the values of the names that it imports. The body of
a function does not affect the latter, unless it declares names global. So while edits change only
such bodies, the writes of the other files remain valid.

A kernel of the edited file is not checked again if all lines are unchanged except those of
functions that nothing mentions: then all that it has read is the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pscdsl._src.checker.result_store import Reads
from pscdsl._src.frontend.captures.resolution import SourceNames
from pscdsl._src.frontend.captures.writes import Writes
from pscdsl._src.frontend.modules.files import Files
from pscdsl._src.frontend.modules.kernels import MadeDefinition
from pscdsl._src.frontend.text.source import (
    FunctionStatement,
    Source,
    searchable,
    shown_path,
)
from pscdsl.typing.diagnostics import Failure

if TYPE_CHECKING:
    from pscdsl._src.checker.check import Held
    from pscdsl._src.server.workspace import Checked

_OUTER = re.compile(r"\b(?:global|nonlocal)\b")
_DYNAMIC = re.compile(
    r"\b(?:global|nonlocal|globals|vars|builtins|[sg]etattr|delattr|patch|__\w+__)\b"
)
"""Words with which a function may write names that its text does not show."""
_COMPUTED = re.compile(r"\b(?:globals|vars|getattr)\b")
"""Words with which a function may read names that its text does not show."""


class Edits:
    """The edits since the last files whose writes are known."""

    def __init__(self) -> None:
        self._base: Files | None = None
        self._since: set[str] = set()

    def changed(
        self, files: Files, contents: Mapping[str, bytes], reread: Sequence[str] = ()
    ) -> Files:
        """Return these files with other contents in some, and some reread from disk."""
        if "writes" in vars(files):
            self._base, self._since = files, set()
        self._since.update(contents, reread)
        made = files.changed(contents, reread)
        base = self._base
        if base is not None and _same_kernels(base, made):
            if all(_same_outline(base, made, path) for path in self._since):
                places = frozenset(map(shown_path, self._since))
                made.writes = _Kept(made, base.writes, places)
        return made


class _Kept(Writes):
    """The writes of files, those of files that were not edited as they are known."""

    def __init__(self, files: Files, before: Writes, edited: frozenset[str]) -> None:
        super().__init__(files)
        self.sources = _KeptSources(files, before.sources, edited)
        self._indices = {k: v for k, v in before._indices.items() if k not in edited}


class _KeptSources(SourceNames):
    def __init__(self, files: Files, before: SourceNames, edited: frozenset[str]) -> None:
        super().__init__(files)
        self._names = {k: v for k, v in before._names.items() if k not in edited}
        self.asked = {k: v for k, v in before.asked.items() if k not in edited}


def _same_kernels(base: Files, made: Files) -> bool:
    """Return whether calls of kernels are searched in both, or in neither."""
    return base.with_kernels == made.with_kernels


def _same_outline(base: Files, made: Files, path: str) -> bool:
    try:
        return _outline(base.source(path)) == _outline(made.source(path))
    except Failure:
        return False


def _outline(source: Source) -> list[str]:
    """Return the text of a module without the bodies of its functions, statement by statement."""
    found: list[str] = []
    rows = source.lines
    for statement in source.tree.body:
        first = min(
            [statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))]
        )
        last = statement.end_lineno or statement.lineno
        text = "\n".join(rows[first - 1 : last])
        if isinstance(statement, FunctionStatement) and not _OUTER.search(text):
            body = statement.body[0].lineno
            if body > statement.lineno:
                text = "\n".join(rows[first - 1 : body - 1])
        found.append(text)
    return found


# Kernels that an edit does not concern.


def unaffected(before: Checked, files: Files) -> dict[str, Held]:
    """Return the kernels of a file whose findings remain the same, by name."""
    try:
        old, new = before.files.source(before.path), files.source(before.path)
    except Failure:
        return {}
    names = None if type(old) is not Source else _edited(old, new)
    if names is None:
        return {}
    others = tuple(each for each in before.reads.contents if each[0] != before.path)
    if not replace(before.reads, contents=others).hold(files):
        return {}
    libraries = (question.partition(" ") for question, _ in before.reads.searches)
    if any(kind == "patches" and files.writes.patches(name) for kind, _, name in libraries):
        return {}  # its effect depends on all attributes of a file
    read = {path for path, _ in others}
    if any(not read.isdisjoint(files.mentioning(name)) for name in names):
        return {}
    found = {name: held for name, held in before.held if name not in names}
    if len({name for name, _ in before.held}) < len(before.held):
        return {}  # names are bound several times
    return {
        name: held
        for name, held in found.items()
        if not isinstance(held.definition, MadeDefinition)  # these are read again
    }


def both(reads: Reads, before: Reads) -> Reads:
    """Merge the reads of a check with those of an earlier one that still hold."""
    return Reads(
        tuple({**dict(before.contents), **dict(reads.contents)}.items()),
        tuple({**dict(before.answers), **dict(reads.answers)}.items()),
        tuple({each[0]: each for each in (*before.searches, *reads.searches)}.values()),
    )


def _edited(old: Source, new: Source) -> set[str] | None:
    """Return the only functions in which two texts differ, if nothing else mentions them."""
    before, after = [*_statements(old)], [*_statements(new)]
    if len(before) != len(after):
        return None
    edited: dict[str, str] = {}
    same: list[str] = []
    for (line, text, statement), (new_line, new_text, new_statement) in zip(
        before, after, strict=True
    ):
        if line != new_line:
            return None
        if text == new_text:
            same.append(text)
        elif (
            isinstance(statement, FunctionStatement)
            and isinstance(new_statement, FunctionStatement)
            and statement.name == new_statement.name
            and statement.name not in edited
            and not _DYNAMIC.search(f"{text}\n{new_text}")
        ):
            edited[statement.name] = f"{text}\n{new_text}"
        else:
            return None
    unchanged = searchable("\n".join(same))
    if edited and _COMPUTED.search(unchanged):
        return None
    for name in edited:
        others = "\n".join(searchable(text) for other, text in edited.items() if other != name)
        if re.search(rf"\b{re.escape(name)}\b", f"{unchanged}\n{others}"):
            return None
    return set(edited)


def _statements(source: Source) -> Iterator[tuple[int, str, object]]:
    """Yield the statements of a module, each with the lines above it that belong to none."""
    end = 0
    for statement in source.tree.body:
        last = statement.end_lineno or statement.lineno
        yield end, "\n".join(source.lines[end:last]), statement
        end = last
    yield end, "\n".join(source.lines[end:]), None
