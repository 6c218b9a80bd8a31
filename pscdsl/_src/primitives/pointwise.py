"""Families of primitives with the same rules: linear ones, constant ones, pointwise ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar, overload

import numpy as np

from pscdsl._src.interpreters.replay import zeros
from pscdsl._src.ir.axis_rules import AxisRule
from pscdsl._src.ir.broadcasting import broadcast_to
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl.typing.array_types import ArrayType, Shape, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.derivatives import NotLinear
from pscdsl.typing.codes.element_types import DtypeNotAccepted
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import ALL, BOOL, KEY, DType, Kind

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Operators, Value

R = TypeVar("R")


# Primitives whose derivative needs no formula: linear ones, bilinear ones, constant ones.


class WithoutTangents(Primitive):
    """A primitive without smooth results: places, or values that count as constant."""

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        return (None,) * len(outputs)


class Linear(Primitive):
    """A primitive that is its own derivative: applied to tangents, other operands unchanged."""

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        moved: list[Value] = []
        for primal, tangent in zip(primals, tangents, strict=True):
            if tangent is not None:
                moved.append(tangent)
            elif primal.dtype.is_inexact:
                moved.append(zeros(primal.builder, primal.type))
            else:
                moved.append(primal)
        return self.bind(*moved)


class Bilinear(Primitive):
    """A primitive that is linear in each of its two operands: a product of some kind."""

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        (x, y), (dx, dy) = primals, tangents
        first = None if dx is None else self(dx, y)
        second = None if dy is None else self(x, dy)
        if first is None or second is None:
            return (second if first is None else first,)
        return (first + second,)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,), (x, y) = cotangents, operands
        assert cotangent is not None
        if isinstance(y, ArrayType) and not isinstance(x, ArrayType):
            return None, self.cotangent(cotangent, y, x, 1)
        if isinstance(x, ArrayType) and not isinstance(y, ArrayType):
            return self.cotangent(cotangent, x, y, 0), None
        raise Failure(NotLinear(primitive=self.label))

    def cotangent(self, cotangent: Value, operand: ArrayType, other: Value, place: int) -> Value:
        """Return the cotangent of the operand at a place, the other operand known."""
        raise NotImplementedError


# Pointwise primitives: the same function of every element, and the rules that follow from that.
#
# Operands have one shape; those of rank 0 apply everywhere.


Emit: TypeAlias = Callable[[Hlo, Sequence[H], Types, Types], H]
Rule: TypeAlias = Callable[..., Any]
"""The tangent of the result from that of one operand: a function of the tangent, the result and the
operands, linear in the tangent. It returns None for zero."""
CHEAP_FLOPS = 2
"""The most operations of a function that the backward pass computes again."""
UnaryRule: TypeAlias = "Callable[[Value, Value, Value], Any]"
BinaryRule: TypeAlias = "Callable[[Value, Value, Value, Value], Any]"

ACCEPTS: dict[str, Callable[[DType], bool]] = {
    "numeric": lambda d: d.is_number,
    "real": lambda d: d.is_integer or d.is_float,
    "inexact": lambda d: d.is_inexact,
    "floating": lambda d: d.is_float,
    "integer": lambda d: d.is_integer,
    "complex": lambda d: d.is_complex,
    "integer or bool": lambda d: d.is_integer or d is BOOL,
    "bool, integer or float": lambda d: d is BOOL or d.is_integer or d.is_float,
    "any": lambda d: d.kind is not Kind.KEY,
}
"""The predicates of dtypes that tables of primitives name."""
_ACCEPTED = {name: frozenset(filter(accepts, (*ALL, KEY))) for name, accepts in ACCEPTS.items()}


def joint_shape(primitive: Primitive, facts: Assumptions, operands: Sequence[ArrayType]) -> Shape:
    """Return the common shape of operands, ignoring those of rank 0."""
    shape: Shape = ()
    for operand in operands:
        if operand.shape and operand.shape != shape:
            if not shape:
                shape = operand.shape
            elif len(shape) != operand.rank or not all(map(facts.equal, shape, operand.shape)):
                primitive.ill_typed(f"operands are {', '.join(map(str, operands))}")
    return shape


def spread(value: Value, shape: Shape) -> Value:
    """Return a value in the joint shape of its equation; one of rank 0 is repeated."""
    if value.shape == shape:
        return value
    return broadcast_to(value, shape)


def gathered(cotangent: Value, operand: ArrayType) -> Value:
    """Return the transpose of `spread`: summed where the operand has rank 0."""
    if operand.shape or not cotangent.shape:
        return spread(cotangent, operand.shape)
    return cotangent.builder.total(cotangent, tuple(range(cotangent.ndim)))


class Pointwise(Primitive):
    """A primitive that applies one function to every element, with one result."""

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        shapes = [v.shape[many:] for v, many in zip(operands, batched, strict=True)]
        joint = max(shapes, key=len)
        whole = [
            _spread_over_batch(value, many, (size, *joint))
            for value, many in zip(operands, batched, strict=True)
        ]
        return self.bind(*whole), (True,)

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        rank = outputs[0].rank
        return AxisRule.leading(rank, [t.rank for t in inputs], (rank,), self.linear_in(outputs[0]))

    def linear_in(self, output: ArrayType) -> Sequence[Sequence[int]]:
        """Return the sets of operands in which it is linear together, the others constant."""
        return ()


def _spread_over_batch(value: Value, batched: bool, whole: Shape) -> Value:
    """Return an operand in the whole shape; an unbatched number applies everywhere."""
    if value.ndim == (len(whole) if batched else 0) and (batched or value.dtype is not KEY):
        return value
    first = 0 if batched else 1
    return value.builder.spread(value, whole, tuple(range(first, first + value.ndim)))


@dataclass(frozen=True)
class KnownOperands:
    """The operands of a function while it is transposed in one of them: the others are known."""

    name: str
    operands: Sequence[Value | ArrayType]
    place: int

    def __getitem__(self, place: int) -> Any:
        operand = self.operands[place]
        if place != self.place and isinstance(operand, ArrayType):
            raise Failure(NotLinear(primitive=self.name))
        return operand


@dataclass(frozen=True)
class LinearIn:
    """The derivative in an operand in which the function is linear.

    `push` gives the result's tangent from the operand's, `pull` the operand's cotangent from the
    result's. Both also take all operands, of which they use only the others. They are equal for a
    product with a number.
    """

    push: Callable[[Value, Any], Any]
    pull: Callable[[Value, Any], Any] | None = None

    def __call__(self, tangent: Value, output: Value, *operands: Value) -> Any:
        """Return the result's tangent."""
        return self.push(tangent, operands)

    def transpose(self, cotangent: Value, operands: KnownOperands) -> Any:
        """Return the operand's cotangent; the operand itself is given by its type."""
        return (self.pull or self.push)(cotangent, operands)


