"""Calls of plain functions: their arguments, as far as the text of a project determines them.

The code around a function is followed statement by statement with Python's and NumPy's own values,
but nothing of the project is imported and none of its functions runs in Python: only an allow-list
of pure functions runs, on small values. An unknown value is `UNKNOWN`, and so is every value that
depends on it.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import ast
import builtins
import doctest
import math
import operator
import warnings
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from pscdsl._src.discover.plain import is_static
from pscdsl._src.frontend.interpreter.functions import Closure, bind
from pscdsl._src.frontend.modules.scope import ModuleValue, StaticModule, import_alias, member
from pscdsl._src.frontend.text.source import FunctionStatement
from pscdsl._src.frontend.values import External, KnownModule
from pscdsl._src.language.meanings import MEANINGS
from pscdsl._src.support.clock import thread_time
from pscdsl.typing.diagnostics import Failure

MAX_STEPS = 20_000
"""Statements and expressions that are followed for one module."""
MAX_SECONDS = 2.0
MAX_DEPTH = 8
"""The deepest nesting of calls that are followed."""
MAX_TURNS = 200
"""The most steps of a loop that are followed."""
MAX_ITEMS = 1_000_000
"""Elements of an array, and operations for one."""
MAX_EXAMPLES = 40
"""Lines of an example in a docstring."""
MAX_CASES = 4
"""Rows of `pytest.mark.parametrize` that are tried."""


class UnknownValue:
    """An unknown value."""

    def __repr__(self) -> str:
        return "?"


UNKNOWN: Final = UnknownValue()
Key = tuple[str, int]
"""A function, by the path of its file and the line of its `def`."""


@dataclass(frozen=True, eq=False)
class ProjectFunction:
    """A function of the project, with the values of its free names."""

    node: FunctionStatement
    module: StaticModule
    outer: MutableMapping[str, Any]
    bound: tuple[Any, ...] = ()

    @property
    def key(self) -> Key:
        """Return a key that tells the function from others."""
        return self.module.source.path, self.node.lineno


@dataclass(frozen=True, eq=False)
class Class:
    """A class of the project."""

    node: ast.ClassDef
    module: StaticModule

    def function(self, name: str) -> FunctionStatement | None:
        """Return a method by its name."""
        named = (n for n in self.node.body if isinstance(n, FunctionStatement) and n.name == name)
        return next(named, None)


@dataclass(eq=False)
class Object:
    """An instance of a class of the project."""

    cls: Class
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class ObservedCall:
    """A call: its arguments by parameter; None where these could not be followed."""

    path: str
    line: int
    arguments: Mapping[str, Any] | None

    @property
    def known(self) -> bool:
        """Return whether all of its arguments are known."""
        return self.arguments is not None and not any(map(is_unknown, self.arguments.values()))

    def without_unknown(self) -> ObservedCall:
        """Return the call with arguments that are known or not known as a whole."""
        arguments = {n: UNKNOWN if is_unknown(v) else v for n, v in (self.arguments or {}).items()}
        return replace(self, arguments=arguments)

    def with_arrays(self) -> ObservedCall:
        """Return the call with arrays in place of lists of numbers."""
        if self.arguments is None:
            return self
        return replace(self, arguments={n: as_array(v) for n, v in self.arguments.items()})


class _Stop(Exception):
    """The budget is spent."""


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class _Leave(Exception):
    """`break`, `continue`, or an exception that is raised."""

    def __init__(self, node: ast.stmt) -> None:
        super().__init__()
        self.node = node


def _function(
    node: FunctionStatement,
    module: StaticModule,
    outer: MutableMapping[str, Any],
    bound: tuple[Any, ...] = (),
) -> Any:
    """Return a function, or UNKNOWN if it has decorators with unknown effect."""
    plain = all(
        ast.unparse(each).startswith(("staticmethod", "pytest.mark"))
        for each in node.decorator_list
    )
    return ProjectFunction(node, module, outer, bound) if plain else UNKNOWN


class Calls:
    """The calls of some functions in the modules that are followed."""

    def __init__(self, functions: Iterable[Key]) -> None:
        self.calls: dict[Key, list[ObservedCall]] = {key: [] for key in functions}
        self._environments: dict[str, dict[str, Any]] = {}
        self._steps = 0
        self._depth = 0
        self._deadline = thread_time() + MAX_SECONDS
        self._unsure = 0
        self.whole = True
        """Whether every possible call in the modules was followed."""
        self.forks = 0
        """The number of enclosing branches with alternatives that may be taken instead."""
        self._running: set[Key] = set()

    def follow(self, module: StaticModule) -> None:
        """Follow the statements of a module, and its functions that need no arguments."""
        try:
            environment = self.environment(module)
            for node in module.source.tree.body:
                if isinstance(node, FunctionStatement):
                    self._entry(ProjectFunction(node, module, environment), node)
                elif isinstance(node, ast.ClassDef):
                    self._test_class(Class(node, module))
            if ">>>" in module.source.text:
                for part in ast.walk(module.source.tree):
                    if isinstance(part, FunctionStatement | ast.ClassDef | ast.Module):
                        self._examples(part, module)
        except _Stop:
            self.whole = False

    def _examples(
        self, node: FunctionStatement | ast.ClassDef | ast.Module, module: StaticModule
    ) -> None:
        """Follow the examples of a docstring."""
        first = node.body[0] if node.body else None
        if not isinstance(first, ast.Expr) or ">>>" not in (ast.get_docstring(node) or ""):
            return
        text = first.value.value if isinstance(first.value, ast.Constant) else ""
        walk = _Walk(self, module, self.environment(module), {})
        try:
            examples = doctest.DocTestParser().get_examples(str(text))
            for example in examples[:MAX_EXAMPLES]:
                tree = ast.parse(example.source)
                ast.increment_lineno(tree, first.lineno + example.lineno - 1)
                walk.block(tree.body)
        except (ValueError, SyntaxError, _Return, _Leave):
            return

    def followed(self, function: Key) -> frozenset[tuple[str, int]]:
        """Return the places of a function's calls whose arguments are known every time."""
        calls = self.calls[function] if self.whole else []
        known = {(each.path, each.line) for each in calls if each.known}
        return frozenset(known - {(each.path, each.line) for each in calls if not each.known})

    def environment(self, module: StaticModule) -> dict[str, Any]:
        """Return the values of a module's names after its statements have run."""
        path = module.source.path
        if path not in self._environments:
            names = self._environments[path] = {}
            try:
                _Walk(self, module, names, names).block(module.source.tree.body)
            except (_Return, _Leave):
                pass
        return self._environments[path]

    def _entry(self, function: ProjectFunction, node: FunctionStatement) -> None:
        required = len(node.args.args) + len(node.args.posonlyargs) - len(node.args.defaults)
        for given in self._cases(function, node):
            missing = required - len(function.bound) - len(given)
            if missing <= 0 or given:
                names = [each.arg for each in node.args.args]
                kwargs = {**{n: UNKNOWN for n in names[len(function.bound) : required]}, **given}
                self.enter(function, (), kwargs)

    def _cases(
        self, function: ProjectFunction, node: FunctionStatement
    ) -> Iterator[dict[str, Any]]:
        """Yield the arguments that pytest gives to a test."""
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith(
                "mark.parametrize"
            ):
                walk = _Walk(self, function.module, function.outer, {})
                names, rows = [walk.value(each) for each in decorator.args[:2]] or (None, None)
                if isinstance(names, str) and isinstance(rows, list | tuple):
                    words = [each.strip() for each in names.split(",")]
                    for row in rows[:MAX_CASES]:
                        items = row if len(words) > 1 else [row]
                        if isinstance(items, list | tuple) and len(items) == len(words):
                            yield dict(zip(words, items, strict=True))
                    return
        yield {}

    def _test_class(self, cls: Class) -> None:
        for node in cls.node.body:
            if isinstance(node, FunctionStatement) and node.name.startswith("test"):
                this = Object(cls)
                outer = self.environment(cls.module)
                for name in ("setUp", "setup_method", "setup"):
                    if (prepared := cls.function(name)) is not None:
                        self.enter(ProjectFunction(prepared, cls.module, outer, (this,)), (), {})
                bound = () if is_static(node) else (this,)
                self._entry(ProjectFunction(node, cls.module, outer, bound), node)

    def step(self) -> None:
        """Count a piece of work."""
        self._steps += 1
        if self._steps > MAX_STEPS or thread_time() > self._deadline:
            raise _Stop

    def enter(
        self,
        function: ProjectFunction,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        place: tuple[str, int] | None = None,
        spread: bool = False,
    ) -> Any:
        """Follow the body of a function; the call is noted if it is one of those in question."""
        key, node = function.key, function.node
        walk = _Walk(self, function.module, function.outer, {})
        defaults = {n: walk.value(default) for n, default in _defaults(node).items()}
        given: dict[str, Any] | None = None
        try:
            given = bind(node.name, node.args, defaults, (*function.bound, *args), kwargs)
        except Failure:
            pass
        if place is not None and key in self.calls:
            unsure = spread or self._unsure or given is None
            passed = _bind_passed(node, args, kwargs, len(function.bound)) if not unsure else None
            self.calls[key].append(ObservedCall(*place, passed))
        if given is None or self._depth >= MAX_DEPTH or key in self._running:
            self.whole = self.whole and given is None
            return UNKNOWN
        if any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in ast.walk(node)):
            return UNKNOWN
        walk.names.update(given)
        self._depth += 1
        self._running.add(key)
        try:
            walk.block(node.body)
        except _Return as returned:
            return returned.value
        except (_Leave, RecursionError):
            return UNKNOWN
        finally:
            self._depth -= 1
            self._running.discard(key)
        return None

    def changed(self) -> None:
        """Note that something is changed that outlives a branch."""
        self.whole = self.whole and not self.forks

    def unsure(self, count: int) -> None:
        """Begin or end a part in which some steps are unknown."""
        self._unsure += count


