"""Emission and compilation, over hand-made programs with small primitives of their own."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.primitive import H, Hlo, Primitive, Types
from pscdsl._src.ir.program import Block, Equation, Function, Literal, Var
from pscdsl._src.targets.pipeline import VERIFY, lower_module
from pscdsl._src.xla.compilation import compile_module
from pscdsl._src.xla.emit.context import module_bytecode, module_text
from pscdsl._src.xla.runtime.devices import to_numpy as contents
from pscdsl._src.xla.runtime.executable import Executable, load_executable
from pscdsl.typing import dims, dtypes
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.diagnostics import Span
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, F32, I32, KEY, DType

pytestmark = pytest.mark.jaxlib

N = dims.parse("n")
VECTOR = ArrayType(F32, (N,))
SCALAR = ArrayType(F32)


@pytest.fixture(autouse=True)
def _unverified(  # pyright: ignore[reportUnusedFunction]
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The primitives here have no rule for types."""
    monkeypatch.delenv(VERIFY)


@dataclass(frozen=True, eq=False)
class Rule(Primitive):
    """A primitive that is nothing but its translation."""

    emit: Any

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        """Whatever the rule emits."""
        found: Sequence[H] = self.emit(hlo, operands, outputs)
        return found


@dataclass(frozen=True, eq=False)
class Call(Primitive):
    """A call of another function."""

    function: Function
    sizes: tuple[tuple[str, Size], ...]

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        """A call in the module."""
        return hlo.call(self.function, dict(self.sizes), operands)


ADD = Rule(lambda hlo, xs, outs: hlo.op("add", xs, outs))
TANH = Rule(lambda hlo, xs, outs: hlo.op("stablehlo.tanh", xs, outs))


def function(block: Block, sizes: tuple[str, ...] = ("n",), name: str = "f") -> Function:
    return Function(name, sizes, Assumptions(), block)


def program(rule: Any, inputs: Sequence[ArrayType], *outputs: ArrayType) -> Function:
    """One equation."""
    params = tuple(Var(t) for t in inputs)
    results = tuple(Var(t) for t in outputs)
    return function(Block(params, (Equation(Rule(rule), params, results),), results))


def compiled(f: Function, **sizes: int) -> Executable:
    return compile_module(lower_module(f, sizes))


def run(f: Function, *leaves: Any, **sizes: int) -> list[Any]:
    return [contents(x) for x in compiled(f, **sizes).run(leaves)]


def double_tanh() -> Function:
    x, y, z = Var(VECTOR), Var(VECTOR), Var(VECTOR)
    span = Span("model.py", 3, 5, 3, 9)
    equations = (
        Equation(TANH, (x,), (y,), span),
        Equation(ADD, (y, y), (z,), span.within(Span("model.py", 7, 1, 7, 2))),
    )
    return function(Block((x,), equations, (z,)))


def test_sizes_become_numbers() -> None:
    f = double_tanh()
    assert "tensor<4xf32>" in module_text(lower_module(f, {"n": 4}))
    x = np.linspace(-1, 1, 7, dtype=np.float32)
    np.testing.assert_allclose(run(f, x, n=7)[0], 2 * np.tanh(x), rtol=1e-6)


def test_places_and_bytecode() -> None:
    module = lower_module(double_tanh(), {"n": 4})
    text = module_text(module, places=True)
    assert '"model.py":3:5' in text
    assert "callsite" in text
    assert "model.py" not in module_text(module)
    assert module_bytecode(module).startswith(b"ML\xefR")


def test_compiling_leaves_the_module_alone() -> None:
    module = lower_module(double_tanh(), {"n": 4})
    before = module_text(module)
    compile_module(module)
    assert module_text(module) == before


def test_a_callee_appears_once_for_each_size() -> None:
    inner = double_tanh()
    outer_size = dims.parse("n+1")
    a, b = Var(VECTOR), Var(ArrayType(F32, (outer_size,)))
    variables, equations = [a, b], []
    for _ in range(10):
        for k, size in ((0, N), (1, outer_size)):
            new = Var(variables[k].type)
            equations.append(Equation(Call(inner, (("n", size),)), (variables[k],), (new,)))
            variables[k] = new
    f = function(Block((a, b), tuple(equations), tuple(variables)), name="weird name!")
    module = lower_module(f, {"n": 3})
    text = module_text(module)
    assert text.count("func.func private") == 2
    assert text.count("call @f") == 20
    out = run(f, np.zeros(3, np.float32), np.zeros(4, np.float32), n=3)
    assert [x.shape for x in out] == [(3,), (4,)]


def test_functions_of_one_name_stay_apart() -> None:
    x, y, z = Var(VECTOR), Var(VECTOR), Var(VECTOR)
    p, q = Var(VECTOR), Var(VECTOR)
    other = function(Block((p,), (Equation(ADD, (p, p), (q,)),), (q,)))
    equations = (
        Equation(Call(double_tanh(), (("n", N),)), (x,), (y,)),
        Equation(Call(other, (("n", N),)), (y,), (z,)),
    )
    f = function(Block((x,), equations, (z,)), name="main")
    np.testing.assert_allclose(run(f, np.ones(2, np.float32), n=2)[0], 4 * np.tanh(1), rtol=1e-6)


