"""What the statements of a module bind: each name with the statements that may have the last word.

Branches that the text decides are followed, any other may go either way.  Of `try`, the body is
what is meant to work; a handler's names count where the body does not bind them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from pscdsl._src.frontend.text.conditions import for_type_checkers, taken
from pscdsl._src.frontend.text.source import FunctionStatement

Node = ast.stmt | ast.alias
Binding: TypeAlias = tuple[Node, ast.stmt]
"""What binds a name, and the statement it is part of: the same, or an import."""
Star: TypeAlias = Callable[[ast.ImportFrom], Iterable[str]]


class _Names(dict[str, tuple[Binding, ...]]):
    """What may have bound each name last, where execution has come to."""

    def __init__(self, names: _Names | None = None) -> None:
        super().__init__(names or ())
        self.unsure: set[str] = set() if names is None else set(names.unsure)
        """Those that are bound on some ways to here only."""

    def sure(self) -> frozenset[str]:
        """The names that are bound on every way to here."""
        return frozenset(self.keys() - self.unsure)


class Bindings:
    """The module-level names of a module; `star` gives the names of `from … import *`."""

    def __init__(self, body: list[ast.stmt], star: Star) -> None:
        self.every: dict[str, list[Binding]] = {}
        """All statements that bind a name where the program runs, in order."""
        self.last = _Names()
        """Those that may be the last; a name that is certain has one."""
        self.for_types = _Names()
        """What is bound for type checkers only."""
        self._branches: list[tuple[list[ast.stmt], frozenset[str]]] = []
        """The statements of each branch, and the names that are bound where it ends."""
        self._star = star
        self._scan(body, self.last)

    def of(self, name: str) -> tuple[Binding, ...]:
        """What may bind a name; nothing if it is not bound."""
        return self.last.get(name) or self.for_types.get(name, ())

    def all_of(self, name: str) -> tuple[Binding, ...]:
        """All that binds a name where the program runs; else what binds it for type checkers."""
        return tuple(dict.fromkeys(self.every.get(name, ()))) or self.for_types.get(name, ())

    def only_for_types(self, name: str) -> bool:
        """Whether a name is not there when the program runs."""
        return name in self.for_types and name not in self.last

    def may_be_unbound(self, name: str, user: ast.AST | None = None) -> bool:
        """Whether a name may be unbound when a function, or code out of this module, reads it.

        A function in a branch finds the names that its branch binds.
        """
        if name not in self.last.unsure:
            return False
        line = getattr(user, "lineno", 0)
        return not any(
            body[0].lineno <= line <= (body[-1].end_lineno or 0) and name in sure
            for body, sure in self._branches
        )

    def _bind(self, names: _Names, name: str, node: Node, statement: ast.stmt) -> None:
        names[name] = ((node, statement),)
        names.unsure.discard(name)
        if names is not self.for_types:
            self.every.setdefault(name, []).append((node, statement))

    def _scan(self, body: Iterable[ast.stmt], names: _Names) -> None:
        for node in body:
            self._statement(node, names)

    def _statement(self, node: ast.stmt, names: _Names) -> None:
        if isinstance(node, FunctionStatement | ast.ClassDef):
            self._stored(_around(node), node, names)
            self._bind(names, node.name, node, node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for name, alias in self._imported(node):
                self._bind(names, name, alias, node)
        elif isinstance(node, ast.If):
            self._branch(node, names)
        elif isinstance(node, ast.Try | ast.TryStar):
            self._try(node, names)
        elif isinstance(node, ast.With | ast.AsyncWith):
            self._stored((item.optional_vars for item in node.items), node, names)
            suppressed = any("suppress" in ast.unparse(item.context_expr) for item in node.items)
            ways = [self._way([], node, node.body, names)]
            _merge(names, [*ways, _Names(names)] if suppressed else ways)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.While):
            inner = _Names()
            self._stored([getattr(node, "target", None)], node, inner)
            self._scan([*node.body, *node.orelse], inner)
            for name in inner:  # which round was the last is not known
                self._bind(names, name, node, node)
        elif isinstance(node, ast.Match):
            ways = [self._way([case.pattern], node, case.body, names) for case in node.cases]
            _merge(names, [*ways, _Names(names)])
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                self._unbind(names, getattr(target, "id", ""), node)
        elif isinstance(node, ast.AnnAssign) and node.value is None:
            pass  # it declares a name and does not bind it
        else:
            self._stored([node], node, names)

    def _way(
        self, parts: Iterable[ast.AST | None], node: ast.stmt, body: list[ast.stmt], names: _Names
    ) -> _Names:
        """The names after one of several ways on from here."""
        way = _Names(names)
        self._stored(parts, node, way)
        self._scan(body, way)
        if body:
            self._branches.append((body, way.sure()))
        return way

    def _stored(self, parts: Iterable[ast.AST | None], node: ast.stmt, names: _Names) -> None:
        """The names that are assigned in some parts of a statement."""
        for part in parts:
            if part is not None:
                for name in _assigned(part):
                    self._bind(names, name, node, node)

    def _handler(
        self, node: ast.Try | ast.TryStar, handler: ast.ExceptHandler, names: _Names
    ) -> _Names:
        way = self._way([handler.type], node, handler.body, names)
        if handler.name is not None:
            self._unbind(way, handler.name, node)
        return way

    def _unbind(self, names: _Names, name: str, node: ast.stmt) -> None:
        """A name is no more; what it was before depends on when one looks."""
        self._bind(names, name, node, node)
        names.pop(name)
        names.unsure.discard(name)

    def _imported(self, node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, ast.alias]]:
        for alias in node.names:
            if alias.name != "*":
                yield alias.asname or alias.name.split(".")[0], alias
            elif isinstance(node, ast.ImportFrom):
                for name in self._star(node):
                    yield name, ast.alias(name)

    def _branch(self, node: ast.If, names: _Names) -> None:
        self._stored([node.test], node, names)
        if for_type_checkers(node.test):
            self._scan(node.body, self.for_types)
            self._scan(node.orelse, names)
            return
        decided = taken(node.test)
        if decided is None:
            bodies = (node.body, node.orelse)
            ways = [self._way([], node, body, names) for body in bodies]
            _merge(names, ways, [w for w, body in zip(ways, bodies, strict=True) if _goes_on(body)])
        else:
            self._scan(node.body if decided else node.orelse, names)

    def _try(self, node: ast.Try | ast.TryStar, names: _Names) -> None:
        handlers = [self._handler(node, handler, names) for handler in node.handlers]
        body = self._way([], node, [*node.body, *node.orelse], names)
        bound = {name for name in body if body[name] is not names.get(name)}
        _merge(names, handlers, [])
        names.update({name: body[name] for name in bound})
        bodies = [handler.body for handler in node.handlers]
        ways = [body, *(w for w, of in zip(handlers, bodies, strict=True) if _goes_on(of))]
        names.unsure = _unsure(names, ways)
        self._scan(node.finalbody, names)


def _around(node: FunctionStatement | ast.ClassDef) -> Iterator[ast.AST]:
    """What is evaluated where a function or a class is defined, its body left out."""
    yield from node.decorator_list
    if isinstance(node, ast.ClassDef):
        yield from (*node.bases, *node.keywords)
        for each in node.body:
            if isinstance(each, ast.Global):  # it binds names of the module
                yield from [ast.Name(name, ast.Store()) for name in each.names]
    else:
        yield node.args
        if node.returns is not None:
            yield node.returns


def _merge(names: _Names, ways: list[_Names], going_on: list[_Names] | None = None) -> None:
    """What may be bound after one of several ways was taken, of which some go on from here."""
    for name in dict.fromkeys(name for way in ways for name in way):
        found = [binding for way in ways for binding in way.get(name, ())]
        names[name] = tuple(dict.fromkeys(found))
    names.unsure = _unsure(names, ways if going_on is None else going_on)


def _unsure(names: _Names, ways: list[_Names]) -> set[str]:
    return {name for name in names if any(name in w.unsure or name not in w for w in ways)}


def _goes_on(body: list[ast.stmt]) -> bool:
    """Whether what follows a branch may run after it."""
    last = body[-1] if body else None
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        return ast.unparse(last.value.func) not in ("sys.exit", "exit", "quit", "os._exit")
    return not isinstance(last, ast.Raise)


def _assigned(node: ast.AST) -> Iterator[str]:
    """The names that a part of a statement assigns, those of functions in it left out."""
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Store):
            yield node.id
        return
    if isinstance(node, ast.MatchAs | ast.MatchStar):
        if node.name is not None:
            yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest is not None:
        yield node.rest
    elif isinstance(node, ast.Constant):
        return
    elif isinstance(node, ast.Lambda):
        for default in (*node.args.defaults, *node.args.kw_defaults):
            yield from _assigned(default) if default is not None else ()
        return
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        for each in ast.walk(node):  # `:=` in a comprehension binds outside of it
            if isinstance(each, ast.NamedExpr):
                yield each.target.id
        return
    for child in ast.iter_child_nodes(node):
        yield from _assigned(child)


def same(values: list[object], constants: tuple[type, ...]) -> bool:
    """Whether all values are one and the same, as far as can be told."""
    first, *others = values
    return all(
        other is first
        or (type(other) is type(first) and isinstance(first, constants) and other == first)
        for other in others
    )
