"""Where a captured name is mentioned: in its module, and in those that import or spell it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pscdsl._src.frontend.captures.harmless import Harm
from pscdsl._src.frontend.captures.resolution import Module, Resolver
from pscdsl._src.frontend.modules.known import known_module
from pscdsl._src.frontend.text.bindings import ScopeNode, parameters, uses
from pscdsl._src.frontend.text.source import Source

Mention = tuple[Source, ast.AST]
_NAMESPACES = frozenset(
    "globals locals vars __dict__ __globals__ f_globals f_locals f_builtins __builtins__".split()
)
"""Words for dicts of names."""


def of_name(
    resolver: Resolver, source: Source, scope: ScopeNode | None, name: str
) -> Iterator[Mention]:
    """The expressions in which a name of a scope stands for its value, outside of kernels."""
    index = uses(source)
    for node in index.names.get(name, ()):
        if index.owner(node, name) is scope and isinstance(node.ctx, ast.Load):
            if not resolver.in_kernel(source, node):
                yield source, node


def of_module(resolver: Resolver, module: Module, name: str) -> Iterator[Mention]:
    """The mentions of a name of a module in the whole project, its bindings left out."""
    yield from of_name(resolver, module.source, None, name)
    seen: set[tuple[str, str]] = set()
    pending = [(module, name)]
    while pending:
        at, known_as = pending.pop()
        if (at.place, known_as) in seen:
            continue
        seen.add((at.place, known_as))
        for other in resolver.naming(known_as):
            for bound in _imports(resolver, other, at, known_as):
                for scope in _scopes(other.source, bound):
                    yield from of_name(resolver, other.source, scope, bound)
                pending.append((other, bound))
            yield from _attributes(resolver, other, at, known_as)
            yield from _spelled(resolver, other.source, known_as)
            yield from _matched(other.source, known_as)


def of_class(
    resolver: Resolver, source: Source, node: ast.ClassDef, name: str
) -> Iterator[Mention]:
    """The mentions of an attribute of a class: in its body, and of whatever has such a name."""
    yield from of_name(resolver, source, node, name)
    for module in resolver.naming(name):
        for each in uses(module.source).attributes.get(name, ()):
            if resolver.in_kernel(module.source, each):
                continue
            if not isinstance(each.value, ast.Name) or not resolver.is_library(
                module.source, each.value
            ):
                yield module.source, each
        yield from _spelled(resolver, module.source, name)
        yield from _matched(module.source, name)


def _matched(source: Source, name: str) -> Iterator[Mention]:
    """Patterns that read an attribute of this name, or attributes that the text does not name."""
    if "case" not in source.text:
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.MatchClass):
            by_place = node.patterns and "__match_args__" in source.searched
            if by_place or name in node.kwd_attrs:
                yield source, node


def _imports(resolver: Resolver, other: Module, module: Module, name: str) -> Iterator[str]:
    """The names that imports in a file give to a name of a module."""
    for node in uses(other.source).imports:
        if not isinstance(node, ast.ImportFrom):
            continue
        if resolver.base_of(other.source, node) != module.module:
            continue
        for alias in node.names:
            if alias.name == name:
                yield alias.asname or name
            elif alias.name == "*" and other.place != module.place:
                yield name


def _scopes(source: Source, name: str) -> list[ScopeNode | None]:
    """The scopes to which uses of a name belong that an import may have bound."""
    index = uses(source)
    found: dict[ScopeNode | None, None] = {None: None}
    for node in index.imports:
        if any((alias.asname or alias.name) == name for alias in node.names):
            found[index.owner(node, name)] = None
    return list(found)


def _attributes(resolver: Resolver, other: Module, module: Module, name: str) -> Iterator[Mention]:
    """Attributes of this name, but for those of libraries, of instances and of other modules."""
    index = uses(other.source)
    for node in index.attributes.get(name, ()):
        if resolver.in_kernel(other.source, node) or is_of_instance(resolver, other.source, node):
            continue
        if not _is_of_another(resolver, other.source, node, module, name):
            yield other.source, node


def _is_of_another(
    resolver: Resolver, source: Source, node: ast.Attribute, module: Module, name: str
) -> bool:
    """Whether an attribute belongs to a library, or to a module that has a name of its own."""
    qualified = resolver.qualified(source, node)
    if qualified is None:
        return False
    place = resolver.project_name(qualified)
    if place is None:
        return True
    if place[0].place == module.place or place[1] != name:
        return False
    return not any(True for _ in resolver.origins(place[0].source, name))


def _spelled(resolver: Resolver, source: Source, name: str) -> Iterator[Mention]:
    """`getattr(module, "NAME")` and `vars(module)["NAME"]`."""
    for node in uses(source).strings.get(name, ()):
        parent = uses(source).parents.get(node)
        if resolver.in_kernel(source, node):
            continue
        if isinstance(parent, ast.Subscript) and parent.slice is node:
            if names_of(parent.value) & _NAMESPACES:
                yield source, parent
        elif isinstance(parent, ast.Call) and called_name(parent) in ("getattr", "get"):
            is_getattr = called_name(parent) == "getattr"
            owner = parent.args[0] if is_getattr else parent.func
            if is_getattr and not _is_library(resolver, source, owner):
                yield source, parent
            elif not is_getattr and names_of(owner) & _NAMESPACES:
                yield source, parent


def _is_library(resolver: Resolver, source: Source, node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and resolver.is_library(source, node)


def called_name(call: ast.Call) -> str:
    """The last name of what is called."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def names_of(node: ast.AST) -> set[str]:
    """All names and attributes in an expression."""
    found: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            found.add(inner.id)
        elif isinstance(inner, ast.Attribute):
            found.add(inner.attr)
    return found


