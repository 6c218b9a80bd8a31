"""What the primitives of linear algebra have in common.

Their operands are matrices in the last two axes; all leading axes are the same, and are gone
through.  Dtypes are those of LAPACK.  A matrix for which a routine fails (one that is singular
or not positive definite, an iteration that does not end) gives NaN, the others what they give.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from pscdsl._src.interpreters.batching import repeated
from pscdsl._src.interpreters.replay import closed
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.numpy_dtypes import from_numpy
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives.shaping import same_sizes
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, C64, C128, F32, F64, I32

ACCEPTED = (F32, F64, C64, C128)
"""The dtypes of matrices."""


class OfMatrices(Primitive):
    """A primitive of matrices: a batch is one more leading axis."""

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        given = [x if b else repeated(x, size) for x, b in zip(operands, batched, strict=True)]
        outputs = self.bind(*given)
        return outputs, (True,) * len(outputs)

    def require_matrix(self, a: ArrayType) -> None:
        """Refuse what is no matrix."""
        if a.rank < 2 or a.dtype not in ACCEPTED:
            self.ill_typed(f"the operand is {a}")

    def require_square(self, facts: Assumptions, a: ArrayType) -> None:
        """Refuse what is no square matrix."""
        self.require_matrix(a)
        if not facts.equal(a.shape[-1], a.shape[-2]):
            self.ill_typed(f"{a} is not square")

    def require_columns(self, facts: Assumptions, a: ArrayType, b: ArrayType) -> None:
        """Refuse right-hand sides that do not fit to a matrix."""
        if (
            b.dtype is not a.dtype
            or b.rank != a.rank
            or not same_sizes(facts, b.shape[:-1], a.shape[:-1])
        ):
            self.ill_typed(f"{b} does not fit to {a}")


class Composite(OfMatrices):
    """A primitive that is computed by others, and has a derivative of its own."""

    def define(self, *operands: Value) -> Sequence[Value]:
        """The results, by other primitives; the sizes are numbers."""
        raise NotImplementedError

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        types = tuple([ArrayType(from_numpy(x.dtype), x.shape) for x in operands])
        return here.block(_definition(self, types), operands)

    def expansion(self, inputs: Types) -> Block:
        return _definition(self, inputs)


@lru_cache(maxsize=1024)
def _definition(primitive: Composite, types: Types) -> Block:
    """What a primitive is at operands of these types."""

    def build(here: Builder, params: list[Value]) -> Sequence[Value]:
        return primitive.define(*params)

    return closed(Assumptions(), types, build)


def square_type(a: ArrayType) -> ArrayType:
    """The type of a square matrix, with the number of its columns as that of its rows too."""
    return a.with_shape((*a.shape[:-2], a.shape[-1], a.shape[-1]))


def vector_type(a: ArrayType, size: Size) -> ArrayType:
    """The type of a vector for each matrix."""
    return a.with_shape((*a.shape[:-2], size))


def one_by_one(
    function: Callable[[Sequence[NDArray]], Sequence[NDArray]],
    failed: Sequence[NDArray],
    *operands: NDArray,
) -> tuple[NDArray, ...]:
    """A function of matrices; where it fails for one, that one's results are those given."""
    with np.errstate(all="ignore"):
        try:
            return tuple([np.asarray(each) for each in function(operands)])
        except np.linalg.LinAlgError:
            results = [each.copy() for each in failed]
            for place in np.ndindex(operands[0].shape[:-2]):
                try:
                    found = function([x[place] for x in operands])
                except np.linalg.LinAlgError:
                    continue
                for result, each in zip(results, found, strict=True):
                    result[place] = each
            return tuple(results)


def nan_like(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> NDArray:
    """An array of NaN."""
    return np.full(shape, np.nan, dtype)


def succeeded(hlo: Hlo, info: H, batch: ArrayType) -> H:
    """Whether a routine of LAPACK has succeeded, by its `info`."""
    return hlo.compare("EQ", info, hlo.full(0, batch.with_dtype(I32)))


def where_ok(hlo: Hlo, ok: H, x: H, type: ArrayType) -> H:  # noqa: A002
    """A result, and NaN for the matrices for which something has failed."""
    mask = hlo.broadcast(ok, type.with_dtype(BOOL), range(len(hlo.type_of(ok).shape)))
    nan = complex("nan+nanj") if type.dtype.is_complex else float("nan")
    return hlo.select(mask, x, hlo.full(nan, type))


def emit_triangle(hlo: Hlo, x: H, type: ArrayType, relation: str) -> H:  # noqa: A002
    """The elements whose row stands in a relation to their column; zeros elsewhere."""
    return hlo.select(_where(hlo, type, relation), x, hlo.full(0, type))


def emit_identity(hlo: Hlo, type: ArrayType) -> H:  # noqa: A002
    """Ones on the diagonal."""
    return hlo.select(_where(hlo, type, "EQ"), hlo.full(1, type), hlo.full(0, type))


def _where(hlo: Hlo, type: ArrayType, relation: str) -> H:  # noqa: A002
    counts, last = type.with_dtype(I32), type.rank - 1
    row, column = (
        hlo.op("iota", (), (counts,), {"iota_dimension": axis})[0] for axis in (last - 1, last)
    )
    return hlo.compare(relation, row, column)
