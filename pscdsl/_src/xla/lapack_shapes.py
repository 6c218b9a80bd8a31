"""Which arrays LAPACK's routines take and give: jaxlib's wrappers believe what they are told.

A routine with a result that is too small writes beside it.  So those here are what kernels emit,
and all their shapes follow from those of their operands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from pscdsl._src.xla.runtime import lapack
from pscdsl.typing.dtypes import I32, DType

Array: TypeAlias = tuple[DType, tuple[int, ...]]
Options: TypeAlias = Mapping[str, str]


class _Matrices(NamedTuple):
    """The first operand: `batch` matrices of `rows` x `columns`."""

    dtype: DType
    batch: tuple[int, ...]
    rows: int
    columns: int

    @property
    def least(self) -> int:
        return min(self.rows, self.columns)

    @property
    def is_square(self) -> bool:
        return self.rows == self.columns

    def array(self, *shape: int, dtype: DType | None = None) -> Array:
        """One of such a shape for each matrix."""
        return dtype or self.dtype, (*self.batch, *shape)

    @property
    def same(self) -> Array:
        return self.array(self.rows, self.columns)

    @property
    def info(self) -> Array:
        return self.array(dtype=I32)


class _Routine(NamedTuple):
    options: Mapping[str, str]
    """The letters that each option may be."""
    results: Callable[[_Matrices, Sequence[Array], Options], Sequence[Array] | None]
    """Those for such operands; None if it does not take them."""


def _potrf(a: _Matrices, others: Sequence[Array], options: Options) -> Sequence[Array] | None:
    return (a.same, a.info) if a.is_square and not others else None


def _getrf(a: _Matrices, others: Sequence[Array], options: Options) -> Sequence[Array] | None:
    return None if others else (a.same, a.array(a.least, dtype=I32), a.info)


def _geqrf(a: _Matrices, others: Sequence[Array], options: Options) -> Sequence[Array] | None:
    return None if others else (a.same, a.array(a.least))


def _orgqr(a: _Matrices, others: Sequence[Array], options: Options) -> Sequence[Array] | None:
    reflectors = others[0][1][-1:] if len(others) == 1 else ()
    fits = a.rows >= a.columns and any(count <= a.columns for count in reflectors)
    return (a.same,) if fits and others[0] == a.array(*reflectors) else None


def _syevd(a: _Matrices, others: Sequence[Array], options: Options) -> Sequence[Array] | None:
    fits = a.is_square and not others
    return (a.same, a.array(a.rows, dtype=a.dtype.real), a.info) if fits else None


def _gesdd(a: _Matrices, others: Sequence[Array], options: Options) -> Sequence[Array] | None:
    whole = options["mode"] == "A"
    left, right = (a.rows, a.columns) if whole else (a.least, a.least)
    values = a.array(a.least, dtype=a.dtype.real)
    bases = a.array(a.rows, left), a.array(right, a.columns)
    return None if others else (a.same, values, *bases, a.info)


def _geev(a: _Matrices, others: Sequence[Array], options: Options) -> Sequence[Array] | None:
    if others or not a.is_square:
        return None
    values = (a.array(a.rows),) * (1 if a.dtype.is_complex else 2)
    vectors = a.array(a.rows, a.rows, dtype=a.dtype.complex)
    return (*values, vectors, vectors, a.info)


def _trsm(a: _Matrices, others: Sequence[Array], options: Options) -> Sequence[Array] | None:
    columns = others[0][1][-1:] if len(others) == 1 else ()
    fits = a.is_square and bool(columns) and others[0] == a.array(a.rows, *columns)
    return tuple(others) if fits else None


_NO_OPTIONS: Final[Mapping[str, str]] = {}
ROUTINES: Final[Mapping[str, _Routine]] = {
    "potrf": _Routine({"uplo": "LU"}, _potrf),
    "getrf": _Routine(_NO_OPTIONS, _getrf),
    "geqrf": _Routine(_NO_OPTIONS, _geqrf),
    "orgqr": _Routine(_NO_OPTIONS, _orgqr),
    "syevd": _Routine({"mode": "NV", "uplo": "LU"}, _syevd),
    "gesdd": _Routine({"mode": "ANS"}, _gesdd),
    "geev": _Routine({"compute_left": "NV", "compute_right": "NV"}, _geev),
    "trsm": _Routine({"side": "L", "uplo": "LU", "trans_x": "CNT", "diag": "NU"}, _trsm),
}
_TARGETS: Final = {
    lapack.target(name, dtype): (name, dtype) for name in ROUTINES for dtype in lapack.LETTERS
}


def routine_of(target: str) -> str | None:
    """The routine that a custom call is; None if it is none that kernels call."""
    return _TARGETS[target][0] if target in _TARGETS else None


def fits(
    target: str, operands: Sequence[Array], results: Sequence[Array], options: Options
) -> bool:
    """Whether the routine takes and gives these arrays, with these options, by their letters."""
    name, dtype = _TARGETS[target]
    routine = ROUTINES[name]
    if set(options) != set(routine.options):
        return False
    if not all(
        len(options[each]) == 1 and options[each] in routine.options[each] for each in options
    ):
        return False
    if not operands or any(0 in shape for _, shape in (*operands, *results)):
        return False
    (given, shape), *others = operands
    if given is not dtype or len(shape) < 2:
        return False
    wanted = routine.results(_Matrices(dtype, shape[:-2], *shape[-2:]), others, options)
    return wanted is not None and tuple(wanted) == tuple(results)