def is_of_instance(resolver: Resolver, source: Source, node: ast.Attribute) -> bool:
    """Whether an attribute is one of an instance: of `self`, or of what a class was called for."""
    return is_instance(resolver, source, node.value)


def is_instance(resolver: Resolver, source: Source, node: ast.expr) -> bool:
    """Whether an expression surely has an instance of a class, and nothing a kernel may read.

    So it has no class, no module, and no record.
    """
    if isinstance(node, ast.Call):
        return _makes_instance(resolver, source, node)
    if not isinstance(node, ast.Name):
        return False
    index = uses(source)
    scope = index.owner(node, node.id)
    stores = resolver.stores(source, scope, node.id)
    if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef) and not stores:
        cls = index.class_of(scope)
        parameters = [*scope.args.posonlyargs, *scope.args.args]
        if cls is None or scope.decorator_list or not parameters:
            return False
        return parameters[0].arg == node.id == "self" and not _may_be_metaclass(
            resolver, source, cls, 0
        )
    made = index.parents.get(stores[0]) if len(stores) == 1 else None
    if not isinstance(made, ast.Assign) or not isinstance(made.value, ast.Call):
        return False
    if any(name == node.id for each in index.outer for name in each.names):
        return False
    return stores[0] in made.targets and _makes_instance(resolver, source, made.value)


def _makes_instance(resolver: Resolver, source: Source, call: ast.Call) -> bool:
    """Whether a call makes an instance of a class of this file."""
    if not isinstance(call.func, ast.Name):
        return False
    index = uses(source)
    found = index.classes.get(call.func.id, ())
    scope = index.owner(call.func, call.func.id)
    if len(found) != 1 or index.owner(found[0], found[0].name) is not scope:
        return False
    cls = found[0]
    if cls.decorator_list or cls.keywords or _may_be_metaclass(resolver, source, cls, 0):
        return False
    if resolver.stores(source, scope, cls.name) or index.functions.get(cls.name):
        return False
    return not any(getattr(statement, "name", "") == "__new__" for statement in cls.body)


def is_plain_class(resolver: Resolver, source: Source, cls: ast.ClassDef | None) -> bool:
    """Whether instances of a class are nothing that a kernel may read."""
    if cls is None or cls.decorator_list:
        return False
    return not _may_be_metaclass(resolver, source, cls, 0)


