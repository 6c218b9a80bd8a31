"""`match` on values that are known while checking: the matching case, and the names it binds."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final, TypeAlias

from pscdsl._src.frontend.interpreter import operators
from pscdsl._src.frontend.interpreter.equality import identical, isinstance_
from pscdsl._src.frontend.interpreter.expressions import evaluate
from pscdsl._src.frontend.interpreter.frames import Frame, fields
from pscdsl._src.frontend.interpreter.records import RecordClass
from pscdsl._src.frontend.values import (
    AnyValue,
    EnumMember,
    Poison,
    Poisoned,
    RecordValue,
    Undecided,
    VectorValue,
    describe,
    is_traced,
)
from pscdsl._src.ir.builder import Value, Weak
from pscdsl.typing.codes.language import BranchOnArray, NotStatic, Unsupported
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim
from pscdsl.typing.python_containers import is_known_array, is_sequence, is_tuple

Names: TypeAlias = "dict[str, AnyValue]"
"""The bindings of a pattern, which are used only if the whole pattern fits."""


def fits(frame: Frame, pattern: ast.pattern, value: AnyValue, names: Names) -> bool:
    """Return whether a pattern fits a value; a Failure if that is unknown."""
    handler = PATTERNS.get(type(pattern))
    if handler is None:
        what = f"the pattern `{frame.source.text_of(pattern)}`"
        failure = Failure(Unsupported(what=what, rewrite="use `if`"))
        raise failure.at(frame.span(pattern))
    try:
        return handler(frame, pattern, value, names, **fields(pattern, handler))
    except Failure as failure:
        raise failure.at(frame.span(pattern)) from None


def _value(
    frame: Frame, node: ast.MatchValue, found: AnyValue, names: Names, value: ast.expr
) -> bool:
    wanted = evaluate(frame, value)
    if isinstance(wanted, Poison):
        raise Poisoned
    _require_known(found)
    answer = operators.compared(frame, node, "Eq", found, wanted)
    if isinstance(answer, Undecided):
        raise Failure(operators.undecided(operators.known_facts(frame), answer))
    if not isinstance(answer, bool):
        raise _unknown(answer)
    return answer


def _singleton(
    frame: Frame, node: ast.MatchSingleton, found: AnyValue, names: Names, value: bool | None
) -> bool:
    if value is not None:
        _require_known(found)
    return identical(found, value)


def _require_known(value: AnyValue) -> None:
    if is_traced(value) or is_known_array(value):
        raise _unknown(value)


def _unknown(value: AnyValue) -> Failure:
    rewrite = "`np.where`, `psc.cond` or `psc.switch` choose by values"
    return Failure(BranchOnArray(construct="`match`", found=describe(value), rewrite=rewrite))


def _sequence(
    frame: Frame,
    node: ast.MatchSequence,
    found: AnyValue,
    names: Names,
    patterns: list[ast.pattern],
) -> bool:
    items = _items(found)
    stars = [at for at, each in enumerate(patterns) if isinstance(each, ast.MatchStar)]
    least = len(patterns) - len(stars)
    if items is None or len(items) < least or (not stars and len(items) > least):
        return False
    if not stars:
        return _all(frame, patterns, items, names)
    (star,) = stars
    after = len(patterns) - star - 1
    end = len(items) - after
    middle = patterns[star]
    assert isinstance(middle, ast.MatchStar)
    if not _all(frame, patterns[:star], items[:star], names):
        return False
    if middle.name is not None:
        names[middle.name] = list(items[star:end])
    return _all(frame, patterns[star + 1 :], items[end:], names)


def _all(
    frame: Frame, patterns: Sequence[ast.pattern], items: Sequence[AnyValue], names: Names
) -> bool:
    pairs = zip(patterns, items, strict=True)
    return all(fits(frame, pattern, item, names) for pattern, item in pairs)


_NO_SEQUENCES: Final = (
    *(bool, int, float, complex, str, bytes, type(None), type(Ellipsis)),
    *(set, frozenset, dict, Dim, Enum, EnumMember, Value, Weak),
)
"""Values that `match` takes for no sequence; arrays are none, either."""


def _items(value: AnyValue) -> Sequence[AnyValue] | None:
    """Return the items of a value that `match` accepts as a sequence; None for other values."""
    if is_sequence(value):
        return value
    match value:
        case range():
            return value
        case VectorValue(items=items):
            return items
        case RecordValue(cls=cls, fields=held):
            return tuple(held.values()) if cls.kind == "namedtuple" else None
        case _ if isinstance(value, _NO_SEQUENCES):
            return None
        case _:
            raise Failure(NotStatic(what=f"whether {describe(value)} is a sequence"))


def _class(
    frame: Frame,
    node: ast.MatchClass,
    found: AnyValue,
    names: Names,
    cls: ast.expr,
    patterns: list[ast.pattern],
    kwd_attrs: list[str],
    kwd_patterns: list[ast.pattern],
) -> bool:
    wanted = evaluate(frame, cls)
    if isinstance(wanted, Poison):
        raise Poisoned
    if not isinstance_(frame.here(node), found, wanted):
        return False
    name = str(getattr(wanted, "name", ""))
    if len(patterns) == 1 and name in _THEMSELVES and not kwd_attrs:
        return fits(frame, patterns[0], found, names)
    if patterns or (kwd_attrs and not isinstance(wanted, RecordClass)):
        what = f"the pattern `{frame.source.text_of(node)}`"
        rewrite = "name the fields of a record: `Class(field=…)`"
        raise Failure(Unsupported(what=what, rewrite=rewrite))
    held = _fields(found)
    for attribute, pattern in zip(kwd_attrs, kwd_patterns, strict=True):
        if attribute not in held:
            what = f"`{attribute}` of {describe(found)} in a pattern"
            raise Failure(Unsupported(what=what, rewrite="name a field"))
        if not fits(frame, pattern, held[attribute], names):
            return False
    return True


def _fields(value: AnyValue) -> Mapping[str, AnyValue]:
    """Return the fields of a record, or of a known named tuple."""
    if isinstance(value, RecordValue):
        return value.fields
    names: tuple[str, ...] = getattr(type(value), "_fields", ()) if is_tuple(value) else ()
    return {name: getattr(value, name) for name in names}


_THEMSELVES = frozenset(
    f"builtins.{name}"
    for name in ("bool", "bytes", "dict", "float", "frozenset", "int", "list", "set", "str")
) | {"builtins.tuple"}
"""Classes whose pattern with one positional part matches the instance itself."""


def _capture(
    frame: Frame,
    node: ast.MatchAs,
    found: AnyValue,
    names: Names,
    pattern: ast.pattern | None,
    name: str | None,
) -> bool:
    if pattern is not None and not fits(frame, pattern, found, names):
        return False
    if name is not None:
        names[name] = found
    return True


def _any(
    frame: Frame, node: ast.MatchOr, found: AnyValue, names: Names, patterns: list[ast.pattern]
) -> bool:
    for pattern in patterns:
        bound = dict(names)
        if fits(frame, pattern, found, bound):
            names.update(bound)
            return True
    return False


PATTERNS: dict[type[ast.pattern], Callable[..., bool]] = {
    ast.MatchValue: _value,
    ast.MatchSingleton: _singleton,
    ast.MatchSequence: _sequence,
    ast.MatchClass: _class,
    ast.MatchAs: _capture,
    ast.MatchOr: _any,
}
"""The supported patterns; a mapping pattern, `{"key": …}`, is not among them."""
