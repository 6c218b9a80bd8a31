"""Random keys of JAX programs: each function is run over values that say where keys come from.

A function has a summary: what it does with its parameters and with names around it, and what it
returns. A call applies the summary. A loop is run twice: what its second step uses again is used
again in each step. What is not known, an imported function for instance, uses no key.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from pscdsl._src.dialects.jax.library import (
    CONSTANT_INITIALIZERS,
    KEY_FUNCTIONS,
    LAYERS,
    MAPPED,
    PER_ELEMENT,
    SEEDS,
    TRANSPARENT,
)
from pscdsl._src.dialects.jax.names import Program, Scope, canonical, imports_of
from pscdsl._src.dialects.jax.summaries import (
    State,
    Summary,
    Use,
    known_inside,
    leaves,
    roots,
    with_path,
)
from pscdsl._src.dialects.jax.values import (
    Condition,
    Value,
    Values,
    contradict,
    made_of,
    overlap,
    path_of,
)
from pscdsl._src.frontend.text.source import FunctionStatement, parameters, targets, with_defaults
from pscdsl.typing.codes.keys import KeyReused, SeedReused
from pscdsl.typing.diagnostics import Diagnostic, Label

_SPLIT = "`key, sub = jax.random.split(key)` gives two keys in the place of one"
_MOST_NESTED = 3
"""Loops nested more deeply are run once, not twice."""
_MOST_USES = 60
_MOST_NODES = 4_000
"""The most expressions of a function that are evaluated, loops counted as often as they run."""
_ARRANGING = frozenset("reshape ravel flatten squeeze".split())
"""Methods whose result holds the same keys."""
_MUTATORS = frozenset("append extend insert pop remove clear update add setdefault".split())


class TooMuch(Exception):
    """A function is too large to be followed."""


class Keys:
    """The check of one file."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.values = Values()
        self.found: dict[tuple[ast.AST, str], Diagnostic] = {}
        self.unseen: set[ast.AST] = set()
        """Calls that are given a key and cannot be followed."""
        self.known_keys: set[Value] = set()
        self.calls = 0
        self._summaries: dict[Scope, Summary | None] = {}

    def check(self) -> None:
        """Run every function, and the module itself."""
        for scope in list(self.program.scopes.values()):
            if not isinstance(scope.node, ast.Lambda):
                self.summary(scope)
        for scope in list(self.program.scopes.values()):
            self.summary(scope)

    def summary(self, scope: Scope) -> Summary | None:
        """Return the summary of a function; None if it calls itself or is not followed."""
        if scope not in self._summaries:
            self._summaries[scope] = None
            try:
                self._summaries[scope] = Walker(self, scope).summary()
            except (TooMuch, RecursionError):
                self.unseen.add(scope.node)
        return self._summaries[scope]

    def report(self, first: Use, again: Use) -> None:
        """Report that a key is used again."""
        node, source = again.node, self.program.source
        in_steps = first.node in (node, again.place)
        labels: list[Label] = []
        if first.node is not node:
            text = "run here" if in_steps else "consumed here"
            labels.append(Label(source.span(first.node), text))
        if not in_steps and again.place is not None:
            labels.append(Label(source.span(again.place), "by this call"))
        root = again.value
        if root.kind == "seed" and first.key is not again.key:
            made = root.parts[0]
            seed = repr(made.data) if made.kind == "const" else ""
            finding: Diagnostic = SeedReused(seed=seed, again=in_steps)
        else:
            name = again.name
            finding = KeyReused(
                name=name, before="consumed", now="consumed", rewrite=_SPLIT, again=in_steps
            )
        finding = finding.replaced(span=source.span(node), labels=tuple(labels))
        self.found.setdefault((node, finding.code), finding)


