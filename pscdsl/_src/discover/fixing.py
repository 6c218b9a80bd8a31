"""What is found, written into the files: decorators, annotations, preconditions, imports.

A function is written only if the file with it is checked and bears it out: what is found alone may
not hold beside others, since a function that a kernel calls is another thing once it is a kernel.
All else in a file stays as it is, letter by letter.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pscdsl._src.checker.check import CheckResult, deep_stack
from pscdsl._src.checker.fixing import check_each
from pscdsl._src.discover.usage import FunctionStatement
from pscdsl._src.discover.verdicts import Verdict
from pscdsl._src.frontend.fixes.place import Encoded, Replacement, Text, replaced
from pscdsl._src.frontend.modules.files import Files
from pscdsl._src.frontend.text.source import Source
from pscdsl.typing.diagnostics import Failure, Severity, Span

MAX_ATTEMPTS = 20
"""How often the files are checked, with fewer functions each time."""


@dataclass(frozen=True)
class Fixed:
    """What came out."""

    contents: Mapping[str, bytes]
    """The files that changed, by real path."""
    written: tuple[str, ...] = ()
    """The path of each function that was written."""


def fix(files: Files, verdicts: Mapping[str, Sequence[Verdict]]) -> Fixed:
    """Write the functions that are kernels into their files, as far as all of it is accepted.

    `verdicts` has them by the real paths of the files that may change.
    """
    encoded: dict[str, Encoded] = {}
    sources: dict[str, Source] = {}
    chosen: dict[str, list[Verdict]] = {}
    for path, found in verdicts.items():
        content = Encoded.of(files.data(path)) if path.endswith(".py") else None
        if content is None:
            continue
        encoded[path], sources[path] = content, files.source(path)
        chosen[path] = [each for each in found if _can_be_written(sources[path], each)]
    with deep_stack():
        before = check_each(files, files.given)
        for _ in range(MAX_ATTEMPTS):
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
                return Fixed(contents, tuple([path for path, of in chosen.items() for _ in of]))
            else:  # what was a kernel before is none beside these
                chosen = {path: [] for path in chosen}
    return Fixed({})


def _wrong(result: CheckResult, verdicts: Sequence[Verdict]) -> set[str]:
    """The functions that are no kernels where they stand in their file."""
    right = {each.name for each in result.kernels if each.status == "ok"}
    return {each.name for each in verdicts} - right


def _no_worse(before: CheckResult, after: CheckResult) -> bool:
    """Whether there is no more that is wrong than there was."""
    return _errors(after) <= _errors(before)


def _errors(result: CheckResult) -> int:
    return sum(each.severity is Severity.ERROR for each in result.diagnostics)


def _can_be_written(source: Source, verdict: Verdict) -> bool:
    """Whether a function is one of its name, without decorators, and its body on its own lines."""
    if verdict.status != "psc" or verdict.written is None:
        return False
    nodes = _functions(source, verdict.name)
    if len(nodes) != 1 or nodes[0].decorator_list or isinstance(nodes[0], ast.AsyncFunctionDef):
        return False
    first = nodes[0].body[-1 if _documented(nodes[0]) else 0]
    return first.lineno > _head(source, nodes[0])[1]


def _functions(source: Source, name: str) -> list[FunctionStatement]:
    return [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, FunctionStatement) and node.name == name
    ]


def _documented(node: FunctionStatement) -> bool:
    first = node.body[0]
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)


# The edits of one file.


def with_definitions(source: Source, content: str, verdicts: Sequence[Verdict]) -> str:
    """A file's content with functions as the kernels that they were found to be."""
    text = Text(content)
    found = [*_imports(source, text, verdicts)]
    found += [each for verdict in verdicts for each in _edits(source, text, verdict)]
    return replaced(content, sorted(found, key=lambda each: (each.start, each.end)))


def _edits(source: Source, text: Text, verdict: Verdict) -> Iterator[Replacement]:
    """The decorator, the annotations and the preconditions of one function."""
    (node,) = _functions(source, verdict.name)
    written = verdict.written
    assert written is not None
    yield _inserted(text, node.lineno, 1, f"{written.decorator}\n")
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
        yield _inserted(text, *_head(source, node)[0], f" -> {written.returns}")
    last = node.body[0].end_lineno if _documented(node) else _head(source, node)[1]
    assert last is not None
    margin = " " * node.body[-1].col_offset
    for each in written.preconditions:
        yield _inserted(text, last + 1, 1, f"{margin}{each}\n")


def _inserted(text: Text, line: int, column: int, new: str) -> Replacement:
    place = text.offset(line, column)
    return Replacement(place, place, new.replace("\n", text.newline))


def _range(text: Text, span: Span) -> tuple[int, int]:
    return text.offset(span.line, span.column), text.offset(span.end_line, span.end_column)


def _head(source: Source, node: FunctionStatement) -> tuple[tuple[int, int], int]:
    """Where the parameters of a function end, and the line of the colon behind them."""
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


def _imports(source: Source, text: Text, verdicts: Sequence[Verdict]) -> Iterator[Replacement]:
    """The imports that the definitions need and the file does not have, after those it has."""
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
        yield _inserted(text, last + 1, 1, new)
    else:
        yield _inserted(text, body[0].lineno, 1, f"{new}\n\n")