def _defaults(node: FunctionStatement) -> dict[str, ast.expr]:
    positional = [*node.args.posonlyargs, *node.args.args]
    count = len(positional) - len(node.args.defaults)
    found = {p.arg: d for p, d in zip(positional[count:], node.args.defaults, strict=True)}
    for parameter, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        if default is not None:
            found[parameter.arg] = default
    return found


def _bind_passed(
    node: FunctionStatement, args: Sequence[Any], kwargs: Mapping[str, Any], bound: int
) -> dict[str, Any]:
    """Return the arguments of a call by parameter, without defaults."""
    positional = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
    return {**dict(zip(positional[bound:], args, strict=False)), **kwargs}


def as_array(value: Any) -> Any:
    """Return an argument, with a list of numbers converted to NumPy's array."""
    if isinstance(value, list):
        try:
            array = np.asarray(value)
        except (ValueError, TypeError):
            return UNKNOWN
        return array if array.dtype.kind in "biufc" else UNKNOWN
    return value


def is_unknown(value: Any, depth: int = 0) -> bool:
    """Return whether a part of a value is unknown, or it is nested too deeply."""
    if isinstance(value, list | tuple):
        return depth > MAX_DEPTH or any(is_unknown(each, depth + 1) for each in value)
    return value is UNKNOWN


