"""The transformations of functions, for calls from Python: each makes a kernel of a kernel."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, cast

from pscdsl._src.calls.errors import CallSite, call_site
from pscdsl._src.kernels.kernel import Kernel, kernel
from pscdsl._src.support.tracebacks import public

# A transformation is a decorator: the language is loaded when its kernel is read.
if TYPE_CHECKING:
    from pscdsl._src.frontend.transformations.traced import Transformed
    from pscdsl._src.kernels.derived_reading import DerivedReading

P = ParamSpec("P")
R = TypeVar("R")


class DerivedKernel(Kernel[P, R]):
    """A kernel that a transformation makes of a function."""

    def __init__(
        self,
        fun: Callable[..., Any],
        name: str,
        make: Callable[[Any], Transformed],
        site: CallSite | None = None,
        options: object = None,
        again: tuple[Any, ...] | None = None,
    ) -> None:
        super().__init__(None)
        self._again = again
        """A public function and its arguments, which make the kernel in another process."""
        self._fun = fun
        self._transformation = name
        self._make = make
        self._site = site
        self._options = object() if options is None else options

    @functools.cached_property
    def _reading(self) -> DerivedReading:
        from pscdsl._src.kernels.derived_reading import DerivedReading

        made_of = self._made_of
        return DerivedReading(
            self,
            self._own_options,
            self._fun,
            self._transformation,
            self._make,
            self._site,
            made_of._reading if isinstance(made_of, DerivedKernel) else None,
        )

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Return the transformation and its function, for pickling."""
        from pscdsl._src.language.pickling import made_again

        plain = self._own_options == (None, None, None, None) and self._device is None
        return made_again(self._again, None if plain else self._with_its_options())

    def __pscdsl_origin__(self) -> object:
        """Return the transformation with its options, and the function, also as a kernel."""
        if self._made_of is not None:
            return super().__pscdsl_origin__()
        try:
            base = as_kernel(self._fun, self._transformation)
        except TypeError:  # it is a function for other kernels to call
            base = None
        parts = self._transformation, self._options, self._fun, base
        return *parts, *self._own_options

    def __pscdsl_definition__(self) -> Any:
        """Return the definition for another kernel, where the function need not be typed."""
        return self._reading.transformed


class _Kernels:
    """The kernels that were made of a function, so that each is elaborated once."""

    def __init__(self, owner: object) -> None:
        self.owner = owner
        """The function; decorators copy attributes of a function to another one."""
        self.held = _held(owner)
        self.made: dict[object, Kernel[..., Any]] = {}

    @classmethod
    def of(cls, fun: object) -> _Kernels:
        """Return the transformations of a function, stored as long as the function lives."""
        found = getattr(fun, "__pscdsl_kernels__", None)
        if not isinstance(found, _Kernels) or not found.are_of(fun):
            found = cls(fun)
            try:
                setattr(fun, "__pscdsl_kernels__", found)  # noqa: B010
            except AttributeError:
                pass  # it keeps nothing
        return found

    def are_of(self, fun: object) -> bool:
        """Return whether the function is still unchanged: `%autoreload` replaces its code."""
        return self.owner is fun and all(map(operator.is_, self.held, _held(fun)))

    def get(self, key: object, make: Callable[[], Kernel[..., Any]]) -> Kernel[..., Any]:
        """Return the kernel made earlier under a key, or make it now."""
        try:
            found = self.made.get(key)
        except TypeError:
            return make()  # the key cannot be hashed
        if found is None:
            found = self.made[key] = make()
        return found


def _held(fun: object) -> tuple[object, ...]:
    """Return the replaceable parts of a function; with other ones it is another function."""
    names = ("__code__", "__defaults__", "__kwdefaults__", "rules")
    return tuple([getattr(fun, name, None) for name in names])


