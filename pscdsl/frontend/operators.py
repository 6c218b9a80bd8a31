"""Operators on static values, on sizes and on arrays; static truth."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from pscdsl.frontend import purity
from pscdsl.frontend.equality import is_among, meant, same
from pscdsl.frontend.frames import Frame
from pscdsl.frontend.memory import fresh
from pscdsl.frontend.pytrees import condition
from pscdsl.frontend.values import (
    External,
    MapValue,
    Once,
    Poison,
    RecordValue,
    Undecided,
    VectorValue,
    describe,
    is_number,
    is_traced,
)
from pscdsl.frontend.weights import MAX_BITS, MAX_ITEMS, require_short
from pscdsl.narrowing import is_constant, is_dict, is_known_array, is_sequence, is_tuple
from pscdsl.numpy import operators as table
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.codes.language import NotStatic
from pscdsl.typing.codes.language_arrays import BranchOnArray
from pscdsl.typing.codes.language_evaluation import BadOperands, TooLarge
from pscdsl.typing.codes.purity import HiddenInput
from pscdsl.typing.codes.shapes_signatures import UndecidedCondition
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim

PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, function)
    for name, function in {
        "Add": "add",
        "Sub": "sub",
        "Mult": "mul",
        "Div": "truediv",
        "FloorDiv": "floordiv",
        "Mod": "mod",
        "Pow": "pow",
        "LShift": "lshift",
        "RShift": "rshift",
        "BitAnd": "and_",
        "BitOr": "or_",
        "BitXor": "xor",
        "MatMult": "matmul",
    }.items()
}
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
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
}


def known_facts(frame: Frame) -> Assumptions:
    """What is known of the sizes."""
    return Assumptions() if frame.program is None else frame.program.facts


def binary(frame: Frame, node: ast.AST, name: str, left: Any, right: Any) -> Any:
    """`left name right`, neither an error."""
    if isinstance(left, Undecided):
        left = condition(frame.here(node), left)
    if isinstance(right, Undecided):
        right = condition(frame.here(node), right)
    traced = is_traced(left) or is_traced(right)
    arrays = isinstance(left, np.ndarray | np.generic) or isinstance(right, np.ndarray | np.generic)
    if frame.program is not None and (traced or arrays):
        return _traced(frame, node, name, left, right)
    if isinstance(left, Dim) or isinstance(right, Dim):
        return _sizes(frame, node, name, left, right)
    return frame.session.made(_static(name, left, right))


def _traced(frame: Frame, node: ast.AST, name: str, left: Any, right: Any) -> Any:
    if not is_number(left) or not is_number(right):
        raise _bad(name, left, right)
    here = frame.here(node)
    meaning = table.BINARY[name]
    if name in ("FloorDiv", "Mod") and isinstance(right, int) and right == 0:
        if is_traced(left) and left.dtype.is_integer:
            raise _bad(name, left, right, "division by zero")
    if not is_traced(left) and not is_traced(right):
        left = here.constant(left) if isinstance(left, np.ndarray | np.generic) else left
    return fresh(meaning.apply(here, (left, right), {}), (left, right))


def _sizes(frame: Frame, node: ast.AST, name: str, left: Any, right: Any) -> Any:
    """Arithmetic of sizes stays a size where it is one; otherwise it is a weak number."""
    whole = isinstance(left, Dim | int) and isinstance(right, Dim | int)
    if whole and name in ("Add", "Sub", "Mult"):
        return PYTHON[name](_int(left), _int(right))
    if whole and name in ("FloorDiv", "Mod"):
        if not known_facts(frame).proves(Fact("<=", 1, right)):
            raise Failure(
                BadOperands(
                    operator=SIGNS[name],
                    left=describe(left),
                    right=describe(right),
                    reason="the divisor may be zero or negative",
                )
            )
        return PYTHON[name](_int(left), _int(right))
    if name == "Pow" and isinstance(right, int) and 0 <= right <= 16:
        result: Any = 1
        for _ in range(right):
            result = result * left
        return result
    if not is_number(left) or not is_number(right):
        raise _bad(name, left, right)
    if frame.program is None:
        raise Failure(NotStatic(what="a size used as a number"))
    here = frame.here(node)
    operands = [here.weak(x) if isinstance(x, Dim) else x for x in (left, right)]
    return table.BINARY[name].apply(here, operands, {})


def _int(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


def _static(name: str, left: Any, right: Any) -> Any:
    for each in (left, right):
        if isinstance(each, RecordValue | MapValue | VectorValue):
            if isinstance(left, VectorValue) and isinstance(right, VectorValue) and name == "Add":
                return VectorValue(left.items + right.items)
            raise _bad(name, left, right)
    if name in ("Pow", "LShift") and isinstance(left, int) and isinstance(right, int):
        grown = right * max(left.bit_length(), 1) if name == "Pow" else right + left.bit_length()
        if grown > MAX_BITS:
            raise Failure(TooLarge(what=f"an integer of more than {MAX_BITS} bits"))
    if name == "Mult":
        for sequence, count in ((left, right), (right, left)):
            if isinstance(sequence, str | tuple | list | bytes) and isinstance(count, int):
                if len(sequence) * count > MAX_ITEMS:  # pyright: ignore[reportUnknownArgumentType]
                    raise Failure(TooLarge(what=f"a sequence of more than {MAX_ITEMS} items"))
    if name == "Mod" and isinstance(left, str):
        require_short("%", left, right if is_tuple(right) else (right,), {})
    try:
        return PYTHON[name](left, right)
    except ZeroDivisionError:
        raise _bad(name, left, right, "division by zero") from None
    except (TypeError, ValueError, OverflowError):
        raise _bad(name, left, right) from None


def _bad(name: str, left: Any, right: Any, reason: str = "") -> Failure:
    for each in (left, right):
        if isinstance(each, External):
            return Failure(purity.external_value(each))
    return Failure(
        BadOperands(
            operator=SIGNS.get(name, name),
            left=describe(left),
            right=describe(right),
            reason=reason,
        )
    )


def unary(frame: Frame, node: ast.UnaryOp, operand: Any) -> Any:
    """`-x`, `~x`, `+x`, `not x`."""
    name = type(node.op).__name__
    if name == "Not":
        if isinstance(operand, Undecided):
            return operand.negated()
        if is_traced(operand) or is_known_array(operand):
            text = frame.source.text_of(node.operand)
            raise Failure(
                BranchOnArray(construct="`not`", found=describe(operand), rewrite=f"~({text})")
            )
        if isinstance(operand, Dim):
            return decided(frame, (Fact("==", operand, 0),))
        return not static_truth(operand)
    if isinstance(operand, Undecided):
        operand = condition(frame.here(node), operand)
    if is_traced(operand):
        return fresh(table.UNARY[name].apply(frame.here(node), (operand,), {}), (operand,))
    if is_constant(operand) and frame.program is not None:
        here = frame.here(node)
        return table.UNARY[name].apply(here, (here.constant(operand),), {})
    python: dict[str, Callable[[Any], Any]] = {
        "USub": operator.neg,
        "UAdd": operator.pos,
        "Invert": operator.invert,
    }
    try:
        return operand if name == "UAdd" and isinstance(operand, Dim) else python[name](operand)
    except TypeError:
        raise Failure(
            BadOperands(operator=SIGNS[name], left=describe(operand), right="", reason="")
        ) from None


def comparison(frame: Frame, node: ast.Compare, values: list[Any]) -> Any:
    """A chain of comparisons."""
    results: list[Any] = []
    for op, left, right in zip(node.ops, values[:-1], values[1:], strict=True):
        results.append(_compare_pair(frame, node, type(op).__name__, left, right))
    if len(results) == 1:
        return results[0]
    if any(is_traced(each) for each in results):
        texts = [frame.source.text_of(each) for each in (node.left, *node.comparators[:4])]
        signs = [
            {"Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">="}.get(type(o).__name__, "==")
            for o in node.ops
        ]
        parts = [f"({a} {s} {b})" for a, s, b in zip(texts, signs, texts[1:], strict=False)]
        raise Failure(
            BranchOnArray(
                construct="a chained comparison", found="an array", rewrite=" & ".join(parts)
            )
        )
    facts: list[Fact] = []
    for each in results:
        if isinstance(each, Undecided):
            facts.extend(each.facts)
        elif not each:
            return False
    return Undecided(tuple(facts)) if facts else True


def _compare_pair(frame: Frame, node: ast.AST, name: str, left: Any, right: Any) -> Any:
    left, right = meant(left), meant(right)
    if name in ("Is", "IsNot"):
        return _identical(left, right) is (name == "Is")
    if name in ("In", "NotIn"):
        found = _contains(frame, right, left)
        if isinstance(found, Undecided):
            return found if name == "In" else found.negated()
        return found is (name == "In")
    for each in (left, right):
        if isinstance(each, RecordValue):
            each.cls.refuse_special("__eq__", "__lt__", "__le__", "__gt__", "__ge__", "__ne__")
            raise _bad(name, left, right, "records are compared field by field")
    if is_traced(left) or is_traced(right):
        if not is_number(left) or not is_number(right):
            if left is None or right is None:
                raise _bad(name, left, right, "`is None` asks whether something is None")
            raise Failure(
                BadOperands(operator=name, left=describe(left), right=describe(right), reason="")
            )
        return table.COMPARE[name].apply(frame.here(node), (left, right), {})
    if is_known_array(left) or is_known_array(right):
        if frame.program is not None:
            here = frame.here(node)
            left, right = (here.constant(x) if is_known_array(x) else x for x in (left, right))
            return table.COMPARE[name].apply(here, (left, right), {})
    whole = isinstance(left, Dim | int) and isinstance(right, Dim | int)
    if whole and (isinstance(left, Dim) or isinstance(right, Dim)):
        return decided(frame, (_fact(name, _int(left), _int(right)),))
    if is_tuple(left) and is_tuple(right) and name in ("Eq", "NotEq"):
        return _compare_tuples(frame, node, name, left, right)
    if name in ("Eq", "NotEq"):
        return same(left, right) is (name == "Eq")
    try:
        return _COMPARE[name](left, right)
    except TypeError:
        raise _bad(name, left, right) from None


_VALUES = (bool, str, bytes, int, float, complex, tuple, list, dict, set, frozenset)


def _identical(left: Any, right: Any) -> bool:
    """`is`: of values it would ask where they are kept in memory; of the rest, which one it is."""
    if any(each is None or each is ... or isinstance(each, bool) for each in (left, right)):
        return left is right
    for each in (left, right):
        if is_traced(each) or isinstance(each, (*_VALUES, Dim, RecordValue, MapValue, VectorValue)):
            raise Failure(
                HiddenInput(function="is", what="an address in memory", rewrite="`==` compares")
            )
    return same(left, right)


def _contains(frame: Frame, collection: Any, item: Any) -> bool | Undecided:
    """`item in collection`; of sizes, where it is known."""
    if isinstance(collection, RecordValue):
        collection.cls.refuse_special("__contains__", "__iter__")
    if isinstance(collection, Once):
        collection = collection.take()
    items: Any = collection.items if isinstance(collection, MapValue | VectorValue) else collection
    ordered = is_sequence(items)
    hashed = is_dict(items) or isinstance(items, set | frozenset)
    several = ordered or hashed
    parts: list[Any] = [*items] if several else []
    if is_traced(collection) or is_traced(item) or any(is_traced(each) for each in parts):
        found = describe(collection)
        raise Failure(BranchOnArray(construct="`in`", found=found, rewrite="np.any(x == value)"))
    for each in parts:
        if isinstance(each, External):
            raise Failure(purity.external_value(each))
    if isinstance(item, Dim) or any(isinstance(each, Dim) for each in parts):
        if isinstance(items, range):
            raise Failure(NotStatic(what=f"whether the size {item} is in a range"))
        answers = [
            decided(frame, (Fact("==", item, each),))
            for each in parts
            if isinstance(each, Dim | int) and isinstance(item, Dim | int)
        ]
        if any(each is True for each in answers):
            return True
        facts = tuple(f for each in answers if isinstance(each, Undecided) for f in each.facts)
        return Undecided(facts, any_of=len(facts) > 1) if facts else False
    item = meant(item)
    if several:
        return is_among(item, parts, hashed=hashed)
    try:
        return bool(item in items)
    except TypeError:
        raise Failure(
            BadOperands(operator="in", left=describe(item), right=describe(collection), reason="")
        ) from None


def _compare_tuples(
    frame: Frame, node: ast.AST, name: str, left: tuple[Any, ...], right: tuple[Any, ...]
) -> Any:
    """Shapes are compared size by size."""
    if len(left) != len(right):
        return name == "NotEq"
    facts: list[Fact] = []
    for a, b in zip(left, right, strict=True):
        each = _compare_pair(frame, node, "Eq", a, b)
        if isinstance(each, Undecided):
            facts.extend(each.facts)
        elif each is False:
            return name == "NotEq"
    if not facts:
        return name == "Eq"
    same = Undecided(tuple(facts))
    return same if name == "Eq" else same.negated()


def _fact(name: str, left: Any, right: Any) -> Fact:
    if name == "Eq":
        return Fact("==", left, right)
    if name == "NotEq":
        return Fact("!=", left, right)
    if name in ("Gt", "GtE"):
        left, right = right, left
    return Fact("<" if name in ("Lt", "Gt") else "<=", left, right)


def decided(frame: Frame, facts: tuple[Fact, ...]) -> bool | Undecided:
    """A condition on sizes, decided where what is known decides it for all sizes."""
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
    """The static truth of an expression; None, with the finding reported, if it has none."""
    from pscdsl.frontend.expressions import evaluate

    value = evaluate(frame, node)
    if isinstance(value, Poison):
        return None
    if is_traced(value) or is_known_array(value):
        text = rewrite if isinstance(rewrite, str) else rewrite()
        found = BranchOnArray(construct=construct, found=describe(value), rewrite=text)
        frame.report(node, found)
        return None
    if isinstance(value, Undecided):
        frame.report(node, undecided(known_facts(frame), value))
        return None
    if isinstance(value, Dim):
        answer = decided(frame, (Fact("!=", value, 0),))
        if isinstance(answer, bool):
            return answer
        frame.report(node, undecided(known_facts(frame), answer))
        return None
    try:
        return static_truth(value)
    except Failure as failure:
        frame.session.report(failure.at(frame.span(node)))
        return None


def static_truth(value: Any) -> bool:
    """The truth of a static value; a Failure for one of which only the name is known."""
    if isinstance(value, External):
        raise Failure(purity.external_value(value))
    if isinstance(value, RecordValue):
        value.cls.refuse_special("__bool__", "__len__")
        return value.cls.kind not in ("namedtuple", "precord") or bool(value.fields)
    if isinstance(value, MapValue | VectorValue):
        return bool(value.items)
    return bool(value)


def presumed(frame: Frame, node: ast.expr, truth: bool) -> tuple[Fact, ...]:
    """What a condition on sizes says in the branch where it is true, or where it is false."""
    from pscdsl.frontend.expressions import evaluate

    value = evaluate(frame, node)
    if not isinstance(value, Undecided):
        return ()
    said = value if truth else value.negated()
    return () if said.any_of else said.facts


def undecided(known: Assumptions, value: Undecided) -> UndecidedCondition:
    """The finding, with sizes for both outcomes."""

    def sizes(found: dict[str, int] | None) -> str:
        return ", ".join(f"{name}={size}" for name, size in sorted((found or {}).items()))

    fact = value.facts[0]
    return UndecidedCondition(
        fact=str(value),
        yes=sizes(known.counterexample(fact.negated())),
        no=sizes(known.counterexample(fact)),
    )
