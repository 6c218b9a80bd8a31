"""Slices, shapes, products and reductions along axes that are named."""

import numpy as np

import pscdsl as psc
from jax._checks import NUMBER, WHOLE, axis_of, of_kinds, of_one_dtype


def _starts(starts, count):
    if isinstance(starts, (tuple, list)):
        return tuple(starts)
    return tuple([starts[at] for at in range(count)])


def _from_start(starts, shape):
    """Return places from the start; negative ones count from the end."""
    return tuple([_from_end(start, size) for start, size in zip(starts, shape)])


def _from_end(start, size):
    start = of_kinds(start, WHOLE)
    if np.issubdtype(start.dtype, np.unsignedinteger):
        return start
    return np.where(start < 0, start + size, start)


def dynamic_slice(operand, start_indices: object, slice_sizes, *, allow_negative_indices=True):
    """Return a part of an array; the starts are moved to where it fits."""
    starts = _starts(start_indices, len(slice_sizes))
    return psc.dynamic_slice(operand, _from_start(starts, np.shape(operand)), tuple(slice_sizes))


def dynamic_slice_in_dim(operand, start_index, slice_size, axis=0, *, allow_negative_indices=True):
    """Return a part along an axis."""
    axis = axis_of(axis, np.ndim(operand))
    starts, sizes = [0] * np.ndim(operand), list(np.shape(operand))
    starts[axis], sizes[axis] = start_index, slice_size
    return dynamic_slice(operand, starts, sizes)


def dynamic_index_in_dim(operand, index, axis=0, keepdims=True, *, allow_negative_indices=True):
    """Return one place along an axis."""
    found = dynamic_slice_in_dim(operand, index, 1, axis)
    return found if keepdims else np.squeeze(found, axis)


def dynamic_update_slice(operand, update, start_indices: object, *, allow_negative_indices=True):
    """Return an array with another part."""
    operand, update = of_one_dtype(operand, update)
    if np.ndim(operand) != np.ndim(update):
        raise TypeError("update must have the same number of axes")
    starts = _starts(start_indices, np.ndim(operand))
    return psc.dynamic_update(operand, update, _from_start(starts, np.shape(operand)))


def dynamic_update_slice_in_dim(operand, update, start_index, axis, *, allow_negative_indices=True):
    """Return an array with another part along an axis."""
    starts = [0] * np.ndim(operand)
    starts[axis_of(axis, np.ndim(operand))] = start_index
    return dynamic_update_slice(operand, update, starts)


def dynamic_update_index_in_dim(operand, update, index, axis, *, allow_negative_indices=True):
    """Return an array with another place along an axis."""
    if np.ndim(update) != np.ndim(operand):
        update = np.expand_dims(update, axis)
    return dynamic_update_slice_in_dim(operand, update, index, axis)


def slice(operand, start_indices, limit_indices, strides=None):
    """Return a part of an array."""
    strides = [1] * np.ndim(operand) if strides is None else strides
    for each in (start_indices, limit_indices, strides):
        if len(each) != np.ndim(operand):
            raise TypeError("indices must be as many as axes")
    found = operand
    for axis, (start, stop, step) in enumerate(zip(start_indices, limit_indices, strides)):
        found = slice_in_dim(found, start, stop, step, axis)
    return found


def slice_in_dim(operand, start_index, limit_index, stride=1, axis=0):
    """Return a part along an axis."""
    axis = axis_of(axis, np.ndim(operand))
    size = np.shape(operand)[axis]
    start = 0 if start_index is None else start_index
    start = start + size if start < 0 else start
    limit = size if limit_index is None else limit_index
    limit = limit + size if limit < 0 else limit
    assert 0 <= start
    assert start <= limit
    assert limit <= size
    return np.moveaxis(np.moveaxis(operand, axis, 0)[start:limit:stride], 0, axis)


def index_in_dim(operand, index, axis=0, keepdims=True):
    """Return one place along an axis."""
    found = np.moveaxis(operand, axis, 0)[index]
    return np.expand_dims(found, axis) if keepdims else found


def broadcast(operand, sizes):
    """Return an array with new leading axes."""
    return np.broadcast_to(operand, (*sizes, *np.shape(operand)))


def broadcast_in_dim(operand, shape, broadcast_dimensions):
    """Return an array with a shape; each axis goes to a place."""
    sizes = [1] * len(shape)
    for axis, size in zip(broadcast_dimensions, np.shape(operand)):
        sizes[axis] = size
    return np.broadcast_to(np.reshape(operand, tuple(sizes)), tuple(shape))


def broadcasted_iota(dtype, shape, dimension):
    """Return places along an axis."""
    sizes = [1] * len(shape)
    sizes[dimension] = shape[dimension]
    return np.broadcast_to(np.reshape(iota(dtype, shape[dimension]), tuple(sizes)), tuple(shape))


def iota(dtype, size):
    """Return the numbers from 0."""
    return np.arange(size).astype(dtype)


def full(shape, fill_value, dtype=None):
    """Return an array with one value."""
    made = np.asarray(fill_value)
    return np.full(shape, made if dtype is None else made.astype(dtype))


def full_like(x: object, fill_value, dtype=None, shape=None):
    """Return an array with one value, of the shape and dtype of another one."""
    x = np.asarray(x)
    return full(
        x.shape if shape is None else shape, fill_value, x.dtype if dtype is None else dtype
    )


def expand_dims(array, dimensions):
    """Return an array with new axes."""
    return np.expand_dims(array, tuple(dimensions))


def squeeze(array, dimensions):
    """Return an array without some axes."""
    return np.squeeze(array, tuple(dimensions))


def reshape(operand, new_sizes, dimensions=None):
    """Return the elements in another shape."""
    operand = operand if dimensions is None else np.transpose(operand, dimensions)
    return np.reshape(operand, tuple(new_sizes))


