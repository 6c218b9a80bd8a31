"""The laws that every primitive obeys, on every row of the law table (`law_rows`).

Primitives are found, not listed: one without a row fails.
"""

from __future__ import annotations

import importlib
import itertools
import pkgutil
import random
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pytest

import pscdsl._src.primitives
from pscdsl._src.ir.builder import Value
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.primitive import Primitive, Types
from pscdsl._src.ir.program import Block, Equation, Evaluator, Function, Var
from pscdsl._src.primitives.across import Across
from pscdsl._src.primitives.collectives import Collective
from pscdsl._src.primitives.custom_derivatives import BackwardOnly
from pscdsl._src.primitives.elementwise import ACCEPTS, TABLE, Elementwise, Select, bitwise_xor
from pscdsl._src.primitives.special import SPECIAL
from pscdsl._src.targets.pipeline import PORTABLE, lower_module
from pscdsl._src.xla import admission
from pscdsl._src.xla.compilation import compile_module, foreign, module_of, portable, targets
from pscdsl._src.xla.emit.context import module_text
from pscdsl.typing import dims
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, C64, F32, I32, KEY, DType
from tests import support
from tests.support.law_rows import NDArray, Row, finfo
from tests.support.numpy_harness import Built, build
from tests.support.quick_code import QUICK
from tests.support.share import WHOLE, some

pytestmark = pytest.mark.jaxlib

Lower: TypeAlias = Callable[[Function, Mapping[str, int]], Any]
"""From a program and its sizes to a module."""


def _modules(package: Any, prefix: str) -> Iterator[Any]:
    for each in pkgutil.iter_modules(package):
        if each.name.startswith(prefix):
            yield each.name


def subclasses(kind: type[Primitive]) -> Iterator[type[Primitive]]:
    """All classes below one."""
    for each in kind.__subclasses__():
        yield each
        yield from subclasses(each)


NOT_RUN = (Elementwise, BackwardOnly, *subclasses(Collective), *subclasses(Across))
"""A family, what only stands for tangents that nobody computes, and what needs several devices.

The laws of the last are in tests/transforms/test_partition.py and tests/fuzz/meshes.py.
"""


def _primitives() -> list[str]:
    for name in _modules(pscdsl._src.primitives.__path__, ""):
        importlib.import_module(f"pscdsl._src.primitives.{name}")
    classes = [
        each
        for each in subclasses(Primitive)
        if each.__module__.startswith("pscdsl.") and each.name and each not in NOT_RUN
        if not each.__module__.startswith("pscdsl._src.targets.")  # whose laws stand beside them
        if not each.has_effect  # whose laws are in tests/kernels/test_effects.py
    ]
    return sorted({each.name for each in classes} | TABLE.keys())


def _rows() -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for name in _modules(list(support.__path__), "law_rows"):
        for row in getattr(importlib.import_module(f"tests.support.{name}"), "ROWS", ()):
            found.setdefault(row.primitive.name, []).append(row)
    return found


ROWS = _rows()
COVERED = sorted(ROWS)


def test_every_primitive_has_a_row() -> None:
    missing = [name for name in _primitives() if name not in ROWS]
    assert not missing, "add one to a module tests/support/law_rows*.py"


@pytest.mark.parametrize("name", COVERED)
def test_type_rule_is_the_type_of_the_meaning(name: str) -> None:
    for row in ROWS[name]:
        concrete = _at_numbers(row)
        types = concrete.primitive.type_rule(Assumptions(), *concrete.operands)
        results = _evaluate(concrete, _operands(concrete))
        assert len(results) == len(types), row
        for result, wanted in zip(results, types, strict=True):
            assert isinstance(result, np.ndarray), row
            assert result.dtype == to_numpy(wanted.dtype), (row, result.dtype)
            assert result.shape == _stored_shape(wanted), (row, result.shape)


@pytest.mark.parametrize("name", COVERED)
def test_type_rule_commutes_with_substitution(name: str) -> None:
    for row in ROWS[name]:
        concrete = _at_numbers(row)
        symbolic = row.primitive.type_rule(row.facts, *row.operands)
        numbers = concrete.primitive.type_rule(Assumptions(), *concrete.operands)
        assert tuple(t.substitute(row.env()) for t in symbolic) == numbers, (row, symbolic)


@pytest.mark.parametrize("name", COVERED)
def test_cost_is_a_number_of_operations(name: str) -> None:
    for row in ROWS[name]:
        outputs = row.primitive.type_rule(row.facts, *row.operands)
        cost = dims.evaluate(row.primitive.cost(row.operands, outputs), row.env())
        assert cost >= 0, row
        concrete = _at_numbers(row)
        types = concrete.primitive.type_rule(Assumptions(), *concrete.operands)
        assert cost == concrete.primitive.cost(concrete.operands, types), row


@pytest.mark.parametrize("name", COVERED)
def test_lowering_computes_the_meaning(name: str) -> None:
    rows = _tried(name)
    _compare(rows, lower_module)


