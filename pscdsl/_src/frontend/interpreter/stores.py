"""Functions and methods that write to an array: `np.copyto`, `np.add.at`, `out=`, `y.fill`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pscdsl._src.frontend.interpreter import masks
from pscdsl._src.frontend.interpreter.arrangements import inputs_of_ufunc
from pscdsl._src.frontend.interpreter.places import (
    WHOLE,
    Located,
    as_stored,
    fitted,
    load,
)
from pscdsl._src.frontend.values import (
    Array,
    is_traced,
)
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.language.meanings import MEANINGS, Meaning, describe
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


def numpys(here: Builder, name: str, *args: Any, **kwargs: Any) -> Any:
    """Apply a NumPy function."""
    function = MEANINGS[f"numpy.{name}"]
    assert isinstance(function, Meaning)
    return function.apply(here, args, kwargs)


def update_whole(here: Builder, target: Located, sign: str, result: Any, name: str = "") -> None:
    """Execute `target += …`; the result must fit the shape and the kind of the array."""
    found = as_stored(here, result)
    require_place(here, target.load(), sign, found, name)
    target.store(here, WHOLE, found)


def require_place(here: Builder, left: Array, sign: str, result: Array, name: str) -> None:
    """Refuse an update whose result has another shape than the array."""
    why = array_difference(here.facts, result.type.with_dtype(left.dtype), left.type)
    if why is not None:
        raise Failure(
            OutgrownUpdate(name=name, sign=sign, left=left.type, found=result.type, why=why)
        )


def write_result(here: Builder, name: str, target: Located, result: Any) -> Located:
    """Write a result to `out=target`, and return the target."""
    found = as_stored(here, result)
    ufunc = inputs_of_ufunc(name) is not None
    if not ufunc and found.dtype is not target.load().dtype and isinstance(found, Value):
        # NumPy's reductions compute in the dtype of their `out` array.
        whole = target.load().type
        raise Failure(StoreChangesKind(found=found.type, stored=whole, open=True))
    if not (ufunc and not found.ndim):
        update_whole(here, target, f"{name.replace('numpy.', 'np.', 1)}(…, out=…)", found)
    else:
        target.store(here, WHOLE, found)
    return target


def is_mask(index: Any) -> bool:
    """Return whether an index is an array of bools, which selects the true places."""
    only: Any = index[0] if is_tuple(index) and len(index) == 1 else index
    return is_traced(only) and only.dtype is BOOL and only.ndim > 0


def _copyto(
    frame: Any, here: Builder, dst: Located, src: Any, casting: Any = "same_kind", where: Any = True
) -> None:
    """Execute `np.copyto(y, x)` or `np.copyto(y, x, where=mask)`."""
    del frame
    if casting != "same_kind":
        raise Failure(BadArguments(function="np.copyto", problem="casts within a kind only"))
    src, where = load(src), load(where)
    if where is not True:
        whole = dst.load()
        src = numpys(here, "where", where, fitted(here, whole, src), whole)
    update_whole(here, dst, "np.copyto", _broadcast(here, dst, src))


def _broadcast(here: Builder, target: Located, value: Any) -> Any:
    """Broadcast a value to the shape of an array."""
    found = as_stored(here, value)
    shape = target.load().shape
    return found if found.ndim >= len(shape) else numpys(here, "broadcast_to", found, shape)


def _fill_diagonal(frame: Any, here: Builder, a: Located, val: Any, wrap: Any = False) -> None:
    """Execute `np.fill_diagonal(a, value)` for a matrix."""
    del frame
    whole, value = a.load(), load(val)
    number = as_stored(here, value)
    if whole.ndim != 2 or number.ndim or wrap is not False:
        problem = "takes a matrix and a number here; `a[i, i] = v` with `i = np.arange(n)` stores"
        raise Failure(BadArguments(function="np.fill_diagonal", problem=problem))
    rows, columns = (numpys(here, "arange", size) for size in whole.shape)
    diagonal = numpys(here, "equal", numpys(here, "expand_dims", rows, 1), columns)
    a.store(here, WHOLE, numpys(here, "where", diagonal, fitted(here, whole, value), whole))


def _putmask(frame: Any, here: Builder, a: Located, mask: Any, values: Any) -> None:
    """Execute `np.putmask(a, mask, values)` with values for all places, or with one number."""
    del frame
    whole, mask = a.load(), load(mask)
    value = fitted(here, whole, load(values))
    if (value.ndim and value.shape != whole.shape) or as_stored(here, mask).shape != whole.shape:
        problem = "takes a number, or an array of the same shape, here"
        raise Failure(BadArguments(function="np.putmask", problem=problem))
    a.store(here, WHOLE, numpys(here, "where", mask, value, whole))


def _place(frame: Any, here: Builder, arr: Located, mask: Any, vals: Any) -> None:
    """Execute `np.place(arr, mask, value)` with one number."""
    if as_stored(here, load(vals)).ndim:
        problem = "takes a number here; `np.where(mask, values, arr)` takes values for all places"
        raise Failure(BadArguments(function="np.place", problem=problem))
    _putmask(frame, here, arr, mask, vals)


STORING: Final[dict[str, Callable[..., Any]]] = {
    "numpy.copyto": _copyto,
    "numpy.fill_diagonal": _fill_diagonal,
    "numpy.putmask": _putmask,
    "numpy.place": _place,
}
"""NumPy functions that write to their first argument."""


def _fill(here: Builder, array: Located, value: Any) -> None:
    if as_stored(here, value).ndim:
        raise Failure(BadArguments(function="fill", problem="takes a number"))
    array.store(here, WHOLE, value)


def _sort(here: Builder, array: Located, axis: Any = -1, kind: Any = None) -> None:
    del kind  # the sorted elements are the same for any kind
    array.store(here, WHOLE, numpys(here, "sort", array.load(), axis))


STORING_METHODS: Final[dict[str, Callable[..., Any]]] = {"fill": _fill, "sort": _sort}
"""Methods that write to their array."""

_COMBINING: Final = {
    "numpy.add": "add",
    "numpy.multiply": "multiply",
    "numpy.minimum": "minimum",
    "numpy.maximum": "maximum",
}


@dataclass(frozen=True)
class CombinedAt:
    """The method `np.add.at`, which combines elements with others, repeated places repeatedly."""

    name: str
    """The ufunc: `numpy.add`."""

    def store(self, here: Builder, a: Any, indices: Any, b: Any = None) -> None:
        """Combine `a[indices]` with `b`."""
        if self.name == "numpy.subtract" and b is not None:
            return CombinedAt("numpy.add").store(
                here, a, indices, numpys(here, "negative", load(b))
            )
        combine = _COMBINING.get(self.name)
        if combine is None or b is None or not isinstance(a, Located):
            what = f"`{self.name}.at` of {describe(a) if not isinstance(a, Located) else 'this'}"
            raise Failure(Mutation(what=what, rewrite="`np.add.at` and its like take an array"))
        whole = a.load()
        value: Array = fitted(here, whole, load(b))
        a.store(here, WHOLE, update(here, whole, load(indices), value, combine))
        return None

    def description(self) -> str:
        """Describe the method for messages."""
        return f"`{self.name}.at`"


def update_item(
    here: Builder,
    owner: Located,
    index: Any,
    part: Any,
    value: Any,
    combine: Callable[[Any, Any], Any],
) -> None:
    """Execute `owner[index] op= value`; `part` is `owner[index]`, unless a mask selects it."""
    if not is_mask(index):
        owner.store(here, index, combine(load(part), value))
        return
    whole = owner.load()
    mask = index[0] if is_tuple(index) else index
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
    spread = numpys(here, "reshape", mask, shape)
    update_whole(here, owner, "", numpys(here, "where", spread, changed, whole))
