"""Scopes of a JAX program, what its names mean, and the full names of what it imports."""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pscdsl._src.frontend.modules.jax_programs import ROOTS, imports_of
from pscdsl._src.frontend.text.source import (
    FunctionNode,
    FunctionStatement,
    Source,
    blocks,
    children,
    parameters,
    targets,
)

if TYPE_CHECKING:
    from pscdsl._src.dialects.jax.modules import Modules


@dataclass(eq=False)
class Scope:
    """A module, a function or a lambda: its names, and the scope around it."""

    program: Program
    node: ast.Module | FunctionNode
    parent: Scope | None = None
    owner: Class | None = None
    """The class, if it is a method."""
    names: frozenset[str] = frozenset()
    once: frozenset[str] = frozenset()
    """The names that one statement of this scope binds, or several imports of the same."""
    bound: tuple[str, ...] = ()
    """The names that its statements bind, each as often as it is bound."""
    outer: frozenset[str] = frozenset()
    """The names of scopes around it that it may bind."""
    rebound: set[str] = field(default_factory=set[str])
    """Its names that functions in it may bind."""
    functions: dict[str, Scope] = field(default_factory=dict[str, "Scope"])
    """The functions that one statement of this scope defines, and nothing else binds."""
    classes: dict[str, Class] = field(default_factory=dict[str, "Class"])
    imports: dict[str, str] = field(default_factory=dict[str, str])
    stars: list[str] = field(default_factory=list[str])
    """The modules of which all names are imported."""
    values: dict[str, ast.expr] = field(default_factory=dict[str, ast.expr])
    """The expressions of names that one plain assignment of this scope binds."""

    @property
    def title(self) -> str:
        """The name of the function."""
        return getattr(self.node, "name", "<lambda>")

    def chain(self) -> Iterator[Scope]:
        """Yield this scope and those around it."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def owner_of(self, name: str) -> Scope | None:
        """Return the scope that binds a name; None for a builtin."""
        return next((scope for scope in self.chain() if name in scope.names), None)

    def is_inside(self, other: Scope) -> bool:
        """Return whether this scope is the other one, or in it."""
        return any(scope is other for scope in self.chain())


@dataclass(eq=False)
class Class:
    """A class of the project."""

    scope: Scope
    """The scope that defines it."""
    node: ast.ClassDef
    methods: dict[str, Scope] = field(default_factory=dict[str, Scope])

    def method(self, name: str) -> Scope | None:
        """Return a method of the class, or of a base class in the project."""
        pending: list[Class] = [self]
        seen = {*pending}
        while pending:
            cls = pending.pop()
            if name in cls.methods:
                return cls.methods[name]
            bases = [cls.scope.program.meaning(cls.scope, base) for base in cls.node.bases]
            for base in reversed(bases):
                if isinstance(base, Class) and base not in seen:
                    seen.add(base)
                    pending.append(base)
        return None


@dataclass(frozen=True)
class Variable:
    """A name of a module that is bound to some value."""

    scope: Scope
    name: str


@dataclass(eq=False)
class Program:
    """The scopes of a file."""

    source: Source
    modules: Modules | None = None
    """The other files of the project."""
    path: str | None = None
    scopes: dict[ast.AST, Scope] = field(default_factory=dict[ast.AST, Scope])
    classes: dict[ast.ClassDef, Class] = field(default_factory=dict[ast.ClassDef, Class])

    @property
    def module(self) -> Scope:
        """The scope of the module itself."""
        return self.scopes[self.source.tree]

    def meaning(self, scope: Scope, node: ast.expr) -> Meaning | None:
        """Return what an expression certainly names: of the project, or of a library."""
        match node:
            case ast.Lambda():
                return self.scopes.get(node)
            case ast.Name(id=name):
                owner = scope.owner_of(name)
                return self.builtin(name) if owner is None else self.bound(owner, name)
            case ast.Attribute(value=value, attr=attr):
                if isinstance(value, ast.Name) and (method := self.method_scope(scope, value.id)):
                    return method.owner.method(attr) if method.owner else None
                base = self.meaning(scope, value)
                if isinstance(base, Program):
                    return base.member(attr)
                return canonical(f"{base}.{attr}") if isinstance(base, str) else None
            case _:
                return None

    def bound(self, scope: Scope, name: str) -> Meaning | None:
        """Return what a name of a scope means."""
        if name in scope.functions:
            return scope.functions[name]
        if name in scope.classes:
            return scope.classes[name]
        if name in scope.imports:
            full = scope.imports[name]
            return self.imported(full) if name in scope.once else full
        return Variable(scope, name) if name in scope.names else None

    def builtin(self, name: str) -> Meaning:
        """Return what a name means that no scope binds."""
        for star in reversed(self.module.stars):
            found = self.imported(star)
            if isinstance(found, Program):
                if not name.startswith("_") and (member := found.member(name)) is not None:
                    return member
            elif len(self.module.stars) == 1 and not hasattr(builtins, name):
                return canonical(f"{found}.{name}")
        return f"builtins.{name}"

    def imported(self, full: str) -> Meaning:
        """Return what an imported name means."""
        found = None if self.modules is None else self.modules.imported(self, full)
        return full if found is None else found

    def member(self, name: str) -> Meaning | None:
        """Return what an attribute of this module means."""
        found = self.bound(self.module, name)
        if found is None and self.modules is not None:
            found = self.modules.submodule(self, name)
        if found is None and self.module.stars and name not in self.module.names:
            found = self.builtin(name)
            return None if found == f"builtins.{name}" else found
        return found

    def function(self, scope: Scope, node: ast.expr) -> Scope | None:
        """Return the function that an expression certainly names."""
        found = self.meaning(scope, node)
        return found if isinstance(found, Scope) else None

    def method_scope(self, scope: Scope, name: str) -> Scope | None:
        """Return the method whose first parameter has this name here."""
        owner = scope.owner_of(name)
        if owner is None or owner.owner is None or not isinstance(owner.node, FunctionStatement):
            return None
        decorators = {ast.unparse(each) for each in owner.node.decorator_list}
        given = parameters(owner.node)
        is_own = given and given[0] == name and "staticmethod" not in decorators
        return owner if is_own and "classmethod" not in decorators else None

    def full_name(self, scope: Scope, node: ast.expr) -> str:
        """Return the full name of something imported, `jax.random.normal`; empty for others."""
        found = self.meaning(scope, node)
        return found if isinstance(found, str) else ""


Meaning = Scope | Class | Program | Variable | str
"""A function, a class, a module or a variable of the project, or the full name of another one."""


_ALIASES = {
    "jax.tree.map": "jax.tree_util.tree_map",
    "jax.tree_map": "jax.tree_util.tree_map",
    "jax.checkpoint": "jax.remat",
    "jax.ad_checkpoint.checkpoint": "jax.remat",
    "jax.experimental.io_callback": "jax.io_callback",
}


def canonical(name: str) -> str:
    """Return one name for the functions that JAX exports under several."""
    return _ALIASES.get(name, name)


def read_program(
    source: Source, modules: Modules | None = None, path: str | None = None
) -> Program:
    """Return the scopes of a file."""
    program = Program(source, modules, path)
    program.scopes[source.tree] = Scope(program, source.tree)
    _fill(program, program.module)
    return program


def _fill(program: Program, scope: Scope) -> None:
    """Find the names of a scope, and the scopes in it."""
    node = scope.node
    body: Sequence[ast.stmt] = [ast.Expr(node.body)] if isinstance(node, ast.Lambda) else node.body
    scope.bound = tuple(each for statement in body for each in targets(statement))
    bound = Counter(scope.bound)
    outer: set[str] = set()
    alike = Counter[tuple[str, str]]()
    for each in _own(body):
        if isinstance(each, ast.Global | ast.Nonlocal):
            outer.update(each.names)
        elif isinstance(each, ast.Import | ast.ImportFrom):
            imports = {name: canonical(full) for name, full in imports_of(each)}
            if "*" in imports:
                scope.stars.append(imports.pop("*").removesuffix("*").removesuffix("."))
            scope.imports.update(imports)
            alike.update(imports.items())
        elif isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
            scope.values[each.targets[0].id] = each.value
        elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and each.value:
            scope.values[each.target.id] = each.value
    given = [] if isinstance(node, ast.Module) else parameters(node)
    scope.names = frozenset({*bound, *given} - outer)
    scope.outer = frozenset(outer & bound.keys())
    for name in scope.outer:
        owner = scope.parent.owner_of(name) if scope.parent else None
        if owner is not None:
            owner.rebound.add(name)
    once = {name for name, times in bound.items() if times == 1}
    once |= {name for (name, _), times in alike.items() if times == bound[name]}
    scope.once = frozenset(once - set(given))
    scope.values = {name: value for name, value in scope.values.items() if name in scope.once}
    for nested, node_of_class in _nested(body):
        cls: Class | None = None
        if node_of_class is not None:
            cls = program.classes.setdefault(node_of_class, Class(scope, node_of_class))
        inner = program.scopes[nested] = Scope(program, nested, scope, cls)
        if isinstance(nested, FunctionStatement):
            if cls is not None:
                cls.methods[nested.name] = inner
            elif nested.name in scope.once:
                scope.functions[nested.name] = inner
        _fill(program, inner)
    for each in _own(body):
        if isinstance(each, ast.ClassDef):
            cls = program.classes.setdefault(each, Class(scope, each))
            if each.name in scope.once:
                scope.classes[each.name] = cls


def _own(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements and those in them, without those of functions and classes."""
    for node in body:
        yield node
        if not isinstance(node, FunctionStatement | ast.ClassDef):
            for block in blocks(node):
                yield from _own(block)


