"""Derivatives and batches of generated programs; `python -m tests.campaign programs` has others."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.fuzz.derived import of_equations, of_text
from tests.fuzz.programs import generate
from tests.support.share import due, some

pytestmark = pytest.mark.quick_code

LAWS = (
    "adjoint",
    "linearize",
    "first derivatives",
    "second derivatives",
    "symmetric",
    "a batch",
    "a batch of pull-backs",
    "the pull-back of a batch",
)


@pytest.mark.parametrize("first", range(0, due(100, 4), 25))
def test_programs_of_text(first: int) -> None:
    tried = Counter[str]()
    for seed in range(first, first + 25):
        tried.update(of_text(generate(random.Random(seed)), seed, smooth=seed % 3 != 0))
    assert all(tried[law] for law in LAWS), tried


@pytest.mark.parametrize("first", range(0, due(100, 4), 25))
def test_programs_of_equations(first: int) -> None:
    tried = Counter[str]()
    for seed in range(first, first + 25):
        tried.update(of_equations(seed, smooth=seed % 3 != 0))
    assert all(tried[law] for law in LAWS), tried


@pytest.mark.parametrize("seed", some([8, 11, 14, 25], 2))
def test_compiled_programs(seed: int) -> None:
    text = of_text(generate(random.Random(seed)), seed, compiling=True)
    equations = of_equations(seed, compiling=True)
    assert text.get("compilation", 0) + equations.get("compilation", 0) > 0
