"""New arrays, constants and dtypes against NumPy.

Where NumPy's default is float64 or int64, an open array comes out as float32 or int32.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl.typing import dtypes
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.element_types import (
    CastDropsImaginaryPart,
    DtypesDiffer,
    NoSuchDType,
    ScalarDoesNotFit,
)
from pscdsl.typing.codes.language import BadArguments, NotStatic
from pscdsl.typing.codes.limits import NotSupported
from pscdsl.typing.codes.shapes import (
    DataDependentShape,
    IndexOutOfRange,
    PiecesDoNotFit,
    UnprovenSize,
    WrongNumberOfAxes,
)
from pscdsl.typing.diagnostics import Diagnostic, Failure
from pscdsl.typing.dims import name
from pscdsl.typing.dtypes import BOOL, C64, F32, F64, I32, U8, DType
from tests.support.numpy_harness import S, Static, build, run, run_compiled, run_symbolic

pytestmark = pytest.mark.quick_code(but=4)

ANCHOR = np.zeros((), np.float64)
"""An argument, so that there is something to name sizes by."""


def meaning(of: str) -> Meaning:
    found = MEANINGS[f"numpy.{of}"]
    assert isinstance(found, Meaning)
    return found


def same(wanted: Any, got: Any, rtol: float = 1e-6) -> None:
    wanted = np.asarray(wanted)
    assert got.shape == wanted.shape
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, rtol=rtol if got.dtype.kind in "fc" else 0, atol=1e-7)


CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("zeros", ((2, 3),), {}),
    ("zeros", (4,), {}),
    ("zeros", ((),), {}),
    ("ones", ((0, 2),), {}),
    ("empty", ((3,),), {}),
    ("full", ((2, 2), 7), {}),
    ("full", (3, 2.5), {}),
    ("full", ((2,), True), {}),
    ("full", ((2,), 1j), {}),
    ("arange", (5,), {}),
    ("arange", (2, 7), {}),
    ("arange", (2, 9, 3), {}),
    ("arange", (9, 2, -2), {}),
    ("arange", (5, 2), {}),
    ("arange", (0.5, 3), {}),
    ("arange", (0, 1, 0.1), {}),
    ("arange", (1, 0, -0.25), {}),
    ("arange", (2,), {"stop": 6, "step": 2}),
    *(("arange", each, {}) for each in ((0, 1, np.inf), (2.5, 7, np.inf), (5, 1, -np.inf))),
    *(("arange", each, {}) for each in ((0, -1, np.inf), (1, 1, np.inf), (0, 1, -np.inf))),
    ("arange", (1e-300, 2e-300, 1e300), {}),
    ("linspace", (0, 1), {}),
    ("linspace", (2, 3, 5), {}),
    ("linspace", (2, -3, 7), {"endpoint": False}),
    ("linspace", (1.5, 4, 1), {}),
    ("linspace", (1, 4, 0), {}),
    ("linspace", (0, 1j, 3), {}),
    ("logspace", (0, 2, 5), {}),
    ("logspace", (0, 3, 4), {"base": 2, "endpoint": False}),
    ("geomspace", (1, 1000, 4), {}),
    ("geomspace", (-8, -1, 7), {"endpoint": False}),
    ("geomspace", (3, 5, 1), {}),
    ("geomspace", (-3, 3, 4), {}),
    ("geomspace", (3, -1, 4), {"endpoint": False}),
    ("eye", (3,), {}),
    ("eye", (2, 4, 1), {}),
    ("eye", (4,), {"k": -2}),
    ("identity", (3,), {}),
    ("tri", (3,), {}),
    ("tri", (3, 5, -1), {}),
    ("array", ([1, 2, 3],), {}),
    ("array", ([[1.5, 2], [3, 4]],), {}),
    ("array", ([True, False],), {}),
    ("array", ([1, 2j],), {}),
    ("array", (3.5,), {}),
    ("array", ([],), {}),
    ("array", ([[], []],), {}),
    ("array", ([1, 2],), {"ndmin": 3}),
    ("asarray", ((1, 2),), {}),
    ("ascontiguousarray", (1,), {}),
    ("indices", ((2, 3),), {}),
    ("indices", ((4,),), {}),
    ("diag", ([1, 2, 3],), {}),
    ("vander", ([1.0, 2.0, 3.0],), {}),
]


@pytest.mark.parametrize(("of", "args", "kwargs"), CALLS)
def test_open_arrays(of: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    with np.errstate(invalid="ignore"):
        wanted = getattr(np, of)(*args, **kwargs)
    if of == "empty":
        wanted = np.zeros_like(wanted)
    same(wanted, run(f"numpy.{of}", *args, **kwargs))


@pytest.mark.parametrize(("of", "args", "kwargs"), CALLS)
def test_open_arrays_take_a_dtype(of: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Met by an f64 or c128 array they are as precise as NumPy's."""
    with np.errstate(invalid="ignore"):
        plain = getattr(np, of)(*args, **kwargs)
    anchor = ANCHOR if plain.dtype.kind != "c" else ANCHOR.astype(complex)

    def program(anchor: Any) -> Any:
        return anchor + meaning(of).apply(anchor.builder, args, kwargs)

    got = run(program, anchor)
    wanted = np.zeros_like(plain) if of == "empty" else plain
    same(anchor + wanted, got, rtol=4e-15)


