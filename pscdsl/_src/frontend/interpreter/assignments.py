"""Bindings of names and stores into arrays and containers: patterns, `=`, `+=`, `del`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Final

from pscdsl._src.frontend import purity
from pscdsl._src.frontend.interpreter import computed_slices, masks, operators, special_methods
from pscdsl._src.frontend.interpreter.attributes import attribute_of
from pscdsl._src.frontend.interpreter.container_methods import (
    OPERATORS,
    changed,
    delete_item,
    named,
    set_item,
)
from pscdsl._src.frontend.interpreter.containers import (
    adopt,
    adopt_all,
    container_of,
    shared_by,
)
from pscdsl._src.frontend.interpreter.expressions import (
    UNFOLLOWED,
    before_mask,
    item_of,
    loaded,
    locate,
    read,
    view_at,
)
from pscdsl._src.frontend.interpreter.frames import Frame
from pscdsl._src.frontend.interpreter.functions import PARAMETER, elements
from pscdsl._src.frontend.interpreter.iteration import Long, row_of
from pscdsl._src.frontend.interpreter.operators import subscript
from pscdsl._src.frontend.interpreter.places import (
    WHOLE,
    Frozen,
    Located,
    load,
    named_store,
    parameters_of,
    require_scalar,
    with_cells,
)
from pscdsl._src.frontend.interpreter.stores import (
    is_mask,
    require_same_shape,
    update_item,
    update_whole,
)
from pscdsl._src.frontend.text.bindings import is_lost
from pscdsl._src.frontend.trees import condition
from pscdsl._src.frontend.values import (
    POISON,
    AnyValue,
    External,
    Place,
    Poison,
    Poisoned,
    RecordValue,
    Undecided,
    is_poisoned,
    is_traced,
)
from pscdsl.typing.codes.language import Unsupported
from pscdsl.typing.codes.language_evaluation import WrongUnpacking
from pscdsl.typing.codes.purity import Mutation
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.python_containers import is_dict, is_known_array, is_sequence


def assign(frame: Frame, target: ast.expr, value: Place) -> None:
    """Bind a pattern of names, or store into places."""
    match target:
        case ast.Name(id=name):
            if frame.program is not None:
                value = with_cells(frame.session, value, Frozen(UNFOLLOWED))
                adopt_all(frame.session, value, Frozen("this call did not make"))
                seen = value.seen() if isinstance(value, Located) else value
                frame.program.named(name, seen)
                frame.session.assigned[target] = frame.source, seen
            frame.names[name] = value
        case ast.Tuple() | ast.List():
            _unpack(frame, target, value)
        case ast.Starred():
            assign(frame, target.value, value)
        case ast.Subscript():
            _store(frame, target, value)
        case ast.Attribute():
            _store_attribute(frame, target, value)
        case _:
            raise Failure(Unsupported(what="this assignment", rewrite=""))


def _store(frame: Frame, target: ast.Subscript, value: Place) -> None:
    """Execute `owner[index] = value`; the value was evaluated before, and is read now."""
    owner: Place = locate(frame, target.value)
    index = read(frame, target.slice)
    holds = isinstance(owner, list | dict)  # also a refused container, whose findings were reported
    if is_poisoned(index) or (not holds and (is_poisoned(owner) or is_poisoned(value))):
        raise Poisoned
    if frame.program is not None and isinstance(owner, list | dict):
        set_item_of(frame, target, owner, index, value)
        return
    if not isinstance(owner, Located):
        raise _subscript_store(frame, target)
    here = frame.here(target)
    owner, index = _before_slice(frame, target, owner, index)
    try:
        owner, index = before_mask(frame, target, owner, index)
        if isinstance(value, masks.Selected):
            masks.store(here, owner, index, value)
        else:
            owner.store(here, index, load(value))
    except Failure as failure:
        several = isinstance(value, Located) and value.ndim > 0 and is_mask(index)
        raise _of_store(frame, target, failure, several).at(frame.span(target)) from None


def _before_slice(
    frame: Frame, target: ast.Subscript, owner: Located, index: AnyValue
) -> tuple[Located, AnyValue]:
    """Split `x[1, a:b]` into the view `x[1]` and the mask of the places from `a` up to `b`."""
    here = frame.here(target)
    if isinstance(index, Undecided):
        index = condition(here, index)
    parts = computed_slices.split(owner, index)
    if parts is not None:
        owner, index = view_at(frame, target, owner, parts[0]), parts[1]
    return owner, computed_slices.as_mask(here, owner, index)


def _store_attribute(frame: Frame, target: ast.Attribute, value: Place) -> None:
    """Execute `z.real = value`, which is `z.real[...] = value`."""
    if _is_addition(frame, target, value):
        frame.session.added.add(target.attr)
        return
    owner = _written_part(frame, target)
    if is_poisoned(value):
        raise Poisoned
    try:
        owner.store(frame.here(target), WHOLE, load(value))
    except Failure as failure:
        raise _of_store(frame, target, failure, False).at(frame.span(target)) from None


def _is_addition(frame: Frame, target: ast.Attribute, value: Place) -> bool:
    """Return whether a store adds an attribute to an instance of a class of a JAX program.

    The value is one that nothing else can change, so that it may be unknown from then on.
    """
    owner = read(frame, target.value)
    if not isinstance(owner, RecordValue) or owner.cls.construction is None:
        return False
    if owner.cls.construction.generates_init or target.attr in owner.fields:
        return False
    is_new = isinstance(value, list | dict | set) and not value
    return (is_new or purity.is_closed(value)) and owner.cls.lacks(target.attr)


def _written_part(frame: Frame, target: ast.Attribute) -> Located:
    """Return the array that a store into `owner.real` or `owner.imag` writes to."""
    if target.attr not in ("real", "imag"):
        raise _attribute_store(frame, target)
    owner = locate(frame, target.value)
    if is_poisoned(owner):
        raise Poisoned
    part = attribute_of(frame, target, owner, target.attr) if isinstance(owner, Located) else None
    if not isinstance(part, Located):
        raise _attribute_store(frame, target)
    return part


def set_item_of(
    frame: Frame, target: ast.Subscript, owner: Place, index: AnyValue, value: Place
) -> None:
    """Execute `owner[index] = value` for a list or a dict."""
    what = f"a store into `{frame.source.text_of(target)}`"
    try:
        changed(frame.session, owner, set_item, index, value)
    except Failure as failure:
        rewrite = _changed_copy(frame, target, "…")
        raise named(failure, what, rewrite).at(frame.span(target)) from None


def delete_item_of(frame: Frame, target: ast.Subscript) -> None:
    """Execute `del owner[index]` for a list or a dict."""
    text = f"`del {frame.source.text_of(target)}`"
    owner, index = locate(frame, target.value), read(frame, target.slice)
    if is_poisoned(owner) or is_poisoned(index):
        raise Poisoned
    if not isinstance(owner, list | dict) or frame.program is None:
        raise Failure(Mutation(what=text, rewrite="make a copy without it"))
    try:
        changed(frame.session, owner, delete_item, index)
    except Failure as failure:
        raise named(failure, text).at(frame.span(target)) from None


def _of_store(frame: Frame, target: ast.expr, failure: Failure, several: bool) -> Failure:
    """Add the store's text and a suggested replacement to its refusal."""
    text = frame.source.text_of

    def instead(known: str) -> str:
        if not (isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name)):
            return known
        changed = _changed_copy(frame, target, "…")
        if several:  # their number is unknown
            name, mask = text(target.value), text(target.slice)
            changed = f"{name} = np.where({mask}, …, {name}), with values for all places"
            changed += _returned(frame, target)
        return f"{known}; or write {changed}"

    return named_store(failure, f"a store into `{text(target)}`", instead)


