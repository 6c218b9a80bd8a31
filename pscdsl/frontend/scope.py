"""Modules as written: names are looked up in the source and evaluated when they are needed.

Nothing is imported or run.  `pscdsl.frontend.loaded` is the counterpart for modules as loaded;
both give the same values for the same source.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pscdsl.builder import Builder
from pscdsl.frontend.assignment import assign
from pscdsl.frontend.captures import guard
from pscdsl.frontend.definitions import Definition
from pscdsl.frontend.expressions import closure, evaluate
from pscdsl.frontend.frames import Frame, Scope, Session
from pscdsl.frontend.functions import Closure
from pscdsl.frontend.known import builtin, known_module, known_names
from pscdsl.frontend.source import Source
from pscdsl.frontend.values import POISON, Applicable, External, Marker, Poison, StaticFunction
from pscdsl.meanings import MEANINGS
from pscdsl.typing.codes.language import BadArguments, NoSuchAttribute, UnknownName
from pscdsl.typing.diagnostics import Diagnostic, Failure

Binding = ast.stmt | ast.alias
_GUARDED: tuple[type[Any], ...] = (list, dict, bool, int, float, complex, np.ndarray)


@dataclass(frozen=True)
class ModuleValue:
    """A module of the project, used as a value."""

    name: str
    scope: StaticModule

    def lookup_attribute(self, name: str) -> Any:
        """`module.name`."""
        try:
            return self.scope.own(name)
        except KeyError:
            found = self.scope.project.module(f"{self.name}.{name}")
            if found is None:
                raise Failure(
                    NoSuchAttribute(owner=f"module `{self.name}`", attribute=name)
                ) from None
            return ModuleValue(f"{self.name}.{name}", found)


class Project:
    """The files that one check may read: those below its roots, and our own library."""

    def __init__(self, roots: tuple[str, ...] = ()) -> None:
        self.roots = roots
        self.modules: dict[str, StaticModule | None] = {}
        self.by_path: dict[str, StaticModule] = {}
        library = Path(__file__).resolve().parent.parent
        self.library = str((library / "stdlib").resolve())

    def add(self, source: Source, path: str | None) -> StaticModule:
        """A module from its source; with a path its imports are found."""
        name, root = module_name(path) if path is not None else ("__main__", "")
        if root and root not in self.roots:
            self.roots = (*self.roots, root)
        module = StaticModule(self, source, name, path)
        if path is not None:
            self.modules[name] = module
            self.by_path[os.path.realpath(path)] = module
        return module

    def module(self, name: str) -> StaticModule | None:
        """A module of the project by its full name; None if its source is not below the roots."""
        if name in self.modules:
            return self.modules[name]
        self.modules[name] = None
        for path in self._candidates(name):
            real = os.path.realpath(path)
            known = self.by_path.get(real)
            if known is not None:
                self.modules[name] = known
                return known
            if os.path.isfile(path) and self._inside(real):
                module = StaticModule(self, Source.read(path), name, path)
                self.modules[name] = self.by_path[real] = module
                return module
        return None

    def _candidates(self, name: str) -> Iterator[str]:
        parts = name.split(".")
        if parts[:2] == ["pscdsl", "stdlib"] and len(parts) > 2:
            yield os.path.join(self.library, *parts[2:]) + ".py"
            return
        for root in self.roots:
            stem = os.path.join(root, *parts)
            yield stem + ".py"
            yield os.path.join(stem, "__init__.py")

    def _inside(self, real: str) -> bool:
        allowed = [os.path.realpath(root) for root in self.roots] + [self.library]
        return any(real.startswith(root + os.sep) for root in allowed)


def module_name(path: str) -> tuple[str, str]:
    """The full name of a module's file, and the folder that its package lies in."""
    real = Path(os.path.realpath(path))
    library = Path(__file__).resolve().parent.parent / "stdlib"
    if real.parent == library.resolve():
        return f"pscdsl.stdlib.{real.stem}", str(real.parent)
    folder = real.parent
    parts = [] if real.stem == "__init__" else [real.stem]
    while (folder / "__init__.py").exists() and folder.parent != folder:
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts), str(folder)


