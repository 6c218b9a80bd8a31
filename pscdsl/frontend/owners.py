"""Values as attributes of modules and classes, wherever these are reached."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from pscdsl.frontend.paths import (
    COMPUTED,
    EVERY,
    IN_DICT,
    MAX_PATH,
    OF_INSTANCE,
    Holder,
    Path,
    Write,
    text,
)
from pscdsl.frontend.resolution import Module, is_static
from pscdsl.frontend.source import Source
from pscdsl.frontend.uses import parameters, uses

if TYPE_CHECKING:
    from pscdsl.frontend.aliasing import Tracker

_BY_NAME = ("getattr", "vars", "__dict__", "attrgetter")
"""Words without which an attribute is not read by its name in a string."""
_FunctionStatement = ast.FunctionDef | ast.AsyncFunctionDef


def hold_class(tracker: Tracker, holder: Holder, step: str, path: Path = ()) -> None:
    """A class has the value as an attribute; its methods see it by their first parameter."""
    tracker.hold(holder, (step, *path))
    for module in tracker.naming(holder.name):
        for classes in uses(module.source).classes.values():
            for each in classes:
                bases = {getattr(b, "id", getattr(b, "attr", "")) for b in each.bases}
                own = each.name == holder.name and module.source is holder.source
                if own or holder.name in bases:
                    _methods(tracker, module.source, each, step, path)


def _methods(tracker: Tracker, source: Source, node: ast.ClassDef, step: str, path: Path) -> None:
    for each in node.body:
        if isinstance(each, _FunctionStatement) and not is_static(each):
            names = parameters(each)
            decorators = {getattr(d, "id", "") for d in each.decorator_list}
            of_class = "classmethod" in decorators or each.name == "__init_subclass__"
            first = OF_INSTANCE if step == EVERY and not of_class else step
            if names:
                tracker.hold(Holder(source, each, names[0]), (first, *path))


def hold_module(tracker: Tracker, module: Module, path: Path) -> None:
    """A module object, wherever it is imported or looked up by name."""
    _module_names(tracker, module.module, path)
    for each in tracker.resolver.naming("modules", "import_module", "__import__"):
        _looked_up(tracker, each, module, path)
    _own_names(tracker, module, path)


def _looked_up(tracker: Tracker, each: Module, module: Module, path: Path) -> None:
    """`sys.modules[…]`, `importlib.import_module(…)`."""
    index, source = uses(each.source), each.source
    for node in index.attributes.get("modules", ()):
        parent = index.parents.get(node)
        if isinstance(parent, ast.Subscript) and parent.value is node:
            named = _may_name(parent.slice, module, each)
            if named is not False:
                tracker.at(source, parent, path if named else _computed(path))
    for name in ("import_module", "__import__"):
        for node in (*index.names.get(name, ()), *index.attributes.get(name, ())):
            call = index.parents.get(node)
            if isinstance(call, ast.Call) and call.func is node and call.args:
                named = _may_name(call.args[0], module, each)
                if named is not False:
                    tracker.at(source, call, path if named else _computed(path))


def _own_names(tracker: Tracker, module: Module, path: Path) -> None:
    """`globals()`, `exec(…)` in the module itself."""
    index, source = uses(module.source), module.source
    for name in ("globals", "vars", "locals"):
        for node in index.names.get(name, ()):
            call = index.parents.get(node)
            if isinstance(call, ast.Call) and call.func is node and not call.args:
                if name == "globals" or index.function_of(call) is None:
                    tracker.at(source, call, (IN_DICT + path[0][1:], *path[1:]))
    for name in ("exec", "eval"):
        for node in index.names.get(name, ()):
            call = index.parents.get(node)
            if isinstance(call, ast.Call) and call.func is node and len(call.args) == 1:
                if not tracker.resolver.in_kernel(source, call):
                    _executed(tracker, source, call, path)


def _executed(tracker: Tracker, source: Source, call: ast.Call, path: Path) -> None:
    """`exec(…)` in the names of its module: a text says which it can write."""
    code, function = text(call.args[0]), ast.unparse(call.func)
    if code is None:
        tracker.may_write(source, call, function)
    elif path[0] == EVERY:
        for word in set(re.findall(r"\w+", code)):
            tracker.rebound.setdefault(word, Write(source.span(call), function))
    elif re.search(rf"\b{re.escape(path[0][1:])}\b", code):
        tracker.may_write(source, call, function)


def _computed(path: Path) -> Path:
    """A path that starts at a module which may be another one."""
    return (COMPUTED + path[0][1:], *path[1:])


def importers(tracker: Tracker, source: Source, name: str, path: Path) -> None:
    """A module-level name: its module wherever it is used, and whoever imports the name."""
    module = tracker.resolver.modules.get(source.path)
    if module is None:
        return
    for other in tracker.naming(name):
        index = uses(other.source)
        for node in index.imports:
            if not isinstance(node, ast.ImportFrom):
                continue
            if tracker.resolver.base_of(other.source, node) != module.module:
                continue
            for alias in node.names:
                if alias.name == name:
                    bound = alias.asname or name
                elif alias.name == "*" and other.place != module.place:
                    bound = name
                else:
                    continue
                scope = index.owner(node, bound)
                tracker.hold(Holder(other.source, scope, bound), path)
    read = any(name in uses(each.source).attributes for each in tracker.naming(name))
    if len(path) < MAX_PATH and (read or tracker.resolver.naming(*_BY_NAME)):
        hold_module(tracker, module, (f".{name}", *path))
    else:
        _own_names(tracker, module, (f".{name}", *path))


def _module_names(tracker: Tracker, name: str, path: Path) -> None:
    last = name.rpartition(".")[2]
    for other in tracker.naming(last):
        index = uses(other.source)
        for node in index.imports:
            for alias in node.names:
                if isinstance(node, ast.ImportFrom):
                    full = f"{tracker.resolver.base_of(other.source, node)}.{alias.name}"
                    if full.lstrip(".") != name:
                        continue
                    bound, steps = alias.asname or alias.name, path
                elif alias.name == name or alias.name.startswith(name + "."):
                    if alias.asname and alias.name != name:
                        continue
                    bound = alias.asname or name.split(".")[0]
                    inner = () if alias.asname else tuple(name.split(".")[1:])
                    steps = (*(f".{part}" for part in inner), *path)
                else:
                    continue
                scope = index.owner(node, bound)
                tracker.hold(Holder(other.source, scope, bound), steps)


def _may_name(node: ast.expr, module: Module, here: Module) -> bool | None:
    """Whether an expression is the name of a module; None if it is computed."""
    given = text(node)
    if given is not None:
        return given == module.module or given.lstrip(".") == module.module.rpartition(".")[2]
    if isinstance(node, ast.Name) and node.id == "__name__":
        return here.place == module.place
    return None
