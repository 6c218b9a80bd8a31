"""Lists, dicts and sets that statements change: their holders and their methods.

A list of the program is a Python list that all its names share, so that `b = a` and then
`b.append(1)` changes `a`. A `Container` records that a list was made in this call and may be
changed; changes of other lists are refused. Lengths and keys are known while checking.

Each change is written to the session's journal with the previous content, so that a branch, a trial
or a step of a loop can be undone. A container that is passed to code that does not follow changes
is frozen: it can always be read, and no longer changed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeGuard, overload

from pscdsl._src.frontend.interpreter.places import Froze, Frozen, Several, parts_of, with_cells
from pscdsl._src.frontend.values import AnyValue, Builtin, Once, Place, is_traced
from pscdsl.typing.codes.purity import Mutation
from pscdsl.typing.diagnostics import NOWHERE, Diagnostic, Failure, Label
from pscdsl.typing.python_containers import is_dict, is_sequence

if TYPE_CHECKING:
    from pscdsl._src.frontend.interpreter.frames import Binding, Session
    from pscdsl._src.frontend.interpreter.state import Missing

Content: TypeAlias = "list[Any] | dict[Any, Any] | set[Any]"


@dataclass(frozen=True, eq=False)
class Changed:
    """A change of a container, with its previous content."""

    container: Container
    content: Content
    stamp: int

    def undo(self) -> None:
        """Restore the previous content."""
        self.container.fill(self.content)
        self.container.stamp = self.stamp


@dataclass(frozen=True, eq=False)
class Extended:
    """An extension of a list, with its previous length."""

    container: Container
    length: int
    stamp: int

    def undo(self) -> None:
        """Drop the added items."""
        value = self.container.value
        assert isinstance(value, list)
        del value[self.length :]
        self.container.stamp = self.stamp


@dataclass(eq=False)
class Traversal:
    """A loop over a container, and its position."""

    container: Container
    ordered: bool
    """Whether its steps take the items in order."""
    keys: bool = False
    """Whether it iterates over the keys of a dict, and reads no item."""
    position: int = -1

    def admits(self, place: int) -> bool:
        """Return whether the loop no longer reads an item."""
        return self.keys or (self.ordered and 0 <= place <= self.position)


class Container:
    """A list, a dict or a set that was made in this call, and whether it may be changed."""

    __slots__ = ("frozen", "serial", "session", "stamp", "value")

    def __init__(self, session: Session, value: Content, frozen: Frozen | None = None) -> None:
        assert session.program is not None
        self.session = session
        self.value = value
        self.frozen = frozen
        """The reason why it may not be changed; None if it may be."""
        session.cells += 1
        self.serial = session.cells
        """Its number among all cells and containers."""
        self.stamp = session.stores
        """The number of its last change."""

    def content(self) -> Content:
        """Return a copy of the present content."""
        return self.value.copy()

    def fill(self, content: Content) -> None:
        """Replace the content without a record of the change."""
        value = self.value
        value.clear()
        if isinstance(value, list):
            value.extend(content)
        else:
            value.update(content)

    def replace(self, content: Content) -> None:
        """Replace the content even if it is shared, with the result of a branch or a loop."""
        session = self.session
        session.journal.append(Changed(self, self.content(), self.stamp))
        session.stores += 1
        self.stamp = session.stores
        self.fill(with_cells(session, content, UNFOLLOWED))

    def extend(self, items: Sequence[Place]) -> None:
        """Append items to a list."""
        session, value = self.session, self.value
        assert isinstance(value, list)
        session.journal.append(Extended(self, len(value), self.stamp))
        session.stores += 1
        self.stamp = session.stores
        value.extend(with_cells(session, [*items], UNFOLLOWED))

    def freeze(self, frozen: Frozen) -> None:
        """Refuse changes from here on."""
        if self.frozen is None:
            self.frozen = frozen
            self.session.journal.append(Froze(self))

    def require_free(self) -> None:
        """Raise a Failure if it may not be changed here."""
        if self.frozen is not None:
            raise refusal(self.value, self.frozen)
        if self.serial <= self.session.outside:
            why = "is made outside of the function that a combinator is given"
            raise refusal(self.value, Frozen(why, rewrite="return the new items from the function"))

    def require_unwalked(self, place: int | None = None) -> None:
        """Raise a Failure if a loop over it would see the change, or another length."""
        for walk in self.session.walks:
            if walk.container is self and not (place is not None and walk.admits(place)):
                kind = self.value.__class__.__name__
                why = "a loop goes through"
                rewrite = f"go through a copy: `for … in list(…)` of the {kind}"
                raise refusal(self.value, Frozen(why, rewrite=rewrite))


def refusal(value: Place, frozen: Frozen) -> Failure:
    """Return the refusal of a change; the caller says which change it is."""
    kind = value.__class__.__name__
    rewrite = frozen.rewrite or f"change a copy: `{kind}(…)` makes one"
    found = Mutation(what=CHANGE, rewrite=rewrite, why=frozen.why, noun=f"a {kind}")
    if frozen.span is not NOWHERE:
        found = found.labelled(Label(frozen.span, "shared here"))
    return Failure(found)


def shared_by(failure: Failure, value: Place, container: Container | None) -> Failure:
    """Add the holder of the container to the refusal of a change."""
    frozen = OUTSIDE if container is None else container.frozen

    def named(found: Diagnostic) -> Diagnostic:
        if not isinstance(found, Mutation) or frozen is None:
            return found
        kind = value.__class__.__name__
        rewrite = frozen.rewrite or found.rewrite
        found = found.replaced(why=frozen.why, noun=f"a {kind}", rewrite=rewrite)
        shown = Label(frozen.span, "shared here")
        return found if frozen.span is NOWHERE else found.labelled(shown)

    return Failure(*map(named, failure.diagnostics))


OUTSIDE: Final = Frozen(
    "this call did not make",
    rewrite="return the new items, or collect them in one that the kernel makes and returns",
)
"""The reason why a list, a dict or a set of the module takes no changes."""
UNFOLLOWED: Final = Frozen("comes from what is not followed")
"""The reason why arrays in a container from elsewhere take no stores."""

CHANGE: Final = "a change"
"""The name of a change whose text is not known yet."""


def is_container(value: Place) -> TypeGuard[Content]:
    """Return whether a value is a Python list, dict or set."""
    return value.__class__ in (list, dict, set)


def container_of(session: Session, value: Binding) -> Container | None:
    """Return the container of a list, a dict or a set; None if it was not made in this call."""
    return session.containers.get(id(value))


@overload
def adopt(session: Session, value: Several, frozen: Frozen | None = None) -> Several: ...
@overload
def adopt(session: Session, value: Place, frozen: Frozen | None = None) -> Place: ...
def adopt(session: Session, value: Place, frozen: Frozen | None = None) -> Place:
    """Follow a list, a dict or a set that was just made, or that others are known to hold."""
    if session.program is not None and is_container(value) and id(value) not in session.containers:
        content = with_cells(session, value, frozen or UNFOLLOWED)
        session.containers[id(content)] = Container(session, content, frozen)
        return content
    return value


def adopt_all(session: Session, value: Place, frozen: Frozen) -> None:
    """Follow all containers in a value as frozen, unless they are followed already."""
    if is_traced(value) or session.program is None:
        return
    if is_container(value):
        adopt(session, value, frozen)
    for part in () if isinstance(value, Once) else parts_of(value):
        adopt_all(session, part, frozen)


def changeable(session: Session, value: Place) -> Container:
    """Return the container of a value that may be changed here; a Failure if it may not."""
    found = container_of(session, value)
    if found is None:
        raise refusal(value, OUTSIDE)
    found.require_free()
    return found


def containers_in(session: Session, value: Binding) -> Iterator[Container]:
    """Yield the followed containers in a value."""
    if is_traced(value):
        return
    found = container_of(session, value)
    if found is not None:
        yield found
    if isinstance(value, ContainerMethod):
        yield from containers_in(session, value.owner)
    if isinstance(value, Once):
        for container, _, _ in value.sources:
            yield container
    for part in parts_of(value):
        yield from containers_in(session, part)


# Iterators over containers read them when they are consumed.


@dataclass(frozen=True)
class ContainerMethod(Builtin):
    """A method of a Python value, which reads the value when it is called."""

    owner: Place = None

    def holds(self) -> Sequence[AnyValue]:
        """Return the value."""
        return (self.owner,)


def note_sources(session: Session, function: AnyValue, args: Sequence[Place], result: Once) -> None:
    """Record the containers that an iterator reads: a change before it is consumed would show."""
    name = getattr(function, "name", "")
    given = [*args, function.owner] if isinstance(function, ContainerMethod) else args
    ordered = name in _IN_ORDER
    sources: list[tuple[Container, int, bool]] = []
    for value in given:
        container = container_of(session, value)
        if container is not None:
            sources.append((container, container.stamp, ordered))
        elif isinstance(value, Once):
            sources += ((source, stamp, ordered and so) for source, stamp, so in value.sources)
    result.sources = tuple(sources)


_IN_ORDER: Final = frozenset(("builtins.enumerate", "builtins.zip", "items", "keys", "values"))
"""Functions and methods whose iterators take one item of each argument in each step."""


@contextmanager
def walking(session: Session, source: Place) -> Generator[Callable[[int], None]]:
    """Iterate over a container, or an iterator over some; items still to be read must stay.

    The context gives a function that sets the position of the loop.
    """
    container = container_of(session, source)
    if container is not None:
        walks = [Traversal(container, ordered=True, keys=is_dict(source))]
    else:
        sources = source.sources if isinstance(source, Once) else ()
        walks = [Traversal(each, ordered) for each, _, ordered in sources]

    def at(place: int) -> None:
        for walk in walks:
            walk.position = place

    session.walks.extend(walks)
    try:
        yield at
    finally:
        del session.walks[len(session.walks) - len(walks) :]


def same_order(one: Binding | Missing, other: Binding | Missing) -> bool:
    """Return whether two values of one structure have dict keys in the same order."""
    if is_dict(one) and is_dict(other):
        return [*one] == [*other] and all(same_order(one[key], other[key]) for key in one)
    if is_sequence(one) and is_sequence(other):
        return all(map(same_order, one, other))
    return True
