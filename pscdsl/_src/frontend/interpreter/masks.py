"""The elements that a mask selects, `x[mask]`, which keep their places.

The number of elements of `x[mask]` is unknown, so it is no array of the program. `Selected` is the
array with all its places, and the mask. An elementwise function of elements that one mask selects
is selected by that mask, a reduction reads only selected elements, and a store at the same mask
writes there. Any other use is refused.

Elements that are not selected are ones before a function sees them: the function may be undefined
for other values, and then its derivative is NaN even if the result there is not selected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NoReturn

import numpy as np

from pscdsl._src.frontend.interpreter.arrangements import inputs_of_ufunc
from pscdsl._src.frontend.interpreter.frames import require_program
from pscdsl._src.frontend.interpreter.places import (
    WHOLE,
    Cell,
    Located,
    apply_numpy,
    fitted,
    load,
    parts_of,
)
from pscdsl._src.frontend.values import AnyValue, Applicable, Array, Builtin, Place, is_traced
from pscdsl._src.ir.builder import Builder, PythonNumber, Value, Weak
from pscdsl._src.ir.program import Atom, Equation, Literal, Var
from pscdsl._src.language.meanings import Meaning
from pscdsl._src.primitives.indexing import DynamicSlice, Gather
from pscdsl._src.primitives.pointwise import Pointwise
from pscdsl._src.primitives.shaping import Broadcast, Iota, Reshape, SizeValue, Slice, Transpose
from pscdsl.numpy.shorthand import cast, floats_of
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.codes.shapes import DataDependentShape
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import BF16, BOOL, F16, I64
from pscdsl.typing.python_containers import is_tuple


class Selected(Located):
    """The elements of an array where a mask holds, in a copy without other holders."""

    __slots__ = ("_full", "_is_safe", "mask", "refusal")

    def __init__(self, full: Array, mask: Value, refusal: Failure, *, safe: bool = False) -> None:
        self._full = full
        self.mask = mask
        self.refusal = refusal
        """The reason why it is no array of the program."""
        self._is_safe = safe

    @property
    def full(self) -> Array:
        """An array with these elements at their places, and arbitrary ones elsewhere."""
        self.require_current()
        return self._full

    def require_current(self) -> None:
        """Raise a Failure if it may have changed: a copy never does."""

    def load(self) -> NoReturn:
        """Raise a Failure: it has no shape."""
        raise Failure(*self.refusal.diagnostics)

    def seen(self) -> Array:
        """Return the array with all its places."""
        return self._full

    @property
    def type(self) -> ArrayType:
        """Raise a Failure: it has no shape."""
        self.load()

    @property
    def ndim(self) -> int:
        """The number of axes: one, whose length is the number of selected elements."""
        return 1

    def cells(self) -> Sequence[Cell]:
        """Return no cells: a mask makes a copy."""
        return ()

    def store(self, here: Builder, index: AnyValue, value: AnyValue) -> NoReturn:
        """Raise a Failure: the copy cannot be written."""
        self.load()

    def description(self) -> str:
        """Describe the elements for messages."""
        return f"elements of {self.full.type} that a mask selects"

    def safe(self, here: Builder) -> Array:
        """Return the array, with ones where nothing is selected."""
        return self.full if self._is_safe else self.filled(here, 1)

    def filled(self, here: Builder, neutral: float) -> Array:
        """Return the array, with a number where nothing is selected."""
        if self.full.dtype is BOOL:
            neutral = bool(neutral)
        return apply_numpy(here, "where", self.mask, self.full, neutral)

    def count(self) -> Value:
        """Return the number of elements as i32."""
        count = apply_numpy(None, "count_nonzero", self.mask)
        assert isinstance(count, Value)
        return count


def selected(here: Builder, whole: AnyValue, index: AnyValue, refusal: Failure) -> Selected | None:
    """Return `whole[index]` if the index is a mask of the array's shape, else None."""
    mask = index[0] if is_tuple(index) and len(index) == 1 else index
    if not (isinstance(mask, Value) and mask.dtype is BOOL and is_traced(whole) and mask.ndim):
        return None
    if mask.ndim != whole.ndim or not all(map(here.facts.equal, mask.shape, whole.shape)):
        return None
    if not (whole.dtype is BOOL or whole.dtype.is_number):
        return None
    return Selected(Selected(whole, mask, refusal).safe(here), mask, refusal, safe=True)


def among(*values: Place) -> Selected | None:
    """Return the first selection among values, or in lists of them."""
    for value in values:
        if isinstance(value, Selected):
            return value
        if not isinstance(value, Located) and not is_traced(value):
            selection = among(*parts_of(value))
            if selection is not None:
                return selection
    return None


def refuse(*values: Place) -> NoReturn:
    """Refuse a use of values of which one is, or holds, selected elements."""
    selection = among(*values)
    assert selection is not None
    selection.load()


# Equality of masks.


