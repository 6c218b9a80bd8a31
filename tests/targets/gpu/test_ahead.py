"""Kernels compiled for GPUs that are not here, with the plugin's compiler alone.

Skipped where the plugin is not installed: `make gpu-ahead` installs it.  What XLA makes of a
program is read: it computes what is written, with the precision of its types, in one order.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import re

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import bf16, f32, f64, i32
from pscdsl._src.targets.gpu.ahead import CompiledAhead
from pscdsl._src.targets.gpu.described import GPUS
from pscdsl._src.xla.device import UnsupportedDeviceError
from pscdsl._src.xla.runtime.plugins import find, versions

pytestmark = pytest.mark.jaxlib

try:
    find("cuda")
except UnsupportedDeviceError as problem:
    pytest.skip(f"{problem}", allow_module_level=True)


@psc.kernel
def as_written(x: f32["n"], y: f32["n"], z: f32["n"]) -> tuple[f32["n"], f32["n"], f32["n"]]:
    return x / y / z, x / 49, x + 7 - 7


@psc.kernel
def rounded(x: f64["n"], y: f32["n"]) -> tuple[f64["n"], f32["n"]]:
    return x.astype(np.float32).astype(np.float64), y.astype(bf16).astype(np.float32)


@psc.kernel(fast_math=True)
def fast(x: f32["n"], y: f32["n"], z: f32["n"]) -> f32["n"]:
    return x / y / z


@psc.kernel
def product(x: f32["n m"], y: f32["m k"]) -> f32["n k"]:
    return x @ y


@psc.kernel
def added(x: f32["n m"], i: i32["k"], u: f32["k m"]) -> f32["n m"]:
    return psc.update(x, i, u, combine="add")


@psc.kernel
def replaced(x: f32["n m"], i: i32["k"], u: f32["k m"]) -> f32["n m"]:
    return psc.update(x, i, u)


@psc.kernel
def solved(a: f64["n n"], b: f64["n"]) -> f64["n"]:
    return np.linalg.solve(a, b)


@psc.kernel
def convolved(x: f32["n c h w"], k: f32["o c a b"]) -> f32["n o h w"]:
    return psc.conv(x, k, padding="same")


def test_keys_of_stored_programs_have_the_versions_of_libraries() -> None:
    found = dict(text.rsplit(" ", 1) for text in versions("cuda"))
    assert {"cuda_runtime", "cudnn", "cublas", "cusolver"} <= found.keys()
    assert any(name.endswith("pjrt") for name in found)


def operations(made: CompiledAhead, name: str) -> int:
    return len(re.findall(rf"= \S+ {name}\(", made.text))


@pytest.mark.parametrize("name", GPUS)
def test_a_kernel_compiles_for_each_gpu(name: str) -> None:
    made = product.lower(n=256, m=128, k=64).compile_for(name)
    assert made.gpu is GPUS[name]
    assert made.seconds > 0
    assert any("cublas" in called for called in made.libraries)
    assert made.memory["arguments"] == 4 * (256 * 128 + 128 * 64)
    assert made.memory["results"] >= 4 * 256 * 64


@pytest.mark.parametrize("name", GPUS)
def test_the_code_is_for_the_gpu(name: str) -> None:
    made = as_written.lower(n=64).compile_for(name)
    assert f".target {made.gpu.architecture}" in made.ptx
    assert made.functions >= 1


def test_arithmetic_stays_as_it_is_written() -> None:
    made = as_written.lower(n=64).compile_for("h100")
    assert operations(made, "divide") == 3
    assert operations(made, "subtract") == operations(made, "add") == 1
    assert operations(fast.lower(n=64).compile_for("h100"), "divide") == 1


def test_no_rounding_is_left_out() -> None:
    assert operations(rounded.lower(n=64).compile_for("h100"), "convert") == 4


def test_products_keep_the_precision_of_f32() -> None:
    made = product.lower(n=512, m=512, k=512).compile_for("h100")
    assert "highest" in made.text.lower()
    assert "tf32" not in made.ptx + made.text.lower()


@pytest.mark.parametrize("kernel", [added, replaced])
def test_results_do_not_depend_on_the_order_of_threads(kernel: psc.Kernel[..., object]) -> None:
    made = kernel.lower(n=64, m=8, k=100).compile_for("h100")
    floats = re.findall(r"\b(?:atom|red)\.\S*\.f\d+", made.ptx)
    assert not floats


def test_the_memory_and_the_routines_of_libraries_are_told() -> None:
    made = solved.lower(n=64).compile_for("a100")
    assert made.libraries["cusolver_getrf_ffi"] == 1
    assert made.memory["temporaries"] > 64 * 64 * 8
    assert any("conv" in name for name in convolutions())


def convolutions() -> dict[str, int]:
    return convolved.lower(n=8, c=16, h=32, w=32, o=16, a=3, b=3).compile_for("h100").libraries


def test_derivatives_and_batches_compile() -> None:
    slope = psc.grad(total)
    assert slope.lower(n=64).compile_for("h100").functions
    many = psc.vmap(solved)
    assert "cusolver_getrf_ffi" in many.lower(n=8, batch=16).compile_for("h100").libraries


@psc.kernel
def total(x: f32["n"]) -> f32:
    return np.sum(np.tanh(x) ** 2)
