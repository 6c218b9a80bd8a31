"""The precondition that is proposed keeps some choices, and none for which the check fails."""

from __future__ import annotations

import random

from pscdsl.typing.array_types import StaticType
from pscdsl.typing.signatures import Choice, exclusion


def test_what_fails_is_left_out_and_something_is_kept() -> None:
    rng = random.Random(0)
    proposed = 0
    tried = [
        Choice(lengths=(("xs", length),), statics=(("k", StaticType(k)),))
        for length in range(4)
        for k in (0, 1, 2, True)
    ]
    for _ in range(500):
        failing = rng.sample(tried, rng.randrange(1, 5))
        text = exclusion(failing, tried)
        left = [
            each
            for each in tried
            if not text
            or eval(  # the proposed condition itself
                text, {"xs": range(each.lengths[0][1]), "k": each.statics[0][1].value}
            )
        ]
        assert left
        if text:
            proposed += 1
            assert not set(left) & set(failing)
    assert 100 < proposed < 500


def test_nothing_is_proposed_where_a_bound_does_not_help() -> None:
    by_rank = [Choice(ranks=(("b", rank),)) for rank in range(4)]
    assert not exclusion(by_rank[:1], by_rank)
    by_length = [Choice(lengths=(("xs", length),)) for length in range(4)]
    assert not exclusion(by_length, by_length)
    assert exclusion(by_length[:2], by_length) == "len(xs) >= 2"


def test_nothing_is_proposed_if_all_that_is_kept_fails_otherwise() -> None:
    by_static = [Choice(statics=(("k", StaticType(k)),)) for k in range(4)]
    assert not exclusion(by_static[:1], [])
    assert exclusion(by_static[:1], by_static[2:]) == "k >= 1"
