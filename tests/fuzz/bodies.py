"""Function bodies: values in reach, and statements that make new ones of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from tests.fuzz import library, operations, shaping
from tests.fuzz.model import (
    BATCH,
    BITS,
    CLASSES,
    COMPLEX,
    LARGEST_SIZE,
    LIMIT,
    NUMPY,
    UNSIGNED,
    Array,
    Inapplicable,
    Shape,
    Size,
)

if TYPE_CHECKING:
    from tests.fuzz.programs import Generator

T = TypeVar("T")

OPERATIONS: tuple[tuple[int, operations.Operation], ...] = (
    (6, operations.unary),
    (2, operations.cast),
    (6, operations.binary),
    (1, operations.comparison),
    (1, operations.choice),
    (4, operations.reduction),
    (1, operations.cumulative),
    (1, operations.ordering),
    (1, operations.extremum),
    (2, shaping.transposed),
    (2, shaping.reshaped),
    (2, shaping.indexed),
    (2, shaping.sliced),
    (1, shaping.gathered),
    (2, shaping.updated),
    (2, shaping.joined),
    (1, shaping.spread),
    (1, shaping.matrix),
    (3, shaping.product),
    (1, shaping.created),
    (1, shaping.squeezed),
    (3, library.elementwise),
    (3, library.special),
    (1, library.bits),
    (1, library.complex_pair),
    (1, library.statistic),
    (1, library.counted),
    (1, library.transform),
    (2, library.windowed),
    (1, library.calculus),
    (1, library.chosen),
    (1, library.together),
)
PRESERVING = (operations.unary, operations.binary, operations.choice, shaping.updated)
MAX_RANK = 3
MAX_TEXT = 160


class Body:
    """One function's body as it grows."""

    def __init__(self, generator: Generator, depth: int = 0) -> None:
        self.generator = generator
        self.rng: random.Random = generator.rng
        self.values: list[Array] = []
        self.sizes: dict[str, str] = {}
        """How each size name is written here."""
        self.bounds: dict[str, int] = {}
        """What each size is at least, where that is more than 1."""
        self.lines: list[str] = []
        self.depth = depth

    # Choices.

    def chance(self, probability: float) -> bool:
        """A coin."""
        return self.rng.random() < probability

    def choice(self, options: Sequence[T]) -> T:
        """One of several."""
        return options[self.rng.randrange(len(options))]

    def randrange(self, *bounds: int) -> int:
        """A number."""
        return self.rng.randrange(*bounds)

    def sample(self, options: Sequence[T], count: int) -> list[T]:
        """Several, each once."""
        return self.rng.sample(options, count)

    def arrays(self) -> list[Array]:
        """The values in reach; later ones come up more often."""
        return self.values + self.values[-4:]

    # Sizes.

    def size_text(self, size: Size) -> str:
        """How a size is written in code."""
        if BATCH == size:
            raise Inapplicable
        text = size.written(self.sizes)
        return f"({text})" if len(size.terms) > 1 else text

    def least(self, size: Size) -> int:
        """What a size is at least."""
        return 0 if size == BATCH else size.least(self.bounds)

    def most(self, size: Size) -> int:
        """What a size is at most when programs run."""
        if size == BATCH:
            return 30
        return max(1, size.at(dict.fromkeys(size.names(), LARGEST_SIZE)))

    def index(self, size: Size) -> str:
        """A computed index of an axis."""
        found = [v.text for v in self.values if v.dtype in ("i32", "i64") and not v.shape]
        if not found:
            raise Inapplicable
        return f"{self.choice(found)} % {self.size_text(size)}"

    # Values.

    def name(self) -> str:
        """A name that is used nowhere else."""
        return self.generator.fresh()

    def dtype_text(self, dtype: str) -> str:
        """How a dtype is written in code."""
        if dtype not in CLASSES:
            return NUMPY[dtype]
        for value in self.values:
            if value.dtype == dtype and value.text.isidentifier():
                return f"{value.text}.dtype"
        raise Inapplicable

    def number(self, like: Array) -> Array:
        """A Python number that adapts to an array."""
        if like.dtype == "bool_":
            return Array(self.choice(("True", "False")), "bool_", ())
        numbers = (1, 2, 3) if like.is_integer else (0.5, 2.0, 1, -1.5, 0.25)
        number = self.choice(numbers)
        return Array(f"{number}", like.dtype, (), number, number, 1.0 if like.is_integer else 0.25)

    def cast(self, x: Array, dtype: str) -> Array:
        """The value in another dtype."""
        if x.dtype == dtype:
            return x
        low, high, grid = x.low, x.high, x.grid
        if x.dtype == "bool_":
            low, high, grid = 0.0, 1.0, 1.0
        if x.dtype in COMPLEX and dtype not in COMPLEX:
            raise Inapplicable
        to_integer = dtype in ("bool_", "Int", "UInt") or dtype[0] in "iu"
        if to_integer and not x.is_exact:
            raise Inapplicable
        if dtype in UNSIGNED and low < 0:
            raise Inapplicable
        if to_integer or x.is_integer:
            grid = 1.0
        text = f"{x.text}.astype({self.dtype_text(dtype)})"
        found = Array(text, dtype, x.shape, low, high, grid)
        if found.is_float and not replace(found, grid=grid or 1.0).is_exact:
            found = replace(found, grid=0.0)
        if not found.fits:
            raise Inapplicable
        return found

    def expression(self, depth: int = 2) -> Array:
        """A value made of those in reach."""
        for _ in range(20):
            nested = depth > 0 and self.chance(0.5)
            x = self.expression(depth - 1) if nested else self.choice(self.arrays())
            operation = self.rng.choices(
                [each for _, each in OPERATIONS], [weight for weight, _ in OPERATIONS]
            )[0]
            try:
                found = operation(self, x)
            except Inapplicable:
                continue
            if self.acceptable(found):
                return found
        return self.choice(self.arrays())

    def acceptable(self, x: Array) -> bool:
        """Whether a value is small enough to go on with."""
        count = 1
        for size in x.shape:
            count *= self.most(size)
        return x.ndim <= MAX_RANK and len(x.text) <= MAX_TEXT and count <= 4000

    def like(self, dtype: str, shape: Shape, steps: int = 2) -> Array:
        """A value of a given type."""
        same = [v for v in self.arrays() if v.shape == shape]
        found: Array | None = None
        for each in self.sample(same, len(same)):
            try:
                found = self.cast(each, dtype)
                break
            except Inapplicable:
                continue
        if found is None:
            found = self.constant(dtype, shape)
        for _ in range(self.randrange(steps + 1)):
            try:
                changed = self.choice(PRESERVING)(self, found)
            except Inapplicable:
                continue
            if changed.shape == shape and changed.dtype == dtype and self.acceptable(changed):
                found = changed
        return found

    def constant(self, dtype: str, shape: Shape) -> Array:
        """The same number everywhere."""
        number = self.choice((0, 1, 2))
        sizes = "".join(f"{self.size_text(size)}, " for size in shape)
        text = f"np.full(({sizes}), {number}, dtype={self.dtype_text(dtype)})"
        if dtype == "bool_":
            text = f"np.full(({sizes}), {bool(number)})"
        return Array(text, dtype, shape, number, number, 1.0)

    def within(self, dtype: str, shape: Shape) -> Array:
        """A value of a given type whose elements are those of an argument."""
        x = self.like(dtype, shape)
        allowed = argument("", dtype, shape)
        if dtype == "bool_" or dtype in COMPLEX:
            return x
        if x.low >= allowed.low and x.high <= allowed.high:
            return x
        low, high = int(allowed.low), int(allowed.high)
        text = f"np.clip({x.text}, {low}, {high})"
        return Array(text, dtype, shape, allowed.low, allowed.high, x.grid)

    # Statements.

    def bind(self, value: Array) -> Array:
        """Give a value a name."""
        name = self.name()
        self.lines.append(f"{name} = {value.text}")
        named = value.named(name)
        self.values.append(named)
        return named

    def nested(self) -> Body:
        """The body of a function inside this one."""
        inner = Body(self.generator, self.depth + 1)
        inner.values = list(self.values)
        inner.sizes = dict(self.sizes)
        inner.bounds = dict(self.bounds)
        return inner

    def steps(self, count: int) -> None:
        """A few statements."""
        from tests.fuzz.vocabulary import STATEMENTS

        options, weights = [each for _, each in STATEMENTS], [weight for weight, _ in STATEMENTS]
        for _ in range(count):
            statement = self.rng.choices(options, weights)[0]
            mark, reach = len(self.lines), len(self.values)
            try:
                statement(self)
            except Inapplicable:
                del self.lines[mark:]
                del self.values[reach:]

    def closure(self, params: Sequence[str], body: Body, result: str) -> str:
        """Define a nested function; its name."""
        name = self.name()
        if not body.lines and self.chance(0.5):
            if self.chance(0.5):
                return f"(lambda {', '.join(params)}: {result})"
            self.lines.append(f"{name} = lambda {', '.join(params)}: {result}")
            return name
        self.lines.append(f"def {name}({', '.join(params)}):")
        self.lines += indented([*body.lines, f"return {result}"])
        return name


def indented(lines: Sequence[str]) -> list[str]:
    """Lines of a block."""
    return ["    " + line for line in lines]


def argument(text: str, dtype: str, shape: Shape) -> Array:
    """A value as programs get it from outside."""
    low = 0.0 if dtype in UNSIGNED else -4.0
    grid = 0.0 if dtype in COMPLEX else 1.0 if dtype in LIMIT and dtype not in BITS else 0.25
    if dtype in UNSIGNED or dtype[0] == "i" or dtype == "Int":
        grid = 1.0
    return Array(text, dtype, shape, low, 4.0, grid)


Statement = Callable[[Body], None]
