"""Calls: library functions, inlined helpers, kernels, records, dtypes, Python's own functions."""

from __future__ import annotations

import ast
import copy
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

import numpy as np

from pscdsl._src.frontend import purity
from pscdsl._src.frontend.interpreter.frames import Frame, Session
from pscdsl._src.frontend.interpreter.functions import elements
from pscdsl._src.frontend.purity import is_closed
from pscdsl._src.frontend.text.bindings import Uses, parameters, uses
from pscdsl._src.frontend.text.source import FunctionNode
from pscdsl._src.frontend.trees import condition
from pscdsl._src.frontend.values import (
    POISON,
    PYTHON_DTYPES,
    Applicable,
    Builtin,
    External,
    MapValue,
    Marker,
    Number,
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
from pscdsl.numpy.calling import refuse_missing, values_only
from pscdsl.numpy.methods import BoundMethod
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

# Library functions that return new memory, which no argument and nothing else refers to.
#
# The table says what NumPy's own functions do, under plain Python.  Whatever is not in it may give
# back a view, or the very array that it was given: `tests/numpy/test_new_memory.py` calls each
# function that kernels know in many ways, and asks NumPy whether results share arguments' memory.


_FUNCTIONS: Final = {
    "numpy": (
        "abs absolute acos acosh add add.accumulate add.outer add.reduce all amax amin angle "
        "any append arange arccos arccosh arcsin arcsinh arctan arctan2 arctan2.outer arctanh "
        "argmax argmin argpartition argsort argwhere around array asin asinh astype atan atan2 "
        "atanh average bartlett bincount bitwise_and bitwise_and.outer bitwise_and.reduce "
        "bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or "
        "bitwise_or.outer bitwise_or.reduce bitwise_right_shift bitwise_xor bitwise_xor.outer "
        "bitwise_xor.reduce blackman block cbrt ceil choose clip column_stack compress concat "
        "concatenate conj conjugate convolve copy copysign corrcoef correlate cos cosh "
        "count_nonzero cov cross cumprod cumsum cumulative_prod cumulative_sum deg2rad degrees "
        "delete diag_indices diagflat digitize divide divide.outer divmod dot dstack ediff1d "
        "empty empty_like equal equal.outer exp exp2 expm1 extract eye fabs fix flatnonzero "
        "float_power float_power.outer floor floor_divide floor_divide.outer fmax fmax.outer "
        "fmin fmin.outer fmod full full_like gcd geomspace gradient greater greater.outer "
        "greater_equal greater_equal.outer hamming hanning heaviside hstack hypot hypot.outer "
        "i0 identity indices inner insert interp intersect1d invert isclose iscomplex isfinite "
        "isin isinf isnan isneginf isposinf isreal kaiser kron lcm ldexp left_shift less "
        "less.outer less_equal less_equal.outer lexsort linspace log log10 log1p log2 logaddexp "
        "logaddexp.outer logaddexp2 logical_and logical_and.accumulate logical_and.outer "
        "logical_and.reduce logical_not logical_or logical_or.accumulate logical_or.outer "
        "logical_or.reduce logical_xor logical_xor.outer logspace matmul matvec max maximum "
        "maximum.accumulate maximum.outer maximum.reduce mean median meshgrid min minimum "
        "minimum.accumulate minimum.outer minimum.reduce mod mod.outer modf multiply "
        "multiply.accumulate multiply.outer multiply.reduce nanargmax nanargmin nancumprod "
        "nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd "
        "nansum nanvar negative nextafter nonzero not_equal not_equal.outer ones ones_like "
        "outer pad partition percentile polyadd polymul polysub polyval positive pow power "
        "power.outer prod ptp quantile rad2deg radians reciprocal remainder remainder.outer "
        "repeat resize right_shift rint roll round row_stack searchsorted select setdiff1d "
        "setxor1d sign signbit sin sinc sinh sort sort_complex sqrt square stack std subtract "
        "subtract.outer sum take take_along_axis tan tanh tensordot tile trace trapezoid tri "
        "tril tril_indices triu triu_indices true_divide true_divide.outer trunc union1d unique "
        "unique_all unique_counts unique_inverse unique_values unravel_index unwrap vander var "
        "vecdot vecmat vstack where zeros zeros_like"
    ),
    "numpy.linalg": (
        "cholesky cond cross det eig eigh eigvals eigvalsh inv lstsq matmul matrix_norm "
        "matrix_rank multi_dot norm outer pinv qr slogdet solve svd svdvals tensordot tensorinv "
        "tensorsolve trace vecdot vector_norm"
    ),
    "numpy.fft": (
        "fft fftfreq fftshift hfft ifft ifftshift ihfft irfft irfft2 irfftn rfft rfft2 rfftfreq "
        "rfftn"
    ),
}
NEW_FUNCTIONS: Final = frozenset(
    f"{module}.{name}" for module, names in _FUNCTIONS.items() for name in names.split()
)
"""Functions whose results are arrays of their own, whatever they are given."""

NEW_METHODS: Final = frozenset(
    (
        "all any argmax argmin argpartition argsort astype choose clip compress copy cumprod "
        "cumsum dot flatten max mean min nonzero prod repeat round searchsorted std sum take "
        "trace var"
    ).split()
)
"""Methods of arrays whose results are arrays of their own."""


def makes_new(function: Any) -> bool:
    """Whether a function, or a method of an array, gives an array that nobody else holds."""
    if isinstance(function, BoundMethod):
        return function.name in NEW_METHODS
    if not isinstance(function, Meaning):
        return False
    # One meaning may have several names, of which some give views.
    names = {name for name, meaning in MEANINGS.items() if meaning is function}
    return bool(names) and names <= NEW_FUNCTIONS


# Arrays that a function made and did not pass on, which `a += e` may change.
#
# `a += e` writes to the array under NumPy, and all others who hold it see that; in a kernel it
# gives the name a new array. The two agree if nobody else holds it: if each binding of the name in
# the function is an operator, or a call of what makes new memory, and if each use of the name hands
# the array to nobody. What is not on the lists here may do so.


T = TypeVar("T")

OPERATIONS = (ast.BinOp, ast.UnaryOp, ast.Compare)
"""What makes new arrays of arrays, and keeps none."""
DATA = frozenset({"shape", "ndim", "size", "dtype"})
"""Attributes of an array that hold nothing of it."""
VIEWS = frozenset("T mT real imag reshape ravel transpose swapaxes squeeze".split())
"""Attributes that show an array: what is done with them is done with it."""
BUILTINS = frozenset({"abs", "bool", "complex", "float", "int", "isinstance", "len"})
"""Python's own functions that keep nothing of what they are given."""


def noted(frame: Frame, node: ast.expr, value: T) -> T:
    """The value of an expression that makes new memory, as a distinct object."""
    if node not in _right_sides(uses(frame.source)):
        return value
    if not is_traced(value) and not is_known_array(value):
        return value
    made = copy.copy(value)
    frame.session.owned[id(made)] = (made, node)
    return made


def noted_call(frame: Frame, node: ast.Call, function: Any, value: Any) -> Any:
    """The value of a call, noted if the function that is called makes new memory."""
    absolute = isinstance(function, Builtin) and function.name.rpartition(".")[2] == "abs"
    return (
        noted(frame, node, value)
        if _without_out(node) and (absolute or makes_new(function))
        else value
    )


def updated(session: Session, node: ast.AugAssign, value: Any) -> None:
    """Note what an update left under its name."""
    session.owned[id(value)] = (value, node)


def held_elsewhere(frame: Frame, name: str, value: Any) -> str:
    """Why others may hold the array that a name stands for; empty if nobody does."""
    function = None if frame.closure is None else frame.closure.node
    if function is None or isinstance(function, ast.Lambda):
        return f"`{name}` is not a name of this function alone"
    if name in parameters(function):
        return f"`{name}` is an argument, which its caller holds"
    index = uses(frame.source)
    for binding in _bindings(index, function, name):
        if binding.right is None:
            return f"line {binding.line} may bind `{name}` to an array that has another name"
    for use in _own_names(index, function, name):
        if isinstance(use.ctx, ast.Load) and not _stays(frame, index, use, function):
            return f"line {use.lineno} hands `{name}` on"
    found = frame.session.owned.get(id(value))
    if found is None or found[0] is not value or not _binds(index, found[1], name):
        return f"`{name}` may be a view, or have another name"
    return ""


class _Binding:
    """A statement that binds a name; `right` is what it binds it to, if it is that alone."""

    def __init__(self, line: int, right: ast.AST | None) -> None:
        self.line = line
        self.right = right


def _own_names(index: Uses, function: FunctionNode, name: str) -> Iterator[ast.Name]:
    for node in index.names.get(name, ()):
        if index.owner(node, name) is function:
            yield node


def _bindings(index: Uses, function: FunctionNode, name: str) -> Iterator[_Binding]:
    for each in _own_names(index, function, name):
        if isinstance(each.ctx, ast.Store):
            yield _Binding(each.lineno, _right_side(index, each))


def _right_side(index: Uses, target: ast.Name) -> ast.AST | None:
    """The expression that a statement binds to one name and to nothing else."""
    statement = index.parents.get(target)
    if isinstance(statement, ast.AugAssign):
        return statement
    alone = isinstance(statement, ast.Assign) and statement.targets == [target]
    if isinstance(statement, ast.AnnAssign) or (isinstance(statement, ast.Assign) and alone):
        return statement.value or statement
    return None


def _binds(index: Uses, node: ast.AST, name: str) -> bool:
    """Whether a statement binds the value of an expression to a name."""
    statement = node if isinstance(node, ast.AugAssign) else index.parents.get(node)
    if isinstance(statement, ast.Assign):
        return [target.id for target in statement.targets if isinstance(target, ast.Name)] == [name]
    if isinstance(statement, ast.AnnAssign | ast.AugAssign):
        return isinstance(statement.target, ast.Name) and statement.target.id == name
    return False


@lru_cache(maxsize=64)
def _right_sides(index: Uses) -> frozenset[ast.AST]:
    """What is bound to names that are updated in place."""
    updated = {
        (each.id, index.owner(each, each.id))
        for each in _stores(index)
        if isinstance(index.parents.get(each), ast.AugAssign)
    }
    found = (
        _right_side(index, each)
        for each in _stores(index)
        if (each.id, index.owner(each, each.id)) in updated
    )
    return frozenset(each for each in found if each is not None)


def _stores(index: Uses) -> list[ast.Name]:
    return [n for names in index.names.values() for n in names if isinstance(n.ctx, ast.Store)]


def _stays(frame: Frame, index: Uses, node: ast.expr, function: FunctionNode) -> bool:
    """Whether a use of an array, or of a view of it, leaves nobody with it."""
    child: ast.AST = node
    in_display = False
    while True:
        parent = index.parents.get(child)
        if isinstance(parent, ast.Return):
            return index.function_of(parent) is function  # which updates nothing afterwards
        if isinstance(parent, ast.Tuple | ast.List):
            in_display = True
        elif isinstance(parent, ast.Subscript):
            if parent.slice is child:
                return isinstance(parent.ctx, ast.Load)  # an index is read
            if in_display:
                return False
        elif isinstance(parent, ast.Call) and child in parent.args:
            kept = not _keeps_nothing(frame, index, parent, in_display)
            return not kept or _returned(index, parent, function)
        elif isinstance(parent, ast.keyword):
            call = index.parents.get(parent)
            if not isinstance(call, ast.Call):
                return False
            named = parent.arg not in ("out", None)
            if named and _keeps_nothing(frame, index, call, in_display):
                return True
            return _returned(index, call, function)
        elif in_display:
            return _returned(index, child, function)
        elif isinstance(parent, ast.Attribute):
            if parent.attr in DATA:
                return True
            call = index.parents.get(parent)
            if isinstance(call, ast.Call) and call.func is parent:
                if parent.attr in NEW_METHODS and _without_out(call):
                    return True
                if parent.attr not in VIEWS:
                    return _returned(index, call, function)
                parent = call
            elif parent.attr not in VIEWS:
                return False
        elif isinstance(parent, ast.IfExp):
            if parent.test is child:
                return True
        elif isinstance(parent, ast.AugAssign | ast.Expr | ast.Assert | ast.If | ast.While):
            return True
        else:
            return isinstance(parent, OPERATIONS) or _returned(index, child, function)
        child = parent


def _returned(index: Uses, node: ast.AST | None, function: FunctionNode) -> bool:
    """Whether a node stands in what the function returns, so that it is done for."""
    while node is not None and node is not function:
        if isinstance(node, ast.Return):
            return index.function_of(node) is function
        node = index.parents.get(node)
    return False


def _without_out(call: ast.Call) -> bool:
    """Whether a call says nothing of where its result is to be."""
    return not any(keyword.arg in ("out", "copy", None) for keyword in call.keywords)


def _keeps_nothing(frame: Frame, index: Uses, call: ast.Call, in_display: bool) -> bool:
    """Whether a function that is called keeps nothing of its arguments, nor shows it."""
    root: ast.AST = call.func
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name) or index.owner(root, root.id) is not None:
        return False  # a local name, which may be anything by then
    function = _read(frame, call.func)
    if isinstance(function, Builtin):
        return not in_display and function.name.rpartition(".")[2] in BUILTINS
    return isinstance(function, Meaning) and makes_new(function) and _without_out(call)


def _read(frame: Frame, node: ast.expr) -> Any:
    """What an expression of module names is; None if it is not known."""
    from pscdsl._src.frontend.interpreter.expressions import evaluate  # which owns what it makes

    try:
        return evaluate(Frame(Session(None), frame.source, frame.scope), node)
    except Failure:
        return None


# What is called, and with which arguments.


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
        if not isinstance(function, Meaning | DType | BoundMethod):
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
    if "out" in kwargs and isinstance(function, Meaning | BoundMethod):
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
        instead = purity.instead_of(function.name)
        raise Failure(NotCallable(found=describe(function), instead=instead))
    if isinstance(function, BoundMethod):
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
