"""What code is, whatever text it was compiled from and wherever that stands: its content.

Two pieces of code of the same content do the same.  Python's own comparison of code takes 0.0 for
-0.0 in places, and before Python 3.12 forgets in which columns something stands; this does not.
"""

from __future__ import annotations

import struct
import types
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, Final, cast

SIZE: Final = 32
"""Bytes of a digest."""


def content(code: types.CodeType, *, columns: bool = True) -> bytes:
    """The digest of all of a code object but the name of its file.

    Without `columns` only the lines of what it does count, not where in them it stands.
    """
    made = blake2b(digest_size=SIZE)
    places = code.co_linetable if columns else repr(list(code.co_lines())).encode()
    numbers = (
        *(code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount),
        *(code.co_flags, code.co_firstlineno),
    )
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    parts: tuple[str | bytes, ...] = (
        *(code.co_name, code.co_qualname, repr(numbers), repr(names)),
        *(code.co_code, code.co_exceptiontable, places),
        *[_constant(each, columns=columns) for each in code.co_consts],
    )
    for part in parts:
        data: bytes = part.encode(errors="surrogatepass") if isinstance(part, str) else part
        made.update(len(data).to_bytes(8, "little") + data)
    return made.digest()


def same(one: types.CodeType, other: types.CodeType) -> bool:
    """Whether two pieces of code do the same at the same places of their texts.

    Where one of them was made without columns (`python -X no_debug_ranges`), the lines decide.
    """
    if content(one) == content(other):
        return True
    if has_columns(one) and has_columns(other):
        return False
    return content(one, columns=False) == content(other, columns=False)


def has_columns(code: types.CodeType) -> bool:
    """Whether code knows in which columns of its text it stands."""
    return any([column is not None for _, _, column, _ in code.co_positions()])


def _constant(given: object, *, columns: bool) -> bytes:
    """A constant with its class: True is not 1, and 0.0 not -0.0."""
    value: Any = given
    if isinstance(given, types.CodeType):
        return b"code " + content(given, columns=columns)
    if isinstance(given, float):
        return b"float " + struct.pack("<d", given)
    if isinstance(given, complex):
        return b"complex " + struct.pack("<dd", given.real, given.imag)
    if isinstance(given, int) and not isinstance(given, bool):
        return f"int {given:x}".encode()
    if isinstance(given, bytes):
        return b"bytes " + given
    if isinstance(given, tuple | frozenset):
        members = cast("Iterable[Any]", given)
        parts = [_constant(each, columns=columns) for each in members]
        return _joined(value, sorted(parts) if isinstance(given, frozenset) else parts)
    if isinstance(given, slice):  # from Python 3.14 on
        bounds = (value.start, value.stop, value.step)
        return _joined(value, [_constant(each, columns=columns) for each in bounds])
    return f"{type(given).__name__} {given}".encode(errors="surrogatepass")


def _joined(value: object, parts: list[bytes]) -> bytes:
    kind = type(value).__name__.encode()
    return kind + b"".join([len(each).to_bytes(8, "little") + each for each in parts])
