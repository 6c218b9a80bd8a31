"""Products of matrices and convolutions in ways that are faster on CPUs than those of XLA."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from pscdsl._src.ir.primitive import H, TargetHlo, Types
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives.contractions import DotGeneral, accumulator, widened
from pscdsl._src.primitives.elementwise import Convert, add, multiply
from pscdsl._src.primitives.reductions import Reduce
from pscdsl._src.primitives.shaping import Broadcast, Pad, Reshape, Slice, Transpose, without
from pscdsl._src.primitives.windows import Convolution
from pscdsl._src.targets.cpu.reductions import FOLDED_REDUCTIONS, is_folded
from pscdsl._src.targets.forms import Context, Form
from pscdsl._src.targets.rewriting import Barrier, ReadOften, defined
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dims import numbers
from pscdsl.typing.dtypes import F32, DType

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value


# Products of matrices in ways that are faster on CPUs than those of XLA.
#
# Small ones are sums of outer products, and a vector meets a large matrix by parts of its rows. The
# sizes of operands are numbers here.


SMALL_PRODUCTS = Form(
    "small_products",
    "Products of small matrices are sums of outer products: many of 4x4 in 0.03 of the time; in "
    "a loop one of 8x8 in 0.1, of 16x16 in 0.4.",
)
FEW = 6
"""The most terms of sums that are written out for many matrices together."""
FEW_IN_LOOPS = 16
"""The most terms of sums that are written out for one matrix in each step of a loop."""
LEAST_WORK = 256
"""One product with less work in a loop XLA writes out itself."""
LEAST_WORK_OF_MANY = 1 << 14
"""The least work of many products in a loop."""
MOST_RESULTS = 1 << 12
"""One result of a loop's step is no larger."""
LANES = 8
"""The number of columns that are added up together; otherwise loops take too long."""


@dataclass(frozen=True)
class Extents:
    """The number of products of matrices in a contraction, and their rows, terms and columns."""

    count: int
    rows: int
    terms: int
    columns: int
    turned: bool
    """Whether a column's terms, not a row's, are neighbours in memory."""


def extents(dot: DotGeneral, inputs: Types) -> Extents:
    """Return the extents of a contraction."""
    x, y = (numbers(type_.shape) for type_ in inputs)
    shared, summed = dot.batched, dot.contract
    rows = without(range(len(x)), (*shared[0], *summed[0]))
    columns = without(range(len(y)), (*shared[1], *summed[1]))
    return Extents(
        prod([x[axis] for axis in shared[0]]),
        prod([x[axis] for axis in rows]),
        prod([x[axis] for axis in summed[0]]),
        prod([y[axis] for axis in columns]),
        len(y) - 1 in summed[1],
    )


def is_small(here: Extents, in_loop: bool, dtype: DType) -> bool:
    """Return whether it is better to write out the sums."""
    sides, work = (here.rows, here.columns), here.rows * here.terms * here.columns
    if here.count * work == 0:
        return False
    flat, four = min(sides) == 1, here.terms == 4
    if here.count > 1:
        if max(sides) > (8 if not four else 16 if dtype.bits <= 16 else work):
            return False
        if in_loop:
            much = (four and work >= 64) or here.count * work >= LEAST_WORK_OF_MANY
            return much and 3 <= here.terms <= FEW
        enough = here.count >= (10 if dtype.bits <= 16 else 2) and (flat or work >= 64)
        return enough and 4 <= here.terms <= FEW
    if not in_loop or flat or here.rows * here.columns > MOST_RESULTS:
        return False
    even = here.columns <= 4 or here.columns % LANES == 0
    if here.terms <= 4:
        return ((four and work >= 64) or work >= LEAST_WORK) and (even or dtype.bits > 16)
    most = 16 if dtype.bits <= 16 else 64
    if here.terms > FEW and here.terms % LANES:  # 32x10 by 10x64 took 3 times as long if turned
        most = 16 if here.turned else min(most, 32)
    few = here.terms <= FEW_IN_LOOPS and max(sides) <= most
    return few and work >= LEAST_WORK and even


@SMALL_PRODUCTS.rewrite
def outer_products(
    primitive: DotGeneral, inputs: Types, outputs: Types, here: Context
) -> Block | None:
    """Products of small matrices as sums of outer products."""
    small = is_small(extents(primitive, inputs), here.in_loop, inputs[0].dtype)
    return defined(sum_of_products, primitive, inputs) if small else None