CONSTANTS = [
    np.array([1.5, -0.0, np.nan, np.inf, -np.inf]),
    np.array([0.0, -0.0]),
    np.array([-0.0, -0.0]),
    np.ones((2, 3)),
    np.arange(6.0).reshape(2, 3).T,
    np.zeros((0, 3)),
    np.array(7.0),
    np.array([True, False, True]),
]


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_constants(dtype: DType) -> None:
    arrays = [np.array(x.astype(to_numpy(dtype)), order="K") for x in CONSTANTS]
    if dtype.is_integer:
        arrays.append(np.array(dtype.range, to_numpy(dtype)))
    types = [ArrayType(dtype, x.shape) for x in arrays]
    f = program(
        lambda hlo, xs, outs: [hlo.constant(x, t) for x, t in zip(arrays, types, strict=True)],
        (),
        *types,
    )
    for got, expected in zip(run(f), arrays, strict=True):
        assert got.dtype == expected.dtype
        assert got.shape == expected.shape
        assert got.tobytes() == expected.tobytes() or dtype.is_inexact
        same(got, expected)
        if dtype.is_inexact and not dtype.is_complex:
            np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_full(dtype: DType) -> None:
    values: list[Any] = [True] if dtype is BOOL else [0, 1, 3]
    if dtype.is_inexact:
        values += [0.0, -0.0, 0.1, float("nan"), float("-inf")]
    if dtype.is_complex:
        values += [1 + 2j]
    types = [ArrayType(dtype, (2, 3)), ArrayType(dtype, (0,)), ArrayType(dtype)]
    f = program(
        lambda hlo, xs, outs: [hlo.full(v, t) for v in values for t in types],
        (),
        *(types * len(values)),
    )
    got = run(f)
    for i, value in enumerate(values):
        for j, kind in enumerate(types):
            expected = np.full(hlo_shape(kind), value, to_numpy(dtype))
            same(got[3 * i + j], expected)
            if not dtype.is_complex and dtype.is_inexact:
                np.testing.assert_array_equal(np.signbit(got[3 * i + j]), np.signbit(expected))


def same(got: Any, expected: Any) -> None:
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    wide = np.complex128 if expected.dtype.kind in "fcV" else got.dtype  # bf16 has kind V
    np.testing.assert_array_equal(got.astype(wide), expected.astype(wide))


def hlo_shape(kind: ArrayType) -> tuple[int, ...]:
    return tuple(int(size) for size in kind.shape)  # type: ignore[arg-type]


def test_literals_are_operands_and_results() -> None:
    x, y = Var(SCALAR), Var(SCALAR)
    block = Block((x,), (Equation(ADD, (x, Literal(2.5, F32)), (y,)),), (y, Literal(3, I32)))
    assert [v.item() for v in run(function(block), np.float32(1))] == [3.5, 3]


def test_loops_and_branches() -> None:
    counter = ArrayType(I32)

    def emit(hlo: Any, operands: Any, outputs: Any) -> Any:
        x, limit = operands

        def body(state: Any) -> Any:
            i, value = state
            grow = hlo.compare("LT", value, hlo.full(100.0, SCALAR))
            (value,) = hlo.case(
                hlo.convert(grow, counter),
                [lambda: (value,), lambda: (hlo.binary("add", value, value),)],
                [SCALAR],
            )
            return hlo.binary("add", i, hlo.full(1, counter)), value

        start = hlo.full(0, counter)
        return hlo.while_loop((start, x), lambda s: hlo.compare("LT", s[0], limit), body)

    f = program(emit, (SCALAR, counter), counter, SCALAR)
    assert [v.item() for v in run(f, np.float32(3), np.int32(20))] == [20, 192.0]


def test_reduce_sort_and_scatter() -> None:
    index = ArrayType(I32, (N,))

    def emit(hlo: Any, operands: Any, outputs: Any) -> Any:
        (x,) = operands
        total = hlo.reduce(
            (x,),
            (hlo.full(0.0, SCALAR),),
            (0,),
            (SCALAR,),
            lambda acc, new: (hlo.binary("add", acc[0], new[0]),),
        )
        iota = hlo.op("iota", (), (index,), {"iota_dimension": 0})[0]
        sorted_, order = hlo.sort(
            (x, iota), 0, True, lambda s: hlo.compare("LT", s[0], s[1], total=True)
        )
        text = (
            "#stablehlo.scatter<inserted_window_dims = [0], "
            "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>"
        )
        at = hlo.reshape(order, ArrayType(I32, (N, 1)))
        scattered = hlo.op(
            "scatter",
            (x, at, x),
            (VECTOR,),
            {"scatter_dimension_numbers": hlo.parse_attribute(text), "unique_indices": True},
            (hlo.region((SCALAR, SCALAR), lambda args: (args[1],)),),
        )
        return *total, sorted_, order, *scattered

    f = program(emit, (VECTOR,), SCALAR, VECTOR, index, VECTOR)
    x = np.array([3, -1, 2, 0.5], np.float32)
    total, ordered, order, scattered = run(f, x, n=4)
    assert total == x.sum()
    np.testing.assert_array_equal(ordered, np.sort(x))
    np.testing.assert_array_equal(order, np.argsort(x))
    np.testing.assert_array_equal(scattered[np.argsort(x)], x)


