"""The least size from which on a claim holds is enough, and none smaller is."""

from __future__ import annotations

import itertools

import pytest

from pscdsl.typing.assumptions import Assumptions, sufficient_bound
from pscdsl.typing.dims import parse
from pscdsl.typing.facts import Fact, parse_fact

CLAIMS = (
    *(
        "n - min(n,2) + 2 == n",
        "min(n - min(n,2), 1) - max(n - min(n,2) - 1, 0) - 2*min(n,2) + n == 0",
    ),
    *("max(n-7, 0) + 7 == n", "min(3, n) == 3", "min(n, 2) + min(m, 1) == 3", "2*min(n, 5) == 10"),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_bound_is_the_weakest_that_is_enough(claim: str) -> None:
    facts = parse_fact(claim)
    found = sufficient_bound(Assumptions(), facts)
    assert found is not None
    least = found.left
    assert isinstance(least, int)
    for n, m in itertools.product(range(1, 20), range(1, 4)):
        holds = all(fact.holds({"n": n, "m": m}) for fact in facts)
        assert holds == (n >= least)


@pytest.mark.parametrize("claim", ["n == m", "min(n, m) == n", "min(n, 2) == 1", "n == 2"])
def test_where_no_bound_is_enough(claim: str) -> None:
    assert sufficient_bound(Assumptions(), parse_fact(claim)) is None


def test_what_is_known_counts() -> None:
    even = Assumptions((Fact("==", parse("n % 2"), 0),))
    assert str(sufficient_bound(even, parse_fact("min(n, 3) == 3"))) == "n >= 3"
