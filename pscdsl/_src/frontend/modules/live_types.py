"""Applied types of loaded modules, `Matrix = f32["n m"]`, as the aliases that source gives.

A real type no longer knows the text that it was written as.  It is written again, with the names
of what it is made of, and read as an annotation.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from typing import Annotated, Any, ForwardRef, Literal, TypeGuard, Union, get_args, get_origin

from pscdsl._src.frontend.interpreter.frames import Frame, Scope, Session
from pscdsl._src.frontend.text.source import Source
from pscdsl._src.frontend.values.values import Alias, Marker
from pscdsl._src.language.elements import ElementType
from pscdsl._src.language.records import Sizes
from pscdsl.typing.python_containers import is_tuple

Abstract = Callable[[Any, str], Any]
"""What a real object stands for, given its name."""


def is_applied(value: object) -> TypeGuard[Any]:
    """Whether this is a type with something in its brackets, or a union of types."""
    if isinstance(value, ElementType):
        return value.text is not None
    if _is_jaxtyping(value) or isinstance(value, types.GenericAlias | types.UnionType):
        return True
    return get_origin(value) is not None and is_tuple(getattr(value, "__args__", None))


def alias_of(value: Any, scope: Scope, abstract: Abstract) -> Alias:
    """The alias that stands for an applied type."""
    written = Written(abstract)
    text = written.text(value)
    source = Source("<a type>", text + "\n")
    statement = source.tree.body[0]
    assert isinstance(statement, ast.Expr)
    frame = Frame(Session(None), source, scope)
    frame.names = written.names
    node = statement.value
    head = frame.names.get(node.value.id) if _is_applied_name(node) else None
    return Alias(head, frame, node)


def _is_applied_name(node: ast.expr) -> TypeGuard[Any]:
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)


def _is_jaxtyping(value: object) -> TypeGuard[Any]:
    return isinstance(value, type) and value.__module__ == "jaxtyping" and hasattr(value, "dim_str")


def _written_literal(value: Any) -> str:
    """A literal as most people write it."""
    plain = isinstance(value, str) and repr(value) == f"'{value}'"
    return f'"{value}"' if plain else repr(value)


class Written:
    """Types as text, and what the names in it stand for."""

    def __init__(self, abstract: Abstract) -> None:
        self.abstract = abstract
        self.names: dict[str, Any] = {}

    def text(self, value: Any) -> str:
        """A type as an annotation."""
        if value is None or value is type(None):
            return "None"
        if value is Ellipsis:
            return "..."
        if isinstance(value, Sizes):
            return repr(value.text)
        if isinstance(value, str):
            return repr(value)
        if isinstance(value, ForwardRef):
            return repr(value.__forward_arg__)
        if _is_jaxtyping(value):
            kind = value.dtype.__name__
            self.names[kind] = Marker(f"jaxtyping.{kind}")
            return f"{kind}[{value.dim_str!r}]"
        if isinstance(value, ElementType) and value.text is not None:
            return f"{self.name(value.element)}[{value.text!r}]"
        if not is_applied(value):
            return self.name(value)
        origin, arguments = get_origin(value), get_args(value)
        if origin in (Union, types.UnionType):
            return " | ".join(map(self.text, arguments))
        if origin is Annotated:
            return self.text(arguments[0])
        if origin is Literal:
            self.names["Literal"] = Marker("typing.Literal")
            return f"Literal[{', '.join(map(_written_literal, arguments))}]"
        inner = ", ".join(map(self.text, arguments))
        return f"{self.name(origin)}[{inner or '()'}]"

    def name(self, value: Any) -> str:
        """A name for what is no applied type."""
        found: Any = self.abstract(value, getattr(value, "__name__", "type"))
        stem = str(getattr(value, "__name__", "type"))
        name = stem = stem if stem.isidentifier() else "type"
        while name in self.names and self.names[name] is not found and self.names[name] != found:
            name += "_"
        self.names[name] = found
        return name