@pytest.mark.parametrize("dtype", [F32, F64, I32, U8, dtypes.F16, dtypes.C64])
def test_explicit_dtypes(dtype: DType) -> None:
    to = to_numpy(dtype)
    same(np.zeros((2,), to), run("numpy.zeros", (2,), dtype))
    same(np.ones((2,), to), run("numpy.ones", (2,), dtype=dtype))
    same(np.full((2,), 3, to), run("numpy.full", (2,), 3, dtype))
    same(np.arange(6, 1, -2).astype(to), run("numpy.arange", 6, 1, -2, dtype))
    same(np.eye(2, 3, dtype=to), run("numpy.eye", 2, 3, dtype=dtype))
    same(np.array([1, 2], to), run("numpy.array", [1, 2], dtype))
    same(np.array([[1, 2]], to), run("numpy.asarray", [[1, 2]], dtype=dtype))
    same(np.indices((2, 2), to), run("numpy.indices", (2, 2), dtype))
    same(np.linspace(0, 10, 4, dtype=to), run("numpy.linspace", 0, 10, 4, dtype=dtype))
    x = np.array([1.7, 2.3])
    same(x.astype(to), run("numpy.astype", x, dtype))
    same(x.astype(to), run("numpy.array", x, dtype))
    same(x.astype(to), run("numpy.array", [1.7, 2.3], dtype))
    same(np.ones_like(x, dtype=to), run("numpy.ones_like", x, dtype=dtype))
    same(np.full_like(x, 2, dtype=to), run("numpy.full_like", x, 2, dtype))


def test_bool_arrays() -> None:
    same(np.zeros(2, bool), run("numpy.zeros", 2, BOOL))
    same(np.ones(2, bool), run("numpy.ones", 2, BOOL))
    same(np.eye(2, dtype=bool), run("numpy.eye", 2, dtype=BOOL))
    mask = np.array([True, False])
    same(np.zeros_like(mask), run("numpy.zeros_like", mask))
    same(np.ones_like(mask), run("numpy.ones_like", mask))
    assert rejected(BadArguments, "numpy.arange", 2, dtype=BOOL)


