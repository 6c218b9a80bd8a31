"""What a translation rule may emit: the `hlo` that `Primitive.lower` and user primitives get.

Implemented by `Emitter` of `xla/emit`; rules see only this, so that none depends on jaxlib.
A value of the module being emitted is opaque (`H`); its type is a tensor type of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from pscdsl.typing.array_types import ArrayType, Shape
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import DType

if TYPE_CHECKING:
    from pscdsl._src.ir.primitive import Primitive
    from pscdsl._src.ir.program import Block, Function

H: TypeAlias = Any
"""A value of the module being emitted; opaque to rules."""


class Effort(NamedTuple):
    """What is computed for each element."""

    total: int
    """About how many operations."""
    depth: int
    """How many of them wait for one another."""
    size: float
    """How large the result is at most, where that is seen."""


class Hlo(Protocol):
    """The place in a StableHLO module where a rule appends its operations."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """The numbers that names of sizes stand for in this module."""
        ...

    def size(self, size: Size) -> int:
        """The number that a size stands for in this module."""
        ...

    def shape(self, shape: Shape) -> tuple[int, ...]:
        """The numbers that a shape stands for."""
        ...

    def tensor(self, type: ArrayType) -> Any:  # noqa: A002
        """The tensor type of an array type."""
        ...

    def tensor_of(self, dtype: DType, shape: Sequence[int]) -> Any:
        """The tensor type of a dtype and numbers."""
        ...

    def type_of(self, value: H) -> Any:
        """The tensor type of a value; it has `shape` and `element_type`."""
        ...

    def op(
        self,
        name: str,
        operands: Sequence[H],
        results: Sequence[Any],
        attributes: Mapping[str, object] | None = None,
        regions: Sequence[Any] = (),
    ) -> tuple[H, ...]:
        """Any operation: `add` is `stablehlo.add`, `chlo.erf` is written in full.

        `results` are array types or tensor types.  Attributes are made by the functions below,
        or bool, str, and int (an i64; write `parse_attribute("8 : i32")` for another width).
        """
        ...

    def i64_array(self, values: Sequence[int]) -> Any:
        """An attribute such as `array<i64: 0, 1>`."""
        ...

    def bool_array(self, values: Sequence[bool]) -> Any:
        """An attribute such as `array<i1: true>`."""
        ...

    def i64_elements(self, values: Any) -> Any:
        """An attribute such as `dense<[[0, 1]]> : tensor<1x2xi64>`, from nested sequences."""
        ...

    def parse_attribute(self, text: str) -> Any:
        """An attribute as MLIR writes it: `#stablehlo<comparison_type TOTALORDER>`."""
        ...

    def constant(self, array: Any, type: ArrayType) -> H:  # noqa: A002
        """A constant with the numbers of a NumPy array."""
        ...

    def full(self, value: Any, type: ArrayType) -> H:  # noqa: A002
        """A constant with the same number everywhere."""
        ...

    def broadcast(self, x: H, to: ArrayType, dims: Sequence[int]) -> H:
        """`broadcast_in_dim`: axis i of x becomes axis `dims[i]`."""
        ...

    def reshape(self, x: H, to: ArrayType) -> H:
        """The same elements in another shape."""
        ...

    def slice(self, x: H, start: Sequence[int], limit: Sequence[int]) -> H:
        """The elements from `start` up to, not including, `limit` along each axis."""
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
        """
        ...

    def convert(self, x: H, to: ArrayType) -> H:
        """The same array in another dtype; itself if it has it."""
        ...

    def compare(self, direction: str, x: H, y: H, *, total: bool = False) -> H:
        """`EQ`, `NE`, `LT`, `LE`, `GT` or `GE`; `total` orders NaN and the zeros of floats too."""
        ...

    def select(self, predicate: H, x: H, y: H) -> H:
        """X where the predicate holds, else y."""
        ...

    def binary(self, name: str, x: H, y: H) -> H:
        """An operation whose result has the type of its operands."""
        ...

    def unary(self, name: str, x: H) -> H:
        """An operation whose result has the type of its operand."""
        ...

    def reduce(
        self,
        operands: Sequence[H],
        inits: Sequence[H],
        axes: Sequence[int],
        outputs: Sequence[Any],
        body: Callable[[Sequence[H], Sequence[H]], Sequence[H]],
    ) -> tuple[H, ...]:
        """Combine along axes; `body` gets the accumulators and the elements, all scalars."""
        ...

    def region(self, arguments: Sequence[Any], body: Callable[[Sequence[H]], Sequence[H]]) -> Any:
        """A region for `op`, filled by `body` when the operation is made."""
        ...

    def while_loop(
        self,
        inits: Sequence[H],
        cond: Callable[[Sequence[H]], H],
        body: Callable[[Sequence[H]], Sequence[H]],
    ) -> tuple[H, ...]:
        """`while`: both functions may use values from outside."""
        ...

    def case(
        self, index: H, branches: Sequence[Callable[[], Sequence[H]]], outputs: Sequence[Any]
    ) -> tuple[H, ...]:
        """The branch with a number; the last one if the index is out of range."""
        ...

    def sort(
        self,
        operands: Sequence[H],
        axis: int,
        stable: bool,
        comparator: Callable[[Sequence[H]], H],
    ) -> tuple[H, ...]:
        """Sort together; the comparator gets two scalars of each operand, side by side."""
        ...

    def lower(
        self, primitive: Primitive, operands: Sequence[H], inputs: Any, outputs: Any
    ) -> Sequence[H]:
        """The results of another primitive, emitted as the target has it."""
        ...

    def block(self, block: Block, operands: Sequence[H]) -> tuple[H, ...]:
        """The equations of a block, here."""
        ...

    def call(
        self, function: Function, sizes: Mapping[str, Size], operands: Sequence[H]
    ) -> tuple[H, ...]:
        """A call of another function, which is emitted once for each of its sizes."""
        ...

    def custom_call(
        self, target: str, operands: Sequence[H], results: Sequence[Any], **attributes: object
    ) -> tuple[H, ...]:
        """A call of a function that XLA knows by name."""
        ...

    def lapack(
        self, routine: str, operands: Sequence[H], results: Sequence[Any], **options: str
    ) -> tuple[H, ...]:
        """A routine of LAPACK, named without the letter of its dtype: `potrf`.

        The first operand is a matrix, or many along leading axes, which all others have as well;
        its dtype is f32, f64, c64 or c128.  Options are LAPACK's letters, `uplo="L"`.  Where a
        routine overwrites an operand, its first result is that.
        """
        ...