class Walker:
    """The run of one function."""

    def __init__(self, keys: Keys, scope: Scope) -> None:
        self.keys = keys
        self.scope = scope
        self.program = keys.program
        self.values = keys.values
        self.state = State()
        self.recorded: list[Use] = []
        self.returned: list[tuple[Value, State]] = []
        self.breaks: list[list[State]] = []
        self.continues: list[list[State]] = []
        self.loops = 0
        self.bodies = 0
        """Whether a function of the library calls the functions that it was given."""
        self.nodes = 0
        self.locals: list[dict[str, Value]] = []
        """The names of comprehensions, innermost last."""

    def summary(self) -> Summary:
        """Run the function from its start to its ends."""
        node = self.scope.node
        if not isinstance(node, ast.Module):
            for name in parameters(node):
                self.state.names[name] = self.values.make("param", (self.scope, name))
        if isinstance(node, ast.Lambda):
            self.returned.append((self.eval(node.body), self.state))
        else:
            self.block(node.body)
            if self.state.alive:
                self.returned.append((self.values.constant(None), self.state))
        if not self.returned:
            return Summary((), self.values.fresh(node), (), ())
        value, state = self.returned[0]
        for other, after in self.returned[1:]:
            test = self._telling(state.conditions, after.conditions)
            value = self.values.choice(test, value, other)
            state = self._merged(test, state, after)
        outer = {root for root in roots(value)}
        fields = tuple(
            (key, new) for key, new in state.fields.items() if path_of(key[0])[0].kind != "fresh"
        )
        uses = [
            use
            for use in self.recorded
            if use.value.kind != "fresh" or use.value in outer or use.value.atoms == frozenset()
        ]
        changed = tuple(obj for obj in state.versions if obj.kind != "fresh")
        return Summary(tuple(uses[:_MOST_USES]), value, fields, changed)

    def _telling(self, first: Iterable[Condition], second: Iterable[Condition]) -> Value:
        """Return the condition that holds in the first of two cases and not in the second."""
        others = set(second)
        for test, holds in first:
            if (test, not holds) in others and holds:
                return test
        return self.values.fresh("case")

    # States that meet.

    def _merged(self, test: Value, first: State, second: State) -> State:
        names = {
            name: self.values.choice(test, value, other)
            for name, value in first.names.items()
            if (other := second.names.get(name)) is not None
        }
        for name in first.names.keys() ^ second.names.keys():
            names[name] = first.names.get(name) or second.names[name]
        fields: dict[tuple[Value, object], Value] = {}
        for key in first.fields.keys() | second.fields.keys():
            values = [
                state.fields.get(key) or self._field(key[0], key[1], state)
                for state in (first, second)
            ]
            fields[key] = self.values.choice(test, *values)
        versions = {
            each: max(first.versions.get(each, 0), second.versions.get(each, 0))
            for each in first.versions.keys() | second.versions.keys()
        }
        uses = {**first.uses}
        for root, more in second.uses.items():
            old = uses.get(root, ())
            uses[root] = (*old, *(use for use in more if use not in old))
        return State(names, fields, versions, uses, first.conditions & second.conditions)

    def _joined(self, states: Sequence[State]) -> State:
        """Return the state after one of several."""
        alive = [state for state in states if state.alive]
        if not alive:
            return replace(self.state, alive=False)
        result = alive[0]
        for other in alive[1:]:
            test = self._telling(result.conditions, other.conditions)
            result = self._merged(test, result, other)
        return result

    # Statements.

    def block(self, body: Sequence[ast.stmt]) -> None:
        """Run statements in order."""
        for node in body:
            if not self.state.alive:
                return
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        """Run one statement."""
        match node:
            case ast.Expr(value=value):
                self.eval(value)
            case ast.Assign(targets=bound, value=value):
                new = self.eval(value)
                for each in bound:
                    self.assign(each, new)
            case ast.AnnAssign(target=target, value=value):
                if value is not None:
                    self.assign(target, self.eval(value))
            case ast.AugAssign(target=target, value=value):
                self.eval(value)
                self.assign(target, self.values.fresh(node))
            case ast.Return(value=value):
                result = self.values.constant(None) if value is None else self.eval(value)
                self.returned.append((self._leaving(result), self.state))
                self.state = replace(self.state, alive=False)
            case ast.If(test=test, body=body, orelse=orelse):
                self.branch(self.eval(test), lambda: self.block(body), lambda: self.block(orelse))
            case ast.For(target=target, iter=iterated, body=body, orelse=orelse):
                self._for(node, target, self.eval(iterated), body)
                self.block(orelse)
            case ast.While(test=test, body=body, orelse=orelse):
                self._while(node, test, body)
                self.block(orelse)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                for item in items:
                    self.eval(item.context_expr)
                    if item.optional_vars is not None:
                        self.assign(item.optional_vars, self.values.fresh(item.context_expr))
                self.block(body)
            case ast.Try() | ast.TryStar():
                self._try(node)
            case ast.Match(subject=subject, cases=cases):
                self.eval(subject)
                self._match(cases)
            case ast.Break() | ast.Continue():
                waiting = self.breaks if isinstance(node, ast.Break) else self.continues
                if waiting:
                    waiting[-1].append(self.state)
                self.state = replace(self.state, alive=False)
            case ast.Raise():
                self.state = replace(self.state, alive=False)
            case ast.Assert(test=test):
                self.eval(test)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.state.names[node.name] = self._defined(node)
            case ast.Import() | ast.ImportFrom():
                for name, full in imports_of(node):
                    self.state.names[name] = self.values.make("library", full)
            case ast.ClassDef():
                self.state.names[node.name] = self.values.make("class", node)
            case ast.Delete(targets=gone):
                for each in gone:
                    self.assign(each, self.values.fresh(node))
            case _:
                pass

    def _defined(self, node: FunctionStatement) -> Value:
        value = self.values.make("function", self.program.scopes[node])
        for decorator in reversed(node.decorator_list):
            made = self.eval(decorator)
            value = self.call_value(made, [value], {}, decorator)
        return value

    def branch(self, test: Value, then: Callable[[], object], other: Callable[[], object]) -> None:
        """Run one of two ways, as a condition says."""
        if test.kind == "const":
            (then if test.data else other)()
            return
        before = self.state
        ends: list[State] = []
        for holds, way in ((True, then), (False, other)):
            self.state = before.copy()
            self.state.conditions |= self._known(test, holds)
            way()
            ends.append(self.state)
        alive = [each for each in ends if each.alive]
        if len(alive) == 2:
            self.state = self._merged(test, *ends)
            self.state.conditions = before.conditions | (ends[0].conditions & ends[1].conditions)
        else:
            self.state = alive[0] if alive else ends[0]

    def _known(self, test: Value, holds: bool) -> frozenset[Condition]:
        """Return what a condition says, part by part."""
        if test.kind == "not":
            return self._known(test.parts[0], not holds)
        if (test.kind, holds) in (("and", True), ("or", False)):
            return frozenset[Condition]().union(*(self._known(part, holds) for part in test.parts))
        return frozenset({(test, holds)})

    def _steps(
        self,
        node: ast.AST,
        step: Callable[[Value], None],
        *,
        surely: bool = False,
        forever: bool = False,
    ) -> None:
        """Run the body of a loop for its first step and for another one."""
        before = self.state
        ran = self.values.fresh(node)
        loop = self.values.fresh(node)
        self.breaks.append([])
        self.loops += 1
        self.state = before.copy()
        if not surely:
            self.state.conditions |= {(ran, True)}
        for _ in range(2 if self.loops <= _MOST_NESTED else 1):
            self.continues.append([])
            step(loop)
            self.state = self._joined([self.state, *self.continues.pop()])
            if not self.state.alive:
                break
        self.loops -= 1
        left = self.breaks.pop()
        ends = [each for each in ([] if forever else [self.state]) + left if each.alive]
        after = self._joined(ends) if ends else replace(self.state, alive=False)
        if surely:
            self.state = after
        else:
            start = before.copy()
            self.state = self._merged(ran, after, start) if after.alive else start
            self.state.conditions = before.conditions

    def _for(
        self, node: ast.AST, target: ast.expr, iterated: Value, body: Sequence[ast.stmt]
    ) -> None:
        if iterated.kind == "tuple" and len(iterated.parts) <= 1:
            for part in iterated.parts:
                self.assign(target, part)
                self.breaks.append([])
                self.continues.append([])
                self.block(body)
                self.state = self._joined([self.state, *self.continues.pop(), *self.breaks.pop()])
            return
        parts = iter(iterated.parts if iterated.kind == "tuple" else ())

        def step(loop: Value) -> None:
            self.assign(target, next(parts, None) or self._element(iterated, loop, node))
            self.block(body)

        self._steps(node, step, surely=iterated.kind == "tuple")

    def _while(self, node: ast.AST, test: ast.expr, body: Sequence[ast.stmt]) -> None:
        forever = isinstance(test, ast.Constant) and bool(test.value)

        def step(loop: Value) -> None:
            self.eval(test)
            self.block(body)

        self._steps(node, step, surely=forever, forever=forever)

    def _element(self, iterated: Value, loop: Value, origin: object) -> Value:
        """Return an element of what a loop goes through."""
        match iterated.kind:
            case "zip":
                return self.values.make(
                    "tuple",
                    None,
                    *(self._element(part, loop, origin) for part in iterated.parts),
                )
            case "enumerate":
                element = self._element(iterated.parts[0], loop, origin)
                return self.values.make("tuple", None, self.values.fresh(origin), element)
            case "const" | "range":
                return self.values.fresh(origin)
            case _:
                return self.values.make("row", None, iterated, loop, self.values.fresh(origin))

    def _try(self, node: ast.Try | ast.TryStar) -> None:
        before = self.state.copy()
        self.block(node.body)
        self.block(node.orelse)
        ends = [self.state]
        for handler in node.handlers:
            self.state = before.copy()
            self.state.conditions |= {(self.values.fresh(handler), True)}
            for name in (each for statement in node.body for each in targets(statement)):
                self.state.names[name] = self.values.fresh(handler)
            if handler.name:
                self.state.names[handler.name] = self.values.fresh(handler)
            self.block(handler.body)
            ends.append(self.state)
        self.state = self._joined(ends)
        if self.state.alive:
            self.block(node.finalbody)

    def _match(self, cases: Sequence[ast.match_case]) -> None:
        if not cases:
            return
        first, *others = cases

        def way() -> None:
            for name in targets(first.pattern):
                self.state.names[name] = self.values.fresh(first.pattern)
            self.block(first.body)

        wild = isinstance(first.pattern, ast.MatchAs) and first.pattern.pattern is None
        if wild and first.guard is None:
            way()
            return
        self.branch(self.values.fresh(first.pattern), way, lambda: self._match(others))

    def assign(self, target: ast.expr, value: Value) -> None:
        """Bind a target."""
        match target:
            case ast.Name(id=name):
                names = self.state.names
                if self.locals and name in self.locals[-1]:
                    names = self.locals[-1]
                names[name] = value
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                starred = next(
                    (n for n, part in enumerate(parts) if isinstance(part, ast.Starred)), None
                )
                for number, part in enumerate(parts):
                    if isinstance(part, ast.Starred):
                        rest = self.values.fresh(part)
                        if value.kind == "tuple":
                            end = len(value.parts) - (len(parts) - number - 1)
                            rest = self.values.make("tuple", None, *value.parts[number:end])
                        self.assign(part.value, rest)
                        continue
                    late = starred is not None and number > starred
                    index = number - len(parts) if late else number
                    self.assign(part, self.values.item(value, self.values.constant(index)))
            case ast.Attribute(value=owner, attr=name):
                self.state.fields[(self.eval(owner), name)] = value
            case ast.Subscript(value=owner, slice=index):
                self._store(owner, self.eval(index), value)
            case _:
                pass

    def _store(self, owner: ast.expr, index: Value, value: Value) -> None:
        old = self.eval(owner)
        if isinstance(owner, ast.Name) and old.kind == "dict" and index.kind == "const":
            items = dict(zip(old.data, old.parts, strict=True))
            items[index.data] = value
            self.assign(owner, self.values.make("dict", tuple(items), *items.values()))
        elif isinstance(owner, ast.Name):
            self.assign(owner, self.values.fresh(owner))
        else:
            self._change(old)

    def _change(self, value: Value) -> None:
        """Forget the fields of an object."""
        if value.kind in ("const", "library", "function", "class", "tuple", "dict"):
            return
        self.state.versions[value] = self.state.versions.get(value, 0) + 1
        for key in [key for key in self.state.fields if key[0] is value]:
            del self.state.fields[key]

    def _field(self, owner: Value, name: object, state: State) -> Value:
        return self.values.make("field", (name, state.versions.get(owner, 0)), owner)

    def _leaving(self, value: Value) -> Value:
        """Return a result in which functions keep the names that they use of this one."""
        if value.kind in ("tuple", "dict"):
            parts = (self._leaving(part) for part in value.parts)
            return self.values.make(value.kind, value.data, *parts)
        if value.kind != "function" or value.data.parent is not self.scope:
            return value
        summary = self.keys.summary(value.data)
        if summary is None:
            return self.values.fresh(value.data)
        names = {
            leaf.data[1]: self.state.names[leaf.data[1]]
            for use in summary.uses
            for leaf in leaves(use)
            if leaf.kind == "name"
            and leaf.data[0] is self.scope
            and leaf.data[1] in self.state.names
        }
        if not names:
            return value
        return self.values.make("closure", (value.data, tuple(names)), *names.values())

    # Expressions.

    def eval(self, node: ast.expr) -> Value:
        """Return the value of an expression."""
        self.nodes += 1
        if self.nodes > _MOST_NODES:
            raise TooMuch
        values = self.values
        match node:
            case ast.Constant(value=data):
                return values.constant(data)
            case ast.Name(id=name):
                return self._name(name)
            case ast.Attribute(value=owner, attr=attr):
                return self._attribute(self.eval(owner), attr)
            case ast.Call():
                return self._call(node)
            case ast.Subscript(value=owner, slice=index):
                return values.item(self.eval(owner), self.eval(index))
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                found = [self.eval(part) for part in parts]
                if any(isinstance(part, ast.Starred) for part in parts):
                    return values.fresh(node)
                return values.make("tuple", None, *found)
            case ast.Starred(value=value):
                return self.eval(value)
            case ast.Dict(keys=keys, values=items):
                names = [None if key is None else self.eval(key) for key in keys]
                found = [self.eval(item) for item in items]
                if all(name is not None and name.kind == "const" for name in names):
                    known = {
                        name.data: part
                        for name, part in zip(names, found, strict=True)
                        if name is not None
                    }
                    return values.make("dict", tuple(known), *known.values())
                return values.fresh(node)
            case ast.Lambda():
                return values.make("function", self.program.scopes[node])
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._either(self.eval(test), body, orelse)
            case ast.BoolOp(op=op, values=parts):
                return self._logic(op, parts)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                truth = self.eval(operand)
                if truth.kind == "const":
                    return values.constant(not truth.data)
                return values.make("not", None, truth)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
                return values.constant(-number)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._compare(op, self.eval(left), self.eval(right))
            case ast.BinOp(left=left, op=op, right=right):
                pair = self.eval(left), self.eval(right)
                return values.make("op", type(op).__name__, *pair)
            case ast.NamedExpr(target=target, value=value):
                new = self.eval(value)
                self.state.names[target.id] = new
                return new
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node)
            case ast.Slice():
                ends = [
                    values.constant(None) if end is None else self.eval(end)
                    for end in (node.lower, node.upper, node.step)
                ]
                return values.make("slice", None, *ends)
            case _:
                inner = [
                    self.eval(child)
                    for child in ast.iter_child_nodes(node)
                    if isinstance(child, ast.expr)
                ]
                kind = isinstance(node, ast.UnaryOp | ast.Compare)
                if kind and inner:
                    return values.make("op", ast.dump(node)[:12] + _operators(node), *inner)
                return values.fresh(node)

    def _name(self, name: str) -> Value:
        for names in reversed(self.locals):
            if name in names:
                return names[name]
        if name in self.state.names:
            return self.state.names[name]
        owner = self.scope.owner_of(name)
        if owner is None:
            return self.values.make("library", f"builtins.{name}")
        if owner is self.scope:
            if (function := owner.functions.get(name)) is not None:
                return self.values.make("function", function)
            return self.values.fresh(self.scope.node)
        if name in owner.imports:
            return self.values.make("library", owner.imports[name])
        if (function := owner.functions.get(name)) is not None:
            if isinstance(function.node, FunctionStatement):
                return self._around(function)
        if name in owner.classes:
            return self.values.make("class", owner.classes[name])
        return self.values.make("name", (owner, name))

    def _around(self, function: Scope) -> Value:
        """Return a function of a scope around this one, with its decorators."""
        value = self.values.make("function", function)
        node = function.node
        for decorator in reversed(
            node.decorator_list if not isinstance(node, ast.Lambda | ast.Module) else []
        ):
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            full = self.program.full_name(function.parent or function, called)
            if full == "functools.partial" and isinstance(decorator, ast.Call) and decorator.args:
                full = self.program.full_name(function.parent or function, decorator.args[0])
            if full not in TRANSPARENT:
                return self.values.make("name", (function.parent, function.title))
        return value

    def _attribute(self, owner: Value, attr: str) -> Value:
        if owner.kind == "library":
            return self.values.make("library", canonical(f"{owner.data}.{attr}"))
        if owner.kind == "phi":
            then, other = (self._attribute(each, attr) for each in owner.parts[1:])
            return self.values.choice(owner.parts[0], then, other)
        if (found := self.state.fields.get((owner, attr))) is not None:
            return found
        if owner.kind == "param" and owner.data[0].owner is not None:
            scope, name = owner.data
            given = parameters(scope.node)
            if given and given[0] == name:
                method = self.program.method(scope.owner, attr)
                if method is not None and not self._decorated(method):
                    return self.values.make("bound", method, owner)
        if owner.kind == "object":
            method = self.program.method(owner.data, attr)
            if method is not None and not self._decorated(method):
                return self.values.make("bound", method, owner)
        if owner.kind == "tuple" or owner.kind == "dict":
            return self.values.make("method", attr, owner)
        return self._field(owner, attr, self.state)

    def _decorated(self, method: Scope) -> bool:
        """Return whether a method is something other than what its body says."""
        node = method.node
        if isinstance(node, ast.Module | ast.Lambda):
            return False
        for each in node.decorator_list:
            called = each.func if isinstance(each, ast.Call) else each
            full = self.program.full_name(self.program.module, called)
            if full == "functools.partial" and isinstance(each, ast.Call) and each.args:
                full = self.program.full_name(self.program.module, each.args[0])
            if full not in TRANSPARENT:
                return True
        return False

    def _either(self, test: Value, body: ast.expr, orelse: ast.expr) -> Value:
        found: list[Value] = []
        self.branch(
            test,
            lambda: found.append(self.eval(body)),
            lambda: found.append(self.eval(orelse)),
        )
        return found[0] if len(found) == 1 else self.values.choice(test, *found)

    def _logic(self, op: ast.boolop, parts: Sequence[ast.expr]) -> Value:
        """Run the parts of `and` or `or`, each if those before it do not decide."""
        first = self.eval(parts[0])
        if len(parts) == 1:
            return first
        is_and = isinstance(op, ast.And)
        if first.kind == "const" and bool(first.data) != is_and:
            return first
        rest: list[Value] = []
        way = lambda: rest.append(self._logic(op, parts[1:]))  # noqa: E731
        stay = lambda: None  # noqa: E731
        self.branch(first, *((way, stay) if is_and else (stay, way)))
        if first.kind == "const":
            return rest[0]
        return self.values.make("and" if is_and else "or", None, first, *rest)

    def _compare(self, op: ast.cmpop, left: Value, right: Value) -> Value:
        values = self.values
        match op:
            case ast.Eq() | ast.Is():
                return values.equal(left, right)
            case ast.NotEq() | ast.IsNot():
                same = values.equal(left, right)
                if same.kind == "const":
                    return values.constant(not same.data)
                return values.make("not", None, same)
            case _:
                return values.make("op", type(op).__name__, left, right)

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
    ) -> Value:
        names = {name for each in node.generators for name in targets(each.target)}
        self.locals.append(dict.fromkeys(names, self.values.fresh(node)))
        made: list[Value] = []

        def run(number: int) -> None:
            if number == len(node.generators):
                if isinstance(node, ast.DictComp):
                    self.eval(node.key)
                    made.append(self.eval(node.value))
                else:
                    made.append(self.eval(node.elt))
                return
            each = node.generators[number]
            iterated = self.eval(each.iter)
            elements = iter(iterated.parts if iterated.kind == "tuple" else ())

            def step(loop: Value) -> None:
                element = next(elements, None) or self._element(iterated, loop, each.target)
                self.assign(each.target, element)
                for test in each.ifs:
                    self.state.conditions |= self._known(self.eval(test), True)
                run(number + 1)

            if iterated.kind == "tuple" and len(iterated.parts) <= 1:
                if iterated.parts:
                    step(self.values.fresh(node))
            else:
                self._steps(each.target, step)

        before = self.state.conditions
        run(0)
        self.locals.pop()
        self.state.conditions = before
        if len(made) == 2 and isinstance(node, ast.ListComp) and len(node.generators) == 1:
            iterated = node.generators[0].iter
            if isinstance(iterated, ast.Tuple | ast.List) and len(iterated.elts) == 2:
                return self.values.make("tuple", None, *made)
        return self.values.fresh(node)

    # Calls.

    def _call(self, node: ast.Call) -> Value:
        if isinstance(node.func, ast.Attribute) and node.func.attr in _MUTATORS:
            owner = node.func.value
            if isinstance(owner, ast.Name) and self.eval(owner).kind in ("tuple", "dict"):
                for each in (*node.args, *(word.value for word in node.keywords)):
                    self.eval(each)
                self.assign(owner, self.values.fresh(node))
                return self.values.fresh(node)
        function = self.eval(node.func)
        spread = any(isinstance(each, ast.Starred) for each in node.args)
        args: list[Value] = []
        for each in node.args:
            value = self.eval(each)
            if isinstance(each, ast.Starred) and value.kind == "tuple":
                args += value.parts
                continue
            args.append(
                self.values.make("spread", None, value) if isinstance(each, ast.Starred) else value
            )
        words = {each.arg or "**": self.eval(each.value) for each in node.keywords}
        if spread and any(each.kind == "spread" for each in args):
            words.setdefault("**", self.values.fresh(node))
        return self.call_value(function, args, words, node)

    def call_value(
        self, function: Value, args: list[Value], words: dict[str, Value], node: ast.AST
    ) -> Value:
        """Return the result of a call, and do what it does to keys."""
        match function.kind:
            case "function":
                return self._apply(function.data, args, words, {}, node)
            case "closure":
                scope, names = function.data
                given = {
                    self.values.make("name", (scope.parent, name)): value
                    for name, value in zip(names, function.parts, strict=True)
                }
                return self._apply(scope, args, words, given, node)
            case "bound":
                return self._apply(function.data, [*function.parts, *args], words, {}, node)
            case "partial":
                words_given: tuple[str, ...] = function.data
                first, *bound = function.parts
                place = len(bound) - len(words_given)
                own = bound[:place]
                fixed = dict(zip(words_given, bound[place:], strict=True))
                return self.call_value(first, [*own, *args], {**fixed, **words}, node)
            case "mapped":
                return self._mapped(function, args, words, node)
            case "derivative":
                self.call_value(function.parts[0], args, words, node)
                return self.values.fresh(node)
            case "initializer":
                if args:
                    self.consume(args[0], node)
                return self.values.fresh(node)
            case "class":
                return self._construct(function.data, args, words, node)
            case "library":
                self.bodies += 1
                result = self._library(function.data, args, words, node)
                self.bodies -= 1
                return result
            case "field" if function.data[0] in _ARRANGING:
                return self.values.item(function.parts[0], self.values.fresh(node))
            case "phi":
                found: list[Value] = []
                test, then, other = function.parts
                self.branch(
                    test,
                    lambda: found.append(self.call_value(then, args, words, node)),
                    lambda: found.append(self.call_value(other, args, words, node)),
                )
                return found[0] if len(found) == 1 else self.values.choice(test, *found)
            case _:
                return self._unknown(function, args, words, node)

    def _unknown(
        self, function: Value, args: Iterable[Value], words: dict[str, Value], node: ast.AST
    ) -> Value:
        """Return the result of a call that cannot be followed."""
        given = [*args, *words.values()]
        if any(path_of(each)[0] in self.keys.known_keys for each in given):
            self.keys.unseen.add(node)
        owner = function
        while owner.kind in ("field", "item"):
            owner = owner.parts[0]
            self._change(owner)
        for each in given:
            if each.kind in ("param", "name", "object"):
                self._change(each)
        return self.values.fresh(node)

    def _key(self, node: ast.AST) -> Value:
        """Return a new key, or several."""
        value = self.values.fresh(node)
        self.keys.known_keys.add(value)
        return value

    def _library(
        self, name: str, args: list[Value], words: dict[str, Value], node: ast.AST
    ) -> Value:
        """Return the result of a library's function."""
        values = self.values
        module, _, last = name.rpartition(".")
        if module == "jax.random" and last.islower() | (last == "PRNGKey"):
            return self._random(last, args, words, node)
        if module == "equinox.nn" and last in LAYERS and "key" in words:
            self.consume(words["key"], node)
            return values.fresh(node)
        if module in ("jax.nn.initializers", "flax.linen.initializers"):
            return (
                values.fresh(node) if last in CONSTANT_INITIALIZERS else values.make("initializer")
            )
        if name in TRANSPARENT:
            return args[0] if args else values.make("library", "pscdsl.itself")
        if name == "pscdsl.itself":
            return args[0] if args else values.fresh(node)
        if name in ("functools.partial", "jax.tree_util.Partial") and args:
            if args[0].kind == "library" and args[0].data in TRANSPARENT:
                return values.make("library", "pscdsl.itself")
            if "**" not in words:
                return values.make("partial", tuple(words), *args, *words.values())
        if name in MAPPED:
            if not args:
                return values.fresh(node)
            axes = words.get("in_axes") or (args[1] if len(args) > 1 else values.constant(0))
            return values.make("mapped", None, args[0], axes)
        if name in PER_ELEMENT and args:
            return self._each(args, node)
        if name in _DERIVATIVES and args:
            return values.make("derivative", None, args[0])
        if module == "jax.lax" and last in _ORDER:
            given = self._in_order(last, args, words)
            if given is not None:
                return self._controlled(last, given, node)
        if name in ("builtins.zip", "builtins.enumerate", "builtins.range") and args:
            return values.make(last, None, *args)
        if (
            name in ("builtins.list", "builtins.tuple", "builtins.iter", "builtins.reversed")
            and args
        ):
            return (
                args[0]
                if args[0].kind == "tuple" and last in ("list", "tuple")
                else (
                    args[0]
                    if last != "reversed" and args[0].kind != "tuple"
                    else values.fresh(node)
                )
            )
        if name in ("builtins.isinstance", "builtins.len", "builtins.hasattr", "builtins.bool"):
            return values.make("op", name, *args)
        if module == "jax.numpy" and last in ("asarray", "array") and len(args) == 1:
            return args[0] if args[0].kind not in ("tuple", "dict", "const") else values.fresh(node)
        known = name.startswith(("builtins.", "jax.numpy.", "numpy.", "jax.debug.", "jax.lax."))
        if known and all(each.kind != "function" for each in (*args, *words.values())):
            return values.fresh(node)
        return self._unknown(values.make("library", name), args, words, node)

    def _random(
        self, last: str, args: list[Value], words: dict[str, Value], node: ast.AST
    ) -> Value:
        values = self.values
        if last in SEEDS:
            seed = args[0] if args else words.get("seed", values.fresh(node))
            made = values.make("seed", None, seed)
            self.keys.known_keys.add(made)
            return values.make("made", None, made, values.fresh(node))
        key = args[0] if args else words.get("key")
        if key is None or key.kind == "spread":
            return values.fresh(node)
        if last == "fold_in":
            number = args[1] if len(args) > 1 else words.get("data", values.fresh(node))
            made = values.make("fold", None, key, number)
            self.keys.known_keys.add(made)
            return made
        if last in ("clone", "wrap_key_data"):
            return self._key(node)
        if last in KEY_FUNCTIONS and last != "split":
            return values.fresh(node)
        self.consume(key, node)
        return self._key(node) if last == "split" else values.fresh(node)

    def _mapped(
        self, function: Value, args: list[Value], words: dict[str, Value], node: ast.AST
    ) -> Value:
        """Return the result of a function that is mapped over its arguments' first axes."""
        inner, axes = function.parts
        loop, step = self.values.fresh(node), self.values.fresh(node)

        def axis_at(axes: Value, place: int) -> Value:
            inside = axes.kind == "tuple" and place < len(axes.parts)
            return axes.parts[place] if inside else axes

        def row(value: Value, axis: Value) -> Value:
            if axis.kind == "const" and axis.data is None:
                return value
            if value.kind in ("tuple", "dict"):
                parts = [row(part, axis_at(axis, n)) for n, part in enumerate(value.parts)]
                return self.values.make(value.kind, value.data, *parts)
            if axis.kind == "const" and axis.data == 0:
                return self.values.make("row", None, value, loop, step)
            return self.values.fresh(node)

        rows = [row(each, axis_at(axes, n)) for n, each in enumerate(args)]
        zero = self.values.constant(0)
        rest = {name: row(each, zero) for name, each in words.items()}
        self.bodies += 1
        result = self._several(self.call_value(inner, rows, rest, node), node)
        self.bodies -= 1
        return result

    def _several(self, value: Value, node: ast.AST) -> Value:
        """Return the results of many calls in the place of one."""
        if value.kind == "tuple":
            return self.values.make("tuple", None, *(self._several(p, node) for p in value.parts))
        made = self.values.fresh(node)
        if path_of(value)[0] in self.keys.known_keys:
            self.keys.known_keys.add(made)
        return made

    def _each(self, args: list[Value], node: ast.AST) -> Value:
        """Call a function for each element of its arguments."""
        function, *iterated = args

        def step(loop: Value) -> None:
            self.call_value(function, [self._element(x, loop, node) for x in iterated], {}, node)

        self._steps(node, step)
        return self.values.fresh(node)

    # Control flow of `jax.lax`.

    def _in_order(
        self, last: str, args: list[Value], words: dict[str, Value]
    ) -> list[Value] | None:
        """Return arguments in their order; None if some are not known."""
        if any(each.kind == "spread" for each in args) or "**" in words:
            return None
        names = _ORDER.get(last)
        if names is None:
            return None
        found = [*args]
        for name in names[len(args) :]:
            if name not in words:
                break
            found.append(words[name])
        least = 2 if last in ("scan", "map", "switch") else 3
        return found if len(found) >= least else None

    def _controlled(self, last: str, args: list[Value], node: ast.AST) -> Value:
        """Return the result of control flow."""
        match last:
            case "scan":
                return self._scan(args, node)
            case "while_loop":
                return self._while_loop(args, node)
            case "fori_loop":
                return self._fori_loop(args, node)
            case "cond":
                return self._cond(args, node)
            case "switch":
                return self._switch(args, node)
            case _:
                return self._each(args[:2], node)

    def _scan(self, args: list[Value], node: ast.AST) -> Value:
        function, carry, *more = args
        carried, result = [carry], [self.values.fresh(node)]

        def step(loop: Value) -> None:
            row = self._element(more[0], loop, node) if more else self.values.fresh(node)
            result[0] = self.call_value(function, [carried[0], row], {}, node)
            carried[0] = self.values.item(result[0], self.values.constant(0))

        self._steps(node, step, surely=True)
        return self.values.make("tuple", None, carried[0], self.values.fresh(node))

    def _while_loop(self, args: list[Value], node: ast.AST) -> Value:
        test, function, carry, *_ = args
        carried = [carry]

        def step(loop: Value) -> None:
            self.call_value(test, [carried[0]], {}, node)
            carried[0] = self.call_value(function, [carried[0]], {}, node)

        self._steps(node, step, surely=True)
        return carried[0]

    def _fori_loop(self, args: list[Value], node: ast.AST) -> Value:
        _, _, function, *rest = args
        carried = [rest[0] if rest else self.values.fresh(node)]

        def step(loop: Value) -> None:
            counter = self.values.fresh(node)
            carried[0] = self.call_value(function, [counter, carried[0]], {}, node)

        self._steps(node, step, surely=True)
        return carried[0]

    def _cond(self, args: list[Value], node: ast.AST) -> Value:
        test, then, other, *operands = args
        if test.kind == "const":
            test = self.values.fresh(node)
        found: list[Value] = []
        for each in (then, other):
            if each.kind not in ("function", "closure", "bound", "partial", "library"):
                return self._unknown(each, operands, {}, node)
        self.branch(
            test,
            lambda: found.append(self.call_value(then, operands, {}, node)),
            lambda: found.append(self.call_value(other, operands, {}, node)),
        )
        return self.values.choice(test, *found)

    def _switch(self, args: list[Value], node: ast.AST) -> Value:
        _, branches, *operands = args
        if branches.kind != "tuple" or not branches.parts:
            return self._unknown(branches, operands, {}, node)

        def way(rest: tuple[Value, ...]) -> Value:
            if len(rest) == 1:
                return self.call_value(rest[0], operands, {}, node)
            test = self.values.fresh(node)
            found: list[Value] = []
            self.branch(
                test,
                lambda: found.append(self.call_value(rest[0], operands, {}, node)),
                lambda: found.append(way(rest[1:])),
            )
            return self.values.choice(test, *found)

        return way(branches.parts)

    # Functions of the file.

    def _construct(
        self, cls: ast.ClassDef, args: list[Value], words: dict[str, Value], node: ast.AST
    ) -> Value:
        start = self.program.method(cls, "__init__")
        self.keys.calls += 1
        made = self.values.make("object", cls, self.values.fresh(node))
        if start is None:
            self._unknown(made, args, words, node)
        else:
            self._apply(start, [made, *args], words, {}, node)
        return made

    def _apply(
        self,
        scope: Scope,
        args: list[Value],
        words: dict[str, Value],
        given: dict[Value, Value],
        node: ast.AST,
    ) -> Value:
        """Return the result of a function of the file, and use the keys that it uses."""
        summary = self.keys.summary(scope)
        function = scope.node
        if summary is None or isinstance(function, ast.Module):
            return self._unknown(self.values.fresh(node), args, words, node)
        if _is_generator(self.program, function):
            return self._unknown(self.values.fresh(node), args, words, node)
        bound = self._bound(scope, function, args, words, node)
        self.keys.calls += 1
        call = self.keys.calls

        def leaf(value: Value) -> Value | None:
            match value.kind:
                case "param" if value.data[0] is scope:
                    return bound[value.data[1]]
                case "name" if value in given:
                    return given[value]
                case "name" if value.data[0] is self.scope:
                    return self._name(value.data[1])
                case "fresh":
                    made = self.values.fresh(value.data[1])
                    if value in self.keys.known_keys:
                        self.keys.known_keys.add(made)
                    return made
                case "field":
                    name, version = value.data
                    if version > 0:  # something unknown changed it on the way
                        return self.values.fresh(node)
                    owner = self.values.substituted(value.parts[0], leaf, known)
                    return self._attribute(owner, name)
                case _:
                    return None

        known: dict[Value, Value] = {}

        def new(value: Value) -> Value:
            return self.values.substituted(value, leaf, known)

        for use in summary.uses:
            if use.value.kind == "seed" and not self.bodies:
                continue  # the function called makes its own key
            conditions: set[Condition] = set()
            for test, holds in use.conditions:
                changed = new(test)
                if changed.kind == "const":
                    if bool(changed.data) != holds:
                        break
                else:
                    conditions |= self._known(changed, holds)
            else:
                value = new(with_path(self.values, use.key, use.path))
                self.consume(value, node, frozenset(conditions), call, use)
        result = new(summary.result)
        changes = [(new(key[0]), key[1], new(value)) for key, value in summary.fields]
        for obj in summary.changed:
            self._change(new(obj))
        for owner, name, value in changes:
            self.state.fields[(owner, name)] = value
        return result

    def _bound(
        self,
        scope: Scope,
        function: FunctionStatement | ast.Lambda,
        args: list[Value],
        words: dict[str, Value],
        node: ast.AST,
    ) -> dict[str, Value]:
        """Return the values of parameters at a call."""
        spec = function.args
        static = isinstance(function, FunctionStatement) and any(
            isinstance(each, ast.Name) and each.id == "staticmethod"
            for each in function.decorator_list
        )
        if static and scope.owner is not None and args:
            args = args[1:]
        found: dict[str, Value] = {}
        positional = [each.arg for each in (*spec.posonlyargs, *spec.args)]
        known = next((n for n, each in enumerate(args) if each.kind == "spread"), len(args))
        found.update(zip(positional, args[:known], strict=False))
        if spec.vararg is not None:
            more = args[len(positional) :]
            found[spec.vararg.arg] = self.values.make("tuple", None, *more)
            if known < len(args):
                found[spec.vararg.arg] = self.values.fresh(node)
        found.update({name: value for name, value in words.items() if name != "**"})
        defaults = {each.arg: default for each, default in with_defaults(spec)}
        for name in parameters(function):
            default = defaults.get(name)
            if name in found:
                continue
            if "**" not in words and isinstance(default, ast.Constant):
                found[name] = self.values.constant(default.value)
            else:
                found[name] = self.values.fresh(node)
        return found

    # Uses of keys.

    def consume(
        self,
        key: Value,
        node: ast.AST,
        conditions: frozenset[Condition] = frozenset(),
        call: int = 0,
        inner: Use | None = None,
    ) -> None:
        """Use a key up; report if it was used before."""
        if key.kind == "phi":
            test, then, other = key.parts
            for holds, each in ((True, then), (False, other)):
                more = conditions | self._known(test, holds)
                self.consume(each, node, more, call, inner)
            return
        if key.kind in ("const", "tuple", "dict", "function", "library"):
            return
        root, path = path_of(key)
        self.keys.known_keys.add(root)
        original = None
        if inner is not None:
            original = with_path(self.values, inner.key, inner.path)
        met = self.state.conditions | conditions
        if contradict(met, met) or any((test, not holds) in met for test, holds in met):
            return
        place = None if inner is None else inner.place or inner.node
        use = Use(
            root, made_of(key), path, met, node, call, original, place, self._shown(node, root)
        )
        before = self.state.uses.get(root, ())
        for first in before:
            if call and first.call == call and known_inside(first, use):
                continue
            if overlap(first.path, path) and not contradict(first.conditions, met):
                self.keys.report(first, self._placed(first, use, inner))
                break
        self.state.uses[root] = (*before, use)[-_MOST_USES:]
        if all(each.node is not node or each.value is not root for each in self.recorded):
            self.recorded.append(use)

    def _shown(self, node: ast.AST, root: Value) -> str:
        """Return how a call writes the key that it is given, if that is short."""
        if not isinstance(node, ast.Call):
            return ""
        for each in (*node.args, *(word.value for word in node.keywords)):
            if not isinstance(each, ast.Name | ast.Attribute | ast.Subscript):
                continue
            text = self.program.source.text_of(each)
            if len(text) <= 40 and any(root is leaf for leaf in roots(self.eval(each))):
                return text
        return ""

    def _placed(self, first: Use, again: Use, inner: Use | None) -> Use:
        """Return a use in a loop at the place in a nested function that draws."""
        place = again.place
        around: ast.AST = self.scope.node
        if first.node is not again.node or place is None or isinstance(around, ast.Module):
            return again
        inside = any(each is place for each in ast.walk(around))
        if not inside or inner is None:
            return again
        return replace(again, node=place, place=again.node, name=inner.name)


_DERIVATIVES = frozenset(
    name
    for name in (
        "jax.grad jax.value_and_grad jax.jacfwd jax.jacrev jax.jacobian jax.hessian "
        "equinox.filter_grad equinox.filter_value_and_grad equinox.filter_jacfwd "
        "equinox.filter_jacrev"
    ).split()
)
_ORDER = {
    "scan": ("f", "init", "xs"),
    "while_loop": ("cond_fun", "body_fun", "init_val"),
    "fori_loop": ("lower", "upper", "body_fun", "init_val"),
    "map": ("f", "xs"),
    "cond": ("pred", "true_fun", "false_fun", "operand"),
    "switch": ("index", "branches", "operand"),
}


def _is_generator(program: Program, function: FunctionStatement | ast.Lambda) -> bool:
    if isinstance(function, ast.Lambda):
        return False
    is_async = isinstance(function, ast.AsyncFunctionDef)
    return is_async or program.source.yields(function) is not None


def _operators(node: ast.AST) -> str:
    if isinstance(node, ast.Compare):
        return " ".join(type(op).__name__ for op in node.ops)
    return type(node.op).__name__ if isinstance(node, ast.UnaryOp) else ""