_READ_BY_KERNELS = frozenset("type ModuleType Record NamedTuple TypedDict PRecord PClass".split())


def _may_be_metaclass(resolver: Resolver, source: Source, cls: ast.ClassDef, depth: int) -> bool:
    """Whether instances of a class may be classes or modules, or records or members of enums."""
    index = uses(source)
    for base in cls.bases:
        name = resolver.qualified(source, base) or ""
        last = name.rpartition(".")[2]
        if depth > 8 or last in _READ_BY_KERNELS or last.endswith(("Meta", "Type", "Enum", "Flag")):
            return True
        place = resolver.project_name(name) if name else None
        home = source if place is None else place[0].source
        own = base.id if isinstance(base, ast.Name) else last
        for each in (index if home is source else uses(home)).classes.get(own, ()):
            if each is not cls and _may_be_metaclass(resolver, home, each, depth + 1):
                return True
    return False


# Ways to reach names, frames, cells and namespaces that no text spells: words of a module.
#
# A module whose constants a kernel reads has none of them, unless it is seen that they only read or
# that they mean something else.  See `rebinding` for what names are stored in other modules.


_BUILTINS = frozenset(
    "globals vars locals exec eval compile setattr delattr getattr __import__ __lazy_import__ "
    "__builtins__ __loader__ __spec__".split()
)
"""Names of Python's own."""
_ATTRIBUTES = frozenset(
    "__dict__ __globals__ __builtins__ __setattr__ __delattr__ __getattribute__ __setstate__ "
    "__init__ __reduce__ __reduce_ex__ __closure__ cell_contents __kwdefaults__ __loader__ "
    "f_globals f_locals f_builtins f_back gi_frame cr_frame ag_frame tb_frame "
    "gi_yieldfrom __subclasses__".split()
)
"""Attributes that lead to a namespace, whatever they are of."""
_STORED = frozenset("__code__ __defaults__ __kwdefaults__ __class__ __bases__".split())
"""Attributes that are harmless as long as they are only read."""
_FUNCTIONS: dict[str, frozenset[str]] = {
    "sys": frozenset(
        "modules _getframe _getframemodulename _current_frames _current_exceptions "
        "exc_info last_traceback remote_exec".split()
    ),
    "inspect": frozenset(
        "stack currentframe trace getmembers getmembers_static getclosurevars getouterframes "
        "getinnerframes getframeinfo getcallargs getattr_static getgeneratorlocals "
        "getcoroutinelocals getmodule getargvalues".split()
    ),
    "importlib": frozenset("import_module __import__ util machinery".split()),
    "gc": frozenset("get_objects get_referrers get_referents callbacks".split()),
    "builtins": _BUILTINS,
    "operator": frozenset("attrgetter methodcaller".split()),
}
"""Functions of modules that lead there."""
_WHOLE = frozenset("ctypes _ctypes cffi code codeop bdb".split())
"""Modules that do nothing else."""
_PATCHERS = ("monkeypatch", "mocker")
"""Fixtures of pytest that set attributes."""
_READERS = frozenset("items keys values get copy".split())
_COPIERS = frozenset("dict sorted list len set tuple frozenset print repr str".split())


def reflection(resolver: Resolver, source: Source, *, strict: bool = False) -> Harm | None:
    """The first place where a module reaches names in ways that the text does not show.

    `strict`: reading counts too, because what is read can be written.
    """
    index = uses(source)
    shown: list[ast.AST] = []
    for node in _suspects(resolver, source, strict):
        if not resolver.in_kernel(source, node):
            parent = index.parents.get(node)
            whole = isinstance(parent, ast.Call | ast.Attribute | ast.Subscript)
            shown.append(parent if parent is not None and whole else node)
    if not shown:
        return None
    places = [source.span(each) for each in shown]
    first = min(range(len(places)), key=lambda i: (places[i].line, places[i].column))
    return Harm(places[first], f"`{source.text_of(shown[first])}`")


