"""What the writers of random programs share: choices of a seed, new names, and indented lines."""

from __future__ import annotations

import random
from collections.abc import Generator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


class ProgramWriter:
    """The text of a program in the making; every choice comes from `rng`."""

    def __init__(self, seed: int, depth: int = 1) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.depth = depth
        """How deep the next line is indented."""
        self.count = 0
        """How many names were made."""

    def chance(self, probability: float) -> bool:
        """Whether something of a probability is done."""
        return self.rng.random() < probability

    def one(self, *options: T) -> T:
        """One of several."""
        return self.rng.choice(options)

    def name(self, stem: str) -> str:
        """A new name."""
        self.count += 1
        return f"{stem}{self.count}"

    def line(self, text: str) -> bool:
        """Write a line, or some; True, as of a statement that could be written."""
        self.lines += ["    " * self.depth + line for line in text.split("\n")]
        return True

    @contextmanager
    def inside(self) -> Generator[None]:
        """What is written meanwhile is one level deeper."""
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
