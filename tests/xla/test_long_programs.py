"""Programs that are long, deep or large compile, or are refused; they never end the process."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32, i8, i32, i64
from pscdsl._src.kernels.emission import emitted
from pscdsl._src.transforms.simplify import operations
from pscdsl._src.xla.depths import DEEPEST, Depths
from pscdsl.typing.signatures import Choice

LONG = DEEPEST + 10


def sines(count: int, x: Any) -> Any:
    for _ in [0] * count:
        x = np.sin(x)
    return x


@psc.kernel
def short(x: f32["n"]) -> f32["n"]:
    return sines(100, x)


@psc.kernel
def long(x: f32["n"]) -> f32["n"]:
    return sines(LONG, x)


@psc.kernel
def two_thirds(x: f32["n"]) -> f32["n"]:
    return sines(LONG * 2 // 3, x)


@psc.kernel
def called(x: f32["n"]) -> f32["n"]:
    return two_thirds(two_thirds(x))


@psc.kernel
def wide(x: f32["n"]) -> f32["n"]:
    total = x
    for i in [*range(LONG)]:
        total = np.maximum(total, np.sin(x) * i) if i % 100 == 0 else total
    return total


@psc.kernel
def cut(x: f32["n"], a: f32["n n"]) -> f32["n"]:
    return sines(LONG * 2 // 3, a @ sines(LONG * 2 // 3, x))


@psc.kernel
def looped(x: f32["n"]) -> f32["n"]:
    return psc.fori_loop(0, 3, lambda _, x: sines(LONG, x), x)


@psc.kernel
def calling_loop(x: f32["n"]) -> f32["n"]:
    return psc.fori_loop(0, 3, lambda _, x: called(x), x)


@psc.kernel
def loop_of_short(x: f32["n"]) -> f32["n"]:
    return sines(LONG, psc.fori_loop(0, 3, lambda _, x: short(x), x))


def depths(kernel: Any) -> tuple[bool, bool]:
    """Whether a kernel is too deep, and whether one of its loops is."""
    found = Depths(emitted(kernel.optimised(Choice()), {"n": 3}))
    return found.main > DEEPEST, found.loops > DEEPEST


@pytest.mark.parametrize(
    ("kernel", "wanted"),
    [
        (short, (False, False)),
        (long, (True, False)),
        (two_thirds, (False, False)),
        (called, (True, False)),
        (wide, (False, False)),
        (cut, (False, False)),
        (looped, (False, True)),
        (calling_loop, (False, True)),
        (loop_of_short, (True, False)),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_what_is_deep(kernel: Any, wanted: tuple[bool, bool]) -> None:
    assert depths(kernel) == wanted


CHAIN = """
import numpy as np
import pscdsl as psc
from pscdsl import f32

def sines(x):
    for _ in [0] * 7000:
        x = np.sin(x)
    return x

@psc.kernel
def mapped(x: f32["n"]) -> f32["n"]:
    return psc.map(sines, x)

wanted = sines(np.float32(1))
assert np.allclose(mapped(np.ones(3, np.float32)), wanted, rtol=1e-3)
"""


def test_a_chain_of_7000_operations_does_not_end_the_process() -> None:
    ended = subprocess.run([sys.executable, "-c", CHAIN], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def loaded(folder: Path, text: str) -> Any:
    head = "import numpy as np\nimport pscdsl as psc\nfrom pscdsl import f32\n\n"
    path = folder / "kernels.py"
    path.write_text(head + text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kernels(count: int, body: str) -> str:
    head = '@psc.kernel\ndef k{}(x: f32["n"]) -> f32["n"]:\n    return '
    bodies = [body.format(i - 1, i - 1) if i else "np.sin(x)" for i in range(count)]
    return "\n\n".join(head.format(i) + text for i, text in enumerate(bodies))


def code(refused: pytest.ExceptionInfo[psc.CheckError]) -> str:
    return refused.value.diagnostics[0].code


def test_calls_that_double_are_refused_where_they_differ(tmp_path: Path) -> None:
    different = loaded(tmp_path, kernels(20, "k{}(x) + k{}(x + 1)"))
    assert different.k10.check() == ()
    with pytest.raises(psc.CheckError) as refused:
        different.k19.check()
    assert code(refused) == "PSC952"
    with pytest.raises(psc.CheckError) as refused:
        different.k19(np.ones(3, np.float32))
    assert code(refused) == "PSC952"
    same = loaded(tmp_path, kernels(20, "k{}(x) * k{}(x)"))
    assert same.k19.check() == ()
    assert operations(same.k19.optimised(Choice())) < 100


def test_kernels_that_are_nested_deeply_are_refused_at_calls(tmp_path: Path) -> None:
    last = loaded(tmp_path, kernels(1000, "np.sin(k{}(x))")).k999
    for use in (last.check, last.ir, lambda: last.lower(n=3), lambda: last(np.ones(3, "f"))):
        with pytest.raises(psc.CheckError) as refused:
            use()
        assert code(refused) == "PSC950"


@psc.kernel
def cube(x: f32["n"]) -> f32:
    n = x.shape[0]
    return x.sum() + np.zeros((n, n, n), np.float32).sum()


@psc.kernel
def matrix(x: f32["n n"]) -> f32["n n"]:
    return x


def test_arrays_that_can_never_be_are_refused() -> None:
    with pytest.raises(psc.CheckError, match="array of shape") as refused:
        cube(np.ones(3_000_000, np.float32))
    assert code(refused) == "PSC952"
    for size in (1 << 30, 10**18, 2**62):
        with pytest.raises(psc.CheckError) as refused:
            matrix.lower(n=size).text()
        assert code(refused) == "PSC952"
    for size in (1 << 63, 10**30):
        with pytest.raises(psc.ArgumentError, match="more than 63 bits"):
            matrix.lower(n=size)


@psc.kernel
def zeros_in(x: i8["n"]) -> i64:
    return np.count_nonzero(x == 0).astype(np.int64)


@psc.kernel
def largest(x: i8["n m"]) -> i32:
    return np.argmax(x)


@psc.kernel
def drawn(key: psc.Key, x: i8["n"]) -> f32:
    return np.sum(psc.random.normal(key, (x.shape[0],)))


@psc.kernel
def negatives(x: i8["n"]) -> i8["n"]:
    return np.where(x > 0, -x, x)[::-1]


def test_what_counts_more_elements_than_an_i32_can_is_refused() -> None:
    many = (1 << 31) + (1 << 16)
    for kernel, sizes in (
        (zeros_in, {"n": many}),
        (largest, {"n": many >> 16, "m": 1 << 16}),
        (drawn, {"n": many}),
    ):
        with pytest.raises(psc.CheckError, match=rf"PSC952.*{many} elements"):
            kernel.lower(**sizes).text()
        kernel.lower(**sizes | {"n": 1 << 14}).text()
    assert str(many) in negatives.lower(n=many).text()
