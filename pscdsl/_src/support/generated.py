"""Functions that are generated, because they run at every call of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def generated(source: str, names: dict[str, Any], file: str) -> Callable[..., Any]:
    """Return the function `call` of a source text; `names` are its globals.

    Tracebacks show it as a part of `file`.
    """
    exec(compile(source, file, "exec"), names)
    made: Callable[..., Any] = names["call"]
    return made
