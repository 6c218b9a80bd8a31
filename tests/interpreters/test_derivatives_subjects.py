"""Derivatives to the third order, and batches of them, of the functions in `derivatives/tables`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.derivatives import tables
from tests.derivatives.laws import (
    check_batches,
    check_compiled,
    check_derivatives,
    check_products,
    check_third,
)
from tests.derivatives.programs import SIZES
from tests.derivatives.subject import Subject
from tests.support.share import some

pytestmark = pytest.mark.quick_code


def found() -> Iterator[tuple[str, Subject]]:
    """The subjects of all families."""
    for module in pkgutil.iter_modules(tables.__path__):
        for each in importlib.import_module(f"{tables.__name__}.{module.name}").SUBJECTS:
            yield f"{module.name}: {each}", each


SUBJECTS = list(found())
COMPILED = some(SUBJECTS, 12)
RESIZED = [
    (f"{name} {number}", given, sizes)
    for place, (name, given) in enumerate(some(SUBJECTS, 12))
    for number, sizes in enumerate([{"n": 1, "m": 1, "k": 1, "b": 1}, {"n": 1, "m": 4, "k": 7}])
    if not given.values and "std" not in given.code and place % 2 == number
]
"""Functions without values of their own, at sizes other than those of the other tests."""


@pytest.mark.parametrize("given", [s for _, s in SUBJECTS], ids=[name for name, _ in SUBJECTS])
def test_derivatives_are_right(given: Subject) -> None:
    check_derivatives(given)
    for check in some((check_third, check_products, check_batches), 3, str(given)):
        check(given)


@pytest.mark.parametrize(
    ("given", "sizes"), [row[1:] for row in RESIZED], ids=[row[0] for row in RESIZED]
)
def test_programs_are_right_at_other_sizes(
    given: Subject, sizes: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in sizes.items():
        monkeypatch.setitem(SIZES, name, size)
    fresh = replace(given)
    if all(fact.holds(SIZES) for fact in fresh.value.function.facts.facts):
        check_derivatives(fresh)
        check_batches(fresh)


@pytest.mark.parametrize("given", [s for _, s in COMPILED], ids=[name for name, _ in COMPILED])
def test_compiled_derivatives_are_the_same(given: Subject) -> None:
    check_compiled(given)
