"""Random small typed programs: straight lines, calls, choices and loops, in few dtypes."""

# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np

from pscdsl._src.ir.builder import Program, Value
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.primitive import NDArray
from pscdsl._src.ir.program import Block, Function, evaluate
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.associative import AssociativeScan, MapReduce
from pscdsl._src.primitives.control import Call, Switch
from pscdsl._src.primitives.reductions import Reduce
from pscdsl._src.primitives.scan import Scan
from pscdsl._src.primitives.shaping import (
    Broadcast,
    Constant,
    Iota,
    Reshape,
    Reverse,
    SizeValue,
    Slice,
    Transpose,
)
from pscdsl._src.primitives.while_loop import While
from pscdsl._src.targets.cpu.table import CPU
from pscdsl._src.targets.pipeline import lower_module
from pscdsl._src.targets.rewriting import Target
from pscdsl._src.xla.compilation import compile_module
from pscdsl._src.xla.emit.context import module_text
from pscdsl.typing import dims
from pscdsl.typing.array_types import ArrayType, Shape
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dtypes import BOOL, F32, I32, DType

N = dims.name("n")
SHAPES: tuple[Shape, ...] = ((), (N,), (3,), (N, 3))
DTYPES = (F32, I32, BOOL)
NUMBERS = (0, 1, -1, 2, 3)
BINARY = (e.add, e.subtract, e.multiply, e.maximum, e.minimum)
LOGIC = (e.bitwise_and, e.bitwise_or, e.bitwise_xor)


