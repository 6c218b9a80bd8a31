"""The files of a check after an edit: what is known of the other files is kept.

What a file writes is looked up by its own text and by what the names that it imports stand for.
The body of a function says nothing of the latter, unless it declares names global.  So while edits
change such bodies alone, what the other files write stays known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pscdsl._src.frontend.captures.resolution import Sources
from pscdsl._src.frontend.captures.writes import Writes
from pscdsl._src.frontend.modules.files import Files
from pscdsl._src.frontend.text.source import FunctionStatement, Source, shown_path
from pscdsl.typing.diagnostics import Failure

_OUTER = re.compile(r"\b(?:global|nonlocal)\b")


class Edits:
    """The edits since files of which it is known what they write."""

    def __init__(self) -> None:
        self._base: Files | None = None
        self._since: set[str] = set()

    def changed(
        self, files: Files, contents: Mapping[str, bytes], reread: Sequence[str] = ()
    ) -> Files:
        """The same files with other contents in some, and some as they are on disk now."""
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


class _KeptSources(Sources):
    def __init__(self, files: Files, before: Sources, edited: frozenset[str]) -> None:
        super().__init__(files)
        self._names = {k: v for k, v in before._names.items() if k not in edited}


def _same_kernels(base: Files, made: Files) -> bool:
    """Whether calls of kernels are looked at in both, or in none."""
    return bool(base.mentioning("writes")) == bool(made.mentioning("writes"))


def _same_outline(base: Files, made: Files, path: str) -> bool:
    try:
        return _outline(base.source(path)) == _outline(made.source(path))
    except Failure:
        return False


def _outline(source: Source) -> list[str]:
    """The text of a module without the bodies of its functions, statement by statement."""
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
