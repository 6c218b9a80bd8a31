"""Operators on static values, on sizes and on arrays; static truth; `value[index]`."""

from __future__ import annotations

import ast
import functools
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final, TypeGuard, overload

import numpy as np

from pscdsl._src.frontend import purity
from pscdsl._src.frontend.interpreter import counters, masks, python_numbers, special_methods
from pscdsl._src.frontend.interpreter.equality import (
    ABSENT,
    Absent,
    Decide,
    Table,
    equal,
    found_key,
    identical,
    is_among,
    meant,
)
from pscdsl._src.frontend.interpreter.frames import Frame
from pscdsl._src.frontend.interpreter.functions import BoundMethod, Closure
from pscdsl._src.frontend.interpreter.iteration import Long
from pscdsl._src.frontend.interpreter.places import load
from pscdsl._src.frontend.interpreter.records import RecordClass
from pscdsl._src.frontend.purity import (
    BINARY,
    COMPARE,
    UNARY,
    Sets,
    by_python,
    external_value,
    is_closed,
    is_set,
    refused,
    require_bounded,
)
from pscdsl._src.frontend.size_numbers import (
    Bounds,
    Find,
    Number,
    bounds_of,
    found,
    invert,
    is_whole,
    negate,
    quotient,
)
from pscdsl._src.frontend.text.bindings import uses
from pscdsl._src.frontend.text.source import Source
from pscdsl._src.frontend.trees import condition
from pscdsl._src.frontend.values import (
    Alias,
    AnyValue,
    Array,
    EnumMember,
    External,
    MapValue,
    Marker,
    NumericValue,
    Once,
    Place,
    Poison,
    RecordValue,
    StaticFunction,
    Undecided,
    VectorValue,
    describe,
    is_number,
    is_traced,
)
from pscdsl._src.ir.builder import Builder, PythonNumber, Value, Weak
from pscdsl._src.language.meanings import Meaning
from pscdsl.numpy import creation, indexing, manipulation
from pscdsl.numpy import methods as table
from pscdsl.numpy.shorthand import cast
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.codes.language import BadArguments, BranchOnArray, NotStatic, Unsupported
from pscdsl.typing.codes.language_evaluation import BadOperands, NoSuchItem
from pscdsl.typing.codes.shapes import DataDependentShape
from pscdsl.typing.codes.shapes_of_arguments import UndecidedCondition
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, Size
from pscdsl.typing.dtypes import BOOL, DType, Kind
from pscdsl.typing.python_containers import (
    is_constant,
    is_dict,
    is_known_array,
    is_scalar,
    is_sequence,
    is_tuple,
)
from pscdsl.typing.signatures import DTypeClass

# Operators on static values, on sizes and on arrays; static truth.


SIGNS = {
    "Add": "+",
    "Sub": "-",
    "Mult": "*",
    "Div": "/",
    "FloorDiv": "//",
    "Mod": "%",
    "Pow": "**",
    "LShift": "<<",
    "RShift": ">>",
    "BitAnd": "&",
    "BitOr": "|",
    "BitXor": "^",
    "MatMult": "@",
    "Eq": "==",
    "NotEq": "!=",
    "Lt": "<",
    "LtE": "<=",
    "Gt": ">",
    "GtE": ">=",
    "USub": "-",
    "UAdd": "+",
    "Invert": "~",
}


def known_facts(frame: Frame) -> Assumptions:
    """Return the known facts about sizes."""
    return Assumptions() if frame.program is None else frame.program.facts


def binary(frame: Frame, node: ast.AST, name: str, left: AnyValue, right: AnyValue) -> AnyValue:
    """Apply a binary operator to operands without errors."""
    left, right = _asked(left), _asked(right)
    if frame.program is not None and _is_list_beside_array(left, right):
        return _beside_list(frame, node, name, left, right)
    traced = is_traced(left) or is_traced(right)
    operands = left, right
    if traced:
        left, right = _as_array(frame, node, left, right), _as_array(frame, node, right, left)
    if frame.program is not None and (traced or is_constant(left) or is_constant(right)):
        result = _traced(frame, node, name, left, right)
        return counters.calculated(frame.program, name, *operands, result)
    return frame.session.made(_static(frame, node, name, left, right))


def _is_list_beside_array(left: AnyValue, right: AnyValue) -> bool:
    """Return whether NumPy converts one operand, a list or a tuple, since the other has axes."""
    return (_is_list(left) and _has_axes(right)) or (_is_list(right) and _has_axes(left))


def _is_list(value: AnyValue) -> bool:
    return type(value) in (list, tuple) or isinstance(value, Long)


def _has_axes(value: AnyValue) -> bool:
    return (is_traced(value) or is_known_array(value)) and value.ndim > 0


def _beside_list(
    frame: Frame, node: ast.AST, name: str, left: AnyValue, right: AnyValue
) -> Value | Weak:
    """Apply an operator to an array and a list with the NumPy function."""
    meaning = table.BINARY.get(name) or table.COMPARE[name]
    operands = [each.array() if isinstance(each, Long) else each for each in (left, right)]
    try:
        result: Value | Weak = meaning.of_mixed(frame.here(node), operands, {})
    except Failure as failure:
        if isinstance(failure.diagnostics[0], BadArguments):
            raise _bad(name, left, right, "NumPy makes no array of that list") from None
        raise
    return result


