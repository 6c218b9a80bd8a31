"""Closed values: what CPython has, through and through, and which values can change in place."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum, auto
from typing import Any, Final, TypeGuard

import numpy as np

from pscdsl._src.frontend.values.purity import external_value
from pscdsl._src.frontend.values.values import (
    MAX_BITS,
    MAX_ITEMS,
    EnumMember,
    External,
    MapValue,
    Once,
    Partial,
    Poison,
    Poisoned,
    RecordValue,
    VectorValue,
    describe,
    is_traced,
    require_narrow,
    require_short,
)
from pscdsl._src.ir.builder import Builder, Weak
from pscdsl._src.language.elements import frozen, is_frozen
from pscdsl.typing.codes.language import BadArguments, NotStatic, Unsupported
from pscdsl.typing.codes.language_evaluation import TooLarge
from pscdsl.typing.codes.purity import SetOrder
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.python_containers import is_constant, is_dict, is_sequence, is_slice, is_tuple

# Values that can be changed in place, and how.


class Kind(Enum):
    """How a value can be changed."""

    ARRAY = auto()
    """An array, and through each of its views."""
    FLAT = auto()
    """A list, dict or set of what cannot be changed itself."""
    DEEP = auto()
    """A value that holds others that can be changed."""


def kind_of(value: Any) -> Kind | None:
    """How a value can be changed; None if it cannot."""
    if is_constant(value) and isinstance(value, np.ndarray):
        if is_frozen(value):
            return None
        plain = type(value) is np.ndarray and not value.dtype.hasobject
        return Kind.ARRAY if plain else Kind.DEEP
    if isinstance(value, Once):
        return Kind.DEEP
    if isinstance(value, list | dict | set):
        return Kind.DEEP if any(kind_of(part) for part in parts(value)) else Kind.FLAT
    return Kind.DEEP if any(kind_of(part) for part in parts(value)) else None


def is_mutable(value: Any) -> bool:
    """Whether a value, or something in it, can be changed in its place."""
    return kind_of(value) is not None


def holds_arrays(value: Any) -> bool:
    """Whether a value is or holds an array that is computed."""
    return (is_traced(value) and not isinstance(value, Weak)) or any(
        map(holds_arrays, parts(value))
    )


def iterator_in(value: Any) -> Once | None:
    """The iterator that a value is or holds."""
    if isinstance(value, Once):
        return value
    return next((once for part in parts(value) if (once := iterator_in(part)) is not None), None)


def parts(value: Any) -> Iterator[Any]:
    """What a value holds."""
    if is_dict(value):
        yield from value.values()
    elif is_sequence(value) or is_tuple(value):
        yield from value
    elif isinstance(value, RecordValue):
        yield from value.fields.values()
    elif isinstance(value, MapValue):
        yield from value.items.values()
    elif isinstance(value, VectorValue):
        yield from value.items
    elif isinstance(value, Partial):
        yield from (*value.args, *value.kwargs.values())
    elif isinstance(value, EnumMember):
        yield value.value
    elif isinstance(value, Enum):
        yield value._value_
    elif hasattr(value, "self_value"):  # a bound method
        yield value.self_value


def has_keywords(value: Any) -> bool:
    """Whether a value is or holds a partial function with keywords, which are a dict."""
    if isinstance(value, Partial) and value.kwargs:
        return True
    return any(has_keywords(part) for part in parts(value))


# Closed values: what CPython has, through and through, and what CPython computes of it.
#
# A static value is *closed* if it is a number, a string, None, a range, a slice, or a container of
# such: then an operation on it is done by CPython itself, on the very objects.  Everything else (a
# size, a condition on sizes, an array, a record, a function) is *open*: an operation on it has an
# exact meaning that is written down, or is refused.  Where CPython itself is not determined (the
# order of a set), closed values are refused as well.


ATOMS: Final[tuple[type[Any], ...]] = (
    *(bool, int, float, complex, str, bytes, type(None), type(Ellipsis), range),
)
"""Types of closed values without parts."""
MAX_RANGE = 10_000
"""No function of Python's walks through a longer range."""


