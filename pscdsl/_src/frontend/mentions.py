"""Where a captured name is mentioned: in its module, and in those that import or spell it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pscdsl._src.frontend.captures.resolution import Module, Resolver
from pscdsl._src.frontend.text.source import Source
from pscdsl._src.frontend.text.uses import ScopeNode, uses

Mention = tuple[Source, ast.AST]
_NAMESPACES = frozenset(
    "globals locals vars __dict__ __globals__ f_globals f_locals f_builtins __builtins__".split()
)
"""Words for dicts of names."""


def of_name(
    resolver: Resolver, source: Source, scope: ScopeNode | None, name: str
) -> Iterator[Mention]:
    """The expressions in which a name of a scope stands for its value, outside of kernels."""
    index = uses(source)
    for node in index.names.get(name, ()):
        if index.owner(node, name) is scope and isinstance(node.ctx, ast.Load):
            if not resolver.in_kernel(source, node):
                yield source, node


def of_module(resolver: Resolver, module: Module, name: str) -> Iterator[Mention]:
    """The mentions of a name of a module in the whole project, its bindings left out."""
    yield from of_name(resolver, module.source, None, name)
    seen: set[tuple[str, str]] = set()
    pending = [(module, name)]
    while pending:
        at, known_as = pending.pop()
        if (at.place, known_as) in seen:
            continue
        seen.add((at.place, known_as))
        for other in resolver.naming(known_as):
            for bound in _imports(resolver, other, at, known_as):
                for scope in _scopes(other.source, bound):
                    yield from of_name(resolver, other.source, scope, bound)
                pending.append((other, bound))
            yield from _attributes(resolver, other, at, known_as)
            yield from _spelled(resolver, other.source, known_as)
            yield from _matched(other.source, known_as)


def of_class(
    resolver: Resolver, source: Source, node: ast.ClassDef, name: str
) -> Iterator[Mention]:
    """The mentions of an attribute of a class: in its body, and of whatever has such a name."""
    yield from of_name(resolver, source, node, name)
    for module in resolver.naming(name):
        for each in uses(module.source).attributes.get(name, ()):
            if resolver.in_kernel(module.source, each):
                continue
            if not isinstance(each.value, ast.Name) or not resolver.is_library(
                module.source, each.value
            ):
                yield module.source, each
        yield from _spelled(resolver, module.source, name)
        yield from _matched(module.source, name)


def _matched(source: Source, name: str) -> Iterator[Mention]:
    """Patterns that read an attribute of this name, or attributes that the text does not name."""
    if "case" not in source.text:
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.MatchClass):
            by_place = node.patterns and "__match_args__" in source.searched
            if by_place or name in node.kwd_attrs:
                yield source, node


def _imports(resolver: Resolver, other: Module, module: Module, name: str) -> Iterator[str]:
    """The names that imports in a file give to a name of a module."""
    for node in uses(other.source).imports:
        if not isinstance(node, ast.ImportFrom):
            continue
        if resolver.base_of(other.source, node) != module.module:
            continue
        for alias in node.names:
            if alias.name == name:
                yield alias.asname or name
            elif alias.name == "*" and other.place != module.place:
                yield name


def _scopes(source: Source, name: str) -> list[ScopeNode | None]:
    """The scopes to which uses of a name belong that an import may have bound."""
    index = uses(source)
    found: dict[ScopeNode | None, None] = {None: None}
    for node in index.imports:
        if any((alias.asname or alias.name) == name for alias in node.names):
            found[index.owner(node, name)] = None
    return list(found)


def _attributes(resolver: Resolver, other: Module, module: Module, name: str) -> Iterator[Mention]:
    """Attributes of this name, but for those of libraries, of instances and of other modules."""
    index = uses(other.source)
    for node in index.attributes.get(name, ()):
        if resolver.in_kernel(other.source, node) or is_of_instance(resolver, other.source, node):
            continue
        if not _is_of_another(resolver, other.source, node, module, name):
            yield other.source, node


def _is_of_another(
    resolver: Resolver, source: Source, node: ast.Attribute, module: Module, name: str
) -> bool:
    """Whether an attribute belongs to a library, or to a module that has a name of its own."""
    qualified = resolver.qualified(source, node)
    if qualified is None:
        return False
    place = resolver.project_name(qualified)
    if place is None:
        return True
    if place[0].place == module.place or place[1] != name:
        return False
    return not any(True for _ in resolver.origins(place[0].source, name))


def _spelled(resolver: Resolver, source: Source, name: str) -> Iterator[Mention]:
    """`getattr(module, "NAME")` and `vars(module)["NAME"]`."""
    for node in uses(source).strings.get(name, ()):
        parent = uses(source).parents.get(node)
        if resolver.in_kernel(source, node):
            continue
        if isinstance(parent, ast.Subscript) and parent.slice is node:
            if names_of(parent.value) & _NAMESPACES:
                yield source, parent
        elif isinstance(parent, ast.Call) and called_name(parent) in ("getattr", "get"):
            is_getattr = called_name(parent) == "getattr"
            owner = parent.args[0] if is_getattr else parent.func
            if is_getattr and not _is_library(resolver, source, owner):
                yield source, parent
            elif not is_getattr and names_of(owner) & _NAMESPACES:
                yield source, parent


def _is_library(resolver: Resolver, source: Source, node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and resolver.is_library(source, node)


def called_name(call: ast.Call) -> str:
    """The last name of what is called."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def names_of(node: ast.AST) -> set[str]:
    """All names and attributes in an expression."""
    found: set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            found.add(each.id)
        elif isinstance(each, ast.Attribute):
            found.add(each.attr)
    return found


