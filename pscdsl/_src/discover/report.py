"""The report of a discovery: definitions to take over and obstacles, as text or JSON."""

from __future__ import annotations

import ast
import json
import keyword
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from pscdsl._src.checker.report.machine_readable import finding_object
from pscdsl._src.checker.report.terminal import render_one
from pscdsl._src.discover.candidates import Candidate, Hint, owner
from pscdsl._src.discover.search import is_open
from pscdsl._src.discover.usage import FunctionStatement, Usage
from pscdsl._src.discover.widening import BATCH
from pscdsl._src.frontend.text.display import (
    Sources,
    in_order,
    printable,
    printable_json,
    printable_path,
    shown_path,
)
from pscdsl._src.frontend.text.source import Source
from pscdsl.typing.dims import Dim, Size, variable
from pscdsl.typing.dtypes import BOOL
from pscdsl.typing.signatures import (
    ArraySpec,
    OptionalSpec,
    RepeatedSpec,
    Spec,
    StaticSpec,
    TupleSpec,
    walk_paths,
)

if TYPE_CHECKING:
    from pscdsl._src.discover.verdicts import Discovery, FunctionVerdict


# A candidate as text: the decorated definition that can be put in place of the function's own.


# Names for the sizes of a signature: those in the code or its docstring, or letters.


LETTERS = "n m k d p q r s t u v w h l".split()
_RESERVED = frozenset({"min", "max", "batch", "_"})


def named(
    candidate: Candidate, usages: Mapping[str, Usage], hints: Mapping[str, Hint]
) -> Candidate:
    """Return the candidate with readable names of sizes."""
    sizes = [size for size in candidate.sizes() if owner(size)]
    taken = {name for name, _ in candidate.specs} | _RESERVED
    env: dict[str, Size] = {}
    for size in sizes:
        spoken = chain(_spoken_names(size, usages, hints), _letters())
        text = next(each for each in spoken if each not in taken and _usable(each))
        taken.add(text)
        env[size] = variable(text)
    return candidate.renamed(env)


def _spoken_names(
    size: str, usages: Mapping[str, Usage], hints: Mapping[str, Hint]
) -> Iterator[str]:
    """Yield the names of a size in code and docstring."""
    parameter, axis = owner(size), size.removeprefix(owner(size)).strip("_")
    if not axis.isdigit() or parameter not in usages:
        return
    index = int(axis)
    yield usages[parameter].names.get(index, "")
    dims = hints[parameter].dims if parameter in hints else None
    if dims is not None and index < len(dims):
        yield dims[index]


def _letters() -> Iterator[str]:
    yield from LETTERS
    number = 1
    while True:
        yield f"n{number}"
        number += 1


def _usable(text: str) -> bool:
    plain = text.isidentifier() and text.isascii() and not keyword.iskeyword(text)
    return plain and "__" not in text and not text.startswith("_")


@dataclass(frozen=True)
class WrittenSignature:
    """A signature as it is written in the source."""

    imports: tuple[str, ...]
    """The imports that the definition needs and the module lacks."""
    header: str
    """The decorator and the `def`."""
    preconditions: tuple[str, ...]
    """The `assert` statements to put before the body."""
    signature: str
    """Parameters and result in one line, as `check` shows them."""
    decorator: str
    types: Mapping[str, str]
    """The types of the parameters."""
    returns: str
    """The type of the result; empty if it is not declared."""

    @property
    def definition(self) -> str:
        """Decorator, `def` and preconditions."""
        return "\n".join(
            (self.header, *(f"    {precondition}" for precondition in self.preconditions))
        )


def written(
    source: Source,
    function: FunctionStatement,
    candidate: Candidate,
    result: Spec | None,
    bound: Set[str],
    decorated: bool = True,
) -> WrittenSignature:
    """Return a function's definition with a candidate's types; `bound` are the module's names."""
    spelling = _Spelling(bound | {name for name, _ in candidate.specs})
    types = {name: spelling.of(spec, candidate, name) for name, spec in candidate.specs}
    returns = "" if result is None else f" -> {spelling.of(result, candidate, '')}"
    inner = ", ".join(_parameters(source, function, types))
    writes = tuple(candidate.writes) if decorated else ()
    lines = [f"@{spelling.package}.kernel{_option(writes)}"] if decorated else []
    lines.append(f"def {function.name}({inner}){returns}:")
    shown = ", ".join(f"{name}: {text}" for name, text in types.items())
    return WrittenSignature(
        tuple(spelling.imports()) if decorated else (),
        "\n".join(lines),
        tuple(_preconditions(candidate)),
        f"({shown}){returns}" + (f" writes {', '.join(writes)}" if writes else ""),
        lines[0] if decorated else "",
        types,
        returns.removeprefix(" -> "),
    )


