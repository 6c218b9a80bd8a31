"""The texts of loaded modules, so that what they write is known when a kernel is called."""

from __future__ import annotations

import ast
import linecache
import os
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import (
    Annotated,
    Any,
    ForwardRef,
    Literal,
    TypeGuard,
    Union,
    get_args,
    get_origin,
)

from pscdsl._src.frontend.interpreter.captures import Captures
from pscdsl._src.frontend.interpreter.frames import Frame, Scope, Session
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.modules.files import Files, is_language
from pscdsl._src.frontend.modules.known import known_module
from pscdsl._src.frontend.modules.loaded_code import current_source
from pscdsl._src.frontend.modules.scope import Project, StaticModule
from pscdsl._src.frontend.text.code_texts import file_of, is_installed, loaded_beside, root_of
from pscdsl._src.frontend.text.source import Source, searchable, shown_path
from pscdsl._src.frontend.values.purity import external_value
from pscdsl._src.frontend.values.values import Alias, External, Marker, Partial
from pscdsl._src.language.elements import ElementType
from pscdsl._src.language.records import Sizes
from pscdsl._src.support.processes import forget_at_end
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.python_containers import is_dict, is_sequence, is_tuple

# Applied types of loaded modules, `Matrix = f32["n m"]`, as the aliases that source gives.
#
# A real type no longer knows the text that it was written as.  It is written again, with the names
# of what it is made of, and read as an annotation.


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


class LoadedText:
    """The text of a loaded module, read and parsed when it is needed."""

    def __init__(self, module: types.ModuleType, file: str) -> None:
        self.module = module.__name__
        self.is_package = hasattr(module, "__path__")
        self.place = shown_path(file) if os.path.exists(file) else file
        self.file = file
        self._namespace = vars(module)
        self.spec = self._namespace.get("__spec__")
        """What it was loaded by; `importlib.reload` makes another."""
        self._source: Source | None = None

    def key(self) -> tuple[str, int]:
        """The key of the module's text, also after another module took its place."""
        return self.file, id(self._namespace)

    def is_current(self) -> bool:
        """Whether it was not loaded again since."""
        return self._namespace.get("__spec__") is self.spec

    @property
    def source(self) -> Source:
        """Its tree; a Failure if it is not Python."""
        if self._source is None:
            found = current_source(self.file, self._namespace)
            self._source = Source(self.place, "") if found is None else found
        return self._source

    @property
    def text(self) -> str:
        """Its text alone."""
        linecache.checkcache(self.file)
        return searchable("".join(linecache.getlines(self.file)))


@dataclass(eq=False)
class TextOf:
    """The text of code whose source is at hand."""

    source: Source
    module: str
    is_package: bool = False

    @property
    def text(self) -> str:
        """Its text alone."""
        return self.source.searched

    @property
    def place(self) -> str:
        """The path by which findings name it."""
        return self.source.path


_BESIDE: dict[str, tuple[int, list[LoadedText]]] = {}
_CAPTURES: dict[str, Captures] = {}
forget_at_end(_BESIDE, _CAPTURES)


def text_of(source: Source, name: str) -> TextOf:
    """A module as far as its text goes."""
    return TextOf(source, name, os.path.basename(source.path) == "__init__.py")


def loaded_text(module: types.ModuleType) -> LoadedText | None:
    """A loaded module's text; None if it is not written in Python, or was installed."""
    file = file_of(vars(module))
    if file is None or not file.endswith(".py") or is_installed(file):
        return None
    return LoadedText(module, file)


def captures_beside(namespace: Mapping[str, Any]) -> Captures:
    """What knows the writes in the modules that belong to the same project as a namespace."""
    root = root_of(namespace)
    if root not in _CAPTURES:
        _CAPTURES[root] = Captures(lambda: _beside(root, namespace))
    return _CAPTURES[root]


def _beside(root: str, namespace: Mapping[str, Any]) -> Sequence[LoadedText]:
    """The loaded modules whose files lie below a folder, and not among installed packages."""
    count, found = _BESIDE.get(root, (0, []))
    current = all([text.is_current() for text in found])
    if count == len(sys.modules) and current:
        return found
    here = loaded_beside(root, namespace)
    texts = [LoadedText(each, file) for file, each in here.items() if not is_language(file)]
    if current and list(map(LoadedText.key, texts)) == list(map(LoadedText.key, found)):
        texts = found  # what was loaded in between is of no concern
    _BESIDE[root] = (len(sys.modules), texts)
    return texts


_PROJECTS: dict[str, tuple[Sequence[LoadedText], Project]] = {}
forget_at_end(_PROJECTS)


def refuse_derived(namespace: Mapping[str, Any], name: str) -> None:
    """Refuse what the module's text derives from something that is written: an alias, a partial."""
    module = _as_written(namespace)
    if module is None:
        return
    try:
        value = module.own(name)
    except (Failure, KeyError, RecursionError):
        return  # what is loaded is known better than what is written
    for each in _unknown(value):
        if any(d.code in _LASTING for d in each.why):
            raise Failure(external_value(each))


def _unknown(value: Any) -> Iterator[External]:
    """What is not known of a value: itself, items of it, or a function's defaults."""
    if isinstance(value, External):
        yield value
    elif isinstance(value, Closure):
        yield from (default for default in value.defaults.values() if isinstance(default, External))
    elif isinstance(value, Partial):
        for each in (value.function, *value.args, *value.kwargs.values()):
            yield from _unknown(each)
    elif is_sequence(value) or is_dict(value):
        for each in value.values() if is_dict(value) else value:
            yield from _unknown(each)


_LASTING = ("PSC206", "PSC208")
"""What makes a value unfit however it was computed."""


def _as_written(namespace: Mapping[str, Any]) -> StaticModule | None:
    """The module of a namespace, as its file says it."""
    file = file_of(namespace)
    if file is None or not file.endswith(".py") or not os.path.isfile(file):
        return None
    root = root_of(namespace)
    texts = _beside(root, namespace)
    known, project = _PROJECTS.get(root, ((), None))
    if project is None or known is not texts:
        given = [os.path.realpath(text.file) for text in texts]
        project = Project(files=Files(given))
        _PROJECTS[root] = (texts, project)
    try:
        return project.at(os.path.realpath(file))
    except Failure:
        return None


_PUBLIC = {"posix": "os", "nt": "os", "posixpath": "os.path", "ntpath": "os.path"}


def public_name(module: str) -> str:
    """The name by which users know one of Python's own modules: `socket` of `_socket`."""
    top, dot, rest = module.partition(".")
    if top in _PUBLIC:
        return _PUBLIC[top]
    bare = top.lstrip("_")
    return bare + dot + rest if top != "__main__" and bare in sys.stdlib_module_names else module


def is_pythons(module: str) -> bool:
    """Whether a module comes with Python, and its functions are known by name or not at all."""
    top = module.partition(".")[0]
    return top in sys.stdlib_module_names and known_module(module) is None and top != "typing"
