"""The selection of codes to report, by kinds of diagnostics and by patterns for paths."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from pscdsl._src.frontend.text.display import split_cell
from pscdsl._src.support.paths import resolved
from pscdsl.typing import diagnostics
from pscdsl.typing.codes.limits import KernelNotChecked
from pscdsl.typing.codes.projects import UnusedSuppression
from pscdsl.typing.diagnostics import Diagnostic, registered

# Every kind of diagnostic there is, for `explain`, `--select` and the tests.


def all_kinds() -> tuple[type[Diagnostic], ...]:
    """All kinds in order of their codes; imports every family."""
    folder = Path(diagnostics.__file__).with_name("codes")
    for module in pkgutil.iter_modules([str(folder)], "pscdsl.typing.codes."):
        importlib.import_module(module.name)
    return registered()


@cache
def all_codes() -> tuple[str, ...]:
    """The codes of all kinds, in order."""
    return tuple(kind.code for kind in all_kinds())


def is_known(code: str) -> bool:
    """Whether this is a code, a family (even one without codes), or the beginning of a code."""
    return code in _beginnings()


@cache
def _beginnings() -> frozenset[str]:
    families = (f"PSC{number}" for number in range(1, 10))
    return frozenset(code[:n] for code in (*all_codes(), *families) for n in range(1, 7))


# Patterns for paths: `*` and `?` within a name, `**` for folders, `[…]` for one character.
#
# Each becomes an expression that takes the first place where what stands between two `*` fits, and
# tries no other: that is enough, and the time grows with the length of the pattern times the
# path's.


LONGEST = 1_000
"""So many characters a pattern may have."""


class BadPattern(ValueError):
    """The pattern means nothing; the message says why."""


def matches(pattern: str, path: str) -> bool:
    """Whether a pattern means a path with `/` between names, or a folder above it.

    A pattern without `/` means a name anywhere; any other is meant from the root on.
    """
    return compiled(pattern).match(path) is not None


@lru_cache
def compiled(pattern: str) -> re.Pattern[str]:
    """The expression for a pattern; raises `BadPattern`."""
    if len(pattern) > LONGEST:
        raise BadPattern(f"is longer than {LONGEST} characters")
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    anywhere = "" if "/" in pattern.rstrip("/") else "(?:.*/)?"
    if parts and parts[-1] == "**":
        return re.compile(f"{anywhere}{_folders(parts[:-1])}.*\\Z", re.DOTALL)
    return re.compile(f"{anywhere}{_folders(parts[:-1])}{_last(parts)}(?:/.*)?\\Z", re.DOTALL)


def _last(parts: list[str]) -> str:
    return _name(parts[-1]) if parts else ""


def _folders(parts: list[str]) -> str:
    """The expression for some folders, with the `/` after each."""
    first, *others = _between(parts, "**")
    body = "".join(f"{_name(part)}/" for part in first)
    for index, group in enumerate(others):
        names = "".join(f"{_name(part)}/" for part in group)
        last = index == len(others) - 1  # what follows it may fit only further on
        body += f"(?:[^/]+/)*{names}" if last else f"(?>(?:[^/]+/)*?{names})"
    return body


def _between(parts: list[str], mark: str) -> Iterator[list[str]]:
    group: list[str] = []
    for part in parts:
        if part == mark:
            yield group
            group = []
        else:
            group.append(part)
    yield group


def _name(part: str) -> str:
    """The expression for one name of a path."""
    first, *others = re.split(r"\*+", part)
    body = _plain(first)
    for index, piece in enumerate(others):
        last = index == len(others) - 1
        body += f"[^/]*{_plain(piece)}" if last else f"(?>[^/]*?{_plain(piece)})"
    return body


def _plain(text: str) -> str:
    """The expression for text without `*`."""
    pieces = re.split(r"(\?|\[!?[^\]/]+\])", text)
    return "".join(_piece(piece) for piece in pieces)


def _piece(piece: str) -> str:
    if piece == "?":
        return "[^/]"
    if len(piece) > 2 and piece.startswith("[") and piece.endswith("]"):
        return _class(piece[1:-1])
    return re.escape(piece)


def _class(inside: str) -> str:
    """The expression for the characters between brackets; with `!` in front, for all others."""
    negated = len(inside) > 1 and inside.startswith("!")
    rest = inside[1:] if negated else inside
    ranges = ""
    while rest:
        first, last, rest = rest[0], rest[0], rest[1:]
        if len(rest) > 1 and rest[0] == "-":
            last, rest = rest[1], rest[2:]
        if last < first:
            raise BadPattern(f"has the range `{first}-{last}`, which is empty")
        ranges += f"{re.escape(first)}-{re.escape(last)}"
    return f"(?!/)[{'^' if negated else ''}{ranges}]"


# Which codes are reported, and where.


@dataclass(frozen=True, slots=True)
class Layer:
    """One place that says what is reported: the settings, or the command line."""

    select: tuple[str, ...] | None = None
    """Only these; what earlier layers say does not count then."""
    extend: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def decides(self, code: str) -> bool | None:
        """Whether a code is reported; the longer of two prefixes wins, and `ignore` at a tie."""
        chosen = _longest((*(self.select or ()), *self.extend), code)
        left_out = _longest(self.ignore, code)
        if chosen == left_out == 0:
            return None
        return chosen > left_out


@dataclass(frozen=True, slots=True)
class Selection:
    """The layers in order, the later ones on top; and what is left out in some files."""

    layers: tuple[Layer, ...] = ()
    per_file: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Patterns of paths, and the codes that are not reported there."""
    root: str = "."
    """The folder from which the patterns are meant."""
    strict: bool = False
    """Whether kernels that were not checked are reported unless they are left out by name."""

    def includes(self, code: str, path: str) -> bool:
        """Whether findings with this code are reported in this file."""
        chosen = True
        proof = self.strict and code == KernelNotChecked.code
        for layer in self.layers:
            if layer.select is not None and not proof:
                chosen = False
            decided = layer.decides(code)
            chosen = chosen if decided is None else decided
        file = split_cell(path)[0]
        return chosen and not any(
            code.startswith(codes) and matches(pattern, relative(file, self.root))
            for pattern, codes in self.per_file
        )

    def narrowed(self, finding: Diagnostic) -> Diagnostic | None:
        """The finding as it is reported, if it is.

        A suppression of codes that are not reported here is not reported as unused.
        """
        path = finding.span.path
        if not self.includes(finding.code, path):
            return None
        if isinstance(finding, UnusedSuppression) and finding.codes:
            codes = tuple(code for code in finding.codes if self._may_include(code, path))
            if not codes:
                return None
            others = finding.others or len(codes) < len(finding.codes)
            return finding.replaced(codes=codes, others=others)
        return finding

    def _may_include(self, prefix: str, path: str) -> bool:
        """Whether some code that begins so is reported."""
        codes = [code for code in all_codes() if code.startswith(prefix)]
        return any(self.includes(code, path) for code in codes or [prefix])


def relative(path: str, root: str) -> str:
    """A path as patterns see it: from the root, with `/`; absolute if it lies elsewhere."""
    real, base = resolved(path), resolved(root)
    inside = real == base or real.startswith(base.rstrip(os.sep) + os.sep)
    return (os.path.relpath(real, base) if inside else real).replace(os.sep, "/")


def _longest(prefixes: tuple[str, ...], code: str) -> int:
    return max((len(prefix) for prefix in prefixes if code.startswith(prefix)), default=0)
