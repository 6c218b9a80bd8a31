"""The workloads, by what they are about: one module for each subject."""

from __future__ import annotations

from tests.benchmarks.workload import Workload
from tests.benchmarks.workloads import (
    convolutions,
    derivatives,
    matrices,
    ordering,
    programs,
)

SUBJECTS: dict[str, tuple[Workload, ...]] = {
    "programs": programs.WORKLOADS,
    "derivatives": derivatives.WORKLOADS,
    "ordering": ordering.WORKLOADS,
    "matrices": matrices.WORKLOADS,
    "convolutions": convolutions.WORKLOADS,
}
"""All workloads, by subject."""

WORKLOADS: dict[str, Workload] = {
    work.name: work for subject in SUBJECTS.values() for work in subject
}
"""All workloads, by name."""
