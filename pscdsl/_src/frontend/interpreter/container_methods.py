"""Changes of lists, dicts and sets by statements and methods: as in CPython, or refused.

An operation changes a copy of the content as CPython does, if the content is known while checking;
the copy then replaces the container's content. An exception of Python is a finding.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from pscdsl._src.frontend.interpreter.containers import (
    CHANGE,
    OUTSIDE,
    Container,
    ContainerMethod,
    Content,
    Traversal,
    changeable,
    containers_in,
)
from pscdsl._src.frontend.interpreter.equality import (
    ABSENT,
    Absent,
    found_key,
    meant,
    place,
    require_key,
)
from pscdsl._src.frontend.interpreter.frames import Session, session_of
from pscdsl._src.frontend.interpreter.functions import items_of
from pscdsl._src.frontend.interpreter.iteration import row_of
from pscdsl._src.frontend.interpreter.places import Located, load
from pscdsl._src.frontend.purity import (
    Sets,
    by_python,
    is_set,
    require_bounded,
    require_closed,
)
from pscdsl._src.frontend.values import (
    MAX_ITEMS,
    AnyValue,
    Applicable,
    Args,
    Kwargs,
    MapValue,
    Place,
    describe,
    is_traced,
)
from pscdsl._src.ir.builder import Builder
from pscdsl.typing.codes.language import BadArguments, NotCallable, NotStatic, Unsupported
from pscdsl.typing.codes.language_evaluation import NoSuchItem, TooLarge
from pscdsl.typing.codes.purity import Mutation, SetOrder
from pscdsl.typing.diagnostics import Diagnostic, Failure
from pscdsl.typing.python_containers import is_dict, is_sequence, is_slice

Operation: TypeAlias = "Callable[..., Place]"
"""An operation that changes a content, called with `(session, content, *arguments)`."""
Entries: TypeAlias = "dict[AnyValue, Place]"
"""The content of a dict."""
Items: TypeAlias = "list[Place] | Entries"
"""The content of a list or a dict."""
T = TypeVar("T")


@dataclass(frozen=True)
class Changing(ContainerMethod):
    """A method that changes its list, dict or set."""

    operation: Operation | None = None

    def change(self, here: Builder, args: Args, kwargs: Kwargs) -> Place:
        """Call the method with references."""
        assert self.operation is not None
        what = f"{self.owner.__class__.__name__}.{self.name}"
        try:
            inspect.signature(self.operation).bind(None, None, *args, **kwargs)
        except TypeError as error:
            raise Failure(BadArguments(function=what, problem=str(error))) from None
        try:
            return changed(session_of(here), self.owner, self.operation, *args, **kwargs)
        except Failure as failure:
            raise named(failure, f"`{what}`") from None


def named(failure: Failure, what: str, rewrite: str = "") -> Failure:
    """Add the text of a change and a suggested replacement to its refusal."""

    def of(found: Diagnostic) -> Diagnostic:
        if not isinstance(found, Mutation) or found.what != CHANGE:
            return found
        is_ours = found.why != OUTSIDE.why  # a name of the module is not rebound
        both = f"{found.rewrite}; or write {rewrite}" if rewrite and is_ours else found.rewrite
        return found.replaced(what=what, rewrite=both)

    return Failure(*map(of, failure.diagnostics))


def changed(
    session: Session, value: Place, operation: Operation, *args: Place, **kwargs: Place
) -> Place:
    """Change a list, a dict or a set; a Failure if others hold it, or Python raises."""
    container = changeable(session, value)
    if operation is append:
        _appended(session, container, *args, **kwargs)
        return None
    content = container.content()
    before = len(content)
    spot = _spot(content, operation, args)
    reads = operation in _READING or (operation is set_item and is_slice(args[0]))
    stored = [each for each in args if not (reads and each is value)]
    _admit(session, container, (*stored, *kwargs.values()))
    with _hidden(container) if operation is _sort else nullcontext():
        result = operation(session, content, *args, **kwargs)
    if len(content) > MAX_ITEMS:
        raise Failure(TooLarge(what=f"a {value.__class__.__name__} of more than {MAX_ITEMS} items"))
    container.require_unwalked(spot if len(content) == before else None)
    container.replace(content)
    return result


def _appended(session: Session, container: Container, item: Place, /) -> None:
    """Execute `items.append(item)` without a copy of the list."""
    if len(container.value) >= MAX_ITEMS:
        raise Failure(TooLarge(what=f"a list of more than {MAX_ITEMS} items"))
    _admit(session, container, item)
    container.require_unwalked()
    container.extend([item])


def _admit(session: Session, container: Container, given: Place) -> None:
    """Count the stored value; a Failure if the container would hold itself."""
    session.made(given)
    if any(each is container for each in containers_in(session, given)):
        kind = container.value.__class__.__name__
        raise Failure(Unsupported(what=f"a {kind} that holds or goes through itself", rewrite=""))


@contextmanager
def _hidden(container: Container) -> Generator[None]:
    """Empty a list while it is sorted, and refuse changes of it."""
    content, walk = container.content(), Traversal(container, ordered=False)
    container.fill([])
    container.session.walks.append(walk)
    try:
        yield
    finally:
        container.session.walks.remove(walk)
        container.fill(content)


def _spot(content: Content, operation: Operation, args: Args) -> int | None:
    """Return the position of the item that an operation replaces; None if it is a new item."""
    if operation is not set_item:
        return None
    index = args[0]
    if is_dict(content):
        found = ABSENT if is_traced(index) else found_key(index, content)
        return None if isinstance(found, Absent) else [*content].index(found)
    if not isinstance(index, int):
        return None
    return index + len(content) if index < 0 else index


def _listed(value: Place) -> list[Place]:
    """Return the items that a method reads, in order; rows of an array are views."""
    if isinstance(value, Located) and value.ndim:
        count = value.type.shape[0]
        if isinstance(count, int):
            return [row_of(value, index) for index in range(count)]
    return [*items_of(value)]


def _python(what: str, function: Callable[..., T], *args: Place) -> T:
    """Apply a CPython function; an exception becomes a finding."""
    return by_python(what, function, args, sets=Sets.UNORDERED, walks=False)


# Lists.


def append(session: Session, content: list[Place], item: Place, /) -> None:
    """Execute `items.append(item)`."""
    content.append(item)


def extend(session: Session, content: list[Place], items: Place, /) -> None:
    """Execute `items.extend(others)` or `items += others`."""
    content.extend(_listed(items))


def _insert(session: Session, content: list[Place], index: Place, item: Place, /) -> None:
    _python("list.insert", content.insert, _index(index, content), item)


def _index(index: Place, content: Content) -> AnyValue:
    """Return a known index; a Failure if it is unknown."""
    if is_traced(index) or isinstance(index, Located):
        reason = "which item of a Python list it is has to be known while checking"
        found, rewrite = describe(content), "stack the items with `np.stack`, and store into that"
        raise Failure(
            NoSuchItem(found=found, index=describe(index), reason=reason, rewrite=rewrite)
        )
    require_closed("an index of a list", index)
    return index


def _pop(session: Session, content: list[Place], index: Place = -1, /) -> Place:
    return _python("list.pop", content.pop, _index(index, content))


def _remove(session: Session, content: list[Place], item: Place, /) -> None:
    del content[place(load(content), load(item))]


def _clear(session: Session, content: Content) -> None:
    content.clear()


def _reverse(session: Session, content: list[Place]) -> None:
    content.reverse()


def _sort(
    session: Session, content: list[Place], *, key: Place = None, reverse: Place = False
) -> None:
    require_closed("the `reverse` of `sort`", reverse)
    keys = load(content)
    if key is not None:
        if not isinstance(key, Applicable):
            raise Failure(NotCallable(found=describe(key)))
        program = session.program
        assert program is not None
        keys = [key.apply(program.current, (each,), {}) for each in keys]
    require_closed("the order in which `sort` puts its items", *keys)
    options = {"key": keys.__getitem__, "reverse": reverse}
    order: list[int] = by_python("list.sort", sorted, (range(len(content)),), options)
    content[:] = [content[index] for index in order]


# Items and slices.


def set_item(session: Session, content: Items, index: Place, item: Place, /) -> None:
    """Execute `items[index] = item` for a list or a dict."""
    if is_dict(content):
        key = require_key(meant(_key(index)))
        found = found_key(key, content)
        content[key if isinstance(found, Absent) else found] = item
        return
    if is_slice(index):
        item = _listed(item)
    _python("a store into a list", content.__setitem__, _index(index, content), item)


def delete_item(session: Session, content: Items, index: Place, /) -> None:
    """Execute `del items[index]` for a list or a dict."""
    if is_dict(content):
        del content[_there(content, index)]
        return
    _python("`del` of an item", content.__delitem__, _index(index, content))


def _key(key: Place) -> AnyValue:
    if is_traced(key) or isinstance(key, Located):
        raise Failure(NotStatic(what="a key of a dict"))
    return key


def _there(content: Mapping[AnyValue, Place], key: Place) -> AnyValue:
    """Return the equal key of a dict; a Failure if there is none."""
    found = found_key(_key(key), content)
    if isinstance(found, Absent):
        raise Failure(NoSuchItem(found="a dict", index=describe(key), reason="no such key"))
    return found


# Dicts.


def update(session: Session, content: Entries, other: Place = (), /, **items: Place) -> None:
    """Execute `d.update(other)` or `d |= other`."""
    pairs: Iterable[Sequence[Place]]
    if isinstance(other, MapValue):
        pairs = other.items.items()
    elif is_dict(other):
        pairs = list(other.items())
    else:
        pairs = [_listed(pair) for pair in _listed(other)]
    for pair in [*pairs, *items.items()]:
        if len(pair) != 2:
            raise Failure(BadArguments(function="dict.update", problem="takes pairs"))
        set_item(session, content, load(pair[0]), pair[1])


def _set_default(session: Session, content: Entries, key: Place, default: Place = None, /) -> Place:
    found = found_key(_key(key), content)
    if isinstance(found, Absent):
        set_item(session, content, key, default)
        return default
    return content[found]


def _take(session: Session, content: Entries, key: Place, /, *default: Place) -> Place:
    if len(default) > 1:
        raise Failure(BadArguments(function="dict.pop", problem="takes a key and a default"))
    if default and isinstance(found_key(_key(key), content), Absent):
        return default[0]
    return content.pop(_there(content, key))


def _take_last(session: Session, content: Entries) -> Place:
    return _python("dict.popitem", content.popitem)


# Sets of closed values, and of values that are equal only to themselves.


def _members(value: Place) -> list[AnyValue]:
    found = [*value] if is_set(value) else _listed(value)
    for each in found:
        if is_traced(each) or isinstance(each, Located):
            raise Failure(NotStatic(what="an item of a set"))
    return [require_key(meant(each)) for each in found]


def _add(session: Session, content: set[AnyValue], item: Place, /) -> None:
    (item,) = _members((item,))
    if isinstance(found_key(item, content), Absent):
        content.add(item)


def _discard(session: Session, content: set[AnyValue], item: Place, /) -> None:
    (item,) = _members((item,))
    found = found_key(item, content)
    if not isinstance(found, Absent):
        content.discard(found)


def _remove_member(session: Session, content: set[AnyValue], item: Place, /) -> None:
    (member,) = _members((item,))
    if isinstance(found_key(member, content), Absent):
        raise Failure(NoSuchItem(found="a set", index=describe(item), reason="no such item"))
    _discard(session, content, item)


def _pop_member(session: Session, content: set[AnyValue]) -> None:
    raise Failure(SetOrder())


def _add_all(session: Session, content: set[AnyValue], /, *others: Place) -> None:
    for other in others:
        for item in _members(other):
            _add(session, content, item)


def _keep(session: Session, content: set[AnyValue], /, *others: Place) -> None:
    for other in others:
        wanted = set(_members(other))
        for item in [*content]:
            if isinstance(found_key(item, wanted), Absent):
                _discard(session, content, item)


def _drop(session: Session, content: set[AnyValue], /, *others: Place) -> None:
    for other in others:
        for item in _members(other):
            _discard(session, content, item)


def _toggle(session: Session, content: set[AnyValue], other: Place, /) -> None:
    for item in dict.fromkeys(_members(other)):
        absent = isinstance(found_key(item, content), Absent)
        (_add if absent else _discard)(session, content, item)


_READING: Final = frozenset((extend, update, _add_all, _keep, _drop, _toggle))
"""Operations that read the items of their arguments, and do not hold the arguments themselves."""

METHODS: Final[dict[tuple[type, str], Operation]] = {
    (list, "append"): append,
    (list, "extend"): extend,
    (list, "insert"): _insert,
    (list, "pop"): _pop,
    (list, "remove"): _remove,
    (list, "clear"): _clear,
    (list, "sort"): _sort,
    (list, "reverse"): _reverse,
    (dict, "update"): update,
    (dict, "setdefault"): _set_default,
    (dict, "pop"): _take,
    (dict, "popitem"): _take_last,
    (dict, "clear"): _clear,
    (set, "add"): _add,
    (set, "discard"): _discard,
    (set, "remove"): _remove_member,
    (set, "pop"): _pop_member,
    (set, "clear"): _clear,
    (set, "update"): _add_all,
    (set, "intersection_update"): _keep,
    (set, "difference_update"): _drop,
    (set, "symmetric_difference_update"): _toggle,
}
"""The methods that change their container."""


def changing_method(session: Session, owner: Place, name: str) -> Changing | None:
    """Return the method of a list, a dict or a set that changes it; None if there is none."""
    operation = METHODS.get((owner.__class__, name))
    if operation is None or session.program is None:
        return None
    return Changing(name, operation, owner=owner, operation=operation)


def _repeat(session: Session, content: list[Place], count: Place, /) -> None:
    require_bounded("Mult", content, count)
    if type(count) is not int:
        raise Failure(NotStatic(what=f"how often {describe(count)} repeats a list"))
    content[:] = content * count


def _of_sets(operation: Operation) -> Operation:
    def apply(session: Session, content: set[AnyValue], other: Place, /) -> None:
        if not is_set(other):
            raise Failure(BadArguments(function="an operator on sets", problem="takes a set"))
        operation(session, content, other)

    return apply


def _merge(session: Session, content: Entries, other: Place, /) -> None:
    if not (is_dict(other) or is_sequence(other)):
        raise Failure(BadArguments(function="|=", problem="takes a dict, or pairs"))
    update(session, content, other)


OPERATORS: Final[dict[tuple[type, str], Operation]] = {
    (list, "Add"): extend,
    (list, "Mult"): _repeat,
    (dict, "BitOr"): _merge,
    (set, "BitOr"): _of_sets(_add_all),
    (set, "BitAnd"): _of_sets(_keep),
    (set, "Sub"): _of_sets(_drop),
    (set, "BitXor"): _of_sets(_toggle),
}
"""Augmented assignments such as `+=` that change the container of a name."""
