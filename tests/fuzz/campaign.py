"""Trials: a program, mutants of it, programs with impurities, derivatives.

`python -m tests.campaign programs --minutes 10` tries many.
"""

from __future__ import annotations

import random
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from pscdsl.typing.codes.limits import NoRule
from pscdsl.typing.diagnostics import Failure
from tests.campaign.campaign import Campaign
from tests.campaign.outcomes import Outcome
from tests.fuzz import files, laws, processes
from tests.fuzz.derived import of_equations, of_text
from tests.fuzz.impurities import with_impurity
from tests.fuzz.laws import Broken
from tests.fuzz.mutants import KINDS, mutant
from tests.fuzz.programs import Program, generate
from tests.fuzz.smooth_programs import SmoothProgram

PROGRAM = "a program"
IN_FILES, IN_PROCESSES = 5, 50
"""One seed of so many is tried in several files, and in other processes, which takes seconds."""


def outcome(kind: str, text: str, found: laws.Outcome | Broken) -> Outcome:
    """Return what became of a program or a mutant; broken laws and false alarms are problems."""
    if isinstance(found, Broken):
        return Outcome("wrong", kind, problem=str(found), text=text)
    problem = ""
    if kind == PROGRAM and found.kind == "rejected":
        problem = f"a false alarm: {', '.join(found.codes)}"
    if kind.startswith("impure") and found.kind != "rejected":
        problem = "an impurity is accepted"
    shown = text if problem else ""
    return Outcome(found.kind, kind, problem=problem, text=shown, counts={"runs": found.runs})


def ran(run: Callable[[], laws.Outcome]) -> laws.Outcome | Broken:
    """Return what an examination finds; whatever is raised breaks a law."""
    try:
        return run()
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


def derivatives(seed: int, size: int = 6) -> Iterator[Outcome]:
    """The derivatives and batches of two programs, some of them compiled too."""
    smooth, compiling = seed % 3 != 0, seed % 5 == 0
    program = generate(random.Random(seed), size)
    equations = str(SmoothProgram(seed).function())
    cases: list[tuple[str, str, Callable[[], dict[str, int]]]] = [
        ("derivatives", program.text, lambda: of_text(program, seed, smooth, compiling)),
        ("derivatives of equations", equations, lambda: of_equations(seed, smooth, compiling)),
    ]
    for kind, text, run in cases:
        yield outcome(kind, text, ran(partial(_derived, run)))


def _derived(run: Callable[[], dict[str, int]]) -> laws.Outcome:
    try:
        tried = run()
    except Failure as failure:
        if all(isinstance(each, NoRule) for each in failure.diagnostics):
            return laws.Outcome("not run")
        raise
    return laws.Outcome("agrees" if tried else "not run", runs=bool(tried))


def elsewhere(
    seed: int, program: Program, mutants: int = 1, in_processes: bool = False
) -> Iterator[Outcome]:
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
        yield outcome(kind, text, ran(partial(_agreed, run)))


def _agreed(run: Callable[[], bool]) -> laws.Outcome:
    return laws.Outcome("agrees" if run() else "rejected")


def trial(seed: int, mutants: int = 8, runs: int = 2, size: int = 6) -> Iterator[Outcome]:
    """One program and some of its mutants; some programs in several files and processes, too."""
    rng = random.Random(seed)
    program = generate(rng, size)
    found = ran(partial(laws.examine, program, random.Random(seed), runs))
    yield outcome(PROGRAM, program.text, found)
    if isinstance(found, Broken) or found.kind == "rejected":
        return
    for kind, text in mutants_of(program.text, rng, mutants):
        changed = replace(program, text=text)
        run = partial(laws.examine, changed, random.Random(seed), runs)
        yield outcome(kind, text, ran(run))
    if seed % IN_FILES == 0:
        yield from elsewhere(seed, program, in_processes=seed % IN_PROCESSES == 0)


def attempt(seed: int, given: Namespace) -> Iterator[Outcome]:
    """Try a program of a seed, mutants, and derivatives."""
    yield from trial(seed, given.mutants, 2, given.size)
    yield from derivatives(seed, given.size)


def arguments(parser: ArgumentParser) -> None:
    """Add the sizes of programs."""
    parser.add_argument("--size", type=int, default=6, help="statements of a program, at most")
    parser.add_argument("--mutants", type=int, default=8, help="of each program")


CAMPAIGN = Campaign(
    about="Well-typed programs beside NumPy, mutants and impurities; derivatives and batches.",
    attempt=attempt,
    texts=lambda seed, given: [generate(random.Random(seed), given.size).text],
    default=100,
    chunk=4,
    arguments=arguments,
)
