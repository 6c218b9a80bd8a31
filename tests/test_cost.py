"""What programs cost, beside what XLA counts, and how the command prints it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32, f64, i32
from pscdsl.cli import main
from pscdsl.cost import cost
from pscdsl.kernel import Kernel
from pscdsl.transforms.simplify import simplify
from pscdsl.typing.dims import name


@psc.kernel
def product(a: f32["m k"], b: f32["k n"]) -> f32["m n"]:
    return a @ b


@psc.kernel
def products(a: f64["m k"], b: f64["k n"], c: f64["n m"]) -> f64["m m"]:
    return (a @ b) @ c


@psc.kernel
def size(a: f32["m k"], b: f32["k n"]) -> f32:
    return np.sum(product(a, b))


@psc.kernel
def recurrence(w: f64["k k"], xs: f64["n k"], h: f64["k"]) -> f64["n k"]:
    def step(h: Any, x: Any) -> Any:
        h = np.tanh(w @ h + x)
        return h, h

    return psc.scan(step, h, xs)[1]


@psc.kernel
def loss(w: f64["k k"], xs: f64["n k"], h: f64["k"]) -> f64:
    return np.sum(recurrence(w, xs, h) ** 2)


@psc.kernel
def branches(x: f64["n m"], flag: i32) -> f64["n"]:
    return psc.cond(flag > 0, lambda x: np.sum(x * x, axis=1), lambda x: x[:, 0], x)


@psc.kernel
def root(a: f64["n"]) -> f64["n"]:
    return psc.while_loop(lambda x: np.max(np.abs(x * x - a)) > 1e-9, lambda x: (x + a / x) / 2, a)


SIZES = {"m": 64, "k": 96, "n": 80}
KERNELS: list[Kernel[Any, Any]] = [
    product,
    products,
    size,
    psc.grad(size, argnums=(0, 1)),
    recurrence,
    loss,
    psc.grad(loss),
    branches,
    root,
]


def here(kernel: Kernel[Any, Any]) -> dict[str, int]:
    """The sizes that a kernel has."""
    return {each: SIZES[each] for each in kernel.ir().dims}


@pytest.mark.parametrize("kernel", [product, products])
def test_operations_of_products_are_those_that_xla_counts(kernel: Kernel[Any, Any]) -> None:
    executable = kernel.compile(**here(kernel)).executable
    assert cost(kernel.ir()).at(here(kernel)).flops == executable.cost_analysis()["flops"]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_programs_take_no_more_memory_than_is_said(kernel: Kernel[Any, Any]) -> None:
    found = cost(simplify(kernel.ir())).at(here(kernel))
    memory = kernel.compile(**here(kernel)).executable.memory()
    assert found.arguments == memory["arguments"]
    count = len(kernel.ir().body.results)
    assert found.results == memory["results"] - (8 * count if count > 1 else 0)  # the table of them
    taken = memory["arguments"] + memory["results"] + memory["temporaries"]
    assert isinstance(found.peak, int)
    assert taken <= found.peak + 4096  # what loops count with, and what is aligned


def test_costs_are_polynomials_in_the_sizes() -> None:
    m, k, n = name("m"), name("k"), name("n")
    found = cost(product.ir())
    assert found.flops == 2 * m * k * n
    assert found.peak == 4 * (m * k + k * n + m * n)
    assert cost(recurrence.ir()).flops == n * (2 * k * k + 11 * k)


def test_a_loop_without_a_bound_is_named() -> None:
    [place] = cost(root.ir()).loops
    assert place.path.endswith("test_cost.py")
    assert not cost(loss.ir()).loops


FILE = """
import numpy as np
import pscdsl as psc
from pscdsl import f32

@psc.kernel
def f(x: f32["n"]) -> f32:
    return np.sum(x * x)
"""


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file.py"
    path.write_text(FILE)
    assert main(["cost", str(path)]) == 0
    assert "flops     2*n\n" in capsys.readouterr().out
    assert main(["cost", f"{path}:f", "--grad", "--dims", "n=1000", "--format", "json"]) == 0
    [found] = json.loads(capsys.readouterr().out)
    assert (found["arguments"], found["results"]) == (4000, 4000)
    assert main(["cost", str(path), "--dims", "k=3"]) == 2
    assert "k" in capsys.readouterr().err
