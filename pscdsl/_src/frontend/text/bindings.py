"""Names in a source file: the statements that bind them, and their uses."""

from __future__ import annotations

import ast
import operator
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from pscdsl._src.frontend.text.source import (
    FunctionNode,
    FunctionStatement,
    Source,
    children,
    targets,
)
from pscdsl.typing.codes.purity import ResultLost
from pscdsl.typing.python_containers import is_tuple

# The bindings of a module: each name with the statements that may bind it last.


# Conditions of module-level branches, as far as their text decides them.


_UNKNOWN = object()
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
    return isinstance(test, ast.Name | ast.Attribute) and _last(test) == "TYPE_CHECKING"


def taken(test: ast.expr) -> bool | None:
    """Return whether this version of Python takes a branch; None if its text does not say."""
    value = _value(test)
    return None if value is _UNKNOWN else bool(value)


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Tuple):
        items = [_value(element) for element in node.elts]
        return _UNKNOWN if _UNKNOWN in items else tuple(items)
    if isinstance(node, ast.Name | ast.Attribute):
        return _known(node)
    if isinstance(node, ast.Subscript):
        return _item(_value(node.value), node.slice)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        value = _value(node.operand)
        return _UNKNOWN if value is _UNKNOWN else not value
    if isinstance(node, ast.BoolOp):
        return _joined(node)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        compare = _COMPARE.get(type(node.ops[0]))
        left, right = _value(node.left), _value(node.comparators[0])
        if compare is None or left is _UNKNOWN or right is _UNKNOWN:
            return _UNKNOWN
        return _tried(lambda: compare(left, right))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.keywords:
        owner = _value(node.func.value)
        arguments = [_value(argument) for argument in node.args]
        if node.func.attr == "startswith" and isinstance(owner, str):
            return (
                _UNKNOWN if _UNKNOWN in arguments else _tried(lambda: owner.startswith(*arguments))
            )
    return _UNKNOWN


def _known(node: ast.Name | ast.Attribute) -> Any:
    name = _last(node)
    owner = _last(node.value) if isinstance(node, ast.Attribute) else ""
    if name == "TYPE_CHECKING":
        return False
    if name == "version_info":
        return tuple(sys.version_info)
    if owner == "version_info" and name in ("major", "minor", "micro"):
        return getattr(sys.version_info, name)
    if (owner, name) == ("sys", "platform"):
        return sys.platform
    return os.name if (owner, name) == ("os", "name") else _UNKNOWN


def _item(value: Any, index: ast.expr) -> Any:
    if not is_tuple(value):
        return _UNKNOWN
    if not isinstance(index, ast.Slice):
        place = _value(index)
        return _UNKNOWN if place is _UNKNOWN else _tried(lambda: value[place])
    parts = [None if p is None else _value(p) for p in (index.lower, index.upper, index.step)]
    return _UNKNOWN if _UNKNOWN in parts else _tried(lambda: value[slice(*parts)])


def _joined(node: ast.BoolOp) -> Any:
    """Evaluate `and` and `or`: one operand may decide."""
    stop = isinstance(node.op, ast.Or)
    values = [_value(value) for value in node.values]
    if any(value is not _UNKNOWN and bool(value) is stop for value in values):
        return stop
    return _UNKNOWN if _UNKNOWN in values else not stop


def _tried(compute: Callable[[], Any]) -> Any:
    try:
        return compute()
    except (TypeError, ValueError, LookupError):
        return _UNKNOWN


# The names that a module exports by `__all__`, as read from its statements.


Other = Callable[[ast.expr], "Iterable[str] | None"]


def exported(body: Iterable[ast.stmt], other: Other) -> list[str] | None:
    """Return the names in `__all__`; None if there is no list that can be followed.

    `other` returns the list of another module for an expression such as `impl.__all__`.
    """
    names: list[str] | None = None
    for statement in body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and _binds_all(statement):
            added = None if statement.value is None else _listed(statement.value, names, other)
            names = []
        elif isinstance(statement, ast.AugAssign) and _is_all(statement.target):
            added = _listed(statement.value, names, other)
        elif isinstance(statement, ast.Expr) and (call := _call_of_all(statement.value)):
            added = _added(call, names, other)
        else:
            continue
        if added is None or names is None:
            return None
        names = [*names, *added]
    return names


