"""The page: how many lines each program has, and what each checker says of each mistake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.comparison.checkers import CHECKERS
from benchmarks.comparison.core import core, lines_of_code
from benchmarks.comparison.program import Mistake, Program

ERROR, WRONG = "error when run", "wrong result, silently"

LONG = {"error": ERROR, "wrong": WRONG}
"""What the tables say shorter."""

RUNS = ("equal", "differ", "options")

HEAD = """\
# The same programs in jax

This page compares the kernels of {programs} examples with the same functions written for jax, with
jaxtyping and typeguard. It includes the library functions that the kernels use, unless jax has them
too. Each program got {mistakes} mistakes, the same in both versions. The tables count
lines of code, at most 100 characters wide and without imports, comments and docstrings, and show
which tool finds which mistake. We chose the mistakes, so the numbers say which kinds are found
where, not how often people make them. [Run times](#run-times) are at the end.

* `pscdsl check` reads the kernels, before anything runs.
* mypy, pyright, ty and Pyrefly, with their default settings, read the functions in jax. Pyrefly's
  tensor shapes, which are experimental, have rules for PyTorch's operations and none for jax's.
* jax runs each function twice under `jit`, with jaxtyping's checks: with equal sizes; with
  different sizes; and with different sizes and options. The options are those of
  `jax_numpy_dtype_promotion=strict`, `jax_numpy_rank_promotion=raise`, `jax_debug_key_reuse` and
  `jax_debug_nans` under which the correct program still runs.

"Wrong" is a wrong result without an error; "runs" is the correct result. "Runs once" means that an
effect, for instance a print, happened while jax traced the function, and not when it was called
again. An "error" is raised while jax traces, or after it has computed a NaN: it needs arguments,
and often arguments whose sizes differ.

`python -m benchmarks.comparison --write --python PYTHON` generates this page, where PYTHON has jax,
jaxtyping and typeguard 2, whose later versions refuse jaxtyping's shapes. This page was made with
{versions}.
The mistakes are in the folder `benchmarks/comparison` of the repository, and the tests check ours.
"""


@dataclass(frozen=True)
class Line:
    """What all say of one mistake."""

    program: Program
    mistake: Mistake
    codes: Mapping[str, Sequence[str]]
    """Of each type checker."""
    outcomes: Mapping[str, str]
    """When jax runs it: with equal sizes, with different ones, and with options."""


def page(lines: Sequence[Line], versions: Mapping[str, str]) -> str:
    """The whole page in Markdown."""
    programs = list(dict.fromkeys(line.program.name for line in lines))
    each = len(lines) // len(programs)
    made = {"mistakes": _number(each), "versions": spelled(versions)}
    head = HEAD.format(programs=_number(len(programs)), **made)
    return "\n".join([head, *_summary(programs, lines), "", *_details(programs, lines)]) + "\n"


def spelled(versions: Mapping[str, str]) -> str:
    """What the page says that it was made with."""
    return ", ".join(f"{name} {number}" for name, number in versions.items())


def read(text: str, programs: Sequence[Program]) -> Iterator[Line]:
    """What a page says of these programs; a LookupError if it does not have all their mistakes."""
    for program in programs:
        section = text.partition(f"\n## {program.name}\n")[2].partition("\n## ")[0]
        rows = [line[2:-2].split(" | ") for line in section.splitlines() if line.startswith("| ")]
        said = {about: each for about, _, *each in rows}
        for mistake in program.mistakes:
            cells = said[mistake.about]
            codes = dict(zip(CHECKERS, map(_codes, cells), strict=False))
            runs = cells[len(CHECKERS) :]
            outcomes = {when: LONG.get(run, run) for when, run in zip(RUNS, runs, strict=True)}
            yield Line(program, mistake, codes, outcomes)


def _codes(cell: str) -> Sequence[str]:
    return [] if cell == "-" else cell.split(", ")


def _summary(programs: Sequence[str], lines: Sequence[Line]) -> Iterator[str]:
    yield "## Lines of code and mistakes found"
    yield ""
    runs = "jax, equal sizes | jax, different sizes | jax, options"
    yield f"| | lines | in jax | `pscdsl check` | {' | '.join(CHECKERS)} | {runs} |"
    yield "|---" + "|--:" * (6 + len(CHECKERS)) + "|"
    total = [0, 0]
    for name in programs:
        own = [line for line in lines if line.program.name == name]
        program = own[0].program
        sizes = lines_of_code(core(program.pieces)), lines_of_code(program.theirs)
        total = [total[0] + sizes[0], total[1] + sizes[1]]
        yield _row([name, *map(str, sizes), *_counts(own)])
    yield _row([f"of {len(lines)} mistakes", *map(str, total), *_counts(lines)])


def _counts(lines: Sequence[Line]) -> Iterator[str]:
    yield str(sum(line.mistake.code is not None for line in lines))
    for by in CHECKERS:
        yield str(sum(bool(line.codes[by]) for line in lines))
    for when in RUNS:
        yield str(sum(line.outcomes[when] == ERROR for line in lines))


def _details(programs: Sequence[str], lines: Sequence[Line]) -> Iterator[str]:
    theirs = [line for line in lines if line.mistake.code is None and ERROR in _told(line)]
    nobody = [line for line in lines if line.mistake.code is None and ERROR not in _told(line)]
    yield "What jax finds and `pscdsl check` does not: " + _named(theirs)
    yield ""
    yield "What nobody finds: " + _named(nobody)
    for name in programs:
        own = [line for line in lines if line.program.name == name]
        yield ""
        yield f"## {name}"
        yield ""
        checkers = " | ".join(CHECKERS)
        yield f"| mistake | `pscdsl check` | {checkers} | equal sizes | different | options |"
        yield "|---" * (5 + len(CHECKERS)) + "|"
        for line in own:
            codes = [", ".join(line.codes[by]) or "-" for by in CHECKERS]
            ours = line.mistake.code or "-"
            runs = [_short(line, when) for when in RUNS]
            yield _row([line.mistake.about, ours, *codes, *runs])


def _told(line: Line) -> Sequence[str]:
    return list(line.outcomes.values())


def _short(line: Line, when: str) -> str:
    outcome = line.outcomes[when]
    if outcome == ERROR:
        return "error"
    if outcome == WRONG:
        return "wrong"
    return "runs once" if line.mistake.effect else "runs"


def _named(lines: Sequence[Line]) -> str:
    found = [f"{line.mistake.about} ({line.program.name})" for line in lines]
    return ("; ".join(found) or "nothing") + "."


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _number(number: int) -> str:
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return words[number] if number < len(words) else str(number)
