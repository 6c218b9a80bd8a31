"""A program in both languages, and what is done to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent

Edit = tuple[str, str]
"""What stands there once, and what replaces it."""


@dataclass(frozen=True)
class Mistake:
    """The same mistake in both."""

    about: str
    code: str | None
    """With which `pscdsl check` refuses it; None if it is not seen."""
    ours: Sequence[Edit]
    theirs: Sequence[Edit]
    effect: bool = False
    """Whether it is an effect that changes no number: jax has it while it traces, then no more."""


def _itself(found: Any) -> Any:
    return found


@dataclass(frozen=True)
class Run:
    """A call that an example makes, whose time is compared: the largest one of this kernel."""

    name: str
    """Of the kernel in the example, and of the function in jax."""
    about: str
    tolerance: float = 1e-6
    """How far results may be apart, as a part of the greatest number in each of their arrays."""
    compared: Callable[[Any], Any] = _itself
    """What of the results must be equal, if not all of them."""
    note: str = ""
    """Why not all of them, say."""
    carried: int = 0
    """How many results, the first ones, are the first arguments of the next call."""


def _run(example: Any) -> object:
    return example.run()


@dataclass(frozen=True)
class Program:
    """Kernels of an example, and of the standard library where the example rests on them."""

    name: str
    pieces: Sequence[tuple[str, Sequence[str]]]
    """Files, from the root of the project, with the names of what is taken from each."""
    mistakes: Sequence[Mistake]
    calls: Callable[[Any, bool], Sequence[tuple[str, Sequence[Any]]]]
    """Of the module in jax: functions and arguments, whose sizes are all equal or all differ."""
    wide: bool = True
    """Whether there are 64-bit numbers, for which jax has a switch."""
    runs: Sequence[Run] = ()
    example: Callable[[Any], object] = _run
    """What runs the example, given its module, so that it makes the calls that are timed."""

    @property
    def theirs(self) -> str:
        """The text in jax."""
        return (FOLDER / f"{self.name}_jax.py").read_text(encoding="utf-8")


def edited(text: str, edits: Sequence[Edit]) -> str:
    """The text with all edits made."""
    for old, new in edits:
        if text.count(old) != 1:
            raise ValueError(f"stands there {text.count(old)} times: {old}")
        text = text.replace(old, new)
    return text
