"""The static language against CPython: what is accepted has the value that CPython computes.

`python -m tests.fuzz.static_differences --programs 20000` prints what became of the programs of as
many seeds, and of mutants of those that were accepted; the exit code is 1 if one is wrong.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import enum
import io
import sys
import tempfile
import time
import types
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pscdsl as psc
from pscdsl._src.checker.check import deep_stack
from pscdsl._src.frontend.definitions import Excluded
from pscdsl._src.frontend.interpreter.frames import Session
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.interpreter.statements import Widened
from pscdsl._src.frontend.modules.scope import Project
from pscdsl._src.frontend.text.source import Source
from pscdsl._src.frontend.values import EnumMember, Poisoned, RecordValue, Undecided, is_poisoned
from pscdsl._src.ir.builder import Program
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, evaluate, variable
from pscdsl.typing.python_containers import is_tuple
from tests.fuzz.static_programs import StaticProgram, generate, mutant

SIZES = ((1, 1), (2, 3), (3, 2), (5, 7))


class Refused(Exception):
    """The front end does not accept a program; the argument is the code of a finding."""


class NotComparable(Exception):
    """A value of which no two can be compared."""


def ours(program: StaticProgram, folder: Path) -> tuple[Any, tuple[Fact, ...]]:
    """What `main` returns for the sizes `n` and `m`, and what is assumed of these."""
    path = folder / "program.py"
    if program.other is not None:
        path.write_text(program.text, encoding="utf-8")
        (folder / "other.py").write_text(program.other, encoding="utf-8")
    project = Project()
    state = Program(Assumptions())
    session = Session(state)
    try:
        source = Source("program.py", program.text)
        module = project.add(source, None if program.other is None else str(path))
        main = module.lookup("main")
        if not isinstance(main, Closure):
            raise Refused("main")
        session.root = main
        value = main.apply(state.current, (variable("n"), variable("m")), {})
    except Failure as failure:
        raise Refused(failure.diagnostics[0].code) from None
    except (Poisoned, Excluded, Widened, KeyError):
        raise Refused("stopped") from None
    except RecursionError:  # a default that makes its own class
        raise Refused("PSC950") from None
    if session.findings:
        raise Refused(session.findings[0].code)
    if is_poisoned(value):
        raise Refused("poison without a finding")
    return value, state.facts.facts


def holds(fact: Fact, env: Mapping[str, int]) -> bool:
    """Whether a fact holds for some sizes."""
    left, right = (evaluate(each, env) for each in (fact.left, fact.right))
    table: dict[str, Callable[[int, int], bool]] = {
        "==": int.__eq__,
        "!=": int.__ne__,
        "<": int.__lt__,
        "<=": int.__le__,
    }
    return bool(table[str(fact.relation)](left, right))


def at_sizes(value: Any, env: Mapping[str, int]) -> Any:
    """A static value of ours as Python has it for some sizes."""
    if isinstance(value, Dim):
        return evaluate(value, env)
    if isinstance(value, Undecided):
        return (any if value.any_of else all)(holds(fact, env) for fact in value.facts)
    if isinstance(value, RecordValue):
        fields = tuple((name, at_sizes(each, env)) for name, each in value.fields.items())
        return ("an instance", value.cls.title, fields)
    if isinstance(value, EnumMember):
        return ("a member", value.owner.rpartition(".")[2], value.name)
    return mapped(value, lambda each: at_sizes(each, env))


def of_python(value: Any) -> Any:
    """A value of CPython's in the same form."""
    if isinstance(value, enum.Enum):
        return ("a member", type(value).__name__, value.name)
    if isinstance(value, psc.Record) or dataclasses.is_dataclass(value):
        names = [each.name for each in dataclasses.fields(value)]  # type: ignore[arg-type]
    elif is_tuple(value) and hasattr(value, "_fields"):
        names = list(getattr(value, "_fields"))  # noqa: B009
    else:
        return mapped(value, of_python)
    fields = tuple((name, of_python(getattr(value, name))) for name in names)
    return ("an instance", type(value).__name__, fields)


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """A value with its parts changed; NotComparable if it has none and is no plain one."""
    if type(value) in (bool, int, float, complex, str, bytes, type(None), range):
        return value
    if type(value) in (tuple, list):
        return type(value)(map(change, value))
    if type(value) is dict:
        return {change(key): change(each) for key, each in value.items()}
    if type(value) in (set, frozenset):
        return (type(value).__name__, tuple(sorted(map(repr, map(change, value)))))
    raise NotComparable(type(value).__name__)


