"""Expressions: the abstract interpreter's other half is `statements`.

Each kind of node has a handler `(frame, node) -> value`; `evaluate` adds the place to whatever
goes wrong and lets the rest of the function be checked.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from pscdsl.frontend import operators
from pscdsl.frontend.attributes import attribute
from pscdsl.frontend.calls import call, with_operands, with_origins
from pscdsl.frontend.frames import Frame, Session
from pscdsl.frontend.functions import Closure
from pscdsl.frontend.iteration import elements, unrolling
from pscdsl.frontend.purity import external_value
from pscdsl.frontend.source import with_defaults
from pscdsl.frontend.subscripts import subscript
from pscdsl.frontend.values import (
    POISON,
    External,
    Once,
    Poison,
    Poisoned,
    Undecided,
    describe,
    is_plain,
    is_poisoned,
    is_traced,
    text,
    without_poison,
)
from pscdsl.frontend.weights import formatted
from pscdsl.narrowing import is_dict, is_known_array
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.language import NotStatic, Unsupported
from pscdsl.typing.codes.language_arrays import BranchOnArray
from pscdsl.typing.codes.limits import InternalError
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, DimTooLarge

Handler = Callable[[Frame, Any], Any]


def evaluate(frame: Frame, node: ast.expr) -> Any:
    """The value of an expression; POISON, with the finding reported, if it has none."""
    handler = EXPRESSIONS.get(type(node))
    session = frame.session
    try:
        session.step()
        if handler is None:
            what, rewrite = REFUSED.get(type(node), (type(node).__name__, ""))
            raise Failure(Unsupported(what=what, rewrite=rewrite))
        value = handler(frame, node)
        return session.made(value) if type(node) in MAKING else value
    except Failure as failure:
        session.report(failure.at(frame.span(node)))
    except Poisoned:
        pass
    except DimTooLarge:
        frame.report(node, Unsupported(what="a size this large", rewrite=""))
    except RecursionError:
        raise
    except (TypeError, ValueError, ZeroDivisionError, OverflowError, IndexError, KeyError) as error:
        frame.report(node, InternalError(what=f"{type(error).__name__}: {error}"))
    return POISON


def _constant(frame: Frame, node: ast.Constant) -> Any:
    return frame.session.made(node.value) if isinstance(node.value, int) else node.value


def _name(frame: Frame, node: ast.Name) -> Any:
    return frame.lookup(node.id)


def _tuple(frame: Frame, node: ast.Tuple) -> Any:
    return tuple(_items(frame, node.elts))


def _list(frame: Frame, node: ast.List) -> Any:
    return _items(frame, node.elts)


def _items(frame: Frame, nodes: list[ast.expr]) -> list[Any]:
    values: list[Any] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            values.extend(elements(evaluate(frame, node.value)))
        else:
            values.append(evaluate(frame, node))
    return values


def _set(frame: Frame, node: ast.Set) -> Any:
    return _as_set(_items(frame, node.elts))


def _as_set(items: list[Any]) -> set[Any]:
    """A set of static values: what it holds is known, in which order is not."""
    if is_poisoned(items):
        raise Poisoned
    if any(is_traced(each) for each in items):
        raise Failure(NotStatic(what="an item of a set"))
    return set(items)


def _set_comprehension(frame: Frame, node: ast.SetComp) -> Any:
    values: list[Any] = []
    _generate(frame, node.generators, lambda inner: values.append(evaluate(inner, node.elt)))
    return _as_set(values)


def _dict(frame: Frame, node: ast.Dict) -> Any:
    result: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            inner = evaluate(frame, value)
            if isinstance(inner, Poison):
                raise Poisoned
            if not is_dict(inner):
                raise Failure(NotStatic(what=f"`**` of {describe(inner)}"))
            result.update(inner)
        else:
            evaluated = evaluate(frame, key)
            if is_poisoned(evaluated) or is_traced(evaluated):
                raise Failure(NotStatic(what="a key of a dict"))
            result[evaluated] = evaluate(frame, value)
    return result


def _attribute(frame: Frame, node: ast.Attribute) -> Any:
    value = evaluate(frame, node.value)
    if isinstance(value, Poison):
        return POISON
    return attribute(frame, node, value, node.attr)


def _subscript(frame: Frame, node: ast.Subscript) -> Any:
    value = evaluate(frame, node.value)
    index = evaluate(frame, node.slice)
    if isinstance(value, Poison) or is_poisoned(index):
        return POISON
    return subscript(frame, node, value, index)


def _slice(frame: Frame, node: ast.Slice) -> Any:
    parts = [
        None if each is None else evaluate(frame, each)
        for each in (node.lower, node.upper, node.step)
    ]
    if is_poisoned(parts):
        return POISON
    return slice(*parts)


def _binary(frame: Frame, node: ast.BinOp) -> Any:
    left, right = evaluate(frame, node.left), evaluate(frame, node.right)
    if is_poisoned(left) or is_poisoned(right):
        return POISON
    for value, part in ((left, node.left), (right, node.right)):
        if isinstance(value, External):
            raise Failure(external_value(value)).at(frame.span(part))
    try:
        return operators.binary(frame, node, type(node.op).__name__, left, right)
    except Failure as failure:
        found = with_operands(failure, frame, (node.left, node.right))
        raise with_origins(found, (left, right)) from None


def _unary(frame: Frame, node: ast.UnaryOp) -> Any:
    operand = evaluate(frame, node.operand)
    if is_poisoned(operand):
        return POISON
    return operators.unary(frame, node, operand)


def _compare(frame: Frame, node: ast.Compare) -> Any:
    values = [evaluate(frame, each) for each in (node.left, *node.comparators)]
    if is_poisoned(values):
        return POISON
    try:
        return operators.comparison(frame, node, values)
    except Failure as failure:
        raise with_origins(failure, values) from None


def _boolean(frame: Frame, node: ast.BoolOp) -> Any:
    """`and`, `or`: short-circuit on static truth."""
    is_and = isinstance(node.op, ast.And)
    pending: list[Undecided] = []
    value: Any = None
    for index, each in enumerate(node.values):
        value = evaluate(frame, each)
        if isinstance(value, Poison):
            return POISON
        if isinstance(value, Undecided):
            pending.append(value)
            continue
        if isinstance(value, Dim):
            truth = operators.decided(frame, (Fact("!=", value, 0),))
            if isinstance(truth, Undecided):
                raise Failure(operators.undecided(operators.known_facts(frame), truth))
            if truth is not is_and:
                return value
            continue
        if is_traced(value) or is_known_array(value):
            word, sign = ("and", "&") if is_and else ("or", "|")
            rest = [frame.source.text_of(x) for x in node.values]
            raise Failure(
                BranchOnArray(
                    construct=f"`{word}`",
                    found=str(getattr(value, "type", "an array")),
                    rewrite=f" {sign} ".join(f"({text})" for text in rest),
                )
            )
        if operators.static_truth(value) is not is_and:
            return value
        del index
    if not pending:
        return value
    if len(pending) == 1:
        return pending[0]
    if any(len(each.facts) > 1 and each.any_of is is_and for each in pending):
        raise Failure(NotStatic(what="a mixture of `and` and `or` of conditions on sizes"))
    return Undecided(tuple(fact for each in pending for fact in each.facts), not is_and)


def _conditional(frame: Frame, node: ast.IfExp) -> Any:
    chosen = operators.truth(
        frame, node.test, "a conditional expression", lambda: _where(frame, node)
    )
    if chosen is None:
        evaluate(frame, node.body)
        evaluate(frame, node.orelse)
        return POISON
    return evaluate(frame, node.body if chosen else node.orelse)


def _where(frame: Frame, node: ast.IfExp) -> str:
    text = frame.source.text_of
    return f"np.where({text(node.test)}, {text(node.body)}, {text(node.orelse)})"


def _lambda(frame: Frame, node: ast.Lambda) -> Any:
    return closure(frame, node, "<lambda>")


def closure(
    frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, name: str
) -> Closure:
    """A function defined here; its defaults are evaluated now."""
    defaults = {
        parameter.arg: _default(frame, name, parameter.arg, default)
        for parameter, default in with_defaults(node.args)
    }
    outer = frame if frame.closure is not None else frame.outer
    return Closure(name, node, frame.source, frame.scope, outer, defaults)


def _default(frame: Frame, function: str, parameter: str, node: ast.expr) -> Any:
    """A default; outside of a kernel, one that has no value says why where it is used."""
    if frame.program is not None:
        return evaluate(frame, node)
    quiet = Frame(Session(None), frame.source, frame.scope, frame, None, frame.closure)
    value = evaluate(quiet, node)
    quiet.session.findings[:] = [d for d in quiet.session.findings if d.code != "PSC201"]
    return known_or_why(quiet, value, f"{function}(…, {parameter}=…)")


def known_or_why(frame: Frame, value: Any, name: str) -> Any:
    """A value from outside of a kernel, whatever is not known of it replaced by the reason."""
    found = tuple(d for d in frame.session.findings if d.code.startswith(("PSC2", "PSC91")))
    return without_poison(value, External(name, found))


def _comprehension(frame: Frame, node: ast.ListComp | ast.GeneratorExp) -> Any:
    values: list[Any] = []
    _generate(frame, node.generators, lambda inner: values.append(evaluate(inner, node.elt)))
    return Once("a generator", values) if isinstance(node, ast.GeneratorExp) else values


def _dict_comprehension(frame: Frame, node: ast.DictComp) -> Any:
    values: dict[Any, Any] = {}

    def add(inner: Frame) -> None:
        key = evaluate(inner, node.key)
        if is_traced(key) or is_poisoned(key):
            raise Failure(NotStatic(what="a key of a dict"))
        values[key] = evaluate(inner, node.value)

    _generate(frame, node.generators, add)
    return values


def _generate(
    frame: Frame, generators: list[ast.comprehension], emit: Callable[[Frame], None]
) -> None:
    from pscdsl.frontend.assignment import assign

    inner = Frame(frame.session, frame.source, frame.scope, frame, frame.call_site, frame.closure)
    inner.in_comprehension = True

    def loop(level: int) -> None:
        if level == len(generators):
            emit(inner)
            return
        generator = generators[level]
        if generator.is_async:
            raise Failure(Unsupported(what="an async comprehension", rewrite=""))
        source = evaluate(inner if level else frame, generator.iter)
        if is_poisoned(source):
            raise Poisoned
        items = elements(source)
        with unrolling(frame, frame.span(generator.target), items):
            for item in items:
                frame.session.step()
                assign(inner, generator.target, item)
                if all(
                    operators.truth(inner, test, "a comprehension's `if`", "")
                    for test in generator.ifs
                ):
                    loop(level + 1)

    loop(0)


def _named(frame: Frame, node: ast.NamedExpr) -> Any:
    value = evaluate(frame, node.value)
    frame.bind_outside(node.target.id, value)
    return value


def _joined(frame: Frame, node: ast.JoinedStr) -> Any:
    parts: list[str] = []
    unknown: Any = None
    for each in node.values:
        if isinstance(each, ast.Constant):
            parts.append(str(each.value))
        elif isinstance(each, ast.FormattedValue):
            value = evaluate(frame, each.value)
            spec = "" if each.format_spec is None else evaluate(frame, each.format_spec)
            if isinstance(value, Poison) or isinstance(spec, Poison):
                return POISON
            if not isinstance(spec, str):
                unknown = spec
                continue
            if not is_plain(value):
                unknown = text(value)
                continue
            conversion = chr(each.conversion) if each.conversion > 0 else ""
            parts.append(formatted(value, spec, conversion))
    return "".join(parts) if unknown is None else unknown


def _starred(frame: Frame, node: ast.Starred) -> Any:
    raise Failure(Unsupported(what="a starred expression here", rewrite=""))


EXPRESSIONS: dict[type[ast.expr], Handler] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Tuple: _tuple,
    ast.List: _list,
    ast.Set: _set,
    ast.Dict: _dict,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.Compare: _compare,
    ast.BoolOp: _boolean,
    ast.IfExp: _conditional,
    ast.Call: call,
    ast.Lambda: _lambda,
    ast.ListComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _dict_comprehension,
    ast.SetComp: _set_comprehension,
    ast.NamedExpr: _named,
    ast.JoinedStr: _joined,
    ast.Starred: _starred,
}

MAKING = frozenset(
    (
        ast.Tuple,
        ast.List,
        ast.Dict,
        ast.ListComp,
        ast.GeneratorExp,
        ast.DictComp,
        ast.JoinedStr,
        ast.Call,
    )
)
"""Expressions that make static data."""

REFUSED: dict[type[ast.expr], tuple[str, str]] = {
    ast.Await: ("`await`", "kernels run on the device; wait for their results outside"),
    ast.Yield: ("`yield`", "return a tuple, or stack what `psc.scan` returns"),
    ast.YieldFrom: ("`yield from`", "return a tuple, or stack what `psc.scan` returns"),
}
