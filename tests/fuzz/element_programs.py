"""Random programs of loops over single elements.

`generate(seed)` is the text of a module with a function `main`: filters, tables that are filled in
order, counts, stores at computed places, branches, loops in both, loops that end early.  With
`wild`, places may be out of range.
"""

from __future__ import annotations

from tests.support.program_writer import ProgramWriter

HEAD = """\
import numpy as np

import pscdsl as psc
from pscdsl import f64, i64


def bounded(v):
    return min(max(v, -9.0), 9.0)
"""

OVER = (
    *("range({n})", "range(1, {n})", "range({n} - 1)", "range({n} - 1, -1, -1)"),
    *("range({n} - 2, -1, -1)", "range(0, {n}, 2)", "range(k % 4)", "range(3)", "range(1, 9)"),
)
BEFORE = {"range(1, {n})": "- 1", "range({n} - 2, -1, -1)": "+ 1"}
"""Loops whose every step has a step before, or the element where that would be."""
LARGEST = 6
"""The most statements of the loops of a program."""


class Writer(ProgramWriter):
    """Writes one program."""

    def __init__(self, seed: int, wild: bool) -> None:
        super().__init__(seed, depth=0)
        self.wild = wild
        self.counters: list[str] = []
        self.left = LARGEST
        self.before = ""
        """The distance to the counter of the step before, if every step has one in range."""
        self.loops = 0
        """The number of loops around."""

    def place(self, size: str) -> str:
        """An index along an axis."""
        i = self.one(*self.counters)
        places = [
            *(f"({self.integer(0)}) % {size}", f"{i} % {size}", "-1", "0"),
            *(f"({i} - 1) % {size}", f"max({size} - 1 - {i}, 0) % {size}"),
            *(f"min({i}, {size} - 1)", f"min({i} + 1, {size} - 1)", f"min({i}, {size} - 1) - 1"),
        ]
        if self.chance(0.5) or self.wild:
            places += [i, f"{i} - 1", f"{i} + 1", f"{size} - 1 - {i}", f"{size} - {i}"]
        if self.wild and self.chance(0.3):
            return self.one("k", f"k - {i}", "d[k % m] * 1000", "-k - 5", f"{i} * (1 << 40)")
        return self.one(*places)

    def element(self, kind: str) -> str:
        """An element of an array, of a kind."""
        if kind == "i":
            return f"{self.one('c', 'd', 'd')}[{self.place('m')}]"
        if self.chance(0.3):
            return f"{self.one('a', 'q', 'q')}[{self.place('n')}, {self.place('m')}]"
        return f"{self.one('x', 'y', 'y', 'z')}[{self.place('n')}]"

    def integer(self, depth: int = 1) -> str:
        """An integer."""
        i = self.one(*self.counters)
        plain = ("k", "k", i, str(self.rng.randrange(-3, 6)))
        if depth == 0:
            return self.one(*plain)
        one, other = self.integer(depth - 1), self.integer(depth - 1)
        return self.one(
            *plain,
            f"({one} + {other})",
            f"({one} - {other})",
            f"({one}) % 5",
            f"({one}) // 2",
            f"abs({one})",
            f"max({one}, {other})",
            f"({one} if {self.test(0)} else {other})",
            self.element("i"),
            self.element("i"),
        )

    def number(self, depth: int = 2) -> str:
        """A small number, which is an integer."""
        plain = ("s", "r", f"{self.rng.randrange(-2, 4)}.0", self.element("f"))
        if depth == 0:
            return self.one(*plain)
        one, other = self.number(depth - 1), self.number(depth - 1)
        return self.one(
            *plain,
            f"({one} + {other})",
            f"({one} - {other})",
            f"bounded({one}) * bounded({other})",
            f"-{one}",
            f"abs({one})",
            f"min({one}, {other})",
            f"float({self.integer(0)})",
            f"({one} if {self.test(0)} else {other})",
            self.element("f"),
        )

    def test(self, depth: int = 1) -> str:
        """A condition."""
        found = self.one(
            f"{self.number(0)} > {self.number(0)}",
            f"{self.number(0)} <= 1.0",
            f"{self.integer(0)} % 2 == 0",
            f"{self.integer(depth)} < {self.integer(0)}",
            f"{self.one(*self.counters)} > 0",
            f"{self.element('i')} != {self.integer(0)}",
        )
        if depth and self.chance(0.3):
            return f"({found} {self.one('and', 'or')} {self.test(0)})"
        return f"not ({found})" if self.chance(0.1) else found

    def statement(self) -> None:
        """One statement in a loop."""
        self.left -= 1
        kind = self.rng.random() if self.left > 0 else 0.0
        if kind < 0.4:
            self.store()
        elif kind < 0.6:
            name = self.one("s", "r", "k")
            value = f"({self.integer()}) % 7" if name == "k" else f"bounded({self.number()})"
            self.line(f"{name} = {value}")
        elif kind < 0.67 and self.before:
            self.recurrence()
        elif kind < 0.69:
            self.line(self.one("s, r = r, s", "y, z = z, y", "y[0], y[-1] = y[-1], y[0]"))
        elif kind < 0.74 and self.loops and self.counters[-1] != "0":
            self.line(f"if {self.test()}:\n    {self.one('break', 'continue')}")
        elif kind < 0.85 and self.depth < 5:
            self.branch()
        elif self.loops < 3:
            self.loop()
        else:
            self.store()

    def store(self) -> None:
        """A store into an element."""
        if self.chance(0.25):
            self.line(f"d[{self.place('m')}] = ({self.integer()}) % 8")
            return
        place = f"q[{self.place('n')}, {self.place('m')}]"
        target = place if self.chance(0.3) else f"{self.one('y', 'y', 'z')}[{self.place('n')}]"
        if self.chance(0.3):
            self.line(f"{target} {self.one('+=', '-=')} bounded({self.number(1)})")
        else:
            self.line(f"{target} = bounded({self.number()})")

    def recurrence(self) -> None:
        """A store into an element, which reads the one of the step before."""
        i = self.counters[-1]
        j = self.one("0", "n - 1", f"({self.integer(0)}) % n", *self.counters[:-1])
        before = self.one(self.before, self.before, "+ 1" if "-" in self.before else "- 1")
        shape = self.one("y[{}]", "y[{}]", "q[{}, %]", "q[%, {}]").replace("%", f"({j}) % m")
        target, old = shape.format(i), shape.format(f"{i} {before}")
        more = f" + {shape.format(f'{i} {self.before}')}" if self.chance(0.2) else ""
        self.line(f"{target} = bounded({self.number(1)} - {old}{more})")
        if self.chance(0.2):
            self.line(f"{target} = bounded({self.number(0)} - {target})")

    def block(self) -> None:
        """Some statements, one level deeper."""
        with self.inside():
            for _ in range(self.one(1, 1, 2, 3)):
                self.statement()

    def branch(self) -> None:
        """A branch, most of them with others beside it."""
        self.line(f"if {self.test()}:")
        self.block()
        if self.chance(0.2):
            self.line(f"elif {self.test()}:")
            self.block()
        if self.chance(0.5):
            self.line("else:")
            self.block()

    def loop(self) -> None:
        """A loop with a counter, or until a condition fails."""
        name = self.name("i")
        until = self.chance(0.3)
        if until:
            self.line(f"{name} = ({self.integer(0) if self.counters else 'm + n'}) % 6")
            more = f" and {self.test()}" if self.counters and self.chance(0.5) else ""
            self.line(f"while {name} > 0{more}:")
        else:
            size = self.one("n", "n", "m")
            over = self.one(*OVER)
            self.before = BEFORE.get(over, "")
            self.line(f"for {name} in {over.format(n=size)}:")
        self.counters.append(name)
        self.loops += not until  # where `continue` would never end
        if until:
            self.line(f"    {name} {self.one('-= 1', '//= 2', '-= 2')}")
        self.block()
        self.loops -= not until
        self.counters.pop()
        self.before = ""

    def text(self) -> str:
        """The module."""
        self.line('@psc.kernel\ndef main(x: f64["n"], c: i64["m"], a: f64["n m"]):')
        with self.inside():
            self.line("n, m = a.shape")
            self.line("y, d, q = x.copy(), c.copy(), a.copy()")
            self.line(self.one("z = np.zeros(n)", "z = x[::-1].copy()", "z = x * 1.0"))
            self.line("s, r, k = 0.0, 1.0, 0")
            while self.left > 0:
                self.loop()
            self.line("return y, z, d, q, s + 0.0, r + 0.0, k + 0")
        return "\n\n".join((HEAD, "\n".join(self.lines) + "\n"))


def generate(seed: int, wild: bool = False) -> str:
    """The text of a program."""
    return Writer(seed, wild).text()
