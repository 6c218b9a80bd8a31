"""How trees differ: nothing is reported exactly where they agree, and what is proposed works."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from pscdsl.typing import dims
from pscdsl.typing.array_types import (
    NONE,
    ArrayType,
    MapType,
    RecordName,
    RecordType,
    Shape,
    StaticType,
    TupleType,
    Type,
    VectorType,
    children,
    same_structure,
)
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.dims import evaluate
from pscdsl.typing.dtypes import F32, F64
from pscdsl.typing.unify import (
    array_difference,
    broadcasts,
    conversion,
    may_be_equal,
    repair,
    structure_differences,
    surplus_axis,
)

N, M = dims.name("n"), dims.name("m")
NUMBERS = {"n": 3, "m": 5}
NO_FACTS = Assumptions()


def random_tree(rng: random.Random, depth: int) -> Type:
    choice = rng.randrange(7 if depth else 3)
    parts = [random_tree(rng, depth - 1) for _ in range(rng.randrange(3))] if choice > 2 else []
    names = rng.sample("abc", len(parts))
    match choice:
        case 0:
            return ArrayType(F32, (N,) * rng.randrange(3))
        case 1:
            return NONE
        case 2:
            return StaticType(rng.choice(["a", "b", 1, True]))
        case 3 | 4:
            return (TupleType, VectorType)[choice - 3](tuple(parts))
        case 5:
            record = RecordName(rng.choice("RS"), "here")
            return RecordType(record, tuple(zip("abc", parts, strict=False)))
        case _:
            return MapType(tuple(sorted(zip(names, parts, strict=True), key=lambda p: p[0])))


def at(tree: Type, path: str) -> Type:
    """The part that a path selects."""
    steps = re.findall(r"\[[^\]]*\]|\.\w+", path)
    assert "".join(steps) == path
    for step in steps:
        tree = dict(children(tree))[step]
    return tree


def test_structures_differ_exactly_where_something_is_reported() -> None:
    rng = random.Random(0)
    same = 0
    for _ in range(5000):
        found, wanted = random_tree(rng, 2), random_tree(rng, 2)
        differences = list(structure_differences(found, wanted))
        assert (not differences) == same_structure(found, wanted), (str(found), str(wanted))
        assert not list(structure_differences(found, found))
        for each in differences:
            assert at(found, each.path) == each.found
            assert at(wanted, each.path) == each.wanted
            assert not same_structure(each.found, each.wanted)
            assert each.why
        same += not differences
    assert same > 100


SHAPES: list[Shape] = [
    (), (1,), (N,), (M,), (2,), (N * M,), (N + 1,), (1, 1), (N, 1), (1, N), (N, M), (M, N), (N, N),
    (1, N, M), (N, 1, M), (N, M, 1), (1, 1, N), (M, N, 2), (2 * N, M), (N, 2 * M), (2, N, M),
]  # fmt: skip


def numbers(shape: Shape) -> tuple[int, ...]:
    return tuple([evaluate(size, NUMBERS) for size in shape])


@pytest.mark.parametrize("found", SHAPES)
def test_what_is_proposed_makes_one_array_the_other(found: Shape) -> None:
    x = np.arange(np.prod(numbers(found), dtype=int), dtype=np.float32).reshape(numbers(found))
    for wanted in SHAPES:
        for dtype in (F32, F64):
            given, goal = ArrayType(F32, found), ArrayType(dtype, wanted)
            differs = array_difference(NO_FACTS, given, goal)
            assert (differs is None) == (given == goal)
            text = conversion(NO_FACTS, given, goal)
            if text:
                result = eval(  # the proposed code itself
                    "x" + text.replace("psc.f64", "np.float64"), {"x": x, "np": np, **NUMBERS}
                )
                assert result.shape == numbers(wanted)
                assert result.dtype == (np.float32 if dtype is F32 else np.float64)
                np.testing.assert_array_equal(np.sort(result.ravel()), x.ravel())
            axis = surplus_axis(NO_FACTS, found, wanted)
            if axis is not None:
                assert x.sum(axis=axis).shape == numbers(wanted)
            if broadcasts(NO_FACTS, found, wanted):
                np.broadcast_to(x, numbers(wanted))
            elif not text and axis is None:
                claim = may_be_equal(NO_FACTS, found, wanted)
                advice = repair(NO_FACTS, given, goal, "return it")
                assert (f"assert {claim}" in advice) if claim else not advice


def test_sizes_that_can_be_equal() -> None:
    assert may_be_equal(NO_FACTS, (N,), (M,)) == Fact("==", N, M)
    assert may_be_equal(NO_FACTS, (N, N), (M, M)) == Fact("==", N, M)
    assert may_be_equal(NO_FACTS, (N,), (N + 1,)) is None
    assert may_be_equal(NO_FACTS, (N, M), (M, N)) is None
    assert may_be_equal(NO_FACTS, (N,), (2,)) is None
    known = NO_FACTS.assume(Fact("<", N, M))
    assert may_be_equal(known, (N,), (M,)) is None


def test_facts_are_used() -> None:
    known = NO_FACTS.assume(Fact("==", N, M))
    assert conversion(known, ArrayType(F32, (N, 1)), ArrayType(F32, (M,))) == "[:, 0]"
    assert array_difference(known, ArrayType(F32, (N,)), ArrayType(F32, (M,))) is None
