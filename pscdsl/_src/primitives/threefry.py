"""Threefry-2x32 with 20 rounds: a block cipher whose counters are places and whose key is a key.

From J. Salmon, M. Moraes, R. Dror, D. Shaw: "Parallel random numbers: as easy as 1, 2, 3"
(SC 2011), the generator of the Random123 library.  Written once, over whatever adds, rotates and
exors: NumPy arrays for the meaning, values of a module for the translation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol, TypeVar

import numpy as np

from pscdsl._src.ir.primitive import H, Hlo
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dtypes import U32

T = TypeVar("T")
U = TypeVar("U", bound=np.unsignedinteger[Any])

ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
"""By how much each round rotates; the two rows take turns, four rounds each."""
PARITY: Final = 0x1BD11BDA
"""What the third word of the key is mixed from, beside the first two."""
GROUPS: Final = 5


class Words(Protocol[T]):
    """Arithmetic on words of 32 bits."""

    def add(self, x: T, y: T) -> T:
        """Their sum, modulo 2**32."""
        ...

    def xor(self, x: T, y: T) -> T:
        """Their bitwise exclusive or."""
        ...

    def rotate(self, x: T, by: int) -> T:
        """The bits moved to the left, those that fall out put in on the right."""
        ...

    def number(self, value: int, like: T) -> T:
        """A number as a word."""
        ...


def threefry(words: Words[T], key: tuple[T, T], counter: tuple[T, T]) -> tuple[T, T]:
    """The block that a counter is enciphered to; different counters give different blocks."""
    first, second = key
    third = words.xor(words.xor(first, second), words.number(PARITY, first))
    schedule = (first, second, third)
    x, y = words.add(counter[0], first), words.add(counter[1], second)
    for group in range(GROUPS):
        for by in ROTATIONS[group % 2]:
            x = words.add(x, y)
            y = words.xor(words.rotate(y, by), x)
        x = words.add(x, schedule[(group + 1) % 3])
        late = words.add(schedule[(group + 2) % 3], words.number(group + 1, first))
        y = words.add(y, late)
    return x, y


Array = np.ndarray[Any, np.dtype[np.uint32]]


class NumPyWords:
    """Words in NumPy arrays."""

    def add(self, x: Array, y: Array) -> Array:
        """Their sum, modulo 2**32."""
        with np.errstate(over="ignore"):
            return np.asarray(x + y)

    def xor(self, x: Array, y: Array) -> Array:
        """Their bitwise exclusive or."""
        return np.asarray(x ^ y)

    def rotate(self, x: Array, by: int) -> Array:
        """The bits moved to the left, those that fall out put in on the right."""
        return np.asarray((x << np.uint32(by)) | (x >> np.uint32(32 - by)))

    def number(self, value: int, like: Array) -> Array:
        """A number as a word."""
        return np.asarray(value, np.uint32)


class HloWords:
    """Words in a module, all of one shape."""

    def __init__(self, hlo: Hlo, shape: Sequence[int]) -> None:
        self.hlo = hlo
        self.type = ArrayType(U32, tuple(shape))

    def add(self, x: H, y: H) -> H:
        """Their sum, modulo 2**32."""
        return self.hlo.binary("add", x, y)

    def xor(self, x: H, y: H) -> H:
        """Their bitwise exclusive or."""
        return self.hlo.binary("xor", x, y)

    def rotate(self, x: H, by: int) -> H:
        """The bits moved to the left, those that fall out put in on the right."""
        left = self.hlo.binary("shift_left", x, self.number(by, x))
        right = self.hlo.binary("shift_right_logical", x, self.number(32 - by, x))
        return self.hlo.binary("or", left, right)

    def number(self, value: int, like: H) -> H:
        """A number as a word."""
        return self.hlo.full(value, self.type)
