"""Names in a source file: the statements that bind them, and their uses."""

from __future__ import annotations

import ast
import operator
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from pscdsl._src.frontend.text.source import (
    FunctionNode,
    FunctionStatement,
    Source,
    children,
    heading,
    inside,
    last_name,
    parameters,
    stores,
    targets,
)
from pscdsl.typing.codes.purity import ResultLost
from pscdsl.typing.python_containers import is_tuple

# The bindings of a module: each name with the statements that may bind it last.


# Conditions of module-level branches, as far as their text decides them.


_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}


def for_type_checkers(test: ast.expr) -> bool:
    """Return whether a branch is only for readers of the source."""
    return last_name(test) == "TYPE_CHECKING"


def taken(test: ast.expr) -> bool | None:
    """Return whether this version of Python takes a branch; None if its text does not say."""
    try:
        return bool(_value(test))
    except (TypeError, ValueError, LookupError):
        return None


def _value(node: ast.expr) -> Any:
    """Return the value of a condition's part; a LookupError if its text does not say it."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Tuple(elts=elements):
            return tuple(map(_value, elements))
        case ast.Name() | ast.Attribute():
            return _known(
                last_name(node), last_name(node.value) if isinstance(node, ast.Attribute) else ""
            )
        case ast.Subscript(value=owner, slice=index) if is_tuple(items := _value(owner)):
            return items[_value(index)]
        case ast.Slice(lower=lower, upper=upper, step=step):
            return slice(*(None if p is None else _value(p) for p in (lower, upper, step)))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand)
        case ast.BoolOp(op=operation, values=values):
            decisive = isinstance(operation, ast.Or)
            truths = [taken(value) for value in values]
            if decisive in truths or None not in truths:
                return decisive if decisive in truths else not decisive
        case ast.Compare(left=left, ops=[sign], comparators=[right]):
            return _COMPARE[type(sign)](_value(left), _value(right))
        case ast.Call(func=ast.Attribute(value=owner, attr="startswith"), args=args, keywords=[]):
            if isinstance(text := _value(owner), str):
                return text.startswith(*map(_value, args))
        case _:
            pass
    raise LookupError


def _known(name: str, owner: str) -> object:
    match owner, name:
        case _, "TYPE_CHECKING":
            return False
        case _, "version_info":
            return tuple(sys.version_info)
        case "version_info", "major" | "minor" | "micro":
            return getattr(sys.version_info, name)
        case "sys", "platform":
            return sys.platform
        case "os", "name":
            return os.name
        case _:
            raise LookupError


# The names that a module exports by `__all__`, as read from its statements.


Other = Callable[[ast.expr], "list[str] | None"]


def exported(body: Iterable[ast.stmt], other: Other) -> list[str] | None:
    """Return the names in `__all__`; None if there is no list that can be followed.

    `other` returns the list of another module for an expression such as `impl.__all__`.
    """
    names: list[str] | None = None
    for statement in body:
        match statement:
            case ast.Assign(targets=bound, value=value) if any(map(_is_all, bound)):
                names = _listed(value, names, other)
            case ast.AnnAssign(target=ast.Name(id="__all__"), value=value):
                names = None if value is None else _listed(value, names, other)
            case ast.AugAssign(target=ast.Name(id="__all__") as old, value=value):
                names = _listed(ast.BinOp(old, ast.Add(), value), names, other)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=old, attr=method), args=args)):
                if not _is_all(old):
                    continue
                if len(args) != 1 or method not in ("append", "extend"):
                    return None
                more = args[0] if method == "extend" else ast.List(args, ast.Load())
                names = _listed(ast.BinOp(old, ast.Add(), more), names, other)
            case _:
                continue
        if names is None:
            return None
    return names


def _listed(node: ast.expr, so_far: list[str] | None, other: Other) -> list[str] | None:
    """Return the names in an expression; None if they cannot be read from the text."""
    match node:
        case ast.List(elts=items) | ast.Tuple(elts=items):
            parts = [_item(item, so_far, other) for item in items]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            parts = [_listed(left, so_far, other), _listed(right, so_far, other)]
        case _:
            parts = [so_far if _is_all(node) else other(node)]
    return None if None in parts else [name for part in parts for name in part or ()]


def _item(node: ast.expr, so_far: list[str] | None, other: Other) -> list[str] | None:
    match node:
        case ast.Constant(value=str(name)):
            return [name]
        case ast.Starred(value=value):
            return _listed(value, so_far, other)
        case _:
            return None


def _is_all(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "__all__"


Node = ast.stmt | ast.alias
Binding: TypeAlias = tuple[Node, ast.stmt]
"""The node that binds a name, and its statement: the same node, or the import of an alias."""
Star: TypeAlias = Callable[[ast.ImportFrom], Iterable[str]]


class _Names(dict[str, tuple[Binding, ...]]):
    """The nodes that may have bound each name last, at a point of the execution."""

    def __init__(self, names: _Names | None = None) -> None:
        super().__init__(names or ())
        self.unsure: set[str] = set() if names is None else set(names.unsure)
        """The names that are bound only on some paths to this point."""

    def sure(self) -> frozenset[str]:
        """Return the names that are bound on every path to this point."""
        return frozenset(self.keys() - self.unsure)


class Bindings:
    """The module-level names of a module; `star` gives the names of `from … import *`."""

    def __init__(self, body: list[ast.stmt], star: Star) -> None:
        self.every: dict[str, list[Binding]] = {}
        """All statements that bind a name at run time, in order."""
        self.last = _Names()
        """The bindings that may be last; a certain name has one."""
        self.for_types = _Names()
        """The bindings for type checkers only."""
        self._branches: list[tuple[list[ast.stmt], frozenset[str]]] = []
        """The statements of each branch, and the names that are bound at its end."""
        self._star = star
        self._scan(body, self.last)

    def of(self, name: str) -> tuple[Binding, ...]:
        """Return the possible last bindings of a name; none if it is not bound."""
        return self.last.get(name) or self.for_types.get(name, ())

    def all_of(self, name: str) -> tuple[Binding, ...]:
        """Return all bindings of a name at run time; else those for type checkers."""
        return tuple(dict.fromkeys(self.every.get(name, ()))) or self.for_types.get(name, ())

    def only_for_types(self, name: str) -> bool:
        """Return whether a name does not exist at run time."""
        return name in self.for_types and name not in self.last

    def may_be_unbound(self, name: str, user: ast.AST | None = None) -> bool:
        """Return whether a name may be unbound when a function or another module reads it.

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
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self._stored(heading(node), node, names)
                for each in node.body if isinstance(node, ast.ClassDef) else ():
                    if isinstance(each, ast.Global):  # the class binds names of the module
                        for name in each.names:
                            self._bind(names, name, node, node)
                self._bind(names, node.name, node, node)
            case ast.Import() | ast.ImportFrom():
                for name, alias in self._imported(node):
                    self._bind(names, name, alias, node)
            case ast.If():
                self._branch(node, names)
            case ast.Try() | ast.TryStar():
                self._try(node, names)
            case ast.With(items=items) | ast.AsyncWith(items=items):
                self._stored(items, node, names)
                suppressed = any("suppress" in ast.unparse(item.context_expr) for item in items)
                ways = [self._way([], node, node.body, names)]
                _merge(names, [*ways, _Names(names)] if suppressed else ways)
            case ast.For() | ast.AsyncFor() | ast.While():
                inner = _Names()
                head = [node.test] if isinstance(node, ast.While) else [node.target, node.iter]
                self._stored(head, node, inner)
                self._scan([*node.body, *node.orelse], inner)
                for name in inner:  # the last round is unknown
                    self._bind(names, name, node, node)
            case ast.Match(subject=subject, cases=cases):
                self._stored([subject], node, names)
                ways = [
                    self._way(filter(None, [case.pattern, case.guard]), node, case.body, names)
                    for case in cases
                ]
                _merge(names, [*ways, _Names(names)])
            case ast.Delete():
                for name in targets(node):
                    self._unbind(names, name, node)
            case ast.AnnAssign(value=None):
                pass  # it declares a name and does not bind it
            case _:
                self._stored([node], node, names)

    def _way(
        self, parts: Iterable[ast.AST], node: ast.stmt, body: list[ast.stmt], names: _Names
    ) -> _Names:
        """Return the names after one of several paths from here."""
        way = _Names(names)
        self._stored(parts, node, way)
        self._scan(body, way)
        if body:
            self._branches.append((body, way.sure()))
        return way

    def _stored(self, parts: Iterable[ast.AST], node: ast.stmt, names: _Names) -> None:
        """Bind the names that some parts of a statement assign."""
        for part in parts:
            for name in targets(part):
                self._bind(names, name, node, node)

    def _handler(
        self, node: ast.Try | ast.TryStar, handler: ast.ExceptHandler, names: _Names
    ) -> _Names:
        way = self._way(filter(None, [handler.type]), node, handler.body, names)
        if handler.name is not None:
            self._unbind(way, handler.name, node)
        return way

    def _unbind(self, names: _Names, name: str, node: ast.stmt) -> None:
        """Unbind a name; its earlier value depends on the time of the look-up."""
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


