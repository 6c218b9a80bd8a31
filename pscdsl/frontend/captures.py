"""What a kernel sees beyond its arguments: constants, as long as nothing writes them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from pscdsl.frontend.aliasing import Tracker
from pscdsl.frontend.owners import hold_class, hold_module
from pscdsl.frontend.paths import EVERY, FUNCTION_PARTS, Holder, Kind, Write
from pscdsl.frontend.resolution import Module, Resolver
from pscdsl.frontend.source import FunctionNode, Source, targets
from pscdsl.frontend.uses import uses
from pscdsl.frontend.values import (
    KnownModule,
    MapValue,
    Marker,
    Once,
    Partial,
    RecordValue,
    StaticFunction,
    VectorValue,
)
from pscdsl.meanings import Meaning
from pscdsl.narrowing import is_dict, is_sequence, is_tuple
from pscdsl.typing.codes.limits_capture import CaptureEscapes
from pscdsl.typing.codes.purity import MutableCapture
from pscdsl.typing.codes.purity_state import IteratorUsed
from pscdsl.typing.diagnostics import Diagnostic, Failure, Label
from pscdsl.typing.dtypes import DType
from pscdsl.typing.signatures import DTypeClass

T = TypeVar("T", bound=Module)
_COMPUTED = "setattr delattr __dict__ __setattr__ __delattr__ globals vars locals exec eval".split()
"""Words without which no attribute is stored under a computed name."""


class Captures:
    """Guards what is captured from the modules of a project; each name is looked into once."""

    def __init__(self, modules: Callable[[], Sequence[Module]]) -> None:
        self._modules = modules
        """The modules that are there by now."""
        self._known: Sequence[Module] = ()
        self._resolver = Resolver(())
        self._answers: dict[object, Answer] = {}
        self._rebound: dict[object, tuple[Tracker, frozenset[str]]] = {}

    def resolver(self) -> Resolver:
        """Finds names in the modules that have been read by now."""
        modules = self._modules()
        if modules is not self._known:
            self._known = modules
            self._resolver = Resolver(modules)
            self._answers.clear()
            self._rebound.clear()
        return self._resolver

    def _answer(self, key: object, find: Callable[[Resolver], Diagnostic | None]) -> Answer:
        """What is wrong, worked out once, and the words that were searched for."""
        resolver = self.resolver()
        found = self._answers.get(key)
        if found is None:
            with resolver.asking() as asked:
                try:
                    finding = find(resolver)
                    findings: tuple[Diagnostic, ...] = () if finding is None else (finding,)
                except Failure as failure:  # a file that is not Python
                    findings = failure.diagnostics
            found = self._answers[key] = Answer(findings, frozenset(asked))
        return found

    def of_module(self, module: Module, name: str, value: Any) -> Answer:
        """A name of a module that the project rebinds, or whose value it writes."""
        return self._answer(
            (module.place, module.module, name, *_told_apart(value)),
            lambda resolver: self._imported_name(resolver, module, name, value),
        )

    def _imported_name(
        self, resolver: Resolver, module: Module, name: str, value: Any
    ) -> Diagnostic | None:
        """What is wrong with a name in its module, or where it is imported from."""
        seen: set[tuple[str, str]] = set()
        pending = [(module, name)]
        while pending:
            module, name = pending.pop()
            if (module.place, name) not in seen:
                seen.add((module.place, name))
                found = self._module_name(resolver, module, name, value)
                if found is not None:
                    return found
                pending.extend(resolver.origins(module.source, name))
        return None

    def _module_name(
        self, resolver: Resolver, module: Module, name: str, value: Any
    ) -> Diagnostic | None:
        declared = _declared_outer(module.source, None, name, ast.Global)
        if declared is not None:
            return _finding(name, value, Write(module.source.span(declared)))
        if _is_library(value):
            return None
        if self._may_be_stored(resolver, module, name):
            tracker = self._followed(
                resolver, module.place, lambda new: hold_module(new, module, (EVERY,))
            )
            found = tracker.rebound.get(name, tracker.rebound_by_computed_names)
            if found is not None:
                return _finding(name, value, found)
        return self._value(resolver, Holder(module.source, None, name), name, value)

    def _may_be_stored(self, resolver: Resolver, module: Module, name: str) -> bool:
        """Whether any text could store an attribute of this name; cheap, and mostly false."""
        if any(word in module.text for word in ("globals", "vars", "exec", "eval")):
            return True
        last = module.module.rpartition(".")[2]
        resolver.asked |= {f"stored {name}", f"computed {last}"}
        return bool(stored(resolver.texts_with, name) or computed(resolver.texts_with, last))

    def _followed(
        self, resolver: Resolver, key: object, start: Callable[[Tracker], None]
    ) -> Tracker:
        """What is stored in the attributes of a module or class, worked out once."""
        found = self._rebound.get(key)
        if found is None:
            tracker = Tracker(resolver)
            with resolver.asking() as asked:
                start(tracker)
                tracker.run()
            found = self._rebound[key] = tracker, frozenset(asked)
        resolver.asked |= found[1]
        return found[0]

    def of_class(self, source: Source, node: ast.ClassDef, name: str, value: Any) -> Answer:
        """An attribute of a class that the project rebinds, or whose value it writes."""
        return self._answer(
            (node, name, *_told_apart(value)),
            lambda resolver: self._class_name(resolver, source, node, name, value),
        )

    def _class_name(
        self, resolver: Resolver, source: Source, node: ast.ClassDef, name: str, value: Any
    ) -> Diagnostic | None:
        shown = f"{node.name}.{name}"
        holder = Holder(source, uses(source).owner(node, node.name), node.name)
        tracker = self._followed(resolver, node, lambda new: hold_class(new, holder, EVERY))
        found = tracker.rebound.get(name, tracker.rebound_by_computed_names)
        kind = kind_of(value)
        if found is None and kind is not None and kind is not Kind.FUNCTION:
            follower = Tracker(resolver, kind)
            hold_class(follower, holder, f".{name}")
            follower.hold(Holder(source, node, name), ())
            follower.run()
            found = follower.written or follower.may_be_written
        return None if found is None else _finding(shown, value, found)

    def of_function(
        self, source: Source, node: FunctionNode, name: str, value: Any, *, default: bool = False
    ) -> Answer:
        """A local name that a function made before sees, and that anything else writes.

        `default`: the value is a default of the function, the same one in each of its calls.
        """

        def find(resolver: Resolver) -> Diagnostic | None:
            declared = _declared_outer(source, node, name, ast.Nonlocal)
            if declared is not None:
                return _finding(name, value, Write(source.span(declared)))
            confined = None if default else node
            return self._value(resolver, Holder(source, node, name), name, value, confined)

        return self._answer((node, name, default, *_told_apart(value)), find)

    def _value(
        self,
        resolver: Resolver,
        holder: Holder,
        name: str,
        value: Any,
        confined: FunctionNode | None = None,
    ) -> Diagnostic | None:
        """What is wrong with a value that names hold: that it is changed, or may be."""
        once = _iterator_in(value)
        if once is not None:
            return IteratorUsed(kind=once.kind, name=name)
        kind = kind_of(value)
        if kind is None or (kind is Kind.FUNCTION and not resolver.naming(*FUNCTION_PARTS)):
            return None
        tracker = Tracker(resolver, kind)
        tracker.confined = confined
        tracker.hold(holder, ())
        tracker.run()
        found = tracker.written or tracker.may_be_written
        return None if found is None else _finding(name, value, found)


@dataclass(frozen=True)
class Answer:
    """What is wrong with a captured name, if anything, and what was searched for to know it."""

    findings: tuple[Diagnostic, ...]
    searched: frozenset[str]


@dataclass(frozen=True)
class Guard:
    """Refuses what is written, for the sake of one module."""

    captures: Captures
    searched: set[str] = field(default_factory=set[str])
    """The words whose occurrences in other files decided."""

    def admit(self, module: Module, name: str, value: Any) -> None:
        """Refuse a name of a module that the project writes."""
        self._refuse(self.captures.of_module(module, name, value))

    def of_class(self, source: Source, node: ast.ClassDef, name: str, value: Any) -> None:
        """Refuse an attribute of a class that the project writes."""
        self._refuse(self.captures.of_class(source, node, name, value))

    def of_function(
        self, source: Source, node: FunctionNode, name: str, value: Any, *, default: bool = False
    ) -> None:
        """Refuse a local name or default of a function that something beside the kernel writes."""
        self._refuse(self.captures.of_function(source, node, name, value, default=default))

    def _refuse(self, answer: Answer) -> None:
        self.searched.update(answer.searched)
        if answer.findings:
            raise Failure(*answer.findings)


def stored(texts: Callable[..., list[T]], name: str) -> list[T]:
    """The texts that may assign to an attribute of this name."""
    pattern = re.compile(rf"\.\s*{re.escape(name)}\b(?!\s*[(\[.])")
    return [each for each in texts(name) if pattern.search(each.text)]


def computed(texts: Callable[..., list[T]], module: str) -> list[T]:
    """The texts that may assign to attributes of a module by names that they compute."""
    naming = {each.place for each in texts(module, "modules", "import_module")}
    return [each for each in texts(*_COMPUTED) if each.place in naming]


def is_mutable(value: Any) -> bool:
    """Whether a value, or something in it, can be changed in place."""
    if isinstance(value, list | dict | set | np.ndarray | Once):
        return True
    if is_tuple(value):
        return any(map(is_mutable, value))
    if isinstance(value, RecordValue):
        return any(map(is_mutable, value.fields.values()))
    if isinstance(value, MapValue):
        return any(map(is_mutable, value.items.values()))
    if isinstance(value, VectorValue):
        return any(map(is_mutable, value.items))
    if isinstance(value, Partial):
        return any(map(is_mutable, (*value.args, *value.kwargs.values())))
    return False


def _iterator_in(value: Any) -> Once | None:
    if isinstance(value, Once):
        return value
    parts: Sequence[Any] = ()
    if is_sequence(value):
        parts = value
    elif is_dict(value):
        parts = list(value.values())
    elif isinstance(value, RecordValue):
        parts = list(value.fields.values())
    elif isinstance(value, Partial):
        parts = (*value.args, *value.kwargs.values())
    return next((once for each in parts if (once := _iterator_in(each)) is not None), None)


def kind_of(value: Any) -> Kind | None:
    """How an object can be changed; None if it cannot."""
    if isinstance(value, np.ndarray):
        return Kind.ARRAY
    if is_dict(value):
        return Kind.DEEP if any(map(is_mutable, value.values())) else Kind.FLAT
    if is_sequence(value) and isinstance(value, list):
        return Kind.DEEP if any(map(is_mutable, value)) else Kind.FLAT
    if isinstance(value, set):
        return Kind.FLAT
    if is_mutable(value):
        return Kind.DEEP
    return Kind.FUNCTION if hasattr(value, "node") else None


def _told_apart(value: Any) -> tuple[object, ...]:
    """What of a value decides the answer: a name may be bound anew to one of another kind."""
    once = _iterator_in(value)
    kind: type[Any] = value.__class__
    return kind, kind_of(value), _is_library(value), None if once is None else once.kind


def _is_library(value: Any) -> bool:
    """Whether this is a name of a known module, or such a module."""
    return isinstance(value, KnownModule | Marker | Meaning | StaticFunction | DType | DTypeClass)


def _declared_outer(
    source: Source,
    scope: FunctionNode | None,
    name: str,
    kind: type[ast.Global] | type[ast.Nonlocal],
) -> ast.AST | None:
    """The `global` or `nonlocal` by which a function rebinds a name of an outer scope."""
    if kind.__name__.lower() not in source.text:
        return None
    index = uses(source)
    for each in index.outer:
        if not isinstance(each, kind) or name not in each.names:
            continue
        function = index.function_of(each)
        if isinstance(each, ast.Nonlocal) and (
            function is None or index.owner(function, name) is not scope
        ):
            continue
        body: Sequence[ast.stmt] = () if function is None else getattr(function, "body", ())
        if function is None or any(name in targets(statement) for statement in body):
            return each
        if any(
            isinstance(part, ast.Name) and part.id == name and not isinstance(part.ctx, ast.Load)
            for statement in body
            for part in ast.walk(statement)
        ):
            return each
    return None


_KINDS: dict[str, str] = {"list": "a list", "dict": "a dict", "ndarray": "an array"}


def _finding(name: str, value: Any, write: Write) -> Diagnostic:
    if write.passed_to:
        label = Label(write.span, f"`{name}` may be written here")
        return CaptureEscapes(name=name, passed_to=write.passed_to).labelled(label)
    kind = _KINDS.get(type(value).__name__, "a variable")
    place = str(write.span)
    finding = MutableCapture(name=name, kind=kind, where=place)
    return finding.labelled(Label(write.span, f"`{name}` is written here"))
