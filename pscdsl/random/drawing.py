"""Keys, and numbers of equal chances drawn from them: bits, floats, integers; rejection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from pscdsl._src.ir.broadcasting import broadcast_shapes, broadcast_to
from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.ir.numpy_dtypes import finfo, from_numpy, to_numpy
from pscdsl._src.language.declarations import completed
from pscdsl._src.language.meanings import Meaning, describe, function
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.random import FoldIn, RandomBits, SeedKey, SplitKey
from pscdsl._src.primitives.reductions import Reduce
from pscdsl._src.primitives.while_loop import While
from pscdsl.numpy.calling import as_operand, as_shape, is_array
from pscdsl.numpy.creation import asarray
from pscdsl.numpy.elementwise import literal
from pscdsl.numpy.shorthand import at, cast, where
from pscdsl.typing.array_types import ArrayType, Shape
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.element_types import DtypeNotAccepted, DtypesDiffer, ScalarDoesNotFit
from pscdsl.typing.codes.keys import NotOneKey
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import BF16, BOOL, I32, I64, KEY, U8, U16, U32, U64, DType, Kind
from pscdsl.typing.python_containers import is_constant, is_sequence

# What all functions of this package share: their key, a shape, a dtype, operands.


def of_key(name: str) -> Callable[[Callable[..., Any]], Meaning]:
    """Give a function its meaning, whose parameters begin with the builder and one key."""
    qualified = f"pscdsl.random.{name}"

    def declare(body: Callable[..., Any]) -> Meaning:
        body = completed(qualified, body)

        @wraps(body)
        def checked(here: Builder, key: Any, *args: Any, **kwargs: Any) -> Any:
            if not isinstance(key, Value) or key.dtype is not KEY or key.ndim:
                raise Failure(NotOneKey(function=f"psc.random.{name}", found=describe(key)))
            found = body(here, key, *args, **kwargs)
            given = (*args, *kwargs.values())
            if isinstance(found, Value) and found.dtype.is_number and not any(map(_says, given)):
                program = here.program
                program.mark_also(found, program.site("draws"))
            return found

        return function(qualified)(checked)

    return declare


def _says(argument: Any) -> bool:
    """Return whether an argument says in which dtype numbers are drawn."""
    return isinstance(argument, Value | DType | str | type) or is_constant(argument)


def subkeys(key: Value, count: int) -> list[Value]:
    """An array of `count` keys, derived from one."""
    keys = SplitKey((count,))(key)
    return [at(keys, 0, index) for index in range(count)]


def float_dtype(here: Builder, name: str, dtype: Any, operands: Sequence[Any] = ()) -> DType:
    """The floating-point dtype that is asked for, or that of the operands, or one chosen here."""
    wanted = dtype or dtype_of(operands) or drawn_in(here, Kind.FLOAT)
    return required(name, wanted, "floating")


def drawn_in(here: Builder, kind: Kind) -> DType:
    """The dtype of numbers of a kind that nothing else decides."""
    return here.program.choose(here.program.site("draws"), kind)


def dtype_of(operands: Sequence[Any]) -> DType | None:
    """The dtype of the first array among parameters, captured ones included; None for numbers."""
    for each in operands:
        if isinstance(each, Value):
            return each.dtype
        if is_constant(each):
            return from_numpy(each.dtype)
    return None


def required(name: str, dtype: DType, accepts: str) -> DType:
    """A dtype that a function accepts."""
    if not e.ACCEPTS[accepts](dtype):
        given = ArrayType(dtype)
        raise Failure(DtypeNotAccepted(function=f"psc.random.{name}", given=given, accepts=accepts))
    return dtype


def array_of(here: Builder, x: Any) -> Value | Weak:
    """A parameter as an array; a list of numbers or arrays is one."""
    if is_sequence(x):
        found: Value | Weak = asarray(here, x)
        return found
    if not is_array(x):
        problem = f"takes numbers and arrays as parameters, not {describe(x)}"
        raise Failure(BadArguments(function="psc.random", problem=problem))
    return as_operand(here, x)


def operand(here: Builder, x: Any, dtype: DType) -> Value:
    """A parameter of a distribution in the dtype that is drawn in."""
    given = array_of(here, x)
    if isinstance(given, Weak):
        return given.at(dtype)
    here.program.want(given, dtype)
    if given.dtype is not dtype:
        raise Failure(DtypesDiffer(left=given.type, right=given.type.with_dtype(dtype)))
    return given


def shape_of(name: str, facts: Assumptions, shape: Any, operands: Sequence[Value] = ()) -> Shape:
    """The shape that is asked for, or that to which the operands broadcast."""
    if shape is None:
        return broadcast_shapes(facts, *(each.shape for each in operands))
    return as_shape(shape, f"psc.random.{name}", facts)


def fitted(operands: Sequence[Value], shape: Shape) -> list[Value]:
    """Operands of a shape, those of rank 0 left as they are: they fit everywhere."""
    return [broadcast_to(each, shape) if each.shape else each for each in operands]


# Keys: from a seed, from a key, from a key and a number.


@function("pscdsl.random.key")
def _key(here: Builder, seed: Any) -> Value:
    return SeedKey()(_integer(here, "key", seed))


@of_key("split")
def _split(here: Builder, key: Value, num: Any) -> Value:
    return SplitKey(as_shape(num, "psc.random.split", here.facts))(key)


@of_key("fold_in")
def _fold_in(here: Builder, key: Value, data: Any) -> Value:
    return FoldIn()(key, _integer(here, "fold_in", data))


def _integer(here: Builder, name: str, x: Any) -> Value:
    """An integer scalar, of the smallest of i32, i64 and u64 that holds it if it is a number."""
    if isinstance(x, bool):
        raise Failure(BadArguments(function=f"psc.random.{name}", problem="takes an integer"))
    if isinstance(x, int):
        return here.literal(x, _dtype_for(x))
    given = as_operand(here, x)
    value = given.default() if isinstance(given, Weak) else given
    if not value.dtype.is_integer or value.ndim:
        accepts = "an integer scalar"
        raise Failure(
            DtypeNotAccepted(function=f"psc.random.{name}", given=value.type, accepts=accepts)
        )
    return value


def _dtype_for(number: int) -> DType:
    for dtype in (I32, I64, U64):
        low, high = dtype.range
        if low <= number <= high:
            return dtype
    raise Failure(ScalarDoesNotFit(scalar="an integer this large", dtype=U64))


# Bits as numbers: uniform ones, and coins.


UNSIGNED = {8: U8, 16: U16, 32: U32, 64: U64}


@of_key("bits")
def _bits(here: Builder, key: Value, shape: Any, dtype: Any) -> Value:
    wanted = dtype or U32
    if wanted not in UNSIGNED.values():
        raise Failure(BadArguments(function="psc.random.bits", problem="takes an unsigned dtype"))
    return RandomBits(shape_of("bits", here.facts, shape), wanted)(key)


def mantissa(dtype: DType) -> int:
    """Return how many bits of a float stand behind the point."""
    return int(finfo(dtype).nmant)


def unit(key: Value, shape: Shape, dtype: DType) -> Value:
    """Multiples of the dtype's epsilon from 0 up to, not including, 1, each as likely.

    The bits behind the point of a number from 1 to 2, minus 1.
    """
    width = 8 if dtype is BF16 else dtype.bits
    random = RandomBits(shape, UNSIGNED[width])(key)
    place = UNSIGNED[dtype.bits]
    kept = e.right_shift(random, width - mantissa(dtype))
    one = int(np.asarray(1, to_numpy(dtype)).view(f"u{dtype.bits // 8}"))
    between = e.Bitcast(dtype)(cast(kept, place) | one)
    return between - 1.0


def interval(key: Value, shape: Shape, low: Value, high: Value) -> Value:
    """Uniform numbers from `low` up to, never reaching, `high`."""
    return between(unit(key, shape, low.dtype), low, high)


def between(share: Value, low: Value, high: Value) -> Value:
    """The number that has a share, below 1, of an interval below it; never the upper end."""
    width = high - low
    scaled = share * width + low
    if _may_overflow(low, high):
        apart = (1.0 - share) * low + share * high
        scaled = where(e.is_finite(width), scaled, apart)
    below = e.nextafter(high, low)  # rounding may reach the end
    return e.maximum(low, e.minimum(scaled, below))


def _may_overflow(low: Value, high: Value) -> bool:
    """Return whether the width of an interval may be infinite though its ends are not."""
    first, last = literal(low), literal(high)
    if not isinstance(first, int | float) or not isinstance(last, int | float):
        return True
    return not abs(last - first) <= float(finfo(low.dtype).max)


@of_key("uniform")
def _uniform(here: Builder, key: Value, shape: Any, dtype: Any, minval: Any, maxval: Any) -> Value:
    kind = float_dtype(here, "uniform", dtype, (minval, maxval))
    sizes = shape_of("uniform", here.facts, shape)
    if minval == 0 and maxval == 1 and not isinstance(minval, Value | Weak):
        return unit(key, sizes, kind)
    low, high = fitted([operand(here, each, kind) for each in (minval, maxval)], sizes)
    return interval(key, sizes, low, high)


@of_key("bernoulli")
def _bernoulli(here: Builder, key: Value, p: Any, shape: Any) -> Value:
    chance = operand(here, p, float_dtype(here, "bernoulli", None, (p,)))
    sizes = shape_of("bernoulli", here.facts, shape, (chance,))
    (fitting,) = fitted([chance], sizes)
    return e.less(unit(key, sizes, chance.dtype), fitting)


@of_key("rademacher")
def _rademacher(here: Builder, key: Value, shape: Any, dtype: Any) -> Value:
    wanted = required("rademacher", dtype or drawn_in(here, Kind.INT), "numeric")
    if wanted.is_unsigned:
        problem = "takes a dtype that holds -1"
        raise Failure(BadArguments(function="psc.random.rademacher", problem=problem))
    sizes = shape_of("rademacher", here.facts, shape)
    coin = e.right_shift(RandomBits(sizes, U32)(key), 31)
    sign = 1 - 2 * cast(coin, I32)
    return cast(sign, wanted)


# Integers of a range, as likely each as the others.


LOW_HALF = 0xFFFFFFFF


@of_key("randint")
def _randint(here: Builder, key: Value, shape: Any, minval: Any, maxval: Any, dtype: Any) -> Value:
    wanted = dtype or dtype_of((minval, maxval)) or drawn_in(here, Kind.INT)
    kind = required("randint", wanted, "integer")
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
    found: Value = offset + base  # modulo the width, which is right whatever the signs are
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
    length = cast(_as(unsigned, stop - start), _word(dtype))
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
        carried = e.right_shift(low * wide, 32)
        return e.right_shift(high * wide + carried, 32)
    upper, lower = (RandomBits(shape, U64)(each) for each in subkeys(key, 2))
    carried = _upper_product(lower, length)
    total = upper * length + carried
    overflow = cast(e.less(total, carried), U64)
    found = _upper_product(upper, length) + overflow
    return found


def _halves(x: Value) -> tuple[Value, Value]:
    return e.right_shift(x, 32), x & LOW_HALF


def _upper_product(x: Value, y: Value) -> Value:
    """The upper half of the product of two u64."""
    (x1, x0), (y1, y0) = _halves(x), _halves(y)
    low, cross, other = x0 * y0, x0 * y1, x1 * y0
    middle = e.right_shift(low, 32) + _halves(cross)[1]
    middle = middle + _halves(other)[1]
    high = x1 * y1 + _halves(cross)[0]
    high = high + _halves(other)[0]
    return high + _halves(middle)[0]


# Loops of the library's own, and sampling by rejection: until each element has been accepted.


Values = Sequence[Value]


def loop(
    carry: Values, going: Callable[[Values], Value], step: Callable[[Values], Values]
) -> Values:
    """The carry after steps for as long as it says so."""
    here = carry[0].builder.program.current
    with here.program.inside() as inner:
        params = [inner.parameter(each.type) for each in carry]
        body, by_body = inner.finish(params, step(params))
    with here.program.inside() as inner:
        params = [inner.parameter(each.type) for each in carry]
        cond, by_cond = inner.finish(params, [going(params)])
    primitive = While(cond, body, len(by_cond), len(by_body))
    return here.bind(primitive, (*by_cond, *by_body, *carry))


def some(condition: Value) -> Value:
    """Return whether it holds for any element."""
    return Reduce("any", tuple(range(condition.ndim)))(condition) if condition.ndim else condition


def accepted(
    key: Value, shape: Shape, dtype: DType, propose: Callable[[Value], tuple[Value, Value]]
) -> Value:
    """The first proposal for each element that is accepted; `propose` gives both from a key."""
    here = key.builder.program.current

    def step(state: Values) -> Values:
        mine, open_, values = state
        following, used = subkeys(mine, 2)
        proposed, good = propose(used)
        return following, open_ & ~good, where(open_, proposed, values)

    start = (key, here.full(True, shape, BOOL), here.full(0.0, shape, dtype))
    return loop(start, lambda state: some(state[1]), step)[2]
