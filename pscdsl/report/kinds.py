"""Every kind of diagnostic there is, for `explain`, `--select` and the tests."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

from pscdsl.typing import diagnostics
from pscdsl.typing.diagnostics import Diagnostic, registered


def all_kinds() -> tuple[type[Diagnostic], ...]:
    """All kinds in order of their codes; imports every family."""
    folder = Path(diagnostics.__file__).with_name("codes")
    for module in pkgutil.iter_modules([str(folder)], "pscdsl.typing.codes."):
        importlib.import_module(module.name)
    return registered()
