"""Numbers that a call leaves to their defaults: constants of the program that it runs.

So what is known of them counts: a power by default 2 is a product, and a call costs no more than if
they stood in the kernel.  Programs differ by the numbers that are left out, not by what is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from inspect import Signature as PythonSignature
from typing import Any

import numpy as np

from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.program import Atom, Equation, Function, Literal, Var
from pscdsl._src.xla.runtime.python_numbers import NUMBERS
from pscdsl.typing.signatures import ArraySpec, OptionalSpec, Signature, Spec
from pscdsl.typing.trees import leaves


def number_defaults(signature: Signature, python: PythonSignature) -> dict[str, Any]:
    """The defaults that are numbers, of parameters that programs take as arrays."""
    defaults = {each.name: python.parameters[each.name].default for each in signature.parameters}
    arrays = [each.name for each in signature.parameters if _is_array(each.spec)]
    return {name: defaults[name] for name in arrays if _is_number(defaults[name])}


def _is_array(spec: Spec) -> bool:
    """Whether an argument is an array, if it is not None."""
    return isinstance(spec.item if isinstance(spec, OptionalSpec) else spec, ArraySpec)


def _is_number(value: Any) -> bool:
    return value.__class__ in NUMBERS or isinstance(value, np.generic)


def with_constants(program: Function, numbers: Mapping[str, Any]) -> Function:
    """The program with these parameters, each an array without axes, as numbers in it."""
    if not numbers:
        return program
    known: dict[Atom, Atom] = {}
    params = iter(program.body.params)
    for name, tree in program.parameters:
        owned = [next(params) for _ in leaves(tree)]
        if name in numbers:
            (var,) = owned
            known[var] = _literal(var, numbers[name])

    def of(atoms: tuple[Atom, ...]) -> tuple[Atom, ...]:
        return tuple([known.get(each, each) for each in atoms])

    body = replace(
        program.body,
        params=tuple([each for each in program.body.params if each not in known]),
        equations=tuple(
            [
                Equation(each.primitive, of(each.inputs), each.outputs, each.span)
                for each in program.body.equations
            ]
        ),
        results=of(program.body.results),
    )
    others = tuple([each for each in program.parameters if each[0] not in numbers])
    return replace(program, body=body, parameters=others)


def _literal(var: Var, value: Any) -> Literal:
    """The number as the dtype of a parameter has it."""
    dtype = var.type.dtype
    return Literal(np.asarray(value, to_numpy(dtype)).item(), dtype)
