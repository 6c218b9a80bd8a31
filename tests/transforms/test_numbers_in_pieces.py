"""Axes whose length is a number are cut, and lengths that are multiples of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f64
from pscdsl._src.analysis.verify import verify
from pscdsl._src.ir.program import evaluate
from pscdsl._src.transforms.partition import Partitioned
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import parse, variable
from pscdsl.typing.facts import Fact
from pscdsl.typing.signatures import Choice
from tests.transforms.devices import run

MESHES = {"data": 1}, {"data": 2}, {"data": 4}, {"data": 2, "model": 2}, {"model": 4}


@psc.kernel
def centred(x: f64["8@data d"]) -> tuple[f64["8@data d"], f64["d"]]:
    return x - np.mean(x, axis=0), np.max(x, axis=0)


@psc.kernel
def flat(x: f64["8@data d"]) -> f64["8*d@data"]:
    return np.reshape(2 * x, 8 * x.shape[1])


@psc.kernel
def split(x: f64["16@data d@model"], y: f64["8@data 2"]) -> tuple[f64["16@data d"], f64["8 2 d"]]:
    rows = np.reshape(y, 16)
    return x * rows[:, None], np.reshape(x, (8, 2, x.shape[1]))


@psc.kernel
def swapped(x: f64["8@data 12@model"]) -> f64["8@model 12@data"]:
    return psc.place(x, "_@model _@data") + 1


@psc.kernel
def both(x: f64["8@data@model d"], y: f64["n@data d"]) -> tuple[f64["d"], f64["8@data d"]]:
    return np.sum(y, axis=0) * np.prod(x, axis=0), np.cumsum(x, axis=0)


@psc.kernel
def moved(x: f64["8 d"], y: f64["8@data 1"]) -> f64["8@data d"]:
    def total(x: f64["8 d"]) -> f64:
        return np.sum(np.sin(x * y))

    return psc.grad(total)(x)


@psc.kernel
def single(x: f64["1@data d"], y: f64["8@data d"]) -> f64["8@data d"]:
    return x + y


@psc.kernel
def product(x: f64["n*m@data"], y: f64["n@data m"]) -> f64["n@data m"]:
    return np.reshape(x, y.shape) + y


@psc.kernel
def only_in_results(x: f64["n d"]) -> tuple[f64["n@data d"], f64["8@model"]]:
    return x, np.arange(8.0)


KERNELS = centred, flat, split, swapped, both, moved, only_in_results


def _operands(kernel: Any) -> tuple[dict[str, int], list[Any]]:
    rng, sizes = np.random.default_rng(0), {"d": 4, "n": 8}
    types = kernel.ir().body.in_types
    return sizes, [rng.normal(size=[_number(n, sizes) for n in type_.shape]) for type_ in types]


def _number(size: Any, sizes: dict[str, int]) -> int:
    return size if isinstance(size, int) else sizes[str(size)]


def _program(kernel: Any, mesh: dict[str, int]) -> Partitioned:
    made: Partitioned = kernel.reading.definition.partitioned(kernel.ir(), Choice(), tuple(mesh))
    verify(made.function)
    return made


@pytest.mark.parametrize("mesh", MESHES, ids=str)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda each: each.name)
def test_pieces_of_numbers(kernel: Any, mesh: dict[str, int]) -> None:
    sizes, operands = _operands(kernel)
    wanted = evaluate(kernel.ir(), sizes, operands)
    found = run(_program(kernel, mesh), operands, sizes, mesh)
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_numbers_without_equal_pieces_are_refused() -> None:
    for kernel, says in ((centred, "size 8 is cut"), (single, "size 1 is cut")):
        with pytest.raises(Failure, match=says):
            _program(kernel, {"data": 3}).sizes({"d": 4}, {"data": 3})
    with pytest.raises(Failure, match="size 4 is cut"):  # 12 has pieces, 8 has not
        _program(swapped, {"data": 3, "model": 4}).sizes({}, {"data": 3, "model": 3})


def test_a_name_that_is_cut_anyway_cuts_a_product() -> None:
    program, mesh, sizes = _program(product, {"data": 4}), {"data": 4}, {"n": 4, "m": 3}
    operands = [np.arange(12.0), np.ones((4, 3))]
    (found,) = run(program, operands, sizes, mesh)
    np.testing.assert_array_equal(found, np.arange(12.0).reshape(4, 3) + 1)


def test_products_that_are_numbers_are_replaced() -> None:
    m, n, data = map(variable, ("m", "n", "data"))
    known = Assumptions((Fact("==", 8, data * m), Fact("==", n, data * parse("k"))))
    assert known.equal(data * m * n, 8 * n)
    assert known.equal(3 * data * m * n + n, 25 * n)
    assert not known.equal(data * m * n, 7 * n)
    assert not known.equal(m * n, 8 * n)
