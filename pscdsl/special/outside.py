"""The functions of this package on NumPy's arrays, outside of kernels: by their NumPy meanings."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from pscdsl._src.ir.builder import Program, Value, Weak
from pscdsl._src.ir.evaluate import evaluate
from pscdsl._src.ir.numpy_dtypes import from_numpy
from pscdsl._src.ir.program import Function
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl.arrays import Array
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.python_containers import is_tuple


def apply(function: str, *args: Any, **kwargs: Any) -> Any:
    """A function of this package; numbers alone are taken as NumPy's, in double precision."""
    import_module("pscdsl.special.functions")
    meaning = MEANINGS[f"pscdsl.special.{function}"]
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

    names = list(meaning.signature.parameters)
    values = [given(name, x) for name, x in zip(names, args, strict=False)] + [*args[len(names) :]]
    try:
        result = meaning.apply(here, values, {name: given(name, x) for name, x in kwargs.items()})
    except Failure as failure:
        raise TypeError("; ".join(each.message() for each in failure.diagnostics)) from None
    several: tuple[Any, ...] = result if is_tuple(result) else (result,)
    built = [each.default() if isinstance(each, Weak) else each for each in several]
    block, _ = here.finish(params, built)
    found = evaluate(Function(function, (), program.facts, block), {}, operands)
    arrays = tuple([each if each.ndim else each[()] for each in found])
    return arrays if is_tuple(result) else arrays[0]
