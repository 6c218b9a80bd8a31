"""The tests of the folder `eight`, in a process that has eight CPU devices."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.jaxlib

FOLDER = Path(__file__).parent / "eight"


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("test_*.py")))
def test_with_eight_devices(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(FOLDER / name)],
        env={**os.environ, "PSCDSL_DEVICES": "8"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout


CODE = """
import numpy as np
import pscdsl as psc
{}
"""


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", CODE.format(code)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("given", ["0", "-1", "many", "1.5", "5000"])
def test_wrong_numbers_of_devices(given: str) -> None:
    done = run("psc.Mesh(data=1)", PSCDSL_DEVICES=given)
    assert f"PSCDSL_DEVICES is `{given}`: a number from 1 to 1024 of CPU devices" in done.stderr


def test_one_device_by_default() -> None:
    done = run("psc.Mesh(data=2)", PSCDSL_DEVICES="")
    assert (
        "Mesh(data=2) needs 2 devices, and there is 1 of platform cpu: "
        "with the environment variable PSCDSL_DEVICES=2 it has so many" in done.stderr
    )


def test_child_processes_do_not_inherit_the_number_of_threads() -> None:
    done = run(
        "import os\npsc.Mesh(data=8).live\nprint(os.environ.get('PJRT_NPROC'))",
        PSCDSL_DEVICES="8",
        PJRT_NPROC="3",
    )
    assert done.stdout == "3\n", done.stderr


def test_programs_on_one_device_load_nothing_of_meshes() -> None:
    done = run(
        "@psc.kernel\ndef f(x: psc.f32['n']) -> psc.f32['n']:\n    return x + 1\n"
        "np.asarray(f(np.ones(3, np.float32)))\n"
        "import sys\nprint([name for name in sys.modules if 'mesh' in name or 'pieces' in name])"
    )
    assert done.stdout == "[]\n", done.stderr
