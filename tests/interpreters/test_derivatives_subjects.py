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

pytestmark = pytest.mark.quick_code


def found() -> Iterator[tuple[str, Subject]]:
    """The subjects of all families."""
    for module in pkgutil.iter_modules(tables.__path__):
        for each in importlib.import_module(f"{tables.__name__}.{module.name}").SUBJECTS:
            yield f"{module.name}: {each}", each


SUBJECTS = list(found())
COMPILED = SUBJECTS[::6]
RESIZED = [
    (f"{name} {number}", given, sizes)
    for place, (name, given) in enumerate(SUBJECTS[::5])
    for number, sizes in enumerate([{"n": 1, "m": 1, "k": 1, "b": 1}, {"n": 1, "m": 4, "k": 7}])
    if not given.values and "std" not in given.code and place % 2 == number
]
"""Functions without values of their own, at sizes other than those of the other tests."""


@pytest.mark.parametrize("given", [s for _, s in SUBJECTS], ids=[name for name, _ in SUBJECTS])
def test_derivatives_are_right(given: Subject) -> None:
    check_derivatives(given)
    check_third(given)
    check_products(given)
    check_batches(given)


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


@pytest.mark.parametrize(
    "given", [s for _, s in COMPILED[::2]], ids=[name for name, _ in COMPILED[::2]]
)
def test_compiled_derivatives_are_the_same(given: Subject) -> None:
    check_compiled(given)
