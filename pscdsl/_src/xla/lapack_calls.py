"""Calls of LAPACK's routines: how matrices lie in memory, and which operands are overwritten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pscdsl._src.xla.emit import context as c

_OVERWRITTEN: Final[dict[str, int | None]] = {"trsm": 1, "geev": None}
"""Which operand the first result takes the place of, where that is not the first one."""


def attributes(
    routine: str,
    operands: Sequence[Sequence[int]],
    results: Sequence[Sequence[int]],
    options: Mapping[str, str],
) -> dict[str, Any]:
    """The attributes of a call on arrays of these shapes, with LAPACK's letters as options."""
    batch = len(operands[0]) - 2
    return {
        "api_version": c.parsed("4 : i32"),
        "backend_config": {k: c.parsed(f"{ord(x)} : ui8") for k, x in options.items()},
        "operand_layouts": [c.layout(_axes(len(shape), batch)) for shape in operands],
        "result_layouts": [c.layout(_axes(len(shape), batch)) for shape in results],
        "output_operand_aliases": [*map(c.parsed, _overwritten(routine, len(results)))],
    }


def _axes(rank: int, batch: int) -> tuple[int, ...]:
    """The axes from the fastest varying on; matrices stand in columns, all else in rows."""
    rows = tuple(range(rank - 1, -1, -1))
    return (rank - 2, rank - 1, *rows[2:]) if rank == batch + 2 else rows


def _overwritten(routine: str, results: int) -> list[str]:
    """The attributes that let the first result take the place of an operand."""
    operand = _OVERWRITTEN.get(routine, 0)
    if operand is None:
        return []
    first = "[]" if results == 1 else "[0]"
    return [
        f"#stablehlo.output_operand_alias<output_tuple_indices = {first}, "
        f"operand_index = {operand}, operand_tuple_indices = []>"
    ]
