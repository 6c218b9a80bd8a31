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
from typing import Any, Final, NoReturn

import numpy as np

from pscdsl._src.frontend.interpreter.arrangements import inputs_of_ufunc
from pscdsl._src.frontend.interpreter.frames import require_program
from pscdsl._src.frontend.interpreter.places import (
    WHOLE,
    Cell,
    Located,
    fitted,
    load,
    parts_of,
)
from pscdsl._src.frontend.values import Applicable, Array, Builtin, Here, is_traced
from pscdsl._src.ir.builder import Builder, PythonNumber, Value, Weak
from pscdsl._src.ir.program import Equation, Literal, Var
from pscdsl._src.language.meanings import MEANINGS, Meaning
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

    def store(self, here: Builder, index: Any, value: Any) -> NoReturn:
        """Raise a Failure: the copy cannot be written."""
        self.load()

    def description(self) -> str:
        """Describe the elements for messages."""
        return f"elements of {self.full.type} that a mask selects"

    def safe(self, here: Builder) -> Array:
        """Return the array, with ones where nothing is selected."""
        return self.full if self._is_safe else self.filled(here, 1)

    def filled(self, here: Builder, neutral: Any) -> Array:
        """Return the array, with a number where nothing is selected."""
        if self.full.dtype is BOOL:
            neutral = bool(neutral)
        found: Array = _numpy(here, "where", self.mask, self.full, neutral)
        return found

    def count(self) -> Value:
        """Return the number of elements as i32."""
        found: Value = _numpy(None, "count_nonzero", self.mask)
        return found


def selected(here: Builder, value: Any, index: Any, refusal: Failure) -> Selected | None:
    """Return `value[index]` if the index is a mask of the array's shape, else None."""
    mask = index[0] if is_tuple(index) and len(index) == 1 else index
    if not (isinstance(mask, Value) and mask.dtype is BOOL and is_traced(value) and mask.ndim):
        return None
    if mask.ndim != value.ndim or not all(map(here.facts.equal, mask.shape, value.shape)):
        return None
    if not isinstance(value, Value) and value.ndim == 0:
        return None
    if not (value.dtype is BOOL or value.dtype.is_number):
        return None
    whole = Selected(value, mask, refusal)
    return Selected(whole.safe(here), mask, refusal, safe=True)


def among(*values: Any) -> Selected | None:
    """Return the first selection among values, or in lists of them."""
    for value in values:
        if isinstance(value, Selected):
            return value
        if not isinstance(value, Located) and not is_traced(value):
            found = among(*parts_of(value))
            if found is not None:
                return found
    return None


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


def _defined(value: Value) -> tuple[Builder, Any]:
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


def _require_same(given: Selected, other: Selected) -> None:
    if not same(given.mask, other.mask) or given.full.ndim != other.full.ndim:
        found = DataDependentShape(
            what="elements that two masks select",
            instead="both are to be selected by one mask, which has a name: "
            "`np.where(mask, …, …)` takes values for all places",
        )
        raise Failure(found)


# Elementwise functions.


def is_elementwise(name: str) -> bool:
    """Return whether a NumPy function is elementwise, and returns one array."""
    if name in ("numpy.where", "numpy.clip"):
        return True
    function: Any = getattr(np, name.removeprefix("numpy."), None)
    return inputs_of_ufunc(name) in (1, 2) and function.signature is None


_DEFINED: Final = {"numpy.arccosh": 2, "numpy.acosh": 2} | dict.fromkeys(
    ("numpy.arcsin", "numpy.asin", "numpy.arccos", "numpy.acos", "numpy.arctanh", "numpy.atanh"), 0
)
"""Arguments at which functions are differentiable that are not at 1."""


def elementwise(
    here: Builder, apply: Callable[..., Any], operands: Sequence[Any], name: str = ""
) -> Selected:
    """Apply an elementwise function to selected elements and numbers."""
    chosen = [each for each in operands if isinstance(each, Selected)]
    first = chosen[0]
    for each in chosen[1:]:
        _require_same(first, each)
    given: list[Any] = []
    for each in operands:
        if isinstance(each, Selected):
            safe = _DEFINED.get(name, 1)
            given.append(each.safe(here) if safe == 1 else each.filled(here, safe))
            continue
        value = load(each)
        shape: Any = getattr(value, "shape", ())
        if parts_of(value) or shape:
            first.load()
        given.append(value)
    result = apply(*given)
    if not (isinstance(result, Value | Weak) and result.ndim == first.full.ndim):
        first.load()
    return Selected(result, first.mask, first.refusal)


# Reductions.


def _sum(here: Builder, x: Selected) -> Any:
    return _numpy(here, "sum", x.filled(here, 0))


def _prod(here: Builder, x: Selected) -> Any:
    return _numpy(here, "prod", x.filled(here, 1))


def _mean(here: Builder, x: Selected) -> Any:
    """Return the mean; NaN for an empty selection."""
    whole = x.filled(here, 0)
    array = whole.default() if isinstance(whole, Weak) else whole
    array = floats_of(array)
    dtype = array.dtype
    if dtype in (F16, BF16):  # their sums, and counts, do not fit
        x.load()
    total = _numpy(here, "sum", cast(array, dtype))
    return _numpy(here, "divide", total, cast(x.count(), dtype))


