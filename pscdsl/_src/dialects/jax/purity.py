"""Purity of what JAX's transformations run: they call a function once and keep its program.

A function that is passed to a transformation, or decorated by one, is a region: its body, and the
functions of the file that it uses. An effect on something that exists outside of the region happens
when the function is traced, not when its program runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pscdsl._src.dialects.jax.arrays import Arrays, Traced, updated_array
from pscdsl._src.dialects.jax.concrete import needed_values, static_parameters, traced
from pscdsl._src.dialects.jax.intended import is_test
from pscdsl._src.dialects.jax.library import (
    BODIES,
    CLOCKS,
    DERIVATIVES,
    FOLLOWED,
    JITTED,
    NUMPY_STATES,
    PER_ELEMENT,
    PYTHON_STATES,
    QUIET_METHODS,
    RUN,
)
from pscdsl._src.dialects.jax.names import Program, Scope, Variable, body_of, own_nodes
from pscdsl._src.dialects.jax.unknown import Cause, UnknownCall, unknown_call
from pscdsl._src.frontend.text.source import (
    FunctionStatement,
    parameters,
    with_defaults,
)
from pscdsl.typing.codes.purity import (
    HiddenInput,
    MutableCapture,
    Mutation,
    OuterWrite,
    RandomState,
    ResultLost,
    SideEffect,
)
from pscdsl.typing.diagnostics import Diagnostic, Label

_MUTATORS = frozenset(
    "append extend insert pop popitem remove clear update add discard setdefault appendleft "
    "sort reverse".split()
)
_CONTAINERS = frozenset(
    {
        *("builtins.list", "builtins.dict", "builtins.set", "collections.defaultdict"),
        *("collections.deque", "collections.OrderedDict", "collections.Counter"),
        *("numpy.zeros", "numpy.ones", "numpy.empty", "numpy.array", "numpy.full"),
    }
)
_CALLING = PER_ELEMENT | {"functools.partial", "builtins.filter", "builtins.sorted"}
_LEVELS = frozenset("debug info warning error critical exception log".split())
_SIMPLE = ast.Assign | ast.AugAssign | ast.Expr | ast.AnnAssign | ast.Return
_LOGGER = "logging.getLogger"
_UPDATING = frozenset({"optax.apply_updates", "equinox.apply_updates", "equinox.tree_at"})
"""Functions that return a new tree in place of the one that they are given."""
_OUTPUT = frozenset({"builtins.print", "builtins.input", "builtins.open", "builtins.breakpoint"})


@dataclass(frozen=True)
class Region:
    """A function that a transformation runs."""

    scope: Scope
    transformation: str
    node: ast.AST
    """The place that names the transformation."""
    holds_self: bool
    """Whether its first parameter is an object that exists outside."""
    traced: Traced | None = None
    """What is traced of it, if its elements are not known."""
    title: str = ""
    """The name of what the transformation returns, if it has one."""

    def is_traced(self, scope: Scope, node: ast.expr) -> bool:
        """Return whether an expression is certainly an array whose elements are not known."""
        kinds = ("array", "parameter")
        return self.traced is not None and Arrays(self.traced).kind(scope, node) in kinds


class Purity:
    """The check of one file."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.source = program.source
        self.found: dict[tuple[ast.AST, str], Diagnostic] = {}
        self._unknown: dict[ast.AST, tuple[Program, Cause]] = {}
        self._global_writes: dict[Program, dict[str, ast.AST]] = {}

    def check(self) -> None:
        """Check all regions of the file."""
        for region in list(self._regions()):
            self._walk(region, region.scope, {region.scope}, region.holds_self)
            if region.transformation in JITTED:
                self._stale(region)
            if region.traced is not None:
                arrays = Arrays(region.traced)
                for scope, node, finding in needed_values(arrays, region.scope, set()):
                    self._report(region, scope, node, finding)
        arrays = Arrays()
        for scope in self.program.scopes.values():
            for node in own_nodes(scope.node):
                self._changed_in_place(arrays, scope, node)

    def unknown_calls(self) -> Iterator[UnknownCall]:
        """Yield the calls in functions that are traced whose effects are not known."""
        for node, (program, cause) in self._unknown.items():
            yield unknown_call(program, node, cause, "effects")

    # The functions that transformations run.

    def _regions(self) -> Iterator[Region]:
        for scope in self.program.scopes.values():
            node = scope.node
            if isinstance(node, FunctionStatement):
                for each in node.decorator_list:
                    name, call = self._transformation(scope.parent or scope, each)
                    if name in RUN:
                        first = parameters(node)[:1]
                        statics = static_parameters(node, call)
                        holds = scope.owner is not None and not statics.isdisjoint(first)
                        known = traced(scope, name, call)
                        yield Region(scope, name, each, holds, known, node.name)
            for inner in own_nodes(node):
                if isinstance(inner, ast.Call):
                    yield from self._run_by(scope, inner)

    def _transformation(self, scope: Scope, node: ast.expr) -> tuple[str, ast.Call | None]:
        """Return the name of a transformation, and the call that gives its options."""
        call = node if isinstance(node, ast.Call) else None
        name = self.program.full_name(scope, call.func if call else node)
        if name == "functools.partial" and call and call.args:
            name = self.program.full_name(scope, call.args[0])
        return name, call

    def _run_by(self, scope: Scope, call: ast.Call) -> Iterator[Region]:
        """Yield the functions that a call of a transformation runs."""
        name = self.program.full_name(scope, call.func)
        if name not in RUN:
            return
        given = [call.args[place] for place in RUN[name] if place < len(call.args)]
        given += [word.value for word in call.keywords if word.arg in BODIES]
        title = next((title for title, value in scope.values.items() if value is call), "")
        for each in given:
            parts = each.elts if isinstance(each, ast.List | ast.Tuple) else [each]
            for part in parts:
                part = self._differentiated(scope, part)
                whole = part
                if isinstance(part, ast.Call) and part.args:
                    maker = self.program.full_name(scope, part.func)
                    if maker in ("functools.partial", "jax.tree_util.Partial"):
                        part = part.args[0]
                function = self.program.function(scope, part)
                if function is None and (cause := self._cause(scope, part)) is not None:
                    self._unknown.setdefault(part, (self.program, cause))
                if function is not None and not _yields(function):
                    of_self = isinstance(part, ast.Attribute)
                    if whole is part:
                        values = traced(function, name, call, is_bound=of_self)
                    else:
                        values = traced(function, name, call, is_partial=True)
                    yield Region(function, name, call.func, of_self, values, title)

    def _differentiated(self, scope: Scope, node: ast.expr) -> ast.expr:
        """Return `f` of `jax.grad(f)`, whose parameters are those of `f`."""
        while isinstance(node, ast.Call) and node.args:
            if self.program.full_name(scope, node.func) not in DERIVATIVES:
                break
            node = node.args[0]
        return node

    # The effects in a region.

    def _walk(self, region: Region, scope: Scope, seen: set[Scope], holds_self: bool) -> None:
        """Check a function of a region, and those that it uses."""
        node = scope.node
        pending = [*own_nodes(node)]
        for each in pending:
            self._effects(region, scope, each, holds_self)
        for each in self._used(scope, node):
            function = scope.program.function(scope, each)
            if function is None or function in seen or _yields(function):
                if (cause := self._cause(scope, each)) is not None:
                    self._unknown.setdefault(each, (scope.program, cause))
                continue
            seen.add(function)
            of_self = isinstance(each, ast.Attribute)
            if isinstance(function.node, FunctionStatement) and function.title == "__init__":
                continue
            holds = holds_self or self._is_own_member(region, scope, each)
            self._walk(region, function, seen, holds and of_self)

    def _cause(self, scope: Scope, node: ast.expr) -> Cause | None:
        """Return why the effects of a function are not known; None if they are."""
        meaning = scope.program.meaning(scope, node)
        if isinstance(meaning, Variable):
            value = meaning.scope.values.get(meaning.name)
            if isinstance(value, ast.Call):  # what a transformation made
                return self._cause(meaning.scope, value.func)
            return "value"
        match meaning, node:
            case str(), _:
                return None if meaning.partition(".")[0] in FOLLOWED else "library"
            case Scope(), _:
                return "generator" if _yields(meaning) else None
            case None, ast.Attribute(value=owner, attr=attr):
                own = attr in _MUTATORS and self._is_own(scope, owner)
                return None if own or attr in QUIET_METHODS else "method"
            case None, ast.Call(func=func):
                return self._cause(scope, func)
            case None, _:
                return "value"
            case _:
                return None

    def _used(self, scope: Scope, node: ast.AST) -> Iterator[ast.expr]:
        """Yield the expressions that name functions which are called."""
        for each in own_nodes(node):
            if isinstance(each, ast.Call):
                yield each.func
                if scope.program.full_name(scope, each.func) in _CALLING:
                    yield from each.args[:1]

    def _effects(self, region: Region, scope: Scope, node: ast.AST, holds_self: bool) -> None:
        match node:
            case ast.Call():
                self._call(region, scope, node, holds_self)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                self._declared(region, scope, names)
            case ast.Assign(targets=targets, value=value):
                for each in targets:
                    self._store(region, scope, each, holds_self)
                    if isinstance(each, ast.Subscript) and region.is_traced(scope, value):
                        what = f"an assignment to an item of `{self._text(scope, each.value)}`"
                        self._change_of_own(region, scope, each.value, each, what, holds_self)
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                self._store(region, scope, target, holds_self)
            case ast.Delete(targets=targets):
                for each in targets:
                    self._store(region, scope, each, holds_self)
            case _:
                pass

    def _call(self, region: Region, scope: Scope, node: ast.Call, holds_self: bool) -> None:
        name = scope.program.full_name(scope, node.func)
        shown = name.removeprefix("builtins.")
        if name in _OUTPUT:
            help_ = "`jax.debug.print` prints when the program runs" if shown == "print" else ""
            self._report(region, scope, node, SideEffect(function=shown, rewrite=help_))
        elif name in ("sys.stdout.write", "sys.stderr.write"):
            self._report(region, scope, node, SideEffect(function=shown, rewrite=""))
        elif name in CLOCKS:
            rewrite = "read the clock outside, and pass the time as an argument"
            self._report(
                region, scope, node, HiddenInput(function=shown, what="the clock", rewrite=rewrite)
            )
        elif self._draws(name, node):
            self._report(region, scope, node, RandomState(function=shown, library="jax"))
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _MUTATORS:
            if is_test(scope) and all(isinstance(each, ast.Constant) for each in node.args):
                return
            what = f"`{self._text(scope, node.func)}`"
            self._mutation(region, scope, node.func.value, node, what)
            self._change_of_own(region, scope, node.func.value, node, what, holds_self)
        elif self._logs(scope, node.func, name):
            if any(region.is_traced(scope, each) for each in _shown(node)):
                rewrite = "`jax.debug.callback` calls a function when the program runs"
                function = self._text(scope, node.func)
                self._report(region, scope, node, SideEffect(function=function, rewrite=rewrite))

    def _logs(self, scope: Scope, node: ast.expr, name: str) -> bool:
        """Return whether a function writes to a log."""
        if not isinstance(node, ast.Attribute) or node.attr not in _LEVELS:
            return False
        if name.rpartition(".")[0] in ("logging", "absl.logging"):
            return True
        meaning = scope.program.meaning(scope, node.value)
        if not isinstance(meaning, Variable):
            return False
        value = meaning.scope.values.get(meaning.name)
        if not isinstance(value, ast.Call):
            return False
        return meaning.scope.program.full_name(meaning.scope, value.func) == _LOGGER

    @staticmethod
    def _text(scope: Scope, node: ast.AST) -> str:
        return scope.program.source.text_of(node)

    def _draws(self, name: str, node: ast.Call) -> bool:
        module, _, last = name.rpartition(".")
        if module == "numpy.random":
            return last not in NUMPY_STATES or not (node.args or node.keywords)
        return module == "random" and last not in PYTHON_STATES

    def _changed_in_place(self, arrays: Arrays, scope: Scope, node: ast.AST) -> None:
        """Report a statement that stores into an array of JAX, or loses the one it computes."""
        finding: Diagnostic | None = None
        match node:
            case ast.Expr(value=value) if isinstance(
                owner := updated_array(value), ast.Name | ast.Attribute
            ):
                if arrays.is_array(scope, owner) or not self._may_be_stored_into(owner):
                    text = self.source.text_of(owner)
                    call = " ".join(self.source.text_of(value).split())
                    finding = ResultLost(name=text, update=call)
            case ast.Expr(value=ast.Call(func=func, args=args) as call):
                name = self.program.full_name(scope, func)
                owner = args[name == "equinox.tree_at"] if len(args) > 1 else None
                if name in _UPDATING and isinstance(owner, ast.Name | ast.Attribute):
                    text = " ".join(self.source.text_of(call).split())
                    finding = ResultLost(name=self.source.text_of(owner), update=text, new="tree")
            case (
                ast.Assign(targets=[ast.Subscript(value=owner) as target])
                | ast.AugAssign(target=ast.Subscript(value=owner) as target)
            ):
                if arrays.is_array(scope, owner):
                    text = self.source.text_of(owner)
                    index = self.source.text_of(target.slice)
                    what = f"an assignment to an item of `{text}`"
                    rewrite = f"`{text} = {text}.at[{index}].set(…)` gives a new array"
                    finding = Mutation(what=what, rewrite=rewrite, why="is immutable")
            case _:
                pass
        if finding is not None:
            span = self.source.span(node)
            self.found.setdefault((node, finding.code), finding.replaced(span=span))

    def _may_be_stored_into(self, owner: ast.expr) -> bool:
        """Return whether an object with a member `at` may be no array: a frame, or a reference."""
        return "ref" in self.source.text_of(owner).lower() or any(
            word in self.source.text for word in ("pandas", "pallas", "new_ref", "mutable_array")
        )

    def _declared(self, region: Region, scope: Scope, names: list[str]) -> None:
        """Report the names of outer scopes that a function binds."""
        for name in names:
            owner = scope.parent.owner_of(name) if scope.parent else None
            if owner is None or owner.is_inside(region.scope):
                continue
            if not (isinstance(owner.node, ast.Module) or region.scope.is_inside(owner)):
                continue  # a function that the region calls has this name to itself
            if is_test(scope) and _binds_constants(scope, name):
                continue  # it counts how often the function is traced
            for each in own_nodes(scope.node):
                if isinstance(each, ast.Name) and each.id == name and _is_store(each):
                    self._report(region, scope, each, OuterWrite(name=name))
                    break

    def _store(self, region: Region, scope: Scope, target: ast.AST, holds_self: bool) -> None:
        match target:
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for each in parts:
                    self._store(region, scope, each, holds_self)
            case ast.Starred(value=value):
                self._store(region, scope, value, holds_self)
            case ast.Attribute():
                if self._is_own_member(region, scope, target, holds_self):
                    name = self._text(scope, target)
                    self._report(region, scope, target, OuterWrite(name=name))
            case ast.Subscript(value=owner):
                if isinstance(owner, ast.Name):
                    what = f"an assignment to an item of `{owner.id}`"
                    self._mutation(region, scope, owner, target, what)
            case _:
                pass

    def _is_self(self, scope: Scope, name: str) -> bool:
        method = scope.program.method_scope(scope, name)
        return method is not None and method.title not in ("__init__", "setup", "__post_init__")

    def _is_outer_self(self, region: Region, scope: Scope, name: str) -> bool:
        """Return whether a name is the object of a method around the region."""
        owner = scope.owner_of(name)
        around = owner is not None and not owner.is_inside(region.scope)
        return around and region.scope.is_inside(owner or scope) and self._is_self(scope, name)

    def _is_own_member(
        self, region: Region, scope: Scope, node: ast.expr, holds_self: bool = False
    ) -> bool:
        """Return whether an expression is a member of an object that outlives the region."""
        match node:
            case ast.Attribute(value=ast.Name(id=name)):
                own = holds_self and name in scope.names and self._is_self(scope, name)
                return own or self._is_outer_self(region, scope, name)
            case _:
                return False

    def _change_of_own(
        self, region: Region, scope: Scope, owner: ast.expr, node: ast.AST, what: str, holds: bool
    ) -> None:
        """Report a change of `self.name` where each method of the class binds it to a container."""
        if not self._is_own_member(region, scope, owner, holds):
            return
        assert isinstance(owner, ast.Attribute)
        assert isinstance(owner.value, ast.Name)
        method = scope.program.method_scope(scope, owner.value.id)
        methods = method.owner.methods if method is not None and method.owner else {}
        values = [
            (each, value)
            for each in methods.values()
            for target, value in _stores(each.node)
            if isinstance(target, ast.Attribute) and target.attr == owner.attr
        ]
        if values and all(self._is_container(each, value) for each, value in values):
            finding = Mutation(what=what, rewrite=_RETURN, why="outlives the call", noun="a value")
            self._report(region, scope, node, finding)

    def _mutation(
        self, region: Region, scope: Scope, owner: ast.expr, node: ast.AST, what: str
    ) -> None:
        """Report a change of a container that exists outside of the region."""
        if not isinstance(owner, ast.Name):
            return
        bound = scope.owner_of(owner.id)
        if bound is None:
            return
        default = self._default(bound, owner.id)
        if default is not None and self._is_container(bound, default):
            why = "is made once, as a default"
            self._report(
                region, scope, node, Mutation(what=what, rewrite=_RETURN, why=why, noun="a value")
            )
        outside = isinstance(bound.node, ast.Module) or (
            region.scope.is_inside(bound) and bound is not region.scope
        )
        value = bound.values.get(owner.id)
        if outside and value is not None and self._is_container(bound, value):
            self._report(
                region,
                scope,
                node,
                Mutation(what=what, rewrite=_RETURN, why="outlives the call", noun="a value"),
            )

    def _default(self, scope: Scope, name: str) -> ast.expr | None:
        if isinstance(scope.node, ast.Module):
            return None
        given = {each.arg: default for each, default in with_defaults(scope.node.args)}
        rebound = any(
            isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Store)
            for each in own_nodes(scope.node)
        )
        return None if rebound else given.get(name)

    def _is_own(self, scope: Scope, owner: ast.expr) -> bool:
        """Return whether a function made the container that a name is bound to."""
        value = scope.values.get(owner.id) if isinstance(owner, ast.Name) else None
        return value is not None and self._is_container(scope, value)

    def _is_container(self, scope: Scope, node: ast.expr) -> bool:
        if isinstance(node, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp):
            return True
        return (
            isinstance(node, ast.Call) and scope.program.full_name(scope, node.func) in _CONTAINERS
        )

    # Values that change after the function was traced.

    def _stale(self, region: Region) -> None:
        """Report names that a jitted function reads and that are bound anew between its calls."""
        scope = region.scope
        reads: dict[str, ast.Name] = {}
        program = scope.program
        inner = [each for each in program.scopes.values() if each.is_inside(scope)]
        for part in inner:
            for each in own_nodes(part.node):
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load):
                    owner = part.owner_of(each.id)
                    if owner is not None and not owner.is_inside(scope):
                        reads.setdefault(each.id, each)
        for name, node in reads.items():
            owner = scope.owner_of(name)
            if owner is None or name in owner.functions:
                continue
            if isinstance(owner.node, ast.Module) and name in self._written_globals(program):
                writer = self._written_globals(program)[name]
                if not any(writer is each for each in ast.walk(scope.node)):
                    self._report_stale(region, node, name, writer)
                continue
            between = self._bound_between_calls(region, owner, name)
            if between is not None:
                self._report_stale(region, node, name, between)

    def _report_stale(self, region: Region, node: ast.AST, name: str, writer: ast.AST) -> None:
        line = region.scope.program.source.span(writer)
        finding = MutableCapture(name=name, by=f"line {line.line}", rebound=True, library="jax")
        self._report(region, region.scope, node, finding, Label(line, "bound anew here"))

    def _written_globals(self, program: Program) -> Mapping[str, ast.AST]:
        """Return the names of a module that a function binds anew, each with a place."""
        found = self._global_writes.get(program)
        if found is None:
            found = self._global_writes[program] = {}
            for scope in program.scopes.values():
                for each in own_nodes(scope.node):
                    for name in each.names if isinstance(each, ast.Global) else ():
                        for store in own_nodes(scope.node):
                            if isinstance(store, ast.Name) and store.id == name:
                                if _is_store(store) and name in program.module.names:
                                    found.setdefault(name, store)
        return found

    def _bound_between_calls(self, region: Region, owner: Scope, name: str) -> ast.AST | None:
        """Return the place that binds a name after one call of a function and before another."""
        scope = region.scope
        if not isinstance(scope.node, FunctionStatement) or scope.parent is not owner:
            return None
        title, body = region.title, body_of(owner.node)
        if title not in owner.once:
            return None
        calls: list[int] = []
        stores: list[tuple[int, ast.AST]] = []
        for number, statement in enumerate(body):
            if not isinstance(statement, _SIMPLE):
                if isinstance(statement, ast.For | ast.While):
                    inner = [*own_nodes(statement)]
                    called = any(_calls(each, title) for each in inner)
                    bound = next((each for each in inner if _binds(each, name)), None)
                    if (
                        called
                        and bound is not None
                        and not any(each is scope.node for each in inner)
                    ):
                        return bound
                    if called:
                        calls.append(number)
                continue
            for each in ast.walk(statement):
                if _calls(each, title):
                    calls.append(number)
                elif _binds(each, name):
                    stores.append((number, each))
        for number, store in stores:
            if any(call < number for call in calls) and any(call > number for call in calls):
                return store
        return None

    def _report(
        self, region: Region, scope: Scope, node: ast.AST, finding: Diagnostic, *labels: Label
    ) -> None:
        where = Label(self.source.span(region.node), f"run by `{region.transformation}`")
        key = (node, finding.code)
        placed = finding.replaced(span=scope.program.source.span(node), labels=(*labels, where))
        self.found.setdefault(key, placed)


