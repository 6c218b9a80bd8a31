"""The typed program: a first-order functional IR in A-normal form.

    Function   a named program, polymorphic in sizes: dims, facts about them, a body
    Block      params -> equations -> results; closed: mentions only what it defines itself
    Equation   outputs = primitive inputs
    Atom       Var | Literal

Control flow and calls are primitives that hold blocks and functions.  Everything is immutable
once built; variables are compared by identity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.diagnostics import NOWHERE, Span
from pscdsl.typing.dtypes import ALL, KEY, DType

if TYPE_CHECKING:
    from pscdsl._src.ir.primitive import Primitive
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
        """Where its type is declared, if it is a parameter."""

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
    """What some equations in a row are a derivative or a batch of, as the source has it.

    A derivative computes again, a batch computes what it then drops: which random key is used how
    often is said by the source alone, and warnings are about it alone.  None as the block: it was
    all computed before.
    """

    count: int
    """How many equations there are."""
    block: Block | None
    inputs: tuple[Atom, ...] = ()
    outputs: tuple[Atom, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Function:
    """A named program; `dims` are its size parameters, `facts` what a caller must establish."""

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
    fast_math: bool = False
    """Whether XLA may compute it by the laws of real numbers; of those that it calls it decides."""

    def __repr__(self) -> str:
        return str(self)  # what prompts and notebooks show

    def __str__(self) -> str:
        from pscdsl._src.analysis.show import show

        return show(self)


def walk(block: Block) -> Iterator[Equation]:
    """Every equation of a block and of the blocks nested in it, outermost first."""
    for equation in block.equations:
        yield equation
        for inner in equation.primitive.blocks():
            yield from walk(inner)
