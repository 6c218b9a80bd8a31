"""The compiled half of the tests, the examples and the benchmarks on a GPU of this machine.

    python -m tests.on_gpu

Says why, and stops, where there is none.  Exit code 1: something failed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pscdsl as psc

ROOT = Path(__file__).parent.parent


def main() -> int:
    """Run all of them."""
    try:
        found = psc.devices("cuda")
    except psc.UnsupportedDeviceError as problem:
        print(f"Nothing was run on a GPU: {problem}.")
        return 0
    print("GPUs:", *[handle.device_kind for handle in found[0].client.devices()])
    failed = [name for name, *command in commands() if not passed(name, command)]
    print(f"failed: {', '.join(failed)}" if failed else "all passed")
    return int(bool(failed))


def commands() -> list[list[str]]:
    """A name and a command of each part."""
    examples = sorted((ROOT / "examples").glob("*.py"))
    return [
        ["tests", sys.executable, "-m", "pytest", "-q", "-m", "jaxlib"],
        *[[f"examples/{path.name}", sys.executable, str(path)] for path in examples],
        ["benchmarks", sys.executable, "-m", "benchmarks"],
    ]


def passed(name: str, command: list[str]) -> bool:
    """Whether a command ends well on the GPU; what it prints is shown."""
    print(f"== {name}", flush=True)
    chosen = {**os.environ, "PSCDSL_PLATFORM": "cuda", "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=chosen, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
