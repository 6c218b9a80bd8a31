"""Effects: equations without results, which do something on the host with their operands.

A program keeps its effects, in the order of its source, and passes that look for what the results
need leave it as it is. Only effects that someone listens to are compiled: `without_effects` takes
out the others before, so that they cost nothing.
"""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np

from pscdsl._src.interpreters.replay import repeated
from pscdsl._src.ir.builder import Value
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl._src.ir.program import Block, Function, effects_in, mapped, rebuilt
from pscdsl._src.support.effects import Kind
from pscdsl._src.support.progress import BARS
from pscdsl._src.support.tracebacks import UsersError
from pscdsl.typing.array_types import (
    ArrayType,
    ContainerType,
    ListType,
    MapType,
    NoneType,
    RecordType,
    Type,
    built,
)
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.diagnostics import NOWHERE, Span
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import I64, DType

# Effects in general.


@dataclass(frozen=True)
class Effect(Primitive):
    """Something that the host does with the operands; there are no results."""

    kind: ClassVar[Kind]
    has_effect = True

    batches: int = 0
    """The number of leading axes of all operands over which it is done once for each index."""

    def __post_init__(self) -> None:
        Primitive.effects_exist = True

    def run(self, *operands: NDArray) -> None:
        """Do it, on the host."""
        raise NotImplementedError

    def run_batch(self, *operands: NDArray) -> None:
        """Do it for each index of the batches, in their order."""
        lanes = operands[0].shape[: self.batches] if operands else ()
        for lane in np.ndindex(lanes):
            self.run(*[operand[lane] for operand in operands])

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        return ()

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        self.run_batch(*operands)
        return ()

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        hlo.host_call(self, operands)
        return ()

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        self.bind(*primals)
        return (), ()

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        full = [x if flag else repeated(x, size) for x, flag in zip(operands, batched, strict=True)]
        replace(self, batches=self.batches + 1).bind(*full)
        return (), ()

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return 0


def effects_of(function: Function) -> tuple[Effect, ...]:
    """Return the effects of a function and of all that it calls, each once."""
    return tuple([e for e in dict.fromkeys(effects_in(function.body)) if isinstance(e, Effect)])


def without_effects(function: Function, kept: Collection[Kind] = ()) -> Function:
    """Return a function without its effects, except those of some kinds."""
    if all(effect.kind in kept for effect in effects_of(function)):
        return function
    blocks: dict[Block, Block] = {}

    def changed(current: Function, functions: Mapping[Function, Function]) -> Function:
        def of_block(block: Block) -> Block:
            if block not in blocks:
                equations = [
                    each.with_primitive(rebuilt(each.primitive, of_block, functions.__getitem__))
                    for each in block.equations
                    if not isinstance(each.primitive, Effect) or each.primitive.kind in kept
                ]
                blocks[block] = Block(block.params, tuple(equations), block.results)
            return blocks[block]

        return replace(current, body=of_block(current.body))

    return mapped(function, changed)


def pure_block(block: Block) -> Block:
    """Return a block without the effects in it and in what it calls."""
    return without_effects(Function("block", (), Assumptions(), block)).body


# The effects that a kernel asks for: `psc.debug.print`, `psc.debug.value`, `psc.check`.


@dataclass(frozen=True)
class Named:
    """A field of a text: a tree of operands, or a value that is known while checking."""

    name: str
    type: Type

    def value(self, leaves: Iterator[NDArray]) -> Any:
        """Return the tree as Python would have it."""
        arrays = (array if array.ndim else array[()] for array in leaves)
        return built(self.type, arrays, _shown)


@dataclass
class _Record:
    """A record among the fields of a text."""

    name: str
    fields: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        try:
            return self.fields[name]
        except KeyError:
            raise AttributeError(name) from None

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{key}={x!r}' for key, x in self.fields.items())})"


def _shown(tree: ContainerType, parts: list[Any]) -> Any:
    """Return a container with the text of Python's own."""
    match tree:
        case RecordType():
            fields = {name: part for (name, _), part in zip(tree.fields, parts, strict=True)}
            return _Record(str(tree.record).rpartition(".")[2], fields)
        case MapType():
            return {key: part for (key, _), part in zip(tree.items, parts, strict=True)}
        case ListType():
            return parts
        case _:
            return tuple(parts)


