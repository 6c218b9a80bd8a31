"""Syntax that calls a method of a record's class: operators, comparisons, indices, `in`, loops.

Python's protocol is followed where the called method is certain: the one of the left operand, then
the reflected one of the right. The operation is refused where a derived class may go first, or
where NumPy makes an array of objects.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
from collections.abc import Sequence
from typing import Final, TypeGuard
from weakref import WeakKeyDictionary

from pscdsl._src.frontend.interpreter.frames import Frame
from pscdsl._src.frontend.interpreter.functions import BoundMethod, Closure, elements
from pscdsl._src.frontend.interpreter.places import Frozen, Located, seen, with_cells
from pscdsl._src.frontend.interpreter.python_numbers import computed, is_number
from pscdsl._src.frontend.size_numbers import Number
from pscdsl._src.frontend.values import (
    AnyValue,
    Args,
    Marker,
    Place,
    Poisoned,
    RecordValue,
    describe,
    is_poisoned,
    is_traced,
)
from pscdsl._src.ir.builder import Value
from pscdsl._src.language.meanings import MEANINGS
from pscdsl.numpy.shorthand import cast
from pscdsl.typing.codes.language import Unsupported
from pscdsl.typing.codes.language_evaluation import BadOperands
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim
from pscdsl.typing.dtypes import BOOL, PYTHON, Kind

_NAMES: Final = {
    "Add": "add",
    "Sub": "sub",
    "Mult": "mul",
    "Div": "truediv",
    "FloorDiv": "floordiv",
    "Mod": "mod",
    "Pow": "pow",
    "MatMult": "matmul",
    "LShift": "lshift",
    "RShift": "rshift",
    "BitAnd": "and",
    "BitOr": "or",
    "BitXor": "xor",
}
_OF_FLOATS: Final = ("Add", "Sub", "Mult", "Div", "FloorDiv", "Mod", "Pow")
"""Operators for which NumPy converts a scalar on the left to a Python number for the record."""
_MIRRORED: Final = {
    "Eq": ("__eq__", "__eq__"),
    "NotEq": ("__ne__", "__ne__"),
    "Lt": ("__lt__", "__gt__"),
    "LtE": ("__le__", "__ge__"),
    "Gt": ("__gt__", "__lt__"),
    "GtE": ("__ge__", "__le__"),
}
_UNARY: Final = {"USub": "__neg__", "UAdd": "__pos__", "Invert": "__invert__"}
_PLAIN: Final = ("dataclass", "record")
"""Kinds of records whose methods are all defined in the source text."""
_SEQUENCES: Final = ("__len__", "__getitem__", "__iter__")
"""Methods by which NumPy may treat a record as a sequence."""
NOT_IMPLEMENTED: Final = Marker("builtins.NotImplemented")
"""The result of a method that leaves an operation to the other operand."""


MEANINGS[NOT_IMPLEMENTED.name] = NOT_IMPLEMENTED


def has(value: Place, name: str) -> TypeGuard[RecordValue]:
    """Return whether a value is a record whose class defines a method for some syntax."""
    if not isinstance(value, RecordValue) or value.cls.kind == "precord":
        return False
    member = value.cls.members.get(name)
    if member is None or member.kind != "method" or not isinstance(member.value, Closure):
        return False
    if name == "__eq__" and value.cls.kind == "dataclass":
        # The `__eq__` that a decorated class inherits is hidden by the one that the decorator
        # makes.
        parents = [each.members.get(name) for each in value.cls.parents]
        return all(each is None or each.value is not member.value for each in parents)
    return True


def called(frame: Frame, node: ast.AST, record: RecordValue, name: str, *args: Place) -> Place:
    """Call a method of a record; arguments and result may be references."""
    frame.here(node)
    session = frame.session
    method, function = _method(record, name)
    result = function.enter(session, function.bind((record, *args), {}))
    if is_poisoned(result):
        raise Poisoned
    return with_cells(session, result, Frozen(f"comes from `{method.name}`", frame.span(node)))


def _method(record: RecordValue, name: str) -> tuple[BoundMethod, Closure]:
    """Return a method that a record `has`, and its function."""
    method = record.cls.method(record, name)
    assert method is not None
    assert isinstance(method.function, Closure)
    return method, method.function


def binary(frame: Frame, node: ast.AST, name: str, left: Place, right: Place) -> Place:
    """Apply an operator by a record's method; NOT_IMPLEMENTED if no class defines it."""
    method, reflected = f"__{_NAMES[name]}__", f"__r{_NAMES[name]}__"
    if frame.program is None or not (has(left, method) or has(right, reflected)):
        return NOT_IMPLEMENTED
    refusal = _Refusal(name, left, right)
    found: Place = NOT_IMPLEMENTED
    same = False
    if isinstance(left, RecordValue):
        same = isinstance(right, RecordValue) and right.cls is left.cls
        if has(right, reflected) and not same and left.cls in right.cls.ancestry():
            reason = f"`{reflected}` of a class that derives from the other may go first"
            raise refusal.because(reason)
        if has(left, method):
            found = called(frame, node, left, method, right)
        elif left.cls.kind not in _PLAIN:
            raise refusal.because(f"`{left.cls.title}` has an operator of its own")
    if found is NOT_IMPLEMENTED and has(right, reflected) and not same:
        given = left if isinstance(left, RecordValue) else _number(name, left, right, refusal)
        found = called(frame, node, right, reflected, given)
    if found is NOT_IMPLEMENTED:
        raise refusal.because("`NotImplemented` is all that is returned")
    return found