def _asked(value: AnyValue) -> AnyValue:
    """Return the number of a real member of an `IntEnum`; any other value as given."""
    return int(value) if _is_number_itself(value) else value


def _is_number_itself(value: AnyValue) -> TypeGuard[int]:
    """Return whether a value is a real member of an enumeration that computes like an integer."""
    own = {"__module__", "__doc__", "__new__", "__qualname__"}
    return (
        isinstance(value, Enum)
        and isinstance(value, int)
        and not any(
            name.startswith("__") and name not in own and cls.__module__ not in ("builtins", "enum")
            for cls in type(value).__mro__
            for name in vars(cls)
        )
    )


def _as_array(frame: Frame, node: ast.AST, value: AnyValue, other: AnyValue) -> AnyValue:
    """Convert a condition on sizes to an array if the other operand is one."""
    if isinstance(value, Undecided) and isinstance(other, Value):
        return condition(frame.here(node), value)
    return value


def _traced(frame: Frame, node: ast.AST, name: str, left: AnyValue, right: AnyValue) -> Array:
    if not is_number(left) or not is_number(right):
        raise _bad(name, left, right)
    here = frame.here(node)
    meaning = table.BINARY[name]
    given = python_numbers.operands(name, left, right)
    if isinstance(given, str):
        raise _bad(name, left, right, given)
    left, right = given
    truths = [isinstance(each, Number) and each.kind is Kind.BOOL for each in (left, right)]
    if any(truths) and not (name in ("BitAnd", "BitOr", "BitXor") and _are_truths(left, right)):
        raise _bad(name, left, right, "Python makes an integer of a truth value")
    bounds = _bounds(frame, name, left, right)
    has_axes = is_traced(left) and left.ndim > 0  # NumPy arrays may be divided by zero
    if isinstance(left, Weak) and not (has_axes and name != "RShift"):
        _require_divisor(frame, name, left, right)
    if name == "Pow" and isinstance(left, Value) and left.dtype is BOOL:
        raise _bad(name, left, right, "NumPy makes 8-bit integers of powers of truth values")
    if name in ("FloorDiv", "Mod") and isinstance(right, int) and right == 0:
        if is_traced(left) and left.dtype.is_integer and not has_axes:
            raise _bad(name, left, right, "division by zero")
    if not is_traced(left) and not is_traced(right):
        left = here.constant(left) if isinstance(left, np.ndarray | np.generic) else left
    result = meaning.of_mixed(here, (left, right), {})
    found = python_numbers.result(result, left, right)
    return bounded(found, bounds)


def _bounds(frame: Frame, name: str, left: NumericValue, right: NumericValue) -> Find | None:
    """Return the bounds of Python arithmetic on sizes and numbers; a Failure if it may raise."""
    if not any(isinstance(each, Number | Dim) for each in (left, right)):
        return None
    if not all(isinstance(each, Number | Dim | int | float | complex) for each in (left, right)):
        return None
    facts = known_facts(frame)
    first, second = bounds_of(facts, left), bounds_of(facts, right)
    if isinstance(left, complex) and second is not None:
        first = bounds_of(facts, 1.0)  # the divisor may still be zero
    elif isinstance(right, complex) and first is not None and name == "Pow":
        raise _bad(name, left, right)
    if first is None or second is None:
        return None
    if name == "Pow" and _is_integer(left) and _is_integer(right) and second(True).low < 0:
        raise _bad(name, left, right, "the power may be negative, which makes a float of integers")
    bounds = found(name, first, second, is_whole(right))
    if isinstance(bounds, str):
        raise _bad(name, left, right, bounds)
    return None if isinstance(left, complex) else bounds


def _are_truths(*operands: AnyValue) -> bool:
    return all(isinstance(x, bool) or (is_traced(x) and is_truth(x)) for x in operands)


def _is_integer(x: AnyValue) -> bool:
    """Return whether a Python number is an integer."""
    return isinstance(x, int | Dim) or (isinstance(x, Number) and x.kind is Kind.INT)


def bounded(result: Array, bounds: Find | None) -> Array:
    """Give a weak result of arithmetic on sizes its bounds."""
    return result if bounds is None or not isinstance(result, Weak) else Number(result, bounds)


def _static(frame: Frame, node: ast.AST, name: str, left: AnyValue, right: AnyValue) -> AnyValue:
    """Apply an operator to static values: Python's on closed values, else one from a short list."""
    if is_closed(left) and is_closed(right):
        require_bounded(name, left, right)
        try:
            return by_python(SIGNS[name], BINARY[name], (left, right), sets=_sets_of(name))
        except Failure as failure:
            if not isinstance(failure.diagnostics[0], BadArguments):
                raise
        divided = name in ("Div", "FloorDiv", "Mod") and right == 0
        raise _bad(name, left, right, "division by zero" if divided else "")
    for each in (left, right):
        if isinstance(each, External):
            raise Failure(purity.external_value(each))
    if isinstance(left, Dim) or isinstance(right, Dim):
        if is_number(left) and is_number(right):
            return _sizes(frame, node, name, left, right)
    repeated = _long_list(frame, name, left, right)
    if repeated is not None:
        return repeated
    structural = _STRUCTURAL.get((name, left.__class__, right.__class__))
    if structural is not None:
        require_bounded(name, left, right)
        return structural(left, right)
    if all(is_constant(each) or is_closed(each) for each in (left, right)):
        return _of_constants(name, left, right)
    raise _bad(name, left, right)


