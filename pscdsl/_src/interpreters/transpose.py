"""Reverse mode's second half: a linear program run backwards, from cotangents to cotangents."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from pscdsl._src.interpreters.jvp import Mask, derived
from pscdsl._src.interpreters.replay import Environment, append, closed, zeros
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.program import Atom, Block, Equation, Function, Literal
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.diagnostics import Failure


def transpose(
    here: Builder,
    block: Block,
    operands: Sequence[Value | ArrayType],
    cotangents: Sequence[Value | None],
) -> list[Value | None]:
    """The cotangents of a block's linear parameters, which are given by their types.

    What does not depend on these is computed unchanged.  None stands for zero.
    """
    known = [(v, o) for v, o in zip(block.params, operands, strict=True) if isinstance(o, Value)]
    env = Environment(here, [var for var, _ in known], [value for _, value in known])
    linear: set[Atom] = {
        var for var, o in zip(block.params, operands, strict=True) if not isinstance(o, Value)
    }
    program = here.program
    place = program.span
    due: list[Equation] = []
    for equation in block.equations:
        if linear.isdisjoint(equation.inputs):
            program.span = equation.span
            outputs = append(program.current, equation, env.all(equation.inputs))
            env.values.update(zip(equation.outputs, outputs, strict=True))
        else:
            linear.update(equation.outputs)
            due.append(equation)
    sums: dict[Atom, Value] = {}

    def add(atom: Atom, cotangent: Value | None) -> None:
        if cotangent is not None and atom in linear:
            old = sums.get(atom)
            sums[atom] = cotangent if old is None else old + cotangent

    for atom, cotangent in zip(block.results, cotangents, strict=True):
        add(atom, cotangent)
    for equation in reversed(due):
        given = [sums.pop(var, None) for var in equation.outputs]
        if all(each is None for each in given):
            continue
        program.span = equation.span
        inputs = [atom.type if atom in linear else env[atom] for atom in equation.inputs]
        try:
            found = equation.primitive.transpose(given, inputs)
        except Failure as failure:
            raise failure.at(equation.span) from None
        for atom, cotangent in zip(equation.inputs, found, strict=True):
            if not isinstance(atom, Literal):
                add(atom, cotangent)
    program.span = place
    return [sums.get(var) if var in linear else None for var in block.params]


def transpose_block(
    facts: Assumptions, block: Block, linear: Mask, given: Mask, wanted: Mask | None = None
) -> tuple[Block, Mask]:
    """The transpose of a block in its linear parameters, and which of these get a cotangent.

    It takes the other parameters, then the cotangents of the results that have one, and returns
    the cotangents of the linear parameters that get one, or that are `wanted` to.
    """
    flags: list[bool] = []
    types = block.in_types
    known = [type_ for type_, is_linear in zip(types, linear, strict=True) if not is_linear]

    def build(here: Builder, params: list[Value]) -> list[Value]:
        values, more = iter(params[: len(known)]), iter(params[len(known) :])
        operands = [t if is_linear else next(values) for t, is_linear in zip(types, linear)]  # noqa: B905
        cotangents = [next(more) if is_given else None for is_given in given]
        found = transpose(here, block, operands, cotangents)
        results: list[Value] = []
        for index, (each, is_linear) in enumerate(zip(found, linear, strict=True)):
            keeps = is_linear and (each is not None or (wanted is not None and wanted[index]))
            flags.append(keeps)
            if keeps:
                results.append(zeros(here, types[index]) if each is None else each)
        return results

    received = [type_ for type_, is_given in zip(block.out_types, given, strict=True) if is_given]
    return closed(facts, (*known, *received), build), tuple(flags)


@lru_cache(maxsize=4096)
def transpose_function(function: Function, linear: Mask, given: Mask) -> tuple[Function, Mask]:
    """The same for a function; it is transposed once, however often it is called."""
    block, with_cotangents = transpose_block(function.facts, function.body, linear, given)
    return derived(function, "transpose", block), with_cotangents