def _merge(names: _Names, ways: list[_Names], going_on: list[_Names] | None = None) -> None:
    """Merge the bindings of several paths; `going_on` are those that continue here."""
    for name in dict.fromkeys(name for way in ways for name in way):
        found = [binding for way in ways for binding in way.get(name, ())]
        names[name] = tuple(dict.fromkeys(found))
    names.unsure = _unsure(names, ways if going_on is None else going_on)


def _unsure(names: _Names, ways: list[_Names]) -> set[str]:
    return {name for name in names if any(name in w.unsure or name not in w for w in ways)}


def _goes_on(body: list[ast.stmt]) -> bool:
    """Return whether the statements after a branch may run."""
    match body:
        case [*_, ast.Raise()]:
            return False
        case [*_, ast.Expr(value=ast.Call(func=function))]:
            return ast.unparse(function) not in ("sys.exit", "exit", "quit", "os._exit")
        case _:
            return True


def same(values: Sequence[object], constants: tuple[type, ...]) -> bool:
    """Return whether all values are known to be the same."""
    first, *others = values
    return all(
        other is first
        or (type(other) is type(first) and isinstance(first, constants) and other == first)
        for other in others
    )


# The uses of names, attributes and functions in a source file: one walk over its tree.
#
# The binding of a use is computed on demand.


