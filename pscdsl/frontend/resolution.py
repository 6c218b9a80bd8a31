"""What a called expression may be, from the text alone: functions of the project, or names."""

from __future__ import annotations

import ast
import builtins
import functools
import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from pscdsl.frontend.source import Source
from pscdsl.frontend.uses import FunctionNode, ScopeNode, Uses, uses
from pscdsl.typing.diagnostics import Failure


class Module(Protocol):
    """A module of the project, as far as its text goes."""

    @property
    def source(self) -> Source:
        """Its text and tree; a Failure if it is not Python."""
        ...

    @property
    def text(self) -> str:
        """Its text alone."""
        ...

    @property
    def place(self) -> str:
        """The path by which findings name it."""
        ...

    @property
    def module(self) -> str:
        """Its full name."""
        ...

    @property
    def is_package(self) -> bool:
        """Whether it is the `__init__.py` of a package."""
        ...


Definition: TypeAlias = FunctionNode | ast.ClassDef


@dataclass(frozen=True, eq=False)
class Target:
    """A function or class of the project that may be called."""

    source: Source
    node: Definition
    offset: int = 0
    """How many of its first parameters are bound already: 1 for `self` and `cls`."""


@dataclass(frozen=True)
class Named:
    """A function that is known by its qualified name only: `numpy.exp`, `skimage.smooth`."""

    name: str


@dataclass(frozen=True)
class Method:
    """A method of an object that is not known."""

    name: str


@dataclass(frozen=True)
class Unknown:
    """Anything."""


Callee: TypeAlias = Target | Named | Method | Unknown
Calls: TypeAlias = tuple[tuple[Source, ast.Call], ...]
"""The calls through which a function was entered, innermost last."""
MAX_DEPTH = 12
WORD = re.compile(r"[^\W\d]\w*")


class Asked:
    """A module of the project; that it was looked into is written down."""

    def __init__(self, resolver: Resolver, module: Module) -> None:
        self._resolver = resolver
        self._module = module
        self.module = module.module
        self.place = module.place

    @property
    def source(self) -> Source:
        """Its tree; a Failure if it is not Python."""
        self._resolver.asked.add(f"file {self.place}")
        return self._module.source

    @property
    def text(self) -> str:
        """Its text alone."""
        self._resolver.asked.add(f"file {self.place}")
        return self._module.text

    @property
    def is_package(self) -> bool:
        """Whether it is the `__init__.py` of a package."""
        return self._module.is_package