def _option(writes: tuple[str, ...]) -> str:
    """Return the option of the decorator that declares writes."""
    if not writes:
        return ""
    names = ", ".join(f'"{name}"' for name in writes)
    return f"(writes={names})" if len(writes) == 1 else f"(writes=({names}))"


class _Spelling:
    """Spells types in a module where some names are taken."""

    def __init__(self, bound: Set[str]) -> None:
        self.bound = bound
        self.package = "pscdsl" if "psc" in bound else "psc"
        self.used: dict[str, None] = {}
        self.literal = False

    def of(self, spec: Spec, candidate: Candidate, where: str) -> str:
        """Return a type as an annotation."""
        if isinstance(spec, ArraySpec):
            dims = " ".join(map(str, spec.dims))
            head = self.name("bool_" if spec.dtype is BOOL else spec.dtype.name)
            return f'{head}["{dims}"]' if dims else head
        if isinstance(spec, TupleSpec):
            return f"tuple[{', '.join(self.of(item, candidate, '') for item in spec.items)}]"
        if isinstance(spec, OptionalSpec):
            return f"{self.of(spec.item, candidate, '')} | None"
        if isinstance(spec, RepeatedSpec):
            return f"tuple[{self.of(spec.item, candidate, '')}, ...]"
        if isinstance(spec, StaticSpec) and spec.kind == "Callable":
            return "Callable"
        if isinstance(spec, StaticSpec):
            if is_open(spec, candidate, where):
                return f"{self.package}.Static[{spec.kind}]"
            self.literal = True
            samples = spec.samples or ()
            ordered = sorted(samples, key=repr) if spec.kind == "int" else samples
            values = ", ".join(map(_literal, ordered))
            return f"{self.package}.Static[Literal[{values}]]"
        return str(spec)

    def name(self, name: str) -> str:
        """Return a name of ours, without the package if the module has no other use for it."""
        if name in self.bound:
            return f"{self.package}.{name}"
        self.used[name] = None
        return name

    def imports(self) -> Iterator[str]:
        """Yield the statements that bind these names."""
        if self.literal:
            yield "from typing import Literal"
        yield "import pscdsl" + (" as psc" if self.package == "psc" else "")
        if self.used:
            yield f"from pscdsl import {', '.join(sorted(self.used, key=str.lower))}"


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) and value.isprintable() else repr(value)


def _parameters(
    source: Source, function: FunctionStatement, types: Mapping[str, str]
) -> Iterator[str]:
    """Yield the parameters with their types and defaults, and the marks between their kinds."""
    spec = function.args
    positional = [*spec.posonlyargs, *spec.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(spec.defaults))
    for index, (parameter, default) in enumerate(
        zip(positional, [*defaults, *spec.defaults], strict=True)
    ):
        yield _parameter(source, parameter, default, types)
        if index + 1 == len(spec.posonlyargs):
            yield "/"
    if spec.kwonlyargs:
        yield "*"
    for parameter, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
        yield _parameter(source, parameter, default, types)


def _parameter(
    source: Source, each: ast.arg, default: ast.expr | None, types: Mapping[str, str]
) -> str:
    value = "" if default is None else f" = {source.text_of(default)}"
    return f"{each.arg}: {types[each.arg]}{value}"


def _preconditions(candidate: Candidate) -> Iterator[str]:
    """Yield the facts as `assert` statements, sizes written as the code can."""
    spelling: dict[str, str] = {}
    for name, spec in candidate.specs:
        for where, part in walk_paths(spec, name):
            if isinstance(part, ArraySpec):
                for axis, dim in enumerate(part.dims):
                    if part.dims[0] == BATCH:
                        axis -= len(part.dims)
                    if isinstance(dim, Dim):
                        spelling.setdefault(str(dim), f"{where}.shape[{axis}]")
    for fact in candidate.facts:
        yield "assert " + re.sub(
            r"[A-Za-z_]\w*", lambda found: spelling.get(found[0], found[0]), str(fact)
        )


# The report of a discovery: definitions to take over and obstacles, as text or JSON.


# Common parts of all formats of a discovery: the shown verdicts, and their counts.


STATUSES = ("psc", "helper", "obstacle", "unknown")
_SHOWN = {
    "all": STATUSES,
    "psc": ("psc", "helper"),
    "obstacles": ("obstacle", "unknown"),
}


def selected(found: Discovery, select: str) -> list[FunctionVerdict]:
    """Return the verdicts to show, by place."""
    shown = [verdict for verdict in found.verdicts if verdict.status in _SHOWN[select]]
    return sorted(shown, key=lambda each: (in_order(each.path), each.line, each.column))


def counts(found: Discovery) -> dict[str, int]:
    """Count the functions of each status."""
    statuses = Counter[str](verdict.status for verdict in found.verdicts)
    return {status: statuses[status] for status in STATUSES}


