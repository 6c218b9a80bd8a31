"""Casts where dtypes do not fit.  Which array is cast is for the author: all are unsafe."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pscdsl._src.frontend.fixes.place import Place
from pscdsl._src.frontend.fixes.tree import FunctionStatement
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
from pscdsl.typing.diagnostics import Diagnostic, Fix


def _cast(place: Place[Diagnostic], node: ast.expr, dtype: str) -> Iterator[Fix]:
    """`node.astype(dtype)`."""
    found = place.dtype(dtype)
    if found is not None:
        written, needs = found
        text = f"{place.tree.receiver(node)}.astype({written})"
        yield from place.replace(node, text, needs=needs, span=place.tree.wrapped(node))


def _operands(place: Place[Diagnostic]) -> list[ast.expr]:
    """The two operands of the operation at a place, if it has two."""
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
    """The narrower operand in the dtype of the wider one; failing that, the other way round."""
    left, right = place.finding.left.dtype, place.finding.right.dtype
    operands = _operands(place)
    if len(operands) == 2:
        pairs = [(left, operands[0], right), (right, operands[1], left)]
        for _, node, to in sorted(pairs, key=lambda pair: (pair[0].kind, pair[0].bits)):
            yield from _cast(place, node, to.name)
        return
    augmented = place.node(ast.AugAssign)
    if augmented is not None and isinstance(augmented.target, ast.Name):
        yield from _cast(place, augmented.value, left.name)


def scalar_does_not_fit(place: Place[ScalarDoesNotFit]) -> Iterator[Fix]:
    """The array in a dtype into which the scalar fits."""
    cast = place.finding.cast()
    arrays = [each for each in _operands(place) if not _is_number(each)]
    if len(arrays) == 1 and cast is not None:
        yield from _cast(place, arrays[0], cast.name)


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    return isinstance(node, ast.Constant)


def negative_power(place: Place[NegativePowerOfInteger]) -> Iterator[Fix]:
    """The base as floats."""
    operands = _operands(place)
    if operands:
        yield from _cast(place, operands[0], "f32")


def accumulator_too_narrow(place: Place[AccumulatorTooNarrow]) -> Iterator[Fix]:
    """`np.sum(x, dtype=i32)` as `np.sum(x).astype(i32)`: the result is cut, not every element."""
    call = place.node(ast.Call)
    if call is None:
        return
    dtype = next((each for each in call.keywords if each.arg == "dtype"), None)
    if dtype is None:
        return
    others = [*call.args, *(each for each in call.keywords if each is not dtype)]
    given = ", ".join(place.tree.text(each) for each in others)
    text = f"{place.tree.text(call.func)}({given}).astype({place.tree.text(dtype.value)})"
    yield from place.replace(call, text)


def return_dtype(place: Place[ReturnDtype]) -> Iterator[Fix]:
    """What is returned in the dtype that is declared."""
    node = place.node(ast.expr)
    if node is None or any(_annotates(node, each) for each in place.tree.above(node)):
        return
    for part in place.finding.path.replace("]", "").split("[")[1:]:
        if not isinstance(node, ast.Tuple) or not part.isdigit() or len(node.elts) <= int(part):
            return
        node = node.elts[int(part)]
    if "." not in place.finding.path:
        yield from _cast(place, node, place.finding.declared.dtype.name)


def _annotates(node: ast.AST, function: ast.AST) -> bool:
    return isinstance(function, FunctionStatement) and function.returns is node


def argument_dtype(place: Place[ArgumentDtype]) -> Iterator[Fix]:
    """The argument in the dtype that the signature declares."""
    call = place.node(ast.Call)
    dtype = place.finding.declared.partition("[")[0]
    if call is None or dtype not in {each.name for each in dtypes.ALL}:
        return
    node = _argument(place, call)
    if node is not None:
        yield from _cast(place, node, dtype)


def _argument(place: Place[ArgumentDtype], call: ast.Call) -> ast.expr | None:
    """Where the argument stands in the call, if the text of the module says so."""
    name = place.finding.argument
    for each in call.keywords:
        if each.arg == name:
            return each.value
    if any(isinstance(each, ast.Starred) for each in call.args) or not isinstance(
        call.func, ast.Name
    ):
        return None
    for statement in place.tree.source.tree.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == call.func.id:
            spec = statement.args
            names = [each.arg for each in (*spec.posonlyargs, *spec.args)]
            if name in names and names.index(name) < len(call.args):
                return call.args[names.index(name)]
    return None


def integers_make_an_array(place: Place[IntegersMakeAnArray]) -> Iterator[Fix]:
    """`np.int32(0)` for the number that NumPy makes an i64 array of."""
    call, numpy = place.node(ast.Call), place.numpy()
    if call is None or numpy is None:
        return
    for node in (*(each.value for each in call.keywords), *call.args):
        if _is_number(node):
            text = f"{numpy[0]}.{place.finding.scalar()}({place.tree.text(node)})"
            yield from place.replace(node, text, needs=numpy[1])
