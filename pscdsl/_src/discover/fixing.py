"""Writing discovered signatures into files: decorators, annotations, preconditions, imports.

A function is written only if a check of the file with it succeeds: signatures that hold separately
may fail together, since a function that a kernel calls behaves differently once it is a kernel.
Everything else in a file stays unchanged, letter by letter.
"""

from __future__ import annotations

import ast
import io
import os
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pscdsl._src.checker.check import deep_stack
from pscdsl._src.checker.fixing import check_each
from pscdsl._src.checker.results import CheckResult
from pscdsl._src.discover.plain import (
    Mention,
    compilers_of,
    is_compiler,
    is_prange,
    neighbours,
    places,
    uses,
)
from pscdsl._src.discover.usage import FunctionStatement
from pscdsl._src.discover.verdicts import FunctionVerdict
from pscdsl._src.frontend.fixes.place import Encoded, Replacement, Text, replaced
from pscdsl._src.frontend.modules.files import Files
from pscdsl._src.frontend.text.source import Source
from pscdsl.typing.diagnostics import Failure, Severity, Span

TOO_MANY = "may be used in more files than are looked at"
MAX_ATTEMPTS = 20
"""The most checks of the files, with fewer functions each time."""


@dataclass(frozen=True)
class Rewritten:
    """The result of writing."""

    contents: Mapping[str, bytes]
    """The files that changed, by real path."""
    written: tuple[str, ...] = ()
    """The path of each function that was written."""
    left: tuple[Left, ...] = ()
    """The functions that were not, because of where they are used."""


@dataclass(frozen=True)
class Left:
    """A function that is not written, and the use that prevents it."""

    verdict: FunctionVerdict
    path: str
    line: int
    why: str

    def __str__(self) -> str:
        return f"`{self.verdict.name}` is not written: {self.path}:{self.line} {self.why}"


def fix(files: Files, verdicts: Mapping[str, Sequence[FunctionVerdict]]) -> Rewritten:
    """Write the functions that are kernels into their files, as far as all of it is accepted.

    `verdicts` has them by the real paths of the files that may change.  A function is written only
    if every use of it in the project is a call that the definition is known to take.
    """
    encoded: dict[str, Encoded] = {}
    sources: dict[str, Source] = {}
    chosen: dict[str, list[FunctionVerdict]] = {}
    for path, found in verdicts.items():
        content = Encoded.of(files.data(path)) if path.endswith(".py") else None
        if content is None:
            continue
        encoded[path], sources[path] = content, files.source(path)
        chosen[path] = [each for each in found if _can_be_written(sources[path], each)]
    left: list[Left] = []
    with deep_stack():
        around = neighbours(files)
        every = around.paths
        if not around.whole:
            chosen = {path: [] for path in chosen}
            left += [Left(each, each.path, each.line, TOO_MANY) for each in _psc(verdicts)]
        before = check_each(files, files.given)
        for _ in range(MAX_ATTEMPTS):
            left += _drop_misused(files, every, chosen)
            contents: dict[str, bytes] = {}
            for path, each in chosen.items():
                if each:
                    text = with_definitions(sources[path], encoded[path].text, each)
                    contents[path] = encoded[path].bytes(text)
            if not contents:
                break
            try:
                after = check_each(files.changed(contents), files.given)
            except Failure:
                break
            wrong = {path: _wrong(after[path], each) for path, each in chosen.items()}
            if any(wrong.values()):
                for path, names in wrong.items():
                    chosen[path] = [each for each in chosen[path] if each.name not in names]
            elif all(_no_worse(before[path], after[path]) for path in after):
                written = tuple([path for path, of in chosen.items() for _ in of])
                return Rewritten(contents, written, tuple(left))
            else:  # an earlier kernel is none together with these
                chosen = {path: [] for path in chosen}
    return Rewritten({}, (), tuple(left))


def _wrong(result: CheckResult, verdicts: Sequence[FunctionVerdict]) -> set[str]:
    """Return the functions that are no kernels in the changed file."""
    right = {each.name for each in result.kernels if each.status == "ok"}
    return {each.name for each in verdicts} - right


def _no_worse(before: CheckResult, after: CheckResult) -> bool:
    """Return whether there are no new errors."""
    return _errors(after) <= _errors(before)


def _errors(result: CheckResult) -> int:
    return sum(each.severity is Severity.ERROR for each in result.diagnostics)


