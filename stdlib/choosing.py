"""Choices between trees of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

import pscdsl as psc


def chosen(condition: Any, yes: Any, no: Any) -> Any:
    """`np.where` for trees: `yes` where the condition holds, else `no`."""
    where: Any = np.where
    return psc.tree.map(lambda one, other: where(condition, one, other), yes, no)
