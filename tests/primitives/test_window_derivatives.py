"""Derivatives of convolutions and of windows: what they are made of, and that XLA runs them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pscdsl._src.interpreters.replay import batch_block
from pscdsl._src.ir.primitive import NDArray
from pscdsl._src.ir.program import Block, Function
from pscdsl._src.primitives.windows import Convolution, ReduceWindow
from pscdsl._src.targets.pipeline import lower_module
from pscdsl._src.xla.compilation import compile_module
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import name
from pscdsl.typing.dtypes import F32
from tests.primitives.test_primitive_laws import ROWS
from tests.support.law_rows import Row
from tests.support.pullbacks import NOTHING, gradient, names, program, pullback, run

pytestmark = pytest.mark.quick_code

PLAIN = Convolution((1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1))
IMAGES = "f32[n c h w], f32[o c 3 3]"


def pooling(kind: str, *padding: tuple[int, int]) -> ReduceWindow:
    """Windows of 2 over the last two of three axes."""
    pads = padding or ((0, 0), (0, 0))
    return ReduceWindow(kind, (1, 2, 2), (1, 2, 2), ((0, 0), *pads), (1,) * 3, (1,) * 3)  # type: ignore[arg-type]


def test_a_convolution_is_run_backwards_by_two() -> None:
    _, backward, _ = pullback(program(PLAIN, IMAGES))
    assert sorted(set(names(backward))) == ["convolution", "reverse", "transpose"]
    assert names(backward).count("convolution") == 2


def test_a_kernel_of_single_elements_is_not_reversed() -> None:
    single = replace(PLAIN, padding=((0, 0), (0, 0)))
    _, backward, _ = pullback(program(single, "f32[n c h w], f32[o c 1 1]"))
    assert "reverse" not in names(backward)


@pytest.mark.parametrize("batched", [(True, False), (False, True), (True, True)])
def test_a_batch_of_convolutions_is_one(batched: tuple[bool, bool]) -> None:
    block, _ = batch_block(NOTHING, program(PLAIN, IMAGES), batched, name("batch"))
    assert names(block).count("convolution") == 1


def test_sums_over_windows_are_run_backwards_by_one_sum() -> None:
    _, backward, _ = pullback(program(pooling("sum"), "f32[n h+2 w+2]"))
    assert names(backward) == ["reduce_window"]


def test_extremes_over_windows_pad_nothing_where_each_window_sees_an_element() -> None:
    block = program(pooling("maximum"), "f32[n h+2 w+2]")
    early, backward, _ = pullback(block)
    assert "pad" not in names(early) + names(backward)
    _, backward, _ = pullback(program(pooling("maximum", (2, 0), (0, 0)), "f32[n h+2 w+2]"))
    assert "pad" in names(backward)


def test_the_first_of_equal_elements_of_a_window_takes_the_cotangent() -> None:
    x = np.array([[[1.0, 1.0], [0.0, 1.0]], [[0.0, 2.0], [3.0, 3.0]]])
    cotangent = np.array([[[5.0]], [[7.0]]])
    (found,) = gradient(pooling("maximum"), "f64[n 2 2]", [x], cotangent, n=2)
    assert found.tolist() == [[[5, 0], [0, 0]], [[0, 0], [7, 0]]]


def test_a_window_that_sees_nothing_has_no_cotangent() -> None:
    pool = pooling("maximum", (2, 0), (2, 0))
    x = np.array([[[1.0, 2.0], [4.0, 3.0]]])
    cotangent = np.array([[[10.0, 20.0], [30.0, 40.0]]])
    (found,) = gradient(pool, "f64[n 2 2]", [x], cotangent, n=1)
    assert found.tolist() == [[[0, 0], [40, 0]]]


def test_a_nan_takes_the_cotangent_of_its_window() -> None:
    x = np.array([[[1.0, np.nan], [4.0, np.nan]]])
    (found,) = gradient(pooling("minimum"), "f64[n 2 2]", [x], np.ones((1, 1, 1)), n=1)
    assert found.tolist() == [[[0, 1], [0, 0]]]


def compiled(
    block: Block, operands: list[NDArray], known: Assumptions, sizes: dict[str, int]
) -> list[NDArray]:
    """The results of a block, computed by XLA."""
    function = Function("test", tuple(sizes), known, block)
    executable = compile_module(lower_module(function, sizes))
    return [np.asarray(each) for each in executable.run(operands)]


def backwards_in_f32(primitive: str) -> list[Row]:
    """The rows whose operands are of f32."""
    return [row for row in ROWS[primitive] if all(each.dtype is F32 for each in row.operands)]


@pytest.mark.parametrize("row", backwards_in_f32("convolution"), ids=repr)
def test_xla_runs_convolutions_backwards(row: Row) -> None:
    _assert_compiled(row)


KINDS = ("sum", "maximum", "product")


@pytest.mark.parametrize("row", backwards_in_f32("reduce_window"), ids=repr)
def test_xla_runs_windows_backwards(row: Row) -> None:
    if getattr(row.primitive, "kind", "") in KINDS:
        _assert_compiled(row)


def _assert_compiled(row: Row) -> None:
    sizes = row.env()
    known = [fact for fact in row.facts.facts if fact.names() <= sizes.keys()]
    facts = Assumptions(tuple(known))
    types = ", ".join(map(str, row.operands))
    block = program(row.primitive, types, facts)
    early, backward, places = pullback(block, facts)
    operands = list(row.draw_smooth(np.random.default_rng(0)))
    results = run(early, operands, facts, sizes)
    rng = np.random.default_rng(1)
    cotangents = [np.asarray(rng.normal(size=each.shape), np.float32) for each in results[:1]]
    saved = [operands[at] if at >= 0 else results[~at] for at in places]
    wanted = run(backward, [*saved, *cotangents], facts, sizes)
    found = compiled(backward, [*saved, *cotangents], facts, sizes)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-4)