def test_like() -> None:
    for x in (np.ones((2, 3), np.float32), np.arange(3), np.ones((), np.complex64)):
        for of in ("zeros_like", "ones_like", "empty_like"):
            wanted = np.zeros_like(x) if of == "empty_like" else getattr(np, of)(x)
            same(wanted, run(f"numpy.{of}", x))
            same(wanted, run_symbolic(f"numpy.{of}", x))
        same(np.full_like(x, 5), run("numpy.full_like", x, 5))
        same(np.zeros_like(x, shape=(4,)), run("numpy.zeros_like", x, shape=(4,)))
    same(np.zeros_like(2.5), run("numpy.zeros_like", 2.5))
    row = np.arange(3.0)
    same(np.full((2, 3), row), run("numpy.full", (2, 3), row))
    same(np.full_like(row, row[1]), run("numpy.full_like", row, row[1]))
    same(np.full((2,), np.float64(3)), run("numpy.full", (2,), np.float64(3)))
    assert rejected(ScalarDoesNotFit, "numpy.full_like", np.arange(3), 0.5)
    assert rejected(ScalarDoesNotFit, "numpy.full", (2,), 300, U8)


@pytest.mark.parametrize("size", [1, 2, 5, 6])
def test_symbolic_sizes(size: int) -> None:
    n = S(size)
    same(np.zeros((size, 2)), run_symbolic("numpy.zeros", (n, 2)))
    same(np.full(size, size), run_symbolic("numpy.full", n, n))
    same(np.eye(size), run_symbolic("numpy.eye", n))
    same(np.eye(size, size + 1, 1), symbolic(lambda h, n: call("eye", h, n, n + 1, 1), n))
    same(np.tri(size), run_symbolic("numpy.tri", n))
    same(np.arange(size), run_symbolic("numpy.arange", n))
    same(np.arange(2, size), symbolic(lambda h, n: call("arange", h, 2, n), n))
    same(np.arange(size, 0, -2), symbolic(lambda h, n: call("arange", h, n, 0, -2), n))
    same(np.arange(0, 9, size), symbolic(lambda h, n: call("arange", h, 0, 9, n), n))
    same(np.arange(0, size, 0.5), symbolic(lambda h, n: call("arange", h, 0, n, 0.5), n))
    same(np.arange(0.25, size), symbolic(lambda h, n: call("arange", h, 0.25, n), n))
    same(np.linspace(0, 1, size), run_symbolic("numpy.linspace", 0, 1, n))
    same(np.linspace(0, size, size), run_symbolic("numpy.linspace", 0, n, n))
    plain = np.linspace(0, 1, size, endpoint=False)
    same(plain, run_symbolic("numpy.linspace", 0, 1, n, endpoint=False))
    same(np.geomspace(1, 9, size), run_symbolic("numpy.geomspace", 1, 9, n))
    same(np.indices((size, 2)), run_symbolic("numpy.indices", (n, 2)))
    same(np.array([size, 2 * size]), symbolic(lambda h, n: call("array", h, [n, 2 * n]), n))
    assert run_symbolic("numpy.arange", n, dtype=F64).dtype == np.float64


def call(of: str, here: Any, *args: Any, **kwargs: Any) -> Any:
    return meaning(of).apply(here, args, kwargs)


def symbolic(function: Any, *sizes: Any) -> Any:
    return run_symbolic(lambda anchor, *n: function(anchor.builder, *n), ANCHOR, *sizes)


def widened(x: Any) -> Any:
    return np.asarray(x, np.float64)


def test_linspace_of_arrays() -> None:
    start, stop = np.array([0.0, 1.0, 5.0]), np.array([[1.0, 2.0, 4.0]] * 2)
    for axis in (0, 1, -1):
        wanted = np.linspace(start, stop, 4, axis=axis)
        same(wanted, run("numpy.linspace", start, stop, 4, axis=axis), 1e-14)
        same(wanted, run_symbolic("numpy.linspace", start, stop, S(4), axis=axis), 1e-14)
    wanted = np.geomspace(start + 1, stop, 4, axis=1)
    same(wanted, run("numpy.geomspace", start + 1, stop, 4, axis=1), 1e-13)
    numbers, step = run("numpy.linspace", 0, 1, 5, retstep=True)
    same(np.linspace(0, 1, 5), numbers)
    assert step == 0.25
    for count, endpoint in ((1, True), (0, True), (0, False), (1, False), (2, True)):
        for ends in ((0.0, 2.0), (np.float64(1), np.float64(3)), (start, stop)):
            args: Any = (*ends, count, endpoint, True)
            same(
                np.asarray(np.linspace(*args)[1], np.float64),
                widened(run("numpy.linspace", *args)[1]),
            )
        sized = run_symbolic("numpy.linspace", start, stop, S(count), endpoint, True)[1]
        wanted = np.linspace(start, stop, count, endpoint, retstep=True)[1]
        np.testing.assert_allclose(sized, np.broadcast_to(wanted, sized.shape))
    assert rejected(BadArguments, "numpy.geomspace", 0, 1)


