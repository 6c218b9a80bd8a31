"""Eigenvalues and singular values, with vectors, and functions of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, nan, sqrt

import numpy as np

from pscdsl._src.ir.builder import Value
from pscdsl._src.ir.numpy_dtypes import from_numpy, to_numpy
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types, WholeTangent
from pscdsl._src.ir.program import Block, Equation
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives import matrices as m
from pscdsl._src.primitives.elementwise import Select
from pscdsl._src.primitives.factorisations import Lu, LuSolve, many_columns, smaller
from pscdsl._src.primitives.matrices import (
    EPSILON,
    Composite,
    OfMatrices,
    emit_identity,
    nan_like,
    one_by_one,
    square_type,
    succeeded,
    vector_type,
    where_ok,
)
from pscdsl._src.primitives.reductions import Reduce
from pscdsl._src.primitives.shaping import Broadcast, at_most, same_sizes
from pscdsl._src.primitives.spectral_sums import (
    MatrixFunction,
    SingularFunction,
    whole_tangents,
)
from pscdsl.typing.array_types import ArrayType, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.limits import NotSupported
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size, minimum
from pscdsl.typing.dtypes import I32

# Eigenvalues and eigenvectors: of Hermitian matrices, and of square matrices without symmetry.


# Eigenvalues and eigenvectors of square matrices without symmetry.


@dataclass(frozen=True)
class Eig(OfMatrices, name="eig"):
    """Eigenvalues in any order, and eigenvectors of length 1 as columns; results values, vectors.

    Both are complex, even if all eigenvalues are real. Without `vectors`, the result is only the
    values. An iteration that does not end gives NaN.
    """

    vectors: bool = True

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (a,) = operands
        self.require_square(facts, a)
        whole = square_type(a).with_dtype(a.dtype.complex)
        values = vector_type(whole, a.shape[-1])
        return (values, whole) if self.vectors else (values,)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        (a,) = operands
        dtype = to_numpy(from_numpy(a.dtype).complex)

        def found(given: Sequence[NDArray]) -> Sequence[NDArray]:
            if not np.isfinite(given[0]).all():
                raise np.linalg.LinAlgError
            return [each.astype(dtype) for each in np.linalg.eig(given[0])]

        failed = nan_like(a.shape[:-1], dtype), nan_like(a.shape, dtype)
        return one_by_one(found, failed, a)[: 2 if self.vectors else 1]

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (a,), (given,), values = operands, inputs, outputs[0]
        if 0 in hlo.shape(values.shape):
            return [hlo.full(0, type_) for type_ in outputs]
        whole = given.with_dtype(values.dtype)
        batch = ArrayType(I32, given.shape[:-2])
        options = {"compute_left": "N", "compute_right": "V" if self.vectors else "N"}
        if given.dtype.is_complex:
            every: Types = (values, whole, whole, batch)
            found, _, vectors, info = hlo.lapack("geev", (a,), every, **options)
        else:
            part = values.with_dtype(given.dtype)
            every = (part, part, whole, whole, batch)
            real, imag, _, vectors, info = hlo.lapack("geev", (a,), every, **options)
            (found,) = hlo.op("complex", (real, imag), (values,))
        ok = succeeded(hlo, info, batch)
        results = where_ok(hlo, ok, found, values), where_ok(hlo, ok, vectors, whole)
        return results[: len(outputs)]

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        """The tangents of values need the vectors: one routine gives both."""
        outputs = Eig().bind(*primals)
        found = self.jvp(outputs, primals, tangents)
        return outputs[: len(found)], found

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        # With M = V^-1 a' V, the values change by the diagonal of M, the vectors by V (F * M) as
        # those of `Eigh`, minus the change of their lengths.
        (values, vectors), (a,), (tangent,) = outputs, primals, tangents
        assert tangent is not None
        lu, _, permutation = Lu().bind(vectors)
        moved = m.product(m.cast(tangent, vectors.dtype), vectors)
        within = LuSolve()(vectors, lu, permutation, moved)
        gaps = m.in_rows(values, vectors) - m.in_columns(values, vectors)
        unit = m.identity(a.builder, vectors.shape, vectors.dtype)
        size = m.largest(a, 2)
        known = _well_conditioned(LuSolve()(vectors, lu, permutation, unit), gaps, size)
        changes = m.diagonal(within) * m.cast(known, values.dtype)
        if not self.vectors:
            return (changes,)
        turned = m.product(vectors, m.by_gaps(within, gaps, size))
        last = known.ndim - 1
        every = Broadcast(vectors.shape, tuple(range(last)))(Reduce("product", (last,))(known))
        turned = turned * m.cast(every, vectors.dtype)
        longer = m.real(m.column_sums(m.conjugated(vectors) * turned))
        return changes, turned - m.times_diagonal(vectors, longer)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        # Golub and Van Loan, "Matrix Computations", 4th edition, section 7.5.6.
        return size_of(inputs[0].shape) * inputs[0].shape[-1] * (25 if self.vectors else 10)


def _well_conditioned(inverse: Value, gaps: Value, size: Value) -> Value:
    """Return 1 for each eigenvalue, NaN if rounding errors may make its matrix defective.

    The eigenvalues of a defective matrix have no derivative. Near such a matrix, eigenvalues are
    close, and their condition is the inverse of a root of the precision.
    """
    last, epsilon = gaps.ndim - 1, EPSILON[size.dtype]
    real, imag = e.real(inverse), e.imag(inverse)
    squares = real * real + imag * imag
    condition = e.sqrt(Reduce("sum", (last,))(squares))
    here = gaps.builder
    one, unknown, infinity = (here.literal(number, size.dtype) for number in (1, nan, inf))
    apart = Select()(m.where_row(e.equal, gaps), infinity, e.absolute(gaps))
    bound = condition * (100 * epsilon) * Broadcast(condition.shape, tuple(range(last - 1)))(size)
    resolved = e.greater(Reduce("minimum", (last,))(apart), bound)
    regular = e.less(condition, 0.1 / sqrt(epsilon))
    return Select()(regular | resolved, one, unknown)


# Eigenvalues and eigenvectors of Hermitian matrices.


@dataclass(frozen=True)
class Eigh(OfMatrices, name="eigh"):
    """Eigenvalues in ascending order, and eigenvectors as columns; results values, vectors.

    Only the lower triangle of the matrix is read, and the real part of its diagonal. Without
    `vectors`, the result is only the values. An iteration that does not end gives NaN.
    """

    vectors: bool = True

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (a,) = operands
        self.require_square(facts, a)
        values = vector_type(a, a.shape[-1]).with_dtype(a.dtype.real)
        return (values, square_type(a)) if self.vectors else (values,)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        (a,) = operands
        failed = nan_like(a.shape[:-1], np.real(a).dtype), nan_like(a.shape, a.dtype)
        found = one_by_one(lambda given: np.linalg.eigh(given[0]), failed, a)
        return found if self.vectors else found[:1]

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (a,), (given,), values = operands, inputs, outputs[0]
        if 0 in hlo.shape(values.shape):
            return (hlo.full(0, values), a)[: len(outputs)]
        batch = ArrayType(I32, given.shape[:-2])
        mode = "V" if self.vectors else "N"
        vectors, found, info = hlo.lapack(
            "syevd", (a,), (given, values, batch), mode=mode, uplo="L"
        )
        ok = succeeded(hlo, info, batch)
        results = where_ok(hlo, ok, found, values), where_ok(hlo, ok, vectors, given)
        return results[: len(outputs)]

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        """The tangents of values need the vectors: one routine gives both."""
        outputs = Eigh().bind(*primals)
        found = self.jvp(outputs, primals, tangents)
        count = 2 if self.vectors else 1
        return outputs[:count], found[:count]

    def whole_tangents(self, block: Block, equation: Equation) -> Mapping[Equation, WholeTangent]:
        def function_of(
            function: Block, a: Value, captured: Sequence[Value]
        ) -> tuple[Value, Value]:
            values, vectors = Eigh().bind(a)
            return values, MatrixFunction(function)(a, values, vectors, *captured)

        return whole_tangents(block, equation, 0, function_of, m.hermitian)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        # With M = V^H a' V, the values change by the diagonal of M, the vectors by V (F * M) with
        # F_ij = 1 / (w_j - w_i).  Vectors of equal values have no derivative unless nothing turns
        # them into each other; complex vectors do not change their phase.
        (values, vectors), (tangent,) = outputs, tangents
        assert tangent is not None
        moved = m.product(m.hermitian(tangent), vectors)
        if not self.vectors:
            return (m.real(m.column_sums(m.conjugated(vectors) * moved)),)
        within = m.product(m.adjoint(vectors), moved)
        gaps = m.in_rows(values, vectors) - m.in_columns(values, vectors)
        turning = m.by_gaps(within, gaps, m.largest(values))
        return m.real(m.diagonal(within)), m.product(vectors, turning)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        each = size_of(inputs[0].shape) * inputs[0].shape[-1]
        return each * 9 if self.vectors else each * 4 // 3


# The singular value decomposition, and the pseudo-inverses and least squares it gives.


# The singular value decomposition.


@dataclass(frozen=True)
class Svd(OfMatrices, name="svd"):
    """`a = U @ diag(s) @ V^H` with s real and in descending order; results U, s, V^H.

    For a matrix [m n] with k = min(m, n), U is [m k] and V^H [k n]; [m m] and [n n] if `complete`.
    Without `vectors`, the result is only s. An iteration that does not end gives NaN.
    """

    complete: bool = False
    vectors: bool = True

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (a,) = operands
        self.require_matrix(a)
        *batch, rows, columns = a.shape
        inner = smaller(facts, rows, columns)
        values = vector_type(a, inner).with_dtype(a.dtype.real)
        if not self.vectors:
            return (values,)
        left, right = (rows, columns) if self.complete else (inner, inner)
        return a.with_shape((*batch, rows, left)), values, a.with_shape((*batch, right, columns))

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        (a,) = operands
        *batch, rows, columns = a.shape
        inner = min(rows, columns)
        left, right = (rows, columns) if self.complete else (inner, inner)
        failed = (
            nan_like((*batch, rows, left), a.dtype),
            nan_like((*batch, inner), np.real(a).dtype),
            nan_like((*batch, right, columns), a.dtype),
        )
        found = one_by_one(lambda given: np.linalg.svd(given[0], self.complete), failed, a)
        return found if self.vectors else found[1:2]

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (a,), (given,) = operands, inputs
        *batch, rows, columns = hlo.shape(given.shape)
        if 0 in (*batch, rows, columns):
            if not self.vectors:
                return (hlo.full(0, outputs[0]),)
            left, values, right = outputs
            return emit_identity(hlo, left), hlo.full(0, values), emit_identity(hlo, right)
        inner = min(rows, columns)
        if self.vectors:
            types = outputs
        else:
            types = (
                given.with_shape((*batch, rows, inner)),
                outputs[0],
                given.with_shape((*batch, inner, columns)),
            )
        left, values, right = types
        plain = ArrayType(I32, tuple(batch))
        mode = "N" if not self.vectors else "A" if self.complete else "S"
        _, s, u, vh, info = hlo.lapack(
            "gesdd", (a,), (given, values, left, right, plain), mode=mode
        )
        ok = succeeded(hlo, info, plain)
        found = [where_ok(hlo, ok, x, type_) for x, type_ in zip((u, s, vh), types, strict=True)]
        return found if self.vectors else found[1:2]

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        """The tangents of values need the vectors: one routine gives both."""
        if self.vectors:
            return super().differentiate(primals, tangents)
        outputs = replace(self, vectors=True, complete=False).bind(*primals)
        found = self.jvp(outputs, primals, tangents)
        return outputs[1:2], found[1:2]

    def whole_tangents(self, block: Block, equation: Equation) -> Mapping[Equation, WholeTangent]:
        def function_of(
            function: Block, a: Value, captured: Sequence[Value]
        ) -> tuple[Value, Value]:
            u, values, vh = Svd().bind(a)
            return values, SingularFunction(function)(a, u, values, vh, *captured)

        return whole_tangents(block, equation, 1 if self.vectors else 0, function_of)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        # With M = U^H a' V the values change by the real part of its diagonal.  The vectors turn
        # within their span by F * (M s + s M^H) and F * (s M + M^H s), where F_ij is
        # 1 / (s_j^2 - s_i^2), as in `Eigh`; the imaginary part of the
        # diagonal turns U; what a' adds outside of a span is divided by the value.
        (u, s, vh), (a,), (tangent,) = outputs, primals, tangents
        assert tangent is not None
        facts, (rows, columns) = a.builder.facts, a.shape[-2:]
        wide, tall = at_most(facts, rows, columns), at_most(facts, columns, rows)
        if self.vectors and self.complete and not (wide and tall):
            what = "derivatives of `svd` with full matrices, of a matrix that is not square"
            instead = "use `full_matrices=False`: the columns that complete U or V may be any"
            raise Failure(NotSupported(what=what, instead=instead))
        v = m.adjoint(vh)
        right = m.product(tangent, v)
        if not self.vectors:
            return None, m.real(m.column_sums(m.conjugated(u) * right)), None
        within = m.product(m.adjoint(u), right)
        changes = m.real(m.diagonal(within))
        after, before = m.times_diagonal(within, s), m.diagonal_times(s, within)
        gaps = m.in_rows(s, within) - m.in_columns(s, within)
        sums = m.inverse_where_nonzero(m.in_rows(s, within) + m.in_columns(s, within))
        size = m.largest(s)
        inverse = m.inverse_or_nan(s, m.unresolved(s, size))
        turning = m.by_gaps(after + m.adjoint(after), gaps, size) * sums
        if a.dtype.is_complex:
            on = m.on_diagonal(within)
            angle = m.halved(on - m.conjugated(on))
            turning = turning + m.times_inverses(angle, inverse)
        u_tangent = m.product(u, turning)
        other = m.by_gaps(before + m.adjoint(before), gaps, size) * sums
        v_tangent = m.product(v, other)
        if not wide:
            outside = right - m.product(u, within)
            u_tangent = u_tangent + m.times_inverses(outside, inverse)
        if not tall:
            left = m.product(m.adjoint(tangent), u)
            outside = left - m.product(v, m.adjoint(within))
            v_tangent = v_tangent + m.times_inverses(outside, inverse)
        return u_tangent, changes, m.adjoint(v_tangent)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        # Golub and Van Loan, "Matrix Computations", 4th edition, figure 8.6.1.
        *batch, rows, columns = inputs[0].shape
        inner = minimum(rows, columns)
        outer = rows + columns - inner
        each = outer * inner * inner
        more = inner * inner * inner
        if not self.vectors:
            each, more = each * 4, more * 4 // 3
        elif self.complete:
            each, more = outer * outer * inner * 4 + each * 8, more * 9
        else:
            each, more = each * 14, more * 8
        return size_of(tuple(batch)) * (each + more)


# Pseudo-inverses and least squares, from the singular value decomposition.
#
# Derivatives hold where the rank does not change: G. H. Golub and V. Pereyra, "The differentiation
# of pseudo-inverses and nonlinear least squares problems whose variables separate" (1973).


class OfSingularValues(Composite):
    """Functions that leave out the singular values up to a cutoff relative to the largest.

    The cutoff is an operand: a number for each matrix.
    """

    def check(self, facts: Assumptions, a: ArrayType, cutoff: ArrayType) -> None:
        """Refuse an operand that is not a matrix with a cutoff."""
        self.require_matrix(a)
        if (
            cutoff.dtype is not a.dtype.real
            or cutoff.rank != a.rank - 2
            or not same_sizes(facts, cutoff.shape, a.shape[:-2])
        ):
            self.ill_typed(f"the cutoff of {a} is {cutoff}")


@dataclass(frozen=True)
class PseudoInverse(OfSingularValues, name="pseudo_inverse"):
    """The Moore-Penrose inverse; operands a [m n] and a cutoff, result [n m]."""

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        a, cutoff = operands
        self.check(facts, a, cutoff)
        *batch, rows, columns = a.shape
        return (a.with_shape((*batch, columns, rows)),)

    def define(self, *operands: Value) -> Sequence[Value]:
        a, cutoff = operands
        u, s, vh = Svd().bind(a)
        scaled = m.times_diagonal(m.adjoint(vh), _invert(s, cutoff))
        return (m.product(scaled, m.adjoint(u)),)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        (p,), (a, _), (tangent, _) = outputs, primals, tangents
        if tangent is None:
            return (None,)
        turned, right = m.adjoint(tangent), m.adjoint(p)
        direct = m.product(p, m.product(tangent, p))
        rows = m.product(m.product(p, right), _outside(turned, a, p))
        left = m.product(turned, m.product(right, p))
        columns = left - m.product(p, m.product(a, left))
        return (rows + columns - direct,)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return _cost(inputs[0])


@dataclass(frozen=True)
class LeastSquares(OfSingularValues, name="least_squares"):
    """The shortest x of those with the smallest `|a @ x - b|`; operands a, a cutoff, b.

    a is [m n], b [m k], x [n k].
    """

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        a, cutoff, b = operands
        self.check(facts, a, cutoff)
        self.require_columns(facts, a, b)
        return (b.with_shape((*b.shape[:-2], a.shape[-1], b.shape[-1])),)

    def define(self, *operands: Value) -> Sequence[Value]:
        a, cutoff, b = operands
        u, s, vh = Svd().bind(a)
        inside = m.diagonal_times(_invert(s, cutoff), m.product(m.adjoint(u), b))
        return (m.product(m.adjoint(vh), inside),)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        # As for `p @ b`, where p is the pseudo-inverse.
        (x,), (a, cutoff, b), (moved, _, change) = outputs, primals, tangents
        if moved is None and change is None:
            return (None,)
        p = PseudoInverse()(a, cutoff)
        if moved is None:
            assert change is not None
            return (m.product(p, change),)
        part = m.product(moved, x)
        direct = m.product(p, -part if change is None else change - part)
        turned, right = m.adjoint(moved), m.adjoint(p)
        residual = b - m.product(a, x)
        rows = m.product(p, m.product(right, m.product(turned, residual)))
        left = m.product(turned, m.product(right, x))
        columns = left - m.product(p, m.product(a, left))
        return (direct + (rows + columns),)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        if any(batched[:2]):
            return super().batch(operands, batched, size)
        return (many_columns(self, operands, size),), (True,)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return _cost(inputs[0])


def _invert(s: Value, cutoff: Value) -> Value:
    """`1 / s`, and 0 where s is not above the cutoff."""
    last = s.ndim - 1
    largest = Reduce("maximum", (last,))(s)
    bound = Broadcast(s.shape, tuple(range(last)))(cutoff * largest)
    above = e.greater(s, bound)
    one = s.builder.literal(1, s.dtype)
    inverse = Select()(above, one / Select()(above, s, one), m.zero(s))
    return Select()(e.not_equal(s, s), s, inverse)  # failures are NaN


def _outside(turned: Value, a: Value, p: Value) -> Value:
    """`a'^H @ (1 - a @ p)`."""
    return turned - m.product(m.product(turned, a), p)


def _cost(a: ArrayType) -> Size:
    return Svd().cost((a,), ())
