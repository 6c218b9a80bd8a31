"""What a called expression may be, from the text alone: functions of the project, or names."""

from __future__ import annotations

import ast
import builtins
import functools
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias, TypeVar

from pscdsl._src.frontend.text.bindings import ScopeNode, Uses, uses
from pscdsl._src.frontend.text.source import FunctionNode, Source
from pscdsl.typing.diagnostics import Failure


class Module(Protocol):
    """A module of the project, as far as its text goes."""

    @property
    def source(self) -> Source:
        """Its text and tree; a Failure if it is not Python."""
        ...

    @property
    def text(self) -> str:
        """Its text alone."""
        ...

    @property
    def place(self) -> str:
        """The path by which findings name it."""
        ...

    @property
    def module(self) -> str:
        """Its full name."""
        ...

    @property
    def is_package(self) -> bool:
        """Whether it is the `__init__.py` of a package."""
        ...


A = TypeVar("A")
T = TypeVar("T", bound=Module)
Definition: TypeAlias = FunctionNode | ast.ClassDef
_OPERATORS = {
    **{each: each.lower() for each in ("Add", "Sub", "Mod", "Pow", "LShift", "RShift")},
    **{"Mult": "mul", "Div": "truediv", "FloorDiv": "floordiv", "MatMult": "matmul"},
    **{"BitAnd": "and", "BitOr": "or", "BitXor": "xor"},
}
_OF_ARRAYS = ("__array_ufunc__", "__array_function__")


def methods_of(operator: ast.operator) -> tuple[str, ...]:
    """The methods that a binary operator with an object of a class may call."""
    name = _OPERATORS[type(operator).__name__]
    return (*(f"__{prefix}{name}__" for prefix in ("", "r", "i")), *_OF_ARRAYS)


OPERATORS = (
    *(f"__{prefix}{name}__" for name in _OPERATORS.values() for prefix in ("", "r", "i")),
    *_OF_ARRAYS,
)
"""Methods that some operator with an object of a class calls."""
COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__array_ufunc__")
WORD = re.compile(r"[^\W\d]\w*")


class Asked:
    """A module of the project; that it was looked into is written down."""

    def __init__(self, resolver: Resolver, module: Module) -> None:
        self._resolver = resolver
        self._module = module
        self.module = module.module
        self.place = module.place

    @property
    def source(self) -> Source:
        """Its tree; a Failure if it is not Python."""
        self._resolver.asked.add(f"file {self.place}")
        return self._module.source

    @property
    def text(self) -> str:
        """Its text alone."""
        self._resolver.asked.add(f"file {self.place}")
        return self._module.text

    @property
    def is_package(self) -> bool:
        """Whether it is the `__init__.py` of a package."""
        return self._module.is_package


