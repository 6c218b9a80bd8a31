"""`grad` and `value_and_grad`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from pscdsl.builder import Builder
from pscdsl.frontend.pytrees import unflatten
from pscdsl.frontend.tracing import applicable
from pscdsl.frontend.transformations.traced import Traced, Transformed, name_of, trace
from pscdsl.frontend.values import Applicable
from pscdsl.interpreters.jvp import has_tangent
from pscdsl.narrowing import is_sequence
from pscdsl.transforms.linearize import linearize
from pscdsl.typing.codes.control_derivatives import BadArgnums, NoTangent, NotAScalar
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.trees import paths

Argnums: TypeAlias = int | Sequence[int]


def places(name: str, argnums: Any, count: int) -> list[int]:
    """The positions that `argnums` names, counted from the first argument."""
    items = list(argnums) if is_sequence(argnums) else [argnums]
    found: list[int] = []
    for each in items:
        if not isinstance(each, int) or isinstance(each, bool) or not -count <= each < count:
            raise Failure(BadArgnums(transformation=name, argnums=str(argnums), count=count))
        found.append(each % count)
    if len(set(found)) != len(found) or not found:
        raise Failure(BadArgnums(transformation=name, argnums=str(argnums), count=count))
    return found


def require_tangents(name: str, traced: Traced) -> None:
    """Refuse arguments with leaves that have no tangents."""
    for at, argument in traced.varying.items():
        for path, leaf in paths(argument.tree):
            if not has_tangent(leaf):
                place = f"argument {at}" + (f" at `{path}`" if path else "")
                raise Failure(NoTangent(transformation=name, argument=place, type=str(leaf)))


def grad(here: Builder | None, fun: Any, argnums: Any = 0, has_aux: bool = False) -> Transformed:
    """The gradient of a function of one real result."""
    return _transformed("grad", fun, argnums, has_aux)


def value_and_grad(
    here: Builder | None, fun: Any, argnums: Any = 0, has_aux: bool = False
) -> Transformed:
    """The value and the gradient."""
    return _transformed("value_and_grad", fun, argnums, has_aux)


def _transformed(name: str, fun: Any, argnums: Any, has_aux: bool) -> Transformed:
    function = applicable(fun, f"psc.{name}")
    return Transformed(name, function, partial(_run, name, function, argnums, has_aux))


def _run(
    name: str,
    function: Applicable,
    argnums: Any,
    has_aux: bool,
    here: Builder,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:
    called = f"psc.{name}"
    where = places(called, argnums, len(args))
    traced = trace(here, called, function, args, kwargs, where, has_aux=has_aux)
    require_tangents(called, traced)
    leaves = list(paths(traced.result))
    if len(leaves) != 1 or leaves[0][1].shape or not leaves[0][1].dtype.is_float:
        found = str(traced.result)
        raise Failure(NotAScalar(transformation=called, function=name_of(function), found=found))
    active = (*[False] * len(traced.captured), *[True] * len(traced.leaves))
    # What is returned besides is not differentiated: only the first result has a cotangent.
    results, linear = linearize(here, traced.block, traced.operands, active, 1)
    one = here.literal(1.0, results[0].dtype)
    cotangents = iter(linear.backward(here, [one]))
    gradients = {at: unflatten(each.tree, cotangents) for at, each in traced.varying.items()}
    found_grad = (
        tuple(gradients[at] for at in where) if is_sequence(argnums) else gradients[where[0]]
    )
    value = unflatten(traced.result, iter(results[:1]))
    aux = () if traced.aux is None else (unflatten(traced.aux, iter(results[1:])),)
    if name == "grad":
        return (found_grad, *aux) if aux else found_grad
    return ((value, *aux) if aux else value, found_grad)
