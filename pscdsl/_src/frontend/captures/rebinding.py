"""Whether anything may bind a captured name anew, or put another object in a class or library.

In the module itself nothing reaches names by reflection (see `reflection`).  In the other modules
of the project stores are read exactly: to attributes of this name, by `setattr`, by what patches,
and through the namespace of the module.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pscdsl._src.frontend.captures.harmless import Harm
from pscdsl._src.frontend.captures.reflection import called_name, is_instance, only_read, reflection
from pscdsl._src.frontend.captures.resolution import WORD, Asked, Module, Resolver
from pscdsl._src.frontend.text.source import Source
from pscdsl._src.frontend.text.uses import uses

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
    found = declared(own, name, ast.Global) or reflection(resolver, own, strict=strict)
    return found or stored(resolver, module, name) or _by_module(resolver, module, strict)


def of_class(
    resolver: Resolver, source: Source, node: ast.ClassDef, name: str, *, strict: bool
) -> Harm | None:
    """What may bind an attribute of a class anew."""
    found = reflection(resolver, source, strict=strict) or stored(resolver, None, name)
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
            *("import_module", "__import__", "reload", "get"),
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
