"""When calls return: with their results, or before them where the environment says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.jaxlib

RETURNING = """
import numpy as np
import pscdsl as psc
from pscdsl import f32
from pscdsl._src.xla.runtime.devices import put

@psc.kernel
def powers(x: f32["n n"]) -> f32["n n"]:
    y = x @ x
    z = y @ y
    return z @ z

host = np.full((700, 700), 0.01, np.float32)
wanted = np.linalg.matrix_power(host, 8)
device = put(host)
ready = []
for turn in range(6):
    for given in (device, host.copy()):
        result = powers(given)
        ready.append(result.is_ready())
        if given is not device:
            given[:] = 0
        np.testing.assert_allclose(result, wanted, rtol=1e-3)
print(all(ready), any(ready))
"""


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("", "True True"),
        ("wait", "True True"),
        ("async", "False"),
        ("asink", "PSCDSL_CALLS is `asink`; it can be wait, async"),
    ],
)
def test_the_environment_says_when_calls_return(word: str, shown: str, tmp_path: Path) -> None:
    script = tmp_path / "returning.py"
    script.write_text(RETURNING)
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PSCDSL_CALLS": word},
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown in done.stdout + done.stderr