def _long_list(frame: Frame, name: str, left: AnyValue, right: AnyValue) -> Long | None:
    """Return `[number] * n` of a size; None for anything else."""
    from pscdsl._src.frontend.interpreter.loop_lists import repeated  # avoids an import cycle

    in_order = left.__class__ is list
    items: AnyValue = left if in_order else right
    count: AnyValue = right if in_order else left
    if name != "Mult" or frame.program is None or not isinstance(items, list):
        return None
    parts: list[AnyValue] = items  # pyright: ignore[reportUnknownVariableType]
    item = parts[0] if len(parts) == 1 else None
    if not isinstance(count, Dim) or not isinstance(item, bool | int | float | complex):
        return None
    return repeated(frame.session, frame.program.current, item, count)


def _sets_of(name: str) -> Sets:
    """Return how sets are treated: `%` makes a text, which shows their order."""
    return Sets.DECIDE if name == "Mod" else Sets.UNORDERED


def _of_constants(name: str, left: AnyValue, right: AnyValue) -> AnyValue:
    """Apply an operator to NumPy constants at module level."""
    with np.errstate(all="ignore"):
        try:
            return BINARY[name](left, right)
        except (TypeError, ValueError, ArithmeticError):
            raise _bad(name, left, right) from None


def _merged(left: dict[Any, AnyValue], right: dict[Any, AnyValue]) -> dict[Any, AnyValue]:
    table = Table(left)
    for key, value in right.items():
        table.put(key, value)
    return table.items


_STRUCTURAL: dict[tuple[str, type, type], Callable[[Any, Any], AnyValue]] = {
    **{("Add", kind, kind): operator.add for kind in (tuple, list)},
    **{("Mult", kind, int): operator.mul for kind in (tuple, list)},
    **{("Mult", int, kind): operator.mul for kind in (tuple, list)},
    ("BitOr", dict, dict): _merged,
    ("Add", VectorValue, VectorValue): lambda left, right: VectorValue(left.items + right.items),
}
"""Operators that read no item of their operands."""


def _sizes(
    frame: Frame, node: ast.AST, name: str, left: NumericValue, right: NumericValue
) -> AnyValue:
    """Return arithmetic on sizes as a size if possible, else as a weak number."""
    whole = isinstance(left, Dim | int) and isinstance(right, Dim | int)
    if isinstance(left, Dim | int) and isinstance(right, Dim | int):
        left, right = _int(left), _int(right)
        if name in ("FloorDiv", "Mod") and not known_facts(frame).proves(Fact("<=", 1, right)):
            raise _bad(name, left, right, "the divisor may be zero or negative")
        if name in ("Add", "Sub", "Mult", "FloorDiv", "Mod"):
            return BINARY[name](left, right)
        if name == "Pow" and isinstance(right, int) and 0 <= right <= 16:
            return math.prod([left] * right)
    if frame.program is None:
        raise Failure(NotStatic(what="a size used as a number"))
    if name in ("LShift", "MatMult") or (name == "Pow" and complex in _own(left, right)):
        raise _bad(name, left, right)
    if not whole and name in ("RShift", "BitAnd", "BitOr", "BitXor"):
        raise _bad(name, left, right)
    _require_divisor(frame, name, left, right)
    if whole and name == "Pow":
        raise _bad(name, left, right, "the exponent is no integer from 0 to 16")
    here = frame.here(node)
    if isinstance(left, Dim) and name == "Div" and type(right) is int and right > 0:
        return quotient(here, left, right)
    bounds = _bounds(frame, name, left, right)
    operands = [here.weak(x) if isinstance(x, Dim) else x for x in (left, right)]
    return bounded(_apply(table.BINARY[name], here, *operands), bounds)


def _apply(function: Meaning, here: Builder, *operands: NumericValue) -> Array:
    """Apply an elementwise function."""
    result: Array = function.apply(here, operands, {})
    return result


def _require_divisor(frame: Frame, name: str, left: AnyValue, right: AnyValue) -> None:
    """Refuse Python numbers whose divisor may be zero, or whose right shift may be negative."""
    facts = known_facts(frame)
    if name == "RShift" and not is_traced(right):
        if not isinstance(right, Dim | int) or not facts.proves(Fact("<=", 0, right)):
            raise _bad(name, left, right, "the shift may be negative, or no integer")
    if name not in ("Div", "FloorDiv", "Mod"):
        return
    if isinstance(right, Dim):
        known = facts.proves(Fact("<=", 1, right)) or facts.proves(Fact("<=", right, -1))
    else:
        known = not is_closed(right) or right != 0
    if not known:
        raise _bad(name, left, right, "the divisor may be zero")


