"""Whom an artefact is taken from: keys, and the one that is the user's own.

What is in an artefact goes through XLA's reader and compiler, which trust it, and becomes machine
code.  No check of ours makes that safe.  So it is signed with a key, and read only if the signature
is right: without the key nobody can make one.

The user's key is made by the first export, and lies where no artefact, cache or checkout can
have put it: PSCDSL_KEY names the file, otherwise it is `key` in the user's folder for settings.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final, Literal, TypeAlias

from pscdsl._src.artefacts.contents import ArtefactError
from pscdsl._src.support.paths import Folder, is_secret, real

Trust: TypeAlias = bytes | Literal["user", "anyone"]
"""Whose artefacts are loaded: those signed with a key, with the user's own, or anybody's."""
VARIABLE: Final = "PSCDSL_KEY"
_BYTES: Final = 32
"""Of a key that is made here."""
_LEAST: Final = 16
"""Bytes of a key that somebody gives: a shorter one could be guessed."""
_MOST: Final = 1 << 12
_HELP: Final = (
    "What is loaded becomes machine code, so trust whom you would let run programs: "
    '`trust=KEY` takes what was exported with `key=KEY`, `trust="anyone"` takes anything'
)


class NoKey(ArtefactError):
    """The user has no key, or none that is safe; says why."""


def signing_key(given: object) -> bytes:
    """The key that an export signs with: the one that is given, or the user's if that is None."""
    if given is not None:
        return _checked(given, "key")
    try:
        return user_key(make=True)
    except NoKey as problem:
        raise ArtefactError(
            f"there is no key to sign the artefact with: {problem}. Give one, "
            f"`export(path, key=KEY)`, of {_LEAST} bytes or more, as `secrets.token_bytes(32)` "
            f"makes it, or name a file for it in ${VARIABLE}"
        ) from None


def trusted_key(trust: object) -> bytes | None:
    """The key with which an artefact has to be signed; None if it may be anybody's."""
    if isinstance(trust, str):
        if trust == "anyone":
            return None
        if trust == "user":
            try:
                return user_key()
            except NoKey as problem:
                raise ArtefactError(f"it is not known to be yours: {problem}. {_HELP}") from None
    return _checked(trust, "trust")


def other_key(trust: object) -> str:
    """What to say of an artefact that is whole, but not signed with the key that is trusted."""
    if isinstance(trust, str):
        return f"it is not signed with your key, {_file()}, but with another one. {_HELP}"
    return "it is not signed with the key that `trust` gives, but with another one"


def _checked(key: object, name: str) -> bytes:
    if not isinstance(key, bytes):
        words = ', "user" or "anyone"' if name == "trust" else ""
        raise ArtefactError(f"`{name}` is a key, as bytes{words}; it is {type(key).__name__}")
    if len(key) < _LEAST:
        raise ArtefactError(f"`{name}` is a key of {len(key)} bytes; it needs {_LEAST} or more")
    return key


def user_key(*, make: bool = False) -> bytes:
    """The user's key, made if there is none and that is wanted; `NoKey` if there is no safe one."""
    file = _file()
    place = real(str(file))
    if place is None:
        raise NoKey(f"{file} cannot be followed")
    try:
        with Folder(os.path.dirname(place), make=make) as folder:
            if not folder.is_private():
                raise NoKey(f"{folder.path} is another user's, or others can write in it")
            return _key(folder, os.path.basename(place), place, make)
    except FileNotFoundError:
        raise NoKey(f"there is no key yet, {file}; the first export makes it") from None
    except (OSError, ValueError) as problem:
        if isinstance(problem, NoKey):
            raise
        told = getattr(problem, "strerror", None) or problem
        done = "made or read" if make else "read"
        raise NoKey(f"the key, {file}, cannot be {done}: {told}") from None


def _key(folder: Folder, name: str, place: str, make: bool) -> bytes:
    if make and folder.state(name) is None:
        folder.create(name, os.urandom(_BYTES))
    key, state = folder.read(name, _MOST), folder.state(name)
    if state is None or not is_secret(state):
        raise NoKey(f"others can read or write the key, {place}, or it is another user's")
    if len(key) < _LEAST:
        raise NoKey(f"the key, {place}, has {len(key)} bytes; it needs {_LEAST} or more")
    return key


def _file() -> Path:
    """Where the user's key is."""
    try:
        given = os.environ.get(VARIABLE, "").strip()
        return Path(given).expanduser() if given else _settings() / "pscdsl" / "key"
    except RuntimeError:
        raise NoKey("this user has no home") from None


def _settings() -> Path:
    """The user's folder for settings, as is customary on this system."""
    if sys.platform == "win32":
        roaming = os.environ.get("APPDATA")
        return Path(roaming) if roaming else Path.home() / "AppData" / "Roaming"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    named = os.environ.get("XDG_CONFIG_HOME", "")
    return Path(named) if os.path.isabs(named) else Path.home() / ".config"