_PURE: Final = (
    *(Pointwise, Broadcast, Iota, Reshape, SizeValue, Slice, Transpose),
    *(DynamicSlice, Gather),
)
"""Primitives that are functions of their operands, and are compared by their parameters."""
DEPTH: Final = 12
"""The depth in equations to which two masks are compared."""


def same(one: Value, other: Value, depth: int = DEPTH) -> bool:
    """Return whether two values are known to be equal: the same function of the same variables."""
    (here, first), (there, second) = _defined(one), _defined(other)
    if isinstance(first, Literal) and isinstance(second, Literal):
        return first.type == second.type and repr(first.value) == repr(second.value)
    if first is second:
        return True
    if depth == 0 or isinstance(first, Literal) or isinstance(second, Literal):
        return False
    left, right = _equation(here, first), _equation(there, second)
    if left is None or right is None or len(left.outputs) != 1 or len(right.outputs) != 1:
        return False
    if not isinstance(left.primitive, _PURE) or left.primitive != right.primitive:
        return False
    if first.type != second.type or len(left.inputs) != len(right.inputs):
        return False
    pairs = zip(left.inputs, right.inputs, strict=True)
    return all(same(Value(here, a), Value(there, b), depth - 1) for a, b in pairs)


def _defined(value: Value) -> tuple[Builder, Atom]:
    """Return the block that defines a value, and the variable there."""
    here, atom = value.builder, value.atom
    while here.outer is not None and not isinstance(atom, Literal):
        outside = next((out for out, own in here.captured.items() if own is atom), None)
        if outside is None:
            break
        here, atom = here.outer, outside
    return here, atom


def _equation(here: Builder, atom: Var) -> Equation | None:
    """Return the equation that defines a variable in its block."""
    found = (each for each in reversed(here.equations) if any(atom is x for x in each.outputs))
    return next(found, None)


def _require_same(one: Selected, other: Selected) -> None:
    if not same(one.mask, other.mask) or one.full.ndim != other.full.ndim:
        finding = DataDependentShape(
            what="elements that two masks select",
            instead="both are to be selected by one mask, which has a name: "
            "`np.where(mask, …, …)` takes values for all places",
        )
        raise Failure(finding)


# Elementwise functions.


def is_elementwise(name: str) -> bool:
    """Return whether a NumPy function is elementwise, and returns one array."""
    if name in ("numpy.where", "numpy.clip"):
        return True
    function = getattr(np, name.removeprefix("numpy."), None)
    is_ufunc = isinstance(function, np.ufunc) and function.signature is None
    return is_ufunc and inputs_of_ufunc(name) in (1, 2)


_DEFINED: Final = {"numpy.arccosh": 2, "numpy.acosh": 2} | dict.fromkeys(
    ("numpy.arcsin", "numpy.asin", "numpy.arccos", "numpy.acos", "numpy.arctanh", "numpy.atanh"), 0
)
"""Arguments at which functions are differentiable that are not at 1."""


def elementwise(
    here: Builder, apply: Callable[..., AnyValue], operands: Sequence[Place], name: str = ""
) -> Selected:
    """Apply an elementwise function to selected elements and numbers."""
    first, *others = [x for x in operands if isinstance(x, Selected)] or [refuse(*operands)]
    for other in others:
        _require_same(first, other)
    values: list[AnyValue] = []
    for operand in operands:
        if isinstance(operand, Selected):
            safe = _DEFINED.get(name, 1)
            values.append(operand.safe(here) if safe == 1 else operand.filled(here, safe))
            continue
        value = load(operand)
        if parts_of(value) or getattr(value, "shape", ()):
            first.load()
        values.append(value)
    result = apply(*values)
    if not (is_traced(result) and result.ndim == first.full.ndim):
        first.load()
    return Selected(result, first.mask, first.refusal)


# Reductions.


def _filled(name: str, neutral: float) -> Callable[[Builder, Selected], Array]:
    """Return a reduction that reads a neutral number where nothing is selected."""
    return lambda here, x: apply_numpy(here, name, x.filled(here, neutral))


def _mean(here: Builder, x: Selected) -> Array:
    """Return the mean; NaN for an empty selection."""
    whole = x.filled(here, 0)
    array = floats_of(whole.default() if isinstance(whole, Weak) else whole)
    dtype = array.dtype
    if dtype in (F16, BF16):  # their sums, and counts, do not fit
        x.load()
    return apply_numpy(here, "divide", apply_numpy(here, "sum", array), cast(x.count(), dtype))


def _extremum(name: str, worst: float) -> Callable[[Builder, Selected], Array]:
    """Return a reduction to NaN for an empty selection, for which NumPy raises an error."""

    def extremum(here: Builder, x: Selected) -> Array:
        whole = x.filled(here, worst) if x.full.dtype.is_float else x.load()
        array = whole.default() if isinstance(whole, Weak) else whole
        value = apply_numpy(here, name, array, initial=worst)
        return apply_numpy(here, "where", apply_numpy(here, "any", x.mask), value, np.nan)

    return extremum


_max, _min = _extremum("max", -np.inf), _extremum("min", np.inf)

