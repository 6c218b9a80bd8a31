"""Captured values that may be written: `psc.constant` around the expression that makes them."""

from __future__ import annotations

from collections.abc import Iterator

from pscdsl._src.frontend.fixes.place import Place
from pscdsl.typing.codes.purity import MutableCapture
from pscdsl.typing.diagnostics import Fix


def mutable_capture(place: Place[MutableCapture]) -> Iterator[Fix]:
    """`W = psc.constant(…)`: who writes it is told so by NumPy, or by Python."""
    finding, at = place.finding, place.finding.bound_at
    if at is None or finding.rebound or finding.surely or at.path != finding.span.path:
        return
    module = place.psc()
    if module is not None:
        before = place.insertion(at.line, at.column, f"{module[0]}.constant(")
        after = place.insertion(at.end_line, at.end_column, ")")
        message = f"make `{finding.name}` a constant"
        yield Fix(message, (*module[1], before, after), "unsafe")
