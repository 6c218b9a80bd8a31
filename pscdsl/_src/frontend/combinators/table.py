"""The combinators by name, and the few functions that ask the checker something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pscdsl._src.frontend.combinators.branches import cond, switch
from pscdsl._src.frontend.combinators.loops import (
    associative_scan,
    fori_loop,
    map_,
    map_reduce,
    scan,
    while_loop,
)
from pscdsl._src.frontend.combinators.tree_functions import register as register_trees
from pscdsl._src.frontend.transformations.gradients import (
    checkpoint,
    grad,
    hessian,
    jacfwd,
    jacrev,
    stop_gradient,
    value_and_grad,
)
from pscdsl._src.frontend.transformations.mapping import vmap
from pscdsl._src.frontend.transformations.modes import jvp_, linear_transpose, linearize_, vjp
from pscdsl._src.frontend.transformations.rules import custom_linear_solve, custom_root, make_ruled
from pscdsl._src.frontend.trees.pytrees import flatten
from pscdsl._src.frontend.values.closed import constant
from pscdsl._src.frontend.values.values import External, Marker, StaticFunction, describe
from pscdsl._src.ir.builder import Builder
from pscdsl._src.language.meanings import MEANINGS
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.diagnostics import Failure


def reveal_type(here: Builder, value: Any) -> Any:
    """Report the type of an expression, for tests and for the curious."""
    leaves, tree = flatten(here, value, "the argument of `reveal_type`")
    del leaves
    program = here.program
    program.revealed.append((program.span.line, str(tree)))
    return value


SCOPE = Marker("pscdsl.scope(…)")
"""What `psc.scope(name)` gives: a context."""


def scope(here: Builder, name: Any) -> Marker:
    """`with psc.scope(name):` names a part of a kernel."""
    del here
    if not isinstance(name, str | External):  # the text of sizes is not known, and not needed
        problem = f"takes a name, and {describe(name)} is none"
        raise Failure(BadArguments(function="psc.scope", problem=problem))
    return SCOPE


def register() -> None:
    """Give the combinators their names."""
    combinators: dict[str, Callable[..., Any]] = {
        "associative_scan": associative_scan,
        "map_reduce": map_reduce,
        "scan": scan,
        "map": map_,
        "fori_loop": fori_loop,
        "while_loop": while_loop,
        "cond": cond,
        "switch": switch,
        "grad": grad,
        "value_and_grad": value_and_grad,
        "jvp": jvp_,
        "linearize": linearize_,
        "vjp": vjp,
        "linear_transpose": linear_transpose,
        "jacfwd": jacfwd,
        "jacrev": jacrev,
        "hessian": hessian,
        "vmap": vmap,
        "checkpoint": checkpoint,
        "stop_gradient": stop_gradient,
        "custom_jvp": make_ruled("custom_jvp"),
        "custom_vjp": make_ruled("custom_vjp"),
        "custom_linear_solve": custom_linear_solve,
        "custom_root": custom_root,
        "constant": constant,
        "reveal_type": reveal_type,
        "scope": scope,
    }
    for name, body in combinators.items():
        MEANINGS[f"pscdsl.{name}"] = StaticFunction(f"psc.{name}", body)
    register_trees()
    MEANINGS["builtins.reveal_type"] = MEANINGS["typing.reveal_type"] = MEANINGS[
        "pscdsl.reveal_type"
    ]