def as_kernel(function: Any, name: str) -> Kernel[..., Any]:
    """Return a kernel as it is, and the kernel of a typed function, also of one with rules."""
    if isinstance(function, Kernel):
        function.require_pure(f"given to psc.{name}")
        return function  # pyright: ignore[reportUnknownVariableType]
    if isinstance(function, types.FunctionType):
        return _Kernels.of(function).get("kernel", lambda: kernel(function))
    from pscdsl._src.extensions import custom, functions

    if isinstance(function, functions.Ruled | custom.UserPrimitive):
        plain: Any = function.function  # pyright: ignore[reportUnknownMemberType]
        if isinstance(plain, Kernel | types.FunctionType):
            of_rules = functools.partial(_ruled_kernel, function, plain, name)
            return _Kernels.of(function).get("kernel", of_rules)  # pyright: ignore[reportUnknownArgumentType]
    kind = type(function).__name__  # pyright: ignore[reportUnknownArgumentType]
    problem = f"psc.{name} takes a kernel, or a function with typed parameters, not a {kind}"
    if isinstance(function, functools.partial):
        problem += (
            "; write a typed function that calls it with those arguments, "
            f"or give them to what psc.{name} makes"
        )
    raise TypeError(problem)


def _ruled_kernel(function: Any, plain: Any, name: str) -> Kernel[..., Any]:
    """Return the kernel of a function with rules; `plain` has its types."""
    again = (as_kernel, (function, name))
    return DerivedKernel(plain, name, lambda _: _call_of(function), again=again)


def _call_of(function: Any) -> Transformed:
    """Return a function with rules as a value that can be called."""
    from pscdsl._src.frontend.transformations.traced import Transformed

    definition = function.__pscdsl_definition__()
    return Transformed(definition.name, definition, definition.apply, called=definition.name)


def _derived(fun: Callable[P, Any], name: str, where: str, *options: Any) -> Kernel[P, Any]:
    """Return the kernel that a transformation makes of a function; the same one at one place.

    `where` is the module with the transformation's meaning.
    """
    if not callable(fun):
        raise TypeError(f"psc.{name} takes a function, not {fun!r}")
    known: Any = fun
    if isinstance(known, Kernel):
        known.require_pure(f"given to psc.{name}")
    site = call_site(__name__)

    def apply(function: Any) -> Transformed:
        module = import_module(f"pscdsl._src.frontend.transformations.{where}")
        return cast("Transformed", getattr(module, name)(None, function, *options))

    key = (name, options, repr(options), site)
    again = (globals()[name], (fun, *options))

    def make() -> Kernel[P, Any]:
        return DerivedKernel(fun, name, apply, site, options, again)

    found: Any = _Kernels.of(fun).get(key, make)  # pyright: ignore[reportUnknownArgumentType]
    return cast("Kernel[P, Any]", found)


