"""Calls: library functions, inlined helpers, kernels, records, dtypes, Python's own functions."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pscdsl._src.frontend.interpreter.frames import Frame
from pscdsl._src.frontend.interpreter.iteration import elements
from pscdsl._src.frontend.interpreter.owned import noted_call
from pscdsl._src.frontend.trees.pytrees import condition
from pscdsl._src.frontend.values import purity
from pscdsl._src.frontend.values import purity as elsewhere
from pscdsl._src.frontend.values.closed import is_closed
from pscdsl._src.frontend.values.numbers_of_sizes import Number
from pscdsl._src.frontend.values.values import (
    POISON,
    PYTHON_DTYPES,
    Applicable,
    Builtin,
    External,
    MapValue,
    Marker,
    Poison,
    Poisoned,
    RecordValue,
    StaticFunction,
    Undecided,
    describe,
    is_poisoned,
    is_traced,
)
from pscdsl._src.ir.builder import Value
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.language.meanings import MEANINGS, Meaning, not_taken
from pscdsl.numpy.keywords import refuse_missing, values_only
from pscdsl.numpy.methods import BoundMethod as ArrayMethod
from pscdsl.typing import dtypes
from pscdsl.typing.array_types import Shape
from pscdsl.typing.codes.control import CarryMismatch
from pscdsl.typing.codes.language import BadArguments, NotCallable, NotStatic
from pscdsl.typing.codes.language_evaluation import TooLarge
from pscdsl.typing.codes.shapes import ShapesDoNotBroadcast
from pscdsl.typing.diagnostics import NOWHERE, Diagnostic, Failure, Label
from pscdsl.typing.dtypes import DType
from pscdsl.typing.python_containers import (
    is_constant,
    is_dict,
    is_dtype,
    is_known_array,
    is_scalar,
)


def call(
    frame: Frame,
    node: ast.Call,
    func: ast.expr,
    args: Sequence[ast.expr],
    keywords: Sequence[ast.keyword],
) -> Any:
    """The value of a call."""
    # Calls are expressions, and their arguments too.
    from pscdsl._src.frontend.interpreter.expressions import (
        evaluate,
        evaluate_in_place,
        evaluate_used,
    )

    function = evaluate_used(frame, func)
    argument: Callable[[Frame, ast.expr], Any] = evaluate
    if isinstance(function, Builtin) and function.consumes:
        argument = evaluate_in_place
    elif isinstance(function, External):
        argument = evaluate_used
    elif isinstance(function, Builtin) and function.name == "builtins.isinstance":
        argument = _class
    values: list[Any] = []
    nodes: list[ast.expr] = []
    for each in args:
        if isinstance(each, ast.Starred):
            items = elements(evaluate_in_place(frame, each.value))
            values.extend(items)
            nodes.extend([each] * len(items))
        else:
            values.append(argument(frame, each))
            nodes.append(each)
    named: dict[str, Any] = {}
    for keyword in keywords:
        value = (evaluate if keyword.arg is None else argument)(frame, keyword.value)
        given = {keyword.arg: value} if keyword.arg is not None else _unpacked(value)
        for name, each in given.items():
            if name in named:
                problem = f"got two values for argument '{name}'"
                raise Failure(BadArguments(function=described(function), problem=problem))
            named[name] = each
    if isinstance(function, External):  # refused whatever its arguments are
        raise Failure(purity.external_use(function))
    if isinstance(function, Poison) or is_poisoned(values) or is_poisoned(named):
        return POISON
    here = frame.here(node)
    try:
        result = invoke(frame, here, function, values, named)
    except Failure as failure:
        found = with_initial(with_operands(failure, frame, nodes, values), frame, node)
        raise with_origins(found, values).at(frame.span(node)) from None
    except (TypeError, ValueError, ArithmeticError, LookupError):
        if not isinstance(function, Meaning | DType | ArrayMethod):
            raise  # only the library's own Python refuses arguments in this way
        problem = not_taken(values, named)
        raise Failure(BadArguments(function=str(function.name), problem=problem)) from None
    return noted_call(frame, node, function, result)


def _class(frame: Frame, node: ast.expr) -> Any:
    """What `isinstance` is given: a class that is not known is none of those of our values."""
    # Calls are expressions, and their arguments too.
    from pscdsl._src.frontend.interpreter.expressions import evaluate

    session = frame.session
    session.classes, before = True, session.classes
    try:
        return evaluate(frame, node)
    finally:
        session.classes = before


def _unpacked(value: Any) -> dict[str, Any]:
    """What `**value` gives to a call."""
    if isinstance(value, MapValue):
        return dict(value.items)
    if isinstance(value, Poison):
        raise Poisoned
    if not is_dict(value):
        raise Failure(NotStatic(what=f"`**` of {describe(value)}"))
    for each in value:
        if not isinstance(each, str):
            problem = f"keywords are strings, and {describe(each)} is none"
            raise Failure(BadArguments(function="`**`", problem=problem))
    return value


def described(function: Any) -> str:
    """A function's name for messages."""
    return str(getattr(function, "name", describe(function)))


