"""What a row of the law table is, and from where its operands take their values.

Every module `tests/law_rows*.py` may define `ROWS`; the laws hold for all of them, and every
primitive needs at least one.  A row is a primitive with the types of its operands, in symbolic
sizes; the rest says on which numbers and how closely results are compared.
"""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.primitive import Primitive
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import evaluate, parse
from pscdsl.typing.dtypes import BOOL, KEY, DType, dtype

NDArray: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Domain: TypeAlias = Callable[[np.random.Generator, DType, tuple[int, ...]], NDArray]
"""Operand values from a source of randomness, a dtype and a shape."""


def array_type(text: str) -> ArrayType:
    """A type as it is written: `f32[n 2*d]`, or `f32` for a scalar."""
    name, _, sizes = text.partition("[")
    return ArrayType(dtype(name), tuple(map(parse, sizes.removesuffix("]").split())))


def array_types(text: str) -> tuple[ArrayType, ...]:
    """Types separated by commas."""
    return tuple(array_type(each.strip()) for each in text.split(",")) if text else ()


def finfo(kind: DType) -> Any:
    """The limits of the parts of an inexact dtype."""
    find: Any = ml_dtypes.finfo
    return find(to_numpy(kind.real))


def anything(rng: np.random.Generator, kind: DType, shape: tuple[int, ...]) -> NDArray:
    """All that a dtype can hold but subnormal numbers: the hardest values, and some of each size.

    XLA may flush subnormal numbers to zero, on CPUs it does.
    """
    if kind is KEY:
        return rng.integers(0, 2**32, (*shape, 2), np.uint32)
    if kind is BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    if kind.is_complex:
        parts = [anything(rng, kind.real, shape) for _ in range(2)]
        return _complex(kind, *parts)
    if kind.is_integer:
        low, high = kind.range
        near = rng.integers(-5, 6, shape)
        far = rng.integers(low, high, shape, to_numpy(kind), endpoint=True)
        ends = rng.choice(np.array([low, low + 1, high - 1, high], to_numpy(kind)), shape)
        small = np.clip(near, max(low, -5), 5).astype(to_numpy(kind))
        return _mixed(rng, (small, far, ends))
    limits = finfo(kind)
    hard = [np.nan, np.inf, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 100.0, limits.max, limits.smallest_normal]
    hard += [1 + float(limits.eps), 1 - float(limits.epsneg), np.pi, np.pi / 2]
    special = rng.choice(np.array(hard, np.float64), shape) * rng.choice([-1.0, 1.0], shape)
    return _mixed(rng, (special.astype(to_numpy(kind)), moderate(rng, kind, shape)))


def finite(rng: np.random.Generator, kind: DType, shape: tuple[int, ...]) -> NDArray:
    """As `anything`, without NaN and infinities."""
    values = anything(rng, kind, shape)
    if not kind.is_inexact:
        return values
    return np.where(np.isfinite(values), values, np.asarray(1, values.dtype))


def moderate(rng: np.random.Generator, kind: DType, shape: tuple[int, ...]) -> NDArray:
    """Numbers of either sign around 1, from about 0.01 to 100; integers up to 9."""
    if kind.kind is BOOL.kind or kind is KEY:
        return anything(rng, kind, shape)
    if kind.is_integer:
        return rng.integers(-9 if kind.signed else 0, 10, shape).astype(to_numpy(kind))
    if kind.is_complex:
        return _complex(kind, *(moderate(rng, kind.real, shape) for _ in range(2)))
    sizes = np.exp(rng.uniform(-4.6, 4.6, shape)) * rng.choice([-1.0, 1.0], shape)
    return np.asarray(sizes).astype(to_numpy(kind))


def whole(low: int, high: int) -> Domain:
    """Whole numbers of a range, both ends included; exact in every dtype."""

    def draw(rng: np.random.Generator, kind: DType, shape: tuple[int, ...]) -> NDArray:
        numbers = rng.integers(low if kind.signed else max(low, 0), high, shape, endpoint=True)
        return np.asarray(numbers).astype(to_numpy(kind))

    return draw


def between(low: float, high: float) -> Domain:
    """Real numbers of an interval, or complex ones with both parts in it."""

    def draw(rng: np.random.Generator, kind: DType, shape: tuple[int, ...]) -> NDArray:
        if kind.is_complex:
            return _complex(kind, *(draw(rng, kind.real, shape) for _ in range(2)))
        if kind is BOOL or kind is KEY:
            return anything(rng, kind, shape)
        return np.asarray(rng.uniform(low, high, shape)).astype(to_numpy(kind))

    return draw


def _complex(kind: DType, real: NDArray, imag: NDArray) -> NDArray:
    result = np.empty(real.shape, to_numpy(kind))
    result.real = real
    result.imag = imag
    return result


def _mixed(rng: np.random.Generator, choices: Sequence[NDArray]) -> NDArray:
    count: int = len(choices)
    which = rng.choice(np.arange(count, dtype=np.int64), choices[0].shape)
    result = choices[0]
    for index, each in enumerate(choices[1:], 1):
        result = np.where(which == index, each, result)
    return np.asarray(result)


@dataclass(frozen=True)
class Row:
    """A primitive at types of operands, and how its results are compared.

    sizes       the numbers at which it is run; by default every name is a small number of its own
    domain      the values of all operands, or of each
    tolerance   how many units in the last place results may differ
    absolute    how much they may differ at any size, beside that
    signed_zeros   whether zeros must agree in sign
    smooth      values of the operands, or of each, near which derivatives exist
    chosen      results that routines choose among equally good ones, by signs and phases: sizes of
                elements are compared; derivatives follow no phases, and are compared if real
    refused     whether it has no derivative, because of results that are chosen
    held        operands in which it has no derivative
    """

    primitive: Primitive
    operands: tuple[ArrayType, ...]
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    domain: Domain | tuple[Domain, ...] = anything
    tolerance: float = 0
    absolute: float = 0
    signed_zeros: bool = True
    facts: Assumptions = Assumptions()  # noqa: RUF009
    smooth: Domain | tuple[Domain, ...] | None = None
    chosen: tuple[int, ...] = ()
    refused: bool = False
    held: tuple[int, ...] = ()

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={size}" for name, size in self.env().items())
        return f"{self.primitive!r} ({', '.join(map(str, self.operands))}) at {sizes or 'no sizes'}"

    def env(self) -> dict[str, int]:
        """The numbers at which it is run."""
        types = (*self.operands, *self.primitive.type_rule(self.facts, *self.operands))
        names = {name for each in types for name in each.names()}
        chosen = {name: 2 + i % 4 for i, name in enumerate(sorted(names))}
        return {**chosen, **self.sizes}

    def draw(self, rng: np.random.Generator) -> tuple[NDArray, ...]:
        """Operands."""
        return self._drawn(rng, self.domain)

    def draw_smooth(self, rng: np.random.Generator) -> tuple[NDArray, ...]:
        """Operands near which derivatives exist; those without tangents as always."""
        smooth = between(0.2, 0.9) if self.smooth is None else self.smooth
        near = self._drawn(rng, smooth)
        return tuple(
            x if each.dtype.is_inexact else y
            for each, x, y in zip(self.operands, near, self.draw(rng), strict=True)
        )

    def _drawn(
        self, rng: np.random.Generator, domain: Domain | tuple[Domain, ...]
    ) -> tuple[NDArray, ...]:
        domains = (domain,) * len(self.operands) if callable(domain) else domain
        env = self.env()
        return tuple(
            draw(rng, each.dtype, tuple(evaluate(size, env) for size in each.shape))
            for draw, each in zip(domains, self.operands, strict=True)
        )
