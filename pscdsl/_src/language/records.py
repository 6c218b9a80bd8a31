"""Records: `psc.Record`, and flattening and rebuilding of records at every call."""

from __future__ import annotations

import dataclasses
import operator
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self, TypeAlias, cast, dataclass_transform

from pscdsl._src.support.notebooks import html_method

# Records as containers: flattening and rebuilding them, at every call.
#
# The functions here need only the Python class: NamedTuples, and frozen data classes, `psc.Record`
# among them.


Ways: TypeAlias = tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]


def field_names(cls: type[Any]) -> tuple[str, ...] | None:
    """Return the fields of a record in order; None if the class is no record of these kinds."""
    if tuple in cls.__mro__:
        return getattr(cls, "_fields", None)
    parameters = getattr(cls, "__dataclass_params__", None)
    if parameters is None or not parameters.frozen:
        return None
    return tuple([field.name for field in fields(cls)])


def plain_fields(cls: type[Any]) -> tuple[str, ...] | None:
    """Return the fields of a data class whose construction only sets them; None for others."""
    parameters = vars(cls).get("__dataclass_params__")
    if parameters is None or not parameters.init or hasattr(cls, "__post_init__"):
        return None
    kind: Any = type(cls)
    if getattr(cls, "__new__", None) is not object.__new__ or kind.__call__ is not type.__call__:
        return None
    names = tuple([field.name for field in fields(cls)])
    code: Any = getattr(vars(cls).get("__init__"), "__code__", None)
    if code is None:
        return None
    taken = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    return names if sorted(taken) == sorted(names) else None


def ways_of_container(cls: type[Any], names: Sequence[str]) -> Ways:
    """Return the functions that flatten an instance, into (children, rest), and rebuild it."""

    def made(rest: Any, items: Any) -> Any:
        del rest
        return construct_container(cls, names, list(items))

    if len(names) < 2:
        return lambda value: (tuple([getattr(value, name) for name in names]), None), made
    read = operator.attrgetter(*names)  # a tuple of them, made in C
    new = object.__new__
    slots = any(hasattr(getattr(cls, name, None), "__set__") for name in names)
    if slots or not hasattr(new(cls), "__dict__"):
        return lambda value: (read(value), None), made

    def put_together(rest: Any, items: Any) -> Any:
        record: Any = new(cls)
        record.__dict__.update(zip(names, items, strict=True))  # as `construct` does
        return record

    return lambda value: (read(value), None), put_together


def register(cls: type[Any], register_class: Callable[..., None]) -> None:
    """Register a class of records with `register_class`, which knows NamedTuples already."""
    names = field_names(cls)
    if names is not None and tuple not in cls.__mro__:
        register_class(cls, *ways_of_container(cls, names))


def construct_container(cls: type[Any], names: Sequence[str], values: Sequence[Any]) -> Any:
    """Return an instance with these fields, as they are."""
    if tuple in cls.__mro__:
        return cls(*values)
    made = object.__new__(cls)  # its fields were checked when the program was
    for name, value in zip(names, values, strict=True):
        object.__setattr__(made, name, value)
    return made


# `psc.Record`: immutable records of arrays.


@dataclass(frozen=True)
class Sizes:
    """The text in the brackets of `Layer["d h"]`; not a string, which would name a type."""

    text: str

    def __repr__(self) -> str:
        return repr(self.text)


@dataclass_transform(frozen_default=True)
class Record:
    """Base class of immutable records: fields are annotated names, instances are trees of arrays.

    A subclass is a frozen dataclass. `class Layer(psc.Record, dims="i o")` declares size
    parameters, and `Layer["d h"]` applies them. One parameter may be a group of any number of
    sizes, `dims="o i *window"`: `Window["8 3 5 5"]`. `class Moments(psc.Record, Generic[T])`
    declares type parameters, and `Moments[Layer]` applies them.

    Examples:
        >>> class Line(psc.Record):
        ...     slope: f64
        ...     offset: f64
        >>> @psc.kernel
        ... def at(line: Line, x: f64["n"]) -> f64["n"]:
        ...     return line.slope * x + line.offset
        >>> at(Line(slope=2.0, offset=1.0), np.array([0.0, 1.0]))
        pscdsl.Array([1., 3.], dtype=float64)
    """

    __dims__: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, dims: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        if dims:
            cls.__dims__ = tuple(dims.split())
        dataclasses.dataclass(frozen=True, eq=False)(cls)

    def __class_getitem__(cls, sizes: Any) -> type[Self]:
        if getattr(cls, "__parameters__", ()):  # of `Generic`: types stand in the brackets
            return cast("type[Self]", types.GenericAlias(cls, sizes))
        applied = Sizes(sizes) if isinstance(sizes, str) else sizes[0]  # as `typing` rebuilds it
        return cast("type[Self]", types.GenericAlias(cls, (applied,)))

    _repr_html_ = html_method("records")

    def replace(self, **changes: Any) -> Self:
        """Return the record with some fields changed.

        Examples:
            >>> class Line(psc.Record):
            ...     slope: f64
            ...     offset: f64
            >>> Line(slope=2.0, offset=1.0).replace(offset=5.0)
            Line(slope=2.0, offset=5.0)
        """
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]
