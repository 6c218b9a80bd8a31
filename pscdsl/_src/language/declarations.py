"""Public functions that have a meaning in kernels: each is declared once, with its types.

The declaration has the signature and the docstring, and most have no body: outside of kernels they
return the result that a kernel would, which is computed by a module that is loaded at the first
call. The meaning, in the module where its operations are known, takes its signature and its
docstring from the declaration: its parameters have the same names, and no defaults.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, ParamSpec, TypeVar

from pscdsl._src.support.tracebacks import public

P = ParamSpec("P")
R = TypeVar("R")

DECLARED: Final[dict[str, Any]] = {}
"""The functions by their qualified names, as they are written."""
COMPILED: Final = "pscdsl._src.kernels.eager"
"""The module whose `call` compiles a function as in a kernel, and runs it."""


def declaring(
    package: str, computed_by: str = COMPILED
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return the decorator of functions of a package that have no body.

    They are computed by the function `call` of a module.
    """

    def declare(function: Callable[P, R]) -> Callable[P, R]:
        name = _declared(package, function).removeprefix("pscdsl.")
        computed = functools.cache(lambda: import_module(computed_by).call)

        @public
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            try:
                function(*args, **kwargs)  # Python reports wrong arguments
            except TypeError as error:
                raise TypeError(*error.args) from None
            given, keywords = _with_defaults(function, args, kwargs)
            return computed()(name, *given, **keywords)

        return call

    return declare


def _with_defaults(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Return the arguments of a function with its defaults, by position if possible."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    left_out = names[len(args) :]
    if left_out:
        defaults = function.__defaults__ or ()
        known = {**dict(zip(names[len(names) - len(defaults) :], defaults, strict=True)), **kwargs}
        args = (*args, *(known[each] for each in left_out))
        kwargs = {key: x for key, x in kwargs.items() if key not in left_out}
    return args, {**(function.__kwdefaults__ or {}), **kwargs}


def declaring_bodies(package: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return the decorator of functions of a package whose bodies are called outside of kernels."""

    def declare(function: Callable[P, R]) -> Callable[P, R]:
        _declared(package, function)
        return public(function)

    return declare


def _declared(package: str, function: Any) -> str:
    name = f"{package}.{function.__name__}"
    DECLARED[name] = function
    return name


def completed(name: str, body: Callable[..., Any]) -> Callable[..., Any]:
    """Return the body of a meaning, with the signature and the docstring that are declared.

    What takes any `*args` has the parameters that are declared.  A first parameter `here` is not
    declared.
    """
    if not name.startswith("pscdsl.") or hasattr(body, "__signature__"):
        return body
    for module in ("control", "debug", "devices"):  # which declare those that are of no package
        import_module(f"pscdsl._src.language.{module}")
    declared = DECLARED.get(name)
    if declared is None:
        return body
    given, wanted = _parameters(body), _parameters(declared)
    here: list[inspect.Parameter] = []
    if given[0].name == "here":
        here = [given.pop(0).replace(kind=inspect.Parameter.POSITIONAL_ONLY)]
    meaning: Any = body
    if [each.kind for each in given] != [inspect.Parameter.VAR_POSITIONAL]:
        takes = [(each.name, each.kind) for each in given]
        assert takes == [(each.name, each.kind) for each in wanted], f"{name} is declared otherwise"
        meaning.__defaults__ = declared.__defaults__
        meaning.__kwdefaults__ = declared.__kwdefaults__
    meaning.__doc__ = declared.__doc__
    meaning.__signature__ = inspect.Signature([*here, *wanted])
    return body


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return [*inspect.signature(function).parameters.values()]
