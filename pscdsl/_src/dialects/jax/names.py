"""Scopes of a JAX program, and the full names of what it imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pscdsl._src.frontend.modules.jax_programs import ROOTS
from pscdsl._src.frontend.text.source import (
    FunctionNode,
    FunctionStatement,
    Source,
    blocks,
    children,
    parameters,
    targets,
)

Definition = ast.expr | ast.stmt | None


@dataclass(eq=False)
class Scope:
    """A module, a function or a lambda: its names, and the scope around it."""

    node: ast.Module | FunctionNode
    parent: Scope | None = None
    owner: ast.ClassDef | None = None
    """The class, if it is a method."""
    names: frozenset[str] = frozenset()
    functions: dict[str, Scope] = field(default_factory=dict[str, "Scope"])
    """The functions that one statement of this scope defines, and nothing else binds."""
    classes: dict[str, ast.ClassDef] = field(default_factory=dict[str, ast.ClassDef])
    imports: dict[str, str] = field(default_factory=dict[str, str])
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
class Program:
    """The scopes of a file."""

    source: Source
    module: Scope
    scopes: dict[ast.AST, Scope]
    methods: dict[ast.ClassDef, dict[str, Scope]]

    def function(self, scope: Scope, node: ast.expr) -> Scope | None:
        """Return the function that an expression certainly names."""
        match node:
            case ast.Lambda():
                return self.scopes.get(node)
            case ast.Name(id=name):
                owner = scope.owner_of(name)
                return owner.functions.get(name) if owner else None
            case ast.Attribute(value=ast.Name(id=name), attr=attr):
                method = self.method_scope(scope, name)
                return self.method(method.owner, attr) if method and method.owner else None
            case _:
                return None

    def method_scope(self, scope: Scope, name: str) -> Scope | None:
        """Return the method whose first parameter has this name here."""
        owner = scope.owner_of(name)
        if owner is None or owner.owner is None or not isinstance(owner.node, FunctionStatement):
            return None
        decorators = {ast.unparse(each) for each in owner.node.decorator_list}
        given = parameters(owner.node)
        is_own = given and given[0] == name and "staticmethod" not in decorators
        return owner if is_own and "classmethod" not in decorators else None

    def method(self, cls: ast.ClassDef, name: str) -> Scope | None:
        """Return a method of a class, or of a base class in this file."""
        found = self.methods.get(cls, {}).get(name)
        if found is not None:
            return found
        for base in cls.bases:
            if isinstance(base, ast.Name) and (above := self.module.classes.get(base.id)):
                if above is not cls and (found := self.method(above, name)):
                    return found
        return None

    def full_name(self, scope: Scope, node: ast.expr) -> str:
        """Return the full name of something imported, `jax.random.normal`; empty for others."""
        match node:
            case ast.Name(id=name):
                owner = scope.owner_of(name)
                if owner is None:
                    return f"builtins.{name}"
                return owner.imports.get(name, "")
            case ast.Attribute(value=value, attr=attr):
                base = self.full_name(scope, value)
                return canonical(f"{base}.{attr}") if base else ""
            case _:
                return ""


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


def imports_of(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """Yield the names that an import binds, with the full names of what they are."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield (
                (alias.asname, alias.name)
                if alias.asname
                else (
                    alias.name.partition(".")[0],
                    alias.name.partition(".")[0],
                )
            )
    else:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            yield alias.asname or alias.name, canonical(f"{module}.{alias.name}")


def read_program(source: Source) -> Program:
    """Return the scopes of a file."""
    module = Scope(source.tree)
    program = Program(source, module, {source.tree: module}, {})
    _fill(program, module)
    return program


def _fill(program: Program, scope: Scope) -> None:
    """Find the names of a scope, and the scopes in it."""
    node = scope.node
    body: Sequence[ast.stmt] = [ast.Expr(node.body)] if isinstance(node, ast.Lambda) else node.body
    bound: dict[str, int] = {}
    outer: set[str] = set()
    for name in (each for statement in body for each in targets(statement)):
        bound[name] = bound.get(name, 0) + 1
    for each in _own(body):
        if isinstance(each, ast.Global | ast.Nonlocal):
            outer.update(each.names)
        elif isinstance(each, ast.Import | ast.ImportFrom):
            scope.imports.update(imports_of(each))
        elif isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
            scope.values[each.targets[0].id] = each.value
        elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and each.value:
            scope.values[each.target.id] = each.value
    given = [] if isinstance(node, ast.Module) else parameters(node)
    scope.names = frozenset({*bound, *given} - outer)
    once = {name for name, times in bound.items() if times == 1} - set(given)
    scope.values = {name: value for name, value in scope.values.items() if name in once}
    for nested, cls in _nested(body):
        inner = Scope(nested, scope, cls)
        program.scopes[nested] = inner
        if cls is not None and isinstance(nested, FunctionStatement):
            program.methods.setdefault(cls, {})[nested.name] = inner
        elif isinstance(nested, FunctionStatement) and nested.name in once:
            scope.functions[nested.name] = inner
        _fill(program, inner)
    for each in _own(body):
        if isinstance(each, ast.ClassDef) and each.name in once:
            scope.classes[each.name] = each


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
