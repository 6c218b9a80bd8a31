"""Random programs beside NumPy, a slice of `make differential`; and that it sees mistakes."""

from __future__ import annotations

import signal
import sys
import warnings
from contextlib import nullcontext
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pscdsl as psc
from pscdsl import bf16, c64, f32, f64, i64, u32
from pscdsl._src.targets.cpu import module_options
from pscdsl._src.targets.pipeline import lower_module
from tests.campaign.processes import Workers
from tests.differential import arithmetic as a
from tests.differential.campaign import CAMPAIGN, compiled_as
from tests.differential.enclosures import real
from tests.differential.formats import FORMATS
from tests.differential.programs import generate
from tests.differential.rules import RULES, without
from tests.differential.trials import compiled, escaped, interpreted, run

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


FOUND = [
    ("simplifier", 61_000_001, 16),
    ("excess precision", 61_000_088, 9),
    ("known NaN", 61_000_260, 22),
    ("added exponentials", 50_001_366, 11),
    ("signed zeros", 50_001_009, 8),
    ("cube roots", 50_000_518, 11),
    ("hyperbolic functions", 61_000_096, 5),
]
"""For each rule the seed and number of a program that is wrong without it; with other operations to
draw from, `python -m tests.campaign differential --first --without RULE` finds another one."""
RECORDED = "0.10.2"
"""Of the jaxlib with which they are wrong; another one may be wrong elsewhere."""


@pytest.mark.parametrize(("rule", "seed", "number"), FOUND, ids=[each[0] for each in FOUND])
def test_a_rule_that_is_switched_off_is_missed(rule: str, seed: int, number: int) -> None:
    kernel = generate(seed)
    alone = replace(kernel, programs=(kernel.programs[number],))
    with compiled_as(kernel.mode), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not run(alone).differences
        if version("jaxlib") != RECORDED:
            return
        with without(rule):
            assert run(alone).differences


def test_each_rule_has_a_program_that_misses_it() -> None:
    """A divisor that XLA sees to be zero ends the process, so it has a process of its own."""
    alone = "integer divisors", "sums of products"
    assert {*RULES} == {*[rule for rule, _, _ in FOUND], *alone}
    options = ("--without", "integer divisors")
    assert exit_code() == 0
    if version("jaxlib") == RECORDED:
        assert exit_code(*options) == -signal.SIGFPE


def exit_code(*options: str) -> int:
    """How a process ends that tries a program whose divisor is zero."""
    arguments = ("--seed", "5", *options)
    given = CAMPAIGN.parser("differential").parse_args(arguments)
    command = (sys.executable, "-m", "tests.campaign", "differential", *arguments)
    return Workers(command, CAMPAIGN, given).ended(151, 1, 20).code


@pytest.mark.parametrize("rule", ["none", "sums of products"])
def test_sums_of_products_are_right_for_many_columns(rule: str) -> None:
    """Whether XLA's library is wrong depends on the processor for most programs, not for this."""

    @psc.kernel
    def squares(m: f64["d k"], x: f64["n k"]) -> f64["n"]:
        return np.sum((m @ x.T) ** 2, axis=0)

    draw = np.random.default_rng(0)
    m, x = draw.normal(size=(2, 3)), draw.normal(size=(16_385, 3))
    right = rule == "none" or version("jaxlib") != RECORDED
    with nullcontext() if rule == "none" else without(rule):
        found = np.asarray(squares(m, x))
    if rule == "none" or not right:
        assert np.allclose(found, np.sum((m @ x.T) ** 2, axis=0)) == right


@pytest.mark.parametrize("fast", [False, True])
def test_regrouped_quotients_are_seen(fast: bool) -> None:
    """`x / y / y` is not `x / (y * y)`: with fast math it is, and the bounds say so."""
    x, y = np.linspace(1e30, 2e30, 64, dtype=np.float32), np.full(64, 1e20, np.float32)
    decorator = "kernel(fast_math=True)" if fast else "kernel"
    text = (
        f"{HEAD}@psc.{decorator}\n"
        'def main(x: f32["64"], y: f32["64"]) -> tuple[f32["64"]]:\n    return (x / y / y,)\n'
    )
    divisor = real(FORMATS["f32"], y)
    bounds = a.divide(a.divide(real(FORMATS["f32"], x), divisor), divisor)
    (result,) = compiled(text, [x, y])
    assert bool(escaped(result, bounds).any()) == fast
    assert not escaped(x / y / y, bounds).any()


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


