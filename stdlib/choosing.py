"""Choices between trees of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

import pscdsl as psc


def chosen(condition: Any, yes: Any, no: Any) -> Any:
    """`np.where` for trees: `yes` where the condition holds, else `no`.

    Examples:
        >>> chosen(np.array(True), (np.zeros(2), np.ones(3)), (np.ones(2), np.zeros(3)))
        (array([0., 0.]), array([1., 1., 1.]))
    """
    where: Any = np.where
    return psc.tree.map(lambda one, other: where(condition, one, other), yes, no)
