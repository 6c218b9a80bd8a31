"""Values as arguments: what functions do with what they are given."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pscdsl.frontend import writers
from pscdsl.frontend.paths import IN_DICT, ITEM, MAX_CALLS, Holder, Kind, Path, text
from pscdsl.frontend.resolution import Callee, Calls, Method, Named, Target, is_static
from pscdsl.frontend.source import FunctionNode, Source
from pscdsl.frontend.uses import parameters, uses

if TYPE_CHECKING:
    from pscdsl.frontend.aliasing import Tracker


def passed(
    tracker: Tracker, source: Source, call: ast.Call, node: ast.AST, path: Path, calls: Calls
) -> None:
    """The value is an argument of a call."""
    for callee in tracker.resolver.callees(source, call.func, calls):
        if isinstance(callee, Target):
            _enter(tracker, source, call, node, path, calls, callee)
        else:
            _outside(tracker, source, call, node, path, calls, callee)


def _enter(
    tracker: Tracker,
    source: Source,
    call: ast.Call,
    node: ast.AST,
    path: Path,
    calls: Calls,
    target: Target,
) -> None:
    function, offset = target.node, target.offset
    if isinstance(function, ast.ClassDef):
        _construct(tracker, source, call, node, path, calls, target)
        return
    if tracker.resolver.is_kernel(target.source, function):
        return  # it is checked itself
    repeats = any(each is call for _, each in calls)
    entered = calls if repeats else (*calls, (source, call))[-MAX_CALLS:]
    for name, steps in _parameters(function, call, node, path, offset):
        tracker.hold(Holder(target.source, function, name), steps, entered)


def _construct(
    tracker: Tracker,
    source: Source,
    call: ast.Call,
    node: ast.AST,
    path: Path,
    calls: Calls,
    target: Target,
) -> None:
    """An argument of a class: of its `__init__`, or the field of a record."""
    assert isinstance(target.node, ast.ClassDef)
    made = False
    for each in target.node.body:
        if isinstance(each, ast.FunctionDef) and each.name in ("__init__", "__new__"):
            made = True
            _enter(tracker, source, call, node, path, calls, Target(target.source, each, 1))
    if made:
        return
    fields = [
        each.target.id
        for each in target.node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    ]
    position, keyword = _position(call, node)
    if keyword is not None:
        tracker.stored(keyword, path)
    elif position is not None and position < len(fields):
        tracker.stored(fields[position], path)
    else:
        for field in fields:
            tracker.stored(field, path[1:] if isinstance(node, ast.Starred) else path)
    tracker.at(source, call, (ITEM, *path), calls)


def _outside(
    tracker: Tracker,
    source: Source,
    call: ast.Call,
    node: ast.AST,
    path: Path,
    calls: Calls,
    callee: Callee,
) -> None:
    """An argument of a function that is not the project's."""
    if (
        path
        and path[0][0] in ".~?"
        and isinstance(callee, Named)
        and callee.name == "builtins.vars"
    ):
        tracker.at(source, call, (IN_DICT + path[0][1:], *path[1:]), calls)
        return
    position, keyword = _position(call, node)
    place: int | str = keyword if keyword is not None else (position or 0)
    name = callee.name if isinstance(callee, Named | Method) else ""
    if _by_name(tracker, source, call, path, place, name):
        return
    if isinstance(callee, Named):
        if not path and not tracker.shallow and writers.writes(name, place):
            tracker.write(source, call)
            return
        depth = writers.handed_on(name)
        if depth == 0:
            tracker.at(source, call, path, calls)
        elif depth is not None and (path or tracker.kind is not Kind.FLAT):
            tracker.at(source, call, (ITEM,) * depth + path[1:], calls)
    elif isinstance(callee, Method):
        _kept(tracker, source, call, node, path, calls, name)
    _handed_functions(tracker, source, call, node, path, calls)
    if tracker.shallow or path[:1] not in ((), (ITEM,)):
        return
    if isinstance(callee, Named):
        known = writers.is_seen(name)
    else:
        known = bool(name) and (writers.is_known_method(name) or _is_method(tracker, name))
    if not known:
        tracker.may_write(source, call, source.text_of(call.func))


def _by_name(
    tracker: Tracker, source: Source, call: ast.Call, path: Path, place: int | str, name: str
) -> bool:
    """`setattr`, `getattr`: attributes whose names are given as strings."""
    if name == "builtins.setattr" and place == 2:  # an object keeps the value
        kept_as = text(call.args[1])
        if kept_as is None:
            tracker.may_write(source, call, "an attribute whose name is computed")
        else:
            tracker.stored(kept_as, path)
        return True
    if place != 0 or name not in ("builtins.setattr", "builtins.delattr", "builtins.getattr"):
        return False
    attribute = text(call.args[1]) if len(call.args) > 1 else None
    if name == "builtins.getattr":
        if path and path[0][0] in ".~?" and path[0][1:] != "*":
            if attribute is None or path[0][1:] == attribute:
                tracker.at(source, call, path[1:])
        elif not tracker.shallow:
            tracker.at(source, call, path)
    elif path and path[0][0] in ".?":
        tracker.rebind(source, call, path, attribute)
    elif not path and (not tracker.shallow or attribute is None or attribute[:2] == "__"):
        tracker.write(source, call)
    return True


