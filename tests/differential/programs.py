"""Kernels of several independent programs, each a chain of operations on common arguments.

Enclosures are computed while a program is drawn, so that most of what it computes is known: an
operation after which nothing would be is not taken.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from tests.differential import awkward
from tests.differential import operations as o
from tests.differential import structure as s
from tests.differential.bodies import Body, Inapplicable, Operand, Operation, worth
from tests.differential.enclosures import Real, Value, known, real
from tests.differential.formats import FORMATS, NDArray

HEAD: Final = """\
import numpy as np

import pscdsl as psc
from pscdsl import bf16, bool_, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64


"""
PALETTES: Final[tuple[tuple[str, ...], ...]] = (
    *(("f32",),) * 6,
    *(("f64",),) * 4,
    *(("f32", "i32"),) * 2,
    *(("f32", "bool_"), ("f64", "i64"), ("f64", "bool_")),
    *(("f16",), ("f16", "f32"), ("bf16",), ("bf16", "f32"), ("f32", "f64")),
    *(("i32", "u8"), ("i64", "i8"), ("u32", "i16"), ("u64", "u16"), ("i32", "bool_")),
)
"""Dtypes of arguments that stand together."""
OPERATIONS: Final[tuple[tuple[Operation, int], ...]] = (
    (o.binary, 10),
    (o.twice, 5),
    (o.undone, 5),
    (o.composed, 3),
    (o.unary, 7),
    (o.whole, 7),
    (o.comparison, 2),
    (o.test, 1),
    (o.selection, 3),
    (o.clipped, 1),
    (o.cast, 3),
    (s.shaping, 4),
    (s.joining, 1),
    (s.padding, 1),
    (s.reduction, 7),
    (s.place, 1),
    (s.cumulative, 2),
    (s.ordering, 1),
    (s.matrix_product, 6),
    (s.reduced_product, 4),
    (s.sum_of_products, 3),
    (s.more_axes, 3),
    (s.einsum, 2),
    (s.outer, 1),
    (s.loop, 1),
    (s.scan, 1),
)
ALL: Final[tuple[Operation, ...]] = tuple(
    operation for operation, weight in OPERATIONS for _ in range(weight)
)
POINTWISE: Final[tuple[Operation, ...]] = tuple(
    operation for operation in ALL if operation.__module__ == o.__name__
)
ACCUMULATED: Final = ("@", "np.sum", "einsum", "mean", "var", "norm", "prod", "cumsum", "np.outer")
"""What NumPy computes in half precision, and we in single."""
Mode: TypeAlias = Literal["users", "quick"]
"""How a kernel is compiled; see `worker.compiled_as`."""


@dataclass(frozen=True)
class Program:
    """A chain of operations: the lines that compute it, and what its result may be."""

    lines: tuple[str, ...]
    result: Operand
    steps: tuple[Operand, ...]
    """The value of each line."""
    documented: bool = False
    """Whether NumPy gives something else, and the manual says so."""


@dataclass(frozen=True)
class Kernel:
    """A kernel whose results are those of independent programs."""

    seed: int
    arguments: tuple[tuple[str, NDArray], ...]
    programs: tuple[Program, ...]
    mode: Mode

    def text(self, programs: Sequence[Program] | None = None, decorator: str = "kernel") -> str:
        """The module, with all programs or with some."""
        chosen = self.programs if programs is None else programs
        params = ", ".join(f"{name}: {written_type(array)}" for name, array in self.arguments)
        results = ", ".join(written_type_of(each.result) for each in chosen)
        body = "".join(f"    {line}\n" for each in chosen for line in each.lines)
        returned = ", ".join(each.result.text for each in chosen)
        return (
            f"{HEAD}@psc.{decorator}\ndef main({params}) -> tuple[{results}]:\n"
            f"{body}    return ({returned},)\n"
        )


def written_type(array: NDArray) -> str:
    """The annotation of an array."""
    from tests.differential.formats import NAMES

    sizes = " ".join(str(size) for size in array.shape)
    name = NAMES[array.dtype]
    return f'{name}["{sizes}"]' if sizes else name


def written_type_of(x: Operand) -> str:
    """The annotation of a value."""
    sizes = " ".join(str(size) for size in x.shape)
    return f'{x.dtype}["{sizes}"]' if sizes else x.dtype


def value_of(array: NDArray) -> Value:
    """What is known of an argument."""
    from tests.differential.formats import NAMES

    name = NAMES[array.dtype]
    return real(FORMATS[name], array) if name in FORMATS else known(array)


def generate(seed: int) -> Kernel:
    """The kernel of a seed."""
    rng = random.Random(seed)
    palette = rng.choice(PALETTES)
    kind = rng.choices(("whole", "pointwise", "quick"), (24, 36, 40))[0]
    mode: Mode = "quick" if kind == "quick" else "users"
    if kind == "quick":
        kind = "small"
    elif kind == "whole":
        kind = rng.choices(("small", "large", "many axes"), (62, 16, 22))[0]
    count, most = {
        "pointwise": (24, 3000),
        "small": (rng.choice((6, 9, 12)), 3000),
        "large": (3, 140_000),
        "many axes": (5, 50_000),
    }[kind]
    arguments: list[tuple[str, NDArray]] = []
    for index, shape in enumerate(argument_shapes(rng, kind)):
        dtype = palette[0] if index < 3 else rng.choice(palette)
        arguments.append((f"x{index}", awkward.array(rng, dtype, shape)))
    operands = [Operand(name, value_of(array)) for name, array in arguments]
    operations = POINTWISE if kind == "pointwise" else ALL
    programs = [chain(rng, f"p{index}", operands, operations, most) for index in range(count)]
    return Kernel(seed, tuple(arguments), tuple(programs), mode)


def argument_shapes(rng: random.Random, kind: str) -> list[tuple[int, ...]]:
    """Shapes that go together."""
    if kind == "large":
        n, d, k = rng.choice(awkward.LARGE), rng.choice((1, 2, 3, 5)), rng.choice((1, 2, 3, 4))
        return [(n, k), (d, k), rng.choice(((n,), (n, k))), rng.choice(((d,), (k,)))]
    if kind == "many axes":
        rank = rng.choice((5, 6, 7, 7, 8, 8))
        while True:
            sizes = tuple(rng.choice((1, 2, 2, 3, 3, 4, 5, 6)) for _ in range(rank))
            if int(np.prod(sizes)) <= 40_000:
                break
        lead = rng.randrange(2, 4)
        return [sizes[:lead], sizes, sizes[-2:], rng.choice((sizes[-1:], sizes))]
    n, m, k = (rng.choice(awkward.SMALL) for _ in range(3))
    if kind == "pointwise":
        shape = rng.choice(((n,), (n,), (n, m), (2, n, m)))
        return [shape, shape, shape, shape, ()]
    options: list[tuple[int, ...]] = [(n,), (m,), (n, m), (n, m), (m, k), (m, n), (n, n), ()]
    options += [(2, n, m), (3, m, k), (n, 1), (1, m)]
    shapes = [(n,), (n, m), *[rng.choice(options) for _ in range(3)]]
    return [shape if np.prod(shape) <= 1100 else shape[-1:] for shape in shapes]


def chain(
    rng: random.Random,
    name: str,
    operands: Sequence[Operand],
    operations: Sequence[Operation],
    most: int,
) -> Program:
    """A program of a few operations, each on the result of the one before."""
    body = Body(rng, operands, most)
    length = rng.choice((1, 2, 2, 3, 3, 4, 5))
    current = rng.choice([each for each in operands if each.shape] or operands)
    lines: list[str] = []
    steps: list[Operand] = []
    while len(steps) < length:
        found = extended(body, current, operations)
        if found is None:
            current = rng.choice(body.operands)
            continue
        text, value = found
        step = Operand(f"{name}_{len(steps)}", value)
        lines.append(f"{step.text} = {text}")
        steps.append(step)
        body.operands.append(step)
        current = step
    # NumPy's scalars promote bfloat16, and many of its functions do not take it.
    other = body.documented or any(each.dtype == "bf16" for each in (*steps, *operands))
    if any(each.dtype == "f16" for each in (*steps, *operands)):
        other |= any(each in "".join(lines) for each in ACCUMULATED)
    return Program(tuple(lines), current, tuple(steps), other)


def extended(body: Body, x: Operand, operations: Sequence[Operation]) -> tuple[str, Value] | None:
    """One more operation on a value, after which something is known; None after some attempts."""
    for _ in range(6):
        try:
            with np.errstate(all="ignore"):
                step = s.applicable(operations, body, x)
                value = step.meaning(x.value)
        except Inapplicable:
            continue
        size = int(np.prod(value.shape, dtype=np.int64))
        if size > body.most or len(value.shape) > 8:
            continue
        if worth(value) >= 0.9 * worth(x.value) and (not dull(value) or body.chance(0.2)):
            return step.text, value
    return None


def dull(value: Value) -> bool:
    """Whether nearly all elements are NaN or infinite."""
    if not isinstance(value, Real):
        return False
    wild: NDArray = (value.nan > 0) | ~np.isfinite(value.low) | ~np.isfinite(value.high)
    return float(np.mean(wild)) > 0.8
