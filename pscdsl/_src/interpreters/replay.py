"""Programs run over programs: once more, with tangents, backwards, and over a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

from pscdsl._src.ir.builder import Builder, Program, Value
from pscdsl._src.ir.primitive import WholeTangent
from pscdsl._src.ir.program import Atom, Block, Equation, Function, Literal, Var
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size, name
from pscdsl.typing.dtypes import BOOL, I32, KEY

# Programs appended to others, and closed blocks made from scratch.


class Environment:
    """The values of a block's atoms while it is replayed."""

    def __init__(self, here: Builder, params: Sequence[Var], values: Sequence[Value]) -> None:
        self.here = here
        self.values: dict[Atom, Value] = dict(zip(params, values, strict=True))

    def __getitem__(self, atom: Atom) -> Value:
        if isinstance(atom, Literal):
            return Value(self.here, atom)
        return self.values[atom]

    def all(self, atoms: Sequence[Atom]) -> list[Value]:
        """Return the values of several atoms."""
        return [self[atom] for atom in atoms]


def append(here: Builder, equation: Equation, operands: Sequence[Value]) -> list[Value]:
    """Append an equation with other operands; derive its types again where these differ."""
    atoms = tuple([v.atom if v.builder is here else here.atom(v) for v in operands])
    types = [atom.type for atom in atoms]
    if types == [atom.type for atom in equation.inputs]:
        outputs = tuple([Var(var.type, var.hint) for var in equation.outputs])
    else:
        derived = equation.primitive.type_rule(here.facts, *types)
        outputs = tuple([Var(t, v.hint) for t, v in zip(derived, equation.outputs, strict=True)])
    here.equations.append(Equation(equation.primitive, atoms, outputs, here.program.span))
    return [Value(here, var) for var in outputs]


def replay(here: Builder, block: Block, operands: Sequence[Value]) -> list[Value]:
    """Append a block's equations to the innermost block, and return its results."""
    env = Environment(here, block.params, operands)
    program = here.program
    place = program.span
    for equation in block.equations:
        program.span = equation.span
        results = append(program.current, equation, env.all(equation.inputs))
        env.values.update(zip(equation.outputs, results, strict=True))
    program.span = place
    return env.all(block.results)


def closed(
    facts: Assumptions,
    types: Sequence[ArrayType],
    build: Callable[[Builder, list[Value]], Sequence[Value]],
) -> Block:
    """Return a block with parameters of these types, and the results that `build` makes of them."""
    here = Program(facts).current
    params = [here.parameter(type_) for type_ in types]
    return here.finish(params, build(here, params))[0]


def zeros(here: Builder, type: ArrayType) -> Value:  # noqa: A002
    """Zeros of any type: false for bool, and for keys those of the seed 0."""
    dtype = type.dtype
    if dtype is KEY:
        return here.bind(here.basis.seed_key(), (here.full(0, type.shape, I32),))[0]
    if dtype is BOOL:
        return here.full(False, type.shape, dtype)
    return here.full(0j if dtype.is_complex else 0.0 if dtype.is_float else 0, type.shape, dtype)


# Forward mode: a program together with its tangents.


Mask = tuple[bool, ...]


def has_tangent(type: ArrayType) -> bool:  # noqa: A002
    """Return whether arrays of a type have tangents; bool, integers and keys do not."""
    return type.dtype.is_inexact


