"""Programs in Markdown, and what is expected of them.

A heading is a test, its `py` blocks are joined; a heading without code is a group.  Line numbers
are those of the Markdown file.  The first block under the top heading stands before every test
below it, unless it holds expectations of its own.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from pscdsl.typing.codes.limits import RevealedType
from pscdsl.typing.diagnostics import Diagnostic

_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*\s*$")
_FENCE = re.compile(r"(`{3,})\s*(\w*)\s*$")
_MARKER = re.compile(r"#\s*(?:error|warning|note|revealed):")
_FINDING = re.compile(
    r"#\s*(?P<severity>error|warning|note):"
    r"(?:\s*(?P<column>\d+))?\s*\[(?P<code>[A-Z]+\d+)\]"
    r'(?:\s*"(?P<text>[^"]*)")?'
)
_REVEALED = re.compile(r"#\s*revealed:\s*(?P<type>.*?)\s*(?=#|$)")


@dataclass(frozen=True)
class Block:
    """A fenced block; `line` is the 1-based line of its first line of content."""

    language: str
    line: int
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The content, each line with its end."""
        return "".join(f"{line}\n" for line in self.lines)


@dataclass(frozen=True)
class Program:
    """One test: the code under a heading, and the rendering that may stand beside it."""

    name: str
    line: int
    code: tuple[Block, ...]
    snapshot: Block | None = None
    prelude: tuple[Block, ...] = ()

    @property
    def text(self) -> str:
        """The source, every line at its place in the Markdown file."""
        rows: list[str] = []
        for block in (*self.prelude, *self.code):
            rows += [""] * (block.line - 1 - len(rows))
            rows += block.lines
        return "".join(f"{row}\n" for row in rows)


@dataclass(frozen=True)
class Finding:
    """An expected diagnostic."""

    severity: str
    code: str
    column: int | None
    text: str

    def fits(self, found: Diagnostic, column: int) -> bool:
        """Whether a diagnostic on the same line is the expected one."""
        return (
            self.severity == type(found).severity.value
            and self.code == found.code
            and self.column in (None, column)
            and self.text in f"{found.message()}\n{found.label()}"
        )


@dataclass
class Expectations:
    """What the comments of a program expect, by line."""

    findings: dict[int, list[Finding]] = field(
        default_factory=lambda: defaultdict[int, list[Finding]](list)
    )
    revealed: dict[int, list[str]] = field(
        default_factory=lambda: defaultdict[int, list[str]](list)
    )
    malformed: list[str] = field(default_factory=list[str])

    def __bool__(self) -> bool:
        return bool(self.findings or self.revealed or self.malformed)


def programs(text: str) -> list[Program]:
    """The tests of a Markdown file, in order."""
    sections = _sections(text)
    prelude: tuple[Block, ...] = ()
    if sections and sections[0].line and sections[0].code and len(sections) > 1:
        first, *others = sections[0].code
        if not expectations(first.lines, first.line):
            prelude = (first,)
            sections[0] = replace(sections[0], code=tuple(others), prelude=prelude)
    found = [section for section in sections if section.code]
    return [replace(section, prelude=prelude) for section in found]


def _sections(text: str) -> list[Program]:
    titles: list[tuple[int, str]] = []
    sections: list[Program] = []
    rows = text.splitlines()
    index = 0
    while index < len(rows):
        row = rows[index]
        if heading := _HEADING.match(row):
            level = len(heading[1])
            titles = [*((n, title) for n, title in titles if n < level), (level, heading[2])]
            name = " - ".join(title for _, title in titles)
            sections.append(Program(name, index + 1, ()))
        elif fence := _FENCE.match(row):
            end = next((i for i in range(index + 1, len(rows)) if rows[i] == fence[1]), len(rows))
            block = Block(fence[2], index + 2, tuple(rows[index + 1 : end]))
            if sections:
                sections[-1] = _with_block(sections[-1], block)
            index = end
        index += 1
    return sections


def _with_block(section: Program, block: Block) -> Program:
    if block.language == "py":
        return replace(section, code=(*section.code, block))
    if block.language == "snapshot":
        return replace(section, snapshot=block)
    return section


def expectations(lines: Iterable[str], first: int = 1) -> Expectations:
    """What the comments expect; one on a line of its own is meant for the next line of code."""
    found = Expectations()
    waiting: list[str] = []
    for number, line in enumerate(lines, first):
        marker = _MARKER.search(line)
        if marker and not line[: marker.start()].strip():
            waiting.append(line)
            continue
        if not line.strip():
            continue
        for text in [*waiting, *([line[marker.start() :]] if marker else [])]:
            _read(text, number, found)
        waiting = []
    found.malformed += [f"no code follows `{text.strip()}`" for text in waiting]
    return found


def _read(text: str, number: int, into: Expectations) -> None:
    for start in (match.start() for match in _MARKER.finditer(text)):
        if finding := _FINDING.match(text, start):
            column = finding["column"]
            into.findings[number].append(
                Finding(
                    finding["severity"],
                    finding["code"],
                    int(column) if column else None,
                    finding["text"] or "",
                )
            )
        elif revealed := _REVEALED.match(text, start):
            into.revealed[number].append(revealed["type"])
        else:
            into.malformed.append(f"line {number}: malformed expectation: {text[start:].strip()}")


def differences(
    program: Program,
    path: str,
    diagnostics: Sequence[Diagnostic],
) -> list[str]:
    """What was expected and did not come, and what came and was not expected, one line each."""
    wanted = expectations(program.text.splitlines())
    problems = [(0, text) for text in wanted.malformed]
    revealed = [
        (each.span.line, type_)
        for each in diagnostics
        if isinstance(each, RevealedType)
        for type_ in each.types
    ]
    for diagnostic in diagnostics:
        if isinstance(diagnostic, RevealedType):
            continue
        place = next((s for s in diagnostic.span.frames() if s.path == path), diagnostic.span)
        here = wanted.findings[place.line] if place.path == path else []
        match = next((f for f in here if f.fits(diagnostic, place.column)), None)
        if match is None:
            kind = f"{type(diagnostic).severity.value}[{diagnostic.code}]"
            where = f"column {place.column}" if place.path == path else str(place)
            problems.append((place.line, f"unexpected {kind} at {where}: {diagnostic.message()}"))
        else:
            here.remove(match)
    for line, types in _grouped(revealed).items():
        for type_ in types:
            if type_ in wanted.revealed[line]:
                wanted.revealed[line].remove(type_)
            else:
                problems.append((line, f"unexpected type revealed: {type_}"))
    for line, findings in wanted.findings.items():
        problems += [(line, f"expected {f.code} was not reported") for f in findings]
    for line, types in wanted.revealed.items():
        problems += [(line, f"expected type was not revealed: {type_}") for type_ in types]
    return [f"line {line}: {text}" if line else text for line, text in sorted(problems)]


def _grouped(revealed: Iterable[tuple[int, str]]) -> dict[int, list[str]]:
    grouped: dict[int, list[str]] = defaultdict(list)
    for line, type_ in revealed:
        grouped[line].append(type_)
    return grouped


def with_snapshot(text: str, program: Program, rendering: str) -> str:
    """The Markdown text with another content in the snapshot block of a program."""
    assert program.snapshot is not None
    rows = text.splitlines()
    start = program.snapshot.line - 1
    rows[start : start + len(program.snapshot.lines)] = rendering.splitlines()
    return "".join(f"{row}\n" for row in rows)
