"""Keywords that say how an array lies in memory: they have no meaning for values, and no effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ORDERS = frozenset("C F A K c f a k".split())
MAKING = frozenset(
    f"numpy.{name}"
    for name in (
        "array asarray asanyarray ascontiguousarray copy eye zeros ones empty full zeros_like "
        "ones_like empty_like full_like astype"
    ).split()
)
"""Functions whose `order=` is about memory alone."""
COUNTING = frozenset(("numpy.reshape", "numpy.ravel", "numpy.flatten"))
"""Functions whose `order=` says how elements are counted: "C" is how it is done here."""


def values_only(name: str, kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keywords of a call without an `order=` that does not change the result."""
    order = kwargs.get("order", "")
    if not isinstance(order, str) or not (
        (name in MAKING and order in ORDERS) or (name in COUNTING and order in ("C", "c"))
    ):
        return kwargs
    return {key: value for key, value in kwargs.items() if key != "order"}
