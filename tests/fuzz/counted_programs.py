"""Random programs of parts that grow and shrink with a loop's counter.

`generate(seed)` is the text of a module with a function `main`: `x[:i]`, `a[i + 1:, i]`, loops over
`range(i)`, stores into parts, branches on counters.  With `smooth`, all functions in it have
derivatives, and it returns one number.
"""

from __future__ import annotations

from tests.support.program_writer import ProgramWriter

HEAD = """\
import numpy as np

import pscdsl as psc
from pscdsl import f64


def shifted(v, k):
    v[:k] += 1.0
    return v[k:] * 2.0


def total(v):
    s = 0.0
    for u in v:
        s += u
    return s
"""

OUTER = (
    "range(n)",
    "range(n)",
    "range(1, n)",
    "range(n - 1)",
    "range(n - 1, -1, -1)",
    "reversed(range(n))",
    "range(0, n, 2)",
    "range(n - 1, 0, -2)",
)
INNER = (
    "range({i})",
    "range({i})",
    "range({i}, n)",
    "range({i} + 1, n)",
    "range(n - {i})",
    "range({i} - 1, -1, -1)",
    "reversed(range({i}))",
    "range(0, {i}, 2)",
    "range(max({i} - 2, 0), {i})",
    "range(n)",
)
SIZES = {
    "{i}": (
        "{v}[:{i}]",
        "{v}[n - {i}:]",
        "np.flip({v}[:{i}])",
        "{v}[:{i}][::-1]",
        "{q}[{i}, :{i}]",
        "{q}[:{i}, {i}]",
        "{q}[:{i}, n - 1]",
        "{q}[:{i}].sum(axis=1)",
        "({q}[:{i}, :{i}] @ {v}[:{i}])",
        "({v}[:{i}] @ {q}[:{i}, :{i}])",
        "np.zeros({i})",
        "np.ones({v}[:{i}].shape)",
        "{q}[:{i}, :{i}].T.sum(axis=0)",
        "np.diag({q})[:{i}]",
        "{v}[{i}:0:-1]",
        "np.outer({v}[:{i}], {v}).sum(axis=1)",
        "({v}[:{i}, None] * {q}[:{i}]).sum(axis=1)",
    ),
    "n - {i}": (
        "{v}[{i}:]",
        "{v}[:n - {i}]",
        "np.flip({v}[{i}:])",
        "{q}[{i}, {i}:]",
        "{q}[{i}:, {i}]",
        "({q}[{i}:, {i}:] @ {v}[{i}:])",
        "{q}[{i}:].sum(axis=1)",
        "{v}[::-1][{i}:]",
        "shifted({v}.copy(), {i})",
    ),
    "n - {i} - 1": (
        "{v}[{i} + 1:]",
        "{v}[:n - {i} - 1]",
        "{v}[1:n - {i}]",
        "{q}[{i} + 1:, {i}]",
        "{q}[{i}, {i} + 1:]",
        "{q}[{i} + 1:, {i} + 1:].sum(axis=0)",
        "{q}[{i} + 1:, {i} + 1:].max(axis=1, initial=-20.0)",
    ),
    "{i} + 1": (
        "{v}[:{i} + 1]",
        "{q}[{i}, :{i} + 1]",
        "np.concatenate(({v}[:{i}], {v}[{i}:{i} + 1]))",
        "{v}[{i}::-1]",
    ),
}
TARGETS = {
    "{i}": ("{v}[:{i}]", "{v}[n - {i}:]", "{q}[{i}, :{i}]", "{q}[:{i}, {i}]", "{v}[:{i}][::-1]"),
    "n - {i}": ("{v}[{i}:]", "{v}[:n - {i}]", "{q}[{i}, {i}:]", "{q}[{i}:, {i}]"),
    "n - {i} - 1": ("{v}[{i} + 1:]", "{q}[{i} + 1:, {i}]", "{q}[{i}, {i} + 1:]"),
    "{i} + 1": ("{v}[:{i} + 1]", "{q}[:{i} + 1, {i}]"),
}
EXACT = ("{0} * 2.0", "-{0}", "np.abs({0})", "np.maximum({0}, 1.0)", "{0} - np.arange(len({0}))")
EXACT_ONLY = ("np.cumsum({0})", "np.where({0} > 0, {0}, 1.0)", "{0} // 2")
SMOOTH = (
    "np.sin({0})",
    "np.exp(-{0} * {0})",
    "1.0 / (2.0 + {0})",
    "np.log(3.0 + {0})",
    "np.sqrt({0} + 3.0)",
    "{0} * 0.5",
    "np.cumsum({0}) * 0.3",
    "y[0] / (2.0 + {0})",
)


