"""Integers of a range, as likely each as the others."""

from __future__ import annotations

from typing import Any

from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.random import RandomBits
from pscdsl.numpy.openness import as_dtype
from pscdsl.numpy.shorthand import cast, where
from pscdsl.random.drawing import dtype_of, fitted, of_key, operand, required, shape_of, subkeys
from pscdsl.random.intervals import UNSIGNED
from pscdsl.typing.arrays import Shape
from pscdsl.typing.codes.dtypes import ScalarDoesNotFit
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import I32, U32, U64, DType

LOW_HALF = 0xFFFFFFFF


@of_key("randint")
def randint(
    here: Builder, key: Value, shape: Any, minval: Any, maxval: Any, dtype: Any = None
) -> Value:
    """Integers from `minval` up to, not including, `maxval`."""
    kind = required("randint", as_dtype(dtype) or dtype_of((minval, maxval)) or I32, "integer")
    sizes = shape_of("randint", here.facts, shape)
    return integers(here, key, sizes, minval, maxval, kind)


def integers(here: Builder, key: Value, shape: Shape, low: Any, high: Any, dtype: DType) -> Value:
    """Integers of a range; `low` and `high` are numbers, sizes or arrays.

    Where `high` is not above `low`, which only the run can tell of arrays, they are `low`.
    """
    base, length = _known(here, low, high, dtype) or _computed(here, shape, low, high, dtype)
    if length is None:
        offset = RandomBits(shape, base.dtype)(key)
    else:
        offset = cast(_below(key, shape, length), base.dtype)
    found: Value = e.add(offset, base)  # modulo the width, which is right whatever the signs are
    return _as(dtype, found)


def _known(here: Builder, low: Any, high: Any, dtype: DType) -> tuple[Value, Value | None] | None:
    """The start, unsigned, and the length of a range of numbers; no length if it holds all."""
    if not isinstance(low, int) or not isinstance(high, int):
        return None
    smallest, largest = dtype.range
    for each, bound in ((low, largest), (high, largest + 1)):
        if not smallest <= each <= bound:
            raise Failure(ScalarDoesNotFit(scalar=repr(each), dtype=dtype))
    if high <= low:
        problem = f"takes a range, and there is nothing from {low} up to {high}"
        raise Failure(BadArguments(function="psc.random.randint", problem=problem))
    count = 1 << dtype.bits
    start = here.literal(low % count, UNSIGNED[dtype.bits])
    return start, None if high - low == count else here.literal(high - low, _word(dtype))


def _computed(
    here: Builder, shape: Shape, low: Any, high: Any, dtype: DType
) -> tuple[Value, Value | None]:
    """The start, unsigned, and the length of a range that the program computes."""
    start, stop = fitted([operand(here, each, dtype) for each in (low, high)], shape)
    unsigned = UNSIGNED[dtype.bits]
    length = cast(_as(unsigned, e.subtract(stop, start)), _word(dtype))
    length = where(e.less(start, stop), length, here.literal(1, length.dtype))
    return _as(unsigned, start), length


def _word(dtype: DType) -> DType:
    return U64 if dtype.bits == 64 else U32


def _as(dtype: DType, x: Value) -> Value:
    return x if x.dtype is dtype else e.Bitcast(dtype)(x)


def _below(key: Value, shape: Shape, length: Value) -> Value:
    """Numbers below a length: its product with random bits of twice its width, the upper part.

    So the probability of each is off by less than 2**-64, and by nothing for powers of 2.
    """
    if length.dtype is U32:
        wide = cast(length, U64)
        high, low = _halves(RandomBits(shape, U64)(key))
        carried = e.right_shift(e.multiply(low, wide), 32)
        found: Value = e.right_shift(e.add(e.multiply(high, wide), carried), 32)
        return found
    upper, lower = (RandomBits(shape, U64)(each) for each in subkeys(key, 2))
    carried = _upper_product(lower, length)
    total = e.add(e.multiply(upper, length), carried)
    overflow = cast(e.less(total, carried), U64)
    found = e.add(_upper_product(upper, length), overflow)
    return found


def _halves(x: Value) -> tuple[Value, Value]:
    return e.right_shift(x, 32), e.bitwise_and(x, LOW_HALF)


def _upper_product(x: Value, y: Value) -> Value:
    """The upper half of the product of two u64."""
    (x1, x0), (y1, y0) = _halves(x), _halves(y)
    low, cross, other = e.multiply(x0, y0), e.multiply(x0, y1), e.multiply(x1, y0)
    middle = e.add(e.right_shift(low, 32), _halves(cross)[1])
    middle = e.add(middle, _halves(other)[1])
    high = e.add(e.multiply(x1, y1), _halves(cross)[0])
    high = e.add(high, _halves(other)[0])
    found: Value = e.add(high, _halves(middle)[0])
    return found
