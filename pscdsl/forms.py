"""Ways to compute an operation that were measured to be faster than XLA's own.

Each is declared once, beside the rule that uses it, under a name; it has a benchmark of that name,
and can be switched off to compare: `PSCDSL_WITHOUT=bitonic_sort,small_dot` in the environment.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

VARIABLE = "PSCDSL_WITHOUT"
"""The environment variable that names the forms that are not to be used."""


@dataclass(frozen=True)
class Form:
    """A way to compute an operation; rules ask `hlo.uses(form)` where it fits."""

    name: str
    summary: str
    """What is done instead of what, where, and what it was measured to gain."""
    portable: bool = False
    """Whether it is used in modules for other devices than CPUs too."""


FORMS: dict[str, Form] = {}
"""All forms that have been declared, by name."""


def form(name: str, summary: str, *, portable: bool = False) -> Form:
    """Declare a form."""
    if name in FORMS:
        raise ValueError(f"there are two forms called {name}")
    FORMS[name] = made = Form(name, summary, portable)
    return made


def switched_off() -> frozenset[str]:
    """The names of the forms that the environment switches off; a ValueError if one is unknown."""
    given = os.environ.get(VARIABLE, "")
    names = frozenset(name for part in given.split(",") if (name := part.strip()))
    if unknown := sorted(names - FORMS.keys()):
        known = ", ".join(sorted(FORMS))
        raise ValueError(f"{VARIABLE} names {', '.join(unknown)}; there are: {known}")
    return names
