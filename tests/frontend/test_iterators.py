"""`itertools`, `next`, enumerations and numbers of higher kinds: what CPython and NumPy give."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.projects import module_of

pytestmark = pytest.mark.quick_code
X = np.array([1, 2.5, 0.25], np.float32)
Y = np.array([0.5, 0.75, 2])
HEAD = """
import enum
import itertools
import numpy as np
import pscdsl as psc
from pscdsl import f32, f64


class Kind(enum.Enum):
    FIRST = 1
    SECOND = 2
    ALSO_FIRST = 1
"""
OF_ITERATORS = """
sum(a * b for a, b in itertools.product([x, x + 1], (1, 2)))
sum(a * b for a, b in itertools.product((1, 2, x), repeat=2))
sum(a * b for a, b in itertools.combinations([x, x + 1, x + 2], 2))
sum(a * b for a, b in itertools.combinations_with_replacement([x, 2], 2))
sum(a - 2 * b for a, b in itertools.permutations([x, x + 1, 3], 2))
sum(a * b for a, b in itertools.pairwise([x, x * 2, x * 3]))
sum(itertools.chain([x], (x, 2), range(3)))
sum(itertools.chain.from_iterable([[x, 1], [2]]))
sum(a * b for a, b in itertools.zip_longest([x, 2 * x], [3], fillvalue=x))
sum(itertools.repeat(x, 3))
sum(itertools.islice([x, 1, 2, 3], 0, 4, 2))
sum(itertools.accumulate([x, 1, 2]))
sum(itertools.accumulate([x, 1, 2], lambda a, b: a * b, initial=x))
sum(itertools.starmap(lambda a, b: a * b, [(x, 1), (2, x)]))
len(list(itertools.product((), (1, 2)))) * x
next(v for v in (1, 2, 3) if v > 1) * x
next(iter([x, 1]))
next(iter(()), 4) * x
next((v for v in (1, 2) if v > 5), x)
sum(x * kind.value for kind in Kind)
x * (Kind.FIRST in Kind) * len(Kind) + x * len([kind.name for kind in Kind])
"""
OF_NUMBERS = """
(x > 0.5) * 3
3 - (x > 0.5)
(x > 0.5) / 2
(x > 0.5) // 2
2 ** (x > 0.5)
(x > 0.5) << 1
(x > 0.5) == 1
(x > 0.5) < 2
(x > 0.5) * x.shape[0]
(x > 0.5) * True
np.maximum(x > 0.5, 3)
np.where(x > 0.5, x > 1, 2)
np.clip(x > 0.5, 0, 3)
np.sum((x > 0.5) * 2)
x * 1j
y * 1j
1j - y
x / 2j
y ** 1j
np.exp(1j * y)
np.where(x > 0.5, y, 1j)
"""
EXPRESSIONS = [*OF_ITERATORS.strip().splitlines(), *OF_NUMBERS.strip().splitlines()]


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """A kernel and a function for each expression."""
    path: Path = tmp_path_factory.mktemp("iterators") / "of_iterators.py"
    text = HEAD
    for number, each in enumerate(EXPRESSIONS):
        text += f"""

@psc.kernel
def kernel_{number}(x: f32["3"], y: f64["3"]):
    return {each}


def function_{number}(x, y):
    return {each}
"""
    path.write_text(text)
    made = module_of(path)
    yield made
    del sys.modules[path.stem]


@pytest.mark.parametrize(("number", "text"), list(enumerate(EXPRESSIONS)))
def test_what_python_gives(module: ModuleType, number: int, text: str) -> None:
    """Dtype and values of each expression."""
    kernel, function = (getattr(module, f"{kind}_{number}") for kind in ("kernel", "function"))
    found, wanted = (np.asarray(each(X, Y)) for each in (kernel, function))
    assert found.dtype == wanted.dtype, text
    close: Any = np.testing.assert_allclose
    close(found, wanted, rtol=1e-6)
