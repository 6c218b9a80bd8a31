"""The examples of the reference of the API that need jax."""

from __future__ import annotations

from typing import Any

import pytest

from tests.project.test_api_examples import ENTRIES, WITH_JAX, Entry, names_of, printed
from tests.support.documents import agrees

jax: Any = pytest.importorskip("jax")

EXAMPLES = [
    pytest.param(entry, entry.example, id=entry.name)
    for found in ENTRIES.values()
    for entry in found
    if entry.example is not None and WITH_JAX in entry.example
]


@pytest.mark.parametrize(("entry", "example"), EXAMPLES)
def test_examples_print_what_they_say(entry: Entry, example: str) -> None:
    with jax.enable_x64(False):  # which other tests may have enabled
        found = printed(example, names_of(entry.name.rpartition(".")[0]))
    assert agrees(example, found), found
