"""Initial values: their distributions against SciPy's, and matrices that are orthogonal."""

# SciPy and ml_dtypes are not fully typed.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from scipy import stats

import pscdsl as psc
from pscdsl import Float, Key
from pscdsl.stdlib import initializers as init


class Drawn(psc.Record, dims="i o"):
    """One matrix of each kind."""

    glorot_uniform: Float["i o"]
    glorot_normal: Float["i o"]
    he_uniform: Float["i o"]
    he_normal: Float["i o"]
    lecun_uniform: Float["i o"]
    lecun_normal: Float["i o"]
    truncated_normal: Float["i o"]


@psc.kernel
def matrices(key: Key, like: Float["i o"]) -> Drawn["i o"]:
    keys = psc.random.split(key, 7)
    shape, dtype = like.shape, like.dtype
    return Drawn(
        init.glorot_uniform(keys[0], shape, dtype),
        init.glorot_normal(keys[1], shape, dtype),
        init.he_uniform(keys[2], shape, dtype),
        init.he_normal(keys[3], shape, dtype),
        init.lecun_uniform(keys[4], shape, dtype),
        init.lecun_normal(keys[5], shape, dtype),
        init.truncated_normal(keys[6], shape, 0.5, dtype),
    )


@psc.kernel
def orthogonal(key: Key, like: Float["i o"]) -> Float["i o"]:
    return init.orthogonal(key, like.shape, 2.0, like.dtype)


@psc.kernel
def windows(
    key: Key, like: Float["o i h w"]
) -> tuple[Float["o i h w"], Float["o i h w"], Float["o i h w"]]:
    keys = psc.random.split(key, 3)
    shape, dtype = like.shape, like.dtype
    return (
        init.he_normal(keys[0], shape, dtype),
        init.glorot_uniform(keys[1], shape, dtype),
        init.orthogonal(keys[2], shape, dtype=dtype),
    )


@psc.kernel
def orthogonal_matrices(key: Key) -> Float["2000 3 3"]:
    return psc.map(lambda key: init.orthogonal(key, (3, 3)), psc.random.split(key, 2000))


def follows(sample: Any, distribution: Any) -> None:
    found: Any = stats.kstest(np.asarray(sample, np.float64).ravel(), distribution.cdf)
    assert found.pvalue > 1e-3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_matrices_have_the_distributions_of_the_papers(dtype: Any) -> None:
    i, o = 40, 90
    found = matrices(psc.random.key(1), np.zeros((i, o), dtype))
    variances = {"glorot": 2 / (i + o), "he": 2 / i, "lecun": 1 / i}
    for name, variance in variances.items():
        end = math.sqrt(3 * variance)
        uniform, normal = (getattr(found, f"{name}_{kind}") for kind in ("uniform", "normal"))
        assert uniform.dtype == normal.dtype == dtype
        follows(uniform, stats.uniform(-end, 2 * end))
        follows(normal, stats.norm(scale=math.sqrt(variance)))
    unit: Any = stats.truncnorm(-2, 2)
    assert init.TRUNCATED_DEVIATION == pytest.approx(unit.std(), rel=1e-14)
    follows(found.truncated_normal, stats.truncnorm(-2, 2, scale=0.5 / unit.std()))


def test_a_window_counts_as_often_as_it_is_met() -> None:
    o, i, h, w = 20, 10, 3, 5
    key = psc.random.key(2)
    normal, uniform, rows = windows(key, np.zeros((o, i, h, w), np.float32))
    follows(normal, stats.norm(scale=math.sqrt(2 / (i * h * w))))
    end = math.sqrt(6 / ((i + o) * h * w))
    follows(uniform, stats.uniform(-end, 2 * end))
    rows = np.asarray(rows).reshape(o, -1)
    np.testing.assert_allclose(rows @ rows.T, np.eye(o), atol=1e-6)


def test_the_shorter_side_is_orthogonal() -> None:
    for shape in ((40, 90), (7, 3), (1, 4)):
        a = np.asarray(orthogonal(psc.random.key(3), np.zeros(shape)))
        small = a @ a.T if shape[0] < shape[1] else a.T @ a
        np.testing.assert_allclose(small, 4 * np.eye(min(shape)), atol=1e-12)


def test_all_orthogonal_matrices_are_equally_likely() -> None:
    found = np.asarray(orthogonal_matrices(psc.random.key(4)))
    # A coordinate of a point on the sphere in space is uniform (Archimedes).
    for i, j in ((0, 0), (1, 2), (2, 1)):
        follows(found[:, i, j], stats.uniform(-1, 2))
    assert abs(np.linalg.det(found).mean()) < 0.1, "rotations and reflections"


def test_16_bits() -> None:
    found = orthogonal(psc.random.key(5), np.zeros((12, 30), ml_dtypes.bfloat16))
    assert found.dtype == ml_dtypes.bfloat16
    a = np.asarray(found).astype(np.float32)
    np.testing.assert_allclose(a @ a.T, 4 * np.eye(12), atol=0.1)


def test_a_vector_has_no_fans() -> None:
    @psc.kernel
    def vector(key: Key) -> Float["5"]:
        return init.he_normal(key, (5,))

    with pytest.raises(psc.CheckError, match="a matrix, or the window of a convolution"):
        vector(psc.random.key(0))


@pytest.mark.parametrize("draw", [init.glorot_uniform, init.he_normal, init.truncated_normal])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_dtypes_outside_of_kernels(draw: Any, dtype: Any) -> None:
    assert draw(psc.random.key(0), (2, 3), dtype=dtype).dtype == dtype