ScopeNode: TypeAlias = (
    ast.FunctionDef
    | ast.AsyncFunctionDef
    | ast.Lambda
    | ast.ClassDef
    | ast.ListComp
    | ast.SetComp
    | ast.DictComp
    | ast.GeneratorExp
)
"""The nodes with a scope; None is the module."""


class Uses:
    """The uses in one file."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.parents: dict[ast.AST, ast.AST] = {}
        self.names: dict[str, list[ast.Name]] = {}
        self.attributes: dict[str, list[ast.Attribute]] = {}
        self.functions: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
        self.classes: dict[str, list[ast.ClassDef]] = {}
        self.imports: list[ast.Import | ast.ImportFrom] = []
        self.outer: list[ast.Global | ast.Nonlocal] = []
        self.strings: dict[str, list[ast.Constant]] = {}
        """Strings that are names, perhaps with dots."""
        self._bound: dict[ast.AST, frozenset[str]] = {}
        pending: list[ast.AST] = [source.tree]
        while pending:
            node = pending.pop()
            for child in children(node):
                self.parents[child] = node
                pending.append(child)
            self._note(node)

    def _note(self, node: ast.AST) -> None:
        match node:
            case ast.Name(id=name):
                self.names.setdefault(name, []).append(node)
            case ast.Attribute(attr=name):
                self.attributes.setdefault(name, []).append(node)
            case ast.Constant(value=str(text)):
                if all(part.isidentifier() for part in text.split(".")):
                    self.strings.setdefault(text, []).append(node)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                self.functions.setdefault(name, []).append(node)
            case ast.ClassDef(name=name):
                self.classes.setdefault(name, []).append(node)
            case ast.Import() | ast.ImportFrom():
                self.imports.append(node)
            case ast.Global() | ast.Nonlocal():
                self.outer.append(node)
            case _:
                pass

    def bound(self, scope: ScopeNode) -> frozenset[str]:
        """Return the names that a scope binds itself."""
        cached = self._bound.get(scope)
        if cached is None:
            cached = self._bound[scope] = frozenset(self._binds(scope))
        return cached

    def _binds(self, scope: ScopeNode) -> Iterable[str]:
        match scope:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return self.source.scoping(scope)
            case ast.Lambda():
                return parameters(scope)
            case ast.ClassDef(body=body):
                return [name for statement in body for name in targets(statement)]
            case _:
                return [name for each in scope.generators for name in targets(each.target)]

    def owner(self, node: ast.AST, name: str) -> ScopeNode | None:
        """Return the scope of the binding that `name` has at a node; None for the module."""
        child, scope = node, self.parents.get(node)
        direct = True  # the names of a class are visible in its body, and not in functions there
        while scope is not None:
            match scope:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                    body = [scope.body] if isinstance(scope, ast.Lambda) else scope.body
                    if any(child is statement for statement in body):
                        if name in self.bound(scope):
                            return scope
                        if self._is_global(scope, name):
                            return None
                        direct = False
                case ast.ClassDef(body=body):
                    of_body = any(child is statement for statement in body)
                    if of_body and direct and name in self.bound(scope):
                        return scope
                case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                    first = scope.generators[0].iter
                    if not self._within(node, first) and name in self.bound(scope):
                        return scope
                case _:
                    pass
            child, scope = scope, self.parents.get(scope)
        return None

    def _within(self, node: ast.AST, other: ast.AST) -> bool:
        at: ast.AST | None = node
        while at is not None and not isinstance(at, ast.stmt):
            if at is other:
                return True
            at = self.parents.get(at)
        return False

    def _is_global(self, function: FunctionNode, name: str) -> bool:
        return any(
            isinstance(each, ast.Global)
            and name in each.names
            and self.function_of(each) is function
            for each in self.outer
        )

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the ancestors of a node, outwards to the module."""
        parent = self.parents.get(node)
        while parent is not None:
            yield parent
            parent = self.parents.get(parent)

    def function_of(self, node: ast.AST) -> FunctionNode | None:
        """Return the innermost function around a node."""
        return next((each for each in self.above(node) if isinstance(each, FunctionNode)), None)

    def class_of(self, function: ast.AST) -> ast.ClassDef | None:
        """Return the class that has a function as a method."""
        parent = self.parents.get(function)
        return parent if isinstance(parent, ast.ClassDef) else None


