"""The project as plain Python: without the decorators of compilers, and with its own callers."""

from __future__ import annotations

import ast
import copy
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pscdsl._src.frontend.modules.files import Files, python_files
from pscdsl._src.frontend.modules.scope import Project, StaticModule
from pscdsl._src.frontend.text.source import FunctionStatement, Source
from pscdsl._src.support.clock import thread_time
from pscdsl._src.support.paths import Refused, inside, real
from pscdsl.typing.diagnostics import Failure

COMPILERS = frozenset({"njit", "jit"})
"""Decorators that compile a function without changing its meaning."""
MAX_FILES = 5_000
MAX_SECONDS = 2.0
"""The most seconds of processor time to list the files."""
MAX_CALLERS = 12
"""Files that are followed for the calls in them."""


class PlainProject(Project):
    """A project whose functions have no decorators of compilers, and loop over plain ranges."""

    def at(self, path: str) -> StaticModule:
        """Return the module of a file; raise a Failure if it is not Python."""
        found = self.by_path.get(path)
        return self._made(path, plain(self.files.source(path))) if found is None else found


def plain(source: Source) -> Source:
    """Return a module without the marks for compilers; nodes keep their places."""
    if not re.search(r"\b(?:njit|jit|prange)\b", source.text):
        return source
    tree = copy.deepcopy(source.tree)
    imported = set(_imported(tree))
    for node in ast.walk(tree):
        if isinstance(node, FunctionStatement):
            node.decorator_list = [
                each for each in node.decorator_list if not is_compiler(each, imported)
            ]
        for name, child in ast.iter_fields(node):
            if isinstance(child, ast.Attribute) and is_prange(child, imported):
                plain_range = ast.copy_location(ast.Name("range", ast.Load()), child)
                setattr(node, name, plain_range)
            elif isinstance(child, ast.Name) and is_prange(child, imported):
                child.id = "range"
    return Source(source.path, source.text, tree)


def is_compiler(decorator: ast.expr, imported: set[str]) -> bool:
    """Return whether a decorator is `@njit`, `@numba.jit(nopython=True)` or similar."""
    head = decorator.func if isinstance(decorator, ast.Call) else decorator
    return _last(head, imported) in COMPILERS


def layout(decorator: ast.expr, imported: set[str]) -> list[tuple[str, ...]] | None:
    """Return the sizes that `@guvectorize(…, "(n),()->(n)")` gives parameters; None for others."""
    if not isinstance(decorator, ast.Call) or _last(decorator.func, imported) != "guvectorize":
        return None
    texts = [n.value for n in decorator.args if isinstance(n, ast.Constant)]
    text = next((each for each in texts if isinstance(each, str) and "->" in each), "")
    groups = re.findall(r"\(([\w\s,]*)\)", text)
    return [tuple(re.findall(r"\w+", each)) for each in groups]


def is_prange(node: ast.expr, imported: set[str]) -> bool:
    """Return whether an expression is `numba.prange`."""
    return _last(node, imported) == "prange"


def compilers_of(source: Source) -> set[str]:
    """Return the names that a module imports from others, by which `is_compiler` knows them."""
    return set(_imported(source.tree))


def _last(node: ast.expr, imported: set[str]) -> str:
    """Return the name of something imported, without its module."""
    if isinstance(node, ast.Name) and node.id in imported:
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.attr if node.value.id in imported else ""
    return ""


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name.split(".")[0]


# The functions of a module, also those in classes and in other functions.


@dataclass(frozen=True)
class PlainFunction:
    """A function, its qualified name, and the reason why it may not be examined."""

    name: str
    node: FunctionStatement
    captured: tuple[str, ...] = ()
    """The names of the functions around it that it reads."""
    nested: bool = False


def places(source: Source) -> Iterator[PlainFunction]:
    """Yield the functions of a module in order, without methods of instances and overloads."""
    yield from _below(source.tree.body, "", ())


def _below(
    body: Sequence[ast.stmt], prefix: str, around: tuple[FunctionStatement, ...]
) -> Iterator[PlainFunction]:
    for node in body:
        if isinstance(node, FunctionStatement):
            if _is_overload(node):
                continue
            captured = tuple(dict.fromkeys(_captured_names(node, around)))
            yield PlainFunction(prefix + node.name, node, captured, bool(around))
            yield from _below(node.body, f"{prefix}{node.name}.", (*around, node))
        elif isinstance(node, ast.ClassDef):
            static = [n for n in node.body if isinstance(n, FunctionStatement) and is_static(n)]
            yield from _below(static, f"{prefix}{node.name}.", around)
        else:
            for name in ("body", "orelse", "finalbody"):
                yield from _below(getattr(node, name, []), prefix, around)
            for handler in getattr(node, "handlers", []):
                yield from _below(handler.body, prefix, around)


