"""typeguard on arrays: dtype, rank, sizes, and size names that agree within one call.

    @typeguard.typechecked
    def centred(x: f32["n d"], mean: f32["d"]) -> f32["n d"]: ...

typeguard finds `lookup` by its entry point.  The scope of size names is one call, with its
arguments, annotated variables and result.  Records, dataclasses and named tuples of arrays are
checked field by field, in the same scope.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, get_args, get_origin, get_type_hints

from typeguard import TypeCheckError, TypeCheckMemo, check_type_internal

from pscdsl import arrays
from pscdsl._src.language.elements import ElementType, element_type, weak_kind
from pscdsl._src.language.records import Record, Sizes
from pscdsl.arrays import Static
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dims import Dim, evaluate, names
from pscdsl.typing.dtypes import CLASSES, DEFAULT, KEY, U32, DType, accepts_weak
from pscdsl.typing.signatures import (
    Anonymous,
    DimSpec,
    Renaming,
    Variadic,
    applied,
    given,
    group_name,
    parse_shape,
)

# The test whether an array fits an annotation, within the scope of size names of one call.
#
# Sizes are numbers here. The first array with a name sets its size, the others have to agree; an
# expression such as `n+1` is compared as soon as its names are known.


class Misfit(Exception):
    """The description of an array, and the reason why it does not fit."""


class Waiting(NamedTuple):
    """A size that was given for an expression in names that were not known yet."""

    dim: Dim
    size: int
    given: ArrayType


@dataclass
class CallScope:
    """The values of names in one call."""

    sizes: dict[str, int] = field(default_factory=dict[str, int])
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    dtypes: dict[str, DType] = field(default_factory=dict[str, DType])
    waiting: list[Waiting] = field(default_factory=list[Waiting])

    def admit(self, value: object, declared: ElementType) -> None:
        """Take a value for an array of the declared type, or raise Misfit and learn nothing."""
        learnt = CallScope(dict(self.sizes), dict(self.groups), dict(self.dtypes), [*self.waiting])
        kind = weak_kind(value)
        if kind is not None:  # a number takes the dtype that is declared
            taken = [member for member in declared.members if accepts_weak(member, kind)]
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
        """Return the axes of each word of a shape, or the reason why they cannot be determined."""
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
        """Compare the sizes whose names have become known."""
        ready = [each for each in self.waiting if names(each.dim) <= self.sizes.keys()]
        self.waiting = [each for each in self.waiting if each not in ready]
        for dim, size, argument in ready:
            value = evaluate(dim, self.sizes)
            if value != size:
                return f"this makes {dim} {value}, but {argument} has {size} there"
        return None


def _text(declared: ElementType) -> str:
    return declared.element.__name__ + (f"[{declared.text}]" if declared.text else "")


def _sizes(shape: tuple[int, ...]) -> str:
    return f"[{' '.join(map(str, shape))}]"


Check: TypeAlias = Callable[[Any, Any, tuple[Any, ...], TypeCheckMemo], None]


class Locals(dict[str, Any]):
    """The local variables of a call with the scope of its size names.

    typeguard makes one memo a call.  A memo takes no attributes and no weak references, but its
    mapping of variables can be replaced: so the scope lives exactly as long as the call.
    """

    scope: CallScope


def scope_of(memo: TypeCheckMemo) -> CallScope:
    """Return the scope of the call that a memo belongs to."""
    if not isinstance(memo.locals, Locals):
        memo.locals = Locals(memo.locals)
        memo.locals.scope = CallScope()
    return memo.locals.scope


def lookup(origin: Any, args: tuple[Any, ...], extras: tuple[Any, ...]) -> Check | None:
    """Return typeguard's checker for values of a type; None for types that are not ours."""
    if isinstance(origin, ElementType) or origin is Static:
        return _check
    if isinstance(origin, type) and _fields(origin):
        return _check
    return None


def _check(value: Any, origin: Any, args: tuple[Any, ...], memo: TypeCheckMemo) -> None:
    check(value, origin[args] if args else origin, {}, memo)


