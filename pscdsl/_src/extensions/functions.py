"""Users' functions as Python objects: with their own derivatives, or assumed to be pure."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

import numpy as np

from pscdsl._src.extensions.custom import Custom
from pscdsl._src.frontend.annotations import spec_of
from pscdsl._src.frontend.arguments import as_declared
from pscdsl._src.frontend.interpreter.frames import NoProgram, session_of
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.modules.live import abstract, closure_of
from pscdsl._src.frontend.modules.rereading import reread, tell
from pscdsl._src.frontend.modules.traces import Trace
from pscdsl._src.frontend.trees import at, flatten, of_values, strong, unflatten
from pscdsl._src.frontend.values import Applicable, External, describe, is_traced
from pscdsl._src.ir.builder import Builder
from pscdsl.typing.array_types import StaticType, Type, leaves, same_structure, substitute_tree
from pscdsl.typing.codes.limits import (
    Vouched,
    VouchedNeedsValues,
    VouchedResultDiffers,
    VouchedResultUnknown,
)
from pscdsl.typing.diagnostics import NOWHERE, Failure, Span
from pscdsl.typing.python_containers import is_dict, is_sequence
from pscdsl.typing.signatures import Choice, Instantiation, Spec, trees_of

if TYPE_CHECKING:
    from pscdsl._src.frontend.transformations.rules import Kind, RuledFunction


# Functions with derivatives of the user's own, as Python objects.


# These are decorators: the modules that read functions are loaded when one has to be read.

P = ParamSpec("P")
R = TypeVar("R")
Rule = TypeVar("Rule", bound=Callable[..., Any])


class Ruled(Generic[P, R]):
    """A function with derivative rules by its author; a call from Python calls the function."""

    kind: Kind

    def __init__(self, function: Callable[P, R], nondiff_argnums: Sequence[int] = ()) -> None:
        self.function = function
        self.nondiff_argnums = tuple(nondiff_argnums)
        self.rules: tuple[Callable[..., Any], ...] = ()
        self._definition: RuledFunction | None = None
        self.trace: Trace | None = None
        """The look-ups made when the function and its rules were read."""
        functools.update_wrapper(self, function)

    def __reduce__(self) -> str:
        """By its name, as functions are pickled."""
        from pscdsl._src.language.pickling import object_by_name

        return object_by_name(self)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself."""
        return self.function(*args, **kwargs)

    def _register(self, *rules: Callable[..., Any]) -> None:
        """Set the rules, unless earlier ones have been read for a derivative."""
        if self.rules and self._definition is not None and self._definition.rules:
            name = getattr(self.function, "__name__", "function")
            raise RuntimeError(
                f"the rules of `{name}` have been used: give it others before its first "
                "derivative, or decorate another function"
            )
        self.rules = rules

    def __pscdsl_origin__(self) -> object:
        """Return the identity of this function; see `pscdsl._src.frontend.modules.traces`."""
        return self.kind, self.function, self.nondiff_argnums, self.rules

    def __pscdsl_definition__(self) -> RuledFunction:
        reread()
        if self._definition is None:
            from pscdsl._src.frontend.modules.live import called
            from pscdsl._src.frontend.modules.traces import Trace
            from pscdsl._src.frontend.transformations.rules import RuledFunction

            tell(self)
            self.trace = trace = Trace(self, asked=True)
            name = getattr(self.function, "__name__", "function")
            function = trace.given(self.function, name, called)
            self._definition = RuledFunction(
                self.kind,
                function,
                self.nondiff_argnums,
                lambda: [trace.given(rule, "rule", called) for rule in self.rules],
            )
        return self._definition

    def ask_first(self) -> None:
        """Nothing: calls are those of the function."""

    def go_on(self) -> None:
        """Nothing."""

    def found_changed(self, changed: Callable[[Any], bool]) -> bool:
        """Return False: the trace shows all changes."""
        return False

    def forget(self) -> None:
        """Be read again when it is needed."""
        self._definition, self.trace = None, None


class CustomJvp(Ruled[P, R]):
    """A function with a rule for its tangents, which serves both modes.

    @psc.custom_jvp
    def log1pexp(x): return np.log1p(np.exp(x))

    @log1pexp.defjvp
    def rule(primals, tangents):
        (x,), (dx,) = primals, tangents
        return log1pexp(x), dx / (1 + np.exp(-x))
    """

    kind = "custom_jvp"

    def defjvp(self, rule: Rule) -> Rule:
        """Register `rule(*nondiff, primals, tangents)`, which returns the result and its tangent.

        It must be linear in the tangents; integers and keys have None for theirs.
        """
        self._register(rule)
        return rule


class CustomVjp(Ruled[P, R]):
    """A function with rules for reverse mode only.

    `forward(*args)` returns the result and the saved values; `backward(*nondiff, saved, cotangent)`
    returns a tuple with the cotangent of each argument, None for integers and keys.
    """

    kind = "custom_vjp"

    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        """Register both rules."""
        self._register(forward, backward)