@FOLDED_REDUCTIONS.rewrite
def product_of_vectors(
    primitive: DotGeneral, inputs: Types, outputs: Types, here: Context
) -> Block | None:
    """Rewrite one sum of products as a reduction, which is folded.

    In 64 bits that takes 0.8 of the time at best, and 1.6 times as long where rows are masked.
    """
    extent, dtype = extents(primitive, inputs), accumulator(outputs[0].dtype)
    if extent.count * extent.rows * extent.columns != 1 or dtype.bits > 32:
        return None
    folds = is_folded(here, extent.terms, dtype)
    return defined(inner_product, primitive, inputs) if folds else None


def inner_product(dot: DotGeneral, operands: Sequence[Value]) -> Sequence[Value]:
    """Return the contraction of vectors as a sum of products; 16-bit floats are added up in f32."""
    x, y = operands
    (output,) = dot.type_rule(x.builder.facts, x.type, y.type)
    wide, flat = accumulator(output.dtype), (_size(x.type, 0, x.ndim),)
    factors: list[Value] = []
    for factor, shared, summed in zip(operands, dot.batched, dot.contract, strict=True):
        rest = without(range(factor.ndim), (*shared, *summed))
        turned = Transpose((*shared, *rest, *summed))(_convert(wide, factor))
        factors.append(Reshape(flat)(turned))
    total = Reduce("sum", (0,))(multiply(*factors))
    return (_convert(output.dtype, Reshape(output.shape)(total)),)


def sum_of_products(dot: DotGeneral, operands: Sequence[Value]) -> Sequence[Value]:
    """Return the contraction as a sum of outer products; 16-bit floats are added up in f32.

    The barriers keep operands from being computed once for each product that they are in.
    """
    x, y = [Barrier()(operand) for operand in operands]
    (output,) = dot.type_rule(x.builder.facts, x.type, y.type)
    wide = accumulator(output.dtype)
    (shared, their), (summed, other) = dot.batched, dot.contract
    rows = without(range(x.ndim), (*shared, *summed))
    columns = without(range(y.ndim), (*their, *other))
    x = Transpose((*shared, *rows, *summed))(_convert(wide, x))
    y = Transpose((*their, *other, *columns))(_convert(wide, y))
    count = _size(x.type, 0, len(shared))
    first, last = len(shared), len(shared) + len(rows)
    size, terms = _size(x.type, first, last), _size(x.type, last, x.ndim)
    width = _size(y.type, first + len(summed), y.ndim)
    x = Reshape((count, size, terms))(x)
    y = Reshape((count, terms, width))(y)
    over, total = (count, size, width), None
    for term in range(terms):
        left = Slice((0, 0, term), (count, size, term + 1), (1, 1, 1))(x)
        right = Slice((0, term, 0), (count, term + 1, width), (1, 1, 1))(y)
        left = Broadcast(over, (0, 1))(Reshape((count, size))(left))
        right = Broadcast(over, (0, 2))(Reshape((count, width))(right))
        (product,) = multiply.bind(left, right)
        total = product if total is None else add.bind(total, product)[0]
    assert total is not None
    return (Barrier()(_convert(output.dtype, Reshape(output.shape)(total))),)


def _size(of: ArrayType, start: int, stop: int) -> int:
    """Return the number of elements along some axes, counting those of known size."""
    return prod([size for size in of.shape[start:stop] if isinstance(size, int)])


def _convert(dtype: DType, x: Value) -> Value:
    return x if x.dtype is dtype else Convert(dtype)(x)


ROWS_IN_PARTS = Form(
    "rows_in_parts",
    "A vector times a large matrix is a product for each of some parts of the rows, and the sum of "
    "these, instead of one product, which has no threads: 0.5 to 0.9 of the time from 3 MB on.",
)
MOST_PARTS = 8
MOST_PARTS_OF_TALL = 32
FEWEST_PARTS = 4
LEAST_BYTES = 3 << 20
TALL = 4
"""The least ratio of rows to columns of a tall matrix."""
ROWS_OF_TALL = 1 << 12
"""The least number of rows of a tall matrix."""
WIDE = 4
"""The ratio of columns to rows from which the parts take longer."""
FEWEST_COLUMNS = 16