class RandomProgram:
    """One program from one seed; every choice comes from `rng`."""

    def __init__(self, seed: int, size: int = 12) -> None:
        self.rng = random.Random(seed)
        self.size = size
        self.functions: list[Function] = []

    def function(self) -> Function:
        """A function that may call a few others."""
        for _ in range(self.rng.randrange(3)):
            self.functions.append(self.one(f"f{len(self.functions)}", self.size // 2))
        return self.one("main", self.size)

    def one(self, name: str, size: int) -> Function:
        """A function over a few parameters."""
        program = Program()
        params = [program.current.parameter(self.type()) for _ in range(self.rng.randrange(1, 4))]
        results = self.body(program, list(params), size, 0)
        block, _ = program.current.finish(params, results)
        return Function(name, ("n",), Assumptions(), block)

    def type(self) -> ArrayType:
        """Any type."""
        return ArrayType(self.rng.choice(DTYPES), self.rng.choice(SHAPES))

    def body(self, program: Program, pool: list[Value], size: int, depth: int) -> list[Value]:
        """A few equations over the values in reach; some of their results."""
        for _ in range(self.rng.randrange(size)):
            pool.extend(self.step(program, pool, depth))
        return [self.rng.choice(pool) for _ in range(self.rng.randrange(1, 4 if depth else 8))]

    def step(self, program: Program, pool: list[Value], depth: int) -> Sequence[Value]:
        """One step."""
        steps: list[Callable[[Program, list[Value], int], Sequence[Value]]] = [
            self.elementwise,
            self.elementwise,
            self.elementwise,
            self.select,
            self.shaping,
            self.source,
        ]
        if depth < 2:
            steps += [self.scan, self.loop, self.switch, self.combined]
        if self.functions:
            steps.append(self.call)
        return self.rng.choice(steps)(program, pool, depth)

    def pick(self, program: Program, pool: Sequence[Value], wanted: ArrayType) -> Value:
        """A value of a type: one in reach, or a new one."""
        found = [value for value in pool if value.type == wanted]
        if found and self.rng.random() < 0.8:
            return self.rng.choice(found)
        here = program.current
        value: object = self.rng.choice(NUMBERS)
        literal = here.literal(_number(value, wanted.dtype), wanted.dtype)
        return here.full(literal, wanted.shape, wanted.dtype)

    def elementwise(self, program: Program, pool: list[Value], depth: int) -> Sequence[Value]:
        """An operation of numbers or truth values."""
        x = self.rng.choice(pool)
        other = x.type if self.rng.random() < 0.6 else ArrayType(x.dtype)
        y = self.pick(program, pool, other)
        if x.dtype is BOOL:
            if self.rng.random() < 0.3:
                return [e.invert(x)]
            return [self.rng.choice(LOGIC)(*self.either(x, y))]
        chance = self.rng.random()
        if chance < 0.2:
            return [e.negative(x)]
        if chance < 0.3:
            return [e.Convert(self.rng.choice((F32, I32)))(e.Clamp()(*self.bounds(program, x)))]
        if chance < 0.4:
            return [e.less(*self.either(x, y))]
        return [self.rng.choice(BINARY)(*self.either(x, y))]

    def either(self, x: Value, y: Value) -> tuple[Value, Value]:
        """Two operands in any order."""
        return (x, y) if self.rng.random() < 0.5 else (y, x)

    def bounds(self, program: Program, x: Value) -> tuple[Value, Value, Value]:
        """Operands that keep a number small enough for every dtype."""
        low, high = (program.current.literal(each, x.dtype) for each in (-1000, 1000))
        return low, x, high

    def select(self, program: Program, pool: list[Value], depth: int) -> Sequence[Value]:
        """A choice by element."""
        x = self.rng.choice(pool)
        y = self.pick(program, pool, x.type)
        predicate = self.pick(program, pool, x.type.with_dtype(BOOL))
        return e.Select().bind(predicate, *self.either(x, y))

    def shaping(self, program: Program, pool: list[Value], depth: int) -> Sequence[Value]:
        """Elements moved about."""
        x = self.rng.choice(pool)
        rank = x.ndim
        if not rank:
            shape = self.rng.choice(SHAPES)
            return [Broadcast(shape, ())(x)]
        match self.rng.randrange(6):
            case 0:
                return [Reverse(tuple(range(self.rng.randrange(rank + 1))))(x)]
            case 1:
                order = self.rng.sample(range(rank), rank)
                return [Transpose(tuple(order))(x)]
            case 2:
                return [Reshape((*x.shape[::-1], 1))(x)]
            case 3:
                return [Slice((0,) * rank, x.shape, (1,) * rank)(x)]
            case 4 if x.dtype is not BOOL:
                return [Reduce("maximum", (rank - 1,))(x)]
            case _:
                return [Broadcast((2, *x.shape), tuple(range(1, rank + 1)))(x)]

    def source(self, program: Program, pool: list[Value], depth: int) -> Sequence[Value]:
        """A value from nothing."""
        here = program.current
        match self.rng.randrange(4):
            case 0:
                return here.bind(SizeValue(self.rng.choice((N, N * 2 + 1)), I32), ())
            case 1:
                return here.bind(Iota((self.rng.choice((N, 3)),), 0, I32), ())
            case 2:
                values = [self.rng.choice((-0.0, 0.0, 1.0, np.nan)) for _ in range(3)]
                return here.bind(Constant.of(values, F32), ())
            case _:
                return [self.pick(program, (), self.type())]

    def call(self, program: Program, pool: list[Value], depth: int) -> Sequence[Value]:
        """A call at the same size or twice the size."""
        function = self.rng.choice(self.functions)
        size = self.rng.choice((N, 2 * N))
        operands = [
            self.pick(program, pool, wanted.substitute({"n": size}))
            for wanted in function.body.in_types
        ]
        return program.current.bind(Call(function, (("n", size),)), operands)

    def switch(self, program: Program, pool: list[Value], depth: int) -> Sequence[Value]:
        """A choice between closed branches."""
        index = self.pick(program, pool, ArrayType(self.rng.choice((I32, BOOL))))
        rest = [self.rng.choice(pool) for _ in range(self.rng.randrange(1, 4))]
        wanted = [each.type for each in self.rng.choices(rest, k=2)]
        branches: list[Block] = []
        for _ in range(self.rng.randrange(1, 4)):
            with program.inside() as here:
                params = [here.parameter(each.type) for each in rest]
                inner = list(params)
                self.body(program, inner, 4, depth + 1)
                results = [self.pick(program, inner, each) for each in wanted]
                block, captured = here.finish(params, results)
            assert not captured
            branches.append(block)
        return program.current.bind(Switch(tuple(branches)), [index, *rest])

    def scan(self, program: Program, pool: list[Value], depth: int) -> Sequence[Value]:
        """A loop over the leading axis."""
        length = self.rng.choice((N, 3))
        carry = [self.rng.choice(pool) for _ in range(self.rng.randrange(3))]
        arrays = [each for each in pool if each.shape[:1] == (length,)][:2]
        reach = self.rng.sample(pool, min(len(pool), 2))
        with program.inside() as here:
            held = [here.parameter(each.type) for each in carry]
            passed = [here.parameter(each.type.with_shape(each.shape[1:])) for each in arrays]
            inner = [*reach, *held, *passed]
            stacked = self.body(program, inner, 5, depth + 1)
            following = [self.pick(program, inner, each.type) for each in carry]
            block, captured = here.finish([*held, *passed], [*following, *stacked])
        scan = Scan(block, len(captured), len(carry), length, self.rng.random() < 0.3)
        return program.current.bind(scan, [*captured, *carry, *arrays])

    def combined(self, program: Program, pool: list[Value], depth: int) -> Sequence[Value]:
        """Rows combined; by any function, as few rows are combined one after the other."""
        length = self.rng.choice((N, 3))
        arrays = [each for each in pool if each.shape[:1] == (length,)][:2]
        if not arrays:
            return self.scan(program, pool, depth)
        reach = self.rng.sample(pool, min(len(pool), 2))
        rows = [each.type.with_shape(each.shape[1:]) for each in arrays]
        if self.rng.random() < 0.4:
            block, held = self.combination(program, reach, rows, depth)
            scan = AssociativeScan(block, len(held), length)
            return program.current.bind(scan, [*held, *arrays])
        with program.inside() as here:
            passed = [here.parameter(each) for each in rows]
            results = self.body(program, [*reach, *passed], 5, depth + 1)
            body, captured = here.finish(passed, results)
        block, held = self.combination(program, reach, body.out_types, depth)
        start = []
        if self.rng.random() < 0.5:
            start = [self.pick(program, pool, each) for each in body.out_types]
        counts = len(captured), len(held), len(start)
        reduction = MapReduce(body, block, *counts, length)
        return program.current.bind(reduction, [*captured, *held, *start, *arrays])

    def combination(
        self, program: Program, reach: Sequence[Value], rows: Sequence[ArrayType], depth: int
    ) -> tuple[Block, tuple[Value, ...]]:
        """A function of two rows that gives another one, and what it captures."""
        with program.inside() as here:
            params = [here.parameter(each) for each in (*rows, *rows)]
            inner = [*reach, *params]
            if self.rng.random() < 0.4:
                pairs = zip(params, params[len(rows) :], strict=False)
                results = [self.sum(x, y) for x, y in pairs]
            else:
                self.body(program, inner, 5, depth + 1)
                results = [self.pick(program, inner, each) for each in rows]
            return here.finish(params, results)

    def sum(self, x: Value, y: Value) -> Value:
        """Two values combined as sums are."""
        result: Value = self.rng.choice(LOGIC if x.dtype is BOOL else BINARY[::2])(x, y)
        return result

    def loop(self, program: Program, pool: list[Value], depth: int) -> Sequence[Value]:
        """A loop that counts to a small number."""
        carry = [program.current.literal(0, I32)]
        carry += [self.rng.choice(pool) for _ in range(self.rng.randrange(3))]
        reach = self.rng.sample(pool, min(len(pool), 2))
        limit = self.rng.randrange(4)
        with program.inside() as here:
            held = [here.parameter(each.type) for each in carry]
            cond, by_cond = here.finish(held, [held[0] < limit])
        with program.inside() as here:
            held = [here.parameter(each.type) for each in carry]
            inner = [*reach, *held]
            self.body(program, inner, 4, depth + 1)
            following = [self.pick(program, inner, each.type) for each in carry[1:]]
            body, by_body = here.finish(held, [held[0] + 1, *following])
        loop = While(cond, body, len(by_cond), len(by_body))
        return program.current.bind(loop, [*by_cond, *by_body, *carry])


def _number(value: object, dtype: DType) -> bool | int | float:
    assert isinstance(value, int)
    return bool(value % 2) if dtype is BOOL else float(value) if dtype is F32 else value


def operands(function: Function, sizes: dict[str, int], seed: int) -> list[NDArray]:
    """Operands for a function, special numbers among them."""
    rng = np.random.default_rng(seed)
    found: list[NDArray] = []
    for each in function.body.in_types:
        shape = tuple(dims.evaluate(size, sizes) for size in each.shape)
        values = rng.integers(-3, 4, shape).astype(np.float64)
        if each.dtype is F32:
            special = rng.choice([np.nan, np.inf, -np.inf, -0.0], shape)
            values = np.where(rng.random(shape) < 0.2, special, values)
        found.append(
            np.asarray(values % 2 if each.dtype is BOOL else values).astype(to_numpy(each.dtype))
        )
    return found


def compiled(seed: int, size: int, target: Target = CPU) -> str:
    """The text of a random program's module, which computes what the program means."""
    function = RandomProgram(seed, size).function()
    given = operands(function, {"n": 4}, seed)
    module = lower_module(function, {"n": 4}, target=target)
    assert module.operation.verify()
    found = compile_module(module).run(given)
    for array, want in zip(found, evaluate(function, {"n": 4}, given), strict=True):
        np.testing.assert_allclose(np.asarray(array), want, rtol=1e-5)
    return module_text(module)
