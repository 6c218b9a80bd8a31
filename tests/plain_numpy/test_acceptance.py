"""The programs that are kernels already remain so, and the harness that measures it is right."""

from __future__ import annotations

import numpy as np
import pytest

from pscdsl import f64
from tests.plain_numpy.acceptance import Outcome, decorator, outcome, source
from tests.plain_numpy.program import Program, difference, sizes
from tests.plain_numpy.programs import PROGRAMS

pytestmark = pytest.mark.quick_code

ACCEPTED = frozenset(
    (
        "gemm k2mm k3mm atax bicg mvt gemver gesummv doitgen cholesky2 gramschmidt covariance2 "
        "jacobi_1d jacobi_2d seidel_2d heat_3d fdtd_2d hdiff deriche cavity_flow channel_flow "
        "softmax mlp arc_distance compute scattering_self_energies go_fast nussinov floyd_warshall "
        "symm syrk syr2k trmm trisolv lu ludcmp cholesky durbin correlation covariance "
        "conv2d_bias resnet adi vadv nbody azimint_naive azimint_hist crc16 stockham_fft "
        "mandelbrot1 spmv"
    ).split()
)
"""Add a name when its program becomes a kernel: `python -m tests.plain_numpy` says which are."""

OFFSET = 2.0


def helped(x: f64["n"]) -> f64["n"]:
    return x * OFFSET


def accepted(x: f64["n"]) -> f64["n"]:
    assert x.shape[0] >= 2
    return helped(x) + 1.0


def printing(x: f64["n"]) -> f64["n"]:
    print("once")
    return x


def writing(x: f64["n"], y: f64["n"]) -> f64["n"]:
    y[:] = x
    return x + 1.0


def program(function: object, *numbers: int) -> Program:
    assert callable(function)
    writes = ("y",) if function is writing else ()
    return Program(function, lambda draw, s: (draw.reals(s.n),), sizes("n", *numbers), writes)


@pytest.mark.parametrize(
    "program", [each for each in PROGRAMS if each.name in ACCEPTED], ids=lambda each: each.name
)
def test_what_was_accepted_is_accepted_and_equal(program: Program) -> None:
    found = outcome(program)
    assert found.equal, str(found)


def test_what_is_written_may_be_returned_instead() -> None:
    (mvt,) = [each for each in PROGRAMS if each.name == "mvt"]
    found = outcome(mvt, results=True)
    assert found.equal, str(found)


def test_names_are_those_of_programs() -> None:
    names = [each.name for each in PROGRAMS]
    assert len(names) == len(set(names)) == 54
    assert set(names) >= ACCEPTED


def test_an_accepted_program_is_run_with_its_helpers() -> None:
    found = outcome(program(accepted, 0, 2, 3))
    assert (found.verdict, found.apart, found.equal) == ("accepted", 0.0, True)
    assert found.runs == 2, "without the size 0"
    assert found.changed == 4, "a decorator, two headers and an assert"


def test_a_call_that_raises_is_not_accepted() -> None:
    found = outcome(program(accepted, 2, 1))
    assert found.verdict == "fails"
    assert "n=1" in found.message
    assert not found.equal


def test_a_refused_program_has_its_first_finding() -> None:
    found = outcome(program(printing, 2))
    assert (found.verdict, found.runs) == ("refused", 0)
    assert found.code.startswith("PSC")
    assert found.message


def test_writes_are_declared() -> None:
    assert '@psc.kernel(writes=("y",))\ndef writing(' in source(program(writing, 2))
    assert decorator(("x", "y")) == '@psc.kernel(writes=("x", "y"))'


def test_writes_are_results_if_asked() -> None:
    text = source(program(writing, 2), results=True)
    assert "@psc.kernel\ndef writing(" in text
    assert "-> tuple[f64['n'], f64['n']]:" in text
    assert "    y = y.copy()\n" in text
    assert "return (x + 1.0, y)" in text


def test_results_that_differ_are_not_equal() -> None:
    assert not Outcome("f", 1, "accepted", apart=1e-3, tolerance=1e-6).equal
    assert Outcome("f", 1, "accepted", apart=1e-7, tolerance=1e-6).equal


def test_differences_are_parts_of_the_largest_number() -> None:
    wanted = np.array([1.0, 100.0, np.nan, np.inf])
    assert difference(wanted, wanted) == 0.0
    assert difference(np.array([2.0, 100.0, np.nan, np.inf]), wanted) == 0.01
    assert difference(np.array([1.0, 100.0, 0.0, np.inf]), wanted) == np.inf
    assert difference(np.array([1.0, 100.0, np.nan, 0.0]), wanted) == np.inf
    assert difference(wanted[:2], wanted) == np.inf
    assert difference(np.array([1, 2]), np.array([1, 3])) == np.inf
    assert difference(np.array([1.0]), np.array([1])) == np.inf
    assert difference(np.int32(2), 2) == 0.0
    assert difference(np.int32(2), np.int64(2)) == np.inf
    assert difference(np.float32(2), 2) == np.inf
    assert difference(np.ones(2, np.float32), np.ones(2)) == np.inf
