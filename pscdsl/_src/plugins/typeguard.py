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
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

from typeguard import TypeCheckError, TypeCheckMemo, check_type_internal

from pscdsl import arrays
from pscdsl._src.language.elements import ElementType
from pscdsl._src.language.records.classes import Record, Sizes
from pscdsl._src.plugins.fitting import Misfit, Scope
from pscdsl.arrays import Static
from pscdsl.typing.notation import parse_shape
from pscdsl.typing.size_arguments import Renaming, applied, given

Check: TypeAlias = Callable[[Any, Any, tuple[Any, ...], TypeCheckMemo], None]


class Locals(dict[str, Any]):
    """The local variables of a call with the scope of its size names.

    typeguard makes one memo a call.  A memo takes no attributes and no weak references, but its
    mapping of variables can be replaced: so the scope lives exactly as long as the call.
    """

    scope: Scope


def scope_of(memo: TypeCheckMemo) -> Scope:
    """The scope of the call that a memo belongs to."""
    if not isinstance(memo.locals, Locals):
        memo.locals = Locals(memo.locals)
        memo.locals.scope = Scope()
    return memo.locals.scope


def lookup(origin: Any, args: tuple[Any, ...], extras: tuple[Any, ...]) -> Check | None:
    """The answer to typeguard: how to check values of a type; None for types that are not ours."""
    if isinstance(origin, ElementType) or origin is Static:
        return _check
    if isinstance(origin, type) and _fields(origin):
        return _check
    return None


def _check(value: Any, origin: Any, args: tuple[Any, ...], memo: TypeCheckMemo) -> None:
    check(value, origin[args] if args else origin, {}, memo)


def check(value: Any, hint: Any, renaming: Renaming, memo: TypeCheckMemo) -> None:
    """Check a value against a type whose size names mean other sizes, as in `Layer["d h"]`."""
    origin, args = get_origin(hint) or hint, get_args(hint)
    if isinstance(origin, ElementType):
        try:
            scope_of(memo).admit(value, _renamed(origin, renaming))
        except Misfit as misfit:
            raise TypeCheckError(str(misfit)) from None
    elif origin is Static:
        check_type_internal(value, args[0], memo)
    elif isinstance(origin, type) and (fields := _fields(origin)):
        if not isinstance(value, origin):
            raise TypeCheckError(f"is not an instance of {origin.__qualname__}")
        inner = _applied(origin, args, renaming)
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
    """The items of a tuple, each with its type; an error if there are not as many."""
    hints = args[:1] * len(value) if args[1:] == (Ellipsis,) else args
    if len(hints) != len(value):
        raise TypeCheckError(f"has {len(value)} items, not {len(hints)}")
    return zip(value, hints, strict=True)


def _renamed(declared: ElementType, renaming: Renaming) -> ElementType:
    if not renaming:
        return declared
    return declared[" ".join(map(str, applied(declared.dims, renaming)))]


def _applied(record: type, args: tuple[Any, ...], renaming: Renaming) -> Renaming:
    """What the names in the fields of a record mean, applied to sizes or not."""
    if not args or not issubclass(record, Record) or not isinstance(args[0], Sizes):
        return renaming
    found = given(record.__dims__, applied(parse_shape(args[0].text), renaming))
    if found is None:
        raise TypeCheckError(f"has the sizes {' '.join(record.__dims__)}, not {args[0].text}")
    return {**renaming, **found}


@lru_cache(maxsize=4096)
def _fields(record: type[Any]) -> dict[str, Any]:
    """The fields of a record with their types; none if none of them is an array."""
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
    from typeguard._transformer import AnnotationTransformer

    visit: Callable[[Any, ast.Subscript], Any] = AnnotationTransformer.visit_Subscript

    def visit_subscript(self: Any, node: ast.Subscript) -> Any:
        size = node.slice
        if isinstance(size, ast.Constant) and isinstance(size.value, str):
            if self._memo.name_matches(node, *_TYPES) or _is_shape(node.value, size.value):
                return node
        return visit(self, node)

    AnnotationTransformer.visit_Subscript = visit_subscript  # type: ignore[method-assign]


def _is_shape(head: ast.expr, text: str) -> bool:
    """Whether the string in brackets is no forward reference, whatever the class is."""
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
