"""Programs that are broken in one place are caught there."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from pscdsl._src.analysis.verify import VerificationError, verify
from pscdsl._src.ir.program import Atom, Block, Equation, Function, Literal, Scalar, Var
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.control import Call
from pscdsl._src.primitives.scan import Scan
from pscdsl._src.primitives.shaping import Iota, SizeValue
from pscdsl.typing import dims
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.diagnostics import Span
from pscdsl.typing.dtypes import BOOL, F32, I8, I32, U8, DType
from tests.support.law_rows_structure import facts
from tests.support.random_programs import RandomProgram

pytestmark = pytest.mark.jaxlib

N = dims.name("n")
VECTOR = ArrayType(F32, (N,))
PLACE = Span("program.py", 7, 3, 7, 9)


def _function(block: Block, known: Assumptions | None = None) -> Function:
    return Function("f", ("n",), known or Assumptions(), block)


def _one(primitive: e.Elementwise, inputs: tuple[Atom, ...], output: ArrayType) -> Function:
    result = Var(output)
    params = tuple(atom for atom in inputs if isinstance(atom, Var))
    return _function(Block(params, (Equation(primitive, inputs, (result,), PLACE),), (result,)))


def test_well_formed_programs_pass() -> None:
    for seed in range(60):
        verify(RandomProgram(seed).function())


def test_the_error_names_equation_and_place() -> None:
    x = Var(VECTOR, "x")
    with pytest.raises(VerificationError) as caught:
        verify(_one(e.negative, (x,), ArrayType(I32, (N,))))
    assert caught.value.span is PLACE
    assert str(caught.value) == (
        "program.py:7:3: in f: `a: i32[n] = negative x`: results are (i32[n]), not (f32[n])"
    )


def test_operands_that_the_type_rule_refuses() -> None:
    x, y = Var(VECTOR), Var(ArrayType(I32, (N,)))
    with pytest.raises(VerificationError, match="`add` does not fit its operands"):
        verify(_one(e.add, (x, y), VECTOR))


def test_too_few_operands() -> None:
    with pytest.raises(VerificationError, match="the type rule fails"):
        verify(_one(e.add, (), VECTOR))


def test_a_value_that_nobody_defines() -> None:
    with pytest.raises(VerificationError, match="not defined in this block"):
        verify(_function(Block((), (), (Var(VECTOR),))))


def test_a_value_defined_after_its_use() -> None:
    x, y, z = Var(VECTOR), Var(VECTOR), Var(VECTOR)
    later = Equation(e.negative, (x,), (y,)), Equation(e.negative, (y,), (z,))
    verify(_function(Block((x,), later, (z,))))
    with pytest.raises(VerificationError, match="not defined"):
        verify(_function(Block((x,), later[::-1], (z,))))


def test_a_value_defined_twice() -> None:
    x, y = Var(VECTOR), Var(VECTOR)
    with pytest.raises(VerificationError, match="defined twice"):
        verify(_function(Block((x,), (Equation(e.negative, (x,), (y,)),) * 2, (y,))))
    with pytest.raises(VerificationError, match="same parameter twice"):
        verify(_function(Block((x, x), (), ())))


def test_a_block_that_uses_what_is_outside() -> None:
    x, y, step, result = Var(VECTOR), Var(VECTOR), Var(VECTOR), Var(VECTOR)
    body = Block((step,), (Equation(e.add, (step, x), (y,)),), (y,))
    scan = Equation(Scan(body, 0, 1, N), (x,), (result,))
    with pytest.raises(VerificationError, match="not defined in this block"):
        verify(_function(Block((x,), (scan,), (result,))))


def test_a_nested_block_of_the_wrong_type() -> None:
    x, step, result = Var(VECTOR), Var(VECTOR), Var(VECTOR)
    scan = Equation(Scan(Block((step,), (), (Literal(1.0, F32),)), 0, 1, N), (x,), (result,))
    with pytest.raises(VerificationError, match="the next carry: number 0 is f32"):
        verify(_function(Block((x,), (scan,), (result,))))


def test_sizes_that_are_not_declared() -> None:
    other = dims.name("k")
    x, number = Var(ArrayType(F32, (other,))), Var(ArrayType(I32))
    with pytest.raises(VerificationError, match="not declared: k"):
        verify(_function(Block((x,), (), ())))
    size = Equation(SizeValue(other * 2, I32), (), (number,))
    with pytest.raises(VerificationError, match=r"the size 2\*k mentions"):
        verify(_function(Block((), (size,), ())))
    with pytest.raises(VerificationError, match=r"the assertion k <= 3"):
        verify(_function(Block((), (), ()), Assumptions((Fact("<=", other, 3),))))
    counts = Equation(Iota((other,), 0, I32), (), (Var(ArrayType(I32, (N,))),))
    with pytest.raises(VerificationError, match="not"):
        verify(_function(Block((), (counts,), ())))


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(1.0, I32), (1, F32), (1, BOOL), (True, I32), (300, I8), (-1, U8), (1j, F32)],
)
def test_literals_that_do_not_fit(value: Scalar, dtype: DType) -> None:
    with pytest.raises(VerificationError, match="does not fit its type"):
        verify(_function(Block((), (), (Literal(value, dtype),))))


def test_types_are_equal_by_what_is_known() -> None:
    x, y = Var(ArrayType(F32, (N * 2,))), Var(ArrayType(F32, (N // 2 * 4,)))
    block = Block((x,), (Equation(e.negative, (x,), (y,)),), (y,))
    verify(_function(block, facts("n % 2 == 0")))
    with pytest.raises(VerificationError):
        verify(_function(block))


def test_a_call_must_establish_what_is_required() -> None:
    x, y, z = Var(VECTOR), Var(VECTOR), Var(VECTOR)
    callee = _function(Block((x,), (), (x,)), facts("n % 2 == 0"))
    call = Block((y,), (Equation(Call(callee, (("n", N),)), (y,), (z,)),), (z,))
    verify(_function(call, facts("n % 4 == 0")))
    with pytest.raises(VerificationError, match="n % 2 == 0 is not known to hold"):
        verify(_function(call))
    none = Block((y,), (Equation(Call(callee, ()), (y,), (z,)),), (z,))
    with pytest.raises(VerificationError, match="sizes given"):
        verify(_function(none))


def test_callees_are_verified() -> None:
    x, y, z = Var(VECTOR), Var(VECTOR), Var(VECTOR)
    broken = replace(_function(Block((x,), (), (Var(VECTOR),))), name="broken")
    call = Equation(Call(broken, (("n", N),)), (y,), (z,))
    with pytest.raises(VerificationError, match="in broken"):
        verify(_function(Block((y,), (call,), (z,))))


def test_signatures_are_those_of_the_body() -> None:
    x = Var(VECTOR)
    function = _function(Block((x,), (), (x,)))
    verify(replace(function, parameters=(("x", VECTOR),), result=VECTOR))
    with pytest.raises(VerificationError, match="parameters are"):
        verify(replace(function, parameters=(("x", ArrayType(F32)),)))
    with pytest.raises(VerificationError, match="results are"):
        verify(replace(function, result=ArrayType(F32)))
    with pytest.raises(VerificationError, match="declared twice"):
        verify(replace(function, dims=("n", "n")))


Mutation = Callable[[random.Random, Block, int], Block]


def _without(rng: random.Random, block: Block, place: int) -> Block:
    """The equation is gone."""
    return replace(block, equations=block.equations[:place] + block.equations[place + 1 :])


def _retyped(rng: random.Random, block: Block, place: int) -> Block:
    """One of its outputs is claimed to have another type; uses follow."""
    old = block.equations[place]
    index = rng.randrange(len(old.outputs))
    given = old.outputs[index].type
    other = given.with_dtype(I8) if rng.random() < 0.5 else given.with_shape((*given.shape, 7))
    outputs = list(old.outputs)
    outputs[index] = Var(other)
    new = Equation(old.primitive, old.inputs, tuple(outputs), old.span)
    equations = (*block.equations[:place], new, *block.equations[place + 1 :])
    renamed: dict[Atom, Atom] = {old.outputs[index]: outputs[index]}
    return Block(
        block.params,
        tuple(_renamed(each, renamed) for each in equations),
        tuple(renamed.get(atom, atom) for atom in block.results),
    )


def _renamed(equation: Equation, names: dict[Atom, Atom]) -> Equation:
    inputs = tuple(names.get(a, a) for a in equation.inputs)
    return Equation(equation.primitive, inputs, equation.outputs, equation.span)


def _fewer(rng: random.Random, block: Block, place: int) -> Block:
    """An operand of it is gone, or an output if it has none."""
    old = block.equations[place]
    inputs, outputs = (old.inputs[:-1], old.outputs) if old.inputs else ((), ())
    new = Equation(old.primitive, inputs, outputs, old.span)
    return replace(block, equations=(*block.equations[:place], new, *block.equations[place + 1 :]))


def _mutants(seed: int, mutation: Mutation) -> Iterator[Function]:
    rng = random.Random(seed)
    function = RandomProgram(seed).function()
    block = function.body
    for place in range(len(block.equations)):
        yield replace(function, body=mutation(rng, block, place))


@pytest.mark.parametrize("mutation", [_retyped, _fewer])
def test_mutants_are_caught(mutation: Mutation) -> None:
    count = 0
    for seed in range(30):
        for mutant in _mutants(seed, mutation):
            count += 1
            with pytest.raises(VerificationError):
                verify(mutant)
    assert count > 100


def test_missing_equations_are_caught_where_they_are_used() -> None:
    for seed in range(30):
        block = RandomProgram(seed).function().body
        used = {atom for each in block.equations for atom in each.inputs} | set(block.results)
        for place, mutant in enumerate(_mutants(seed, _without)):
            if used.isdisjoint(block.equations[place].outputs):
                verify(mutant)
            else:
                with pytest.raises(VerificationError, match="not defined"):
                    verify(mutant)