@overload
def custom_jvp(fun: Callable[P, R], /, nondiff_argnums: Sequence[int] = ()) -> CustomJvp[P, R]: ...
@overload
def custom_jvp(
    *, nondiff_argnums: Sequence[int] = ()
) -> Callable[[Callable[P, R]], CustomJvp[P, R]]: ...
def custom_jvp(fun: Any = None, /, nondiff_argnums: Sequence[int] = ()) -> Any:
    """Give a function its own rule for tangents, for both modes.

    Register the rule with `@fun.defjvp`. It is called as `rule(*nondiff, primals, tangents)`,
    returns the result and its tangent, and must be linear in the tangents. Tangents of integers and
    keys are None.

    Args:
        fun: A typed function; without it, a decorator is returned.
        nondiff_argnums: Positions of arguments that are not differentiated. The rule takes them
            first.

    Examples:
        >>> @psc.custom_jvp
        ... def relu(x: f64["n"]) -> f64["n"]:
        ...     return np.maximum(x, 0)
        >>> @relu.defjvp
        ... def _(primals, tangents):
        ...     (x,), (dx,) = primals, tangents
        ...     return relu(x), np.where(x > 0, dx, 0)
        >>> psc.jvp(relu, (np.array([-1.0, 0.0, 2.0]),), (np.ones(3),))
        (pscdsl.Array([0., 0., 2.], dtype=float64), pscdsl.Array([0., 0., 1.], dtype=float64))
    """
    if fun is None:
        return functools.partial(CustomJvp[..., Any], nondiff_argnums=nondiff_argnums)
    return CustomJvp(fun, nondiff_argnums)


@overload
def custom_vjp(fun: Callable[P, R], /, nondiff_argnums: Sequence[int] = ()) -> CustomVjp[P, R]: ...
@overload
def custom_vjp(
    *, nondiff_argnums: Sequence[int] = ()
) -> Callable[[Callable[P, R]], CustomVjp[P, R]]: ...
def custom_vjp(fun: Any = None, /, nondiff_argnums: Sequence[int] = ()) -> Any:
    """Give a function its own rules for reverse mode.

    Register the rules with `fun.defvjp(forward, backward)`. `forward(*args)` returns the result and
    what to save; `backward(*nondiff, saved, cotangent)` returns a tuple with a cotangent for each
    argument, None for integers and keys. The function has no forward mode.

    Args:
        fun: A typed function; without it, a decorator is returned.
        nondiff_argnums: Positions of arguments that are not differentiated. `backward` takes them
            first.

    Examples:
        >>> @psc.custom_vjp
        ... def clipped(x: f64["n"]) -> f64["n"]:
        ...     return x
        >>> def forward(x):
        ...     return x, None
        >>> def backward(saved, cotangent):
        ...     return (np.clip(cotangent, -1, 1),)
        >>> clipped.defvjp(forward, backward)
        >>> def loss(x: f64["n"]) -> f64:
        ...     return np.sum(3 * clipped(x))
        >>> psc.grad(loss)(np.array([5.0, 6.0]))
        pscdsl.Array([1., 1.], dtype=float64)
    """
    if fun is None:
        return functools.partial(CustomVjp[..., Any], nondiff_argnums=nondiff_argnums)
    return CustomVjp(fun, nondiff_argnums)


# Functions that users declare to be pure: `psc.pure`.
#
#     @psc.pure
#     def nodes(n: int) -> f32["n"]:
#         return scipy.special.roots_legendre(n)[0].astype(np.float32)
#
# A kernel may call one with values that are known while it is checked. `check` takes its declared
# result for what it is and never calls it; when the kernel is loaded, it is called once for each
# such call, and what it returns is a constant of the program.


_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.ndarray, np.generic)


