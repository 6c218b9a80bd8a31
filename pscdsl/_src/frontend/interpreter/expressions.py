"""Expressions, and what binds names to values; the interpreter's other half is `statements`."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pscdsl._src.frontend import purity
from pscdsl._src.frontend.interpreter import operators
from pscdsl._src.frontend.interpreter.attributes import attribute
from pscdsl._src.frontend.interpreter.calls import (
    call,
    held_elsewhere,
    updated,
    with_operands,
    with_origins,
)
from pscdsl._src.frontend.interpreter.equality import Table
from pscdsl._src.frontend.interpreter.frames import Frame, Session, due, fields
from pscdsl._src.frontend.interpreter.functions import Closure, elements, unrolling
from pscdsl._src.frontend.interpreter.operators import subscript
from pscdsl._src.frontend.purity import external_value, formatted, is_closed, may_not_exist
from pscdsl._src.frontend.text.bindings import assigned, is_lost
from pscdsl._src.frontend.text.source import with_defaults
from pscdsl._src.frontend.values import (
    POISON,
    External,
    Once,
    Poison,
    Poisoned,
    RecordValue,
    Undecided,
    describe,
    is_poisoned,
    is_traced,
    without_poison,
)
from pscdsl._src.ir.builder import Value, Weak
from pscdsl.numpy import indexing
from pscdsl.typing.codes.language import BranchOnArray, NotStatic, Unsupported
from pscdsl.typing.codes.language_evaluation import WrongUnpacking
from pscdsl.typing.codes.limits import InternalError
from pscdsl.typing.codes.numerics import AliasedUpdate
from pscdsl.typing.codes.projects import BoundInSeveralPlaces
from pscdsl.typing.codes.purity import Mutation
from pscdsl.typing.codes.shapes import OutgrownUpdate
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import DimTooLarge
from pscdsl.typing.dtypes import BOOL
from pscdsl.typing.python_containers import is_dict, is_known_array, is_sequence
from pscdsl.typing.unify import array_difference

Handler = Callable[..., Any]


def evaluate(frame: Frame, node: ast.expr) -> Any:
    """The value of an expression; POISON, with the finding reported, if it has none."""
    value = _without_lazy(frame, node, evaluate_in_place(frame, node))
    if (
        isinstance(value, External)
        and isinstance(node, ast.Attribute)
        and frame.program is not None
        and not frame.session.classes
        and may_not_exist(value)
    ):
        frame.report(node, external_value(value))
        return POISON
    return value


def evaluate_used(frame: Frame, node: ast.expr) -> Any:
    """The same where what is not known is refused by what uses it: a call, another attribute."""
    return _without_lazy(frame, node, evaluate_in_place(frame, node))


def _without_lazy(frame: Frame, node: ast.expr, value: Any) -> Any:
    """The value, unless it is lazy.  It adds no frame to the stack while operands are evaluated."""
    if isinstance(value, Once) and value.lazy:
        frame.report(node, Unsupported(what=f"{value.kind} here", rewrite=_AT_ONCE))
        return POISON
    return value


_AT_ONCE = "what is lazy is used up where it stands: `tuple(…)` or `[…]` computes it now"


def evaluate_in_place(frame: Frame, node: ast.expr) -> Any:
    """The same where a generator may stand: the reader takes all items immediately."""
    handler = EXPRESSIONS.get(type(node))
    session = frame.session
    ledger = session.ledger
    began = ledger.now()
    value: Any = POISON
    try:
        session.step()
        if handler is None:
            what, rewrite = REFUSED.get(type(node), (type(node).__name__, ""))
            raise Failure(Unsupported(what=what, rewrite=rewrite))
        value = handler(frame, node, **fields(node))
        if type(node) in MAKING:
            value = session.made(value)
        if not isinstance(value, Poison):
            ledger.settle(node, due(node), began)
    except Failure as failure:
        session.report(failure.at(frame.span(node)))
        value = POISON
    except Poisoned:
        value = POISON
    except DimTooLarge:
        frame.report(node, Unsupported(what="a size this large", rewrite=""))
        value = POISON
    except RecursionError:
        raise
    except (TypeError, ValueError, ZeroDivisionError, OverflowError, IndexError, KeyError) as error:
        frame.report(node, InternalError(what=f"{type(error).__name__}: {error}"))
        value = POISON
    ledger.enter(node, value)
    return value


def _constant(frame: Frame, node: ast.Constant, value: Any) -> Any:
    del node
    return frame.session.made(value) if isinstance(value, int) else value


def _name(frame: Frame, node: ast.Name, id: str) -> Any:  # noqa: A002
    del node
    found = frame.lookup(id)
    if isinstance(found, External) and any(isinstance(x, BoundInSeveralPlaces) for x in found.why):
        raise Failure(external_value(found))  # it may even be bound to nothing
    return found


def _tuple(frame: Frame, node: ast.Tuple, elts: list[ast.expr]) -> Any:
    del node
    return tuple(_items(frame, elts))


def _list(frame: Frame, node: ast.List, elts: list[ast.expr]) -> Any:
    del node
    return _items(frame, elts)


def _items(frame: Frame, nodes: list[ast.expr]) -> list[Any]:
    values: list[Any] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            values.extend(elements(evaluate_in_place(frame, node.value)))
        else:
            values.append(evaluate(frame, node))
    return values


def _set(frame: Frame, node: ast.Set, elts: list[ast.expr]) -> Any:
    del node
    return set_of(_items(frame, elts))


def set_of(items: list[Any]) -> set[Any]:
    """A set of static values: what it holds is known, in which order is not."""
    if is_poisoned(items):
        raise Poisoned
    if any(is_traced(item) for item in items):
        raise Failure(NotStatic(what="an item of a set"))
    table = Table()
    for item in items:
        table.put(item, None)
    return set(table.items)


def _set_comprehension(
    frame: Frame, node: ast.SetComp, elt: ast.expr, generators: list[ast.comprehension]
) -> Any:
    del node
    values: list[Any] = []
    _generate(frame, generators, lambda inner: values.append(evaluate(inner, elt)))
    return set_of(values)


def _dict(frame: Frame, node: ast.Dict, keys: list[ast.expr | None], values: list[ast.expr]) -> Any:
    del node
    table = Table()
    for key, value in zip(keys, values, strict=True):
        if key is None:
            inner = evaluate(frame, value)
            if isinstance(inner, Poison):
                raise Poisoned
            if not is_dict(inner):
                raise Failure(NotStatic(what=f"`**` of {describe(inner)}"))
            for each, item in inner.items():
                table.put(each, item)
        else:
            evaluated = evaluate(frame, key)
            item = evaluate(frame, value)
            _put(table, evaluated, item)
    return table.items


def _put(table: Table, key: Any, value: Any) -> None:
    if is_poisoned(key):
        raise Poisoned
    if is_traced(key):
        raise Failure(NotStatic(what="a key of a dict"))
    table.put(key, value)


def _attribute(frame: Frame, node: ast.Attribute, value: ast.expr, attr: str) -> Any:
    owner = evaluate_used(frame, value)
    if isinstance(owner, Poison):
        return POISON
    return attribute(frame, node, owner, attr)


def _subscript(frame: Frame, node: ast.Subscript, value: ast.expr, slice: ast.expr) -> Any:  # noqa: A002
    owner = evaluate(frame, value)
    index = evaluate(frame, slice)
    if isinstance(owner, Poison) or is_poisoned(index):
        return POISON
    return subscript(frame, node, owner, index)


def _slice(
    frame: Frame,
    node: ast.Slice,
    lower: ast.expr | None,
    upper: ast.expr | None,
    step: ast.expr | None,
) -> Any:
    del node
    parts = [None if each is None else evaluate(frame, each) for each in (lower, upper, step)]
    if is_poisoned(parts):
        return POISON
    return slice(*parts)


def _binary(
    frame: Frame, node: ast.BinOp, left: ast.expr, op: ast.operator, right: ast.expr
) -> Any:
    values = evaluate(frame, left), evaluate(frame, right)
    if is_poisoned(values):
        return POISON
    for value, part in zip(values, (left, right), strict=True):
        if isinstance(value, External):
            raise Failure(external_value(value)).at(frame.span(part))
    try:
        return operators.binary(frame, node, type(op).__name__, *values)
    except Failure as failure:
        sign = operators.SIGNS[type(op).__name__]
        found = with_operands(failure, frame, (left, right), values, sign)
        raise with_origins(found, values) from None


def _unary(frame: Frame, node: ast.UnaryOp, op: ast.unaryop, operand: ast.expr) -> Any:
    value = evaluate(frame, operand)
    if is_poisoned(value):
        return POISON
    return operators.unary(frame, node, type(op).__name__, value)


def _compare(
    frame: Frame,
    node: ast.Compare,
    left: ast.expr,
    ops: list[ast.cmpop],
    comparators: list[ast.expr],
) -> Any:
    """A chain, whose operands are evaluated up to the comparison that decides it."""
    values: list[Any] = []

    def operands() -> Iterator[Any]:
        for index, each in enumerate((left, *comparators)):
            if index > 1:
                _require_no_binding(each)  # it may be that Python does not come to it
            within = index > 0 and isinstance(ops[index - 1], ast.In | ast.NotIn)
            value = (evaluate_in_place if within else evaluate)(frame, each)
            if is_poisoned(value):
                raise Poisoned
            values.append(value)
            yield value

    try:
        return operators.comparison(frame, node, [type(op).__name__ for op in ops], operands())
    except Failure as failure:
        raise with_origins(failure, values) from None


def _require_no_binding(node: ast.expr) -> None:
    """Refuse `:=` where it is not known whether it is executed, or how often."""
    if any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(node)):
        raise Failure(Unsupported(what="`:=` in this place", rewrite="bind the name before"))


def _boolean(frame: Frame, node: ast.BoolOp, op: ast.boolop, values: list[ast.expr]) -> Any:
    """`and`, `or`: short-circuit on static truth."""
    is_and = isinstance(op, ast.And)
    pending: list[Undecided] = []
    for index, each in enumerate(values):
        if pending:
            _require_no_binding(each)
        value = evaluate(frame, each)
        if isinstance(value, Poison):
            return POISON
        if index == len(values) - 1 and not pending:
            return value  # whose truth nobody asks for here
        if is_traced(value) or is_known_array(value):
            rest = [frame.source.text_of(x) for x in node.values]
            raise Failure(
                BranchOnArray(
                    construct="`and`" if is_and else "`or`",
                    found=describe(value),
                    rewrite=_elementwise(is_and, operators.is_truth(value), rest),
                )
            )
        if pending:
            if isinstance(value, Undecided):
                pending.append(value)
            elif not isinstance(value, bool):
                what = f"which of `{pending[0]}` and {describe(value)} it is,"
                raise Failure(NotStatic(what=what))
            elif value is not is_and:
                return value
            continue
        truth = operators.static_truth(value, operators.decider(frame))
        if isinstance(value, Undecided):
            pending.append(value)
        elif isinstance(truth, Undecided):
            raise Failure(operators.undecided(operators.known_facts(frame), truth))
        elif truth is not is_and:
            return value
    if len(pending) == 1:
        return pending[0]
    if any(len(each.facts) > 1 and each.any_of is is_and for each in pending):
        raise Failure(NotStatic(what="a mixture of `and` and `or` of conditions on sizes"))
    return Undecided(tuple(fact for each in pending for fact in each.facts), not is_and)


def _elementwise(is_and: bool, of_truths: bool, texts: list[str]) -> str:
    """`and` or `or` element by element."""
    if of_truths:
        return (" & " if is_and else " | ").join(f"({text})" for text in texts)
    function = "np.logical_and" if is_and else "np.logical_or"
    return functools.reduce(lambda left, right: f"{function}({left}, {right})", texts)


def _conditional(
    frame: Frame, node: ast.IfExp, test: ast.expr, body: ast.expr, orelse: ast.expr
) -> Any:
    chosen = operators.truth(frame, test, "a conditional expression", lambda: _where(frame, node))
    if chosen is None:
        evaluate(frame, body)
        evaluate(frame, orelse)
        return POISON
    return evaluate(frame, body if chosen else orelse)


def _where(frame: Frame, node: ast.IfExp) -> str:
    text = frame.source.text_of
    return f"np.where({text(node.test)}, {text(node.body)}, {text(node.orelse)})"


def _lambda(frame: Frame, node: ast.Lambda, args: ast.arguments, body: ast.expr) -> Any:
    del args, body  # `closure` reads the parameters, and each call the body
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
    frame.session.ledger.enter(node, value)
    quiet.session.findings[:] = [d for d in quiet.session.findings if d.code != "PSC201"]
    return known_or_why(quiet, value, f"{function}(…, {parameter}=…)")


def known_or_why(frame: Frame, value: Any, name: str) -> Any:
    """A value from outside of a kernel, whatever is not known of it replaced by the reason."""
    found = tuple(d for d in frame.session.findings if d.code.startswith(("PSC2", "PSC91")))
    return without_poison(value, External(name, found))


def _list_comprehension(
    frame: Frame, node: ast.ListComp, elt: ast.expr, generators: list[ast.comprehension]
) -> Any:
    del node
    values: list[Any] = []
    _generate(frame, generators, lambda inner: values.append(evaluate(inner, elt)))
    return values


def _generator(
    frame: Frame, node: ast.GeneratorExp, elt: ast.expr, generators: list[ast.comprehension]
) -> Any:
    """All that a generator gives; a reader may stop before its end."""
    _require_no_binding(node)
    values: list[Any] = []
    _generate(frame, generators, lambda inner: values.append(evaluate(inner, elt)))
    return Once("a generator", values, lazy=True)


def _dict_comprehension(
    frame: Frame,
    node: ast.DictComp,
    key: ast.expr,
    value: ast.expr,
    generators: list[ast.comprehension],
) -> Any:
    del node
    table = Table()
    _generate(
        frame,
        generators,
        lambda inner: _put(table, evaluate(inner, key), evaluate(inner, value)),
    )
    return table.items


def _generate(
    frame: Frame, generators: list[ast.comprehension], emit: Callable[[Frame], None]
) -> None:
    inner = Frame(frame.session, frame.source, frame.scope, frame, frame.call_site, frame.closure)
    inner.in_comprehension = True
    inner.assigned = frozenset(
        name for generator in generators for name in assigned(generator.target)
    )

    def loop(level: int) -> None:
        if level == len(generators):
            emit(inner)
        else:
            around = inner if level else frame
            _loop(frame, around, inner, lambda: loop(level + 1), generators[level])

    loop(0)


def _loop(
    frame: Frame,
    around: Frame,
    inner: Frame,
    emit: Callable[[], None],
    generator: ast.comprehension,
) -> None:
    """One `for` of a comprehension."""
    if generator.is_async:
        raise Failure(Unsupported(what="an async comprehension", rewrite=""))
    source = evaluate(around, generator.iter)
    if is_poisoned(source):
        raise Poisoned
    items = elements(source)
    with unrolling(frame, frame.span(generator.target), items):
        for item in items:
            frame.session.step()
            assign(inner, generator.target, item)
            if _all_hold(inner, generator.ifs):
                emit()


def _all_hold(frame: Frame, conditions: Sequence[ast.expr]) -> bool:
    """Whether all conditions of a comprehension hold, up to the first that does not."""
    for node in conditions:
        holds = operators.truth(frame, node, "a comprehension's `if`", "")
        if holds is None:
            raise Poisoned
        if not holds:
            return False
    return True


def _named(frame: Frame, node: ast.NamedExpr, target: ast.Name, value: ast.expr) -> Any:
    del node
    found = evaluate(frame, value)
    frame.bind_outside(target.id, found)
    return found


def _joined(frame: Frame, node: ast.JoinedStr, values: list[ast.expr]) -> Any:
    """A text; that of a size or an array can only be the message of an `assert`."""
    del node
    parts = [_part(frame, value) for value in values]
    for part in parts:
        if not isinstance(part, str):
            return part
    return "".join(parts)


def _part(frame: Frame, node: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if not isinstance(node, ast.FormattedValue):
        raise Failure(InternalError(what=f"{type(node).__name__} in an f-string"))
    return formatted_value(frame, **fields(node))


def formatted_value(
    frame: Frame, value: ast.expr, conversion: int, format_spec: ast.expr | None
) -> Any:
    """What an f-string has in braces."""
    found = evaluate(frame, value)
    spec = "" if format_spec is None else evaluate(frame, format_spec)
    if isinstance(found, Poison) or isinstance(spec, Poison):
        return POISON
    if not isinstance(spec, str) or (spec and not is_closed(found)):
        raise Failure(NotStatic(what=f"the text of {describe(found)} in this format"))
    if isinstance(found, External):
        raise Failure(external_value(found))
    if isinstance(found, RecordValue):
        found.cls.refuse_special("__format__", "__str__", "__repr__")
    if not is_closed(found):
        return External(f"the text of {describe(found)}")
    return formatted(found, conversion, spec)


def _starred(frame: Frame, node: ast.Starred, value: ast.expr) -> Any:
    del frame, node, value
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
    ast.ListComp: _list_comprehension,
    ast.GeneratorExp: _generator,
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


# Binding names: patterns, `+=` on a name; stores into arrays and objects are refused.


def assign(frame: Frame, target: ast.expr, value: Any) -> None:
    """Bind a pattern of names."""
    if isinstance(target, ast.Name):
        frame.names[target.id] = value
        if frame.program is not None:
            frame.program.named(target.id, value)
    elif isinstance(target, ast.Tuple | ast.List):
        _unpack(frame, target, value)
    elif isinstance(target, ast.Starred):
        assign(frame, target.value, value)
    elif isinstance(target, ast.Subscript):
        raise _subscript_store(frame, target, value)
    elif isinstance(target, ast.Attribute):
        raise _attribute_store(frame, target)
    else:
        raise Failure(Unsupported(what="this assignment", rewrite=""))


def _subscript_store(frame: Frame, target: ast.Subscript, value: Any) -> Failure:
    text = frame.source.text_of
    owner, index = text(target.value), purity.index_text(text(target.slice), target.slice)
    rewrite = _changed_copy(frame, target, "…")
    masked = isinstance(value, Poison) or (is_traced(value) and value.ndim > 0)
    if masked and "psc.update(" in rewrite and _is_mask(frame, target.slice):
        rewrite = f"{owner} = np.where({index}, …, {owner}), with values for all places"
        rewrite += _returned(frame, target)
    return Failure(
        Mutation(what=f"a store into `{text(target)}`", rewrite=rewrite, span=frame.span(target))
    )


def _returned(frame: Frame, target: ast.Subscript) -> str:
    """What else to write where nobody would see the new array."""
    node = None if frame.closure is None else frame.closure.node
    if isinstance(target.value, ast.Name) and is_lost(node, target.value.id):
        return f", and `return {target.value.id}` at the end"
    return ""


def _is_mask(frame: Frame, index: ast.expr) -> bool:
    """Whether an index is an array of bools."""
    try:
        found = evaluate(frame, index)
    except Failure:
        return False
    return is_traced(found) and found.dtype is BOOL


def _is_array(frame: Frame, node: ast.expr) -> bool:
    """Whether what stands here is an array, or would have been one."""
    value = evaluate(frame, node)
    return is_traced(value) or is_known_array(value) or isinstance(value, Poison)


def _changed_copy(frame: Frame, target: ast.Subscript, item: str, combine: str = "") -> str:
    """What makes a changed copy of what a store changes, with another item at one place.

    With `combine`, an array's item is combined with this one in that way.
    """
    text = frame.source.text_of
    owner, index = text(target.value), text(target.slice)
    if _is_array(frame, target.value):
        how = f', combine="{combine}"' if combine else ""
        index = purity.index_text(index, target.slice)
        update = f"{owner} = psc.update({owner}, {index}, {item}{how})"
        return update + _returned(frame, target)
    value = evaluate(frame, target.value)
    if is_dict(value):
        return f"{owner} = {{**{owner}, {index}: {item}}}"
    if is_sequence(value):
        return f"{owner} = [{item} if i == {index} else each for i, each in enumerate({owner})]"
    return f"`{owner}.set({index}, {item})` of a PMap or a PVector is a changed copy"


def _attribute_store(frame: Frame, target: ast.Attribute) -> Failure:
    text = frame.source.text_of
    rewrite = f"make a changed copy: `{text(target.value)}.replace({target.attr}=…)` of a record"
    what = f"a write to the attribute `{text(target)}`"
    return Failure(Mutation(what=what, rewrite=rewrite, span=frame.span(target)))


def _unpack(frame: Frame, target: ast.Tuple | ast.List, value: Any) -> None:
    names = target.elts
    if isinstance(value, Poison):
        for name in names:
            assign(frame, name, POISON)
        return
    if is_traced(value) and value.ndim and isinstance(value.shape[0], int):
        frame.here(target)
        items: Sequence[Any] = [indexing.getitem(value, i) for i in range(value.shape[0])]
    elif is_traced(value):
        raise Failure(WrongUnpacking(expected=len(names), found=f"an array of type {value.type}"))
    else:
        items = list(elements(value))
    stars = [i for i, name in enumerate(names) if isinstance(name, ast.Starred)]
    if not stars:
        if len(items) != len(names):
            raise Failure(WrongUnpacking(expected=len(names), found=f"{len(items)} items"))
        for name, item in zip(names, items, strict=True):
            assign(frame, name, item)
        return
    star = stars[0]
    after = len(names) - star - 1
    if len(items) < star + after:
        raise Failure(WrongUnpacking(expected=star + after, found=f"{len(items)} items"))
    for name, item in zip(names[:star], items[:star], strict=True):
        assign(frame, name, item)
    assign(frame, names[star], list(items[star : len(items) - after]))
    for name, item in zip(names[star + 1 :], items[len(items) - after :], strict=True):
        assign(frame, name, item)


def _has_memory(value: Any) -> bool:
    """Whether NumPy changes a value in place; a scalar is no array that could change."""
    return (is_traced(value) and value.ndim > 0) or is_known_array(value)


def augment(
    frame: Frame, node: ast.AugAssign, target: ast.expr, operator: str, value: ast.expr
) -> None:
    """`name += value` binds the name again; stores into parts are refused."""
    if not isinstance(target, ast.Name):
        raise _updated_part(frame, target, operator, value)
    name = target.id
    if name not in frame.assigned and name not in frame.names:
        raise Poisoned  # declared global or nonlocal, and reported there
    left = frame.lookup(name)
    right = evaluate(frame, value)
    if is_poisoned(left) or is_poisoned(right):
        frame.names[name] = POISON
        return
    sign = operators.SIGNS[operator]
    why = held_elsewhere(frame, name, left) if _has_memory(left) else ""
    if why:
        lost = frame.closure is not None and is_lost(frame.closure.node, name)
        frame.report(node, AliasedUpdate(name=name, sign=sign, why=why, lost=lost))
    if isinstance(left, list | dict | set):
        kind = type(left).__name__  # pyright: ignore[reportUnknownArgumentType]
        text = frame.source.text_of(value)
        rewrite = f"{name} = {name} {sign} {text}"
        if isinstance(left, list) and sign == "+":
            rewrite = f"{name} = [*{name}, *{text}]"  # it may be any collection
        raise Failure(purity.made_anew(f"`{sign}=` on the {kind} `{name}`", rewrite))
    frame.names[name] = POISON
    result = operators.binary(frame, node, operator, left, right)
    if is_traced(left) and left.ndim and is_traced(result):
        _require_place(frame, name, sign, left, result)
    updated(frame.session, node, result)
    frame.names[name] = result


def _updated_part(frame: Frame, target: ast.expr, operator: str, value: ast.expr) -> Failure:
    assert isinstance(target, ast.Subscript | ast.Attribute)
    text = frame.source.text_of
    owner = text(target.value)
    if isinstance(target, ast.Subscript):
        combine = {"Add": "add", "Mult": "multiply"}.get(operator, "")
        item = text(value)
        if not combine or not _each_once(target.slice) or not _is_array(frame, target.value):
            sign = operators.SIGNS[operator]
            combine, item = "", f"{text(target)} {sign} {_operand(item, value)}"
        rewrite = _changed_copy(frame, target, item, combine)
    else:
        rewrite = f"make a changed copy: `{owner}.replace({target.attr}=…)` of a record"
    what = f"an in-place update of `{text(target)}`"
    return Failure(Mutation(what=what, rewrite=rewrite, span=frame.span(target)))


def _operand(text: str, node: ast.expr) -> str:
    """A node as it is written behind an operator."""
    loose = (ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda, ast.NamedExpr, ast.Tuple)
    return f"({text})" if isinstance(node, loose) else text


def _each_once(index: ast.expr) -> bool:
    """Whether an index surely names each element at most once: NumPy's `+=` adds once."""
    if isinstance(index, ast.Tuple):
        return all(map(_each_once, index.elts))
    if isinstance(index, ast.UnaryOp):
        return _each_once(index.operand)
    return isinstance(index, ast.Constant | ast.Slice)


def _require_place(
    frame: Frame, name: str, sign: str, left: Value | Weak, result: Value | Weak
) -> None:
    """A Failure if the result does not fit into the array, where NumPy would write it."""
    assert frame.program is not None
    found = result.type
    if isinstance(left, Weak) and found.dtype.kind <= left.kind:
        found = found.with_dtype(left.dtype)  # it has no dtype yet that could be another
    why = array_difference(frame.program.facts, found, left.type)
    if why is not None:
        raise Failure(OutgrownUpdate(name=name, sign=sign, left=left.type, found=found, why=why))
