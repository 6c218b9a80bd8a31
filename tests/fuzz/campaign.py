"""Trials: a program, mutants of it, programs with impurities, and the figures of many of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from pscdsl.typing.codes.limits import NoRule
from pscdsl.typing.diagnostics import Failure
from tests.fuzz import files, processes
from tests.fuzz.derived import of_equations, of_text
from tests.fuzz.impurities import with_impurity
from tests.fuzz.laws import Broken, Outcome, examine
from tests.fuzz.mutants import KINDS, mutant
from tests.fuzz.programs import Program, generate
from tests.fuzz.smooth_programs import SmoothProgram

PROGRAM = "a program"
IN_FILES, IN_PROCESSES = 5, 50
"""One seed of so many is tried in several files, and in other processes, which takes seconds."""


@dataclass(frozen=True)
class Problem:
    """A law that does not hold, and the program that shows it."""

    seed: int
    kind: str
    why: str
    text: str


@dataclass
class Figures:
    """What became of programs and mutants, by kind."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    problems: list[Problem] = field(default_factory=list[Problem])
    runs: int = 0

    def add(self, seed: int, kind: str, text: str, outcome: Outcome | Broken) -> None:
        """Count one."""
        if isinstance(outcome, Broken):
            self.counts[kind, "wrong"] += 1
            self.problems.append(Problem(seed, kind, str(outcome), text))
            return
        self.counts[kind, outcome.kind] += 1
        self.runs += outcome.runs
        if kind == PROGRAM and outcome.kind == "rejected":
            why = f"a false alarm: {', '.join(outcome.codes)}"
            self.problems.append(Problem(seed, kind, why, text))
        if kind.startswith("impure") and outcome.kind != "rejected":
            self.problems.append(Problem(seed, kind, "an impurity is accepted", text))

    def table(self) -> str:
        """One line a kind."""
        columns = ("rejected", "agrees", "documented", "ill-conditioned", "not run", "wrong")
        rows = [f"{'':32}" + "".join(f"{name:>16}" for name in columns)]
        for kind in sorted({kind for kind, _ in self.counts}):
            numbers = "".join(f"{self.counts[kind, name]:>16}" for name in columns)
            rows.append(f"{kind:32}{numbers}")
        return "\n".join(rows)


def tried(program: Program, rng: random.Random, runs: int) -> Outcome | Broken:
    """What becomes of a program; whatever is raised breaks a law."""
    try:
        return examine(program, rng, runs)
    except Broken as broken:
        return broken
    except Exception as error:
        return Broken(f"{type(error).__name__}: {error}")


def mutants_of(text: str, rng: random.Random, count: int) -> Iterator[tuple[str, str]]:
    """Kinds and texts of some mutants, a quarter of them impure."""
    for kind in rng.sample(KINDS, min(len(KINDS), count)):
        found = mutant(text, rng, kind)
        if found is not None:
            yield kind, found.text
    for _ in range(max(1, count // 4)):
        impure = with_impurity(text, rng)
        if impure is not None:
            yield f"impure: {impure[0]}", impure[1]


def derivatives(seed: int, figures: Figures, size: int = 6) -> None:
    """The derivatives and batches of two programs, some of them compiled too."""
    smooth, compiling = seed % 3 != 0, seed % 5 == 0
    program = generate(random.Random(seed), size)
    equations = str(SmoothProgram(seed).function())
    cases: list[tuple[str, str, Callable[[], dict[str, int]]]] = [
        ("derivatives", program.text, lambda: of_text(program, seed, smooth, compiling)),
        ("derivatives of equations", equations, lambda: of_equations(seed, smooth, compiling)),
    ]
    for kind, text, run in cases:
        outcome: Outcome | Broken
        try:
            tried = run()
            outcome = Outcome("agrees" if tried else "not run", runs=bool(tried))
        except Broken as broken:
            outcome = broken
        except Failure as failure:
            missing = all(isinstance(each, NoRule) for each in failure.diagnostics)
            outcome = Outcome("not run") if missing else Broken(str(failure))
        except Exception as error:
            outcome = Broken(f"{type(error).__name__}: {error}")
        figures.add(seed, kind, text, outcome)


def elsewhere(
    seed: int, figures: Figures, program: Program, mutants: int = 1, in_processes: bool = False
) -> None:
    """A program and mutants of it in several files, and perhaps in other processes."""
    rng = random.Random(seed)
    texts = [text for _, text in mutants_of(program.text, rng, mutants)]
    texts = [text for text in texts if "global " not in text][:mutants]  # it names one module
    cases: list[tuple[str, str, Callable[[], bool]]] = []
    for text in (program.text, *texts):
        changed = replace(program, text=text)
        cases.append(("several files", text, partial(files.agree, changed, rng)))
    if in_processes:
        here = partial(processes.agree, program, rng)
        cases.append(("several processes", program.text, here))
    for kind, text, run in cases:
        outcome: Outcome | Broken
        try:
            outcome = Outcome("agrees" if run() else "rejected")
        except Broken as broken:
            outcome = broken
        except Exception as error:
            outcome = Broken(f"{type(error).__name__}: {error}")
        figures.add(seed, kind, text, outcome)


def trial(seed: int, figures: Figures, mutants: int = 8, runs: int = 2, size: int = 6) -> None:
    """One program and some of its mutants; some programs in several files and processes, too."""
    rng = random.Random(seed)
    program = generate(rng, size)
    outcome = tried(program, random.Random(seed), runs)
    figures.add(seed, PROGRAM, program.text, outcome)
    if isinstance(outcome, Broken) or outcome.kind == "rejected":
        return
    for kind, text in mutants_of(program.text, rng, mutants):
        changed = replace(program, text=text)
        figures.add(seed, kind, text, tried(changed, random.Random(seed), runs))
    if seed % IN_FILES == 0:
        elsewhere(seed, figures, program, in_processes=seed % IN_PROCESSES == 0)