def first_obstacles(found: Discovery) -> dict[str, int]:
    """Count the functions that each code stops first, the most frequent code first."""
    codes = Counter(
        verdict.findings[0].code
        for verdict in found.verdicts
        if verdict.status in _SHOWN["obstacles"] and verdict.findings
    )
    return dict(sorted(codes.items(), key=lambda each: (-each[1], each[0])))


# A discovery as one JSON object, for tools.


def render_json(found: Discovery, select: str = "all") -> str:
    """Return the object `{"functions": […], "diagnostics": […], "summary": {…}}`."""
    document = {
        "functions": [_function(each) for each in selected(found, select)],
        "diagnostics": [finding_object(problem) for problem in found.problems],
        "summary": {
            "files": found.files,
            "functions": len(found.verdicts),
            **counts(found),
            "kernels": found.kernels,
            "methods": found.methods,
            "first_obstacles": first_obstacles(found),
        },
    }
    return printable_json(json.dumps(document, indent=2)) + "\n"


def _function(verdict: FunctionVerdict) -> dict[str, object]:
    written = verdict.written
    findings = [finding_object(finding) for finding in verdict.findings]
    return {
        "name": verdict.name,
        "path": shown_path(verdict.path),
        "line": verdict.line,
        "column": verdict.column,
        "status": verdict.status,
        "signature": None if written is None else written.signature,
        "definition": None if written is None else written.definition,
        "preconditions": [] if written is None else list(written.preconditions),
        "imports": [] if written is None else list(written.imports),
        "also": list(verdict.also),
        "refused_values": [
            {
                "parameter": each.parameter,
                "value": repr(each.value),
                "diagnostic": finding_object(each.finding),
            }
            for each in verdict.refused
        ],
        "refused_calls": [{"path": c.path, "line": c.line} for c in verdict.violated],
        "obstacles": findings if written is None else [],
        "warnings": [] if written is None else findings,
    }


# A discovery for people: definitions to adopt, and the obstacles in other functions.


_TITLES = {
    "psc": "is PSC",
    "helper": "is PSC as a helper: it takes a function",
    "obstacle": "is not PSC",
    "unknown": "cannot be judged",
}
MOST_CALLS = 4
"""Calls that are listed with the definition that refuses them."""
_COLOURS = {"psc": "32", "helper": "32", "obstacle": "31", "unknown": "33"}


def render_text(found: Discovery, select: str = "all", *, colour: bool = False) -> str:
    """Return all verdicts with an empty line after each, then the number of each kind."""
    sources = Sources()
    blocks = [render_one(problem, sources, colour=colour) for problem in found.problems]
    blocks += ["\n".join(_verdict(v, sources, colour)) for v in selected(found, select)]
    body = "".join(f"{block}\n\n" for block in blocks)
    return body + "".join(f"{line}\n" for line in _summary(found))


def _verdict(verdict: FunctionVerdict, sources: Sources, colour: bool) -> Iterator[str]:
    title = _TITLES[verdict.status]
    if colour:
        title = f"\x1b[1;{_COLOURS[verdict.status]}m{title}\x1b[0m"
    place = f"{printable_path(verdict.path)}:{verdict.line}:{verdict.column}"
    yield printable(f"{place}: {verdict.name} ") + title
    if verdict.written is not None:
        yield from (f"    {printable(word)}" for word in verdict.written.definition.split("\n"))
        for each in verdict.also:
            yield printable(f"    # also {each}")
        for call in verdict.violated[:MOST_CALLS]:
            yield printable(f"    # refuses the call at {call.path}:{call.line}")
        for refused in verdict.refused:
            yield printable(f"    # not {refused}")
        for finding in verdict.findings:
            yield render_one(finding, sources, colour=colour)
        return
    for finding in verdict.findings[:1]:
        yield render_one(finding, sources, colour=colour)
    more = [each.code for each in verdict.findings[1:]]
    if more:
        yield f"   = note: {len(more)} more: {', '.join(dict.fromkeys(more))}"


def _summary(found: Discovery) -> Iterator[str]:
    total, numbers = len(found.verdicts), counts(found)
    files = f"{found.files} file{'' if found.files == 1 else 's'}"
    parts = [f"{numbers['psc']} PSC"]
    if numbers["helper"]:
        parts.append(f"{numbers['helper']} PSC as helpers")
    parts += [f"{numbers['obstacle']} not PSC", f"{numbers['unknown']} unknown"]
    functions = f"{total} function{'' if total == 1 else 's'}"
    yield f"{functions} in {files}: {', '.join(parts)}"
    obstacles = first_obstacles(found)
    if obstacles:
        yield "first obstacles: " + ", ".join(f"{code} {n}" for code, n in obstacles.items())
    kernels = "kernel already" if found.kernels == 1 else "kernels already"
    left = [(kernels, found.kernels), ("inside a class", found.methods)]
    texts = [f"{number} {what}" for what, number in left if number]
    if texts:
        yield f"not looked at: {', '.join(texts)}"
