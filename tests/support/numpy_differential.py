"""Compares library functions with NumPy: interpreted, built for symbolic sizes, and compiled."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl.numpy.shorthand import listed
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.diagnostics import Diagnostic, Failure
from pscdsl.typing.dims import name as size_name
from tests.support.numpy_harness import build

NAN, INF = np.nan, np.inf
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, NAN, INF, -INF)


def theirs(function: str, *args: Any, **kwargs: Any) -> Any:
    """What NumPy's function of the same name says, without its warnings."""
    found: Any = np
    for part in function.split(".")[1:]:
        found = getattr(found, part)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return found(*args, **kwargs)


def at_least(*sizes: int, bound: int = 2) -> tuple[Fact, ...]:
    """Facts for symbolic sizes: each named after its number is at least so large."""
    return tuple(Fact("<=", bound, size_name(f"n{size}")) for size in sizes)


def check(
    function: str,
    *args: Any,
    wanted: Any = None,
    rtol: float = 1e-9,
    symbolic: bool = True,
    compiled: bool = False,
    facts: tuple[Fact, ...] = (),
    **kwargs: Any,
) -> None:
    """The same values and shapes as NumPy's."""
    if wanted is None:
        wanted = theirs(function, *args, **kwargs)
    results = [build(function, args, kwargs)]
    if symbolic:
        results.append(build(function, args, kwargs, symbolic=True, facts=facts))
    for each in results:
        agree(each.evaluated(), wanted, rtol)
    if compiled:
        agree(results[-1].compiled(), wanted, rtol)


def agree(found: Any, wanted: Any, rtol: float = 1e-9) -> None:
    """Equal up to rounding; tuples item by item."""
    items = listed(wanted)
    if items is not None:
        for one, other in zip(found, items, strict=True):
            agree(one, other, rtol)
        return
    expected = np.asarray(wanted)
    assert np.shape(found) == expected.shape
    if expected.dtype.kind in "bui":
        np.testing.assert_array_equal(found, expected)
        return
    precise = np.complex128 if expected.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(
        np.asarray(found).astype(precise), expected.astype(precise), rtol=rtol, atol=rtol
    )


def refused(
    expected: type[Diagnostic],
    function: str,
    /,
    *args: Any,
    symbolic: bool = False,
    facts: tuple[Fact, ...] = (),
    **kwargs: Any,
) -> Diagnostic:
    """The one finding with which a call is refused."""
    with pytest.raises(Failure) as caught:
        build(function, args, kwargs, symbolic=symbolic, facts=facts)
    (finding,) = caught.value.diagnostics
    assert isinstance(finding, expected), finding
    assert finding.message()
    return finding


def normal(*shape: int, seed: int = 0, dtype: Any = np.float64) -> Any:
    """Random numbers, always the same ones."""
    rng = np.random.default_rng([seed, *shape])
    parts = rng.standard_normal((2, *shape))
    whole = parts[0] + 1j * parts[1] if np.dtype(dtype).kind == "c" else parts[0] * 3
    return np.asarray(whole).astype(dtype)


def arrays(
    *, least_rank: int = 1, most_rank: int = 3, least_size: int = 1, special: bool = True
) -> st.SearchStrategy[Any]:
    """Small arrays of doubles."""
    sizes = st.lists(st.integers(least_size, 4), min_size=least_rank, max_size=most_rank)
    numbers = st.sampled_from(SPECIAL if special else SPECIAL[:7])

    def fill(shape: Sequence[int]) -> st.SearchStrategy[Any]:
        count = int(np.prod(shape))
        filled = st.lists(numbers, min_size=count, max_size=count)
        return filled.map(lambda items: np.array(items, np.float64).reshape(shape))

    return sizes.flatmap(fill)


def with_axis(
    given: st.SearchStrategy[Any], *, several: bool = False
) -> st.SearchStrategy[tuple[Any, Any]]:
    """An array with an axis, with none, or with several."""

    def choose(x: Any) -> st.SearchStrategy[tuple[Any, Any]]:
        one = st.integers(-x.ndim, x.ndim - 1) if x.ndim else st.none()
        axes: st.SearchStrategy[Any] = st.none() | one
        if several:
            axes |= st.permutations(range(x.ndim)).flatmap(
                lambda order: st.integers(0, len(order)).map(lambda count: tuple(order[:count]))
            )
        return st.tuples(st.just(x), axes)

    return given.flatmap(choose)


def meaning(name: str) -> Meaning:
    """A library function by its name."""
    found = MEANINGS[name]
    assert isinstance(found, Meaning)
    return found


class Applied:
    """A function of the user, as the library sees it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def apply(self, here: Any, args: Sequence[Any], kwargs: Any) -> Any:
        """Call it."""
        return self.function(*args, **kwargs)
