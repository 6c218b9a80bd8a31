"""Forward mode: a program together with its tangents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from pscdsl._src.interpreters.replay import Environment, append, closed, zeros
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.program import Block, Function
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.diagnostics import Failure

Mask = tuple[bool, ...]


def has_tangent(type: ArrayType) -> bool:  # noqa: A002
    """Whether arrays of a type have tangents; bool, integers and keys do not."""
    return type.dtype.is_inexact


def jvp(
    here: Builder, block: Block, primals: Sequence[Value], tangents: Sequence[Value | None]
) -> tuple[list[Value], list[Value | None]]:
    """The results of a block and their tangents; None stands for zero."""
    env = Environment(here, block.params, primals)
    moving = {
        var: tangent
        for var, tangent in zip(block.params, tangents, strict=True)
        if tangent is not None
    }
    program = here.program
    place = program.span
    for equation in block.equations:
        program.span = equation.span
        operands = env.all(equation.inputs)
        outputs: Sequence[Value]
        if moving.keys().isdisjoint(equation.inputs):
            outputs = append(program.current, equation, operands)
        else:
            given = [moving.get(atom) for atom in equation.inputs]  # type: ignore[arg-type]
            try:
                outputs, found = equation.primitive.differentiate(operands, given)
            except Failure as failure:
                raise failure.at(equation.span) from None
            for var, tangent in zip(equation.outputs, found, strict=True):
                if tangent is not None:
                    moving[var] = tangent
        env.values.update(zip(equation.outputs, outputs, strict=True))
    program.span = place
    results = env.all(block.results)
    return results, [moving.get(atom) for atom in block.results]  # type: ignore[arg-type]


def jvp_block(
    facts: Assumptions, block: Block, active: Mask, wanted: Mask | None = None
) -> tuple[Block, Mask]:
    """The block with tangents, and which results have one.

    It takes the primals, then a tangent for each active parameter, and returns the results, then
    the tangents of those that have one, or that are `wanted` to.
    """
    flags: list[bool] = []

    def build(here: Builder, params: list[Value]) -> list[Value]:
        primals, given = params[: len(active)], iter(params[len(active) :])
        tangents = [next(given) if moves else None for moves in active]
        results, found = jvp(here, block, primals, tangents)
        moving: list[Value] = []
        for index, (result, tangent) in enumerate(zip(results, found, strict=True)):
            wants = tangent is not None or (wanted is not None and wanted[index])
            flags.append(wants)
            if wants:
                moving.append(zeros(here, result.type) if tangent is None else tangent)
        return [*results, *moving]

    moved = [type_ for type_, moves in zip(block.in_types, active, strict=True) if moves]
    made = closed(facts, (*block.in_types, *moved), build)
    return made, tuple(flags)


@lru_cache(maxsize=4096)
def jvp_function(function: Function, active: Mask) -> tuple[Function, Mask]:
    """The same for a function; it is made once, however often it is called."""
    block, active_results = jvp_block(function.facts, function.body, active)
    return derived(function, "jvp", block), active_results


def derived(function: Function, what: str, body: Block) -> Function:
    """A function made of another one, in the same sizes."""
    name = f"{function.name}.{what}"
    return replace(function, name=name, body=body, parameters=(), result=None)