def _suspects(resolver: Resolver, source: Source, strict: bool) -> Iterator[ast.AST]:
    index = uses(source)
    yield from _imported(index.imports)
    for name in _BUILTINS & index.names.keys():
        for node in index.names[name]:
            if resolver.qualified(source, node) == f"builtins.{name}":
                if not _is_harmless_builtin(resolver, source, node, strict):
                    yield node
    for name in _ATTRIBUTES & index.attributes.keys():
        for each in index.attributes[name]:
            if not _is_harmless_attribute(resolver, source, each, strict):
                yield each
    for name in _STORED & index.attributes.keys():
        for each in index.attributes[name]:
            if not isinstance(each.ctx, ast.Load):
                yield each
    for module, names in _FUNCTIONS.items():
        yield from _of_module(resolver, source, module, names, strict)
    for name in dict.fromkeys((*_PATCHERS, *_contexts(source))):
        for node in index.names.get(name, ()):
            if not _is_plain_patch(resolver, source, node):
                yield node
    for node in (*index.names.get("patch", ()), *index.attributes.get("patch", ())):
        if resolver.qualified(source, node) == "unittest.mock.patch":
            if not _is_plain_mock(source, node):
                yield node


def _imported(imports: list[ast.Import | ast.ImportFrom]) -> Iterator[ast.AST]:
    """Imports of what leads to names under another name, or of modules that do nothing else."""
    for node in imports:
        for alias in node.names:
            if isinstance(node, ast.Import):
                if alias.name in _WHOLE or alias.name.split(".")[0] in _WHOLE:
                    yield node
                continue
            if node.level:
                continue
            module = node.module or ""
            if module in _WHOLE or module.split(".")[0] in _WHOLE:
                yield node
            names = _FUNCTIONS.get(module, frozenset())
            full = f"{module}.{alias.name}"
            seen = module == "operator" or full == "importlib.import_module"  # see `_of_module`
            plain = (seen and not alias.asname) or full in ("importlib.util", "inspect.getmodule")
            if full == "unittest.mock.patch" and alias.asname:
                yield node
            if (alias.name in names or (alias.name == "*" and names)) and not plain:
                yield node


def _of_module(
    resolver: Resolver, source: Source, module: str, names: frozenset[str], strict: bool
) -> Iterator[ast.AST]:
    """Uses of functions of a module, and of the module as a value."""
    index = uses(source)
    for node in _module_names(resolver, source, module):
        parent = index.parents.get(node)
        if not isinstance(parent, ast.Attribute):
            if not (isinstance(parent, ast.Call) and stored_by(source, parent)):
                yield node
        elif parent.attr in names and not _is_harmless_function(
            resolver, source, parent, f"{module}.{parent.attr}", strict
        ):
            yield parent
    for name in names:
        if module in ("importlib", "operator"):
            for node in index.names.get(name, ()):
                full = f"{module}.{name}"
                if resolver.qualified(source, node) == full and not _is_harmless_function(
                    resolver, source, node, full, strict
                ):
                    yield node


def _module_names(resolver: Resolver, source: Source, module: str) -> Iterator[ast.Name]:
    """The names by which a module of Python's own is known in a file."""
    index = uses(source)
    known_as = {
        alias.asname or alias.name.rpartition(".")[2]
        for node in index.imports
        for alias in node.names
        if alias.name == module
        or (isinstance(node, ast.ImportFrom) and f"{node.module}.{alias.name}" == module)
    }
    for name in known_as:
        for node in index.names.get(name, ()):
            if resolver.qualified(source, node) == module:
                yield node


def _is_harmless_builtin(resolver: Resolver, source: Source, node: ast.Name, strict: bool) -> bool:
    call = uses(source).parents.get(node)
    if not isinstance(call, ast.Call) or call.func is not node:
        return False
    if node.id in ("globals", "vars", "locals"):
        given = call.args[0] if call.args else None
        if isinstance(given, ast.Name | ast.Attribute) and resolver.is_library(source, given):
            return only_read(source, call)
        return not strict and only_read(source, call)
    if node.id in ("__import__", "__lazy_import__"):
        return _is_another_module(resolver, call)
    if node.id == "getattr":
        return _is_harmless_getattr(resolver, source, call, strict)
    if node.id in ("setattr", "delattr"):
        return stored_by(source, call) is not None
    if node.id in ("exec", "eval") and len(call.args) > 1:
        return not strict and _is_own_namespace(resolver, source, call.args[1])
    return node.id == "compile" and not strict


