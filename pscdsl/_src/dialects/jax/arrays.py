"""Arrays of JAX, by the expressions that certainly give them, and those that are traced.

An array is never changed in place. While a function is traced, the elements of what it computes are
not known: Python cannot branch on them, nor convert them to its own numbers.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from pscdsl._src.dialects.jax.names import Scope, own_nodes
from pscdsl._src.frontend.text.source import parameters

OPERATIONS = frozenset(
    f"jax.numpy.{name}"
    for name in (
        "sum mean max min prod std var any all argmax argmin median count_nonzero trace "
        "sin cos tan exp exp2 expm1 log log1p log2 log10 sqrt square sign tanh sinh cosh "
        "isnan isfinite isinf logical_not logical_and logical_or logical_xor negative reciprocal "
        "add subtract multiply divide power maximum minimum equal not_equal less less_equal "
        "greater greater_equal dot matmul vdot inner outer array_equal allclose isclose where "
        "zeros ones full empty eye arange linspace zeros_like ones_like full_like "
        "cumsum cumprod sort argsort stack concatenate"
    ).split()
) | frozenset(
    f"jax.random.{name}"
    for name in "normal uniform bernoulli randint categorical gumbel exponential".split()
)
"""Functions that give an array, computed by an operation that a trace records."""
ARRANGING = frozenset(
    f"jax.numpy.{name}"
    for name in (
        "array asarray abs reshape ravel squeeze expand_dims transpose swapaxes moveaxis "
        "broadcast_to atleast_1d atleast_2d clip round floor ceil real imag conj flip roll"
    ).split()
)
"""Functions that give an array, which may be the one that they are given."""
METHODS = frozenset("sum mean max min prod std var any all argmax argmin dot".split())
_ARRANGING_METHODS = frozenset(
    "astype reshape ravel flatten transpose squeeze swapaxes copy clip conj round".split()
)
_UPDATES = frozenset("set add multiply mul divide power min max apply subtract".split())
_VIEWS = frozenset({"T", "mT"})
_WITH_VALUE = frozenset({"jax.value_and_grad", "equinox.filter_value_and_grad"})
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_OF_TWO = (ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Pow)
_OF_NUMBERS = (ast.Add, ast.Sub, ast.Div, ast.FloorDiv, ast.Pow)


@dataclass(frozen=True)
class Traced:
    """A function while it is traced."""

    scope: Scope
    numbers: frozenset[str] = frozenset()
    """Its parameters that are traced, if they are numbers or arrays and no trees of these."""
    arrays: frozenset[str] = frozenset()
    """Those of them that are arrays by their annotations."""


@dataclass
class Arrays:
    """The names of some scopes that are certainly arrays."""

    traced: Traced | None = None
    _numbers: set[str] | None = None
    _names: dict[Scope, frozenset[str]] = field(default_factory=dict[Scope, frozenset[str]])
    _assumed: dict[Scope, set[str]] = field(default_factory=dict[Scope, set[str]])

    def is_array(self, scope: Scope, node: ast.expr) -> bool:
        """Return whether an expression certainly gives an array of JAX.

        With `traced`, also whether its elements are not known while that function is traced.
        """
        match node:
            case ast.Name(id=name):
                return self._is_name(scope, name)
            case ast.Call(func=func, args=args):
                name = certain_name(scope, func)
                if name in OPERATIONS:
                    return True
                if name in ARRANGING:
                    return self.traced is None or bool(args and self.is_array(scope, args[0]))
                if updated := updated_array(node):
                    return self.is_array(scope, updated)
                if isinstance(func, ast.Attribute):
                    known = func.attr in METHODS or func.attr in _ARRANGING_METHODS
                    return known and self.is_array(scope, func.value)
                return False
            case ast.BinOp(left=left, op=ast.Mod()):
                return self.is_array(scope, left)
            case ast.BinOp(left=left, op=op, right=right):
                kinds = {self.kind(scope, each) for each in (left, right)}
                if kinds == {"parameter"}:
                    return isinstance(op, _OF_TWO)
                of_numbers = isinstance(op, _OF_NUMBERS) and kinds == {"number", "parameter"}
                return of_numbers or "array" in kinds
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Invert(), operand=operand):
                return self.is_array(scope, operand)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                kinds = {self.kind(scope, each) for each in (left, right)}
                if isinstance(op, _ORDER) and "array" in kinds:
                    return True
                certain = (
                    {"array"} if isinstance(op, ast.Eq | ast.NotEq) else {"array", "parameter"}
                )
                return "" not in kinds and not kinds.isdisjoint(certain)
            case ast.Subscript(value=value, slice=index):
                first = isinstance(index, ast.Constant) and index.value == 0
                return self.is_array(scope, value) or (first and _gives_value(scope, value))
            case ast.Attribute(value=value, attr=attr):
                return attr in _VIEWS and self.is_array(scope, value)
            case ast.IfExp(body=body, orelse=orelse):
                return self.is_array(scope, body) and self.is_array(scope, orelse)
            case _:
                return False

    def kind(self, scope: Scope, node: ast.expr) -> str:
        """Return `array`, `parameter` for one that is traced, `number`, or nothing."""
        if self.is_array(scope, node):
            return "array"
        match node:
            case ast.Name(id=name):
                own = self.traced is not None and scope.owner_of(name) is self.traced.scope
                return "parameter" if own and name in self._parameters() else ""
            case ast.Constant(value=int() | float()):
                return "number"
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float())):
                return "number"
            case _:
                return ""

    def _parameters(self) -> set[str]:
        """Return the traced parameters that are bound to nothing else than arrays."""
        if self._numbers is None:
            assert self.traced is not None
            scope = self.traced.scope
            self._numbers = set(self.traced.numbers) - scope.rebound
            bound = {name: _bindings(scope).get(name, []) for name in self._numbers}
            while wrong := {
                name
                for name in self._numbers
                for value in bound[name]
                if value is None or self.kind(scope, value) not in ("array", "parameter")
            }:
                self._numbers -= wrong
                self._names.clear()  # which were found under the assumption
        return self._numbers

    def _is_name(self, scope: Scope, name: str) -> bool:
        owner = scope.owner_of(name)
        if owner is None or name in owner.rebound:
            return False
        if self.traced is not None and not owner.is_inside(self.traced.scope):
            return owner is scope and name in self._of(owner)
        return name in self._of(owner)

    def _of(self, scope: Scope) -> frozenset[str] | set[str]:
        """Return the names of a scope that each of its bindings binds to an array."""
        if scope in self._names:
            return self._names[scope]
        if scope in self._assumed:
            return self._assumed[scope]
        values = _bindings(scope)
        own = self.traced.arrays if self.traced and self.traced.scope is scope else frozenset[str]()
        given = () if isinstance(scope.node, ast.Module) else parameters(scope.node)
        names = {name for name in values if name in own or name not in given} | own
        self._assumed[scope] = names
        while True:
            wrong = {
                name
                for name in names
                for value in values.get(name, ())
                if value is None or not self.is_array(scope, value)
            }
            if not wrong:
                break
            names -= wrong
        del self._assumed[scope]
        self._names[scope] = frozenset(names)
        return self._names[scope]


def updated_array(node: ast.expr) -> ast.expr | None:
    """Return `x` of `x.at[i].set(v)`."""
    match node:
        case ast.Call(
            func=ast.Attribute(
                value=ast.Subscript(value=ast.Attribute(value=owner, attr="at")), attr=attr
            )
        ) if attr in _UPDATES:
            return owner
        case _:
            return None


def certain_name(scope: Scope, node: ast.expr) -> str:
    """Return the full name of a function; empty if one of its names may be bound to others."""
    root = node
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name):
        return ""
    owner = scope.owner_of(root.id)
    if owner is not None and (root.id not in owner.once or root.id in owner.rebound):
        return ""
    return scope.program.full_name(scope, node)


def _gives_value(scope: Scope, node: ast.expr) -> bool:
    """Return whether a call is one of `jax.value_and_grad(f)`, whose first result is an array."""
    match node:
        case ast.Call(func=ast.Call() as made):
            pass
        case ast.Call(func=ast.Name(id=name)):
            owner = scope.owner_of(name)
            value = None if owner is None or name in owner.rebound else owner.values.get(name)
            if not isinstance(value, ast.Call):
                return False
            scope, made = owner or scope, value
        case _:
            return False
    options = {word.arg for word in made.keywords}
    return certain_name(scope, made.func) in _WITH_VALUE and options.isdisjoint((None, "has_aux"))


def _bindings(scope: Scope) -> Mapping[str, list[ast.expr | None]]:
    """Return what each name of a scope is bound to; None for what is not known."""
    found: dict[str, list[ast.expr | None]] = {}
    known: dict[ast.AST, ast.expr | None] = {}
    for each in own_nodes(scope.node):
        match each:
            case ast.Assign(targets=targets, value=value):
                known.update((target, value) for target in targets)
                if isinstance(target := targets[0], ast.Tuple):
                    known[target.elts[0]] = ast.Subscript(value, ast.Constant(0))
            case ast.AnnAssign(target=target, value=value) if value is not None:
                known[target] = value
            case ast.NamedExpr(target=target, value=value):
                known[target] = value
            case ast.AugAssign(target=ast.Name() as target, op=op, value=value):
                left = ast.Name(target.id, ast.Load())
                known[target] = ast.BinOp(left, op, value)
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                found.setdefault(name, []).append(known.get(each))
            case _:
                pass
    for name, times in Counter(scope.bound).items():
        values = found.setdefault(name, [])
        values += [None] * (times - len(values))  # a function, an import, a pattern
    return found
