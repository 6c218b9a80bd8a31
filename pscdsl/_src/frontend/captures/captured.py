"""What a kernel sees beyond its arguments: constants, as long as nothing can write them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from pscdsl._src.frontend.captures import reflection as mentions
from pscdsl._src.frontend.captures.harmless import Harm, Harmless, is_fresh
from pscdsl._src.frontend.captures.reflection import (
    called_name,
    is_instance,
    only_read,
    reflection,
    searched_objects,
    stored_keywords,
)
from pscdsl._src.frontend.captures.resolution import WORD, Asked, Module, Resolver
from pscdsl._src.frontend.modules.known import known_module
from pscdsl._src.frontend.purity import Kind, has_keywords, iterator_in, kind_of
from pscdsl._src.frontend.text.bindings import ScopeNode, parameters, uses
from pscdsl._src.frontend.text.source import FunctionNode, Source
from pscdsl._src.frontend.values import EnumMember, KnownModule, Marker, StaticFunction
from pscdsl._src.language.meanings import Meaning
from pscdsl.typing.codes.purity import IteratorUsed, MutableCapture
from pscdsl.typing.diagnostics import NOWHERE, Diagnostic, Failure, Label
from pscdsl.typing.dtypes import DType
from pscdsl.typing.signatures import DTypeClass

# Whether anything may bind a captured name anew, or put another object in a class or library.
#
# In the module itself nothing reaches names by reflection (see `reflection`).  In the other modules
# of the project stores are read exactly: to attributes of this name, by `setattr`, by what patches,
# and through the namespace of the module.


_SETTERS = frozenset(
    "setattr delattr __setattr__ __delattr__ setitem delitem __setitem__ __delitem__ object "
    "setdefault".split()
)
"""Functions that store under a name that is given as a string."""
_PATCH = ("attr", "mock", "patch", "setitem")
"""What the names of functions have in them that set what a dotted string names."""


def declared(source: Source, name: str, kind: type[ast.Global] | type[ast.Nonlocal]) -> Harm | None:
    """The `global` or `nonlocal` by which a function rebinds a name."""
    if kind.__name__.lower() not in source.text:
        return None
    for each in uses(source).outer:
        if isinstance(each, kind) and name in each.names:
            return Harm(source.span(each), f"`{source.text_of(each)}`")
    return None


def of_module(resolver: Resolver, module: Module, name: str, *, strict: bool) -> Harm | None:
    """What may bind a name of a module anew.

    `strict`: for a value that can be changed, of which reading the namespace counts too.
    """
    own = module.source
    found = declared(own, name, ast.Global) or _reflecting(resolver, own, strict)
    found = found or stored(resolver, module, name)
    key = "by module", module.place, module.module, strict
    return found or resolver.once(key, lambda: _by_module(resolver, module, strict))


def _reflecting(resolver: Resolver, source: Source, strict: bool) -> Harm | None:
    """Where a module reaches names in ways that the text does not show."""
    key = "reflection", source, strict
    return resolver.once(key, lambda: reflection(resolver, source, strict=strict))


def of_class(
    resolver: Resolver, source: Source, node: ast.ClassDef, name: str, *, strict: bool
) -> Harm | None:
    """What may bind an attribute of a class anew."""
    found = _reflecting(resolver, source, strict) or stored(resolver, None, name)
    return found or _class_given_away(resolver, source, node)


def stored(resolver: Resolver, module: Module | None, name: str) -> Harm | None:
    """Where an attribute of this name is stored, other than of an instance or another module."""
    for other in _that_may_store(resolver, name):
        source = other.source
        for node in _stores(resolver, source, module, name):
            if not resolver.in_kernel(source, node):
                return Harm(source.span(node), f"`{source.text_of(node)}`")
    return None


def _that_may_store(resolver: Resolver, name: str) -> list[Asked]:
    resolver.asked.add(f"stored {name}")
    return [resolver.modules[each.place] for each in resolver.storing(name)]


def _stores(
    resolver: Resolver, source: Source, module: Module | None, name: str
) -> Iterator[ast.AST]:
    index = uses(source)
    for node in index.attributes.get(name, ()):
        if isinstance(node.ctx, ast.Load):
            continue
        if module is None and isinstance(node.value, ast.Name) and node.value.id == "cls":
            yield node
        elif _may_be_of(resolver, source, node.value, module):
            yield _statement(source, node)
    for function in ("exec", "eval"):
        for called in index.names.get(function, ()):
            call = index.parents.get(called)
            if isinstance(call, ast.Call) and name in WORD.findall(source.text_of(call)):
                yield call
    for string in index.strings.get(name, ()):
        yield from _by_string(resolver, source, module, string)
    if module is not None:
        full = f"{module.module}.{name}"
        for text, strings in index.strings.items():
            if (
                text == full
                or (full.endswith(f".{text}") and "." in text)
                or text.endswith(f".{full}")
            ):
                for string in strings:
                    call = index.parents.get(string)
                    if isinstance(call, ast.Call) and _patches(call):
                        yield call


def _statement(source: Source, node: ast.expr) -> ast.AST:
    """The assignment that stores into an attribute, if it is one alone."""
    parent = uses(source).parents.get(node)
    plain = ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete
    return node if parent is None or not isinstance(parent, plain) else parent


def _patches(call: ast.Call) -> bool:
    function = called_name(call)
    return any(word in function for word in _PATCH) and function not in ("getattr", "hasattr")


def _by_string(
    resolver: Resolver, source: Source, module: Module | None, string: ast.Constant
) -> Iterator[ast.AST]:
    """A call that stores under the name that a string is."""
    parent = uses(source).parents.get(string)
    if isinstance(parent, ast.Call) and string in parent.args:
        function = called_name(parent)
        if function in _SETTERS or (_patches(parent) and function != "attrgetter"):
            owner: ast.expr | None = parent.args[0]
            if owner is string and isinstance(parent.func, ast.Attribute):
                owner = parent.func.value
            if owner is not string and _may_be_of(resolver, source, owner, module):
                yield parent
    if isinstance(parent, ast.Subscript) and not isinstance(parent.ctx, ast.Load):
        if _is_namespace(resolver, source, parent.value, module):
            yield parent


def _is_namespace(
    resolver: Resolver, source: Source, node: ast.expr, module: Module | None
) -> bool:
    """Whether an expression may be the namespace of a module."""
    if isinstance(node, ast.Call) and called_name(node) == "vars":
        return not node.args or _may_be_of(resolver, source, node.args[0], module)
    if isinstance(node, ast.Attribute):
        if node.attr == "__dict__":
            return _may_be_of(resolver, source, node.value, module)
        return node.attr in ("__globals__", "f_globals", "f_locals")
    if isinstance(node, ast.Call) and called_name(node) in ("globals", "locals"):
        return module is None or source.path == module.place
    return False


def _may_be_of(
    resolver: Resolver, source: Source, owner: ast.expr | None, module: Module | None
) -> bool:
    """Whether an object whose attribute is stored may be the module, or a class."""
    if owner is None or is_instance(resolver, source, owner):
        return False
    qualified = resolver.qualified(source, owner)
    if qualified is None:
        return True
    place = resolver.project_name(qualified)
    if place is None:  # of a library, or one of Python's own
        return False
    if module is None:
        return True
    return place[1] != "" or place[0].place == module.place


def _by_module(resolver: Resolver, module: Module, strict: bool) -> Harm | None:
    """What reaches the namespace of a module from another one, or its names one by one.

    `strict`: the module is used for nothing but its attributes.
    """
    last = module.module.rpartition(".")[2]
    for other in resolver.naming(last):
        if other.place == module.place:
            continue
        source = other.source
        for node in _expressions_of(resolver, source, module):
            found = _misused(resolver, source, node, strict)
            if found is not None and not resolver.in_kernel(source, node):
                return Harm(source.span(found), f"`{source.text_of(found)}`")
    return None


def _expressions_of(resolver: Resolver, source: Source, module: Module) -> Iterator[ast.expr]:
    """The expressions that are a module."""
    index = uses(source)
    last = module.module.rpartition(".")[2]
    known_as = {last} | {
        alias.asname
        for node in index.imports
        for alias in node.names
        if alias.asname and alias.name.rpartition(".")[2] == last
    }
    for name in sorted(known_as):
        for node in (*index.names.get(name, ()), *index.attributes.get(name, ())):
            qualified = resolver.qualified(source, node)
            if qualified is not None and _is_module(resolver, qualified, module):
                yield node
    for node in index.strings.get(module.module, ()):
        parent = index.parents.get(node)
        if isinstance(parent, ast.Subscript) and parent.slice is node:
            if isinstance(parent.value, ast.Attribute) and parent.value.attr == "modules":
                yield parent
        elif isinstance(parent, ast.Call) and called_name(parent) in (
            *("import_module", "__import__", "__lazy_import__", "reload", "get"),
        ):
            yield parent


def _is_module(resolver: Resolver, qualified: str, module: Module) -> bool:
    place = resolver.project_name(qualified)
    return place is not None and place[1] == "" and place[0].place == module.place


def _misused(resolver: Resolver, source: Source, node: ast.expr, strict: bool) -> ast.AST | None:
    """What is done with a module, if it may store names."""
    index = uses(source)
    parent = index.parents.get(node)
    if isinstance(parent, ast.Attribute):
        if parent.attr in ("__setattr__", "__delattr__", "__class__"):
            return index.parents.get(parent) or parent
        if parent.attr == "__dict__" and (strict or not only_read(source, parent)):
            return parent
        return None
    if not isinstance(getattr(node, "ctx", None) or ast.Load(), ast.Load):
        return None  # it is bound again: what it was stays as it is
    if isinstance(parent, ast.Call) and called_name(parent) == "getattr" and strict:
        name = parent.args[1] if len(parent.args) > 1 else None
        return None if isinstance(name, ast.Constant) else parent
    if strict:
        return None if isinstance(parent, ast.Expr) else _above(parent, node)
    if isinstance(parent, ast.Call):
        function = called_name(parent)
        if function == "vars":
            return None if only_read(source, parent) else parent
        if function in ("setattr", "delattr", "__setattr__", "__delattr__"):
            name = parent.args[1] if len(parent.args) > 1 else None
            return None if isinstance(name, ast.Constant) else parent
        if function in ("getattr", "hasattr", "dir", "isinstance", "print", "reload"):
            return None
    return _above(parent, node) if _sets_computed_names(resolver, source) else None


def _above(parent: ast.AST | None, node: ast.expr) -> ast.AST:
    return parent if isinstance(parent, ast.Call) else node


def _sets_computed_names(resolver: Resolver, source: Source) -> bool:
    """Whether a file stores attributes whose names it computes."""
    index = uses(source)
    for name in ("setattr", "delattr", "vars"):
        for node in index.names.get(name, ()):
            call = index.parents.get(node)
            if not isinstance(call, ast.Call) or call.func is not node:
                return True
            if name == "vars":
                if not only_read(source, call):
                    return True
            elif len(call.args) < 2 or not isinstance(call.args[1], ast.Constant):
                if not (call.args and is_instance(resolver, source, call.args[0])):
                    return True
    for attribute in index.attributes.get("__dict__", ()):
        if not only_read(source, attribute) and not is_instance(resolver, source, attribute.value):
            return True
    return any(name in index.attributes for name in ("__setattr__", "__delattr__"))


_CLASS_READERS = frozenset(
    "isinstance issubclass replace cast print len list tuple fields raises register get_type_hints "
    "signature getsource hasattr id repr str hash iter sorted set".split()
)


def _class_given_away(resolver: Resolver, source: Source, node: ast.ClassDef) -> Harm | None:
    """Where the class itself goes to somebody who may store its attributes under computed names."""
    for module in resolver.naming(node.name):
        index = uses(module.source)
        if not _sets_computed_names(resolver, module.source):
            continue
        for each in (*index.names.get(node.name, ()), *index.attributes.get(node.name, ())):
            parent = index.parents.get(each)
            if resolver.in_kernel(module.source, each) or not isinstance(each.ctx, ast.Load):
                continue
            if isinstance(parent, ast.Call):
                if parent.func is each or called_name(parent) in _CLASS_READERS:
                    continue
                return Harm(module.source.span(parent), f"`{module.source.text_of(parent)}`")
    return None


def library_stores(resolver: Resolver) -> Iterator[tuple[str, Harm]]:
    """The names of libraries that the project stores, in full, and where."""
    for module in resolver.patching():
        source = module.source
        index = uses(source)
        for nodes in index.attributes.values():
            for node in nodes:
                if not isinstance(node.ctx, ast.Load):
                    name = resolver.qualified(source, node)
                    if name is not None and resolver.project_name(name) is None:
                        shown = _statement(source, node)
                        yield name, Harm(source.span(shown), f"`{source.text_of(shown)}`")
        for text, strings in index.strings.items():
            for string in strings:
                call = index.parents.get(string)
                if not isinstance(call, ast.Call) or string not in call.args or not _patches(call):
                    continue
                harm = Harm(source.span(call), f"`{source.text_of(call)}`")
                if call.args[0] is string:
                    yield text, harm
                elif isinstance(call.args[0], ast.Name | ast.Attribute):
                    name = resolver.qualified(source, call.args[0])
                    if name is not None and resolver.project_name(name) is None:
                        yield f"{name}.{text}", harm


# Captured values, and the reasons for which one is refused.


class Captures:
    """Guards what is captured from the modules of a project; each name is looked into once."""

    def __init__(self, modules: Callable[[], Sequence[Module]]) -> None:
        self._modules = modules
        """The modules that are there by now."""
        self._known: Sequence[Module] = ()
        self._resolver = Resolver(())
        self._answers: dict[object, Answer] = {}

    def resolver(self) -> Resolver:
        """Finds names in the modules that have been read by now."""
        modules = self._modules()
        if modules is not self._known:
            self._known = modules
            self._resolver = Resolver(modules)
            self._answers.clear()
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
            harm = declared(module.source, name, ast.Global)
            harm = harm or self._library_name(resolver, module, value)
            return None if harm is None else _rebound(name, harm)
        if has_keywords(value):
            harm = resolver.once("keywords", lambda: stored_keywords(resolver))
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
        harm = of_module(resolver, module, name, strict=kind is not None)
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
        return resolver.once("libraries", lambda: dict(library_stores(resolver)))

    def of_builtin(self, module: Module, name: str) -> Answer:
        """A name of Python's own that the project gives to something else."""

        def find(resolver: Resolver) -> Diagnostic | None:
            harm = declared(module.source, name, ast.Global)
            harm = harm or stored(resolver, module, name)
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
        harm = of_class(resolver, source, node, name, strict=kind is not None)
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
            harm_ = declared(source, name, ast.Nonlocal)
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
        found = found or resolver.once("objects", lambda: searched_objects(resolver))
        if found is None and module is not None:
            found = _harmed(resolver, mentions.of_module(resolver, module, name), kind, value)
        elif found is None:
            found = _harmed(resolver, mentions.of_name(resolver, source, scope, name), kind, value)
            found = found or _reflecting(resolver, source, True)
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
    found = (stored(resolver, None, attribute) for attribute in attributes)
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