@dataclass(frozen=True, eq=False)
class Elementwise(Pointwise):
    """A function of elements of one dtype; compared by identity, each is made once."""

    name: str = field()  # type: ignore[misc]
    arity: int
    accepts: str
    meaning: Callable[..., Any]
    emit: Emit
    result: Callable[[DType], DType] = field(default=lambda dtype: dtype)
    """The result's dtype from the operands'."""
    flops: int = 1
    derivative: tuple[Rule, ...] | None = None
    """A rule for each operand; not needed where the result has no tangents."""

    def __post_init__(self) -> None:
        TABLE[self.name] = self

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str | tuple[Any, ...]:
        return TABLE.__getitem__, (self.name,)

    @overload
    def __call__(self, x: Operators[R], /, *rest: Any) -> R: ...
    @overload
    def __call__(self, x: Any, y: Operators[R], /) -> R: ...
    @overload
    def __call__(self, *operands: Any) -> Any: ...
    def __call__(self, *operands: Any) -> Any:
        """Return the function with NumPy's broadcasting and strict promotion."""
        for operand in operands:
            builder = getattr(operand, "builder", None)
            if builder is not None:
                return builder.elementwise(self, operands)
        raise TypeError(f"{self.name}: no operand belongs to a program")

    def substitute(self, env: Mapping[str, Size]) -> Self:
        return self

    @property
    def is_cheap(self) -> bool:
        return self.flops <= CHEAP_FLOPS

    def weak_kind(self, kind: Kind) -> Kind:
        """Return the kind in which weak operands of a kind are computed."""
        if self.accepts in ("inexact", "floating"):
            return max(kind, Kind.FLOAT)
        return max(kind, Kind.INT) if self.accepts in ("numeric", "real", "integer") else kind

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        first = operands[0]
        dtype = first.dtype
        same = [operand.dtype for operand in operands].count(dtype)
        if len(operands) != self.arity or same != self.arity:
            self.ill_typed(f"operands are {', '.join(map(str, operands))}")
        if dtype not in _ACCEPTED[self.accepts]:
            raise Failure(DtypeNotAccepted(function=self.name, given=first, accepts=self.accepts))
        shape = first.shape if len(operands) == 1 else joint_shape(self, facts, operands)
        result = self.result(dtype)
        for operand in operands:  # most often one of these is the result's type
            if operand.shape is shape and result is dtype:
                return (operand,)
        return (ArrayType(result, shape),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        with np.errstate(all="ignore"):
            return (np.asarray(self.meaning(*operands)),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        return (self.emit(hlo, everywhere(hlo, operands, inputs, outputs[0]), inputs, outputs),)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        (output,) = outputs
        if not output.dtype.is_inexact:
            return (None,)
        if self.derivative is None:
            return super().jvp(outputs, primals, tangents)
        given = zip(self.derivative, tangents, strict=True)
        parts = [rule(each, output, *primals) for rule, each in given if each is not None]
        total: Value | None = None
        for part in parts:
            if part is not None:
                total = part if total is None else total + part
        return (None if total is None else spread(total, output.shape),)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,) = cotangents
        assert cotangent is not None
        found: list[Value | None] = [None] * len(operands)
        rules = self.derivative or (None,) * len(operands)
        for place, (rule, operand) in enumerate(zip(rules, operands, strict=True)):
            if not isinstance(operand, ArrayType):
                continue
            if not isinstance(rule, LinearIn):
                raise Failure(NotLinear(primitive=self.name))
            known = KnownOperands(self.name, operands, place)
            found[place] = gathered(rule.transpose(cotangent, known), operand)
        return found

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(outputs[0].shape) * self.flops

    def linear_in(self, output: ArrayType) -> Sequence[Sequence[int]]:
        # No product: a factor may be infinite, or take parts beyond the largest number.
        if self.name in ("add", "subtract"):
            return ((0, 1),)
        return ((0,),) if self.name in ("negative", "conjugate", "real", "imag") else ()


def everywhere(hlo: Hlo, operands: Sequence[H], inputs: Types, output: ArrayType) -> Sequence[H]:
    """Operands in the shape of the result: those of rank 0 are repeated."""
    if not output.shape:
        return operands
    return [
        x if t.shape else hlo.broadcast(x, t.with_shape(output.shape), ())
        for x, t in zip(operands, inputs, strict=True)
    ]


TABLE: dict[str, Elementwise] = {}
"""Every elementwise primitive by name."""

Key: TypeAlias = type[Primitive] | Elementwise
"""The key of a primitive in tables: its class, or the elementwise function."""


def key_of(primitive: Primitive) -> Key:
    """Return the key of a primitive in tables."""
    kind = primitive.__class__
    return primitive if kind is Elementwise else kind  # type: ignore[return-value]
