"""Calls of kernels that leave open more than sizes: each kind of arguments has its own program."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32, i32


class Scaled(psc.Record):
    """Values with a static field."""

    values: f32["n"]
    factor: psc.Static[int]


class Named(NamedTuple):
    """The same as a tuple."""

    factor: psc.Static[int]
    values: f32["n"]


@psc.kernel
def scale(s: Scaled) -> f32["n"]:
    return s.values * s.factor


@psc.kernel
def twice(s: Scaled) -> Scaled:
    return Scaled(s.values * 2, s.factor * 2)


@psc.kernel
def scale_all(given: tuple[Named, ...]) -> f32["n"]:
    assert len(given) >= 1
    total = given[0].values * given[0].factor
    for each in given[1:]:
        total = total + each.values * each.factor
    return total


@psc.kernel
def affine(x: f32["n"], w: f32, b: f32["n"] | None = None) -> f32["n"]:
    return x * w if b is None else x * w + b


X = np.array([1, 2], np.float32)


def test_static_fields_decide_which_program_runs() -> None:
    for factor in (3, 4, 3, True, 1):
        np.testing.assert_array_equal(scale(Scaled(X, factor)), X * int(factor))


def test_static_fields_in_tuples() -> None:
    for factors in ((3,), (4,), (3, 4), (4, 3), (3, 4)):
        given = tuple([Named(factor, X * factor) for factor in factors])
        wanted = sum(X * factor * factor for factor in factors)
        np.testing.assert_array_equal(scale_all(given), np.asarray(wanted))


def test_static_fields_in_results() -> None:
    again = twice(Scaled(X, 3))
    assert again.factor == 6
    np.testing.assert_array_equal(again.values, 2 * X)


def test_arguments_that_may_be_none() -> None:
    w = np.float32(3)
    for b in (None, X, None, X):
        wanted = X * 3 if b is None else X * 3 + b
        np.testing.assert_array_equal(affine(X, w, b), wanted)
        np.testing.assert_array_equal(affine(X, w, b=b), wanted)
    np.testing.assert_array_equal(affine(X, 3), X * 3)
    with pytest.raises(psc.ArgumentError, match="argument `b` of `affine`"):
        affine(X, w, X[:, None])


def test_choices_have_names() -> None:
    absent = affine.lower(n=2, **{"b is None": True})
    given = affine.lower(n=2, **{"b is None": False})
    assert len(absent.program.body.params) == 2
    assert len(given.program.body.params) == 3
    two = scale_all.lower(n=2, **{"len(given)": 2})
    assert len(two.program.body.params) == 2
    assert affine.signature.enumerated() == ("b given or None",)


@psc.kernel
def shift(x: f32["n"], by: f32, at: i32) -> f32["n"]:
    return psc.update(x, at % x.shape[0], by)


def test_numbers_that_do_not_fit_are_refused_before_and_after_a_program_is_known() -> None:
    for _ in range(2):
        for by, at in ((1e300, 0), (1.0, 2**40), (10**400, 0), (1.0, -(2**31) - 1)):
            with pytest.raises(psc.ArgumentError, match=r"does not fit into [fi]32"):
                shift(X, by, at)
        np.testing.assert_array_equal(shift(X, 5.0, 1), [1, 5])
        assert np.isinf(np.asarray(shift(X, float("inf"), 1))[1])


def test_masks_are_not_dropped() -> None:
    for _ in range(2):
        with pytest.raises(psc.ArgumentError, match="a masked array"):
            shift(np.ma.masked_array(X, [True, False]), 1.0, 0)
        shift(X, 1.0, 0)


def test_byte_order_does_not_matter() -> None:
    for x in (X.astype(">f4"), X, X.astype(">f4")):
        np.testing.assert_array_equal(shift(x, 5.0, 1), [1, 5])


@psc.kernel
def sums(x: f32["*b n m"]) -> f32["*b"]:
    return np.sum(x, axis=(-2, -1))


@pytest.mark.parametrize(
    ("shape", "said"), [((), "0 axes, not at least 2"), ((3,), "1 axis, not at least 2")]
)
def test_how_many_axes_there_may_be(shape: tuple[int, ...], said: str) -> None:
    with pytest.raises(psc.ArgumentError, match=rf"\(it has {said}\)"):
        sums(np.zeros(shape, np.float32))
