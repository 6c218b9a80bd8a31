"""What a check does grows with the project, and no faster: calls are counted, not time."""

from __future__ import annotations

import cProfile
import pstats
from pathlib import Path
from typing import Any

from benchmarks.synthetic.generate import write
from pscdsl._src.checker.check import check_paths

FEW, MANY = 100, 200
"""From a hundred on, each package of the project is complete."""


def test_calls_grow_with_the_number_of_kernels(tmp_path: Path) -> None:
    few, many = (_calls(tmp_path / str(kernels), kernels) for kernels in (FEW, MANY))
    assert many <= 2.05 * few
    assert few <= 40_000 * FEW


def _calls(folder: Path, kernels: int) -> int:
    write(folder, kernels)
    profile = cProfile.Profile()
    profile.enable()
    result = check_paths([folder / "lab"])
    profile.disable()
    assert len(result.kernels) == kernels
    assert not result.diagnostics
    stats: Any = pstats.Stats(profile)
    return int(stats.total_calls)