class TargetHlo(Hlo, Protocol):
    """What translations of a target may ask as well: where they emit, and what was emitted."""

    @property
    def in_loop(self) -> bool:
        """Whether this is done in every step of a loop."""
        ...

    @property
    def nested(self) -> bool:
        """Whether this is done in a loop or a branch: XLA leaves some operations there slow."""
        ...

    def known(self, x: H) -> int | None:
        """The number of an integer scalar that was made by `full`; None if it is computed."""
        ...

    def reads_elsewhere(self, y: H, x: H, starts: Sequence[int]) -> bool:
        """Whether y is computed by a few operations from x at places that it does not stand for.

        Those that it stands for begin at `starts`.
        """
        ...

    def everywhere(self, x: H) -> int | float | None:
        """The real number that a constant is everywhere; None of what is not such a constant."""
        ...

    def bounds(self, x: H) -> tuple[float, float]:
        """Between which real numbers the elements are seen to lie, but for NaN; maybe infinite."""
        ...

    def tell_bounds(self, x: H, low: float, high: float) -> None:
        """Let `bounds` know what nobody sees from the operations that compute a value."""
        ...

    def flushed(self, x: H) -> bool:
        """Whether x is seen to have no subnormal numbers, as arithmetic has made it."""
        ...

    def effort(self, x: H, enough: int) -> int:
        """About how many operations an element of x takes, if they are fewer than `enough`."""
        ...

    def is_stored(self, x: H) -> bool:
        """Whether elements are in memory, and not computed where they are read."""
        ...

    def kept_apart(self, x: H) -> H:
        """The same real numbers, not fused into what repeats them."""
        ...

    def apart(self, block: Block, operands: Sequence[H]) -> tuple[H, ...]:
        """The results of a block that XLA compiles apart from all else."""
        ...
