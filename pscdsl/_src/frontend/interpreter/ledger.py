"""What CPython evaluates whenever an expression or a statement is executed, in its order.

What is evaluated on a condition only (the rest of `and`, a branch, the element of a comprehension,
the message of an `assert`) is no part of it: it is due when that condition is taken.  Of `raise`,
nothing is due: it leaves the kernel, and what it would have raised is never seen.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from pscdsl.typing.codes.language import Unsupported
from pscdsl.typing.codes.limits import InternalError
from pscdsl.typing.diagnostics import Failure

Part = ast.expr | None


def due(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions just inside of a node that are evaluated whenever it is executed."""
    for each in _parts(node):
        if isinstance(each, ast.Starred):
            yield each.value
        elif each is not None:
            yield each


def _parts(node: ast.AST) -> Iterable[Part]:
    match node:
        case ast.Constant() | ast.Name():
            return ()
        case ast.Attribute() | ast.UnaryOp() | ast.NamedExpr() | ast.Starred() | ast.Await():
            return (node.operand if isinstance(node, ast.UnaryOp) else node.value,)
        case ast.BinOp():
            return (node.left, node.right)
        case ast.BoolOp():
            return (node.values[0],)
        case ast.Compare():
            return (node.left, node.comparators[0])
        case ast.Call():
            return (node.func, *node.args, *(keyword.value for keyword in node.keywords))
        case ast.IfExp():
            return (node.test,)
        case ast.Subscript():
            return (node.value, node.slice)
        case ast.Slice():
            return (node.lower, node.upper, node.step)
        case ast.Tuple() | ast.List() | ast.Set():
            return node.elts
        case ast.Dict():
            return [each for item in zip(node.keys, node.values, strict=True) for each in item]
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return (node.generators[0].iter,)
        case ast.JoinedStr():
            braces = [value for value in node.values if isinstance(value, ast.FormattedValue)]
            return [part for each in braces for part in (each.value, each.format_spec)]
        case ast.Lambda():
            return _defaults(node.args)
        case _:
            return _of_statement(node)


def _of_statement(node: ast.AST) -> Iterable[Part]:
    match node:
        case ast.Assign():
            return (node.value, *_of_targets(node.targets))
        case ast.AnnAssign():
            return (node.value, *_of_targets([node.target]))
        case ast.AugAssign():
            return (*_of_targets([node.target]), node.value)
        case ast.Expr():  # a constant is not even compiled
            return () if isinstance(node.value, ast.Constant) else (node.value,)
        case ast.Return():
            return (node.value,)
        case ast.If() | ast.While() | ast.Assert():
            return (node.test,)
        case ast.For():
            return (node.iter,)
        case ast.With():
            return [item.context_expr for item in node.items]
        case ast.FunctionDef():
            return (*node.decorator_list, *_defaults(node.args))
        case ast.Delete():
            return _of_targets(node.targets)
        case (
            ast.Raise()
            | ast.Import()
            | ast.ImportFrom()
            | ast.Pass()
            | ast.Break()
            | ast.Continue()
            | ast.Global()
            | ast.Nonlocal()
        ):
            return ()
        case _:
            raise NotImplementedError(type(node).__name__)


def _defaults(spec: ast.arguments) -> Iterable[Part]:
    return (*spec.defaults, *spec.kw_defaults)


def _of_targets(nodes: Iterable[ast.expr]) -> Iterator[ast.expr]:
    """What is evaluated to find the places that are stored into, or deleted."""
    for node in nodes:
        if isinstance(node, ast.Attribute):
            yield node.value
        elif isinstance(node, ast.Subscript):
            yield from (node.value, node.slice)
        elif isinstance(node, ast.Tuple | ast.List):
            yield from _of_targets(node.elts)
        elif isinstance(node, ast.Starred):
            yield from _of_targets([node.value])


def evaluated_annotations(node: ast.FunctionDef) -> Iterator[ast.expr]:
    """The annotations of a function, which are evaluated where it is defined, if not postponed."""
    spec = node.args
    parameters = (*spec.posonlyargs, *spec.args, spec.vararg, *spec.kwonlyargs, spec.kwarg)
    for parameter in parameters:
        if parameter is not None and parameter.annotation is not None:
            yield parameter.annotation
    if node.returns is not None:
        yield node.returns


# Nodes of the syntax tree given to their handlers, and the ledger of what was evaluated.
#
# A handler is given every field of its node by name, so that none is passed over.  The ledger says
# what was evaluated, in which order: what CPython evaluates, and a handler did not, is refused.


SET_BY_THE_PARSER = frozenset({"ctx", "kind", "simple", "type_comment"})
"""Fields that say nothing that the place of the node, its value or its text does not say."""
EMPTY = {"type_params": "type parameters"}
"""Fields that have no meaning here, and what stands in them."""

_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}


def handled(kind: type[ast.AST]) -> tuple[str, ...]:
    """The fields of a kind of node that its handler is given."""
    cached = _FIELDS.get(kind)
    if cached is None:
        left_out = SET_BY_THE_PARSER | EMPTY.keys()
        cached = _FIELDS[kind] = tuple(field for field in kind._fields if field not in left_out)
    return cached


def fields(node: ast.AST) -> dict[str, Any]:
    """The fields of a node by name; a Failure if one is used that has no meaning here."""
    for name, what in EMPTY.items():
        if getattr(node, name, None):
            raise Failure(Unsupported(what=what, rewrite="use `psc.Tree` or a TypeVar"))
    return {name: getattr(node, name) for name in handled(type(node))}


class Ledger:
    """The expressions that were evaluated, in their order, with their values."""

    def __init__(self) -> None:
        self._clock = 0
        self._evaluated: dict[ast.AST, tuple[int, Any]] = {}

    def now(self) -> int:
        """The time before what is evaluated next."""
        return self._clock

    def enter(self, node: ast.AST, value: Any) -> None:
        """An expression was evaluated."""
        self._clock += 1
        self._evaluated[node] = (self._clock, value)

    def value(self, node: ast.AST) -> Any:
        """What an expression stood for when it was evaluated last."""
        return self._evaluated[node][1]

    def settle(self, node: ast.AST, parts: Iterable[ast.AST], began: int) -> None:
        """Everything that was due has been evaluated since a time, in order; else a Failure."""
        last = began
        for part in parts:
            time = self._evaluated.get(part, (0,))[0]
            if time <= began:
                what = f"{type(part).__name__} in {type(node).__name__} is not evaluated"
                raise Failure(InternalError(what=what))
            if time < last:
                raise Failure(InternalError(what=f"parts of {type(node).__name__} out of order"))
            last = time
