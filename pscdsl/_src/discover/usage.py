"""The use of parameters in a function's body, as evidence of their ranks and kinds."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pscdsl._src.frontend import purity
from pscdsl._src.frontend.annotations import spec_of
from pscdsl._src.frontend.interpreter.frames import Frame, Session
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.modules.scope import StaticModule
from pscdsl._src.frontend.text.source import FunctionNode
from pscdsl._src.frontend.values import External, Poison, Poisoned
from pscdsl.typing.codes.projects import ObjectParameter, OpenParameters, SearchEnded
from pscdsl.typing.diagnostics import Diagnostic, Failure
from pscdsl.typing.signatures import Spec, arrays_of

FunctionStatement = ast.FunctionDef | ast.AsyncFunctionDef

_PASSING = frozenset(
    "asarray array atleast_1d asanyarray ascontiguousarray float64 float32".split()
)
"""Functions whose result can replace their first argument."""
_SIZED = frozenset("zeros ones empty full eye identity arange linspace tri range hanning".split())
"""Functions whose positional arguments are sizes or bounds of ranges."""
_COUNTS = frozenset("axis axes shape newshape n repeats ddof keepdims k num ord bins".split())
"""Keywords whose values are known while checking."""
_REARRANGING = frozenset("reshape repeat tile transpose moveaxis swapaxes roll diff".split())
_DRAWING = frozenset(
    "split fold_in normal uniform bernoulli categorical randint permutation gumbel choice".split()
)
"""Functions of `jax.random`, of which the first argument is a key."""
_DICT = frozenset("items keys values get pop update setdefault".split())
_LIST = frozenset("append extend insert remove clear reverse".split())


@dataclass
class Usage:
    """The evidence of the body about one parameter."""

    least: int = 0
    """The least rank."""
    exactly: int | None = None
    """The rank, where `n, d = x.shape` says it."""
    names: dict[int, str] = field(default_factory=dict[int, str])
    """The names of the sizes of its axes in the body."""
    product: bool = False
    """An operand of a product of matrices."""
    part_of_product: bool = False
    """A part of it is an operand of a product, and may have axes left."""
    turned: bool = False
    """Transposed somewhere."""
    index: bool = False
    static: bool = False
    flag: bool = False
    mask: bool = False
    called: bool = False
    none: bool = False
    key: bool = False
    """The first argument of a function of `jax.random`."""
    name: str = ""
    items: list[Usage] = field(default_factory=lambda: list[Usage]())
    """The evidence about its items, if the body unpacks it."""
    looped: bool = False
    strings: dict[str, None] = field(default_factory=dict[str, None])
    attributes: dict[str, ast.AST] = field(default_factory=dict[str, ast.AST])
    """Attributes that arrays do not have, and where."""
    keyed: ast.AST | None = None
    """The node at which a string is its index."""
    numbers: frozenset[int] = frozenset()
    """The integers in the text of the function."""

    def at_least(self, rank: int) -> None:
        """Note a lower bound of the rank."""
        self.least = max(self.least, rank)

    def passed_as(self, other: Usage) -> None:
        """Merge the evidence about a parameter that receives this one."""
        self.at_least(other.least)
        self.exactly = other.exactly if self.exactly is None else self.exactly
        for axis, name in other.names.items():
            self.names.setdefault(axis, name)
        self.product |= other.product
        self.part_of_product |= other.part_of_product
        self.turned |= other.turned
        self.index |= other.index
        self.static |= other.static
        self.flag |= other.flag
        self.mask |= other.mask
        self.called |= other.called
        self.key |= other.key
        self.looped |= other.looped
        self.strings |= other.strings


MAX_CALLS = 4
"""The deepest nesting of functions that receive a parameter."""


def usages(
    node: FunctionStatement, functions: Mapping[str, FunctionStatement], depth: int = 0
) -> dict[str, Usage]:
    """Return the evidence about each parameter in a function's body, and in its callees.

    `functions` are those of its module by their names.
    """
    spec = node.args
    names = [p.arg for p in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
    numbers = frozenset(
        each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and type(each.value) is int
    )
    found = {name: Usage(name=name, numbers=numbers) for name in names}
    for inner in ast.walk(node):  # the names of unpacked items are evidence
        if isinstance(inner, ast.Assign) and isinstance(inner.value, ast.Name):
            target, whole = inner.targets[0], found.get(inner.value.id)
            items = target.elts if isinstance(target, ast.Tuple) else []
            if whole is not None and not whole.items:
                if all(isinstance(item, ast.Name) for item in items):
                    whole.items = [Usage(name=i.id) for i in items if isinstance(i, ast.Name)]
                    for item in whole.items:
                        found.setdefault(item.name, item)
    Reader(found, functions, depth).read(node)
    return {name: found[name] for name in names}


class Reader:
    """One walk over a body; aliases such as `v = np.asarray(x)` count as the parameter."""

    def __init__(
        self, found: dict[str, Usage], functions: Mapping[str, FunctionStatement], depth: int
    ) -> None:
        self.found = found
        self.functions = functions
        self.depth = depth
        self.aliases: dict[str, str] = {}
        self.rebound: dict[str, int] = {}
        """The line after which a parameter's name is bound to the result of a call."""

    def of(self, node: ast.AST | None) -> Usage | None:
        """Return the usage of the parameter that an expression denotes."""
        if isinstance(node, ast.Name):
            return self.found.get(self.aliases.get(node.id, node.id))
        if isinstance(node, ast.Attribute):
            return self.found.get(dotted(node))
        if isinstance(node, ast.Call) and _called_name(node) in _PASSING and node.args:
            return self.of(node.args[0])
        return None

    def read(self, function: FunctionNode) -> None:
        body = function.body
        for node in _in_order(body if isinstance(body, list) else [body]):
            for asked in self.every(_truths(node)):
                asked.flag = True
            if isinstance(node, ast.Assign):
                self.assignment(node)
            elif isinstance(node, ast.Subscript):
                self.subscript(node)
            elif isinstance(node, ast.Attribute):
                self.attribute(node)
            elif isinstance(node, ast.Call):
                self.call(node)
            elif isinstance(node, ast.Compare):
                self.comparison(node)
            elif isinstance(node, ast.BinOp | ast.UnaryOp):
                self.operator(node)
            elif isinstance(node, ast.For | ast.comprehension):
                if usage := self.of(node.iter):
                    usage.looped = True
                    usage.at_least(1)

    def every(self, nodes: Iterator[ast.AST]) -> list[Usage]:
        """Return the usages of the expressions that are parameters."""
        return [usage for usage in map(self.of, nodes) if usage is not None]

    def assignment(self, node: ast.Assign) -> None:
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Name) and isinstance(value, ast.Call):
            if _called_name(value) in _PASSING and value.args:
                given = value.args[0]
                if isinstance(given, ast.Name) and target.id not in self.found:
                    self.aliases[target.id] = given.id
        if isinstance(target, ast.Name) and isinstance(value, ast.Call) and not self.of(value):
            self.rebound.setdefault(target.id, value.end_lineno or value.lineno)
        usage, axis = self.size(value)
        if usage is not None and axis is not None and isinstance(target, ast.Name):
            usage.names.setdefault(axis, target.id)
        if not isinstance(target, ast.Tuple):
            return
        names = [element.id if isinstance(element, ast.Name) else "" for element in target.elts]
        starred = any(isinstance(element, ast.Starred) for element in target.elts)
        owner = value.value if isinstance(value, ast.Attribute) else None
        shaped = self.of(owner) if _is_attribute(value, "shape") else None
        if shaped is not None and not starred:
            shaped.exactly = len(names)
            for index, name in enumerate(names):
                shaped.names.setdefault(index, name)
        elif (direct := self.of(value)) is not None and not starred:
            direct.at_least(1)

    def itself(self, node: ast.AST) -> bool:
        """Return whether a name is still bound to the argument."""
        line = self.rebound.get(node.id) if isinstance(node, ast.Name) else None
        return line is None or (isinstance(node, ast.Name) and node.lineno <= line)

    def size(self, node: ast.AST) -> tuple[Usage | None, int | None]:
        """Return the usage and axis whose size an expression is: `x.shape[0]`, `len(x)`."""
        if isinstance(node, ast.Subscript) and _is_attribute(node.value, "shape"):
            index = _integer(node.slice)
            assert isinstance(node.value, ast.Attribute)
            return self.of(node.value.value), index if index is not None and index >= 0 else None
        if isinstance(node, ast.Call) and _called_name(node) == "len" and node.args:
            return self.of(node.args[0]), 0
        return None, None

    def subscript(self, node: ast.Subscript) -> None:
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if usage := self.of(node.value):
            keyed = isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
            if keyed and self.itself(node.value):
                usage.keyed = usage.keyed or node
            consumed = [
                item
                for item in items
                if not (isinstance(item, ast.Constant) and item.value in (None, ...))
                and not _is_attribute(item, "newaxis")
            ]
            usage.at_least(len(consumed))
        if _is_attribute(node.value, "shape"):
            assert isinstance(node.value, ast.Attribute)
            index = _integer(node.slice)
            if index is not None and (usage := self.of(node.value.value)):
                usage.at_least(index + 1 if index >= 0 else -index)
            return
        for item in items:
            if usage := self.of(item.value if isinstance(item, ast.Subscript) else item):
                usage.index = True
            if isinstance(item, ast.Slice):
                for part in (item.lower, item.upper, item.step):
                    for name in _names(part):
                        if bound := self.of(name):
                            bound.static = True

    def attribute(self, node: ast.Attribute) -> None:
        usage = self.of(node.value)
        if usage is None:
            return
        if node.attr in ("T", "mT", "transpose"):
            usage.turned = True
        elif not hasattr(np.ndarray, node.attr) and self.itself(node.value):
            usage.attributes.setdefault(node.attr, node)

    def call(self, node: ast.Call) -> None:
        if usage := self.of(node.func):
            usage.called = True
        name = _called_name(node)
        if name in _DRAWING and node.args and (usage := self.of(node.args[0])):
            usage.key |= _is_random(node.func)
        axes = [k.value for k in node.keywords if k.arg == "axis"]
        axis = _integer(axes[0]) if axes else None
        array = node.func.value if isinstance(node.func, ast.Attribute) else None
        for each in (array, *node.args[:1]):
            if axis is not None and (usage := self.of(each)):
                usage.at_least(axis + 1 if axis >= 0 else -axis)
        if name == "len" and node.args and (usage := self.of(node.args[0])):
            usage.at_least(1)
        if name in ("dot", "matmul", "inner", "inv", "solve", "det", "trace", "eigh", "cholesky"):
            for usage in self.every(iter(node.args)):
                usage.product = True
        if name == "where" and len(node.args) == 3 and (usage := self.of(node.args[0])):
            usage.mask = True
        if name in ("zip", "enumerate", "concatenate", "stack", "hstack", "vstack"):
            for usage in self.every(iter(node.args)):
                usage.looped = True
        sizes = list(node.args) if name in _SIZED else []
        if name in _REARRANGING:
            sizes = list(node.args[0 if array is not None and self.of(array) else 1 :])
        if _is_random(node.func):
            sizes += node.args[1:2]
        sizes += [k.value for k in node.keywords if k.arg in _COUNTS]
        for size in sizes:
            for inner in _names(size):
                if usage := self.of(inner):
                    usage.static = True

        called = self.functions.get(name) if isinstance(node.func, ast.Name) else None
        if called is not None and self.depth < MAX_CALLS:
            self.passed_on(node, called)

    def passed_on(self, node: ast.Call, called: FunctionStatement) -> None:
        """Merge the evidence of a called function about the parameters that it receives."""
        others = usages(called, self.functions, self.depth + 1)
        positional = [each.arg for each in (*called.args.posonlyargs, *called.args.args)]
        given = [*zip(positional, node.args, strict=False)]
        given += [(each.arg, each.value) for each in node.keywords if each.arg is not None]
        for name, argument in given:
            usage = self.of(argument) if isinstance(argument, ast.Name) else None
            if usage is not None and name in others and self.itself(argument):
                usage.passed_as(others[name])

    def comparison(self, node: ast.Compare) -> None:
        usage = self.of(node.left)
        if usage is None:
            return
        for operator, other in zip(node.ops, node.comparators, strict=True):
            if isinstance(operator, ast.Is | ast.IsNot):
                usage.none = True
            values = other.elts if isinstance(other, ast.Tuple | ast.List | ast.Set) else [other]
            for value in values:
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    usage.strings[value.value] = None

    def operator(self, node: ast.BinOp | ast.UnaryOp) -> None:
        if isinstance(node, ast.UnaryOp):
            if isinstance(node.op, ast.Invert) and (usage := self.of(node.operand)):
                usage.mask = True
            return
        for part in (node.left, node.right):
            if isinstance(part, ast.Subscript) and isinstance(node.op, ast.MatMult):
                if usage := self.of(part.value):
                    usage.part_of_product = True
        for usage in self.every(iter((node.left, node.right))):
            if isinstance(node.op, ast.MatMult):
                usage.product = True
                usage.at_least(1)
            elif isinstance(node.op, ast.BitAnd | ast.BitOr):
                usage.mask = True


