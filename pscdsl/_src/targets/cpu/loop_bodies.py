"""How large the bodies of loops may be that become native functions: a number for each program.

A native function saves what the start of each operation costs, and loses the threads that XLA
gives to single operations: to elementwise ones from 512 kB on, to products of a matrix and a vector
from about 2 MB on (measured).  So a body whose bytes are those of matrices may be larger than one
that moves them elementwise: conjugate gradients on 256x256 floats take 0.79 of the time, on 512x512
0.9, while elementwise bodies gain nothing above `LOOP_BYTES` and lose threads soon after.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from pscdsl._src.analysis.cost import total_bytes, traffic
from pscdsl._src.ir.program import Block, Equation, Function, Var, walk
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.control import Call, Control
from pscdsl._src.xla.runtime.settings import LOOP_BYTES
from pscdsl.typing.dims import Size, evaluate, substitute

LARGEST = 7 << 18
"""The most that was measured to gain by matrices."""


@dataclass(frozen=True, slots=True)
class Loop:
    """The bytes that one step moves."""

    matrices: int
    """By products of a matrix and a vector."""
    others: int
    """By all else, as if nothing was fused."""
    written: int
    """What it moves at least, however much is fused: the products, and what it makes."""

    @property
    def bound(self) -> int:
        """A bound that it stays below: XLA also counts what the loop itself needs."""
        return (self.matrices + self.others) * 9 // 8 + (1 << 12)

    @property
    def gains(self) -> bool:
        """Whether it is faster as a native function, although it is not small."""
        return LOOP_BYTES < self.bound <= LARGEST and self.others <= LOOP_BYTES


def loop_bytes(program: Function, sizes: Mapping[str, int]) -> int:
    """The bound for a program at these sizes: all loops below gain, or are small.

    A loop that moves more elementwise than is small stays above it.
    """
    loops = list(loops_of(program, sizes))
    least = min((loop.written for loop in loops if loop.others > LOOP_BYTES), default=LARGEST)
    return max([LOOP_BYTES, *(loop.bound for loop in loops if loop.gains and loop.bound <= least)])


def loops_of(program: Function, sizes: Mapping[str, int]) -> Iterator[Loop]:
    """The loops of a program and of those that it calls."""
    for matrices, others, made in _steps(program):
        matrix_bytes = evaluate(matrices, sizes)
        yield Loop(matrix_bytes, evaluate(others, sizes), matrix_bytes + evaluate(made, sizes))


@lru_cache(maxsize=256)
def _steps(function: Function) -> tuple[tuple[Size, Size, Size], ...]:
    """The bytes that a step of each loop moves by matrices, moves otherwise, and makes."""
    found: dict[tuple[Size, Size, Size], None] = {}
    for equation in walk(function.body):
        primitive = equation.primitive
        if isinstance(primitive, Call):
            env = dict(primitive.sizes)
            for one, two, three in _steps(primitive.function):
                found[substitute(one, env), substitute(two, env), substitute(three, env)] = None
        elif isinstance(primitive, Control):
            for body in [region.block for region in primitive.layout.regions if region.is_body]:
                results = {atom for atom in body.results if isinstance(atom, Var)}
                made = total_bytes([atom.type for atom in results.difference(body.params)])
                found[*_moved(body), made] = None
    return tuple(found)


def _moved(block: Block) -> tuple[Size, Size]:
    """The bytes that one run of a block moves by matrices, and by all else; loops with one step."""
    matrices: Size = 0
    others: Size = 0
    for equation in block.equations:
        primitive = equation.primitive
        inner: list[tuple[Size, Size]] = []
        if isinstance(primitive, Call):
            env = dict(primitive.sizes)
            one, two = _moved(primitive.function.body)
            inner = [(substitute(one, env), substitute(two, env))]
        elif isinstance(primitive, Control):
            inner = [_moved(each) for each in primitive.blocks()]
        elif _is_of_matrix(equation):
            inner = [(traffic(equation), 0)]
        else:
            inner = [(0, traffic(equation))]
        for one, two in inner:
            matrices, others = matrices + one, others + two
    return matrices, others


def _is_of_matrix(equation: Equation) -> bool:
    """Whether it is a product of a matrix and a vector, or of two vectors."""
    ranks = [atom.type.rank for atom in equation.inputs]
    product = equation.primitive
    return isinstance(product, DotGeneral) and bool(product.contract[0]) and sum(ranks) <= 3