def _is_own_namespace(resolver: Resolver, source: Source, node: ast.expr) -> bool:
    """Whether a dict is made here, so that code that runs in it has no other names."""
    if isinstance(node, ast.Dict):
        return None not in node.keys
    if not isinstance(node, ast.Name):
        return False
    index = uses(source)
    stores = resolver.stores(source, index.owner(node, node.id), node.id)
    made = index.parents.get(stores[0]) if len(stores) == 1 else None
    return isinstance(made, ast.Assign | ast.AnnAssign) and isinstance(made.value, ast.Dict)


def _is_harmless_getattr(resolver: Resolver, source: Source, call: ast.Call, strict: bool) -> bool:
    """`getattr` of a library's module, or of a name that leads nowhere."""
    if len(call.args) < 2 or any(isinstance(argument, ast.Starred) for argument in call.args):
        return False
    if isinstance(call.args[0], ast.Name | ast.Attribute):
        name = resolver.qualified(source, call.args[0])
        if name not in _FUNCTIONS and resolver.is_library(source, call.args[0]):
            return True
    if is_instance(resolver, source, call.args[0]):
        return True
    literal = call.args[1].value if isinstance(call.args[1], ast.Constant) else None
    return not _leads_to_names(literal) if isinstance(literal, str) else not strict


def _leads_to_names(name: str) -> bool:
    parts = set(name.split("."))
    words = _ATTRIBUTES | _STORED | _BUILTINS
    return bool(parts & words) or any(parts & names for names in _FUNCTIONS.values())


def _is_harmless_attribute(
    resolver: Resolver, source: Source, node: ast.Attribute, strict: bool
) -> bool:
    if isinstance(node.ctx, ast.Load) and is_instance(resolver, source, node.value):
        return True
    if node.attr == "__dict__":
        return not strict and only_read(source, node)
    call = uses(source).parents.get(node)
    if node.attr == "__init__" and not isinstance(call, ast.Call):
        return True
    if node.attr in ("__setattr__", "__delattr__", "__init__") and isinstance(call, ast.Call):
        if isinstance(node.value, ast.Call) and called_name(node.value) == "super":
            return not node.value.args and _is_in_plain_class(resolver, source, node)
        return bool(call.args) and is_instance(resolver, source, call.args[0])
    if node.attr == "__getattribute__":
        given = call.args if isinstance(call, ast.Call) else []
        names = [each.value for each in given if isinstance(each, ast.Constant)]
        return not strict and not any(_leads_to_names(str(name)) for name in names)
    if node.attr in ("__kwdefaults__", "__closure__"):
        return False
    return node.attr in ("__loader__", "__reduce__", "__reduce_ex__") and not strict


def _is_in_plain_class(resolver: Resolver, source: Source, node: ast.AST) -> bool:
    """Whether a method is of a class whose instances no kernel reads."""
    index = uses(source)
    scope = index.function_of(node)
    return scope is not None and is_plain_class(resolver, source, index.class_of(scope))


def _is_harmless_function(
    resolver: Resolver, source: Source, node: ast.expr, full: str, strict: bool
) -> bool:
    parent = uses(source).parents.get(node)
    if full == "sys.modules":
        return _is_harmless_modules(resolver, source, node, strict)
    if full == "sys.exc_info":
        return not strict
    if full == "inspect.currentframe":
        line = uses(source).parents.get(parent) if isinstance(parent, ast.Call) else None
        return isinstance(line, ast.Attribute) and line.attr in ("f_lineno", "f_code")
    if full == "importlib.import_module":
        return isinstance(parent, ast.Call) and _is_another_module(resolver, parent)
    if full in ("importlib.util", "importlib.machinery"):
        return not strict
    if full in ("operator.attrgetter", "operator.methodcaller"):
        return isinstance(parent, ast.Call) and all(
            isinstance(argument, ast.Constant)
            and isinstance(argument.value, str)
            and not _leads_to_names(argument.value)
            for argument in parent.args[:1]
        )
    if full.startswith("builtins."):
        return False
    return full == "inspect.getmembers" and not strict


