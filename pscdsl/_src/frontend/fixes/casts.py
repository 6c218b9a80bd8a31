"""Fixes of expressions: casts, truth of arrays, preconditions, `psc.constant`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pscdsl._src.frontend.fixes.place import LocatedTree, Place
from pscdsl._src.frontend.interpreter.operators import SIGNS
from pscdsl._src.frontend.text.source import FunctionStatement, parameters
from pscdsl.typing import dtypes
from pscdsl.typing.codes.element_types import (
    AccumulatorTooNarrow,
    ArgumentDtype,
    DtypesDiffer,
    IntegersMakeAnArray,
    NegativePowerOfInteger,
    ReturnDtype,
    ScalarDoesNotFit,
)
from pscdsl.typing.codes.language import BranchOnArray
from pscdsl.typing.diagnostics import Applicability, Diagnostic, Edit, Fix, Span

# Casts where dtypes do not fit.  Which array is cast is for the author: all are unsafe.


def _cast(place: Place[Diagnostic], node: ast.expr, dtype: str) -> Iterator[Fix]:
    """Write `node.astype(dtype)`."""
    found = place.dtype(dtype)
    if found is not None:
        written, needs = found
        text = f"{place.tree.receiver(node)}.astype({written})"
        yield from place.replace(node, text, needs=needs, span=place.tree.wrapped(node))


def _operands(place: Place[Diagnostic]) -> list[ast.expr]:
    """Return the two operands of the operation at a place, if it has two."""
    for node in place.nodes:
        match node:
            case ast.BinOp(left=left, right=right):
                return [left, right]
            case ast.Compare(left=left, comparators=[right]):
                return [left, right]
            case ast.Call(args=[left, right], keywords=[]):
                return [left, right]
            case ast.Call(func=ast.Attribute(attr="where"), args=[_, left, right]):
                return [left, right]
            case _:
                pass
    return []


def dtypes_differ(place: Place[DtypesDiffer]) -> Iterator[Fix]:
    """Convert one operand to the dtype of the other, as the help says; otherwise the other one."""
    left, right = place.finding.left.dtype, place.finding.right.dtype
    operands = _operands(place)
    if len(operands) == 2:
        pairs = [(left, operands[0], right), (right, operands[1], left)]
        for _, node, to in sorted(pairs, key=lambda pair: pair[0] is not place.finding.cast()[0]):
            yield from _cast(place, node, to.name)
        return
    augmented = place.node(ast.AugAssign)
    if augmented is not None and isinstance(augmented.target, ast.Name):
        yield from _cast(place, augmented.value, left.name)


def scalar_does_not_fit(place: Place[ScalarDoesNotFit]) -> Iterator[Fix]:
    """Convert the array to a dtype into which the scalar fits."""
    cast = place.finding.cast()
    arrays = [each for each in _operands(place) if not _is_number(each)]
    if len(arrays) == 1 and cast is not None:
        yield from _cast(place, arrays[0], cast.name)


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    return isinstance(node, ast.Constant)


def negative_power(place: Place[NegativePowerOfInteger]) -> Iterator[Fix]:
    """Convert the base to floats."""
    operands = _operands(place)
    if operands:
        yield from _cast(place, operands[0], (place.finding.precision or dtypes.F64).name)


def accumulator_too_narrow(place: Place[AccumulatorTooNarrow]) -> Iterator[Fix]:
    """Write `np.sum(x, dtype=i32)` as `np.sum(x).astype(i32)`, which only truncates the result."""
    call = place.node(ast.Call)
    if call is None:
        return
    dtype = next((keyword for keyword in call.keywords if keyword.arg == "dtype"), None)
    if dtype is None:
        return
    others = [*call.args, *(keyword for keyword in call.keywords if keyword is not dtype)]
    given = ", ".join(place.tree.text(each) for each in others)
    text = f"{place.tree.text(call.func)}({given}).astype({place.tree.text(dtype.value)})"
    yield from place.replace(call, text)


def return_dtype(place: Place[ReturnDtype]) -> Iterator[Fix]:
    """Convert the returned value to the declared dtype."""
    node = place.node(ast.expr)
    if node is None or getattr(place.tree.parent(node), "returns", None) is node:
        return
    for part in place.finding.path.replace("]", "").split("[")[1:]:
        if not isinstance(node, ast.Tuple) or not part.isdigit() or len(node.elts) <= int(part):
            return
        node = node.elts[int(part)]
    found, declared = place.finding.found.dtype, place.finding.declared.dtype
    if found.is_complex and not declared.is_complex:
        return  # its real part, or its magnitude
    if "." not in place.finding.path:
        yield from _cast(place, node, declared.name)


def argument_dtype(place: Place[ArgumentDtype]) -> Iterator[Fix]:
    """Convert the argument to the dtype that the signature declares."""
    call = place.node(ast.Call)
    dtype = place.finding.declared.partition("[")[0]
    if call is None or dtype not in {each.name for each in dtypes.ALL}:
        return
    node = _argument(place, call)
    if node is not None:
        yield from _cast(place, node, dtype)


def _argument(place: Place[ArgumentDtype], call: ast.Call) -> ast.expr | None:
    """Return the argument in the call, if the text of the module shows it; None otherwise."""
    name = place.finding.argument
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    match call.func:
        case ast.Name(id=function) if place.tree.arguments(call) is not None:
            for statement in place.tree.source.tree.body:
                if isinstance(statement, ast.FunctionDef) and statement.name == function:
                    spec = statement.args
                    names = [each.arg for each in (*spec.posonlyargs, *spec.args)]
                    return dict(zip(names, call.args, strict=False)).get(name)
        case _:
            pass
    return None


def integers_make_an_array(place: Place[IntegersMakeAnArray]) -> Iterator[Fix]:
    """Write `np.int32(0)` for the number that NumPy converts to an i64 array."""
    call, numpy = place.node(ast.Call), place.numpy()
    if call is None or numpy is None:
        return
    for node in (*(keyword.value for keyword in call.keywords), *call.args):
        if _is_number(node):
            text = f"{numpy[0]}.{place.finding.scalar()}({place.tree.text(node)})"
            yield from place.replace(node, text, needs=numpy[1])


# Truth of arrays: `and`, `or`, `not`, chained comparisons, conditionals.


Where = Place[BranchOnArray]
BOOLEAN = frozenset(
    "all any isfinite isinf isnan isclose logical_and logical_not logical_or".split()
)


def branch_on_array(place: Where) -> Iterator[Fix]:
    """Replace a test of an array's truth."""
    for node in place.nodes:
        match node, place.finding.construct:
            case ast.BoolOp(), "`and`" | "`or`":
                yield from _combined(place, node)
            case ast.UnaryOp(), "`not`":
                yield from _negated(place, node)
            case ast.Compare(), "a chained comparison":
                yield from _chained(place, node)
            case _:
                continue
        return
    test = next(iter(place.nodes), None)
    match test and place.tree.parent(test):
        case ast.IfExp() as conditional if conditional.test is test:
            yield from _conditional(place, conditional)
        case ast.If() as branch if branch.test is test:
            yield from _branch(place, branch)
        case _:
            pass


