"""Which expressions make a new array or container, that nobody else holds."""

from __future__ import annotations

import ast

from pscdsl.frontend.mutable import Kind
from pscdsl.frontend.resolution import Resolver
from pscdsl.frontend.source import Source
from pscdsl.frontend.uses import uses

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


def is_fresh(resolver: Resolver, source: Source, node: ast.expr, kind: Kind) -> bool:
    """Whether an expression whose value is of this kind makes it anew."""
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