def test_linspace_ends_exactly() -> None:
    for dtype in (F32, F64):
        got = run("numpy.linspace", 0.1, 0.7, 11, dtype=dtype)
        assert got[0] == to_numpy(dtype).type(0.1)
        assert got[-1] == to_numpy(dtype).type(0.7)


@pytest.mark.parametrize("dtype", [dtypes.F16, F32, F64, I32])
def test_spaced_numbers_are_cast_last(dtype: DType) -> None:
    """They are computed in the dtype of their ends, which is f64 of Python's numbers."""
    single, double = (np.array([0.1, 3.0], plain) for plain in (np.float32, np.float64))
    wanted: Any = to_numpy(dtype)
    for first, last in ((0.1, 3.3), single, double):
        exact: Any = np.linspace(first, last, 50, dtype=wanted)
        got = run("numpy.linspace", first, last, 50, dtype=dtype)
        np.testing.assert_allclose(got, exact, rtol=1.2e-7)
    for of in ("linspace", "logspace", "geomspace"):
        got = run(f"numpy.{of}", 0.5, 2.5, 50, dtype=dtype)
        if dtype is F64:
            same(getattr(np, of)(0.5, 2.5, 50), got, 1e-14)
        else:
            np.testing.assert_array_equal(got, getattr(np, of)(0.5, 2.5, 50, dtype=wanted))
    same(np.linspace(0, 2j, 3, dtype=np.complex64), run("numpy.linspace", 0, 2j, 3, dtype=C64))
    assert rejected(CastDropsImaginaryPart, "numpy.linspace", 0, 2j, 3, dtype=F32)
    same(np.geomspace(-1, 1, 3, dtype=complex), run("numpy.geomspace", -1, 1, 3, dtype=dtypes.C128))


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 1e300, 2.0**63, -129.0])
def test_floats_that_are_no_integers(number: float) -> None:
    for dtype in (U8, dtypes.I8, dtypes.I64):
        if dtype is dtypes.I64 and number == -129:
            continue
        for values in ([number], [[1.0, number]], number, [1, number], [np.float64(2.0), number]):
            for function in ("numpy.array", "numpy.asarray"):
                assert rejected(ScalarDoesNotFit, function, values, dtype)
    same(np.array([-1.5, 127.9], np.int8), run("numpy.array", [-1.5, 127.9], dtypes.I8))
    same(np.array([-0.5, 255.9], np.uint8), run("numpy.array", [-0.5, 255.9], U8))


def test_complex_numbers_that_are_no_others() -> None:
    for dtype in (F32, F64, I32):
        assert rejected(CastDropsImaginaryPart, "numpy.array", [1j, 2.0], dtype)
    same(np.array([1j, 0.0], bool), run("numpy.array", [1j, 0.0], BOOL))


