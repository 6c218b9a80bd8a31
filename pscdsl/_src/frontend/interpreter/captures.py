"""What a kernel sees beyond its arguments: constants, as long as nothing can write them.

A captured value is immutable, or it was made by `psc.constant`, or it is an array or container
that one fresh expression made and of which every other use in the project is on a short list (see
`harmless`).  The name that it has is bound once, and nothing binds it anew (see `rebinding`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from pscdsl._src.frontend.captures import rebinding
from pscdsl._src.frontend.captures import reflection as mentions
from pscdsl._src.frontend.captures.harmless import Harm, Harmless, is_fresh
from pscdsl._src.frontend.captures.reflection import reflection, searched_objects, stored_keywords
from pscdsl._src.frontend.captures.resolution import Module, Resolver
from pscdsl._src.frontend.modules.known import known_module
from pscdsl._src.frontend.text.source import FunctionNode, Source
from pscdsl._src.frontend.text.uses import ScopeNode, parameters, uses
from pscdsl._src.frontend.values.closed import Kind, has_keywords, iterator_in, kind_of
from pscdsl._src.frontend.values.values import EnumMember, KnownModule, Marker, StaticFunction
from pscdsl._src.language.meanings import Meaning
from pscdsl.typing.codes.purity import IteratorUsed, MutableCapture
from pscdsl.typing.diagnostics import NOWHERE, Diagnostic, Failure, Label
from pscdsl.typing.dtypes import DType
from pscdsl.typing.signatures import DTypeClass


class Captures:
    """Guards what is captured from the modules of a project; each name is looked into once."""

    def __init__(self, modules: Callable[[], Sequence[Module]]) -> None:
        self._modules = modules
        """The modules that are there by now."""
        self._known: Sequence[Module] = ()
        self._resolver = Resolver(())
        self._answers: dict[object, Answer] = {}
        self._libraries: tuple[dict[str, Harm], frozenset[str]] | None = None

    def resolver(self) -> Resolver:
        """Finds names in the modules that have been read by now."""
        modules = self._modules()
        if modules is not self._known:
            self._known = modules
            self._resolver = Resolver(modules)
            self._answers.clear()
            self._libraries = None
        return self._resolver

    def _answer(self, key: object, find: Callable[[Resolver], Diagnostic | None]) -> Answer:
        """What is wrong, worked out once, and the words that were searched for."""
        resolver = self.resolver()
        cached = self._answers.get(key)
        if cached is None:
            with resolver.asking() as asked:
                try:
                    finding = find(resolver)
                    findings: tuple[Diagnostic, ...] = () if finding is None else (finding,)
                except Failure as failure:  # a file that is not Python
                    findings = failure.diagnostics
            cached = self._answers[key] = Answer(findings, frozenset(asked))
        return cached

    def of_module(self, module: Module, name: str, value: Any) -> Answer:
        """A name of a module that may be bound anew, or whose value may be written."""
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
                origins = list(resolver.origins(module.source, name))
                found = self._module_name(resolver, module, name, value, imported=bool(origins))
                if found is not None:
                    return found
                pending.extend(origins)
        return None

    def _module_name(
        self, resolver: Resolver, module: Module, name: str, value: Any, *, imported: bool
    ) -> Diagnostic | None:
        once = iterator_in(value)
        if once is not None:
            return IteratorUsed(kind=once.kind, name=name)
        if _is_library(value):
            harm = rebinding.declared(module.source, name, ast.Global)
            harm = harm or self._library_name(resolver, module, value)
            return None if harm is None else _rebound(name, harm)
        if has_keywords(value):
            harm = stored_keywords(resolver)
            if harm is not None:
                return _written(name, module.source, None, harm)
        kind = kind_of(value)
        if kind is not None:
            found = self._value(resolver, module, None, name, value, kind, imported=imported)
            if found is not None:
                return found
        harm = _stored_parts(resolver, value)
        if harm is not None:
            return _written(name, module.source, None, harm)
        harm = rebinding.of_module(resolver, module, name, strict=kind is not None)
        return None if harm is None else _rebound(name, harm)

    def _library_name(self, resolver: Resolver, module: Module, value: Any) -> Harm | None:
        """Where the project puts something else in the place of what a library has."""
        own = getattr(value, "name", "")
        for full, harm in self._stored_in_libraries(resolver).items():
            home, _, last = full.rpartition(".")
            is_part = home == own or (home.startswith(f"{own}.") and known_module(home) is not None)
            if full == own or (is_part and last in module.text):
                return harm
        return None

    def _stored_in_libraries(self, resolver: Resolver) -> dict[str, Harm]:
        if self._libraries is None:
            with resolver.asking() as asked:
                self._libraries = dict(rebinding.library_stores(resolver)), frozenset(asked)
        resolver.asked |= self._libraries[1]
        return self._libraries[0]

    def of_builtin(self, module: Module, name: str) -> Answer:
        """A name of Python's own that the project gives to something else."""

        def find(resolver: Resolver) -> Diagnostic | None:
            harm = rebinding.declared(module.source, name, ast.Global)
            harm = harm or rebinding.stored(resolver, module, name)
            harm = harm or self._stored_in_libraries(resolver).get(f"builtins.{name}")
            return None if harm is None else _rebound(name, harm)

        return self._answer((module.place, module.module, name), find)

    def of_class(self, source: Source, node: ast.ClassDef, name: str, value: Any) -> Answer:
        """An attribute of a class that may be bound anew, or whose value may be written."""
        return self._answer(
            (node, name, *_told_apart(value)),
            lambda resolver: self._class_name(resolver, source, node, name, value),
        )

    def _class_name(
        self, resolver: Resolver, source: Source, node: ast.ClassDef, name: str, value: Any
    ) -> Diagnostic | None:
        shown = f"{node.name}.{name}"
        kind = kind_of(value)
        if kind is not None:
            made = _binding(source, node, name, resolver)
            found = _made_otherwise(resolver, source, made, kind, value)
            if found is None:
                uses_of_it = mentions.of_class(resolver, source, node, name)
                found = _harmed(resolver, uses_of_it, kind, value)
            if found is not None:
                return _written(shown, source, made, found)
        harm = rebinding.of_class(resolver, source, node, name, strict=kind is not None)
        harm = harm or _stored_parts(resolver, value)
        return None if harm is None else _rebound(shown, harm)

    def of_function(
        self, source: Source, node: FunctionNode, name: str, value: Any, *, default: bool = False
    ) -> Answer:
        """A local name that a function made before sees, and that anything else may write.

        `default`: the value is a default of the function, the same one in each of its calls.
        """

        def find(resolver: Resolver) -> Diagnostic | None:
            once = iterator_in(value)
            if once is not None:
                return IteratorUsed(kind=once.kind, name=name)
            kind = kind_of(value)
            if default:
                if kind is None:
                    return None
                harm = Harm(source.span(node).head(1), "each call, as a default is")
                return _written(name, source, None, harm)
            harm_ = rebinding.declared(source, name, ast.Nonlocal)
            if harm_ is not None:
                return _rebound(name, harm_)
            if kind is None:
                return None
            return self._value(resolver, None, node, name, value, kind, source=source)

        return self._answer((node, name, default, *_told_apart(value)), find)

    def _value(
        self,
        resolver: Resolver,
        module: Module | None,
        scope: FunctionNode | None,
        name: str,
        value: Any,
        kind: Kind,
        *,
        source: Source | None = None,
        imported: bool = False,
    ) -> Diagnostic | None:
        """What is wrong with a value that can be changed, and that a name of a scope has."""
        if source is None:
            assert module is not None
            source = module.source
        made = _binding(source, scope, name, resolver)
        found = None if imported else _made_otherwise(resolver, source, made, kind, value)
        found = found or searched_objects(resolver)
        if found is None and module is not None:
            found = _harmed(resolver, mentions.of_module(resolver, module, name), kind, value)
        elif found is None:
            found = _harmed(resolver, mentions.of_name(resolver, source, scope, name), kind, value)
            found = found or reflection(resolver, source, strict=True)
        return None if found is None else _written(name, source, made, found)


