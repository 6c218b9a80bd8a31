"""Python's grammar, enumerated: each kind of node, field and operator has an entry, or is refused.

What a newer Python adds is a failure here.  What is due whenever a node is executed is compared
with what CPython evaluates, in its order.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pscdsl._src.frontend.interpreter import expressions, matching, statements
from pscdsl._src.frontend.interpreter.frames import (
    EMPTY,
    SET_BY_THE_PARSER,
    due,
    fields,
    handled,
    without_meaning,
)
from pscdsl._src.frontend.purity import BINARY, COMPARE, UNARY
from pscdsl.numpy import methods
from pscdsl.typing.diagnostics import Failure

INSIDE = {"FormattedValue", "Interpolation"}
"""Read where they stand, in an f-string or a template string."""
OLD = {"Num", "Str", "Bytes", "NameConstant", "Ellipsis", "AugLoad", "AugStore", "Param"}
"""Names of nodes that nothing makes any more."""


def kinds(base: type[ast.AST]) -> list[type[ast.AST]]:
    """The kinds of nodes of a sort that this Python has."""
    found = [*base.__subclasses__()]
    for each in tuple(found):
        found += kinds(each)
    return [each for each in found if each.__module__ == "ast" and each.__name__ not in OLD]


def test_every_kind_of_node_has_an_entry() -> None:
    for base, read, refused in (
        (ast.expr, expressions.EXPRESSIONS, expressions.REFUSED),
        (ast.stmt, statements.STATEMENTS, statements.REFUSED),
    ):
        names = {each.__name__ for each in read}
        missing = {each.__name__ for each in kinds(base)} - names - refused.keys()
        assert missing <= INSIDE
        assert not names & refused.keys()


HANDLERS: list[tuple[type[ast.AST], Callable[..., Any]]] = [
    *expressions.EXPRESSIONS.items(),
    *statements.STATEMENTS.items(),
    *matching.PATTERNS.items(),
    (ast.FormattedValue, expressions.formatted_value),
]


def test_handlers_take_every_field_by_name() -> None:
    for kind, handler in HANDLERS:
        left = {*kind._fields} - {*handled(kind, handler)}
        assert left <= SET_BY_THE_PARSER | EMPTY.keys(), kind.__name__
        parameters = [*inspect.signature(handler).parameters.values()]
        lead = 1 if kind is ast.FormattedValue else 4 if kind in matching.PATTERNS else 2
        required = {each.name for each in parameters[lead:] if each.default is each.empty}
        assert required <= {*kind._fields}, kind.__name__


FIELDS = {
    "arguments": "posonlyargs args vararg kwonlyargs kw_defaults kwarg defaults",
    "arg": "arg annotation type_comment",
    "keyword": "arg value",
    "alias": "name asname",
    "withitem": "context_expr optional_vars",
    "comprehension": "target iter ifs is_async",
    "match_case": "pattern guard body",
    "ExceptHandler": "type name body",
}
"""The parts of nodes that are no expressions themselves, with the fields that are read."""
SORTS = (
    *(ast.expr, ast.stmt, ast.pattern, ast.operator, ast.cmpop, ast.unaryop, ast.boolop),
    *(ast.expr_context, ast.mod, ast.type_ignore),
)
"""The sorts of nodes, beside parts of these and type parameters, which are refused."""


def test_parts_of_nodes_have_the_fields_that_are_read() -> None:
    for name, read in FIELDS.items():
        assert [*getattr(ast, name)._fields] == read.split()
    sorts = (*SORTS, *(getattr(ast, name) for name in ("type_param",) if hasattr(ast, name)))
    parts = {each.__name__ for each in kinds(ast.AST) if not issubclass(each, sorts)}
    assert parts - {"excepthandler", "slice", "Index", "ExtSlice"} == FIELDS.keys()
    every = {field for kind in (*kinds(ast.expr), *kinds(ast.stmt)) for field in kind._fields}
    assert {*EMPTY} - every <= {"type_params", "is_lazy"}  # of Python 3.12 and 3.15
    assert SET_BY_THE_PARSER <= every


class Unheard(ast.expr):
    """An expression of a newer Python."""


class Fuller(ast.Pass):
    """A statement with a field of a newer Python."""

    _fields = ("harder",)
    _field_types = {"harder": int | None}  # noqa: RUF012


def test_what_a_newer_python_adds_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 16, 0))
    found = without_meaning(Unheard(), expressions.REFUSED)
    assert found.message() == "not supported yet: Python 3.16's `Unheard`"
    handler, node = statements.STATEMENTS[ast.Pass], Fuller()
    node.harder = None  # type: ignore[attr-defined]
    assert fields(node, handler) == {}
    node.harder = 1  # type: ignore[attr-defined]
    with pytest.raises(Failure) as raised:
        fields(node, handler)
    (found,) = raised.value.diagnostics
    assert found.message() == "not supported yet: Python 3.16's `Fuller.harder`"


def test_every_operator_has_an_entry() -> None:
    def names(base: type[ast.AST]) -> set[str]:
        return {each.__name__ for each in kinds(base)}

    assert names(ast.operator) == {*BINARY} == {*methods.BINARY}
    assert names(ast.cmpop) == {*COMPARE, "In", "NotIn", "Is", "IsNot"}
    assert names(ast.unaryop) == {*UNARY, "Not"}
    assert names(ast.boolop) == {"And", "Or"}
    assert names(ast.expr_context) == {"Load", "Store", "Del"}


# What is due.

PROGRAMS = """
a = b + c * d
a, t[u()] = u(1), u(2)
a = t[0] = u(3)
t[0], o.z = b, c
a: int = b
t[u()]: int
t[u()]: int = u(7)
o.z: int = b
a += b
t[0] += u(1)
o.z += u(2)
u(b, *t, j=c, **m)
u(*t, u(1), **m, j=u(2))
a = b < c
a = [b, *t, c]
a = {b, *t}
a = {b: c, **m, 'k': d}
a = t[b - b:c - c:d]
a = t[u():]
a = f'{b} and {c:>{d}} {u(1)!r}'
a = lambda p, q=b, *, r=c: d
a = (lambda p=u(1): p)()
a = b if c else d
a = b and c
a = not b
a = [p for p in t]
a = {p: p for p in u2()}
a = sum(p for p in t)
a = (w := b) + w
if b: a = c
while not b: a = c
for p in t: a = p
for o.z in u2(): pass
assert b, c
del t[u()]
del o.y
@dec(b)@dec(c)def f(p=b, *, q=c): return d
b
"constant"
u(b); u(c)
a = -b ** c
a = o.x.real
a = m['k'][0:b]
a = (b, (c, d))
"""
"""Statements that run; `u(k)` gives its argument, and indices that are there."""
if sys.version_info >= (3, 15):
    PROGRAMS += "a = [*p for p in (t, t)]\na = {*p for p in (t, t)}\n"  # pyright: ignore
    PROGRAMS += "a = {**p for p in (m, m)}\n"  # pyright: ignore


class Marking(ast.NodeTransformer):
    """Each expression that is evaluated where it stands is handed to `mark` with its number."""

    def __init__(self) -> None:
        self.numbers: dict[ast.AST, int] = {}

    def visit(self, node: ast.AST) -> Any:
        """The node, or what marks it."""
        number = self.numbers[node] = len(self.numbers)
        new = super().visit(node)
        stored = isinstance(getattr(node, "ctx", ast.Load()), ast.Store | ast.Del)
        hidden = isinstance(node, ast.Starred | ast.Slice | ast.FormattedValue)
        if not isinstance(node, ast.expr) or stored or hidden:
            return new
        return ast.Call(ast.Name("mark", ast.Load()), [ast.Constant(number), new], [])

    def visit_FormattedValue(self, node: ast.FormattedValue) -> Any:
        """What stands in braces, and in the format."""
        node.value = self.visit(node.value)
        if node.format_spec is not None:
            spec = node.format_spec
            node.format_spec = self.generic_visit(spec)  # type: ignore[assignment]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """All but the annotation."""
        node.target = self.visit(node.target)
        node.value = None if node.value is None else self.visit(node.value)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        """What stands in braces."""
        node.values = [
            self.visit(each) if isinstance(each, ast.FormattedValue) else each
            for each in node.values
        ]
        return node


def everything_due(node: ast.AST) -> Iterator[ast.AST]:
    """What is due for a node, what is due for that first, and so on."""
    for each in due(node):
        yield from everything_due(each)
        yield each


class Thing:
    """An object with attributes."""

    x: Any = 1

    def __init__(self) -> None:
        self.y: Any = 2
        self.z: Any = 3


def index(*args: Any, **kwargs: Any) -> int:
    """A place in a list."""
    return int(args[0]) % 3 if len(args) == 1 and not kwargs else 0


def decorating(_: Any) -> Callable[[Any], Any]:
    """A decorator that does nothing."""
    return lambda function: function


@pytest.mark.parametrize("text", PROGRAMS.strip().splitlines())
def test_what_is_due_is_what_cpython_evaluates(text: str) -> None:
    text = text.replace(")@", ")\n@").replace(")def", ")\ndef")
    plain, marked = ast.parse(text), ast.parse(text)
    copies = dict(zip(ast.walk(plain), ast.walk(marked), strict=True))
    marking = Marking()
    tree = ast.fix_missing_locations(marking.visit(marked))
    order: list[int] = []

    def mark(number: int, value: Any) -> Any:
        order.append(number)
        return value

    names: dict[str, Any] = {
        **{"a": 5, "b": 1, "c": 2, "d": 3, "t": [1, 2, 3], "m": {"k": [4, 5]}, "o": Thing()},
        "u": index,
        "u2": lambda: [1, 2],
        "dec": decorating,
        "mark": mark,
    }
    exec(compile(tree, "<marked>", "exec"), names)
    first = {number: time for time, number in reversed([*enumerate(order)])}
    for statement in plain.body:
        times: list[int] = []
        for each in everything_due(statement):
            number = marking.numbers.get(copies[each], -1)
            if isinstance(each, ast.Slice | ast.JoinedStr) and number not in first:
                continue  # it is nothing but its parts
            assert number in first, f"{type(each).__name__} is not evaluated"
            times.append(first[number])
        assert times == sorted(times)
