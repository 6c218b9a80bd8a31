"""New arrays, whose dtypes are JAX's: a number without one stays open, a list does not."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Array


def array(object: object, dtype=None, copy=True, order="K", ndmin=0):
    """Return an array of numbers, lists and arrays."""
    made = np.array(object, dtype=dtype, ndmin=ndmin)
    if dtype is None and isinstance(object, (list, tuple)):
        return np.array(made, dtype=made.dtype)
    return made


def asarray(a: object, dtype=None, order=None, *, copy=None):
    """Return an array of numbers, lists and arrays."""
    return array(a, dtype)


def zeros(shape, dtype=None):
    """Return an array of zeros."""
    return np.zeros(shape, dtype=float if dtype is None else dtype)


def ones(shape, dtype=None):
    """Return an array of ones."""
    return np.ones(shape, dtype=float if dtype is None else dtype)


def empty(shape, dtype=None):
    """Return an array of zeros, as JAX does."""
    return zeros(shape, dtype)


def full(shape, fill_value, dtype=None):
    """Return an array with one value."""
    return np.full(shape, fill_value if dtype is None else np.asarray(fill_value).astype(dtype))


def full_like(a, fill_value, dtype=None, shape=None):
    """Return an array with one value, of the shape and dtype of another one."""
    a = np.asarray(a)
    made = np.asarray(fill_value).astype(a.dtype if dtype is None else dtype)
    return np.full(a.shape if shape is None else shape, made)


def arange(start, stop=None, step=None, dtype=None):
    """Return numbers at equal distances."""
    if step is None:
        made = (
            np.arange(start, dtype=dtype) if stop is None else np.arange(start, stop, dtype=dtype)
        )
    elif stop is None:
        made = np.arange(0, start, step, dtype=dtype)
    else:
        made = np.arange(start, stop, step, dtype=dtype)
    return np.array(made, dtype=made.dtype)


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    """Return so many numbers from `start` to `stop`."""
    made, step = np.linspace(start, stop, num, endpoint=endpoint, retstep=True, axis=axis)
    strong = np.array(made, dtype=made.dtype)
    if dtype is not None:
        whole = np.issubdtype(np.zeros((), dtype).dtype, np.integer)
        strong = np.floor(strong).astype(dtype) if whole else strong.astype(dtype)
    return (strong, np.array(step, dtype=step.dtype)) if retstep else strong


def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    """Return powers of `base` with exponents at equal distances."""
    made = np.logspace(start, stop, num, endpoint=endpoint, base=base, axis=axis)
    return made.astype(made.dtype if dtype is None else dtype)


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    """Return numbers at equal ratios."""
    made = np.geomspace(start, stop, num, endpoint=endpoint, axis=axis)
    return made.astype(made.dtype if dtype is None else dtype)


def eye(N, M=None, k=0, dtype=None):
    """Return a matrix with ones on a diagonal."""
    return np.eye(N, M, k, dtype=float if dtype is None else dtype)


def identity(n, dtype=None):
    """Return a unit matrix."""
    return eye(n, dtype=dtype)


def tri(N, M=None, k=0, dtype=None):
    """Return a matrix with ones at and below a diagonal."""
    return np.tri(N, M, k, dtype=float if dtype is None else dtype)


def indices(dimensions, dtype=None, sparse=False):
    """Return the places of each element."""
    made = np.indices(dimensions, sparse=sparse)
    dtype = int if dtype is None else dtype
    return (
        tuple([np.array(x, dtype=dtype) for x in made]) if sparse else np.array(made, dtype=dtype)
    )


def _integers(arrays):
    return tuple([np.array(x, dtype=int) for x in arrays])


def tril(m, k=0):
    """Return the lower triangle of matrices."""
    return np.tril(_matrices(m), k)


def triu(m, k=0):
    """Return the upper triangle of matrices."""
    return np.triu(_matrices(m), k)


def _matrices(m):
    if np.ndim(m) < 2:
        raise ValueError("Argument must be at least 2D")
    return m


def tril_indices(n, k=0, m=None):
    """Return the places of the lower triangle."""
    return _integers(np.tril_indices(n, k, m))


def triu_indices(n, k=0, m=None):
    """Return the places of the upper triangle."""
    return _integers(np.triu_indices(n, k, m))


def diag_indices(n, ndim=2):
    """Return the places of the diagonal."""
    return _integers(np.diag_indices(n, ndim))


def append(arr, values, axis=None):
    """Return two arrays, one after the other."""
    if axis is None:
        return np.concatenate([np.ravel(arr), np.ravel(values)])
    return np.concatenate([arr, values], axis=axis)


def result_type(*args):
    """Return the dtype at which arrays, numbers and dtypes meet."""
    met = np.stack([_example(each) for each in args])
    return np.zeros((), met.dtype).dtype


def _example(given):
    """Return a number or array that meets others as an argument of `result_type` does."""
    if isinstance(given, (bool, int, float, complex)):
        return given
    if isinstance(given, Array):
        return np.zeros((), given.dtype)
    for kind in (bool, int, float, complex):
        if given == kind:
            return kind(0)
    return np.zeros((), given)


def promote_types(a, b):
    """Return the dtype at which two dtypes meet."""
    return result_type(a, b)


class FloatInfo(NamedTuple):
    """The limits of a floating-point dtype, in that dtype."""

    bits: int
    eps: object
    max: object
    min: object
    tiny: object
    smallest_normal: object
    resolution: object


def finfo(dtype):
    """Return the limits of a floating-point dtype."""
    dtype = np.zeros((), dtype).dtype
    info = np.finfo(dtype)
    eps, most, least, tiny, resolution = [
        np.asarray(each, dtype=dtype)
        for each in (info.eps, info.max, info.min, info.tiny, info.resolution)
    ]
    return FloatInfo(info.bits, eps, most, least, tiny, tiny, resolution)