def _binding(
    source: Source, scope: ScopeNode | None, name: str, resolver: Resolver
) -> ast.expr | None:
    """The expression of the only statement that binds a name, if it is a plain assignment."""
    if isinstance(scope, FunctionNode) and name in parameters(scope):
        return None
    stores = resolver.stores(source, scope, name)
    if len(stores) != 1:
        return None
    parent = uses(source).parents.get(stores[0])
    if isinstance(parent, ast.Assign) and parent.targets == [stores[0]]:
        return parent.value
    if isinstance(parent, ast.AnnAssign) and parent.target is stores[0]:
        return parent.value
    return None


def _made_otherwise(
    resolver: Resolver, source: Source, made: ast.expr | None, kind: Kind, value: Any
) -> Harm | None:
    """Why a value may be known by others from the beginning."""
    if kind is Kind.DEEP:
        holder = "an array of its class" if isinstance(value, np.ndarray) else "what it holds"
        return Harm(source.span(made), f"whoever has {holder}") if made is not None else _NOWHERE
    if made is None:
        return _NOWHERE
    if is_fresh(resolver, source, made, kind):
        return None
    return Harm(source.span(made), f"whoever shares `{source.text_of(made)}`")


_NOWHERE = Harm(NOWHERE, "whoever made it")


def _stored_parts(resolver: Resolver, value: Any) -> Harm | None:
    """Where what cannot be written may be made to show something else."""
    attributes: tuple[str, ...] = ()
    if isinstance(value, EnumMember | Enum):
        attributes = "_value_", "_name_"
    elif isinstance(value, np.ndarray):
        attributes = "shape", "strides", "dtype"
    found = (rebinding.stored(resolver, None, attribute) for attribute in attributes)
    return next((harm for harm in found if harm is not None), None)