class Resolver:
    """Finds what names and called expressions stand for in the files of a project."""

    def __init__(self, modules: Sequence[Module]) -> None:
        self._unasked = {each.place: each for each in modules}
        """For questions that are written down in another way."""
        self.modules = {place: Asked(self, each) for place, each in self._unasked.items()}
        self.by_name = {each.module: each for each in self.modules.values()}
        self.asked: set[str] = set()
        """The words that were searched for, and the files that were looked into."""
        self._kernels: dict[ast.AST, bool] = {}
        self._parsed: dict[str, bool] = {}
        self._callees: dict[tuple[ast.expr, Calls], tuple[tuple[Callee, ...], frozenset[str]]] = {}
        self._entered: set[ast.expr] = set()

    @contextmanager
    def asking(self) -> Generator[set[str]]:
        """What is asked inside, by itself; it counts outside, too."""
        outer, self.asked = self.asked, set()
        try:
            yield self.asked
        finally:
            outer |= self.asked  # in place: whoever is outside has it
            self.asked = outer

    @functools.cached_property
    def words(self) -> dict[str, list[Module]]:
        """The modules in whose text each word stands."""
        found: dict[str, list[Module]] = {}
        for module in self._unasked.values():
            for word in set(WORD.findall(module.text)):
                found.setdefault(word, []).append(module)
        return found

    def naming(self, *words: str) -> list[Asked]:
        """The modules in whose text one of some words stands."""
        self.asked.update(words)
        found = [each.place for each in self.texts_with(*words) if self._is_python(each)]
        return [self.modules[place] for place in found]

    def texts_with(self, *words: str) -> list[Module]:
        """The same, Python or not, when the answer is asked for in another way."""
        found = {each.place: each for word in words for each in self.words.get(word, ())}
        return list(found.values())

    def _is_python(self, module: Module) -> bool:
        found = self._parsed.get(module.place)
        if found is None:
            try:
                uses(module.source)
                found = True
            except Failure:
                found = False  # it cannot be run, and writes nothing
            self._parsed[module.place] = found
        return found

    def base_of(self, source: Source, node: ast.ImportFrom) -> str:
        """The full name of the module that `from … import` names."""
        module = self.modules.get(source.path)
        if not node.level or module is None:
            return node.module or ""
        parts = module.module.split(".")
        keep = len(parts) - node.level + (1 if module.is_package else 0)
        return ".".join([*parts[: max(keep, 0)], *([node.module] if node.module else [])])

    def imported(self, source: Source, scope: ScopeNode | None, name: str) -> str | None:
        """The qualified name that an import gives to a name in a scope."""
        index = uses(source)
        for node in index.imports:
            for alias in node.names:
                if alias.name == "*" or (alias.asname or alias.name.split(".")[0]) != name:
                    continue
                if index.owner(node, name) is not scope:
                    continue
                if isinstance(node, ast.ImportFrom):
                    return f"{self.base_of(source, node)}.{alias.name}"
                return alias.name if alias.asname else name
        return None

    def origins(self, source: Source, name: str) -> Iterator[tuple[Module, str]]:
        """Where in the project a module-level name is imported from."""
        for node in source.imports():
            for alias in node.names:
                base = self.base_of(source, node) if isinstance(node, ast.ImportFrom) else ""
                found: tuple[Module, str] | None = None
                if alias.name == "*" and base in self.by_name:
                    found = self.by_name[base], name
                elif base and (alias.asname or alias.name) == name:
                    found = self.project_name(f"{base}.{alias.name}")
                if found is not None and found[1]:
                    yield found

    def qualified(self, source: Source, node: ast.expr) -> str | None:
        """The qualified name of `a.b.c`, if `a` is imported or one of Python's builtins."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        index = uses(source)
        scope = index.owner(node, node.id)
        root = self.imported(source, scope, node.id)
        if root is None:
            if scope is not None or self._is_bound(index, node.id):
                return None
            root = self._starred(source, node.id) or f"builtins.{node.id}"
        return ".".join([root, *parts])

    def _starred(self, source: Source, name: str) -> str | None:
        """The qualified name of what `from … import *` may have bound."""
        if hasattr(builtins, name):
            return None
        for node in source.imports():
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                base = self.base_of(source, node)
                module = self.by_name.get(base)
                if module is None or name in module.text:
                    return f"{base}.{name}"
        return None

    def _is_bound(self, index: Uses, name: str) -> bool:
        if name in index.functions or name in index.classes:
            return True
        found = index.names.get(name, ())
        return any(isinstance(n.ctx, ast.Store) and index.owner(n, name) is None for n in found)

    def is_kernel(self, source: Source, node: Definition) -> bool:
        """Whether a function is a kernel by its decorators."""
        for each in () if isinstance(node, ast.Lambda) else node.decorator_list:
            head = each.func if isinstance(each, ast.Call) else each
            if self.qualified(source, head) == "pscdsl.kernel":
                return True
        return False

    def in_kernel(self, source: Source, node: ast.AST) -> bool:
        """Whether a node stands in the text of a kernel."""
        index = uses(source)
        function = index.function_of(node)
        while function is not None:
            found = self._kernels.get(function)
            if found is None:
                found = self._kernels[function] = self.is_kernel(source, function)
            if found:
                return True
            function = index.function_of(function)
        return False

    def project_name(self, qualified: str) -> tuple[Module, str] | None:
        """A module of the project and the rest of a qualified name."""
        parts = qualified.split(".")
        self.asked.add(f"module {parts[0]}")
        for count in range(len(parts), 0, -1):
            found = self.by_name.get(".".join(parts[:count]))
            if found is not None:
                return found, ".".join(parts[count:])
        return None

    def callees(self, source: Source, node: ast.expr, calls: Calls = ()) -> tuple[Callee, ...]:
        """What a called expression may be."""
        key = (node, calls)
        known = self._callees.get(key)
        if known is None:
            self._entered.clear()
            with self.asking() as asked:
                found = tuple(dict.fromkeys(self._callee(source, node, calls, 0)))
            known = self._callees[key] = found, frozenset(asked)
        self.asked |= known[1]
        return known[0]

    def _callee(self, source: Source, node: ast.expr, calls: Calls, depth: int) -> Iterator[Callee]:
        if node in self._entered:
            return  # looked into on another way
        self._entered.add(node)
        if depth > MAX_DEPTH:
            yield Unknown()
        elif isinstance(node, ast.Lambda):
            yield Target(source, node)
        elif isinstance(node, ast.Name):
            yield from self._named(source, node, calls, depth)
        elif isinstance(node, ast.Attribute):
            yield from self._attribute(source, node, depth)
        elif isinstance(node, ast.IfExp):
            yield from self._callee(source, node.body, calls, depth + 1)
            yield from self._callee(source, node.orelse, calls, depth + 1)
        elif isinstance(node, ast.Call):
            yield from self._made(source, node, calls, depth)
        else:
            yield Unknown()

    def _named(self, source: Source, node: ast.Name, calls: Calls, depth: int) -> Iterator[Callee]:
        qualified = self.qualified(source, node)
        if qualified is not None:
            yield from self._by_name(qualified, depth)
            return
        index = uses(source)
        name, scope = node.id, index.owner(node, node.id)
        found = False
        for target in self.definitions(source, scope, name, depth):
            found = True
            yield target
        for value in assigned(index, scope, name):
            found = True
            yield from self._callee(source, value, calls, depth + 1)
        if not found and isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for given_in, call in calls[-1:] or self.calls_of(source, scope):
                given = argument(scope, name, call) if isinstance(call, ast.Call) else None
                if given is not None:
                    found = True
                    yield from self._callee(given_in, given, calls[:-1], depth + 2)
        if not found:
            yield Unknown()

    def calls_of(self, source: Source, function: FunctionNode) -> Iterator[tuple[Source, ast.AST]]:
        """The expressions that have a function's result, as far as it is called by its name."""
        index = uses(source)
        names = [function.name] if not isinstance(function, ast.Lambda) else []
        if isinstance(function, ast.Lambda):
            parent = index.parents.get(function)
            for each in getattr(parent, "targets", ()):
                names += [each.id] if isinstance(each, ast.Name) else []
            if isinstance(parent, ast.Call):
                yield source, parent
        for name in names:
            for module in self.naming(name):
                other = uses(module.source)
                known_as = {name, *_renamed(other, name)}
                for each in known_as:
                    for node in (*other.names.get(each, ()), *other.attributes.get(each, ())):
                        parent = other.parents.get(node)
                        if isinstance(parent, ast.Call):
                            yield module.source, parent
                        elif isinstance(node, ast.Attribute) and index.class_of(function):
                            yield module.source, node  # a property

    def definitions(
        self, source: Source, scope: ScopeNode | None, name: str, depth: int = 0
    ) -> Iterator[Target]:
        """The functions and classes that a scope defines under a name."""
        index = uses(source)
        for function in index.functions.get(name, ()):
            if index.owner(function, name) is scope:
                yield Target(source, function)
                yield from self._decorators(source, function, depth)
        for each in index.classes.get(name, ()):
            if index.owner(each, name) is scope:
                yield Target(source, each)

    def _decorators(
        self, source: Source, function: ast.FunctionDef | ast.AsyncFunctionDef, depth: int
    ) -> Iterator[Target]:
        """The functions inside decorators of the project: one of them is what is called."""
        for decorator in function.decorator_list:
            head = decorator.func if isinstance(decorator, ast.Call) else decorator
            for each in self._callee(source, head, (), depth + 2):
                if isinstance(each, Target):
                    yield from nested(each)

    def _by_name(self, qualified: str, depth: int) -> Iterator[Callee]:
        if depth > MAX_DEPTH:  # modules that import a name from each other
            yield Unknown()
            return
        place = self.project_name(qualified)
        if place is None:
            yield Named(qualified)
            return
        module, rest = place
        self.asked.add(f"file {module.place}")
        name, _, member = rest.partition(".")
        found = False
        for target in self.definitions(module.source, None, name, depth):
            if member and isinstance(target.node, ast.ClassDef):
                for each in methods(target, member):
                    found = True
                    yield each
            elif not member:
                found = True
                yield target
        if found or not name:
            return
        again = self.imported(module.source, None, name)
        if again is not None:
            yield from self._by_name(f"{again}.{member}".rstrip("."), depth + 1)
            return
        for value in assigned(uses(module.source), None, name):
            found = True
            yield from self._callee(module.source, value, (), depth + 1)
        if not found:
            yield Method(member) if member else Unknown()

    def _attribute(self, source: Source, node: ast.Attribute, depth: int) -> Iterator[Callee]:
        qualified = self.qualified(source, node)
        if qualified is not None:
            yield from self._by_name(qualified, depth)
            return
        if isinstance(node.value, ast.Name):
            index = uses(source)
            scope = index.owner(node.value, node.value.id)
            found = False
            for target in self.definitions(source, scope, node.value.id, depth):
                if isinstance(target.node, ast.ClassDef):
                    for each in methods(target, node.attr):
                        found = True
                        yield each
            if found:
                return
        yield Method(node.attr)

    def _made(self, source: Source, node: ast.Call, calls: Calls, depth: int) -> Iterator[Callee]:
        """A function that another one returned: one of those that stand inside it."""
        for maker in self._callee(source, node.func, calls, depth + 1):
            if isinstance(maker, Target):
                if isinstance(maker.node, ast.ClassDef):
                    yield from methods(maker, "__call__", 1)
                else:
                    yield from nested(maker)
            elif isinstance(maker, Named) and maker.name == "functools.partial" and node.args:
                yield from self._callee(source, node.args[0], calls, depth + 1)
            else:
                yield Unknown()