@pytest.mark.parametrize("name", COVERED)
def test_lowering_for_any_device_computes_the_meaning(name: str) -> None:
    """By way of a portable artefact; what is translated as for CPUs is not run again."""
    rows = _tried(name)
    translated = partial(lower_module, target=PORTABLE)

    def differs(rows: Sequence[Row]) -> bool:
        modules = [lower(*_program(rows)) for lower in (lower_module, translated)]
        for each in modules:
            admission.require(module_of(portable(each)), (), foreign(targets(each)))
        texts = [module_text(each) for each in modules]
        return texts[0] != texts[1] or "chlo." in texts[0]

    if differs(rows):
        changed = some([row for row in rows if differs([row])], 3, name)
        _compare(changed, lambda function, sizes: module_of(portable(translated(function, sizes))))


SPECIAL_NUMBERS = (0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan)
DERIVED = [
    each
    for each in TABLE.values()
    if each.flops <= 20 and ACCEPTS[each.accepts](F32) and not each.result(F32).is_complex
]


def _of_derived(function: Elementwise) -> Built:
    """A program that applies a function to all choices of special numbers, each in three ways.

    Operands are parameters, or numbers that the compiler finds by itself, or one is a parameter.
    """
    values = np.array(SPECIAL_NUMBERS, np.float32)

    def program(mask: Value, *given: Value) -> list[Value]:
        here, none = mask.builder, bitwise_xor(mask, mask)
        derived = [
            Select()(none, x, here.literal(value.item(), F32))
            for x, value in zip(given, values, strict=True)
        ]
        results: list[Value] = []
        for places in itertools.product(range(len(values)), repeat=function.arity):
            for first, others in ((given, given), (derived, derived), (derived, given)):
                operands = [(others if at else first)[place] for at, place in enumerate(places)]
                results.append(function(*operands))
        return results

    return build(program, (np.array([True, False]), *(np.full(2, x) for x in values)), {})


@pytest.mark.quick_code(but=3)
@pytest.mark.parametrize("function", DERIVED, ids=lambda each: each.name)
def test_operands_that_the_compiler_derives(function: Elementwise) -> None:
    """They give what the same numbers give that come when it runs."""
    results = [np.asarray(each) for each in _of_derived(function).compiled()]
    for place in range(0, len(results), 3):
        wanted, *derived = (each.astype(float) for each in results[place : place + 3])
        for found in derived:
            np.testing.assert_allclose(found, wanted, 1e-5)
            zeros = wanted == 0
            np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(wanted[zeros]))


def _compare(rows: Sequence[Row], lower: Lower) -> None:
    """Compare the results of all rows, lowered in some way, with what NumPy gives."""
    wrong, of_users = list[str](), dict[str, Any]()
    for options in (of_users, QUICK):
        wrong += _wrong([row for row in rows if _options(row) == options], lower, options)
    assert not wrong, "\n".join(wrong)