def _int(value: Size) -> Size:
    return int(value) if isinstance(value, bool) else value


def _bad(name: str, left: AnyValue, right: AnyValue, reason: str = "") -> Failure:
    for each in (left, right):
        if isinstance(each, External):
            return Failure(purity.external_value(each))
    instead = ""
    if any(isinstance(each, RecordValue) for each in (left, right)):
        method = special_methods.method_for(name)
        instead = "give the class a method with a name, and call that"
        instead += f", or a method `{method}`" if method else ""
    elif any(isinstance(each, Enum | EnumMember) for each in (left, right)):
        instead = "what a member stands for is its `.value`"
    return Failure(
        BadOperands(
            operator=SIGNS.get(name, name),
            left=describe(left),
            right=describe(right),
            reason=reason,
            instead=instead,
        )
    )


def unary(frame: Frame, node: ast.UnaryOp, name: str, operand: AnyValue) -> AnyValue:
    """Apply `-x`, `~x`, `+x` or `not x`."""
    if name == "Not":
        return negated(frame, node, operand)
    operand = _asked(operand)
    if isinstance(operand, PythonNumber):
        if operand.kind is Kind.BOOL and not operand.is_array:
            if name == "Invert":
                raise _inverted_truth("a truth value of Python's")
            operand = python_numbers.whole(operand)
        result = _apply(table.UNARY[name], frame.here(node), operand)
        return python_numbers.result(result, operand)
    if isinstance(operand, Number):
        if operand.kind is Kind.BOOL:
            raise _inverted_truth("a comparison of numbers that are made of sizes", SIGNS[name])
        result = _apply(table.UNARY[name], frame.here(node), operand)
        return bounded(result, _UNARY_BOUNDS[name](operand.bounds))
    if is_traced(operand):
        result = _apply(table.UNARY[name], frame.here(node), operand)
        return counters.negative(frame.program, name, operand, result)
    if is_constant(operand) and frame.program is not None:
        here = frame.here(node)
        return _apply(table.UNARY[name], here, here.constant(operand))
    if is_closed(operand) or is_constant(operand):
        if name == "Invert" and isinstance(operand, bool):
            operand = int(operand)  # as Python does, without its warning
        try:
            found: AnyValue = UNARY[name](operand)
            return found
        except TypeError:
            pass
    elif isinstance(operand, Dim):
        return {"USub": -operand, "UAdd": operand, "Invert": -operand - 1}[name]
    elif isinstance(operand, External):
        raise Failure(purity.external_value(operand))
    raise Failure(
        BadOperands(operator=SIGNS[name], left=describe(operand), right="", reason="")
    ) from None


def _inverted_truth(what: str, sign: str = "~") -> Failure:
    return Failure(
        BadOperands(
            operator=sign,
            left=what,
            right="",
            reason="Python makes an integer of a truth value",
            instead="`np.logical_not(…)` negates a comparison",
        )
    )


_UNARY_BOUNDS: dict[str, Callable[[Find], Find]] = {
    "USub": negate,
    "UAdd": lambda bounds: bounds,
    "Invert": invert,
}


def negated(frame: Frame, node: ast.UnaryOp, operand: AnyValue) -> AnyValue:
    """Apply `not x`."""
    if frame.program is not None and is_traced(operand) and not operand.ndim:
        number = operand.default() if isinstance(operand, Weak) else operand
        if not isinstance(operand, Number) and (is_truth(number) or number.dtype.is_number):
            found = _apply(
                table.COMPARE["Eq"], frame.here(node), number, False if is_truth(number) else 0
            )
            counters.note_negation(frame.program, operand, found)
            return found
    if is_traced(operand) or is_known_array(operand):
        text = frame.source.text_of(node.operand)
        rewrite = f"~({text})" if is_truth(operand) else f"np.logical_not({text})"
        raise Failure(BranchOnArray(construct="`not`", found=describe(operand), rewrite=rewrite))
    return _unless(static_truth(operand, decider(frame)), True)


def is_truth(array: Array | np.ndarray[Any, Any]) -> bool:
    """Return whether an array is boolean: `&`, `|` and `~` on it mean `and`, `or` and `not`."""
    return str(array.dtype) == "bool"


def decider(frame: Frame) -> Decide:
    """Return the function that decides facts with the knowledge of a frame."""
    return lambda fact: decided(frame, (fact,))


