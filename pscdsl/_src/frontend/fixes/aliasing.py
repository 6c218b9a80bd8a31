"""Whether an array may be known by another name, so that a change of it would be seen there.

`x[0] = 1` under NumPy changes the array, and whoever holds it or a view of it sees the change;
`x = psc.update(x, 0, 1)` gives the name a new one.  The two agree where `x` alone stands for the
array.  The answer is drawn from the text of the function alone, and errs towards yes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pscdsl._src.frontend.fixes.tree import FunctionStatement, Tree
from pscdsl._src.frontend.new_memory import NEW_FUNCTIONS, NEW_METHODS
from pscdsl._src.frontend.text.source import FunctionNode, targets

BUILTINS = frozenset({"abs", "bool", "complex", "float", "int", "len", "print", "range", "sum"})
MODULES = frozenset({"np", "numpy", "psc", "pscdsl"})
METADATA = frozenset({"shape", "ndim", "size", "dtype"})

OPERATIONS = (ast.BinOp, ast.UnaryOp, ast.Compare)
"""What makes a new value of its operands, whatever they are."""

DISPLAYS = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.DictComp, ast.GeneratorExp)
"""What holds on to the values in it."""


def shared(tree: Tree, node: ast.Name, inlined: bool) -> bool:
    """Whether what a name of a function stands for may be known by another name.

    `inlined` says that the function is a helper that a kernel calls: what it changes in its
    arguments, its caller sees.
    """
    function = tree.function(node)
    if not isinstance(function, FunctionStatement):
        return True
    nested = tree.function(function) is not None
    if (inlined or nested) and node.id in parameters(function):
        return True
    for each in ast.walk(function):
        if isinstance(each, ast.Name) and each.id == node.id:
            if _function(tree, each) is not function:
                return True  # a nested function holds on to it
            if isinstance(each.ctx, ast.Load) and _kept(tree, each, node.id):
                return True
    return any(not fresh for fresh in _bindings(function, node.id))


def parameters(function: FunctionNode) -> frozenset[str]:
    """The names of a function's parameters."""
    spec = function.args
    named = (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)
    packed = (each for each in (spec.vararg, spec.kwarg) if each is not None)
    return frozenset(each.arg for each in (*named, *packed))


def _function(tree: Tree, node: ast.AST) -> FunctionNode | None:
    """The function that a node belongs to, branches of a `psc.cond` counted as its own text."""
    found = tree.function(node)
    while isinstance(found, ast.Lambda) and _is_branch(tree, found):
        found = tree.function(found)
    return found


def _is_branch(tree: Tree, node: ast.Lambda) -> bool:
    parent = tree.parent(node)
    return isinstance(parent, ast.Call) and node in parent.args and _is_cond(parent)


def _is_cond(call: ast.Call) -> bool:
    function = call.func
    if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
        return False
    return function.attr == "cond" and function.value.id in MODULES


def _bindings(function: FunctionStatement, name: str) -> Iterator[bool]:
    """For each statement that binds a name: whether it binds it to something new."""
    for node in ast.walk(function):
        if isinstance(node, FunctionNode) and node is not function:
            continue
        if isinstance(node, ast.Assign) and any(name in targets(each) for each in node.targets):
            alone = len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
            yield alone and _is_fresh(node.value, name)
        elif isinstance(node, ast.AnnAssign) and name in targets(node.target):
            yield node.value is None or _is_fresh(node.value, name)
        elif isinstance(node, ast.For | ast.NamedExpr) and name in targets(node.target):
            yield False
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            if name in targets(node.optional_vars):
                yield False


def _is_fresh(node: ast.expr, name: str) -> bool:
    """Whether an expression has a value that nobody holds but, at most, this name."""
    if isinstance(node, ast.Call) and _is_cond(node):
        branches = [each.body for each in node.args[1:] if isinstance(each, ast.Lambda)]
        return len(branches) == 2 and all(_is_fresh(each, name) for each in branches)
    if isinstance(node, ast.Call):
        return _makes_new(node, None)
    if isinstance(node, ast.IfExp):
        return _is_fresh(node.body, name) and _is_fresh(node.orelse, name)
    if isinstance(node, ast.Name):
        return node.id == name
    return isinstance(node, (*OPERATIONS, ast.List, ast.Dict, ast.ListComp, ast.Constant))


def _makes_new(call: ast.Call, given: ast.AST | None) -> bool:
    """Whether a call has a new value, which holds nothing of what is given to it."""
    if any(each.arg in ("out", "copy") for each in call.keywords):
        return False
    function = call.func
    if isinstance(function, ast.Name):
        return function.id in BUILTINS
    if not isinstance(function, ast.Attribute):
        return False
    module, _, name = ast.unparse(function).partition(".")
    if module in MODULES:
        return f"numpy.{name}" in NEW_FUNCTIONS or name == "update"
    return function.attr in NEW_METHODS and (given is None or given is function)


def _kept(tree: Tree, node: ast.AST, name: str) -> bool:
    """Whether what a name stands for, or a view of it, goes where it may be kept."""
    held = False
    for each in tree.above(node):
        if isinstance(each, OPERATIONS) and not held:
            return False
        if isinstance(each, ast.Attribute) and each.attr in METADATA:
            return False
        if isinstance(each, ast.Call):
            if _makes_new(each, node) or _is_ufunc_at(each):
                return False
            if node is each.func and isinstance(tree.parent(each), ast.Expr):
                return not _is_method_of_name(each.func)  # `x.sort()` itself is what is asked about
        held = held or isinstance(each, DISPLAYS)
        if isinstance(each, ast.stmt):
            return _kept_by(each, node, name)
        if isinstance(each, ast.NamedExpr):
            return True
        if isinstance(each, ast.Lambda) and not _is_branch(tree, each):
            return True
        node = each
    return True


def _kept_by(statement: ast.stmt, part: ast.AST, name: str) -> bool:
    """Whether a statement keeps what the expression in it stands for."""
    if isinstance(statement, ast.Assign):
        if part is not statement.value:
            return _item_of(part) is None  # `x[0] = …`
        [first, *others] = statement.targets
        if not others and isinstance(first, ast.Name) and first.id == name:
            return False  # the name is bound again
        stored = _item_of(first)  # `x[i] = x[j]` copies
        return bool(others) or stored is None or stored != _item_of(part)
    leaving = ast.Return | ast.Assert | ast.Raise | ast.Delete
    return not isinstance(statement, leaving | ast.AugAssign | ast.If | ast.While)


def _item_of(node: ast.AST) -> str | None:
    """The name in `name[index]`."""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        return node.value.id
    return None


def _is_ufunc_at(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr == "at"


def _is_method_of_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
