"""`psc.Record`: immutable records of arrays."""

from __future__ import annotations

import dataclasses
import types
from dataclasses import dataclass
from typing import Any, ClassVar, Self, cast, dataclass_transform


@dataclass(frozen=True)
class Sizes:
    """What stands in the brackets of `Layer["d h"]`; no string, which would name a type."""

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

    def replace(self, **changes: Any) -> Self:
        """Return the record with some fields changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]
