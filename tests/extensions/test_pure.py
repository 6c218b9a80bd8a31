"""`psc.pure`: called once with known values when a kernel is loaded, and never by a check."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32
from pscdsl._src.checker.check import check_source
from pscdsl._src.checker.report.machine_readable import render_json
from pscdsl._src.checker.report.summary import sentence

CALLS: list[int] = []


@psc.pure
def table(n: int) -> f32["n"]:
    """Numbers from 0, and a trace that it was called."""
    CALLS.append(n)
    return np.arange(n, dtype=np.float32)


@psc.pure
def pair() -> tuple[f32["2"], f32]:
    """Two results."""
    return np.array([1, 2], np.float32), np.float32(3)


@psc.pure
def wrong() -> f32["3"]:
    """Another dtype than is declared."""
    return np.zeros(3)


@psc.pure
def failing() -> f32["3"]:
    """No result at all."""
    raise RuntimeError("no table")


@psc.kernel
def shifted(x: f32["4"]) -> f32["4"]:
    return x + table(4)


@psc.kernel
def both(x: f32["2"]) -> f32["2"]:
    a, b = pair()
    return a * x + b


@psc.kernel
def misled(x: f32["3"]) -> f32["3"]:
    return x + wrong()


@psc.kernel
def broken(x: f32["3"]) -> f32["3"]:
    return x + failing()


def test_the_result_is_a_constant() -> None:
    CALLS.clear()
    for x in (np.ones(4, np.float32), np.zeros(4, np.float32)):
        np.testing.assert_array_equal(np.asarray(shifted(x)), x + np.arange(4))
    assert CALLS == [4]
    assert [each.code for each in shifted.check()] == ["PSC916"]


def test_a_tree_of_results() -> None:
    np.testing.assert_array_equal(np.asarray(both(np.ones(2, np.float32))), [4, 5])


def test_outside_of_kernels_it_is_the_function() -> None:
    assert table(2).shape == (2,)
    assert getattr(table, "__name__", "") == "table"


@pytest.mark.parametrize(("kernel", "says"), [(misled, "f64[3]"), (broken, "no table")])
def test_what_it_returns_must_be_what_it_declares(
    kernel: psc.Kernel[..., object], says: str
) -> None:
    with pytest.raises(psc.CheckError, match="PSC915") as raised:
        kernel(np.zeros(3, np.float32))
    assert says in str(raised.value)


SOURCE = """import pscdsl as psc
from pscdsl import f32


@psc.pure
def load() -> f32["3"]:
    raise SystemExit("a check never calls it")


@psc.kernel
def f(x: f32["3"]) -> f32["3"]:
    return x + load()
"""


def test_a_check_lists_it_and_does_not_call_it(tmp_path: Path) -> None:
    result = check_source(SOURCE, str(tmp_path / "m.py"))
    assert [(d.code, d.span.line) for d in result.diagnostics] == [("PSC916", 6)]
    assert "1 function vouched for" in sentence(result.diagnostics, result.kernels, 1)
    document = json.loads(render_json(result.diagnostics, result.kernels, 1))
    assert document["summary"]["vouched"] == ["load"]
