"""Elements at places; those out of range are NaN, or another value that is no place's."""

import numpy as np

from jax._checks import axis_of


def fill_of(dtype):
    """Return what stands for an element out of range."""
    if np.issubdtype(dtype, np.inexact):
        return np.nan
    if np.issubdtype(dtype, np.unsignedinteger):
        return np.iinfo(dtype).max
    return True if dtype == bool else np.iinfo(dtype).min


def wrapped(index, size):
    """Return places from the start, and a mask of those in range."""
    index = np.asarray(index)
    if np.issubdtype(index.dtype, np.unsignedinteger):
        return index, index < size
    return np.where(index < 0, index + size, index), (index >= -size) & (index < size)


def take(
    a,
    indices,
    axis=None,
    out=None,
    mode=None,
    unique_indices=False,
    indices_are_sorted=False,
    fill_value=None,
):
    """Return the elements at places along an axis."""
    a = np.asarray(a)
    if axis is None:
        a, axis = np.ravel(a), 0
    if mode in ("clip", "wrap"):
        return np.take(a, indices, axis=axis, mode=mode)
    _require_fill(mode)
    axis = axis_of(axis, a.ndim)
    places, inside = wrapped(indices, a.shape[axis])
    found = np.take(a, places, axis=axis, mode="clip")
    fill = np.asarray(fill_of(a.dtype) if fill_value is None else fill_value, dtype=a.dtype)
    inside = np.reshape(inside, (*inside.shape, *[1] * (a.ndim - axis - 1)))
    return np.where(inside, found, fill)


def take_along_axis(arr, indices, axis=-1, mode=None, fill_value=None):
    """Return the elements at places of their own along an axis."""
    arr, indices = np.asarray(arr), np.asarray(indices)
    if axis is None:
        arr, axis = np.ravel(arr), 0
    size = arr.shape[axis]
    places, inside = wrapped(indices, size)
    found = np.take_along_axis(arr, np.clip(places, 0, size - 1), axis)
    if mode == "clip":
        return found
    _require_fill(mode)
    fill = np.asarray(fill_of(arr.dtype) if fill_value is None else fill_value, dtype=arr.dtype)
    return np.where(inside, found, fill)


def _require_fill(mode):
    if mode not in (None, "fill"):
        raise NotImplementedError("another mode")


def unravel_index(indices, shape):
    """Return the places along each axis; those out of range are the first or the last."""
    rest, found = np.asarray(indices), []
    for size in shape[::-1]:
        rest, place = np.divmod(rest, size)
        found.append(place)
    return tuple(
        [
            np.where(rest > 0, size - 1, np.where(rest < -1, 0, place))
            for size, place in zip(shape, found[::-1])
        ]
    )


def clip(arr=None, /, min=None, max=None, *, a=None, a_min=None, a_max=None):
    """Return the elements between two bounds."""
    arr = a if arr is None else arr
    low = a_min if min is None else min
    high = a_max if max is None else max
    if low is not None:
        arr = np.maximum(low, arr)
    return arr if high is None else np.minimum(high, arr)


def repeat(a, repeats, axis=None, *, total_repeat_length=None):
    """Return each element several times."""
    if total_repeat_length is None:
        return np.repeat(a, repeats, axis)
    a = np.asarray(a)
    if axis is None:
        a, axis = np.ravel(a), 0
    ends = np.cumsum(np.broadcast_to(repeats, (a.shape[axis],)))
    places = np.searchsorted(ends, np.arange(total_repeat_length), side="right")
    return np.take(a, places, axis=axis, mode="clip")


def nonzero(a, *, size, fill_value=None):
    """Return the first places of elements that are not zero, `size` of them."""
    a = np.asarray(a)
    if not a.ndim:
        raise ValueError("Calling nonzero on 0d arrays is not allowed")
    flat = np.ravel(a) != 0
    order = np.argsort(~flat, stable=True)
    count = np.sum(flat)
    length = flat.shape[0]
    numbers = np.arange(size)
    at = np.take(order, numbers, mode="clip")
    inside = numbers < np.minimum(count, length)
    fills = (0,) * a.ndim if fill_value is None else fill_value
    fills = fills if isinstance(fills, tuple) else (fills,) * a.ndim
    places = np.unravel_index(at, a.shape)
    return tuple([np.where(inside, place, fill).astype(int) for place, fill in zip(places, fills)])


def flatnonzero(a, *, size, fill_value=None):
    """Return the first places of elements that are not zero in the flat array."""
    return nonzero(np.ravel(a), size=size, fill_value=fill_value)[0]


def argwhere(a, *, size, fill_value=None):
    """Return the first places of elements that are not zero, a row for each."""
    return np.stack(nonzero(a, size=size, fill_value=fill_value), axis=-1)


def where(condition, x=None, y=None, /, *, size=None, fill_value=None):
    """Return elements of two arrays by a condition, or the first places where it holds."""
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    return np.where(condition, x, y)


def unstack(x, /, *, axis=0):
    """Return the parts along an axis."""
    return tuple(np.unstack(x, axis=axis))


def squeeze(a, axis=None):
    """Return an array without axes of size 1, of which it has to be known which these are."""
    if axis is None:
        axis = tuple([place for place, size in enumerate(np.shape(a)) if size == 1])
    return np.squeeze(a, axis)
