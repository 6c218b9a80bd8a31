"""Whether an array fits an annotation, within the scope of size names of one call.

Sizes are numbers here.  The first array that is met gives a name its size, the others have to
agree; an expression such as `n+1` is compared as soon as its names are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pscdsl._src.language.elements import ElementType, element_type, weak_kind
from pscdsl.typing.arrays import ArrayType
from pscdsl.typing.dims import Dim, evaluate, names
from pscdsl.typing.dtypes import CLASSES, DEFAULT, KEY, U32, DType, accepts_weak
from pscdsl.typing.notation import Anonymous, DimSpec, Variadic
from pscdsl.typing.signatures import group_name


class Misfit(Exception):
    """What an array is, and why it does not fit."""


class Waiting(NamedTuple):
    """A size that was given for an expression in names that were not known yet."""

    dim: Dim
    size: int
    given: ArrayType


@dataclass
class Scope:
    """What names stand for in one call."""

    sizes: dict[str, int] = field(default_factory=dict[str, int])
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    dtypes: dict[str, DType] = field(default_factory=dict[str, DType])
    waiting: list[Waiting] = field(default_factory=list[Waiting])

    def admit(self, value: object, declared: ElementType) -> None:
        """Take a value for an array of the declared type, or raise Misfit and learn nothing."""
        learnt = Scope(dict(self.sizes), dict(self.groups), dict(self.dtypes), [*self.waiting])
        kind = weak_kind(value)
        if kind is not None:  # a number takes the dtype that is declared
            taken = [each for each in declared.members if accepts_weak(each, kind)]
            found, text = ArrayType(taken[0] if taken else DEFAULT[kind]), repr(value)
            why = None if taken else f"{type(value).__name__} is no {declared.element.__name__}"
        else:
            found, text = self._found(value, declared)
            why = learnt._dtype(found.dtype, declared)
        why = why or learnt._shape(found, declared.dims)
        if why:
            raise Misfit(f"is {text}, but {_text(declared)} is declared: {why}")
        self.sizes, self.groups = learnt.sizes, learnt.groups
        self.dtypes, self.waiting = learnt.dtypes, learnt.waiting

    def _found(self, value: object, declared: ElementType) -> tuple[ArrayType, str]:
        try:
            dtype, shape = element_type(value)
        except TypeError as error:
            raise Misfit(f"is {error}, but {_text(declared)} is declared") from None
        if declared.members == (KEY,) and dtype is U32 and shape[-1:] == (2,):
            dtype, shape = KEY, shape[:-1]
        found = ArrayType(dtype, shape)
        return found, str(found)

    def _dtype(self, dtype: DType, declared: ElementType) -> str | None:
        """Why a dtype does not fit; a class of dtypes is one dtype within a call."""
        wanted = declared.element.__name__
        if dtype not in declared.members:
            return f"the dtype is {dtype}, not {wanted}"
        if wanted in CLASSES and self.dtypes.setdefault(wanted, dtype) is not dtype:
            return f"the dtype is {dtype}, but {wanted} is {self.dtypes[wanted]} here"
        return None

    def _shape(self, found: ArrayType, dims: Sequence[DimSpec]) -> str | None:
        """Why a shape does not fit."""
        shape = tuple(size for size in found.shape if isinstance(size, int))
        spans = self._spans(len(shape), dims)
        if isinstance(spans, str):
            return spans
        for dim, (start, stop) in zip(dims, spans, strict=True):
            if isinstance(dim, Variadic):
                group = group_name(dim)
                expected = self.groups.setdefault(group, shape[start:stop])
                if expected != shape[start:stop]:
                    return f"{dim} is {_sizes(shape[start:stop])}, not {_sizes(expected)}"
            elif not isinstance(dim, Anonymous):
                why = self._size(dim, start, shape[start], found)
                if why:
                    return why
        return self._settle()

    def _spans(self, rank: int, dims: Sequence[DimSpec]) -> list[tuple[int, int]] | str:
        """The axes that each word of a shape is about, or why there is no way to tell."""
        widths = [
            len(self.groups.get(group_name(dim), ())) if isinstance(dim, Variadic) else 1
            for dim in dims
        ]
        free = [
            index
            for index, dim in enumerate(dims)
            if isinstance(dim, Variadic) and group_name(dim) not in self.groups
        ]
        if free and rank >= sum(widths):
            widths[free[0]] = rank - sum(widths)  # of several, the first takes what there is
        if sum(widths) != rank:
            least = "at least " if free else ""
            return f"the rank is {rank}, not {least}{sum(widths)}"
        starts = [sum(widths[:index]) for index in range(len(widths))]
        return [(start, start + width) for start, width in zip(starts, widths, strict=True)]

    def _size(self, dim: int | Dim, axis: int, size: int, found: ArrayType) -> str | None:
        """Why the size of an axis does not fit."""
        if isinstance(dim, int):
            return None if dim == size else f"axis {axis} is {size}, not {dim}"
        text = str(dim)
        if text.isidentifier():
            expected = self.sizes.setdefault(text, size)
            return None if expected == size else f"axis {axis} is {size}, but {dim} is {expected}"
        if names(dim) <= self.sizes.keys():
            expected = evaluate(dim, self.sizes)
            return None if expected == size else f"axis {axis} is {size}, but {dim} is {expected}"
        self.waiting.append(Waiting(dim, size, found))
        return None

    def _settle(self) -> str | None:
        """Compare what has been waiting for the names that are known now."""
        ready = [each for each in self.waiting if names(each.dim) <= self.sizes.keys()]
        self.waiting = [each for each in self.waiting if each not in ready]
        for dim, size, given in ready:
            value = evaluate(dim, self.sizes)
            if value != size:
                return f"this makes {dim} {value}, but {given} has {size} there"
        return None


def _text(declared: ElementType) -> str:
    return declared.element.__name__ + (f"[{declared.text}]" if declared.text else "")


def _sizes(shape: tuple[int, ...]) -> str:
    return f"[{' '.join(map(str, shape))}]"
