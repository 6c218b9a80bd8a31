"""Convolutions that are computed in ways of our own agree with sums of products.

Each is compiled with its form and, to see that the form is used, without it.
"""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

import pscdsl as psc
from pscdsl import Bool, Float
from tests.support.used_forms import close, normal, used

pytestmark = pytest.mark.jaxlib


@psc.kernel
def convolved(x: Float["n c h w"], k: Float["o c a b"]) -> Float["n o h w"]:
    return psc.conv(x, k, padding="same")


@psc.kernel
def convolved_again(x: Float["n c h w"], k: Float["c c a b"]) -> Float["n c h w"]:
    return psc.fori_loop(0, 2, lambda _, x: convolved(x, k), x)


@psc.kernel
def convolved_or_not(x: Float["n c *s"], k: Float["c c *a"], yes: Bool) -> Float["n c *s"]:
    return psc.cond(yes, lambda: psc.conv(x, k, padding="same"), lambda: x)


@psc.kernel
def depthwise(x: Float["n c h w"], k: Float["2*c 1 a b"]) -> Float["n 2*c h w"]:
    return psc.conv(x, k, padding="same", groups=x.shape[1])


@psc.kernel
def strided(x: Float["n c 2*h 3*w"], k: Float["o c a b"]) -> Float["n o h w"]:
    return psc.conv(x, k, strides=(2, 3), padding="same", dilation=(1, 2))


@psc.kernel
def spread(x: Float["n c h w"], k: Float["c 1 3 2"]) -> Float["n c 2*h+1 2*w"]:
    return psc.conv_transpose(x, k, strides=2, groups=x.shape[1])


@psc.kernel
def positive_parts(
    x: Float["n c h w"], k: Float["o c a b"]
) -> tuple[Float["n o h w"], Float["n o h w"]]:
    positive = np.maximum(convolved(x, k), 0)
    return positive, np.cumsum(positive, axis=3)


def slow_conv(x: Any, k: Any, strides: Any, dilation: Any, groups: int) -> Any:
    """The convolution with padding "same", in f64."""
    x, k = x.astype(np.float64), k.astype(np.float64)
    places = [-(-size // step) for size, step in zip(x.shape[2:], strides, strict=True)]
    reach = [(size - 1) * step for size, step in zip(k.shape[2:], dilation, strict=True)]
    totals = [
        max((count - 1) * step + far + 1 - size, 0)
        for count, step, far, size in zip(places, strides, reach, x.shape[2:], strict=True)
    ]
    x = np.pad(x, [(0, 0), (0, 0), *((total // 2, total - total // 2) for total in totals)])
    x = np.pad(x, [(0, 0), (0, 0), (0, 9), (0, 9)])
    outputs, taken = k.shape[:2]
    result = np.zeros((len(x), outputs, *places))
    for o in range(outputs):
        first = o // (outputs // groups) * taken
        for i, j in np.ndindex(*k.shape[2:]):
            rows = i * dilation[0] + np.arange(places[0]) * strides[0]
            columns = j * dilation[1] + np.arange(places[1]) * strides[1]
            seen = x[:, first : first + taken][:, :, rows][:, :, :, columns]
            result[:, o] += np.einsum("nchw,c->nhw", seen, k[o, :, i, j])
    return result


@pytest.mark.parametrize("dtype", [np.float32, np.float64, bfloat16])
def test_convolutions_as_shifted_products(monkeypatch: pytest.MonkeyPatch, dtype: Any) -> None:
    def check(kernel: Any, x: Any, k: Any, strides: Any, dilation: Any, groups: int) -> None:
        (found,) = used("convolutions", monkeypatch, kernel, x, k)
        terms = 1 if dtype is bfloat16 else k[0].size
        close(found, slow_conv(x, k, strides, dilation, groups), terms)

    x, k = normal(2, 3, 33, 40, dtype=dtype), normal(16, 3, 3, 2, dtype=dtype)
    check(convolved, x, k, (1, 1), (1, 1), 1)
    x, k = normal(2, 5, 7, 6, dtype=dtype), normal(10, 1, 3, 5, dtype=dtype)
    check(depthwise, x, k, (1, 1), (1, 1), 5)
    x, k = normal(4, 2, 64, 96, dtype=dtype), normal(8, 2, 3, 3, dtype=dtype)
    check(strided, x, k, (2, 3), (1, 2), 1)


def test_spread_convolutions(monkeypatch: pytest.MonkeyPatch) -> None:
    x, k = normal(2, 3, 5, 6), normal(3, 1, 3, 2)
    (found,) = used("convolutions", monkeypatch, spread, x, k)
    wanted = np.zeros((2, 3, 11, 12))
    for i, j in np.ndindex(3, 2):  # slides without being turned: its last element comes first
        wanted[:, :, i : i + 9 : 2, j : j + 11 : 2] += x * k[:, 0, 2 - i, 1 - j, None, None]
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, bfloat16])
def test_convolutions_in_loops(monkeypatch: pytest.MonkeyPatch, dtype: Any) -> None:
    x, k = normal(2, 16, 9, 17, dtype=dtype), normal(16, 16, 3, 2, dtype=dtype)
    (found,) = used("convolutions", monkeypatch, convolved_again, x, k)
    wanted = slow_conv(x, k, (1, 1), (1, 1), 1)
    wanted = slow_conv(wanted.astype(dtype), k, (1, 1), (1, 1), 1)
    close(found, wanted, 8 if dtype is bfloat16 else 96)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolutions_in_branches(monkeypatch: pytest.MonkeyPatch, axes: int) -> None:
    x = normal(2, 16, *{1: (700,), 2: (21, 17), 3: (8, 7, 6)}[axes], dtype=np.float32)
    k = normal(16, 16, *(3,) * axes, dtype=np.float32)
    (found,) = used("convolutions", monkeypatch, convolved_or_not, x, k, np.True_)
    exact = convolved_or_not(x.astype(np.float64), k.astype(np.float64), np.True_)
    close(found, np.asarray(exact), 16 * 3**axes)


def test_convolutions_of_few_channels_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    x, k = normal(3, 3, 33, 40, dtype=np.float32), normal(16, 3, 3, 2, dtype=np.float32)
    positive, kept = used("computed_once", monkeypatch, positive_parts, x, k)
    exact = slow_conv(x, k, (1, 1), (1, 1), 1)
    close(positive, np.maximum(exact, 0), k[0].size)
    close(kept, np.cumsum(np.maximum(exact, 0), axis=3), 40 * k[0].size)