def _psc(verdicts: Mapping[str, Sequence[FunctionVerdict]]) -> Iterator[FunctionVerdict]:
    return (each for found in verdicts.values() for each in found if each.status == "psc")


def _drop_misused(
    files: Files, every: Sequence[str], chosen: dict[str, list[FunctionVerdict]]
) -> Iterator[Left]:
    """Take from the chosen functions those that are used in ways that may not fit."""
    again = True
    while again:
        again = False
        kernels = {
            (files.source(path).path, each.line) for path, of in chosen.items() for each in of
        }
        for path, verdicts in chosen.items():
            for each in verdicts:
                left = _misuse(files, every, path, each, kernels)
                if left is not None:
                    chosen[path] = [other for other in chosen[path] if other is not each]
                    again = True
                    yield left


def _misuse(
    files: Files,
    every: Sequence[str],
    path: str,
    verdict: FunctionVerdict,
    kernels: set[tuple[str, int]],
) -> Left | None:
    """Return a use that the function's definition may refuse; None if there is none."""
    for call in verdict.violated:
        return Left(verdict, call.path, call.line, "calls it in a way that the definition refuses")
    for source, use in _uses(files, every, path, verdict.name.rpartition(".")[2]):
        if {(source.path, each.lineno) for each in use.around} & kernels:
            continue  # the check sees it
        imported = compilers_of(source)
        decorators = [d for each in use.around for d in each.decorator_list]
        if any(is_compiler(each, imported) for each in decorators):
            return Left(verdict, use.path, use.line, "uses it in a function that is compiled")
        if not use.called:
            return Left(verdict, use.path, use.line, "passes it on")
        if (use.path, use.line) not in verdict.followed:
            if not use.around or not _is_unused(files, every, use):
                return Left(verdict, use.path, use.line, "calls it with what is not known here")
    return None


def _uses(
    files: Files, every: Sequence[str], path: str, name: str
) -> Iterator[tuple[Source, Mention]]:
    """Yield the places at which the files of a project name a function of one of them."""
    stem = os.path.splitext(os.path.basename(path))[0]
    for other in every:
        if name not in files.searched(other):
            continue
        try:
            source = files.source(other)
        except Failure:
            continue
        for use in uses(source, name, other == path, stem):
            yield source, use


def _is_unused(files: Files, every: Sequence[str], use: Mention) -> bool:
    """Return whether a use is in a function with required arguments and without callers."""
    function = use.around[0]
    required = len(function.args.posonlyargs) + len(function.args.args)
    if required <= len(function.args.defaults) or function.name.startswith("test") or use.method:
        return False
    path = next((each for each in every if files.source(each).path == use.path), "")
    return not any(True for _ in _uses(files, every, path, function.name))


def _can_be_written(source: Source, verdict: FunctionVerdict) -> bool:
    """Return whether a function is outermost, without decorators, its body on separate lines."""
    if verdict.status != "psc" or verdict.written is None:
        return False
    node = _function(source, verdict)
    if node is None or isinstance(node, ast.AsyncFunctionDef):
        return False
    imported = compilers_of(source)
    if not all(_is_static(each) or is_compiler(each, imported) for each in node.decorator_list):
        return False
    first = node.body[-1 if _has_docstring(node) else 0]
    return first.lineno > head_of(source, node)[1]


def _function(source: Source, verdict: FunctionVerdict) -> FunctionStatement | None:
    """Return the statement of a function; None if it is nested, or its name has other bindings."""
    every = [each for each in places(source) if each.name == verdict.name]
    if len(every) != 1 or every[0].nested or every[0].node.lineno != verdict.line:
        return None
    return every[0].node


def _is_static(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Name) and decorator.id == "staticmethod"


def _has_docstring(node: FunctionStatement) -> bool:
    first = node.body[0]
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)


# The edits of one file.


def with_definitions(source: Source, content: str, verdicts: Sequence[FunctionVerdict]) -> str:
    """Return a file's content with functions as the kernels that they were found to be."""
    text = Text(content)
    found = [*_imports(source, text, verdicts)]
    found += [each for verdict in verdicts for each in _edits(source, text, verdict)]
    return replaced(content, sorted(found, key=lambda each: (each.start, each.end)))


