"""The base class of primitives: the table of contents of everything one can be asked.

A primitive is a frozen dataclass: fields are its static parameters, methods are its rules.  An
equation holds an instance, so equality, hashing and printing come from the dataclass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol, Self, TypeAlias

import numpy as np

from pscdsl._src.ir.hlo import H, Hlo
from pscdsl.typing.array_types import ArrayType, Shape
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.limits import IllTypedEquation, NoRule
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, Size, substitute
from pscdsl.typing.dtypes import DType
from pscdsl.typing.python_containers import is_tuple

if TYPE_CHECKING:
    from pscdsl._src.interpreters.cut import Cut
    from pscdsl._src.ir.builder import Value
    from pscdsl._src.ir.program import Block, Function

NDArray: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Types: TypeAlias = tuple[ArrayType, ...]


class Evaluation(Protocol):
    """What a NumPy meaning may ask of the program around it."""

    def size(self, size: Size) -> int:
        """The number a size stands for."""
        ...

    def shape(self, shape: Shape) -> tuple[int, ...]:
        """The numbers a shape stands for."""
        ...

    def block(self, block: Block, operands: Sequence[NDArray]) -> tuple[NDArray, ...]:
        """The results of a nested block."""
        ...

    def call(
        self, function: Function, sizes: Mapping[str, Size], operands: Sequence[NDArray]
    ) -> tuple[NDArray, ...]:
        """The results of another function."""
        ...


class Primitive:
    """One operation of the typed program, with all its rules."""

    name: ClassVar[str] = ""
    _cheap: ClassVar[bool] = False

    def __init_subclass__(cls, name: str = "", *, cheap: bool = False) -> None:
        super().__init_subclass__()
        if name:
            cls.name = name
        if cheap:
            cls._cheap = True

    def __call__(self, *operands: Value) -> Value:
        """Append one equation to the operands' program; for primitives with one result."""
        (result,) = self.bind(*operands)
        return result

    def bind(self, *operands: Value) -> tuple[Value, ...]:
        """Append one equation to the operands' program."""
        return operands[0].builder.bind(self, operands)

    # The rules.

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        """The result types, or a Failure; what holds of the sizes is in `facts`."""
        raise NotImplementedError

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        """The meaning, in NumPy."""
        raise NotImplementedError

    def expansion(self, inputs: Types) -> Block | None:
        """The same as a program of other primitives, of operands of these types; sizes are numbers.

        None of a primitive that has a translation of its own.
        """
        return None

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        """The translation to StableHLO, right on every device; by the expansion if there is one.

        Targets may know a better one: see `pscdsl._src.targets`.
        """
        types = tuple([type_.with_shape(hlo.shape(type_.shape)) for type_ in inputs])
        block = self.substitute(hlo.sizes).expansion(types)
        if block is None:
            raise NotImplementedError
        return hlo.block(block, operands)

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        """The results and their tangents; None stands for a zero tangent.

        Primitives that hold programs have a rule of their own here, and those whose results are
        computed in another way where tangents are wanted too; all others have `jvp`.
        """
        outputs = self.bind(*primals)
        return outputs, self.jvp(outputs, primals, tangents)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        """The tangents of the results, linear in those of the operands; None stands for zero.

        A tangent has the type of its primal; at least one is given.  What has no tangents (bool,
        integers, keys) has None.
        """
        raise Failure(NoRule(primitive=self.label, rule="a derivative"))

    def split(self, cut: Cut, operands: Sequence[Value]) -> tuple[Value, ...]:
        """The equation in a program that is cut in two, with an operand that is known late.

        Late results depend on late operands.  Primitives that hold programs split those.
        """
        return cut.late.bind(self, [cut.later(operand) for operand in operands])

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        """Cotangents of the operands in which it is linear, which are given by their types.

        At least one cotangent of a result is given; None stands for zero, and for the cotangents
        of the other operands.
        """
        raise Failure(NoRule(primitive=self.label, rule="a transpose"))

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        """The same over a batch of operands: the results, and which of them are batched.

        What is batched has the batch as its first axis, of this size; at least one operand is.
        """
        raise Failure(NoRule(primitive=self.label, rule="a batching rule"))

    def cost(self, inputs: Types, outputs: Types) -> Size:
        """How many floating-point operations it takes."""
        raise Failure(NoRule(primitive=self.label, rule="a cost"))

    @property
    def is_cheap(self) -> bool:
        """Whether it is better computed again on the way back than saved for it."""
        return self._cheap

    # What it is made of.

    @property
    def label(self) -> str:
        """The name that messages and the text form use."""
        return self.name or type(self).__name__

    def blocks(self) -> tuple[Block, ...]:
        """The blocks nested in it; overridden by primitives that hold blocks or functions."""
        return ()

    def substitute(self, env: Mapping[str, Size]) -> Self:
        """The same primitive with sizes in place of names in its parameters."""
        changed = {}
        for name in _field_names(self.__class__):
            old = getattr(self, name)
            new = _substituted(old, env)
            if new is not old:
                changed[name] = new
        return replace(self, **changed) if changed else self  # type: ignore[type-var]

    def ill_typed(self, reason: str) -> NoReturn:
        """Refuse the operands; callers check first, so users see better messages than this."""
        raise Failure(IllTypedEquation(primitive=self.label, reason=reason))


_names_of_fields: dict[type[Primitive], tuple[str, ...]] = {}


def _field_names(kind: type[Primitive]) -> tuple[str, ...]:
    names = _names_of_fields.get(kind)
    if names is None:
        names = tuple([field.name for field in fields(kind)]) if is_dataclass(kind) else ()
        _names_of_fields[kind] = names
    return names


def _substituted(value: Any, env: Mapping[str, Size]) -> Any:
    if value.__class__ in _WITHOUT_SIZES:
        return value
    if isinstance(value, Dim):
        return substitute(value, env)
    if isinstance(value, ArrayType):
        return value.substitute(env)
    if is_tuple(value):
        new = tuple(_substituted(item, env) for item in value)
        return new if any(a is not b for a, b in zip(new, value, strict=True)) else value
    return value


_WITHOUT_SIZES = frozenset({int, str, bool, float, DType, type(None)})

__all__ = ["Evaluation", "H", "Hlo", "NDArray", "Primitive", "Types"]