def _subscript_store(frame: Frame, target: ast.Subscript) -> Failure:
    text = frame.source.text_of(target)
    rewrite = _changed_copy(frame, target, "…")
    return Failure(
        Mutation(what=f"a store into `{text}`", rewrite=rewrite, span=frame.span(target))
    )


def _returned(frame: Frame, target: ast.Subscript) -> str:
    """Return the suggestion to return the new array, if it would be lost otherwise."""
    node = None if frame.closure is None else frame.closure.node
    if isinstance(target.value, ast.Name) and is_lost(node, target.value.id):
        return f", and `return {target.value.id}` at the end"
    return ""


def _is_array(frame: Frame, node: ast.expr) -> bool:
    """Return whether an expression is an array, or would have been one."""
    value = read(frame, node)
    return is_traced(value) or is_known_array(value) or isinstance(value, Poison)


def _changed_copy(frame: Frame, target: ast.Subscript, item: str) -> str:
    """Return the text of an expression that makes a copy with another item at one place."""
    text = frame.source.text_of
    owner, index = text(target.value), text(target.slice)
    if isinstance(target.value, ast.Name) and target.value.id not in frame.names:
        return f"write to a copy, `{owner}.copy()`, under a name of the function's own"
    if _is_array(frame, target.value):
        index = purity.index_text(index, target.slice)
        update = f"{owner} = psc.update({owner}, {index}, {item})"
        return update + _returned(frame, target)
    value = read(frame, target.value)
    if isinstance(value, Long):
        return f"`{owner} = np.array({owner})` makes an array, which takes stores"
    if is_dict(value):
        return f"{owner} = {{**{owner}, {index}: {item}}}"
    if is_sequence(value):
        return f"{owner} = [{item} if i == {index} else each for i, each in enumerate({owner})]"
    return f"`{owner}.set({index}, {item})` of a PMap or a PVector is a changed copy"