ZEROS = (
    "x + 0.0, 0.0 + x, x - (-0.0), x + np.zeros(4, {t}), np.zeros(4, {t}) + x, x + z, z + x, "
    "x - 0.0, x + (-0.0), -0.0 - x, x - (-z), (x + 0.0) + 0.0, -(0.0 + x), x + np.zeros(1, {t})"
)


@pytest.mark.parametrize("name", ["f16", "f32", "f64", "c64"])
def test_sums_with_zero_have_the_signs_of_numpy(name: str) -> None:
    """`x + 0.0` is not x: of -0.0 it is 0.0."""
    dtype = np.dtype(np.complex64 if name == "c64" else FORMATS[name].dtype)
    written = f'{name}["4"]'
    results = ", ".join([written] * 14)
    text = (
        f"{HEAD.strip()}\nfrom pscdsl import c64, f16, f64\n\n\n@psc.kernel\n"
        f"def main(x: {written}) -> tuple[{results}]:\n"
        f"    z = np.ones(4, np.{dtype}) - np.ones(4, np.{dtype})\n"
        f"    return {ZEROS.format(t=f'np.{dtype}')}\n"
    )
    x = np.array([-0.0, 1, 0.0, -2], dtype)
    if name == "c64":
        x = np.array([complex(-0.0, -0.0), complex(0, -0.0), complex(-0.0, 0), 3], dtype)
    for found, expected in zip(compiled(text, [x]), interpreted(text, [x]), strict=True):
        assert found.dtype == expected.dtype
        assert found.tobytes() == np.asarray(expected).tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cube_roots_are_near_everywhere(dtype: type[np.floating[Any]]) -> None:
    info = np.finfo(dtype)
    rng = np.random.default_rng(0)
    size = 2.0 ** rng.uniform(info.minexp, info.maxexp - 0.001, 20_000)
    x = (size * rng.choice([-1, 1], size.shape)).astype(dtype)
    wide = x.astype(np.longdouble)
    root = np.cbrt(wide)
    root -= (root - wide / (root * root)) / 3
    found = np.asarray(psc.kernel(cube_root)(x)).astype(np.longdouble)
    assert (np.abs(found - root) <= np.spacing(np.abs(root).astype(dtype))).all()
    ends = np.array([0, -0.0, np.inf, -np.inf, np.nan, info.max, info.tiny, 8, -27], dtype)
    near = np.asarray(psc.kernel(cube_root)(ends))
    np.testing.assert_allclose(near, np.cbrt(ends), rtol=2 * float(info.eps))
    assert (np.signbit(near) == np.signbit(np.cbrt(ends)))[ends == ends].all()


def cube_root(x: psc.Float["n"]) -> psc.Float["n"]:
    """Of any dtype."""
    return np.cbrt(x)


@psc.kernel
def turned(x: bf16["5 6"], y: bf16["3 5 31"], z: bf16["3 31 5"]) -> tuple[
    bf16["3 6 31"], bf16["3 31 6"], bf16["6 6"], f32["6 5"]
]:  # fmt: skip
    """Products of matrices that are turned, and turned ones that are not multiplied."""
    return x.T @ y, z @ x, x.T @ x, -(x.T.astype(np.float32))


def test_turned_matrices_are_multiplied_and_copied_once() -> None:
    rng = np.random.default_rng(0)
    x, y, z = (
        rng.integers(-9, 9, shape).astype(ml_dtypes.bfloat16)
        for shape in ((5, 6), (3, 5, 31), (3, 31, 5))
    )
    wide = [each.astype(np.float32) for each in (x, y, z)]
    expected = (wide[0].T @ wide[1], wide[2] @ wide[0], wide[0].T @ wide[0], -wide[0].T)
    for found, correct in zip(turned(x, y, z), expected, strict=True):
        rounded = correct.astype(np.asarray(found).dtype)
        assert np.asarray(found).tobytes() == np.ascontiguousarray(rounded).tobytes()
    lowered = turned.lower()
    text = module_options.compiled(lower_module(lowered.program, lowered.sizes)).text()
    assert text.count(" copy(") + text.count(" transpose(") < 20


@psc.kernel
def weighted(x: c64["4"], y: c64["3 4"]) -> tuple[c64, c64["3"]]:
    """Sums of complex products with constants."""
    weights = np.array([1j, 2, 3, 4], np.complex64)
    return np.sum(x * weights), np.sum(y * weights, axis=1)


def test_sums_of_complex_products_with_constants() -> None:
    """What a complex constant holds cannot be asked for."""
    found = weighted(np.ones(4, np.complex64), np.ones((3, 4), np.complex64))
    assert [np.asarray(each).tolist() for each in found] == [9 + 1j, [9 + 1j] * 3]