def _wrong(rows: Sequence[Row], lower: Lower, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the rows whose results are not what NumPy gives."""
    operands = [_operands(row) for row in rows]
    found = _compiled(rows, operands, lower, options) if rows else []
    for row, given, results in zip(rows, operands, found, strict=True):
        wanted = _evaluate(row, given)
        types = row.primitive.type_rule(row.facts, *row.operands)
        for index, (type_, got, want) in enumerate(zip(types, results, wanted, strict=True)):
            dtype = type_.dtype
            if index in row.chosen:
                got, want, dtype = np.abs(got), np.abs(want), dtype.real
            bad = ~_close(row, dtype, got, want)
            if bad.any():
                place = tuple(int(i[0]) for i in np.nonzero(bad)) if bad.ndim else ()
                yield _report(row, given, place, got, want, int(bad.sum()))


def _tried(name: str) -> list[Row]:
    """Return the rows of a primitive that one program computes.

    What is no function of elements is tried in one dtype of each kind or, with `SHARE=1`, in all.
    """
    rows = list(ROWS[name])
    if not WHOLE and not isinstance(rows[0].primitive, Elementwise):
        random.Random(name).shuffle(rows)
        rows = list({_but_for_bits(row): row for row in rows}.values())
    return [_renamed(row, f"_{index}") for index, row in enumerate(rows)]


def _but_for_bits(row: Row) -> Hashable:
    """Return what a row is, but for the bits of its dtypes."""
    operands = tuple((each.dtype.kind, each.shape) for each in row.operands)
    return repr(row.primitive), operands, row.facts, tuple(row.env().items())


def _at_numbers(row: Row) -> Row:
    """The row with numbers in place of names."""
    env = row.env()
    operands = tuple(each.substitute(env) for each in row.operands)
    return replace(row, primitive=row.primitive.substitute(env), operands=operands, sizes={})


def _renamed(row: Row, suffix: str) -> Row:
    """The row with other names for its sizes, so that one program can hold many rows."""
    env: Mapping[str, Size] = {name: dims.name(name + suffix) for name in row.env()}
    return replace(
        row,
        primitive=row.primitive.substitute(env),
        operands=tuple(each.substitute(env) for each in row.operands),
        sizes={name + suffix: size for name, size in row.env().items()},
        facts=Assumptions(tuple(fact.substitute(env) for fact in row.facts.facts)),
    )


def _operands(row: Row) -> tuple[NDArray, ...]:
    return row.draw(np.random.default_rng(0))


def _evaluate(row: Row, operands: Sequence[NDArray]) -> tuple[NDArray, ...]:
    return row.primitive.evaluate(Evaluator(row.env()), *operands)


def _program(rows: Sequence[Row]) -> tuple[Function, dict[str, int]]:
    """One program with the results of all rows, and its sizes."""
    params: list[Var] = []
    equations: list[Equation] = []
    sizes: dict[str, int] = {}
    for row in rows:
        inputs = tuple(Var(each) for each in row.operands)
        types: Types = row.primitive.type_rule(row.facts, *row.operands)
        equations.append(Equation(row.primitive, inputs, tuple(Var(each) for each in types)))
        params.extend(inputs)
        sizes.update(row.env())
    results = tuple(var for equation in equations for var in equation.outputs)
    block = Block(tuple(params), tuple(equations), results)
    return Function("laws", tuple(sizes), Assumptions(), block), sizes


def _compiled(
    rows: Sequence[Row],
    operands: Sequence[tuple[NDArray, ...]],
    lower: Lower,
    options: Mapping[str, Any],
) -> list[tuple[NDArray, ...]]:
    """The results of all rows, computed by one program; of each alone if that fails."""
    function, sizes = _program(rows)
    try:
        executable = compile_module(lower(function, sizes), options=options)
    except Exception as error:
        if len(rows) > 1:
            pairs = zip(rows, operands, strict=True)
            return [_compiled([row], [given], lower, options)[0] for row, given in pairs]
        raise AssertionError(f"{rows[0]} does not compile: {error}") from error
    flat = [array for given in operands for array in given]
    outputs = iter([np.asarray(each) for each in executable.run(flat)])
    equations = function.body.equations
    return [tuple(next(outputs) for _ in equation.outputs) for equation in equations]


def _options(row: Row) -> Mapping[str, Any]:
    """Return the options of XLA for a row.

    Code is as users get it where numbers are computed, of one dtype of each kind or, with
    `SHARE=1`, of all; quick code moves and combines them.  The differential tests run all of these
    as they run elsewhere, and `test_special` its functions.
    """
    computes = isinstance(row.primitive, Elementwise) and row.primitive not in SPECIAL
    dtypes = {each.dtype for each in row.operands}
    return {} if computes and (WHOLE or dtypes <= {F32, I32, C64, BOOL}) else QUICK


def _stored_shape(type_: ArrayType) -> tuple[Size, ...]:
    return (*type_.shape, 2) if type_.dtype is KEY else type_.shape


def _close(row: Row, dtype: DType, got: NDArray, want: NDArray) -> Any:
    """Where a result is what it should be."""
    assert got.dtype == want.dtype, (row, got.dtype, want.dtype)
    assert got.shape == want.shape, (row, got.shape, want.shape)
    if not dtype.is_inexact:
        return got == want
    with np.errstate(all="ignore"):
        if dtype.is_complex:
            size = np.abs(want.astype(np.complex128))
            return _parts_close(row, dtype, np.real(got), np.real(want), size) & _parts_close(
                row, dtype, np.imag(got), np.imag(want), size
            )
        return _parts_close(row, dtype, got, want, np.abs(want.astype(np.float64)))


def _parts_close(row: Row, dtype: DType, got: NDArray, want: NDArray, size: NDArray) -> Any:
    """Whether real numbers agree, given the size that counts for how far they may differ."""
    limits = finfo(dtype)
    largest, least = float(limits.max), float(limits.smallest_normal)
    unit = row.tolerance * float(limits.eps)
    a, b = got.astype(np.float64), want.astype(np.float64)
    close = np.abs(a - b) <= row.absolute + unit * np.maximum(size, least)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    flushed = (np.abs(a) <= least) & (np.abs(b) <= least)
    # Near the largest number, one of the two may be rounded to infinity.
    large = np.minimum(np.abs(a), np.abs(b)) >= largest * (1 - unit)
    overflown = large & (np.sign(a) == np.sign(b)) & (row.tolerance > 0)
    result = close | same | flushed | overflown
    if row.signed_zeros:
        result &= (a != 0) | (b != 0) | (np.signbit(a) == np.signbit(b))
    return result


def _report(
    row: Row,
    operands: Sequence[NDArray],
    place: tuple[int, ...],
    got: NDArray,
    want: NDArray,
    count: int,
) -> str:
    given = [x[place] if x.shape == got.shape else x for x in operands]
    shown = ", ".join(str(x) if np.size(x) <= 8 else "…" for x in given)
    return (
        f"{row}: {count} of {got.size} differ, of {shown} at {place}: "
        f"got {got[place]}, meant {want[place]}"
    )
