"""Truth of arrays: `and`, `or`, `not`, chained comparisons, conditionals."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pscdsl._src.frontend.fixes.place import Place
from pscdsl._src.frontend.interpreter.operators import SIGNS
from pscdsl.typing.codes.language import BranchOnArray
from pscdsl.typing.diagnostics import Applicability, Fix

Where = Place[BranchOnArray]
BOOLEAN = frozenset(
    "all any isfinite isinf isnan isclose logical_and logical_not logical_or".split()
)


def branch_on_array(place: Where) -> Iterator[Fix]:
    """What to write instead of asking for the truth of an array."""
    boolean, unary = place.node(ast.BoolOp), place.node(ast.UnaryOp)
    compare = place.node(ast.Compare)
    construct = place.finding.construct
    if boolean is not None and construct in ("`and`", "`or`"):
        yield from _combined(place, boolean)
    elif unary is not None and construct == "`not`":
        yield from _negated(place, unary)
    elif compare is not None and construct == "a chained comparison":
        yield from _chained(place, compare)
    elif place.nodes:
        test = place.nodes[0]
        parent = place.tree.parent(test)
        if isinstance(parent, ast.IfExp) and parent.test is test:
            yield from _conditional(place, parent)
        elif isinstance(parent, ast.If) and parent.test is test:
            yield from _branch(place, parent)


def _combined(place: Where, node: ast.BoolOp) -> Iterator[Fix]:
    sign = " & " if isinstance(node.op, ast.And) else " | "
    applicability: Applicability = "safe" if all(map(_is_boolean, node.values)) else "unsafe"
    text = sign.join(place.tree.operand(each) for each in node.values)
    yield from place.replace(node, text, applicability)


def _negated(place: Where, node: ast.UnaryOp) -> Iterator[Fix]:
    operand = place.tree.operand(node.operand)
    if _is_bool_type(place.finding.found) or _is_boolean(node.operand):
        yield from place.replace(node, f"~{operand}", "safe")
    else:
        yield from place.replace(node, f"{operand} == 0", "safe")


def _chained(place: Where, node: ast.Compare) -> Iterator[Fix]:
    operands = [place.tree.operand(each) for each in (node.left, *node.comparators)]
    signs = [SIGNS.get(type(op).__name__) for op in node.ops]
    if None in signs:
        return  # `in` and `is` have no meaning for arrays
    pairs = zip(operands, signs, operands[1:], strict=False)
    text = " & ".join(f"({left} {sign} {right})" for left, sign, right in pairs)
    yield from place.replace(node, text, "safe")


def _is_boolean(node: ast.expr) -> bool:
    """Whether an expression is true or false whatever its operands are, by its text."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, bool)
    if isinstance(node, ast.Compare):
        return True
    if isinstance(node, ast.BoolOp):
        return all(map(_is_boolean, node.values))
    if isinstance(node, ast.UnaryOp):
        inverted = isinstance(node.op, ast.Invert) and _is_boolean(node.operand)
        return inverted or isinstance(node.op, ast.Not)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor):
        return _is_boolean(node.left) and _is_boolean(node.right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in BOOLEAN
    return False


def _is_bool_type(found: str) -> bool:
    return found == "bool" or found.startswith("bool[")


def _conditional(place: Where, node: ast.IfExp) -> Iterator[Fix]:
    """`x if c else y`."""
    yield from _chosen(place, node, "", node.test, node.body, node.orelse)


def _branch(place: Where, node: ast.If) -> Iterator[Fix]:
    """An `if` whose branches bind one name, or return."""
    if not place.tree.text(node).startswith("if"):
        return  # an `elif`
    block = place.tree.block(node)
    following = block[block.index(node) + 1 :]
    match node.body, node.orelse:
        case [ast.Assign(targets=[ast.Name(id=name)], value=yes)], [
            ast.Assign(targets=[ast.Name(id=other)], value=no)
        ] if name == other:
            yield from _chosen(place, node, f"{name} = ", node.test, yes, no)
        case [ast.Assign(targets=[ast.Name(id=name)], value=yes)], []:
            yield from _chosen(place, node, f"{name} = ", node.test, yes, ast.Name(name))
        case [ast.Return(value=ast.expr() as yes)], [ast.Return(value=ast.expr() as no)]:
            yield from _chosen(place, node, "return ", node.test, yes, no)
        case [ast.Return(value=ast.expr() as yes)], []:
            if following and isinstance(following[0], ast.Return) and following[0].value:
                last = following[0]
                yield from _chosen(place, node, "return ", node.test, yes, following[0].value, last)
        case _:
            return


def _chosen(
    place: Where,
    node: ast.AST,
    head: str,
    test: ast.expr,
    yes: ast.expr,
    no: ast.expr,
    last: ast.AST | None = None,
) -> Iterator[Fix]:
    """The choice between two values: of one that is run, or element by element of both."""
    if any(isinstance(each, ast.NamedExpr) for e in (yes, no) for each in ast.walk(e)):
        return
    psc, numpy = place.psc(), place.numpy()
    condition = place.tree.argument(test)
    one, other = (_text(place, each) for each in (yes, no))
    scalar = "[" not in place.finding.found
    if scalar and _is_bool_type(place.finding.found) and psc is not None:
        text = f"{head}{psc[0]}.cond({condition}, lambda: {one}, lambda: {other})"
        yield from place.replace(node, text, "safe", needs=psc[1], until=last)
    trees = any(isinstance(each, ast.Tuple | ast.List | ast.Dict) for each in (yes, no))
    if numpy is not None and not trees:  # `np.where` would make arrays of them
        text = f"{head}{numpy[0]}.where({condition}, {one}, {other})"
        yield from place.replace(node, text, needs=numpy[1], until=last)


def _text(place: Where, node: ast.expr) -> str:
    return place.tree.argument(node) if hasattr(node, "lineno") else ast.unparse(node)
