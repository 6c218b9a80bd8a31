"""Each program under NumPy computes what it should, by another way to compute the same."""

from __future__ import annotations

import copy
import warnings

import pytest

from tests.plain_numpy.program import Program, Sizes, difference, flat
from tests.plain_numpy.programs import PROGRAMS
from tests.plain_numpy.references import (
    flows,
    learning,
    linear_algebra,
    other,
    physics,
    stencils,
)

MODULES = (linear_algebra, stencils, flows, learning, physics, other)
REFERENCES = {name: each for module in MODULES for name, each in vars(module).items()}
RUNS = [(program, sizes) for program in PROGRAMS for sizes in program.sizes]


@pytest.mark.parametrize(
    ("program", "sizes"), RUNS, ids=[f"{program.name}-{sizes}" for program, sizes in RUNS]
)
def test_it_equals_its_reference(program: Program, sizes: Sizes) -> None:
    given = program.inputs(sizes)
    arguments, wanted = copy.deepcopy(given), copy.deepcopy(given)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = program.function(*arguments)
        expected = flat(REFERENCES[program.name](*wanted))
    found = [*flat(results), *flat(program.written(arguments))]
    assert [x.shape for x in found] == [x.shape for x in expected]
    assert [x.dtype for x in found] == [x.dtype for x in expected]
    apart = [difference(*both) for both in zip(found, expected, strict=True)]
    assert max(apart, default=0.0) <= 10 * program.tolerance
    read = [x for x in flat(arguments) if not any(x is each for each in program.written(arguments))]
    before = [x for x in flat(given) if not any(x is each for each in program.written(given))]
    assert not any(difference(*both) for both in zip(read, before, strict=True))
