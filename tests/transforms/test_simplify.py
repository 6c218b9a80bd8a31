"""Simplified programs: the same values, well formed, as simple as they get, and what is gone."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from pscdsl._src.analysis.show import show
from pscdsl._src.analysis.verify import verify
from pscdsl._src.ir.builder import Program, Value
from pscdsl._src.ir.primitive import Evaluation, NDArray, Primitive, Types
from pscdsl._src.ir.program import (
    Equation,
    Evaluator,
    Function,
    Literal,
    Var,
    evaluate,
    literal_array,
    walk,
)
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.control import Call, Switch
from pscdsl._src.primitives.reductions import Cumulative
from pscdsl._src.primitives.scan import Scan
from pscdsl._src.primitives.shaping import (
    Broadcast,
    Constant,
    Iota,
    Pad,
    Reshape,
    Reverse,
    SizeValue,
    Slice,
    Transpose,
)
from pscdsl._src.primitives.while_loop import While
from pscdsl._src.targets.pipeline import lower_module
from pscdsl._src.transforms.forward import NEUTRAL_RIGHT, same_as
from pscdsl._src.transforms.simplify import simplify
from pscdsl._src.xla.compilation import compile_module
from pscdsl.typing import dims
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dtypes import ALL, BOOL, F32, I32, DType, Kind
from tests.ir.test_show import Results, inside, program
from tests.support.law_rows import anything
from tests.support.random_programs import RandomProgram, operands

pytestmark = pytest.mark.quick_code

N = dims.name("n")


def same(left: tuple[NDArray, ...], right: tuple[NDArray, ...]) -> None:
    """The results are the same, bit for bit but for what a NaN holds."""
    for a, b in zip(left, right, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        np.testing.assert_array_equal(a, b)
        if a.dtype == np.float32:
            signs = np.signbit(a) == np.signbit(b)
            assert (signs | np.isnan(a)).all()


@pytest.mark.parametrize("start", range(0, 200, 100))
def test_random_programs_keep_their_meaning(start: int) -> None:
    for seed in range(start, start + 100):
        function = RandomProgram(seed, 16).function()
        simple = simplify(function)
        verify(simple)
        assert simplify(simple) is simple, seed
        for size in (1, 4):
            given = operands(function, {"n": size}, seed)
            sizes = {"n": size}
            same(evaluate(function, sizes, given), evaluate(simple, sizes, given))


def test_random_programs_compile_to_their_meaning() -> None:
    for seed in range(1000, 1012):
        function = RandomProgram(seed, 16).function()
        given = operands(function, {"n": 4}, seed)
        wanted = evaluate(function, {"n": 4}, given)
        module = lower_module(simplify(function), {"n": 4})
        for array, want in zip(compile_module(module).run(given), wanted, strict=True):
            np.testing.assert_allclose(np.asarray(array), want, rtol=1e-5)


def test_neutral_operands_are_neutral_for_every_value() -> None:
    rng = np.random.default_rng(0)
    for primitive in NEUTRAL_RIGHT:
        assert isinstance(primitive, e.Elementwise)
        for dtype in ALL:
            if not e.ACCEPTS[primitive.accepts](dtype):
                continue
            x = Var(ArrayType(dtype, (64,)))
            values = anything(rng, dtype, (64,))
            for literal in _literals(dtype):
                for inputs in ((x, literal), (literal, x)):
                    found = same_as(primitive, inputs, x, {})
                    if found is not None:
                        arrays = [
                            values if atom is x else literal_array(literal) for atom in inputs
                        ]
                        (result,) = primitive.evaluate(Evaluator({}), *arrays)
                        assert _bits_equal(result, values), (primitive, inputs)


def _literals(dtype: DType) -> list[Literal]:
    if dtype.kind is Kind.BOOL:
        return [Literal(False, dtype), Literal(True, dtype)]
    if dtype.kind is Kind.INT:
        low, high = dtype.range
        return [Literal(each, dtype) for each in {0, 1, max(-1, low), low, high}]
    numbers = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan)
    if dtype.kind is Kind.COMPLEX:
        return [Literal(complex(a, b), dtype) for a in numbers for b in (0.0, -0.0)]
    return [Literal(each, dtype) for each in numbers]


def _bits_equal(a: NDArray, b: NDArray) -> bool:
    a, b = (each.astype(np.complex128) for each in (a, b))
    for x, y in ((np.real(a), np.real(b)), (np.imag(a), np.imag(b))):
        alike = (x == y) & (np.signbit(x) == np.signbit(y))
        if not (alike | (np.isnan(x) & np.isnan(y))).all():
            return False
    return True


def count(function: Function) -> int:
    """How many equations there are, nested ones included."""
    return sum(1 for _ in walk(function.body))


def body_of(build: Callable[..., Results], params: str = "x: f32[n]") -> str:
    """The simplified body of a function as text, without its signature."""
    function = simplify(program("f", "n", params, build))
    verify(function)
    return show(function).split("\n", 1)[1]


def test_equal_equations_are_one() -> None:
    def body(x: Value) -> Results:
        return [e.sin(x) * 2.0 + e.sin(x) * 2.0]

    assert body_of(body).splitlines() == [
        "  a: f32[n] = sin x",
        "  b: f32[n] = multiply a 2.0",
        "  c: f32[n] = add b b",
        "  -> c",
    ]


def test_literals_that_differ_in_their_bits_are_not_equal() -> None:
    def body(x: Value) -> Results:
        return [e.copysign(x, 0.0), e.copysign(x, -0.0)]

    assert len(body_of(body).splitlines()) == 3


def test_what_nobody_needs_is_gone() -> None:
    def body(x: Value) -> Results:
        e.exp(x)
        return [x]

    assert body_of(body) == "  -> x\n"


def test_numbers_are_computed() -> None:
    def body(x: Value) -> Results:
        here = x.builder
        two = here.literal(2.0, F32)
        three = two + 1.0
        (size,) = here.bind(SizeValue(3, F32), ())
        return [x * (three * size)]

    assert body_of(body).splitlines() == ["  a: f32[n] = multiply x 9.0", "  -> a"]


def test_small_arrays_are_computed_and_large_ones_are_not() -> None:
    def body(x: Value) -> Results:
        here = x.builder
        (few,) = here.bind(Iota((4,), 0, I32), ())
        (many,) = here.bind(Iota((1000,), 0, I32), ())
        return [few * few, many * many]

    assert body_of(body).splitlines() == [
        "  a: i32[1000] = iota[shape=(1000,), axis=0, dtype=i32]",
        "  b: i32[4] = constant[[0 1 4 9]]",
        "  c: i32[1000] = multiply a a",
        "  -> b, c",
    ]


def test_empty_arrays_are_computed() -> None:
    def body(x: Value) -> Results:
        (none,) = x.builder.bind(Iota((0,), 0, I32), ())
        return [none + none]

    assert body_of(body).splitlines()[-1] == "  -> a"


def test_what_a_size_decides_is_not_computed() -> None:
    def body(x: Value) -> Results:
        (size,) = x.builder.bind(SizeValue(N, F32), ())
        return [size + 1.0]

    assert len(body_of(body).splitlines()) == 3


def test_loops_are_never_run() -> None:
    def body(x: Value) -> Results:
        start = x.builder.literal(0, I32)
        cond, _ = inside(x, "i: i32", lambda i: [i >= 0])
        step, _ = inside(x, "i: i32", lambda i: [i * 1 + i])
        return While(cond, step, 0, 0).bind(start)

    assert "while" in body_of(body)


def test_repeated_scalars_stay_scalars() -> None:
    def body(x: Value) -> Results:
        two = Broadcast((N,), ())(x.builder.literal(2.0, F32))
        return [x * (two + 1.0), e.negative(Reshape((N, 1))(two))]

    assert body_of(body).splitlines() == [
        "  a: f32[n] = multiply x 3.0",
        "  b: f32[n 1] = broadcast[shape=(n, 1), dims=()] -2.0",
        "  -> a, b",
    ]


def test_what_keeps_everything_is_gone() -> None:
    def body(x: Value) -> Results:
        zero = x.builder.literal(0.0, F32)
        x = Reshape((N,))(Transpose((0,))(Slice((0,), (N,), (1,))(Reverse(())(x))))
        x = Pad((0,), (0,), (0,))(Reverse((0,))(Reverse((0,))(x)), zero)
        x = Reshape((N,))(Reshape((N, 1))(e.Convert(F32)(Broadcast((N,), (0,))(x))))
        x = e.negative(e.negative(x * 1.0)) / 1.0 - 0.0
        return [x, e.real(e.make_complex(x, x))]

    assert body_of(body) == "  -> x, x\n"


def test_contractions_take_what_their_operands_are_transposes_of() -> None:
    rng = np.random.default_rng(0)
    left = 0
    for _ in range(200):
        # Axes by what they are to the contraction: s shared, c contracted, others left over.
        names: list[list[str]] = [
            [*"sca"[: rng.integers(1, 4)], "b"],
            [*"sc"[: rng.integers(1, 3)], *"de"],
        ]
        both = [each for each in names[0] if each in names[1]]
        shapes = [tuple([2 + "scabde".index(name) for name in each]) for each in names]
        orders = [rng.permutation(len(each)).tolist() for each in names]
        moved: list[list[str]] = [
            [each[i] for i in order] for each, order in zip(names, orders, strict=True)
        ]
        shared, contracted = [
            [tuple([each.index(n) for n in both if (n == "s") is kind]) for each in moved]
            for kind in (True, False)
        ]
        dot = DotGeneral((contracted[0], contracted[1]), (shared[0], shared[1]))
        made = Program(Assumptions())
        x, y = [made.current.parameter(ArrayType(F32, shape), "x") for shape in shapes]
        turned = [Transpose(tuple(order))(v) for v, order in zip((x, y), orders, strict=True)]
        block = made.current.finish([x, y], [dot(*turned)])[0]
        function = Function("f", (), made.facts, block)
        simple = simplify(function)
        verify(simple)
        given = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
        same(evaluate(function, {}, given), evaluate(simple, {}, given))
        orders_kept = 0
        for each, all_moved in zip(names, moved, strict=True):
            free = [each.index(n) for n in all_moved if n not in both]
            orders_kept += free == sorted(free)
        left += count(simple) == 1 and orders_kept == 2
        assert count(simple) <= 3 - orders_kept
    assert left > 20


def test_what_does_not_keep_everything_stays() -> None:
    def body(x: Value) -> Results:
        return [x + 0.0, x * 0.0, 0.0 - x, 1.0 / x, x - -0.0]

    assert len(body_of(body).splitlines()) == 6


def test_chosen_branches_take_the_place_of_the_choice() -> None:
    def body(x: Value) -> Results:
        (left, _), (right, _) = (
            inside(x, "y: f32[n]", lambda y: [e.exp(y)]),
            inside(x, "y: f32[n]", lambda y: [e.log(y)]),
        )
        return Switch((left, right)).bind(x.builder.literal(True, BOOL), x)

    assert body_of(body).splitlines() == ["  a: f32[n] = log x", "  -> a"]


def test_results_that_all_branches_share_leave_the_choice() -> None:
    def body(i: Value, x: Value) -> Results:
        (left, _), (right, _) = (
            inside(x, "y: f32[n]", lambda y: [e.exp(y), y, y * 2.0]),
            inside(x, "y: f32[n]", lambda y: [e.log(y), y, y]),
        )
        return Switch((left, right)).bind(i, x)[:2]

    assert body_of(body, "i: i32, x: f32[n]").splitlines() == [
        "  a: f32[n] = switch i",
        "    case 0 with x:",
        "      b: f32[n] = exp x",
        "      -> b",
        "    case 1 with x:",
        "      c: f32[n] = log x",
        "      -> c",
        "  -> a, x",
    ]


def test_loops_keep_only_what_their_results_need() -> None:
    def body(x: Value, y: Value) -> Results:
        def step(dead: Value, fixed: Value, held: Value, item: Value) -> Results:
            two = e.exp(Broadcast((N,), ())(y.builder.literal(0.0, F32)))
            return [dead + item, fixed, held * fixed, held * two, e.exp(dead), y, item]

        types = "dead: f32, fixed: f32[n], held: f32[n], item: f32"
        block, captured = inside(x, types, step)
        scan = Scan(block, len(captured), 3, N)
        zero = x.builder.literal(0.0, F32)
        results = scan.bind(*captured, zero, y, x, x)
        return [results[i] for i in (1, 2, 3, 5, 6)]

    assert body_of(body, "x: f32[n], y: f32[n]").splitlines() == [
        "  a: f32[n n] = broadcast[shape=(n, n), dims=(1,)] y",
        "  b: f32[n], c: f32[n n] = scan[length=n] carry(x)",
        "    step(held: f32[n]) with y:",
        "      d: f32[n] = multiply held y",
        "      -> d, held",
        "  -> y, b, c, a, x",
    ]


def test_a_while_loop_keeps_what_its_condition_needs() -> None:
    def body(n: Value, x: Value) -> Results:
        def step(i: Value, total: Value, dead: Value) -> Results:
            return [i + 1, total + x, dead * 2.0]

        cond, by_cond = inside(n, "i: i32, t: f32[n], d: f32[n]", lambda i, t, d: [i < n])
        block, by_body = inside(n, "i: i32, total: f32[n], dead: f32[n]", step)
        start = n.builder.literal(0, I32)
        loop = While(cond, block, len(by_cond), len(by_body))
        return [loop.bind(*by_cond, *by_body, start, x, x)[1]]

    assert body_of(body, "n: i32, x: f32[n]").splitlines() == [
        "  _: i32, a: f32[n] = while carry(0, x)",
        "    cond(i: i32, t: f32[n]) with n:",
        "      b: bool = less i n",
        "      -> b",
        "    step(i2: i32, total: f32[n]) with x:",
        "      c: i32 = add i2 1",
        "      d: f32[n] = add total x",
        "      -> c, d",
        "  -> a",
    ]


def test_a_loop_that_never_starts_is_gone() -> None:
    def body(x: Value) -> Results:
        cond, _ = inside(x, "y: f32[n]", lambda y: [y.builder.literal(False, BOOL)])
        step, _ = inside(x, "y: f32[n]", lambda y: [y * 2.0])
        return While(cond, step, 0, 0).bind(x)

    assert body_of(body) == "  -> x\n"


def test_callees_are_simplified_once_and_stay_calls() -> None:
    inner = program("inner", "n", "x: f32[n]", lambda x: [x * 1.0 + (x * 1.0)])

    def body(x: Value) -> Results:
        call = Call(inner, (("n", N),))
        return [*call.bind(x), *call.bind(call(x))]

    function = simplify(program("f", "n", "x: f32[n]", body))
    calls = [each.primitive for each in function.body.equations]
    assert len(calls) == 2
    assert {call.function for call in calls if isinstance(call, Call)} == {
        call.function for call in calls[:1] if isinstance(call, Call)
    }
    assert count(next(c.function for c in calls if isinstance(c, Call))) == 1


def test_deep_chains_of_calls() -> None:
    function = program("f", "", "x: i32", lambda x: [x + (x * 1)])
    for _ in range(2000):
        param, result = Var(ArrayType(I32)), Var(ArrayType(I32))
        call = Equation(Call(function, ()), (param,), (result,))
        body = function.body
        function = Function("f", (), function.facts, type(body)((param,), (call,), (result,)))
    simplify(function)
    verify(simplify(function))


def test_nothing_that_fails_is_computed() -> None:
    def body(x: Value) -> Results:
        (empty,) = x.builder.bind(Constant.of(np.zeros((2, 0), np.float32), F32), ())
        return [Cumulative("maximum", 1)(empty), e.Clamp()(x, x, x)]

    assert "-> " in body_of(body)


@dataclass(frozen=True)
class _Chatty(Primitive, name="chatty"):
    """A user's primitive, whose meaning must not run while compiling."""

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        return operands

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        raise AssertionError("it has been run")


def test_meanings_of_users_are_never_run() -> None:
    def body(x: Value) -> Results:
        return [_Chatty()(x.builder.literal(2.0, F32))]

    assert body_of(body).splitlines() == ["  a: f32 = chatty 2.0", "  -> a"]


def test_time_is_linear() -> None:
    def chain(length: int) -> Function:
        made = Program()
        x = made.current.parameter(ArrayType(F32, (N,)))
        y = x
        for index in range(length):
            y = e.sin(y) * float(index + 2)
        return Function("f", ("n",), made.facts, made.current.finish([x], [y])[0])

    assert count(simplify(chain(3000))) == 6000