@dataclass(frozen=True)
class TextEffect(Effect):
    """An effect with a text whose fields are operands: a format string as `str.format` takes it."""

    text: str = ""
    fields: tuple[Named, ...] = ()

    def filled(self, leaves: Iterator[NDArray]) -> str:
        """Return the text with the fields in their places."""
        named = {each.name: each.value(leaves) for each in self.fields}
        places = [named.pop(name) for name in [*named] if name.isdecimal()]
        return self.text.format(*places, **named)


@dataclass(frozen=True)
class Print(TextEffect, name="print"):
    """A line on standard output."""

    kind = "print"

    def run(self, *operands: NDArray) -> None:
        print(self.filled(iter(operands)), flush=True)


Recorder: TypeAlias = Callable[[str, Type, Sequence[NDArray]], None]
RECORDED: Final[ContextVar[Recorder]] = ContextVar("recorded")
"""The function that takes recorded values."""


@dataclass(frozen=True)
class ValueRecord(Effect, name="record"):
    """A value that `kernel.inspect` returns under a name."""

    kind = "value"

    named: Named = Named("", NoneType())

    def run(self, *operands: NDArray) -> None:
        take = RECORDED.get(None)
        if take is not None:
            take(self.named.name, self.named.type, [operand.copy() for operand in operands])


class CheckFailed(UsersError, AssertionError):
    """A condition of `psc.check` is false, or a check that was switched on failed.

    Examples:
        >>> try:
        ...     psc.check(np.array(-1.0) >= 0, "negative")
        ... except psc.CheckFailed as error:
        ...     print(error)
        negative
    """

    __module__ = "pscdsl"


_UPDATES: Final = 100
"""About how often a bar is drawn anew."""


@dataclass(frozen=True)
class Check(TextEffect, name="check"):
    """A condition, the first operand, that is to hold; the text says what is wrong otherwise."""

    kind = "check"

    span: Span = field(default=NOWHERE, repr=False)

    def run(self, *operands: NDArray) -> None:
        condition, *leaves = operands
        if not condition.all():
            raise CheckFailed(f"{self.filled(iter(leaves))}\n{shown_at(self.span)}")

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        hlo.host_call(self, operands, unless=operands[:1])
        return ()


@dataclass(frozen=True)
class ProgressEffect(Effect, name="progress"):
    """A bar for a loop; operands: the number of the step, from 0 on, and how many there are.

    The host is called about a hundred times, however many steps there are.
    """

    kind = "progress"

    title: str = ""

    def run(self, *operands: NDArray) -> None:
        step, steps = map(int, operands)
        BARS.update(self.title, step + 1, steps)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        number = inputs[0].with_dtype(I64)
        step, steps = [hlo.convert(x, number) for x in operands]
        one = hlo.full(1, number)
        every = hlo.binary("divide", steps, hlo.full(_UPDATES, number))
        every = hlo.binary("maximum", every, one)
        due = hlo.compare("EQ", hlo.binary("remainder", step, every), hlo.full(0, number))
        last = hlo.compare("EQ", step, hlo.binary("subtract", steps, one))
        waits = hlo.unary("not", hlo.binary("or", due, last))
        hlo.host_call(self, (step, steps), unless=(waits,))
        return ()


