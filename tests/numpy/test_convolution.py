"""Convolutions and pooling against loops."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from pscdsl._src.ir.builder import Program
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.codes.element_types import DtypeNotAccepted, DtypesDiffer
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import NotDivisible, WrongNumberOfAxes
from pscdsl.typing.codes.shapes_of_arguments import LengthsDiffer, TooFewElements
from pscdsl.typing.dims import Dim
from pscdsl.typing.dims import name as size_name
from pscdsl.typing.dtypes import F32
from tests.support.numpy_differential import agree, check, meaning, normal, refused
from tests.support.numpy_harness import build, run, run_compiled

pytestmark = [pytest.mark.jaxlib, pytest.mark.quick_code(but=4)]

PADDINGS: list[Any] = ["same", "valid", ((2, 1),)]


def pads(padding: Any, size: int, extent: int, stride: int) -> tuple[int, int]:
    if padding == "valid":
        return 0, 0
    if padding == "same":
        total = max((-(-size // stride) - 1) * stride + extent - size, 0)
        return total // 2, total - total // 2
    low, high = padding[0]
    return low, high


def slid(x: Any, size: int, stride: int, padding: Any, dilation: int, fill: float) -> Any:
    """The windows along the last axis, as a new last axis."""
    low, high = pads(padding, x.shape[-1], (size - 1) * dilation + 1, stride)
    rest = [(0, 0)] * (x.ndim - 1)
    x = np.pad(x, [*rest, (low, high)], constant_values=fill)
    extent = (size - 1) * dilation + 1
    starts = range(0, x.shape[-1] - extent + 1, stride)
    return np.stack([x[..., s : s + extent : dilation] for s in starts], -2)


@pytest.mark.sampled
@pytest.mark.parametrize("stride", [1, 2, 4])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("dilation", [1, 2])
def test_conv(stride: int, padding: Any, dilation: int) -> None:
    x, kernel = normal(2, 4, 10), normal(6, 2, 3)
    groups = 2
    windows = slid(x, 3, stride, padding, dilation, 0.0)  # n c p k
    parts = [
        np.einsum("ncpk,ock->nop", windows[:, 2 * g : 2 * g + 2], kernel[3 * g : 3 * g + 3])
        for g in range(groups)
    ]
    args = (x, kernel, stride, padding, dilation, groups)
    check("pscdsl.conv", *args, wanted=np.concatenate(parts, 1), symbolic=False, compiled=True)


@pytest.mark.sampled
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("padding", PADDINGS)
def test_pooling(stride: int, padding: Any) -> None:
    x = normal(2, 3, 10)
    facts = (Fact("<=", 2, size_name("n10")),)
    largest = slid(x, 2, stride, padding, 1, -np.inf).max(-1)
    check("pscdsl.max_pool", x, 2, stride, padding, wanted=largest, facts=facts, compiled=True)
    sums = slid(x, 2, stride, padding, 1, 0.0).sum(-1)
    numbers = slid(np.ones_like(x), 2, stride, padding, 1, 0.0).sum(-1)
    with np.errstate(invalid="ignore"):
        means = sums / numbers
    check("pscdsl.avg_pool", x, 2, stride, padding, wanted=means, facts=facts, compiled=True)
    found = run("pscdsl.avg_pool", x, 2, stride, padding, count_padding=True)
    agree(found, sums / 2)
    check("pscdsl.reduce_window", x, "sum", (2,), stride, padding, wanted=sums, facts=facts)


def test_two_spatial_axes() -> None:
    x, kernel = normal(1, 2, 5, 6), normal(3, 2, 2, 3)
    wanted = np.zeros((1, 3, 4, 4))
    for i, j in product(range(4), range(4)):
        wanted[..., i, j] = np.einsum("nchw,ochw->no", x[..., i : i + 2, j : j + 3], kernel)
    check("pscdsl.conv", x, kernel, wanted=wanted, symbolic=False, compiled=True)
    pooled = x[:, :, :4].reshape(1, 2, 2, 2, 2, 3).max((3, 5))
    agree(run("pscdsl.max_pool", x, (2, 3)), pooled)
    agree(run("pscdsl.avg_pool", x, (2, 3)), x[:, :, :4].reshape(1, 2, 2, 2, 2, 3).mean((3, 5)))


@pytest.mark.sampled
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_transposed_convolution(stride: int, width: int) -> None:
    x, kernel = normal(2, 3, 5), normal(4, 3, width)
    spread = np.zeros((2, 3, (5 - 1) * stride + 1))
    spread[..., ::stride] = x
    every = np.pad(spread, [(0, 0), (0, 0), (width - 1, max(width, stride) - 1)])
    whole = np.einsum("ncpk,ock->nop", slid(every, width, 1, "valid", 1, 0.0), kernel)
    assert whole.shape[-1] == 5 * stride + max(width - stride, 0)
    args = (x, kernel, stride)
    check("pscdsl.conv_transpose", *args, "valid", wanted=whole, symbolic=False, compiled=True)
    assert run("pscdsl.conv_transpose", *args, "same").shape == (2, 4, 5 * stride)
    if width >= stride:
        cut = (width - stride) // 2
        agree(run("pscdsl.conv_transpose", *args, "same"), whole[..., cut : cut + 5 * stride])


def test_half_precision() -> None:
    x, kernel = np.full((1, 3000, 4), 0.1, np.float16), np.full((1, 3000, 1), 0.1, np.float16)
    for runner in (run, run_compiled):
        found = runner("pscdsl.conv", x, kernel)
        assert found.dtype == np.float16
        agree(found.astype(float), np.full((1, 1, 4), 30.0), 1e-2)


def test_other_windows() -> None:
    x = normal(3, 4)
    for kind in ("sum", "prod", "max", "min"):
        combine: Any = getattr(np, kind)
        wanted: Any = np.array(
            [[combine(x[i : i + 2, j : j + 2]) for j in range(3)] for i in range(2)]
        )
        check("pscdsl.reduce_window", x, kind, 2, wanted=wanted, symbolic=False, compiled=True)
    small = np.full((4,), 100, np.int8)
    found = run("pscdsl.reduce_window", small, "sum", 2)
    assert found.dtype == np.int64
    agree(found, np.full(3, 200))


def typed(name: str, *args: Any, facts: tuple[Fact, ...] = ()) -> str:
    """The type of the result for symbolic sizes."""
    here = Program(Assumptions(facts)).current
    given = [
        here.parameter(ArrayType(F32, tuple(map(_size, x.split()))))
        if isinstance(x, str) and " " in x
        else x
        for x in args
    ]
    return str(meaning(name)(*given).type)


def _size(word: str) -> int | Dim:
    return int(word) if word.isdigit() else size_name(word)


def test_types_for_all_sizes() -> None:
    x, kernel = "b c h w", "o c 3 3"
    assert typed("pscdsl.conv", x, kernel, 1, "same") == "f32[b o h w]"
    assert typed("pscdsl.conv", x, kernel, 2, "same") == "f32[b o (h+1)//2 (w+1)//2]"
    assert typed("pscdsl.conv", x, kernel, 4, "same") == "f32[b o (h+3)//4 (w+3)//4]"
    assert typed("pscdsl.conv", x, kernel, 1, ((1, 1), (2, 2))) == "f32[b o h w+2]"
    assert typed("pscdsl.conv_transpose", x, kernel, 2, "same") == "f32[b o 2*h 2*w]"
    assert typed("pscdsl.max_pool", x, 2, None, "same") == "f32[b c (h+1)//2 (w+1)//2]"
    assert typed("pscdsl.max_pool", x, 2, 3, "same") == "f32[b c (h+2)//3 (w+2)//3]"
    large = (Fact("<=", 3, size_name("h")), Fact("<=", 3, size_name("w")))
    assert typed("pscdsl.conv", x, kernel, facts=large) == "f32[b o h-2 w-2]"
    assert typed("pscdsl.max_pool", x, 2, facts=large) == "f32[b c h//2 w//2]"


def test_strides_beyond_the_window_for_all_sizes() -> None:
    x, kernel = normal(2, 3, 10), normal(4, 3, 3)
    for name, args in (("conv", (x, kernel, 4, "same")), ("max_pool", (x, 2, 4, "same"))):
        wanted = run(f"pscdsl.{name}", *args)
        built = build(f"pscdsl.{name}", args, {}, symbolic=True)
        agree(built.evaluated(), wanted)
        agree(built.compiled(), wanted)


def test_windows_that_are_refused() -> None:
    x, kernel = normal(2, 4, 10), normal(6, 4, 3)
    finding = refused(TooFewElements, "pscdsl.conv", x, kernel, symbolic=True)
    assert finding.help() == "add `assert n10 >= n3`"
    refused(TooFewElements, "pscdsl.conv", x[..., :2], kernel)
    refused(TooFewElements, "pscdsl.max_pool", x, 11)
    refused(LengthsDiffer, "pscdsl.conv", x, kernel[:, :3])
    refused(NotDivisible, "pscdsl.conv", x, kernel[:5, :2], groups=2)
    refused(WrongNumberOfAxes, "pscdsl.conv", x, kernel[0])
    refused(WrongNumberOfAxes, "pscdsl.conv", x[0], kernel[0])
    refused(WrongNumberOfAxes, "pscdsl.max_pool", x[0], 2)
    refused(WrongNumberOfAxes, "pscdsl.reduce_window", x, "sum", (1, 1, 1, 1))
    refused(DtypesDiffer, "pscdsl.conv", x, kernel.astype(np.float32))
    refused(DtypeNotAccepted, "pscdsl.conv", x.astype(int), kernel.astype(int))
    mistakes: list[dict[str, Any]] = [
        {"strides": 0},
        {"strides": (1, 1)},
        {"padding": "most"},
        {"padding": ((1,),)},
        {"padding": (1, 2)},
        {"dilation": 0.5},
        {"groups": 0},
    ]
    for options in mistakes:
        refused(BadArguments, "pscdsl.conv", x, kernel, **options)
    refused(BadArguments, "pscdsl.reduce_window", x, "mean", 2)
    refused(BadArguments, "pscdsl.max_pool", x, (2, 2))
    refused(BadArguments, "pscdsl.max_pool", x, 0)
