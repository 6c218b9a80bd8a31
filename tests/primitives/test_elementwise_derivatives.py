"""Derivatives of elementwise functions where no difference tells them: at ties, kinks and zeros.

Each is computed forward and backward, which must agree; where a slope is finite, neither is NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log, nan, pi
from typing import Any

import numpy as np
import pytest

from pscdsl._src.analysis.verify import verify
from pscdsl._src.interpreters.cut import Halves, split_block
from pscdsl._src.interpreters.replay import Mask, batch_block, closed, jvp_block, transpose_block
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import Block, Function, evaluate
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.pointwise import Elementwise
from pscdsl._src.primitives.special import SPECIAL
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.limits import NoRule
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import name
from pscdsl.typing.dtypes import BF16, BOOL, C64, C128, F16, F32, F64, I32, DType

pytestmark = pytest.mark.quick_code

ANY = Assumptions()


NO_SLOPE_IN_THE_FIRST = frozenset("betainc betaincc gammainc gammaincc iv jv kv zeta".split())
"""Special functions without a derivative in their first operand: they say so."""
ALL = dict.fromkeys((*e.TABLE.values(), *SPECIAL))
"""All elementwise primitives, once."""
SAVED = {"erfcx": 2, "power": 4}
"""How many arrays derivatives need that need more than others.

