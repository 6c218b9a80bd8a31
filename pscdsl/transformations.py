"""The transformations of functions, for calls from Python: each makes a kernel of a kernel."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from pscdsl.custom import UserPrimitive
from pscdsl.custom_derivatives import Ruled
from pscdsl.errors import CheckError
from pscdsl.frontend.definitions import Definition
from pscdsl.frontend.transformations import gradients, jacobians, mapping, saving
from pscdsl.frontend.transformations.derived import DerivedDefinition
from pscdsl.frontend.transformations.traced import Transformed
from pscdsl.kernel import Kernel, kernel
from pscdsl.typing.diagnostics import Failure

P = ParamSpec("P")
R = TypeVar("R")


class DerivedKernel(Kernel[P, R]):
    """A kernel that a transformation makes of another one."""

    def __init__(self, base: Kernel[..., Any], make: Callable[[Definition], Transformed]) -> None:
        super().__init__(None)
        self.base = base
        self._make = make

    @functools.cached_property
    def _derived(self) -> DerivedDefinition:
        try:
            transformed = self._make(self.base.definition)
        except Failure as failure:
            raise CheckError(failure.diagnostics) from None
        return DerivedDefinition(self.base.definition, transformed)

    @property
    def definition(self) -> Definition:
        """What the front end knows of it."""
        return self._derived


_KERNELS: WeakKeyDictionary[Callable[..., Any], Kernel[..., Any]] = WeakKeyDictionary()
"""The kernels of plain functions, so that each is elaborated once."""


def as_kernel(function: Any, name: str) -> Kernel[..., Any]:
    """A kernel as it is; a typed function, also one with rules of its own, as one."""
    if isinstance(function, Kernel):
        return function  # pyright: ignore[reportUnknownVariableType]
    plain = function.function if isinstance(function, Ruled | UserPrimitive) else function  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if isinstance(plain, Kernel | types.FunctionType):
        found = _KERNELS.get(function)  # pyright: ignore[reportUnknownArgumentType]
        if found is None:
            made: Kernel[..., Any] = kernel(plain)  # pyright: ignore[reportUnknownArgumentType]
            if plain is not function:
                made = DerivedKernel[..., Any](made, lambda _: _call_of(function))
            found = _KERNELS[function] = made
        return found
    kind = type(function).__name__  # pyright: ignore[reportUnknownArgumentType]
    raise TypeError(f"psc.{name} takes a kernel, or a function with typed parameters, not a {kind}")


def _call_of(function: Any) -> Transformed:
    """A function with rules of its own, as something that can be called."""
    definition = function.__pscdsl_definition__()
    return Transformed(definition.name, definition, definition.apply, called=definition.name)


def grad(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Kernel[P, Any]:
    """The gradient of a function of one real result, in the arguments that `argnums` names.

    Returns a tree like the argument, or a tuple of them if `argnums` is one; with `has_aux` the
    function returns (value, aux), and this (gradient, aux).  Of a complex argument z = x + iy the
    gradient is df/dx - i df/dy.
    """
    base = as_kernel(fun, "grad")
    return DerivedKernel(base, lambda d: gradients.grad(None, d, argnums, has_aux))


def value_and_grad(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Kernel[P, Any]:
    """The value and the gradient: (value, gradient), or ((value, aux), gradient)."""
    base = as_kernel(fun, "value_and_grad")
    return DerivedKernel(base, lambda d: gradients.value_and_grad(None, d, argnums, has_aux))


def jacfwd(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Kernel[P, Any]:
    """All derivatives, by forward mode: arrays of the result's shape, then the argument's."""
    base = as_kernel(fun, "jacfwd")
    return DerivedKernel(base, lambda d: jacobians.jacfwd(None, d, argnums, has_aux))


def jacrev(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Kernel[P, Any]:
    """All derivatives, by reverse mode: arrays of the result's shape, then the argument's."""
    base = as_kernel(fun, "jacrev")
    return DerivedKernel(base, lambda d: jacobians.jacrev(None, d, argnums, has_aux))


def hessian(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Kernel[P, Any]:
    """All second derivatives, forward over reverse."""
    base = as_kernel(fun, "hessian")
    return DerivedKernel(base, lambda d: jacobians.hessian(None, d, argnums, has_aux))


def vmap(
    fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, axis_size: int | None = None
) -> Kernel[..., Any]:
    """The function over a batch of arguments.

    `in_axes` is the batch's axis in all arguments, or a tuple with an axis, a tree of axes, or
    None (the same for all rows) for each; `out_axes` where it stands in the results.
    """
    base = as_kernel(fun, "vmap")
    return DerivedKernel(base, lambda d: mapping.vmap(None, d, in_axes, out_axes, axis_size))


def checkpoint(
    fun: Callable[P, R] | None = None, policy: Literal["nothing", "dots", "everything"] = "nothing"
) -> Any:
    """The function, computed once more on the way back instead of saving what it computed.

    `policy` says what is saved none the less: "nothing" beside the arguments, the results of
    matrix products and convolutions ("dots"), or "everything".
    """
    if fun is None:
        return functools.partial(checkpoint, policy=policy)
    base = as_kernel(fun, "checkpoint")
    return DerivedKernel[..., Any](base, lambda d: saving.checkpoint(None, d, policy))


def stop_gradient(x: R) -> R:
    """The same value; in derivatives it counts as constant."""
    return x
