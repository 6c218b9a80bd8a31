"""Library functions that return new memory, which no argument and nothing else refers to.

The table says what NumPy's own functions do, under plain Python.  Whatever is not in it may give
back a view, or the very array that it was given: `tests/numpy/test_new_memory.py` calls each
function that kernels know in many ways, and asks NumPy whether results share arguments' memory.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, TypeVar

from pscdsl._src.frontend.interpreter.frames import Frame, Session
from pscdsl._src.frontend.text.source import FunctionNode
from pscdsl._src.frontend.text.uses import Uses, parameters, uses
from pscdsl._src.frontend.values.values import Builtin, is_traced
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl.numpy.methods import BoundMethod
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.python_containers import is_known_array

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
        noted(frame, node, value) if _plain(node) and (absolute or makes_new(function)) else value
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
                if parent.attr in NEW_METHODS and _plain(call):
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


def _plain(call: ast.Call) -> bool:
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
    return isinstance(function, Meaning) and makes_new(function) and _plain(call)


def _read(frame: Frame, node: ast.expr) -> Any:
    """What an expression of module names is; None if it is not known."""
    from pscdsl._src.frontend.interpreter.expressions import evaluate  # which owns what it makes

    try:
        return evaluate(Frame(Session(None), frame.source, frame.scope), node)
    except Failure:
        return None