def _kept(
    tracker: Tracker,
    source: Source,
    call: ast.Call,
    node: ast.AST,
    path: Path,
    calls: Calls,
    name: str,
) -> None:
    """A method of an object that is not known: it may keep the value, or be the project's."""
    if isinstance(call.func, ast.Attribute):
        if name in writers.HOLDERS:
            tracker.contained(source, call.func.value, (ITEM, *path), calls)
        elif name in writers.SPREADERS:
            tracker.contained(source, call.func.value, path or (ITEM,), calls)
    for module in tracker.naming(name):
        index = uses(module.source)
        for each in index.functions.get(name, ()):
            if index.class_of(each) is not None:
                target = Target(module.source, each, 0 if is_static(each) else 1)
                _enter(tracker, source, call, node, path, calls, target)


def _is_method(tracker: Tracker, name: str) -> bool:
    return any(
        uses(module.source).class_of(each) is not None
        for module in tracker.naming(name)
        for each in uses(module.source).functions.get(name, ())
    )


def own_method(
    tracker: Tracker, source: Source, name: str, path: Path, call: ast.Call, calls: Calls
) -> None:
    """A method of a record or of an object: the value is its first parameter."""
    for module in tracker.naming(name):
        index = uses(module.source)
        for each in index.functions.get(name, ()):
            names = parameters(each)
            if index.class_of(each) is not None and names and not is_static(each):
                entered = (*calls, (source, call))[-MAX_CALLS:]
                tracker.hold(Holder(module.source, each, names[0]), path, entered)


def _handed_functions(
    tracker: Tracker, source: Source, call: ast.Call, node: ast.AST, path: Path, calls: Calls
) -> None:
    """Functions that are passed along with the value: they may be called with it."""
    for each in (*call.args, *(k.value for k in call.keywords)):
        if each is node or not isinstance(each, ast.Name | ast.Attribute | ast.Lambda):
            continue
        if isinstance(each, ast.Attribute) and each.attr in writers.MUTATORS:
            continue
        for callee in tracker.resolver.callees(source, each, calls):
            if isinstance(callee, Target) and isinstance(callee.node, FunctionNode):
                for name in parameters(callee.node):
                    for steps in (path, tracker.item(path)):
                        if steps is not None:
                            tracker.hold(Holder(callee.source, callee.node, name), steps)
            elif isinstance(callee, Named) and writers.writes(callee.name, 0):
                if not tracker.shallow:
                    tracker.write(source, call)


def _position(call: ast.Call, node: ast.AST) -> tuple[int | None, str | None]:
    """Where an argument stands: its position, or its keyword."""
    if isinstance(node, ast.keyword):
        return None, node.arg
    for index, each in enumerate(call.args):
        if each is node:
            return index, None
    return None, None


def _parameters(
    function: FunctionNode, call: ast.Call, node: ast.AST, path: Path, offset: int
) -> Iterator[tuple[str, Path]]:
    """The parameters that an argument of a call is bound to."""
    spec = function.args
    positional = [p.arg for p in (*spec.posonlyargs, *spec.args)]
    if isinstance(node, ast.keyword):
        if node.arg in (*positional, *(p.arg for p in spec.kwonlyargs)):
            yield str(node.arg), path
        elif node.arg is None:
            rest = () if not path else path[1:] if path[0] == ITEM else None
            for name in (*positional, *(p.arg for p in spec.kwonlyargs)):
                if rest is not None:
                    yield name, rest
        if spec.kwarg is not None:
            yield spec.kwarg.arg, (ITEM, *path) if node.arg is not None else path
        return
    place = next((i for i, each in enumerate(call.args) if each is node), 0) + offset
    if isinstance(node, ast.Starred):
        rest = () if not path else path[1:] if path[0] == ITEM else None
        for name in positional[place:]:
            if rest is not None:
                yield name, rest
        if spec.vararg is not None:
            yield spec.vararg.arg, path or (ITEM,)
        return
    starred = any(isinstance(each, ast.Starred) for each in call.args[: place - offset])
    for index, name in enumerate(positional):
        if index == place or (starred and index > place):
            yield name, path
    if spec.vararg is not None and (place >= len(positional) or starred):
        yield spec.vararg.arg, (ITEM, *path)