def _nested(body: Sequence[ast.stmt]) -> Iterator[tuple[FunctionNode, ast.ClassDef | None]]:
    """Yield the functions directly in a body, and methods with their classes."""
    pending: list[tuple[ast.AST, ast.ClassDef | None]] = [(each, None) for each in reversed(body)]
    while pending:
        each, cls = pending.pop()
        if isinstance(each, FunctionNode):
            yield each, cls if isinstance(each, FunctionStatement) else None
            outside: list[ast.AST] = [each.args]
            if isinstance(each, FunctionStatement):
                outside += each.decorator_list
            pending += [(inner, None) for inner in outside]
        elif isinstance(each, ast.ClassDef):
            pending += [(inner, each) for inner in reversed(each.body)]
        else:
            keep = cls if isinstance(each, ast.If | ast.Try | ast.With) else None
            pending += [(inner, keep) for inner in reversed(children(each))]


def functions_using_jax(program: Program) -> Iterator[FunctionStatement]:
    """Yield the functions and methods that use an imported name of JAX, not those in them."""
    names = {
        name for name, full in program.module.imports.items() if full.partition(".")[0] in ROOTS
    }
    for scope in program.scopes.values():
        node = scope.node
        if scope.parent is program.module and isinstance(node, FunctionStatement):
            if any(isinstance(each, ast.Name) and each.id in names for each in ast.walk(node)):
                yield node


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a body in order, without those of functions and classes in it."""
    pending = [*reversed(body_of(node))]
    if isinstance(node, ast.For):
        pending += [node.target, node.iter]
    while pending:
        each = pending.pop()
        yield each
        if not isinstance(each, FunctionNode | ast.ClassDef):
            pending.extend(reversed(children(each)))
        elif not isinstance(each, ast.Lambda | ast.ClassDef):
            pending.extend(each.decorator_list)


def body_of(node: ast.AST) -> list[ast.AST]:
    """Return the statements of a function or a module, or the expression of a lambda."""
    body = getattr(node, "body", [])
    return [*body] if isinstance(body, list) else [body]