class Resolver:
    """Finds what names and called expressions stand for in the files of a project."""

    def __init__(self, modules: Sequence[Module]) -> None:
        self._unasked = {module.place: module for module in modules}
        """For questions that are written down in another way."""
        self.modules = {place: Asked(self, each) for place, each in self._unasked.items()}
        self.by_name = {module.module: module for module in self.modules.values()}
        self.asked: set[str] = set()
        """The words that were searched for, and the files that were looked into."""
        self._kernels: dict[ast.AST, bool] = {}
        self._parsed: dict[str, bool] = {}
        self._answers: dict[object, tuple[Any, frozenset[str]]] = {}

    @contextmanager
    def asking(self) -> Generator[set[str]]:
        """The inner question, on its own; it counts outside, too."""
        outer, self.asked = self.asked, set()
        try:
            yield self.asked
        finally:
            outer |= self.asked  # in place: whoever is outside has it
            self.asked = outer

    def once(self, key: object, find: Callable[[], A]) -> A:
        """An answer that is found once; what it asked for counts for everyone who gets it."""
        if key not in self._answers:
            with self.asking() as asked:
                answer = find()
            self._answers[key] = answer, frozenset(asked)
        known, questions = self._answers[key]
        self.asked |= questions
        result: A = known
        return result

    @functools.cached_property
    def words(self) -> dict[str, list[Module]]:
        """The modules in whose text each word stands."""
        found: dict[str, list[Module]] = {}
        for module in self._unasked.values():
            for word in set(WORD.findall(module.text)):
                found.setdefault(word, []).append(module)
        return found

    def naming(self, *words: str) -> list[Asked]:
        """The modules in whose text one of some words stands."""
        self.asked.update(words)
        found = [each.place for each in self.texts_with(*words) if self._is_python(each)]
        return [self.modules[place] for place in found]

    def texts_with(self, *words: str) -> list[Module]:
        """The same, Python or not, when the answer is asked for in another way."""
        found = {each.place: each for word in words for each in self.words.get(word, ())}
        return list(found.values())

    def _is_python(self, module: Module) -> bool:
        found = self._parsed.get(module.place)
        if found is None:
            try:
                uses(module.source)
                found = True
            except Failure:
                found = False  # it cannot be run, and writes nothing
            self._parsed[module.place] = found
        return found

    def base_of(self, source: Source, node: ast.ImportFrom) -> str:
        """The full name of the module that `from … import` names."""
        module = self.modules.get(source.path)
        if not node.level or module is None:
            return node.module or ""
        parts = module.module.split(".")
        keep = len(parts) - node.level + (1 if module.is_package else 0)
        return ".".join([*parts[: max(keep, 0)], *([node.module] if node.module else [])])

    def imported(self, source: Source, scope: ScopeNode | None, name: str) -> str | None:
        """The qualified name that an import gives to a name in a scope."""
        index = uses(source)
        for node in index.imports:
            for alias in node.names:
                if alias.name == "*" or (alias.asname or alias.name.split(".")[0]) != name:
                    continue
                if index.owner(node, name) is not scope:
                    continue
                if isinstance(node, ast.ImportFrom):
                    return f"{self.base_of(source, node)}.{alias.name}"
                return alias.name if alias.asname else name
        return None

    def origins(self, source: Source, name: str) -> Iterator[tuple[Module, str]]:
        """Where in the project a module-level name is imported from."""
        for node in source.imports():
            for alias in node.names:
                base = self.base_of(source, node) if isinstance(node, ast.ImportFrom) else ""
                found: tuple[Module, str] | None = None
                if alias.name == "*" and base in self.by_name:
                    if self._may_export(self.by_name[base], name, set()):
                        found = self.by_name[base], name
                elif base and (alias.asname or alias.name) == name:
                    found = self.project_name(f"{base}.{alias.name}")
                if found is not None and found[1]:
                    yield found

    def _may_export(self, module: Module, name: str, seen: set[str]) -> bool:
        """Whether `from module import *` may bind a name, as far as texts go."""
        if name in module.text:
            return True
        seen.add(module.place)
        for node in module.source.imports():
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                other = self.by_name.get(self.base_of(module.source, node))
                if other is not None and other.place not in seen:
                    if self._may_export(other, name, seen):
                        return True
        return False

    def qualified(self, source: Source, node: ast.expr) -> str | None:
        """The qualified name of `a.b.c`, if `a` is imported or one of Python's builtins."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        index = uses(source)
        scope = index.owner(node, node.id)
        root = self.imported(source, scope, node.id)
        if root is None:
            if scope is not None or self._is_bound(index, node.id):
                return None
            root = self._starred(source, node.id) or f"builtins.{node.id}"
        return ".".join([root, *parts])

    def _starred(self, source: Source, name: str) -> str | None:
        """The qualified name of what `from … import *` may have bound."""
        if hasattr(builtins, name):
            return None
        for node in source.imports():
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                base = self.base_of(source, node)
                module = self.by_name.get(base)
                if module is None or name in module.text:
                    return f"{base}.{name}"
        return None

    def _is_bound(self, index: Uses, name: str) -> bool:
        if name in index.functions or name in index.classes:
            return True
        found = index.names.get(name, ())
        return any(isinstance(n.ctx, ast.Store) and index.owner(n, name) is None for n in found)

    def is_kernel(self, source: Source, node: Definition) -> bool:
        """Whether a function is a kernel by its decorators."""
        for each in () if isinstance(node, ast.Lambda) else node.decorator_list:
            head = each.func if isinstance(each, ast.Call) else each
            if self.qualified(source, head) == "pscdsl.kernel":
                return True
        return False

    def in_kernel(self, source: Source, node: ast.AST) -> bool:
        """Whether a node stands in the text of a kernel."""
        index = uses(source)
        function = index.function_of(node)
        while function is not None:
            cached = self._kernels.get(function)
            if cached is None:
                cached = self._kernels[function] = self.is_kernel(source, function)
            if cached:
                return True
            function = index.function_of(function)
        return False

    def project_name(self, qualified: str) -> tuple[Module, str] | None:
        """A module of the project and the rest of a qualified name."""
        parts = qualified.split(".")
        self.asked.add(f"module {parts[0]}")
        for count in range(len(parts), 0, -1):
            found = self.by_name.get(".".join(parts[:count]))
            if found is not None:
                return found, ".".join(parts[count:])
        return None

    def defines_operators(self, *methods: str) -> bool:
        """Whether a class of the project may be asked what an operator means, or an index.

        Its methods are given the other operand.
        """
        return any(self.defining(each) for each in methods or OPERATORS)

    def defining(self, method: str) -> list[Asked]:
        """The modules that may give a class a method of this name."""
        return [
            module
            for module in self.naming(method)
            if method in uses(module.source).functions
            or re.search(rf"[\"'=.]\s*{method}\b|\b{method}\s*[=:,]", module.text)
        ]

    def names_kernel(self, source: Source, node: ast.expr) -> bool:
        """Whether an expression names a kernel that may write none of its arguments.

        It is one function, with one decorator, in a module that does not bind the name again.
        """
        qualified = self.qualified(source, node)
        place = None if qualified is None else self.project_name(qualified)
        if place is not None:
            source, name = place[0].source, place[1]
        elif isinstance(node, ast.Name) and uses(source).owner(node, node.id) is None:
            name = node.id
        else:
            return False
        index = uses(source)
        found = [each for each in index.functions.get(name, ()) if index.owner(each, name) is None]
        if len(found) != 1 or len(found[0].decorator_list) != 1 or self.stores(source, None, name):
            return False
        decorator = found[0].decorator_list[0]
        options = decorator.keywords if isinstance(decorator, ast.Call) else []
        if any(option.arg in (None, "donate", "writes") for option in options):
            return False
        return self.is_kernel(source, found[0])

    def stores(self, source: Source, scope: ScopeNode | None, name: str) -> list[ast.Name]:
        """The places where a name of a scope is bound or unbound as a name."""
        index = uses(source)
        return [
            node
            for node in index.names.get(name, ())
            if not isinstance(node.ctx, ast.Load) and index.owner(node, name) is scope
        ]

    def is_library(self, source: Source, node: ast.expr) -> bool:
        """Whether an expression names a part of an imported module that is not the project's."""
        qualified = self.qualified(source, node)
        if qualified is None or qualified.startswith("builtins."):
            return False
        return self.project_name(qualified) is None

    def storing(self, name: str) -> list[Module]:
        """The modules that may store an attribute of this name; cheap, by their texts."""
        return [each for each in storing(self.texts_with, name) if self._is_python(each)]

    def patching(self) -> list[Asked]:
        """The modules that may store attributes of libraries; cheap, by their texts."""
        self.asked.add("patching *")
        found = patching(self._unasked.values())
        return [self.modules[each.place] for each in found if self._is_python(each)]