That of erfcx needs the operand and the result; those of powers have no derivative at `0**1`.
"""


def program(primitive: Primitive, *types: ArrayType) -> Block:
    """A program of one equation."""

    def build(here: Builder, params: list[Value]) -> list[Value]:
        return list(primitive.bind(*params))

    return closed(ANY, types, build)


def run(block: Block, *operands: Any) -> list[Any]:
    """The results of a program without sizes."""
    function = Function("derivative", (), ANY, block)
    verify(function)
    arrays = [np.asarray(x, to_numpy(t.dtype)) for x, t in zip(operands, block.in_types)]  # noqa: B905
    return list(evaluate(function, {}, arrays))


def halves(block: Block, active: Mask | None = None) -> Halves:
    """The derivative of a program, cut into what is known and what depends on the tangents."""
    active = active or tuple(each.dtype.is_inexact for each in block.in_types)
    made, _ = jvp_block(ANY, block, active)
    late = tuple(index >= len(active) for index in range(len(made.params)))
    return split_block(ANY, made, late)


def slopes(primitive: Primitive, *numbers: complex, dtype: DType = F64) -> list[Any]:
    """The partial derivatives at a point."""
    block = program(primitive, *[ArrayType(dtype)] * len(numbers))
    return [slope(block, index, numbers) for index in range(len(numbers))]


def slope(block: Block, index: int, numbers: Sequence[complex]) -> Any:
    """A partial derivative of a program of scalars at a point, by both modes."""
    parts = halves(block, tuple(place == index for place in range(len(numbers))))
    saved = parts.gather(list(numbers), run(parts.early, *numbers))
    if not parts.late.results:
        return 0.0
    (forward,) = run(parts.late, *saved, 1)
    linear = tuple(place >= len(saved) for place in range(len(parts.late.params)))
    transposed, _ = transpose_block(ANY, parts.late, linear, (True,), linear)
    (backward,) = run(transposed, *saved, 1)
    np.testing.assert_allclose(backward.real, forward.real, rtol=1e-12)
    return forward


def second(primitive: Primitive, *numbers: float) -> Any:
    """The matrix of second derivatives at a point."""
    types = [ArrayType(F64)] * len(numbers)
    active = (True,) * len(numbers)
    first, _ = jvp_block(ANY, program(primitive, *types), active)
    keep = Block(first.params, first.equations, first.results[1:])
    units = np.eye(len(numbers))
    return np.array(
        [[slope(keep, i, (*numbers, *unit)) for i in range(len(units))] for unit in units]
    )


def test_maximum_and_minimum_share_at_ties() -> None:
    for extreme in (e.maximum, e.minimum):
        assert slopes(extreme, 2.0, 2.0) == [0.5, 0.5]
        assert slopes(extreme, 0.0, -0.0) == [0.5, 0.5]
    assert slopes(e.maximum, 1.0, 2.0) == [0, 1]
    assert slopes(e.minimum, 1.0, 2.0) == [1, 0]


def test_clamp_is_the_minimum_of_a_maximum() -> None:
    assert slopes(e.Clamp(), 0.0, 0.5, 1.0) == [0, 1, 0]
    assert slopes(e.Clamp(), 0.0, -0.5, 1.0) == [1, 0, 0]
    assert slopes(e.Clamp(), 0.0, 1.5, 1.0) == [0, 0, 1]
    assert slopes(e.Clamp(), 0.0, 0.0, 1.0) == [0.5, 0.5, 0]
    assert slopes(e.Clamp(), 0.0, 1.0, 1.0) == [0, 0.5, 0.5]
    assert slopes(e.Clamp(), 2.0, 0.5, 1.0) == [0, 0, 1]


def test_absolute_value_and_sign() -> None:
    assert [slopes(e.absolute, x)[0] for x in (-2.0, 0.0, 2.0)] == [-1, 0, 1]
    assert slopes(e.sign, 0.0) == [0]
    assert slopes(e.absolute, 0j, dtype=C128) == [0]
    assert slopes(e.sign, 0j, dtype=C128) == [0]
    np.testing.assert_allclose(slopes(e.absolute, 3 - 4j, dtype=C128), [0.6])


def test_the_sign_of_a_complex_number_turns_but_does_not_grow() -> None:
    """Across it turns by the tangent over the size, outwards it stays."""
    np.testing.assert_allclose(slopes(e.sign, 2j, dtype=C128), [0.5])
    np.testing.assert_allclose(slopes(e.sign, 2 + 0j, dtype=C128), [0], atol=1e-15)


@pytest.mark.parametrize(
    ("base", "exponent", "by_base", "by_exponent"),
    [
        (0.0, 2.0, 0, 0),
        (0.0, 1.0, 1, 0),
        (0.0, 0.5, inf, 0),
        (0.0, 0.0, 0, 0),
        (3.0, 0.0, 0, log(3)),
        (1e-310, 0.0, 0, log(1e-310)),
        (inf, 0.0, 0, inf),
        (2.0, 3.0, 12, 8 * log(2)),
        (2.0, -1.0, -0.25, 0.5 * log(2)),
        (-2.0, 3.0, 12, nan),
        (-2.0, 2.0, -4, nan),
        (1e200, 1.5, 1.5e100, 1e300 * log(1e200)),
    ],
)
def test_powers(base: float, exponent: float, by_base: float, by_exponent: float) -> None:
    found = slopes(e.power, base, exponent)
    np.testing.assert_allclose(found[0], by_base, rtol=1e-13)
    np.testing.assert_allclose(found[1], by_exponent, rtol=1e-13)


def test_second_derivatives_of_powers_at_zero() -> None:
    for exponent, wanted in ((2.0, 2), (3.0, 0), (1.0, 0), (4.0, 0)):
        assert second(e.power, 0.0, exponent)[0, 0] == wanted
    np.testing.assert_allclose(second(e.power, 2.0, 0.0), [[0, 0.5], [0.5, log(2) ** 2]])


def test_powers_of_small_f16() -> None:
    """An inverse may be too large where the number itself is not zero."""
    found = slopes(e.power, 1e-7, 0.0, dtype=F16)
    assert found[0] == 0
    assert found[1] == np.float16(np.log(np.float16(1e-7)))


def test_a_power_of_complex_zero() -> None:
    assert slopes(e.power, 0j, 2 + 0j, dtype=C128)[0] == 0


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_the_angle_has_a_slope_at_every_distance(size: float) -> None:
    np.testing.assert_allclose(slopes(e.atan2, size, size), [0.5 / size, -0.5 / size])
    np.testing.assert_allclose(slopes(e.atan2, 0.0, size), [1 / size, 0])
    np.testing.assert_allclose(slopes(e.atan2, size, 0.0), [0, -1 / size])
    np.testing.assert_allclose(slopes(e.atan2, size, -inf), [0, 0])
    np.testing.assert_allclose(slopes(e.atan2, inf, size), [0, 0])


def test_remainders_know_their_quotient_exactly() -> None:
    assert slopes(e.remainder, -7.0, 2.0) == [1, 4]
    assert slopes(e.fmod, -7.0, 2.0) == [1, 3]
    third = np.float64(0.1)
    assert slopes(e.remainder, 0.3, float(third)) == [1, -2]  # 0.3 / 0.1 rounds to 3
    assert slopes(e.fmod, 5.0, inf) == [1, 0]


def test_steps_are_flat() -> None:
    for step in (e.floor, e.ceil, e.truncate, e.round_even):
        assert slopes(step, 1.7) == [0]
    assert slopes(e.floor_divide, 7.0, 2.0) == [0, 0]


def test_copysign_and_nextafter() -> None:
    assert slopes(e.copysign, 3.0, -0.0) == [-1, 0]
    assert slopes(e.copysign, -3.0, -2.0) == [1, 0]
    assert slopes(e.copysign, 0.0, -2.0) == [0, 0]
    assert slopes(e.nextafter, 3.0, 4.0) == [1, 0]


@pytest.mark.parametrize(
    ("function", "at", "wanted"),
    [
        (e.tanh, 0.0, 1),
        (e.sqrt, 0.0, inf),
        (e.cbrt, 0.0, inf),
        (e.log1p, 0.0, 1),
        (e.expm1, 0.0, 1),
        (e.logistic, -1000.0, 0),
        (e.logistic, 1000.0, 0),
        (e.tanh, 1000.0, 0),
        (e.erf, 1000.0, 0),
        (e.erf, 0.0, 2 / pi**0.5),
        (e.asin, 1.0, inf),
        (e.acos, 1.0, -inf),
        (e.acosh, 1.0, inf),
        (e.acosh, 1e200, 1e-200),
        (e.atan, inf, 0),
    ],
)
def test_where_functions_end_or_are_flat(function: Elementwise, at: float, wanted: float) -> None:
    np.testing.assert_allclose(slopes(function, at), [wanted], rtol=1e-14)


def test_what_is_not_chosen_has_a_zero_cotangent() -> None:
    """Also where the other one's is infinite."""
    types = [ArrayType(BOOL), ArrayType(F64), ArrayType(F64)]
    backward, _ = transpose_block(
        ANY, program(e.Select(), *types), (False, True, True), (True,), None
    )
    assert run(backward, True, inf) == [inf, 0]


