"""The typed program, a first-order functional IR in A-normal form, and its NumPy meaning.

    Function   a named program, polymorphic in sizes: dims, facts about them, a body
    Block      params -> equations -> results; closed: mentions only what it defines itself
    Equation   outputs = primitive inputs
    Atom       Var | Literal

Control flow and calls are primitives that hold blocks and functions.  Everything is immutable
once built; variables are compared by identity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, TypeVar, cast

import numpy as np

from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.primitive import NDArray, Primitive
from pscdsl._src.support.notebooks import html_method
from pscdsl.typing import dims, dtypes
from pscdsl.typing.array_types import ArrayType, Shape
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.element_types import ScalarDoesNotFit
from pscdsl.typing.diagnostics import NOWHERE, Failure, Span
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import ALL, KEY, DType, Kind, accepts_weak

if TYPE_CHECKING:
    from pscdsl.typing.array_types import Type


Scalar: TypeAlias = bool | int | float | complex


class Var:
    """A typed variable, defined once: by a block's parameters or by one equation."""

    __slots__ = ("hint", "origin", "type")

    def __init__(self, type: ArrayType, hint: str = "", origin: Span = NOWHERE) -> None:  # noqa: A002
        self.type: Final = type
        self.hint: Final = hint
        """The user's name for it, if there is one; for display only."""
        self.origin: Final = origin
        """The declaration of its type, if it is a parameter."""

    def __repr__(self) -> str:
        return f"{self.hint or 'v'}:{self.type}"


_SCALARS: Final = {dtype: ArrayType(dtype) for dtype in (*ALL, KEY)}


class Literal:
    """A scalar known while building."""

    __slots__ = ("type", "value")

    def __init__(self, value: Scalar, dtype: DType) -> None:
        self.value: Final = value
        self.type: Final = _SCALARS[dtype]

    def __repr__(self) -> str:
        return f"{self.value!r}:{self.type}"


Atom: TypeAlias = Var | Literal


class Equation:
    """One step: `outputs = primitive inputs`."""

    __slots__ = ("inputs", "outputs", "primitive", "span")

    def __init__(
        self,
        primitive: Primitive,
        inputs: tuple[Atom, ...],
        outputs: tuple[Var, ...],
        span: Span = NOWHERE,
    ) -> None:
        self.primitive: Final = primitive
        self.inputs: Final = inputs
        self.outputs: Final = outputs
        self.span: Final = span

    def with_primitive(self, primitive: Primitive) -> Equation:
        """Return the equation with another primitive; itself if it is the same."""
        if primitive is self.primitive:
            return self
        return Equation(primitive, self.inputs, self.outputs, self.span)


@dataclass(frozen=True, eq=False, slots=True)
class Block:
    """A closed piece of program."""

    params: tuple[Var, ...]
    equations: tuple[Equation, ...]
    results: tuple[Atom, ...]

    @property
    def in_types(self) -> tuple[ArrayType, ...]:
        """The types of the parameters."""
        return tuple(var.type for var in self.params)

    @property
    def out_types(self) -> tuple[ArrayType, ...]:
        """The types of the results."""
        return tuple(atom.type for atom in self.results)


@dataclass(frozen=True, eq=False, slots=True)
class Origin:
    """The source form of some consecutive equations, which are a derivative or a batch of it.

    A derivative computes again, and a batch computes values that it then drops: only the source
    tells how often each random key is used, and warnings are about the source. The block is None if
    everything was computed before.
    """

    count: int
    """The number of equations."""
    block: Block | None
    inputs: tuple[Atom, ...] = ()
    outputs: tuple[Atom, ...] = ()
    active: tuple[bool, ...] = ()
    """For each input, whether reverse mode differentiates in it; empty if nothing does."""
    moving_results: int = 0
    """The number of the first results that are differentiated."""


@dataclass(frozen=True, eq=False, slots=True)
class Function:
    """A named program; `dims` are its size parameters, `facts` the caller's obligations."""

    name: str
    dims: tuple[str, ...]
    facts: Assumptions
    body: Block
    parameters: tuple[tuple[str, Type], ...] = ()
    """Name and tree type of each parameter; their leaves, in order, are the body's params."""
    result: Type | None = None
    """The tree type of the result; its leaves, in order, are the body's results."""
    span: Span = field(default=NOWHERE)
    origins: Mapping[Equation, Origin] = field(default_factory=dict[Equation, Origin])
    """The derivatives and batches in the body, by the first equation of each."""
    shown: ClassVar[Callable[[Function], str]]
    """Its text; the room `analysis`, which knows the primitives, sets it."""
    mesh: tuple[str, ...] = ()
    """The sizes that are numbers of devices, along the axes of a mesh with these names."""
    fast_math: bool = False
    """Whether XLA may compute it by the laws of real numbers; it also decides this for its
    callees."""

    def __repr__(self) -> str:
        return str(self)  # for prompts and notebooks

    def __str__(self) -> str:
        return Function.shown(self)

    _repr_html_ = html_method("programs")