def range_length(value: range) -> int:
    """How many numbers a range has, also where `len` cannot say it."""
    away = value.step - (1 if value.step > 0 else -1)
    return max(0, (value.stop - value.start + away) // value.step)


def is_set(value: object) -> TypeGuard[set[Any] | frozenset[Any]]:
    """Whether this is a set, whose order nobody knows."""
    return isinstance(value, set | frozenset)


def _parts(value: Any) -> Iterable[Any] | None:
    """What a container holds; None if this is none of Python's own."""
    kind: type[Any] = value.__class__
    if kind is tuple or kind is list or kind is set or kind is frozenset:
        items: Iterable[Any] = value
        return items
    if kind is dict:
        return [*value, *value.values()]
    return (value.start, value.stop, value.step) if is_slice(value) else None


def _walk(value: Any) -> Iterator[Any]:
    """A value and all that it holds."""
    yield value
    for each in _parts(value) or ():
        yield from _walk(each)


def is_closed(value: Any) -> bool:
    """Whether a value is CPython's own, through and through."""
    if value.__class__ in ATOMS:
        return True
    parts = _parts(value)
    return parts is not None and all(map(is_closed, parts))


def first_open(values: Sequence[Any]) -> Any:
    """The first part of some values that is open; the first value if none is."""
    for value in values:
        for each in _walk(value):
            if each.__class__ not in ATOMS and _parts(each) is None:
                return each
    return values[0]


def refused(what: str, *values: Any) -> Failure:
    """The refusal of an operation on values that are open."""
    found = first_open(values)
    if isinstance(found, Poison):
        raise Poisoned
    if isinstance(found, External):
        return Failure(external_value(found))
    shown = f" of {describe(found)}" if len(values) == 1 else f", where {describe(found)} is given"
    return Failure(NotStatic(what=f"{what}{shown}"))


def require_closed(what: str, *values: Any) -> None:
    """A Failure unless all values are closed."""
    if not all(map(is_closed, values)):
        raise refused(what, *values)


class Sets(Enum):
    """What a function makes of the order of a set that it is given."""

    DECIDE = "its result may depend on it"
    SORTED = "it does not, where the items have an order of their own"
    SUMMED = "it does not, where the items are integers"
    UNORDERED = "it never does"


def _require_determined(value: Any, sets: Sets) -> None:
    """A Failure if the order of a set decides what a function gives."""
    if sets is Sets.UNORDERED:
        return
    if is_set(value) and sets is not Sets.DECIDE:
        kinds = {item.__class__ for item in value}
        numbers = {int, bool} if sets is Sets.SUMMED else {int, bool, float}
        texts = kinds == {str} and sets is Sets.SORTED
        if (texts or kinds <= numbers) and all(item == item for item in value):
            return
    if any(is_set(each) for each in _walk(value)):
        raise Failure(SetOrder())


def by_python(
    what: str,
    function: Callable[..., Any],
    args: Iterable[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    sets: Sets = Sets.DECIDE,
    walks: bool = True,
) -> Any:
    """What CPython gives for closed arguments; a Failure where it raises, or does not end soon.

    `walks`: whether the function goes through what it is given.
    """
    args, kwargs = tuple(args), dict(kwargs or {})
    for each in (*args, *kwargs.values()):
        if walks and isinstance(each, range) and range_length(each) > MAX_RANGE:
            raise Failure(TooLarge(what=f"a range of {range_length(each)} numbers"))
        _require_determined(each, sets)
    try:
        return function(*args, **kwargs)
    except (RecursionError, Failure):
        raise
    except Exception as error:  # whatever it is, the program would end there
        problem = f"fails: {error}" if str(error) else f"fails: {type(error).__name__}"
        raise Failure(BadArguments(function=what, problem=problem)) from None


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, function)
    for name, function in {
        "Add": "add",
        "Sub": "sub",
        "Mult": "mul",
        "Div": "truediv",
        "FloorDiv": "floordiv",
        "Mod": "mod",
        "Pow": "pow",
        "LShift": "lshift",
        "RShift": "rshift",
        "BitAnd": "and_",
        "BitOr": "or_",
        "BitXor": "xor",
        "MatMult": "matmul",
    }.items()
}
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
}
UNARY: dict[str, Callable[[Any], Any]] = {
    "USub": operator.neg,
    "UAdd": operator.pos,
    "Invert": operator.invert,
}


