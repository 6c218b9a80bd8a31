"""Random typed programs with the functions of NumPy that have derivatives, and control flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pscdsl._src.checker import check as check  # gives functions their meanings
from pscdsl._src.ir.builder import Program, Value
from pscdsl._src.language.meanings import MEANINGS
from pscdsl.typing.dtypes import F32, I32
from tests.support.random_programs import RandomProgram

UNARY = "sin cos tanh arctan square arcsinh sinc negative abs".split()
BINARY = "add subtract multiply maximum minimum hypot logaddexp arctan2".split()
REDUCTIONS = "sum mean prod max min var".split()
ALONG = "cumsum cumprod sort flip".split()
MODES = "set add multiply maximum minimum".split()


def call(program: Program, name: str, *args: Any, **kwargs: Any) -> Value:
    """A library function of values."""
    meaning: Any = MEANINGS[name]
    result: Value = meaning.apply(program.current, args, kwargs)
    return result


class SmoothProgram(RandomProgram):
    """One program from one seed, most steps of which are functions of floating-point arrays."""

    def step(self, program: Program, pool: list[Value], depth: int) -> Sequence[Value]:
        """One step."""
        if self.rng.random() < 0.4:
            return super().step(program, pool, depth)
        floats = [each for each in pool if each.dtype is F32 and each.ndim <= 3]
        if not floats:
            return self.source(program, pool, depth)
        x = self.rng.choice(floats)
        steps: list[Callable[[Program, list[Value], Value], Value]] = [self.unary, self.binary]
        if x.ndim:
            steps += [self.reduction, self.along, self.place, self.updated, self.joined]
        if x.ndim and x.shape[-1] == x.shape[-2:][0]:
            steps.append(self.product)
        return [self.rng.choice(steps)(program, pool, x)]

    def unary(self, program: Program, pool: list[Value], x: Value) -> Value:
        """A function of each element."""
        match self.rng.randrange(4):
            case 0:
                return call(program, "numpy.exp", -(x * x))
            case 1:
                return call(program, "numpy.reciprocal", 1 + x * x)
            case 2:
                return call(program, "numpy.sqrt", 1 + x * x)
            case _:
                return call(program, f"numpy.{self.rng.choice(UNARY)}", x)

    def binary(self, program: Program, pool: list[Value], x: Value) -> Value:
        """A function of two arrays."""
        y = self.pick(program, pool, x.type)
        if self.rng.random() < 0.3:
            y = self.pick(program, pool, x.type.with_shape(()))
        if self.rng.random() < 0.2:
            return call(program, "numpy.where", x < y, x * y, 2 * x)
        if self.rng.random() < 0.2:
            return call(program, "numpy.divide", x, 1 + y * y)
        return call(program, f"numpy.{self.rng.choice(BINARY)}", *self.either(x, y))

    def reduction(self, program: Program, pool: list[Value], x: Value) -> Value:
        """Over an axis or all."""
        axis = self.rng.choice((None, *range(x.ndim)))
        keep = self.rng.random() < 0.3
        name = f"numpy.{self.rng.choice(REDUCTIONS)}"
        return call(program, name, x, axis=axis, keepdims=keep)

    def along(self, program: Program, pool: list[Value], x: Value) -> Value:
        """Along an axis."""
        axis = self.rng.randrange(x.ndim)
        return call(program, f"numpy.{self.rng.choice(ALONG)}", x, axis=axis)

    def index(self, program: Program, pool: list[Value]) -> Value:
        """A place or several."""
        found = [each for each in pool if each.dtype is I32 and each.ndim < 2]
        if found and self.rng.random() < 0.7:
            return self.rng.choice(found)
        return program.current.literal(self.rng.randrange(3), I32)

    def place(self, program: Program, pool: list[Value], x: Value) -> Value:
        """What stands at a place."""
        axis = self.rng.randrange(x.ndim)
        return call(program, "numpy.take", x, self.index(program, pool), axis=axis, mode="clip")

    def updated(self, program: Program, pool: list[Value], x: Value) -> Value:
        """An array with something written."""
        y = self.pick(program, pool, x.type.with_shape(()))
        index = self.index(program, pool)
        mode = "add" if index.ndim else self.rng.choice(MODES)
        return call(program, "pscdsl.update", x, index, y, mode)

    def joined(self, program: Program, pool: list[Value], x: Value) -> Value:
        """Arrays put together."""
        y = self.pick(program, pool, x.type)
        match self.rng.randrange(3):
            case 0:
                return call(program, "numpy.concatenate", [x, y], axis=self.rng.randrange(x.ndim))
            case 1:
                return call(program, "numpy.stack", [x, y], axis=self.rng.randrange(x.ndim + 1))
            case _:
                return call(program, "numpy.pad", x, 1)

    def product(self, program: Program, pool: list[Value], x: Value) -> Value:
        """A product of matrices or vectors."""
        y = self.pick(program, pool, x.type)
        return call(program, "numpy.matmul", x, y)