def mutating_method(usage: Usage) -> tuple[str, str, ast.AST] | None:
    """Return a method of lists or dicts called on a parameter, with its class and node."""
    for name, node in usage.attributes.items():
        if name in _LIST:
            return "list", name, node
    return None


def is_text(usage: Usage) -> bool:
    """Return whether the body only uses attributes of strings."""
    return bool(usage.attributes) and all(hasattr(str, attribute) for attribute in usage.attributes)


def is_mapping(usage: Usage) -> bool:
    """Return whether a parameter is used as a dict."""
    return usage.keyed is not None or any(name in _DICT for name in usage.attributes)


def _in_order(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Yield every node below some, in the order of the text."""
    pending: list[ast.AST] = list(reversed(body))
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(list(ast.iter_child_nodes(node))))


def _truths(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the expressions whose truth a node tests."""
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        yield node.test
    elif isinstance(node, ast.BoolOp):
        yield from node.values
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand


def _called_name(node: ast.Call) -> str:
    """Return the last name of the called function."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _is_random(function: ast.expr) -> bool:
    """Return whether a function is named as one of `jax.random`."""
    if not isinstance(function, ast.Attribute):
        return False
    return dotted(function.value).rpartition("__")[2] in ("random", "jr", "jrandom")


def dotted(node: ast.expr) -> str:
    """Return the name by which an attribute of a parameter is looked up."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}__{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _is_attribute(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name


def _integer(node: ast.AST) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _integer(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.Constant) and type(node.value) is int and abs(node.value) < 8:
        return node.value
    return None


def _names(node: ast.AST | None) -> Iterator[ast.Name | ast.Attribute]:
    """Yield the names in arithmetic; not those in calls or subscripts."""
    if isinstance(node, ast.Name | ast.Attribute):
        yield node
    elif isinstance(node, ast.BinOp):
        yield from _names(node.left)
        yield from _names(node.right)
    elif isinstance(node, ast.UnaryOp):
        yield from _names(node.operand)
    elif isinstance(node, ast.Tuple | ast.List):
        for element in node.elts:
            yield from _names(element)


# Parameters that rule a function out: objects, dicts, lists that are changed, `*args`.


MAX_PARAMETERS = 24


def declared(module: StaticModule, function: FunctionStatement, name: str) -> Spec | None:
    """Return the type that an annotation of ours, or of jaxtyping, declares."""
    spec = function.args
    for each in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
        if each.arg == name and isinstance(each.annotation, ast.Subscript | ast.Name):
            try:
                found = spec_of(Frame(Session(None), module.source, module), each.annotation)
            except (Failure, Poisoned):
                return None
            arrays = list(arrays_of(found))
            return found if arrays and not any(each.python for each in arrays) else None
    return None


def unfit(
    module: StaticModule,
    function: FunctionStatement,
    closure: Closure,
    used: Mapping[str, Usage],
) -> list[Diagnostic]:
    """Return the obstacles in the parameters themselves."""
    source, spec = module.source, function.args
    diagnostics: list[Diagnostic] = []
    for variadic, stars in ((spec.vararg, "*"), (spec.kwarg, "**")):
        if variadic is not None:
            name = stars + variadic.arg
            diagnostics.append(OpenParameters(name=name, span=source.span(variadic)))
    parameters = {p.arg: p for p in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}
    if len(parameters) > MAX_PARAMETERS:
        span = source.span(function).head(3)
        diagnostics.append(SearchEnded(function=function.name, trials=0, span=span))
    for name, usage in used.items():
        if declared(module, function, name) is not None:
            continue
        mutated = mutating_method(usage)
        refusal = purity.static_attribute([], mutated[1]) if mutated is not None else None
        if mutated is not None and refusal is not None:
            diagnostics.append(refusal.at(source.span(mutated[2])))
        elif is_mapping(usage) or (usage.attributes and not is_text(usage)):
            attributes = tuple(attribute for attribute in usage.attributes if attribute != "append")
            how = "dict" if is_mapping(usage) else "object"
            diagnostics.append(
                ObjectParameter(
                    name=name, how=how, attributes=attributes, span=source.span(parameters[name])
                )
            )
        elif isinstance(closure.defaults.get(name), Poison | External | dict | list):
            diagnostics.append(
                ObjectParameter(
                    name=name, how="default", attributes=(), span=source.span(parameters[name])
                )
            )
    return diagnostics
