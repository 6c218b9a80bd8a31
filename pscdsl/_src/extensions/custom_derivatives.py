"""Functions with derivatives of the user's own, as Python objects."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from pscdsl._src.frontend.modules.rereading import reread, tell

# These are decorators: what reads functions is loaded when one of them has to be read.
if TYPE_CHECKING:
    from pscdsl._src.frontend.modules.traces import Trace
    from pscdsl._src.frontend.transformations.rules import Kind, RuledFunction

P = ParamSpec("P")
R = TypeVar("R")
Rule = TypeVar("Rule", bound=Callable[..., Any])


class Ruled(Generic[P, R]):
    """A function whose derivative its author gives; called from Python, it is the function."""

    kind: Kind

    def __init__(self, function: Callable[P, R], nondiff_argnums: Sequence[int] = ()) -> None:
        self.function = function
        self.nondiff_argnums = tuple(nondiff_argnums)
        self.rules: tuple[Callable[..., Any], ...] = ()
        self._definition: RuledFunction | None = None
        self.trace: Trace | None = None
        """What was looked up when the function and its rules were read."""
        functools.update_wrapper(self, function)

    def __reduce__(self) -> str:
        """By its name, as functions are pickled."""
        from pscdsl._src.language.pickling import object_by_name

        return object_by_name(self)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The function itself."""
        return self.function(*args, **kwargs)

    def _register(self, *rules: Callable[..., Any]) -> None:
        """Set the rules, unless those that are there have been read for a derivative."""
        if self.rules and self._definition is not None and self._definition.rules:
            name = getattr(self.function, "__name__", "function")
            raise RuntimeError(
                f"the rules of `{name}` have been used: give it others before its first "
                "derivative, or decorate another function"
            )
        self.rules = rules

    def __pscdsl_origin__(self) -> object:
        """What decides which function this is; see `pscdsl._src.frontend.modules.traces`."""
        return self.kind, self.function, self.nondiff_argnums, self.rules

    def __pscdsl_definition__(self) -> RuledFunction:
        reread()
        if self._definition is None:
            from pscdsl._src.frontend.modules.live import abstract
            from pscdsl._src.frontend.modules.traces import Trace
            from pscdsl._src.frontend.transformations.rules import RuledFunction

            tell(self)
            self.trace = trace = Trace(self, asked=True)
            name = getattr(self.function, "__name__", "function")
            function = abstract(self.function, name, trace)
            self._definition = RuledFunction(
                self.kind,
                function,
                self.nondiff_argnums,
                lambda: [abstract(rule, "rule", trace) for rule in self.rules],
            )
        return self._definition

    def ask_first(self) -> None:
        """Nothing: calls are those of the function."""

    def go_on(self) -> None:
        """Nothing."""

    def found_changed(self, changed: Callable[[Any], bool]) -> bool:
        """Nothing beside what the trace tells."""
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

    `forward(*args)` returns the result and what is saved; `backward(*nondiff, saved, cotangent)`
    a tuple with the cotangent of each argument, None for integers and keys.
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
    """
    if fun is None:
        return functools.partial(CustomVjp[..., Any], nondiff_argnums=nondiff_argnums)
    return CustomVjp(fun, nondiff_argnums)
