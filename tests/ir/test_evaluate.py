"""The NumPy meaning of whole programs; that of each primitive is in the laws."""

from __future__ import annotations

import numpy as np
import pytest

from pscdsl._src.ir.builder import Program
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.program import (
    Block,
    Equation,
    Evaluator,
    Function,
    Literal,
    Var,
    evaluate,
    evaluate_block,
    literal_array,
)
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.control import Call
from pscdsl._src.primitives.scan import Scan
from pscdsl._src.primitives.shaping import SizeValue
from pscdsl.typing import dims
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dtypes import ALL, F16, F32, I32, U64, Kind

N = dims.name("n")
VECTOR = ArrayType(F32, (N,))


def _function(name: str, block: Block) -> Function:
    return Function(name, ("n",), Assumptions(), block)


def test_a_size_less_an_array_is_a_difference_of_the_two() -> None:
    here = Program().current
    _ = N - here.parameter(ArrayType(I32, ()))
    assert [each.primitive for each in here.equations] == [SizeValue(N, I32), e.subtract]


def test_literals_have_their_dtype() -> None:
    for dtype in ALL:
        value = {Kind.BOOL: True, Kind.INT: 1, Kind.FLOAT: 1.0}.get(dtype.kind, 1 + 0j)
        array = literal_array(Literal(value, dtype))
        assert array.dtype == to_numpy(dtype)
        assert array.shape == ()
        assert array == 1


def test_literals_at_the_end_of_their_range() -> None:
    assert literal_array(Literal(2**64 - 1, U64)) == 2**64 - 1
    assert np.isinf(literal_array(Literal(1e300, F16)))
    assert np.signbit(literal_array(Literal(-0.0, F32)))


def test_sizes_are_those_of_the_function_that_mentions_them() -> None:
    program = Program()
    x = program.current.parameter(VECTOR)
    (size,) = program.current.bind(SizeValue(N, F32), ())
    inner = _function("inner", program.current.finish([x], [x * size])[0])
    program = Program()
    y = program.current.parameter(ArrayType(F32, (3 * N,)))
    (scaled,) = program.current.bind(Call(inner, (("n", 3 * N),)), [y])
    (own,) = program.current.bind(SizeValue(N, F32), ())
    outer = _function("outer", program.current.finish([y], [scaled, own])[0])
    scaled_by, number = evaluate(outer, {"n": 2}, [np.ones(6, np.float32)])
    assert scaled_by.tolist() == [6.0] * 6
    assert number == 2


def test_a_size_without_a_number_is_an_error() -> None:
    with pytest.raises(dims.MissingSize, match="n"):
        Evaluator({}).shape((N, 2))


def test_operands_are_counted() -> None:
    x = Var(VECTOR)
    with pytest.raises(ValueError, match="zip"):
        evaluate_block(Block((x,), (), (x,)), {"n": 1}, [])


def test_results_may_be_parameters_and_literals() -> None:
    x = Var(VECTOR)
    block = Block((x,), (), (x, Literal(2, I32), x))
    first, number, second = evaluate_block(block, {"n": 2}, [np.arange(2, dtype=np.float32)])
    assert first is second
    assert number == 2


def test_a_variable_from_outside_the_block_is_an_error() -> None:
    x, y = Var(VECTOR), Var(VECTOR)
    with pytest.raises(KeyError):
        evaluate_block(Block((), (Equation(e.negative, (x,), (y,)),), (y,)), {"n": 1}, [])


def test_loops_may_be_nested_deeply() -> None:
    program = Program()
    x = program.current.parameter(ArrayType(I32))
    block = program.current.finish([x], [x + 1])[0]
    for _ in range(60):
        param = Var(ArrayType(I32))
        result = Var(ArrayType(I32))
        block = Block((param,), (Equation(Scan(block, 0, 1, 1), (param,), (result,)),), (result,))
    assert evaluate_block(block, {}, [np.asarray(1, np.int32)])[0] == 2


def test_calls_may_be_nested_deeply() -> None:
    program = Program()
    x = program.current.parameter(ArrayType(I32))
    function = Function("f", (), Assumptions(), program.current.finish([x], [x + 1])[0])
    for _ in range(100):
        param = Var(ArrayType(I32))
        result = Var(ArrayType(I32))
        block = Block((param,), (Equation(Call(function, ()), (param,), (result,)),), (result,))
        function = Function("f", (), Assumptions(), block)
    assert evaluate(function, {}, [np.asarray(1, np.int32)])[0] == 2