class StaticModule:
    """The names of a module, from its source."""

    def __init__(self, project: Project, source: Source, module: str, path: str | None) -> None:
        self.project = project
        self.source = source
        self._module = module
        self.path = path
        self.is_package = path is not None and os.path.basename(path) == "__init__.py"
        self._bindings: dict[str, list[tuple[Binding, ast.stmt]]] | None = None
        self._values: dict[str, Any] = {}
        self._evaluating: set[str] = set()
        self.findings: list[Diagnostic] = []
        self._writes: dict[str, ast.AST] | None = None

    @property
    def module(self) -> str:
        """The module's name."""
        return self._module

    def bindings(self) -> dict[str, list[tuple[Binding, ast.stmt]]]:
        """The statements that bind each module-level name, in order."""
        if self._bindings is None:
            self._bindings = {}
            for name, binding, statement in self._scan(self.source.tree.body):
                self._bindings.setdefault(name, []).append((binding, statement))
        return self._bindings

    def _scan(self, body: list[ast.stmt]) -> Iterator[tuple[str, Binding, ast.stmt]]:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield node.name, node, node
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    for each in ast.walk(target):
                        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                            yield each.id, node, node
            elif isinstance(node, ast.AnnAssign | ast.AugAssign):
                if isinstance(node.target, ast.Name):
                    yield node.target.id, node, node
            elif isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    if alias.name == "*":
                        yield from self._star(node)
                    else:
                        yield alias.asname or alias.name.split(".")[0], alias, node
            elif isinstance(node, ast.If):
                taken = self._taken(node.test)
                if taken is not False:
                    yield from self._scan(node.body)
                if taken is not True:
                    yield from self._scan(node.orelse)
            elif isinstance(node, ast.Try):
                for handler in node.handlers:
                    yield from self._scan(handler.body)
                yield from self._scan(node.body)  # what is meant to work binds last
                yield from self._scan(node.orelse)
                yield from self._scan(node.finalbody)
            elif isinstance(node, ast.For | ast.While | ast.With):
                for each in ast.walk(node):
                    if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                        yield each.id, node, node

    def _taken(self, test: ast.expr) -> bool | None:
        """Whether a module-level branch is taken, where its text says so."""
        name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
        if name == "TYPE_CHECKING":
            return True  # what it imports is meant for readers of the source, as we are
        return None

    def _star(self, node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, Binding, ast.stmt]]:
        if isinstance(node, ast.ImportFrom):
            base = absolute(self, node)
            module = self.project.module(base) if known_module(base) is None else None
            names: Iterable[str] = known_names(base) if module is None else module.bindings()
            if module is not self:
                for name in names:
                    if not name.startswith("_"):
                        yield name, ast.alias(name), node

    def own(self, name: str) -> Any:
        """A name bound in this module; KeyError if there is none."""
        if name in self._values:
            return self._values[name]
        if name == "__name__":
            return self.module
        found = self.bindings().get(name)
        if not found:
            raise KeyError(name)
        if name in self._evaluating:
            raise Failure(UnknownName(name=name, unassigned=True))
        self._evaluating.add(name)
        try:
            value = self._evaluate(name, *found[-1])
        finally:
            self._evaluating.discard(name)
        if isinstance(value, _GUARDED):
            guard(self.source, name, value, self._known_elsewhere(name))
        self._values[name] = value
        return value

    def _known_elsewhere(self, name: str) -> Iterator[tuple[Source, str]]:
        """The other modules that were read and import a name of this one, with what it is there."""
        for other in list(self.project.by_path.values()):
            if other is self or name not in other.source.text:
                continue
            for alias, bindings in other.bindings().items():
                for binding, statement in bindings:
                    if not isinstance(binding, ast.alias):
                        continue
                    if isinstance(statement, ast.Import) and binding.name == self.module:
                        yield other.source, f"{alias}.{name}"
                    elif isinstance(statement, ast.ImportFrom):
                        base = absolute(other, statement)
                        if base == self.module and binding.name == name:
                            yield other.source, alias
                        elif f"{base}.{binding.name}" == self.module:
                            yield other.source, f"{alias}.{name}"

    def lookup(self, name: str) -> Any:
        """A name of this module or of Python itself."""
        try:
            return self.own(name)
        except KeyError:
            return builtin(name)

    def frame(self) -> Frame:
        """A frame in which module-level expressions are evaluated."""
        return Frame(Session(None), self.source, self)

    def _evaluate(self, name: str, binding: Binding, statement: ast.stmt) -> Any:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            assert isinstance(binding, ast.alias)
            return import_alias(self, statement, binding)
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            return self.function(statement)
        if isinstance(statement, ast.ClassDef):
            from pscdsl.frontend.classes import class_value

            return class_value(self.frame(), statement, self.module)
        frame = self.frame()
        if isinstance(statement, ast.Assign):
            value = evaluate(frame, statement.value)
            for target in statement.targets:
                if any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(target)):
                    assign(frame, target, value)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            assign(frame, statement.target, evaluate(frame, statement.value))
        else:
            return External(f"{self.module}.{name}")
        result = frame.names.get(name, POISON)
        if isinstance(result, Poison):
            # Not a constant that can be worked out from the source: whoever uses it is told so.
            found = tuple(d for d in frame.session.findings if d.code.startswith("PSC2"))
            return External(f"{self.module}.{name}", found)
        return result

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Any:
        """What a function statement binds: its decorators applied."""
        frame = self.frame()
        value: Any = closure(frame, node, node.name)
        for decorator in reversed(node.decorator_list):
            value = decorated(frame, decorator, value)
        return value