def rev(operand, dimensions):
    """Return the elements in reverse along axes."""
    return np.flip(operand, tuple(dimensions))


def transpose(operand, permutation):
    """Return an array with its axes in another order."""
    return np.transpose(operand, tuple(permutation))


def concatenate(operands: object, dimension):
    """Return arrays one after the other."""
    return np.concatenate(of_one_dtype(*operands), axis=axis_of(dimension, np.ndim(operands[0])))


def pad(operand, padding_value, padding_config):
    """Return an array with more elements around it, and none between."""
    if not all([inner == 0 for _, _, inner in padding_config]):
        return psc.stop_gradient.padding_between_elements
    operand, value = of_one_dtype(operand, padding_value)
    if len(padding_config) != np.ndim(operand) or np.ndim(value):
        raise TypeError("padding must be as many as axes, its value a scalar")
    return np.pad(
        operand,
        tuple([(low, high) for low, high, _ in padding_config]),
        constant_values=value,
    )


def _preferred(operands, dtype):
    """Return operands in the dtype of their product."""
    return operands if dtype is None else [np.asarray(each).astype(dtype) for each in operands]


def dot(lhs, rhs, *, precision=None, preferred_element_type=None):
    """Return the product of vectors and matrices."""
    if not 1 <= np.ndim(lhs) <= 2 or not 1 <= np.ndim(rhs) <= 2:
        raise TypeError("arguments must be vectors or matrices")
    return np.dot(*_preferred((lhs, rhs), preferred_element_type))


def batch_matmul(lhs, rhs, precision=None):
    """Return the products of matrices."""
    return np.matmul(lhs, rhs)


_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def dot_general(
    lhs, rhs, dimension_numbers, precision=None, preferred_element_type=None, out_sharding=None
):
    """Return the product over some axes, beside others."""
    (left, right), (left_batch, right_batch) = dimension_numbers
    first = list(_LETTERS[: np.ndim(lhs)])
    second = list(_LETTERS[np.ndim(lhs) : np.ndim(lhs) + np.ndim(rhs)])
    for own, other in [*zip(left, right), *zip(left_batch, right_batch)]:
        second[other] = first[own]
    batch = [first[axis] for axis in left_batch]
    free = [first[axis] for axis in range(len(first)) if axis not in (*left, *left_batch)]
    other = [second[axis] for axis in range(len(second)) if axis not in (*right, *right_batch)]
    text = "".join(first) + "," + "".join(second) + "->" + "".join([*batch, *free, *other])
    return np.einsum(text, *_preferred((lhs, rhs), preferred_element_type))


def _along(function, operand, axis, reverse):
    if not reverse:
        return function(operand, axis)
    return np.flip(function(np.flip(operand, axis), axis), axis)


def cumsum(operand, axis=0, reverse=False):
    """Return running sums."""
    dtype = of_kinds(operand, NUMBER).dtype
    return _along(lambda x, axis: np.cumsum(x, axis, dtype), operand, axis, reverse)


def cumprod(operand, axis=0, reverse=False):
    """Return running products."""
    dtype = of_kinds(operand, NUMBER).dtype
    return _along(lambda x, axis: np.cumprod(x, axis, dtype), operand, axis, reverse)


def cummax(operand, axis=0, reverse=False):
    """Return running maxima."""
    return _along(np.maximum.accumulate, of_kinds(operand, NUMBER), axis, reverse)


def cummin(operand, axis=0, reverse=False):
    """Return running minima."""
    return _along(np.minimum.accumulate, of_kinds(operand, NUMBER), axis, reverse)


def cumlogsumexp(operand, axis=0, reverse=False):
    """Return running sums of exponentials, as logarithms."""

    def running(x, axis):
        return psc.associative_scan(np.logaddexp, x, axis=axis)

    return _along(running, operand, axis, reverse)


def argmax(operand, axis, index_dtype):
    """Return the place of the first largest element."""
    return np.argmax(operand, axis).astype(index_dtype)


def argmin(operand, axis, index_dtype):
    """Return the place of the first least element."""
    return np.argmin(operand, axis).astype(index_dtype)


def reduce_max(operand, axes):
    """Return the largest elements."""
    return np.max(operand, axis=tuple(axes))


def reduce_min(operand, axes):
    """Return the least elements."""
    return np.min(operand, axis=tuple(axes))


def reduce_sum(operand, axes):
    """Return sums, in the dtype of the array."""
    operand = of_kinds(operand, NUMBER)
    return np.sum(operand, axis=tuple(axes)).astype(operand.dtype)


def reduce_prod(operand, axes):
    """Return products, in the dtype of the array."""
    operand = of_kinds(operand, NUMBER)
    return np.prod(operand, axis=tuple(axes)).astype(operand.dtype)


def sort(operand: object, dimension=-1, is_stable=True, num_keys=1):
    """Return the elements in order; of several arrays the first has the order."""
    if not isinstance(operand, (tuple, list)):
        return np.sort(operand, axis=dimension)
    for each in operand:
        if np.shape(each) != np.shape(operand[0]):
            raise TypeError("arguments must have equal shapes")
    keys = operand[:num_keys][::-1]
    first = operand[0]
    order = np.argsort(keys[0], axis=dimension, stable=True)
    for key in keys[1:]:
        again = np.argsort(np.take_along_axis(key, order, dimension), axis=dimension, stable=True)
        order = np.take_along_axis(order, again, dimension)
    return tuple([np.take_along_axis(each, order, dimension) for each in (first, *operand[1:])])


def top_k(operand, k, *, axis=-1):
    """Return the largest elements, and their places."""
    return psc.top_k(operand, k, axis=axis)
