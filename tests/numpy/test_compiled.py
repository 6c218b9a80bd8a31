"""The same calls through XLA: what is lowered computes what the interpreter does."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pytest

from pscdsl._src.language.meanings import MEANINGS, Meaning
from tests.numpy import test_creation as creation
from tests.numpy import test_elementwise as elementwise
from tests.numpy import test_manipulation as manipulation
from tests.support.numpy_harness import build, mapped

pytestmark = [pytest.mark.jaxlib, pytest.mark.quick_code(but=4)]

Call: TypeAlias = tuple[str, tuple[Any, ...], dict[str, Any]]
TOLERANCE = {2: 4e-3, 4: 5e-6, 8: 1e-12, 16: 1e-12}


def calls_of(names: str, *args: Any) -> list[Call]:
    return [(name, args, {}) for name in names.split()]


def elementwise_calls(code: str) -> list[Call]:
    x = elementwise.numbers(code)
    left, right = elementwise.pairs(code)
    calls = calls_of(" ".join(elementwise.IN_FLOATING_POINT), x)
    calls += calls_of("isnan isinf isfinite logical_not nan_to_num", x)
    binary = [n for n in elementwise.OF_TWO_IN_FLOATING_POINT if n != "nextafter"]
    calls += calls_of(" ".join(binary) + " isclose", left, right)
    if code != "?":
        calls += calls_of(" ".join(elementwise.SAME_DTYPE) + " signbit", x)
        names = " ".join(elementwise.OF_TWO_SAME_DTYPE)
        calls += calls_of(names + " floor_divide remainder fmod power divmod", left, right)
        calls += [("power", (x, exponent), {}) for exponent in (0, 1, 2, 3, 9)]
        calls += [("round", (x, decimals), {}) for decimals in (0, 1, -1)]
        calls += [("clip", (x, 1, 5), {})]
    if code in ("i4", "u1"):
        calls += calls_of("bitwise_and bitwise_or bitwise_xor gcd lcm", left, right)
        calls += calls_of("invert bitwise_count", x)
    return calls


PROGRAMS = {
    "manipulation": manipulation.CALLS,
    "creation": [("exp", (creation.ANCHOR,), {}), *creation.CALLS],
    **{f"elementwise {code}": elementwise_calls(code) for code in ("f4", "f8", "i4", "u1", "?")},
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_as_interpreted(name: str) -> None:
    calls = PROGRAMS[name]
    arrays: list[Any] = []
    for _, args, kwargs in calls:
        given = [*args, *kwargs.values()]
        mapped(lambda x: arrays.append(x) if is_array(x) else None, given)

    def program(*values: Any) -> list[Any]:
        here, remaining = values[0].builder, iter(values)

        def passed(x: Any) -> Any:
            return next(remaining) if is_array(x) else x

        results: list[Any] = []
        for of, args, kwargs in calls:
            meaning = MEANINGS[f"numpy.{of}"]
            assert isinstance(meaning, Meaning)
            given = [mapped(passed, x) for x in args]
            options = {name: mapped(passed, x) for name, x in kwargs.items()}
            results.append(meaning.apply(here, given, options))
        return results

    built = build(program, tuple(arrays), {})
    for (of, *_), wanted, got in zip(calls, built.evaluated(), built.compiled(), strict=True):
        for one, other in zip(leaves(wanted), leaves(got), strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape), of
            if one.dtype.kind in "fc":
                close = np.isclose(
                    other, one, rtol=TOLERANCE[one.dtype.itemsize], atol=1e-7, equal_nan=True
                )
                assert close.all(), (of, one[~close], other[~close])
            else:
                np.testing.assert_array_equal(other, one, of)


def is_array(x: object) -> bool:
    return isinstance(x, np.ndarray | np.generic)


def leaves(tree: Any) -> list[Any]:
    found: list[Any] = []
    mapped(lambda x: found.append(np.asarray(x)), tree)
    return found
