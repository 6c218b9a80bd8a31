"""Random programs of plain NumPy: what is written to arrays, through whatever names and views.

`generate(seed)` is the text of a module with a function `main`.  Most programs would be wrong if a
view were taken for a copy, an operand were read at another time, branches were joined or a loop
were rolled in another way than Python runs them.  Each seed draws from some of the statements, so
that one that is refused does not hide all others.
"""

from __future__ import annotations

from tests.fuzz.numpy_idioms import Idioms
from tests.fuzz.numpy_values import Array, Pile

PARAMETERS = {
    "x": ("f64", ("n",)),
    "w": ("f64", ("n",)),
    "a": ("f64", ("n", "m")),
    "b": ("f64", ("n", "n")),
    "c": ("i64", ("n",)),
    "h": ("f32", ("n",)),
    "q": ("bool_", ("n",)),
    "s": ("f64", ()),
    "k": ("i64", ()),
    "flag": ("bool_", ()),
}
"""What `main` may be given: `c` holds indices of an axis of size `n`."""

HEAD = """\
import functools

import numpy as np

import pscdsl as psc
from pscdsl import bool_, f32, f64, i64
"""


def generate(seed: int, shared: bool = False) -> str:
    """The text of a program; if `shared`, it often writes to what it has not made."""
    return Program(seed, shared).text()


class Program(Idioms):
    """Writes a whole program."""

    def text(self) -> str:
        """The module."""
        self.module()
        main = "@psc.kernel\ndef main({}){}:\n{}\n".format(*self.main())
        parts = [HEAD, *self.parts, main]
        return "\n\n".join(part.rstrip("\n") + "\n" for part in parts)

    def module(self) -> None:
        """The helpers of the module, and its arrays."""
        if self.chance(0.4):
            for _ in range(self.rng.choice((1, 1, 2))):
                self.helper()
        if self.chance(0.4 if self.shared else 0.12):
            self.parts.insert(0, "TABLE = np.array([1.0, -2.0, 3.0])")
            self.locked = frozenset({"TABLE"})
            self.scope.arrays.append(Array("TABLE", "f64", ("3",), own=False))
        if self.chance(0.2 if self.shared else 0.03):
            keys = self.rng.choice((["0", "1"], ['"u"', '"v"']))
            items = (
                "np.ones(3), np.zeros(3)" if "0" in keys else '"u": np.ones(3), "v": np.zeros(3)'
            )
            self.parts.insert(0, f"LOG = [{items}]" if "0" in keys else f"LOG = {{{items}}}")
            self.scope.piles.append(Pile("LOG", "f64", ("3",), keys, own=False))

    def parameters(self) -> list[str]:
        """The parameters, which are in the scope from here on."""
        rng = self.rng
        names = ["x", *(["a"] if self.chance(0.45) else []), *(["b"] if self.chance(0.3) else [])]
        names += [name for name in ("w", "c", "s") if self.chance(0.5)]
        names += [name for name in ("k", "flag") if self.chance(0.3)]
        names += [name for name in ("h", "q") if self.chance(0.1)]
        names += ["pair"] if self.chance(0.2 if self.shared else 0.04) else []
        rng.shuffle(names)
        for name in names:
            if name == "pair":
                continue
            dtype, shape = PARAMETERS[name]
            self.scope.arrays.append(Array(name, dtype, shape, own=not shape))
        return names

    def main(self) -> tuple[str, str, str]:
        """The parameters, the annotation of the result and the body of the function."""
        rng = self.rng
        names = self.parameters()
        declared = ", ".join(f"{name}: {annotation(name)}" for name in names)
        if "a" in names:
            self.line("n, m = a.shape")
        else:
            self.line(rng.choice(("n = len(x)", "n = x.shape[0]", "(n,) = x.shape")))
        if self.least > 1:
            self.line(f"assert n >= {self.least}")
            if "a" in names:
                self.line(f"assert m >= {self.least}")
        elif self.chance(0.1):
            self.least = 0
            self.line("assert n >= 0")
        if "pair" in names:
            self.unpack_pair()
        self.enable()
        for _ in range(rng.choice((1, 1, 2, 2, 3))):  # something to write to
            of = rng.choice([each for each in self.vectors() if each.name != "c"])
            text = self.start(of)
            self.line(f"{self.define(of.dtype, of.shape)} = {text}")
        early = not self.straight and self.chance(0.15)
        if early:
            self.leaves = self.digest
        while self.left > 0:
            self.left -= 1
            self.statements(1)
        result = self.digest() if early else self.everything()
        self.line(f"return {result}")
        return declared, "", "\n".join(self.lines)

    def unpack_pair(self) -> None:
        """Names for the arrays of a tuple that is a parameter."""
        kind = self.rng.randrange(3)
        if kind == 0:
            self.line("both = list(pair)")
            self.scope.piles.append(Pile("both", "f64", ("n",), ["0", "1"], own=False))
            return
        self.line("left, right = pair" if kind == 1 else "left, right = pair[0], pair[1][::-1]")
        for name in ("left", "right"):
            self.scope.arrays.append(Array(name, "f64", ("n",), own=False))

    def start(self, of: Array) -> str:
        """A new array like another one."""
        like = ("{}.copy()", "{}.copy()", "np.array({})", "np.zeros_like({})", "{} + 1")
        return self.rng.choice((*like, self.new(of.dtype, of.shape))).format(of.name)

    def everything(self) -> str:
        """What shows all that a program has written: its names, with a few of its parameters."""
        shown = [
            each.name
            for each in self.scope.arrays
            if each.name not in PARAMETERS or self.chance(0.1)
        ]
        for pile in self.scope.piles:
            shown += [f"{pile.name}[{key}]" for key in pile.keys]
        shown = [name for name in shown if name != "TABLE"] or ["x"]
        if len(shown) > 7:
            shown = [shown[0], *self.rng.sample(shown[1:], 6)]
        return f"({', '.join(shown)})" if len(shown) > 1 else shown[0]

    def digest(self) -> str:
        """Some of it, always of the same types."""
        arrays = [each for each in self.vectors() if each.dtype == "f64" and each.shape == ("n",)]
        first = self.rng.choice(arrays).name if arrays else "x"
        last = arrays[-1].name if arrays else "x"
        floats = [each for each in self.vectors() if each.dtype == "f64"]
        total = " + ".join(f"{each.name}.sum()" for each in floats[-3:]) or "x.sum()"
        return f"({first}, {last} * 1.0, {total} + 0.0)"


def annotation(name: str) -> str:
    """The annotation of a parameter."""
    if name == "pair":
        return 'tuple[f64["n"], f64["n"]]'
    dtype, shape = PARAMETERS[name]
    return f'{dtype}["{" ".join(shape)}"]' if shape else dtype
