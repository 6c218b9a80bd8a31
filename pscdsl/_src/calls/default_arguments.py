"""The parameters of kernels that Python has no function of, with defaults as callers give them."""

from __future__ import annotations

import inspect
from typing import Any

from pscdsl._src.frontend.definitions import Definition
from pscdsl._src.frontend.values.values import RecordValue
from pscdsl._src.language.instances import assemble
from pscdsl.typing.python_containers import is_tuple


def signature(definition: Definition) -> inspect.Signature:
    """The parameters as Python would have them."""
    defaults = {name: as_argument(value) for name, value in definition.defaults.items()}
    return definition.closure.signature(defaults)


def as_argument(value: Any) -> Any:
    """What a caller gives for a value that is known, where its classes have been loaded."""
    if isinstance(value, RecordValue) and value.cls.constructor is not None:
        names = [name for name in value.cls.field_names() if name in value.fields]
        return assemble(value.cls, names, [as_argument(value.fields[name]) for name in names])
    if is_tuple(value):
        return tuple(map(as_argument, value))
    return value