def _attribute_store(frame: Frame, target: ast.Attribute) -> Failure:
    text = frame.source.text_of
    owner = text(target.value)
    rewrite = f"make a changed copy: `{owner}.replace({target.attr}=…)` of a record"
    if target.attr in ("shape", "dtype", "strides", "flat", "real", "imag"):
        rewrite = _ARRAYS.get(target.attr, "").format(owner)
    what = f"a write to the attribute `{text(target)}`"
    return Failure(Mutation(what=what, rewrite=rewrite, span=frame.span(target)))


_ARRAYS: Final = {
    "shape": "{0} = {0}.reshape(…)",
    "dtype": "{0} = {0}.astype(…)",
    "flat": "{0}[...] = …",
    "real": "an array that the function made takes it, and a number has no parts to write",
    "imag": "a complex array that the function made takes it",
}
"""The suggested replacements of stores into attributes of arrays."""


def _unpack(frame: Frame, target: ast.Tuple | ast.List, value: Place) -> None:
    names = target.elts
    if isinstance(value, Poison):
        for name in names:
            assign(frame, name, POISON)
        return
    value = special_methods.gone_through(frame, target, value)
    array = value.load() if isinstance(value, Located) else value
    items: Sequence[Place]
    stars = [i for i, name in enumerate(names) if isinstance(name, ast.Starred)]
    if isinstance(value, External) and value.is_result and not stars:
        items = [External(f"{value.name}[{at}]", library=True) for at in range(len(names))]
    elif not is_traced(array):
        items = list(elements(value))
    elif array.ndim and isinstance(array.shape[0], int):
        frame.here(target)
        owner = value if isinstance(value, Located) else array
        if not stars and array.shape[0] != len(names):
            found = f"{array.shape[0]} items"
            raise Failure(WrongUnpacking(expected=len(names), found=found))
        steps = range(array.shape[0])
        elements(steps)  # refuses too many
        items = [row_of(owner, i) for i in steps]
    else:
        raise Failure(WrongUnpacking(expected=len(names), found=f"an array of type {array.type}"))
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
    rest = adopt(frame.session, list(items[star : len(items) - after]))
    assign(frame, names[star], rest)
    for name, item in zip(names[star + 1 :], items[len(items) - after :], strict=True):
        assign(frame, name, item)


