"""The text form of typed programs."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import dedent

import numpy as np

from pscdsl._src.analysis.show import show, show_equation
from pscdsl._src.ir.builder import Program, Value
from pscdsl._src.ir.program import Block, Function
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.associative import AssociativeScan, MapReduce
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.control import Call, Switch
from pscdsl._src.primitives.scan import Scan
from pscdsl._src.primitives.shaping import Constant
from pscdsl._src.primitives.while_loop import While
from pscdsl._src.transforms.simplify import simplify
from pscdsl.typing.array_types import RecordName, RecordType
from pscdsl.typing.dtypes import F32, F64
from tests.support.law_rows import array_type
from tests.support.law_rows_structure import facts
from tests.support.random_programs import RandomProgram

Results = Sequence[Value]


def program(
    name: str, sizes: str, params: str, build: Callable[..., Results], *assertions: str
) -> Function:
    """A function whose parameters are written `x: f32[n], y: i32`."""
    made = Program(facts(*assertions))
    values: list[Value] = []
    for each in filter(None, params.split(", ")):
        hint, _, text = each.rpartition(": ")
        values.append(made.current.parameter(array_type(text), hint))
    block = made.current.finish(values, build(*values))[0]
    return Function(name, tuple(sizes.split()), made.facts, block)


def inside(
    like: Value, params: str, build: Callable[..., Results]
) -> tuple[Block, tuple[Value, ...]]:
    """A nested block and what it captures."""
    made = like.builder.program
    with made.inside() as here:
        values: list[Value] = []
        for each in filter(None, params.split(", ")):
            hint, _, text = each.rpartition(": ")
            values.append(here.parameter(array_type(text), hint))
        return here.finish(values, build(*values))


def text(expected: str) -> str:
    return dedent(expected).lstrip("\n")


def test_a_recurrent_network() -> None:
    def rnn(w: Value, u: Value, xs: Value, h0: Value) -> Results:
        def step(h: Value, x: Value) -> Results:
            dot = DotGeneral(((1,), (0,)))
            (h,) = e.tanh.bind(dot(w, h) + dot(u, x))
            return [h, h]

        body, captured = inside(w, "h: f32[h], x: f32[d]", step)
        return Scan(body, len(captured), 1, xs.shape[0]).bind(*captured, h0, xs)[1:]

    function = program("rnn", "t d h", "w: f32[h h], u: f32[h d], xs: f32[t d], h0: f32[h]", rnn)
    leaves = dict(zip(("w", "u", "xs", "h0"), function.body.in_types, strict=True))
    record = RecordType(RecordName("Params", "m"), (("w", leaves["w"]), ("u", leaves["u"])))
    trees = (("p", record), ("xs", leaves["xs"]), ("h0", leaves["h0"]))
    function = Function("rnn", function.dims, function.facts, function.body, trees)
    assert show(simplify(function)) == text(
        """
        rnn[t d h](p.w: f32[h h], p.u: f32[h d], xs: f32[t d], h0: f32[h]) -> f32[t h]
          _: f32[h], a: f32[t h] = scan[length=t] carry(h0) over(xs)
            step(h: f32[h], x: f32[d]) with p.w, p.u:
              b: f32[h] = dot_general[contract=((1,), (0,))] p.w h
              c: f32[h] = dot_general[contract=((1,), (0,))] p.u x
              e: f32[h] = add b c
              f: f32[h] = tanh e
              -> f, f
          -> a
        """
    )


def test_combinations_of_rows() -> None:
    def body(w: Value, start: Value, xs: Value) -> Results:
        one, by_one = inside(w, "row: f32[d]", lambda row: [row * w])
        both, by_both = inside(w, "left: f32[d], right: f32[d]", lambda a, b: [a * w + b])
        n = xs.shape[0]
        counts = len(by_one), len(by_both)
        total = MapReduce(one, both, *counts, 1, n).bind(*by_one, *by_both, start, xs)
        return [*AssociativeScan(both, len(by_both), n).bind(*by_both, xs), *total]

    params = "w: f32[d], start: f32[d], xs: f32[n d]"
    assert show(program("f", "n d", params, body)) == text(
        """
        f[n d](w: f32[d], start: f32[d], xs: f32[n d]) -> (f32[n d], f32[d])
          a: f32[d] = map_reduce[length=n] init(start) over(xs)
            map(row: f32[d]) with w:
              b: f32[d] = multiply row w
              -> b
            combine(left: f32[d], right: f32[d]) with w:
              c: f32[d] = multiply left w
              e: f32[d] = add c right
              -> e
          f: f32[n d] = associative_scan[length=n] over(xs)
            combine(left: f32[d], right: f32[d]) with w:
              c: f32[d] = multiply left w
              e: f32[d] = add c right
              -> e
          -> f, a
        """
    )


def test_choices_and_loops() -> None:
    def body(i: Value, x: Value) -> Results:
        cases = [
            inside(i, "y: f32[n]", lambda y: [y + 1.0]),
            inside(i, "y: f32[n]", lambda y: [e.exp(y)]),
        ]
        (chosen,) = Switch(tuple(case for case, _ in cases)).bind(i, x)
        cond, by_cond = inside(i, "k: i32, z: f32[n]", lambda k, z: [k < i])
        step, by_step = inside(i, "k: i32, z: f32[n]", lambda k, z: [k + 1, z * chosen])
        loop = While(cond, step, len(by_cond), len(by_step))
        return loop.bind(*by_cond, *by_step, i.builder.literal(0, i.dtype), x)

    assert show(program("f", "n", "i: i32, x: f32[n]", body)) == text(
        """
        f[n](i: i32, x: f32[n]) -> (i32, f32[n])
          a: f32[n] = switch i
            case 0 with x:
              b: f32[n] = add x 1.0
              -> b
            case 1 with x:
              c: f32[n] = exp x
              -> c
          d: i32, e: f32[n] = while carry(0, x)
            cond(k: i32, z: f32[n]) with i:
              f: bool = less k i
              -> f
            step(k2: i32, z2: f32[n]) with a:
              g: i32 = add k2 1
              h: f32[n] = multiply z2 a
              -> g, h
          -> d, e
        """
    )


def test_calls_preconditions_constants_and_unused_values() -> None:
    half = program("half", "n", "x: f32[n]", lambda x: [x * 0.5], "n % 2 == 0")
    other = program("half", "", "x: f64", lambda x: [x * 0.5])

    def body(x: Value) -> Results:
        here = x.builder
        (y,) = Call(half, (("n", x.shape[0]),)).bind(x)
        (z,) = Call(other, ()).bind(here.literal(2, F64))
        e.negative(y)
        here.bind(Constant.of(np.arange(3), F32), ())
        return [y, z]

    assert show(program("main", "m", "x: f32[2*m]", body, "m >= 2")) == text(
        """
        main[m](x: f32[2*m]) -> (f32[2*m], f64)
          assert m >= 2
          a: f32[2*m] = call half[n=2*m] x
          b: f64 = call half.2 2.0:f64
          _: f32[2*m] = negative a
          _: f32[3] = constant[[0. 1. 2.]]
          -> a, b

        half[n](x: f32[n]) -> f32[n]
          assert n % 2 == 0
          a: f32[n] = multiply x 0.5
          -> a

        half.2(x: f64) -> f64
          a: f64 = multiply x 0.5:f64
          -> a
        """
    )


def test_long_signatures_are_broken() -> None:
    params = ", ".join(f"parameter_{i}: f32[n m]" for i in range(5))
    lines = show(program("f", "n m", params, lambda *xs: xs[:1])).splitlines()
    assert lines[0] == "f[n m]("
    assert lines[1] == "    parameter_0: f32[n m],"
    assert lines[6] == ") -> f32[n m]"


def test_one_equation() -> None:
    function = program("f", "n", "x: f32[n]", lambda x: [x + 2.0])
    assert show_equation(function.body.equations[0]) == "a: f32[n] = add x 2.0"


def test_letters_that_are_sizes_are_left_out() -> None:
    function = program("f", "a b", ": f32[a b]", lambda x: [e.negative(x)])
    assert show(function).splitlines()[0] == "f[a b](c: f32[a b]) -> f32[a b]"


def test_the_text_of_a_program_does_not_depend_on_when_it_was_built() -> None:
    for seed in range(10):
        first, second = (show(RandomProgram(seed).function()) for _ in range(2))
        assert first == second