@public
def grad(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Kernel[P, Any]:
    """Return a kernel that computes the gradient of `fun`.

    Args:
        fun: A kernel or typed function with a real scalar result.
        argnums: The position of the argument to differentiate in, or several positions.
        has_aux: Whether `fun` returns `(value, aux)`.

    Returns:
        A kernel with the parameters of `fun`. It returns a tree like the argument, or a tuple of
        trees if `argnums` is a sequence; with `has_aux`, `(gradient, aux)`. For a complex argument
        z = x + iy the gradient is df/dx - i df/dy.

    Examples:
        >>> def loss(w: f64["d"], x: f64["n d"], y: f64["n"]) -> f64:
        ...     return np.mean((x @ w - y) ** 2)
        >>> psc.grad(loss)(np.zeros(2), np.eye(2), np.array([1.0, 2.0]))
        pscdsl.Array([-1., -2.], dtype=float64)
    """
    return _derived(fun, "grad", "derivatives", argnums, has_aux)


@public
def value_and_grad(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Kernel[P, Any]:
    """Return a kernel that computes the value and the gradient of `fun`; see `grad`.

    It returns `(value, gradient)`, or with `has_aux` `((value, aux), gradient)`.

    Examples:
        >>> def loss(w: f64["d"], x: f64["n d"], y: f64["n"]) -> f64:
        ...     return np.mean((x @ w - y) ** 2)
        >>> psc.value_and_grad(loss)(np.zeros(2), np.eye(2), np.array([1.0, 2.0]))
        (pscdsl.Array(2.5, dtype=float64), pscdsl.Array([-1., -2.], dtype=float64))
    """
    return _derived(fun, "value_and_grad", "derivatives", argnums, has_aux)


@public
def jacfwd(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Kernel[P, Any]:
    """Return a kernel that computes the Jacobian of `fun` in forward mode.

    Axes of the result come before axes of the argument. `argnums` and `has_aux` are as in `grad`.

    Examples:
        >>> def polar(p: f64["2"]) -> f64["2"]:
        ...     return p[0] * np.stack([np.cos(p[1]), np.sin(p[1])])
        >>> psc.jacfwd(polar)(np.array([2.0, 0.0]))
        pscdsl.Array([[1., 0.],
                      [0., 2.]], dtype=float64)
    """
    return _derived(fun, "jacfwd", "derivatives", argnums, has_aux)


@public
def jacrev(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Kernel[P, Any]:
    """Return a kernel that computes the Jacobian of `fun` in reverse mode.

    Axes of the result come before axes of the argument. `argnums` and `has_aux` are as in `grad`.

    Examples:
        >>> def polar(p: f64["2"]) -> f64["2"]:
        ...     return p[0] * np.stack([np.cos(p[1]), np.sin(p[1])])
        >>> psc.jacrev(polar)(np.array([2.0, 0.0]))
        pscdsl.Array([[1., 0.],
                      [0., 2.]], dtype=float64)
    """
    return _derived(fun, "jacrev", "derivatives", argnums, has_aux)


@public
def hessian(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Kernel[P, Any]:
    """Return a kernel that computes all second derivatives of `fun`, in forward over reverse mode.

    `argnums` and `has_aux` are as in `grad`.

    Examples:
        >>> def loss(w: f64["d"]) -> f64:
        ...     return np.sum(w**3) + w[0] * w[-1]
        >>> psc.hessian(loss)(np.array([1.0, 2.0]))
        pscdsl.Array([[ 6.,  1.],
                      [ 1., 12.]], dtype=float64)
    """
    return _derived(fun, "hessian", "derivatives", argnums, has_aux)


@public
def vmap(
    fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, axis_size: int | None = None
) -> Kernel[..., Any]:
    """Return a kernel that applies `fun` to a batch of arguments.

    Args:
        fun: A kernel, or a function.
        in_axes: The batch axis of all arguments, or a tuple with an axis, a tree of axes, or None
            for each argument. None shares an argument between all rows, as do defaults.
        out_axes: The batch axis of the results, or a tree of axes.
        axis_size: The size of the batch, if no argument has a batch axis.

    Examples:
        >>> def line(slope: f64, x: f64["n"]) -> f64["n"]:
        ...     return slope * x
        >>> psc.vmap(line, in_axes=(0, None))(np.array([1.0, 2.0]), np.array([1.0, 2.0, 3.0]))
        pscdsl.Array([[1., 2., 3.],
                      [2., 4., 6.]], dtype=float64)
    """
    return _derived(fun, "vmap", "traced", in_axes, out_axes, axis_size)


@public
def checkpoint(
    fun: Callable[P, R] | None = None, policy: Literal["nothing", "dots", "everything"] = "nothing"
) -> Any:
    """Return `fun` with its intermediate values recomputed, not saved, in reverse mode.

    Args:
        fun: A kernel or function; without it, a decorator is returned.
        policy: What is saved in addition to the arguments: "nothing", the results of matrix
            products and convolutions ("dots"), or "everything".

    Examples:
        >>> @psc.checkpoint
        ... def layer(w: f64["d d"], x: f64["d"]) -> f64["d"]:
        ...     return np.tanh(w @ x)
        >>> def loss(w: f64["d d"], x: f64["d"]) -> f64:
        ...     return np.sum(layer(w, layer(w, x)))
        >>> psc.grad(loss)(np.eye(2), np.array([0.5, 0.0]))
        pscdsl.Array([[0.6959, 0.    ],
                      [0.9621, 0.    ]], dtype=float64)
    """
    if fun is None:
        return functools.partial(checkpoint, policy=policy)
    return _derived(fun, "checkpoint", "derivatives", policy)


def stop_gradient(x: R) -> R:
    """Return the same value, which counts as a constant in derivatives.

    Examples:
        >>> def loss(x: f64) -> f64:
        ...     return x * psc.stop_gradient(x)
        >>> psc.grad(loss)(3.0)
        pscdsl.Array(3., dtype=float64)
    """
    return x
