"""The resolution of expressions: to variables of modules and functions, and parts of their values.

Only certain facts are followed: imports, names that are bound once, views of arrays, items.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from pscdsl._src.frontend.modules.files import Found
from pscdsl._src.frontend.modules.known import known_module
from pscdsl._src.frontend.text.bindings import ScopeNode, uses
from pscdsl._src.frontend.text.source import FunctionNode, Source, called, parameters
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl._src.language.results import Result
from pscdsl.numpy import methods
from pscdsl.typing.diagnostics import Failure

if TYPE_CHECKING:
    from pscdsl._src.frontend.modules.files import Files
    from pscdsl._src.frontend.values import AnyValue

LIBRARY: Final = ""
"""The place of names of libraries and builtins, which are complete: `numpy.sin`."""


class Indeterminate(Enum):
    """An index that is no value."""

    UNKNOWN = "the text does not say it"
    EACH = "the index of any item, in a loop over all"


UNKNOWN: Final = Indeterminate.UNKNOWN
EACH: Final = Indeterminate.EACH
VIEWS: Final = frozenset("T mT flat".split())
"""Attributes of an array that are views of it."""
_IMPORTERS: Final = ("importlib.import_module", "builtins.__import__")
Place: TypeAlias = str | ScopeNode
Binding: TypeAlias = ast.AST


@dataclass(frozen=True, slots=True)
class ModuleText:
    """A module of the project: the place of its text, if it has one, and its files."""

    place: str | None
    found: Found | None


@dataclass(frozen=True, slots=True)
class Access:
    """A step from a value to a part of it."""

    kind: str
    """The kind of step: `item`, `attribute`, or `view`."""
    key: AnyValue


@dataclass(frozen=True, slots=True)
class Reference:
    """A variable, or a value that is reached from it."""

    place: Place
    """The path of a module, or the node of a function or class."""
    name: str
    steps: tuple[Access, ...] = ()
    is_alias: bool = False
    """Whether another variable is bound to the same object."""
    module: ModuleText | None = None
    """The module of the project that it refers to, if any."""

    def then(self, kind: str, key: AnyValue) -> Reference:
        """Return a reference to a part of it."""
        return replace(self, steps=(*self.steps, Access(kind, key)))

    def method(self) -> str:
        """Return the last step if it is an attribute; else an empty text."""
        match self.steps:
            case [*_, Access("attribute", str(name))]:
                return name
            case _:
                return ""


@lru_cache(maxsize=1024)
def _shows(name: str) -> bool:
    """Return whether a NumPy function returns a view of its first argument, or a full copy."""
    function = MEANINGS.get(name) if name.startswith("numpy.") else None
    if not isinstance(function, Meaning):
        return False
    return function.result_of((), {}) in (Result.ARRANGED, Result.SAME_ELEMENTS)


def _is_view_method(name: str) -> bool:
    """Return whether a method returns a view of its array, or a full copy."""
    return name == "view" or (name in methods.NAMES and _shows(f"numpy.{name}"))


class SourceNames:
    """The files of a check, and the resolution of their names."""

    def __init__(self, files: Files, added: Mapping[str, Source] | None = None) -> None:
        self.files = files
        self.added = dict(added or {})
        """Modules that are given as text, by their paths in findings."""
        self._names: dict[str, Names | None] = {}
        self._paths = {each.place: each.path for each in files.texts}
        self.asked: dict[str | Found, set[Found]] = {}
        """The modules in which names of a file, or of a package, were looked up."""

    def names(self, place: str) -> Names | None:
        """Return the names of a file; None if it is not Python."""
        if place not in self._names:
            source = self.added.get(place)
            try:
                source = source or self.files.source(self._paths[place])
                self._names[place] = Names(self, source)
            except (Failure, KeyError, RecursionError):
                self._names[place] = None  # it cannot be run, so it writes nothing
        return self._names[place]

    def _found(self, asker: str, name: str, level: int = 0) -> Found | None:
        return self.files.imported_by(self._paths.get(asker), name, level)

    def module(self, asker: str, name: str, level: int = 0) -> Reference:
        """Return the module that an import names, of the project or of a library."""
        known = None if level else known_module(name)
        found = None if known is not None else self._found(asker, name, level)
        if found is not None:
            self.asked.setdefault(asker, set()).add(found)
        own = name if known is None else known.name
        return Reference(LIBRARY, own, module=None if found is None else self._text(found))

    def attribute(
        self, ref: Reference, name: str, *, stored: bool = False
    ) -> tuple[Reference, ...]:
        """Resolve `ref.name`; if it is `stored`, only to the variable, and not to its value."""
        module = ref.module
        if module is None:
            if ref.place == LIBRARY:
                return (Reference(LIBRARY, f"{ref.name}.{name}"),)
            return (ref.then("view" if name in VIEWS else "attribute", name),)
        names = None if module.place is None else self.names(module.place)
        if names is not None and (stored or names.binds(name)):
            return (Reference(names.place, name),) if stored else names.variable(None, name)
        return self.inside(ref, name) or (() if names is None else names.starred(name))

    def inside(self, ref: Reference, name: str) -> tuple[Reference, ...]:
        """Resolve a module in a package."""
        found = None if ref.module is None else ref.module.found
        inner = None if found is None else self.files.inside(found, name)
        if found is not None and inner is not None:
            self.asked.setdefault(found, set()).add(inner)
        if inner is None:
            return ()
        return (Reference(LIBRARY, f"{ref.name}.{name}", module=self._text(inner)),)

    def _text(self, found: Found) -> ModuleText:
        return ModuleText(None if found.file is None else self.files.place(found.file), found)

    def consulted(self, place: str) -> tuple[str, ...]:
        """Return the files on which the resolution of the names in a file depends."""
        seen: set[str | Found] = {place}
        waiting: list[str | Found] = [place]
        files: set[str] = set()
        while waiting:
            asker = waiting.pop()
            more: set[str | Found] = {*self.asked.get(asker, ())}
            if isinstance(asker, Found) and asker.file is not None:
                files.add(asker.file)
                more.add(self.files.place(asker.file))
            waiting.extend(more - seen)
            seen |= more
        return tuple(sorted(files))


class Names:
    """The resolution of the names in one file."""

    def __init__(self, sources: SourceNames, source: Source) -> None:
        self.sources = sources
        self.source = source
        self.place = source.path
        self.uses = uses(source)
        self._imports: dict[str, list[tuple[ast.Import | ast.ImportFrom, ast.alias]]] = {}
        self._stars: list[ast.ImportFrom] = []
        self._known: dict[tuple[ScopeNode | None, str], tuple[Reference, ...]] = {}
        self._kernels: dict[ast.AST, ast.expr | None] = {}
        for node in self.uses.imports:
            for alias in node.names:
                if alias.name == "*" and isinstance(node, ast.ImportFrom):
                    self._stars.append(node)
                else:
                    name = alias.asname or alias.name.partition(".")[0]
                    self._imports.setdefault(name, []).append((node, alias))

    def bindings(self, scope: ScopeNode | None, name: str) -> list[Binding]:
        """Return the bindings of a name in a scope; augmented assignments are not bindings."""
        index = self.uses
        found: list[Binding] = []
        if isinstance(scope, FunctionNode) and name in parameters(scope):
            found.append(scope.args)
        for node in index.names.get(name, ()):
            if not isinstance(node.ctx, ast.Load) and index.owner(node, name) is scope:
                if not isinstance(index.parents[node], ast.AugAssign):
                    found.append(node)
        for statement, alias in self._imports.get(name, ()):
            if index.owner(statement, name) is scope:
                found.append(alias)
        for each in (*index.functions.get(name, ()), *index.classes.get(name, ())):
            if index.owner(each, name) is scope:
                found.append(each)
        return found

    def stores(self, name: str) -> list[ast.AST]:
        """Return all nodes that bind or unbind a name, in any scope."""
        index = self.uses
        return [
            *(each for each in index.names.get(name, ()) if not isinstance(each.ctx, ast.Load)),
            *(alias for _, alias in self._imports.get(name, ())),
            *index.functions.get(name, ()),
            *index.classes.get(name, ()),
        ]

    def binds(self, name: str) -> bool:
        """Return whether the module binds a name."""
        return bool(self.bindings(None, name))

    def variable(self, scope: ScopeNode | None, name: str) -> tuple[Reference, ...]:
        """Resolve a variable of a scope: to itself, and to its aliases."""
        known = self._known.get((scope, name))
        if known is None:
            own = Reference(self.place if scope is None else scope, name)
            self._known[scope, name] = (own,)  # for look-ups during its resolution
            known = self._known[scope, name] = self._variable(scope, name, own)
        return known

    def _variable(
        self, scope: ScopeNode | None, name: str, own: Reference
    ) -> tuple[Reference, ...]:
        found = self.bindings(scope, name)
        if not found and scope is None:
            return self.starred(name) or (
                (Reference(LIBRARY, f"builtins.{name}"),) if hasattr(builtins, name) else (own,)
            )
        others, *more = [tuple(self._origin(scope, each, name)) for each in found] or [()]
        if any(each != others for each in more):
            return (own,)  # bound several times, and to different values
        if others and others[0].place == LIBRARY and isinstance(found[0], ast.alias):
            return others
        return (own, *others)

    def starred(self, name: str) -> tuple[Reference, ...]:
        """Resolve a name that `from … import *` may bind."""
        for node in self._stars:
            module = self.sources.module(self.place, node.module or "", node.level)
            if module.module is None:
                continue
            found = self.sources.attribute(module, name)
            if found:
                return found
        return ()

    def _origin(self, scope: ScopeNode | None, binding: Binding, name: str) -> Iterator[Reference]:
        """Yield the references of the value that a binding gives to a name."""
        match binding, self.uses.parents.get(binding):
            case ast.alias(), statement:
                yield from self._imported(statement, binding)
            case ast.arguments(), _ if isinstance(scope, FunctionNode):
                cls = self.uses.class_of(scope)
                if cls and parameters(scope)[:1] == [name] and _is_class_method(scope):
                    yield Reference(self.uses.owner(cls, cls.name) or self.place, cls.name)
            case _, ast.Assign(value=value, targets=targets) if binding in targets:
                yield from self._aliases(value)
            case _, (
                ast.AnnAssign(value=ast.expr() as value, target=target)
                | ast.NamedExpr(value=value, target=target)
            ) if binding is target:
                yield from self._aliases(value)
            case _:
                for each in self._looped(binding):
                    yield replace(each, is_alias=True)

    def _aliases(self, node: ast.expr) -> Iterator[Reference]:
        for each in self.refs(node):
            yield replace(each, is_alias=each.place != LIBRARY)

    def _imported(self, node: ast.AST | None, alias: ast.alias) -> tuple[Reference, ...]:
        if isinstance(node, ast.ImportFrom):
            module = self.sources.module(self.place, node.module or "", node.level)
            own = module.module is not None and module.module.place == self.place
            inner = self.sources.inside(module, alias.name) if own else ()
            return inner or self.sources.attribute(module, alias.name)
        name = alias.name if alias.asname else alias.name.partition(".")[0]
        return (self.sources.module(self.place, name),)

    def _looped(self, target: ast.AST) -> Iterator[Reference]:
        """Yield the references of a loop's target: items, also of `enumerate` and `zip`."""
        parents = self.uses.parents
        above = parents.get(target)
        place = None
        if isinstance(above, ast.Tuple):
            place = above.elts.index(target) if isinstance(target, ast.expr) else None
            target, above = above, parents.get(above)
        if not isinstance(above, ast.For | ast.comprehension) or above.target is not target:
            return
        given = above.iter
        match given, place:
            case ast.Call(func=ast.Attribute(value=owner, attr="items"), args=[]), 1:
                given, place = owner, None
            case ast.Call(func=ast.Attribute(value=owner, attr="values"), args=[]), None:
                given = owner
            case ast.Call(func=ast.Name(id="enumerate"), args=[items, *_]), 1:
                given, place = items, None
            case ast.Call(func=ast.Name(id="zip"), args=several), int() if place < len(several):
                given, place = several[place], None
            case _:
                pass
        if place is not None:
            return
        if isinstance(given, ast.List | ast.Tuple):
            for element in given.elts:
                yield from (each for each in self.refs(element) if each.place != LIBRARY)
        else:
            yield from self._then(self.refs(given), "item", EACH)

    def refs(self, node: ast.expr) -> tuple[Reference, ...]:
        """Resolve an expression; empty if it is unknown."""
        match node:
            case ast.Name(id=name):
                return self.variable(self.uses.owner(node, name), name)
            case ast.NamedExpr(value=value):
                return self.refs(value)
            case ast.Attribute(value=owner, attr=name):
                return self._attributes(self.refs(owner), name)
            case ast.Subscript(value=owner, slice=ast.Constant(value=str(key))):
                if namespace := self.namespace(owner):
                    return self._attributes(namespace, key)
                if self.qualified(owner) == "sys.modules":
                    return (self.sources.module(self.place, key),)
                return self._then(self.refs(owner), "item", key)
            case ast.Subscript(value=owner, slice=ast.Name(id="__name__")) if (
                self.qualified(owner) == "sys.modules"
            ):
                return (self.own_module(),)
            case ast.Subscript(value=owner, slice=index):
                return self._then(self.refs(owner), "item", constant(index))
            case ast.Call():
                return self._called(node)
            case _:
                return ()

    def own_module(self) -> Reference:
        """Return the module that this text belongs to."""
        return Reference(LIBRARY, self.place, module=ModuleText(self.place, None))

    def _attributes(self, owners: tuple[Reference, ...], name: str) -> tuple[Reference, ...]:
        return tuple(ref for each in owners for ref in self.sources.attribute(each, name))

    def _then(
        self, owners: tuple[Reference, ...], kind: str, key: AnyValue
    ) -> tuple[Reference, ...]:
        return tuple(each.then(kind, key) for each in owners if each.place != LIBRARY)

    def _called(self, node: ast.Call) -> tuple[Reference, ...]:
        function = node.func
        if isinstance(function, ast.Attribute) and _is_view_method(function.attr):
            found = self._then(self.refs(function.value), "view", function.attr)
            if found:
                return found
        name = self.qualified(function)
        match node.args:
            case [ast.Constant(value=str(text)), *_] if name in _IMPORTERS and text[:1] != ".":
                return (self.sources.module(self.place, text),)
            case [array, *more] if _shows(name) and not node.keywords:
                known = name.removeprefix("numpy.")
                copies = more and known.startswith("as")
                return () if copies else self._then(self.refs(array), "view", known)
            case [owner, ast.Constant(value=str(text))] if name == "builtins.getattr":
                return self._attributes(self.refs(owner), text)
            case _:
                return ()

    def namespace(self, node: ast.expr) -> tuple[Reference, ...]:
        """Return the module or class whose namespace a dict is: `vars(lib)`, `globals()`."""
        match node:
            case ast.Attribute(value=owner, attr="__dict__"):
                return self.refs(owner)
            case ast.Call(func=function, args=arguments):
                match self.qualified(function), arguments:
                    case "builtins.globals", _:
                        return (self.own_module(),)
                    case "builtins.vars", [owner]:
                        return self.refs(owner)
                    case _:
                        return ()
            case _:
                return ()

    def qualified(self, node: ast.expr) -> str:
        """Return the full name of an object of a library or Python; empty for anything else."""
        for each in self.refs(node) if isinstance(node, ast.Name | ast.Attribute) else ():
            if each.place == LIBRARY and each.module is None:
                return each.name
        return ""

    def kernel_decorator(self, node: ast.AST) -> ast.expr | None:
        """Return the decorator that makes a function a kernel."""
        if node not in self._kernels:
            self._kernels[node] = next(
                (
                    each
                    for each in getattr(node, "decorator_list", ())
                    if self.qualified(called(each)) == "pscdsl.kernel"
                ),
                None,
            )
        return self._kernels[node]

    def in_kernel(self, node: ast.AST) -> bool:
        """Return whether a node is in the text of a kernel."""
        return any(
            isinstance(each, FunctionNode) and self.kernel_decorator(each) is not None
            for each in self.uses.above(node)
        )


def _is_class_method(node: FunctionNode) -> bool:
    decorators = () if isinstance(node, ast.Lambda) else node.decorator_list
    return any(isinstance(each, ast.Name) and each.id == "classmethod" for each in decorators)


def constant(node: ast.expr) -> AnyValue:
    """Return the constant value of an index or a name; `UNKNOWN` if the text does not say it."""
    match node:
        case ast.Slice():
            return slice(None)  # any slice gives a part
        case ast.Tuple(elts=elements):
            items = tuple(map(constant, elements))
            return UNKNOWN if UNKNOWN in items else items
        case _:
            pass
    try:
        value: AnyValue = ast.literal_eval(node)
        return value
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return UNKNOWN
