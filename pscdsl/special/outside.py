"""What the functions of this package compute outside of kernels: their NumPy meanings."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from pscdsl._src.ir.builder import Program, Value, Weak
from pscdsl._src.ir.numpy_dtypes import from_numpy
from pscdsl._src.ir.program import Function, evaluate
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl.arrays import Array
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.python_containers import is_tuple


def call(function: str, *args: Any, **kwargs: Any) -> Any:
    """Return what a function gives; numbers alone are taken as NumPy's, in double precision."""
    import_module("pscdsl.special.functions")  # which gives the functions their meanings
    meaning = MEANINGS[f"pscdsl.{function}"]
    assert isinstance(meaning, Meaning)
    program = Program(Assumptions())
    here = program.current
    params: list[Value] = []
    operands: list[Any] = []
    alone = not any(
        isinstance(x, np.ndarray | np.generic | Array) for x in (*args, *kwargs.values())
    )

    def given(name: str, x: Any) -> Any:
        if name not in meaning.together or x is None:
            return x
        if isinstance(x, bool | int | float) and not alone:
            return x
        array = np.asarray(x)
        operands.append(array)
        params.append(here.parameter(ArrayType(from_numpy(array.dtype), array.shape)))
        return params[-1]

    names = [name for name in meaning.signature.parameters if name != "here"]
    values = [given(name, x) for name, x in zip(names, args, strict=False)] + [*args[len(names) :]]
    try:
        result = meaning.apply(here, values, {name: given(name, x) for name, x in kwargs.items()})
    except Failure as failure:
        raise TypeError("; ".join(each.message() for each in failure.diagnostics)) from None
    if isinstance(result, int):
        return result  # which is exact
    several: tuple[Any, ...] = result if is_tuple(result) else (result,)
    built = [each.default() if isinstance(each, Weak) else each for each in several]
    block, _ = here.finish(params, built)
    found = evaluate(Function(function, (), program.facts, block), {}, operands)
    arrays = tuple([each if each.ndim else each[()] for each in found])
    return arrays if is_tuple(result) else arrays[0]