def require_bounded(name: str, left: Any, right: Any) -> None:
    """A Failure if what an operator gives would be too large to work with."""
    if name in ("Pow", "LShift") and isinstance(left, int) and isinstance(right, int):
        grown = right * max(left.bit_length(), 1) if name == "Pow" else right + left.bit_length()
        if grown > MAX_BITS:
            raise Failure(TooLarge(what=f"an integer of more than {MAX_BITS} bits"))
    if name == "Mult":
        for sequence, count in ((left, right), (right, left)):
            if isinstance(sequence, str | bytes) or is_sequence(sequence):
                if isinstance(count, int) and len(sequence) * count > MAX_ITEMS:
                    raise Failure(TooLarge(what=f"a sequence of more than {MAX_ITEMS} items"))
    if name == "Mod" and isinstance(left, str | bytes):
        text = left if isinstance(left, str) else left.decode("latin-1")
        require_short("%", text, right if is_tuple(right) else (right,), {})


def text_of(what: str, function: Callable[..., str], value: Any, *more: Any) -> str:
    """The text of a closed value, by `str`, `repr`, `format` or `ascii`."""
    require_closed(f"the text{'' if what == 'str' else f' by `{what}`'}", value)
    found: str = by_python(what, function, (value, *more))
    return found


_CONVERSIONS: Final[Mapping[int, Callable[[Any], str]]] = {115: str, 114: repr, 97: ascii}


def formatted(value: Any, conversion: int, spec: str) -> str:
    """What an f-string makes of a closed value."""
    require_narrow(spec)
    if conversion in _CONVERSIONS:
        value = by_python("an f-string", _CONVERSIONS[conversion], (value,))
    found: str = by_python("an f-string", format, (value, spec))
    return found


def hashable(value: Any) -> bool:
    """Whether a closed value can be a key."""
    if is_tuple(value):
        return all(map(hashable, value))
    return not (is_dict(value) or isinstance(value, list | set) or is_slice(value))


# The meaning of `psc.constant`.


def constant(here: Builder, value: Any) -> Any:
    """The same value where nothing can change; a copy of what can be changed."""
    if is_constant(value) and isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise Failure(Unsupported(what="a constant array of Python objects", rewrite=""))
        return frozen(value)
    if is_sequence(value) or is_tuple(value):
        return tuple([constant(here, each) for each in value])
    if is_dict(value):
        if not all(isinstance(key, str) for key in value):
            rewrite = "use strings as keys"
            raise Failure(Unsupported(what="a constant dict with other keys", rewrite=rewrite))
        return MapValue({key: constant(here, each) for key, each in value.items()})
    if is_set(value):
        return frozenset(value)
    if isinstance(value, MapValue):
        return MapValue({key: constant(here, each) for key, each in value.items.items()})
    if isinstance(value, VectorValue):
        return VectorValue(tuple([constant(here, item) for item in value.items]))
    if isinstance(value, RecordValue):
        fields = {name: constant(here, each) for name, each in value.fields.items()}
        return replace(value, fields=fields)
    if isinstance(value, Once):
        raise Failure(Unsupported(what=f"{value.kind} as a constant", rewrite="make it a tuple"))
    return value
