"""One workload beside the others, in this process."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from benchmarks.measure import Ratio, compare, seconds
from benchmarks.rivals import rivals
from benchmarks.workload import Workload, children, leaves, plain
from pscdsl import Record
from pscdsl._src.xla import binding
from pscdsl._src.xla.runtime import boot
from pscdsl._src.xla.runtime.devices import put

ROUNDS = 31
SLOW = 5.0
"""What takes more seconds is measured once, NumPy and Autograd as their results are compared."""
LEAST = 0.02
"""How many seconds each turn takes at least, so that the clock and the first call do not count."""


@dataclass(frozen=True)
class Alongside:
    """What was measured in one process."""

    ratios: dict[str, Ratio]
    """Our time and theirs, by their names."""
    bytes: int
    """Of our temporaries and results."""
    their_bytes: int
    """Of jax.jit's."""


def measure(work: Workload, skipped: Collection[str] = ()) -> Alongside:
    """Our time beside each of the others' but those skipped; a ValueError if results differ."""
    jax: Any = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", work.double)
    arguments = work.arguments(work.scale)
    numbers = plain(arguments)
    jitted = jax.jit(work.jax(jax))
    there = jax.tree.map(jax.numpy.asarray, numbers)
    others: dict[str, Callable[[], Any]] = {
        "jax.jit": lambda: jax.block_until_ready(jitted(*there))
    }
    for name, function in rivals(work, arguments).items():
        if name not in skipped:
            others[name] = _called(function, numbers)
    here = on_device(arguments)
    ours = blocking(work.kernel, here)
    ratios: dict[str, Ratio] = {}
    for name, rival in others.items():
        start = time.perf_counter()
        found = rival()
        taken = time.perf_counter() - start
        check_equal(work.name, work.tolerance, ours(), found)
        if taken > SLOW and name.startswith("numpy"):  # others compile in their first call
            ratios[name] = once(seconds(ours), taken)
    if work.derived is not None:
        others["forward"] = blocking(work.derived.forward, here)
    ratios |= {name: beside(ours, rival) for name, rival in others.items() if name not in ratios}
    memory = compiled(work.kernel, arguments).memory()
    theirs = jitted.lower(*there).compile().memory_analysis()
    return Alongside(
        ratios,
        memory["temporaries"] + memory["results"],
        theirs.temp_size_in_bytes + theirs.output_size_in_bytes,
    )


def compiled(kernel: Any, arguments: tuple[Any, ...]) -> Any:
    """The executable that a call with these arguments runs."""
    return kernel.executable(kernel.lower_for(*arguments).specialisation)


def on_device(tree: Any) -> Any:
    """The same tree of arrays on the device."""
    parts = children(tree)
    if parts is None:
        return put(tree)
    placed = [on_device(each) for each in parts]
    named = isinstance(tree, Record) or hasattr(tree, "_fields")
    return type(tree)(*placed) if named else tuple(placed)


def blocking(kernel: Any, arguments: tuple[Any, ...]) -> Callable[[], Any]:
    """A call of a kernel that ends when its results are there, as `jax.block_until_ready` does."""

    def run() -> Any:
        found = kernel(*arguments)
        boot.jax.batched_block_until_ready(binding.flatten(found)[0])
        return found

    return run


def _called(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Callable[[], Any]:
    return lambda: function(*arguments)


def check_equal(name: str, tolerance: float, ours: Any, theirs: Any) -> None:
    """Raise if results differ by more than this part of the greatest finite number."""
    mine, other = leaves(ours), leaves(theirs)
    if len(mine) != len(other):
        raise ValueError(f"{name}: {len(mine)} results, the others have {len(other)}")
    for x, y in zip(map(np.asarray, mine), map(np.asarray, other), strict=True):
        most = float(np.max(np.abs(y[np.isfinite(y)]), initial=1e-30))
        # Two ways to sum may differ in the last rounding. Others may not know our dtype: NumPy has
        # no bf16 of its own, and computes in f32.
        roundings = 2 if x.dtype != y.dtype else 1
        admitted = max(tolerance, roundings * resolution(x.dtype)) * most
        if x.dtype.kind == "V":  # whose own arithmetic would round the differences
            x, y = x.astype(np.float32), y.astype(np.float32)
        np.testing.assert_allclose(x, y, rtol=0, atol=admitted, err_msg=name)


def resolution(dtype: np.dtype[Any]) -> float:
    """The distance from 1 to the next number; 0 where all numbers are exact."""
    find: Any = ml_dtypes.finfo
    return float(find(dtype).eps) if dtype.kind in "fcV" else 0.0


def once(mine: float, other: float) -> Ratio:
    """What was measured once."""
    return Ratio(mine, other, *[mine / other] * 3)


def beside(ours: Callable[[], Any], theirs: Callable[[], Any]) -> Ratio:
    """Both in turn, for as many rounds as a few seconds have."""
    mine, other = seconds(ours), seconds(theirs)
    longest = max(mine, other)
    if longest > SLOW:
        return once(mine, other)
    rounds = ROUNDS if longest < 0.1 else max(3, int(3 / longest))
    return compare(ours, theirs, min(rounds, ROUNDS), max(1, int(LEAST / longest)))