class PureFunction(Generic[P, R]):
    """A function declared pure with `psc.pure`.

    Examples:
        >>> @psc.pure
        ... def nodes(n: int) -> f64["n"]:
        ...     return np.polynomial.legendre.leggauss(n)[0]
        >>> nodes(2)
        array([-0.5774,  0.5774])
    """

    def __init__(self, function: Callable[P, R]) -> None:
        self.function = function
        self._definition: VouchedDefinition | None = None
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself."""
        return self.function(*args, **kwargs)

    def __pscdsl_definition__(self) -> VouchedDefinition:
        if self._definition is None:
            closure: Closure | None = None
            if isinstance(self.function, types.FunctionType):
                try:
                    closure = closure_of(self.function, Trace(self.function))
                except Failure:
                    pass  # without a source it has no declared result
            name = getattr(self.function, "__qualname__", "function")
            self._definition = VouchedDefinition(name, closure, self.function)
        return self._definition


def pure(function: Callable[P, R]) -> PureFunction[P, R]:
    """Declare that a function is pure: equal arguments give equal results, without side effects.

    A kernel may call it with values known at check time. It is called once for them, when the
    kernel is loaded, and its result is a constant of the kernel. The declared result type is relied
    upon.

    Examples:
        >>> @psc.pure
        ... def nodes(n: int) -> f64["n"]:
        ...     return np.polynomial.legendre.leggauss(n)[0]
        >>> @psc.kernel
        ... def at_nodes(scale: f64) -> f64["3"]:
        ...     return scale * nodes(3)
        >>> at_nodes(2.0)
        pscdsl.Array([-1.5492,  0.    ,  1.5492], dtype=float64)
    """
    return PureFunction(function)


class VouchedDefinition(Applicable):
    """A function that is vouched for, as the front end sees it."""

    def __init__(
        self, name: str, closure: Closure | None, function: Callable[..., Any] | None
    ) -> None:
        self.name = name
        self.closure = closure
        self.function = function
        """The function itself, when it has been loaded."""
        self.place: Span = NOWHERE
        if closure is not None:
            self.place = closure.source.span(closure.node).head(len("def"))

    def apply(self, here: Builder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the declared result of a call, or, in a loaded kernel, its constant result."""
        for each in (*args, *kwargs.values()):
            unknown = next(_unknown(each), None)
            if unknown is not None:
                raise Failure(VouchedNeedsValues(function=self.name, found=describe(unknown)))
        if isinstance(here, NoProgram):
            raise Failure(VouchedResultUnknown(function=self.name))
        found = self._declared_result(here, args, kwargs)
        if found is None:
            raise Failure(VouchedResultUnknown(function=self.name))
        spec, declared = found
        place = here.program.span if self.place is NOWHERE else self.place
        session_of(here).report(Failure(Vouched(function=self.name, span=place)))
        if self.function is None:
            custom = Custom(self.name, tuple(leaves(declared)), None)
            return as_declared(spec, unflatten(declared, iter(here.bind(custom, ()))))
        return as_declared(spec, self._call(here, self.function, declared, args, kwargs))

    def _call(
        self,
        here: Builder,
        function: Callable[..., Any],
        declared: Type,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        try:
            found = function(*args, **kwargs)
            value = abstract(found, self.name, Trace(found))
        except Exception as error:
            problem = f"raises {type(error).__name__}: {error}"
            raise Failure(VouchedResultDiffers(function=self.name, problem=problem)) from None
        if isinstance(value, External):
            problem = f"returns something else than arrays, {value.name}"
            raise Failure(VouchedResultDiffers(function=self.name, problem=problem))
        found, tree = flatten(here, value, f"the result of `{self.name}`")
        values = strong(found)
        if same_structure(tree, declared):
            values = [at(x, leaf.dtype) for x, leaf in zip(found, leaves(declared), strict=True)]
        found_type = of_values(tree, values)
        if not same_structure(tree, declared) or found_type != declared:
            problem = f"returns {found_type}, but {declared} is declared"
            raise Failure(VouchedResultDiffers(function=self.name, problem=problem))
        return unflatten(declared, iter(values))

    def _declared_result(
        self, here: Builder, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Spec, Type] | None:
        """Return the declared result; sizes in it are numbers or named arguments."""
        closure = self.closure
        returns = None if closure is None else getattr(closure.node, "returns", None)
        if closure is None or returns is None:
            return None
        frame = closure.annotation_frame()
        spec = spec_of(frame, returns)
        if frame.session.findings:
            raise Failure(*frame.session.findings)
        if any(True for _ in trees_of(spec)):
            return None  # which tree it is, is not known
        declared = Instantiation(Choice()).type_of(spec, "return")
        if any(isinstance(leaf, StaticType) for leaf in leaves(declared)):
            return None
        bound = closure.bind(args, kwargs)
        sizes = {
            name: value
            for name, value in bound.items()
            if isinstance(value, int) and not isinstance(value, bool)
        }
        tree = substitute_tree(declared, sizes)
        open_names = {name for leaf in leaves(tree) for name in leaf.names()}
        if open_names:
            raise Failure(VouchedResultUnknown(function=self.name, size=min(open_names)))
        return spec, tree


def _unknown(value: Any) -> Iterator[Any]:
    """Yield the parts of an argument that are not known while a kernel is elaborated."""
    if is_sequence(value):
        for each in value:
            yield from _unknown(each)
    elif is_dict(value):
        for each in value.values():
            yield from _unknown(each)
    elif is_traced(value) or not isinstance(value, _PLAIN):
        yield value


def make_pure(here: Any, function: Any) -> Any:
    """`@psc.pure`."""
    del here
    if isinstance(function, Closure):
        return VouchedDefinition(function.name, function, None)
    return VouchedDefinition(getattr(function, "name", "function"), None, None)
