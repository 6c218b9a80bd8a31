"""Laws of JAX's lattice of dtypes."""

from itertools import product

from pscdsl._src.ir.jax_promotion import JaxPromotion, join
from pscdsl.typing.dtypes import (
    ALL,
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U32,
    U64,
    Kind,
)

NODES = (*ALL, Kind.INT, Kind.FLOAT, Kind.COMPLEX)


def test_it_is_a_semilattice() -> None:
    for a, b in product(NODES, NODES):
        met = join(frozenset({a, b}))
        assert met is join(frozenset({met, a})) is join(frozenset({met, b}))
    for a, b, c in product(NODES, NODES, NODES):
        assert join(frozenset({join(frozenset({a, b})), c})) is join(frozenset({a, b, c}))


def test_the_cases_of_its_documentation() -> None:
    full, usual = JaxPromotion(x64=True), JaxPromotion()
    assert full.met([I32, F16]) is F16
    assert full.met([U8, I8]) is I16
    assert full.met([BF16, F16]) is F32
    assert full.met([U32, I32]) is I64
    assert usual.met([U32, I32]) is I32
    assert full.met([U64, I8]) is Kind.FLOAT
    assert full.met([I32, Kind.FLOAT]) is Kind.FLOAT
    assert full.met([F16, Kind.FLOAT, Kind.INT]) is F16
    assert full.met([Kind.BOOL, BOOL]) is BOOL
    assert full.met([F32, F64]) is F64
    assert usual.met([F32, F64]) is F32
