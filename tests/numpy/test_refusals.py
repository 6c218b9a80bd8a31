"""Whatever a library function is given, it builds a program or says what is wrong."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pscdsl._src.frontend.modules.known import register_all
from pscdsl._src.ir.builder import Builder, Program
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl.typing import dtypes
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import name as size_name
from pscdsl.typing.dtypes import DType
from tests.support.numpy_differential import meaning

register_all()

MODULES = (
    "calculus convolution elementwise fourier functions linear_algebra polynomials products "
    "reductions sorting statistics ufunc_methods"
).split()
FUNCTIONS = [
    each
    for _, each in sorted(MEANINGS.items())
    if isinstance(each, Meaning) and each.body.__module__.rpartition(".")[2] in MODULES
]
DTYPES = (*dtypes.ALL, dtypes.KEY)
N, M, Z = (size_name(each) for each in "nmz")
SIZES = (0, 1, 2, 3, N, M, N + 1, Z)
MAYBE_EMPTY = Fact("<=", 0, Z)
LARGE = (Fact("<=", 4, N), Fact("<=", 4, M))

Choose = Callable[[Builder, random.Random], Any]


def array(here: Builder, rng: random.Random, dtype: DType | None = None) -> Any:
    shape = tuple(rng.choice(SIZES) for _ in range(rng.choice((0, 1, 1, 2, 2, 3))))
    return here.parameter(ArrayType(dtype or rng.choice(DTYPES), shape))


def operand(here: Builder, rng: random.Random, dtype: DType) -> Any:
    """An array most of the time; else a number, a list, or what is neither."""
    if rng.random() < 0.8:
        return array(here, rng, dtype if rng.random() < 0.85 else None)
    numbers = [rng.choice((1, 2.5)) for _ in range(rng.randrange(4))]
    weak = here.weak(rng.choice((1, 2.5)))
    return rng.choice((0, 2.5, True, 1j, -1, numbers, weak, N, None, "x", (1, 2)))


AXES = (None, 0, 1, -1, 2, (0, 1), (0,), (), [0], 1.5, ([0], [0]))
AMOUNTS = (0, 1, 2, (2,), (2, 2), N, -1, 1.5, "s", None, [0.0, 1.0, 2.0])
FLAGS = (True, False, N)
OPEN = frozenset({"a", "d"})
"""Operands whose dtype a function settles by itself."""
STATIC: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("axis", "axis1", "axis2", "axisa", "axisb", "axisc", "axes"), AXES),
    **dict.fromkeys(("window", "strides", "dilation", "groups", "k", "length", "bins"), AMOUNTS),
    **dict.fromkeys(("kth", "m", "ddof", "offset", "minlength", "edge_order"), AMOUNTS),
    **dict.fromkeys(("keepdims", "returned", "invert", "density", "right", "bias"), FLAGS),
    **dict.fromkeys(("rowvar", "include_initial", "stable", "count_padding"), FLAGS),
    **dict.fromkeys(("n", "s"), AMOUNTS),
    "norm": (None, "ortho", "forward", "x", 1),
    "ord": (None, 1, 2, -1, 0, 2.5, np.inf, "fro", "nuc", "x"),
    "UPLO": (None, "L", "U", "x"),
    "ind": (1, 2, 0, -1, 7),
    "n": (0, 1, -1, 3, 2.5),
    "dtype": (None, dtypes.F32, dtypes.I32, dtypes.C64, dtypes.BOOL, "f4"),
    "padding": ("same", "valid", ((1, 1),), ((0, 1), (2, 0)), 1, (1,)),
    "q": (0.5, [0.1, 0.2], 2.0, "s"),
    "mode": ("full", "same", "valid", "reduced", "complete", "r", "x", 1),
    "method": ("linear", "lower", "hazen", "x"),
    "kind": ("sum", "max", "stable", None, "x"),
    "range": (None, (0, 1), (0.0, 2.0), 3, "x"),
}


def subscripts(rng: random.Random, count: int) -> str:
    terms = ["".join(rng.choices("ijk", k=rng.randrange(3))) for _ in range(count)]
    dotted = [term + rng.choice(("", "", "...")) for term in terms]
    return ",".join(dotted) + rng.choice(("", "->", "->i", "->ij", "->..."))


def arguments(
    function: Meaning, here: Builder, rng: random.Random
) -> tuple[list[Any], dict[str, Any]]:
    dtype, args, kwargs = rng.choice(DTYPES), list[Any](), dict[str, Any]()
    if function.name == "numpy.einsum":
        arrays = [operand(here, rng, dtype) for _ in range(rng.randint(1, 3))]
        return [subscripts(rng, len(arrays)), *arrays], kwargs
    for name, each in function.signature.parameters.items():
        if name == "here" or each.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        if each.kind is inspect.Parameter.VAR_POSITIONAL:
            args.extend(operand(here, rng, dtype) for _ in range(rng.randrange(3)))
            continue
        if each.default is not inspect.Parameter.empty and rng.random() < 0.6:
            continue
        if name in ("func", "func1d"):
            value: Any = rng.choice((meaning("numpy.sum"), meaning("numpy.cumsum"), 3))
        elif name == "keys":
            value = [operand(here, rng, dtype), operand(here, rng, dtype)]
        elif name in function.together | function.alone | OPEN:
            value = operand(here, rng, dtype)
        elif rng.random() < 0.1:
            value = array(here, rng)
        else:
            value = rng.choice(STATIC.get(name, (None, 0, 1, 2.0, "x", N)))
        if each.kind is inspect.Parameter.POSITIONAL_ONLY:
            args.append(value)
        elif each.default is inspect.Parameter.empty and not kwargs:
            args.append(value)
        else:
            kwargs[name] = value
    return args, kwargs


@pytest.mark.parametrize("function", FUNCTIONS, ids=[each.name for each in FUNCTIONS])
def test_no_call_fails_without_a_finding(function: Meaning) -> None:
    rng = random.Random(function.name)
    for _ in range(60):
        facts = (MAYBE_EMPTY, *LARGE) if rng.random() < 0.3 else (MAYBE_EMPTY,)
        here = Program(Assumptions(facts)).current
        args, kwargs = arguments(function, here, rng)
        try:
            function.apply(here, args, kwargs)
        except Failure as failure:
            for finding in failure.diagnostics:
                told = f"{function.name} of {args}, {kwargs}: {finding.message()}"
                assert finding.code not in ("PSC902", "PSC999"), told
                assert isinstance(finding.label(), str)
                assert finding.help() != ""


EXTRA = {"numpy.bincount": {"length"}}


@pytest.mark.parametrize(
    "function",
    [each for each in FUNCTIONS if each.name.count(".") == 1 and each.name.startswith("numpy.")],
    ids=str,
)
def test_parameters_are_those_of_numpy(function: Meaning) -> None:
    try:
        theirs = inspect.signature(getattr(np, function.name.removeprefix("numpy."))).parameters
    except (AttributeError, ValueError):
        pytest.skip("this NumPy does not tell")
    ours = {name: each for name, each in function.signature.parameters.items() if name != "here"}
    assert ours.keys() - theirs.keys() == EXTRA.get(function.name, set())
    shared = [name for name in ours if name in theirs]
    assert shared == sorted(shared, key=list(theirs).index)
    for name in shared:
        mine, other = ours[name].default, theirs[name].default
        assert repr(mine) == repr(other) or repr(other) == "<no value>"
    before_out = list(theirs)[: list(theirs).index("out")] if "out" in theirs else shared
    for name in shared:
        late = name not in before_out
        assert not late or ours[name].kind is inspect.Parameter.KEYWORD_ONLY
