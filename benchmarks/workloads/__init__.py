"""The workloads, by what they are about: one module for each subject."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from benchmarks.workload import Workload

SUBJECTS: dict[str, tuple[Workload, ...]] = {
    each.name: import_module(f"{__name__}.{each.name}").WORKLOADS for each in iter_modules(__path__)
}
"""All workloads, by the module that they are in."""

WORKLOADS: dict[str, Workload] = {
    work.name: work for subject in SUBJECTS.values() for work in subject
}
"""All workloads, by name."""
if len(WORKLOADS) < sum(map(len, SUBJECTS.values())):
    raise ValueError("two workloads have the same name")