def _renamed(index: Uses, name: str) -> Iterator[str]:
    for node in index.imports:
        for alias in node.names:
            if alias.name == name and alias.asname:
                yield alias.asname


def nested(target: Target) -> Iterator[Target]:
    """The functions that stand inside another one."""
    for each in ast.walk(target.node):
        if each is not target.node and isinstance(each, FunctionNode):
            yield Target(target.source, each)


def methods(target: Target, name: str, offset: int | None = None) -> Iterator[Target]:
    """The methods of a class that bear a name; `offset` unless they are called by the class."""
    for each in target.node.body if isinstance(target.node, ast.ClassDef) else ():
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name == name:
            bound = 1 if "classmethod" in _decorator_names(each) else 0
            if "staticmethod" in _decorator_names(each):
                yield Target(target.source, each, 0)
            else:
                yield Target(target.source, each, bound if offset is None else offset)


def _decorator_names(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    return {
        each.id if isinstance(each, ast.Name) else getattr(each, "attr", "")
        for each in node.decorator_list
    }


def is_static(node: FunctionNode) -> bool:
    """Whether a method has no bound first parameter."""
    return not isinstance(node, ast.Lambda) and "staticmethod" in _decorator_names(node)


def assigned(index: Uses, scope: ScopeNode | None, name: str) -> Iterator[ast.expr]:
    """The expressions that are assigned to a name of a scope, where the text shows one."""
    for node in index.names.get(name, ()):
        if isinstance(node.ctx, ast.Store) and index.owner(node, name) is scope:
            parent = index.parents.get(node)
            if isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr):
                if parent.value is not None:
                    yield parent.value


def argument(function: FunctionNode, name: str, call: ast.Call) -> ast.expr | None:
    """The expression that a call gives to a parameter, or its default."""
    spec = function.args
    positional = [p.arg for p in (*spec.posonlyargs, *spec.args)]
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if name in positional:
        index = positional.index(name)
        if index < len(call.args) and not any(
            isinstance(each, ast.Starred) for each in call.args[: index + 1]
        ):
            return call.args[index]
        from_end = index - len(positional) + len(spec.defaults)
        if from_end >= 0:
            return spec.defaults[from_end]
    for parameter, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
        if parameter.arg == name:
            return default
    return None
