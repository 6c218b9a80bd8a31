"""The meaning of `psc.constant`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pscdsl._src.frontend.closed import is_set
from pscdsl._src.frontend.values.values import MapValue, Once, RecordValue, VectorValue
from pscdsl._src.ir.builder import Builder
from pscdsl._src.language.elements import frozen
from pscdsl.typing.codes.language import Unsupported
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.python_containers import is_constant, is_dict, is_sequence, is_tuple


def constant(here: Builder, value: Any) -> Any:
    """The same value where nothing can change; a copy of what can be changed."""
    if is_constant(value) and isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise Failure(Unsupported(what="a constant array of Python objects", rewrite=""))
        return frozen(value)
    if is_sequence(value) or is_tuple(value):
        return tuple([constant(here, each) for each in value])
    if is_dict(value):
        if not all(isinstance(key, str) for key in value):
            rewrite = "use strings as keys"
            raise Failure(Unsupported(what="a constant dict with other keys", rewrite=rewrite))
        return MapValue({key: constant(here, each) for key, each in value.items()})
    if is_set(value):
        return frozenset(value)
    if isinstance(value, MapValue):
        return MapValue({key: constant(here, each) for key, each in value.items.items()})
    if isinstance(value, VectorValue):
        return VectorValue(tuple([constant(here, each) for each in value.items]))
    if isinstance(value, RecordValue):
        fields = {name: constant(here, each) for name, each in value.fields.items()}
        return replace(value, fields=fields)
    if isinstance(value, Once):
        raise Failure(Unsupported(what=f"{value.kind} as a constant", rewrite="make it a tuple"))
    return value