def jvp(
    here: Builder, block: Block, primals: Sequence[Value], tangents: Sequence[Value | None]
) -> tuple[list[Value], list[Value | None]]:
    """Return the results of a block and their tangents; None means zero."""
    env = Environment(here, block.params, primals)
    moving = {
        var: tangent
        for var, tangent in zip(block.params, tangents, strict=True)
        if tangent is not None
    }
    program = here.program
    place = program.span
    whole: dict[Equation, WholeTangent] = {}
    for equation in block.equations:
        program.span = equation.span
        operands = env.all(equation.inputs)
        outputs: Sequence[Value]
        if not any(atom in moving for atom in equation.inputs):
            outputs = append(program.current, equation, operands)
        else:
            rule = whole.get(equation)
            inputs = equation.inputs if rule is None else rule.operands
            given = [moving.get(atom) for atom in inputs]  # type: ignore[arg-type]
            found: Sequence[Value | None]
            try:
                if rule is None:
                    outputs, found = equation.primitive.differentiate(operands, given)
                else:
                    outputs = append(program.current, equation, operands)
                    found = (rule.tangent(env.all(inputs), given),)
            except Failure as failure:
                raise failure.at(equation.span) from None
            whole.update(equation.primitive.whole_tangents(block, equation))
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
    """Return the block with tangents, and which results have one.

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
    """Differentiate a function; the result is cached for further calls."""
    block, active_results = jvp_block(function.facts, function.body, active)
    return derived(function, "jvp", block), active_results


def derived(function: Function, what: str, body: Block) -> Function:
    """Return a function made of another one, in the same sizes."""
    name = f"{function.name}.{what}"
    return replace(function, name=name, body=body, parameters=(), result=None)


# Reverse mode's second half: a linear program run backwards, from cotangents to cotangents.


def transpose(
    here: Builder,
    block: Block,
    operands: Sequence[Value | ArrayType],
    cotangents: Sequence[Value | None],
) -> list[Value | None]:
    """Return the cotangents of a block's linear parameters, which are given by their types.

    Equations that do not depend on these are replayed unchanged. None means zero.
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
    """Return the transpose of a block in its linear parameters, and which of these get a cotangent.

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
    """Transpose a function; the result is cached for further calls."""
    block, with_cotangents = transpose_block(function.facts, function.body, linear, given)
    return derived(function, "transpose", block), with_cotangents


# A program over a batch: batched values have the batch as their first axis.


BATCH = "batch"
"""The name of the batch's size in functions over a batch."""


def over_batch(type: ArrayType, size: Size) -> ArrayType:  # noqa: A002
    """Return the type of a batch of arrays."""
    return type.with_shape((size, *type.shape))


def repeated(value: Value, size: Size) -> Value:
    """Return a batch of equal arrays."""
    rank = value.ndim
    return value.builder.spread(value, (size, *value.shape), tuple(range(1, rank + 1)))


def batch(
    here: Builder, block: Block, operands: Sequence[Value], batched: Sequence[bool], size: Size
) -> tuple[list[Value], list[bool]]:
    """Return the results of a block over a batch, and which of them are batched."""
    env = Environment(here, block.params, operands)
    many = {var for var, is_batched in zip(block.params, batched, strict=True) if is_batched}
    program = here.program
    place = program.span
    for equation in block.equations:
        program.span = equation.span
        inputs = env.all(equation.inputs)
        flags = [atom in many for atom in equation.inputs]
        outputs: Sequence[Value]
        if not any(flags):
            outputs = append(program.current, equation, inputs)
        else:
            try:
                outputs, batched_outputs = equation.primitive.batch(inputs, flags, size)
            except Failure as failure:
                raise failure.at(equation.span) from None
            many.update(
                var for var, flag in zip(equation.outputs, batched_outputs, strict=True) if flag
            )
        env.values.update(zip(equation.outputs, outputs, strict=True))
    program.span = place
    return env.all(block.results), [atom in many for atom in block.results]


def batch_block(
    facts: Assumptions, block: Block, batched: Mask, size: Size, wanted: Mask | None = None
) -> tuple[Block, Mask]:
    """Return the block over a batch, and which results are batched, including the `wanted` ones."""
    flags: list[bool] = []

    def build(here: Builder, params: list[Value]) -> list[Value]:
        results, batched_results = batch(here, block, params, batched, size)
        for index, is_batched in enumerate(batched_results):
            flags.append(is_batched or (wanted is not None and wanted[index]))
            if flags[-1] and not is_batched:
                results[index] = repeated(Value(here, here.atom(results[index])), size)
        return results

    types = [over_batch(t, size) if b else t for t, b in zip(block.in_types, batched, strict=True)]
    return closed(facts, types, build), tuple(flags)


@lru_cache(maxsize=4096)
def batch_function(
    function: Function, batched: Mask, may_be_empty: bool = False
) -> tuple[Function, str, Mask]:
    """Return a function over a batch, its name of the batch's size, and its batched results."""
    called = BATCH
    while called in function.dims:
        called += "_"
    facts = function.facts
    if may_be_empty:
        facts = facts.assume(Fact("<=", 0, name(called)))
    block, batched_results = batch_block(facts, function.body, batched, name(called))
    made = derived(function, "batch", block)
    return replace(made, dims=(*made.dims, called), facts=facts), called, batched_results
