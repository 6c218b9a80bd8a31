"""The cases of JAX's own tests of keys, as we decide them: jax decides each in the same way."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax")

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "conformance" / "jax" / "key_reuse.md"


def test_jax_decides_each_case_as_we_do() -> None:
    blocks = re.findall(r"```py\n(.*?)```", CASES.read_text(), re.S)
    command = [sys.executable, "-m", "tests.interop.jax_key_outcomes", "--functions"]
    done = subprocess.run(
        command, cwd=ROOT, input=json.dumps(blocks), capture_output=True, text=True, check=True
    )
    theirs: dict[str, str] = json.loads(done.stdout)
    functions = [part for block in blocks[1:] for part in block.split("\n\n\n")]
    ours: dict[str, str] = {}
    for function in functions:
        name = re.search(r"(?m)^def (\w+)", function)
        assert name is not None
        ours[name[1]] = "reused" if "# error" in function else "once"
    assert len(ours) > 50
    assert theirs == ours
