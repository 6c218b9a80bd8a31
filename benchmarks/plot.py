"""What was measured, as a picture."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Row


def plot(rows: Sequence[Row], path: Path) -> None:
    """Our time over that of jax.jit for each workload, on a logarithmic scale, with the ranges."""
    matplotlib: Any = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    shown = sorted(
        (row for row in rows if row.rival == "jax.jit"),
        key=lambda row: (row.subject, -row.median),
    )
    height = 1 + 0.2 * len(shown)
    figure, axes = pyplot.subplots(figsize=(9, height), layout="constrained")
    subjects = list(dict.fromkeys(row.subject for row in shown))
    for place, row in enumerate(shown):
        colour = f"C{subjects.index(row.subject) % 10}"
        axes.plot([row.low, row.high], [place, place], color=colour, linewidth=3, alpha=0.4)
        axes.plot([row.median], [place], "o", color=colour, markersize=4)
        if row.goal is not None:
            axes.plot([row.goal], [place], "|", color="black", markersize=8)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(range(len(shown)), [row.workload for row in shown], fontsize=7)
    axes.set_ylim(-1, len(shown))
    axes.grid(axis="x", which="both", alpha=0.2)
    axes.set_xlabel("time over that of jax.jit (dots: medians; bars: ranges; ticks: goals)")
    figure.savefig(path, dpi=120)
