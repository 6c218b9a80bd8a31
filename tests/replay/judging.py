"""What a kernel gave beside what NumPy gives: structure, dtype, shape and values."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tests.replay.calls import Call, is_array, mapped
from tests.replay.kernels import evaluated

ULPS: Final = 16
"""Units in the last place by which every result may differ; `docs/reference/accuracy.md`."""
SPREAD: Final = 64
"""How much more than NumPy's own result, of operands that differ by a rounding, it may differ."""
STEPS: Final = frozenset(
    "floor ceil trunc rint fix round around sign signbit floor_divide remainder mod fmod divmod "
    "heaviside searchsorted digitize floordiv".split()
)
"""Functions that jump: operands that differ by a rounding say nothing of them."""
WINDOWS: Final = frozenset("bartlett blackman hamming hanning kaiser".split())
"""Functions of static numbers alone, whose ends are differences of larger numbers."""


@dataclass(frozen=True)
class Difference:
    """A difference between a kernel and NumPy."""

    kind: str
    """`raises`, `structure`, `shape`, `dtype`, `value`, `zero` (its sign), `crash`."""
    detail: str
    found: Any = None
    wanted: Any = None


class NotCompared(Exception):
    """What NumPy gives is no array."""


def numpys(call: Call) -> Any:
    """Return what NumPy gives, without its warnings; raise what it raises."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return evaluated(call)


def differences(call: Call, found: Any) -> list[Difference]:
    """Return how a result differs from NumPy's, one difference of each kind at most."""
    try:
        wanted = numpys(call)
    except Exception as error:
        message = f"{type(error).__name__}: {error}".splitlines()[0]
        return [Difference("raises", f"NumPy raises {message}, and the kernel gives {found!r}")]
    if isinstance(wanted, np.dtype):
        wanted = np.zeros(2, wanted)
    ours, theirs = list(arrays(found)), list(arrays(wanted))
    if any(type(x) not in (bool, int, float, complex) and not is_array(x) for x in theirs):
        raise NotCompared(type(wanted).__name__)
    if any(x.dtype.char not in "?bBhHiIlLqQefdFD" for x in theirs if is_array(x)):
        raise NotCompared("another dtype")
    if len(ours) != len(theirs):
        return [Difference("structure", f"{len(ours)} arrays, and NumPy gives {len(theirs)}")]
    seen: dict[str, Difference] = {}
    for place, (one, two) in enumerate(zip(ours, theirs, strict=True)):
        for each in _differences(call, place, np.asarray(one), two):
            seen.setdefault(each.kind, each)
    return list(seen.values())


def arrays(tree: Any) -> Iterator[Any]:
    """Yield the arrays and numbers of a result."""
    if isinstance(tree, tuple | list):
        for item in tree:
            yield from arrays(item)
    elif tree is not None:
        yield tree