def walk(block: Block) -> Iterator[Equation]:
    """Yield every equation of a block and of the blocks nested in it, outermost first."""
    for equation in block.equations:
        yield equation
        for inner in equation.primitive.blocks():
            yield from walk(inner)


# The blocks and functions that a primitive holds, whichever primitive it is.


P = TypeVar("P", bound=Primitive)


def callees(block: Block) -> Iterator[Function]:
    """Yield the functions that a block and the blocks in it mention."""
    for equation in walk(block):
        if not is_plain(equation.primitive):
            yield from functions_in(equation.primitive)


def walk_called(block: Block) -> Iterator[Equation]:
    """Yield every equation of a block and of the functions that it calls, each function once."""
    due, met = [block], set[Function]()
    while due:
        current = due.pop()
        yield from walk(current)
        called = [each for each in dict.fromkeys(callees(current)) if each not in met]
        met.update(called)
        due += [function.body for function in called]


def effects_in(block: Block) -> Iterator[Primitive]:
    """Yield the primitives with effects in a block and in all that it calls."""
    if Primitive.effects_exist:
        for equation in walk_called(block):
            if equation.primitive.has_effect:
                yield equation.primitive


def has_effects(block: Block) -> bool:
    """Return whether a block, or anything that it calls, has effects."""
    return next(effects_in(block), None) is not None


def acts(equation: Equation) -> bool:
    """Return whether an equation has an effect, or runs something that has."""
    primitive = equation.primitive
    if primitive.has_effect or is_plain(primitive) or not Primitive.effects_exist:
        return primitive.has_effect
    return has_effects(Block(equation.outputs, (equation,), ()))


def mapped(
    function: Function, change: Callable[[Function, Mapping[Function, Function]], Function]
) -> Function:
    """Change a function and all that it calls, each once, callees first.

    `change` gets a function and the results for its callees.
    """
    memo: dict[Function, Function] = {}
    due = [function]
    while due:
        current = due[-1]
        missing = [] if current in memo else [f for f in callees(current.body) if f not in memo]
        if missing:
            due.extend(missing)
            continue
        due.pop()
        if current not in memo:
            done = change(current, memo)
            memo[current] = memo[done] = done
    return memo[function]


def functions_in(primitive: Primitive) -> Iterator[Function]:
    """Yield the functions among the fields of a primitive."""
    return (part for part in _parts(primitive) if isinstance(part, Function))


def is_plain(primitive: Primitive) -> bool:
    """Return whether primitives of this class never hold programs: a fast test of most."""
    return type(primitive).blocks is Primitive.blocks


def holds_programs(primitive: Primitive) -> bool:
    """Return whether blocks or functions are among the fields of a primitive."""
    return any(isinstance(part, Block | Function) for part in _parts(primitive))


def rebuilt(
    primitive: P, block: Callable[[Block], Block], function: Callable[[Function], Function]
) -> P:
    """Return the primitive with other blocks and functions; itself if nothing changes."""
    if is_plain(primitive) or not is_dataclass(primitive):
        return primitive

    def change(value: object) -> object:
        if isinstance(value, Block):
            return block(value)
        if isinstance(value, Function):
            return function(value)
        if isinstance(value, tuple):
            items = cast("tuple[object, ...]", value)
            new = tuple([change(item) for item in items])
            return new if any(a is not b for a, b in zip(new, items, strict=True)) else items
        return value

    changed: dict[str, Any] = {}
    for each in fields(primitive):
        old: object = getattr(primitive, each.name)
        new = change(old)
        if new is not old:
            changed[each.name] = new
    return cast("P", replace(primitive, **changed)) if changed else primitive


def _parts(primitive: Primitive) -> Iterator[object]:
    if is_plain(primitive) or not is_dataclass(primitive):
        return
    for each in fields(primitive):
        value: object = getattr(primitive, each.name)
        if isinstance(value, tuple):
            yield from _items(cast("tuple[object, ...]", value))
        else:
            yield value


def _items(values: tuple[object, ...]) -> Iterator[object]:
    for value in values:
        if isinstance(value, tuple):
            yield from _items(cast("tuple[object, ...]", value))
        else:
            yield value


# Python's numbers as scalars of a dtype.


