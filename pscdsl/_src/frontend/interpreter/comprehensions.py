"""Comprehensions and generators: loops that make a list, a set, a dict, or items for a consumer.

A loop over known items is unrolled. A loop over an array of unknown length, or over a symbolic
range, is a rolled loop that appends to a list, whose length is the number of steps.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Final

from pscdsl._src.frontend.interpreter import operators, special_methods
from pscdsl._src.frontend.interpreter.calls import AT_ONCE
from pscdsl._src.frontend.interpreter.container_methods import append, changed
from pscdsl._src.frontend.interpreter.containers import adopt, walking
from pscdsl._src.frontend.interpreter.equality import Table
from pscdsl._src.frontend.interpreter.frames import Frame, Session
from pscdsl._src.frontend.interpreter.functions import elements, unrolling
from pscdsl._src.frontend.interpreter.iteration import Generated, Iterated, Long, Position, iterated
from pscdsl._src.frontend.text.source import targets
from pscdsl._src.frontend.values import AnyValue, Once, Place, Poison, Poisoned, is_poisoned
from pscdsl.typing.codes.language import NotStatic, Unsupported
from pscdsl.typing.codes.purity import Mutation
from pscdsl.typing.diagnostics import Failure

ITEMS: Final = " items"
"""The name of the list that a rolled comprehension makes: no identifier, so programs cannot use
it.
"""
UNPACKED: Final = " item"
"""The name of the item that `*items for …` unpacks."""


Emit = Callable[[Frame], None]
"""Takes the result of a step, in the frame of the comprehension."""
Guard = Callable[[Session], AbstractContextManager[object]]
"""Guards the evaluation of expressions in the source."""


def list_comprehension(
    frame: Frame, node: ast.ListComp, elt: ast.expr, generators: list[ast.comprehension]
) -> list[Place] | Long:
    """Evaluate `[elt for …]`."""
    return _collected(frame, elt, generators)


def generator(
    frame: Frame, node: ast.GeneratorExp, elt: ast.expr, generators: list[ast.comprehension]
) -> Once | Generated:
    """Evaluate all items of `(elt for …)`; a consumer may stop before the end."""
    from pscdsl._src.frontend.interpreter.expressions import require_no_binding

    require_no_binding(node)
    targets = [each for one in generators for each in ast.walk(one.target)]
    if any(isinstance(each, ast.Subscript | ast.Attribute) for each in targets):
        raise Failure(Mutation(what="a store in a generator", rewrite=AT_ONCE))
    session = frame.session
    written = session.stores
    values = _collected(frame, elt, generators, _without_stores)
    session.unseen_stores += session.stores - written  # into the list of a rolled loop
    if isinstance(values, Long):
        return Generated(values)
    return Once("a generator", values, lazy=True)


def set_comprehension(
    frame: Frame, node: ast.SetComp, elt: ast.expr, generators: list[ast.comprehension]
) -> set[AnyValue]:
    """Evaluate `{elt for …}`."""
    from pscdsl._src.frontend.interpreter.expressions import read, set_of

    values: list[AnyValue] = []
    elt, generators = _unpacked(elt, generators)
    _generate(frame, generators, lambda inner: values.append(read(inner, elt)))
    return set_of(values)


def dict_comprehension(
    frame: Frame,
    node: ast.DictComp,
    key: ast.expr,
    value: ast.expr | None,
    generators: list[ast.comprehension],
) -> dict[AnyValue, AnyValue]:
    """Evaluate `{key: value for …}`, or `{**key for …}` of Python 3.15, which has no `value`."""
    from pscdsl._src.frontend.interpreter.expressions import locate, put, put_all, read

    table = Table()

    def emit(inner: Frame) -> None:
        if value is None:
            put_all(inner, table, key)
        else:
            put(table, read(inner, key), locate(inner, value))

    _generate(frame, generators, emit)
    return table.items


@contextmanager
def _without_stores(session: Session) -> Generator[None]:
    """Refuse stores in a generator, which Python executes only when an item is consumed."""
    written = session.stores - session.unseen_stores
    yield
    if session.stores - session.unseen_stores != written:
        raise Failure(Mutation(what="a store in a generator", rewrite=AT_ONCE))


def _collected(
    frame: Frame, elt: ast.expr, generators: list[ast.comprehension], guard: Guard = nullcontext
) -> list[Place] | Long:
    """Return the items of a list comprehension: a list, or the stacked list of a rolled loop."""
    from pscdsl._src.frontend.interpreter.expressions import locate

    session = frame.session
    values: list[Place] = []
    elt, generators = _unpacked(elt, generators)

    def emit(inner: Frame) -> None:
        with guard(session):
            value = locate(inner, elt)
        if ITEMS in inner.names:
            changed(session, inner.lookup(ITEMS), append, value)
        else:
            values.append(value)

    made = _generate(frame, generators, emit, guard, rolls=True)
    return values if made is None else made


def _unpacked(
    elt: ast.expr, generators: list[ast.comprehension]
) -> tuple[ast.expr, list[ast.comprehension]]:
    """Rewrite `*items for …` as `item for … for item in items`."""
    if not isinstance(elt, ast.Starred):
        return elt, generators
    target = ast.copy_location(ast.Name(UNPACKED, ast.Store()), elt)
    item = ast.copy_location(ast.Name(UNPACKED, ast.Load()), elt)
    return item, [*generators, ast.comprehension(target, elt.value, [], 0)]


def _generate(
    frame: Frame,
    generators: Sequence[ast.comprehension],
    emit: Emit,
    guard: Guard = nullcontext,
    *,
    rolls: bool = False,
) -> Long | list[Place] | None:
    """Run all steps; return the list that is made if the first `for` is a rolled loop."""
    from pscdsl._src.frontend.interpreter.expressions import locate

    with guard(frame.session):
        source = locate(frame, generators[0].iter, iterated=True, used=True)
    inner = Frame(frame.session, frame.source, frame.scope, frame, frame.call_site, frame.closure)
    inner.in_comprehension = True
    inner.assigned = frozenset(
        name for generator in generators for name in targets(generator.target)
    )
    with frame.session.alive(inner):
        first, *rest = generators
        found = _counted(first, source)
        if found is None or not rolls:
            _unrolled(inner, first, source, partial(_nested, inner, rest, emit, guard), guard)
            return None
        inner.names[ITEMS] = adopt(frame.session, [])
        _rolled(inner, first, found, partial(_nested, inner, rest, emit, guard), guard)
        made = inner.names.pop(ITEMS)
        if isinstance(made, Poison):
            raise Poisoned  # a step has an error, which was reported
        assert isinstance(made, Long | list)
        return made


def _nested(
    inner: Frame, generators: Sequence[ast.comprehension], emit: Emit, guard: Guard
) -> None:
    """Run the `for` clauses after the first one, and finally emit the result of a step."""
    from pscdsl._src.frontend.interpreter.expressions import locate

    if not generators:
        emit(inner)
        return
    first, *rest = generators
    with guard(inner.session):
        source = locate(inner, first.iter, iterated=True, used=True)
    _unrolled(inner, first, source, partial(_nested, inner, rest, emit, guard), guard)


def _counted(generator: ast.comprehension, source: Place) -> Iterated | None:
    """Return the iterable of a `for` that counts its steps; None if it is unrolled."""
    found = iterated(source)
    if found is None or found.unrolled is not None:
        return None
    if generator.ifs:
        what = "how many items a comprehension with `if` makes of an array"
        raise Failure(NotStatic(what=what, rewrite="`np.where`, or a loop that stores"))
    return found


def _unrolled(
    inner: Frame,
    generator: ast.comprehension,
    source: Place,
    step: Callable[[], None],
    guard: Guard,
) -> None:
    """Run one `for` over known items."""
    from pscdsl._src.frontend.interpreter.assignments import assign

    if generator.is_async:
        raise Failure(Unsupported(what="an async comprehension", rewrite=""))
    if is_poisoned(source):
        raise Poisoned
    session = inner.session
    found = iterated(source)
    item_of = None
    items: Sequence[Place]
    if found is None or found.unrolled is None:
        with guard(session):
            items = [*elements(special_methods.gone_through(inner, generator.iter, source))]
    else:
        items, item_of = found.unrolled, found.item
    with unrolling(inner, inner.span(generator.target), items), walking(session, source) as at:
        for place, item in enumerate(items):
            session.next_step()
            at(place)
            inner.here(generator.target)
            with guard(session):
                if item_of is not None and isinstance(item, int):
                    item = item_of(item)
                assign(inner, generator.target, item)
                holds = _all_hold(inner, generator.ifs)
            if holds:
                step()


def _all_hold(frame: Frame, conditions: Sequence[ast.expr]) -> bool:
    """Return whether all conditions of a comprehension hold; stop at the first that does not."""
    for node in conditions:
        holds = operators.truth(frame, node, "a comprehension's `if`", "")
        if holds is None:
            raise Poisoned
        if not holds:
            return False
    return True


def _rolled(
    inner: Frame,
    generator: ast.comprehension,
    source: Iterated,
    step: Callable[[], None],
    guard: Guard,
) -> None:
    """Run one `for` as a rolled loop that appends to the list."""
    from pscdsl._src.frontend.interpreter.assignments import assign
    from pscdsl._src.frontend.interpreter.loops import Rolled

    target = generator.target
    loop = ast.copy_location(ast.For(target, generator.iter, [], []), target)

    def enter(position: Position) -> None:
        inner.here(target)
        with guard(inner.session):
            assign(inner, target, source.item(position))

    hidden = f" {id(generator)}"  # the iterable is held
    inner.names[hidden] = source.located
    try:
        Rolled(inner, loop, enter, step, source.count, line=source.line).run(targets(target))
    finally:
        inner.names.pop(hidden, None)
