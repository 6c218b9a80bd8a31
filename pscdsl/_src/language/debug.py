"""A look inside running kernels: lines that they print, values that they record, conditions.

    psc.debug.print("step {i}: loss {loss:.3f}", i=i, loss=loss)
    psc.check(np.all(x > 0), "x has {count} elements that are not positive", count=np.sum(x <= 0))

Each is an effect with a type: it changes no result, it stays under derivatives and batches, and
effects happen in the order of the source. `PSCDSL_CHECKS=off` compiles kernels without any.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import numpy as np

from pscdsl._src.language.declarations import declaring_bodies
from pscdsl._src.primitives.effects import CheckFailed
from pscdsl._src.support.effects import CHECKS, COMPILED, Kind, RuntimeCheck, known_check
from pscdsl._src.support.progress import BARS

# Which effects are compiled.


@contextmanager
def checks(*names: RuntimeCheck) -> Generator[None]:
    """Check every value of the kernels that are called inside of a `with` block.

    The first equation whose result has a NaN (`"nan"`) or an infinity (`"inf"`) that none of its
    operands has raises a `psc.CheckFailed`, with its place in the source and the operands. Kernels
    are compiled anew where the block begins and where it ends, in all threads. The environment
    variable `PSCDSL_CHECKS=nan,inf` does the same for a whole process.

    Args:
        names: The checks: `"nan"`, `"inf"`, `"index"`; without any, all.

    Raises:
        ValueError: There is no such check.

    Examples:
        >>> @psc.kernel
        ... def log(x: f32["n"]) -> f32["n"]:
        ...     return np.log(x)
        >>> with psc.debug.checks("nan"):
        ...     log(np.array([1, -1], np.float32))
        Traceback (most recent call last):
        pscdsl.CheckFailed: NaN in the result of `log`
        it is made by `log`
          <session[0]>:3: return np.log(x)
            x = [ 1. -1.]
    """
    before = COMPILED.kinds
    COMPILED.become(
        before
        | frozenset[Kind]([known_check(name, "psc.debug.checks") for name in names or CHECKS])
    )
    try:
        yield
    finally:
        COMPILED.become(before)


@contextmanager
def off() -> Generator[None]:
    """Compile the kernels that are called inside of a `with` block without any effects.

    Examples:
        >>> @psc.kernel
        ... def doubled(x: f32) -> f32:
        ...     psc.debug.print("x is {x}", x=x)
        ...     return 2 * x
        >>> with psc.debug.off():
        ...     print(doubled(3))
        6.0
    """
    before = COMPILED.kinds
    COMPILED.become(frozenset())
    try:
        yield
    finally:
        COMPILED.become(before)


# The functions that kernels call.

T = TypeVar("T")
_print: Final = print


@declaring_bodies("pscdsl.debug")
def print(text: str, /, *args: Any, **kwargs: Any) -> None:  # noqa: A001
    """Print a line, each time that the kernel gets there; fields are as in `str.format`.

    Lines come in the order of the source. A batch prints a line for each of its members, and a
    derivative prints what the function prints.

    Args:
        text: A format string that is known while checking.
        args: The fields by position: arrays, numbers, trees of them, or static values.
        kwargs: The fields by name.

    Examples:
        >>> psc.debug.print("x has the mean {mean:.2f}", mean=np.mean(np.arange(4)))
        x has the mean 1.50
    """
    _print(text.format(*map(_scalar, args), **{key: _scalar(x) for key, x in kwargs.items()}))


@declaring_bodies("pscdsl.debug")
def value(name: str, x: T) -> T:
    """Record a value, which `kernel.inspect(…)` returns under its name; return it.

    Calls of the kernel are not slower for it: only `inspect` compiles it.

    Args:
        name: A text that is known while checking.
        x: A tree of arrays.

    Examples:
        >>> @psc.kernel
        ... def norm(x: f32["n"]) -> f32:
        ...     squares = psc.debug.value("squares", x * x)
        ...     return np.sqrt(np.sum(squares))
        >>> norm.inspect(np.array([3, 4], np.float32)).values["squares"]
        [array([ 9., 16.], dtype=float32)]
    """
    del name  # nothing listens outside of kernels
    return x


@declaring_bodies("pscdsl")
def check(condition: Any, text: str = "the condition is false", /, **kwargs: Any) -> None:
    """Raise a `psc.CheckFailed` if a condition does not hold when the kernel runs.

    What is known while checking, such as sizes, is better said by `assert`, which is proven.

    Args:
        condition: A bool, or an array of bools that are all to be true.
        text: What is wrong, a format string that is known while checking.
        kwargs: Its fields: arrays, numbers, trees of them, or static values.

    Raises:
        CheckFailed: It does not hold. The call has computed everything, and returns nothing.

    Examples:
        >>> @psc.kernel
        ... def root(x: f32["n"]) -> f32["n"]:
        ...     psc.check(x >= 0, "negative: {x}", x=x)
        ...     return np.sqrt(x)
        >>> root(np.array([4, -1], np.float32))
        Traceback (most recent call last):
        pscdsl.CheckFailed: negative: [ 4. -1.]…
    """
    if not np.all(np.asarray(condition)):
        raise CheckFailed(text.format(**{key: _scalar(x) for key, x in kwargs.items()}))


@declaring_bodies("pscdsl")
def progress(step: Any, steps: Any, label: str = "steps") -> None:
    """Draw a bar for a loop, in a terminal or a notebook.

    The host is called about a hundred times, however many steps there are.

    Args:
        step: The number of the step, from 0 on.
        steps: How many there are.
        label: The text before the bar, known while checking; loops with bars at the same time
            have different ones.

    Examples:
        >>> @psc.kernel
        ... def halved(x: f32) -> f32:
        ...     def body(i: i32, x: f32) -> f32:
        ...         psc.progress(i, 1000, "halving")
        ...         return x / 2
        ...
        ...     return psc.fori_loop(0, 1000, body, x)
        >>> halved(1)
        pscdsl.Array(0., dtype=float32)
    """
    BARS.update(label, int(step) + 1, int(steps))


def _scalar(x: Any) -> Any:
    """Return an array without axes as a scalar, which a format applies to."""
    return np.asarray(x)[()] if getattr(x, "shape", None) == () else x
