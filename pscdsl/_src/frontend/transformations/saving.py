"""`checkpoint` and `stop_gradient`: what is saved for the way back, and where the way ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, get_args

from pscdsl._src.frontend.transformations.parts import parts_of
from pscdsl._src.frontend.transformations.traced import Transformed, trace
from pscdsl._src.frontend.trees.pytrees import flatten, unflatten
from pscdsl._src.frontend.trees.tracing import applicable
from pscdsl._src.frontend.values.values import Applicable, StaticFunction, describe, is_traced
from pscdsl._src.interpreters.jvp import has_tangent
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.primitives.control.remat import Checkpoint, Policy
from pscdsl._src.primitives.stopping import StopGradient
from pscdsl.typing.codes.control import BadBody
from pscdsl.typing.diagnostics import Failure


def checkpoint(here: Builder | None, fun: Any = None, policy: Any = "nothing") -> Any:
    """The function; on the way back it is computed again."""
    if fun is None:
        return StaticFunction("psc.checkpoint", partial(checkpoint, policy=policy))
    function = applicable(fun, "psc.checkpoint")
    if policy not in get_args(Policy):
        known = ", ".join(map(repr, get_args(Policy)))
        needs = f"one of {known} as its policy"
        raise Failure(BadBody(combinator="psc.checkpoint", needs=needs, found=describe(policy)))
    return Transformed("checkpoint", function, partial(_run, function, policy))


def _run(
    function: Applicable,
    policy: Policy,
    here: Builder,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:
    varying = [place for place, each in enumerate(args) if _has_arrays(each)]
    traced = trace(here, "psc.checkpoint", function, args, kwargs, varying)
    results = here.bind(Checkpoint(traced.block, policy), traced.operands)
    return unflatten(traced.result, iter(results))


def _has_arrays(value: Any) -> bool:
    """Whether an argument varies; numbers, functions and the like are as they are."""
    parts = parts_of(value)
    return is_traced(value) if parts is None else any(map(_has_arrays, parts))


def stop_gradient(here: Builder, x: Any) -> Any:
    """The same tree, constant in derivatives."""
    leaves, tree = flatten(here, x, "the argument of `psc.stop_gradient`")
    stopped = [
        StopGradient()(each) if isinstance(each, Value) and has_tangent(each.type) else each
        for each in leaves
    ]
    return unflatten(tree, iter(stopped))
