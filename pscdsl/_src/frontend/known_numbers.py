"""Parameters declared as `int` or `bool`: which of them a kernel needs to know while it is checked.

One is a number that the program is given, if the kernel can be elaborated so.  One without which it
cannot (a shape, an axis, a choice between values of different types) is static: the kernel is
elaborated for each value.  So is one that counts the steps of a `for`: gradients go back through a
loop whose steps are known.  What an operation asks for is said in one place, where it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

from pscdsl.typing.diagnostics import Span
from pscdsl.typing.signatures import ArraySpec, Choice, Signature, Spec, StaticSpec
from pscdsl.typing.static_values import Instance

SAMPLES: Final[dict[type, tuple[int, ...]]] = {bool: (False, True), int: (0, 1, 2, 3, 4)}
"""The sample values for static parameters without a specification of their values."""
_NUMBERS: Final = (2, 3, 1, 4, 0, 8)
"""The integers that are tried, the next one where a precondition excludes the one before."""
_MOST: Final = 16
"""The most choices of a signature that are elaborated each time."""
_CLASSES: Final[dict[str, type]] = {"int": int, "bool": bool}

STEPS: Final = "steps"
"""A problem that is no error: a gradient cannot pass through a loop with a dynamic step count."""

Problems: TypeAlias = frozenset[tuple[str, Span] | str | None]
"""The code and the place of each error; None stands for one that was reported elsewhere."""
Elaborate: TypeAlias = Callable[[Signature], Callable[[Choice], Problems | None]]
"""The errors of a kernel with a signature, for a choice; None if a precondition excludes it."""


def settled(signature: Signature, elaborate: Elaborate) -> Signature:
    """Return the signature with those parameters static that have to be."""
    numbers = _candidates(signature)
    if not numbers:
        return signature
    return _with_static(signature, _needed(signature, numbers, elaborate), SAMPLES)


def _candidates(signature: Signature) -> dict[str, type]:
    """Return the parameters that may be static, or numbers that the program is given."""
    return {
        parameter.name: _CLASSES[parameter.spec.python]
        for parameter in signature.parameters
        if isinstance(parameter.spec, ArraySpec) and parameter.spec.python in _CLASSES
    }


def _needed(signature: Signature, numbers: dict[str, type], elaborate: Elaborate) -> frozenset[str]:
    every = frozenset(numbers)
    if _with_static(signature, every, SAMPLES).choices() is None:
        return every  # it is only checked at its calls, which give the values
    found: dict[frozenset[str], Problems] = {}

    def problems(static: frozenset[str]) -> Problems:
        if static not in found:
            found[static] = _problems(signature, static, elaborate)
        return found[static]

    static = every & signature.axis_names()
    if not problems(static) or problems(static) <= problems(every):
        return static  # the problem occurs with each value, too
    if problems(static) <= {STEPS} and problems(every):
        return static
    least, static = static, every
    for name in numbers:
        without = static - {name}
        if name not in least and problems(without) <= problems(static):
            static = without
    return static


def _problems(signature: Signature, static: frozenset[str], elaborate: Elaborate) -> Problems:
    none: Problems = frozenset()
    for number in _NUMBERS:
        tried = _with_static(signature, static, {**SAMPLES, int: (number,)})
        choices = tried.choices() or []
        step = -(-len(choices) // _MOST) or 1
        kernel = elaborate(tried)
        found = [problems for each in choices[::step] if (problems := kernel(each)) is not None]
        if found:
            return none.union(*found)
    return none


def _with_static(
    signature: Signature, static: frozenset[str], samples: dict[type, tuple[int, ...]]
) -> Signature:
    return replace(
        signature,
        parameters=tuple(
            [
                replace(each, spec=_static(each.spec, samples)) if each.name in static else each
                for each in signature.parameters
            ]
        ),
    )


def _static(spec: Spec, samples: dict[type, tuple[int, ...]]) -> StaticSpec:
    assert isinstance(spec, ArraySpec)
    cls = _CLASSES[spec.python]
    return StaticSpec(spec.python, samples[cls], Instance(cls))
