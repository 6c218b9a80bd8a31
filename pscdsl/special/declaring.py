"""How functions of this package are declared: under SciPy's name too, which means the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pscdsl._src.ir.builder import Value
from pscdsl._src.language.meanings import Meaning
from pscdsl.numpy.calling import of_numbers
from pscdsl.numpy.elementwise import REAL, require, to_inexact


def of_special(
    *names: str, together: str, **others: Any
) -> Callable[[Callable[..., Any]], Meaning]:
    """Declare as `of_numbers` does; the parameters `together` come to one dtype."""
    both = [f"{module}.special.{name}" for module in ("pscdsl", "scipy") for name in names]
    return of_numbers(*both, together=tuple(together.split()))


def floating(name: str, x: Value) -> Value:
    """An operand in floating point; complex numbers are refused."""
    require(f"pscdsl.special.{name}", x, REAL)
    return to_inexact(x)
