"""The state that statements change, and its restoration: the names of live functions, and cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from enum import Enum
from typing import TypeGuard, TypeVar, assert_never

from pscdsl._src.frontend.interpreter.containers import (
    Changed,
    Container,
    Content,
    Extended,
    container_of,
)
from pscdsl._src.frontend.interpreter.frames import Binding, Frame, Session
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.interpreter.iteration import Generated, Long
from pscdsl._src.frontend.interpreter.places import (
    BoundArrayMethod,
    Cell,
    Froze,
    Frozen,
    Located,
    Ref,
    Walked,
    Written,
    parts_of,
)
from pscdsl._src.frontend.trees import Attempt
from pscdsl._src.frontend.values import (
    Applicable,
    Array,
    Builtin,
    EnumMember,
    MapValue,
    Once,
    Place,
    Poisoned,
    RecordValue,
    Simple,
    VectorValue,
    is_traced,
)
from pscdsl._src.ir.builder import Program, Value
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim
from pscdsl.typing.python_containers import is_tuple

Key = tuple[Frame, str]
"""The key of a name in a function."""


T = TypeVar("T")


class Missing:
    """The marker for an unbound name."""


MISSING = Missing()


class State:
    """A snapshot of everything that statements can change, to restore it and to see differences."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.mark = len(session.journal)
        self.serial = session.cells
        self.names = [(frame, dict(frame.names)) for frame in live_frames(session)]
        self._before = dict(self.names)

    def existed(self, cell: Cell | Container) -> bool:
        """Return whether a cell or a container existed."""
        return cell.serial <= self.serial

    def before(self, key: Key) -> Binding | Missing:
        """Return the value of a name; MISSING if it was not bound."""
        frame, name = key
        return self._before[frame].get(name, MISSING)

    def renamed(self) -> dict[Key, Binding | Missing]:
        """Return the names with another value now, and the value; MISSING if they are unbound."""
        renamed: dict[Key, Binding | Missing] = {}
        for frame, before in self.names:
            for name in (*before, *(name for name in frame.names if name not in before)):
                now = frame.names.get(name, MISSING)
                if name not in before or not alike(before[name], now):
                    renamed[frame, name] = now
        return renamed

    def written(self) -> dict[Cell, tuple[Array, int]]:
        """Return the cells that were written, with their content and the time of the store."""
        changes = self.session.journal[self.mark :]
        cells = [change.cell for change in changes if isinstance(change, Written)]
        return {cell: (cell.content, cell.stamp) for cell in cells}

    def changed(self) -> dict[Container, Content]:
        """Return the containers that existed and were changed, with their present content."""
        changes = self.session.journal[self.mark :]
        changed = [each.container for each in changes if isinstance(each, Changed | Extended)]
        return {each: each.content() for each in changed if self.existed(each)}

    def frozen(self) -> list[tuple[Cell | Container, Frozen]]:
        """Return the cells and containers that were frozen, with the reason."""
        return [
            (change.cell, change.cell.frozen)
            for change in self.session.journal[self.mark :]
            if isinstance(change, Froze) and change.cell.frozen is not None
        ]

    def restore(self) -> None:
        """Restore the snapshot; containers that were made since stay as they are."""
        journal = self.session.journal
        while len(journal) > self.mark:
            change = journal.pop()
            made = isinstance(change, Changed | Extended) and not self.existed(change.container)
            if not made:
                change.undo()
        for frame, before in self.names:
            frame.names.clear()
            frame.names.update(before)


class Trial:
    """An elaboration on trial, which can be undone."""

    def __init__(self, session: Session, program: Program) -> None:
        self.state = State(session)
        self.attempt = Attempt(program)
        self.block = program.current
        self.known = len(self.block.equations)

    def forget(self) -> None:
        """Undo the elaboration."""
        self.block.program.current = self.block
        self.state.restore()
        self.block.forget(self.known)
        self.attempt.forget()


