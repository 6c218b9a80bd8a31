"""Random programs of arrays and numbers without a dtype, among f64, f32 and `float`.

`python -m tests.campaign numpy --grammar dtypes` tries them.  A result claims the accuracy of its
dtype: it is compared with NumPy's, for which all arguments have 64 bits, and the dtype is NumPy's
unless a parameter has 32 bits.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pscdsl._src.ir.program import Function
from pscdsl.typing.array_types import ArrayType
from tests.support.program_writer import ProgramWriter

HEAD = """\
import numpy as np

import pscdsl as psc
from pscdsl import bool_, f32, f64, i64


def waves(n, steps):
    z = np.linspace(0.0, 1.0, n)
    for _ in range(steps):
        z = np.cos(z)
    return z


def damped(v, steps):
    for _ in range(steps):
        v = 0.5 * v + 0.1
    return v


def chosen(flag, n):
    if flag:
        z = np.linspace(0.0, 0.7, n)
    else:
        z = np.full(n, 0.1)
    return z


"""
SIGNATURES = {
    "double": 'x: f64["n"], y: f64["n"], a: float',
    "single": 'x: f32["n"], y: f32["n"], a: f32',
    "mixed": 'x: f64["n"], y: f32["n"], a: float',
    "narrow": 'x: f32["n"], y: f32["n"], a: float',
    "numbers": 'b: float, a: float, k: i64["n"]',
}
STRONG = {
    "double": {"x": "d", "y": "d"},
    "single": {"x": "s", "y": "s"},
    "mixed": {"x": "d", "y": "s"},
    "narrow": {"x": "s", "y": "s"},
    "numbers": {"(k / 7)": "o", "np.exp(-k / 9)": "o"},
}
OPEN = (
    "np.zeros(n)",
    "np.ones(n)",
    "np.linspace(0.0, 1.0, n)",
    "np.full(n, 0.1)",
    "np.arange(n) / 7",
    "np.sqrt(np.arange(n)) / (n + 1)",
    "waves(n, 20)",
    "chosen(flag, n)",
    "np.array([0.1] * 2).sum() * np.ones(n)",
    "np.eye(n)[0] * 0.3",
)
NUMBERS = ("0.1", "0.7", "1 / 3", "a", "1 / n", "np.pi / 4", "EPS")
ONE = (
    "np.cos({0})",
    "np.sin({0}) + {1}",
    "0.5 * {0} + {1}",
    "np.tanh({0})",
    "np.where({0} > 0.3171, {0}, {1})",
    "np.maximum({0}, {1})",
    "{0}[::-1] * 0.9",
    "np.abs({0} - {1})",
    "{0} - {0}.mean()",
)
TWO = (
    "0.5 * {0} + 0.25 * {1}",
    "np.maximum({0}, {1})",
    "np.where({0} > {1}, {0}, {1})",
    "np.cos({0}) * {1}",
    "{0} * {1}.mean()",
    "np.stack(({0}, {1})).sum(axis=0) * 0.5",
)


class Writer(ProgramWriter):
    """A program in the making: what its names stand for, and how precise that is."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.signature = self.rng.choice(list(SIGNATURES))
        self.names: dict[str, str] = {}
        """`d` and `s` of what has 64 or 32 bits, `o` of what has met neither."""

    def number(self) -> str:
        """A number without a dtype."""
        return self.rng.choice(NUMBERS[:-1] if self.signature == "single" else NUMBERS)

    def strong(self, like: str) -> tuple[str, str]:
        """An argument that may meet what is so precise, or sometimes any."""
        found = list(STRONG[self.signature].items())
        fitting = [each for each in found if "o" in (each[1], like) or each[1] == like]
        return self.rng.choice(fitting if fitting and self.chance(0.97) else found)

    def value(self, name: str) -> tuple[str, str]:
        """An expression of a name, and how precise it is."""
        kind = self.names[name]
        if self.chance(0.5):
            return self.rng.choice(ONE).format(name, self.number()), kind
        others = [
            each for each, other in self.names.items() if "o" in (kind, other) or kind == other
        ]
        other = self.rng.choice(others)
        meets = (other, self.names[other])
        if self.chance(0.3):
            meets = self.strong(kind)
        text = self.rng.choice(TWO).format(name, meets[0])
        return text, kind if meets[1] == "o" else meets[1]

    def assign(self, name: str) -> None:
        """Bind a name anew."""
        text, kind = self.value(name)
        self.line(f"{name} = {text}")
        self.names[name] = kind

    def statement(self) -> None:
        """Write some statement about a name."""
        name = self.rng.choice(list(self.names))
        kinds = [self.assign, self.loop, self.branch, self.store, self.helper, self.fresh]
        kinds += [self.combinator, self.collected, self.number_loop]
        if self.depth > 2:
            kinds = [self.assign, self.store, self.helper]
        self.rng.choice(kinds)(name)

    def fresh(self, name: str) -> None:
        """Make an array without a dtype."""
        if self.depth > 1:
            self.assign(name)
            return
        name = f"v{len(self.names)}"
        self.line(f"{name} = {self.rng.choice(OPEN)}")
        self.names[name] = "o"

    def body(self) -> None:
        """A block of one or two statements."""
        with self.inside():
            for _ in range(self.rng.randint(1, 2)):
                self.statement()

    def loop(self, name: str) -> None:
        """A loop that carries names, with a test or a number of steps, unrolled or not."""
        head = self.rng.choice(
            ("for _ in range(20):", "for _ in range(n + 17):", "for _ in range(3):")
        )
        if self.chance(0.2):
            counter = f"c{len(self.lines)}"
            self.line(f"{counter} = 0")
            self.line(f"while {counter} < 20:")
            self.line(f"    {counter} += 1")
        else:
            self.line(head)
        with self.inside():
            self.assign(name)
        self.body()

    def number_loop(self, name: str) -> None:
        """A loop over elements that stores, or counts a number up."""
        kind = self.names[name]
        total = f"t{len(self.lines)}"
        self.line(f"{name} = {name}.copy()")
        self.line(f"{total} = {self.one('0.0', '0', '0.1')}")
        self.line("for i in range(n):")
        self.line(f"    {total} = {total} * 0.5 + {name}[i]")
        if self.chance(0.5):
            self.line(f"    {name}[i] = {name}[i] * 0.5 + {self.number()}")
        self.line(f"{name} = {name} * 0.5 + {total} * 0.1")
        self.names[name] = kind

    def branch(self, name: str) -> None:
        """A branch on a flag or on an element that binds a name."""
        test = self.one("flag", f"{name}[0] > 0.2173", f"{name}.sum() > 1.0137")
        self.line(f"if {test}:")
        self.body()
        if self.chance(0.7):
            self.line("else:")
            with self.inside():
                if self.names[name] == "o" and self.chance(0.5):
                    self.line(f"{name} = {self.rng.choice(OPEN)}")
                else:
                    self.assign(name)

    def store(self, name: str) -> None:
        """A store into an array that the program made."""
        others = [each for each, kind in self.names.items() if kind in ("o", self.names[name])]
        place = self.one("[:]", "[0]", "[::2]", "[-1]")
        if place == "[:]":
            value = f"0.9 * {self.rng.choice(others)}"
        else:
            value = self.one(self.number(), f"{self.rng.choice(others)}[0]")
        if self.chance(0.8):
            self.line(f"{name} = {name}.copy()")
        self.line(f"{name}{place} = {value}")

    def helper(self, name: str) -> None:
        """A call of a helper that is elaborated inline."""
        self.line(f"{name} = damped({name}, {self.one('3', '20', 'n + 15')})")

    def combinator(self, name: str) -> None:
        """A loop or a branch by a function."""
        step = f"f{len(self.lines)}"
        kind = self.one("scan", "fori", "cond", "while")
        if kind == "scan":
            self.line(f"def {step}(c, r):")
            self.line("    return 0.5 * c + r, c * r")
            self.line(f"u, w = psc.scan({step}, {self.number()}, {name})")
            self.line(f"{name} = {name} * 0.5 + w * 0.1 + u * 0.1")
        elif kind == "fori":
            self.line(f"{name} = psc.fori_loop(0, 20, lambda i, c: 0.5 * c + 0.1, {name})")
        elif kind == "while":
            self.line(
                f"{name} = psc.while_loop(lambda c: c[0] < 9, "
                f"lambda c: (c[0] + 1, np.cos(c[1])), (0, {name}))[1]"
            )
        else:
            other = "np.ones(n)" if self.names[name] == "o" else f"{name} * 0.3"
            self.line(f"{name} = psc.cond(flag, lambda: {name} * 0.7, lambda: {other})")

    def collected(self, name: str) -> None:
        """A list to which a loop appends."""
        rows = f"r{len(self.lines)}"
        self.line(f"{rows} = []")
        self.line("for i in range(20):")
        self.line(f"    {rows}.append({self.one(f'{name} * 0.1', 'np.full(n, 0.1) * 0.1')})")
        self.line(f"{name} = 0.5 * {name} + np.array({rows}).mean(axis=0)")

    def text(self) -> str:
        """The program."""
        signature = SIGNATURES[self.signature]
        for index in range(self.rng.randint(1, 3)):
            self.line(f"v{index} = {self.rng.choice(OPEN)}")
            self.names[f"v{index}"] = "o"
        for name in ("x", "y"):
            kind = STRONG[self.signature].get(name)
            if kind is not None and self.chance(0.5):
                self.line(f"{name} = {name}.copy()")
                self.names[name] = kind
        for _ in range(self.rng.randint(2, 6)):
            self.statement()
        first = "k" if self.signature == "numbers" else "x"
        head = HEAD + "EPS = np.finfo(float).eps\n\n\n"
        head += f"@psc.kernel\ndef main({signature}, flag: bool):\n    n = len({first})\n"
        found = [*self.names, f"{self.rng.choice(list(self.names))}.sum()"]
        return head + "\n".join(self.lines) + f"\n    return {', '.join(found)},\n"


