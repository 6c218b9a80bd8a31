"""Derivatives of reads and writes where the laws cannot look: at ties, repetitions and rounding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from pscdsl._src.analysis.verify import verify
from pscdsl._src.interpreters.cut import split_block
from pscdsl._src.interpreters.replay import has_tangent, jvp_block, transpose_block
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import Block, Equation, Function, Var, evaluate
from pscdsl._src.primitives.indexing import Gather, Scatter
from pscdsl._src.primitives.shaping import Pad
from pscdsl.typing.assumptions import Assumptions
from tests.support.law_rows import NDArray, array_types

pytestmark = pytest.mark.quick_code

FACTS = Assumptions()


def run(block: Block, operands: Sequence[NDArray]) -> list[NDArray]:
    """The results of a block without sizes."""
    function = Function("test", (), FACTS, block)
    verify(function)
    return list(evaluate(function, {}, operands))


def cotangents(
    primitive: Primitive, types: str, operands: Sequence[object], given: object
) -> list[list[object]]:
    """The cotangents of the operands that have tangents, from that of the result."""
    inputs = tuple(Var(each) for each in array_types(types))
    arrays = [np.asarray(x, to_numpy(v.type.dtype)) for x, v in zip(operands, inputs, strict=True)]
    outputs = tuple(Var(t) for t in primitive.type_rule(FACTS, *[v.type for v in inputs]))
    block = Block(inputs, (Equation(primitive, inputs, outputs),), outputs)
    active = tuple(map(has_tangent, block.in_types))
    derivative, _ = jvp_block(FACTS, block, active, (True,))
    late = tuple(i >= len(inputs) for i in range(len(derivative.params)))
    halves = split_block(FACTS, derivative, late)
    saved = halves.gather(arrays, run(halves.early, arrays))
    linear = tuple(i >= len(saved) for i in range(len(halves.late.params)))
    backward, _ = transpose_block(FACTS, halves.late, linear, (True,), linear)
    received = np.asarray(given, to_numpy(outputs[0].type.dtype))
    return [np.asarray(x).tolist() for x in run(backward, [*saved, received])]


@pytest.mark.parametrize("sign", [1, -1])
def test_all_that_attain_an_extremum_share_its_cotangent(sign: int) -> None:
    scatter = Scatter((0,), "maximum" if sign > 0 else "minimum")
    x, updates = np.multiply(sign, [1, 2, 3, 4]), np.multiply(sign, [2, 2, 1, 5, 3])
    found = cotangents(
        scatter, "f64[4], i32[5 1], f64[5]", (x, [[1], [1], [1], [2], [3]], updates), [1, 6, 7, 8]
    )
    assert found == [[1, 2, 0, 8], [2, 2, 0, 7, 0]]


def test_the_last_of_several_writers_gets_the_cotangent() -> None:
    indices = [[1], [0], [1], [-3], [9]]  # those out of range are clamped: -3 to 0, 9 to 3
    found = cotangents(
        Scatter((0,), "set"),
        "f64[4], i32[5 1], f64[5]",
        (np.ones(4), indices, np.ones(5)),
        [1, 2, 3, 4],
    )
    assert found == [[0, 0, 3, 0], [0, 0, 2, 1, 4]]


def test_the_cotangent_of_a_factor_is_the_product_of_the_others() -> None:
    found = cotangents(
        Scatter((0,), "multiply"),
        "f64[3], i32[6 1], f64[6]",
        ([2, 3, 5], [[0], [0], [1], [1], [2], [2]], [7, 0, 0, 0, 11, 13]),
        [1, 1, 1],
    )
    assert found == [[0, 0, 143], [0, 14, 0, 0, 65, 55]]


def test_small_cotangents_of_one_element_add_up_in_half_precision() -> None:
    many = 4096
    found = cotangents(
        Gather((0,)), f"bf16[2], i32[{many} 1]", ([1, 1], np.ones((many, 1))), np.ones(many)
    )
    assert found == [[0, many]]


def test_what_is_padded_around_does_not_reach_the_cotangent_of_the_scalar() -> None:
    pad = Pad((1,), (1,), (1,))
    found = cotangents(pad, "f64[2], f64", ([1, 1], 0), [1, np.inf, 2, 1e300, 4])
    assert found == [[np.inf, 1e300], 7]