def parts(dot: DotGeneral, inputs: Types) -> int | None:
    """In how many parts the rows of a contraction are taken; None if it is not of that kind."""
    ranks = [type_.rank for type_ in inputs]
    if dot.batched[0] or sorted(ranks) != [1, 2]:
        return None
    place = ranks.index(2)
    matrix = inputs[place]
    if dot.contract[place] != (0,) or not matrix.dtype.is_float or matrix.dtype.bits < 32:
        return None
    rows, columns = numbers(matrix.shape)
    if rows * columns * matrix.dtype.bits // 8 < LEAST_BYTES or columns < FEWEST_COLUMNS:
        return None
    if rows * WIDE <= columns:
        return None
    tall = rows >= ROWS_OF_TALL and rows >= TALL * columns
    most = MOST_PARTS_OF_TALL if tall else MOST_PARTS
    return next((n for n in range(most, FEWEST_PARTS - 1, -1) if rows % n == 0), None)


@ROWS_IN_PARTS.rewrite
def rows_in_parts(
    primitive: DotGeneral, inputs: Types, outputs: Types, here: Context
) -> Block | None:
    """Return a vector times a large matrix, by parts of the rows."""
    if parts(primitive, inputs) is None:
        return None
    return defined(by_parts, primitive, inputs)