def attempted(session: Session, program: Program, make: Callable[[], T]) -> tuple[T] | None:
    """Return the result of `make` in a tuple; None, with everything undone, if it has findings."""
    trial = Trial(session, program)
    try:
        result = make()
        if not trial.attempt.failed():
            return (result,)
    except (Failure, Poisoned):
        pass
    trial.forget()
    return None


def live_frames(session: Session) -> list[Frame]:
    """Return the frames of the functions being elaborated, and those around them."""
    found: dict[Frame, None] = {}
    for each in session.live:
        frame: Frame | None = each
        while frame is not None:
            found[frame] = None
            frame = frame.outer
    return list(found)


def alike(one: Binding | Missing, other: Binding | Missing) -> bool:
    """Return whether two values are certainly the same at any time."""
    if one is other:
        return True
    if isinstance(one, Ref) and isinstance(other, Ref):
        return one.cell is other.cell and one.steps == other.steps
    if isinstance(one, Value) and isinstance(other, Value):
        return one.atom is other.atom
    if type(one) is not type(other) or is_traced(one):
        return False
    if is_tuple(one) and is_tuple(other):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, bool | int | float | complex | str | Dim):
        return repr(one) == repr(other)
    return False


def holders(
    session: Session, without: Frame | None = None, more: Place = ()
) -> Counter[Cell | Container] | None:
    """Count the references of names to each cell and container; None if the number is unknown.

    One frame may be excluded, and other values may be included.
    """
    counts: Counter[Cell | Container] = Counter(session.caller_holds)
    seen: set[Frame] = set() if without is None else {without}
    try:
        for frame in live_frames(session):
            counts.update(_of_frame(frame, seen))
        counts.update(held(more, seen, session))
    except _Unknown:
        return None
    return counts


def is_whole(value: Binding) -> TypeGuard[Ref]:
    """Return whether a value is a whole array that takes stores, and no view of a part."""
    return isinstance(value, Ref) and not value.steps and value.cell.frozen is None


def is_held_once(value: Binding, held: Counter[Cell | Container] | None) -> TypeGuard[Ref]:
    """Return whether a value is a whole array that takes stores, with a single reference."""
    return is_whole(value) and held is not None and held[value.cell] == 1


def may_hold(session: Session, value: Place, cells: set[Cell]) -> bool:
    """Return whether a value may refer to one of some cells."""
    try:
        return not cells.isdisjoint(held(value, set(), session))
    except _Unknown:
        return True


class _Unknown(Exception):
    """A value that may hold anything."""


def _of_frame(frame: Frame | None, seen: set[Frame]) -> Iterator[Cell | Container]:
    while frame is not None and frame not in seen:
        seen.add(frame)
        for value in frame.names.values():
            yield from held(value, seen, frame.session)
        frame = frame.outer


def held(value: Binding, seen: set[Frame], session: Session) -> Iterator[Cell | Container]:
    """Yield the cells and containers that a value refers to, one for each reference."""
    if isinstance(value, Simple):
        return
    container = container_of(session, value)
    if container is not None:
        yield container
    match value:
        case Located():
            yield from value.cells()
        case BoundArrayMethod():
            yield from value.owner.cells()
        case Walked():
            yield from held(value.located, seen, session)
        case Closure():
            yield from _of_frame(value.outer, seen)
        case Builtin() if "." not in value.name:
            raise _Unknown  # a method of a container, which holds the container
        case Applicable():
            yield from held(tuple(value.holds()), seen, session)
        case Once():
            yield from held(tuple(value.items()), seen, session)
            yield from [source for source, _, _ in value.sources]
        case tuple() | list() | dict():
            for part in parts_of(value):
                yield from held(part, seen, session)
        case set() | frozenset() | RecordValue() | MapValue() | VectorValue():
            return
        case Long() | Generated() | Enum() | EnumMember():
            return
        case _:
            assert_never(value)