def is_static(node: FunctionStatement) -> bool:
    """Return whether a function of a class is a static method."""
    return any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)


def _is_overload(node: FunctionStatement) -> bool:
    return any(
        getattr(each, "attr", getattr(each, "id", "")) == "overload" for each in node.decorator_list
    )


def _captured_names(
    node: FunctionStatement, around: tuple[FunctionStatement, ...]
) -> Iterator[str]:
    own = _bound(node)
    outside = set[str]().union(*map(_bound, around))
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and inner.id in outside and inner.id not in own:
            yield inner.id


def _bound(node: FunctionStatement) -> set[str]:
    """Return the names that a function binds."""
    found = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
    waiting: list[ast.AST] = [*node.body]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            found.add(inner.id)
        elif isinstance(inner, FunctionStatement | ast.ClassDef):
            found.add(inner.name)
            continue
        elif isinstance(inner, ast.Import | ast.ImportFrom):
            found.update(a.asname or a.name.split(".")[0] for a in inner.names)
        waiting.extend(ast.iter_child_nodes(inner))
    return found


# The files of a project that may call functions, and the places that name them.


@dataclass(frozen=True)
class Neighbours:
    """The Python files below the folders of a check."""

    paths: tuple[str, ...]
    whole: bool
    """Whether the list is complete."""


def neighbours(files: Files) -> Neighbours:
    """Return the Python files below the folders of a check, within bounds."""
    found: dict[str, None] = dict.fromkeys(files.given)
    end = thread_time() + MAX_SECONDS
    for bound in files.bounds:
        try:
            for path in python_files([bound], lambda _: False):
                resolved = real(path)
                if resolved is not None and path.endswith(".py") and inside(resolved, bound):
                    found[resolved] = None
                if len(found) > MAX_FILES or thread_time() > end:
                    return Neighbours(tuple(found), False)
        except Refused:
            return Neighbours(tuple(found), False)
    return Neighbours(tuple(found), True)


def callers(files: Files, path: str, names: Sequence[str], every: Sequence[str]) -> list[str]:
    """Return the files that may call functions of a file: itself first, then its tests."""
    stem = os.path.splitext(os.path.basename(path))[0]
    word = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b") if names else None
    ranked: list[tuple[int, int, str]] = []
    for other in every:
        if other == path or word is None:
            continue
        text = files.searched(other)
        if count := len(word.findall(text)):
            base = os.path.basename(other)
            test = "test" in base or os.sep + "tests" + os.sep in other
            ranked.append((-(2 * test + (stem in base)), -count, other))
    return [path, *(other for _, _, other in sorted(ranked))][: MAX_CALLERS + 1]


def module_of(project: Project, path: str) -> StaticModule | None:
    """Return the module of a file; None if it is not Python."""
    try:
        return project.at(path)
    except Failure:
        return None


@dataclass(frozen=True)
class Mention:
    """A place that names a function."""

    path: str
    line: int
    called: bool
    """Whether the function is called there, instead of passed on."""
    around: tuple[FunctionStatement, ...]
    """The functions that contain the place."""
    method: bool
    """Whether the outermost of them is a method."""


def uses(source: Source, name: str, own: bool, stem: str) -> Iterator[Mention]:
    """Yield the places at which a module names a function; `own` if it is the function's module.

    It may be another function of that name: this must not miss one. `stem` is the module's name.
    """
    names = {name} if own else set(_aliases(source.tree, name))
    modules = own or re.search(rf"\b{re.escape(stem)}\b", source.text) is not None
    called: set[int] = set()

    def visit(
        node: ast.AST, around: tuple[FunctionStatement, ...], method: bool
    ) -> Iterator[Mention]:
        if isinstance(node, ast.Call):
            called.add(id(node.func))
        if isinstance(node, ast.Name):
            named = isinstance(node.ctx, ast.Load) and node.id in names
            if named and not any(node.id in _bound(each) for each in around):
                yield Mention(source.path, node.lineno, id(node) in called, around, method)
        elif isinstance(node, ast.Attribute) and node.attr == name and modules:
            if not _is_library(node.value):
                yield Mention(source.path, node.lineno, id(node) in called, around, method)
        inside = (*around, node) if isinstance(node, FunctionStatement) else around
        method = method or (isinstance(node, ast.ClassDef) and not around)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inside, method)

    if names or modules:
        yield from visit(source.tree, (), False)


def _aliases(tree: ast.Module, name: str) -> Iterator[str]:
    """Yield the names by which a module may have imported a function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name in (name, "*"):
                    yield alias.asname or name


def _is_library(node: ast.expr) -> bool:
    """Return whether an expression is a module of NumPy under one of its usual names."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in ("np", "numpy", "math")
