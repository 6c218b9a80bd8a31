"""What a campaign is: programs that seeds make, and how each is tried."""

from __future__ import annotations

import argparse
import traceback
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from tests.campaign.outcomes import Figures, Outcome


@contextmanager
def deep_and_quiet() -> Generator[None]:
    """Return a context with room for nested programs, and without warnings."""
    from pscdsl._src.checker.check import deep_stack  # which processes without one do not wait for

    with deep_stack(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _next_seed(given: Namespace, place: int) -> int:
    return int(given.seed) + place


def _no_arguments(parser: ArgumentParser) -> None:
    """Add no arguments."""


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """Programs that are made from seeds, and tried."""

    about: str
    attempt: Callable[[int, Namespace], Iterable[Outcome]]
    """Try the programs of a seed; only the one at `given.part`, if that is not None."""
    texts: Callable[[int, Namespace], Sequence[str]]
    """The programs of a seed, which are tried one by one if together they end the process."""
    default: int
    """How many programs are tried, if the command does not say it."""
    programs: int = 1
    """About how many programs a seed has."""
    chunk: int = 200
    """How many seeds a process tries."""
    patience: float = 300.0
    """After how many seconds a seed hangs."""
    arguments: Callable[[ArgumentParser], None] = _no_arguments
    """Add the arguments of its own."""
    seed: Callable[[Namespace, int], int] = _next_seed
    """The seed at a place of the run, counted from 0."""
    around: Callable[[], AbstractContextManager[Any]] = nullcontext
    """In which context the programs are tried."""
    prepare: Callable[[Namespace], None] | None = None
    """What is done once, before any process starts."""
    report: Callable[[Figures, Namespace], str] | None = None
    """What is printed below the figures."""
    smaller: Callable[[int, Outcome, Namespace], str] | None = None
    """A smaller program with the same problem, for the folder of problems."""

    def parser(self, name: str) -> ArgumentParser:
        """Return the parser of the command."""
        parser = ArgumentParser(prog=f"python -m tests.campaign {name}", description=self.about)
        parser.add_argument("--programs", type=int, help=f"about how many ({self.default:,})")
        parser.add_argument("--minutes", type=float, help="for as long, in place of --programs")
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
        parser.add_argument("--folder", help="for the report and the programs with a problem")
        parser.add_argument("--first", action="store_true", help="stop at the first problem")
        parser.add_argument("--worker", type=int, nargs=2, help=argparse.SUPPRESS)
        parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
        self.arguments(parser)
        return parser

    def outcomes(self, place: int, given: Namespace) -> Iterable[Outcome]:
        """Yield what becomes of the programs at a place; whatever is raised is a problem."""
        seed = self.seed(given, place)
        try:
            yield from self.attempt(seed, given)
        except Exception as error:
            text = f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
            yield Outcome("error", problem=text)

    def here(self, places: Iterable[int], *arguments: str) -> Figures:
        """Try some in this process, as tests do."""
        given = self.parser("").parse_args(arguments)
        figures = Figures()
        with self.around():
            for place in places:
                figures.add(self.seed(given, place), self.outcomes(place, given))
        return figures
