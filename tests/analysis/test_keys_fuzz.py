"""Generated programs over keys: accepted if they use each key once, refused if they do not.

What is accepted is run, and every key that is consumed on the way is noted: none comes twice.
`make fuzz` tries more of them.
"""

from __future__ import annotations

import random

import pytest

from pscdsl._src.analysis.keys.walk import reused_keys
from pscdsl._src.checker.check import check_source
from pscdsl._src.frontend import definitions
from pscdsl._src.ir.program import Function, Var
from pscdsl.typing.codes.keys import KeyReused
from pscdsl.typing.diagnostics import Span
from tests.support import linear_programs
from tests.support.linear_programs import elaborated, used_once
from tests.support.share import due

pytestmark = pytest.mark.quick_code

PROGRAMS = 40
MORE = due(4000, 50)
GROUPS = 8

HEAD = """\
import numpy as np
import pscdsl as psc
from pscdsl import Key, f32


@psc.kernel
def noise(key: Key) -> f32:
    one, other = psc.random.split(key)
    return psc.random.normal(one) * psc.random.normal(other)


@psc.kernel
def onward(key: Key, t: f32) -> tuple[Key, f32]:
    key, sub = psc.random.split(key)
    return key, t + psc.random.uniform(sub)


"""


class Writer:
    """Writes a kernel that uses each key once; with `wrong`, one key once more."""

    def __init__(self, seed: int, wrong: bool) -> None:
        self.choose = random.Random(seed)
        self.wrong = wrong
        self.names = 0
        self.lines: list[str] = []

    def program(self) -> str:
        """The whole module."""
        self.lines.append("@psc.kernel\ndef f(key: Key, t: f32) -> f32:")
        free, used = self.body("    ", ["key"], self.choose.randint(3, 8), 0)
        if self.wrong:
            again = self.choose.choice(used) if used else "key"
            if not used:
                self.lines.append("    t = t + noise(key)")
            self.lines.append(f"    t = t + psc.random.normal({again})")
        del free
        self.lines.append("    return t")
        return HEAD + "\n".join(self.lines) + "\n"

    def fresh(self, hint: str) -> str:
        """A name that is not taken."""
        self.names += 1
        return f"{hint}{self.names}"

    def body(
        self, indent: str, free: list[str], count: int, depth: int
    ) -> tuple[list[str], list[str]]:
        """Statements; the keys that are left, and those that were consumed."""
        used: list[str] = []
        kinds = [self.draw, self.call, self.split, self.several, self.fold, self.onward, self.map]
        if depth < 2:
            kinds += [self.loop, self.branch]
        for _ in range(count):
            if not free:
                break
            key = free.pop(self.choose.randrange(len(free)))
            if self.choose.choice(kinds)(indent, key, free, depth):
                used.append(key)
        return free, used

    def draw(self, indent: str, key: str, free: list[str], depth: int) -> bool:
        """Draw one number."""
        self.lines.append(f"{indent}t = t + psc.random.normal({key})")
        return True

    def call(self, indent: str, key: str, free: list[str], depth: int) -> bool:
        """Give the key to a kernel."""
        self.lines.append(f"{indent}t = t * noise({key})")
        return True

    def split(self, indent: str, key: str, free: list[str], depth: int) -> bool:
        """Two keys in place of one."""
        one, other = self.fresh("k"), self.fresh("k")
        self.lines.append(f"{indent}{one}, {other} = psc.random.split({key})")
        free += [one, other]
        return True

    def several(self, indent: str, key: str, free: list[str], depth: int) -> bool:
        """An array of keys, used by parts."""
        keys = self.fresh("ks")
        self.lines.append(f"{indent}{keys} = psc.random.split({key}, 4)")
        free += [f"{keys}[0]", f"{keys}[-1]", f"{keys}[1:3][1]", f"{keys}.reshape(2, 2)[0, 1]"][:3]
        return True

    def fold(self, indent: str, key: str, free: list[str], depth: int) -> bool:
        """Two keys from a key and numbers."""
        for number in range(2):
            name = self.fresh("f")
            self.lines.append(f"{indent}{name} = psc.random.fold_in({key}, {number})")
            free.append(name)
        return True

    def onward(self, indent: str, key: str, free: list[str], depth: int) -> bool:
        """A kernel that gives a key back."""
        name = self.fresh("k")
        self.lines.append(f"{indent}{name}, t = onward({key}, t)")
        free.append(name)
        return True

    def map(self, indent: str, key: str, free: list[str], depth: int) -> bool:
        """A loop over keys, or over numbers that the key is folded with."""
        keys = f"psc.random.split({key}, 3)"
        each = f"psc.map(lambda k: psc.random.uniform(k), {keys})"
        if self.choose.random() < 0.5:
            folded = f"psc.random.fold_in({key}, i)"
            each = f"psc.map(lambda i: psc.random.uniform({folded}), np.arange(3))"
        self.lines.append(f"{indent}t = t + {each}.sum()")
        return True

    def nested(self, indent: str, name: str, depth: int) -> None:
        """A function of a key and a number that returns another key and a number."""
        self.lines.append(f"{indent}def {name}(key, t):")
        inner = indent + "    "
        self.lines.append(f"{inner}key, last = psc.random.split(key)")
        free, _ = self.body(inner, ["key"], self.choose.randint(1, 4), depth + 1)
        self.lines.append(f"{inner}return {self.choose.choice([*free, 'last'])}, t")

    def loop(self, indent: str, key: str, free: list[str], depth: int) -> bool:
        """A loop that carries a key."""
        function, name = self.fresh("step"), self.fresh("k")
        self.nested(indent, function, depth)
        step = f"lambda i, s: {function}(*s)"
        self.lines.append(f"{indent}{name}, t = psc.fori_loop(0, 3, {step}, ({key}, t))")
        free.append(name)
        return False  # a body that hands the key on unused has not consumed it

    def branch(self, indent: str, key: str, free: list[str], depth: int) -> bool:
        """One of two functions of a key."""
        one, other, name = self.fresh("one"), self.fresh("other"), self.fresh("k")
        for function in (one, other):
            self.nested(indent, function, depth)
        arms = f"{one}, {other}"
        self.lines.append(f"{indent}{name}, t = psc.cond(t > 0, {arms}, {key}, t)")
        free.append(name)
        return False


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_each_key_once_is_accepted(seed: int) -> None:
    text = Writer(seed, wrong=False).program()
    found = check_source(text, "program.py").diagnostics
    assert not found, text + "\n".join(f"{d.span} {d.message()}" for d in found)
    assert used_once(elaborated(text)), text


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_a_key_once_more_is_refused(seed: int) -> None:
    text = Writer(seed, wrong=True).program()
    codes = {d.code for d in check_source(text, "program.py").diagnostics}
    assert codes == {"PSC601"}, text


@pytest.mark.parametrize("group", range(GROUPS))
def test_what_is_accepted_uses_no_key_twice(group: int, monkeypatch: pytest.MonkeyPatch) -> None:
    findings: list[KeyReused] = []

    def noted(function: Function, names: dict[Var, str], end: Span) -> tuple[KeyReused, ...]:
        findings.extend(reused_keys(function, names, end))
        return ()

    monkeypatch.setattr(definitions, "reused_keys", noted)
    counts: dict[tuple[bool, bool], int] = {}
    for seed in range(group, MORE, GROUPS):
        findings.clear()
        text = linear_programs.Writer(seed).program()
        right, accepted = used_once(elaborated(text)), not findings
        assert right or not accepted, text
        counts[right, accepted] = counts.get((right, accepted), 0) + 1
    assert counts[False, False] > 0
    # Refusing everything is no success.
    assert counts[True, True] >= counts.get((True, False), 0), counts
