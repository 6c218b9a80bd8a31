"""What NumPy computes while a program is read warns nobody."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32
from pscdsl._src.checker.check import check_source

EXPRESSIONS = """
np.float32(1e300)
np.float32(3e38) * np.float32(10)
np.float32(1) / np.float32(0)
np.sqrt(np.float32(-1))
np.log(-2.0)
np.float32(np.mean(np.zeros(0)))
np.array([1e300], dtype=np.float32)
np.array([1 + 2j]).astype(np.float32)
np.float32(np.float64(1e300))
np.quantile(np.array([1.0, np.inf], dtype=np.float32), 0.25)
~True
""".strip().splitlines()


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("outside", [False, True])
def test_checking_does_not_warn(expression: str, outside: bool) -> None:
    lines = [
        "import numpy as np",
        "import pscdsl as psc",
        "from pscdsl import f32",
        f"SCALE = {expression if outside else 1.0}",
        "",
        "@psc.kernel",
        'def f(x: f32["n"]) -> f32["n"]:',
        f"    return x * {'SCALE' if outside else expression}",
    ]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_source("\n".join(lines), "warned.py")
    assert not caught


@psc.kernel
def scaled(x: f32["n"]) -> f32["n"]:
    return x * np.float32(1e300) * (np.float32(3e38) * np.float32(10))


def test_calls_do_not_warn() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert np.all(np.isinf(scaled(np.ones(2, np.float32))))
    assert not caught
