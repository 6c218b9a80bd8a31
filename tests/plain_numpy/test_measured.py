"""The programs that are measured beside others, and the table of what was measured."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.measure import Ratio
from benchmarks.plain_numpy.by_hand import BY_HAND
from benchmarks.plain_numpy.elements import ELEMENTS
from benchmarks.plain_numpy.programs import MEASURED, OTHERS, SIZES, lines_of, measured_at
from benchmarks.plain_numpy.report import Measured, markdown, plain
from benchmarks.plain_numpy.rivals import with_names
from tests.plain_numpy.acceptance import outcome
from tests.plain_numpy.program import Program

pytestmark = pytest.mark.quick_code


def test_each_program_has_sizes() -> None:
    assert SIZES.keys() == MEASURED.keys()
    assert SIZES.keys() >= BY_HAND.keys()
    for name, program in MEASURED.items():
        assert measured_at(program).keys() == program.sizes[0].keys(), name


@pytest.mark.parametrize("program", [*OTHERS, *ELEMENTS], ids=lambda each: each.name)
def test_other_programs_are_accepted_and_equal(program: Program) -> None:
    found = outcome(program)
    assert found.equal, str(found)


def test_lines_are_those_of_plain_numpy() -> None:
    assert lines_of(MEASURED["lu"]) == 8
    assert lines_of(MEASURED["mlp"]) > 10, "with what it calls"


def test_names_get_other_meanings_in_all_functions() -> None:
    met: list[str] = []

    def wrap(function: Any) -> Any:
        met.append(function.__name__)
        return function

    made = with_names(MEASURED["mlp"], {"np": "another"}, wrap)
    assert sorted(met) == ["mlp", "relu", "softmax"]
    assert made.__globals__["np"] == made.__globals__["relu"].__globals__["np"] == "another"
    assert MEASURED["mlp"].function.__globals__["np"] != "another"


def ratio(ours: float, theirs: float) -> Ratio:
    return Ratio(ours, theirs, *[ours / theirs] * 3)


def test_what_others_run_faster_comes_first() -> None:
    fast = Measured("fast", "n=3", 5, 2, {"NumPy": ratio(1e-3, 2e-3)}, {"jax.jit": "stores"})
    slow = Measured("slow", "n=3", 5, 2, {"NumPy": ratio(1e-3, 2e-3), "Numba": ratio(1e-3, 1e-4)})
    slower = Measured("slower", "n=3", 5, 2, {"NumPy": ratio(2e-3, 1e-4)})
    refused = Measured("none", "n=3", 5, 2, refusal="PSC401 it is not")
    found = markdown([fast, slow, refused, slower]).splitlines()
    assert [line.split("`")[1] for line in found if line.startswith("| `")] == [
        *("slower", "slow", "fast")
    ]
    assert "| `slow` | n=3 | 2 of 5 | 1 ms | 2 ms, 0.50 | 100 us, **10** |  |" in found
    assert "| `fast` | n=3 | 2 of 5 | 1 ms | 2 ms, 0.50 |  | no: stores |" in found
    assert found[-1] == "refused: `none`, PSC401 it is not"
    assert "refused" in plain(refused)
    assert plain(fast).endswith("jax.jit no: stores")
