"""What programs cost, beside what XLA counts, and how the command prints it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32, f64, i32
from pscdsl._src.analysis.cost import cost
from pscdsl._src.cli import main
from pscdsl._src.kernels.kernel import Kernel
from pscdsl._src.transforms.simplify import simplify
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


UNROLLED = """
import numpy as np
import pscdsl as psc
from pscdsl import Float, f64

@psc.kernel
def powers(x: Float["n"], k: psc.Static[int]) -> Float["n"]:
    y = x
    for _ in (0,) * k:
        y = y * x
    return y

@psc.kernel
def columns(x: f64["n"], k: psc.Static[int]) -> f64["n k"]:
    return 2 * np.broadcast_to(x[:, None], (x.shape[0], k))
"""


def test_costs_are_those_of_static_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "file.py"
    path.write_text(UNROLLED)
    assert main(["cost", str(path)]) == 0
    out = capsys.readouterr().out
    assert "  where Float=f32, k=3\n  flops     3*n\n" in out
    assert "k over 0, 1, 2, 3, 4; no other cost is known\ncolumns" in out
    assert "Static[int]) -> f64[n k]\n  flops     k*n\n" in out
    assert main(["cost", str(path), "--dims", "k=7", "--format", "json"]) == 0
    found = {each["kernel"]: each for each in json.loads(capsys.readouterr().out)}
    assert (found["powers"]["flops"], found["columns"]["flops"]) == ("7*n", "7*n")


@psc.kernel
def added(x: f32["n m"], y: f32["n m"]) -> f32["n m"]:
    return x * y + x


@psc.kernel
def summed(x: f32["n m"]) -> f32["n"]:
    return np.sum(x, axis=1)


@psc.kernel
def largest(x: f32["n m"]) -> f32["m"]:
    return np.max(x, axis=0)


@psc.kernel
def batches(a: f32["m k n"], b: f32["m n k"]) -> f32["m k k"]:
    return a @ b


@psc.kernel
def outer(a: f32["n"], b: f32["m"]) -> f32["n m"]:
    return np.outer(a, b)


@psc.kernel
def affine(w: f32["k k"], h: f32["k"]) -> f32["k"]:
    return w @ h


@psc.kernel
def repeated(w: f32["k k"], h: f32["k"]) -> f32["k"]:
    return psc.fori_loop(0, 40, lambda _, h: affine(w, h), h)


@psc.kernel
def limited(a: f64["n"]) -> f64["n"]:
    return psc.while_loop(lambda x: np.max(x) > 1, lambda x: x / 2, a, max_steps=20)


def counted(kernel: Kernel[Any, Any], what: str = "flops") -> float:
    """What XLA counts in the compiled program."""
    return kernel.compile(**here(kernel)).executable.cost_analysis()[what]


@pytest.mark.parametrize("kernel", [added, batches, outer, affine])
def test_operations_are_those_that_xla_counts(kernel: Kernel[Any, Any]) -> None:
    assert cost(simplify(kernel.ir())).at(here(kernel)).flops == counted(kernel)


def test_a_reduction_takes_one_operation_for_each_element() -> None:
    """XLA counts none for the first of each row."""
    taken = cost(simplify(summed.ir())).at(here(summed)).flops
    assert taken == SIZES["n"] * SIZES["m"] == counted(summed) + SIZES["n"]


def test_a_loop_costs_its_steps_of_which_xla_counts_one() -> None:
    found = cost(simplify(repeated.ir()))
    assert found.flops == 40 * cost(affine.ir()).flops
    assert found.at(here(repeated)).flops == pytest.approx(40 * counted(repeated), rel=1e-3)
    found = cost(simplify(recurrence.ir())).at(here(recurrence))
    assert isinstance(found.flops, int)
    assert found.flops >= SIZES["n"] * counted(affine)


def test_a_loop_with_a_bound_counts_with_it() -> None:
    found = cost(simplify(limited.ir()))
    assert found.loops == ()
    assert found.flops == 20 * name("n") + 21 * (name("n") + 3) + 20


@pytest.mark.parametrize("kernel", [added, summed, batches, outer, affine, product, products])
def test_no_more_bytes_are_moved_than_is_said(kernel: Kernel[Any, Any]) -> None:
    found = cost(simplify(kernel.ir())).at(here(kernel))
    assert isinstance(found.bytes, int)
    assert counted(kernel, "bytes accessed") <= found.bytes


@pytest.mark.parametrize("kernel", [summed, batches, affine, product, products])
def test_bytes_of_what_is_not_fused_are_those_that_xla_counts(kernel: Kernel[Any, Any]) -> None:
    assert cost(simplify(kernel.ir())).at(here(kernel)).bytes == counted(kernel, "bytes accessed")