def method_for(name: str) -> str:
    """Return the method that an operator calls; empty if it calls none."""
    if name in _NAMES:
        return f"__{_NAMES[name]}__"
    return _MIRRORED[name][0] if name in _MIRRORED else ""


def refuse_in_place(left: Place, name: str) -> None:
    """Refuse `+=` on a record whose class defines a method for it."""
    if isinstance(left, RecordValue):
        left.cls.refuse_special(f"__i{_NAMES[name]}__")


@dataclasses.dataclass(frozen=True)
class _Refusal:
    """The refusal of an operation on records."""

    name: str
    left: Place
    right: Place

    def because(self, reason: str, instead: str = "") -> Failure:
        """Return the refusal with a reason."""
        from pscdsl._src.frontend.interpreter.operators import SIGNS  # avoids an import cycle

        left, right = describe(seen(self.left)), describe(seen(self.right))
        sign = SIGNS.get(self.name, self.name)
        return Failure(
            BadOperands(operator=sign, left=left, right=right, reason=reason, instead=instead)
        )


def _number(name: str, left: Place, right: RecordValue, refusal: _Refusal) -> AnyValue:
    """Return the argument of a reflected method for a left operand that is no record."""
    if _is_pythons(left):
        return left
    value = left.load() if isinstance(left, Located) else left
    cls = right.cls
    scalar = is_traced(value) and not value.ndim and value.dtype.is_inexact
    explicit = f"`record.__r{_NAMES[name]}__(…)` calls the method of the record"
    if not (isinstance(value, Value) and scalar) or name not in _OF_FLOATS:
        instead = explicit if is_traced(value) else ""
        raise refusal.because("what is on the left has an operator of its own", instead)
    if cls.kind not in _PLAIN or any(each in cls.members for each in _SEQUENCES):
        raise refusal.because("NumPy may take the record for a sequence", explicit)
    kind = value.dtype.kind
    return computed(cast(value, PYTHON[kind]), kind)


def unary(frame: Frame, node: ast.AST, name: str, operand: Place) -> Place:
    """Apply a unary operator by a record's method; NOT_IMPLEMENTED if its class defines none."""
    method = _UNARY.get(name)
    if method is None or frame.program is None or not has(operand, method):
        return NOT_IMPLEMENTED
    return _made(called(frame, node, operand, method), method)


def _made(found: Place, method: str) -> Place:
    if found is NOT_IMPLEMENTED:
        what = f"`NotImplemented` as the result of `{method}`"
        raise Failure(Unsupported(what=what, rewrite="return a value"))
    return found


def compared(frame: Frame, node: ast.AST, name: str, left: Place, right: Place) -> Place:
    """Compare, or evaluate `in`, by a record's method; NOT_IMPLEMENTED if no class defines it."""
    if frame.program is None:
        return NOT_IMPLEMENTED
    if name in ("In", "NotIn"):
        return _contains(frame, node, name, right, left)
    if name not in _MIRRORED:
        return NOT_IMPLEMENTED
    method, mirrored = _MIRRORED[name]
    refusal = _Refusal(name, left, right)
    if has(left, method):
        if isinstance(right, RecordValue) and right.cls is not left.cls:
            if left.cls in right.cls.ancestry() and mirrored in right.cls.members:
                reason = f"`{mirrored}` of a class that derives from the other may go first"
                raise refusal.because(reason)
        found = called(frame, node, left, method, right)
    elif has(right, mirrored) and _is_pythons(left):
        found = called(frame, node, right, mirrored, left)
    else:
        return NOT_IMPLEMENTED
    if found is NOT_IMPLEMENTED:
        raise refusal.because("`NotImplemented` is returned")
    return found


def _is_pythons(value: Place) -> bool:
    plain = value.__class__ in (bool, int, float, complex)
    return plain or isinstance(value, Dim | Number) or is_number(value)


