"""Expressions, and what binds names to values; the interpreter's other half is `statements`."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from pscdsl._src.frontend import purity
from pscdsl._src.frontend.interpreter import masks, operators
from pscdsl._src.frontend.interpreter.attributes import attribute, attribute_of
from pscdsl._src.frontend.interpreter.branches import (
    Gives,
    fork,
    is_condition,
    joined,
    predicate_of,
)
from pscdsl._src.frontend.interpreter.calls import (
    AT_ONCE,
    call,
    with_operands,
    with_origins,
)
from pscdsl._src.frontend.interpreter.container_methods import (
    OPERATORS,
    changed,
    changing_method,
    delete_item,
    named,
    set_item,
)
from pscdsl._src.frontend.interpreter.containers import (
    adopt,
    adopt_all,
    container_of,
    is_container,
    shared_by,
    walking,
)
from pscdsl._src.frontend.interpreter.counters import as_number, note_either
from pscdsl._src.frontend.interpreter.equality import Table
from pscdsl._src.frontend.interpreter.frames import Frame, Session, due, fields
from pscdsl._src.frontend.interpreter.functions import Closure, elements, unrolling
from pscdsl._src.frontend.interpreter.iteration import Iterated, Long, row_of
from pscdsl._src.frontend.interpreter.operators import subscript
from pscdsl._src.frontend.interpreter.places import (
    Frozen,
    Index,
    Located,
    Ref,
    Shared,
    freeze,
    holds_references,
    is_basic,
    keeps_an_axis,
    load,
    named_store,
    own,
)
from pscdsl._src.frontend.interpreter.stores import (
    CombinedAt,
    is_mask,
    require_place,
    update_item,
    update_whole,
)
from pscdsl._src.frontend.purity import external_value, formatted, is_closed, may_not_exist
from pscdsl._src.frontend.text.bindings import assigned, is_lost
from pscdsl._src.frontend.text.source import with_defaults
from pscdsl._src.frontend.trees import condition
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
from pscdsl._src.language.meanings import Meaning
from pscdsl.typing.codes.language import BranchOnArray, NotStatic, Unsupported
from pscdsl.typing.codes.language_evaluation import WrongUnpacking
from pscdsl.typing.codes.limits import InternalError
from pscdsl.typing.codes.projects import BoundInSeveralPlaces
from pscdsl.typing.codes.purity import Mutation
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import DimTooLarge
from pscdsl.typing.python_containers import is_dict, is_known_array, is_sequence, is_slice

Handler = Callable[..., Any]


def locate(frame: Frame, node: ast.expr) -> Any:
    """What an expression stands for: an array as a reference to where it is.

    POISON, with the finding reported, if it has no meaning.
    """
    value = _without_lazy(frame, node, locate_in_place(frame, node))
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


def locate_used(frame: Frame, node: ast.expr) -> Any:
    """The same where what is not known is refused by what uses it: a call, another attribute."""
    return _without_lazy(frame, node, locate_in_place(frame, node))


def read(frame: Frame, node: ast.expr) -> Any:
    """The value of an expression as it is now, for who keeps nothing of it."""
    return _loaded(frame, node, locate(frame, node))


def evaluate(frame: Frame, node: ast.expr) -> Any:
    """The value of an expression, for who may hold it: its arrays are never written again."""
    return _escaped(frame, node, locate(frame, node))


def evaluate_used(frame: Frame, node: ast.expr) -> Any:
    """The same where what is not known is refused by what uses it."""
    return _escaped(frame, node, locate_used(frame, node))


def evaluate_in_place(frame: Frame, node: ast.expr) -> Any:
    """The same where a generator may stand: the reader takes all items immediately."""
    return _escaped(frame, node, locate_in_place(frame, node))


def _loaded(frame: Frame, node: ast.expr, value: Any) -> Any:
    if frame.program is None:
        return value
    try:
        return load(value)
    except Failure as failure:
        frame.session.report(failure.at(frame.span(node)))
        return POISON


def _escaped(frame: Frame, node: ast.expr, value: Any) -> Any:
    if frame.program is None:
        return value
    why = Frozen("is used where stores are not followed", frame.span(node))
    freeze(frame.session, value, why)
    return _loaded(frame, node, value)


def locate_iterable(frame: Frame, node: ast.expr) -> Any:
    """What a `for` statement goes through, which is used up there if it can be once."""
    value = locate_in_place(frame, node)
    return value if isinstance(value, Iterated) else _without_lazy(frame, node, value)


def _without_lazy(frame: Frame, node: ast.expr, value: Any) -> Any:
    """The value, unless it is lazy.  It adds no frame to the stack while operands are evaluated."""
    if isinstance(value, Once) and value.lazy:
        frame.report(node, Unsupported(what=f"{value.kind} here", rewrite=_AT_ONCE))
        return POISON
    if isinstance(value, Iterated) and value.once:
        what = f"{value.kind} of arrays or of a computed range here"
        frame.report(node, Unsupported(what=what, rewrite="go through it in a `for` statement"))
        return POISON
    return value


_AT_ONCE = "what is lazy is used up where it stands: `tuple(…)` or `[…]` computes it now"
NEW = (ast.BinOp, ast.UnaryOp, ast.Compare)
"""Expressions that make new arrays of arrays, and keep none."""


def locate_in_place(frame: Frame, node: ast.expr) -> Any:
    """What an expression stands for, where a generator may stand."""
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
        value = as_number(session.program, handler(frame, node, **fields(node)))
        if session.program is not None and is_traced(value) and value.ndim:
            known = isinstance(node, NEW)
            value = own(session, value, None if known else Frozen(_UNFOLLOWED, frame.span(node)))
        if type(node) in MAKING:
            value = session.made(value)
        if type(node) in CONTAINERS and session.program is not None:
            unknown = Frozen(_UNFOLLOWED, frame.span(node))
            value = adopt(session, own(session, value, unknown))
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


_UNFOLLOWED: Final = "comes from what is not followed"


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
            values.extend(elements(locate_in_place(frame, node.value)))
        else:
            values.append(locate(frame, node))
    return values


def _set(frame: Frame, node: ast.Set, elts: list[ast.expr]) -> Any:
    del node
    return set_of(load(_items(frame, elts)))


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
    _generate(frame, generators, lambda inner: values.append(read(inner, elt)))
    return set_of(values)


def _dict(frame: Frame, node: ast.Dict, keys: list[ast.expr | None], values: list[ast.expr]) -> Any:
    del node
    table = Table()
    for key, value in zip(keys, values, strict=True):
        if key is None:
            inner = locate(frame, value)
            if isinstance(inner, Poison):
                raise Poisoned
            if not is_dict(inner):
                raise Failure(NotStatic(what=f"`**` of {describe(inner)}"))
            for each, item in inner.items():
                table.put(each, item)
        else:
            evaluated = read(frame, key)
            item = locate(frame, value)
            _put(table, evaluated, item)
    return table.items


def _put(table: Table, key: Any, value: Any) -> None:
    if is_poisoned(key):
        raise Poisoned
    if is_traced(key):
        raise Failure(NotStatic(what="a key of a dict"))
    table.put(key, value)


def _attribute(frame: Frame, node: ast.Attribute, value: ast.expr, attr: str) -> Any:
    owner = locate_used(frame, value)
    if isinstance(owner, Poison):
        return POISON
    if isinstance(owner, masks.Selected):
        return masks.attribute(owner, attr)
    if isinstance(owner, Located):
        return attribute_of(frame, node, owner, attr)
    if attr == "at" and isinstance(owner, Meaning) and frame.program is not None:
        return CombinedAt(owner.name)
    if is_container(owner):
        method = changing_method(frame.session, owner, attr)
        if method is None:
            return attribute(frame, node, owner, attr)
        found = container_of(frame.session, owner)
        if found is not None and found.frozen is None:
            return method
        try:
            return attribute(frame, node, owner, attr)
        except Failure as failure:
            raise shared_by(failure, found) from None
    return attribute(frame, node, _escaped(frame, value, owner), attr)


def _subscript(frame: Frame, node: ast.Subscript, value: ast.expr, slice: ast.expr) -> Any:  # noqa: A002
    owner = locate(frame, value)
    index = locate(frame, slice)
    if isinstance(owner, Poison) or is_poisoned(index):
        return POISON
    return item_of(frame, node, owner, index)


def item_of(frame: Frame, node: ast.Subscript, owner: Any, index: Any) -> Any:
    """`owner[index]`: a view of an array for a basic index, a new array for any other."""
    known = load(index)
    if isinstance(owner, Long):
        return owner.item(known)
    if not isinstance(owner, Located):
        found = subscript(frame, node, owner, known)
        sliced = isinstance(owner, list) and is_slice(known)
        return adopt(frame.session, found) if sliced else found
    try:
        found = subscript(frame, node, owner.load(), known)
    except Failure as failure:
        if isinstance(owner, masks.Selected):
            raise
        refusal = failure.at(frame.span(node))
        chosen = masks.selected(frame.here(node), owner.load(), known, refusal)
        if chosen is None:
            raise
        return chosen
    if not found.ndim and not keeps_an_axis(known):
        return found
    if not is_basic(known) or holds_references(index):
        return own(frame.session, found, scalars=False)
    if isinstance(owner, Ref):
        return owner.view(Index(known), found)
    return Shared(found, owner.cells(), f"`{frame.source.text_of(node)}`")


def _slice(
    frame: Frame,
    node: ast.Slice,
    lower: ast.expr | None,
    upper: ast.expr | None,
    step: ast.expr | None,
) -> Any:
    del node
    parts = [None if each is None else locate(frame, each) for each in (lower, upper, step)]
    if is_poisoned(parts):
        return POISON
    return slice(*load(parts))


def _binary(
    frame: Frame, node: ast.BinOp, left: ast.expr, op: ast.operator, right: ast.expr
) -> Any:
    values: Sequence[Any] = (locate(frame, left), locate(frame, right))
    if masks.among(*values) is not None and not is_poisoned(values):
        return _of_selected(frame, node, type(op).__name__, values)
    if any(isinstance(value, Located) or is_traced(value) for value in values):
        values = load(values)  # both were evaluated before either is read
    if is_poisoned(values):
        return POISON
    for value, part in zip(values, (left, right), strict=True):
        if isinstance(value, External):
            raise Failure(external_value(value)).at(frame.span(part))
    try:
        result = operators.binary(frame, node, type(op).__name__, *values)
        made = all(is_container(value) or isinstance(value, int) for value in values)
        return adopt(frame.session, result) if made else result
    except Failure as failure:
        sign = operators.SIGNS[type(op).__name__]
        found = with_operands(failure, frame, (left, right), values, sign)
        raise with_origins(found, values) from None


def _of_selected(frame: Frame, node: ast.BinOp, name: str, values: Sequence[Any]) -> Any:
    """An operator on what a mask selects."""
    here = frame.here(node)

    def apply(left: Any, right: Any) -> Any:
        return operators.binary(frame, node, name, left, right)

    if name == "MatMult":
        return masks.product(here, apply, *values)
    return masks.elementwise(here, apply, values)


def _unary(frame: Frame, node: ast.UnaryOp, op: ast.unaryop, operand: ast.expr) -> Any:
    value = locate(frame, operand)
    if isinstance(value, masks.Selected) and not isinstance(op, ast.Not):
        name = type(op).__name__
        apply = partial(operators.unary, frame, node, name)
        return masks.elementwise(frame.here(node), apply, (value,))
    value = _loaded(frame, operand, value)
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
            written = frame.session.stores
            value = (locate_in_place if within else locate)(frame, each)
            if index > 1:
                _require_no_store(frame, written)
            if is_poisoned(value):
                raise Poisoned
            values.append(value.seen() if isinstance(value, Located) else value)
            yield value

    try:
        return operators.comparison(frame, node, [type(op).__name__ for op in ops], operands())
    except Failure as failure:
        raise with_origins(failure, values) from None


def _require_no_store(frame: Frame, written: int) -> None:
    """Refuse a store where it is not known whether it is executed."""
    if frame.session.stores != written:
        what = "a store, or a change of a list, in this place"
        raise Failure(Unsupported(what=what, rewrite="do it in a statement before"))


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
        written = frame.session.stores
        found = locate(frame, each)
        if pending:
            _require_no_store(frame, written)
        if isinstance(found, Poison):
            return POISON
        if index == len(values) - 1 and not pending:
            return found  # whose truth nobody asks for here
        value = found.load() if isinstance(found, Located) else found
        if frame.program is not None and not pending and is_condition(value):
            rest = values[index + 1 :]
            return _short_circuited(frame, node, value, rest, is_and=is_and)
        if is_traced(value) or is_known_array(value):
            texts = [frame.source.text_of(x) for x in node.values]
            raise Failure(
                BranchOnArray(
                    construct="`and`" if is_and else "`or`",
                    found=describe(value),
                    rewrite=_elementwise(is_and, operators.is_truth(value), texts),
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


def _short_circuited(
    frame: Frame, node: ast.BoolOp, first: Any, rest: list[ast.expr], *, is_and: bool
) -> Any:
    """`first and …`: the rest is evaluated where the first says so; else it is the first."""
    predicate = predicate_of(frame.here(node), first, "`and`" if is_and else "`or`")
    more = rest[0]
    if len(rest) > 1:
        more = ast.copy_location(ast.BoolOp(node.op, rest), node)

    second: list[Any] = []

    def same() -> Gives:
        return Gives(first, more)

    def other() -> Gives:
        given = _given(frame, more)
        second.append(given.value)
        return given

    found = joined(fork(frame, node, predicate, (other, same) if is_and else (same, other)))
    note_either(frame.program, first, second, found, is_and=is_and)
    return found


def _elementwise(is_and: bool, of_truths: bool, texts: list[str]) -> str:
    """`and` or `or` element by element."""
    if of_truths:
        return (" & " if is_and else " | ").join(f"({text})" for text in texts)
    function = "np.logical_and" if is_and else "np.logical_or"
    return functools.reduce(lambda left, right: f"{function}({left}, {right})", texts)


def _conditional(
    frame: Frame, node: ast.IfExp, test: ast.expr, body: ast.expr, orelse: ast.expr
) -> Any:
    value = read(frame, test)
    if frame.program is not None and is_condition(value):
        predicate = predicate_of(frame.here(test), value, "a conditional expression")
        first, other = (partial(_given, frame, each) for each in (body, orelse))
        return joined(fork(frame, node, predicate, (first, other)))
    construct = "a conditional expression"
    chosen = operators.truth_of(frame, test, value, construct, lambda: _where(frame, node))
    if chosen is None:
        locate(frame, body)
        locate(frame, orelse)
        return POISON
    return locate(frame, body if chosen else orelse)


def _given(frame: Frame, node: ast.expr) -> Gives:
    """What an expression gives, if it is evaluated; an error in it is one of the whole."""
    value = locate(frame, node)
    if is_poisoned(value):
        raise Poisoned
    return Gives(value, node)


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
    _generate(frame, generators, lambda inner: values.append(locate(inner, elt)))
    return values


def _generator(
    frame: Frame, node: ast.GeneratorExp, elt: ast.expr, generators: list[ast.comprehension]
) -> Any:
    """All that a generator gives; a reader may stop before its end."""
    _require_no_binding(node)
    values: list[Any] = []
    written = frame.session.stores
    _generate(frame, generators, lambda inner: values.append(locate(inner, elt)))
    if frame.session.stores != written:
        raise Failure(Mutation(what="a store in a generator", rewrite=AT_ONCE))
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
        lambda inner: _put(table, read(inner, key), locate(inner, value)),
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

    with frame.session.alive(inner):
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
    source = locate(around, generator.iter)
    if is_poisoned(source):
        raise Poisoned
    items = [*elements(source)]
    session = frame.session
    with unrolling(frame, frame.span(generator.target), items), walking(session, source) as at:
        for place, item in enumerate(items):
            session.step()
            at(place)
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
    found = locate(frame, value)
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
    found = read(frame, value)
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

CONTAINERS = frozenset((ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp))
"""Expressions that make a new list, dict or set."""

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
    """Bind a pattern of names, or store into places."""
    if isinstance(target, ast.Name):
        if frame.program is not None:
            value = own(frame.session, value, Frozen(_UNFOLLOWED))
            adopt_all(frame.session, value, Frozen("this call did not make"))
            frame.program.named(target.id, value.seen() if isinstance(value, Located) else value)
        frame.names[target.id] = value
    elif isinstance(target, ast.Tuple | ast.List):
        _unpack(frame, target, value)
    elif isinstance(target, ast.Starred):
        assign(frame, target.value, value)
    elif isinstance(target, ast.Subscript):
        _store(frame, target, value)
    elif isinstance(target, ast.Attribute):
        raise _attribute_store(frame, target)
    else:
        raise Failure(Unsupported(what="this assignment", rewrite=""))


def _store(frame: Frame, target: ast.Subscript, value: Any) -> None:
    """`owner[index] = value`, where the value has been evaluated, and is read now."""
    owner = locate(frame, target.value)
    index = read(frame, target.slice)
    if is_poisoned(owner) or is_poisoned(index) or is_poisoned(value):
        raise Poisoned
    if frame.program is not None and isinstance(owner, list | dict):
        set_item_of(frame, target, owner, index, value)
        return
    if not isinstance(owner, Located):
        raise _subscript_store(frame, target)
    here = frame.here(target)
    if isinstance(index, Undecided):
        index = condition(here, index)
    try:
        if isinstance(value, masks.Selected):
            masks.store(here, owner, index, value)
        else:
            owner.store(here, index, load(value))
    except Failure as failure:
        several = isinstance(value, Located) and value.ndim > 0 and is_mask(index)
        raise _of_store(frame, target, failure, several).at(frame.span(target)) from None


def set_item_of(frame: Frame, target: ast.Subscript, owner: Any, index: Any, value: Any) -> None:
    """`owner[index] = value` of a list or a dict."""
    what = f"a store into `{frame.source.text_of(target)}`"
    try:
        changed(frame.session, owner, set_item, index, value)
    except Failure as failure:
        rewrite = _changed_copy(frame, target, "…")
        raise named(failure, what, rewrite).at(frame.span(target)) from None


def delete_item_of(frame: Frame, target: ast.Subscript) -> None:
    """`del owner[index]` of a list or a dict."""
    text = f"`del {frame.source.text_of(target)}`"
    owner, index = locate(frame, target.value), read(frame, target.slice)
    if is_poisoned(owner) or is_poisoned(index):
        raise Poisoned
    if not isinstance(owner, list | dict) or frame.program is None:
        raise Failure(Mutation(what=text, rewrite="make a copy without it"))
    try:
        changed(frame.session, owner, delete_item, index)
    except Failure as failure:
        raise named(failure, text).at(frame.span(target)) from None


def _of_store(frame: Frame, target: ast.expr, failure: Failure, several: bool) -> Failure:
    """Why a store is refused, in terms of its text, with what to write instead."""
    text = frame.source.text_of

    def instead(known: str) -> str:
        if not (isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name)):
            return known
        changed = _changed_copy(frame, target, "…")
        if several:  # of which it is not known how many there are
            name, mask = text(target.value), text(target.slice)
            changed = f"{name} = np.where({mask}, …, {name}), with values for all places"
            changed += _returned(frame, target)
        return f"{known}; or write {changed}"

    return named_store(failure, f"a store into `{text(target)}`", instead)


def _subscript_store(frame: Frame, target: ast.Subscript) -> Failure:
    text = frame.source.text_of(target)
    rewrite = _changed_copy(frame, target, "…")
    return Failure(
        Mutation(what=f"a store into `{text}`", rewrite=rewrite, span=frame.span(target))
    )


def _returned(frame: Frame, target: ast.Subscript) -> str:
    """What else to write where nobody would see the new array."""
    node = None if frame.closure is None else frame.closure.node
    if isinstance(target.value, ast.Name) and is_lost(node, target.value.id):
        return f", and `return {target.value.id}` at the end"
    return ""


def _is_array(frame: Frame, node: ast.expr) -> bool:
    """Whether what stands here is an array, or would have been one."""
    value = read(frame, node)
    return is_traced(value) or is_known_array(value) or isinstance(value, Poison)


def _changed_copy(frame: Frame, target: ast.Subscript, item: str) -> str:
    """What makes a changed copy of what a store changes, with another item at one place."""
    text = frame.source.text_of
    owner, index = text(target.value), text(target.slice)
    if _is_array(frame, target.value):
        index = purity.index_text(index, target.slice)
        update = f"{owner} = psc.update({owner}, {index}, {item})"
        return update + _returned(frame, target)
    value = read(frame, target.value)
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
    found = value.load() if isinstance(value, Located) else value
    count: Any = found.shape[0] if is_traced(found) and found.ndim else None
    if isinstance(count, int):
        frame.here(target)
        items: Sequence[Any] = [row_of(value, i) for i in range(count)]
    elif is_traced(found):
        raise Failure(WrongUnpacking(expected=len(names), found=f"an array of type {found.type}"))
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
    rest = adopt(frame.session, list(items[star : len(items) - after]))
    assign(frame, names[star], rest)
    for name, item in zip(names[star + 1 :], items[len(items) - after :], strict=True):
        assign(frame, name, item)


def augment(
    frame: Frame, node: ast.AugAssign, target: ast.expr, operator: str, value: ast.expr
) -> None:
    """`target += value`: an array is written in its place, and a name of another value bound."""
    if isinstance(target, ast.Subscript):
        _update_item(frame, node, target, operator, value)
        return
    if not isinstance(target, ast.Name):
        assert isinstance(target, ast.Attribute)
        raise _attribute_store(frame, target)
    name = target.id
    if name not in frame.assigned and name not in frame.names:
        raise Poisoned  # declared global or nonlocal, and reported there
    left = frame.lookup(name)
    given = locate(frame, value)
    if (left.__class__, operator) in OPERATORS and container_of(frame.session, left) is not None:
        if is_poisoned(given):
            raise Poisoned
        _change(frame, node, left, operator, given, name)
        return
    right = _loaded(frame, value, given)
    if is_poisoned(left) or is_poisoned(right):
        frame.names[name] = POISON
        return
    sign = operators.SIGNS[operator]
    if isinstance(left, Located):
        result = operators.binary(frame, node, operator, left.load(), right)
        try:
            update_whole(frame.here(node), left, sign, result, name)
        except Failure as failure:
            raise _of_update(frame, node, name, failure).at(frame.span(node)) from None
        return
    if is_known_array(left):
        frozen = Frozen("is captured, or a constant", rewrite=f"{name} = {name} {sign} …")
        raise _of_update(frame, node, name, frozen.refusal())
    if isinstance(left, list | dict | set):
        kind = type(left).__name__  # pyright: ignore[reportUnknownArgumentType]
        text = frame.source.text_of(value)
        rewrite = f"{name} = {name} {sign} {text}"
        if isinstance(left, list) and sign == "+":
            rewrite = f"{name} = [*{name}, *{text}]"  # it may be any collection
        raise Failure(purity.made_anew(f"`{sign}=` on the {kind} `{name}`", rewrite))
    frame.names[name] = POISON
    assign(frame, target, operators.binary(frame, node, operator, left, right))


def _change(
    frame: Frame, node: ast.AugAssign, left: Any, operator: str, right: Any, text: str
) -> None:
    """`left += right` of a list, a dict or a set, which all its names show."""
    sign = operators.SIGNS[operator]
    try:
        changed(frame.session, left, OPERATORS[left.__class__, operator], right)
    except Failure as failure:
        raise named(failure, f"`{text} {sign}=`").at(frame.span(node)) from None


def _of_update(frame: Frame, node: ast.AugAssign, name: str, failure: Failure) -> Failure:
    """Why `name += value` is refused, with what to write instead."""
    sign = operators.SIGNS[type(node.op).__name__]
    text = _operand(frame.source.text_of(node.value), node.value)
    rewrite = f"{name} = {name} {sign} {text}"
    if frame.closure is not None and is_lost(frame.closure.node, name):
        rewrite += f", and `return {name}` at the end"
    return named_store(failure, f"`{name} {sign}=`", lambda known: rewrite)


def _update_item(
    frame: Frame, node: ast.AugAssign, target: ast.Subscript, operator: str, value: ast.expr
) -> None:
    """`owner[index] += value`: owner and index once; the item is read before a scalar changes."""
    owner = locate(frame, target.value)
    index = locate(frame, target.slice)
    if is_poisoned(owner) or is_poisoned(index):
        raise Poisoned
    if frame.program is not None and type(owner) in (list, dict):
        _update_item_of(frame, node, target, operator, value, (owner, load(index)))
        return
    if not isinstance(owner, Located):
        raise _updated_part(frame, target, operator, value)
    here = frame.here(target)
    known = load(index)
    if isinstance(known, Undecided):
        known = condition(here, known)
    part = None if is_mask(known) else item_of(frame, target, owner, index)
    right = locate(frame, value)
    if not (is_mask(known) and isinstance(right, masks.Selected)):
        right = _loaded(frame, value, right)
    if is_poisoned(right):
        raise Poisoned

    def combined(left: Any, right: Any) -> Any:
        result = operators.binary(frame, node, operator, left, right)
        if is_traced(left) and left.ndim:
            sign = operators.SIGNS[operator]
            require_place(frame.here(node), left, sign, result, frame.source.text_of(target))
        return result

    try:
        update_item(frame.here(node), owner, known, part, right, combined)
    except Failure as failure:
        raise _of_store(frame, target, failure, False).at(frame.span(target)) from None


def _update_item_of(
    frame: Frame,
    node: ast.AugAssign,
    target: ast.Subscript,
    operator: str,
    value: ast.expr,
    place: tuple[Any, Any],
) -> None:
    """`owner[index] += value` of a list or a dict: an array in it is written in its place."""
    owner, index = place
    found = container_of(frame.session, owner)
    if found is None or found.frozen is not None:
        failure = Failure(*_updated_part(frame, target, operator, value).diagnostics)
        raise shared_by(failure, found)
    left = subscript(frame, target, owner, index)
    given = locate(frame, value)
    if is_poisoned(left) or is_poisoned(given):
        raise Poisoned
    text = frame.source.text_of(target)
    if (left.__class__, operator) in OPERATORS:
        _change(frame, node, left, operator, given, text)
        return  # the item is the same as before
    right = _loaded(frame, value, given)
    if isinstance(left, Located):
        sign = operators.SIGNS[operator]
        result = operators.binary(frame, node, operator, left.load(), right)
        try:
            update_whole(frame.here(node), left, sign, result, text)
        except Failure as failure:
            raise named_store(failure, f"`{text} {sign}=`").at(frame.span(node)) from None
        return
    set_item_of(frame, target, owner, index, operators.binary(frame, node, operator, left, right))


def _updated_part(frame: Frame, target: ast.Subscript, operator: str, value: ast.expr) -> Failure:
    text = frame.source.text_of
    sign = operators.SIGNS[operator]
    item = f"{text(target)} {sign} {_operand(text(value), value)}"
    rewrite = _changed_copy(frame, target, item)
    what = f"an in-place update of `{text(target)}`"
    return Failure(Mutation(what=what, rewrite=rewrite, span=frame.span(target)))


def _operand(text: str, node: ast.expr) -> str:
    """A node as it is written behind an operator."""
    loose = (ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda, ast.NamedExpr, ast.Tuple)
    return f"({text})" if isinstance(node, loose) else text
