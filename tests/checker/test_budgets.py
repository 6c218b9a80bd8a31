"""Budgets as Python objects have them: `kernel.check()`, options, transformations, notebooks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import CheckError, f32
from pscdsl._src.checker.check import check_source
from pscdsl._src.cli import main
from pscdsl._src.kernels.kernel import Kernel
from pscdsl.typing.codes.performance import BudgetExceeded


@psc.kernel(budget=("flops <= 2*n", "peak <= 8*n"))
def doubled(x: f32["n"]) -> f32["n"]:
    return 2 * x


# psc: budget flops <= n
@psc.kernel
def squared(x: f32["n"]) -> f32:
    return np.sum(x * x)


slope = psc.grad(squared)  # psc: budget flops <= n


def found(kernel: Kernel[..., Any]) -> BudgetExceeded:
    """The only finding of a kernel, which exceeds its budget."""
    with pytest.raises(CheckError) as error:
        kernel.check()
    [finding] = error.value.diagnostics
    assert isinstance(finding, BudgetExceeded)
    return finding


def test_a_kernel_checks_its_budget() -> None:
    assert doubled.check() == ()
    exceeded = found(squared)
    assert (exceeded.cost, exceeded.sizes) == ("2*n", (("n", 1),))
    assert (exceeded.taken, exceeded.allowed) == (2, 1)


def test_a_kernel_over_its_budget_runs() -> None:
    assert float(squared(np.ones(3, np.float32))) == 3


def test_options_make_a_kernel_with_another_budget() -> None:
    other = psc.kernel(doubled, budget="flops <= 1")
    assert found(other).sizes == (("n", 2),)
    assert doubled.check() == ()
    assert psc.kernel(squared) is squared


def test_a_derivative_has_a_budget_of_its_own() -> None:
    gradient = psc.kernel(psc.grad(doubled_sum), budget="bytes <= n")
    assert found(gradient).subject == "`grad(doubled_sum)`"
    assert psc.grad(squared).check() == ()


@psc.kernel(budget="gradient flops <= 4*n")
def doubled_sum(x: f32["n"]) -> f32:
    return np.sum(doubled(x))


def test_the_places_that_cost_most_come_first() -> None:
    text = """
import numpy as np
import pscdsl as psc
from pscdsl import f32

@psc.kernel(budget="flops <= 100*n")
def f(x: f32["n n"], y: f32["n"]) -> f32["n"]:
    z = y + 1
    z = x @ (x @ x) @ z
    return psc.scan(lambda c, _: (c @ x, None), z, None, length=30)[0]
"""
    [finding] = check_source(text, "f.py").diagnostics
    assert [label.span.line for label in finding.labels] == [10, 9, 9]
    assert "60*n*n" in finding.labels[0].text


def test_memory_is_that_of_the_worst_moment() -> None:
    text = """
import numpy as np
import pscdsl as psc
from pscdsl import f32

@psc.kernel(budget="memory <= 10*n*n")
def f(y: f32["n"]) -> f32["n"]:
    outer = y[:, None] * y
    again = np.exp(outer) @ np.sin(outer)
    return again[0] + y
"""
    [finding] = check_source(text, "f.py").diagnostics
    assert {label.span.line for label in finding.labels} == {7, 8}


def test_notebooks_have_budgets_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        "import pscdsl as psc\n",
        "from pscdsl import f32\n",
        "\n",
        "# psc: budget flops <= n\n",
        "@psc.kernel\n",
        'def f(x: f32["n"]) -> f32["n"]:\n',
        "    return x + x + x\n",
    ]
    cells: list[dict[str, Any]] = [
        {"cell_type": "markdown", "source": ["Words"], "metadata": {}},
        {"cell_type": "code", "source": lines, "metadata": {}, "outputs": []},
    ]
    path = tmp_path / "book.ipynb"
    path.write_text(
        json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    )
    assert main(["check", str(path), "--format", "json", "--no-cache"]) == 1
    [finding] = json.loads(capsys.readouterr().out)["diagnostics"]
    assert (finding["code"], finding["line"], finding["column"]) == ("PSC807", 4, 15)


def test_what_was_kept_on_disk_says_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "file.py"
    path.write_text(
        'import pscdsl as psc\nfrom pscdsl import f32\n\n@psc.kernel(budget="flops <= n")\n'
        'def f(x: f32["n"]) -> f32["n"]:\n    return x + x + x\n'
    )
    shown: list[str] = []
    for _ in range(2):
        assert main(["check", str(path), "--cache-dir", str(tmp_path / "cache")]) == 1
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    assert "PSC807" in shown[0]
