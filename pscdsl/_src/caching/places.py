"""Where compiled programs are kept, and how much of them: what the environment says.

PSCDSL_CACHE=off              nothing is kept
PSCDSL_CACHE=/path            in this folder; otherwise in the user's folder for caches
PSCDSL_CACHE_LIMIT=500M       at most so many bytes: a number, or one with K, M, G or T
"""

from __future__ import annotations

import logging
import os
import re
import sys
from pathlib import Path
from typing import Final

FOLDER: Final = "PSCDSL_CACHE"
LIMIT: Final = "PSCDSL_CACHE_LIMIT"
DEFAULT_LIMIT: Final = 1 << 30
"""Bytes on disk, if the environment says nothing."""
_MOST: Final = 1 << 60
"""Bytes of a limit: more are none."""
OFF: Final = frozenset({"off", "0", "no", "none", "false"})
ON: Final = frozenset({"", "on", "1", "yes", "true"})
_UNITS: Final = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}

log: Final = logging.getLogger("pscdsl.compile")


def folder() -> Path | None:
    """The folder for compiled programs; None if nothing is to be kept."""
    given = os.environ.get(FOLDER, "").strip()
    if given.lower() in OFF or limit() == 0:
        return None
    try:
        return of_user() if given.lower() in ON else Path(given).expanduser()
    except RuntimeError:  # a user without a home
        return None


def of_user() -> Path:
    """The user's folder: what is customary on this system; a RuntimeError without a home."""
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        base = Path(local) if local else Path.home() / "AppData" / "Local"
        return base / "pscdsl" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "pscdsl"
    named = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if os.path.isabs(named) else Path.home() / ".cache") / "pscdsl"


def limit() -> int:
    """How many bytes are kept at most."""
    given = os.environ.get(LIMIT, "").strip()
    if not given:
        return DEFAULT_LIMIT
    found = re.fullmatch(r"(\d+(?:\.\d+)?) *([KMGT]?)(?:I?B)?", given.upper())
    if found is None:
        log.warning(
            "%s=%s is no number of bytes (500M, 2G); %d is used", LIMIT, given, DEFAULT_LIMIT
        )
        return DEFAULT_LIMIT
    return int(min(float(found[1]) * (1 << _UNITS[found[2]]), _MOST))
