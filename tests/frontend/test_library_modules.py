"""Modules of the standard library, reached by any name, in checks and in calls."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pscdsl import CheckError
from pscdsl._src.checker.check import check_source
from tests.support.projects import loaded

PROGRAM = """
import pscdsl as psc
{imports}
from pscdsl import f32


@psc.kernel
def f(x: f32["n"]) -> f32["n"]:
    return {name}.relu(x)
"""
WAYS = {
    "psc.stdlib.activations": "",
    "stdlib.activations": "from pscdsl import stdlib",
    "library.activations": "import pscdsl.stdlib as library",
    "activations": "from pscdsl.stdlib import activations",
    "act": "import pscdsl.stdlib.activations as act",
}


@pytest.mark.parametrize("name", WAYS)
def test_a_module_of_the_library(name: str, tmp_path: Path) -> None:
    text = PROGRAM.format(imports=WAYS[name], name=name)
    assert not check_source(text, "program.py").diagnostics
    module = loaded(tmp_path / "program.py", text)
    assert module.f(np.array([-1, 2], np.float32)).tolist() == [0, 2]


def test_a_module_that_is_not_there(tmp_path: Path) -> None:
    text = PROGRAM.format(imports="", name="psc.stdlib.activation")
    (found,) = check_source(text, "program.py").diagnostics
    assert found.code == "PSC103"
    assert "activations" in (found.help() or "")
    with pytest.raises(CheckError, match="PSC103"):
        loaded(tmp_path / "program.py", text).f(np.ones(1, np.float32))