def _is_harmless_modules(resolver: Resolver, source: Source, node: ast.expr, strict: bool) -> bool:
    """`sys.modules` that is only asked, or of one of whose modules a name is read."""
    index = uses(source)
    parent = index.parents.get(node)
    if isinstance(parent, ast.Compare | ast.For | ast.comprehension):
        return True
    if isinstance(parent, ast.Attribute):
        call = index.parents.get(parent)
        above = index.parents.get(call) if isinstance(call, ast.Call) else None
        if parent.attr in ("pop", "__contains__", "keys"):
            return isinstance(above, ast.Expr | ast.For | ast.comprehension)
        return parent.attr == "get" and isinstance(above, ast.Compare)
    if not isinstance(parent, ast.Subscript) or parent.value is not node:
        return isinstance(parent, ast.Call) and called_name(parent) in ("len", "setitem", "delitem")
    if not isinstance(parent.ctx, ast.Load):
        return True
    above = index.parents.get(parent)
    if not isinstance(above, ast.Attribute) or above.attr.startswith("__"):
        return False
    if strict and not _is_of_another_name(resolver, source, parent.slice):
        return False
    return isinstance(above.ctx, ast.Load)


def _is_of_another_name(resolver: Resolver, source: Source, name: ast.expr) -> bool:
    """Whether a literal names another module than this one."""
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
        return False
    own = resolver.modules.get(source.path)
    return own is not None and own.module != name.value


def _is_another_module(resolver: Resolver, call: ast.Call) -> bool:
    """Whether a literal names a module that is none of the project."""
    name = call.args[0] if call.args else None
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
        return False
    if name.value in _FUNCTIONS or name.value.split(".")[0] in _WHOLE:
        return False
    return not name.value.startswith(".") and resolver.project_name(name.value) is None


def only_read(source: Source, node: ast.expr) -> bool:
    """Whether a dict is only read where it stands."""
    parent = uses(source).parents.get(node)
    if isinstance(parent, ast.Attribute):
        call = uses(source).parents.get(parent)
        return parent.attr in _READERS and isinstance(call, ast.Call) and call.func is parent
    if isinstance(parent, ast.Subscript):
        return parent.value is node and isinstance(parent.ctx, ast.Load)
    if isinstance(parent, ast.For | ast.comprehension | ast.Compare):
        return True
    if isinstance(parent, ast.keyword):
        return parent.arg is None
    if isinstance(parent, ast.Dict):
        return True
    return isinstance(parent, ast.Call) and called_name(parent) in _COPIERS


def stored_by(source: Source, call: ast.Call) -> tuple[ast.expr, str] | None:
    """The object and the name that `setattr(x, "name", …)` and its like store, if they say so."""
    arguments = call.args
    if len(arguments) < 2 or any(isinstance(argument, ast.Starred) for argument in arguments[:2]):
        return None
    name = arguments[1]
    if isinstance(name, ast.Constant) and isinstance(name.value, str):
        if not _leads_to_names(name.value):
            return arguments[0], name.value
    return None


def _hands_on(resolver: Resolver, source: Source, function: ast.Name, name: str) -> bool:
    """Whether a fixture is given to a function of the project that has it under the same name."""
    qualified = resolver.qualified(source, function)
    place = None if qualified is None else resolver.project_name(qualified)
    home, called = (source, function.id) if place is None else (place[0].source, place[1])
    index = uses(home)
    found = index.functions.get(called, [])
    if not found or not all(name in parameters(each) for each in found):
        return False
    return home is source or all(
        isinstance(index.parents.get(node), ast.Attribute) and _is_plain_patch(resolver, home, node)
        for node in index.names.get(name, ())
    )


