"""The names of `jax`."""

from jaxtyping import Array

import pscdsl as psc
from pscdsl import custom_jvp, custom_vjp


def jit(fun=None, /, **options):
    """Return the function: what is compiled computes the same."""
    return _same if fun is None else fun


def _same(fun):
    return fun


def vmap(fun, in_axes=0, out_axes=0, axis_name=None, axis_size=None, spmd_axis_name=None):
    """Return the function over a batch."""
    axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    return psc.vmap(fun, axes, out_axes, axis_size)


def grad(fun, argnums=0, has_aux=False, holomorphic=False, allow_int=False, reduce_axes=()):
    """Return the gradient of a function."""
    return psc.grad(fun, argnums, has_aux)


def value_and_grad(
    fun, argnums=0, has_aux=False, holomorphic=False, allow_int=False, reduce_axes=()
):
    """Return the value and the gradient of a function."""
    return psc.value_and_grad(fun, argnums, has_aux)


def jacfwd(fun, argnums=0, has_aux=False, holomorphic=False):
    """Return all derivatives, column by column."""
    return psc.jacfwd(fun, argnums, has_aux)


def jacrev(fun, argnums=0, has_aux=False, holomorphic=False, allow_int=False):
    """Return all derivatives, row by row."""
    return psc.jacrev(fun, argnums, has_aux)


jacobian = jacrev


def hessian(fun, argnums=0, has_aux=False, holomorphic=False):
    """Return all second derivatives."""
    return psc.hessian(fun, argnums, has_aux)


def jvp(fun, primals, tangents, has_aux=False):
    """Return the value, and the derivative along directions."""
    if has_aux:
        return psc.jvp.with_auxiliary_results
    return psc.jvp(fun, tuple(primals), tuple(tangents))


def vjp(fun, *primals, has_aux=False, reduce_axes=()):
    """Return the value, and the function that pulls cotangents back."""
    return psc.vjp(fun, *primals, has_aux=has_aux)


def linearize(fun, *primals, has_aux=False):
    """Return the value, and the function that pushes tangents forward."""
    if has_aux:
        return psc.linearize.with_auxiliary_results
    return psc.linearize(fun, *primals)


def checkpoint(fun, *, prevent_cse=True, policy=None, static_argnums=(), concrete=False):
    """Return the function, whose intermediate results are computed again."""
    return fun


remat = checkpoint


def device_put(x, device=None, *, src=None, donate=False, may_alias=None):
    """Return the tree."""
    return x


def device_get(x):
    """Return the tree."""
    return x


def block_until_ready(x):
    """Return the tree."""
    return x


def named_call(fun, *, name=None):
    """Return the function."""
    return fun


def named_scope(name):
    """Return a context that names a part of a program."""
    return psc.scope(name)
