"""Where a value may be written, found by following it through the text of a project.

From the names that hold it the value is followed forwards: through assignments, containers,
attributes, views, arguments and results of functions.  Nothing is evaluated, branches count as
taken, and a call is followed into the functions it may mean; so every write that the text shows is
found.  What is handed to code without text is a write that may be.

See Note [Paths].
"""

from __future__ import annotations

import ast
import functools
from collections import deque
from collections.abc import Callable, Iterator

from pscdsl.frontend import owners, passing, writers
from pscdsl.frontend.paths import (
    COMPUTED,
    EVERY,
    FUNCTION_PARTS,
    IN_DICT,
    ITEM,
    MAX_CALLS,
    MAX_USES,
    OF_INSTANCE,
    Holder,
    Kind,
    Path,
    Write,
    text,
)
from pscdsl.frontend.resolution import (
    Calls,
    Module,
    Resolver,
    argument,
    assigned,
)
from pscdsl.frontend.source import FunctionNode, Source, with_defaults
from pscdsl.frontend.uses import ScopeNode, parameters, uses


class Tracker:
    """Follows one object through a project."""

    def __init__(self, resolver: Resolver, kind: Kind = Kind.DEEP) -> None:
        self.resolver = resolver
        self.kind = kind
        self.shallow = kind is Kind.FUNCTION
        self.confined: ScopeNode | None = None
        """A function whose results are not followed: what becomes of them is asked by itself."""
        self.written: Write | None = None
        self.may_be_written: Write | None = None
        self.rebound: dict[str, Write] = {}
        """For the step `.*`: which attributes are stored."""
        self.rebound_by_computed_names: Write | None = None
        self._pending: deque[tuple[Source, ast.AST, Path, Calls]] = deque()
        self._later: deque[Callable[[], None]] = deque()
        self._seen: set[tuple[int, ast.AST, Path, Calls]] = set()
        self._held: set[tuple[Holder, Path, Calls]] = set()
        self._attributes: set[tuple[str, Path]] = set()
        self._containers: set[tuple[ast.expr, Path, Calls]] = set()

    def run(self) -> None:
        """Follow until nothing new is reached or a write is found."""
        count = 0
        while (self._pending or self._later) and self.written is None:
            count += 1
            if not self._pending:
                self._later.popleft()()
                continue
            source, node, path, calls = self._pending.popleft()
            if count > MAX_USES:
                self.may_write(source, node, "more places than are followed")
                return
            self._use(source, node, path, calls)

    def hold(self, holder: Holder, path: Path, calls: Calls = ()) -> None:
        """A name holds the value."""
        key = (holder, path, calls)
        if key in self._held:
            return
        self._held.add(key)
        self.resolver.asked.add(f"file {holder.source.path}")
        source, name = holder.source, holder.name
        index = uses(source)
        for node in index.names.get(name, ()):
            if index.owner(node, name) is holder.scope:
                if not self.resolver.in_kernel(source, node):  # that is checked itself
                    self.at(source, node, path, calls)
        if holder.scope is None:
            self._later.append(functools.partial(owners.importers, self, source, name, path))
        elif isinstance(holder.scope, ast.ClassDef):  # a name in a class body
            owner = index.owner(holder.scope, holder.scope.name)
            owners.hold_class(self, Holder(source, owner, holder.scope.name), f".{name}", path)

    def naming(self, word: str) -> Iterator[Module]:
        """The modules in whose text a word stands."""
        return iter(self.resolver.naming(word))

    def at(self, source: Source, node: ast.AST, path: Path, calls: Calls = ()) -> None:
        """An expression has the value."""
        key = (id(source), node, path, calls)
        if key not in self._seen:
            self._seen.add(key)
            self._pending.append((source, node, path, calls))

    def item(self, path: Path) -> Path | None:
        """What an item of a value with this path has; None if it has no part in the object."""
        if not path:
            return None if self.kind is Kind.FLAT else ()
        return path[1:] if path[0] == ITEM else None

    def copied(self, path: Path) -> Path | None:
        """What a shallow copy has: the items, unless they cannot be changed."""
        if not path:
            return (ITEM,) if self.kind is Kind.DEEP else None
        return path

    def write(self, source: Source, node: ast.AST) -> None:
        """The object is changed here."""
        if self.written is None:
            self.written = Write(source.span(node))

    def may_write(self, source: Source, node: ast.AST, passed_to: str) -> None:
        """The object goes where nothing can be seen of it."""
        if self.may_be_written is None:
            self.may_be_written = Write(source.span(node), passed_to)
        if self.rebound_by_computed_names is None:
            self.rebound_by_computed_names = Write(source.span(node), passed_to)

    def rebind(self, source: Source, node: ast.AST, path: Path, name: str | None) -> None:
        """A store into an attribute of a module or class; None: of which one is not known."""
        if path[0][1:] != "*":
            return
        if name is None:
            self.may_write(source, node, "a name that is computed")
        else:
            self.rebound.setdefault(name, Write(source.span(node)))

    def _use(self, source: Source, node: ast.AST, path: Path, calls: Calls) -> None:
        """What the surroundings of an expression do with its value."""
        parent = uses(source).parents.get(node)
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            if isinstance(node.ctx, ast.Store) and isinstance(parent, ast.AugAssign):
                if not path and not self.shallow:
                    self.write(source, parent)
                return
            if not isinstance(node.ctx, ast.Load):
                return
        if path and path[0][0] == COMPUTED and not _is_plain(parent, node):
            return
        if isinstance(parent, ast.Attribute):
            self._attribute(source, parent, path, calls)
        elif isinstance(parent, ast.Subscript) and parent.value is node:
            self._subscript(source, parent, path, calls)
        elif isinstance(parent, ast.Call) and parent.func is not node:
            passing.passed(self, source, parent, node, path, calls)
        elif isinstance(parent, ast.Call):
            if path[:1] and path[0][0] == "." and path[0] != EVERY:
                self.at(source, parent, path, calls)  # an instance has what its class has
        elif isinstance(parent, ast.keyword):
            call = uses(source).parents.get(parent)
            if isinstance(call, ast.Call):
                passing.passed(self, source, call, parent, path, calls)
        elif isinstance(parent, ast.Starred):
            self._starred(source, parent, path, calls)
        else:
            self._bound(source, parent, node, path, calls)

    def _bound(
        self, source: Source, parent: ast.AST | None, node: ast.AST, path: Path, calls: Calls
    ) -> None:
        index = uses(source)
        if isinstance(parent, ast.Assign):
            for target in parent.targets:
                self.bind(source, target, path, calls)
        elif isinstance(parent, ast.AnnAssign | ast.NamedExpr) and parent.value is node:
            self.bind(source, parent.target, path, calls)
            if isinstance(parent, ast.NamedExpr):
                self.at(source, parent, path, calls)
        elif isinstance(parent, ast.AugAssign):
            copied = self.copied(path)
            if not self.shallow and parent.value is node and copied is not None:
                self.bind(source, parent.target, copied, calls)
        elif isinstance(parent, ast.For | ast.AsyncFor | ast.comprehension):
            rest = self.item(path)
            if rest is not None and parent.iter is node:
                self.bind(source, parent.target, rest, calls)
        elif isinstance(parent, ast.withitem):
            if parent.optional_vars is not None:
                self.bind(source, parent.optional_vars, path, calls)
        elif isinstance(parent, ast.Tuple | ast.List):
            self._displayed(source, parent, node, path, calls)
        elif isinstance(parent, ast.Set | ast.Dict | ast.ListComp | ast.GeneratorExp):
            self.at(source, parent, (ITEM, *path), calls)
        elif isinstance(parent, ast.DictComp | ast.SetComp):
            self.at(source, parent, (ITEM, *path), calls)
        elif isinstance(parent, ast.IfExp | ast.BoolOp | ast.Await):
            self.at(source, parent, path, calls)
        elif isinstance(parent, ast.BinOp):
            copied = self.copied(path)
            if not self.shallow and copied is not None:
                self.at(source, parent, copied, calls)
        elif isinstance(parent, ast.Lambda) and parent.body is node:
            self._returned(source, parent, path, calls)
        elif isinstance(parent, ast.Return):
            function = index.function_of(parent)
            if function is not None:
                self._returned(source, function, path, calls)
        elif isinstance(parent, ast.Yield | ast.YieldFrom):
            function = index.function_of(parent)
            if function is not None:
                steps = (ITEM, *path) if isinstance(parent, ast.Yield) else path
                self._returned(source, function, steps, calls)
        elif isinstance(parent, ast.arguments):
            self._default(source, parent, node, path)
        elif isinstance(parent, ast.Match):
            for each in ast.walk(parent):
                if isinstance(each, ast.MatchAs | ast.MatchStar) and each.name is not None:
                    holder = Holder(source, index.owner(each, each.name), each.name)
                    self.hold(holder, path, calls)

    def _displayed(
        self,
        source: Source,
        parent: ast.Tuple | ast.List,
        node: ast.AST,
        path: Path,
        calls: Calls,
    ) -> None:
        """In a tuple: part of it, or, in `a, b = x, y`, what one name is assigned."""
        statement = uses(source).parents.get(parent)
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ast.Tuple | ast.List):
                plain = len(target.elts) == len(parent.elts) and not any(
                    isinstance(each, ast.Starred) for each in (*target.elts, *parent.elts)
                )
                if plain:
                    place = next(i for i, each in enumerate(parent.elts) if each is node)
                    self.bind(source, target.elts[place], path, calls)
                    return
        self.at(source, parent, (ITEM, *path), calls)

    def _starred(self, source: Source, node: ast.Starred, path: Path, calls: Calls) -> None:
        parent = uses(source).parents.get(node)
        if isinstance(parent, ast.Call):
            passing.passed(self, source, parent, node, path, calls)
        elif isinstance(parent, ast.Tuple | ast.List | ast.Set):
            self.at(source, parent, path or (ITEM,), calls)

    def bind(self, source: Source, target: ast.expr, path: Path, calls: Calls) -> None:
        """A pattern is assigned the value."""
        if isinstance(target, ast.Name):
            scope = uses(source).owner(target, target.id)
            self.hold(Holder(source, scope, target.id), path, calls)
        elif isinstance(target, ast.Tuple | ast.List):
            rest = self.item(path)
            for each in target.elts:
                if isinstance(each, ast.Starred):
                    self.bind(source, each.value, path or (ITEM,), calls)
                elif rest is not None:
                    self.bind(source, each, rest, calls)
        elif isinstance(target, ast.Attribute):
            self.stored(target.attr, path)
        elif isinstance(target, ast.Subscript):
            self.contained(source, target.value, (ITEM, *path), calls)

    def stored(self, attribute: str, path: Path) -> None:
        """An attribute of some object holds the value: of which one is not asked."""
        if (path and path[0][1:] == "*") or (attribute, path) in self._attributes:
            return
        self._attributes.add((attribute, path))
        for module in self.naming(attribute):
            for node in uses(module.source).attributes.get(attribute, ()):
                self.at(module.source, node, path)

    def contained(self, source: Source, owner: ast.expr, path: Path, calls: Calls) -> None:
        """What an expression stands for now holds the value."""
        if (owner, path, calls) in self._containers:
            return
        self._containers.add((owner, path, calls))
        if len(self._containers) > MAX_USES:
            self.may_write(source, owner, "more places than are followed")
        else:  # later: callers of callers are as deep as a project is large
            self._later.append(functools.partial(self._contained, source, owner, path, calls))

    def _contained(self, source: Source, owner: ast.expr, path: Path, calls: Calls) -> None:
        if isinstance(owner, ast.Name):
            index = uses(source)
            scope = index.owner(owner, owner.id)
            self.hold(Holder(source, scope, owner.id), path, calls)
            if isinstance(scope, FunctionNode) and owner.id in parameters(scope):
                for each, given in self._given(source, scope, owner.id, calls):
                    self.contained(each, given, path, calls[:-1])
            elif len(path) < MAX_CALLS:
                for value in assigned(index, scope, owner.id):
                    if isinstance(value, ast.Name | ast.Attribute | ast.Subscript):
                        self.contained(source, value, path, calls)
            if scope is None:
                for module, name in self.resolver.origins(source, owner.id):
                    self.hold(Holder(module.source, None, name), path)
        elif isinstance(owner, ast.Attribute):
            self.stored(owner.attr, path)
            named = self.resolver.qualified(source, owner)
            place = None if named is None else self.resolver.project_name(named)
            if place is not None and place[1] == owner.attr:  # a module's own name
                self.hold(Holder(place[0].source, None, owner.attr), path)
        elif isinstance(owner, ast.Subscript):
            self.contained(source, owner.value, (ITEM, *path), calls)

    def _given(
        self, source: Source, function: FunctionNode, name: str, calls: Calls
    ) -> Iterator[tuple[Source, ast.expr]]:
        """The expressions that calls give to a parameter."""
        for where, call in calls[-1:] or self.resolver.calls_of(source, function):
            given = argument(function, name, call) if isinstance(call, ast.Call) else None
            if given is not None:
                yield where, given

    def _attribute(self, source: Source, node: ast.Attribute, path: Path, calls: Calls) -> None:
        """`value.name`."""
        name, load = node.attr, isinstance(node.ctx, ast.Load)
        if path and path[0][0] in ".~?":
            self._member(source, node, path, calls)
            return
        if path and path[0][0] == IN_DICT:
            self._dict_method(source, node, path, calls)
            return
        if self.shallow:
            if name in FUNCTION_PARTS:
                self.write(source, node)
            return
        parent = uses(source).parents.get(node)
        call = parent if isinstance(parent, ast.Call) and parent.func is node else None
        if not load:
            if not path:
                self.write(source, node)
        elif name in writers.MUTATORS:
            if not path:
                self.write(source, node if call is None else call)
            elif call is not None:
                self.at(source, call, path[1:], calls)
        elif call is None:
            self.at(source, node, path if name in writers.VIEWS else path[1:], calls)
        elif name in writers.VIEWS:
            if path or self.kind is not Kind.FLAT:
                self.at(source, call, path, calls)
                self.at(source, call, path[1:], calls)
        elif name in ("copy", "tolist", "__copy__"):
            copied = self.copied(path)
            if copied is not None:
                self.at(source, call, copied, calls)
        else:
            passing.own_method(self, source, name, path, call, calls)

    def _member(self, source: Source, node: ast.Attribute, path: Path, calls: Calls) -> None:
        """An attribute of a module, a class or an instance."""
        name, first = node.attr, path[0]
        if name == "__dict__":
            self.at(source, node, (IN_DICT + first[1:], *path[1:]), calls)
        elif name == "__class__":
            self.at(source, node, ("." + first[1:], *path[1:]), calls)
        elif not isinstance(node.ctx, ast.Load):
            if first[0] != OF_INSTANCE[0]:
                self.rebind(source, node, path, name)
        elif first == EVERY and name in ("__setattr__", "__delattr__"):
            call = uses(source).parents.get(node)
            key = text(call.args[0]) if isinstance(call, ast.Call) and call.args else None
            self.rebind(source, node, path, key)
        elif first[1:] == name:
            self.at(source, node, path[1:], calls)

    def _dict_method(self, source: Source, node: ast.Attribute, path: Path, calls: Calls) -> None:
        """`globals().update(…)`: of the dict of a module or class."""
        call = uses(source).parents.get(node)
        if not isinstance(call, ast.Call) or call.func is not node:
            return
        if node.attr in ("get", "pop", "setdefault", "__getitem__") and path[0] != IN_DICT + "*":
            key = text(call.args[0]) if call.args else None
            if key is None or key == path[0][1:]:
                self.at(source, call, path[1:], calls)
        elif node.attr in ("values", "items", "copy") and path[0] != IN_DICT + "*":
            self.at(source, call, (ITEM, *path[1:]), calls)
        if node.attr not in writers.MUTATORS:
            return
        if node.attr == "update" and all(k.arg for k in call.keywords) and not call.args:
            for keyword in call.keywords:
                self.rebind(source, call, path, keyword.arg)
        elif call.args and node.attr not in ("update", "clear", "popitem"):
            self.rebind(source, call, path, text(call.args[0]))
        else:
            self.rebind(source, call, path, None)

    def _subscript(self, source: Source, node: ast.Subscript, path: Path, calls: Calls) -> None:
        """`value[index]`."""
        load = isinstance(node.ctx, ast.Load)
        if path and path[0][0] == IN_DICT:
            key = text(node.slice)
            if not load:
                self.rebind(source, node, path, key)
            elif path[0][1:] != "*" and (key is None or path[0][1:] == key):
                self.at(source, node, path[1:], calls)
        elif path and path[0] != ITEM:
            return
        elif self.shallow and not path:
            return
        elif load:
            if path or self.kind is not Kind.FLAT:
                self.at(source, node, path[1:], calls)
        elif not path:
            self.write(source, node)

    def _default(self, source: Source, spec: ast.arguments, node: ast.AST, path: Path) -> None:
        """The default of a parameter."""
        function = uses(source).parents.get(spec)
        for parameter, default in with_defaults(spec):
            if default is node and isinstance(function, FunctionNode):
                self.hold(Holder(source, function, parameter.arg), path)

    def _returned(self, source: Source, function: FunctionNode, path: Path, calls: Calls) -> None:
        """A function returns the value: to the call it was entered by, or to all.

        Methods that Python calls by itself, such as `__enter__`, have no calls in the text.
        """
        name = "" if isinstance(function, ast.Lambda) else function.name
        if name.startswith("__") and uses(source).class_of(function) is not None:
            self.may_write(source, function, f"whatever asks `{name}` for it")
        if calls:
            where, call = calls[-1]
            self.at(where, call, path, calls[:-1])
            return
        if function is self.confined:
            return
        for where, node in self.resolver.calls_of(source, function):
            self.at(where, node, path)


def _is_plain(parent: ast.AST | None, node: ast.AST) -> bool:
    """Whether a module whose name is computed is used in a way that is followed: directly."""
    if isinstance(parent, ast.Assign):
        return all(isinstance(each, ast.Name) for each in parent.targets)
    if isinstance(parent, ast.Call):
        return parent.func is not node and isinstance(parent.func, ast.Name)
    return isinstance(parent, ast.Attribute | ast.NamedExpr)
