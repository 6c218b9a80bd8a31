"""The static language against CPython: what is accepted has the value that CPython computes.

`python -m tests.campaign static --programs 20000` tries the programs of as many seeds, and mutants
of those that are accepted.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import contextlib
import dataclasses
import enum
import io
import sys
import tempfile
import types
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pscdsl as psc
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
from tests.campaign.campaign import Campaign, deep_and_quiet
from tests.campaign.outcomes import Outcome
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


def attempt(seed: int, given: Namespace) -> Iterator[Outcome]:
    """Try the program of a seed, and mutants of it if it is accepted."""
    with tempfile.TemporaryDirectory() as name:
        program = generate(seed)
        found = verdict(program, Path(name))
        yield outcome("programs", program, found)
        if found.startswith("refused"):
            return
        for number in range(given.mutants):
            changed = mutant(program, 1000 * seed + number)
            if changed is not None:
                yield outcome("mutants", changed, verdict(changed, Path(name)))


def outcome(of: str, program: StaticProgram, found: str) -> Outcome:
    """Return a verdict as an outcome."""
    kind, _, code = found.partition(" ") if found.startswith("refused") else (found, "", "")
    if found.startswith("different"):
        kind = "different"
    wrong = kind == "different" or "poison" in found or code == "PSC999"
    text = program.text + (program.other or "")
    return Outcome(kind, of, code, found if wrong else "", text if wrong else "")


def arguments(parser: ArgumentParser) -> None:
    """Add the number of mutants."""
    parser.add_argument("--mutants", type=int, default=2, help="of each program")


CAMPAIGN = Campaign(
    about="Programs of the static language, beside CPython.",
    attempt=attempt,
    texts=lambda seed, _: [generate(seed).text],
    default=2000,
    chunk=500,
    arguments=arguments,
    around=deep_and_quiet,
)