class Writer(ProgramWriter):
    """Writes one program."""

    def __init__(self, seed: int, smooth: bool = False) -> None:
        super().__init__(seed, depth=0)
        self.smooth = smooth
        self.counters: list[str] = []
        self.left = 7
        self.fixed = ""
        """The counter that all of an expression is of."""

    def filled(self, text: str) -> str:
        """A template with a counter, a vector and a matrix."""
        found = text.replace("{v}", self.one("y", "z")).replace("{q}", self.one("q", "q", "a"))
        return found.replace("{i}", self.fixed or self.counter)

    def part(self, size: str, depth: int = 2) -> str:
        """A vector of a size of one counter."""
        if not self.fixed:
            self.fixed = self.counter
            found = self.part(size, depth)
            self.fixed = ""
            return found
        rng = self.rng
        if depth and rng.random() < 0.35:
            sign = self.one("+", "-", "*")
            return f"({self.part(size, depth - 1)} {sign} {self.part(size, depth - 1)})"
        found = self.filled(self.one(*SIZES[size]))
        if rng.random() < 0.3:
            functions = SMOOTH if self.smooth else (*EXACT, *EXACT_ONLY)
            found = self.one(*functions).format(found)
            return f"({found})"
        return found

    def number(self) -> str:
        """A number of a step."""
        if not self.fixed:
            self.fixed = self.counter
            found = self.number()
            self.fixed = ""
            return found
        size = self.one(*SIZES)
        i = self.fixed
        choices = [
            f"({self.part(size)} @ {self.part(size)})",
            f"{self.part(size)}.sum()",
            self.filled("{v}[{i}]"),
            self.filled("{q}[{i}, {i}]"),
            f"{self.filled('{v}[:{i} + 1]')}.mean()" if self.smooth else f"{i} * 1.0",
            f"total({self.part(size, 0)})",
            f"len({self.part(size, 0)}) * 1.0",
        ]
        if not self.smooth:
            choices += [
                self.filled("{v}[:{i} + 1].max()"),
                self.filled("{v}[np.argmax({v}[:{i} + 1])]"),
                self.filled("{v}[{i} - 1]"),
                self.filled("{v}[{i}:{i} + 2].sum()"),
                self.filled("np.where({v}[:{i}] > 0, 1.0, 0.0).sum()"),
                self.filled("{v}[:{i}].max(initial=-3.0)"),
            ]
        return self.one(*choices)

    def bounded(self, text: str) -> str:
        """A value that stays small."""
        return f"np.tanh({text})" if self.smooth else f"np.clip({text}, -9, 9)"

    def statement(self) -> None:
        """One statement in a loop."""
        rng = self.rng
        self.left -= 1
        size = self.one(*TARGETS)
        kind = rng.random()
        if kind < 0.64:
            self.fixed = self.counter
        if kind < 0.34:
            target = self.filled(self.one(*TARGETS[size])).replace("a[", "q[")
            value = self.part(size) if rng.random() < 0.75 else self.number()
            self.line(f"{target} = {self.bounded(value)}")
        elif kind < 0.5:
            target = self.filled(self.one("{v}[{i}]", "q[{i}, {i}]", "{v}[{i}:{i} + 1]"))
            self.line(f"{target} = {self.bounded(self.number())}")
        elif kind < 0.58:
            target = self.filled(self.one(*TARGETS[size])).replace("a[", "q[")
            self.line(f"{target} += {self.bounded(self.part(size))} * 0.5")
            if not self.smooth:
                self.line(f"{target} = np.round({target})")
        elif kind < 0.64:
            i = self.fixed
            outer = f"np.outer(q[{i} + 1:, {i}], {self.part('n - {i} - 1', 0)})"
            where = f"q[{i} + 1:, {i} + 1:]"
            self.line(f"{where} = {self.bounded(f'{where} - {outer}')}")
        self.fixed = ""
        if kind < 0.64:
            return
        if kind < 0.72:
            self.line(f"s = {self.bounded(f's + {self.number()}')}")
        elif kind < 0.8 and self.depth < 4:
            self.branch()
        elif self.depth < 4 and len(self.counters) < 3:
            self.loop()
        else:
            name = self.name("p")
            self.line(f"{name} = {self.part(size)}")
            self.line(f"s = {self.bounded(f's - {name}.sum()')}")

    @property
    def counter(self) -> str:
        """One of the counters of the loops around."""
        return self.one(self.counters[-1], *self.counters)

    def branch(self) -> None:
        """A branch on a counter, or on a number."""
        i, j = self.counter, self.counter
        test = self.one(
            f"{i} > 0",
            f"{i} >= 1 and {j} + 1 < n",
            f"{i} % 2 == 0",
            f"not {i} == 0",
            f"{i} < {j} or {i} == 0",
            f"0 < {i} < n - 1",
            f"{self.number()} > 1",
            f"{i} == {j}",
        )
        self.line(f"if {test}:")
        if self.rng.random() < 0.5 and i:
            v = self.one("y", "z")
            guarded = f"{v}[{i} - 1] = {self.bounded(self.number())}"
            safe = "> 0" in test or ">= 1" in test
            self.line(f"    {guarded if safe else 's = s * 0.5'}")
        with self.inside():
            self.statement()
        if self.rng.random() < 0.5:
            self.line("else:")
            with self.inside():
                self.statement()
        elif self.rng.random() < 0.2 and len(self.counters) > 1:
            self.line(f"elif {self.number()} > 5:")
            self.line(f"    {self.one('break', 'continue')}")

    def loop(self) -> None:
        """A loop of its own counter."""
        self.count += 1
        name = self.one("i", "j", "k")
        name = f"{name}{self.count}" if name in self.counters else name
        if self.counters:
            over = self.one(*INNER).format(i=self.counter)
            if self.rng.random() < 0.12:
                self.line(f"for {name}, u in enumerate({self.filled('{v}[:{i}]')}):")
            else:
                self.line(f"for {name} in {over}:")
        else:
            self.line(f"for {name} in {self.one(*OUTER)}:")
        self.counters.append(name)
        with self.inside():
            for _ in range(self.rng.choice((1, 1, 2, 3))):
                self.statement()
        self.counters.pop()

    def text(self) -> str:
        """The module."""
        result = "f64" if self.smooth else ""
        arrow = f" -> {result}" if result else ""
        self.line(f'@psc.kernel\ndef main(x: f64["n"], a: f64["n n"]){arrow}:')
        with self.inside():
            self.line("n = len(x)")
            if self.rng.random() < 0.15:
                self.line("assert n >= 0")
            self.line("y = x.copy()")
            self.line(self.one("z = np.zeros_like(x)", "z = x[::-1].copy()", "z = x * 1.0"))
            self.line("q = a.copy()")
            self.line("s = 0.0")
            while self.left > 0:
                self.loop()
            if self.smooth:
                weights = "np.cos(np.arange(n) * 1.0)"
                self.line(f"return s + y @ {weights} + z.sum() + (q @ {weights}).sum()")
            else:
                self.line("return y, z, q, s + 0.0")
        return "\n\n".join((HEAD, "\n".join(self.lines) + "\n"))


def generate(seed: int, smooth: bool = False) -> str:
    """The text of a program."""
    return Writer(seed, smooth).text()