def comparison(
    frame: Frame, node: ast.Compare, names: Sequence[str], operands: Iterator[Place]
) -> AnyValue:
    """Evaluate a chain of comparisons; operands are evaluated when they are needed."""
    left = next(operands)
    facts: list[Fact] = []
    truths: list[Array] = []
    for name in names:
        written = frame.session.stores
        right = next(operands)
        if truths and frame.session.stores != written:  # Python may not evaluate this operand
            what = "a store in a chained comparison"
            raise Failure(Unsupported(what=what, rewrite="write two comparisons, with `and`"))
        if len(names) == 1 and masks.among(left, right) is not None and name in table.COMPARE:
            apply = functools.partial(compared, frame, node, name)
            return masks.elementwise(frame.here(node), apply, (left, right))
        found = special_methods.compared(frame, node, name, left, right)
        if found is not special_methods.NOT_IMPLEMENTED:
            if len(names) > 1:
                what = "a record in a chain of comparisons"
                raise Failure(Unsupported(what=what, rewrite="write two comparisons, with `and`"))
            return found
        # Both were evaluated before either is read.
        found = compared(frame, node, name, load(left), load(right))
        if len(names) == 1:
            return found
        if is_traced(found) and not found.ndim and frame.program is not None:
            truths.append(found)
            left = right
            continue
        if not isinstance(found, bool | Undecided):
            raise _chained(frame, node)
        if found is False:
            return False
        if isinstance(found, Undecided):
            if found.any_of:
                raise Failure(NotStatic(what=f"`{found}` in a chain of comparisons"))
            facts.extend(found.facts)
        left = right
    if truths and facts:
        truths.append(condition(frame.here(node), Undecided(tuple(facts))))
    if truths:
        every: Array = functools.reduce(lambda one, other: one & other, truths)
        counters.note_chain(frame.program, truths, every)
        return every
    return Undecided(tuple(facts)) if facts else True


