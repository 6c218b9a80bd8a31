"""A sample of the calls of NumPy's and SciPy's own tests, and that the replay sees mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.campaign.outcomes import Figures
from tests.replay.calls import Call, Recording, sampled
from tests.replay.campaign import BATCH, judged, quietly, replayed
from tests.replay.documented import ROWS
from tests.replay.kernels import written
from tests.replay.recording import files, record
from tests.support.share import due, some

DIFFERENCES = Path(__file__).parents[2] / "pscdsl" / "numpy" / "DIFFERENCES.md"
QUICK = {
    "numpy/_core/tests": "array_coercion function_base half regression shape_base umath_complex",
    "numpy/lib/tests": "arraypad arraysetops index_tricks polynomial "
    "shape_base type_check twodim_base",
    "numpy/linalg/tests": "regression",
    "numpy/fft/tests": "helper",
    "scipy/special/tests": "erfinv gammainc logit ndtr",
}
"""Tests that take a second or two."""


def test_a_sample_has_no_difference_but_those_that_are_documented(tmp_path: Path) -> None:
    """Some calls, in turn one of each function; `make replay` tries 20,000."""
    record(tmp_path / "calls", 600, some(files(QUICK), 5))
    calls = sampled(Recording.load(tmp_path / "calls").calls, due(500, 5), seed=0)
    assert len(calls) == due(500, 5)
    figures = Figures()
    with quietly():
        for first in range(0, len(calls), BATCH):
            figures.add(first // BATCH, replayed(calls[first : first + BATCH]))
    assert not figures.problems, figures.shown
    assert figures.count("equal") + figures.count("documented") > due(350, 5)


X = np.array([1.0, 2.5, -0.0])
SEEN: list[tuple[Call, Any, str]] = [
    (Call("numpy.negative", (X,), {}), X, "value"),
    (Call("numpy.positive", (X,), {}), np.array([1.0, 2.5, 0.0]), "zero"),
    (Call("numpy.abs", (X,), {}), np.abs(X).astype(np.float32), "dtype"),
    (Call("numpy.sum", (X,), {}), np.array([3.5]), "shape"),
    (Call("numpy.divmod", (X, 2.0), {}), X // 2, "structure"),
    (Call("numpy.linalg.inv", (X,), {}), X, "raises"),
    (Call("numpy.exp", (X,), {}), np.exp(X) * (1 + 1e-14), "value"),
    (Call("operator.getitem", (X, slice(None, 1)), {}), X[1:2], "value"),
]


@pytest.mark.parametrize(("call", "result", "kind"), SEEN, ids=[x[2] for x in SEEN])
def test_a_wrong_result_is_seen(call: Call, result: Any, kind: str) -> None:
    verdict = judged(written(call), result)
    assert (verdict.kind, verdict.problem.partition(":")[0]) == ("different", kind)


def test_a_right_result_is_equal() -> None:
    call = Call("numpy.exp", (X,), {})
    assert judged(written(call), np.exp(X) * (1 + 2e-16)).kind == "equal"


def test_each_row_is_in_the_document_once() -> None:
    lines = DIFFERENCES.read_text(encoding="utf-8").splitlines()
    for row in ROWS:
        assert sum(row.words in line for line in lines) == 1, row.words
