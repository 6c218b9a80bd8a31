"""The page for users of JAX, run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl._src.frontend.purity import DIFFERS
from tests.support.documents import ROOT, compare

jax: Any = pytest.importorskip("jax")


@pytest.fixture(autouse=True)
def a_new_process() -> Iterator[None]:
    """The precision of a new process: other tests of this one may have switched it."""
    with jax.enable_x64(False):
        yield


def test_what_the_blocks_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, update_golden: bool
) -> None:
    compare(ROOT / "docs/guides/from-jax.md", tmp_path, monkeypatch, update_golden)


SAME_NUMBERS = {
    "bits": ((5,),),
    "uniform": ((50,), np.float32),
    "normal": ((50,), np.float32),
    "gumbel": ((50,), np.float32),
    "exponential": ((50,), np.float32),
    "laplace": ((50,), np.float32),
    "logistic": ((50,), np.float32),
    "bernoulli": (np.float32(0.3), (50,)),
    "rademacher": ((50,),),
    "categorical": (np.log(np.array([0.1, 0.2, 0.7], np.float32)),),
}
OTHER_NUMBERS = {
    "randint": ((50,), 0, 10),
    "permutation": (20,),
    "choice": (20, (10,)),
    "truncated_normal": (np.float32(-1), np.float32(2), (50,)),
    "gamma": (np.float32(2), (50,)),
    "loggamma": (np.float32(2), (50,)),
    "beta": (np.float32(2), np.float32(3), (50,)),
    "dirichlet": (np.ones(3, np.float32),),
    "poisson": (np.float32(3), (50,)),
}


@pytest.mark.parametrize("name", [*SAME_NUMBERS, *OTHER_NUMBERS])
def test_the_page_of_keys_names_the_functions_that_draw_other_numbers(name: str) -> None:
    args: Any = (SAME_NUMBERS | OTHER_NUMBERS)[name]
    theirs = np.asarray(getattr(jax.random, name)(jax.random.PRNGKey(7), *args))
    ours = np.asarray(getattr(psc.random, name)(psc.random.key(7), *args))
    same = ours.shape == theirs.shape and np.allclose(ours, theirs, rtol=1e-5)
    assert same == (name in SAME_NUMBERS)
    assert (f"jax.random.{name}" in DIFFERS) == (name in OTHER_NUMBERS)
