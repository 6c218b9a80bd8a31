"""Values that Python needs while a function is traced, where these are certainly not known.

Only what each call of the function evaluates counts: a condition may be meant to keep tracers out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pscdsl._src.dialects.jax.arrays import Arrays, Traced, certain_name
from pscdsl._src.dialects.jax.library import JITTED, OF_ARRAYS, TRACING, TRANSPARENT
from pscdsl._src.dialects.jax.names import Scope, own_nodes
from pscdsl._src.dialects.jax.sizes import unknown_sizes
from pscdsl._src.frontend.text.source import (
    FunctionNode,
    FunctionStatement,
    children,
    parameters,
    with_defaults,
)
from pscdsl.typing.codes.language import ArrayLeavesProgram, BranchOnArray
from pscdsl.typing.diagnostics import Diagnostic

NUMBERS = frozenset(f"builtins.{name}" for name in ("int", "float", "complex", "bool", "range"))
_OF_PYTHON = {
    f"math.{name}": f"`jnp.{name.removeprefix('f') if name == 'fabs' else name}`"
    for name in (
        "sqrt sin cos tan exp log log2 log10 log1p expm1 sinh cosh tanh asin acos atan atan2 fabs "
        "hypot pow floor ceil degrees radians isnan isinf isfinite copysign fmod"
    ).split()
} | {
    "math.erf": "`jax.scipy.special.erf`",
    "math.erfc": "`jax.scipy.special.erfc`",
    "math.lgamma": "`jax.scipy.special.gammaln`",
}
"""Functions that read a number of Python, with those of JAX that compute the same."""
OF_NUMPY = frozenset(
    f"numpy.{name}"
    for name in (
        "array asarray sin cos tan exp log sqrt square abs floor ceil sign isnan isfinite maximum "
        "minimum where dot"
    ).split()
)
"""Functions of NumPy that read the elements of what they are given."""
_ARRAY_TYPES = frozenset(
    {
        *("jax.Array", "jax.numpy.ndarray", "jaxtyping.Array", "chex.Array"),
        *("builtins.bool", "builtins.int", "builtins.float", "builtins.complex"),
    }
)
_CHOOSING = "`jnp.where` chooses between arrays, and `jax.lax.cond` between functions"
_LOOPING = "`jax.lax.while_loop` repeats a function while an array is true"
_CHECKING = "`equinox.error_if` and `jax.experimental.checkify` check values when the program runs"


def traced(
    scope: Scope,
    transformation: str,
    call: ast.Call | None,
    *,
    is_bound: bool = False,
    is_partial: bool = False,
) -> Traced | None:
    """Return what is traced of a function that a transformation runs; None if nothing may be.

    `is_bound`: a method of an object, which is its first argument. `is_partial`: some of its
    arguments are given already.
    """
    node = scope.node
    if transformation not in TRACING or isinstance(node, ast.Module):
        return None
    of_jit = transformation in JITTED
    words = call.keywords if call is not None and of_jit else []
    spread = any(word.arg is None for word in words)
    if is_partial or spread or transformation in OF_ARRAYS or not is_plain(scope):
        return Traced(scope)
    spec = node.args
    given = [*spec.posonlyargs, *spec.args]
    defaults = {each.arg for each, _ in with_defaults(spec)}
    statics = static_parameters(node, call, skipped=int(is_bound)) if of_jit else frozenset[str]()
    own = {given[0].arg} if scope.owner is not None and given else set[str]()
    numbers = [
        each for each in (*given, *spec.kwonlyargs) if each.arg not in {*defaults, *statics, *own}
    ]
    arrays = {
        each.arg for each in numbers if _is_array_type(scope.parent or scope, each.annotation)
    }
    if transformation == "jax.lax.fori_loop" and given:
        arrays.add(given[0].arg)
    return Traced(scope, frozenset(each.arg for each in numbers), frozenset(arrays))


def static_parameters(
    node: FunctionNode, call: ast.Call | None, *, skipped: int = 0
) -> frozenset[str]:
    """Return the parameters that a transformation's options keep static; all if that is unknown."""
    names = [each.arg for each in (*node.args.posonlyargs, *node.args.args)][skipped:]
    every = frozenset(parameters(node))
    found = set[str]()
    for word in call.keywords if call is not None else ():
        if word.arg not in ("static_argnums", "static_broadcasted_argnums", "static_argnames"):
            continue
        given = word.value
        for each in given.elts if isinstance(given, ast.Tuple | ast.List) else [given]:
            match each:
                case ast.Constant(value=str(name)):
                    found.add(name)
                case ast.Constant(value=int(place)) if place < len(names):
                    found.add(names[place])
                case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(place))) if (
                    0 < place <= len(names)
                ):
                    found.add(names[-place])
                case _:
                    return every
    return frozenset(found)


def _is_array_type(scope: Scope, annotation: ast.expr | None) -> bool:
    """Return whether an annotation is one of arrays, or of numbers, which become arrays."""
    if annotation is None:
        return False
    if isinstance(annotation, ast.Subscript):
        parts = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else []
        of_types = scope.program.full_name(scope, annotation.value).startswith("jaxtyping.")
        return of_types and bool(parts) and _is_array_type(scope, parts[0])
    return scope.program.full_name(scope, annotation) in _ARRAY_TYPES


