"""Shapes of arrays that are put together."""

from __future__ import annotations

from collections.abc import Sequence

from pscdsl._src.ir.builder import Value
from pscdsl.typing.codes.shapes_manipulation import PiecesDoNotFit
from pscdsl.typing.diagnostics import Failure


def require_fitting(name: str, pieces: Sequence[Value], along: int | None = None) -> None:
    """Refuse arrays whose shapes differ, other than in the size along an axis."""
    facts, first = pieces[0].builder.facts, pieces[0]
    for each in pieces[1:]:
        shapes = (first.shape, each.shape)
        if each.ndim != first.ndim:
            why = f"they have {first.ndim} and {each.ndim} axes"
            raise Failure(PiecesDoNotFit(function=name, shapes=shapes, why=why))
        for axis, sizes in enumerate(zip(*shapes, strict=True)):
            if axis != along and not facts.equal(*sizes):
                raise Failure(PiecesDoNotFit.of(facts, name, shapes, axis, sizes))
