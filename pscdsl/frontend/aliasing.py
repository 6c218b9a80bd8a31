"""Where a value may be written, found by following it through the text of a project.

From the names that hold it the value is followed forwards: through assignments, containers,
attributes, views, arguments and results of functions.  Nothing is evaluated, branches count as
taken, and a call is followed into the functions it may mean; so every write that the text shows is
found.  What is handed to code without text is a write that may be.

See Note [Paths].
"""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from pscdsl.frontend import writers
from pscdsl.frontend.resolution import (
    Callee,
    Calls,
    Method,
    Module,
    Named,
    Resolver,
    Target,
    argument,
    assigned,
    is_static,
)
from pscdsl.frontend.source import FunctionNode, Source
from pscdsl.frontend.uses import ScopeNode, parameters, uses
from pscdsl.typing.spans import Span

# Note [Paths].  What is followed is a value together with the steps from there to the object that
# matters: no steps are left where the value is the object itself or a part of it.  `T` inside
# `{"a": T}` is the dict with one step `[]`; the module `lib` is the object `lib.T` with the step
# `.T`.  Reading an item or attribute takes a step away, putting it into something adds one.  The
# step `.*` stands for every attribute of a module or class, and collects which are rebound; `~*`
# does the same for an instance, whose own attributes are not those of its class.
Path: TypeAlias = tuple[str, ...]
ITEM = "[]"
EVERY = ".*"
OF_INSTANCE = "~*"
MAX_CALLS = 4
"""Calls that are remembered on the way; a result goes back to the call that it belongs to."""
MAX_USES = 20_000
_FunctionStatement = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Holder:
    """A name that holds a value: of a module, or of the scope of a function in it."""

    source: Source
    scope: ScopeNode | None
    name: str


@dataclass(frozen=True)
class Write:
    """A place where the object is written, or may be."""

    span: Span
    passed_to: str = ""
    """Code without text that the object is handed to; empty where the text shows the write."""