# The walk over the statements of one function.


_BINARY: Final[Mapping[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_UNARY: Final[Mapping[type[ast.unaryop], Callable[[Any], Any]]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}
_COMPARED: Final[Mapping[type[ast.cmpop], Callable[[Any, Any], Any]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_BUILTINS: Final = {
    name: getattr(builtins, name)
    for name in (
        "abs all any bool complex dict divmod enumerate float int len list max min range "
        "reversed round set slice sorted str sum tuple zip"
    ).split()
}
_RANDOM: Final = frozenset(
    "beta binomial choice default_rng exponential gamma integers lognormal normal permutation "
    "poisson rand randint randn random random_sample RandomState sample seed shuffle "
    "standard_normal uniform".split()
)
_ARRAY_METHODS: Final = frozenset(
    "all any argmax argmin argsort astype clip conj conjugate copy cumprod cumsum diagonal dot "
    "fill flatten item max mean min nonzero prod ravel repeat reshape round sort squeeze std sum "
    "swapaxes T take tolist trace transpose var dtype imag itemsize nbytes ndim real shape "
    "size".split()
)
_METHODS: Final[Mapping[type, frozenset[str]]] = {
    np.ndarray: _ARRAY_METHODS,
    np.generic: _ARRAY_METHODS,
    np.random.Generator: _RANDOM,
    np.random.RandomState: _RANDOM,
    list: frozenset("append copy count extend index insert pop remove reverse sort".split()),
    dict: frozenset("copy get items keys pop update values".split()),
    tuple: frozenset(("count", "index")),
    str: frozenset("join lower split startswith endswith strip upper".split()),
    float: frozenset(("real", "imag", "is_integer", "conjugate")),
    int: frozenset(("real", "imag", "conjugate")),
    complex: frozenset(("real", "imag", "conjugate")),
}
_PLAIN: Final = (bool, int, float, complex, str, tuple, type(None))


@dataclass(frozen=True)
class _Pure:
    """A function of an allow-list."""

    function: Callable[..., Any]


class _Walk:
    """The statements of a module or a function, followed once."""

    def __init__(
        self,
        calls: Calls,
        module: StaticModule,
        outer: MutableMapping[str, Any],
        names: dict[str, Any],
    ) -> None:
        self.calls = calls
        self.module = module
        self.outer = outer
        self.names = names

    def block(self, body: Sequence[ast.stmt]) -> None:
        for node in body:
            self.calls.step()
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            value = self.value(node.value)
            for target in node.targets:
                self.assign(target, value)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.assign(node.target, self.value(node.value))
        elif isinstance(node, ast.AugAssign):
            left = self.value(node.target)
            right = self.value(node.value)
            self.assign(node.target, self.operated(_BINARY[type(node.op)], left, right))
        elif isinstance(node, ast.Return):
            raise _Return(None if node.value is None else self.value(node.value))
        elif isinstance(node, ast.Expr):
            self.value(node.value)
        elif isinstance(node, ast.If):
            self.conditional(node)
        elif isinstance(node, ast.For):
            self.loop(node)
        elif isinstance(node, ast.While):
            self.while_loop(node)
        elif isinstance(node, FunctionStatement):
            outer = ChainMap(self.names, self.outer)
            self.names[node.name] = _function(node, self.module, outer)
        elif isinstance(node, ast.ClassDef):
            self.names[node.name] = Class(node, self.module)
        elif isinstance(node, ast.With):
            for item in node.items:
                self.value(item.context_expr)
                if item.optional_vars is not None:
                    self.assign(item.optional_vars, UNKNOWN)
            try:
                self.block(node.body)
            except _Leave as left:  # `with pytest.raises(…)` goes on
                if not isinstance(left.node, ast.Raise):
                    raise
        elif isinstance(node, ast.Try):
            self.attempt(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                if alias.name != "*":
                    name = alias.asname or alias.name.split(".")[0]
                    self.names[name] = self.imported(node, alias)
        elif isinstance(node, ast.Break | ast.Continue | ast.Raise):
            for inner in ast.iter_child_nodes(node):
                if isinstance(inner, ast.expr):
                    self.value(inner)
            raise _Leave(node)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            self.calls.whole = False
        else:
            for inner in ast.walk(node):
                if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                    self.names[inner.id] = UNKNOWN
            for inner in ast.iter_child_nodes(node):
                if isinstance(inner, ast.expr):
                    self.value(inner)

    def conditional(self, node: ast.If) -> None:
        if _is_main(node.test):
            self.block(node.body)
            return
        test = _truth(self.value(node.test))
        if test is not None:
            self.block(node.body if test else node.orelse)
            return
        before = dict(self.names)
        leaving: list[Exception] = []
        ends: list[dict[str, Any]] = []
        for body in (node.body, node.orelse):
            self.restore(before)
            self.calls.forks += 1
            try:
                self.block(body)
                ends.append(dict(self.names))
            except (_Return, _Leave) as left:
                leaving.append(left)
            finally:
                self.calls.forks -= 1
        if not ends:
            raise _Return(UNKNOWN) if isinstance(leaving[0], _Return) else leaving[0]
        self.restore(ends[0])
        for other in ends[1:]:
            for name in {*self.names, *other}:
                if self.names.get(name, UNKNOWN) is not other.get(name, UNKNOWN):
                    self.names[name] = UNKNOWN

    def restore(self, names: Mapping[str, Any]) -> None:
        self.names.clear()
        self.names.update(names)

    def loop(self, node: ast.For) -> None:
        items = self.value(node.iter)
        whole = isinstance(items, list | tuple | range | np.ndarray | zip | enumerate | dict)
        whole = whole and not (isinstance(items, np.ndarray) and not items.ndim)
        turns = 0
        if whole:
            for item in items:
                if turns == MAX_TURNS:
                    whole = False
                    break
                turns += 1
                self.assign(node.target, item)
                if not self.turn(node.body):
                    break
        if not whole:
            self.again(node, node.target)
        self.block(node.orelse)

    def while_loop(self, node: ast.While) -> None:
        for _ in range(MAX_TURNS):
            test = _truth(self.value(node.test))
            if test is False:
                return
            if test is None:
                break
            if not self.turn(node.body):
                return
        self.again(node)

    def turn(self, body: Sequence[ast.stmt]) -> bool:
        """Follow one step of a loop; False if it was the last."""
        try:
            self.block(body)
        except _Leave as left:
            if isinstance(left.node, ast.Raise):
                raise
            return isinstance(left.node, ast.Continue)
        return True

    def again(self, node: ast.For | ast.While, target: ast.expr | None = None) -> None:
        """Follow the body of a loop for an unknown step."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                self.names[inner.id] = UNKNOWN
        if target is not None:
            self.assign(target, UNKNOWN)
        self.calls.unsure(1)
        try:
            self.block(node.body)
        except (_Leave, _Return):
            pass
        finally:
            self.calls.unsure(-1)

    def attempt(self, node: ast.Try) -> None:
        try:
            self.block(node.body)
        except _Leave:
            pass
        for handler in node.handlers:
            before = dict(self.names)
            self.calls.unsure(1)
            try:
                self.block(handler.body)
            except (_Leave, _Return):
                pass
            finally:
                self.calls.unsure(-1)
                self.restore(before)
        self.block(node.orelse)
        self.block(node.finalbody)

    def imported(self, node: ast.Import | ast.ImportFrom, alias: ast.alias) -> Any:
        try:
            return self.known(import_alias(self.module, node, alias))
        except (Failure, RecursionError):
            return UNKNOWN

    def known(self, value: Any) -> Any:
        """Return a value of the front end as one of ours."""
        if isinstance(value, (KnownModule, ModuleValue, *_PLAIN)):
            return value
        if isinstance(value, External) and value.name == "numpy.random":
            return KnownModule("numpy.random")
        if isinstance(value, Closure) and isinstance(value.scope, StaticModule):
            if isinstance(value.node, FunctionStatement) and value.outer is None:
                environment = self.calls.environment(value.scope)
                return ProjectFunction(value.node, value.scope, environment)
        name = getattr(value, "name", None)
        if isinstance(name, str) and name.startswith("numpy."):
            head, _, tail = name.rpartition(".")
            return _numpy_value(head, tail)
        return UNKNOWN

    def assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            items = _items(value)
            plain = items is not None and len(items) == len(target.elts)
            plain = plain and not any(isinstance(each, ast.Starred) for each in target.elts)
            for index, each in enumerate(target.elts):
                inner = each.value if isinstance(each, ast.Starred) else each
                self.assign(inner, items[index] if plain and items is not None else UNKNOWN)
        elif isinstance(target, ast.Attribute):
            owner = self.value(target.value)
            self.calls.changed()
            if isinstance(owner, Object):
                owner.attributes[target.attr] = value
        elif isinstance(target, ast.Subscript):
            owner, index = self.value(target.value), self.value(target.slice)
            if isinstance(owner, np.ndarray | list | dict) and not is_unknown(index):
                if not isinstance(owner, np.ndarray):
                    self.calls.changed()
                if not (isinstance(owner, np.ndarray) and is_unknown(value)):
                    self.tried(operator.setitem, owner, index, value)

    def lookup(self, name: str) -> Any:
        if name in self.names:
            return self.names[name]
        if name in self.outer:
            return self.outer[name]
        for _, statement in self.module.bindings().get(name, ()):
            if isinstance(statement, FunctionStatement):  # it may be called before it is reached
                return _function(statement, self.module, self.calls.environment(self.module))
            if isinstance(statement, ast.ClassDef):
                return Class(statement, self.module)
            return UNKNOWN
        return _Pure(_BUILTINS[name]) if name in _BUILTINS else UNKNOWN

    def value(self, node: ast.expr) -> Any:
        """Return the value of an expression."""
        self.calls.step()
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self.lookup(node.id)
        if isinstance(node, ast.Attribute):
            return self.attribute(self.value(node.value), node.attr)
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, ast.BinOp):
            left, right = self.value(node.left), self.value(node.right)
            return self.operated(_BINARY[type(node.op)], left, right)
        if isinstance(node, ast.UnaryOp):
            operand = self.value(node.operand)
            return self.operated(_UNARY[type(node.op)], operand)
        if isinstance(node, ast.Tuple):
            return self.sequence(node.elts, tuple)
        if isinstance(node, ast.List):
            return self.sequence(node.elts, list)
        if isinstance(node, ast.Dict):
            values = [self.value(each) for each in node.values]
            keys = [UNKNOWN if each is None else self.value(each) for each in node.keys]
            known = all(isinstance(each, str | int) for each in keys)
            return dict(zip(keys, values, strict=True)) if known else UNKNOWN
        if isinstance(node, ast.Subscript):
            owner, index = self.value(node.value), self.value(node.slice)
            whole = isinstance(owner, np.ndarray | np.generic | list | tuple | dict | str)
            return self.operated(operator.getitem, owner, index) if whole else UNKNOWN
        if isinstance(node, ast.Slice):
            parts = [p and self.value(p) for p in (node.lower, node.upper, node.step)]
            return UNKNOWN if is_unknown(parts) else slice(*parts)
        if isinstance(node, ast.Compare):
            return self.compared(node)
        if isinstance(node, ast.IfExp):
            test = _truth(self.value(node.test))
            values = [self.value(node.body), self.value(node.orelse)] if test is None else []
            return UNKNOWN if values else self.value(node.body if test else node.orelse)
        if isinstance(node, ast.BoolOp):
            result: Any = UNKNOWN
            for each in node.values:
                result = self.value(each)
                truth = _truth(result)
                if truth is None:
                    return UNKNOWN
                if truth is isinstance(node.op, ast.Or):
                    return result
            return result
        if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp):
            return self.comprehension(node)
        if isinstance(node, ast.NamedExpr):
            value = self.value(node.value)
            self.assign(node.target, value)
            return value
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, ast.expr) and not isinstance(node, ast.Lambda):
                self.value(inner)
        return UNKNOWN

    def sequence(self, nodes: Sequence[ast.expr], kind: type) -> Any:
        found: list[Any] = []
        for each in nodes:
            value = self.value(each.value if isinstance(each, ast.Starred) else each)
            if not isinstance(each, ast.Starred):
                found.append(value)
            elif (items := _items(value)) is not None:
                found.extend(items)
            else:
                return UNKNOWN
        return kind(found)

    def comprehension(
        self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp
    ) -> Any:
        first = node.generators[0]
        items = _items(self.value(first.iter))
        inner = _Walk(self.calls, self.module, ChainMap(self.names, self.outer), {})
        plain = len(node.generators) == 1 and not first.ifs
        if (
            isinstance(node, ast.ListComp | ast.GeneratorExp)
            and plain
            and items is not None
            and len(items) <= MAX_TURNS
        ):
            found: list[Any] = []
            for item in items:
                inner.assign(first.target, item)
                found.append(inner.value(node.elt))
            return found
        self.calls.unsure(1)
        for each in node.generators:
            inner.assign(each.target, UNKNOWN)
        parts = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        for part in parts:
            inner.value(part)
        self.calls.unsure(-1)
        return UNKNOWN

    def compared(self, node: ast.Compare) -> Any:
        left = self.value(node.left)
        result: Any = UNKNOWN
        for kind, each in zip(node.ops, node.comparators, strict=True):
            right = self.value(each)
            result = self.operated(_COMPARED[type(kind)], left, right)
            if len(node.ops) > 1 and _truth(result) is not True:
                return result
            left = right
        return result

    def attribute(self, owner: Any, name: str) -> Any:
        if isinstance(owner, KnownModule):
            if owner.name == "math":
                real = UNKNOWN if name in _COSTLY else getattr(math, name, UNKNOWN)
                return _Pure(real) if callable(real) else real
            return _numpy_value(owner.name, name)
        if isinstance(owner, ModuleValue):
            try:
                return self.known(member(owner.scope, name))
            except (Failure, RecursionError):
                return UNKNOWN
        if isinstance(owner, Object) and name in owner.attributes:
            return owner.attributes[name]
        if isinstance(owner, Class | Object):
            cls = owner.cls if isinstance(owner, Object) else owner
            node = cls.function(name)
            if node is None:
                return UNKNOWN
            bound = (owner,) if isinstance(owner, Object) and not is_static(node) else ()
            return _function(node, cls.module, self.calls.environment(cls.module), bound)
        for kind, methods in _METHODS.items():
            if isinstance(owner, kind) and name in methods:
                value = getattr(owner, name, UNKNOWN)
                return _Pure(value) if callable(value) else value
        return UNKNOWN

    def call(self, node: ast.Call) -> Any:
        function = self.value(node.func)
        args = self.sequence(node.args, tuple)
        keywords = {k.arg or "": self.value(k.value) for k in node.keywords}
        spread = args is UNKNOWN or "" in keywords
        if isinstance(function, ProjectFunction):
            place = self.module.source.path, node.lineno
            keywords.pop("", None)
            return self.calls.enter(
                function, () if args is UNKNOWN else args, keywords, place, spread
            )
        args = [each.function if isinstance(each, _Pure) else each for each in _items(args) or ()]
        keywords = {k: v.function if isinstance(v, _Pure) else v for k, v in keywords.items()}
        if isinstance(function, Class) and not spread:
            return self.instance(function, args, keywords)
        if not isinstance(function, _Pure) or spread:
            return UNKNOWN
        if function.function in _MOVING:  # a list may hold unknown values
            return self.tried(function.function, *args, **keywords)
        if isinstance(getattr(function.function, "__self__", None), list | dict):
            self.calls.changed()
        if is_unknown([*args, *keywords.values()]):
            return UNKNOWN
        if not _affordable([*args, *keywords.values(), getattr(function.function, "__self__", 0)]):
            return UNKNOWN
        return self.tried(function.function, *args, **keywords)

    def instance(self, cls: Class, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        made = Object(cls)
        start = cls.function("__init__")
        fields = [each.target for each in cls.node.body if isinstance(each, ast.AnnAssign)]
        if start is not None:
            outer = self.calls.environment(cls.module)
            self.calls.enter(ProjectFunction(start, cls.module, outer, (made,)), args, keywords)
        elif fields:
            names = [each.id for each in fields if isinstance(each, ast.Name)]
            made.attributes.update({**dict(zip(names, args, strict=False)), **keywords})
        return made

    def operated(self, operation: Callable[..., Any], *operands: Any) -> Any:
        if operation in (operator.is_, operator.is_not):
            known = not any(each is UNKNOWN for each in operands)
            return operation(*operands) if known else UNKNOWN
        if any(isinstance(each, Object | Class | ProjectFunction | _Pure) for each in operands):
            return UNKNOWN
        whole = operands if operation is not operator.getitem else operands[1:]
        if is_unknown(list(whole)) or any(each is UNKNOWN for each in operands):
            return UNKNOWN
        elementwise = not isinstance(operands[0], list | tuple | str)
        elementwise = elementwise and operation not in (operator.matmul, operator.pow)
        if operation is not operator.getitem and not _affordable(operands, elementwise):
            return UNKNOWN
        return self.tried(operation, *operands)

    def tried(self, operation: Callable[..., Any], /, *args: Any, **keywords: Any) -> Any:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                return operation(*args, **keywords)
        except Exception:
            return UNKNOWN


_COSTLY: Final = frozenset({"comb", "factorial", "perm"})
_MOVING: Final = frozenset({zip, enumerate, list, tuple, len})


def _generator(*_: Any) -> np.random.Generator:
    """Return a generator with a fixed seed, so that results are reproducible."""
    return np.random.default_rng(0)


def _random_state(*_: Any) -> np.random.RandomState:
    return np.random.RandomState(0)


def _numpy_value(module: str, name: str) -> Any:
    """Return a name of NumPy: a function that is pure, a constant, a dtype."""
    if module == "numpy" and name == "random":
        return KnownModule("numpy.random")
    if module == "numpy.random":
        if name in ("default_rng", "RandomState"):
            return _Pure(_generator if name == "default_rng" else _random_state)
        return _Pure(getattr(_random_state(), name)) if name in _RANDOM else UNKNOWN
    if module == "numpy" and name in ("linalg", "fft"):
        return KnownModule(f"numpy.{name}")
    if module not in ("numpy", "numpy.linalg", "numpy.fft"):
        return UNKNOWN
    owner: Any = {"numpy": np, "numpy.linalg": np.linalg, "numpy.fft": np.fft}[module]
    value = getattr(owner, name, UNKNOWN)
    if isinstance(value, float | int | type(None)):
        return value
    allowed = f"{module}.{name}" in MEANINGS or isinstance(value, type)
    return _Pure(value) if allowed and callable(value) else UNKNOWN


def _affordable(values: Sequence[Any], elementwise: bool = False) -> bool:
    """Return whether an operation on some values certainly makes no large ones."""
    sizes = [size for each in values if (size := _weight(each)) > 1]
    if any(size > MAX_ITEMS for size in sizes):
        return False
    if elementwise and all(not isinstance(each, int | float) for each in values):
        try:
            shapes = [np.shape(each) for each in values]
            return math.prod(np.broadcast_shapes(*shapes)) <= MAX_ITEMS
        except (ValueError, TypeError):
            return False
    if elementwise:
        return True
    return math.prod(sizes) <= 10 * MAX_ITEMS


def _weight(value: Any) -> int:
    """Return a bound of the size of results that an operation makes of a value."""
    if isinstance(value, bool | type(None) | str):
        return len(value) if isinstance(value, str) else 1
    if isinstance(value, int | float | np.integer | np.floating):
        return int(min(abs(float(value)), 2.0**40)) if value == value else 1
    if isinstance(value, np.ndarray):
        return value.size
    if isinstance(value, tuple) and all(isinstance(each, int) for each in value):
        return math.prod(max(1, abs(each)) for each in value)
    if isinstance(value, list | tuple):
        return max(len(value), *(_weight(each) for each in value), 1)
    return 1


def _items(value: Any) -> Sequence[Any] | None:
    if isinstance(value, list | tuple | range):
        return value
    if isinstance(value, zip | enumerate):
        return list(value)
    return list(value) if isinstance(value, np.ndarray) and value.ndim else None


def _truth(value: Any) -> bool | None:
    if isinstance(value, bool | int | float | str | type(None) | np.generic | list | tuple):
        return bool(value)
    if isinstance(value, np.ndarray) and value.size == 1:
        return bool(value.all())
    return None


def _is_main(node: ast.expr) -> bool:
    return isinstance(node, ast.Compare) and ast.unparse(node.left) == "__name__"
