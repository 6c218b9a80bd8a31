"""LAPACK's routines as custom calls: their names, and the shapes of their arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from pscdsl.typing.dtypes import C64, C128, F32, F64, I32, DType

LETTERS: Final = {F32: "s", F64: "d", C64: "c", C128: "z"}
"""The dtypes that LAPACK knows, and by which letter a routine for them begins."""
_COMPLEX: Final = {"orgqr": "ungqr", "syevd": "heevd"}
"""Routines that have another name for complex matrices."""
PREFIX: Final = "lapack_"


def target(routine: str, dtype: DType) -> str:
    """Return the name under which jaxlib has a routine for matrices of a dtype."""
    name = _COMPLEX.get(routine, routine) if dtype.is_complex else routine
    return f"{PREFIX}{LETTERS[dtype]}{name}_ffi"


# A platform's way to call these routines: an emitted program calls one platform's.


class CustomCall(NamedTuple):
    """A custom call: its name, and its configuration as attributes in MLIR's text form."""

    target: str
    config: Mapping[str, str]


class Routines(Protocol):
    """A platform's way to call routines that have LAPACK's names and options."""

    def call(self, routine: str, dtype: DType, options: Mapping[str, str], /) -> CustomCall:
        """Return a routine's call for matrices of a dtype, with LAPACK's letters as options."""
        ...

    def register(self) -> None:
        """Make the routines known to XLA, where that must be done before it compiles."""
        ...


class OnCpu:
    """LAPACK itself, which comes with SciPy."""

    def call(self, routine: str, dtype: DType, options: Mapping[str, str]) -> CustomCall:
        """Return a routine's call for matrices of a dtype, with LAPACK's letters as options."""
        return CustomCall(
            target(routine, dtype),
            {name: f"{ord(letter)} : ui8" for name, letter in options.items()},
        )

    def register(self) -> None:
        """Register them with jaxlib, once in a process."""
        from pscdsl._src.xla.runtime import boot  # executables need names alone, and no jaxlib

        boot.lapack()


ON_CPU: Final = OnCpu()


# The operands and results of LAPACK's routines, which jaxlib's wrappers do not check.
#
# A routine writes outside of a result that is too small. So only the forms that kernels emit are
# allowed, and all their shapes follow from those of their operands.


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
        """Return an array with one part of such a shape for each matrix."""
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
_TARGETS: Final = {target(name, dtype): (name, dtype) for name in ROUTINES for dtype in LETTERS}


def routine_of(target: str) -> str | None:
    """Return the routine of a custom call; None if kernels call no such routine."""
    return _TARGETS[target][0] if target in _TARGETS else None


def fits(
    target: str, operands: Sequence[Array], results: Sequence[Array], options: Options
) -> bool:
    """Return whether the routine takes and gives these arrays with these options."""
    name, dtype = _TARGETS[target]
    routine = ROUTINES[name]
    if set(options) != set(routine.options):
        return False
    if not all(
        len(options[option]) == 1 and options[option] in routine.options[option]
        for option in options
    ):
        return False
    if not operands or any(0 in shape for _, shape in (*operands, *results)):
        return False
    (given, shape), *others = operands
    if given is not dtype or len(shape) < 2:
        return False
    wanted = routine.results(_Matrices(dtype, shape[:-2], *shape[-2:]), others, options)
    return wanted is not None and tuple(wanted) == tuple(results)


# Calls of LAPACK's routines: the layouts of matrices, and the operands they overwrite.


_OVERWRITTEN: Final[dict[str, int | None]] = {"trsm": 1, "geev": None}
"""The operand that the first result overwrites; the first operand if a routine is not listed."""


def attributes(
    routine: str,
    operands: Sequence[Sequence[int]],
    results: Sequence[Sequence[int]],
    call: CustomCall,
) -> dict[str, Any]:
    """Return the attributes of a call of a routine on arrays of these shapes."""
    from pscdsl._src.xla.emit import context as c  # executables need names alone, and no MLIR

    batch = len(operands[0]) - 2
    return {
        "api_version": c.parsed("4 : i32"),
        "call_target_name": call.target,
        "backend_config": {name: c.parsed(text) for name, text in call.config.items()},
        "operand_layouts": [c.layout(_axes(len(shape), batch)) for shape in operands],
        "result_layouts": [c.layout(_axes(len(shape), batch)) for shape in results],
        "output_operand_aliases": [*map(c.parsed, _overwrite_attributes(routine, len(results)))],
    }


def _axes(rank: int, batch: int) -> tuple[int, ...]:
    """Return the axes, the fastest varying first; matrices are stored by columns, else by rows."""
    rows = tuple(range(rank - 1, -1, -1))
    return (rank - 2, rank - 1, *rows[2:]) if rank == batch + 2 else rows


def _overwrite_attributes(routine: str, results: int) -> list[str]:
    """Return the attributes that let the first result take the place of an operand."""
    operand = _OVERWRITTEN.get(routine, 0)
    if operand is None:
        return []
    first = "[]" if results == 1 else "[0]"
    return [
        f"#stablehlo.output_operand_alias<output_tuple_indices = {first}, "
        f"operand_index = {operand}, operand_tuple_indices = []>"
    ]