def kind_of(scalar: Scalar) -> Kind:
    """Return the kind of a Python scalar."""
    if isinstance(scalar, bool):
        return Kind.BOOL
    if isinstance(scalar, int):
        return Kind.INT
    return Kind.FLOAT if isinstance(scalar, float) else Kind.COMPLEX


_LARGEST = {
    dtypes.F16: 65519.9,
    dtypes.BF16: 3.3961e38,
    dtypes.F32: 3.4028235677e38,
    dtypes.C64: 3.4028235677e38,
}
"""The largest numbers that are not rounded to infinity."""


def fit(value: Scalar, dtype: DType) -> Scalar:
    """Return a Python scalar as one of a dtype; raise a Failure if that cannot hold it."""
    if not isinstance(value, Scalar):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Failure(ScalarDoesNotFit(scalar=f"a {type(value).__name__}", dtype=dtype))
    if not accepts_weak(dtype, kind_of(value)):
        raise Failure(ScalarDoesNotFit(scalar=repr(value), dtype=dtype))
    if dtype.kind is Kind.BOOL:
        return bool(value)
    if dtype.kind is Kind.FLOAT:
        return _bounded(_real(value, dtype), value, dtype)
    if dtype.kind is Kind.COMPLEX:
        whole = value if isinstance(value, complex) else _real(value, dtype)
        real, imag = (_bounded(part, value, dtype) for part in (whole.real, whole.imag))
        return complex(real, imag)
    low, high = dtype.range
    if not low <= int(value) <= high:  # type: ignore[arg-type]
        raise Failure(ScalarDoesNotFit(scalar=repr(value), dtype=dtype))
    return int(value)  # type: ignore[arg-type]


def _bounded(part: float, value: Scalar, dtype: DType) -> float:
    if abs(part) > _LARGEST.get(dtype, inf) and part not in (inf, -inf):
        raise Failure(ScalarDoesNotFit(scalar=repr(value), dtype=dtype))
    return part


def _real(value: Scalar, dtype: DType) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:
        raise Failure(ScalarDoesNotFit(scalar="an integer this large", dtype=dtype)) from None


# The NumPy meaning of the typed program: the reference that every other execution must match.


def evaluate(
    function: Function, sizes: Mapping[str, int], operands: Sequence[NDArray]
) -> tuple[NDArray, ...]:
    """Return the results of a function at given sizes, without checking the operands' types."""
    return Evaluator(sizes).block(function.body, operands)


def evaluate_block(
    block: Block, sizes: Mapping[str, int], operands: Sequence[NDArray]
) -> tuple[NDArray, ...]:
    """Return the results of a block at given sizes."""
    return Evaluator(sizes).block(block, operands)


class Evaluator:
    """Runs blocks at given sizes; NumPy meanings get it as `here`."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = sizes
        self._literals: dict[Literal, NDArray] = {}

    def size(self, size: Size) -> int:
        """Return the number of a size."""
        return size if isinstance(size, int) else dims.evaluate(size, self.sizes)

    def shape(self, shape: Shape) -> tuple[int, ...]:
        """Return the numbers of a shape."""
        return tuple([self.size(size) for size in shape])

    def block(self, block: Block, operands: Sequence[NDArray]) -> tuple[NDArray, ...]:
        """Return the results of a block."""
        values: dict[Atom, NDArray] = dict(zip(block.params, operands, strict=True))
        for equation in block.equations:
            inputs = [self._value(atom, values) for atom in equation.inputs]
            results = self.results(equation, inputs)
            values.update(zip(equation.outputs, results, strict=True))
        return tuple([self._value(atom, values) for atom in block.results])

    def results(self, equation: Equation, inputs: Sequence[NDArray]) -> Sequence[NDArray]:
        """Return the results of an equation."""
        return equation.primitive.evaluate(self, *inputs)

    def call(
        self, function: Function, sizes: Mapping[str, Size], operands: Sequence[NDArray]
    ) -> tuple[NDArray, ...]:
        """Return the results of another function, its sizes given in terms of the sizes here."""
        inner = {name: self.size(size) for name, size in sizes.items()}
        return self.at(inner).block(function.body, operands)

    def at(self, sizes: Mapping[str, int]) -> Evaluator:
        """Return the evaluator of a function that is called at these sizes."""
        return Evaluator(sizes)

    def _value(self, atom: Atom, values: Mapping[Atom, NDArray]) -> NDArray:
        if not isinstance(atom, Literal):
            return values[atom]
        cached = self._literals.get(atom)
        if cached is None:
            cached = self._literals[atom] = literal_array(atom)
        return cached


def literal_array(literal: Literal) -> NDArray:
    """Return a literal as an array of rank 0."""
    with np.errstate(over="ignore"):
        return np.asarray(literal.value).astype(to_numpy(literal.type.dtype))