def _shown(call: ast.Call) -> Iterator[ast.expr]:
    """Yield what a call writes: its arguments, and the parts of texts among them."""
    for each in (*call.args, *(word.value for word in call.keywords)):
        if isinstance(each, ast.JoinedStr):
            yield from (part.value for part in each.values if isinstance(part, ast.FormattedValue))
        else:
            yield each


def _stores(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what a function assigns to, with the value."""
    for each in own_nodes(node):
        match each:
            case ast.Assign(targets=targets, value=value):
                yield from ((target, value) for target in targets)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                yield target, value
            case ast.AugAssign(target=target, value=value):
                yield target, value
            case _:
                pass


_RETURN = "return the new value, or report it with `jax.debug.callback`"


def _is_store(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store | ast.Del)


def _binds_constants(scope: Scope, name: str) -> bool:
    """Return whether a function binds a name only to constants, or adds constants to it."""
    stores = [
        each.target if isinstance(each, ast.AugAssign) else each.targets[0]
        for each in own_nodes(scope.node)
        if isinstance(each, ast.Assign | ast.AugAssign) and isinstance(each.value, ast.Constant)
    ]
    return scope.bound.count(name) == sum(_binds(each, name) for each in stores)


def _calls(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _binds(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and _is_store(node)


def _yields(function: Scope) -> bool:
    node, source = function.node, function.program.source
    return isinstance(node, FunctionStatement) and source.yields(node) is not None