def loaded(program: StaticProgram) -> dict[str, Any] | None:
    """The namespace of a program, run by CPython; None if it cannot be imported."""
    for name, text in (("other", program.other), ("static_program", program.text)):
        module = types.ModuleType(name)
        sys.modules[name] = module
        if text is None:
            continue
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(text, f"<{name}>", "exec", dont_inherit=True), module.__dict__)
        except Exception:
            return None
    return vars(sys.modules["static_program"])


def verdict(program: StaticProgram, folder: Path) -> str:
    """What became of a program; a difference says what the two have computed."""
    try:
        value, facts = ours(program, folder)
    except Refused as refusal:
        return f"refused {refusal}"
    namespace = loaded(program)
    if namespace is None:
        return "not imported"
    for n, m in SIZES:
        env = {"n": n, "m": m}
        if not all(holds(fact, env) for fact in facts):
            continue  # a call with these sizes is refused
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                found = namespace["main"](n, m)
        except RecursionError:
            return "not comparable"
        except Exception as error:
            return f"different at n={n}, m={m}: Python raises {type(error).__name__}: {error}"
        try:
            mine, theirs = at_sizes(value, env), of_python(found)
        except NotComparable:
            return "not comparable"
        if repr(mine) != repr(theirs):
            return f"different at n={n}, m={m}: ours {mine!r}, Python's {theirs!r}"
    return "the same"


@dataclasses.dataclass
class StaticFigures:
    """What became of the programs of some seeds."""

    counts: Counter[str] = dataclasses.field(default_factory=Counter[str])
    refusals: Counter[str] = dataclasses.field(default_factory=Counter[str])
    problems: list[tuple[int, str, str]] = dataclasses.field(
        default_factory=list[tuple[int, str, str]]
    )

    def add(self, seed: int, kind: str, program: StaticProgram, found: str) -> None:
        """Count one."""
        outcome = found.split(" at n=")[0] if found.startswith("different") else found
        if found.startswith("refused"):
            outcome = "refused"
            self.refusals[found.removeprefix("refused ")] += 1
        self.counts[f"{kind}: {outcome}"] += 1
        if found.startswith("different") or "poison" in found or found.endswith("PSC999"):
            self.problems.append((seed, found, program.text + (program.other or "")))


def try_seeds(seeds: range, mutants: int = 2) -> StaticFigures:
    """The programs of some seeds, and mutants of those that are accepted."""
    figures = StaticFigures()
    with (
        tempfile.TemporaryDirectory() as name,
        deep_stack(),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        folder = Path(name)
        for seed in seeds:
            program = generate(seed)
            found = verdict(program, folder)
            figures.add(seed, "a program", program, found)
            if found.startswith("refused"):
                continue
            for number in range(mutants):
                changed = mutant(program, 1000 * seed + number)
                if changed is not None:
                    figures.add(seed, "a mutant", changed, verdict(changed, folder))
    return figures


def main() -> int:
    """Try seeds, and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.static_differences")
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--mutants", type=int, default=2, help="of each program")
    given = parser.parse_args()
    start = time.monotonic()
    figures = try_seeds(range(given.seed, given.seed + given.programs), given.mutants)
    for seed, found, text in figures.problems:
        print(f"seed {seed}: {found}\n{text}")
    for name, count in sorted(figures.counts.items()):
        print(f"{name:32}{count:>10}")
    print("refusals:", dict(figures.refusals.most_common(12)))
    print(f"{len(figures.problems)} problems, {time.monotonic() - start:.0f} s")
    return int(bool(figures.problems))


if __name__ == "__main__":
    sys.exit(main())