def _edits(source: Source, text: Text, verdict: FunctionVerdict) -> Iterator[Replacement]:
    """Yield the decorator, the annotations and the preconditions of one function."""
    node, written = _function(source, verdict), verdict.written
    assert node is not None
    assert written is not None
    yield _insert(text, node.lineno, 1, f"{_margin(source, node)}{written.decorator}\n")
    imported = compilers_of(source)
    for decorator in node.decorator_list:
        if not _is_static(decorator):
            start = text.offset(decorator.lineno, 1)
            yield Replacement(start, text.offset((decorator.end_lineno or 0) + 1, 1), "")
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name | ast.Attribute) and is_prange(inner, imported):
            yield Replacement(*_range(text, source.span(inner)), "range")
    spec = node.args
    positional = [*spec.posonlyargs, *spec.args]
    absent: list[ast.expr | None] = [None] * (len(positional) - len(spec.defaults))
    defaults = [*absent, *spec.defaults, *spec.kw_defaults]
    for parameter, default in zip([*positional, *spec.kwonlyargs], defaults, strict=True):
        declared = f"{parameter.arg}: {written.types[parameter.arg]}"
        start, end = _range(text, source.span(parameter))
        if default is not None:
            value, _ = _range(text, source.span(default))
            between = text.text[end:value]
            if between.strip() == "=":
                end, declared = value, f"{declared} = "
        yield Replacement(start, end, declared)
    if written.returns and node.returns is not None:
        yield Replacement(*_range(text, source.span(node.returns)), written.returns)
    elif written.returns:
        yield _insert(text, *head_of(source, node)[0], f" -> {written.returns}")
    last = node.body[0].end_lineno if _has_docstring(node) else head_of(source, node)[1]
    assert last is not None
    margin = _margin(source, node.body[-1])
    for each in written.preconditions:
        yield _insert(text, last + 1, 1, f"{margin}{each}\n")


def _margin(source: Source, node: ast.stmt) -> str:
    """Return the text before a statement on its line."""
    line = source.lines[node.lineno - 1]
    return line[: len(line) - len(line.lstrip())]


def _insert(text: Text, line: int, column: int, new: str) -> Replacement:
    place = text.offset(line, column)
    return Replacement(place, place, new.replace("\n", text.newline))


def _range(text: Text, span: Span) -> tuple[int, int]:
    return text.offset(span.line, span.column), text.offset(span.end_line, span.end_column)


def head_of(source: Source, node: FunctionStatement) -> tuple[tuple[int, int], int]:
    """Return the end of a function's parameters, and the line of the colon after them."""
    text = Text(source.text)
    rest = source.text[text.offset(node.lineno, 1) :]
    depth, end = 0, (node.lineno, 1)
    for token in tokenize.generate_tokens(io.StringIO(rest).readline):
        if token.type != tokenize.OP:
            continue
        depth += (token.string in "([{") - (token.string in ")]}")
        if token.string == ")" and not depth:
            end = node.lineno + token.end[0] - 1, token.end[1] + 1
        if token.string == ":" and not depth:
            return end, node.lineno + token.start[0] - 1
    raise AssertionError(node.name)


def _imports(
    source: Source, text: Text, verdicts: Sequence[FunctionVerdict]
) -> Iterator[Replacement]:
    """Yield the imports that the definitions need and the file lacks, after existing ones."""
    body = source.tree.body
    known = {
        (getattr(node, "module", None), alias.name, alias.asname or alias.name)
        for node in body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    plain: dict[str, None] = {}
    names: dict[str, dict[str, None]] = {}
    for verdict in verdicts:
        assert verdict.written is not None
        for statement in verdict.written.imports:
            (node,) = ast.parse(statement).body
            assert isinstance(node, ast.Import | ast.ImportFrom)
            module = getattr(node, "module", None)
            for alias in node.names:
                if (module, alias.name, alias.asname or alias.name) in known:
                    continue
                if module is None:
                    plain[statement] = None
                else:
                    names.setdefault(module, {})[alias.name] = None
    lines = [
        *(f"from {m} import {', '.join(sorted(n))}" for m, n in names.items() if m != "pscdsl"),
        *plain,
        *(f"from {m} import {', '.join(sorted(n))}" for m, n in names.items() if m == "pscdsl"),
    ]
    if not lines:
        return
    last = 0
    for node in body:
        documented = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not documented and not isinstance(node, ast.Import | ast.ImportFrom):
            break
        last = node.end_lineno or last
    new = "".join(f"{line}\n" for line in lines)
    if last:
        yield _insert(text, last + 1, 1, new)
    else:
        yield _insert(text, body[0].lineno, 1, f"{new}\n\n")
