"""Shapes, joins, splits and orders of elements against NumPy."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pscdsl.numpy import methods
from pscdsl.numpy.calling import normalize_axes, normalize_axis
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.element_types import DtypesDiffer, ScalarDoesNotFit
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.limits import NotSupported
from pscdsl.typing.codes.shapes import (
    AxisOutOfRange,
    DataDependentShape,
    ImpossibleReshape,
    IndexOutOfRange,
    NotAnIndex,
    NotDivisible,
    NotOfSizeOne,
    PiecesDoNotFit,
    RepeatedAxis,
    ShapesDoNotBroadcast,
    UnprovenSize,
    WrongNumberOfAxes,
)
from pscdsl.typing.diagnostics import Diagnostic, Failure
from pscdsl.typing.dims import name
from pscdsl.typing.dtypes import F32, F64, I32
from tests.support.numpy_harness import (
    S,
    Static,
    build,
    run,
    run_bounded,
    run_compiled,
    run_symbolic,
)

pytestmark = pytest.mark.quick_code(but=4)

FEW = settings(max_examples=60, deadline=None)


def counted(*shape: int, dtype: Any = np.float32) -> Any:
    return np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)


V, M, T = counted(5), counted(3, 4), counted(2, 3, 4)
SCALAR = np.float32(3)
EMPTY = counted(0, 3)


def same(wanted: Any, got: Any) -> None:
    if isinstance(wanted, list | tuple):
        assert len(wanted) == len(got)
        for one, other in zip(wanted, got, strict=True):
            same(one, other)
        return
    wanted = np.asarray(wanted)
    assert got.shape == wanted.shape
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted)


ENDS = [
    np.dtype(code).type(end)
    for code in ("i1", "i4", "i8", "u1", "u4")
    for end in (np.iinfo(code).min, np.iinfo(code).max)
]
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("reshape", (M, (4, 3)), {}),
    ("reshape", (M, -1), {}),
    ("reshape", (T, (2, -1)), {}),
    ("reshape", (SCALAR, (1, 1)), {}),
    ("reshape", (counted(1, 1), ()), {}),
    ("reshape", (EMPTY, (3, 0)), {}),
    ("reshape", (M, (4, 3), "F"), {}),
    ("reshape", (T, (-1, 2)), {"order": "F"}),
    ("reshape", (T, -1), {"order": "f"}),
    ("reshape", (SCALAR, (1, 1)), {"order": "A"}),
    ("reshape", (EMPTY, (3, 0)), {"order": "F"}),
    ("ravel", (T,), {}),
    ("ravel", (T, "F"), {}),
    ("ravel", (T,), {"order": "f"}),
    ("ravel", (SCALAR,), {"order": "K"}),
    ("ravel", (SCALAR,), {}),
    ("expand_dims", (M, 1), {}),
    ("expand_dims", (M, (0, -1)), {}),
    ("expand_dims", (SCALAR, 0), {}),
    ("squeeze", (counted(1, 3, 1),), {}),
    ("squeeze", (counted(1, 3, 1),), {"axis": -1}),
    ("squeeze", (counted(1, 3, 1), (0, 2)), {}),
    ("transpose", (T,), {}),
    ("transpose", (T, (1, 2, 0)), {}),
    ("transpose", (V,), {}),
    ("permute_dims", (T, (-1, 0, 1)), {}),
    ("matrix_transpose", (T,), {}),
    ("swapaxes", (T, 0, -1), {}),
    ("moveaxis", (T, 0, -1), {}),
    ("moveaxis", (T, (0, 1), (2, 0)), {}),
    ("rollaxis", (T, 2), {}),
    ("rollaxis", (T, 0, 3), {}),
    ("rollaxis", (T, 1, -1), {}),
    ("broadcast_to", (counted(4), (3, 4)), {}),
    ("broadcast_to", (counted(3, 1), (2, 3, 4)), {}),
    ("broadcast_to", (SCALAR, (2, 2)), {}),
    ("broadcast_arrays", (counted(3, 1), counted(4), SCALAR), {}),
    ("atleast_1d", (SCALAR,), {}),
    ("atleast_2d", (V, SCALAR), {}),
    ("atleast_3d", (V,), {}),
    ("atleast_3d", (M,), {}),
    ("atleast_3d", (SCALAR,), {}),
    ("concatenate", ([M, M[:2]],), {}),
    ("concatenate", ((M, M[:, :1]),), {"axis": -1}),
    ("concatenate", ([M, T],), {"axis": None}),
    ("concat", ([V, V, V],), {}),
    ("concatenate", ([EMPTY, EMPTY + 1],), {}),
    ("concatenate", (T,), {}),
    ("stack", ([M, M + 1],), {}),
    ("stack", ([M, M + 1],), {"axis": -1}),
    ("stack", ([SCALAR, SCALAR],), {}),
    ("vstack", ([V, V],), {}),
    ("vstack", ([M, M[:1]],), {}),
    ("hstack", ([V, V[:2]],), {}),
    ("hstack", ([M, M[:, :1]],), {}),
    ("dstack", ([V, V],), {}),
    ("dstack", ([M, M],), {}),
    ("column_stack", ([V, V, counted(5, 2)],), {}),
    ("block", ([[M, M[:, :1]], [counted(1, 5)]],), {}),
    ("block", ([V, SCALAR],), {}),
    ("append", (V, V[:2]), {}),
    ("append", (M, M[:1]), {"axis": 0}),
    ("append", (M, np.array([1, 2], np.float32)), {}),
    ("unstack", (T,), {}),
    ("unstack", (T,), {"axis": 1}),
    ("split", (counted(6), 3), {}),
    ("split", (V, [1, 3]), {}),
    ("split", (V, [3, 1, 9, -1]), {}),
    ("split", (M, 2), {"axis": 1}),
    ("array_split", (counted(7), 3), {}),
    ("array_split", (counted(2), 3), {}),
    ("vsplit", (M, [1]), {}),
    ("hsplit", (M, 2), {}),
    ("hsplit", (counted(4), 2), {}),
    ("dsplit", (T, [1, 2]), {}),
    ("tile", (V, 2), {}),
    ("tile", (M, (2, 3)), {}),
    ("tile", (M, (2, 1, 2)), {}),
    ("tile", (T, 2), {}),
    ("tile", (SCALAR, (2, 2)), {}),
    ("tile", (V, 0), {}),
    ("repeat", (V, 3), {}),
    ("repeat", (M, 2), {}),
    ("repeat", (M, 2), {"axis": 1}),
    ("repeat", (M, [1, 0, 3]), {"axis": 0}),
    ("repeat", (M, [2]), {"axis": 0}),
    ("repeat", (SCALAR, 4), {}),
    ("resize", (V, (2, 4)), {}),
    ("resize", (V, (2,)), {}),
    ("resize", (EMPTY, (2,)), {}),
    ("flip", (T,), {}),
    ("flip", (T, 1), {}),
    ("flip", (T, (0, -1)), {}),
    ("flip", (SCALAR,), {}),
    ("fliplr", (M,), {}),
    ("flipud", (V,), {}),
    *(("rot90", (M, k), {}) for k in (0, 1, 2, 3, -1)),
    ("rot90", (T,), {"axes": (2, 1)}),
    *(("roll", (V, shift), {}) for shift in (0, 1, -2, 5, 12, -13)),
    ("roll", (M, 2), {}),
    ("roll", (M, 1), {"axis": 0}),
    ("roll", (M, (1, -1)), {"axis": (0, 1)}),
    ("roll", (M, (1, 2)), {"axis": (1, 1)}),
    ("roll", (M, 1), {"axis": (0, 1)}),
    ("roll", (EMPTY, 2), {"axis": 0}),
    ("roll", (V, np.int32(2)), {}),
    ("roll", (M, np.int64(-7)), {"axis": 1}),
    *(("roll", (V, end), {}) for end in ENDS),
    ("diff", (V * V,), {}),
    ("diff", (M * M, 2), {}),
    ("diff", (M * M,), {"axis": 0, "prepend": SCALAR, "append": M[:2]}),
    ("diff", (V > 2,), {}),
    ("diff", (V, 0), {}),
    ("diff", (V, 7), {}),
    ("ediff1d", (M * M,), {}),
    ("ediff1d", (V * V, [9.0, 8.0], 7), {}),
    ("take", (V, [0, -1, 2]), {}),
    ("take", (M, np.array([[0, 2], [1, 1]])), {"axis": 0}),
    ("take", (M, np.array([5, -1])), {}),
    ("take", (M, np.int32(1)), {"axis": 1}),
    ("take", (V, np.array([7, -9, 2])), {"mode": "wrap"}),
    ("take", (V, np.array([7, -9, 2])), {"mode": "clip"}),
    ("take", (V, np.zeros((0,), np.int32)), {}),
    ("take_along_axis", (M, np.argsort(-M, axis=1)), {"axis": 1}),
    ("take_along_axis", (M, np.array([[1, 0, 2, 1]])), {"axis": 0}),
    ("take_along_axis", (T, np.array([[[1], [-1], [0]]])), {"axis": 2}),
    ("take_along_axis", (M, np.array([1, 5])), {"axis": None}),
    ("delete", (V, 1), {}),
    ("delete", (V, [0, -1]), {}),
    ("delete", (M, slice(1, 3)), {"axis": 1}),
    ("delete", (V, slice(None, None, 2)), {}),
    ("delete", (M, 0), {}),
    ("insert", (V, 2, 9), {}),
    ("insert", (V, -1, [7.0, 8.0]), {}),
    ("insert", (M, 1, 5), {"axis": 1}),
    ("insert", (M, 1, V[:3]), {"axis": 1}),
    ("insert", (M, [1], M[:, :1]), {"axis": 1}),
    ("insert", (M, 3, M[0]), {"axis": 0}),
    ("insert", (T, 1, M), {"axis": 0}),
    ("shape", (T,), {}),
    ("ndim", (T,), {}),
    ("size", (T,), {}),
    ("size", (T, 1), {}),
]


def result(of: str, args: Any, kwargs: Any) -> Any:
    given = [x if not isinstance(x, Static) else x.value for x in args]
    return getattr(np, of)(*given, **kwargs)


@pytest.mark.parametrize(("of", "args", "kwargs"), CALLS)
def test_calls(of: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    wanted = result(of, args, kwargs)
    got = run(f"numpy.{of}", *args, **kwargs)
    if of in ("shape", "ndim", "size"):
        assert got == wanted
        return
    same(wanted, got)


SYMBOLIC = (
    "ravel expand_dims squeeze transpose permute_dims matrix_transpose swapaxes moveaxis rollaxis "
    "atleast_1d atleast_2d atleast_3d stack vstack dstack tile flip fliplr flipud rot90 roll diff "
    "ediff1d array_split shape ndim size"
).split()


@pytest.mark.parametrize(("of", "args", "kwargs"), [case for case in CALLS if case[0] in SYMBOLIC])
def test_calls_for_all_sizes(of: str, args: Any, kwargs: dict[str, Any]) -> None:
    if of == "stack" and isinstance(args[0], np.ndarray):
        return
    if (of == "ediff1d" and len(args) > 1) or (of == "diff" and "append" in kwargs):
        return
    if of == "vstack" and len({x.shape for x in args[0]}) > 1:
        return
    wanted = result(of, args, kwargs)
    got = run_symbolic(f"numpy.{of}", *args, **kwargs)
    if of in ("shape", "ndim", "size"):
        assert got == wanted
        return
    same(wanted, got)


def test_more_for_all_sizes() -> None:
    n, m = S(3), S(4)
    same(M.reshape(12), run_symbolic(lambda x, n, m: call("reshape", x, n * m), M, n, m))
    same(M.reshape(4, 3), run_symbolic(lambda x, n, m: call("reshape", x, (m, -1)), M, n, m))
    same(T.reshape(2, 12), run_symbolic(lambda x, n: call("reshape", x, (n, -1)), T, S(2)))
    both = np.concatenate([M, M[:2]])
    same(both, run_symbolic("numpy.concatenate", [M, M[:2]]))
    halves = np.split(both[:4], 2)
    facts = (Fact("==", name("n6") % 2, 0),)
    x = counted(6, 4)
    built = build("numpy.split", (x, 2), {}, True, facts)
    same(np.split(x, 2), built.evaluated())
    assert len(halves) == 2
    same(np.split(x, [2, 3]), run_bounded("numpy.split", x, [2, 3]))
    twice = run_symbolic(lambda x: call("split", call("concatenate", x, [x, x]), 2), V)
    same([V, V], twice)
    same(np.repeat(M, 3, axis=0), run_symbolic("numpy.repeat", M, n, axis=0))
    same(np.tile(M, (3, 2)), run_symbolic("numpy.tile", M, (n, 2)))
    same(np.take(M, [[0, 1]], axis=0), run_symbolic("numpy.take", M, np.array([[0, 1]]), axis=0))
    index = np.argsort(-M, axis=1)
    same(np.take_along_axis(M, index, 1), run_symbolic("numpy.take_along_axis", M, index, axis=1))
    same(np.delete(M, -1, 0), run_symbolic("numpy.delete", M, -1, axis=0))
    same(np.insert(M, 0, 7, axis=0), run_symbolic("numpy.insert", M, 0, 7, axis=0))
    same(np.resize(V, (3, 4)), run_symbolic("numpy.resize", V, (n, m)))
    same(np.broadcast_to(V, (3, 5)), run_symbolic("numpy.broadcast_to", V, (n, S(5))))
    same(np.roll(V, 3), run_symbolic("numpy.roll", V, n))
    same(list(np.array_split(V, 3)), run_symbolic("numpy.array_split", V, 3))


def call(of: str, x: Any, *args: Any, **kwargs: Any) -> Any:
    from pscdsl._src.language.meanings import MEANINGS

    meaning: Any = MEANINGS[f"numpy.{of}"]
    if of == "concatenate":
        return meaning.apply(x.builder, args, kwargs)
    here = x[0].builder if isinstance(x, list) else x.builder
    return meaning.apply(here, (x, *args), kwargs)


@st.composite
def paddings(draw: Any) -> tuple[Any, Any]:
    shape = draw(st.lists(st.integers(1, 4), min_size=0, max_size=3))
    width = st.integers(0, 9)
    forms = [width, st.tuples(width), st.tuples(width, width), st.tuples(st.tuples(width, width))]
    forms.append(st.tuples(*(st.tuples(width, width) for _ in shape)))
    return counted(*shape), draw(st.one_of(forms if shape else [st.just(0)]))


@FEW
@given(paddings(), st.sampled_from(["constant", "edge", "reflect", "symmetric", "wrap"]))
def test_pad(case: tuple[Any, Any], mode: Any) -> None:
    x, width = case
    wanted = np.pad(x, width, mode)
    same(wanted, run("numpy.pad", x, width, mode))
    same(wanted, run_symbolic("numpy.pad", x, width, mode))
    same(wanted, run_bounded("numpy.pad", x, width, mode))


def test_pad_with_constants() -> None:
    same(np.pad(M, 1, constant_values=7), run("numpy.pad", M, 1, constant_values=7))
    pairs = ((1, 2), (3, 4))
    same(np.pad(M, 2, constant_values=pairs), run("numpy.pad", M, 2, constant_values=pairs))
    same(np.pad(M, 1, constant_values=5), run("numpy.pad", M, 1, constant_values=np.float32(5)))
    same(np.pad(M, ((1, 0), (0, 2))), run("numpy.pad", M, {0: (1, 0), 1: (0, 2)}))
    same(np.pad(EMPTY, 1), run("numpy.pad", EMPTY, 1))
    same(np.pad(V, (1, 5)), run_symbolic("numpy.pad", V, (1, S(5))))
    assert rejected(
        ScalarDoesNotFit, "numpy.pad", counted(3, dtype=np.int32), 1, constant_values=0.5
    )
    assert rejected(NotSupported, "numpy.pad", V, 1, mode="mean")
    assert rejected(UnprovenSize, "numpy.pad", EMPTY, 1, mode="edge")
    assert rejected(BadArguments, "numpy.pad", M, ((1, 1), (1, 1), (1, 1)))


def test_slices_for_proven_padding() -> None:
    for mode in ("reflect", "symmetric", "wrap", "edge"):
        built = build("numpy.pad", (V, 2, mode), {}, True, bounded=True)
        assert "gather" not in {each.primitive.label for each in built.function.body.equations}


def attribute(x: Any, of: str, *args: Any, **kwargs: Any) -> Any:
    found: Any = methods.attribute(x, of)
    return found.apply(x.builder, args, kwargs) if isinstance(found, methods.BoundMethod) else found


METHODS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("reshape", (4, 3), {}),
    ("reshape", ((4, 3),), {}),
    ("reshape", (-1,), {}),
    ("transpose", (1, 0), {}),
    ("transpose", ((1, 0),), {}),
    ("transpose", (), {}),
    ("T", (), {}),
    ("mT", (), {}),
    ("reshape", (4, 3), {"order": "F"}),
    ("ravel", (), {}),
    ("ravel", ("F",), {}),
    ("flatten", ("F",), {}),
    ("flatten", (), {"order": "F"}),
    ("flatten", (), {}),
    ("squeeze", (), {}),
    ("swapaxes", (0, 1), {}),
    ("repeat", (2,), {"axis": 0}),
    ("take", (np.array([0, 1]),), {"axis": 1}),
    ("clip", (1, 5), {}),
    ("round", (1,), {}),
    ("real", (), {}),
    ("imag", (), {}),
    ("conj", (), {}),
    ("copy", (), {}),
    ("diagonal", (), {}),
    ("sum", (), {"axis": 0}),
    ("mean", (), {"axis": 1, "keepdims": True}),
    ("max", (1,), {}),
    ("min", (), {}),
    ("argmax", (), {"axis": 0}),
    ("all", (), {}),
    ("cumsum", (1,), {}),
    ("dot", (M.T,), {}),
    ("std", (), {"axis": 0}),
]


@pytest.mark.parametrize(("of", "args", "kwargs"), METHODS)
def test_methods(of: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    found: Any = getattr(M, of)
    wanted: Any = found(*args, **kwargs) if callable(found) else found
    got = run(attribute, M, of, *args, **kwargs)
    np.testing.assert_allclose(got, wanted, rtol=1e-6)
    assert got.shape == np.shape(wanted)


def test_properties() -> None:
    assert run(attribute, M, "shape") == (3, 4)
    assert run_symbolic(attribute, M, "shape") == (3, 4)
    assert run_symbolic(attribute, M, "size") == 12
    assert run(attribute, M, "ndim") == 2
    assert run(attribute, M, "dtype") is F32
    assert run(attribute, M, "itemsize") == 4
    assert run_symbolic(attribute, M, "nbytes") == 48
    same(M.view(np.int32), run(attribute, M, "view", I32))
    assert rejected(BadArguments, attribute, M, "view", F64)
    assert run(attribute, M, "unknown") is None
    assert run(attribute, M, "sort") is None
    same(M.astype(np.float64), run(attribute, M, "astype", F64))
    same(M.astype(np.float64), run(attribute, M, "astype", dtype=F64))
    every = set(methods.IN_PLACE) | set(methods.LEAVES_PROGRAM)
    assert not every & {of for of, *_ in METHODS}
    for of in methods.AS_FUNCTION:
        assert hasattr(np.ndarray, of)
        assert run(lambda x, of=of: methods.attribute(x, of).name, M) == of  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("kind", "of", "args"),
    [
        (BadArguments, "ravel", (M, "A")),
        (BadArguments, "reshape", (M, -1, "K")),
        (BadArguments, "ravel", (M, 3)),
        (ImpossibleReshape, "reshape", (M, (5, 2))),
        (ImpossibleReshape, "reshape", (M, (-1, 5))),
        (ImpossibleReshape, "reshape", (EMPTY, (-1, 0))),
        (BadArguments, "reshape", (M, (-1, -1))),
        (UnprovenSize, "reshape", (M, (-2, 6))),
        (DataDependentShape, "reshape", (M, (np.int32(3), 4))),
        (AxisOutOfRange, "transpose", (M, (0, 2))),
        (RepeatedAxis, "transpose", (M, (0, 0))),
        (WrongNumberOfAxes, "transpose", (M, (0,))),
        (AxisOutOfRange, "swapaxes", (M, 0, 2)),
        (BadArguments, "moveaxis", (T, (0, 1), 0)),
        (BadArguments, "swapaxes", (M, 0, 0.5)),
        (NotOfSizeOne, "squeeze", (M, 0)),
        (ShapesDoNotBroadcast, "broadcast_to", (V, (5, 2))),
        (ShapesDoNotBroadcast, "broadcast_to", (M, (4,))),
        (PiecesDoNotFit, "concatenate", ([M, V],)),
        (PiecesDoNotFit, "concatenate", ([M, M[:, :2]],)),
        (PiecesDoNotFit, "stack", ([M, M[:2]],)),
        (PiecesDoNotFit, "stack", ([V, V[:2]],)),
        (DtypesDiffer, "concatenate", ([V, V.astype(np.float64)],)),
        (BadArguments, "concatenate", ([],)),
        (AxisOutOfRange, "concatenate", ([SCALAR, SCALAR],)),
        (NotDivisible, "split", (V, 2)),
        (BadArguments, "split", (V, 0)),
        (WrongNumberOfAxes, "vsplit", (V, 1)),
        (BadArguments, "repeat", (M, [1, 2], 0)),
        (DataDependentShape, "repeat", (M, np.int32(2))),
        (UnprovenSize, "repeat", (M, -1)),
        (DataDependentShape, "tile", (M, np.int32(2))),
        (WrongNumberOfAxes, "fliplr", (V,)),
        (BadArguments, "roll", (V, np.float32(1))),
        (BadArguments, "roll", (M, (1, 2), (0, 1, 1))),
        (NotAnIndex, "take", (V, np.array([0.5]))),
        (BadArguments, "take", (V, 1.5)),
        (UnprovenSize, "take", (counted(0), np.int32(0))),
        (WrongNumberOfAxes, "take_along_axis", (M, np.array([0]))),
        (ShapesDoNotBroadcast, "take_along_axis", (M, np.zeros((2, 1), int))),
        (IndexOutOfRange, "delete", (V, 5)),
        (DataDependentShape, "delete", (V, np.int32(1))),
        (UnprovenSize, "insert", (V, 6, 1)),
        (NotSupported, "insert", (V, [1, 2], 1)),
        (BadArguments, "diff", (V, -1)),
    ],
)  # fmt: skip
def test_refused(kind: type[Diagnostic], of: str, args: tuple[Any, ...]) -> None:
    if of == "take" and args[1:] == (1.5,):
        kind = NotAnIndex
    assert rejected(kind, f"numpy.{of}", *args)


def test_refused_for_some_sizes() -> None:
    (found,) = rejected(ImpossibleReshape, "numpy.reshape", M, (-1, 2), symbolic=True)
    assert "is not a multiple of 2, for instance" in found.label()
    (found,) = rejected(NotDivisible, "numpy.split", V, 2, symbolic=True)
    assert (found.label(), found.help()) == ("for instance n5=1", "add `assert n5 % 2 == 0`")
    (found,) = rejected(PiecesDoNotFit, "numpy.concatenate", [M, T[0, :, :1]], symbolic=True)
    assert "n4 is not 1" in found.label()


def test_axes() -> None:
    assert normalize_axis(-1, 3, "f") == 2
    assert normalize_axis(np.int64(0), 3, "f") == 0
    assert normalize_axes(None, 2, "f") == (0, 1)
    assert normalize_axes(-1, 2, "f") == (1,)
    assert normalize_axes([1, 0], 2, "f") == (1, 0)
    for bad in (True, None, "x", 0.5):
        with pytest.raises(Failure):
            normalize_axis(bad, 3, "f")


def test_compiled() -> None:
    def program(m: Any, k: Any) -> Any:
        return [
            call("roll", m, k, axis=1),
            call("pad", m, 5, "reflect"),
            call("rot90", m),
            call("repeat", m, [1, 0, 3], axis=0),
            call("take", m, [0, -1], axis=1),
            call("diff", m),
            call("tile", m, (2, 3)),
            *call("array_split", m, 2),
        ]

    for wanted, got in zip(
        run(program, M, np.int32(-5)), run_compiled(program, M, np.int32(-5)), strict=True
    ):
        same(wanted, got)


def rejected(
    kind: type[Diagnostic], function: Any, *args: Any, symbolic: bool = False, **kwargs: Any
) -> tuple[Diagnostic, ...]:
    with pytest.raises(Failure) as caught:
        build(function, args, kwargs, symbolic)
    found = caught.value.diagnostics
    assert all(type(each) is kind for each in found), found
    assert all(each.message() for each in found)
    return found
