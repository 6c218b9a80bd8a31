"""Random expressions of plain NumPy: indices, views, numbers, arrays, masks and conditions.

A size is a text, as it stands in a program: `n`, `n - 1`, `len(z)`, `3`.  Every array holds small
integers, so whatever order sums are in, equality is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.support.program_writer import ProgramWriter

Shape = tuple[str, ...]
FLOATS = ("f64", "f32")
NUMPY = {"f64": "np.float64", "f32": "np.float32", "i64": "np.int64", "bool_": "np.bool_"}


@dataclass
class Array:
    """A name for an array, or for a number if it has no axes."""

    name: str
    dtype: str
    shape: Shape
    own: bool = True
    """Whether the program itself has made whatever it may be."""


@dataclass
class Pile:
    """A name for a list or a dict of arrays of one type."""

    name: str
    dtype: str
    shape: Shape
    keys: list[str]
    """What stands in brackets for each item."""
    own: bool = True


@dataclass
class Counter:
    """A name for a number from 0 up to a size."""

    name: str
    bound: str


@dataclass
class Routine:
    """A function of a vector and a number."""

    name: str
    result: str
    """`none`, `same` for its argument or a view of it, `new`, or `number`."""
    stores: bool
    captures: Array | None = None
    """What it stores into in place of an argument."""


@dataclass
class Scope:
    """The names that a statement may use."""

    arrays: list[Array] = field(default_factory=list[Array])
    piles: list[Pile] = field(default_factory=list[Pile])
    counters: list[Counter] = field(default_factory=list[Counter])
    routines: list[Routine] = field(default_factory=list[Routine])

    def copy(self) -> Scope:
        """The scope of a block in it."""
        return Scope([*self.arrays], [*self.piles], [*self.counters], [*self.routines])


def less(size: str, by: int = 1) -> str:
    """A size, less a number."""
    head, minus, tail = size.partition(" - ")
    return f"{head} - {int(tail) + by}" if minus else f"{size} - {by}"


class Values(ProgramWriter):
    """Writes expressions over the names of a scope."""

    def __init__(self, seed: int, shared: bool) -> None:
        super().__init__(seed)
        self.shared = shared
        self.scope: Scope = Scope()
        self.least = self.rng.choice((1, 1, 1, 2, 2, 3))
        self.straight = self.chance(0.3)
        """Whether there are no branches and no loops over numbers."""

    def name(self, stem: str = "yzuvw") -> str:
        """A new name that begins with one of some letters."""
        return super().name(self.rng.choice(stem))

    def at_least(self, size: str) -> int:
        """The least that a size may be."""
        if size.isdigit():
            return int(size)
        tail = size.partition(" - ")[2]
        return max(0, self.least - int(tail or 0))

    # Indices and views.

    def index(self, size: str) -> str:
        """An index of an axis, which is in range at every size."""
        rng, options = self.rng, ["0", "-1", "0", "-1"]
        if self.at_least(size) > 1:
            options += ["1", "-2", "1", "-2"]
        for each in self.scope.counters:
            if each.bound == size:
                options += [each.name, each.name, f"{size} - 1 - {each.name}", f"{each.name} - 1"]
                options += [f"({each.name} + 1) % {braced(size)}", f"-1 - {each.name}"]
            elif each.bound == less(size):
                options += [each.name, f"{each.name} + 1", f"{each.name} + 1"]
            else:
                options.append(f"{each.name} % {braced(size)}")
        for number in self.scope.arrays:
            if number.dtype == "i64" and not number.shape:
                options.append(f"{number.name} % {braced(size)}")
            elif number.dtype == "i64" and number.name == "c" and number.shape == (size,):
                options.append(f"c[{rng.choice(options)}]")
        return rng.choice(options)

    def part(self, of: Array) -> tuple[str, Shape] | None:
        """A basic index of an array that leaves axes, and the shape; ?: one that is not known."""
        rng = self.rng
        if not of.shape:
            return None
        first = of.shape[0]
        name = of.name
        if len(of.shape) == 1:
            options = [(":", first), ("::-1", first), ("...", first), ("1:", less(first))]
            options += [(":-1", less(first)), ("::2", "?"), ("1::2", "?"), ("-2::-1", less(first))]
            options += [("::-2", "?"), ("7:2:-1", "?"), ("-3:", "?"), (":2", "?")]
            if self.at_least(first) > 1:
                options += [("1:-1", less(first, 2)), (":2", "2"), ("-2:", "2")] * 2
            options += [(f":{c.name}", "?") for c in self.scope.counters if c.bound == first]
            options += [(f"{c.name} + 1:", "?") for c in self.scope.counters if c.bound == first]
            text, size = rng.choice(options)
            return f"{name}[{text}]", (size,)
        second = of.shape[1]
        if not self.at_least(first) or not self.at_least(second):
            return f"{name}.T", (second, first)
        i, j = self.index(first), self.index(second)
        both: list[tuple[str, Shape]] = [
            (f"[{i}]", (second,)),
            (f"[{i}]", (second,)),
            (f"[{i}, :]", (second,)),
            (f"[{i}][::-1]", (second,)),
            (f"[:, {j}]", (first,)),
            (f"[..., {j}]", (first,)),
            (f".T[{j}]", (first,)),
            (".T", (second, first)),
            (".T[::-1]", (second, first)),
            ("[::-1]", (first, second)),
            ("[:, ::-1]", (first, second)),
            ("[:]", (first, second)),
            ("[1:]", (less(first), second)),
            ("[:-1, 1:]", (less(first), less(second))),
            (f"[{i}, 1:]", (less(second),)),
            (f"[1:, {j}]", (less(first),)),
            (f"[1:][:, {j}]", (less(first),)),
            (".swapaxes(0, 1)", (second, first)),
            (".reshape(-1)", ("?",)),
            (".ravel()", ("?",)),
        ]
        text, shape = rng.choice(both)
        return name + text, shape

    # Numbers and arrays.

    def literal(self, dtype: str, loose: bool = False) -> str:
        """A small number, now and then of Python's other kind if that may be."""
        number = self.rng.choice((-3, -2, -1, 0, 1, 2, 3, 4, 7))
        if dtype == "bool_":
            return self.rng.choice(("True", "False"))
        return str(number) if dtype == "i64" or (loose and self.chance(0.2)) else f"{number}.0"

    def atoms(self, dtype: str, shape: Shape) -> list[str]:
        """Names, views and reductions that are of a type."""
        found: list[str] = []
        for each in self.scope.arrays:
            if each.dtype != dtype:
                continue
            if each.shape == shape:
                found += [each.name] * 3
                if shape:
                    found += [f"{each.name}[::-1]", f"{each.name}.copy()", f"{each.name}[:]"]
            if not shape and each.shape:
                found += self.elements(each)
            elif shape and "?" not in each.shape:
                for _ in range(2):
                    text, size = self.part(each) or ("", ())
                    if size == shape:
                        found.append(text)
        for pile in self.scope.piles:
            if pile.dtype == dtype and pile.shape == shape:
                found += [f"{pile.name}[{key}]" for key in pile.keys]
        return found

    def elements(self, each: Array) -> list[str]:
        """Numbers of an array."""
        if each.dtype == "bool_":
            return [f"{each.name}.any()", f"np.all({each.name})"]
        found = [f"{each.name}.sum()", f"np.sum({each.name})"]
        if any(size == "?" or self.at_least(size) < 1 for size in each.shape):
            return found
        indices = ", ".join(self.index(size) for size in each.shape)
        again = ", ".join(self.index(size) for size in each.shape)
        found += [f"{each.name}[{indices}]", f"{each.name}[{again}]"] * 3
        found += [f"{each.name}.max()", f"np.min({each.name})"]
        if len(each.shape) == 2:
            i, j = indices.split(", ")
            found += [f"{each.name}[{i}].sum()", f"{each.name}[{i}][{j}]"]
            if "%" not in i:
                found.append(f"{each.name}[:, {j}].max()")
        return found

    def new(self, dtype: str, shape: Shape) -> str:
        """An array that nothing else shares."""
        if not shape:
            return self.literal(dtype)
        text = shape[0] if len(shape) == 1 else f"({', '.join(shape)})"
        typed = "" if dtype == "f64" and self.chance(0.5) else f", dtype={NUMPY[dtype]}"
        fill = self.literal(dtype, loose=True)
        options = [f"np.zeros({text}{typed})", f"np.ones({text}{typed})"]
        options += [f"np.full({text}, {fill}, dtype={NUMPY[dtype]})"]
        if len(shape) == 1:
            options.append(f"np.arange({text}, dtype={NUMPY[dtype]})")
        for each in self.scope.arrays:
            if each.shape == shape and each.dtype == dtype:
                like = ("np.zeros_like({})", "np.empty_like({}) * 0", "np.array({})", "{}.copy()")
                options += [one.format(each.name) for one in like if "empty" not in one]
        options = [one for one in options if dtype != "bool_" or "arange" not in one]
        return self.rng.choice(options)

    def simple(self, dtype: str, shape: Shape) -> str:
        """An atom, or else something new."""
        atoms = self.atoms(dtype, shape)
        return self.rng.choice(atoms) if atoms and self.chance(0.9) else self.new(dtype, shape)

    def array(self, dtype: str, shape: Shape, depth: int = 2) -> str:
        """An expression of a type, of numbers that are not much larger than those in it."""
        if depth == 0 or "?" in shape or self.chance(0.35):
            return self.simple(dtype, shape) if "?" not in shape else self.literal(dtype)
        if dtype == "bool_":
            return self.mask(shape, depth)
        a, b = self.array(dtype, shape, depth - 1), self.simple(dtype, shape)
        number = self.array(dtype, (), depth - 1) if shape else self.literal(dtype)
        c = self.literal(dtype, bool(shape))
        options = [f"{a} + {b}", f"{a} - {b}", f"{b} - {a}", f"{a} + {number}", f"{b} * {c}"]
        options += [f"np.minimum({a}, {b})", f"np.maximum({a}, {number})", f"-{braced(b)}"]
        options += [f"abs({a})", f"({a}) % 5", f"({a}) // 2", f"{number} - {braced(a)}"]
        options += [f"np.clip({braced(a)} * {braced(b)}, -9, 9)"]
        if not shape and not self.straight:
            options += [f"max({a}, {b})", f"min({a}, {c})", f"np.abs({b})"]
        if shape:
            options += [f"np.where({self.mask(shape, 1)}, {a}, {b})"] * 2
            options += [f"np.flip({b}, 0)", f"np.sort({b}, axis=0)", f"np.roll({b}, 1, axis=0)"]
        if len(shape) == 1 and self.at_least(shape[0]):
            for each in self.scope.arrays:
                if each.name == "c" and each.shape == shape:
                    options += [f"{b}[c]" if is_name(b) else f"({b})[c]"] * 2
        if len(shape) == 2 and shape[0] != shape[1]:
            column, row = self.simple(dtype, shape[:1]), self.simple(dtype, shape[1:])
            options += [f"{a} + {row}", f"{b} - ({column})[:, None]"]
        if not self.straight and self.chance(0.15):
            return f"({a} if {self.condition(1)} else {b})"
        return self.rng.choice(options)

    def bounded(self, dtype: str, shape: Shape, depth: int = 2) -> str:
        """An expression of a type whose numbers are between -9 and 9."""
        text = self.array(dtype, shape, depth)
        small = text.endswith(", -9, 9)") or is_name(text) or is_number(text) or dtype == "bool_"
        if small or (shape and "?" in shape):
            return text
        if text.endswith("]") and text.count("[") == 1 and " " not in text:
            return text
        top = "9" if dtype == "i64" else "9.0"
        if not shape:
            ways = [f"({text}) % 7", f"np.clip({text}, -{top}, {top})"]
            return self.rng.choice(
                ways + ([] if self.straight else [f"max(min({text}, {top}), -{top})"])
            )
        return f"np.clip({text}, -9, 9)"

    def mask(self, shape: Shape, depth: int = 1) -> str:
        """Truth values of a shape that has axes."""
        atoms = self.atoms("bool_", shape)
        if atoms and self.chance(0.3):
            return self.rng.choice(atoms)
        dtype = self.rng.choice(("f64", "f64", "f64", "i64"))
        a, number = self.simple(dtype, shape), self.simple(dtype, ())
        b = self.rng.choice((number, self.literal(dtype, loose=True), self.simple(dtype, shape)))
        sign = self.rng.choice((">", "<", ">=", "<=", "==", "!="))
        text = f"{a} {sign} {b}"
        if depth and self.chance(0.15):
            return self.rng.choice((f"~({text})", f"({text}) & ({self.mask(shape, 0)})"))
        return f"({text})"

    def condition(self, depth: int = 2) -> str:
        """A truth value, as in an `if`."""
        rng = self.rng
        if depth and self.chance(0.3):
            a, b = self.condition(depth - 1), self.condition(depth - 1)
            return rng.choice((f"{a} and {b}", f"{a} or {b}", f"not ({a})", f"({a} or {b})"))
        a, c = self.simple("f64", ()), self.literal("f64")
        sign = rng.choice((">", "<", ">=", "<=", "==", "!="))
        options = [f"{a} {sign} {c}", f"{a} {sign} {self.simple('f64', ())}"] * 2
        options += [f"{c} < {a} <= {self.literal('f64')}", f"{self.simple('i64', ())} % 2 == 0"]
        vectors = [each for each in self.scope.arrays if each.shape and each.dtype == "f64"]
        if vectors:
            name = rng.choice(vectors).name
            options += [f"({name} {sign} {c}).any()", f"np.all({name} {sign} {c})"]
            options.append(f"{name}.sum() {sign} {c}")
            options += [f"len({name}) > 2"] if self.chance(0.3) else []
        for each in self.scope.arrays:
            if each.dtype == "bool_" and not each.shape:
                options += [each.name, f"not {each.name}"]
        for counter in self.scope.counters:
            name = counter.name
            options += [f"{name} > 0", f"{name} % 2 == 0", f"{name} == 1"]
            options.append(f"{name} + 1 < {counter.bound}")
        if len(self.scope.counters) > 1:
            i, j = rng.sample(self.scope.counters, 2)
            options += [f"{i.name} != {j.name}", f"{i.name} < {j.name}"]
        return rng.choice(options)

    def pick(self, options: Sequence[Array], own: bool = True) -> Array | None:
        """An array to store into: one that the program has made, but for some if it may share."""
        free = [each for each in options if each.own or not own or self.chance(self.daring)]
        return self.rng.choice(free) if free else None

    @property
    def daring(self) -> float:
        """How often what may be the caller's is stored into."""
        return 0.4 if self.shared else 0.01


def braced(text: str) -> str:
    """A text as an operand of any operator."""
    return text if is_name(text) or text.isdigit() or text.startswith("len(") else f"({text})"


def is_name(text: str) -> bool:
    """Whether an expression is a name."""
    return text.isidentifier()


def is_number(text: str) -> bool:
    """Whether an expression is a literal."""
    return text.replace(".", "").replace("-", "").isdigit()
