"""The annotations of loaded functions: what their text says, beside what Python made of it.

Annotations are evaluated outside of the code of a function, where it is defined.  So they may name
what the function itself does not hold: a class that is local to the function around it, or one
that a name no longer stands for.  The real annotation knows.
"""

from __future__ import annotations

import ast
import builtins
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pscdsl._src.frontend.modules.traces import annotations_of, captured_by
from pscdsl._src.frontend.text.source import FunctionNode, Source
from pscdsl._src.frontend.text.uses import uses
from pscdsl._src.language.elements import ElementType
from pscdsl._src.language.records import Sizes
from pscdsl.typing.codes.language import NoSuchAttribute
from pscdsl.typing.diagnostics import Failure


def agrees(node: FunctionNode, function: types.FunctionType, source: Source) -> bool:
    """Whether the annotations that a function has may be what its text says."""
    if isinstance(node, ast.Lambda) or are_copied(function):
        return True
    written, names = _written(node), _Names(function, source)
    found: dict[str, Any] = function.__annotations__
    return {_plain(name) for name in found} == written.keys() and all(
        [_agree(written[_plain(name)], each, names) for name, each in found.items()]
    )


def are_copied(function: types.FunctionType) -> bool:
    """Whether `functools.wraps` gave a function the annotations of the one that it wraps."""
    wrapped = getattr(function, "__wrapped__", None)
    return wrapped is not None and annotations_of(wrapped) == annotations_of(function)


def named_by_annotations(
    node: FunctionNode, function: types.FunctionType, source: Source
) -> Mapping[str, Any]:
    """What names in a function's annotations stand for that it finds nowhere, or not any more."""
    if are_copied(function):
        return {}
    written, names = _written(node), _Names(function, source)
    found: dict[str, Any] = {}
    for name, real in annotations_of(function).items():
        place = written.get(_plain(name))
        if place is None or isinstance(real, str):
            continue  # text is looked up when it is read
        for each, value in _named(place, real):
            if names.stands_for(each, value):
                continue
            if isinstance(each, ast.Name):
                found[each.id] = value
            elif isinstance(each.value, ast.Name) and names.find(each.value) is _UNKNOWN:
                module = found.setdefault(each.value.id, PartOfModule(each.value.id, {}))
                if isinstance(module, PartOfModule):
                    module.names[each.attr] = value
    return found


class PartOfModule:
    """A module that only annotations name: what they name in it."""

    def __init__(self, name: str, names: dict[str, Any]) -> None:
        self.name = name
        self.names = names

    def lookup_attribute(self, name: str) -> Any:
        """`module.name`."""
        if name not in self.names:
            raise Failure(NoSuchAttribute(owner=f"module `{self.name}`", attribute=name))
        return self.names[name]


def _written(node: FunctionNode) -> dict[str, ast.expr]:
    """The annotations that stand in the text of a function."""
    if isinstance(node, ast.Lambda):
        return {}
    spec = node.args
    every = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg]
    parts = [(each.arg, each.annotation) for each in every if each is not None]
    return {name: each for name, each in [*parts, ("return", node.returns)] if each is not None}


def _named(node: ast.expr, real: Any) -> Iterator[tuple[ast.Name | ast.Attribute, Any]]:
    """The names in an annotation, with the objects that they stood for."""
    if isinstance(node, ast.Name | ast.Attribute):
        yield node, real.text if isinstance(real, Sizes) else real
    elif isinstance(node, ast.BinOp):
        parts, given = list(_united(node)), get_args(real)
        if len(parts) == len(given):
            for part, each in zip(parts, given, strict=True):
                yield from _named(part, each)
    elif isinstance(node, ast.Subscript):
        yield from _named_in_subscript(node, real)


def _named_in_subscript(
    node: ast.Subscript, real: Any
) -> Iterator[tuple[ast.Name | ast.Attribute, Any]]:
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    origin, given = get_origin(real), get_args(real)
    if isinstance(real, ElementType):
        origin, given = real.element, (real.text,)
    elif hasattr(real, "dim_str") and getattr(real, "__module__", "") == "jaxtyping":
        origin, given = real.dtype, (real.array_type, real.dim_str)
    elif origin is Annotated:
        origin, given = None, given[:1]
    elif origin in (Union, types.UnionType):
        origin = None
    if origin is not None and getattr(origin, "__module__", "") != "typing":
        yield from _named(node.value, origin)
    for item, each in zip(items, given, strict=False):
        yield from _named(item, each)