def test_keys_have_a_trailing_axis() -> None:
    keys = ArrayType(KEY, (N,))

    def emit(hlo: Any, operands: Any, outputs: Any) -> Any:
        which, key = operands
        many = hlo.broadcast(key, keys, ())
        flipped = hlo.unary("not", many)
        return (hlo.select(which, many, flipped),)

    f = program(emit, (ArrayType(BOOL, (N,)), ArrayType(KEY)), keys)
    (out,) = run(f, np.array([True, False]), np.array([1, 2], np.uint32), n=2)
    np.testing.assert_array_equal(out, [[1, 2], [2**32 - 2, 2**32 - 3]])


def cholesky(n: int) -> Function:
    """The lower triangle of its result is the factor of a matrix."""
    matrix = ArrayType(F32, (n, n))

    def emit(hlo: Any, operands: Any, outputs: Any) -> Any:
        return hlo.lapack("potrf", operands, (matrix, ArrayType(I32)), uplo="L")

    return program(emit, (matrix,), matrix, ArrayType(I32))


MATRIX = np.array([[4, 1, 0], [1, 3, 1], [0, 1, 2]], np.float32)


def test_routines_of_lapack() -> None:
    factor, info = run(cholesky(3), MATRIX)
    assert info == 0
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(MATRIX), atol=1e-6)


LOADING = """
import sys
import numpy as np
from pscdsl._src.xla.runtime.boot import Aval
from pscdsl._src.xla.runtime.executable import load_executable

blob = open(sys.argv[1], "rb").read()
matrix, scalar = Aval((3, 3), np.dtype("f4")), Aval((), np.dtype("i4"))
factor, info = load_executable(blob, [matrix], [matrix, scalar]).run([np.eye(3, dtype="f4") * 4])
assert not np.asarray(info)
assert (np.diag(np.asarray(factor)) == 2).all()
"""


def test_a_loaded_executable_finds_lapack(tmp_path: Path) -> None:
    blob = tmp_path / "blob"
    blob.write_bytes(compiled(cholesky(3)).serialize())
    subprocess.run([sys.executable, "-c", LOADING, str(blob)], check=True, timeout=100)


def test_donated_memory_is_reused() -> None:
    x, y = Var(VECTOR), Var(VECTOR)
    f = function(Block((x,), (Equation(ADD, (x, x), (y,)),), (y,)))
    executable = compile_module(lower_module(f, {"n": 64}, donate=(0,)))
    (first,) = executable.run([np.ones(64, np.float32)])
    address = first.unsafe_buffer_pointer()
    (second,) = executable.execute([first])
    assert first.is_deleted()
    assert second.unsafe_buffer_pointer() == address
    assert contents(second)[0] == 4


def test_what_an_executable_tells_and_keeps() -> None:
    executable = compiled(double_tanh(), n=8)
    assert "ENTRY" in executable.text()
    assert executable.cost_analysis()["flops"] >= 0
    assert executable.memory()["arguments"] == 32
    again = load_executable(executable.serialize(), executable.inputs, executable.outputs)
    x = np.ones(8, np.float32)
    np.testing.assert_array_equal(contents(again.run([x])[0]), contents(executable.run([x])[0]))


def test_the_loop_bound_is_set() -> None:
    def emit(hlo: Any, operands: Any, outputs: Any) -> Any:
        limit = hlo.full(50.0, SCALAR)
        return hlo.while_loop(
            operands,
            lambda s: hlo.compare("LT", s[0], limit),
            lambda s: (hlo.binary("add", s[0], hlo.full(1.0, SCALAR)), hlo.unary("tanh", s[1])),
        )

    f = program(emit, (SCALAR, VECTOR), SCALAR, VECTOR)
    module = lower_module(f, {"n": 1000})
    assert "small_call" not in compile_module(module, loop_bytes=1000).text()
    assert "small_call" in compile_module(module).text()


def test_nothing_in_nothing_out() -> None:
    assert run(function(Block((), (), ()), ())) == []


def test_arguments_are_checked() -> None:
    executable = compiled(double_tanh(), n=4)
    for wrong in (np.ones(4), np.ones(3, np.float32), np.ones((4, 1), np.float32)):
        with pytest.raises(ValueError, match="expected"):
            executable.run([wrong])
    with pytest.raises(ValueError, match="parameters"):
        executable.run([])