def check(value: Any, hint: Any, renaming: Renaming, memo: TypeCheckMemo) -> None:
    """Check a value against a type with renamed sizes, as in `Layer["d h"]`."""
    origin, args = get_origin(hint) or hint, get_args(hint)
    if isinstance(origin, ElementType):
        try:
            scope_of(memo).admit(value, _rename(origin, renaming))
        except Misfit as misfit:
            raise TypeCheckError(str(misfit)) from None
    elif origin is Static:
        check_type_internal(value, args[0], memo)
    elif isinstance(origin, type) and (fields := _fields(origin)):
        if not isinstance(value, origin):
            raise TypeCheckError(f"is not an instance of {origin.__qualname__}")
        inner = _apply_sizes(origin, args, renaming)
        for name, inner_hint in fields.items():
            with_path(f"field {name!r}", getattr(value, name), inner_hint, inner, memo)
    elif renaming and origin is tuple and isinstance(value, tuple):
        for index, (item, inner_hint) in enumerate(_items(value, args)):  # pyright: ignore[reportUnknownArgumentType]
            with_path(f"item {index}", item, inner_hint, renaming, memo)
    else:
        check_type_internal(value, hint, memo)


def with_path(where: str, value: Any, hint: Any, renaming: Renaming, memo: TypeCheckMemo) -> None:
    """Check a part of a value; an error says which."""
    try:
        check(value, hint, renaming, memo)
    except TypeCheckError as error:
        error.append_path_element(where)
        raise


def _items(value: tuple[Any, ...], args: tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
    """Yield the items of a tuple, each with its type; raise an error if the numbers differ."""
    hints = args[:1] * len(value) if args[1:] == (Ellipsis,) else args
    if len(hints) != len(value):
        raise TypeCheckError(f"has {len(value)} items, not {len(hints)}")
    return zip(value, hints, strict=True)


def _rename(declared: ElementType, renaming: Renaming) -> ElementType:
    if not renaming:
        return declared
    return declared[" ".join(map(str, applied(declared.dims, renaming)))]


def _apply_sizes(record: type, args: tuple[Any, ...], renaming: Renaming) -> Renaming:
    """Return the renaming of names in the fields of a record, which may be applied to sizes."""
    if not args or not issubclass(record, Record) or not isinstance(args[0], Sizes):
        return renaming
    found = given(record.__dims__, applied(parse_shape(args[0].text), renaming))
    if found is None:
        raise TypeCheckError(f"has the sizes {' '.join(record.__dims__)}, not {args[0].text}")
    return {**renaming, **found}


@lru_cache(maxsize=4096)
def _fields(record: type[Any]) -> dict[str, Any]:
    """Return the fields of a record with their types; none if no field is an array."""
    if dataclasses.is_dataclass(record):
        names = tuple(field.name for field in dataclasses.fields(record))
    else:
        names = getattr(record, "_fields", ())
    try:
        hints = get_type_hints(record) if names else {}
    except Exception:  # a name that only type checkers import: typeguard's own check has to do
        return {}
    found = {name: hints[name] for name in names if name in hints}
    return found if any(map(_has_array, found.values())) else {}


def _has_array(hint: Any) -> bool:
    origin = get_origin(hint) or hint
    if isinstance(origin, ElementType):
        return True
    if isinstance(origin, type) and _fields(origin):
        return True
    return any(map(_has_array, get_args(hint)))


# typeguard takes every string in an annotation for a forward reference, and would compile "n d".

_TYPES = tuple(
    f"{module}.{name}"
    for module in ("pscdsl", "pscdsl.arrays")
    for name, value in vars(arrays).items()
    if isinstance(value, ElementType)
)


def _leave_shapes_alone() -> None:
    """Have typeguard's instrumentation keep strings that are shapes as they are."""
    from typeguard._transformer import AnnotationTransformer  # typeguard asks us, so it is loaded

    visit: Callable[[Any, ast.Subscript], Any] = AnnotationTransformer.visit_Subscript

    def visit_subscript(self: Any, node: ast.Subscript) -> Any:
        size = node.slice
        if isinstance(size, ast.Constant) and isinstance(size.value, str):
            if self._memo.name_matches(node, *_TYPES) or _is_shape(node.value, size.value):
                return node
        return visit(self, node)

    AnnotationTransformer.visit_Subscript = visit_subscript  # type: ignore[method-assign]


def _is_shape(head: ast.expr, text: str) -> bool:
    """Return whether the string in brackets is a shape and no forward reference."""
    name = head.attr if isinstance(head, ast.Attribute) else getattr(head, "id", "")
    if name in {each.__name__ for each in _with_sizes(Record)}:
        return True
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return True
    return False


def _with_sizes(record: type[Record]) -> Iterator[type[Record]]:
    for each in record.__subclasses__():
        if each.__dims__:
            yield each
        yield from _with_sizes(each)


_leave_shapes_alone()
