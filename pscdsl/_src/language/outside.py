"""Calls of the language's functions outside of kernels: what their public names come to there."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def outside(name: str, *args: Any, **kwargs: Any) -> Any:
    """The result of a function of `psc`, as a kernel would give it; see `kernels.eager`.

    The public names are below the compiler, which is loaded when the first of them is called.
    """
    return import_module("pscdsl._src.kernels.eager").call(name, *args, **kwargs)