def _contexts(source: Source) -> Iterator[str]:
    """The names in `with monkeypatch.context() as name`."""
    index = uses(source)
    for node in index.attributes.get("context", ()):
        call = index.parents.get(node)
        item = index.parents.get(call) if isinstance(call, ast.Call) else None
        if isinstance(item, ast.withitem) and isinstance(item.optional_vars, ast.Name):
            if isinstance(node.value, ast.Name) and node.value.id in _PATCHERS:
                yield item.optional_vars.id


def _is_plain_patch(resolver: Resolver, source: Source, node: ast.Name) -> bool:
    """`monkeypatch.setattr(x, "name", …)`, or a method that sets no attribute."""
    index = uses(source)
    method = index.parents.get(node)
    if isinstance(method, ast.Call) and isinstance(method.func, ast.Name):
        return _hands_on(resolver, source, method.func, node.id)
    if not isinstance(method, ast.Attribute):
        return isinstance(node.ctx, ast.Store)
    if method.attr in ("setenv", "delenv", "chdir", "syspath_prepend", "undo"):
        return True
    call = index.parents.get(method)
    if method.attr == "context":
        item = index.parents.get(call) if call is not None else None
        return isinstance(item, ast.withitem) and isinstance(item.optional_vars, ast.Name)
    if method.attr in ("setitem", "delitem"):
        return True
    if method.attr not in ("setattr", "delattr") or not isinstance(call, ast.Call):
        return False
    if call.args and isinstance(call.args[0], ast.Constant):
        return isinstance(call.args[0].value, str)
    if len(call.args) > 1 and isinstance(call.args[0], ast.Name | ast.Attribute):
        name = resolver.qualified(source, call.args[0]) or ""
        if name.startswith("pscdsl.") and known_module(name) is None:
            return resolver.project_name(name) is None  # a part of the compiler
    return stored_by(source, call) is not None


def _is_plain_mock(source: Source, node: ast.expr) -> bool:
    """`patch("module.NAME", …)`, `patch.object(x, "NAME", …)`, `patch.dict(…)`."""
    parent = uses(source).parents.get(node)
    if isinstance(parent, ast.Call) and parent.func is node:
        named = parent.args[0] if parent.args else None
        return isinstance(named, ast.Constant) and isinstance(named.value, str)
    if not isinstance(parent, ast.Attribute):
        return False
    call = uses(source).parents.get(parent)
    if not isinstance(call, ast.Call) or call.func is not parent:
        return False
    return parent.attr == "object" and stored_by(source, call) is not None


_SEARCHERS = (
    *("gc.get_objects", "gc.get_referrers", "gc.get_referents"),
    *("pkgutil.resolve_name", "pydoc.locate"),
)


def searched_objects(resolver: Resolver) -> Harm | None:
    """Where a file of the project goes through all objects that there are, or names one by text."""
    for full in _SEARCHERS:
        word = full.rpartition(".")[2]
        for module in resolver.naming(word):
            source = module.source
            for node in (*uses(source).attributes.get(word, ()), *uses(source).names.get(word, ())):
                if resolver.qualified(source, node) in (None, full):
                    return Harm(source.span(node), f"`{source.text_of(node)}`")
    return None


def stored_keywords(resolver: Resolver) -> Harm | None:
    """Where the keywords of a partial function may be written: its `keywords` are a dict."""
    for word in ("__reduce__", "__reduce_ex__"):
        for module in resolver.naming(word):
            for attribute in uses(module.source).attributes.get(word, ()):
                text = f"`{module.source.text_of(attribute)}`"
                return Harm(module.source.span(attribute), text)
    for module in resolver.naming("keywords"):
        source = module.source
        found = [
            *(
                each
                for each in uses(source).attributes.get("keywords", ())
                if not only_read(source, each) and not is_instance(resolver, source, each.value)
            ),
            *(
                each
                for each in uses(source).strings.get("keywords", ())
                if isinstance(uses(source).parents.get(each), ast.Call)
            ),
        ]
        for node in found:
            return Harm(source.span(node), f"`{source.text_of(node)}`")
    return None
