r"""How an artefact lies in a file.

    8 bytes      \x89PSC\r\n\x1a\n: no text, and damaged by whatever changes the ends of lines
    4 bytes      the version of this form, 1
    8 bytes      the length of the head
    32 bytes     SHA-256 of all that follows, and of the 12 bytes before
    the head     JSON in UTF-8; see `writing`
    the modules  one after the other, as long as the head says

Numbers are little-endian.  Nothing in it is a program for Python, and nothing is unpickled.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final

from pscdsl.artefacts.contents import ArtefactError

SUFFIX: Final = ".psca"
"""What names of files end with, if nobody says otherwise."""
MAGIC: Final = b"\x89PSC\r\n\x1a\n"
VERSION: Final = 1
_NUMBERS: Final = struct.Struct("<IQ")
_SEAL: Final = 32
_FIRST: Final = len(MAGIC) + _NUMBERS.size + _SEAL
LARGEST: Final = 1 << 31
"""Bytes of the largest file that is written or read."""
LARGEST_HEAD: Final = 1 << 26


def packed(head: Any, modules: Sequence[bytes]) -> bytes:
    """The bytes of a file with this head and these modules."""
    text = json.dumps(head, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    first = text.encode()
    rest = b"".join([first, *modules])
    if len(first) > LARGEST_HEAD or _FIRST + len(rest) > LARGEST:
        raise ArtefactError("this is too much for one artefact: export fewer sizes")
    numbers = _NUMBERS.pack(VERSION, len(first))
    return b"".join([MAGIC, numbers, _seal(numbers, rest), rest])


def unpacked(data: bytes) -> tuple[Any, bytes]:
    """The head and the bytes of the modules; an ArtefactError if this is not whole."""
    if data[: len(MAGIC)] != MAGIC:
        if not data or MAGIC.startswith(data):
            raise ArtefactError("it is cut off before its first 8 bytes")
        raise ArtefactError("it does not begin as an exported kernel does")
    if len(data) < _FIRST:
        raise ArtefactError(f"it is cut off after {len(data)} bytes")
    numbers = data[len(MAGIC) : _FIRST - _SEAL]
    version, length = _NUMBERS.unpack(numbers)
    rest = memoryview(data)[_FIRST:]
    if data[_FIRST - _SEAL : _FIRST] != _seal(numbers, rest):
        raise ArtefactError("it is damaged or cut off: its content is not what was written")
    if version != VERSION:
        raise ArtefactError(f"it is of form {version}; this pscdsl reads form {VERSION}")
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
