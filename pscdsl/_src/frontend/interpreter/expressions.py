"""The evaluation of expressions; `statements` and `assignments` execute statements."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NoReturn, TypeAlias, TypeVar

from pscdsl._src.frontend.interpreter import (
    computed_slices,
    masks,
    operators,
    special_methods,
)
from pscdsl._src.frontend.interpreter.attributes import attribute, attribute_of
from pscdsl._src.frontend.interpreter.branches import (
    Gives,
    fork,
    is_condition,
    joined,
    predicate_of,
)
from pscdsl._src.frontend.interpreter.call_findings import with_operands, with_origins
from pscdsl._src.frontend.interpreter.calls import call
from pscdsl._src.frontend.interpreter.comprehensions import (
    dict_comprehension,
    generator,
    list_comprehension,
    set_comprehension,
)
from pscdsl._src.frontend.interpreter.container_methods import (
    changing_method,
)
from pscdsl._src.frontend.interpreter.containers import (
    adopt,
    container_of,
    is_container,
    shared_by,
)
from pscdsl._src.frontend.interpreter.counters import as_number, note_either
from pscdsl._src.frontend.interpreter.equality import Table
from pscdsl._src.frontend.interpreter.frames import (
    Frame,
    Session,
    due,
    fields,
    without_meaning,
)
from pscdsl._src.frontend.interpreter.functions import Closure, elements
from pscdsl._src.frontend.interpreter.iteration import Iterated, Long, is_lazy
from pscdsl._src.frontend.interpreter.operators import open_truth, subscript
from pscdsl._src.frontend.interpreter.places import (
    BoundArrayMethod,
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
    seen,
    with_cells,
)
from pscdsl._src.frontend.interpreter.state import attempted
from pscdsl._src.frontend.interpreter.stores import (
    CombinedAt,
    is_mask,
)
from pscdsl._src.frontend.modules.files import LIBRARY_NAME
from pscdsl._src.frontend.purity import external_value, formatted, is_closed, may_not_exist
from pscdsl._src.frontend.text.bindings import bound_value, first_number, says_none
from pscdsl._src.frontend.text.source import with_defaults
from pscdsl._src.frontend.values import (
    POISON,
    AnyValue,
    External,
    Marker,
    Place,
    Poison,
    Poisoned,
    RecordValue,
    Undecided,
    describe,
    is_poisoned,
    is_traced,
    without_poison,
)
from pscdsl._src.ir.builder import Value
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl.typing.codes.language import (
    BadArguments,
    BranchOnArray,
    NoSuchAttribute,
    NotStatic,
    Unsupported,
)
from pscdsl.typing.codes.language_evaluation import BadOperands
from pscdsl.typing.codes.limits import InternalError
from pscdsl.typing.codes.projects import BoundInSeveralPlaces
from pscdsl.typing.codes.shapes import WrongNumberOfAxes
from pscdsl.typing.diagnostics import Failure, Label
from pscdsl.typing.dims import DimTooLarge
from pscdsl.typing.python_containers import is_dict, is_known_array, is_slice, is_tuple

Handler: TypeAlias = "Callable[..., Place]"


def locate(
    frame: Frame,
    node: ast.expr,
    *,
    unpacked: bool = False,
    iterated: bool = False,
    used: bool = False,
) -> Place:
    """Evaluate an expression; an array is returned as a reference.

    The result is POISON, with the finding reported, if the expression has no meaning. A lazy value
    is refused unless it is to be `unpacked`, and an iterator unless it is to be `iterated` over.
    The user of a `used` value (a call, another attribute) refuses unknown values.
    """
    value = locate_in_place(frame, node)
    if is_lazy(value):
        if unpacked:
            return value
        frame.report(node, Unsupported(what=f"{describe(value)} here", rewrite=_AT_ONCE))
        return POISON
    if isinstance(value, Iterated) and value.once and not iterated:
        what = f"{value.kind} of arrays or of a computed range here"
        frame.report(node, Unsupported(what=what, rewrite="go through it in a `for` statement"))
        return POISON
    if (
        isinstance(value, External)
        and isinstance(node, ast.Attribute)
        and not used
        and frame.program is not None
        and not frame.session.classes
        and may_not_exist(value)
    ):
        frame.report(node, external_value(value))
        return POISON
    return value


def read(frame: Frame, node: ast.expr) -> AnyValue:
    """Return the present value of an expression, for a caller that keeps no reference to it."""
    return loaded(frame, node, locate(frame, node))


def evaluate(frame: Frame, node: ast.expr, *, used: bool = False) -> AnyValue:
    """Return the value of an expression for a caller that may keep it: its arrays are frozen."""
    return _escaped(frame, node, locate(frame, node, used=used))


def loaded(frame: Frame, node: ast.expr, value: Place) -> AnyValue:
    """Return the present value of a place; POISON, with the finding reported, if it has none."""
    if frame.program is None:
        return value
    try:
        return load(value)
    except Failure as failure:
        frame.session.report(failure.at(frame.span(node)))
        return POISON


def _escaped(frame: Frame, node: ast.expr, value: Place) -> AnyValue:
    if frame.program is None:
        return value
    why = Frozen("is used where stores are not followed", frame.span(node))
    freeze(frame.session, value, why)
    return loaded(frame, node, value)


_AT_ONCE = "what is lazy is used up where it stands: `tuple(…)` or `[…]` computes it now"
NEW = (ast.BinOp, ast.UnaryOp, ast.Compare)
"""Expressions that make new arrays from arrays and keep no references to these."""


def locate_in_place(frame: Frame, node: ast.expr) -> Place:
    """Evaluate an expression where a generator is allowed."""
    handler = EXPRESSIONS.get(type(node))
    session = frame.session
    ledger = session.ledger
    began = ledger.now()
    value: Place = POISON
    try:
        session.step()
        if handler is None:
            raise Failure(without_meaning(node, REFUSED))
        value = as_number(session.program, handler(frame, node, **fields(node, handler)))
        if session.program is not None and is_traced(value) and value.ndim:
            known = isinstance(node, NEW)
            value = with_cells(
                session, value, None if known else Frozen(UNFOLLOWED, frame.span(node))
            )
            if known and isinstance(value, Ref):
                value.cell.maker = node
        if type(node) in MAKING and not isinstance(value, Long):
            value = session.made(value)
        if type(node) in CONTAINERS and session.program is not None and not isinstance(value, Long):
            unknown = Frozen(UNFOLLOWED, frame.span(node))
            value = adopt(session, with_cells(session, value, unknown))
        if not isinstance(value, Poison):
            ledger.settle(node, due(node), began)
    except Failure as failure:
        found = _with_bindings(frame, node, failure).at(frame.span(node))
        session.report_of(found, map(ledger.latest, due(node)))
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


def _with_bindings(frame: Frame, node: ast.expr, failure: Failure) -> Failure:
    """Add to findings the places where variables that hold no arrays were bound."""
    if frame.closure is None:
        return failure
    labels: list[Label] = []
    for part in ast.iter_child_nodes(node):
        failure = _with_part(frame, node, part, failure)
        name = part.id if isinstance(part, ast.Name) else ""
        held = frame.names.get(name, POISON)
        if any(isinstance(each, WrongNumberOfAxes) for each in failure.diagnostics):
            number = first_number(frame.closure.node, name) if name else None
            if number is not None:
                labels.append(Label(frame.span(number), f"`{name}` starts as a number"))
        if held is not None and not is_tuple(held):
            continue
        bound = bound_value(frame.closure.node, name, node.lineno)
        if bound is not None:
            says = says_none(bound, name) if held is None else f"`{name}` is {describe(held)}"
            labels.append(Label(frame.span(bound), says))
    return failure.labelled(*labels) if labels else failure


def _with_part(frame: Frame, node: ast.expr, part: ast.AST, failure: Failure) -> Failure:
    """Suggest a fix if an operand is a method, or a tuple in the place of an array."""
    (finding, *others) = failure.diagnostics
    if others:
        return failure
    text = frame.source.text_of
    if isinstance(part, ast.Attribute) and isinstance(finding, BadOperands | BadArguments):
        if not finding.instead and "the method" in finding.message():
            if isinstance(frame.session.ledger.latest(part), BoundArrayMethod):
                return Failure(finding.replaced(instead=f"`{text(part)}()` calls it"))
        if not finding.instead and isinstance(frame.session.ledger.latest(part), Meaning):
            return Failure(finding.replaced(instead=f"`{text(part)}(…)` calls it"))
    held = frame.names.get(part.id, POISON) if isinstance(part, ast.Name) else POISON
    called = frame.session.ledger.latest(node.func) if isinstance(node, ast.Call) else None
    taken = isinstance(called, Meaning) and called.name.startswith("numpy.") and is_tuple(held)
    if isinstance(node, ast.Call) and taken and finding.code in ("PSC300", "PSC401"):
        problem = f"takes one array, not {describe(held)}"
        instead = f"`{text(part)}[0]` is the first of them"
        name = text(node.func)
        return Failure(BadArguments(function=name, problem=problem, instead=instead))
    return failure


UNFOLLOWED: Final = "comes from what is not followed"


def _constant(frame: Frame, node: ast.Constant, value: AnyValue) -> AnyValue:
    return frame.session.made(value) if isinstance(value, int) else value


def _name(frame: Frame, node: ast.Name, id: str) -> Place:  # noqa: A002
    found = frame.lookup(id)
    if isinstance(found, External) and any(isinstance(x, BoundInSeveralPlaces) for x in found.why):
        raise Failure(external_value(found))  # it may even be bound to nothing
    return found


def _tuple(frame: Frame, node: ast.Tuple, elts: list[ast.expr]) -> tuple[Place, ...]:
    return tuple(_items(frame, elts))


def _list(frame: Frame, node: ast.List, elts: list[ast.expr]) -> list[Place]:
    return _items(frame, elts)


def _items(frame: Frame, nodes: list[ast.expr]) -> list[Place]:
    values: list[Place] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            source = locate_in_place(frame, node.value)
            values.extend(elements(special_methods.gone_through(frame, node, source)))
        else:
            values.append(locate(frame, node))
    return values


def _set(frame: Frame, node: ast.Set, elts: list[ast.expr]) -> set[AnyValue]:
    return set_of(load(_items(frame, elts)))


def set_of(items: Sequence[AnyValue]) -> set[AnyValue]:
    """Return a set of static values; its items are known, their order is not."""
    if any(map(is_poisoned, items)):
        raise Poisoned
    if any(map(is_traced, items)):
        raise Failure(NotStatic(what="an item of a set"))
    table = Table()
    for item in items:
        table.put(item, None)
    return set(table.items)


def _dict(
    frame: Frame, node: ast.Dict, keys: list[ast.expr | None], values: list[ast.expr]
) -> dict[AnyValue, AnyValue]:
    table = Table()
    for key, value in zip(keys, values, strict=True):
        if key is None:
            put_all(frame, table, value)
        else:
            evaluated = read(frame, key)
            item = locate(frame, value)
            put(table, evaluated, item)
    return table.items


def put_all(frame: Frame, table: Table, node: ast.expr) -> None:
    """Add the items of another dict, as `**` does."""
    inner = locate(frame, node)
    if isinstance(inner, Poison):
        raise Poisoned
    if not is_dict(inner):
        raise Failure(NotStatic(what=f"`**` of {describe(inner)}"))
    for key, item in inner.items():
        table.put(key, item)


def put(table: Table, key: AnyValue, value: Place) -> None:
    """Add an item to a dict."""
    if is_poisoned(key):
        raise Poisoned
    if is_traced(key):
        raise Failure(NotStatic(what="a key of a dict"))
    table.put(key, value)


def _attribute(frame: Frame, node: ast.Attribute, value: ast.expr, attr: str) -> Place:
    owner = locate(frame, value, used=True)
    if isinstance(owner, Poison):
        *others, last = frame.session.findings or (None,)
        if isinstance(last, NoSuchAttribute) and last.span == frame.span(value):
            if last.owner.startswith("module ") and LIBRARY_NAME not in last.owner:
                frame.session.findings[len(others)] = _meant_by(last, attr)
        return POISON
    match owner:
        case masks.Selected():
            return masks.attribute(owner, attr)
        case Located():
            return attribute_of(frame, node, owner, attr)
        case Meaning() if attr == "at" and frame.program is not None:
            return CombinedAt(owner.name)
        case _:
            pass
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
            raise shared_by(failure, owner, found) from None
    return attribute(frame, node, _escaped(frame, value, owner), attr)


def _meant_by(finding: NoSuchAttribute, attr: str) -> NoSuchAttribute:
    """Suggest only names with this attribute in a finding about an unknown name."""
    module = finding.owner.split("`")[1]
    known = [each for each in finding.known if f"{module}.{each}.{attr}" in MEANINGS]
    end = f".{finding.attribute}.{attr}"
    elsewhere = [each for each in MEANINGS if each.startswith("scipy.") and each.endswith(end)]
    instead = f"`{elsewhere[0]}`" if elsewhere else ""
    return finding.replaced(known=tuple(known), instead=instead)


def _subscript(frame: Frame, node: ast.Subscript, value: ast.expr, slice: ast.expr) -> Place:  # noqa: A002
    owner = locate(frame, value)
    index = locate(frame, slice)
    if isinstance(owner, Poison) or is_poisoned(index):
        return POISON
    return item_of(frame, node, owner, index)


def item_of(frame: Frame, node: ast.Subscript, owner: Place, index: Place) -> Place:
    """Return `owner[index]`: a view of an array for a basic index, a new array for any other."""
    if special_methods.has(owner, "__getitem__") and frame.program is not None:
        return special_methods.called(frame, node, owner, "__getitem__", index)
    if isinstance(index, masks.Selected) and isinstance(owner, Located):
        return computed_slices.taken(frame.here(node), owner, index)
    known = load(index)
    if isinstance(owner, Located) and (parts := computed_slices.split(owner, known)) is not None:
        return item_of(frame, node, view_at(frame, node, owner, parts[0]), parts[1])
    if isinstance(owner, Long):
        return owner.item(known)
    if not isinstance(owner, Located):
        found = subscript(frame, node, owner, known)
        if isinstance(owner, Marker) and owner.name in NEW_BY_INDEX and frame.program is not None:
            return with_cells(frame.session, found)
        sliced = isinstance(owner, list) and is_slice(known)
        return adopt(frame.session, found) if sliced else found
    owner, known = before_mask(frame, node, owner, known)
    try:
        found = subscript(frame, node, owner.load(), known)
        assert is_traced(found)
    except Failure as failure:
        if isinstance(owner, masks.Selected):
            raise
        here, refusal = frame.here(node), failure.at(frame.span(node))
        chosen = masks.selected(here, owner.load(), known, refusal)
        if chosen is None:
            chosen = computed_slices.part_of(here, owner, known, refusal)
        if chosen is None:
            raise
        return chosen
    if not found.ndim and not keeps_an_axis(known):
        return found
    if not is_basic(known) or holds_references(index):
        return with_cells(frame.session, found, scalars=False)
    if isinstance(owner, Ref):
        return owner.view(Index(known), found)
    return Shared(found, owner.cells(), f"`{frame.source.text_of(node)}`")


NEW_BY_INDEX: Final = frozenset(f"numpy.{name}" for name in ("r_", "c_", "mgrid", "ogrid"))
"""Objects that make new arrays when they are indexed."""


def before_mask(
    frame: Frame, node: ast.Subscript, owner: Located, index: AnyValue
) -> tuple[Located, AnyValue]:
    """Split `x[mask, 1]` into the view `x[:, 1]` and the mask; return other indices as given."""
    if not is_tuple(index) or len(index) < 2:
        return owner, index
    if any(part is None or part is Ellipsis or is_slice(part) or is_tuple(part) for part in index):
        return owner, index  # the axes may have another order
    masked = [(at, part) for at, part in enumerate(index) if is_traced(part) and is_mask(part)]
    if len(masked) != 1:
        return owner, index
    ((at, mask),) = masked
    basic = (*index[:at], *[slice(None)] * mask.ndim, *index[at + 1 :])
    if not is_basic(basic):
        return owner, index
    return view_at(frame, node, owner, basic), mask


def view_at(
    frame: Frame, node: ast.Subscript, owner: Located, index: tuple[AnyValue, ...]
) -> Located:
    """Return `owner[index]` for a basic index that leaves some axes."""
    view = item_of(frame, node, owner, index)
    assert isinstance(view, Located)
    return view


def _slice(
    frame: Frame,
    node: ast.Slice,
    lower: ast.expr | None,
    upper: ast.expr | None,
    step: ast.expr | None,
) -> Place:
    parts = [None if each is None else locate(frame, each) for each in (lower, upper, step)]
    if is_poisoned(parts):
        return POISON
    return slice(*load(parts))


def _binary(
    frame: Frame, node: ast.BinOp, left: ast.expr, op: ast.operator, right: ast.expr
) -> Place:
    values = locate(frame, left), locate(frame, right)
    if not is_poisoned(values) and masks.among(*values) is not None:
        return _of_selected(frame, node, type(op).__name__, values)
    found = special_methods.binary(frame, node, type(op).__name__, *values)
    if found is not special_methods.NOT_IMPLEMENTED:
        return found
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
        failure = with_operands(failure, frame, (left, right), values, sign)
        raise with_origins(failure, values) from None


def _of_selected(frame: Frame, node: ast.BinOp, name: str, values: Sequence[Place]) -> Place:
    """Apply an operator to elements that a mask selects."""
    here, apply = frame.here(node), partial(operators.binary, frame, node, name)
    if name == "MatMult":
        return masks.product(here, apply, *values)
    return masks.elementwise(here, apply, values)


def _unary(frame: Frame, node: ast.UnaryOp, op: ast.unaryop, operand: ast.expr) -> Place:
    value = locate(frame, operand)
    if isinstance(value, masks.Selected) and not isinstance(op, ast.Not):
        name = type(op).__name__
        apply = partial(operators.unary, frame, node, name)
        return masks.elementwise(frame.here(node), apply, (value,))
    value = loaded(frame, operand, value)
    if is_poisoned(value):
        return POISON
    found = special_methods.unary(frame, node, type(op).__name__, value)
    if found is not special_methods.NOT_IMPLEMENTED:
        return found
    return operators.unary(frame, node, type(op).__name__, value)


def _compare(
    frame: Frame,
    node: ast.Compare,
    left: ast.expr,
    ops: list[ast.cmpop],
    comparators: list[ast.expr],
) -> Place:
    """Evaluate a chain of comparisons; operands after the deciding comparison are not evaluated."""
    values: list[AnyValue] = []

    def operands() -> Iterator[Place]:
        for index, each in enumerate((left, *comparators)):
            if index > 1:
                require_no_binding(each)  # Python may not evaluate this operand
            within = index > 0 and isinstance(ops[index - 1], ast.In | ast.NotIn)
            written = frame.session.stores
            value = (locate_in_place if within else locate)(frame, each)
            if index > 1:
                _require_no_store(frame, written)
            if is_poisoned(value):
                raise Poisoned
            values.append(seen(value))
            yield value

    try:
        return operators.comparison(frame, node, [type(op).__name__ for op in ops], operands())
    except Failure as failure:
        raise with_origins(failure, values) from None


def _require_no_store(frame: Frame, written: int) -> None:
    """Refuse a store that may or may not be executed."""
    if frame.session.stores != written:
        what = "a store, or a change of a list, in this place"
        raise Failure(Unsupported(what=what, rewrite="do it in a statement before"))


def require_no_binding(node: ast.expr) -> None:
    """Refuse `:=` if it may not be executed, or may be executed several times."""
    if any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(node)):
        raise Failure(Unsupported(what="`:=` in this place", rewrite="bind the name before"))


def _boolean(frame: Frame, node: ast.BoolOp, op: ast.boolop, values: list[ast.expr]) -> Place:
    """Evaluate `and` or `or`, and stop early if a static truth value decides it."""
    is_and = isinstance(op, ast.And)
    pending: list[Undecided] = []
    for index, each in enumerate(values):
        if pending:
            require_no_binding(each)
        written = frame.session.stores
        found = locate(frame, each)
        if pending:
            _require_no_store(frame, written)
        if isinstance(found, Poison):
            return POISON
        if index == len(values) - 1 and not pending:
            return found  # its truth does not matter here
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
    frame: Frame, node: ast.BoolOp, first: AnyValue, rest: list[ast.expr], *, is_and: bool
) -> Place:
    """Evaluate `first and …`: the rest is evaluated only where `first` does not decide it."""
    predicate = predicate_of(frame.here(node), first, "`and`" if is_and else "`or`")
    more = rest[0]
    if len(rest) > 1:
        more = ast.copy_location(ast.BoolOp(node.op, rest), node)

    second: list[Place] = []

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
    """Return the suggested elementwise `and` or `or`."""
    if of_truths:
        return (" & " if is_and else " | ").join(f"({text})" for text in texts)
    function = "np.logical_and" if is_and else "np.logical_or"
    return functools.reduce(lambda left, right: f"{function}({left}, {right})", texts)


def _conditional(
    frame: Frame, node: ast.IfExp, test: ast.expr, body: ast.expr, orelse: ast.expr
) -> Place:
    value = read(frame, test)
    if frame.program is not None and is_condition(value):
        predicate = predicate_of(frame.here(test), value, "a conditional expression")
        first, other = (partial(_given, frame, each) for each in (body, orelse))
        return joined(fork(frame, node, predicate, (first, other)))
    construct = "a conditional expression"
    ways = partial(_given, frame, body), partial(_given, frame, orelse)
    made = forked_on_sizes(
        frame, test, value, construct, lambda on: joined(fork(frame, node, on, ways))
    )
    if made is not None:
        return made[0]
    chosen = operators.truth_of(frame, test, value, construct, lambda: _where(frame, node))
    if chosen is None:
        locate(frame, body)
        locate(frame, orelse)
        return POISON
    return locate(frame, body if chosen else orelse)


T = TypeVar("T")


def forked_on_sizes(
    frame: Frame, test: ast.expr, value: AnyValue, construct: str, fork: Callable[[Value], T]
) -> tuple[T] | None:
    """Evaluate both branches of a condition on sizes; None if they do not hold for all sizes."""
    undecided = open_truth(frame, value)
    if frame.program is None or undecided is None:
        return None
    predicate = predicate_of(frame.here(test), undecided, construct)
    return attempted(frame.session, frame.program, lambda: fork(predicate))


def _given(frame: Frame, node: ast.expr) -> Gives:
    """Evaluate an expression as a branch; an error in it is an error of the whole."""
    value = locate(frame, node)
    if is_poisoned(value):
        raise Poisoned
    return Gives(value, node)


def _where(frame: Frame, node: ast.IfExp) -> str:
    text = frame.source.text_of
    return f"np.where({text(node.test)}, {text(node.body)}, {text(node.orelse)})"


def _lambda(frame: Frame, node: ast.Lambda, args: ast.arguments, body: ast.expr) -> Closure:
    del args, body  # `closure` reads the parameters, and each call the body
    return closure(frame, node, "<lambda>")


def closure(
    frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, name: str
) -> Closure:
    """Return a function defined here; its defaults are evaluated now."""
    defaults = {
        parameter.arg: _default(frame, name, parameter.arg, default)
        for parameter, default in with_defaults(node.args)
    }
    outer = frame if frame.closure is not None else frame.outer
    named = {each: frame.local(each) for each in _named_by_annotations(node)} if outer else {}
    local = {each: value for each, value in named.items() if value is not None}
    return Closure(name, node, frame.source, frame.scope, outer, defaults, named=local)


def _named_by_annotations(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
) -> Iterator[str]:
    """Yield the names in the annotations of a function."""
    parameters = (part for part in ast.walk(node.args) if isinstance(part, ast.arg))
    returned = None if isinstance(node, ast.Lambda) else node.returns
    for annotation in (*(parameter.annotation for parameter in parameters), returned):
        if annotation is not None:
            yield from (part.id for part in ast.walk(annotation) if isinstance(part, ast.Name))


def _default(frame: Frame, function: str, parameter: str, node: ast.expr) -> AnyValue:
    """Evaluate a default; an unknown one outside of a kernel is refused only where it is used."""
    if frame.program is not None:
        return evaluate(frame, node)
    quiet = Frame(Session(None), frame.source, frame.scope, frame, None, frame.closure)
    value = evaluate(quiet, node)
    frame.session.ledger.enter(node, value)
    quiet.session.findings[:] = [d for d in quiet.session.findings if d.code != "PSC201"]
    return known_or_why(quiet, value, f"{function}(…, {parameter}=…)")


def known_or_why(frame: Frame, value: AnyValue, name: str) -> AnyValue:
    """Return a value from outside of a kernel, with each unknown part replaced by the reason."""
    found = tuple(d for d in frame.session.findings if d.code.startswith(("PSC2", "PSC91")))
    return without_poison(value, External(name, found))


def _named(frame: Frame, node: ast.NamedExpr, target: ast.Name, value: ast.expr) -> Place:
    found = locate(frame, value)
    frame.bind_outside(target.id, found)
    return found


def _joined(frame: Frame, node: ast.JoinedStr, values: list[ast.expr]) -> AnyValue:
    """Evaluate an f-string; the text of an array can only be the message of an `assert`."""
    parts = [_part(frame, value) for value in values]
    texts: list[str] = []
    for part in parts:
        if not isinstance(part, str):
            return part
        texts.append(part)
    return "".join(texts)


def _part(frame: Frame, node: ast.expr) -> AnyValue:
    match node:
        case ast.Constant(value=text):
            return text
        case ast.FormattedValue():
            return formatted_value(frame, **fields(node, formatted_value))
        case _:
            raise Failure(InternalError(what=f"{type(node).__name__} in an f-string"))


def formatted_value(
    frame: Frame, value: ast.expr, conversion: int, format_spec: ast.expr | None
) -> AnyValue:
    """Return the text of a replacement field of an f-string."""
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


def _starred(frame: Frame, node: ast.Starred, value: ast.expr) -> NoReturn:
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
    ast.ListComp: list_comprehension,
    ast.GeneratorExp: generator,
    ast.DictComp: dict_comprehension,
    ast.SetComp: set_comprehension,
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

REFUSED: Final[Mapping[str, tuple[str, str]]] = {
    "Await": ("`await`", "kernels run on the device; wait for their results outside"),
    "Yield": ("`yield`", "return a tuple, or stack what `psc.scan` returns"),
    "YieldFrom": ("`yield from`", "return a tuple, or stack what `psc.scan` returns"),
    "TemplateStr": ('a template string (`t"…"`)', 'an f-string (`f"…"`) makes a text'),
}
"""Refused expressions by name, since some versions of Python lack them."""
