"""Python's arithmetic and `math` on sizes: what Python gives, or a refusal where it may raise."""

# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from pscdsl._src.calls.errors import CheckError
from pscdsl._src.checker.check import check_source
from tests.support.projects import module_of

pytestmark = pytest.mark.quick_code

DEFINED = """
math.log(n)
math.log(float(n))
math.log(n / 2)
math.log(2 / n)
math.log(n % 3 + 1)
math.log(math.sqrt(n))
math.log(math.log(n + 2))
math.log1p(n)
math.log1p(-1 / (n + 1))
math.log2(n) + math.log10(n)
math.sqrt(n)
-math.sqrt(n)
math.sqrt(n * (n - 1))
math.sqrt(n % 3)
math.sqrt(2 / (n + 1))
math.sqrt(6.0 / (n + 3))
1 / math.sqrt(n)
math.exp(-n)
math.exp(1 / n)
math.exp2(-n)
math.exp(math.log(n))
math.cos(2 * math.pi / n) + math.sin(n)
math.tanh(n - 3.5)
math.cbrt(n - 3)
n ** 0.5
n ** -0.5
n ** 2.5
(2 * n + 1) ** 0.5
(n * 0.5 - 1.0) ** 2
(n * 0.5 - 1.0) ** 2.0
0.9 ** n
(-0.9) ** n
5.0 // n
float(n) ** -1
"""
"""Python never raises for these, whatever the size."""

UNDEFINED = """
math.log(n - 3)
math.log(n % 3)
math.log(0.5 - math.sqrt(n))
math.log2(n - 1)
math.log10(1 - n)
math.log1p(-n)
math.log1p(n * 0.1 - 2)
math.sqrt(n - 5)
math.sqrt(-(n - 1))
math.sqrt(n * 0.5 - 1)
math.sqrt(np.zeros(3))
math.exp(n)
math.exp(10 * n)
math.exp2(n)
math.exp(n * 0.5)
(n - 5) ** 0.5
(n - 1) ** -0.5
(n - 1) ** -1.0
(n * 0.5 - 1.0) ** 0.5
(n * 0.5 - 1.0) ** -1
2.0 ** n
n ** 100.0
1 / math.log(n)
1 / (n * 0.5 - 1.0)
1j / (n * 0.5 - 1.0)
1 / float(n - 1)
5.0 % (n - 3.0)
5.0 // (n - 3.0)
"""
"""For some size Python raises, or gives a complex number."""

SIZES = (1, 2, 3, 4, 7, 80)


def _lines(text: str) -> list[str]:
    return text.strip().splitlines()


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """A module with a kernel for each expression."""
    text = "import math\nimport numpy as np\nimport pscdsl as psc\nfrom pscdsl import f64, c128\n"
    for number, each in enumerate([*_lines(DEFINED), *_lines(UNDEFINED)]):
        dtype = "c128" if "j" in each else "f64"
        text += f'\n@psc.kernel\ndef k{number}(x: {dtype}["n"]) -> {dtype}["n"]:\n'
        text += f"    n = x.shape[0]\n    return x * ({each})\n"
    path: Path = tmp_path_factory.mktemp("math") / "kernels_of_math.py"
    path.write_text(text)
    module = module_of(path)
    yield module
    del sys.modules[path.stem]


@pytest.mark.parametrize(("number", "expression"), [*enumerate(_lines(DEFINED))])
def test_what_is_always_defined(kernels: ModuleType, number: int, expression: str) -> None:
    for n in SIZES:
        wanted = eval(expression, {"math": math, "n": n})
        found = getattr(kernels, f"k{number}")(np.ones(n))
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("number", "expression"), [*enumerate(_lines(UNDEFINED), len(_lines(DEFINED)))]
)
def test_what_may_raise_is_refused(kernels: ModuleType, number: int, expression: str) -> None:
    def raises(n: int) -> Any:
        try:
            return isinstance(eval(expression, {"math": math, "np": np, "n": n}), complex)
        except (ArithmeticError, ValueError, TypeError):
            return True

    assert any(map(raises, (*SIZES, 1000, 2000)))
    with pytest.raises(CheckError):
        getattr(kernels, f"k{number}")(np.ones(3, complex if "j" in expression else float))


def test_numbers_made_in_many_steps() -> None:
    text = """
import math
import pscdsl as psc
from pscdsl import f64

@psc.kernel
def doubled(x: f64["n"]) -> f64["n"]:
    y = x.shape[0] * 0.5
    for _ in [0] * 200:
        y = (y + y) * 0.5
    return x * math.sqrt(y)

@psc.kernel
def halved(x: f64["n"]) -> f64["n"]:
    y = x.shape[0] * 0.5
    for _ in [0] * 200:
        y = (y + y) * 0.5
    return x * math.sqrt(y - 1)
"""
    (error,) = check_source(text, "steps.py").diagnostics
    assert error.code == "PSC120"
