"""Sizes become numbers, before anything else is done with a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pscdsl._src.ir.program import Function
from pscdsl._src.primitives.control.base import substitute_block
from pscdsl.typing.assumptions import Assumptions


def specialise(function: Function, sizes: Mapping[str, int]) -> Function:
    """The function at these sizes; the functions that it calls are specialised when emitted."""
    if not function.dims:
        return function
    body = substitute_block(function.body, sizes)
    return replace(function, dims=(), facts=Assumptions(), body=body, origins={})
