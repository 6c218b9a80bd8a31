"""Interval analysis against runs of random programs: every value lies in its range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from pscdsl._src.analysis.intervals import Intervals, intervals
from pscdsl._src.analysis.verify import verify
from pscdsl._src.ir.builder import Program, Value
from pscdsl._src.ir.primitive import NDArray
from pscdsl._src.ir.program import Atom, Block, Evaluator, Function, Var
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.indexing import Combine, DynamicSlice, Gather, Scatter
from pscdsl._src.primitives.reductions import ArgReduce, Cumulative, Reduce, Reduction
from pscdsl._src.primitives.shaping import (
    Broadcast,
    Concatenate,
    Constant,
    Iota,
    Reshape,
    SizeValue,
    Slice,
    without,
)
from pscdsl._src.primitives.sorting import Sort, TopK
from pscdsl.typing import dims
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, F32, I8, I32, U8, U32
from tests.fuzz import counted_programs, numpy_differences
from tests.support.kernels_of import kernels_of
from tests.support.random_programs import DTYPES, N, RandomProgram, operands

NARROW = (I8, U8, I32, U32)
ARITHMETIC = (e.add, e.subtract, e.multiply, e.maximum, e.minimum)
DIVISION = (e.floor_divide, e.remainder, e.fmod)
BITS = (e.bitwise_and, e.bitwise_or, e.left_shift, e.right_shift)
REDUCTIONS: tuple[Reduction, ...] = ("sum", "maximum", "minimum", "product")
COMBINATIONS: tuple[Combine, ...] = ("set", "add", "maximum")
COMPARISONS = (e.less, e.less_equal, e.greater, e.greater_equal, e.equal, e.not_equal)


class IntegerProgram(RandomProgram):
    """Random programs that count, compare, index and wrap around."""

    def step(self, program: Program, pool: list[Value], depth: int) -> Sequence[Value]:
        """One step."""
        steps = (self.integers, self.integers, self.guarded, self.placed, self.gathered)
        if self.rng.random() < 0.6:
            return self.rng.choice(steps)(program, pool)
        plain = [each for each in pool if each.dtype in DTYPES]
        return super().step(program, plain, depth) if plain else self.integers(program, pool)

    def number(self, program: Program, pool: Sequence[Value]) -> Value:
        """An integer array."""
        found = [each for each in pool if each.dtype.is_integer]
        if found and self.rng.random() < 0.8:
            return self.rng.choice(found)
        here = program.current
        match self.rng.randrange(4):
            case 0:
                return here.bind(SizeValue(self.rng.choice((N, N - 1, N * 2)), I32), ())[0]
            case 1:
                axis = self.rng.randrange(2)
                return here.bind(Iota((N, 3), axis, self.rng.choice((I32, I8))), ())[0]
            case 2:
                values = np.array([self.rng.randrange(-3, 5) for _ in range(3)])
                return here.bind(Constant.of(values, I32), ())[0]
            case _:
                return here.literal(self.rng.choice((0, 1, 2, 7, 100)), I32)

    def other(self, program: Program, pool: Sequence[Value], x: Value) -> Value:
        """A number to go with another: of its type, or of rank 0."""
        found = [each for each in pool if each.dtype is x.dtype and each.shape in ((), x.shape)]
        if found and self.rng.random() < 0.5:
            return self.rng.choice(found)
        here = program.current
        if x.dtype is I32 and self.rng.random() < 0.4:
            return here.bind(SizeValue(self.rng.choice((N, N + 1, N - 1)), I32), ())[0]
        low = 0 if x.dtype.is_unsigned else -3
        return here.literal(self.rng.choice((low, 0, 1, 2, 3, 50)), x.dtype)

    def integers(self, program: Program, pool: list[Value]) -> Sequence[Value]:
        """Arithmetic, casts and reductions."""
        x = self.number(program, pool)
        y = self.other(program, pool, x)
        match self.rng.randrange(9):
            case 0 | 1:
                return [self.rng.choice(ARITHMETIC)(*self.either(x, y))]
            case 2:
                return [self.rng.choice(DIVISION)(x, y)]
            case 3:
                return [self.rng.choice(BITS)(x, y)]
            case 4:
                return [self.rng.choice((e.negative, e.absolute, e.sign, e.invert))(x)]
            case 5:
                return [e.Convert(self.rng.choice((*NARROW, BOOL)))(x)]
            case 6:
                return [self.rng.choice(COMPARISONS)(x, y)]
            case 7 if x.ndim:
                axis = self.rng.randrange(x.ndim)
                if self.rng.random() < 0.5:
                    return [Reduce(self.rng.choice(REDUCTIONS), (axis,))(x)]
                return [Cumulative(self.rng.choice(("sum", "maximum")), axis)(x)]
            case _:
                low, high = sorted(self.rng.sample((0, 1, 2, 5, 40), 2))
                here = program.current
                return [e.Clamp()(here.literal(low, x.dtype), x, here.literal(high, x.dtype))]

    def guarded(self, program: Program, pool: list[Value]) -> Sequence[Value]:
        """A choice by a comparison of what is chosen."""
        x = self.number(program, pool)
        y, z = (self.other(program, pool, x) for _ in range(2))
        condition = self.rng.choice(COMPARISONS)(*self.either(x, y))
        if self.rng.random() < 0.3:
            second = self.rng.choice(COMPARISONS)(x, z)
            if second.shape == condition.shape:
                condition = self.rng.choice((e.bitwise_and, e.bitwise_or))(condition, second)
        if self.rng.random() < 0.2:
            condition = e.invert(condition)
        changed = self.rng.choice((e.add, e.subtract))(x, y)
        if self.rng.random() < 0.3:
            changed = x
        other = program.current.literal(1, x.dtype) if self.rng.random() < 0.5 else x
        shape = max((condition.shape, changed.shape, other.shape), key=len)
        parts = [each if each.shape == shape else _wide(each, shape) for each in (changed, other)]
        if condition.shape not in ((), shape):
            return [condition]
        return e.Select().bind(condition, *self.either(*parts))

    def placed(self, program: Program, pool: list[Value]) -> Sequence[Value]:
        """Places of elements, in some order."""
        found = [each for each in pool if each.ndim and each.dtype in (F32, I32)]
        if not found:
            return self.integers(program, pool)
        x = self.rng.choice(found)
        axis = self.rng.randrange(x.ndim)
        match self.rng.randrange(3):
            case 0:
                return [ArgReduce(self.rng.choice(("maximum", "minimum")), axis, I32)(x)]
            case 1:
                counts = program.current.bind(Iota(x.shape, axis, I32), ())[0]
                return Sort(axis).bind(x, counts)
            case _:
                return TopK(1).bind(x)

    def gathered(self, program: Program, pool: list[Value]) -> Sequence[Value]:
        """Parts read and written at computed places."""
        arrays = [each for each in pool if each.ndim and each.dtype is I32]
        if not arrays:
            return self.integers(program, pool)
        x = self.rng.choice(arrays)
        index = self.number(program, pool)
        axis = self.rng.randrange(x.ndim)
        match self.rng.randrange(4):
            case 0:
                return [Gather((axis,))(x, Reshape((*index.shape, 1))(index))]
            case 1:
                shape = (*index.shape, *without(x.shape, (axis,)))
                update = self.pick(program, pool, ArrayType(I32, shape))
                combine = self.rng.choice(COMBINATIONS)
                at = Reshape((*index.shape, 1))(index)
                return Scatter((axis,), combine).bind(x, at, update)
            case 2:
                scalars = [each for each in pool if not each.ndim and each.dtype is I32]
                starts = [
                    self.rng.choice(scalars) if scalars else program.current.literal(1, I32)
                    for _ in x.shape
                ]
                return [DynamicSlice((1,) * x.ndim)(x, *starts)]
            case _:
                part = Slice((0,) * x.ndim, (*[1] * (x.ndim - 1), x.shape[-1]), (1,) * x.ndim)(x)
                return Concatenate(0).bind(part, part)


def _wide(x: Value, shape: tuple[Size, ...]) -> Value:
    return Broadcast(shape, ())(x) if not x.ndim else x


class Recorder(Evaluator):
    """Runs a function and keeps the extremes of every variable."""

    def __init__(self, sizes: Mapping[str, int], seen: dict[Var, tuple[int, int]]) -> None:
        super().__init__(sizes)
        self.seen = seen
        self.calls: list[tuple[Function, dict[str, int], dict[Var, tuple[int, int]]]] = []

    def block(self, block: Block, operands: Sequence[NDArray]) -> tuple[NDArray, ...]:
        """The results of a block, its variables recorded."""
        values: dict[Atom, NDArray] = {}
        for var, value in zip(block.params, operands, strict=True):
            values[var] = value
            self.record(var, value)
        for equation in block.equations:
            inputs = [self._value(atom, values) for atom in equation.inputs]
            results = equation.primitive.evaluate(self, *inputs)
            for var, value in zip(equation.outputs, results, strict=True):
                values[var] = value
                self.record(var, value)
        return tuple([self._value(atom, values) for atom in block.results])

    def record(self, var: Var, value: NDArray) -> None:
        """Keep the extremes of an integer variable."""
        if value.size and value.dtype.kind in "biu":
            low, high = self.seen.get(var, (1 << 70, -(1 << 70)))
            self.seen[var] = min(low, int(value.min())), max(high, int(value.max()))

    def call(
        self, function: Function, sizes: Mapping[str, Size], operands: Sequence[NDArray]
    ) -> tuple[NDArray, ...]:
        """The results of another function, whose variables are recorded apart."""
        inner = {name: self.size(size) for name, size in sizes.items()}
        run = Recorder(inner, {})
        results = run.block(function.body, operands)
        self.calls += [(function, inner, run.seen), *run.calls]
        return results


def check(found: Intervals, sizes: dict[str, int], seen: Mapping[Var, tuple[int, int]]) -> int:
    """Every value lies in its range; how many ranges say more than the dtype."""
    informative = 0
    for var, (least, most) in seen.items():
        known = found.ranges[var]
        low, high = (dims.evaluate(bound, sizes) for bound in (known.low, known.high))
        assert low <= least <= most <= high, (var, known, least, most)
        own = (0, 1) if var.type.dtype is BOOL else var.type.dtype.range
        informative += (known.low, known.high) != own
        certain = all(isinstance(x, int) for x in known.along)
        if certain and known.low_reached:
            assert least == low, (var, known, least)
        if certain and known.high_reached:
            assert most == high, (var, known, most)
    return informative


@pytest.mark.parametrize("start", range(0, 600, 100))
def test_every_value_lies_in_its_range(start: int) -> None:
    total = informative = 0
    for seed in range(start, start + 100):
        function = IntegerProgram(seed, 18).function()
        verify(function)
        found = Intervals(function)
        for size in (1, 2, 5):
            sizes = {"n": size}
            for trial in range(2):
                run = Recorder(sizes, {})
                run.block(function.body, operands(function, sizes, seed + trial))
                informative += check(found, sizes, run.seen)
                total += len(run.seen)
                for callee, inner, seen in run.calls:
                    check(intervals(callee), inner, seen)
    assert informative > total / 5, "the analysis should know something"


def test_ranges_do_not_depend_on_the_order_of_runs() -> None:
    for seed in range(20):
        function = IntegerProgram(seed, 18).function()
        first, second = Intervals(function), Intervals(function)
        assert first.ranges == second.ranges


@pytest.mark.parametrize("start", [0, 10])
def test_every_value_of_a_counted_loop_lies_in_its_range(start: int) -> None:
    for seed in range(start, start + 10):
        definition = kernels_of(counted_programs.generate(seed))["main"]
        try:
            (function,) = map(definition.instance, definition.signature.choices() or ())
        except Failure:
            continue
        found = Intervals(function)
        for size in (1, 2, 5):
            sizes = {"n": size}
            given = numpy_differences.arguments(function, sizes, seed)
            run = Recorder(sizes, {})
            run.block(function.body, [*given.values()])
            check(found, sizes, run.seen)
