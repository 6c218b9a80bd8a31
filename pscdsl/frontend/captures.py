"""What a kernel sees beyond its arguments: constants, as long as nothing writes them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pscdsl.frontend.aliasing import Tracker
from pscdsl.frontend.owners import hold_class, hold_module
from pscdsl.frontend.paths import EVERY, Holder, Kind, Write
from pscdsl.frontend.resolution import Module, Resolver
from pscdsl.frontend.source import FunctionNode, Source, targets
from pscdsl.frontend.uses import uses
from pscdsl.frontend.values import (
    KnownModule,
    MapValue,
    Marker,
    Partial,
    RecordValue,
    StaticFunction,
    VectorValue,
)
from pscdsl.meanings import Meaning
from pscdsl.typing.codes.limits_capture import CaptureEscapes
from pscdsl.typing.codes.purity import MutableCapture
from pscdsl.typing.diagnostics import Diagnostic, Failure, Label
from pscdsl.typing.dtypes import DType
from pscdsl.typing.signatures import DTypeClass

_COMPUTED = "setattr delattr __dict__ __setattr__ __delattr__ globals vars locals exec eval".split()
"""Words without which no attribute is stored under a computed name."""
_FUNCTION_PARTS = "__defaults__ __kwdefaults__ __code__ __globals__ __wrapped__ __closure__".split()


class Captures:
    """Guards what is captured from the modules of a project; each name is looked into once."""

    def __init__(self, modules: Callable[[], Sequence[Module]]) -> None:
        self._modules = modules
        """The modules that have been read by now."""
        self._count = 0
        self._resolver = Resolver(())
        self._answers: dict[object, Diagnostic | None] = {}
        self._rebound: dict[object, Tracker] = {}

    def resolver(self) -> Resolver:
        """Finds names in the modules that have been read by now."""
        modules = self._modules()
        if len(modules) != self._count:
            self._count = len(modules)
            self._resolver = Resolver(modules)
            self._answers.clear()
            self._rebound.clear()
        return self._resolver

    def admit(self, module: Module, name: str, value: Any) -> None:
        """Refuse a name that the project writes: in its module, or where it is imported from."""
        seen: set[tuple[int, str]] = set()
        pending = [(module, name)]
        while pending:
            module, name = pending.pop()
            if (id(module), name) not in seen:
                seen.add((id(module), name))
                self.of_module(module, name, value)
                pending.extend(self.resolver().origins(module.source, name))

    def of_module(self, module: Module, name: str, value: Any) -> None:
        """Refuse a name of a module that the project rebinds, or whose value it writes."""
        resolver = self.resolver()
        key = (id(module.source), name)
        if key not in self._answers:
            self._answers[key] = self._module_name(resolver, module, name, value)
        self._refuse(key)

    def _module_name(
        self, resolver: Resolver, module: Module, name: str, value: Any
    ) -> Diagnostic | None:
        declared = _declared_outer(module.source, None, name, ast.Global)
        if declared is not None:
            return _finding(name, value, Write(module.source.span(declared)))
        if self._may_be_stored(resolver, module, name):
            tracker = self._rebound.get(module)
            if tracker is None:
                tracker = self._rebound[module] = Tracker(resolver)
                hold_module(tracker, module, (EVERY,))
                tracker.run()
            found = tracker.rebound.get(name)
            if found is None and not _is_library(value):
                found = tracker.rebound_by_computed_names
            if found is not None:
                return _finding(name, value, found)
        return self._value(resolver, Holder(module.source, None, name), name, value)

    def _may_be_stored(self, resolver: Resolver, module: Module, name: str) -> bool:
        """Whether any text could store an attribute of this name; cheap, and mostly false."""
        stored = re.compile(rf"\.\s*{re.escape(name)}\b(?!\s*[(\[.])")
        own = any(word in module.source.text for word in ("globals", "vars", "exec", "eval"))
        if own or any(stored.search(each.source.text) for each in resolver.naming(name)):
            return True
        last = module.module.rpartition(".")[2]
        naming = {id(each) for each in resolver.naming(last, "modules", "import_module")}
        return any(id(each) in naming for each in resolver.naming(*_COMPUTED))

    def of_class(self, source: Source, node: ast.ClassDef, name: str, value: Any) -> None:
        """Refuse an attribute of a class that the project rebinds, or whose value it writes."""
        resolver = self.resolver()
        key = (node, name)
        if key not in self._answers:
            self._answers[key] = self._class_name(resolver, source, node, name, value)
        self._refuse(key)

    def _class_name(
        self, resolver: Resolver, source: Source, node: ast.ClassDef, name: str, value: Any
    ) -> Diagnostic | None:
        shown = f"{node.name}.{name}"
        holder = Holder(source, uses(source).owner(node, node.name), node.name)
        tracker = self._rebound.get(node)
        if tracker is None:
            tracker = self._rebound[node] = Tracker(resolver)
            hold_class(tracker, holder, EVERY)
            tracker.run()
        found = tracker.rebound.get(name, tracker.rebound_by_computed_names)
        kind = kind_of(value)
        if found is None and kind is not None and kind is not Kind.FUNCTION:
            follower = Tracker(resolver, kind)
            hold_class(follower, holder, f".{name}")
            follower.hold(Holder(source, node, name), ())
            follower.run()
            found = follower.written or follower.may_be_written
        return None if found is None else _finding(shown, value, found)

    def of_function(self, source: Source, node: FunctionNode, name: str, value: Any) -> None:
        """Refuse a local name that a function made before sees, if anything else writes it."""
        resolver = self.resolver()
        key = (node, name)
        if key not in self._answers:
            declared = _declared_outer(source, node, name, ast.Nonlocal)
            if declared is not None:
                found: Diagnostic | None = _finding(name, value, Write(source.span(declared)))
            else:
                found = self._value(resolver, Holder(source, node, name), name, value)
            self._answers[key] = found
        self._refuse(key)

    def _value(
        self, resolver: Resolver, holder: Holder, name: str, value: Any
    ) -> Diagnostic | None:
        """What is wrong with a value that names hold: that it is changed, or may be."""
        kind = kind_of(value)
        if kind is None or (kind is Kind.FUNCTION and not resolver.naming(*_FUNCTION_PARTS)):
            return None
        tracker = Tracker(resolver, kind)
        tracker.hold(holder, ())
        tracker.run()
        found = tracker.written or tracker.may_be_written
        return None if found is None else _finding(name, value, found)

    def _refuse(self, key: object) -> None:
        finding = self._answers[key]
        if finding is not None:
            raise Failure(finding)


def is_mutable(value: Any) -> bool:
    """Whether a value, or something in it, can be changed in place."""
    if isinstance(value, list | dict | set | np.ndarray):
        return True
    if isinstance(value, tuple):
        return any(map(is_mutable, value))  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, RecordValue):
        return any(map(is_mutable, value.fields.values()))
    if isinstance(value, MapValue):
        return any(map(is_mutable, value.items.values()))
    if isinstance(value, VectorValue):
        return any(map(is_mutable, value.items))
    if isinstance(value, Partial):
        return any(map(is_mutable, (*value.args, *value.kwargs.values())))
    return False


def kind_of(value: Any) -> Kind | None:
    """How an object can be changed; None if it cannot."""
    if isinstance(value, np.ndarray):
        return Kind.ARRAY
    if isinstance(value, list | dict | set):
        items = value.values() if isinstance(value, dict) else value
        return Kind.DEEP if any(map(is_mutable, items)) else Kind.FLAT
    if is_mutable(value):
        return Kind.DEEP
    return Kind.FUNCTION if hasattr(value, "node") else None


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