def augment(
    frame: Frame, node: ast.AugAssign, target: ast.expr, operator: str, value: ast.expr
) -> None:
    """Execute `target += value`: write to an array in place, or bind a name to another value."""
    if isinstance(target, ast.Subscript):
        _update_item(frame, node, target, operator, value)
        return
    if not isinstance(target, ast.Name):
        assert isinstance(target, ast.Attribute)
        _update_attribute(frame, node, target, operator, value)
        return
    name = target.id
    if name not in frame.assigned and name not in frame.names:
        raise Poisoned  # declared global or nonlocal, and reported there
    left, right = frame.lookup(name), locate(frame, value)
    if (left.__class__, operator) in OPERATORS and container_of(frame.session, left) is not None:
        if is_poisoned(right):
            raise Poisoned
        _change(frame, node, left, operator, right, name)
        return
    if is_poisoned(left) or is_poisoned(right):
        frame.names[name] = POISON
        return
    result = _of_records(frame, node, operator, left, right)
    if result is not special_methods.NOT_IMPLEMENTED:
        assign(frame, target, result)
        return
    right = loaded(frame, value, right)
    if is_poisoned(right):
        frame.names[name] = POISON
        return
    sign = operators.SIGNS[operator]
    if isinstance(left, Located):
        result = operators.binary(frame, node, operator, left.load(), right)
        try:
            update_whole(frame.here(node), left, sign, result, name)
        except Failure as failure:
            raise _of_update(frame, node, name, failure).at(frame.span(node)) from None
        return
    if isinstance(left, list | dict | set):
        kind = left.__class__.__name__
        text = frame.source.text_of(value)
        rewrite = f"{name} = {name} {sign} {text}"
        if isinstance(left, list) and sign == "+":
            rewrite = f"{name} = [*{name}, *{text}]"  # the operand may be any collection
        raise Failure(purity.made_anew(f"`{sign}=` on the {kind} `{name}`", rewrite))
    try:
        require_scalar(left)
    except Failure as failure:
        raise _of_update(frame, node, name, failure).at(frame.span(node)) from None
    frame.names[name] = POISON
    assign(frame, target, operators.binary(frame, node, operator, left, right))


def _of_records(frame: Frame, node: ast.AST, operator: str, left: Place, right: Place) -> Place:
    """Return the result of `left += right` if it calls a method; else NOT_IMPLEMENTED."""
    if isinstance(left, Located):
        return special_methods.NOT_IMPLEMENTED  # NumPy writes to the array
    special_methods.refuse_in_place(left, operator)
    return special_methods.binary(frame, node, operator, left, right)


def _update_attribute(
    frame: Frame, node: ast.AugAssign, target: ast.Attribute, operator: str, value: ast.expr
) -> None:
    """Execute `z.real += value`, which writes through the view `z.real`."""
    owner, right = _written_part(frame, target), read(frame, value)
    if is_poisoned(right):
        raise Poisoned
    result = operators.binary(frame, node, operator, owner.load(), right)
    sign, text = operators.SIGNS[operator], frame.source.text_of(target)
    try:
        update_whole(frame.here(node), owner, sign, result, text)
    except Failure as failure:
        raise named_store(failure, f"`{text} {sign}=`").at(frame.span(node)) from None


def _change(
    frame: Frame, node: ast.AugAssign, left: Place, operator: str, right: Place, text: str
) -> None:
    """Execute `left += right` for a list, a dict or a set in place."""
    sign = operators.SIGNS[operator]
    try:
        changed(frame.session, left, OPERATORS[left.__class__, operator], right)
    except Failure as failure:
        raise named(failure, f"`{text} {sign}=`").at(frame.span(node)) from None


def _of_update(frame: Frame, node: ast.AugAssign, name: str, failure: Failure) -> Failure:
    """Add the text of `name += value` and a suggested replacement to its refusal."""
    sign = operators.SIGNS[type(node.op).__name__]
    text = _operand(frame.source.text_of(node.value), node.value)
    rewrite = f"{name} = {name} {sign} {text}"
    if frame.closure is not None and is_lost(frame.closure.node, name):
        rewrite += f", and `return {name}` at the end"
    declare = next((PARAMETER.format(p) for p in parameters_of(failure)), "")
    instead = f"{declare}; or write {rewrite}" if declare else rewrite
    return named_store(failure, f"`{name} {sign}=`", lambda known: instead)