REDUCTIONS: Final[Mapping[str, Callable[[Builder, Selected], Array]]] = {
    "sum": _filled("sum", 0),
    "prod": _filled("prod", 1),
    "mean": _mean,
    "max": _max,
    "amax": _max,
    "min": _min,
    "amin": _min,
    "any": _filled("any", 0),
    "all": _filled("all", 1),
}
"""Functions of all elements that are also methods of arrays."""
PRODUCTS: Final = frozenset(("numpy.dot", "numpy.vdot", "numpy.inner", "numpy.matmul"))


def product(here: Builder, apply: Callable[..., AnyValue], x: Place, y: Place) -> AnyValue:
    """Return `x @ y` for elements that one mask selects."""
    if not (isinstance(x, Selected) and isinstance(y, Selected)):
        refuse(x, y)
    _require_same(x, y)
    return apply(*(apply_numpy(here, "ravel", operand.filled(here, 0)) for operand in (x, y)))


def length(x: Selected) -> PythonNumber:
    """Return `len(x)`, a Python number."""
    return PythonNumber(cast(x.count(), I64))


# Calls with selected elements, their attributes, and stores at a mask.


def called(
    here: Builder, function: AnyValue, args: Sequence[Place], kwargs: Mapping[str, Place]
) -> Place:
    """Call a function with selected elements; None if no rule here applies."""
    selection = among(*args, *kwargs.values())
    if selection is None:
        return None
    if isinstance(function, Builtin) and function.name == "builtins.len" and len(args) == 1:
        return length(selection) if args[0] is selection else None
    if not isinstance(function, Meaning):
        return None  # a function that reads it is refused
    if kwargs or not any(argument is selection for argument in args):
        selection.load()
    name = function.name
    short = name.removeprefix("numpy.")
    if name.startswith("numpy.") and len(args) == 1:
        if short in REDUCTIONS:
            return REDUCTIONS[short](here, selection)
        if short == "count_nonzero":
            return apply_numpy(here, short, selection.filled(here, 0))
        if short == "size":
            return length(selection)

    def apply(*operands: AnyValue) -> AnyValue:
        result: AnyValue = function.of_mixed(here, operands, {})
        return result

    if name in PRODUCTS and len(args) == 2:
        return product(here, apply, *args)
    count = inputs_of_ufunc(name)
    if not is_elementwise(name) or (count is not None and len(args) != count):
        selection.load()
    return elementwise(here, apply, args, name)


class SelectedMethod(Applicable):
    """A method of selected elements."""

    def __init__(self, owner: Selected, name: str) -> None:
        self.owner = owner
        self.name = name

    def holds(self) -> Sequence[AnyValue]:
        """Return the selected elements."""
        return (self.owner,)

    def apply(
        self, here: Builder, args: Sequence[AnyValue], kwargs: Mapping[str, AnyValue]
    ) -> AnyValue:
        """Call the method."""
        here = require_program(here, self.description())
        owner = self.owner
        if self.name == "copy" and not args and not kwargs:
            return Selected(owner.safe(here), owner.mask, owner.refusal, safe=True)
        if self.name == "astype" and len(args) == 1 and not kwargs:

            def astype(x: AnyValue) -> Array:
                return apply_numpy(here, "astype", x, args[0])

            return elementwise(here, astype, (owner,))
        if args or kwargs or self.name not in REDUCTIONS:
            owner.load()
        return REDUCTIONS[self.name](here, owner)

    def description(self) -> str:
        """Describe the method for messages."""
        return f"the method `{self.name}` of an array"


def attribute(owner: Selected, name: str) -> AnyValue:
    """Return `x[mask].name`."""
    if name in ("copy", "astype") or name in REDUCTIONS:
        return SelectedMethod(owner, name)
    if name == "size":
        return length(owner)
    if name == "dtype":
        return owner.full.dtype
    if name == "ndim":
        return 1
    return owner.load()


def store(here: Builder, owner: Located, index: AnyValue, value: Selected) -> None:
    """Execute `owner[index] = value` at the mask that selects the value."""
    whole = owner.load()
    require_same_mask(here, whole, index, value)
    new = fitted(here, whole, value.full)
    owner.store(here, WHOLE, apply_numpy(here, "where", value.mask, new, whole))


def require_same_mask(here: Builder, whole: Array, index: AnyValue, value: Selected) -> None:
    """Require that an index is the mask that selects a value."""
    target = selected(here, whole, index, value.refusal)
    if target is None:
        value.load()
    _require_same(target, value)


def updated(
    here: Builder,
    whole: Array,
    index: AnyValue,
    value: Place,
    combine: Callable[[AnyValue, Place], AnyValue],
) -> AnyValue:
    """Return all places of `whole[index] op= value`; only those that the mask selects are valid."""
    refusal = Failure() if not isinstance(value, Selected) else value.refusal
    target = selected(here, whole, index, refusal)
    if isinstance(value, Selected):
        require_same_mask(here, whole, index, value)
        value = value.safe(here)
    return combine(whole if target is None else target.full, value)
