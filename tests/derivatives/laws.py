"""What must hold of the derivatives of every subject: see `tests/derivatives/tables`."""

from __future__ import annotations

import numpy as np

from pscdsl.typing.array_types import ArrayType
from tests.derivatives.programs import SIZES, NDArray, assert_close, differences, like, pairing
from tests.derivatives.subject import Subject


def check_derivatives(given: Subject) -> None:
    """Values, first and second derivatives of a function of arrays."""
    x = given.active(given.given)
    found = given.derivatives.run(given.operands(x, 1, 2))
    value, tangent, back, second = given.split(found)
    if given.plain and all(isinstance(t, ArrayType) for _, t in given.value.function.parameters):
        assert_close(value, given.under_numpy(given.given))
    assert_close(value, given.value.run(given.given))
    d, e = given.directions(1), given.directions(2)
    limits = differences(lambda arrays: given.value.values(given.with_active(arrays)), x, d)
    assert_close(tangent, limits, 1e-7)
    np.testing.assert_allclose(
        pairing(given.cotangents, tangent), pairing(back, d), rtol=1e-9, atol=1e-9
    )

    def pulled(arrays: list[NDArray]) -> list[NDArray]:
        return given.split(given.derivatives.values(given.operands(arrays, 1, 2)))[2]

    assert_close(second, differences(pulled, x, e), 1e-7)
    swapped = given.split(given.derivatives.values(given.operands(x, 2, 1)))[3]
    np.testing.assert_allclose(pairing(second, d), pairing(swapped, e), rtol=1e-9, atol=1e-9)


def check_third(given: Subject) -> None:
    """Third derivatives."""
    x = given.active(given.given)

    def both(arrays: list[NDArray]) -> tuple[list[NDArray], list[NDArray]]:
        found = given.third.values(given.operands(arrays, 1, 2))
        return found[: len(x)], found[len(x) :]

    limits = differences(lambda arrays: both(arrays)[0], x, given.directions(1))
    given.third.run(given.operands(x, 1, 2))
    assert_close(both(x)[1], limits, 1e-7)


def check_products(given: Subject) -> None:
    """Four ways to the product of the second derivative with a direction."""
    operands = [*given.given, *given.directions(2), *given.cotangents]
    found = given.products.run(operands)
    count = len(given.directions(2))
    second = given.split(given.derivatives.values(given.operands(given.active(given.given), 1, 2)))
    for way in range(4):
        assert_close(found[way * count : (way + 1) * count], second[3], 1e-9)


def check_batches(given: Subject) -> None:
    """Derivatives of batches and batches of derivatives are loops of derivatives."""
    if given.has_records:
        return
    lanes = [given.active(given.drawn(seed)) for seed in range(SIZES["b"])]
    cotangents = [like(given.cotangents, 20 + lane) for lane in range(SIZES["b"])]
    rows = [np.stack(each) for each in zip(*lanes, strict=True)]
    cs = [np.stack(each) for each in zip(*cotangents, strict=True)]
    found = given.batches.run([*given.given, *rows, *cs])
    wanted: list[list[NDArray]] = []
    for lane, c in zip(lanes, cotangents, strict=True):
        operands = [
            *given.with_active(lane),
            *given.directions(1),
            *given.directions(2),
            *c,
        ]
        wanted.append(given.split(given.derivatives.values(operands))[2])
    stacked = [np.stack(each) for each in zip(*wanted, strict=True)]
    assert_close(found[: len(stacked)], stacked, 1e-9)
    assert_close(found[len(stacked) :], stacked, 1e-9)


def check_compiled(given: Subject) -> None:
    """XLA computes the same derivatives."""
    operands = given.operands(given.active(given.given), 1, 2)
    assert_close(given.derivatives.compiled(operands), given.derivatives.values(operands), 1e-9)