def _plain(name: str) -> str:
    """The name of a parameter as it is written, in a class, too: `_Layer__w` is `__w`."""
    owner, underscores, rest = name.lstrip("_").partition("__")
    return f"__{rest}" if name.startswith("_") and owner and underscores and rest else name


class _Names:
    """What the names in a function's annotations stand for."""

    def __init__(self, function: types.FunctionType, source: Source) -> None:
        self._source = source
        self._is_nested = "." in function.__qualname__
        self._globals = function.__globals__
        self._cells = dict.fromkeys(function.__code__.co_freevars, _UNKNOWN)
        self._cells.update(captured_by(function))

    def find(self, node: ast.expr) -> Any:
        """What a name, or an attribute of a module, stands for; `_UNKNOWN` if that is not known."""
        if isinstance(node, ast.Attribute):
            owner = self.find(node.value)
            known = isinstance(owner, types.ModuleType)
            return vars(owner).get(node.attr, _UNKNOWN) if known else _UNKNOWN
        if not isinstance(node, ast.Name):
            return _UNKNOWN
        owner = uses(self._source).owner(node, node.id) if self._is_nested else None
        if owner is not None:  # what is local around the function it only has if its body uses it
            captured = isinstance(owner, FunctionNode)
            return self._cells.get(node.id, _UNKNOWN) if captured else _UNKNOWN
        return self._globals.get(node.id, vars(builtins).get(node.id, _UNKNOWN))

    def stands_for(self, node: ast.expr, real: Any) -> bool:
        """Whether a name stands for an object, as far as whoever reads annotations can tell."""
        found = self.find(node)
        return found is real or (found is not _UNKNOWN and _equal(found, real))


_UNKNOWN: Final = object()


def _agree(node: ast.expr, real: Any, names: _Names) -> bool:
    """Whether an annotation as it was evaluated is not another one than the text has."""
    if isinstance(real, str):
        written = isinstance(node, ast.Constant) and node.value == real
        return written or real == ast.unparse(node)
    if isinstance(node, ast.Constant):
        if node.value is None:
            return real is None or real is type(None)
        return type(real) is type(node.value) and bool(real == node.value)
    if isinstance(node, ast.BinOp):
        parts, types_ = list(_united(node)), get_args(real)
        return len(parts) != len(types_) or _all_agree(parts, types_, names)
    if isinstance(node, ast.Subscript):
        return _subscript_agrees(node, real, names)
    found = names.find(node)
    return found is _UNKNOWN or found is real or _made_again(found, real) or _equal(found, real)


def _subscript_agrees(node: ast.Subscript, real: Any, names: _Names) -> bool:
    base = names.find(node.value)
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if isinstance(real, ElementType):
        same_element = base is _UNKNOWN or base is real.element
        text = str(node.slice.value) if isinstance(node.slice, ast.Constant) else real.text
        return same_element and text == real.text
    origin, given = get_origin(real), get_args(real)
    if origin in (None, Union, types.UnionType) or getattr(base, "__module__", "") == "typing":
        return True
    if not (base is _UNKNOWN or base is origin or _made_again(base, origin)):
        return False
    return len(items) == len(given) and _all_agree(items, given, names)


def _all_agree(nodes: Sequence[ast.expr], found: Sequence[Any], names: _Names) -> bool:
    return all(
        [
            _agree(node, getattr(each, "text", each), names)
            if isinstance(node, ast.Constant)
            else _agree(node, each, names)
            for node, each in zip(nodes, found, strict=True)
        ]
    )


def _united(node: ast.expr) -> Iterator[ast.expr]:
    """The parts of `a | b | c`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        yield from _united(node.left)
        yield from _united(node.right)
    else:
        yield node


def _made_again(found: Any, real: Any) -> bool:
    """Whether both are what one class statement makes, as a cell of a notebook does each time."""
    both = isinstance(found, type) and isinstance(real, type)
    return both and (found.__module__, found.__qualname__) == (real.__module__, real.__qualname__)


def _equal(found: Any, real: Any) -> bool:
    try:
        return bool(found == real)
    except Exception:  # whatever a class says of its own
        return False
