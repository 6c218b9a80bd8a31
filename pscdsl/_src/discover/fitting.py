"""The test whether a signature takes the arguments of a call, as a kernel decides it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pscdsl._src.calls import boundary
from pscdsl._src.discover.calls import UNKNOWN, ObservedCall, ProjectFunction, is_unknown
from pscdsl._src.frontend.definitions import Definition, Excluded
from pscdsl.typing.array_types import StaticType, Type
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import DType
from pscdsl.typing.signatures import (
    ArraySpec,
    DTypeClass,
    Parameter,
    Signature,
    Spec,
    StaticSpec,
)
from pscdsl.typing.unify import Match, match

_CONSTANTS = (bool, int, float, complex, str, tuple, type(None))


def admits(
    definition: Definition,
    call: ObservedCall,
    defaults: Mapping[str, Any],
    every_value: Callable[[str, StaticSpec], bool],
) -> bool:
    """Return whether a kernel takes the known arguments of a call.

    `every_value` tells whether a static parameter takes every value of its type.
    """
    signature = definition.signature
    values = {**_constants(defaults), **(call.arguments or {})}
    parameters = tuple(
        [p for p in signature.parameters if not is_unknown(values.get(p.name, UNKNOWN))]
    )
    fit = _fit(parameters, values, every_value)
    if fit is None or _becomes_float(parameters, values):
        return False
    if len(parameters) < len(signature.parameters):
        return True
    try:
        program = definition.instance(fit.choice)
    except (Excluded, Failure, RecursionError):
        return False
    sizes = {name: size for name, size in fit.sizes.items() if isinstance(size, int)}
    return all(size in sizes for size in program.dims) and program.facts.admits(sizes)


def fits(spec: Spec, value: Any) -> bool:
    """Return whether a declared type admits a value, for some sizes."""
    return _fit((Parameter("x", spec),), {"x": value}, lambda name, spec: True) is not None


def _constants(defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults that Python has as well."""
    return {name: value for name, value in defaults.items() if isinstance(value, _CONSTANTS)}


def _fit(
    parameters: Sequence[Parameter],
    values: Mapping[str, Any],
    every_value: Callable[[str, StaticSpec], bool],
) -> Match | None:
    """Match parameters with their arguments; None if they do not fit."""
    types: dict[str, Type] = {}
    classes: dict[str, DType] = {}
    try:
        for _ in range(2):  # scalars adapt to arrays, also to those that come later
            for each in parameters:
                types[each.name] = boundary.argument(
                    each.spec, values[each.name], [], _no_class, classes, lambda cls, spec: None
                )
                if isinstance(each.spec, StaticSpec) and not _is_among(
                    each.spec, types[each.name], every_value(each.name, each.spec)
                ):
                    return None
        return match(Signature("f", tuple(parameters), None), types, Assumptions())
    except (Failure, boundary.NotAnArgument, RecursionError, OverflowError):
        return None


def _becomes_float(parameters: Sequence[Parameter], values: Mapping[str, Any]) -> bool:
    """Return whether an int is taken as a float where Python computes only with integers."""
    floats = [
        values[parameter.name]
        for parameter in parameters
        if isinstance(parameter.spec, ArraySpec) and _is_inexact(parameter.spec.dtype)
    ]
    return bool(floats) and all(isinstance(value, int) for value in floats)


def _is_inexact(dtype: DType | DTypeClass) -> bool:
    members = dtype.members if isinstance(dtype, DTypeClass) else (dtype,)
    return all(member.is_inexact for member in members)


def _no_class(*_: Any) -> None:
    """Nothing is called, so no class need be known."""


def _is_among(spec: StaticSpec, given: Type, every_value: bool) -> bool:
    """Return whether a static parameter takes a value."""
    if isinstance(given, StaticType) and spec.kind == "Callable":
        return isinstance(given.value, ProjectFunction)
    if not isinstance(given, StaticType) or type(given.value).__name__ != spec.kind:
        return False
    return every_value or given in {StaticType(each) for each in spec.samples or ()}
