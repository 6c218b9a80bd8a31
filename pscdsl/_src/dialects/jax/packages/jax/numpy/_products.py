"""Products, with the precision that JAX's functions take."""

import numpy as np

from pscdsl import vmap


def _in(dtype, *operands):
    """Return operands in the dtype of their product."""
    return operands if dtype is None else [np.asarray(each).astype(dtype) for each in operands]


def dot(a, b, *, precision=None, preferred_element_type=None, out_sharding=None):
    """Return the product of two arrays."""
    return np.dot(*_in(preferred_element_type, a, b))


def matmul(a, b, *, precision=None, preferred_element_type=None, out_sharding=None):
    """Return the product of two matrices."""
    return np.matmul(*_in(preferred_element_type, a, b))


def vdot(a, b, *, precision=None, preferred_element_type=None):
    """Return the product of all elements."""
    return np.vdot(*_in(preferred_element_type, a, b))


def vecdot(x1, x2, /, *, axis=-1, precision=None, preferred_element_type=None):
    """Return the products of vectors."""
    return np.vecdot(*_in(preferred_element_type, x1, x2), axis=axis)


def inner(a, b, *, precision=None, preferred_element_type=None):
    """Return the products of last axes."""
    return np.inner(*_in(preferred_element_type, a, b))


def tensordot(a, b, axes=2, *, precision=None, preferred_element_type=None, out_sharding=None):
    """Return the product over some axes."""
    return np.tensordot(*_in(preferred_element_type, a, b), axes=axes)


def einsum(
    subscripts,
    /,
    *operands,
    out=None,
    optimize="auto",
    precision=None,
    preferred_element_type=None,
    out_sharding=None,
):
    """Return the sum of products that a text says."""
    return np.einsum(subscripts, *_in(preferred_element_type, *operands))


def convolve(a, v, mode="full", *, precision=None, preferred_element_type=None):
    """Return the convolution of two vectors."""
    return np.convolve(*_in(preferred_element_type, a, v), mode)


def correlate(a, v, mode="valid", *, precision=None, preferred_element_type=None):
    """Return the correlation of two vectors."""
    return np.correlate(*_in(preferred_element_type, a, v), mode)


def polyval(p, x, *, unroll=16):
    """Return the values of a polynomial."""
    return np.polyval(p, x)


def vectorize(pyfunc, *, signature=None):
    """Return the function over the axes that its signature does not name."""

    def run(*args):
        arrays = [np.asarray(each) for each in args]
        cores = [0] * len(arrays) if signature is None else _cores(signature)
        shapes = [x.shape[: x.ndim - core] for x, core in zip(arrays, cores)]
        batch = np.broadcast_shapes(*shapes)
        given = [
            np.broadcast_to(x, (*batch, *x.shape[x.ndim - core :]))
            for x, core in zip(arrays, cores)
        ]
        mapped = pyfunc
        for _ in batch:
            mapped = vmap(mapped)
        return mapped(*given)

    return run


def _cores(signature):
    """Return the number of named axes of each argument: [1, 2] for `(n),(n,m)->()`."""
    parts = signature.split("->")[0].replace(" ", "")[1:-1].split("),(")
    return [len(part.split(",")) if part else 0 for part in parts]
