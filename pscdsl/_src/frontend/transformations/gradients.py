"""`grad` and `value_and_grad`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pscdsl._src.frontend.transformations.options import Options, transformed
from pscdsl._src.frontend.transformations.origins import made_of
from pscdsl._src.frontend.transformations.result_specs import (
    gradient_signature,
    value_and_gradient_signature,
)
from pscdsl._src.frontend.transformations.traced import Transformed, name_of
from pscdsl._src.frontend.trees.pytrees import unflatten
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.transforms.linearize import linearize
from pscdsl.typing.array_types import paths
from pscdsl.typing.codes.derivatives import NotAScalar
from pscdsl.typing.diagnostics import Failure


def grad(here: Builder | None, fun: Any, argnums: Any = 0, has_aux: bool = False) -> Transformed:
    """The gradient of a function of one real result."""
    return transformed(_run, gradient_signature, "grad", fun, argnums, has_aux)


def value_and_grad(
    here: Builder | None, fun: Any, argnums: Any = 0, has_aux: bool = False
) -> Transformed:
    """The value and the gradient."""
    return transformed(_run, value_and_gradient_signature, "value_and_grad", fun, argnums, has_aux)


def _run(options: Options, here: Builder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    where, traced = options.trace(here, args, kwargs)
    leaves = list(paths(traced.result))
    if len(leaves) != 1 or leaves[0][1].shape or not leaves[0][1].dtype.is_float:
        function, found = name_of(options.function), str(traced.result)
        raise Failure(NotAScalar(transformation=options.called, function=function, found=found))
    active = (*[False] * len(traced.captured), *[True] * len(traced.leaves))
    # What is returned besides is not differentiated: only the first result has a cotangent.
    results: list[Value] = []
    with made_of(here, traced.source, traced.operands, results):
        values, linear = linearize(here, traced.block, traced.operands, active, 1)
        results += values
        one = here.literal(1.0, results[0].dtype)
        cotangents = iter(linear.backward(here, [one]))
    gradient = options.selected(
        where, {at: unflatten(each.tree, cotangents) for at, each in traced.varying.items()}
    )
    value = unflatten(traced.result, iter(results[:1]))
    if traced.aux is None:
        return gradient if options.name == "grad" else (value, gradient)
    aux = unflatten(traced.aux, iter(results[1:]))
    return (gradient, aux) if options.name == "grad" else ((value, aux), gradient)
