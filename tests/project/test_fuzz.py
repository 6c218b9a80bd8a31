"""Generated programs are accepted and mean what NumPy means; mutants are refused, or agree too.

The seeds are fixed.  `python -m tests.campaign programs --minutes 10` goes on with others.
"""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.campaign.outcomes import Figures
from tests.fuzz import files, impurities, processes
from tests.fuzz.campaign import elsewhere, trial
from tests.fuzz.laws import examine
from tests.fuzz.mutants import KINDS, mutant
from tests.fuzz.programs import generate
from tests.support.share import due, some

PATTERNS = (
    r"def \w+\(\w+, \*\w+, \*\*\w+\)",
    r"def \w+\(\w+, /, ",
    r"\*, \w+, \w+=None\)",
    r"\(\*[(\[]",
    r", \*\*(\{|dict)",
    r"\w+, \*\w+ = ",
    r"\*\w+, \w+ = ",
    r"\w+ = \w+ = ",
    r" \w+: \w+\[.*\] = ",
    r"is not None",
    r" is None",
    r" not in \{",
    r" < .* <= ",
    r"\w and .* or ",
    r"\(not ",
    r"\[.* for .* for .*\]",
    r"\[.* for .* if .*\]",
    r"\{.*: .* for .* in .*\}",
    r"lambda .*; \w+ = lambda",
    r"\n +if .*:\n +return ",
    r"\n    for .*:\n(     .*\n)+    else:",
)
"""What stands somewhere in many programs, beside words."""
SEEDS = [range(first, first + 3) for first in range(0, due(36, 3), 3)]


@pytest.mark.parametrize("seeds", SEEDS, ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}")
def test_programs_are_accepted_and_mutants_refused_or_right(seeds: range) -> None:
    figures = Figures()
    for seed in seeds:
        figures.add(seed, trial(seed, mutants=6))
    assert not figures.problems, figures.shown


@settings(
    max_examples=due(24, 3),
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.randoms(use_true_random=False))
def test_small_programs_shrink(rng: random.Random) -> None:
    program = generate(rng, 2)
    outcome = examine(program, random.Random(0), 1)
    assert outcome.kind != "rejected", (outcome, program.text)


def test_programs_in_several_files_are_the_same() -> None:
    figures = Figures()
    for seed in range(100, 100 + due(10, 2)):
        figures.add(seed, elsewhere(seed, generate(random.Random(seed)), mutants=2))
    assert not figures.problems, figures.shown
    assert figures.table["several files", "agrees"] > due(10, 2)
    assert figures.table["several files", "rejected"] > 0


def test_programs_are_spread_over_files_that_import_each_other() -> None:
    rng = random.Random(0)
    spread = [files.spread(generate(random.Random(seed)).text, rng) for seed in range(200)]
    mains = "\n".join(each["main.py"] for each in spread)
    for pattern in (
        r"from generated.lower import .*\bR",
        r"import generated.upper\n",
        r"import generated.lower as _lower",
        r"from .lower import \*",
        r"from . import upper",
        r"\.part0\(",
        r"\w+ as \w+_(lower|upper)\b",
        r"\bhelper\w+",
        r": (_lower|lower|generated\.lower)\.R",
    ):
        assert re.search(pattern, mains), pattern


@pytest.mark.parametrize("seed", some([3, 50, 200], 3))
def test_programs_in_other_processes_give_the_same(seed: int) -> None:
    assert processes.agree(generate(random.Random(seed)), random.Random(seed))


def test_programs_are_of_many_kinds() -> None:
    texts = [generate(random.Random(seed)).text for seed in range(1200)]
    together = "\n".join(texts)
    for each in (
        "psc.scan psc.map( psc.associative_scan psc.map_reduce psc.cond psc.switch psc.fori_loop "
        "psc.while_loop psc.update psc.Static "
        "psc.Record NamedTuple): dataclass(frozen tuple[ lambda assert np.einsum np.where .astype "
        "for if *b Float Int UInt bf16 f16 f64 c64 c128 bool_ u8 i64 helper part0( += "
        "np.concatenate np.pad np.argsort .reshape .T np.cumsum "
        "while elif else: break continue := del raise with enumerate( zip( reversed( .items() "
        "sorted( functools.reduce functools.partial operator.add operator.itemgetter dict( "
        "dataclasses.replace ._replace( .replace( psc.tree.map psc.tree.leaves psc.scope "
        "psc.checkpoint policy= psc.stop_gradient psc.vmap in_axes= out_axes= psc.custom_jvp "
        "psc.custom_vjp defjvp defvjp nondiff_argnums psc.custom_root psc.custom_linear_solve "
        "transpose_solve= has_aux="
    ).split():
        assert each in together, each
    for pattern in PATTERNS:
        assert re.search(pattern, together), pattern
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_mutant_finds_a_place(kind: str) -> None:
    texts = [generate(random.Random(seed)).text for seed in range(40)]
    assert any(mutant(text, random.Random(0), kind) is not None for text in texts)


@pytest.mark.parametrize(
    ("name", "line"), impurities.IMPURITIES, ids=[name for name, _ in impurities.IMPURITIES]
)
def test_every_impurity_is_refused_in_a_plain_kernel(name: str, line: str) -> None:
    from pscdsl._src.checker.check import check_source

    head = "import numpy as np\nimport pscdsl as psc\nfrom pscdsl import f32\n\n"
    head += "TABLE = np.array([0.5], np.float32)\n"
    kernel = '@psc.kernel\ndef f(x: f32["n"]) -> f32["n"]:\n'
    body = "".join(f"    {row}\n" for row in line.replace("{x}", "x").split("\n"))
    text = impurities.STATE + head + kernel + body + "    return x * TABLE\n"
    clean = impurities.STATE + head + kernel + "    return x * TABLE\n"
    if "TABLE[0] =" not in line:
        assert not check_source(clean, "clean.py").diagnostics
    assert check_source(text, "impure.py").diagnostics, name
