"""What is emitted for a GPU: nothing that belongs to CPUs, and no primitive that it lacks."""

from __future__ import annotations

import re

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import c64, f32, f64, i32
from pscdsl._src.kernels.emission import emitted, target_of
from pscdsl._src.targets.cpu.table import CPU
from pscdsl._src.targets.gpu.described import GPUS
from pscdsl._src.targets.gpu.table import CUDA
from pscdsl._src.targets.tpu import TPU
from pscdsl._src.xla.device import Device
from pscdsl._src.xla.emit.context import module_text
from tests.golden_modules import programs, sizes_near

pytestmark = pytest.mark.jaxlib


@psc.kernel
def factored(a: f32["n n"], b: f32["n"]) -> tuple[f32["n"], f32["n n"], f32["n"]]:
    q, _ = np.linalg.qr(a)
    return np.linalg.solve(a, b), q, np.linalg.eigvalsh(a + a.T)


@psc.kernel
def roots(a: f64["n n"]) -> f64["n"]:
    def step(_: i32, total: f64["n"]) -> f64["n"]:
        return total + np.abs(np.linalg.eigvals(a))

    return psc.fori_loop(0, 3, step, np.zeros(a.shape[0]))


@psc.kernel
def values(a: c64["n m"]) -> f32["n"]:
    assert a.shape[0] <= a.shape[1]
    return np.linalg.svd(a, compute_uv=False)


def test_a_gpu_has_no_form_of_the_cpu() -> None:
    assert [*CPU.forms()]
    assert not [*CUDA.forms()]
    assert not CUDA.passes
    assert not CUDA.options
    own = {each.rule for row in CUDA.rewrites.values() for each in row}
    assert not own & {each.rule for row in CPU.rewrites.values() for each in row}


def test_linear_algebra_calls_cusolver() -> None:
    text = factored.lower(n=5).text(target="h100")
    called = set(re.findall(r"custom_call @(\w+)", text))
    names = "getrf", "geqrf", "orgqr", "syevd"
    assert called == {f"cusolver_{name}_ffi" for name in names}
    assert "lapack" not in text
    assert "lower = true" in text
    assert "algorithm = 0 : ui8" in text


def test_a_wide_matrix_is_decomposed_by_its_adjoint() -> None:
    text = values.lower(n=3, m=7).text(target="a100")
    assert re.search(r"custom_call @cusolver_gesvd_ffi\(.*tensor<7x3xcomplex<f32>>", text)
    assert "compute_uv = false" in text
    assert "transposed = false" in text


def test_what_a_gpu_cannot_compute_is_refused_where_it_stands() -> None:
    with pytest.raises(psc.CheckError, match="PSC953") as refused:
        roots.lower(n=4).text(target="l4")
    (finding,) = refused.value.diagnostics
    assert finding.message() == "not supported yet: `eig` on devices of target `cuda`"
    assert "eigh" in (finding.help() or "")
    assert "eigvals" in str(refused.value)
    assert "lapack_dgeev_ffi" in roots.lower(n=4).text()


def test_a_target_that_is_not_described_is_named() -> None:
    with pytest.raises(ValueError, match=f"no target `h1000`: {', '.join(GPUS)}"):
        roots.lower(n=4).text(target="h1000")


def test_a_tpu_factors_no_matrices_yet() -> None:
    lowered = factored.lower(n=3).specialisation
    with pytest.raises(psc.CheckError, match="PSC953"):
        emitted(lowered.program, lowered.sizes, device=Device("tpu"))
    assert target_of(Device("tpu")) is TPU


def test_programs_without_linear_algebra_are_those_for_any_device() -> None:
    """Primitives' own rules are right on every device; a GPU's table changes few primitives."""
    same = count = 0
    for name, function in programs(("examples",), choices=1):
        sizes = sizes_near(function, 8)
        if sizes is None or "user_primitive" in name:
            continue
        gpu = module_text(emitted(function, sizes, device=Device("cuda")))
        portable = module_text(emitted(function, sizes, portable=True))
        assert "lapack_" not in gpu
        assert "xla_cpu" not in gpu
        count += 1
        same += gpu == portable
    assert same > count / 2
