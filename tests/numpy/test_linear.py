"""Products of matrices and vectors, and `einsum`, against NumPy."""

from __future__ import annotations

import string
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.shaping import Transpose
from pscdsl.numpy.products import typical
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.element_types import DtypesDiffer
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import RepeatedAxis, ShapesDoNotBroadcast, WrongNumberOfAxes
from pscdsl.typing.codes.shapes_of_arguments import BadSubscripts, InnerSizesDiffer, LengthsDiffer
from pscdsl.typing.dims import name as size_name
from tests.support.numpy_differential import NAN, agree, at_least, check, normal, refused, theirs
from tests.support.numpy_harness import build, run, run_compiled

pytestmark = pytest.mark.quick_code(but=4)

FEW = settings(max_examples=40, deadline=None)

PRODUCTS = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((7, 1, 2, 3), (5, 3, 4)),
    ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)),
    ((1, 1), (1, 1)),
    ((5, 1, 1), (1, 1, 4)),
]


@pytest.mark.parametrize(("left", "right"), PRODUCTS)
def test_matmul(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    check("numpy.matmul", normal(*left), normal(*right), compiled=True)


@pytest.mark.parametrize("code", ["?", "i1", "u1", "i4", "i8", "f4", "c8", "c16"])
def test_matmul_in_every_dtype(code: str) -> None:
    x, y = (abs(normal(*shape)).astype(code) for shape in ((2, 3), (3, 4)))
    check("numpy.matmul", x, y, rtol=1e-5, compiled=True)
    assert run("numpy.matmul", x, y).dtype == np.dtype(code)


@pytest.mark.parametrize("code", ["f2", ml_dtypes.bfloat16])
def test_matmul_in_half_precision(code: Any) -> None:
    x, y = np.full((1, 3000), 0.1).astype(code), np.full((3000, 1), 0.1).astype(code)
    wanted = x.astype(np.float64) @ y.astype(np.float64)
    for runner in (run, run_compiled):
        found = runner("numpy.matmul", x, y)
        assert found.dtype == np.dtype(code)
        agree(found.astype(np.float64), wanted, 1e-2)


def test_products_of_nothing() -> None:
    check("numpy.matmul", np.zeros((2, 0)), np.zeros((0, 3)), compiled=True)
    check("numpy.einsum", "ij->", np.zeros((0, 3)))
    check("numpy.einsum", "ii->", np.zeros((0, 0)))
    check("numpy.kron", np.zeros((0, 2)), normal(2, 2))


def test_no_operand_is_moved_where_the_product_does_it() -> None:
    for subscripts in ("ij,jk->ik", "ij,kj->ik", "ji,jk->ik", "bij,bjk->bik", "ij,jk->ki"):
        shapes = [
            tuple("bijk".index(letter) + 2 for letter in term)
            for term in subscripts.split("->")[0].split(",")
        ]
        args = (subscripts, *(normal(*shape) for shape in shapes))
        equations = build("numpy.einsum", args, {}).function.body.equations
        assert [type(each.primitive) for each in equations] == [DotGeneral]
    equations = build("numpy.matmul", (normal(5, 2, 3), normal(3, 4)), {}).function.body.equations
    assert not any(isinstance(each.primitive, Transpose) for each in equations)


def test_inner_sizes_differ() -> None:
    finding = refused(InnerSizesDiffer, "numpy.matmul", normal(3), normal(4, 3), symbolic=True)
    assert finding.message() == "matmul: inner sizes differ"
    assert "n3 is not n4" in finding.label()
    assert "`b @ a` has type f64[n4]" in (finding.help() or "")
    finding = refused(InnerSizesDiffer, "numpy.matmul", normal(3, 2), normal(3, 4))
    assert finding.help() == "`a.T @ b` has type f64[2 4]"
    finding = refused(InnerSizesDiffer, "numpy.matmul", normal(2, 3), normal(5, 4, 3))
    assert finding.help() == "`a @ b.mT` has type f64[5 2 4]"
    assert refused(InnerSizesDiffer, "numpy.dot", normal(2), normal(3)).help() is None
    equal = (Fact("==", size_name("n3"), size_name("n4")),)
    build("numpy.matmul", (normal(2, 3), normal(4, 5)), {}, True, equal)


def test_operands_that_do_not_fit() -> None:
    refused(WrongNumberOfAxes, "numpy.matmul", normal(3), 2.0)
    refused(ShapesDoNotBroadcast, "numpy.matmul", normal(5, 2, 3), normal(6, 3, 4))
    refused(DtypesDiffer, "numpy.matmul", normal(3), normal(3, dtype=np.float32))
    refused(LengthsDiffer, "numpy.tensordot", normal(2, 3), normal(2, 3), 1)
    refused(BadArguments, "numpy.tensordot", normal(2, 3), normal(2, 3), 3)
    refused(BadArguments, "numpy.tensordot", normal(2, 3), normal(2, 3), ([0, 1], [0]))
    refused(RepeatedAxis, "numpy.tensordot", normal(2, 2), normal(2, 2), ([0, 0], [0, 1]))
    refused(BadArguments, "numpy.cross", normal(2), normal(2))


def test_dot() -> None:
    for left, right in (((3,), (3,)), ((2, 3), (3,)), ((2, 3, 4), (5, 4, 3)), ((), (2, 3))):
        check("numpy.dot", normal(*left), normal(*right))
    check("numpy.dot", normal(2, 3), 2.0)
    check("numpy.inner", normal(2, 3), normal(4, 3))
    check("numpy.inner", normal(2, 3), 2.0)
    check("numpy.outer", normal(2, 3), normal(4))
    check("numpy.outer", [1.0, 2.0], normal(4))


def test_products_of_complex_vectors() -> None:
    x, y = normal(3, dtype=complex), normal(3, seed=1, dtype=complex)
    rows = normal(4, 3, dtype=complex)
    check("numpy.vdot", x, y, compiled=True)
    check("numpy.vecdot", rows, y)
    check("numpy.vecdot", rows, rows, axis=0)
    check("numpy.vecmat", x, rows.T.copy(), compiled=True)
    check("numpy.matvec", rows, y)
    check("numpy.matvec", normal(5, 2, 3), normal(5, 3))
    check("numpy.vecmat", normal(5, 2), normal(2, 3))
    refused(InnerSizesDiffer, "numpy.matvec", rows, x[:2])
    refused(LengthsDiffer, "numpy.vecdot", rows, x[:2])


def test_tensordot() -> None:
    check("numpy.tensordot", normal(2, 3, 4), normal(3, 4, 5), compiled=True)
    check("numpy.tensordot", normal(2, 3, 4), normal(4, 3), axes=([1, 2], [1, 0]))
    check("numpy.tensordot", normal(2, 3), normal(4), axes=0)
    check("numpy.tensordot", normal(2, 3), normal(3), axes=(1, 0))
    check("numpy.tensordot", normal(2, 3), normal(3, 2), axes=((-1,), (0,)))


def test_kron_trace_cross() -> None:
    for left, right in (((2, 3), (4, 5)), ((2,), (4, 5)), ((), (3,)), ((1, 2, 3), (2, 1))):
        check("numpy.kron", normal(*left), normal(*right))
    check("numpy.trace", normal(3, 4), offset=1)
    check("numpy.trace", normal(3, 4, 2), 0, 1, 2)
    assert run("numpy.trace", np.eye(3, dtype=np.int8)).dtype == np.int64
    facts = (Fact("==", size_name("n3"), 3),)
    check("numpy.cross", normal(5, 3), normal(3), facts=facts)
    check("numpy.cross", normal(3, 5), normal(3, 5, seed=1), axis=0, facts=facts)
    check("numpy.cross", normal(5, 3), normal(3, 5), axisb=0, axisc=0, facts=facts)


SUBSCRIPTS: list[tuple[str, list[tuple[int, ...]]]] = [
    ("ij,jk->ik", [(2, 3), (3, 4)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("ba", [(2, 3)]),
    ("ij->ji", [(2, 3)]),
    ("ij->", [(2, 3)]),
    ("ij->j", [(2, 3)]),
    ("ii->i", [(3, 3)]),
    ("ii", [(3, 3)]),
    ("ijj->i", [(2, 3, 3)]),
    ("iji->j", [(3, 2, 3)]),
    ("iij,jk->ik", [(2, 2, 3), (3, 4)]),
    ("i...i->...", [(3, 4, 3)]),
    ("...ij,...jk->...ik", [(5, 2, 3), (5, 3, 4)]),
    ("...ij,...jk->...ik", [(6, 1, 2, 3), (5, 3, 4)]),
    ("...ij,jk", [(5, 2, 3), (3, 4)]),
    ("i...->...", [(2, 3, 4)]),
    ("...,...", [(3, 4), (4,)]),
    ("... i j -> ... j i", [(2, 3, 4)]),
    ("i,j->ij", [(2,), (3,)]),
    ("i,j->ji", [(2,), (3,)]),
    ("i,i->i", [(3,), (3,)]),
    ("i,i", [(3,), (3,)]),
    ("ij,ij->", [(2, 3), (2, 3)]),
    ("ij,j->ij", [(2, 3), (3,)]),
    ("ij,jk->ik", [(2, 1), (3, 4)]),
    (",ij->ji", [(), (2, 3)]),
    ("->", [()]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
    ("bij,bjk,bk->bi", [(6, 2, 3), (6, 3, 4), (6, 4)]),
    ("a,b,c,d->dcba", [(2,), (3,), (4,), (5,)]),
    ("ij,kj,lj->ikl", [(2, 3), (4, 3), (5, 3)]),
    ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
    ("ab,cd,ef->fcba", [(2, 3), (4, 5), (2, 3)]),
]


@pytest.mark.parametrize(("subscripts", "shapes"), SUBSCRIPTS)
def test_einsum(subscripts: str, shapes: list[tuple[int, ...]]) -> None:
    operands = [normal(*shape, seed=index) for index, shape in enumerate(shapes)]
    check("numpy.einsum", subscripts, *operands, rtol=1e-8)


def test_einsum_compiled() -> None:
    for subscripts, shapes in (SUBSCRIPTS[0], SUBSCRIPTS[9], SUBSCRIPTS[13], SUBSCRIPTS[28]):
        operands = [normal(*shape, seed=index) for index, shape in enumerate(shapes)]
        check("numpy.einsum", subscripts, *operands, rtol=1e-8, compiled=True)


def test_einsum_with_numbers_for_axes() -> None:
    a, b = normal(2, 3), normal(3, 4)
    check("numpy.einsum", a, [0, 1], b, [1, 2], [0, 2], symbolic=False)
    check("numpy.einsum", a, [0, 1], b, [1, 2])
    check("numpy.einsum", normal(5, 2, 3), [..., 0, 1], b, [1, 2], [..., 2, 0])
    check("numpy.einsum", a, (30, 2))
    check("numpy.einsum", "ij,j", a, np.array([1.0, 2.0, 3.0]), optimize="greedy")


@st.composite
def contractions(draw: st.DrawFn) -> tuple[str, list[tuple[int, ...]]]:
    sizes = {letter: draw(st.integers(1, 3)) for letter in "abcde"}
    terms = draw(st.lists(st.text("abcde", max_size=4), min_size=1, max_size=4))
    known = sorted(set("".join(terms)))
    result = draw(st.none() | st.lists(st.sampled_from(known or "a"), unique=True))
    text = ",".join(terms)
    if result is not None:
        text += "->" + "".join(result if known else ())
    return text, [tuple(sizes[letter] for letter in term) for term in terms]


@FEW
@given(contractions())
def test_any_einsum(case: tuple[str, list[tuple[int, ...]]]) -> None:
    subscripts, shapes = case
    operands = [normal(*shape, seed=index) for index, shape in enumerate(shapes)]
    check("numpy.einsum", subscripts, *operands, rtol=1e-8)


def test_einsum_of_truth_values_and_integers() -> None:
    x, y = normal(4, 5) > 0.5, normal(5, 3) > 0.5
    check("numpy.einsum", "ij,jk->ik", x, y)
    check("numpy.einsum", "ij,jk,k", x, y, y[0])
    many = np.ones((1, 1 << 16), bool)
    assert bool(run("numpy.einsum", "ij,kl->", many, many))  # 2**32 ways, and none is lost
    agree(
        run("numpy.einsum", "i,i", np.array([100, 100], np.int8), np.array([2, 1], np.int8)),
        np.int8(44),
    )


def test_einsum_keeps_nan_off_the_diagonal_out() -> None:
    x = np.array([[1.0, NAN], [NAN, 2.0]])
    check("numpy.einsum", "ii", x)
    facts = at_least(2, bound=0)
    agree(build("numpy.einsum", ("ii", x), {}, True, facts).evaluated(), np.trace(x))


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("ij,jk->il", [(2, 3), (3, 4)]),
        ("ij,jk->ikk", [(2, 3), (3, 4)]),
        ("ij", [(2,)]),
        ("i", [(2, 3)]),
        ("ij,jk", [(2, 3)]),
        ("i.j", [(2, 3)]),
        ("......", [(2, 3)]),
        ("i1", [(2, 3)]),
        ("i->j->k", [(2,)]),
        ("...i->i", [(2, 3)]),
        ("", [(2,)]),
    ],
)
def test_bad_subscripts(subscripts: str, shapes: list[tuple[int, ...]]) -> None:
    refused(BadSubscripts, "numpy.einsum", subscripts, *(normal(*shape) for shape in shapes))


def test_einsum_of_what_does_not_fit() -> None:
    a = normal(2, 3)
    finding = refused(LengthsDiffer, "numpy.einsum", "ij,jk", a, normal(4, 2), symbolic=True)
    assert "axis `j` of operand 0 and axis `j` of operand 1" in finding.message()
    refused(LengthsDiffer, "numpy.einsum", "ii", a)
    refused(LengthsDiffer, "numpy.einsum", "ii", normal(1, 3))
    refused(LengthsDiffer, "numpy.einsum", "...,...", a, normal(4))
    refused(DtypesDiffer, "numpy.einsum", "i,i", normal(2), normal(2, dtype=np.float32))
    refused(BadArguments, "numpy.einsum", a, "ij")
    refused(BadArguments, "numpy.einsum", a, [0, 99])
    refused(BadSubscripts, "numpy.einsum", "")


def test_a_chain_is_multiplied_in_the_cheap_order() -> None:
    a, b, c = np.ones((100, 2)), np.ones((2, 100)), np.ones((100, 1))
    function = build("numpy.einsum", ("ij,jk,kl->il", a, b, c), {}).function
    shapes = [each.outputs[0].type.shape for each in function.body.equations]
    assert (100, 100) not in shapes
    assert typical(size_name("n") // (size_name("m") - size_name("k"))) > 0


def test_all_letters() -> None:
    x = np.ones((1,) * 40)
    letters = string.ascii_letters[:40]
    agree(run("numpy.einsum", f"{letters}->{letters[::-1]}", x), theirs("numpy.ones", (1,) * 40))