def bound_value(function: FunctionNode, name: str, line: int) -> ast.expr | None:
    """Return the expression that a function binds to a variable above a line; None if unsure."""
    bound = stores(function, name)
    if not bound or name in parameters(function):
        return None
    above = [each for each in bound if each.lineno < line]
    alone = len(bound) == 1
    for statement in ast.walk(function):
        match statement:
            case ast.Assign(targets=[ast.Name() as target], value=value) if target in above[-1:]:
                return value if alone or _in_place(value) else None
            case _:
                pass
    return None


def first_number(function: FunctionNode, name: str) -> ast.Constant | None:
    """Return the number that a function binds to a variable first; None if it binds none."""
    for statement in [] if isinstance(function, ast.Lambda) else function.body:
        match statement:
            case ast.Assign(
                targets=[ast.Name(id=other)], value=ast.Constant(value=float() | int()) as number
            ) if other == name:
                return number
            case _ if name in targets(statement):
                return None
            case _:
                pass
    return None


def _in_place(node: ast.expr) -> str:
    """Return the method that an expression calls and that is known to return None; else empty."""
    match node:
        case ast.Call(
            func=ast.Attribute(
                attr="append" | "clear" | "extend" | "fill" | "insert" | "reverse" | "sort" as name
            )
        ):
            return name
        case _:
            return ""


def says_none(node: ast.expr, name: str) -> str:
    """Describe an expression that is None and is bound to a variable."""
    if method := _in_place(node):
        return f"`.{method}` changes what it belongs to, and returns None"
    return f"`{name}` is None"


def uses(source: Source) -> Uses:
    """Return the uses in a file, computed once."""
    if source.uses is None:
        source.uses = Uses(source)
    return source.uses


# Rebound parameters in functions without a result: the new value is lost.


def is_lost(node: FunctionNode | None, name: str) -> bool:
    """Return whether a new value of a parameter is lost at the end of a function."""
    if node is None or isinstance(node, ast.Lambda) or name not in parameters(node):
        return False
    return not _returns(node)


def lost_result(source: Source, function: str, node: FunctionNode) -> ResultLost | None:
    """Return a finding if a function without a result rebinds a parameter."""
    if isinstance(node, ast.Lambda) or _returns(node):
        return None
    index = uses(source)
    bound = [
        each
        for name in parameters(node)
        for each in index.names.get(name, ())
        if not isinstance(each.ctx, ast.Load) and index.owner(each, name) is node
    ]
    if not bound:
        return None
    first = min(bound, key=lambda each: (each.lineno, each.col_offset))
    return ResultLost(function=function, name=first.id, span=source.span(first))


def _returns(node: FunctionStatement) -> bool:
    """Return whether a function has a statement that returns a value."""
    for inner in inside(node):
        match inner:
            case ast.Return(value=None | ast.Constant(value=None)):
                pass
            case ast.Return():
                return True
            case _:
                pass
    return False
