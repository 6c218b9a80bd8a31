"""What Python's loops and functions may run over while a kernel is elaborated."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from pscdsl._src.frontend.interpreter.frames import Frame
from pscdsl._src.frontend.values.closed import range_length
from pscdsl._src.frontend.values.purity import external_value
from pscdsl._src.frontend.values.values import (
    External,
    MapValue,
    Once,
    Poison,
    Poisoned,
    RecordValue,
    VectorValue,
    describe,
    is_traced,
)
from pscdsl.typing.codes.language import LOOPS, LoopOverArray, NotStatic, Unsupported
from pscdsl.typing.codes.language_evaluation import TooLarge
from pscdsl.typing.codes.performance import LargeUnroll
from pscdsl.typing.codes.purity import SetOrder
from pscdsl.typing.diagnostics import Failure, Span
from pscdsl.typing.dims import Dim
from pscdsl.typing.python_containers import is_dict, is_sequence

MAX_UNROLL = 10_000
LARGE_UNROLL = 1_000
"""So many equations of an unrolled loop are worth a warning, if it has this many steps:"""
MANY_STEPS = 16


@contextmanager
def unrolling(frame: Frame, place: Span, items: Sequence[Any]) -> Generator[None]:
    """Warn if a loop over these items leaves a large program and none inside of it does."""
    program, findings = frame.program, frame.session.findings
    if program is None or len(items) < MANY_STEPS:
        yield
        return
    block, known = program.current, len(findings)
    before = len(block.equations)
    yield
    added = len(block.equations) - before
    if added >= LARGE_UNROLL and not any(isinstance(x, LargeUnroll) for x in findings[known:]):
        finding = LargeUnroll(steps=len(items), equations=added, span=place)
        if not any(isinstance(x, LargeUnroll) and x.span == place for x in findings):
            findings.append(finding)


def elements(value: Any) -> Sequence[Any]:
    """What a loop runs over; a Failure for arrays and symbolic ranges."""
    if isinstance(value, Poison):
        raise Poisoned
    if isinstance(value, range) and range_length(value) > MAX_UNROLL:
        raise Failure(
            NotStatic(what=f"a loop of {range_length(value)} steps (at most {MAX_UNROLL})")
        )
    return _items(value, "a loop over {}")


def items_of(value: Any) -> Sequence[Any]:
    """The items of a static collection, as Python's functions take them."""
    if isinstance(value, range) and range_length(value) > MAX_UNROLL:
        raise Failure(TooLarge(what=f"a range of {range_length(value)} numbers"))
    return _items(value, "what {} holds")


def _items(value: Any, unknown: str) -> Sequence[Any]:
    """The items in their order; `unknown` is what is said of a value without any."""
    from pscdsl._src.frontend.interpreter.records import RecordClass  # which iterates

    if is_traced(value):
        raise Failure(LoopOverArray(found=str(value.type)))
    if is_sequence(value) or isinstance(value, range | str | bytes):
        return value
    if is_dict(value):
        return tuple(value)
    if isinstance(value, MapValue):
        if len(value.items) > 1:
            raise Failure(SetOrder(kind="a PMap"))
        return tuple(value.items)
    if isinstance(value, VectorValue):
        return value.items
    if isinstance(value, Once):
        return value.take()
    if isinstance(value, set | frozenset):
        raise Failure(SetOrder())
    if isinstance(value, RecordValue):
        value.cls.refuse_special("__iter__")
    if isinstance(value, RecordValue) and value.cls.kind == "namedtuple":
        return tuple(value.fields.values())
    if isinstance(value, RecordClass) and value.enumeration:
        return value.enum_members()
    if isinstance(value, External):
        raise Failure(external_value(value))
    if isinstance(value, RecordValue):
        what = f"going through {describe(value)}, which has no items,"
        fields = ", ".join(f"`r.{name}`" for name in value.fields)
        raise Failure(Unsupported(what=what, rewrite=f"name its fields, as in {fields}"))
    rewrite = LOOPS if isinstance(value, Dim) else ""
    raise Failure(NotStatic(what=unknown.format(describe(value)), rewrite=rewrite))
