"""The HTML of values in notebooks, which only notebooks load."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def html_method(module: str) -> Callable[[Any], str]:
    """Return the method `_repr_html_` that a module of the room `notebook` defines as `html`."""

    def _repr_html_(self: Any) -> str:
        html: str = import_module(f"pscdsl._src.notebook.{module}").html(self)
        return html

    return _repr_html_
