"""The methods of NumPy's ufuncs: `np.maximum.reduce`, `np.add.accumulate`, `np.multiply.outer`.

As in NumPy, a method goes along the first axis where no other is named.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.program import Scalar
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl._src.primitives.reductions import Accumulation, Cumulative, Extreme, Reduce
from pscdsl.numpy import reductions
from pscdsl.numpy.axes import Axes, normalize_axes, normalize_axis
from pscdsl.numpy.calling import of_numbers
from pscdsl.numpy.cumulative import running
from pscdsl.numpy.elementwise import REAL, require
from pscdsl.numpy.reductions import finished
from pscdsl.numpy.shorthand import cast, reshaped, truth
from pscdsl.typing.dtypes import BOOL, I8, DType

Bits: TypeAlias = Literal["and", "or", "xor"]

OUTER = (
    "add subtract multiply divide true_divide floor_divide remainder mod power float_power "
    "maximum minimum fmax fmin equal not_equal less less_equal greater greater_equal "
    "logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor arctan2 hypot "
    "logaddexp"
)
"""The functions of two arrays that can be applied to every pair of elements."""


def _total(name: str, whole: Meaning, kind: Accumulation) -> None:
    @of_numbers(f"numpy.{name}.reduce", together=("array",), scalars=("initial",))
    def reduce(
        array: Value,
        axis: Axes = 0,
        dtype: DType | None = None,
        *,
        keepdims: bool = False,
        initial: Value | Scalar | None = None,
    ) -> Any:
        """All elements along axes combined."""
        return whole(array, axis, dtype, keepdims=keepdims, initial=initial)

    @of_numbers(f"numpy.{name}.accumulate", together=("array",))
    def accumulate(array: Value, axis: int = 0, dtype: DType | None = None) -> Value:
        """Each element along an axis combined with all before it."""
        place = normalize_axis(axis, array.ndim, f"numpy.{name}.accumulate")
        return running(array, kind, place, dtype, f"numpy.{name}.accumulate")


def _extremum(name: str, whole: Meaning, kind: Extreme) -> None:
    @of_numbers(f"numpy.{name}.reduce", together=("array",), scalars=("initial",))
    def reduce(
        array: Value,
        axis: Axes = 0,
        *,
        keepdims: bool = False,
        initial: Value | Scalar | None = None,
    ) -> Any:
        """The largest or smallest along axes."""
        return whole(array, axis, keepdims=keepdims, initial=initial)

    @of_numbers(f"numpy.{name}.accumulate", together=("array",))
    def accumulate(array: Value, axis: int = 0) -> Value:
        """The largest or smallest up to each element along an axis."""
        require(f"numpy.{name}.accumulate", array, REAL)
        place = normalize_axis(axis, array.ndim, f"numpy.{name}.accumulate")
        return _running_extremum(array, kind, place)


def _running_extremum(x: Value, kind: Extreme, axis: int) -> Value:
    return (
        cast(Cumulative(kind, axis)(cast(x, I8)), BOOL)
        if x.dtype is BOOL
        else (Cumulative(kind, axis)(x))
    )


def _truth(name: str, whole: Meaning, kind: Extreme) -> None:
    @of_numbers(f"numpy.{name}.reduce", alone=("array",))
    def reduce(here: Builder, array: Value, axis: Axes = 0, *, keepdims: bool = False) -> Any:
        """Whether all or any along axes are other than zero."""
        return whole.apply(here, (array, axis), {"keepdims": keepdims})

    @of_numbers(f"numpy.{name}.accumulate", alone=("array",))
    def accumulate(here: Builder, array: Value, axis: int = 0) -> Value:
        """Whether all or any up to each element along an axis are other than zero."""
        place = normalize_axis(axis, array.ndim, f"numpy.{name}.accumulate")
        return _running_extremum(truth(array), kind, place)


def _bits(name: str, kind: Bits) -> None:
    @of_numbers(f"numpy.{name}.reduce", together=("array",))
    def reduce(array: Value, axis: Axes = 0, *, keepdims: bool = False) -> Value:
        """The bits of all elements along axes combined."""
        require(f"numpy.{name}.reduce", array, "integer or bool")
        axes = normalize_axes(axis, array.ndim, f"numpy.{name}.reduce")
        if not axes:
            return array
        return finished(Reduce(kind, axes)(array), array.shape, axes, keepdims)


def _outer(name: str) -> None:
    @of_numbers(f"numpy.{name}.outer", together=("A", "B"))
    def outer(here: Builder, A: Value, B: Value) -> Any:
        """The function of each element of A with each of B."""
        pairwise = MEANINGS[f"numpy.{name}"]
        assert isinstance(pairwise, Meaning)
        return pairwise.apply(here, (reshaped(A, A.shape + (1,) * B.ndim), B), {})


_total("add", reductions.sum, "sum")
_total("multiply", reductions.prod, "product")
_extremum("maximum", reductions.max, "maximum")
_extremum("minimum", reductions.min, "minimum")
_truth("logical_and", reductions.all, "minimum")
_truth("logical_or", reductions.any, "maximum")
_bits("bitwise_and", "and")
_bits("bitwise_or", "or")
_bits("bitwise_xor", "xor")
for _name in OUTER.split():
    _outer(_name)
