"""Ways to compute an operation that were measured to be faster than XLA's own.

Each is declared once, beside the rule that uses it, under a name; it has a benchmark of that name,
and can be switched off to compare, by `PSCDSL_WITHOUT=sorting_network,small_products` in the
environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

VARIABLE = "PSCDSL_WITHOUT"
"""The environment variable that names the forms that are not to be used."""
DECLARED_IN: Final = ("pscdsl._src.primitives", "pscdsl._src.targets", "pscdsl._src.xla")
"""The packages whose modules declare forms."""


@dataclass(frozen=True)
class Form:
    """A way to compute an operation; rules ask `hlo.uses(form)` where it fits."""

    name: str
    summary: str
    """What is done instead of what, where, and what it was measured to gain."""
    portable: bool = False
    """Whether it is used in modules for other devices than CPUs too."""


_declared: dict[str, Form] = {}


def form(name: str, summary: str, *, portable: bool = False) -> Form:
    """Declare a form."""
    if name in _declared:
        raise ValueError(f"there are two forms called {name}")
    _declared[name] = made = Form(name, summary, portable)
    return made


def forms() -> Mapping[str, Form]:
    """All forms, by name: also those of modules that nothing has needed so far."""
    from importlib import import_module
    from pkgutil import walk_packages

    for package in map(import_module, DECLARED_IN):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    return _declared


def switched_off() -> frozenset[str]:
    """The names of the forms that the environment switches off; a ValueError if one is unknown."""
    given = os.environ.get(VARIABLE, "")
    names = frozenset(name for part in given.split(",") if (name := part.strip()))
    if names - _declared.keys() and (unknown := sorted(names - forms().keys())):
        known = ", ".join(sorted(_declared))
        raise ValueError(f"{VARIABLE} names {', '.join(unknown)}; there are: {known}")
    return names