def test_parts_of_complex_numbers() -> None:
    assert slopes(e.real, 1 + 2j, dtype=C128) == [1]
    assert slopes(e.imag, 1 + 2j, dtype=C128) == [0]


@pytest.mark.parametrize("dtype", [BF16, F16, F32, F64, C64, C128], ids=str)
def test_tangents_have_the_dtype_and_shape_of_what_they_belong_to(dtype: DType) -> None:
    vector, scalar = ArrayType(dtype, (name("n"), 3)), ArrayType(dtype)
    for primitive in ALL:
        if not e.ACCEPTS[primitive.accepts](dtype) or not primitive.result(dtype).is_inexact:
            continue
        for first in (vector, scalar):
            types = (first, *[vector] * (primitive.arity - 1))
            block = program(primitive, *types)
            active = (True,) + (False,) * (primitive.arity - 1)
            try:
                made, _ = jvp_block(ANY, block, active, (True,))
            except Failure as failure:
                assert primitive.name in NO_SLOPE_IN_THE_FIRST, primitive
                assert failure.diagnostics[0].code == "PSC901"  # noqa: PT017
                continue
            assert made.results[1].type == block.results[0].type, primitive
            late = tuple(index >= primitive.arity for index in range(len(made.params)))
            linear = split_block(ANY, made, late, (False, True)).late
            mask = tuple(index == len(linear.params) - 1 for index in range(len(linear.params)))
            backward, _ = transpose_block(ANY, linear, mask, (True,), mask)
            assert backward.out_types == (first,), primitive


def test_conversions_to_a_wider_dtype_narrow_cotangents() -> None:
    block = program(e.Convert(F32), ArrayType(BF16, (3,)))
    backward, _ = transpose_block(ANY, block, (True,), (True,))
    assert backward.out_types == (ArrayType(BF16, (3,)),)
    assert not halves(program(e.Convert(I32), ArrayType(F32))).late.results
    assert not halves(program(e.Bitcast(I32), ArrayType(F32))).late.results


def test_little_is_saved() -> None:
    """Of functions of one operand one array, of others three at most, but for a few."""
    vector = ArrayType(F32, (name("n"),))
    for primitive in ALL:
        if not e.ACCEPTS[primitive.accepts](F32) or not primitive.result(F32).is_inexact:
            continue
        if primitive.name in NO_SLOPE_IN_THE_FIRST:
            continue
        parts = halves(program(primitive, *[vector] * primitive.arity))
        most = SAVED.get(primitive.name, 2 * primitive.arity - 1)
        assert len(parts.saved) <= most, primitive


def test_a_scalar_stays_one_over_a_batch() -> None:
    size = name("batch")
    vector, scalar = ArrayType(F32, (name("n"),)), ArrayType(F32)
    block, _ = batch_block(ANY, program(e.multiply, vector, scalar), (True, False), size)
    assert len(block.equations) == 1
    block, _ = batch_block(ANY, program(e.multiply, scalar, scalar), (True, False), size)
    assert len(block.equations) == 1


def test_a_function_without_a_derivative_says_so() -> None:
    bare = Elementwise("bare", 1, "floating", np.exp, e.exp.emit)
    try:
        with pytest.raises(Failure) as caught:
            halves(program(bare, ArrayType(F32)))
        assert isinstance(caught.value.diagnostics[0], NoRule)
        with pytest.raises(Failure):
            transpose_block(ANY, program(e.exp, ArrayType(F32)), (True,), (True,))
    finally:
        del e.TABLE["bare"]
