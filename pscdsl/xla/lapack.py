"""LAPACK's routines as custom calls: what they are called, and how matrices lie in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pscdsl.typing.dtypes import C64, C128, F32, F64, DType

LETTERS: Final = {F32: "s", F64: "d", C64: "c", C128: "z"}
"""The dtypes that LAPACK knows, and by which letter a routine for them begins."""
_COMPLEX: Final = {"orgqr": "ungqr", "syevd": "heevd"}
"""Routines that have another name for complex matrices."""
_OVERWRITTEN: Final[dict[str, int | None]] = {"trsm": 1, "geev": None}
"""Which operand the first result takes the place of, where that is not the first one."""
PREFIX: Final = "lapack_"


def target(routine: str, dtype: DType) -> str:
    """The name under which jaxlib has a routine for matrices of a dtype."""
    name = _COMPLEX.get(routine, routine) if dtype.is_complex else routine
    return f"{PREFIX}{LETTERS[dtype]}{name}_ffi"


def layout(rank: int, batch: int) -> tuple[int, ...]:
    """The axes from the fastest varying on; matrices stand in columns, all else in rows."""
    rows = tuple(range(rank - 1, -1, -1))
    return (rank - 2, rank - 1, *rows[2:]) if rank == batch + 2 else rows


def overwritten(routine: str, results: Sequence[Any]) -> list[str]:
    """The attributes that let the first result take the place of an operand."""
    operand = _OVERWRITTEN.get(routine, 0)
    if operand is None:
        return []
    first = "[]" if len(results) == 1 else "[0]"
    return [
        f"#stablehlo.output_operand_alias<output_tuple_indices = {first}, "
        f"operand_index = {operand}, operand_tuple_indices = []>"
    ]