@dataclass(frozen=True)
class Searched(Effect):
    """Base of the checks of all results of a program, which are the last operands.

    The operands are the numbers of its sizes, then the arguments, then the results.  `find` is
    given the first two, and says where the value comes from; it is empty if that is not found.
    """

    find: Callable[[Sequence[NDArray]], str] = field(default=lambda given: "", repr=False)
    results: int = 0
    function: str = ""

    what: ClassVar[str]

    def is_bad(self, x: NDArray) -> bool:
        """Return whether an array has such a value."""
        raise NotImplementedError

    def emit_bad(self, hlo: Hlo, x: H, dtype: DType) -> H:
        """Emit whether the elements of a real array are such values."""
        raise NotImplementedError

    def run(self, *operands: NDArray) -> None:
        found = self.find(operands[: len(operands) - self.results])
        raise CheckFailed(
            f"{self.what} in the result of `{self.function}`{found and chr(10)}{found}"
        )

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        fine: list[H] = []
        first = len(operands) - self.results
        for x, type_ in zip(operands[first:], inputs[first:], strict=True):
            if not type_.dtype.is_inexact:
                continue
            parts = [x]
            real = type_.with_dtype(type_.dtype.real)
            if type_.dtype.is_complex:
                parts = [hlo.op(part, (x,), (real,))[0] for part in ("real", "imag")]
            fine += [hlo.unary("not", self.emit_bad(hlo, part, real.dtype)) for part in parts]
        if fine:
            hlo.host_call(self, operands, unless=fine)
        return ()


@dataclass(frozen=True)
class NoNan(Searched, name="no_nan"):
    """No result is NaN."""

    kind = "nan"
    what = "NaN"

    def is_bad(self, x: NDArray) -> bool:
        return bool(np.isnan(x).any())

    def emit_bad(self, hlo: Hlo, x: H, dtype: DType) -> H:
        return hlo.compare("NE", x, x)


@dataclass(frozen=True)
class NoInfinity(Searched, name="no_infinity"):
    """No result is infinite."""

    kind = "inf"
    what = "an infinity"

    def is_bad(self, x: NDArray) -> bool:
        return bool(np.isinf(x).any())

    def emit_bad(self, hlo: Hlo, x: H, dtype: DType) -> H:
        shape = hlo.type_of(x).shape
        return hlo.compare(
            "EQ", hlo.unary("abs", x), hlo.full(math.inf, ArrayType(dtype, tuple(shape)))
        )


@dataclass(frozen=True)
class InRange(Effect, name="in_range"):
    """The places of an array that an equation reads or writes exist.

    Operands: the array; an array of the shape that is read or written, of which nothing else
    matters; index tuples along some axes, or, without `axes`, a first place for each axis.
    """

    kind = "index"

    axes: tuple[int, ...] = ()
    span: Span = field(default=NOWHERE, repr=False)

    def run(self, *operands: NDArray) -> None:
        places, highest = operands
        columns = places.reshape(-1, len(highest)).T
        for axis, (column, last) in enumerate(zip(columns, highest, strict=True)):
            wrong = column[(column < 0) | (column > last)]
            if len(wrong):
                along = self.axes[axis] if self.axes else axis
                raise CheckFailed(
                    f"index {wrong[0]} along axis {along} is not from 0 to {last}\n"
                    f"{shown_at(self.span)}"
                )

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        _, _, *places = operands
        whole, part, *given = inputs
        shape = hlo.shape(whole.shape)
        if self.axes:
            last = [shape[axis] - 1 for axis in self.axes]
            wide = given[0].with_dtype(I64)
            tuples = hlo.convert(places[0], wide)
        else:
            last = [n - m for n, m in zip(shape, hlo.shape(part.shape), strict=True)]
            one, wide = ArrayType(I64, (1,)), ArrayType(I64, (len(places),))
            columns = [hlo.reshape(hlo.convert(x, ArrayType(I64)), one) for x in places]
            dimension = {"dimension": hlo.parse_attribute("0 : i64")}
            (tuples,) = hlo.op("concatenate", columns, (wide,), dimension)
        vector = ArrayType(I64, (len(last),))
        highest = hlo.constant(np.array(last, np.int64), vector)
        limits = hlo.broadcast(highest, wide, (wide.rank - 1,))
        positive = hlo.compare("GE", tuples, hlo.full(0, wide))
        holds = hlo.binary("and", positive, hlo.compare("LE", tuples, limits))
        hlo.host_call(self, (tuples, highest), unless=(holds,))
        return ()


def shown_at(span: Span) -> str:
    """Return a place in the source as a line of a traceback: the file, the line, and its text."""
    line = linecache.getline(span.path, span.line).strip()
    return f"  {span.path}:{span.line}" + (f": {line}" if line else "")