def _differences(
    call: Call, place: int, found: np.ndarray[Any, Any], wanted: Any
) -> Iterator[Difference]:
    expected = np.asarray(wanted)
    if found.shape != expected.shape:
        yield Difference("shape", f"{found.shape} is not {expected.shape}", found, expected)
        return
    of_python = type(wanted) in (bool, int, float, complex)
    kinds = (found.dtype.kind, expected.dtype.kind)
    if kinds[0] != kinds[1] if of_python else found.dtype != expected.dtype:
        yield Difference("dtype", f"{found.dtype} is not {expected.dtype}", found, expected)
    exact = {*kinds} <= {*"biu"}
    if exact:
        # Python's integers hold those of all dtypes.
        same = np.asarray(found.astype(object) == expected.astype(object), bool)
        if not same.all():
            yield Difference("value", _first(found, expected, ~same), found, expected)
        return
    wide = np.dtype(np.complex128 if "c" in kinds else np.float64)
    one, two = found.astype(wide), expected.astype(wide)
    with np.errstate(all="ignore"):
        bad = _bad(one, two, _precision(found, expected))
        if bad.any() and call.name.rpartition(".")[2] not in STEPS:
            bad &= _beyond_spread(call, place, one, two, _precision(found, expected))
        zeros = np.zeros(one.shape, bool)
        for part in ("real", "imag"):
            a, b = getattr(one, part), getattr(two, part)
            zeros |= (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
    if bad.any():
        yield Difference("value", _first(found, expected, bad), found, expected)
    elif zeros.any():
        yield Difference("zero", _first(found, expected, zeros), found, expected)


def _precision(*arrays: np.ndarray[Any, Any]) -> float:
    """Return the unit in the last place of 1, of the coarsest dtype."""
    inexact = [x.dtype for x in arrays if x.dtype.kind in "fc"]
    return max(float(np.finfo(dtype).eps) for dtype in inexact)


def _bad(one: Any, two: Any, eps: float) -> np.ndarray[Any, Any]:
    """Return where numbers differ by more than a few units in the last place."""
    nan = np.isnan(one) == np.isnan(two)
    with np.errstate(all="ignore"):
        near = np.abs(one - two) <= ULPS * eps * np.maximum(np.abs(one), np.abs(two))
    same = one == two
    infinite = ~np.isfinite(one) | ~np.isfinite(two)
    good = np.where(np.isnan(one) | np.isnan(two), nan, same | (near & ~infinite))
    return np.asarray(~good)


def _beyond_spread(call: Call, place: int, one: Any, two: Any, eps: float) -> np.ndarray[Any, Any]:
    """Return where numbers differ by much more than NumPy's own do if operands are rounded."""
    rng = np.random.default_rng(0)
    spread = np.zeros(two.shape)
    size = np.max(np.abs(two[np.isfinite(two)]), initial=0)
    seen = False
    for number in range(8):

        def moved(x: Any, integers: bool = number % 2 == 1) -> Any:
            if isinstance(x, float | complex) and not is_array(x):
                return x * (1 + eps * rng.choice([-1, 1]))
            if type(x) is int and integers:
                return x * (1 + eps * rng.choice([-1, 1]))
            array: Any = x
            if not is_array(array) or array.dtype.kind not in "fc":
                return x
            step = max(eps, float(np.finfo(array.dtype).eps))
            noise = np.where(rng.random(array.shape) < 0.5, -step, step)
            return np.asarray(array * (1 + noise)).astype(array.dtype)

        args = tuple(
            [mapped(moved, x) if type(x) in (list, tuple) else moved(x, False) for x in call.args]
        )
        try:
            other = np.asarray(list(arrays(numpys(Call(call.name, args, call.kwargs))))[place])
        except Exception:
            continue
        if other.shape != two.shape:
            continue
        change = np.abs(other.astype(two.dtype) - two)
        spread = np.fmax(spread, np.where(np.isfinite(change), change, 0))
        seen = True
    if not seen:
        return np.ones(two.shape, bool)
    finite = np.isfinite(one) & np.isfinite(two)
    # A result that is zero but for cancellation has an error of the size of the others.
    allowed = SPREAD * np.maximum(spread, _floor(call, spread, size, eps))
    return np.asarray(~(finite & (np.abs(one - two) <= allowed)))


def _floor(call: Call, spread: Any, size: float, eps: float) -> float:
    """Return an error that each of several results may have: that of the largest one."""
    modules = ("numpy.linalg", "numpy.fft", "scipy.linalg", "scipy.fft")
    whole = call.name.startswith(modules) or call.name.rpartition(".")[2] in WINDOWS
    return size * eps if whole else float(np.max(spread, initial=0)) * 1e-3


def _first(found: Any, expected: Any, bad: Any) -> str:
    at = tuple(int(x) for x in np.argwhere(bad)[0])
    return f"{int(bad.sum())} of {bad.size} at {at}: {found[at]!r} is not {expected[at]!r}"