class Tracker:
    """Follows one object through a project."""

    def __init__(self, resolver: Resolver, *, shallow: bool = False) -> None:
        self.resolver = resolver
        self.shallow = shallow
        """Whether only its special attributes matter: of a function, `__defaults__` and others."""
        self.written: Write | None = None
        self.may_be_written: Write | None = None
        self.rebound: dict[str, Write] = {}
        """For the step `.*`: which attributes are stored."""
        self.rebound_by_computed_names: Write | None = None
        self._pending: deque[tuple[Source, ast.AST, Path, Calls]] = deque()
        self._seen: set[tuple[int, ast.AST, Path, Calls]] = set()
        self._held: set[tuple[Holder, Path, Calls]] = set()
        self._attributes: set[tuple[str, Path]] = set()

    def run(self) -> None:
        """Follow until nothing new is reached or a write is found."""
        count = 0
        while self._pending and self.written is None:
            count += 1
            source, node, path, calls = self._pending.popleft()
            if count > MAX_USES:
                self._may_write(source, node, "more places than are followed")
                return
            self._use(source, node, path, calls)

    # Where values are.

    def hold(self, holder: Holder, path: Path, calls: Calls = ()) -> None:
        """A name holds the value."""
        key = (holder, path, calls)
        if key in self._held:
            return
        self._held.add(key)
        source, name = holder.source, holder.name
        index = uses(source)
        for node in index.names.get(name, ()):
            if index.owner(node, name) is holder.scope:
                if not self.resolver.in_kernel(source, node):  # that is checked itself
                    self.at(source, node, path, calls)
        if holder.scope is None:
            self._importers(source, name, path)
        elif isinstance(holder.scope, ast.ClassDef):  # a name in a class body
            owner = index.owner(holder.scope, holder.scope.name)
            self.hold_class(Holder(source, owner, holder.scope.name), f".{name}", path)

    def hold_class(self, holder: Holder, step: str, path: Path = ()) -> None:
        """A class has the value as an attribute; its methods see it by their first parameter."""
        self.hold(holder, (step, *path))
        for module in self._naming(holder.name):
            for classes in uses(module.source).classes.values():
                for each in classes:
                    bases = {getattr(b, "id", getattr(b, "attr", "")) for b in each.bases}
                    own = each.name == holder.name and module.source is holder.source
                    if own or holder.name in bases:
                        self._methods(module.source, each, step, path)

    def _methods(self, source: Source, node: ast.ClassDef, step: str, path: Path) -> None:
        for each in node.body:
            if isinstance(each, _FunctionStatement) and not is_static(each):
                names = parameters(each)
                decorators = {getattr(d, "id", "") for d in each.decorator_list}
                of_class = "classmethod" in decorators or each.name == "__init_subclass__"
                first = OF_INSTANCE if step == EVERY and not of_class else step
                if names:
                    self.hold(Holder(source, each, names[0]), (first, *path))

    def hold_module(self, module: Module, path: Path) -> None:
        """A module object, wherever it is imported or looked up by name."""
        self._module_names(module.module, path)
        for each in self.resolver.naming("modules", "import_module", "__import__"):
            self._looked_up(each, module, path)
        self._own_names(module, path)

    def _looked_up(self, each: Module, module: Module, path: Path) -> None:
        """`sys.modules[…]`, `importlib.import_module(…)`."""
        index, source = uses(each.source), each.source
        for node in index.attributes.get("modules", ()):
            parent = index.parents.get(node)
            if isinstance(parent, ast.Subscript) and parent.value is node:
                if _may_name(parent.slice, module, each):
                    self.at(source, parent, path)
        for name in ("import_module", "__import__"):
            for node in (*index.names.get(name, ()), *index.attributes.get(name, ())):
                call = index.parents.get(node)
                if isinstance(call, ast.Call) and call.func is node and call.args:
                    if _may_name(call.args[0], module, each):
                        self.at(source, call, path)

    def _own_names(self, module: Module, path: Path) -> None:
        """`globals()`, `exec(…)` in the module itself."""
        index, source = uses(module.source), module.source
        for name in ("globals", "vars", "locals"):
            for node in index.names.get(name, ()):
                call = index.parents.get(node)
                if isinstance(call, ast.Call) and call.func is node and not call.args:
                    if name == "globals" or index.function_of(call) is None:
                        self.at(source, call, path)
        for name in ("exec", "eval"):
            for node in index.names.get(name, ()):
                call = index.parents.get(node)
                if isinstance(call, ast.Call) and call.func is node and len(call.args) == 1:
                    self._executed(source, call, path)

    def _executed(self, source: Source, call: ast.Call, path: Path) -> None:
        code = call.args[0]
        if isinstance(code, ast.Constant) and isinstance(code.value, str) and path[:1] != (EVERY,):
            if not re.search(rf"\b{re.escape(path[0][1:])}\b", code.value):
                return
        self._may_write(source, call, ast.unparse(call.func))

    def _importers(self, source: Source, name: str, path: Path) -> None:
        """A module-level name: its module wherever it is used, and whoever imports the name."""
        module = self.resolver.modules.get(id(source))
        if module is None:
            return
        for other in self._naming(name):
            index = uses(other.source)
            for node in index.imports:
                if not isinstance(node, ast.ImportFrom):
                    continue
                if self.resolver.base_of(other.source, node) != module.module:
                    continue
                for alias in node.names:
                    if alias.name == name:
                        bound = alias.asname or name
                    elif alias.name == "*" and other is not module:
                        bound = name
                    else:
                        continue
                    scope = index.owner(node, bound)
                    self.hold(Holder(other.source, scope, bound), path)
        if path[:1] != (EVERY,):
            self.hold_module(module, (f".{name}", *path))

    def _module_names(self, name: str, path: Path) -> None:
        last = name.rpartition(".")[2]
        for other in self._naming(last):
            index = uses(other.source)
            for node in index.imports:
                for alias in node.names:
                    if isinstance(node, ast.ImportFrom):
                        full = f"{self.resolver.base_of(other.source, node)}.{alias.name}"
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
                    self.hold(Holder(other.source, scope, bound), steps)

    def _naming(self, word: str) -> Iterator[Module]:
        """The modules in whose text a word stands."""
        return iter(self.resolver.naming(word))

    def at(self, source: Source, node: ast.AST, path: Path, calls: Calls = ()) -> None:
        """An expression has the value."""
        key = (id(source), node, path, calls)
        if key not in self._seen:
            self._seen.add(key)
            self._pending.append((source, node, path, calls))

    # What is done with them.

    def _write(self, source: Source, node: ast.AST) -> None:
        if self.written is None:
            self.written = Write(source.span(node))

    def _may_write(self, source: Source, node: ast.AST, passed_to: str) -> None:
        if self.may_be_written is None:
            self.may_be_written = Write(source.span(node), passed_to)
        if self.rebound_by_computed_names is None:
            self.rebound_by_computed_names = Write(source.span(node), passed_to)

    def _rebind(self, source: Source, node: ast.AST, path: Path, name: str | None) -> None:
        """A store into an attribute of a module or class; None: of which one is not known."""
        if path[0] != EVERY:
            return
        if name is None:
            self._may_write(source, node, "a name that is computed")
        else:
            self.rebound.setdefault(name, Write(source.span(node)))

    def _use(self, source: Source, node: ast.AST, path: Path, calls: Calls) -> None:
        """What the surroundings of an expression do with its value."""
        parent = uses(source).parents.get(node)
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            if isinstance(node.ctx, ast.Store) and isinstance(parent, ast.AugAssign):
                if not path and not self.shallow:
                    self._write(source, parent)
                return
            if not isinstance(node.ctx, ast.Load):
                return
        if isinstance(parent, ast.Attribute):
            self._attribute(source, parent, path, calls)
        elif isinstance(parent, ast.Subscript) and parent.value is node:
            self._subscript(source, parent, path, calls)
        elif isinstance(parent, ast.Call) and parent.func is not node:
            self._passed(source, parent, node, path, calls)
        elif isinstance(parent, ast.Call):
            if path[:1] and path[0][0] == "." and path[0] != EVERY:
                self.at(source, parent, path, calls)  # an instance has what its class has
        elif isinstance(parent, ast.keyword):
            call = uses(source).parents.get(parent)
            if isinstance(call, ast.Call):
                self._passed(source, call, parent, path, calls)
        elif isinstance(parent, ast.Starred):
            self._starred(source, parent, path, calls)
        else:
            self._bound(source, parent, node, path, calls)

    def _bound(
        self, source: Source, parent: ast.AST | None, node: ast.AST, path: Path, calls: Calls
    ) -> None:
        index = uses(source)
        if isinstance(parent, ast.Assign):
            for target in parent.targets:
                self._bind(source, target, path, calls)
        elif isinstance(parent, ast.AnnAssign | ast.NamedExpr) and parent.value is node:
            self._bind(source, parent.target, path, calls)
            if isinstance(parent, ast.NamedExpr):
                self.at(source, parent, path, calls)
        elif isinstance(parent, ast.AugAssign):
            if not self.shallow and parent.value is node:
                self._bind(source, parent.target, path or (ITEM,), calls)
        elif isinstance(parent, ast.For | ast.AsyncFor | ast.comprehension):
            rest = _item(path)
            if rest is not None and parent.iter is node:
                self._bind(source, parent.target, rest, calls)
        elif isinstance(parent, ast.withitem):
            if parent.optional_vars is not None:
                self._bind(source, parent.optional_vars, path, calls)
        elif isinstance(parent, ast.Tuple | ast.List):
            self._displayed(source, parent, node, path, calls)
        elif isinstance(parent, ast.Set | ast.Dict | ast.ListComp | ast.GeneratorExp):
            self.at(source, parent, (ITEM, *path), calls)
        elif isinstance(parent, ast.DictComp | ast.SetComp):
            self.at(source, parent, (ITEM, *path), calls)
        elif isinstance(parent, ast.IfExp | ast.BoolOp | ast.Await):
            self.at(source, parent, path, calls)
        elif isinstance(parent, ast.BinOp):
            if not self.shallow:
                self.at(source, parent, path if path[:1] == (ITEM,) else (ITEM, *path), calls)
        elif isinstance(parent, ast.Lambda) and parent.body is node:
            self._returned(source, parent, path, calls)
        elif isinstance(parent, ast.Return):
            function = index.function_of(parent)
            if function is not None:
                self._returned(source, function, path, calls)
        elif isinstance(parent, ast.Yield | ast.YieldFrom):
            function = index.function_of(parent)
            if function is not None:
                steps = (ITEM, *path) if isinstance(parent, ast.Yield) else path
                self._returned(source, function, steps, calls)
        elif isinstance(parent, ast.arguments):
            self._default(source, parent, node, path)
        elif isinstance(parent, ast.Match):
            for each in ast.walk(parent):
                if isinstance(each, ast.MatchAs | ast.MatchStar) and each.name is not None:
                    holder = Holder(source, index.owner(each, each.name), each.name)
                    self.hold(holder, path, calls)

    def _displayed(
        self,
        source: Source,
        parent: ast.Tuple | ast.List,
        node: ast.AST,
        path: Path,
        calls: Calls,
    ) -> None:
        """In a tuple: part of it, or, in `a, b = x, y`, what one name is assigned."""
        statement = uses(source).parents.get(parent)
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ast.Tuple | ast.List):
                plain = len(target.elts) == len(parent.elts) and not any(
                    isinstance(each, ast.Starred) for each in (*target.elts, *parent.elts)
                )
                if plain:
                    place = next(i for i, each in enumerate(parent.elts) if each is node)
                    self._bind(source, target.elts[place], path, calls)
                    return
        self.at(source, parent, (ITEM, *path), calls)

    def _starred(self, source: Source, node: ast.Starred, path: Path, calls: Calls) -> None:
        parent = uses(source).parents.get(node)
        if isinstance(parent, ast.Call):
            self._passed(source, parent, node, path, calls)
        elif isinstance(parent, ast.Tuple | ast.List | ast.Set):
            self.at(source, parent, path or (ITEM,), calls)

    def _bind(self, source: Source, target: ast.expr, path: Path, calls: Calls) -> None:
        """A pattern is assigned the value."""
        if isinstance(target, ast.Name):
            scope = uses(source).owner(target, target.id)
            self.hold(Holder(source, scope, target.id), path, calls)
        elif isinstance(target, ast.Tuple | ast.List):
            rest = _item(path)
            for each in target.elts:
                if isinstance(each, ast.Starred):
                    self._bind(source, each.value, path or (ITEM,), calls)
                elif rest is not None:
                    self._bind(source, each, rest, calls)
        elif isinstance(target, ast.Attribute):
            self._stored(target.attr, path)
        elif isinstance(target, ast.Subscript):
            self._contained(source, target.value, (ITEM, *path), calls)

    def _stored(self, attribute: str, path: Path) -> None:
        """An attribute of some object holds the value: of which one is not asked."""
        if path[:1] in ((EVERY,), (OF_INSTANCE,)) or (attribute, path) in self._attributes:
            return
        self._attributes.add((attribute, path))
        for module in self._naming(attribute):
            for node in uses(module.source).attributes.get(attribute, ()):
                self.at(module.source, node, path)

    def _contained(self, source: Source, owner: ast.expr, path: Path, calls: Calls) -> None:
        """What an expression stands for now holds the value."""
        if isinstance(owner, ast.Name):
            index = uses(source)
            scope = index.owner(owner, owner.id)
            self.hold(Holder(source, scope, owner.id), path, calls)
            if isinstance(scope, FunctionNode) and owner.id in parameters(scope):
                for each, given in self._given(source, scope, owner.id, calls):
                    self._contained(each, given, path, calls[:-1])
            elif scope is not None and len(path) < MAX_CALLS:
                for value in assigned(index, scope, owner.id):
                    if isinstance(value, ast.Name | ast.Attribute | ast.Subscript):
                        self._contained(source, value, path, calls)
        elif isinstance(owner, ast.Attribute):
            self._stored(owner.attr, path)
        elif isinstance(owner, ast.Subscript):
            self._contained(source, owner.value, (ITEM, *path), calls)

    def _given(
        self, source: Source, function: FunctionNode, name: str, calls: Calls
    ) -> Iterator[tuple[Source, ast.expr]]:
        """The expressions that calls give to a parameter."""
        for where, call in calls[-1:] or self.resolver.calls_of(source, function):
            given = argument(function, name, call) if isinstance(call, ast.Call) else None
            if given is not None:
                yield where, given

    def _attribute(self, source: Source, node: ast.Attribute, path: Path, calls: Calls) -> None:
        """`value.name`."""
        name, load = node.attr, isinstance(node.ctx, ast.Load)
        if path and path[0][0] in ".~":
            if name in ("__dict__", "__class__"):
                steps = (EVERY, *path[1:]) if path[0] == OF_INSTANCE else path
                self.at(source, node, steps, calls)
            elif path[0] == EVERY:
                if not load:
                    self._rebind(source, node, path, name)
                elif name in ("__setattr__", "__delattr__"):
                    self._rebind(source, node, path, None)
                elif name in ("update", "pop", "setdefault", "__setitem__", "clear", "popitem"):
                    self._dict_method(source, node, path)
            elif path[0] == f".{name}" and load:
                self.at(source, node, path[1:], calls)
            elif path[0][1:] and load and name in ("get", "pop", "setdefault"):
                parent = uses(source).parents.get(node)
                if isinstance(parent, ast.Call):  # of `vars(module)`
                    self.at(source, parent, path[1:], calls)
            return
        if self.shallow and not (name.startswith("__") and name.endswith("__")):
            return
        parent = uses(source).parents.get(node)
        call = parent if isinstance(parent, ast.Call) and parent.func is node else None
        if not load:
            if not path:
                self._write(source, node)
        elif name in writers.MUTATORS:
            if not path:
                self._write(source, node if call is None else call)
            elif call is not None:
                self.at(source, call, path[1:], calls)
        elif call is None:
            self.at(source, node, path if name in writers.VIEWS else path[1:], calls)
        elif name in writers.VIEWS:
            self.at(source, call, path, calls)
            self.at(source, call, path[1:], calls)
        elif name in ("copy", "tolist", "__copy__"):
            self.at(source, call, path or (ITEM,), calls)
        else:
            self._own_method(source, name, path, call, calls)

    def _own_method(
        self, source: Source, name: str, path: Path, call: ast.Call, calls: Calls
    ) -> None:
        """A method of a record or of an object: the value is its first parameter."""
        for module in self._naming(name):
            index = uses(module.source)
            for each in index.functions.get(name, ()):
                names = parameters(each)
                if index.class_of(each) is not None and names and not is_static(each):
                    entered = (*calls, (source, call))[-MAX_CALLS:]
                    self.hold(Holder(module.source, each, names[0]), path, entered)

    def _dict_method(self, source: Source, node: ast.Attribute, path: Path) -> None:
        """`globals().update(…)`: of the dict of a module."""
        call = uses(source).parents.get(node)
        if not isinstance(call, ast.Call) or call.func is not node:
            return
        if not isinstance(node.value, ast.Call | ast.Attribute):
            return  # a method of the module itself, which happens to have this name
        if isinstance(node.value, ast.Attribute) and node.value.attr != "__dict__":
            return
        if node.attr == "update" and all(k.arg for k in call.keywords) and not call.args:
            for keyword in call.keywords:
                self._rebind(source, call, path, keyword.arg)
        elif call.args and node.attr not in ("update", "clear", "popitem"):
            self._rebind(source, call, path, _text(call.args[0]))
        else:
            self._rebind(source, call, path, None)

    def _subscript(self, source: Source, node: ast.Subscript, path: Path, calls: Calls) -> None:
        """`value[index]`."""
        load = isinstance(node.ctx, ast.Load)
        if path and path[0][0] in ".~":  # the dict of a module, by `globals()` or `vars(module)`
            key = _text(node.slice)
            if not load:
                self._rebind(source, node, path, key)
            elif path[0] != EVERY and (key is None or path[0] == f".{key}"):
                self.at(source, node, path[1:], calls)
        elif self.shallow and not path:
            return
        elif load:
            self.at(source, node, path[1:], calls)
        elif not path:
            self._write(source, node)

    def _default(
        self, source: Source, spec: ast.arguments, node: ast.AST, path: Path
    ) -> None:
        """The default of a parameter."""
        function = uses(source).parents.get(spec)
        positional = [*spec.posonlyargs, *spec.args]
        own = positional[len(positional) - len(spec.defaults) :]
        pairs = [
            *zip(own, spec.defaults, strict=True),
            *zip(spec.kwonlyargs, spec.kw_defaults, strict=True),
        ]
        for parameter, default in pairs:
            if default is node and isinstance(function, FunctionNode):
                self.hold(Holder(source, function, parameter.arg), path)

    # Calls.

    def _passed(
        self, source: Source, call: ast.Call, node: ast.AST, path: Path, calls: Calls
    ) -> None:
        """The value is an argument of a call."""
        for callee in dict.fromkeys(self.resolver.callees(source, call.func, calls)):
            if isinstance(callee, Target):
                self._enter(source, call, node, path, calls, callee)
            else:
                self._outside(source, call, node, path, calls, callee)

    def _enter(
        self,
        source: Source,
        call: ast.Call,
        node: ast.AST,
        path: Path,
        calls: Calls,
        target: Target,
    ) -> None:
        function, offset = target.node, target.offset
        if isinstance(function, ast.ClassDef):
            self._construct(source, call, node, path, calls, target)
            return
        if self.resolver.is_kernel(target.source, function):
            return  # it is checked itself
        repeats = any(each is call for _, each in calls)
        entered = calls if repeats else (*calls, (source, call))[-MAX_CALLS:]
        for name, steps in _parameters(function, call, node, path, offset):
            self.hold(Holder(target.source, function, name), steps, entered)

    def _construct(
        self,
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
                self._enter(source, call, node, path, calls, Target(target.source, each, 1))
        if made:
            return
        fields = [
            each.target.id
            for each in target.node.body
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
        ]
        position, keyword = _position(call, node)
        if keyword is not None:
            self._stored(keyword, path)
        elif position is not None and position < len(fields):
            self._stored(fields[position], path)
        else:
            for field in fields:
                self._stored(field, path[1:] if isinstance(node, ast.Starred) else path)
        self.at(source, call, (ITEM, *path), calls)

    def _outside(
        self,
        source: Source,
        call: ast.Call,
        node: ast.AST,
        path: Path,
        calls: Calls,
        callee: Callee,
    ) -> None:
        """An argument of a function that is not the project's."""
        position, keyword = _position(call, node)
        place: int | str = keyword if keyword is not None else (position or 0)
        name = callee.name if isinstance(callee, Named | Method) else ""
        if self._by_name(source, call, path, place, name):
            return
        if isinstance(callee, Named):
            if not path and not self.shallow and writers.writes(name, place):
                self._write(source, call)
                return
            depth = writers.handed_on(name)
            if depth is not None:
                rest = path if depth == 0 else ((ITEM,) * depth + (path[1:] if path else ()))
                self.at(source, call, rest, calls)
        elif isinstance(callee, Method):
            self._kept(source, call, node, path, calls, name)
        self._handed_functions(source, call, node, path, calls)
        if self.shallow or path[:1] not in ((), (ITEM,)):
            return
        if isinstance(callee, Named):
            known = writers.is_seen(name)
        else:
            known = bool(name) and (writers.is_known_method(name) or self._is_method(name))
        if not known:
            self._may_write(source, call, source.text_of(call.func))

    def _by_name(
        self, source: Source, call: ast.Call, path: Path, place: int | str, name: str
    ) -> bool:
        """`setattr`, `getattr`: attributes whose names are given as strings."""
        if place != 0 or name not in ("builtins.setattr", "builtins.delattr", "builtins.getattr"):
            return False
        attribute = _text(call.args[1]) if len(call.args) > 1 else None
        if name == "builtins.getattr":
            if path and path[0][0] == "." and path[0] != EVERY:
                if attribute is None or path[0] == f".{attribute}":
                    self.at(source, call, path[1:])
            elif not self.shallow:
                self.at(source, call, path)
        elif path and path[0][0] in ".~":
            self._rebind(source, call, path, attribute)
        elif not path and (not self.shallow or attribute is None or attribute[:2] == "__"):
            self._write(source, call)
        return True

    def _kept(
        self, source: Source, call: ast.Call, node: ast.AST, path: Path, calls: Calls, name: str
    ) -> None:
        """A method of an object that is not known: it may keep the value; or it is the project's."""
        if isinstance(call.func, ast.Attribute):
            if name in writers.HOLDERS:
                self._contained(source, call.func.value, (ITEM, *path), calls)
            elif name in writers.SPREADERS:
                self._contained(source, call.func.value, path or (ITEM,), calls)
        for module in self._naming(name):
            index = uses(module.source)
            for each in index.functions.get(name, ()):
                if index.class_of(each) is not None:
                    target = Target(module.source, each, 0 if is_static(each) else 1)
                    self._enter(source, call, node, path, calls, target)

    def _is_method(self, name: str) -> bool:
        return any(
            uses(module.source).class_of(each) is not None
            for module in self._naming(name)
            for each in uses(module.source).functions.get(name, ())
        )

    def _handed_functions(
        self, source: Source, call: ast.Call, node: ast.AST, path: Path, calls: Calls
    ) -> None:
        """Functions that are passed along with the value: they may be called with it."""
        for each in (*call.args, *(k.value for k in call.keywords)):
            if each is node or not isinstance(each, ast.Name | ast.Attribute | ast.Lambda):
                continue
            if isinstance(each, ast.Attribute) and each.attr in writers.MUTATORS:
                continue
            for callee in self.resolver.callees(source, each, calls):
                if isinstance(callee, Target) and isinstance(callee.node, FunctionNode):
                    for name in parameters(callee.node):
                        for steps in {path, path[1:]}:
                            self.hold(Holder(callee.source, callee.node, name), steps)
                elif isinstance(callee, Named) and writers.writes(callee.name, 0):
                    if not self.shallow:
                        self._write(source, call)

    def _returned(self, source: Source, function: FunctionNode, path: Path, calls: Calls) -> None:
        """A function returns the value: to the call it was entered by, or to all."""
        if calls:
            where, call = calls[-1]
            self.at(where, call, path, calls[:-1])
            return
        for where, node in self.resolver.calls_of(source, function):
            self.at(where, node, path)


def _item(path: Path) -> Path | None:
    """What an item of a value with this path has; None if it has no part in the object."""
    if not path:
        return ()
    return path[1:] if path[0] == ITEM else None


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _may_name(node: ast.expr, module: Module, here: Module) -> bool:
    """Whether an expression may be the name of a module."""
    text = _text(node)
    if text is not None:
        return text == module.module or text.lstrip(".") == module.module.rpartition(".")[2]
    if isinstance(node, ast.Name) and node.id == "__name__":
        return here is module
    return True


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
            rest = _item(path)
            for name in (*positional, *(p.arg for p in spec.kwonlyargs)):
                if rest is not None:
                    yield name, rest
        if spec.kwarg is not None:
            yield spec.kwarg.arg, (ITEM, *path) if node.arg is not None else path
        return
    place = next((i for i, each in enumerate(call.args) if each is node), 0) + offset
    if isinstance(node, ast.Starred):
        rest = _item(path)
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