def test_arrays_of_computed_numbers() -> None:
    x, y = np.float32(1.5), np.float32(-2)
    same(np.array([x, y]), run("numpy.array", [x, y]))
    same(np.array([[x, 1], [2, y]], np.float32), run("numpy.array", [[x, 1], [2, y]]))
    row = np.arange(3.0)
    same(np.array([row, row]), run_symbolic("numpy.array", [row, row]))
    same(np.array([[row], [row]]), run_symbolic("numpy.array", [[row], [row]]))
    same(np.array([x, y], np.float64), run("numpy.array", [x, y], F64))
    same(np.array([1, 2, 3]), run("numpy.array", Static(np.array([1, 2, 3]))))
    assert rejected(BadArguments, "numpy.array", [[1, 2], [3]])
    assert rejected(BadArguments, "numpy.array", ["a"])
    assert rejected(PiecesDoNotFit, "numpy.array", [row, row[:2]])
    assert rejected(DtypesDiffer, "numpy.array", [x, np.float64(1)])
    assert rejected(ScalarDoesNotFit, "numpy.array", [1, 300], U8)
    assert rejected(ScalarDoesNotFit, "numpy.array", [1, 2**70])


@pytest.mark.parametrize("k", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("shape", [(3,), (4, 4), (2, 5), (5, 2), (0,), (0, 3)])
def test_diagonals(shape: tuple[int, ...], k: int) -> None:
    x = np.arange(float(np.prod(shape))).reshape(shape)
    same(np.diag(x, k), run("numpy.diag", x, k))
    same(np.diagflat(x, k), run("numpy.diagflat", x, k))
    same(np.tril(x, k), run("numpy.tril", x, k))
    same(np.triu(x, k), run_symbolic("numpy.triu", x, k))
    same(np.diagflat(x, k), run_symbolic("numpy.diagflat", x, k))
    same(np.diag(x, k), run_symbolic("numpy.diag", x, k))


def test_diagonals_of_stacks() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    for args in ((), (1,), (0, 1, 2), (-1, 2, 0)):
        same(np.diagonal(x, *args), run("numpy.diagonal", x, *args))
        same(np.diagonal(x, *args), run_symbolic("numpy.diagonal", x, *args))
    same(np.tril(x, -1), run_symbolic("numpy.tril", x, -1))
    same(
        np.vander([1, 2, 3], 2, increasing=True), run("numpy.vander", np.array([1, 2, 3]), 2, True)
    )
    same(np.vander(x[0, 0]), run_symbolic("numpy.vander", x[0, 0]))
    assert rejected(WrongNumberOfAxes, "numpy.diag", x)


def test_grids() -> None:
    a, b, c = np.arange(3.0), np.arange(2), np.arange(4.0, dtype=np.float32)
    for options in ({}, {"indexing": "ij"}, {"sparse": True}):
        for vectors in ((a,), (a, b), (a, b, c)):
            wanted = np.meshgrid(*vectors, **options)
            for got in (
                run("numpy.meshgrid", *vectors, **options),
                run_symbolic("numpy.meshgrid", *vectors, **options),
            ):
                for one, other in zip(wanted, got, strict=True):
                    same(one, other)
    for one, other in zip(np.ix_(b, b + 1), run("numpy.ix_", b, b + 1), strict=True):
        same(one, other)
    for one, other in zip(
        np.indices((2, 3), sparse=True), run("numpy.indices", (2, 3), sparse=True), strict=True
    ):
        same(one, other)
    assert rejected(WrongNumberOfAxes, "numpy.meshgrid", np.ones((2, 2)))


def test_windows() -> None:
    for of in ("hanning", "hamming", "blackman", "bartlett"):
        for size in (1, 2, 5, 8):
            wanted = getattr(np, of)(size)
            same(wanted, run(f"numpy.{of}", size))
            got = symbolic(lambda h, n, of=of: h.size(0, F64) + call(of, h, n), S(size))
            same(wanted, got, 1e-14)


def test_places() -> None:
    counts = np.array([0, 5, 11, 23])
    for how in (run, run_symbolic):
        got = how("numpy.unravel_index", counts, (S(2), S(3), S(4)))
        for one, other in zip(np.unravel_index(counts, (2, 3, 4)), got, strict=True):
            same(one, other)
        places = tuple(np.unravel_index(counts, (2, 3, 4)))
        same(counts, how("numpy.ravel_multi_index", places, (S(2), S(3), S(4))))
    for of in ("tril_indices", "triu_indices"):
        for args in ((3,), (3, 1), (2, -1, 4)):
            for one, other in zip(getattr(np, of)(*args), run(f"numpy.{of}", *args), strict=True):
                same(one, other)
    for one, other in zip(
        np.diag_indices(3), run_symbolic("numpy.diag_indices", S(3)), strict=True
    ):
        same(one, other)
    assert rejected(BadArguments, "numpy.ravel_multi_index", (counts,), (2, 3))
    assert [int(x) for x in run("numpy.unravel_index", 3, (2, 2))] == [1, 1]
    assert int(run("numpy.ravel_multi_index", (1, 1), (2, 2))) == 3
    for given in (4, [0, 4], np.array([1, 7])):
        assert rejected(IndexOutOfRange, "numpy.unravel_index", static(given), (2, 2))
    assert rejected(BadArguments, "numpy.unravel_index", -1, (2, 2))
    assert rejected(IndexOutOfRange, "numpy.ravel_multi_index", (1, 2), (2, 2))
    assert rejected(BadArguments, "numpy.ravel_multi_index", (-1, 0), (2, 2))


def test_places_in_a_shape_without_elements() -> None:
    none, some = np.zeros(0, np.int64), np.zeros(1, np.int64)
    wanted = np.ravel_multi_index((none, none), (0, 2))
    same(wanted, run("numpy.ravel_multi_index", (none, none), (0, 2)))
    assert rejected(BadArguments, "numpy.ravel_multi_index", (some, some), (2, 0))
    for each in run("numpy.unravel_index", none, (5, 0)):
        same(none, each)
    assert rejected(BadArguments, "numpy.unravel_index", some, (5, 0))


def static(x: Any) -> Any:
    """An array as a static value, and what is none as it is."""
    return Static(x) if isinstance(x, np.ndarray) else x


def test_empty_lists_of_indices() -> None:
    for one, other in zip(np.ix_([], [1, 2]), run("numpy.ix_", [], [1, 2]), strict=True):
        assert one.shape == other.shape
        assert other.dtype.kind == "i"


def test_constants_and_dtypes() -> None:
    assert MEANINGS["numpy.pi"] == np.pi
    assert MEANINGS["numpy.newaxis"] is None
    assert MEANINGS["numpy.float32"] is F32
    assert MEANINGS["numpy.bool_"] is BOOL
    for of, value in MEANINGS.items():
        if isinstance(value, DType) and of.startswith("numpy."):
            assert np.dtype(getattr(np, of.removeprefix("numpy."))) == to_numpy(value), of
    for dtype in (dtypes.F16, F32, F64, dtypes.C64):
        ours, theirs = run("numpy.finfo", dtype), np.finfo(to_numpy(dtype))
        for field in "eps epsneg max min tiny smallest_normal resolution bits nmant".split():
            assert getattr(ours, field) == getattr(theirs, field)
    assert run("numpy.finfo", dtypes.BF16).eps == 2.0**-7
    assert run("numpy.finfo", np.float32(1)).bits == 32
    assert run("numpy.iinfo", dtypes.U8).max == 255
    assert run("numpy.iinfo", np.int64(1)).min == -(2**63)
    assert rejected(BadArguments, "numpy.finfo", I32)
    assert rejected(BadArguments, "numpy.iinfo", F32)
    assert rejected(NoSuchDType, "numpy.zeros", 2, "S4")
    assert run("numpy.result_type", np.float32(1), 2) is F32
    assert rejected(ScalarDoesNotFit, "numpy.result_type", np.ones(3, np.int32), 1.5)
    assert run("numpy.isscalar", np.float32(1)) is True
    assert run("numpy.isscalar", np.ones(3, np.float32)) is False
    assert run("numpy.isscalar", 2) is True
    assert rejected(NotStatic, "numpy.iscomplexobj", Static([1, 2j]))
    assert run("numpy.issubdtype", F32, MEANINGS["numpy.floating"]) is True
    assert run("numpy.issubdtype", F32, MEANINGS["numpy.integer"]) is False
    assert run("numpy.isdtype", I32, ("real floating", "integral")) is True
    assert run("numpy.isdtype", I32, "bool") is False
    assert run("numpy.dtype", F64) is F64


def test_refused() -> None:
    assert rejected(DataDependentShape, "numpy.zeros", np.int32(3))
    assert rejected(DataDependentShape, "numpy.arange", np.int32(3))
    assert rejected(BadArguments, "numpy.zeros", 2.5)
    assert rejected(BadArguments, "numpy.arange", 0, 5, 0)
    for bounds in ((0, np.inf), (-np.inf, 0), (0, 1, np.nan), (np.nan, 1)):
        assert rejected(BadArguments, "numpy.arange", *bounds)
    with pytest.raises(Failure, match="infinite"):
        symbolic(lambda h, n: call("arange", h, 0, n, np.inf), S(3))
    assert rejected(UnprovenSize, "numpy.zeros", -1)
    with pytest.raises(Failure, match="PSC320"):
        symbolic(lambda h, n: call("zeros", h, n - 2), S(3))
    with pytest.raises(Failure, match="PSC900"):
        symbolic(lambda h, n: call("arange", h, 0, n, 0.1), S(3))
    facts = (Fact("<=", 2, name("n3")),)
    found = build(lambda x, n: call("zeros", x.builder, n - 2), (ANCHOR, S(3)), {}, True, facts)
    assert found.evaluated().shape == (1,)
    assert NotSupported.code == "PSC900"


def test_copies() -> None:
    x = np.arange(3.0)
    same(x, run("numpy.copy", x))
    same(x, run("numpy.asanyarray", x))
    same(x.astype(np.int32), run("numpy.astype", x, I32, copy=False))
    same(x, run("numpy.asarray", x, copy=False))


def test_copies_that_are_forbidden() -> None:
    x = np.arange(3.0)
    for function in ("numpy.array", "numpy.asarray"):
        assert rejected(BadArguments, function, [1.0, 2.0], copy=False)
        assert rejected(BadArguments, function, x, F32, copy=False)
        assert rejected(BadArguments, function, np.float64(2), copy=False)
    assert rejected(BadArguments, "numpy.astype", [1.0, 2.0], F32)
    assert rejected(BadArguments, "numpy.reshape", np.ones((2, 3)), 6, copy=False)
    same(x[None], run("numpy.reshape", x, (1, 3), copy=False))


def test_compiled() -> None:
    def program(x: Any) -> Any:
        here = x.builder
        return [
            call("linspace", here, 0, 1, 7) + x * 0,
            call("geomspace", here, 1, 100, 3),
            call("eye", here, 3, 4, 1),
            call("diag", here, call("arange", here, 3), 1),
            call("arange", here, 7, 1, -2, U8),
            call("array", here, [1.5, 2.5, x], F64),
        ]

    for wanted, got in zip(run(program, ANCHOR), run_compiled(program, ANCHOR), strict=True):
        same(wanted, got, 2e-6)


def rejected(
    kind: type[Diagnostic], function: Any, *args: Any, **kwargs: Any
) -> tuple[Diagnostic, ...]:
    with pytest.raises(Failure) as caught:
        run(function, *args, **kwargs)
    found = caught.value.diagnostics
    assert all(type(each) is kind for each in found), found
    assert all(each.message() for each in found)
    return found


def test_arrays_have_at_most_64_axes() -> None:
    assert rejected(BadArguments, "numpy.zeros", (1,) * 65)
    assert rejected(BadArguments, "numpy.add.outer", np.ones((1,) * 33), np.ones((1,) * 32))
    assert run("numpy.zeros", (1,) * 64).ndim == 64
