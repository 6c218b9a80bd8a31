"""Functions and methods that write to an array: `np.copyto`, `np.add.at`, `out=`, `y.fill`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pscdsl._src.frontend.interpreter import masks
from pscdsl._src.frontend.interpreter.arrangements import inputs_of_ufunc
from pscdsl._src.frontend.interpreter.places import (
    WHOLE,
    Located,
    apply_numpy,
    as_stored,
    fitted,
    load,
)
from pscdsl._src.frontend.values import AnyValue, Array, Atomic, Place, is_traced
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.language.meanings import describe
from pscdsl.numpy.indexing import require_unrepeated
from pscdsl.numpy.updating import update
from pscdsl.typing.codes.element_types import StoreChangesKind
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.purity import Mutation
from pscdsl.typing.codes.shapes import DataDependentShape, OutgrownUpdate
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import BOOL
from pscdsl.typing.python_containers import is_tuple
from pscdsl.typing.unify import array_difference


def update_whole(here: Builder, owner: Located, sign: str, value: AnyValue, name: str = "") -> None:
    """Execute `owner += …`; the value must fit the shape and the kind of the array."""
    array = as_stored(here, value)
    require_same_shape(here, owner.load(), sign, array, name)
    owner.store(here, WHOLE, array)


def require_same_shape(here: Builder, whole: Array, sign: str, value: Array, name: str) -> None:
    """Refuse an update by a value of another shape than the array."""
    why = array_difference(here.facts, value.type.with_dtype(whole.dtype), whole.type)
    if why is not None:
        raise Failure(
            OutgrownUpdate(name=name, sign=sign, left=whole.type, found=value.type, why=why)
        )


def write_result(here: Builder, name: str, owner: Located, value: AnyValue) -> Located:
    """Write a result to `out=owner`, and return the owner."""
    array = as_stored(here, value)
    ufunc = inputs_of_ufunc(name) is not None
    whole = owner.load()
    if not ufunc and array.dtype is not whole.dtype and isinstance(array, Value):
        # NumPy's reductions compute in the dtype of their `out` array.
        raise Failure(StoreChangesKind(found=array.type, stored=whole.type, open=True))
    if not (ufunc and not array.ndim):
        update_whole(here, owner, f"{name.replace('numpy.', 'np.', 1)}(…, out=…)", array)
    else:
        owner.store(here, WHOLE, array)
    return owner


def is_mask(index: Place) -> bool:
    """Return whether an index is an array of bools, which selects the true places."""
    only = index[0] if is_tuple(index) and len(index) == 1 else index
    return is_traced(only) and only.dtype is BOOL and only.ndim > 0


def _copyto(
    here: Builder, dst: Located, src: Place, casting: Place = "same_kind", where: Place = True
) -> None:
    """Execute `np.copyto(y, x)` or `np.copyto(y, x, where=mask)`."""
    if casting != "same_kind":
        raise Failure(BadArguments(function="np.copyto", problem="casts within a kind only"))
    whole, value, mask = dst.load(), load(src), load(where)
    if mask is not True:
        value = apply_numpy(here, "where", mask, fitted(here, whole, value), whole)
    array = as_stored(here, value)
    if array.ndim < whole.ndim:
        array = apply_numpy(here, "broadcast_to", array, whole.shape)
    update_whole(here, dst, "np.copyto", array)


def _fill_diagonal(here: Builder, a: Located, val: Place, wrap: Place = False) -> None:
    """Execute `np.fill_diagonal(a, value)` for a matrix."""
    whole, array = a.load(), as_stored(here, load(val))
    if whole.ndim != 2 or array.ndim or wrap is not False:
        problem = "takes a matrix and a number here; `a[i, i] = v` with `i = np.arange(n)` stores"
        raise Failure(BadArguments(function="np.fill_diagonal", problem=problem))
    rows, columns = (apply_numpy(here, "arange", size) for size in whole.shape)
    diagonal = apply_numpy(here, "equal", apply_numpy(here, "expand_dims", rows, 1), columns)
    a.store(here, WHOLE, apply_numpy(here, "where", diagonal, fitted(here, whole, array), whole))


def _putmask(here: Builder, a: Located, mask: Place, values: Place) -> None:
    """Execute `np.putmask(a, mask, values)` with values for all places, or with one number."""
    whole, chosen = a.load(), load(mask)
    array = fitted(here, whole, load(values))
    if (array.ndim and array.shape != whole.shape) or as_stored(here, chosen).shape != whole.shape:
        problem = "takes a number, or an array of the same shape, here"
        raise Failure(BadArguments(function="np.putmask", problem=problem))
    a.store(here, WHOLE, apply_numpy(here, "where", chosen, array, whole))


def _place(here: Builder, arr: Located, mask: Place, vals: Place) -> None:
    """Execute `np.place(arr, mask, value)` with one number."""
    if as_stored(here, load(vals)).ndim:
        problem = "takes a number here; `np.where(mask, values, arr)` takes values for all places"
        raise Failure(BadArguments(function="np.place", problem=problem))
    _putmask(here, arr, mask, vals)


STORING: Final[dict[str, Callable[..., None]]] = {
    "numpy.copyto": _copyto,
    "numpy.fill_diagonal": _fill_diagonal,
    "numpy.putmask": _putmask,
    "numpy.place": _place,
}
"""NumPy functions that write to their first argument."""


def _fill(here: Builder, array: Located, value: AnyValue) -> None:
    if as_stored(here, value).ndim:
        raise Failure(BadArguments(function="fill", problem="takes a number"))
    array.store(here, WHOLE, value)


def _sort(here: Builder, array: Located, axis: AnyValue = -1, kind: AnyValue = None) -> None:
    del kind  # the sorted elements are the same for any kind
    array.store(here, WHOLE, apply_numpy(here, "sort", array.load(), axis))


STORING_METHODS: Final[dict[str, Callable[..., None]]] = {"fill": _fill, "sort": _sort}
"""Methods that write to their array."""

_COMBINING: Final = {
    "numpy.add": "add",
    "numpy.multiply": "multiply",
    "numpy.minimum": "minimum",
    "numpy.maximum": "maximum",
}


@dataclass(frozen=True)
class CombinedAt(Atomic):
    """The method `np.add.at`, which combines elements with others, repeated places repeatedly."""

    name: str
    """The ufunc: `numpy.add`."""

    def store(self, here: Builder, a: Place, indices: Place, b: Place = None) -> None:
        """Combine `a[indices]` with `b`."""
        if self.name == "numpy.subtract" and b is not None:
            negative = apply_numpy(here, "negative", load(b))
            return CombinedAt("numpy.add").store(here, a, indices, negative)
        combine = _COMBINING.get(self.name)
        if combine is None or b is None or not isinstance(a, Located):
            what = f"`{self.name}.at` of {describe(a) if not isinstance(a, Located) else 'this'}"
            raise Failure(Mutation(what=what, rewrite="`np.add.at` and its like take an array"))
        whole = a.load()
        array = fitted(here, whole, load(b))
        a.store(here, WHOLE, update(here, whole, load(indices), array, combine))
        return None

    def description(self) -> str:
        """Describe the method for messages."""
        return f"`{self.name}.at`"


def update_item(
    here: Builder,
    owner: Located,
    index: AnyValue,
    part: Place,
    value: Place,
    combine: Callable[[AnyValue, Place], AnyValue],
) -> None:
    """Execute `owner[index] op= value`; `part` is `owner[index]`, unless a mask selects it."""
    if not is_mask(index):
        owner.store(here, index, combine(load(part), value))
        return
    whole = owner.load()
    mask = index[0] if is_tuple(index) else index
    assert is_traced(mask)
    require_unrepeated(mask, whole.shape)
    chosen = isinstance(value, masks.Selected)
    if not chosen and as_stored(here, value).ndim > whole.ndim - mask.ndim:
        raise Failure(
            DataDependentShape(
                what="the part that a mask selects",
                instead="`np.where(mask, x + y, x)` takes values for all places",
            )
        )
    changed = fitted(here, whole, masks.updated(here, whole, mask, value, combine))
    shape = (*mask.shape, *(1 for _ in whole.shape[mask.ndim :]))
    spread = apply_numpy(here, "reshape", mask, shape)
    update_whole(here, owner, "", apply_numpy(here, "where", spread, changed, whole))
