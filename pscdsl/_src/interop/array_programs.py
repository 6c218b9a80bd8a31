"""A program at given sizes as a function of arrays, with everything derived from it made once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias, TypeVar

from pscdsl._src.frontend.transformations.derivatives import require_forward
from pscdsl._src.interpreters.replay import (
    Mask,
    batch_block,
    closed,
    has_tangent,
    replay,
    transpose_block,
)
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.program import Block, Function
from pscdsl._src.transforms.linearize import LinearizedProgram, jvp_of, linearize
from pscdsl._src.transforms.simplify import simplify
from pscdsl.numpy.shorthand import cast
from pscdsl.typing.array_types import ArrayType, TupleType, paths
from pscdsl.typing.dims import evaluate
from pscdsl.typing.dtypes import C64, C128, F32, F64, I32, I64

# Programs with at most 32 bits a number, as in a jax whose 64-bit types are off.


_NARROW: Final = {F64: F32, I64: I32, C128: C64}


def narrowed(function: Function, numbers: Sequence[bool]) -> Function:
    """Return the program with the numbers of Python's among its parameters in 32 bits.

    It computes with them in 64 bits none the less.
    """

    def build(here: Builder, params: list[Value]) -> list[Value]:
        given = [
            cast(param, type_.dtype)
            for param, type_ in zip(params, function.body.in_types, strict=True)
        ]
        return list(replay(here, function.body, given))

    types = [
        type_.with_dtype(_NARROW.get(type_.dtype, type_.dtype)) if is_number else type_
        for type_, is_number in zip(function.body.in_types, numbers, strict=True)
    ]
    return as_function(function, closed(function.facts, types, build))


# Programs of derivatives as functions of arrays, to any order, with names for people.


Mode: TypeAlias = Literal["fwd", "rev"]


@dataclass(frozen=True)
class Subject:
    """A program whose derivative is checked: a function of arrays, and their names."""

    function: Function
    params: tuple[str, ...]
    results: tuple[str, ...]
    trail: tuple[Mode, ...] = ()

    @classmethod
    def of(cls, function: Function) -> Subject:
        """Return a program with the names of its arrays in the source."""
        params = [path for name, tree in function.parameters for path, _ in paths(tree, name)]
        assert function.result is not None
        results = [path for path, _ in paths(function.result, "result")]
        plain = as_function(function, function.body)
        return cls(plain, tuple(map(_quote, params)), tuple(map(_quote, results)))

    @property
    def active(self) -> tuple[bool, ...]:
        """Flags of the parameters: whether each has a tangent."""
        return tuple(map(has_tangent, self.function.body.in_types))

    @property
    def moving(self) -> tuple[bool, ...]:
        """Flags of the results: whether each has a tangent."""
        return tuple(map(has_tangent, self.function.body.out_types))

    def derived(self, mode: Mode) -> Subject:
        """Return the program of the results and their tangents, or of parameters' cotangents."""
        block = self._forward() if mode == "fwd" else self._backward()
        params = [name for name, active in zip(self.params, self.active, strict=True) if active]
        results = [name for name, moves in zip(self.results, self.moving, strict=True) if moves]
        kind = "tangent" if mode == "fwd" else "cotangent"
        given, found = (params, results) if mode == "fwd" else (results, params)
        return Subject(
            as_function(self.function, block),
            (*self.params, *[f"the {kind} of {name}" for name in given]),
            (*self.results, *[f"the {kind} of {name}" for name in found]),
            (*self.trail, mode),
        )

    def _forward(self) -> Block:
        function = self.function
        block = jvp_of(function.facts, function.body, self.active, self.moving)
        require_forward(block.equations)
        return block

    def _backward(self) -> Block:
        function, count = self.function, len(self.params)
        types = function.body.in_types
        cotangents = [
            t for t, moves in zip(function.body.out_types, self.moving, strict=True) if moves
        ]

        def build(here: Builder, params: list[Value]) -> list[Value]:
            results, linear = linearize(here, function.body, params[:count], self.active)
            return [*results, *linear.backward(here, params[count:])]

        return closed(function.facts, (*types, *cotangents), build)


def _quote(text: str) -> str:
    return f"`{text}`"


def as_function(like: Function, block: Block) -> Function:
    """Return a block as a separate program."""
    parameters = tuple([(f"a{at}", type_) for at, type_ in enumerate(block.in_types)])
    result = TupleType(block.out_types)
    return replace(like, body=block, parameters=parameters, result=result)


T = TypeVar("T")


@dataclass(frozen=True)
class Linearization:
    """A program split in two, for the derivative in some of its operands.

    values   takes the operands; returns the results, then the saved values
    tangents takes the saved values, then tangents of the active operands; linear in these
    moving   flags of the results that have a tangent
    """

    values: ArrayProgram
    tangents: ArrayProgram
    moving: Mask


@dataclass(frozen=True, eq=False)
class ArrayProgram:
    """A flat program: arrays in, arrays out, at sizes that are known; compared by identity."""

    function: Function
    sizes: Mapping[str, int]
    _made: dict[object, object] = field(default_factory=dict[object, object], repr=False)

    @property
    def inputs(self) -> tuple[ArrayType, ...]:
        """The types of its operands, with numbers for sizes."""
        return tuple(map(self._at_sizes, self.function.body.in_types))

    @property
    def outputs(self) -> tuple[ArrayType, ...]:
        """The types of its results, with numbers for sizes."""
        return tuple(map(self._at_sizes, self.function.body.out_types))

    def linearized(self, active: Mask) -> Linearization:
        """Return its derivative in the active operands; each of them has tangents."""
        return self._once(("linearized", active), lambda: self._linearize(active))

    def transposed(self, linear: Mask, given: Mask) -> ArrayProgram:
        """Return the transpose in linear operands, for cotangents of the given results.

        It takes the other operands, then these cotangents, and returns a cotangent for each linear
        operand.
        """

        def make() -> ArrayProgram:
            body = self.function.body
            block, _ = transpose_block(self.function.facts, body, linear, given, linear)
            return self._like(block)

        return self._once(("transposed", linear, given), make)

    def batched(self, batched: Mask, size: int) -> tuple[ArrayProgram, Mask]:
        """Return the program over a batch, the first axis of operands, and the batched results."""

        def make() -> tuple[ArrayProgram, Mask]:
            block, batched_results = batch_block(
                self.function.facts, self.function.body, batched, size
            )
            return self._like(block), batched_results

        return self._once(("batched", batched, size), make)

    def _linearize(self, active: Mask) -> Linearization:
        function = self.function
        count = len(function.body.results)
        made: list[LinearizedProgram] = []

        def build(here: Builder, params: list[Value]) -> list[Value]:
            results, linear = linearize(here, function.body, params, active)
            made.append(linear)
            return [*results[:count], *linear.saved]

        values = closed(function.facts, function.body.in_types, build)
        moving = tuple(map(has_tangent, function.body.out_types))
        return Linearization(self._like(values), self._like(made[0].block), moving)

    def _like(self, block: Block) -> ArrayProgram:
        return ArrayProgram(simplify(as_function(self.function, block)), self.sizes)

    def _once(self, key: object, make: Callable[[], T]) -> T:
        cached = self._made.get(key)
        if cached is None:
            cached = self._made[key] = make()
        return cached  # type: ignore[return-value] # pyright: ignore[reportReturnType]

    def _at_sizes(self, type: ArrayType) -> ArrayType:  # noqa: A002
        shape = tuple([evaluate(size, self.sizes) for size in type.shape])
        return type.with_shape(shape)