def storing(texts: Callable[..., list[T]], name: str) -> list[T]:
    """The texts that may store an attribute of this name, or under this string."""
    return [text for text in texts(name) if name in _stored_names(text.text)]


_STORED = re.compile(r"\.\s*(\w+)\b(?!\s*[(\[.])")
_QUOTED = re.compile(r"[\"'.](\w+)(?=[\"'])")


@functools.lru_cache(maxsize=20_000)
def _stored_names(text: str) -> frozenset[str]:
    """The names of attributes that a text may store: it is searched once for all of them."""
    return frozenset(_STORED.findall(text)).union(_QUOTED.findall(text))


_PATCHING = re.compile(
    r"\b(?!self\.|cls\.)[A-Za-z_]\w*(?:\s*\.\s*\w+){1,50}\s*[)\]]*\s*(?:,[^()=\n]*)?"
    r"(?:[-+*/%&|^@]|//|\*\*|<<|>>)?=(?!=)"
    r"|\b(?:for|as|del)\b[^\n]*\w\s*\.\s*\w|\b(?:\w*setattr|delattr|patch)\b"
)


def patching(texts: Iterable[T]) -> list[T]:
    """The texts that may store attributes of what is not `self`."""
    return [text for text in texts if _PATCHING.search(text.text)]
