"""`try` around code that is known not to raise, with a `finally` that always runs.

A kernel raises no exception when it runs, and NumPy does, so a body with handlers must consist of
code that does not raise under NumPy either: arithmetic of arrays in floating point, and functions
of them. A division of Python numbers can raise; so can an index and a call.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Final

from pscdsl._src.frontend.interpreter import masks
from pscdsl._src.frontend.interpreter.branches import Outcome, Return
from pscdsl._src.frontend.interpreter.frames import Frame, Session
from pscdsl._src.frontend.interpreter.places import BoundArrayMethod, seen
from pscdsl._src.frontend.values import is_traced
from pscdsl._src.language.meanings import Meaning
from pscdsl.typing.codes.language import Unsupported
from pscdsl.typing.diagnostics import Failure, Label

_REWRITE: Final = "a kernel raises nothing; use `np.where` or `psc.cond` for special cases"
CAUGHT: Final = frozenset(
    f"builtins.{name}Error"
    for name in "ZeroDivision Value Type Index Key Overflow Attribute Assertion".split()
) | {"numpy.linalg.LinAlgError"}
"""Exceptions that may be caught: NumPy never raises them for elements, in any error mode."""
SUMS: Final = frozenset(("numpy.sum", "numpy.mean"))
"""Functions of floating-point arrays that do not raise, in addition to elementwise ones."""
METHODS: Final = frozenset(("sum", "mean", "copy"))
ATTRIBUTES: Final = frozenset(("T", "real", "imag", "shape", "ndim", "size"))
LARGE: Final = 2**63
"""Integers from here on may not fit into a float."""
OPERATORS: Final = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)


def run_try(
    frame: Frame,
    node: ast.Try,
    body: list[ast.stmt],
    handlers: list[ast.ExceptHandler],
    orelse: list[ast.stmt],
    finalbody: list[ast.stmt],
) -> Outcome:
    """Run the body, then `else` if the body raises nothing, then `finally`."""
    from pscdsl._src.frontend.interpreter.statements import run  # avoids an import cycle

    if frame.program is None:
        raise _refused("`try`")
    for handler in handlers:
        _require_known(frame, handler)
    for statement in body:
        if handlers and not _is_plain(statement):
            raise _may_raise(frame, statement)
    known = len(frame.session.findings)
    outcome = run(frame, body)
    if handlers and len(frame.session.findings) == known:
        for statement in body:
            if not _is_safe(frame, _value(statement)):
                rewrite = _of_matrices(frame, body, handlers) or _REWRITE
                raise _may_raise(frame, _value(statement), rewrite)
    if outcome is None and orelse:
        outcome = run(frame, orelse)
    if not finalbody:
        return outcome
    if outcome is not None and not isinstance(outcome, Return):
        raise _refused("`finally` after a jump, or after a value on some paths")
    last = run(frame, finalbody)
    if last is not None:
        raise _refused("a jump in `finally`")
    return outcome


def _refused(what: str, *labels: Label, rewrite: str = _REWRITE) -> Failure:
    found = Unsupported(what=what, rewrite=rewrite)
    return Failure(found.labelled(*labels) if labels else found)


def _require_known(frame: Frame, handler: ast.ExceptHandler) -> None:
    """Refuse a handler of an exception that NumPy may raise for elements, in some error mode."""
    from pscdsl._src.frontend.interpreter.expressions import evaluate  # avoids an import cycle

    quiet = Frame(Session(None), frame.source, frame.scope, frame, None, frame.closure)
    node = handler.type
    caught: Sequence[ast.expr | None] = node.elts if isinstance(node, ast.Tuple) else [node]
    for each in caught:
        name = "" if each is None else getattr(evaluate(quiet, each), "name", "")
        if name not in CAUGHT:
            shown = "any exception" if each is None else f"`{frame.source.text_of(each)}`"
            where = frame.span(handler if each is None else each)
            if each is None:
                where = where.head(len("except"))
            raise _refused(f"`try` that catches {shown}", Label(where, "NumPy may raise it"))


def _may_raise(frame: Frame, node: ast.AST, rewrite: str = _REWRITE) -> Failure:
    label = Label(frame.span(node), "this may")
    return _refused("`try` whose body may raise", label, rewrite=rewrite)


def _of_matrices(
    frame: Frame, body: list[ast.stmt], handlers: list[ast.ExceptHandler]
) -> str | None:
    """Suggest a replacement for one function of a matrix that gives NaN where NumPy raises."""
    call = _value(body[0])
    if len(body) != 1 or not isinstance(call, ast.Call):
        return None
    function = frame.session.ledger.value(call.func)
    if not isinstance(function, Meaning) or not function.name.startswith("numpy.linalg."):
        return None
    text = frame.source.text_of
    name, module = text(call.func), text(call.func).partition(".linalg")[0]
    stored = body[0].targets[0] if isinstance(body[0], ast.Assign) else ast.Name("found")
    result = stored.id if isinstance(stored, ast.Name) else "found"
    steps = [f"`{name}` is NaN where it raises in NumPy: `{result} = {text(call)}`"]
    other = handlers[0].body
    if len(handlers) == 1 and len(other) == 1 and isinstance(other[0], ast.Return | ast.Assign):
        value = _value(other[0])
        steps.append(f"`{module}.where({module}.isnan({result}).any(), {text(value)}, {result})`")
    else:
        steps.append(f"return `{module}.isnan({result}).any()` too, and raise after the call")
    return ", and ".join(steps)


def _is_plain(statement: ast.stmt) -> bool:
    """Return whether a statement can raise only by the value in it."""
    match statement:
        case ast.Assign(targets=targets):
            return all(isinstance(each, ast.Name) for each in targets)
        case ast.Pass() | ast.Return() | ast.AnnAssign(target=ast.Name(), value=ast.expr()):
            return True
        case _:
            return False


def _value(statement: ast.stmt) -> ast.expr:
    """Return the value in a plain statement."""
    value = getattr(statement, "value", None)
    return value if isinstance(value, ast.expr) else ast.Constant(None)


def _is_safe(frame: Frame, node: ast.expr) -> bool:
    """Return whether an expression raises nothing under NumPy for any elements."""
    match node:
        case ast.Constant(value=int() | float() | complex() | None) | ast.Name():
            return True
        case ast.Tuple(elts=parts):
            return all(_is_safe(frame, each) for each in parts)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            return _is_safe(frame, operand) and _is_array(frame, operand)
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, OPERATORS):
            return _are_operands(frame, [left, right])
        case ast.Attribute(value=owner, attr=name):
            return name in ATTRIBUTES and _is_safe(frame, owner) and _is_array(frame, owner)
        case ast.Call(func=function, args=args, keywords=[]):
            value = frame.session.ledger.value(function)
            if isinstance(value, BoundArrayMethod):
                assert isinstance(function, ast.Attribute)
                return not args and value.name in METHODS and _are_operands(frame, [function.value])
            if not isinstance(value, Meaning):
                return False
            if value.name not in SUMS and not masks.is_elementwise(value.name):
                return False
            truths = args[:1] if value.name == "numpy.where" else []
            rest = args[len(truths) :]
            return all(isinstance(each, ast.Name) for each in truths) and _are_operands(frame, rest)
        case _:
            return False


def _are_operands(frame: Frame, nodes: Sequence[ast.expr]) -> bool:
    """Return whether all operands are safe, all numbers are floats, and one is an array."""
    arrays = [_is_array(frame, each) for each in nodes]
    return any(arrays) and all(
        _is_safe(frame, each) and (is_array or _is_number(frame, each))
        for each, is_array in zip(nodes, arrays, strict=True)
    )


def _is_array(frame: Frame, node: ast.expr) -> bool:
    """Return whether an expression is a floating-point array with axes."""
    value = seen(frame.session.ledger.value(node))
    return is_traced(value) and value.ndim > 0 and value.dtype.is_inexact


def _is_number(frame: Frame, node: ast.expr) -> bool:
    value = seen(frame.session.ledger.value(node))
    if is_traced(value):
        return not value.ndim and value.dtype.is_inexact
    if type(value) is int:
        return abs(value) < LARGE
    return value.__class__ in (float, complex)
