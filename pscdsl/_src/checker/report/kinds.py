"""Every kind of diagnostic there is, for `explain`, `--select` and the tests."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path

from pscdsl.typing import diagnostics
from pscdsl.typing.diagnostics import Diagnostic, registered


def all_kinds() -> tuple[type[Diagnostic], ...]:
    """All kinds in order of their codes; imports every family."""
    folder = Path(diagnostics.__file__).with_name("codes")
    for module in pkgutil.iter_modules([str(folder)], "pscdsl.typing.codes."):
        importlib.import_module(module.name)
    return registered()


@cache
def all_codes() -> tuple[str, ...]:
    """The codes of all kinds, in order."""
    return tuple(kind.code for kind in all_kinds())


def is_known(code: str) -> bool:
    """Whether this is a code, a family (even one without codes), or the beginning of a code."""
    return code in _beginnings()


@cache
def _beginnings() -> frozenset[str]:
    families = (f"PSC{number}" for number in range(1, 10))
    return frozenset(code[:n] for code in (*all_codes(), *families) for n in range(1, 7))