def _chained(frame: Frame, node: ast.Compare) -> Failure:
    texts = [frame.source.text_of(each) for each in (node.left, *node.comparators[:4])]
    signs = [
        {"Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">="}.get(type(o).__name__, "==")
        for o in node.ops
    ]
    parts = [f"({a} {s} {b})" for a, s, b in zip(texts, signs, texts[1:], strict=False)]
    return Failure(
        BranchOnArray(construct="a chained comparison", found="an array", rewrite=" & ".join(parts))
    )


def compared(frame: Frame, node: ast.AST, name: str, left: AnyValue, right: AnyValue) -> AnyValue:
    """Evaluate one comparison of a chain."""
    if name in ("Is", "IsNot"):
        return identical(left, right) is (name == "Is")
    if name in ("In", "NotIn"):
        found = _contains(frame, right, left)
        return _unless(found, name == "NotIn")
    left, right = meant(left), meant(right)
    if frame.program is not None and _is_list_beside_array(left, right):
        return _beside_list(frame, node, name, left, right)
    if is_traced(left) or is_traced(right):
        numbers = left, right
        left, right = _as_array(frame, node, left, right), _as_array(frame, node, right, left)
        if not is_number(left) or not is_number(right):
            reason = "`is None` asks whether something is None" if None in _own(left, right) else ""
            raise _bad(name, left, right, reason)
        result = table.COMPARE[name].of_mixed(frame.here(node), (left, right), {})
        counters.note_comparison(frame.program, name, *numbers, result)
        return _truth_of_numbers(result, left, right)
    if is_constant(left) or is_constant(right):
        return _compared_constants(frame, node, name, left, right)
    if name in ("Eq", "NotEq"):
        for each in (left, right):
            if isinstance(each, RecordValue):
                each.cls.refuse_special("__eq__", "__ne__")
        if isinstance(left, RecordValue) and isinstance(right, RecordValue):
            raise _bad(name, left, right, "records are compared field by field")
        return _unless(equal(left, right, decider(frame)), name == "NotEq")
    left, right = _asked(left), _asked(right)
    if is_closed(left) and is_closed(right):
        try:
            return by_python(SIGNS[name], COMPARE[name], (left, right), sets=Sets.UNORDERED)
        except Failure:
            raise _bad(name, left, right) from None
    left, right = _whole(name, left, right), _whole(_MIRRORED[name], right, left)
    if isinstance(left, Dim | int) and isinstance(right, Dim | int):
        return decided(frame, (_fact(name, _int(left), _int(right)),))
    raise _bad(name, left, right)


def _truth_of_numbers(result: Array, left: AnyValue, right: AnyValue) -> Array:
    """Return the result of a comparison; for two Python numbers it is a Python number, too."""
    numbers = all(isinstance(each, Number | Dim | int | float | complex) for each in (left, right))
    if not numbers or isinstance(result, Weak):
        return result

    def at(dtype: DType) -> Value:
        return cast(result, dtype)

    return Number(Weak(result.builder, Kind.BOOL, (), at), lambda tight: Bounds(0.0, 1.0))


_MIRRORED = {"Lt": "Gt", "LtE": "GtE", "Gt": "Lt", "GtE": "LtE"}


def _whole(name: str, value: AnyValue, other: AnyValue) -> AnyValue:
    """Return the integer that compares with all integers as a float on the left does."""
    if not (isinstance(value, float) and isinstance(other, Dim) and math.isfinite(value)):
        return value
    return math.floor(value) if name in ("Lt", "GtE") else math.ceil(value)


def _own(*values: AnyValue) -> list[type | None]:
    return [None if value is None else value.__class__ for value in values]


def _unless(found: bool | Undecided, negate: bool) -> bool | Undecided:
    if not negate:
        return found
    return found.negated() if isinstance(found, Undecided) else not found


def _compared_constants(
    frame: Frame, node: ast.AST, name: str, left: AnyValue, right: AnyValue
) -> AnyValue:
    """Compare NumPy arrays and scalars as constants of the program, or with NumPy."""
    if not is_number(left) or not is_number(right):
        raise _bad(name, left, right)
    if frame.program is not None:
        here = frame.here(node)
        left, right = (here.constant(x) if is_constant(x) else x for x in (left, right))
        return _apply(table.COMPARE[name], here, left, right)
    if isinstance(left, Dim) or isinstance(right, Dim):
        raise Failure(NotStatic(what="a size used as a number"))
    try:
        found = COMPARE[name](left, right)
    except (TypeError, ValueError):
        raise _bad(name, left, right) from None
    return bool(found) if is_scalar(found) else found


def _contains(frame: Frame, collection: AnyValue, item: AnyValue) -> bool | Undecided:
    """Evaluate `item in collection`; for sizes only if the facts decide it."""
    if isinstance(collection, RecordValue):
        collection.cls.refuse_special("__contains__", "__iter__")
    if isinstance(collection, Once):
        hashed = collection.kind == "the keys of a dict"
        collection = tuple(collection.take())
        collection = dict.fromkeys(collection) if hashed else collection
    if isinstance(collection, MapValue):
        collection = dict.fromkeys(collection.items)
    elif isinstance(collection, VectorValue):
        collection = collection.items
    elif isinstance(collection, RecordValue) and collection.cls.kind == "namedtuple":
        collection = tuple(collection.fields.values())
    item = meant(item)
    if isinstance(collection, RecordClass) and collection.enumeration:
        if isinstance(item, Enum | EnumMember):
            return is_among(item, list(collection.enum_members()), decider(frame))
    if (is_dict(collection) or is_set(collection)) and not is_traced(item):
        return not isinstance(found_key(item, collection), Absent)
    if is_closed(collection) and is_closed(item):
        try:
            return bool(
                by_python(
                    "in", operator.contains, (collection, item), sets=Sets.UNORDERED, walks=False
                )
            )
        except Failure:
            raise _not_in(item, collection) from None
    parts: list[AnyValue] = []
    if is_sequence(collection) or is_dict(collection) or is_set(collection):
        parts += collection
    arrays = [each for each in (collection, item, *parts) if is_traced(each)]
    if arrays:
        found = describe(arrays[0])
        raise Failure(BranchOnArray(construct="`in`", found=found, rewrite="np.any(x == value)"))
    if isinstance(collection, tuple | list):
        return is_among(item, parts, decider(frame))
    for each in (collection, item):
        if isinstance(each, External):
            raise Failure(purity.external_value(each))
    if isinstance(collection, range) and isinstance(item, Dim):
        raise Failure(NotStatic(what=f"whether the size {item} is in a range"))
    raise _not_in(item, collection)


def _not_in(item: AnyValue, collection: AnyValue) -> Failure:
    return Failure(
        BadOperands(operator="in", left=describe(item), right=describe(collection), reason="")
    )


def _fact(name: str, left: Size, right: Size) -> Fact:
    if name == "Eq":
        return Fact("==", left, right)
    if name == "NotEq":
        return Fact("!=", left, right)
    if name in ("Gt", "GtE"):
        left, right = right, left
    return Fact("<" if name in ("Lt", "Gt") else "<=", left, right)


def decided(frame: Frame, facts: tuple[Fact, ...]) -> bool | Undecided:
    """Return a condition on sizes, decided if the known facts decide it for all sizes."""
    known = known_facts(frame)
    open_facts: list[Fact] = []
    for fact in facts:
        if known.proves(fact):
            continue
        if known.proves(fact.negated()):
            return False
        open_facts.append(fact)
    return Undecided(tuple(open_facts)) if open_facts else True


def truth(
    frame: Frame, node: ast.expr, construct: str, rewrite: str | Callable[[], str]
) -> bool | None:
    """Return the static truth of an expression; None, with the finding reported, if it has none."""
    from pscdsl._src.frontend.interpreter.expressions import read  # avoids an import cycle

    return truth_of(frame, node, read(frame, node), construct, rewrite)


def truth_of(
    frame: Frame, node: ast.expr, value: AnyValue, construct: str, rewrite: str | Callable[[], str]
) -> bool | None:
    """Return the static truth of a value; None, with the finding reported, if it has none."""
    if isinstance(value, Poison):
        return None
    if is_traced(value) or is_known_array(value):
        text = rewrite if isinstance(rewrite, str) else rewrite()
        found = BranchOnArray(construct=construct, found=describe(value), rewrite=text)
        frame.report(node, found)
        return None
    try:
        answer = static_truth(value, decider(frame))
    except Failure as failure:
        frame.session.report(failure.at(frame.span(node)))
        return None
    if isinstance(answer, Undecided):
        frame.report(node, undecided(known_facts(frame), answer))
        return None
    return answer


def static_truth(value: AnyValue, decide: Decide) -> bool | Undecided:
    """Return the truth of a static value; a Failure if it is unknown."""
    if is_closed(value):
        return bool(value)
    if isinstance(value, Undecided):
        return value
    if isinstance(value, Dim):
        return decide(Fact("!=", value, 0))
    if isinstance(value, tuple | list | dict | set | frozenset):
        return len(value) > 0  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, External):
        raise Failure(purity.external_value(value))
    if isinstance(value, RecordValue):
        value.cls.refuse_special("__bool__", "__len__")
        return value.cls.kind not in ("namedtuple", "precord") or len(value.fields) > 0
    if isinstance(value, MapValue | VectorValue):
        return len(value.items) > 0
    if isinstance(value, Closure | BoundMethod | StaticFunction | Meaning):
        return True
    raise refused("the truth", value)