def is_of_instance(resolver: Resolver, source: Source, node: ast.Attribute) -> bool:
    """Whether an attribute is one of an instance: of `self`, or of what a class was called for."""
    return is_instance(resolver, source, node.value)


def is_instance(resolver: Resolver, source: Source, node: ast.expr) -> bool:
    """Whether an expression surely has an instance of a class, and nothing a kernel may read.

    So it has no class, no module, and no record.
    """
    if isinstance(node, ast.Call):
        return _makes_instance(resolver, source, node)
    if not isinstance(node, ast.Name):
        return False
    index = uses(source)
    scope = index.owner(node, node.id)
    stores = resolver.stores(source, scope, node.id)
    if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef) and not stores:
        cls = index.class_of(scope)
        parameters = [*scope.args.posonlyargs, *scope.args.args]
        if cls is None or scope.decorator_list or not parameters:
            return False
        return parameters[0].arg == node.id == "self" and not _may_be_metaclass(
            resolver, source, cls, 0
        )
    made = index.parents.get(stores[0]) if len(stores) == 1 else None
    if not isinstance(made, ast.Assign) or not isinstance(made.value, ast.Call):
        return False
    if any(name == node.id for each in index.outer for name in each.names):
        return False
    return stores[0] in made.targets and _makes_instance(resolver, source, made.value)


def _makes_instance(resolver: Resolver, source: Source, call: ast.Call) -> bool:
    """Whether a call makes an instance of a class of this file."""
    if not isinstance(call.func, ast.Name):
        return False
    index = uses(source)
    found = index.classes.get(call.func.id, ())
    scope = index.owner(call.func, call.func.id)
    if len(found) != 1 or index.owner(found[0], found[0].name) is not scope:
        return False
    cls = found[0]
    if cls.decorator_list or cls.keywords or _may_be_metaclass(resolver, source, cls, 0):
        return False
    if resolver.stores(source, scope, cls.name) or index.functions.get(cls.name):
        return False
    return not any(getattr(each, "name", "") == "__new__" for each in cls.body)


def is_plain_class(resolver: Resolver, source: Source, cls: ast.ClassDef | None) -> bool:
    """Whether instances of a class are nothing that a kernel may read."""
    if cls is None or cls.decorator_list:
        return False
    return not _may_be_metaclass(resolver, source, cls, 0)


_READ_BY_KERNELS = frozenset("type ModuleType Record NamedTuple PRecord PClass".split())


def _may_be_metaclass(resolver: Resolver, source: Source, cls: ast.ClassDef, depth: int) -> bool:
    """Whether instances of a class may be classes or modules, or records or members of enums."""
    index = uses(source)
    for base in cls.bases:
        name = resolver.qualified(source, base) or ""
        last = name.rpartition(".")[2]
        if depth > 8 or last in _READ_BY_KERNELS or last.endswith(("Meta", "Type", "Enum", "Flag")):
            return True
        place = resolver.project_name(name) if name else None
        home = source if place is None else place[0].source
        own = base.id if isinstance(base, ast.Name) else last
        for each in (index if home is source else uses(home)).classes.get(own, ()):
            if each is not cls and _may_be_metaclass(resolver, home, each, depth + 1):
                return True
    return False