def _most(here: Builder, x: Selected, name: str, worst: float) -> Any:
    """Return the extremum; NaN for an empty selection, for which NumPy raises an error."""
    whole = x.filled(here, worst) if x.full.dtype.is_float else x.load()
    array = whole.default() if isinstance(whole, Weak) else whole
    found = _numpy(here, name, array, initial=worst)
    return _numpy(here, "where", _numpy(here, "any", x.mask), found, np.nan)


def _max(here: Builder, x: Selected) -> Any:
    return _most(here, x, "max", -np.inf)


def _min(here: Builder, x: Selected) -> Any:
    return _most(here, x, "min", np.inf)


def _any(here: Builder, x: Selected) -> Any:
    return _numpy(here, "any", x.filled(here, 0))


def _all(here: Builder, x: Selected) -> Any:
    return _numpy(here, "all", x.filled(here, 1))


def _count_nonzero(here: Builder, x: Selected) -> Any:
    return _numpy(here, "count_nonzero", x.filled(here, 0))


REDUCTIONS: Final[Mapping[str, Callable[[Builder, Selected], Any]]] = {
    "sum": _sum,
    "prod": _prod,
    "mean": _mean,
    "max": _max,
    "amax": _max,
    "min": _min,
    "amin": _min,
    "any": _any,
    "all": _all,
}
"""Functions of all elements that are also methods of arrays."""
PRODUCTS: Final = frozenset(("numpy.dot", "numpy.vdot", "numpy.inner", "numpy.matmul"))


def product(here: Builder, apply: Callable[..., Any], x: Any, y: Any) -> Any:
    """Return `x @ y` for elements that one mask selects."""
    if not (isinstance(x, Selected) and isinstance(y, Selected)):
        found = x if isinstance(x, Selected) else y
        found.load()
    _require_same(x, y)
    return apply(*(_numpy(here, "ravel", each.filled(here, 0)) for each in (x, y)))


def length(x: Selected) -> PythonNumber:
    """Return `len(x)`, a Python number."""
    return PythonNumber(cast(x.count(), I64))


# Calls with selected elements, their attributes, and stores at a mask.


def called(here: Any, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a function with selected elements; `NotImplemented` if no rule here applies."""
    found = among(*args, *kwargs.values())
    if found is None:
        return NotImplemented
    if isinstance(function, Builtin) and function.name == "builtins.len" and len(args) == 1:
        return length(args[0]) if args[0] is found else NotImplemented
    if not isinstance(function, Meaning):
        return NotImplemented  # a function that reads it is refused
    if kwargs or not any(each is found for each in args):
        found.load()
    name = function.name
    short = name.removeprefix("numpy.")
    if name.startswith("numpy.") and len(args) == 1:
        if short in REDUCTIONS:
            return REDUCTIONS[short](here, args[0])
        if short == "count_nonzero":
            return _count_nonzero(here, args[0])
        if short == "size":
            return length(args[0])
    if name in PRODUCTS and len(args) == 2:
        return product(here, lambda *given: function.of_mixed(here, given, {}), *args)
    count = inputs_of_ufunc(name)
    if not is_elementwise(name) or (count is not None and len(args) != count):
        found.load()
    return elementwise(here, lambda *given: function.of_mixed(here, given, {}), args, name)


class SelectedMethod(Applicable):
    """A method of selected elements."""

    def __init__(self, owner: Selected, name: str) -> None:
        self.owner = owner
        self.name = name

    def apply(self, here: Here, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call the method."""
        here = require_program(here, self.description())
        if self.name == "copy" and not args and not kwargs:
            owner = self.owner
            return Selected(owner.safe(here), owner.mask, owner.refusal, safe=True)
        if self.name == "astype" and len(args) == 1 and not kwargs:
            astype = MEANINGS["numpy.astype"]
            assert isinstance(astype, Meaning)
            dtype: Any = args[0]

            def cast_to(x: Any) -> Any:
                return astype.apply(here, (x, dtype), {})

            return elementwise(here, cast_to, (self.owner,))
        if args or kwargs or self.name not in REDUCTIONS:
            self.owner.load()
        return REDUCTIONS[self.name](here, self.owner)

    def description(self) -> str:
        """Describe the method for messages."""
        return f"the method `{self.name}` of an array"


def attribute(owner: Selected, name: str) -> Any:
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


def store(here: Builder, owner: Located, index: Any, value: Selected) -> None:
    """Execute `owner[index] = value` at the mask that selects the value."""
    whole = owner.load()
    require_place(here, whole, index, value)
    new = fitted(here, whole, value.full)
    owner.store(here, WHOLE, _numpy(here, "where", value.mask, new, whole))


def require_place(here: Builder, whole: Array, index: Any, value: Selected) -> None:
    """Require that an index is the mask that selects a value."""
    target = selected(here, whole, index, value.refusal)
    if target is None:
        value.load()
    _require_same(target, value)


def updated(
    here: Builder, whole: Array, index: Any, value: Any, combine: Callable[[Any, Any], Any]
) -> Any:
    """Return all places of `whole[index] op= value`; only those that the mask selects are valid."""
    refusal = Failure() if not isinstance(value, Selected) else value.refusal
    target = selected(here, whole, index, refusal)
    if isinstance(value, Selected):
        require_place(here, whole, index, value)
        value = value.safe(here)
    return combine(whole if target is None else target.full, value)


def _numpy(here: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """Apply a NumPy function."""
    function: Any = MEANINGS[f"numpy.{name}"]
    return function.apply(here, args, kwargs)