def needed_values(
    arrays: Arrays, scope: Scope, seen: set[Scope]
) -> Iterator[tuple[Scope, ast.AST, Diagnostic]]:
    """Yield what a traced function, and those that it surely calls, need and cannot have."""
    seen.add(scope)
    node = scope.node
    body = [ast.Return(node.body)] if isinstance(node, ast.Lambda) else node.body
    for each in _evaluated(body):
        for tested, construct, help_ in _tests(each):
            if arrays.is_array(scope, tested):
                found = f"`{scope.program.source.text_of(tested)}`"
                yield (
                    scope,
                    tested,
                    BranchOnArray(construct=f"`{construct}`", found=found, rewrite=help_),
                )
        for sized, finding in unknown_sizes(arrays, scope, each):
            yield scope, sized, finding
        if not isinstance(each, ast.Call):
            continue
        if (function := _converted(arrays, scope, each)) is not None:
            rewrite = f"`jnp.{function.partition('.')[2]}`" if "." in function[1:] else ""
            rewrite = _OF_PYTHON.get(function, rewrite)
            yield scope, each, ArrayLeavesProgram(function=function, rewrite=rewrite)
        called = scope.program.function(scope, each.func)
        if called is not None and isinstance(each.func, ast.Name) and called not in seen:
            if isinstance(called.node, FunctionStatement) and is_plain(called):
                yield from needed_values(arrays, called, seen)


def is_plain(scope: Scope) -> bool:
    """Return whether a function is what its body says, and runs when it is called."""
    node = scope.node
    if isinstance(node, ast.AsyncFunctionDef):
        return False
    if not isinstance(node, ast.FunctionDef):
        return True
    around = scope.parent or scope
    return scope.program.source.yields(node) is None and all(
        _decorating(around, each) in TRANSPARENT for each in node.decorator_list
    )


def _decorating(scope: Scope, node: ast.expr) -> str:
    call = node if isinstance(node, ast.Call) else None
    name = scope.program.full_name(scope, call.func if call else node)
    if name == "functools.partial" and call and call.args:
        return scope.program.full_name(scope, call.args[0])
    return name


def _converted(arrays: Arrays, scope: Scope, call: ast.Call) -> str | None:
    """Return the function that converts an array to what Python or NumPy can read."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("item", "tolist"):
        if arrays.is_array(scope, call.func.value):
            return f".{call.func.attr}"
    kinds = {arrays.kind(scope, each) for each in call.args}
    name = certain_name(scope, call.func)
    if name in NUMBERS and not kinds.isdisjoint(("array", "parameter")):
        return name.removeprefix("builtins.")
    if name in _OF_PYTHON and not kinds.isdisjoint(("array", "parameter")):
        return name
    return f"np.{name.removeprefix('numpy.')}" if name in OF_NUMPY and "array" in kinds else None


def _tests(node: ast.AST) -> Iterator[tuple[ast.expr, str, str]]:
    """Yield the expressions whose truth a node needs, each with the construct and a help."""
    match node:
        case ast.If(test=test) | ast.IfExp(test=test):
            yield from _parts(test, "if", _CHOOSING)
        case ast.While(test=test):
            yield from _parts(test, "while", _LOOPING)
        case ast.Assert(test=test):
            yield from _parts(test, "assert", _CHECKING)
        case ast.BoolOp(op=op, values=[first, *_]):
            yield from _parts(first, "and" if isinstance(op, ast.And) else "or", _CHOOSING)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _parts(operand, "not", "`~` negates each element")
        case _:
            pass


def _parts(test: ast.expr, construct: str, help_: str) -> Iterator[tuple[ast.expr, str, str]]:
    """Yield a test, unless it is one of other tests."""
    if not isinstance(test, ast.BoolOp) and not (
        isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    ):
        yield test, construct, help_


def _evaluated(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the statements and expressions that a body certainly evaluates, in order."""
    for node in body:
        match node:
            case ast.If(test=test) | ast.While(test=test) | ast.Assert(test=test):
                yield node
                yield from _in_expression(test)
            case ast.For(iter=iterated, body=inner):
                yield from _in_expression(iterated)
                yield from _evaluated(inner)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                continue
            case (
                ast.With()
                | ast.AsyncWith()
                | ast.AsyncFor()
                | ast.Try()
                | ast.TryStar()
                | ast.Match()
            ):
                pass
            case _:
                yield from _in_expression(node)
        if any(isinstance(each, _LEAVING) for each in (node, *own_nodes(ast.Module([node], [])))):
            return


_LEAVING = ast.Return | ast.Raise | ast.Break | ast.Continue


def _in_expression(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of an expression or a simple statement that are certainly evaluated."""
    yield node
    match node:
        case ast.Lambda():
            pass
        case ast.IfExp(test=test):
            yield from _in_expression(test)
        case ast.BoolOp(values=[first, *_]):
            yield from _in_expression(first)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            yield from _in_expression(node.generators[0].iter)
        case _:
            for each in children(node):
                yield from _in_expression(each)