def generate(seed: int) -> str:
    """The program of a seed."""
    return Writer(seed).text()


def arguments(function: Function, sizes: Mapping[str, int], seed: int) -> dict[str, Any]:
    """Arguments that both precisions hold, but for numbers of 64 bits."""
    n = sizes["n"]
    numbers = np.random.default_rng([seed, n])
    made: dict[str, Any] = {}
    for name, type_ in function.parameters:
        if not isinstance(type_, ArrayType):
            continue  # it is static
        dtype = str(type_).split("[")[0]
        shape = (n,) if "[" in str(type_) else ()
        if dtype == "bool":
            made[name] = np.bool_(numbers.integers(0, 2))
        elif dtype == "i64":
            made[name] = numbers.integers(0, 9, shape)
        else:
            value = numbers.uniform(0, 1, shape)
            made[name] = np.asarray(value, np.float32 if dtype == "f32" else np.float64)
    return made


def widened(argument: Any) -> Any:
    """An argument with 64 bits; a number if it has no axes."""
    array = np.asarray(argument)
    wide = array.astype(np.float64) if array.dtype == np.float32 else array
    return wide if wide.shape else wide[()]


TOLERANCES: dict[Any, float] = {np.dtype(np.float64): 1e-11, np.dtype(np.float32): 2e-4}


def difference(found: Any, wanted: Any, given: Iterable[Any]) -> str:
    """What is wrong with a result beside NumPy's, if anything is."""
    one, two = np.asarray(found), np.asarray(wanted)
    if one.shape != two.shape:
        return f"has shape {one.shape}, not {two.shape}"
    if one.dtype != two.dtype:
        narrow = any(np.asarray(each).dtype == np.float32 for each in given)
        if not narrow or one.dtype != np.float32:
            return f"has dtype {one.dtype}, not {two.dtype}"
    tolerance = TOLERANCES.get(one.dtype, 0.0)
    if not np.allclose(one, two, rtol=tolerance, atol=tolerance, equal_nan=True):
        return f"is {one.tolist()} in {one.dtype}, not {two.tolist()}"
    return ""
