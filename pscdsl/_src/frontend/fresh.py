"""Which expressions make a new array or container, that nobody else holds."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from pscdsl._src.frontend.captures.resolution import Resolver
from pscdsl._src.frontend.harmless import Harmless
from pscdsl._src.frontend.mutable import Kind
from pscdsl._src.frontend.text.source import Source
from pscdsl._src.frontend.text.uses import parameters, uses

_CREATED = frozenset(
    "zeros ones empty full arange linspace logspace geomspace eye identity tri copy zeros_like "
    "ones_like empty_like full_like vstack hstack dstack column_stack tile where select pad interp "
    "loadtxt genfromtxt load fromfile fromstring diagflat bincount vander indices polyfit hanning "
    "hamming blackman bartlett kaiser histogram fft.fftfreq fft.rfftfreq linalg.inv "
    "linalg.cholesky".split()
)
"""Functions of NumPy whose result is in memory of its own, whatever they are given."""
_COMPUTED = {
    1: frozenset(
        "exp exp2 expm1 log log2 log10 log1p sqrt cbrt square reciprocal sin cos tan arcsin arccos "
        "arctan sinh cosh tanh arcsinh arccosh arctanh negative positive absolute abs fabs sign "
        "floor ceil rint trunc deg2rad rad2deg sinc".split()
    ),
    2: frozenset(
        "arctan2 hypot add subtract multiply divide true_divide floor_divide power mod remainder "
        "maximum minimum fmax fmin dot matmul inner outer kron cross stack concatenate sum prod "
        "mean std var cumsum cumprod sort argsort unique roll tril triu diff repeat convolve "
        "searchsorted max min".split()
    ),
    3: frozenset({"clip"}),
}
"""The same as long as they get no more arguments by position: the next would be `out`."""
_VIEWS = frozenset("reshape ravel transpose squeeze swapaxes view".split())
"""Methods whose result shows the elements of the array: new if that is."""
_CONTAINERS = frozenset("list dict set sorted".split())
_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)


_CHANGES = frozenset("append extend insert add update setdefault sort reverse fill".split())
"""Methods by which a function fills what it has made."""


def is_fresh(resolver: Resolver, source: Source, node: ast.expr, kind: Kind) -> bool:
    """Whether an expression whose value is of this kind makes it anew."""
    if isinstance(node, ast.Call) and _is_made_by(resolver, source, node, kind):
        return True
    return _is_made_here(resolver, source, node, kind)


def _is_made_here(resolver: Resolver, source: Source, node: ast.expr, kind: Kind) -> bool:
    """The same without functions of the project."""
    if kind is Kind.FLAT:
        if isinstance(node, (*_DISPLAYS, ast.BinOp)):
            return True
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Attribute) and node.func.attr == "copy":
            return not node.args
        name = resolver.qualified(source, node.func) or ""
        return name.startswith("builtins.") and name.removeprefix("builtins.") in _CONTAINERS
    return kind is Kind.ARRAY and _is_new(resolver, source, node)


def _is_new(resolver: Resolver, source: Source, node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare):
        return not resolver.defines_operators()
    if isinstance(node, ast.Subscript):
        return _is_new(resolver, source, node.value)
    if isinstance(node, ast.Attribute):
        return node.attr in ("T", "mT", "real", "imag") and _is_new(resolver, source, node.value)
    if not isinstance(node, ast.Call) or _may_name_memory(node):
        return False
    name = resolver.qualified(source, node.func) or ""
    if name.startswith("pscdsl.random.") or resolver.names_kernel(source, node.func):
        return True
    if name == "numpy.array":
        return len(node.args) <= 2
    if name.startswith("numpy."):
        short = name.removeprefix("numpy.")
        if short in _CREATED or name.startswith("numpy.random."):
            return True
        return any(short in names and len(node.args) <= count for count, names in _COMPUTED.items())
    if not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr == "astype":
        return len(node.args) <= 1
    if node.func.attr in ("copy", "repeat", "dot", "sum", "mean", "cumsum"):
        return len(node.args) <= 1
    if node.func.attr in _VIEWS:
        return _is_new(resolver, source, node.func.value)
    return len(node.args) <= 2 and _is_generator(resolver, source, node.func.value)


def _is_made_by(resolver: Resolver, source: Source, call: ast.Call, kind: Kind) -> bool:
    """Whether a function of the project is called that returns what it made, and gave to nobody."""
    place = _function_called(resolver, source, call.func)
    if kind is Kind.DEEP or place is None:
        return False
    home, name = place
    index = uses(home)
    found = index.functions.get(name, ())
    if len(found) != 1 or resolver.stores(home, None, name) or index.owner(found[0], name):
        return False
    if resolver.storing(name):
        return False
    (function,) = found
    if not isinstance(function, ast.FunctionDef) or function.decorator_list:
        return False
    own = [each for each in ast.walk(function) if index.function_of(each) is function]
    if any(isinstance(each, ast.Yield | ast.YieldFrom) for each in own):
        return False
    returns = [each.value for each in own if isinstance(each, ast.Return)]
    return bool(returns) and all(
        each is not None
        and (
            _is_own(resolver, home, function, each.id, kind)
            if isinstance(each, ast.Name)
            else _is_made_here(resolver, home, each, kind)
        )
        for each in returns
    )


def _function_called(
    resolver: Resolver, source: Source, function: ast.expr
) -> tuple[Source, str] | None:
    """The file and the name of a function of the project, as a call names it."""
    qualified = resolver.qualified(source, function)
    if qualified is not None:
        place = resolver.project_name(qualified)
        return None if place is None or not place[1] else (place[0].source, place[1])
    if isinstance(function, ast.Name) and uses(source).owner(function, function.id) is None:
        return source, function.id
    return None


def _is_own(
    resolver: Resolver, source: Source, function: ast.FunctionDef, name: str, kind: Kind
) -> bool:
    """Whether a local name has what one statement made, and no use of it gives that away."""
    index = uses(source)
    if name in parameters(function) or any(name in each.names for each in index.outer):
        return False
    made = [index.parents.get(each) for each in resolver.stores(source, function, name)]
    bound = [each for each in made if not isinstance(each, ast.AugAssign)]
    if len(bound) != 1 or not isinstance(bound[0], ast.Assign | ast.AnnAssign):
        return False
    value = bound[0].value
    if value is None or not _is_made_here(resolver, source, value, kind):
        return False
    judge = Harmless(resolver, kind)
    for node in index.names.get(name, ()):
        if index.owner(node, name) is not function or not isinstance(node.ctx, ast.Load):
            continue
        parent = index.parents.get(node)
        if index.function_of(node) is not function:
            return False
        if isinstance(parent, ast.Return) or _fills(index.parents, parent, node):
            continue
        if judge.harm(source, node) is not None:
            return False
    return True


def _fills(parents: Mapping[ast.AST, ast.AST], parent: ast.AST | None, node: ast.AST) -> bool:
    """Whether an element of a value is stored, or a method that fills it is called."""
    if isinstance(parent, ast.Subscript) and parent.value is node:
        return not isinstance(parent.ctx, ast.Load)
    if not isinstance(parent, ast.Attribute) or parent.attr not in _CHANGES:
        return False
    call = parents.get(parent)
    return isinstance(call, ast.Call) and call.func is parent


def _may_name_memory(call: ast.Call) -> bool:
    """Whether an argument may be the memory of the result."""
    if any(isinstance(each, ast.Starred) for each in call.args):
        return True
    return any(each.arg in (None, "out", "copy", "buffer", "mmap_mode") for each in call.keywords)


def _is_generator(resolver: Resolver, source: Source, node: ast.expr) -> bool:
    """Whether this is a random generator of NumPy's; it draws new arrays."""
    if isinstance(node, ast.Name):
        index = uses(source)
        scope = index.owner(node, node.id)
        stores = [
            each
            for each in index.names.get(node.id, ())
            if not isinstance(each.ctx, ast.Load) and index.owner(each, node.id) is scope
        ]
        made = index.parents.get(stores[0]) if len(stores) == 1 else None
        return isinstance(made, ast.Assign) and _is_generator(resolver, source, made.value)
    if not isinstance(node, ast.Call):
        return False
    name = resolver.qualified(source, node.func)
    return name in ("numpy.random.default_rng", "numpy.random.RandomState")