def _update_item(
    frame: Frame, node: ast.AugAssign, target: ast.Subscript, operator: str, value: ast.expr
) -> None:
    """Execute `owner[index] += value`; the item is read before `value` is evaluated."""
    owner = locate(frame, target.value)
    index = locate(frame, target.slice)
    if is_poisoned(owner) or is_poisoned(index):
        raise Poisoned
    if frame.program is not None and type(owner) in (list, dict):
        _update_item_of(frame, node, target, operator, value, owner, load(index))
        return
    if not isinstance(owner, Located):
        raise _updated_part(frame, target, operator, value)
    owner, index = _before_slice(frame, target, owner, load(index))
    owner, index = before_mask(frame, target, owner, index)
    part = None if is_mask(index) else item_of(frame, target, owner, index)
    right = locate(frame, value)
    if not (is_mask(index) and isinstance(right, masks.Selected)):
        right = loaded(frame, value, right)
    if is_poisoned(right):
        raise Poisoned

    def combined(left: AnyValue, right: Place) -> AnyValue:
        result = operators.binary(frame, node, operator, left, right)
        if is_traced(left) and left.ndim and is_traced(result):
            sign = operators.SIGNS[operator]
            require_same_shape(frame.here(node), left, sign, result, frame.source.text_of(target))
        return result

    try:
        update_item(frame.here(node), owner, index, part, right, combined)
    except Failure as failure:
        raise _of_store(frame, target, failure, False).at(frame.span(target)) from None


def _update_item_of(
    frame: Frame,
    node: ast.AugAssign,
    target: ast.Subscript,
    operator: str,
    value: ast.expr,
    owner: Place,
    index: AnyValue,
) -> None:
    """Execute `owner[index] += value` for a list or a dict; an array item is written in place."""
    container = container_of(frame.session, owner)
    if container is None or container.frozen is not None:
        raise shared_by(_updated_part(frame, target, operator, value), owner, container)
    left, right = subscript(frame, target, owner, index), locate(frame, value)
    if is_poisoned(left) or is_poisoned(right):
        raise Poisoned
    text, sign = frame.source.text_of(target), operators.SIGNS[operator]
    if (left.__class__, operator) in OPERATORS:
        _change(frame, node, left, operator, right, text)
        return  # the item is the same as before
    result = _of_records(frame, node, operator, left, right)
    if result is not special_methods.NOT_IMPLEMENTED:
        set_item_of(frame, target, owner, index, result)
        return
    right = loaded(frame, value, right)
    if isinstance(left, Located):
        result = operators.binary(frame, node, operator, left.load(), right)
        try:
            update_whole(frame.here(node), left, sign, result, text)
        except Failure as failure:
            raise named_store(failure, f"`{text} {sign}=`").at(frame.span(node)) from None
        return
    try:
        require_scalar(left)
    except Failure as failure:
        rewrite = f"{text} = {text} {sign} {_operand(frame.source.text_of(value), value)}"
        refusal = named_store(failure, f"`{text} {sign}=`", lambda known: rewrite)
        raise refusal.at(frame.span(node)) from None
    set_item_of(frame, target, owner, index, operators.binary(frame, node, operator, left, right))


def _updated_part(frame: Frame, target: ast.Subscript, operator: str, value: ast.expr) -> Failure:
    text = frame.source.text_of
    sign = operators.SIGNS[operator]
    item = f"{text(target)} {sign} {_operand(text(value), value)}"
    rewrite = _changed_copy(frame, target, item)
    what = f"an in-place update of `{text(target)}`"
    return Failure(Mutation(what=what, rewrite=rewrite, span=frame.span(target)))


def _operand(text: str, node: ast.expr) -> str:
    """Return an operand's text, in parentheses if an operator needs them."""
    loose = (ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda, ast.NamedExpr, ast.Tuple)
    return f"({text})" if isinstance(node, loose) else text
