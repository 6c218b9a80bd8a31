"""Discovery over files and folders: a verdict for each function that is none of ours yet."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pscdsl._src.checker.check import deep_stack
from pscdsl._src.discover.functions import Verdict, examine
from pscdsl._src.discover.usage import FunctionStatement
from pscdsl._src.frontend.definitions import Definition
from pscdsl._src.frontend.folders import files_below
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.modules.files import Files
from pscdsl._src.frontend.modules.project import Project
from pscdsl._src.frontend.modules.scope import StaticModule
from pscdsl._src.frontend.text.source import Source
from pscdsl.typing.codes.limits import InternalError, UnknownFunction
from pscdsl.typing.diagnostics import Diagnostic, Failure


@dataclass(frozen=True)
class Discovery:
    """What was found out about files."""

    verdicts: tuple[Verdict, ...] = ()
    problems: tuple[Diagnostic, ...] = ()
    """Files that are no Python text."""
    files: int = 0
    kernels: int = 0
    """Functions that are kernels already."""
    methods: int = 0
    """Functions inside classes: these are not looked at."""


def discover_source(text: str, path: str) -> Discovery:
    """The functions of one module given as text."""
    with deep_stack():
        project = Project()
        try:
            source = Source(path, text)
        except Failure as failure:
            return Discovery(problems=failure.diagnostics, files=1)
        return discover_module(project.add(source, path if os.path.isfile(path) else None))


def discover_paths(paths: Sequence[Path | str]) -> Discovery:
    """The functions of files, and of the Python files and notebooks below folders."""
    files = files_below(paths)
    with deep_stack():
        found = [_discover_file(files, path) for path in files.given]
    return Discovery(
        tuple(verdict for each in found for verdict in each.verdicts),
        tuple(problem for each in found for problem in each.problems),
        len(found),
        sum(each.kernels for each in found),
        sum(each.methods for each in found),
    )


def _discover_file(files: Files, path: str) -> Discovery:
    try:
        return discover_module(Project(files=files).at(path))
    except Failure as failure:
        return Discovery(problems=failure.diagnostics, files=1)


def discover_module(module: StaticModule) -> Discovery:
    """The functions at the top of a module, in order."""
    verdicts: list[Verdict] = []
    kernels = 0
    for node in _functions(module):
        verdict = _verdict(module, node)
        if verdict is None:
            kernels += 1
        else:
            verdicts.append(verdict)
    return Discovery(tuple(verdicts), (), 1, kernels, _methods(module.source.tree))


def _functions(module: StaticModule) -> Iterator[FunctionStatement]:
    seen: set[int] = set()
    for bindings in module.bindings().values():
        for _, statement in bindings:
            if isinstance(statement, FunctionStatement) and id(statement) not in seen:
                seen.add(id(statement))
                yield statement


def _verdict(module: StaticModule, node: FunctionStatement) -> Verdict | None:
    """The verdict on a function; None if it is a kernel."""
    span = module.source.span(node)
    unknown = Verdict(node.name, span.path, span.line, span.column, "unknown")
    try:
        value = module.function(node)
        if isinstance(value, Definition):
            return None
        if not isinstance(value, Closure):
            decorator = node.decorator_list[0]
            name = module.source.text_of(decorator)
            finding = UnknownFunction(function=name, span=module.source.span(decorator))
            return replace(unknown, findings=(finding,))
        return examine(module, node, value)
    except Failure as failure:
        return replace(unknown, findings=failure.at(span.head(3)).diagnostics)
    except Exception as error:  # one function of ours to mend; the others are told all the same
        what = f"function `{node.name}`: {type(error).__name__}: {error}"
        return replace(unknown, findings=(InternalError(what=what, span=span.head(3)),))


def _methods(tree: ast.Module) -> int:
    return sum(
        isinstance(inner, FunctionStatement)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for inner in node.body
    )
