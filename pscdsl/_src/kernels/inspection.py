"""Values that a kernel records while it runs: `kernel.inspect(…)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pscdsl._src.calls import boundary
from pscdsl._src.primitives.effects import RECORDED
from pscdsl._src.support.effects import COMPILED, Kind
from pscdsl.typing.array_types import Type

if TYPE_CHECKING:
    from pscdsl._src.kernels.kernel import Kernel


@dataclass(frozen=True)
class Inspection:
    """The result of a call, and the values that it recorded."""

    result: Any
    values: Mapping[str, Sequence[Any]]
    """The values of each `psc.debug.value(name, x)`, in the order in which they were recorded."""


def inspect(kernel: Kernel[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Inspection:
    """Return the result of a call and the values that it recorded."""
    leaves, types = kernel.arguments(args, kwargs)
    choice, sizes = kernel.matched(types)
    kinds = COMPILED.kinds | frozenset[Kind]({"value"})
    specialisation = kernel.specialisation(choice, sizes, donate=(), effects=kinds)
    bound = kernel.bound_executable(specialisation, kernel.executable(specialisation), fills=True)
    values: dict[str, list[Any]] = {}

    def take(name: str, tree: Type, arrays: Sequence[Any]) -> None:
        values.setdefault(name, []).append(boundary.result(tree, iter(arrays)))

    token = RECORDED.set(take)
    try:
        result = bound.unflatten(bound.executable.run(leaves))
    finally:
        RECORDED.reset(token)
    return Inspection(result, values)
