"""Primitives of the user's own: what is said when a translation is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32

pytestmark = pytest.mark.quick_code


@psc.primitive
def twice(x: f32["n"]) -> f32["n"]:
    """Two times x."""
    return x + x


@psc.kernel
def four_times(x: f32["n"]) -> f32["n"]:
    return twice(twice(x))


X = np.arange(3, dtype=np.float32)


def test_without_a_translation_a_primitive_cannot_be_compiled() -> None:
    with pytest.raises(psc.CheckError, match="translation"):
        four_times(X)


def test_a_translation_of_another_type_is_refused() -> None:
    @twice.translation
    def scalar(hlo: psc.Hlo, x: Any) -> Any:
        return hlo.compare("EQ", x, x)

    with pytest.raises(TypeError, match=r"translation of `twice` gives tensor<3xi1>"):
        four_times(X)


def test_a_translation_is_used_for_every_equation() -> None:
    def doubled(hlo: psc.Hlo, x: Any) -> Any:
        return hlo.binary("add", x, x)

    psc.register_translation_rule(twice, doubled)
    np.testing.assert_array_equal(np.asarray(four_times(X)), 4 * X)
