"""Typed programs made of a kernel's: one for each choice, with further parameters and results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pscdsl._src.frontend.definitions import Definition
from pscdsl._src.frontend.interpreter.frames import Session
from pscdsl._src.frontend.trees.pytrees import flatten, unflatten
from pscdsl._src.frontend.trees.tracing import of_values, strong
from pscdsl._src.frontend.values.values import Poisoned
from pscdsl._src.ir.builder import Builder, Program, Value
from pscdsl._src.ir.program import Function, Var
from pscdsl.typing.array_types import Type, paths
from pscdsl.typing.diagnostics import Failure, Severity
from pscdsl.typing.signatures import Choice


def elaborate(
    definition: Definition,
    choice: Choice,
    name: str,
    extra: Sequence[tuple[str, Type]],
    run: Callable[[Builder, list[Any], list[Any]], Any],
) -> Function:
    """The program of `run(here, arguments, extra)`, in the sizes of a kernel's program.

    Raises a Failure with all findings if there is none.
    """
    instance = definition.instance(choice)
    program = Program(instance.facts)
    session = Session(program, definition.closure)
    here = program.current
    params: list[Value] = []

    def given(declared: Sequence[tuple[str, Type]]) -> list[Any]:
        values: list[Any] = []
        for called, tree in declared:
            own = [Value(here, Var(leaf, called + path)) for path, leaf in paths(tree)]
            params.extend(own)
            values.append(unflatten(tree, iter(own)))
        return values

    arguments = given(instance.parameters)
    more = given(extra)
    program.span = definition.span
    try:
        with np.errstate(all="ignore"):  # as where a definition is run
            result = run(here, arguments, more)
    except Poisoned:
        raise Failure(*session.findings) from None
    errors = [each for each in session.findings if each.severity is Severity.ERROR]
    if errors:
        raise Failure(*errors)
    leaves, tree = flatten(here, result, f"the result of `{name}`")
    values = strong(leaves)
    body, _ = here.finish(params, values)
    declared = (*instance.parameters, *extra)
    result_tree = of_values(tree, values)
    return Function(name, instance.dims, program.facts, body, declared, result_tree, instance.span)
