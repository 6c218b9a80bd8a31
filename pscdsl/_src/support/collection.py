"""Python's collection of garbage, made rare while much is loaded or read at once."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

_THRESHOLDS: Final = (200_000, 10, 10)


@contextmanager
def rare_collection() -> Generator[None]:
    """Collect garbage rarely.

    Modules and programs are made of many objects, hardly any of which become garbage soon: by
    default, looking for it takes an eighth of a first call.
    """
    before = gc.get_threshold()
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
