"""The values that a kernel captures: constants, which must not change from then on."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from pscdsl._src.frontend.captures.resolution import LIBRARY, Access, Names, Reference
from pscdsl._src.frontend.captures.writes import BIND, Write, Writes
from pscdsl._src.frontend.purity import iterator_in, kind_of, parts
from pscdsl._src.frontend.text.bindings import ScopeNode
from pscdsl._src.frontend.text.source import FunctionNode, Source
from pscdsl._src.frontend.values import AnyValue, KnownModule, Marker, StaticFunction
from pscdsl._src.language.meanings import Meaning
from pscdsl.typing.codes.language import Unsupported
from pscdsl.typing.codes.purity import IteratorUsed, MutableCapture
from pscdsl.typing.diagnostics import Diagnostic, Failure, Label
from pscdsl.typing.dtypes import DType
from pscdsl.typing.python_containers import NDArray, is_known_array
from pscdsl.typing.signatures import DTypeClass


class Module(Protocol):
    """A module with its source text."""

    @property
    def source(self) -> Source:
        """The text and the tree."""
        ...


@dataclass(frozen=True)
class Guard:
    """Refuses captures that cannot be protected from changes; each call checks the others."""

    anew: bool = False
    """Whether captured values are looked up again at each call, and so may change in between."""

    def admit(self, module: Module | None, name: str, value: AnyValue) -> None:
        """Refuse a name of a module."""
        del module
        self.require_held(name, value)

    def of_builtin(self, module: Module, name: str) -> None:
        """Refuse a Python builtin."""

    def of_class(self, source: Source, node: ast.ClassDef, name: str, value: AnyValue) -> None:
        """Refuse an attribute of a class."""

    def of_function(self, source: Source, node: FunctionNode, name: str, value: AnyValue) -> None:
        """Refuse a local name of a function."""
        del source, node
        self.require_held(name, value)

    def require_held(self, name: str, value: AnyValue) -> None:
        """Refuse a value that cannot be protected, such as an iterator."""
        once = iterator_in(value)
        if once is not None:
            raise Failure(IteratorUsed(kind=once.kind, name=name))
        array = None if self.anew else _array_in(value)
        if array is not None:
            what = f"`{name}`, an array of the class `{type(array).__name__}`,"
            if type(array) is np.ndarray:
                what = f"`{name}`, an array of objects,"
            raise Failure(Unsupported(what=what, rewrite="make it an array of numbers"))


def _array_in(value: AnyValue) -> NDArray | None:
    """Return an array of objects, or of a subclass, that a value is or holds."""
    if is_known_array(value):
        return value if type(value) is not np.ndarray or value.dtype.hasobject else None
    return next((each for part in parts(value) if (each := _array_in(part)) is not None), None)


@dataclass(frozen=True)
class _VariableWrites:
    """The writes that concern a variable."""

    rebinding: tuple[Write, ...]
    writes: tuple[Write, ...]
    """The writes to the variable, and to its aliases."""
    held: tuple[Write, ...]
    """The writes to the items of the container that it is bound to."""
    bound: Label | None
    asked: frozenset[str]


@dataclass(frozen=True)
class ProjectGuard(Guard):
    """Also refuses captures that files of a project certainly write, for one module."""

    writes: Writes = field(kw_only=True)
    searched: set[str] = field(kw_only=True)
    """The questions asked about all files; see `Files.answer_to`."""

    def admit(self, module: Module | None, name: str, value: AnyValue) -> None:
        """Refuse a name of a module that something writes."""
        self.require_held(name, value)
        names = None if module is None else self.writes.sources.names(module.source.path)
        if names is not None:
            if isinstance(value, _LIBRARY):
                self._refuse_patched(names, name, getattr(value, "name", ""))
            self._refuse_variable(names, None, name, value)

    def of_builtin(self, module: Module, name: str) -> None:
        """Refuse a Python builtin that something rebinds."""
        own = self.writes.within(module.source.path, name)
        for write in (*own, *self._patches("builtins")):
            if write.name in (name, f"builtins.{name}") and write.action == BIND:
                raise _rebound(name, write)

    def of_class(self, source: Source, node: ast.ClassDef, name: str, value: AnyValue) -> None:
        """Refuse an attribute of a class that something writes."""
        names = self.writes.sources.names(source.path)
        if names is None or names.source is not source:
            return
        outer: ast.AST | None = node
        inner = [node.name]
        while isinstance(outer := names.uses.parents.get(outer or node), ast.ClassDef):
            inner.insert(0, outer.name)
        place = names.uses.owner(node, node.name) if len(inner) == 1 else None
        steps = tuple(Access("attribute", each) for each in (*inner[1:], name))
        shown = f"{node.name}.{name}"
        self.searched.add(f"writes {inner[0]}")
        for write in self.writes.of(place or source.path, inner[0]):
            if write.steps == steps and write.action == BIND:
                raise _rebound(shown, write)
            if write.steps[: len(steps)] == steps and kind_of(value) is not None:
                rest = Write(
                    *(write.place, write.name, write.steps[len(steps) :], write.action),
                    *(write.span, write.text, write.at_import),
                )
                if rest.into(value):
                    raise _written(shown, write, None)

    def of_function(self, source: Source, node: FunctionNode, name: str, value: AnyValue) -> None:
        """Refuse a local name that code outside the kernel writes."""
        self.require_held(name, value)
        names = self.writes.sources.names(source.path)
        if names is not None and names.source is source:
            self._refuse_variable(names, node, name, value)

    def _refuse_variable(
        self, names: Names, scope: ScopeNode | None, name: str, value: AnyValue
    ) -> None:
        key = names, scope, name
        known: _VariableWrites | None = self.writes.known.get(key)
        if known is None:
            known = self.writes.known[key] = self._written(names, scope, name)
        self.searched.update(known.asked)
        for write in known.rebinding:
            raise _rebound(name, write)
        for write in known.writes:
            if write.into(value):
                raise _written(name, write, known.bound)
        for write in known.held if kind_of(value) is not None else ():
            if any(map(write.into, _all_parts(value))):
                raise _written(name, write, known.bound)

    def _written(self, names: Names, scope: ScopeNode | None, name: str) -> _VariableWrites:
        """Return the writes to a variable, to its aliases, and to the items that it holds."""
        bound = names.bindings(scope, name)
        label = None
        if bound and not isinstance(bound[0], ast.arguments):
            label = Label(names.source.span(bound[0]), f"`{name}` is bound here")
        own = Reference(names.place if scope is None else scope, name)
        refs = [own, *(each for each in names.variable(scope, name) if each != own)]
        refs = [each for each in refs if each.place != LIBRARY and not each.steps]
        found = [(ref, write) for ref in refs for write in self.writes.of(ref.place, ref.name)]
        held = [*_held(names, bound)]
        return _VariableWrites(
            tuple(write for ref, write in found if write.rebinds() and not ref.is_alias),
            tuple(write for _, write in found),
            tuple(write for ref in held for write in self.writes.of(ref.place, ref.name)),
            label,
            frozenset(f"writes {ref.name}" for ref in (*refs, *held)),
        )

    def _patches(self, library: str) -> Sequence[Write]:
        self.searched.add(f"patches {library}")
        return self.writes.patches(library)

    def _refuse_patched(self, names: Names, name: str, full: str) -> None:
        """Refuse a library object that something replaces."""
        for write in self._patches(full.partition(".")[0]) if full else ():
            owner, _, last = write.name.rpartition(".")
            is_part = f"{owner}.".startswith(f"{full}.") and last in names.uses.attributes
            if write.name == full or is_part:
                raise _rebound(name, write)


_LIBRARY = KnownModule | Marker | Meaning | StaticFunction | DType | DTypeClass


def _held(names: Names, bound: Sequence[ast.AST]) -> Iterator[Reference]:
    """Yield the variables whose objects are in the container that a name is bound to."""
    made = names.uses.parents.get(bound[0]) if len(bound) == 1 else None
    whole = made.value if isinstance(made, ast.Assign | ast.AnnAssign) else None
    waiting = [whole]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            waiting.extend(node.elts)
        elif isinstance(node, ast.Dict):
            waiting.extend(node.values)
        elif isinstance(node, ast.Call) and names.qualified(node.func) == "functools.partial":
            waiting.extend((*node.args[1:], *(each.value for each in node.keywords)))
        elif isinstance(node, ast.Name) and node is not whole:
            found = names.refs(node)
            yield from (ref for ref in found if ref.place != LIBRARY and not ref.steps)


def _all_parts(value: AnyValue) -> Iterator[AnyValue]:
    for part in parts(value):
        yield part
        yield from _all_parts(part)


def _written(name: str, write: Write, bound: Label | None) -> Failure:
    finding: Diagnostic = MutableCapture(name=name, by=f"`{write.text}`", at_import=write.at_import)
    labels = (Label(write.span, f"`{name}` is written here"), bound)
    return Failure(finding.replaced(labels=tuple(each for each in labels if each is not None)))


def _rebound(name: str, write: Write) -> Failure:
    finding: Diagnostic = MutableCapture(name=name, by=f"`{write.text}`", rebound=True)
    return Failure(finding.labelled(Label(write.span, f"`{name}` is bound anew here")))
