"""The texts of loaded classes: where the statement of a real class stands, if that is known."""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Iterator
from typing import Any, cast

from pscdsl._src.frontend.interpreter.frames import Frame, Scope, Session
from pscdsl._src.frontend.loaded_code import unchecked
from pscdsl._src.frontend.modules.live_types import Abstract, Written
from pscdsl._src.frontend.text import code_texts
from pscdsl._src.frontend.text.source import Source
from pscdsl.typing.codes.language import BadAnnotation, Unsupported
from pscdsl.typing.diagnostics import Failure


class LoadedClass:
    """A real class that is to be read, and the class statement that it may be from."""

    def __init__(
        self, cls: type[Any], scope: Scope, abstract: Abstract, source: Source | None = None
    ) -> None:
        self.cls = cls
        self.scope = scope
        self.abstract = abstract
        self.source = source
        """The text of its module, if that is in a file."""

    @functools.cached_property
    def statement(self) -> tuple[Source, ast.ClassDef] | None:
        """The newest text with a statement that may be this class's: findings point there."""
        first = vars(self.cls).get("__firstlineno__")
        for source in _texts(self.cls) if self.source is None else (self.source,):
            node = source.classes().get(self.cls.__qualname__)
            if node is not None and _agrees(node, self.cls, first):
                return source, node
        return None

    def frame(self) -> Frame:
        """Where annotations and values of the class are read."""
        source = Source("<a class>", "") if self.statement is None else self.statement[0]
        return Frame(Session(None), source, self.scope)

    def failure(self, what: str, rewrite: str) -> Failure:
        """What to say of a class that cannot be a record."""
        found = Unsupported(what=what, rewrite=rewrite)
        if self.statement is None:
            return Failure(found)
        source, node = self.statement
        return Failure(found.at(source.span(node)))

    def at(self, function: Any, what: str, rewrite: str) -> Failure:
        """A refusal at a method, as far as its place is known."""
        method = None if function is None else self.abstract(function, function.__name__)
        node, source = getattr(method, "node", None), getattr(method, "source", None)
        if node is None or source is None:
            return self.failure(what, rewrite)
        return Failure(Unsupported(what=what, rewrite=rewrite, span=source.span(node)))

    def annotation(self, name: str, value: Any) -> tuple[ast.expr, Frame]:
        """The type of a field as an annotation, at its place if that is known."""
        frame = self.frame()
        if isinstance(value, str):
            text = value
        else:
            written = Written(self.abstract)
            text, frame.names = written.text(value), written.names
        try:
            node = ast.parse(text.strip(), mode="eval").body
        except SyntaxError:
            reason = f"`{name}: {text}` is no type"
            raise Failure(
                BadAnnotation(text=text, reason=reason, rewrite='write `f32["n d"]`')
            ) from None
        place = None if self.statement is None else annotated_names(self.statement[1]).get(name)
        if place is not None and ast.dump(node) == ast.dump(place):
            return place, frame
        if place is not None:
            for each in ast.walk(node):
                ast.copy_location(each, place)
        elif self.statement is None:
            frame.source = Source("<a type>", text)
        return node, frame


def _texts(cls: type[Any]) -> Iterator[Source]:
    """The texts that may have the statement, those that its methods are from first."""
    names = dict.fromkeys(
        function.__code__.co_filename
        for member in vars(cls).values()
        if is_own(function := function_of(member))
    )
    word = f"class {cls.__name__}"
    for name in names or dict.fromkeys(code_texts.kept_names()):
        text = code_texts.shown_text(name)
        if text is not None and word in text:
            try:
                yield _source(code_texts.shown_name(name), text)
            except Failure:
                continue


@functools.lru_cache(maxsize=64)
def _source(name: str, text: str) -> Source:
    return Source(name, text)


def _agrees(node: ast.ClassDef, cls: type[Any], first: object) -> bool:
    """Whether a class statement annotates what the class does, in the same order."""
    line = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    own = vars(cls).get("__annotations__", {})
    return (
        first in (None, line)
        and [*own] == [*annotated_names(node)]
        and all(
            line <= code.co_firstlineno <= (node.end_lineno or line)
            for name, member in vars(cls).items()
            if is_own(function := function_of(member))
            and (code := function.__code__).co_qualname == f"{cls.__qualname__}.{name}"
        )
    )


def annotated_names(node: ast.ClassDef) -> dict[str, ast.expr]:
    """The annotations of a class statement, by the names that have them."""
    return {
        each.target.id: each.annotation
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }


def function_of(member: Any) -> Any:
    """The function in a member of a class; None if there is none."""
    if isinstance(member, property):
        member = member.fget
    elif isinstance(member, functools.cached_property):
        member = cast("Any", member).func
    elif isinstance(member, staticmethod | classmethod):
        member = cast("Any", member).__func__
    return unchecked(member) if isinstance(member, types.FunctionType) else None


_GENERATING = ("dataclasses", "reprlib", "collections", "typing")


def is_generated(function: types.FunctionType) -> bool:
    """Whether `dataclass` or `NamedTuple` wrote a method."""
    home = function.__globals__.get("__name__")
    made = function.__code__.co_qualname.startswith("__create_fn__.")
    return made or home in _GENERATING or str(home).startswith("namedtuple_")


def is_own(function: Any) -> bool:
    """Whether whoever wrote a class wrote this method."""
    return isinstance(function, types.FunctionType) and not is_generated(function)
