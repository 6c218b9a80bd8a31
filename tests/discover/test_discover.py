"""Discovery: the verdicts on plain NumPy functions, and that what it proposes is right."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pscdsl._src.checker.check import check_source, load_definition
from pscdsl._src.discover.verdicts import FunctionVerdict
from pscdsl._src.frontend.definitions import Definition, Excluded
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.program import Function, evaluate
from pscdsl._src.kernels.kernel import load_kernel
from pscdsl.typing.array_types import ArrayType, StaticType, TupleType, Type, leaves
from pscdsl.typing.diagnostics import Severity
from pscdsl.typing.dims import Dim
from pscdsl.typing.dims import evaluate as number
from pscdsl.typing.python_containers import is_tuple
from pscdsl.typing.signatures import Choice
from tests.support.discovered import Expected, expected, module, pasted, told, verdicts

pytestmark = pytest.mark.quick_code

ACCEPTED, REFUSED = module("accepted"), module("refused")
CASES = [*expected(ACCEPTED), *expected(REFUSED)]
PSC = [each.name for each in CASES if each.verdict == "PSC"]
SIZES: tuple[int, ...] = (1, 2, 3, 4)


@lru_cache(maxsize=1)
def found_out() -> Mapping[str, FunctionVerdict]:
    """The verdicts, which take seconds: not while tests are collected."""
    return {**verdicts(ACCEPTED), **verdicts(REFUSED)}


@pytest.mark.parametrize("case", CASES, ids=[each.name for each in CASES])
def test_the_verdict_is_the_expected_one(case: Expected) -> None:
    found = found_out()[case.name]
    assert told(found) == case.verdict, [each.message() for each in found.findings]
    if case.signature:
        assert found.written is not None
        assert found.written.signature == case.signature


def test_values_that_do_not_fit_are_told_with_the_reason() -> None:
    (refused,) = found_out()["reported"].refused
    assert (refused.parameter, refused.value, refused.finding.code) == ("verbose", True, "PSC201")


@pytest.mark.parametrize("name", PSC)
def test_a_definition_that_is_pasted_is_accepted(name: str) -> None:
    """The law of discovery: what it prints is what `check` accepts."""
    result = check_source(pasted(ACCEPTED, found_out()[name]), "plain.py")
    assert [(k.name, k.status) for k in result.kernels] == [(name, "ok")]
    errors = [d for d in result.diagnostics if type(d).severity is Severity.ERROR]
    assert not errors, [each.message() for each in errors]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NumPy, about means of nothing
@pytest.mark.parametrize("name", PSC)
def test_a_definition_that_is_pasted_computes_what_numpy_does(name: str, tmp_path: Path) -> None:
    path = tmp_path / "plain.py"
    path.write_text(pasted(ACCEPTED, found_out()[name]), encoding="utf-8")
    definition = load_definition(path, name)
    plain = _plain()[name]
    draws = random.Random(name)
    programs: list[Function] = []
    for choice in _choices(definition):
        try:
            program = definition.instance(choice)
        except Excluded:
            continue
        programs.append(program)
        for sizes in _sizes(program, draws):
            arguments = {n: _argument(tree, sizes, draws) for n, tree in program.parameters}
            flat = [a for n, tree in program.parameters for a in _arrays(tree, arguments[n])]
            with np.errstate(all="ignore"):
                found = evaluate(program, sizes, flat)
                wanted = plain(**arguments)
            written = [arguments[n] for n in arguments if n in definition.signature.writes]
            _same(found, wanted, *written)
    program = programs[-1]
    sizes = next(_sizes(program, draws))
    arguments = {n: _argument(tree, sizes, draws) for n, tree in program.parameters}
    ours = copy.deepcopy(arguments)
    with np.errstate(all="ignore"):
        result = load_kernel(path, name)(**ours)
        _same(_flat(result), plain(**arguments))
    for key, other in arguments.items():
        if hasattr(other, "shape"):
            np.testing.assert_allclose(ours[key], other, rtol=1e-6, atol=1e-9)


def _plain() -> Mapping[str, Any]:
    """The functions as Python runs them."""
    names: dict[str, Any] = {}
    imports = "from numba import njit\nfrom scipy import special\nfrom settings import SETTINGS\n"
    exec(compile(ACCEPTED.replace(imports, ""), "plain.py", "exec"), names)
    return names


def _choices(definition: Definition) -> Iterator[Choice]:
    """The choices with 64-bit numbers, which are compared best."""
    choices = definition.signature.choices()
    assert choices is not None
    for choice in choices:
        if all(dtype.bits in (8, 64) or dtype.name == "i64" for _, dtype in choice.dtypes):
            if not any(dtype.name in ("i8", "u8") for _, dtype in choice.dtypes):
                yield choice


def _sizes(program: Function, draws: random.Random) -> Iterator[dict[str, int]]:
    """Some sizes that the preconditions admit."""
    every = [
        dict(zip(program.dims, s, strict=True)) for s in product(SIZES, repeat=len(program.dims))
    ]
    admitted = [sizes for sizes in every if program.facts.admits(sizes)]
    assert admitted
    yield from draws.sample(admitted, min(3, len(admitted)))


def _argument(tree: Type, sizes: Mapping[str, int], draws: random.Random) -> Any:
    """Random data of a type; integers are indices, so they are small."""
    if isinstance(tree, StaticType):
        return tree.value
    if isinstance(tree, TupleType):
        return tuple(_argument(each, sizes, draws) for each in tree.items)
    if isinstance(tree, ArrayType):
        shape = [number(d, sizes) if isinstance(d, Dim) else d for d in tree.shape]
        data = np.random.default_rng(draws.randrange(1000))
        if tree.dtype.is_float:
            return data.uniform(0.1, 2.0, shape).astype(to_numpy(tree.dtype))
        top = 1 if tree.dtype.is_integer else 2
        return np.asarray(data.integers(0, top, shape)).astype(to_numpy(tree.dtype))
    return None


def _arrays(tree: Type, value: Any) -> list[Any]:
    """The arrays of an argument in order."""
    if isinstance(tree, TupleType):
        return [a for t, v in zip(tree.items, value, strict=True) for a in _arrays(t, v)]
    return [np.asarray(value)] if list(leaves(tree)) else []


def _same(found: Any, result: Any, *written: Any) -> None:
    wanted = [each for each in (*_flat(result), *written) if each is not None]
    found = [each for each in found if each is not None]
    assert len(found) == len(wanted)
    for mine, other in zip(found, wanted, strict=True):
        assert np.shape(mine) == np.shape(other)
        np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-9)


def _flat(value: Any) -> list[Any]:
    return [a for each in value for a in _flat(each)] if is_tuple(value) else [value]
