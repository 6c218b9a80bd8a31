"""The base class of primitives, with their whole interface, and the emitter that rules use.

A primitive is a frozen dataclass: fields are its static parameters, methods are its rules.  An
equation holds an instance, so equality, hashing and printing come from the dataclass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, Protocol, Self, TypeAlias

import numpy as np

from pscdsl.typing.array_types import ArrayType, Shape
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.limits import IllTypedEquation, NoRule
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, Size, substitute
from pscdsl.typing.dtypes import DType
from pscdsl.typing.python_containers import is_tuple

if TYPE_CHECKING:
    from pscdsl._src.interpreters.cut import Cut
    from pscdsl._src.ir.axis_rules import AxisRule
    from pscdsl._src.ir.builder import Builder, Value
    from pscdsl._src.ir.program import Atom, Block, Equation, Function


# The operations that a translation rule may emit: the `hlo` that `Primitive.lower` and user
# primitives get.
#
# `Emitter` of `xla` implements it; rules see only this, so that none depends on jaxlib. A value of
# the module being emitted is opaque (`H`); its type is a tensor type of numbers.


H: TypeAlias = Any
"""A value of the module being emitted; opaque to rules."""


class Hlo(Protocol):
    """The place in a StableHLO module where a rule appends its operations.

    Examples:
        >>> print(hlo.unary("exponential", x))
        OpResult(%0 = "stablehlo.exponential"(%arg0) : (tensor<3xf32>) -> tensor<3xf32>)
    """

    @property
    def sizes(self) -> Mapping[str, int]:
        """Return the numbers of the named sizes in this module."""
        ...

    def size(self, size: Size) -> int:
        """Return the number of a size in this module.

        Examples:
            >>> hlo.size(3)
            3
        """
        ...

    def shape(self, shape: Shape) -> tuple[int, ...]:
        """Return the numbers of a shape.

        Examples:
            >>> hlo.shape(ArrayType(F32, (2, 3)).shape)
            (2, 3)
        """
        ...

    def tensor(self, type: ArrayType) -> Any:  # noqa: A002
        """Return the tensor type of an array type.

        Examples:
            >>> hlo.tensor(ArrayType(F32, (2, 3)))
            RankedTensorType(tensor<2x3xf32>)
        """
        ...

    def tensor_of(self, dtype: DType, shape: Sequence[int]) -> Any:
        """Return the tensor type of a dtype and numbers.

        Examples:
            >>> hlo.tensor_of(I32, (2, 3))
            RankedTensorType(tensor<2x3xi32>)
        """
        ...

    def type_of(self, value: H) -> Any:
        """Return the tensor type of a value; it has `shape` and `element_type`.

        Examples:
            >>> hlo.type_of(x).shape, str(hlo.type_of(x).element_type)
            ([3], 'f32')
        """
        ...

    def op(
        self,
        name: str,
        operands: Sequence[H],
        results: Sequence[Any],
        attributes: Mapping[str, object] | None = None,
        regions: Sequence[Any] = (),
    ) -> tuple[H, ...]:
        """Emit any operation: `add` is `stablehlo.add`, `chlo.erf` is written in full.

        `results` are array types or tensor types.  Attributes are made by the functions below,
        or bool, str, and int (an i64; write `parse_attribute("8 : i32")` for another width).

        Examples:
            >>> attributes = {
            ...     "exponent_bits": hlo.parse_attribute("5 : i32"),
            ...     "mantissa_bits": hlo.parse_attribute("10 : i32"),
            ... }
            >>> (rounded,) = hlo.op("reduce_precision", [x], [hlo.type_of(x)], attributes)
            >>> hlo.type_of(rounded)
            RankedTensorType(tensor<3xf32>)
        """
        ...

    def i64_array(self, values: Sequence[int]) -> Any:
        """Return an attribute such as `array<i64: 0, 1>`.

        Examples:
            >>> hlo.i64_array([0, 1])
            DenseI64ArrayAttr(array<i64: 0, 1>)
        """
        ...

    def bool_array(self, values: Sequence[bool]) -> Any:
        """Return an attribute such as `array<i1: true>`.

        Examples:
            >>> hlo.bool_array([True, False])
            DenseBoolArrayAttr(array<i1: true, false>)
        """
        ...

    def i64_elements(self, values: Any) -> Any:
        """Return an attribute like `dense<[[0, 1]]> : tensor<1x2xi64>`, from nested sequences.

        Examples:
            >>> hlo.i64_elements([[0, 1]])
            DenseElementsAttr(dense<[[0, 1]]> : tensor<1x2xi64>)
        """
        ...

    def parse_attribute(self, text: str) -> Any:
        """Return an attribute as MLIR writes it: `#stablehlo<comparison_type TOTALORDER>`.

        Examples:
            >>> hlo.parse_attribute("#stablehlo<comparison_type TOTALORDER>")
            Attribute(#stablehlo<comparison_type TOTALORDER>)
        """
        ...

    def constant(self, array: Any, type: ArrayType) -> H:  # noqa: A002
        """Emit a constant with the numbers of a NumPy array.

        Examples:
            >>> hlo.type_of(hlo.constant(np.array([1, 2, 3], np.float32), ArrayType(F32, (3,))))
            RankedTensorType(tensor<3xf32>)
        """
        ...

    def full(self, value: Any, type: ArrayType) -> H:  # noqa: A002
        """Emit a constant with the same number everywhere.

        Examples:
            >>> hlo.type_of(hlo.full(0.5, ArrayType(F32, (3,))))
            RankedTensorType(tensor<3xf32>)
        """
        ...

    def broadcast(self, x: H, to: ArrayType, dims: Sequence[int]) -> H:
        """`broadcast_in_dim`: axis i of x becomes axis `dims[i]`.

        Examples:
            >>> hlo.type_of(hlo.broadcast(x, ArrayType(F32, (2, 3)), [1]))
            RankedTensorType(tensor<2x3xf32>)
        """
        ...

    def reshape(self, x: H, to: ArrayType) -> H:
        """Reshape an array.

        Examples:
            >>> hlo.type_of(hlo.reshape(x, ArrayType(F32, (3, 1))))
            RankedTensorType(tensor<3x1xf32>)
        """
        ...

    def slice(self, x: H, start: Sequence[int], limit: Sequence[int]) -> H:
        """Emit the elements from `start` up to, not including, `limit` along each axis.

        Examples:
            >>> hlo.type_of(hlo.slice(x, [1], [3]))
            RankedTensorType(tensor<2xf32>)
        """
        ...

    def pad(
        self,
        x: H,
        value: H,
        low: Sequence[int],
        high: Sequence[int],
        interior: Sequence[int] | None = None,
    ) -> H:
        """`x` with scalars added before, after and between the elements along each axis.

        If `low` or `high` is negative, there are fewer elements.

        Examples:
            >>> zero = hlo.full(0, ArrayType(F32))
            >>> hlo.type_of(hlo.pad(x, zero, [1], [2]))
            RankedTensorType(tensor<6xf32>)
        """
        ...

    def convert(self, x: H, to: ArrayType) -> H:
        """Convert an array to another dtype; return it unchanged if it has the dtype.

        Examples:
            >>> hlo.type_of(hlo.convert(x, ArrayType(F64, (3,))))
            RankedTensorType(tensor<3xf64>)
        """
        ...

    def compare(self, direction: str, x: H, y: H, *, total: bool = False) -> H:
        """`EQ`, `NE`, `LT`, `LE`, `GT` or `GE`; `total` orders NaN and the zeros of floats too.

        Examples:
            >>> hlo.type_of(hlo.compare("LT", x, y))
            RankedTensorType(tensor<3xi1>)
        """
        ...

    def select(self, predicate: H, x: H, y: H) -> H:
        """X where the predicate holds, else y.

        Examples:
            >>> hlo.type_of(hlo.select(hlo.compare("LT", x, y), x, y))
            RankedTensorType(tensor<3xf32>)
        """
        ...

    def binary(self, name: str, x: H, y: H) -> H:
        """Emit an operation whose result has the type of its operands.

        Examples:
            >>> hlo.type_of(hlo.binary("add", x, y))
            RankedTensorType(tensor<3xf32>)
        """
        ...

    def unary(self, name: str, x: H) -> H:
        """Emit an operation whose result has the type of its operand.

        Examples:
            >>> print(hlo.unary("tanh", x))
            OpResult(%0 = "stablehlo.tanh"(%arg0) : (tensor<3xf32>) -> tensor<3xf32>)
        """
        ...

    def reduce(
        self,
        operands: Sequence[H],
        inits: Sequence[H],
        axes: Sequence[int],
        outputs: Sequence[Any],
        body: Callable[[Sequence[H], Sequence[H]], Sequence[H]],
    ) -> tuple[H, ...]:
        """Combine along axes; `body` gets the accumulators and the elements, all scalars.

        Examples:
            >>> zero, scalar = hlo.full(0, ArrayType(F32)), ArrayType(F32)
            >>> add = lambda left, right: [hlo.binary("add", left[0], right[0])]
            >>> (total,) = hlo.reduce([x], [zero], [0], [scalar], add)
            >>> hlo.type_of(total)
            RankedTensorType(tensor<f32>)
        """
        ...

    def region(self, arguments: Sequence[Any], body: Callable[[Sequence[H]], Sequence[H]]) -> Any:
        """Return a region for `op`, filled by `body` when the operation is made.

        Examples:
            >>> scalar = hlo.tensor_of(F32, ())
            >>> body = hlo.region([scalar, scalar], lambda pair: [hlo.binary("maximum", *pair)])
            >>> attributes = {"dimensions": hlo.i64_array([0])}
            >>> (largest,) = hlo.op(
            ...     "reduce", [x, hlo.full(0, ArrayType(F32))], [scalar], attributes, [body]
            ... )
            >>> hlo.type_of(largest)
            RankedTensorType(tensor<f32>)
        """
        ...

    def while_loop(
        self,
        inits: Sequence[H],
        cond: Callable[[Sequence[H]], H],
        body: Callable[[Sequence[H]], Sequence[H]],
    ) -> tuple[H, ...]:
        """`while`: both functions may use values from outside.

        Examples:
            >>> limit = hlo.full(100, ArrayType(F32))
            >>> (last,) = hlo.while_loop(
            ...     [hlo.full(1, ArrayType(F32))],
            ...     lambda v: hlo.compare("LT", v[0], limit),
            ...     lambda v: [hlo.binary("add", v[0], v[0])],
            ... )
            >>> hlo.type_of(last)
            RankedTensorType(tensor<f32>)
        """
        ...

    def case(
        self, index: H, branches: Sequence[Callable[[], Sequence[H]]], outputs: Sequence[Any]
    ) -> tuple[H, ...]:
        """Emit the branch with a number; the last one if the index is out of range.

        Examples:
            >>> index = hlo.full(1, ArrayType(I32))
            >>> (chosen,) = hlo.case(index, [lambda: [x], lambda: [y]], [hlo.type_of(x)])
            >>> hlo.type_of(chosen)
            RankedTensorType(tensor<3xf32>)
        """
        ...

    def sort(
        self,
        operands: Sequence[H],
        axis: int,
        stable: bool,
        comparator: Callable[[Sequence[H]], H],
    ) -> tuple[H, ...]:
        """Sort together; the comparator gets two scalars of each operand, side by side.

        Examples:
            >>> (ordered,) = hlo.sort([x], 0, True, lambda pair: hlo.compare("LT", *pair))
            >>> hlo.type_of(ordered)
            RankedTensorType(tensor<3xf32>)
        """
        ...

    def lower(
        self, primitive: Primitive, operands: Sequence[H], inputs: Any, outputs: Any
    ) -> Sequence[H]:
        """Emit the results of another primitive, emitted as the target has it."""
        ...

    def block(self, block: Block, operands: Sequence[H]) -> tuple[H, ...]:
        """Emit the equations of a block, here."""
        ...

    def call(
        self, function: Function, sizes: Mapping[str, Size], operands: Sequence[H]
    ) -> tuple[H, ...]:
        """Emit a call of another function, which is emitted once for each of its sizes."""
        ...

    def host_call(self, effect: Primitive, operands: Sequence[H], unless: Sequence[H] = ()) -> None:
        """Emit an effect, which runs on the host after those before it.

        It is left out where all elements of the arrays of bools in `unless` are true.
        """
        ...

    def custom_call(
        self, target: str, operands: Sequence[H], results: Sequence[Any], **attributes: object
    ) -> tuple[H, ...]:
        """Emit a call of a function that XLA knows by name.

        Examples:
            >>> (found,) = hlo.custom_call("my_library_round", [x], [hlo.type_of(x)])
            >>> hlo.type_of(found)
            RankedTensorType(tensor<3xf32>)
        """
        ...

    def lapack(
        self, routine: str, operands: Sequence[H], results: Sequence[Any], **options: str
    ) -> tuple[H, ...]:
        """Emit a routine of LAPACK, named without the letter of its dtype: `potrf`.

        The first operand is a matrix, or many along leading axes, which all others have as well;
        its dtype is f32, f64, c64 or c128.  Options are LAPACK's letters, `uplo="L"`.  Where a
        routine overwrites an operand, its first result is that.
        """
        ...


class TargetHlo(Hlo, Protocol):
    """The further operations for translations of a target: context and emitted values."""

    @property
    def in_loop(self) -> bool:
        """Return whether this is done in every step of a loop."""
        ...

    @property
    def nested(self) -> bool:
        """Return whether this is in a loop or a branch, where XLA leaves some operations slow."""
        ...

    def has_library(self) -> bool:
        """Return whether XLA may give reductions of floats to its library; note that it matters."""
        ...

    def everywhere(self, x: H) -> int | float | None:
        """Return the real number that fills a constant; None if x is not such a constant."""
        ...

    def bounds(self, x: H) -> tuple[float, float]:
        """Return known bounds of the elements that are not NaN; they may be infinite."""
        ...

    def tell_bounds(self, x: H, low: float, high: float) -> None:
        """Tell `bounds` what it cannot infer from the operations that compute a value."""
        ...

    def flushed(self, x: H) -> bool:
        """Return whether x certainly has no subnormal numbers, as a result of arithmetic."""
        ...

    def effort(self, x: H, enough: int) -> int:
        """About how many operations an element of x takes, if they are fewer than `enough`."""
        ...

    def is_flat(self, x: H) -> bool:
        """Return whether x is computed from numbers, and arrays with its elements in order."""
        ...

    def kept_apart(self, x: H) -> H:
        """Return the same real numbers in a form that is not fused into repeated readers."""
        ...

    def apart(self, block: Block, operands: Sequence[H]) -> tuple[H, ...]:
        """Emit the results of a block that XLA compiles apart from all else."""
        ...


# The interface of a primitive.


NDArray: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Types: TypeAlias = tuple[ArrayType, ...]


class CountedPart(NamedTuple):
    """A part of a result whose elements depend on their places."""

    here: Builder
    whole: ArrayType
    """The type of the whole result."""
    type: ArrayType
    starts: Mapping[int, Value]
    """The place where the part begins for each counted factor, an i64."""


class Evaluation(Protocol):
    """The context of a NumPy meaning in its program."""

    def size(self, size: Size) -> int:
        """Return the number of a size."""
        ...

    def shape(self, shape: Shape) -> tuple[int, ...]:
        """Return the numbers of a shape."""
        ...

    def block(self, block: Block, operands: Sequence[NDArray]) -> tuple[NDArray, ...]:
        """Return the results of a nested block."""
        ...

    def call(
        self, function: Function, sizes: Mapping[str, Size], operands: Sequence[NDArray]
    ) -> tuple[NDArray, ...]:
        """Return the results of another function."""
        ...


class WholeTangent(NamedTuple):
    """The tangent of an equation's result that depends on values before those that it uses."""

    operands: tuple[Atom, ...]
    tangent: Callable[[Sequence[Value], Sequence[Value | None]], Value | None]
    """From the operands and their tangents."""


class Primitive:
    """One operation of the typed program, with all its rules."""

    name: ClassVar[str] = ""
    has_effect: ClassVar[bool] = False
    """Whether it does something besides its results, so that an equation stays in any case."""
    effects_exist: ClassVar[bool] = False
    """Whether any program of this process has effects: most processes have none."""
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
        """Return the result types, or raise a Failure; `facts` has the facts about sizes."""
        raise NotImplementedError

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        """Compute the meaning in NumPy."""
        raise NotImplementedError

    def expansion(self, inputs: Types) -> Block | None:
        """Return the primitive as a program of others for these operands; sizes are numbers.

        Return None if the primitive has its own translation.
        """
        return None

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        """Translate to StableHLO, correctly on every device; by the expansion if there is one.

        Targets may have a better translation: see `pscdsl._src.targets`.
        """
        types = tuple([type_.with_shape(hlo.shape(type_.shape)) for type_ in inputs])
        block = self.substitute(hlo.sizes).expansion(types)
        if block is None:
            raise NotImplementedError
        return hlo.block(block, operands)

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        """Return the results and their tangents; None means a zero tangent.

        Primitives that hold programs override this, and those whose results are computed in another
        way if tangents are wanted too; all others have `jvp`.
        """
        outputs = self.bind(*primals)
        return outputs, self.jvp(outputs, primals, tangents)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        """Return the tangents of the results, linear in those of the operands; None means zero.

        A tangent has the type of its primal; at least one is given. An operand without tangents
        (bool, integer, key) has None.
        """
        raise Failure(NoRule(primitive=self.label, rule="a derivative"))

    def whole_tangents(self, block: Block, equation: Equation) -> Mapping[Equation, WholeTangent]:
        """Return tangents that later equations of a block have as a whole if one of this is active.

        They are correct where the chain rule through the results of this equation is not.
        """
        return {}

    def split(self, cut: Cut, operands: Sequence[Value]) -> tuple[Value, ...]:
        """Put the equation into a program that is cut in two, with an operand that is known late.

        Late results depend on late operands.  Primitives that hold programs split those.
        """
        return cut.late.bind(self, [cut.later(operand) for operand in operands])

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        """Return cotangents of the operands in which it is linear, which are given by their types.

        At least one cotangent of a result is given; None means zero, and also takes the place of
        the cotangents of the other operands.
        """
        raise Failure(NoRule(primitive=self.label, rule="a transpose"))

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        """Return the results over a batch of operands, and which of them are batched.

        A batched value has the batch as its first axis, of this size; at least one operand is
        batched.
        """
        raise Failure(NoRule(primitive=self.label, rule="a batching rule"))

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        """Return along which axes it acts the same everywhere; None if it needs whole arrays."""
        return None

    def resized(self, inputs: Types, outputs: Types) -> Self:
        """Return the primitive for parts of its operands, cut as its `axis_rule` allows.

        The types are those of the parts. Most primitives have no sizes among their parameters.
        """
        return self

    def counted_part(self, operands: Sequence[Value], part: CountedPart) -> Value:
        """Return a part of its result, cut along factors that its `axis_rule` counts."""
        raise NotImplementedError

    def cost(self, inputs: Types, outputs: Types) -> Size:
        """Return the number of its floating-point operations."""
        raise Failure(NoRule(primitive=self.label, rule="a cost"))

    @property
    def is_cheap(self) -> bool:
        """Return whether the backward pass should compute it again instead of saving it."""
        return self._cheap

    # The parts of a primitive.

    @property
    def label(self) -> str:
        """The name that messages and the text form use."""
        return self.name or type(self).__name__

    def blocks(self) -> tuple[Block, ...]:
        """Return the blocks nested in it; primitives that hold blocks or functions override it."""
        return ()

    def substitute(self, env: Mapping[str, Size]) -> Self:
        """Return the primitive with sizes substituted for names in its parameters."""
        changed = {}
        for name in _field_names(self.__class__):
            old = getattr(self, name)
            new = _substitute(old, env)
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


def _substitute(value: Any, env: Mapping[str, Size]) -> Any:
    if value.__class__ in _WITHOUT_SIZES:
        return value
    if isinstance(value, Dim):
        return substitute(value, env)
    if isinstance(value, ArrayType):
        return value.substitute(env)
    if is_tuple(value):
        new = tuple(_substitute(item, env) for item in value)
        return new if any(a is not b for a, b in zip(new, value, strict=True)) else value
    return value


_WITHOUT_SIZES = frozenset({int, str, bool, float, DType, type(None)})

__all__ = ["Evaluation", "H", "Hlo", "NDArray", "Primitive", "Types"]
