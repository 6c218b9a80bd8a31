"""The transformations of functions, for calls from Python: each makes a kernel of a kernel."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, cast

from pscdsl.call_sites import CallSite, call_site
from pscdsl.errors import CheckError
from pscdsl.kernel import Budget, Kernel, kernel

if TYPE_CHECKING:
    from pscdsl.donation import Donate
    from pscdsl.frontend.definitions import Definition
    from pscdsl.frontend.transformations.derived import DerivedDefinition
    from pscdsl.frontend.transformations.traced import Transformed

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
    ) -> None:
        super().__init__(None)
        self._fun = fun
        self._transformation = name
        self._make = make
        self._site = site
        self._options = object() if options is None else options

    @functools.cached_property
    def _derived(self) -> DerivedDefinition:
        from pscdsl.frontend.transformations.derived import DerivedDefinition, Made
        from pscdsl.origins import attempt
        from pscdsl.typing.diagnostics import Failure

        self.read_from = attempt(self)
        base = as_kernel(self._fun, self._transformation)
        try:
            transformed = self._make(base.definition)
        except Failure as failure:
            raise CheckError(failure.diagnostics) from None
        place = None if self._site is None else self._site.place()
        if place is None:
            return DerivedDefinition(base.definition, transformed)
        name = str(transformed).removeprefix("psc.")
        return DerivedDefinition(base.definition, transformed, Made(name, *place, place[1]))

    @property
    def definition(self) -> Definition:
        """What the front end knows of it."""
        return self._derived

    @functools.cached_property
    def _transformed(self) -> Transformed:
        from pscdsl.frontend.loaded import abstract

        return self._make(abstract(self._fun, getattr(self._fun, "__name__", "…")))

    def with_options(
        self,
        donate: Donate | None = None,
        budget: Budget | None = None,
        fast_math: bool | None = None,
    ) -> Kernel[P, R]:
        """The same kernel, whose results may take the memory of these parameters."""
        made = super().with_options(donate, budget, fast_math)
        made.__dict__["_derived"] = made.__dict__["_definition"]
        return made

    def __pscdsl_origin__(self) -> object:
        """The transformation with its options, and the function."""
        return self._transformation, self._options, self._fun, *self._own_options

    def __pscdsl_definition__(self) -> Any:
        """In another kernel the function need not be typed; it is seen as its source has it."""
        return self._transformed


class _Kernels:
    """The kernels that were made of a function, so that each is elaborated once."""

    def __init__(self, owner: object) -> None:
        self.owner = owner
        """Decorators copy what is kept with a function to another one."""
        self.made: dict[object, Kernel[..., Any]] = {}

    @classmethod
    def of(cls, fun: object) -> _Kernels:
        """Those of a function, which are kept as long as it is."""
        found = getattr(fun, "__pscdsl_kernels__", None)
        if not isinstance(found, _Kernels) or found.owner is not fun:
            found = cls(fun)
            try:
                setattr(fun, "__pscdsl_kernels__", found)  # noqa: B010
            except AttributeError:
                pass  # it keeps nothing
        return found

    def get(self, key: object, make: Callable[[], Kernel[..., Any]]) -> Kernel[..., Any]:
        """What was made before under a key, or is made now."""
        try:
            found = self.made.get(key)
        except TypeError:
            return make()  # the key cannot be hashed
        if found is None:
            found = self.made[key] = make()
        return found


def as_kernel(function: Any, name: str) -> Kernel[..., Any]:
    """A kernel as it is; a typed function, also one with rules of its own, as one."""
    if isinstance(function, Kernel):
        return function  # pyright: ignore[reportUnknownVariableType]
    if isinstance(function, types.FunctionType):
        return _Kernels.of(function).get("kernel", lambda: kernel(function))
    from pscdsl.custom import UserPrimitive
    from pscdsl.custom_derivatives import Ruled

    if isinstance(function, Ruled | UserPrimitive):
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
    """The kernel of a function with rules of its own; `plain` says which types it has."""
    return DerivedKernel(plain, name, lambda _: _call_of(function))


def _call_of(function: Any) -> Transformed:
    """A function with rules of its own, as something that can be called."""
    from pscdsl.frontend.transformations.traced import Transformed

    definition = function.__pscdsl_definition__()
    return Transformed(definition.name, definition, definition.apply, called=definition.name)


def _derived(fun: Callable[P, Any], name: str, where: str, *options: Any) -> Kernel[P, Any]:
    """The kernel that a transformation makes of a function; the same one at the same place.

    `where` is the module with the transformation's meaning.
    """
    if not callable(fun):
        raise TypeError(f"psc.{name} takes a function, not {fun!r}")
    site = call_site(__name__)

    def apply(function: Any) -> Transformed:
        module = import_module(f"pscdsl.frontend.transformations.{where}")
        return cast("Transformed", getattr(module, name)(None, function, *options))

    key = (name, options, repr(options), site)
    found: Any = _Kernels.of(fun).get(key, lambda: DerivedKernel(fun, name, apply, site, options))  # pyright: ignore[reportUnknownArgumentType]
    return cast("Kernel[P, Any]", found)


def grad(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Kernel[P, Any]:
    """The gradient of a function of one real result, in the arguments that `argnums` names.

    Returns a tree like the argument, or a tuple of them if `argnums` is one; with `has_aux` the
    function returns (value, aux), and this (gradient, aux).  Of a complex argument z = x + iy the
    gradient is df/dx - i df/dy.
    """
    return _derived(fun, "grad", "gradients", argnums, has_aux)


def value_and_grad(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Kernel[P, Any]:
    """The value and the gradient: (value, gradient), or ((value, aux), gradient)."""
    return _derived(fun, "value_and_grad", "gradients", argnums, has_aux)


def jacfwd(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Kernel[P, Any]:
    """All derivatives, by forward mode: arrays of the result's shape, then the argument's."""
    return _derived(fun, "jacfwd", "jacobians", argnums, has_aux)


def jacrev(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Kernel[P, Any]:
    """All derivatives, by reverse mode: arrays of the result's shape, then the argument's."""
    return _derived(fun, "jacrev", "jacobians", argnums, has_aux)


def hessian(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Kernel[P, Any]:
    """All second derivatives, forward over reverse."""
    return _derived(fun, "hessian", "jacobians", argnums, has_aux)


def vmap(
    fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, axis_size: int | None = None
) -> Kernel[..., Any]:
    """The function over a batch of arguments.

    `in_axes` is the batch's axis in all arguments, or a tuple with an axis, a tree of axes, or
    None (the same for all rows) for each; `out_axes` where it stands in the results.  A default is
    the same for all rows.
    """
    return _derived(fun, "vmap", "mapping", in_axes, out_axes, axis_size)


def checkpoint(
    fun: Callable[P, R] | None = None, policy: Literal["nothing", "dots", "everything"] = "nothing"
) -> Any:
    """The function, computed once more on the way back instead of saving what it computed.

    `policy` says what is saved none the less: "nothing" beside the arguments, the results of
    matrix products and convolutions ("dots"), or "everything".
    """
    if fun is None:
        return functools.partial(checkpoint, policy=policy)
    return _derived(fun, "checkpoint", "saving", policy)


def stop_gradient(x: R) -> R:
    """The same value; in derivatives it counts as constant."""
    return x
