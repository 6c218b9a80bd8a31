"""Random programs of the static language, beside CPython; `make fuzz` tries many more."""

from __future__ import annotations

import pytest

from tests.fuzz.static_differences import CAMPAIGN


@pytest.mark.parametrize("first", [0, 100_000, 200_000])
def test_what_is_accepted_has_the_values_of_python(first: int) -> None:
    figures = CAMPAIGN.here(range(first, first + 40), "--mutants", "1")
    assert not figures.problems, figures.shown
    assert figures.table["programs", "the same"] >= 2