def open_truth(frame: Frame, value: AnyValue) -> Undecided | None:
    """Return the truth of a condition on sizes that the known facts leave open; else None."""
    if not isinstance(value, Undecided | Dim):
        return None
    found = static_truth(value, decider(frame))
    return found if isinstance(found, Undecided) else None


def presumed(frame: Frame, node: ast.expr, truth: bool) -> tuple[Fact, ...]:
    """Return the facts of a condition on sizes in one of its branches."""
    value = frame.session.ledger.value(node)
    if not isinstance(value, Undecided):
        return ()
    said = value if truth else value.negated()
    return () if said.any_of else said.facts


def undecided(known: Assumptions, value: Undecided) -> UndecidedCondition:
    """Return the finding about an open condition, with sizes for both outcomes."""

    def sizes(found: dict[str, int] | None) -> str:
        return ", ".join(f"{name}={size}" for name, size in sorted((found or {}).items()))

    fact = value.facts[0]
    narrow = all(f.relation == "==" or isinstance(f.right, int) for f in value.facts)
    return UndecidedCondition(
        fact=str(value),
        general=str(value.negated() if narrow else value),
        yes=sizes(known.counterexample(fact.negated())),
        no=sizes(known.counterexample(fact)),
    )


# `value[index]`.


# Reductions of the elements that a mask selects, `x[mask].mean()`, as reductions of arrays of the
# same shape.


_SUM: Final = "np.sum(np.where({m}, {x}, 0))"
_MOST: Final = "np.max(np.where({m}, {x}, {low}))"
_LEAST: Final = "np.min(np.where({m}, {x}, {high}))"
_COUNT: Final = "np.count_nonzero({m})"
WRITTEN: Final = {
    "sum": _SUM,
    "mean": f"{_SUM} / np.sum({{m}}).astype({{x}}.dtype)",
    "prod": "np.prod(np.where({m}, {x}, 1))",
    "max": _MOST,
    "amax": _MOST,
    "min": _LEAST,
    "amin": _LEAST,
    "any": "np.any(np.where({m}, {x}, 0))",
    "all": "np.all(np.where({m}, {x}, 1))",
    "len": _COUNT,
    "size": _COUNT,
}
"""The texts of reductions over all elements in NumPy; `{m}` is the mask."""
_NAMED: Final = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)


def around(source: Source, node: ast.Subscript) -> tuple[ast.expr, str] | None:
    """Return the call or attribute that reduces `x[mask]`, and its name; None if there is none."""
    parents = uses(source).parents
    parent = parents.get(node)
    if isinstance(parent, ast.Attribute):
        call = parents.get(parent)
        if parent.attr == "size":
            return parent, "size"
        if isinstance(call, ast.Call) and call.func is parent and not call.args:
            return None if call.keywords else (call, parent.attr)
    if isinstance(parent, ast.Call) and parent.args == [node] and not parent.keywords:
        function = parent.func
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            return parent, function.attr
        if isinstance(function, ast.Name) and function.id == "len":
            return parent, "len"
    return None


def reduced(source: Source, node: ast.Subscript, dtype: DType) -> str:
    """Return the text that replaces the reduction around `x[mask]`; empty if there is none."""
    found = around(source, node)
    if found is None:
        return ""
    name = found[1]
    counted = WRITTEN.get(name) == _COUNT
    if not counted and (dtype is BOOL or (name == "mean" and not dtype.is_inexact)):
        return ""
    x, mask = source.text_of(node.value), source.text_of(node.slice)
    written = x if isinstance(node.value, _NAMED) else f"({x})"
    limits = ("-np.inf", "np.inf")
    if dtype.is_integer:
        limits = (f"np.iinfo({written}.dtype).min", f"np.iinfo({written}.dtype).max")
    return WRITTEN.get(name, "").format(x=written, m=mask, low=limits[0], high=limits[1])