def _harmed(
    resolver: Resolver, found: Iterable[mentions.Mention], kind: Kind, value: Any
) -> Harm | None:
    """The first use of a value that is not on the list."""
    judge = Harmless(resolver, kind, value.ndim if isinstance(value, np.ndarray) else None)
    for source, node in found:
        harm = judge.harm(source, node)
        if harm is not None:
            return harm
    return None


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

    anew: bool = False
    """Whether what is captured is looked up again at each call: then it may change in between."""

    def admit(self, module: Module, name: str, value: Any) -> None:
        """Refuse a name of a module that may be written."""
        if not self._is_new(name, value):
            self._refuse(self.captures.of_module(module, name, value))

    def of_builtin(self, module: Module, name: str) -> None:
        """Refuse a name of Python's own that may stand for something else."""
        if not self.anew:
            self._refuse(self.captures.of_builtin(module, name))

    def of_class(self, source: Source, node: ast.ClassDef, name: str, value: Any) -> None:
        """Refuse an attribute of a class that may be written."""
        if not self._is_new(name, value):
            self._refuse(self.captures.of_class(source, node, name, value))

    def of_function(
        self, source: Source, node: FunctionNode, name: str, value: Any, *, default: bool = False
    ) -> None:
        """Refuse a local name or default that something beside the kernel may write."""
        if not self._is_new(name, value):
            self._refuse(self.captures.of_function(source, node, name, value, default=default))

    def _is_new(self, name: str, value: Any) -> bool:
        """Whether a value is looked up for one call alone, and can be read again."""
        if self.anew:
            once = iterator_in(value)
            if once is not None:
                raise Failure(IteratorUsed(kind=once.kind, name=name))
        return self.anew

    def _refuse(self, answer: Answer) -> None:
        self.searched.update(answer.searched)
        if answer.findings:
            raise Failure(*answer.findings)


def _told_apart(value: Any) -> tuple[object, ...]:
    """What of a value decides the answer: a name may be bound anew to one of another kind."""
    once = iterator_in(value)
    kind: type[Any] = value.__class__
    return kind, kind_of(value), _is_library(value), None if once is None else once.kind


def _is_library(value: Any) -> bool:
    """Whether this is a name of a known module, or such a module."""
    return isinstance(value, KnownModule | Marker | Meaning | StaticFunction | DType | DTypeClass)


def _written(name: str, source: Source, made: ast.expr | None, harm: Harm) -> Diagnostic:
    bound = "" if made is None else source.text_of(made)
    place = None if made is None else source.span(made)
    finding = MutableCapture(name=name, by=harm.by, bound=bound, bound_at=place, surely=harm.sure)
    how = "is" if harm.sure else "may be"
    return _labelled(finding, harm, f"`{name}` {how} written here")


def _rebound(name: str, harm: Harm) -> Diagnostic:
    finding = MutableCapture(name=name, by=harm.by, rebound=True)
    return _labelled(finding, harm, f"`{name}` may be bound anew here")


def _labelled(finding: Diagnostic, harm: Harm, says: str) -> Diagnostic:
    return finding if harm.span == NOWHERE else finding.labelled(Label(harm.span, says))