def invoke(
    frame: Frame, here: Any, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Apply what was found to be called."""
    if "out" in kwargs and isinstance(function, Meaning | ArrayMethod):
        refusal = purity.library_call(function.name, kwargs)
        if refusal is not None:
            raise Failure(refusal)
        kwargs = {name: value for name, value in kwargs.items() if name != "out"}
    if isinstance(function, Meaning):
        kwargs = values_only(function.name, kwargs)
        if kwargs and frame.program is not None:
            refuse_missing(function, function.name, kwargs)
        if frame.program is None:
            return static_numpy(function, args, kwargs)
        args, kwargs = _plain_all(here, args, kwargs)
        folded = fold(function, args, kwargs)
        if folded is not None:
            return folded
        result = function.apply(here, args, kwargs)
        if isinstance(result, Number) and function.name.startswith("numpy."):
            return result.as_array()
        return result
    if isinstance(function, DType):
        return _cast(frame, here, function, args, kwargs)
    if isinstance(function, Marker):
        instead = elsewhere.instead_of(function.name)
        raise Failure(NotCallable(found=describe(function), instead=instead))
    if isinstance(function, ArrayMethod):
        name = f"numpy.{function.name}"
        kwargs = values_only(name, kwargs)
        meaning = MEANINGS.get("numpy.ravel" if function.name == "flatten" else name)
        if kwargs and isinstance(meaning, Meaning):
            refuse_missing(meaning, name, kwargs)
        args, kwargs = _plain_all(here, args, kwargs)
        return function.apply(here, args, kwargs)
    if isinstance(function, Applicable):
        return function.apply(here, args, kwargs)
    if isinstance(function, RecordValue) and "__call__" in function.cls.members:
        return function.cls.attribute(here, function, "__call__").apply(here, args, kwargs)
    raise Failure(NotCallable(found=describe(function)))


def _plain_all(
    here: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    return [_plain(here, x) for x in args], {key: _plain(here, x) for key, x in kwargs.items()}


def _plain(here: Any, x: Any) -> Any:
    """An argument as the library takes it: conditions as arrays, Python's types as dtypes."""
    if isinstance(x, Undecided):
        return condition(here, x)
    if isinstance(x, StaticFunction):
        return PYTHON_DTYPES.get(x.name, x)
    return x


def _cast(
    frame: Frame, here: Any, dtype: DType, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    if len(args) != 1 or kwargs:
        raise Failure(BadArguments(function=dtype.name, problem="takes one argument"))
    (x,) = args
    if dtype is dtypes.KEY:
        problem = "is made by `psc.random.key(seed)`"
        raise Failure(BadArguments(function="psc.Key", problem=problem))
    if frame.program is None:
        with np.errstate(all="ignore"):
            return to_numpy(dtype).type(x)
    astype: Any = MEANINGS["numpy.astype"]
    if isinstance(x, bool | int | float | complex):
        with np.errstate(all="ignore"):
            return here.constant(to_numpy(dtype).type(x))
    if not is_traced(x):
        x = here.constant(x) if isinstance(x, np.ndarray | np.generic) else here.weak(x)
    return astype.apply(here, (x, dtype), {})


_FOLDABLE = (int, float, complex, bool)


def fold(function: Meaning, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A NumPy function of Python numbers is a Python number; None if this is something else."""
    if kwargs or not args or not function.name.startswith("numpy."):
        return None
    if not all(isinstance(argument, _FOLDABLE) for argument in args):
        return None
    real = getattr(np, function.name.removeprefix("numpy."), None)
    if not isinstance(real, np.ufunc):
        return None
    with np.errstate(all="ignore"):
        try:
            result = real(*args)
        except (TypeError, ValueError, OverflowError):
            return None
    return result.item() if is_scalar(result) else None


MAX_STATIC = 1_000_000
MAX_WORK = 100_000_000
"""The product of the sizes of the arrays that a function is given."""


def static_numpy(function: Meaning, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """NumPy itself, for constants at module level; bounded in size."""
    real: Any = np if function.name.startswith("numpy.") else None
    for part in function.name.split(".")[1:]:
        real = getattr(real, part, None)
    if real is None:
        raise Failure(NotStatic(what=f"`{function.name}` outside of a kernel"))
    numbers = [x for x in _flat([*args, *kwargs.values()]) if isinstance(x, int)]
    product = 1
    for number in numbers:
        product *= max(abs(number), 1)
    if product > MAX_STATIC and not function.name.endswith(("asarray", "array")):
        raise Failure(TooLarge(what="a constant this large"))
    work = 1
    for each in _flat([*args, *kwargs.values()]):
        work *= max(each.size, 1) if is_known_array(each) else 1
    if work > MAX_WORK and not isinstance(real, np.ufunc):
        raise Failure(TooLarge(what=f"`{function.name}` of arrays this large"))
    plain = [_as_numpys(function.name, x) for x in args]
    named = {key: _as_numpys(function.name, x) for key, x in kwargs.items()}
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are for whoever runs the module
            result = real(*plain, **named)
    except Exception as error:
        said, *_ = (*str(error).splitlines(), "")
        why = f" ({said})" if said and "<" not in said else ""
        raise Failure(NotStatic(what=f"`{function.name}` here{why}")) from None
    if is_known_array(result) and result.size > MAX_STATIC:
        raise Failure(TooLarge(what="a constant this large"))
    if is_known_array(result) and result.dtype.kind not in "?biufcV":
        raise Failure(NotStatic(what=f"an array of {result.dtype.name}"))
    return result


def _as_numpys(name: str, value: Any) -> Any:
    """An argument as NumPy itself takes it; a Failure for what is none of its or of Python's."""
    if isinstance(value, StaticFunction):
        value = PYTHON_DTYPES.get(value.name, value)
    if isinstance(value, DType):
        return to_numpy(value)
    if is_closed(value) or is_constant(value) or is_dtype(value):
        return value
    if type(value) in (list, tuple):
        return type(value)(_as_numpys(name, each) for each in value)
    if isinstance(value, External):
        raise Failure(purity.external_value(value))
    raise Failure(NotStatic(what=f"`{name}` of {describe(value)} outside of a kernel"))


def _flat(values: Sequence[Any]) -> list[Any]:
    flat: list[Any] = []
    for value in values:
        if isinstance(value, tuple | list):
            flat.extend(_flat(value))  # pyright: ignore[reportUnknownArgumentType]
        else:
            flat.append(value)
    return flat


def with_operands(
    failure: Failure,
    frame: Frame,
    nodes: Sequence[ast.expr],
    values: Sequence[Any] = (),
    sign: str = "",
) -> Failure:
    """Findings that speak of two operands, with the operands as they are written."""
    if len(nodes) != 2 or not any(hasattr(d, "operands") for d in failure.diagnostics):
        return failure
    texts = [frame.source.text_of(node) for node in nodes]
    written = tuple(_beside(node, text) for node, text in zip(nodes, texts, strict=True))
    diagnostics: list[Diagnostic] = []
    for diagnostic in failure.diagnostics:
        if isinstance(diagnostic, ShapesDoNotBroadcast):
            if [getattr(value, "shape", None) for value in values] != list(diagnostic.shapes):
                diagnostics.append(diagnostic)
                continue
            kept = [
                _with_axis_kept(*pair) for pair in zip(nodes, texts, diagnostic.shapes, strict=True)
            ]
            diagnostic = diagnostic.replaced(
                sign=sign, kept=[k[0] for k in kept], kept_axes=[k[1] for k in kept]
            )
        diagnostics.append(
            diagnostic.replaced(operands=written) if hasattr(diagnostic, "operands") else diagnostic
        )
    return Failure(*diagnostics)


def _beside(node: ast.expr, text: str) -> str:
    """An operand as it can be written beside others."""
    simple = isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.Constant)
    return text if simple else f"({text})"


_REDUCTIONS = frozenset("all amax amin any max mean median min norm prod ptp std sum var".split())


def _with_axis_kept(node: ast.expr, text: str, shape: Shape) -> tuple[str, int]:
    """A reduction along one axis with `keepdims=True`, and the axis; -1 if it is none."""
    if not isinstance(node, ast.Call) or not text.endswith(")"):
        return "", -1
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else ""
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    last = node.args[-1] if node.args and name != "norm" else None  # which takes `ord` there
    axis = given.get("axis", last)
    try:
        number = None if axis is None else ast.literal_eval(axis)
    except (ValueError, SyntaxError):
        return "", -1
    if name not in _REDUCTIONS or "keepdims" in given or type(number) is not int:
        return "", -1
    return f"{text[:-1].rstrip().rstrip(',')}, keepdims=True)", number % (len(shape) + 1)


INITIAL = {
    "psc.scan": (1, "init"),
    "psc.fori_loop": (3, "init_val"),
    "psc.while_loop": (2, "init_val"),
    "psc.map_reduce": (3, "init"),
}
"""Where a loop is given its initial carry."""


def with_initial(failure: Failure, frame: Frame, node: ast.Call) -> Failure:
    """Findings about a carry, with the place of its initial value."""
    loops = {d.loop for d in failure.diagnostics if isinstance(d, CarryMismatch)}
    if len(loops) != 1:
        return failure
    loop = loops.pop()
    if loop not in INITIAL:
        return failure
    position, keyword = INITIAL[loop]
    given = [each.value for each in node.keywords if each.arg == keyword]
    found = given[0] if given else (node.args[position] if position < len(node.args) else None)
    if found is None:
        return failure
    return failure.labelled(Label(frame.span(found), "the carry starts as this"))


def with_origins(failure: Failure, args: Sequence[Any]) -> Failure:
    """Findings about types, with the declarations of the arguments that they are about."""
    if not all(d.code[3] in "345" for d in failure.diagnostics):
        return failure
    labels: list[Label] = []
    for each in _flat(args):
        if isinstance(each, Value):
            origin = getattr(each.atom, "origin", NOWHERE)
            if origin is not NOWHERE and len(labels) < 3:
                labels.append(Label(origin, str(each.type)))
    if not labels:
        return failure
    return Failure(
        *(
            d if d.span is not NOWHERE or d.labels else d.labelled(*dict.fromkeys(labels))
            for d in failure.diagnostics
        )
    )