def by_parts(dot: DotGeneral, operands: Sequence[Value]) -> Sequence[Value]:
    """Return the contraction as a batch of contractions, the vector first, and their sum."""
    count = parts(dot, tuple([x.type for x in operands]))
    assert count is not None
    factors: list[Value] = []
    for x in sorted(operands, key=lambda x: x.ndim):
        rows, *columns = numbers(x.shape)
        factors.append(Reshape((count, rows // count, *columns))(x))
    partial = DotGeneral(((1,), (1,)), ((0,), (0,)), dot.result)(*factors)
    return (Reduce("sum", (0,))(partial),)


# Convolutions as sums of products with shifted images, and with channels at the end.
#
# XLA on CPUs gives convolutions to its libraries where channels come last.  It moves them there
# itself, but not in loops and branches, where each product is then computed alone.


CONVOLUTIONS = Form(
    "convolutions",
    "A convolution of few channels, or of each channel separately, is a sum of products with "
    "shifted images: 0.02 to 0.3 of the time; 3x3 on each of 64 channels takes 4 times as long as "
    "NumPy without it.  One in a loop or a branch has its channels moved to the end, for XLA's "
    "libraries: of 32 channels 0.04 of the time, 13 times that of NumPy without it.",
)
MOST_CHANNELS = 4
"""The most channels of the operand that an output of shifted products may need."""
MOST_TERMS = 49
"""The products that are added up for an output, at most; there are operations for each."""
LEAST_PRODUCTS_IN_ALL = 1 << 18
"""The least number of products in all, unless each channel is convolved separately."""
LEAST_ROW = 16
"""The least length of a row: rows are added as a whole."""
MANY_OUTPUTS = 16
"""From more outputs on, XLA's library makes good use of many terms, and of 16-bit floats."""
MANY_TERMS = 32


@CONVOLUTIONS.rewrite
def few_channels(
    primitive: Convolution, inputs: Types, outputs: Types, here: Context
) -> Block | None:
    """Return a convolution of few channels, or of each for itself."""
    gains = are_shifted_products(primitive, inputs[1], outputs[0])
    return defined(shifted_products, primitive, inputs) if gains else None


def are_shifted_products(convolution: Convolution, kernel: ArrayType, output: ArrayType) -> bool:
    """Return whether a convolution of these sizes is faster as such a sum."""
    if convolution.batch_groups != 1 or 0 in output.shape:
        return False
    outputs, taken, *window = numbers(kernel.shape)
    terms = taken * prod(window)
    if taken > MOST_CHANNELS or terms > MOST_TERMS:
        return False
    if convolution.groups != 1:
        return True
    places = numbers(output.shape)
    few = outputs <= MANY_OUTPUTS or (terms <= MANY_TERMS and output.dtype.bits > 16)
    return few and prod(places) * terms >= LEAST_PRODUCTS_IN_ALL and places[-1] >= LEAST_ROW


def shifted_products(convolution: Convolution, operands: Sequence[Value]) -> Sequence[Value]:
    """Return a sum over the elements of the kernel, each times all that it meets as it slides.

    Axes are the batch, the groups, the outputs of a group, then those along which it slides.
    """
    x, kernel = operands
    (output,) = convolution.type_rule(x.builder.facts, x.type, kernel.type)
    wide, places, groups = accumulator(x.dtype), output.shape[2:], convolution.groups
    x, kernel = _convert(wide, x), _convert(wide, kernel)
    outputs, taken, *window = numbers(kernel.shape)
    x = _spread(convolution, x)
    batch, channels, *sizes = x.shape
    each = outputs // groups
    x = Reshape((batch, groups, channels // groups, *sizes))(x)
    kernel = Reshape((groups, each, taken, *window))(kernel)
    over = (batch, groups, each, *places)
    apart = tuple(range(3, len(over)))
    total: Value | None = None
    for channel, *offset in product(*(range(size) for size in (taken, *window))):
        first = [at * step for at, step in zip(offset, convolution.right_dilation, strict=True)]
        pairs = zip(first, numbers(places), convolution.strides, strict=True)
        end = [at + (count - 1) * step + 1 for at, count, step in pairs]
        start, stop = (0, 0, channel, *first), (batch, groups, channel + 1, *end)
        met = Slice(start, stop, (1, 1, 1, *convolution.strides))(x)
        here = (channel, *offset)
        one = [at + 1 for at in here]
        weight = Slice((0, 0, *here), (groups, each, *one), (1,) * kernel.ndim)(kernel)
        met = Broadcast(over, (0, 1, *apart))(Reshape((batch, groups, *places))(met))
        weight = Broadcast(over, (1, 2))(Reshape((groups, each))(weight))
        (term,) = multiply.bind(met, weight)
        total = term if total is None else add.bind(total, term)[0]
    assert total is not None
    return (ReadOften()(_convert(output.dtype, Reshape(output.shape)(total))),)


def _spread(convolution: Convolution, x: Value) -> Value:
    """Return the operand with its padding around and between elements."""
    low, high = ((0, 0, *(pair[i] for pair in convolution.padding)) for i in (0, 1))
    between = (0, 0, *(step - 1 for step in convolution.left_dilation))
    if not any((*low, *high, *between)):
        return x
    return Pad(low, high, between)(x, x.builder.literal(0, x.dtype))


LEAST_PRODUCTS = 32
"""With fewer pairs of a channel and an output the libraries are no faster."""
LEAST_OUTPUTS = 8
"""Nor with fewer outputs."""
LEAST_WORK_OF_WINDOWS = 1 << 18
"""Loops that do less become one native function, without libraries."""
MOST_AXES = 3
"""The most spatial axes: the libraries support no more."""


@CONVOLUTIONS.translation
def channels_last(
    primitive: Convolution, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H] | None:
    """Emit the convolution with channels moved to the end and back."""
    (output,) = outputs
    if not hlo.nested or not _gains(primitive, inputs[1], output):
        return None
    wide = accumulator(output.dtype)
    result = output.with_dtype(wide)
    operands = widened(hlo, operands, inputs, wide)
    types = [type_.with_dtype(wide) for type_ in inputs]
    axes = [str(axis) for axis in range(output.rank - 2)]
    spatial = tuple(range(2, output.rank))
    to_last = (0, *spatial, 1)
    moved = [
        _transpose(hlo, x, type_, order)
        for x, type_, order in zip(operands, types, (to_last, (*spatial, 1, 0)), strict=True)
    ]
    seen, kernel = ", ".join(["b", *axes, "f"]), ", ".join([*axes, "i", "o"])
    attributes = primitive.attributes(hlo, f"[{seen}]x[{kernel}]->[{seen}]")
    turned = result.with_shape(tuple([result.shape[axis] for axis in to_last]))
    (found,) = hlo.op("convolution", moved, (turned,), attributes)
    found = _transpose(hlo, found, turned, (0, output.rank - 1, *range(1, output.rank - 1)))
    return (hlo.convert(found, output),)


def _gains(convolution: Convolution, kernel: ArrayType, output: ArrayType) -> bool:
    """Return whether it is better to move the channels to the end."""
    if accumulator(output.dtype) is not F32 or 0 in output.shape:
        return False
    if convolution.batch_groups != 1 or not 3 <= kernel.rank <= 2 + MOST_AXES:
        return False
    outputs, taken, *window = numbers(kernel.shape)
    (groups,) = numbers((convolution.groups,))
    each = outputs // groups
    work = prod(numbers(output.shape)) * taken * prod(window)
    return (
        each >= LEAST_OUTPUTS and each * taken >= LEAST_PRODUCTS and work >= LEAST_WORK_OF_WINDOWS
    )


def _transpose(hlo: TargetHlo, x: H, given: ArrayType, order: Sequence[int]) -> H:
    wanted = given.with_shape(tuple([given.shape[axis] for axis in order]))
    return hlo.op("transpose", (x,), (wanted,), {"permutation": hlo.i64_array(order)})[0]
