"""LAPACK's routines as custom calls: what they are called."""

from __future__ import annotations

from typing import Final

from pscdsl.typing.dtypes import C64, C128, F32, F64, DType

LETTERS: Final = {F32: "s", F64: "d", C64: "c", C128: "z"}
"""The dtypes that LAPACK knows, and by which letter a routine for them begins."""
_COMPLEX: Final = {"orgqr": "ungqr", "syevd": "heevd"}
"""Routines that have another name for complex matrices."""
PREFIX: Final = "lapack_"


def target(routine: str, dtype: DType) -> str:
    """The name under which jaxlib has a routine for matrices of a dtype."""
    name = _COMPLEX.get(routine, routine) if dtype.is_complex else routine
    return f"{PREFIX}{LETTERS[dtype]}{name}_ffi"
