"""Random programs beside NumPy, a slice of `make differential`; and that it sees mistakes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import i64, u32
from tests.differential import arithmetic as a
from tests.differential.enclosures import real
from tests.differential.formats import FORMATS
from tests.differential.programs import generate
from tests.differential.trials import compiled, escaped, run
from tests.differential.worker import compiled_as

HEAD = "import numpy as np\n\nimport pscdsl as psc\nfrom pscdsl import f32\n\n\n"


@pytest.mark.parametrize("seed", [60_000_000, 60_000_001, 60_000_003])
def test_no_result_of_a_random_program_leaves_its_bounds(seed: int) -> None:
    """A fixed slice, compiled with code that is not optimised; the long run has its own command."""
    kernel = generate(seed)
    with compiled_as("quick"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = run(kernel)
    assert found.programs == len(kernel.programs)
    assert found.values > found.unknown
    assert not [*found.differences, *found.refused, *found.model]


@pytest.mark.parametrize("fast", [False, True])
def test_a_cancelled_constant_is_seen(fast: bool) -> None:
    """`(x + c) - c` is not `x`: with fast math it is, and the bounds say so."""
    x = np.linspace(0.1, 1, 64, dtype=np.float32)
    decorator = "kernel(fast_math=True)" if fast else "kernel"
    text = (
        f"{HEAD}@psc.{decorator}\n"
        'def main(x: f32["64"]) -> tuple[f32["64"]]:\n    return ((x + 1e4) - 1e4,)\n'
    )
    value, constant = real(FORMATS["f32"], x), a.constant("f32", 1e4)
    bounds = a.subtract(a.add(value, constant), constant)
    (result,) = compiled(text, [x])
    assert bool(escaped(result, bounds).any()) == fast
    assert not escaped((x + np.float32(1e4)) - np.float32(1e4), bounds).any()


@psc.kernel
def by_zero(x: u32["4"], y: i64["4"]) -> tuple[u32["4"], u32["4"], i64["4"], i64["4"], u32["4"]]:
    """Divisors that compilers see to be zero."""
    u = x * 0
    s = (y != y).astype(np.int64)
    return u // u, x % u, s // s, s % s, np.fmod(3, u)


def test_division_by_a_divisor_that_is_seen_to_be_zero_gives_zero() -> None:
    """XLA divided by it while it compiled, which ended the process."""
    found = by_zero(np.arange(4, dtype=np.uint32), np.arange(4))
    assert all(not np.asarray(each).any() for each in found)
