"""Names for the sizes of a signature: what the code or its docstring calls them, or letters."""

from __future__ import annotations

import keyword
from collections.abc import Iterator, Mapping
from itertools import chain

from pscdsl._src.discover.candidates import Candidate, owner
from pscdsl._src.discover.hints import Hint
from pscdsl._src.discover.usage import Usage
from pscdsl.typing.dims import Size, variable

LETTERS = "n m k d p q r s t u v w h l".split()
_RESERVED = frozenset({"min", "max", "batch", "_"})


def named(
    candidate: Candidate, usages: Mapping[str, Usage], hints: Mapping[str, Hint]
) -> Candidate:
    """The candidate with readable names of sizes."""
    sizes = [size for size in candidate.sizes() if owner(size)]
    taken = {name for name, _ in candidate.specs} | _RESERVED
    env: dict[str, Size] = {}
    for size in sizes:
        spoken = chain(_spoken(size, usages, hints), _letters())
        text = next(each for each in spoken if each not in taken and _usable(each))
        taken.add(text)
        env[size] = variable(text)
    return candidate.renamed(env)


def _spoken(size: str, usages: Mapping[str, Usage], hints: Mapping[str, Hint]) -> Iterator[str]:
    """What code and docstring call a size."""
    parameter, axis = owner(size), size.removeprefix(owner(size)).strip("_")
    if not axis.isdigit() or parameter not in usages:
        return
    index = int(axis)
    yield usages[parameter].names.get(index, "")
    dims = hints[parameter].dims if parameter in hints else None
    if dims is not None and index < len(dims):
        yield dims[index]


def _letters() -> Iterator[str]:
    yield from LETTERS
    number = 1
    while True:
        yield f"n{number}"
        number += 1


def _usable(text: str) -> bool:
    plain = text.isidentifier() and text.isascii() and not keyword.iskeyword(text)
    return plain and "__" not in text and not text.startswith("_")