@overload
def subscript(frame: Frame, node: ast.Subscript, value: Array, index: AnyValue) -> Array: ...
@overload
def subscript(frame: Frame, node: ast.Subscript, value: AnyValue, index: AnyValue) -> AnyValue: ...
def subscript(frame: Frame, node: ast.Subscript, value: AnyValue, index: AnyValue) -> AnyValue:
    """Return `value[index]`; a Failure if it has no meaning."""
    if isinstance(index, Undecided):
        index = condition(frame.here(node), index)
    if isinstance(index, External):
        raise Failure(external_value(index))
    if frame.program is not None and is_known_array(value):
        value = frame.here(node).constant(value)
    if is_traced(value):
        if isinstance(value, Weak) and not value.ndim:
            raise _no_item("a number", index, "numbers have no items")
        frame.here(node)
        _require_known_places(frame, node, index)
        try:
            return indexing.getitem(value, index)
        except Failure as failure:
            raise _selected(failure, frame, node, value, index) from None
    if is_sequence(value) or isinstance(value, str | bytes | range):
        return _sequence(value, index, describe(value))
    if is_dict(value):
        key = ABSENT if is_traced(index) else found_key(index, value)
        if not isinstance(key, Absent):
            return value[key]
        reason, rewrite = "no such key", ""
        if is_traced(index):
            reason = "the keys of a dict are known while checking"
            rewrite = "an array takes computed indices: `np.zeros(…)`"
        raise _no_item("a dict", index, reason, rewrite)
    if is_known_array(value):
        try:
            return _get_item(value, index)
        except (IndexError, TypeError, ValueError) as error:
            raise _no_item("a NumPy array", index, str(error)) from None
    match value:
        case MapValue():
            return _item_of_key(value, value.items, index)
        case VectorValue():
            items = _sequence(value.items, index, describe(value))
            return VectorValue(items) if is_tuple(items) and isinstance(index, slice) else items
        case RecordValue():
            value.cls.refuse_special("__getitem__")
            if value.cls.kind == "precord":
                return _item_of_key(value, value.fields, index)
            if value.cls.kind == "namedtuple":
                return _sequence(tuple(value.fields.values()), index, describe(value))
        case Marker(name="numpy.s_" | "numpy.index_exp"):
            return index
        case Marker(name="numpy.mgrid" | "numpy.ogrid" | "numpy.r_" | "numpy.c_" as name):
            if frame.program is None:
                raise Failure(NotStatic(what=f"`{name}` outside of a kernel"))
            grid = name in ("numpy.mgrid", "numpy.ogrid")
            return (creation.grid if grid else manipulation.along_axis)(
                frame.here(node), index, name
            )
        case RecordClass(enumeration=True):
            return value.enum_member(index)
        case External(is_result=True):
            return External(f"{value.name}[…]", library=True)
        case External():
            raise Failure(external_value(value))
        case _ if _is_applied(frame, value, index):
            return Alias(value, frame, node)
        case _:
            pass
    raise _no_item(describe(value), index, "it has no items")


_get_item: Callable[[Any, Any], AnyValue] = operator.getitem


def _no_item(found: str, index: AnyValue, reason: str, rewrite: str = "") -> Failure:
    shown = describe(index)
    return Failure(NoSuchItem(found=found, index=shown, reason=reason, rewrite=rewrite))


def _item_of_key(value: AnyValue, items: Mapping[str, AnyValue], key: AnyValue) -> AnyValue:
    if isinstance(key, str) and key in items:
        return items[key]
    raise _no_item(describe(value), key, "no such key")


def _selected(
    failure: Failure, frame: Frame, node: ast.Subscript, value: Array, index: AnyValue
) -> Failure:
    """Add to the refusal of `x[mask]` a replacement for the reduction around it."""
    (found,) = failure.diagnostics if len(failure.diagnostics) == 1 else (None,)
    if not isinstance(found, DataDependentShape) or not is_traced(index):
        return failure
    written = reduced(frame.source, node, value.dtype) if index.ndim == value.ndim else ""
    return Failure(found.replaced(written=written)) if written else failure


def _require_known_places(frame: Frame, node: ast.Subscript, index: AnyValue) -> None:
    """Refuse a computed Python index that may be out of range, where Python raises."""
    for part in index if is_tuple(index) else (index,):
        if isinstance(part, Number) and part.kind is Kind.INT:
            text = frame.source.text_of(node.slice)
            reason = f"it may be out of range; `np.asarray({text})` takes the nearest item there"
            raise _no_item("an array", part, reason)


def _is_applied(frame: Frame, value: AnyValue, index: AnyValue) -> bool:
    """Return whether `value[index]` applies a type; in a kernel, only records can be applied."""
    if isinstance(value, RecordClass) and value.kind != "namespace":
        return isinstance(index, str) or len(value.variables) > 0
    outside = frame.program is None or frame.session.annotating
    return outside and isinstance(value, Marker | DType | DTypeClass | RecordClass | StaticFunction)


def _sequence(items: Sequence[AnyValue], index: AnyValue, found: str) -> AnyValue:
    if is_traced(index):
        reason = "an array cannot select from a Python sequence"
        rewrite = "stack the items with `np.stack` and index that, or use `psc.switch`"
        raise _no_item(found, index, reason, rewrite)
    try:
        if not is_closed(index):
            raise TypeError
        return _get_item(items, index)
    except IndexError:
        reason = f"it has {len(items)} items"
        raise Failure(NoSuchItem(found=found, index=str(index), reason=reason)) from None
    except ValueError:
        raise _no_item(found, index, "the step of a slice is not 0") from None
    except TypeError:
        raise _no_item(found, index, "the index is not an integer or a slice") from None
