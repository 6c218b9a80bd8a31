"""The user's key: what is kept for this user is sealed with it, so that nobody else's is believed.

It lies in the user's folder for caches, where no repository can have put it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from pscdsl._src.caching import places
from pscdsl._src.support.paths import Folder, inside_any, is_secret, real

_NAME = "key"
_BYTES = 32


def user_key(strangers: Iterable[str]) -> bytes | None:
    """The key, made when it is first asked for; None if there is no safe place for it.

    A place below one of the folders (resolved ones) that hold what is not trusted is not safe, nor
    is one in which others can write.
    """
    try:
        place = real(str(places.of_user()))
        if place is None or inside_any(place, strangers):
            return None
        with Folder(place, make=True) as folder:
            return _key(folder) if folder.is_private() else None
    except (OSError, ValueError, RuntimeError):  # no home, or none that can be written
        return None


def _key(folder: Folder) -> bytes | None:
    if folder.state(_NAME) is None:
        folder.create(_NAME, os.urandom(_BYTES))
    elif not _is_good(folder):
        folder.replace(_NAME, os.urandom(_BYTES))
    return folder.read(_NAME, _BYTES) if _is_good(folder) else None


def _is_good(folder: Folder) -> bool:
    """Whether the file can only be this user's."""
    state = folder.state(_NAME)
    return state is not None and state.st_size == _BYTES and is_secret(state)
