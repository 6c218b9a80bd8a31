"""Derivatives to the third order, and batches of them, of the functions in `derivatives/tables`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

from tests.derivatives import tables
from tests.derivatives.laws import (
    check_batches,
    check_compiled,
    check_derivatives,
    check_products,
    check_third,
)
from tests.derivatives.subject import Subject


def found() -> Iterator[tuple[str, Subject]]:
    """The subjects of all families."""
    for module in pkgutil.iter_modules(tables.__path__):
        for each in importlib.import_module(f"{tables.__name__}.{module.name}").SUBJECTS:
            yield f"{module.name}: {each}", each


SUBJECTS = list(found())
COMPILED = SUBJECTS[::6]


@pytest.mark.parametrize("given", [s for _, s in SUBJECTS], ids=[name for name, _ in SUBJECTS])
def test_derivatives_are_right(given: Subject) -> None:
    check_derivatives(given)
    check_third(given)
    check_products(given)
    check_batches(given)


@pytest.mark.parametrize("given", [s for _, s in COMPILED], ids=[name for name, _ in COMPILED])
def test_compiled_derivatives_are_the_same(given: Subject) -> None:
    check_compiled(given)
