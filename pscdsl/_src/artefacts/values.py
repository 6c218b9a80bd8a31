"""Static values and defaults of parameters as JSON, each with its class: True is not 1."""

from __future__ import annotations

from typing import Any, cast

from pscdsl._src.language.elements import ElementType
from pscdsl.typing.python_containers import is_tuple


class NotWritable(Exception):
    """A value that has no form as data; says what it is."""


def encoded(value: object) -> Any:
    """A value as JSON; `NotWritable` if it is none that can be written down."""
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return {"float": value.hex()}
    if type(value) is complex:
        return {"complex": [value.real.hex(), value.imag.hex()]}
    if type(value) is bytes:
        return {"bytes": value.hex()}
    if is_tuple(value) and not hasattr(value, "_fields"):
        return {"tuple": [encoded(each) for each in value]}
    if isinstance(value, ElementType) and value.text is None and value.element is value:
        return {"dtype": value.__name__}
    raise NotWritable(f"{value!r}, of class {_class_of(value).__qualname__}")


def _class_of(value: object) -> type[Any]:
    return type(value)


def decoded(form: Any) -> object:
    """The value that `encoded` wrote; a ValueError, KeyError or TypeError if it is none."""
    if form is None or isinstance(form, bool | int | str):
        return form
    ((kind, content),) = cast("dict[str, Any]", form).items()
    if kind == "float":
        return float.fromhex(content)
    if kind == "complex":
        real, imag = content
        return complex(float.fromhex(real), float.fromhex(imag))
    if kind == "bytes":
        return bytes.fromhex(content)
    if kind == "tuple":
        return tuple([decoded(each) for each in content])
    if kind == "dtype":
        from pscdsl import arrays

        found = vars(arrays)[content]
        if isinstance(found, ElementType):
            return found
    raise ValueError(f"no value is a {kind}")
