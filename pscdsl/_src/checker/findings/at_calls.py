"""Findings within the standard library, told where the user's code calls it."""

from __future__ import annotations

import os
from functools import lru_cache

from pscdsl._src.support.package import LIBRARY
from pscdsl._src.support.paths import resolved
from pscdsl.typing.diagnostics import Diagnostic

_LIBRARY = os.path.join(LIBRARY, "")


def at_call(finding: Diagnostic) -> Diagnostic:
    """A finding at the call that led into the library; its own place becomes a note.

    What stands in other code stays where it is, as does what a check of the library itself finds.
    """
    inner, *calls = finding.span.frames()
    if calls and _in_library(inner.path):
        for call in calls:
            if not _in_library(call.path):
                return finding.relocated(call)
    return finding


@lru_cache(maxsize=1024)
def _in_library(path: str) -> bool:
    return resolved(path).startswith(_LIBRARY)