def _listed(node: ast.expr, so_far: list[str] | None, other: Other) -> Iterable[str] | None:
    """Return the names in an expression; None if they cannot be read from the text."""
    if isinstance(node, ast.List | ast.Tuple):
        found: list[str] = []
        for item in node.elts:
            if isinstance(item, ast.Constant) and isinstance(item.value, str):
                found.append(item.value)
                continue
            more = _listed(item.value, so_far, other) if isinstance(item, ast.Starred) else None
            if more is None:
                return None
            found.extend(more)
        return found
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _listed(node.left, so_far, other), _listed(node.right, so_far, other)
        return None if left is None or right is None else [*left, *right]
    return so_far if _is_all(node) else other(node)


def _call_of_all(node: ast.expr) -> ast.Call | None:
    """Return a call of `__all__.extend`, or of another method of `__all__`; else None."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node if _is_all(node.func.value) else None
    return None


def _added(call: ast.Call, so_far: list[str] | None, other: Other) -> Iterable[str] | None:
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if len(call.args) != 1 or method not in ("append", "extend"):
        return None
    [argument] = call.args
    whole = ast.List([argument], ast.Load()) if method == "append" else argument
    return _listed(whole, so_far, other)


def _is_all(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "__all__"


def _binds_all(statement: ast.Assign | ast.AnnAssign) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return any(_is_all(target) for target in targets)


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
            for name in inner:  # the last round is unknown
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
        """Return the names after one of several paths from here."""
        way = _Names(names)
        self._stored(parts, node, way)
        self._scan(body, way)
        if body:
            self._branches.append((body, way.sure()))
        return way

    def _stored(self, parts: Iterable[ast.AST | None], node: ast.stmt, names: _Names) -> None:
        """Bind the names that some parts of a statement assign."""
        for part in parts:
            if part is not None:
                for name in assigned(part):
                    self._bind(names, name, node, node)

    def _handler(
        self, node: ast.Try | ast.TryStar, handler: ast.ExceptHandler, names: _Names
    ) -> _Names:
        way = self._way([handler.type], node, handler.body, names)
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


def _around(node: FunctionStatement | ast.ClassDef) -> Iterator[ast.AST]:
    """Yield the nodes that a definition evaluates, without the body."""
    yield from node.decorator_list
    if isinstance(node, ast.ClassDef):
        yield from (*node.bases, *node.keywords)
        for statement in node.body:
            if isinstance(statement, ast.Global):  # it binds names of the module
                yield from [ast.Name(name, ast.Store()) for name in statement.names]
    else:
        yield node.args
        if node.returns is not None:
            yield node.returns


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
    last = body[-1] if body else None
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        return ast.unparse(last.value.func) not in ("sys.exit", "exit", "quit", "os._exit")
    return not isinstance(last, ast.Raise)


def assigned(node: ast.AST) -> Iterator[str]:
    """Yield the names that a part of a statement assigns, except in functions in it."""
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
            yield from assigned(default) if default is not None else ()
        return
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        for inner in ast.walk(node):  # `:=` in a comprehension binds outside of it
            if isinstance(inner, ast.NamedExpr):
                yield inner.target.id
        return
    for child in children(node):
        yield from assigned(child)


def same(values: list[object], constants: tuple[type, ...]) -> bool:
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
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


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
        if isinstance(node, ast.Name):
            self.names.setdefault(node.id, []).append(node)
        elif isinstance(node, ast.Attribute):
            self.attributes.setdefault(node.attr, []).append(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self.functions.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.ClassDef):
            self.classes.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self.imports.append(node)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            self.outer.append(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if all(part.isidentifier() for part in node.value.split(".")):
                self.strings.setdefault(node.value, []).append(node)

    def bound(self, scope: ScopeNode) -> frozenset[str]:
        """Return the names that a scope binds itself."""
        cached = self._bound.get(scope)
        if cached is None:
            cached = self._bound[scope] = frozenset(self._binds(scope))
        return cached

    def _binds(self, scope: ScopeNode) -> Iterator[str]:
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from self.source.scoping(scope)
        elif isinstance(scope, ast.Lambda):
            yield from parameters(scope)
        elif isinstance(scope, ast.ClassDef):
            for statement in scope.body:
                yield from targets(statement)
        else:
            for generator in scope.generators:
                yield from targets(generator.target)

    def owner(self, node: ast.AST, name: str) -> ScopeNode | None:
        """Return the scope of the binding that `name` has at a node; None for the module."""
        child, scope = node, self.parents.get(node)
        direct = True  # the names of a class are visible in its body, and not in functions there
        while scope is not None:
            if isinstance(scope, _FUNCTIONS):
                body = [scope.body] if isinstance(scope, ast.Lambda) else scope.body
                if any(child is statement for statement in body):
                    if name in self.bound(scope):
                        return scope
                    if self._is_global(scope, name):
                        return None
                    direct = False
            elif isinstance(scope, ast.ClassDef):
                inside = any(child is statement for statement in scope.body)
                if inside and direct and name in self.bound(scope):
                    return scope
            elif isinstance(scope, _COMPREHENSIONS):
                first = scope.generators[0].iter
                if not self._within(node, first) and name in self.bound(scope):
                    return scope
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

    def function_of(self, node: ast.AST) -> FunctionNode | None:
        """Return the innermost function around a node."""
        at = self.parents.get(node)
        while at is not None and not isinstance(at, _FUNCTIONS):
            at = self.parents.get(at)
        return at

    def class_of(self, function: ast.AST) -> ast.ClassDef | None:
        """Return the class that has a function as a method."""
        parent = self.parents.get(function)
        return parent if isinstance(parent, ast.ClassDef) else None


def parameters(function: FunctionNode) -> list[str]:
    """Return the names of all parameters."""
    spec = function.args
    found = [p.arg for p in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
    return found + [p.arg for p in (spec.vararg, spec.kwarg) if p is not None]


def bound_value(function: FunctionNode, name: str, line: int) -> ast.expr | None:
    """Return the expression that a function binds to a variable above a line; None if unsure."""
    stores = [
        each
        for each in ast.walk(function)
        if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
    ]
    if not stores or name in parameters(function):
        return None
    above = [each for each in stores if each.lineno < line]
    alone = len(stores) == 1
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
            case ast.Assign(targets=[ast.Name(id=other)], value=value) if other == name:
                is_number = isinstance(value, ast.Constant) and isinstance(value.value, float | int)
                return value if is_number and isinstance(value, ast.Constant) else None
            case _ if name in assigned(statement):
                return None
            case _:
                pass
    return None


def _in_place(node: ast.expr) -> bool:
    """Return whether an expression calls a method that is known to return None."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("append", "clear", "extend", "fill", "insert", "reverse", "sort")
    )


def says_none(node: ast.expr, name: str) -> str:
    """Describe an expression that is None and is bound to a variable."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _in_place(node):
        return f"`.{node.func.attr}` changes what it belongs to, and returns None"
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
    return not any(_returns(statement) for statement in node.body)


def lost_result(source: Source, function: str, node: FunctionNode) -> ResultLost | None:
    """Return a finding if a function without a result rebinds a parameter."""
    if isinstance(node, ast.Lambda) or any(_returns(statement) for statement in node.body):
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


def _returns(node: ast.AST) -> bool:
    """Return whether a statement returns a value."""
    if isinstance(node, ast.Return):
        return node.value is not None and not (
            isinstance(node.value, ast.Constant) and node.value.value is None
        )
    if isinstance(node, FunctionNode | ast.ClassDef):
        return False
    return any(_returns(child) for child in children(node))
