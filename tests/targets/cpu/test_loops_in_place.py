"""Loops change what they store into in place: no array is copied in a step."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from benchmarks.plain_numpy.programs import MEASURED, measured_at
from pscdsl import f64, i64
from pscdsl._src.kernels.kernel import load_kernel
from tests.plain_numpy.acceptance import source

pytestmark = pytest.mark.quick_code


@psc.kernel
def gauss_seidel(a: f64["n n"], b: f64["n"], sweeps: i64) -> f64["n"]:
    x = np.zeros_like(b)
    for _ in range(sweeps):
        for i in range(len(b)):
            total = b[i]
            for j in range(len(b)):
                if j != i:
                    total -= a[i, j] * x[j]
            x[i] = total / a[i, i]
    return x


@psc.kernel
def row_sweep(u: f64["n m"]) -> f64["n m"]:
    u = u.copy()
    for i in range(1, len(u)):
        u[i] = 0.5 * (u[i] + u[i - 1])
    return u


@psc.kernel
def both_branches(x: f64["n"], y: f64["n"]) -> f64["n"]:
    z = np.zeros_like(x)
    for i in range(len(x)):
        if x[i] > y[i]:
            z[i] = x[i] - y[i]
        else:
            z[i] = 2.0 * y[i]
    return z


@psc.kernel
def until_large(x: f64["n"], most: f64) -> f64["n"]:
    z = np.zeros_like(x)
    for i in range(1, len(x)):
        z[i] = z[i - 1] + x[i]
        if z[i] > most:
            break
    return z


GIVEN: dict[Any, tuple[Any, ...]] = {
    gauss_seidel: (np.eye(40), np.ones(40), 3),
    row_sweep: (np.ones((40, 50)),),
    both_branches: (np.ones(90), np.zeros(90)),
    until_large: (np.ones(90), 7.0),
}
IN_PLACE = (
    "jacobi_1d jacobi_2d heat_3d seidel_2d fdtd_2d deriche lu ludcmp cholesky trisolv "
    "covariance durbin symm syrk syr2k trmm nussinov nbody"
).split()


# The optimised program, as far as loops are concerned.


@dataclass(frozen=True)
class Instruction:
    """One of a computation, in the order in which they run."""

    name: str
    type: str
    operation: str
    operands: tuple[str, ...]
    line: str


Computations = Mapping[str, list[Instruction]]
LINE = re.compile(r"(?:ROOT )?%?([\w.\-]+) = (\([^=]*?\)|\S+) ([\w\-]+)\((.*)")


def computations(text: str) -> Computations:
    """The instructions of each computation; the last is its result."""
    found: dict[str, list[Instruction]] = {}
    for block in re.sub(r"/\*.*?\*/", "", text).split("\n}\n"):
        lines = block.strip().splitlines()
        heads = [k for k, line in enumerate(lines) if line.endswith("{") and " = " not in line]
        if not heads:
            continue
        name = lines[heads[0]].removeprefix("ENTRY ").split()[0].lstrip("%")
        here: list[Instruction] = []
        for line in lines[heads[0] + 1 :]:
            if match := LINE.match(line.strip()):
                operands = re.findall(r"[%\w.\-]*[a-zA-Z_][\w.\-]*", match[4].split(")")[0])
                names = tuple([each.lstrip("%") for each in operands])
                here.append(Instruction(match[1], match[2], match[3], names, line.strip()))
        found[name] = here
    return found


def bodies(text: str) -> Iterator[tuple[Computations, list[Instruction]]]:
    """The steps of loops."""
    every = computations(text)
    for name in dict.fromkeys(re.findall(r"body=%?([\w.\-]+)", text)):
        yield every, every[name]


def copies(text: str) -> list[str]:
    """Copies of arrays, or of most of a matrix, in the steps of loops."""
    return [
        each.line[:100]
        for every, body in bodies(text)
        for each in body
        if shape_of(each) and is_copy(every, each, {one.name: one for one in body})
    ]


def is_copy(every: Computations, given: Instruction, body: Mapping[str, Instruction]) -> bool:
    """Whether an instruction only moves elements to memory of their own."""
    operations = {given.operation}
    called = re.search(r"calls=%?([\w.\-]+)", given.line)
    if given.operation == "fusion" and called is not None:
        operations = {each.operation for each in every[called[1]]} - {"parameter", "bitcast"}
    if not operations <= {"copy", "slice"}:
        return False
    before = body.get(given.operands[0])
    if "slice" not in operations or before is None:
        return True
    is_most = 2 * np.prod(shape_of(given)) >= np.prod(shape_of(before))
    return len(shape_of(given)) > 1 and bool(is_most)


def shape_of(given: Instruction) -> list[int]:
    """The sizes of an array; none of a number, or of several arrays."""
    found = re.match(r"\w+\[([\d,]+)\]", given.type)
    return [] if found is None else [*map(int, found[1].split(","))]


def optimised(kernel: Any, arguments: tuple[Any, ...]) -> str:
    """The program as XLA runs it, for arguments like these."""
    return str(kernel.executable(kernel.lower_for(*arguments).specialisation).text())


def of_program(name: str, folder: Path) -> str:
    """The same of one of the plain NumPy programs, with what it writes as results."""
    program = MEASURED[name]
    path = folder / f"{name}.py"
    path.write_text(source(program), encoding="utf-8")
    kernel: Any = load_kernel(path, name)
    pure = kernel.functional if program.writes else kernel
    return optimised(pure, tuple(program.inputs(measured_at(program))))


@pytest.mark.parametrize("kernel", GIVEN, ids=lambda each: each.__name__)
def test_steps_change_arrays_in_place(kernel: Any) -> None:
    text = optimised(kernel, GIVEN[kernel])
    assert "body=" in text
    assert copies(text) == []


@pytest.mark.parametrize("name", IN_PLACE)
def test_programs_change_arrays_in_place(name: str, tmp_path: Path) -> None:
    text = of_program(name, tmp_path)
    assert "body=" in text
    assert copies(text) == []


def test_a_copy_is_found() -> None:
    text = """
step {
  all = (s32[], f64[9]{0}) parameter(0)
  i = s32[] get-tuple-element(all), index=0
  x = f64[9]{0} get-tuple-element(all), index=1
  new = f64[9]{0} copy(x)
  ROOT next = (s32[], f64[9]{0}) tuple(i, new)
}

ENTRY main {
  start = (s32[], f64[9]{0}) parameter(0)
  ROOT loop = (s32[], f64[9]{0}) while(start), condition=test, body=step
}
"""
    assert copies(text) == ["new = f64[9]{0} copy(x)"]


# A rolled loop is the combinator that one would write.


@psc.kernel
def smoothed(u: f64["n m"], steps: i64) -> f64["n m"]:
    assert u.shape[0] >= 3
    assert u.shape[1] >= 3
    u = u.copy()
    for _ in range(steps):
        u[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 4
    return u


@psc.kernel
def smoothed_by_hand(u: f64["n m"], steps: i64) -> f64["n m"]:
    assert u.shape[0] >= 3
    assert u.shape[1] >= 3

    def step(_: Any, u: f64["n m"]) -> f64["n m"]:
        mean = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 4
        return psc.update(u, np.s_[1:-1, 1:-1], mean)

    return psc.fori_loop(0, np.maximum(steps, 0), step, u)


def test_a_rolled_loop_is_the_combinator_of_its_step() -> None:
    rolled, by_hand = (each.lower(n=30, m=40).text() for each in (smoothed, smoothed_by_hand))
    assert rolled == by_hand