def _contains(frame: Frame, node: ast.AST, name: str, owner: Place, item: Place) -> Place:
    """Evaluate `item in record` as the truth of the method's result."""
    if not has(owner, "__contains__"):
        return NOT_IMPLEMENTED
    found = called(frame, node, owner, "__contains__", item)
    if isinstance(found, Located):
        found = found.load()
    if found.__class__ is bool:
        return found is (name == "In")
    if isinstance(found, Value) and not found.ndim and found.dtype is BOOL and name == "In":
        return computed(found, Kind.BOOL)
    what = f"`in` by a method that returns {describe(found)}"
    raise Failure(Unsupported(what=what, rewrite="return a truth value; `not (x in r)` negates it"))


def length(frame: Frame, node: ast.AST, record: RecordValue) -> Place:
    """Return `len(record)`."""
    found = called(frame, node, record, "__len__")
    if (type(found) is int and found >= 0) or isinstance(found, Dim):
        return found
    what = f"a length that is {describe(found)}"
    raise Failure(Unsupported(what=what, rewrite="return an integer, or a size"))


def absolute(frame: Frame, node: ast.AST, record: RecordValue) -> Place:
    """Return `abs(record)`."""
    return _made(called(frame, node, record, "__abs__"), "__abs__")


# Loops: `__iter__` returns `iter(…)` of a collection, or yields its items in order.


_AS_TUPLES: WeakKeyDictionary[Closure, Closure] = WeakKeyDictionary()
"""Methods that return all items in a tuple, by the iterator methods that they replace."""


def gone_through(frame: Frame, node: ast.AST, value: Place) -> Place:
    """Return the iterable of a loop; a record with `__iter__` becomes a tuple of its items."""
    if frame.program is None or not has(value, "__iter__"):
        return value
    frame.here(node)
    method, function = _method(value, "__iter__")
    at_once = _AS_TUPLES.get(function)
    if at_once is None:
        at_once = _AS_TUPLES[function] = _as_tuple(function, value)
    session = frame.session
    result = at_once.enter(session, at_once.bind((value,), {}))
    if is_poisoned(result):
        raise Poisoned
    return with_cells(session, tuple(elements(result)), Frozen(f"comes from `{method.name}`"))


def _as_tuple(function: Closure, record: RecordValue) -> Closure:
    """Return a method that returns the items of `__iter__` in a tuple."""
    node = function.node
    assert isinstance(node, ast.FunctionDef)
    body = node.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    items = [item for each in body if (item := _yielded(function, each)) is not None]
    several = len(body) > 1
    if not items or len(items) < len(body) or (several and isinstance(body[-1], ast.Return)):
        what = f"`__iter__` of `{record.cls.title}`"
        rewrite = "`return iter((…, …))`, or one `yield` after the other"
        raise Failure(Unsupported(what=what, rewrite=rewrite))
    shown = ast.Tuple(items, ast.Load())
    made = copy.copy(node)
    made.body, made.decorator_list, made.returns = [ast.Return(shown)], [], None
    for each in (shown, made.body[0]):
        ast.copy_location(each, body[0])
    function.source.keep(made)
    return dataclasses.replace(function, node=made)


def _yielded(function: Closure, statement: ast.stmt) -> ast.expr | None:
    """Return a statement of an iterator as an item of a tuple; None if it yields nothing."""
    from pscdsl._src.frontend.interpreter.expressions import evaluate  # avoids an import cycle

    match statement:
        case ast.Expr(value=ast.Yield(value=item)):
            return item or ast.copy_location(ast.Constant(None), statement)
        case ast.Expr(value=ast.YieldFrom(value=items)):
            pass
        case ast.Return(value=ast.Call(func=func, args=[items], keywords=[])):
            known = evaluate(function.annotation_frame(), func)
            if getattr(known, "name", "") != "builtins.iter" or isinstance(items, ast.Starred):
                return None
        case _:
            return None
    return ast.copy_location(ast.Starred(items, ast.Load()), statement)


_FIRST: Final = frozenset(
    f"builtins.{name}" for name in "all any enumerate frozenset list set sorted sum tuple".split()
)
"""Python functions that iterate over their first argument."""


def with_items(frame: Frame, node: ast.AST, name: str, args: Args) -> Sequence[Place]:
    """Return the arguments of a Python function, with records that it iterates over as tuples."""
    if name == "builtins.zip":
        return [gone_through(frame, node, each) for each in args]
    alone = name in ("builtins.max", "builtins.min") and len(args) == 1
    if (alone or name in _FIRST) and args:
        return [gone_through(frame, node, args[0]), *args[1:]]
    return args
