"""Binding names: patterns, `+=` on a name; stores into arrays and objects are refused."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from pscdsl._src.frontend.interpreter import operators
from pscdsl._src.frontend.interpreter.expressions import evaluate
from pscdsl._src.frontend.interpreter.frames import Frame
from pscdsl._src.frontend.interpreter.iteration import elements
from pscdsl._src.frontend.interpreter.owned import held_elsewhere, updated
from pscdsl._src.frontend.text.uses import is_lost
from pscdsl._src.frontend.values import purity
from pscdsl._src.frontend.values.values import POISON, Poison, Poisoned, is_poisoned, is_traced
from pscdsl._src.ir.builder import Value, Weak
from pscdsl.numpy import indexing
from pscdsl.typing.codes.language import Unsupported
from pscdsl.typing.codes.language_evaluation import WrongUnpacking
from pscdsl.typing.codes.numerics import AliasedUpdate
from pscdsl.typing.codes.purity import Mutation
from pscdsl.typing.codes.shapes import OutgrownUpdate
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import BOOL
from pscdsl.typing.python_containers import is_dict, is_known_array, is_sequence
from pscdsl.typing.tree_differences import array_difference


def assign(frame: Frame, target: ast.expr, value: Any) -> None:
    """Bind a pattern of names."""
    if isinstance(target, ast.Name):
        frame.names[target.id] = value
        if frame.program is not None:
            frame.program.named(target.id, value)
    elif isinstance(target, ast.Tuple | ast.List):
        _unpack(frame, target, value)
    elif isinstance(target, ast.Starred):
        assign(frame, target.value, value)
    elif isinstance(target, ast.Subscript):
        raise _subscript_store(frame, target, value)
    elif isinstance(target, ast.Attribute):
        raise _attribute_store(frame, target)
    else:
        raise Failure(Unsupported(what="this assignment", rewrite=""))


def _subscript_store(frame: Frame, target: ast.Subscript, value: Any) -> Failure:
    text = frame.source.text_of
    owner, index = text(target.value), purity.index_text(text(target.slice), target.slice)
    rewrite = _changed_copy(frame, target, "…")
    masked = isinstance(value, Poison) or (is_traced(value) and value.ndim > 0)
    if masked and "psc.update(" in rewrite and _is_mask(frame, target.slice):
        rewrite = f"{owner} = np.where({index}, …, {owner}), with values for all places"
        rewrite += _returned(frame, target)
    return Failure(
        Mutation(what=f"a store into `{text(target)}`", rewrite=rewrite, span=frame.span(target))
    )


def _returned(frame: Frame, target: ast.Subscript) -> str:
    """What else to write where nobody would see the new array."""
    node = None if frame.closure is None else frame.closure.node
    if isinstance(target.value, ast.Name) and is_lost(node, target.value.id):
        return f", and `return {target.value.id}` at the end"
    return ""


def _is_mask(frame: Frame, index: ast.expr) -> bool:
    """Whether an index is an array of bools."""
    try:
        found = evaluate(frame, index)
    except Failure:
        return False
    return is_traced(found) and found.dtype is BOOL


def _is_array(frame: Frame, node: ast.expr) -> bool:
    """Whether what stands here is an array, or would have been one."""
    value = evaluate(frame, node)
    return is_traced(value) or is_known_array(value) or isinstance(value, Poison)


def _changed_copy(frame: Frame, target: ast.Subscript, item: str, combine: str = "") -> str:
    """What makes a changed copy of what a store changes, with another item at one place.

    With `combine`, an array's item is combined with this one in that way.
    """
    text = frame.source.text_of
    owner, index = text(target.value), text(target.slice)
    if _is_array(frame, target.value):
        how = f', combine="{combine}"' if combine else ""
        index = purity.index_text(index, target.slice)
        update = f"{owner} = psc.update({owner}, {index}, {item}{how})"
        return update + _returned(frame, target)
    value = evaluate(frame, target.value)
    if is_dict(value):
        return f"{owner} = {{**{owner}, {index}: {item}}}"
    if is_sequence(value):
        return f"{owner} = [{item} if i == {index} else each for i, each in enumerate({owner})]"
    return f"`{owner}.set({index}, {item})` of a PMap or a PVector is a changed copy"


def _attribute_store(frame: Frame, target: ast.Attribute) -> Failure:
    text = frame.source.text_of
    rewrite = f"make a changed copy: `{text(target.value)}.replace({target.attr}=…)` of a record"
    what = f"a write to the attribute `{text(target)}`"
    return Failure(Mutation(what=what, rewrite=rewrite, span=frame.span(target)))


def _unpack(frame: Frame, target: ast.Tuple | ast.List, value: Any) -> None:
    names = target.elts
    if isinstance(value, Poison):
        for name in names:
            assign(frame, name, POISON)
        return
    if is_traced(value) and value.ndim and isinstance(value.shape[0], int):
        frame.here(target)
        items: Sequence[Any] = [indexing.getitem(value, i) for i in range(value.shape[0])]
    elif is_traced(value):
        raise Failure(WrongUnpacking(expected=len(names), found=f"an array of type {value.type}"))
    else:
        items = list(elements(value))
    stars = [i for i, name in enumerate(names) if isinstance(name, ast.Starred)]
    if not stars:
        if len(items) != len(names):
            raise Failure(WrongUnpacking(expected=len(names), found=f"{len(items)} items"))
        for name, item in zip(names, items, strict=True):
            assign(frame, name, item)
        return
    star = stars[0]
    after = len(names) - star - 1
    if len(items) < star + after:
        raise Failure(WrongUnpacking(expected=star + after, found=f"{len(items)} items"))
    for name, item in zip(names[:star], items[:star], strict=True):
        assign(frame, name, item)
    assign(frame, names[star], list(items[star : len(items) - after]))
    for name, item in zip(names[star + 1 :], items[len(items) - after :], strict=True):
        assign(frame, name, item)


def _has_memory(value: Any) -> bool:
    """Whether NumPy changes a value in place; a scalar is no array that could change."""
    return (is_traced(value) and value.ndim > 0) or is_known_array(value)


def augment(
    frame: Frame, node: ast.AugAssign, target: ast.expr, operator: str, value: ast.expr
) -> None:
    """`name += value` binds the name again; stores into parts are refused."""
    if not isinstance(target, ast.Name):
        raise _updated_part(frame, target, operator, value)
    name = target.id
    if name not in frame.assigned and name not in frame.names:
        raise Poisoned  # declared global or nonlocal, and reported there
    left = frame.lookup(name)
    right = evaluate(frame, value)
    if is_poisoned(left) or is_poisoned(right):
        frame.names[name] = POISON
        return
    sign = operators.SIGNS[operator]
    why = held_elsewhere(frame, name, left) if _has_memory(left) else ""
    if why:
        lost = frame.closure is not None and is_lost(frame.closure.node, name)
        frame.report(node, AliasedUpdate(name=name, sign=sign, why=why, lost=lost))
    if isinstance(left, list | dict | set):
        kind = type(left).__name__  # pyright: ignore[reportUnknownArgumentType]
        text = frame.source.text_of(value)
        rewrite = f"{name} = {name} {sign} {text}"
        if isinstance(left, list) and sign == "+":
            rewrite = f"{name} = [*{name}, *{text}]"  # it may be any collection
        raise Failure(purity.made_anew(f"`{sign}=` on the {kind} `{name}`", rewrite))
    frame.names[name] = POISON
    result = operators.binary(frame, node, operator, left, right)
    if is_traced(left) and left.ndim and is_traced(result):
        _require_place(frame, name, sign, left, result)
    updated(frame.session, node, result)
    frame.names[name] = result


def _updated_part(frame: Frame, target: ast.expr, operator: str, value: ast.expr) -> Failure:
    assert isinstance(target, ast.Subscript | ast.Attribute)
    text = frame.source.text_of
    owner = text(target.value)
    if isinstance(target, ast.Subscript):
        combine = {"Add": "add", "Mult": "multiply"}.get(operator, "")
        item = text(value)
        if not combine or not _each_once(target.slice) or not _is_array(frame, target.value):
            sign = operators.SIGNS[operator]
            combine, item = "", f"{text(target)} {sign} {_operand(item, value)}"
        rewrite = _changed_copy(frame, target, item, combine)
    else:
        rewrite = f"make a changed copy: `{owner}.replace({target.attr}=…)` of a record"
    what = f"an in-place update of `{text(target)}`"
    return Failure(Mutation(what=what, rewrite=rewrite, span=frame.span(target)))


def _operand(text: str, node: ast.expr) -> str:
    """A node as it is written behind an operator."""
    loose = (ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda, ast.NamedExpr, ast.Tuple)
    return f"({text})" if isinstance(node, loose) else text


def _each_once(index: ast.expr) -> bool:
    """Whether an index surely names each element at most once: NumPy's `+=` adds once."""
    if isinstance(index, ast.Tuple):
        return all(map(_each_once, index.elts))
    if isinstance(index, ast.UnaryOp):
        return _each_once(index.operand)
    return isinstance(index, ast.Constant | ast.Slice)


def _require_place(
    frame: Frame, name: str, sign: str, left: Value | Weak, result: Value | Weak
) -> None:
    """A Failure if the result does not fit into the array, where NumPy would write it."""
    assert frame.program is not None
    found = result.type
    if isinstance(left, Weak) and found.dtype.kind <= left.kind:
        found = found.with_dtype(left.dtype)  # it has no dtype yet that could be another
    why = array_difference(frame.program.facts, found, left.type)
    if why is not None:
        raise Failure(OutgrownUpdate(name=name, sign=sign, left=left.type, found=found, why=why))