def _combined(place: Where, node: ast.BoolOp) -> Iterator[Fix]:
    sign = " & " if isinstance(node.op, ast.And) else " | "
    applicability: Applicability = "safe" if all(map(_is_boolean, node.values)) else "unsafe"
    text = sign.join(place.tree.operand(value) for value in node.values)
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
    """Return whether an expression, by its text, is a boolean whatever its operands are."""
    match node:
        case ast.Constant(value=bool()) | ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.BoolOp(values=operands):
            return all(map(_is_boolean, operands))
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return _is_boolean(operand)
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr() | ast.BitXor(), left=left, right=right):
            return _is_boolean(left) and _is_boolean(right)
        case ast.Call(func=ast.Attribute(attr=method)):
            return method in BOOLEAN
        case _:
            return False


def _is_bool_type(found: str) -> bool:
    return found == "bool" or found.startswith("bool[")


def _conditional(place: Where, node: ast.IfExp) -> Iterator[Fix]:
    """Write `x if c else y`."""
    yield from _chosen(place, node, "", node.test, node.body, node.orelse)


def _branch(place: Where, node: ast.If) -> Iterator[Fix]:
    """Rewrite an `if` whose branches bind one name, or return."""
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
    """Choose between two values: run one of them, or select element by element from both."""
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


# Preconditions: the `assert` that a finding asks for, at the beginning of the kernel.
#
# Unsafe, because it decides that some sizes are refused.


def precondition(finding: Diagnostic, tree: LocatedTree) -> Iterator[Fix]:
    """Add the `assert` that the help names, as the first statement of the kernel.

    `tree` is that of the file with the kernel: the finding may lie in a helper of another file.
    """
    text = finding.assertion()
    kernel = None if text is None else _kernel(finding, tree)
    if text is None or kernel is None or not _speaks_of(text, kernel):
        return
    body = kernel.body if ast.get_docstring(kernel, clean=False) is None else kernel.body[1:]
    if not body:
        return
    first = body[0]
    line = min([first.lineno, *(each.lineno for each in getattr(first, "decorator_list", ()))])
    before = tree.source.lines[line - 1][: tree.source.column(line, first.col_offset) - 1]
    if before.strip():
        return  # a body on the line of its `def`
    place = Span(tree.source.path, line, 1, line, 1)
    message = f"add `{text}` to `{kernel.name}`"
    yield Fix(message, (Edit(place, f"{before}{text}\n"),))


def _kernel(finding: Diagnostic, tree: LocatedTree) -> FunctionStatement | None:
    """Return the function at module level through which the finding was reached."""
    line = finding.span.frames()[-1].line
    for statement in tree.source.tree.body:
        if isinstance(statement, FunctionStatement) and statement.lineno <= line <= (
            statement.end_lineno or 0
        ):
            return statement
    return None


def _speaks_of(text: str, function: FunctionStatement) -> bool:
    """Return whether a condition uses only the parameters of a function."""
    try:
        names = {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}
    except SyntaxError:
        return False
    return names <= {*parameters(function), "max", "min"}