def decorated(frame: Frame, decorator: ast.expr, value: Any) -> Any:
    """What a decorator makes of a function."""
    function = evaluate(frame, decorator)
    if isinstance(function, Applicable) and not isinstance(function, External | Marker):
        try:
            return function.apply(frame.here(decorator), (value,), {})
        except Failure as failure:
            frame.session.report(failure.at(frame.span(decorator)))
    return External(frame.source.text_of(decorator), tuple(frame.session.findings))


def absolute(scope: StaticModule, node: ast.ImportFrom) -> str:
    """The full name of the module that `from … import` names."""
    if not node.level:
        return node.module or ""
    parts = scope.module.split(".")
    keep = len(parts) - node.level + (1 if scope.is_package else 0)
    return ".".join([*parts[: max(keep, 0)], *([node.module] if node.module else [])])


def import_alias(scope: StaticModule, node: ast.Import | ast.ImportFrom, alias: ast.alias) -> Any:
    """What one name of an import statement stands for."""
    if isinstance(node, ast.Import):
        name = alias.name if alias.asname else alias.name.split(".")[0]
        return module_value(scope.project, name)
    base = absolute(scope, node)
    known = known_module(base)
    if known is not None:
        from pscdsl.frontend.known import known_attribute

        try:
            return known_attribute(known, alias.name)
        except Failure:
            return External(f"{base}.{alias.name}")
    module = scope.project.module(base)
    if module is not None and module is not scope:
        try:
            return module.own(alias.name)
        except KeyError:
            pass
    inner = scope.project.module(f"{base}.{alias.name}")
    if inner is not None:
        return ModuleValue(f"{base}.{alias.name}", inner)
    if base == "pscdsl":
        return module_value(scope.project, f"pscdsl.{alias.name}")
    return External(f"{base}.{alias.name}")


def module_value(project: Project, name: str) -> Any:
    """A module as a value: known, of the project, or one of which nothing is known."""
    known = known_module(name)
    if known is not None:
        return known
    module = project.module(name)
    return External(name) if module is None else ModuleValue(name, module)


def imported(scope: Scope, node: ast.Import | ast.ImportFrom) -> dict[str, Any]:
    """The names that an import inside a function binds."""
    if not isinstance(scope, StaticModule):
        from pscdsl.frontend.loaded import imported_at_run_time

        return imported_at_run_time(scope, node)
    return {
        alias.asname or alias.name.split(".")[0]: import_alias(scope, node, alias)
        for alias in node.names
    }


def make_kernel(here: Any, function: Any = None, **options: Any) -> Any:
    """`@psc.kernel`."""
    if function is None:
        return StaticFunction("pscdsl.kernel", make_kernel)
    if options or not isinstance(function, Closure | Definition):
        problem = "takes one function, written in Python"
        raise Failure(BadArguments(function="psc.kernel", problem=problem))
    if isinstance(function, Closure) and not isinstance(here, Builder):
        return Definition(function)
    return function  # inside a kernel it is a helper that sees the kernel's values


MEANINGS["pscdsl.kernel"] = StaticFunction("pscdsl.kernel", make_kernel)
