"""Kernels in other processes: by name, as functions, or made again of objects with a name."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pickle import PicklingError
from typing import Any


def by_name(kernel: Any, function: Any, make: Callable[[Any], Any]) -> str | tuple[Any, ...]:
    """Reduce a kernel made of a function, for pickling; a PicklingError if it has no name.

    `make` makes it of the function, or of another kernel of that.
    """
    if function is None:
        raise PicklingError(f"the kernel `{kernel.name}` cannot be pickled: it was never loaded")
    module, name = _name_of(function)
    found = _found(module, name)
    if found is kernel:
        return name
    if isinstance(function, types.FunctionType) and found is function:
        return make, (function,)
    if getattr(found, "__wrapped__", None) is function:
        return make, (found,)
    what = f"the kernel `{name}`"
    if found is None:
        why = f"`{module}` has nothing of that name"
    else:
        why = f"`{module}.{name}` is something else by now"
    raise PicklingError(
        f"{what} cannot be pickled: another process finds it by its name, and {why}; "
        "define it with `def`, at the top of a module"
    )


def object_by_name(value: Any) -> str:
    """Reduce an object that decorates a function to its name, for pickling."""
    module, name = _name_of(value)
    if _found(module, name) is value:
        return name
    raise PicklingError(
        f"`{name}` cannot be pickled: another process finds it by its name, and that is not "
        f"`{module}.{name}`; define it with `def`, at the top of a module"
    )


def made_again(again: tuple[Any, ...] | None, make: Callable[[Any], Any] | None) -> tuple[Any, ...]:
    """Reduce a kernel that a function makes of others, and that `make` changes, for pickling."""
    if again is None:
        raise PicklingError("a kernel that is made of others inside of pscdsl cannot be pickled")
    return again if make is None else (make, (_Again(*again),))


class _Again:
    """Something that is made again where it is unpickled, before it is used."""

    def __init__(self, make: Any, args: tuple[Any, ...]) -> None:
        self.make, self.args = make, args

    def __reduce__(self) -> tuple[Any, ...]:
        return self.make, self.args


def _name_of(value: Any) -> tuple[str, str]:
    return str(getattr(value, "__module__", "?")), str(getattr(value, "__qualname__", "?"))


def _found(module: str, name: str) -> Any:
    """Return the object that a name is bound to in a loaded module; None if there is none."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found
