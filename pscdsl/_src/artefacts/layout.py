r"""How an artefact lies in a file.

    8 bytes      \x89PSC\r\n\x1a\n: no text, and damaged by whatever changes the ends of lines
    4 bytes      the version of this form, 2
    8 bytes      the length of the head
    32 bytes     SHA-256 of the 12 bytes before and of the head and the modules: of what is damaged
    32 bytes     HMAC-SHA-256 of all before and after these, with the key of whoever exported it
    the head     JSON in UTF-8; see `writing`
    the modules  one after the other, as long as the head says

Numbers are little-endian.  Nothing in it is a program for Python, and nothing is unpickled.
"""

from __future__ import annotations

import hmac
import json
import struct
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final

from pscdsl._src.artefacts.contents import ArtefactError
from pscdsl._src.artefacts.keys import Trust, other_key, trusted_key

SUFFIX: Final = ".psca"
"""What names of files end with, if nobody says otherwise."""
MAGIC: Final = b"\x89PSC\r\n\x1a\n"
VERSION: Final = 2
_NUMBERS: Final = struct.Struct("<IQ")
_SEAL: Final = 32
_SIGNATURE: Final = 32
_SEALED: Final = len(MAGIC) + _NUMBERS.size
_SIGNED: Final = _SEALED + _SEAL
_FIRST: Final = _SIGNED + _SIGNATURE
LARGEST: Final = 1 << 31
"""Bytes of the largest file that is written or read."""
LARGEST_HEAD: Final = 1 << 26


def packed(head: Any, modules: Sequence[bytes], key: bytes) -> bytes:
    """The bytes of a file with this head and these modules, signed with a key."""
    text = json.dumps(head, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    first = text.encode()
    rest = b"".join([first, *modules])
    if len(first) > LARGEST_HEAD or _FIRST + len(rest) > LARGEST:
        raise ArtefactError("this is too much for one artefact: export fewer sizes")
    numbers = _NUMBERS.pack(VERSION, len(first))
    before = b"".join([MAGIC, numbers, _seal(numbers, rest)])
    return b"".join([before, _signature(key, before, rest), rest])


def unpacked(data: bytes, trust: Trust) -> tuple[Any, bytes]:
    """The head and the bytes of the modules; an ArtefactError if this is not whole, or not trusted.

    Nothing of it is read before its signature was found to be right, or was not asked for.
    """
    if data[: len(MAGIC)] != MAGIC:
        if not data or MAGIC.startswith(data):
            raise ArtefactError("it is cut off before its first 8 bytes")
        raise ArtefactError("it does not begin as an exported kernel does")
    if len(data) < _FIRST:
        raise ArtefactError(f"it is cut off after {len(data)} bytes")
    numbers = data[len(MAGIC) : _SEALED]
    version, length = _NUMBERS.unpack(numbers)
    if version != VERSION:
        raise ArtefactError(
            f"it is of form {version}, or damaged; this pscdsl reads form {VERSION}: export it anew"
        )
    rest = memoryview(data)[_FIRST:]
    if data[_SEALED:_SIGNED] != _seal(numbers, rest):
        raise ArtefactError("it is damaged or cut off: its content is not what was written")
    key = trusted_key(trust)
    if key is not None:
        wanted = _signature(key, data[:_SIGNED], rest)
        if not hmac.compare_digest(data[_SIGNED:_FIRST], wanted):
            raise ArtefactError(other_key(trust))
    if length > min(len(rest), LARGEST_HEAD):
        raise ArtefactError("it says that its head is longer than it can be")
    try:
        return json.loads(bytes(rest[:length])), bytes(rest[length:])
    except (ValueError, RecursionError) as problem:
        raise ArtefactError(f"its head cannot be read: {problem}") from None


def _seal(numbers: bytes, rest: bytes | memoryview) -> bytes:
    made = sha256(numbers)
    made.update(rest)
    return made.digest()


def _signature(key: bytes, before: bytes, rest: bytes | memoryview) -> bytes:
    made = hmac.new(key, before, "sha256")
    made.update(rest)
    return made.digest()
