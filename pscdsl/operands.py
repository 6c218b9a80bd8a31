"""The order in which compiled programs take arrays: numbers with a default first, the last ahead.

C++ hands constants to a program before the arrays of a call, and what a call leaves to its default
is such a constant.  Calls give the first parameters and leave out the last: so the last one that
has a number for a default comes first, and what is left out lies at the start.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from inspect import Signature as PythonSignature
from typing import Any, NamedTuple

from pscdsl.ir import Function
from pscdsl.typing.signatures import ArraySpec, OptionalSpec, Signature, Spec
from pscdsl.typing.trees import leaves
from pscdsl.xla.places import programs_order
from pscdsl.xla.python_numbers import NUMBERS


class Operands(NamedTuple):
    """A typed program as it is compiled."""

    program: Function
    """It, with its parameters in the order of the compiled one."""
    order: tuple[int, ...]
    """Which array of the typed program each of the compiled one's is."""

    def of(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """Arrays in the order of the typed program, in that of the compiled one."""
        return [arrays[place] for place in self.order]

    def places(self, places: Sequence[int]) -> tuple[int, ...]:
        """Where the compiled program has what lies at these places of the typed one."""
        return tuple([self.order.index(place) for place in places])


def leading(signature: Signature, python: PythonSignature) -> tuple[str, ...]:
    """The parameters whose default is a number that programs take."""
    found = [
        each.name
        for each in signature.parameters
        if python.parameters[each.name].default.__class__ in NUMBERS
        and isinstance(_given(each.spec), ArraySpec)
    ]
    return tuple(found)


def _given(spec: Spec) -> Spec:
    """What an argument is, if it is not None."""
    return spec.item if isinstance(spec, OptionalSpec) else spec


def operands(program: Function, first: Collection[str]) -> Operands:
    """A program that takes the parameters of these names first, the last of them ahead."""
    places: dict[str, list[int]] = {}
    done = 0
    for name, tree in program.parameters:
        count = len(list(leaves(tree)))
        places[name] = list(range(done, done + count))
        done += count
    names = programs_order(places, first.__contains__)
    order = tuple([place for name in names for place in places[name]])
    if order == tuple(range(done)):
        return Operands(program, order)
    trees, params = dict(program.parameters), program.body.params
    body = replace(program.body, params=tuple([params[place] for place in order]))
    named = tuple([(name, trees[name]) for name in names])
    return Operands(replace(program, body=body, parameters=named), order)
