"""Arrays as in Python and NumPy: cells, and references to cells or to views of them.

An array expression evaluates to a place: a `Cell` is a NumPy buffer, a `Ref` is an array object
that shows a cell or a part of it. A store replaces the content of a cell by a functional update, so
all names and views of the cell show it, as in NumPy.

Names, items of lists and tuples, and arguments of functions that are elaborated inline hold
references. Code that does not know references gets a value from `escaped`, and the cell is frozen:
it can always be read, and a store into it is refused. A result that may or may not be new memory is
`Shared`: it may be a view, so it is valid until one of the arrays that it may show is written.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, overload

import numpy as np

from pscdsl._src.frontend.values import (
    AnyValue,
    Array,
    Once,
    Open,
    Place,
    Poisoned,
    describe,
    is_poisoned,
    is_traced,
)
from pscdsl._src.ir.builder import Builder, Value, Weak, may_be_array, note_array, reachable
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl.numpy import indexing
from pscdsl.numpy.calling import as_operand
from pscdsl.numpy.shorthand import cast, reshaped, reversed_along, transposed
from pscdsl.numpy.updating import update
from pscdsl.typing.array_types import ArrayType, Shape
from pscdsl.typing.codes.element_types import DtypesDiffer, StoreChangesKind
from pscdsl.typing.codes.purity import Mutation, StaleView
from pscdsl.typing.diagnostics import NOWHERE, Diagnostic, Failure, Label, Span
from pscdsl.typing.dims import Dim
from pscdsl.typing.dtypes import KEY, accepts_weak
from pscdsl.typing.python_containers import (
    is_dict,
    is_known_array,
    is_sequence,
    is_slice,
    is_tuple,
)

if TYPE_CHECKING:
    from pscdsl._src.frontend.interpreter.containers import Container
    from pscdsl._src.frontend.interpreter.frames import Binding, Session
    from pscdsl._src.frontend.interpreter.state import Missing

Several = TypeVar("Several", bound="tuple[Any, ...] | list[Any] | dict[Any, Any] | set[Any]")

_A_STORE: Final = "a store"


def named_store(
    failure: Failure, what: str, rewrite: Callable[[str], str] | None = None
) -> Failure:
    """Return the findings about a store with the store's text and a suggested replacement."""

    def named(found: Diagnostic) -> Diagnostic:
        if not isinstance(found, Mutation) or found.what != _A_STORE:
            return found
        instead = found.rewrite if rewrite is None else rewrite(found.rewrite)
        return found.replaced(what=what, rewrite=instead)

    return Failure(*map(named, failure.diagnostics))


def parameters_of(failure: Failure) -> list[str]:
    """Return the parameters of the kernel that refused stores would write to."""
    found = [each for each in failure.diagnostics if isinstance(each, Mutation)]
    return [each.parameter for each in found if each.what == _A_STORE and each.parameter]


@dataclass(frozen=True)
class Frozen:
    """The reason why a cell takes no stores: who shares it, and since where."""

    why: str
    """The text after the name of the array: `is a parameter`."""
    span: Span = NOWHERE
    rewrite: str = ""
    """The suggested replacement, if it is not a copy of the array."""
    parameter: str = ""
    """The kernel's parameter that holds the array and could be declared in `writes`."""

    def refusal(self) -> Failure:
        """Return the refusal of a store into the array; the caller says which store it is."""
        rewrite = self.rewrite or "write to a copy, `.copy()`, made before it is shared"
        found = Mutation(what=_A_STORE, rewrite=rewrite, why=self.why, parameter=self.parameter)
        if self.span is not NOWHERE:
            found = found.labelled(Label(self.span, "shared here"))
        return Failure(found)


class Change(Protocol):
    """An in-place change that can be undone."""

    def undo(self) -> None:
        """Undo the change."""
        ...


@dataclass(frozen=True, eq=False)
class Written:
    """A store into a cell, with the cell's previous content."""

    cell: Cell
    content: Array
    stamp: int

    def undo(self) -> None:
        """Restore the previous content."""
        self.cell.content, self.cell.stamp = self.content, self.stamp


@dataclass(frozen=True, eq=False)
class Froze:
    """The freezing of a cell or a container."""

    cell: Cell | Container

    def undo(self) -> None:
        """Let it take stores again."""
        self.cell.frozen = None


class Cell:
    """A NumPy buffer with its present content."""

    __slots__ = ("content", "depth", "frozen", "in_c_order", "maker", "serial", "session", "stamp")

    def __init__(
        self,
        session: Session,
        content: Array,
        frozen: Frozen | None = None,
        in_c_order: bool = False,
    ) -> None:
        assert session.program is not None
        self.session = session
        self.content = content
        self.frozen = frozen
        """The reason why it takes no stores; None if it takes them."""
        self.in_c_order = in_c_order
        """Whether its elements are known to be in C order, so that a reshaped array is a view."""
        self.maker: ast.expr | None = None
        """The expression that makes it, if only that holds it until its value is used."""
        session.cells += 1
        self.serial = session.cells
        """Its number among all cells, in the order in which they were made."""
        self.depth = session.program.current.depth
        """The depth of the block in which it was made."""
        self.stamp = session.stores
        """The number of its last store; every store has another number."""

    def write(self, content: Array) -> None:
        """Replace the content; a Failure if the cell is frozen or belongs to an outer function."""
        session = self.session
        if self.frozen is not None:
            raise self.frozen.refusal()
        if self.depth < session.barrier:
            why = "is made outside of the function that a combinator is given"
            raise Frozen(why, rewrite="return the new array from the function").refusal()
        self.replace(content)

    def replace(self, content: Array) -> None:
        """Replace the content even if the cell is shared, with the result of a branch or a loop."""
        session = self.session
        session.journal.append(Written(self, self.content, self.stamp))
        session.stores += 1
        self.content, self.stamp = content, session.stores

    def freeze(self, frozen: Frozen) -> None:
        """Refuse stores from here on."""
        if self.frozen is None:
            self.frozen = frozen
            self.session.journal.append(Froze(self))


class Step(Protocol):
    """A step from an array to a view of it."""

    def read(self, whole: Array) -> Array:
        """Return the part that the view shows."""
        ...

    def write(self, here: Builder, whole: Array, part: Array) -> Array:
        """Return the whole with another part."""
        ...


@dataclass(frozen=True, eq=False)
class Index:
    """A basic index: integers, slices, `None` and `...`, evaluated where the view was made."""

    index: AnyValue

    def read(self, whole: Array) -> Array:
        """Return the part at the index."""
        return indexing.getitem(whole, self.index)

    def write(self, here: Builder, whole: Array, part: Array) -> Array:
        """Return the whole with another part at the index."""
        changed: Array = update(here, whole, self.index, part)
        return changed


@dataclass(frozen=True)
class Arranged:
    """Axes in another order, some of them reversed: `.T`, `np.flip`, `np.rot90`."""

    axes: tuple[int, ...]
    """Axis i of the view is axis `axes[i]` of the whole."""
    reversed: tuple[int, ...]
    """The axes of the view that run backwards."""

    def read(self, whole: Array) -> Array:
        """Return the rearranged array."""
        return _changed(whole, lambda x: reversed_along(transposed(x, self.axes), *self.reversed))

    def write(self, here: Builder, whole: Array, part: Array) -> Array:
        """Return the part in the order of the whole."""
        del here, whole
        back = tuple(self.axes.index(axis) for axis in range(len(self.axes)))
        return _changed(part, lambda x: transposed(reversed_along(x, *self.reversed), back))


@dataclass(frozen=True, eq=False)
class Reshaped:
    """The elements of an array in C order, in another shape."""

    shape: Shape

    def read(self, whole: Array) -> Array:
        """Return the reshaped array."""
        return _changed(whole, lambda x: reshaped(x, self.shape))

    def write(self, here: Builder, whole: Array, part: Array) -> Array:
        """Return the part in the shape of the whole."""
        del here
        shape = whole.shape
        return _changed(part, lambda x: reshaped(x, shape))


@dataclass(frozen=True)
class ComplexPart:
    """The real or the imaginary parts of complex numbers."""

    name: str
    """`real` or `imag`."""

    def read(self, whole: Array) -> Array:
        """Return the real or the imaginary parts."""
        return applied(f"numpy.{self.name}", whole.builder, whole)

    def write(self, here: Builder, whole: Array, part: Array) -> Array:
        """Return the complex numbers with these parts replaced."""
        other = ComplexPart("imag" if self.name == "real" else "real").read(whole)
        pair = (part, other) if self.name == "real" else (other, part)
        return applied("pscdsl.complex", here, *pair)


def applied(name: str, here: Builder | None, *args: AnyValue, **kwargs: AnyValue) -> Array:
    """Return the result of a library function that makes an array."""
    function = MEANINGS[name]
    assert isinstance(function, Meaning)
    result: Array = function.apply(here, args, kwargs)
    return result


def apply_numpy(here: Builder | None, name: str, *args: AnyValue, **kwargs: AnyValue) -> Array:
    """Return the array of a function of NumPy, or of one by its qualified name."""
    return applied(name if "." in name else f"numpy.{name}", here, *args, **kwargs)


def _changed(x: Array, change: Callable[[Value], Value]) -> Array:
    """Return the change of a value; a weak value is changed in the dtype that it is given later."""
    if isinstance(x, Value):
        return change(x)
    shape = change(x.default()).shape
    return Weak(x.builder, x.kind, shape, lambda dtype: change(x.at(dtype)))


def require_scalar(value: AnyValue) -> None:
    """Refuse an augmented assignment to an array that others may hold, which would write to it."""
    if is_known_array(value):
        raise Frozen("is captured, or a constant", rewrite="bind the result to the name").refusal()
    if may_be_array(value):
        raise Failure(Mutation(what=_A_STORE, rewrite="", is_undecided=True))


class Located(Open):
    """An array object, which knows where its elements are and how to read them now."""

    def load(self) -> Array:
        """Return the present value."""
        raise NotImplementedError

    def seen(self) -> Array:
        """Return a value of the same type, which may be older than the present value."""
        return self.load()

    def cells(self) -> Sequence[Cell]:
        """Return all cells whose content it may show."""
        raise NotImplementedError

    def store(self, here: Builder, index: AnyValue, value: AnyValue) -> None:
        """Execute `self[index] = value`; a Failure where others hold the array."""
        raise NotImplementedError

    @property
    def type(self) -> ArrayType:
        """The dtype and shape."""
        return self.seen().type

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.seen().ndim

    def description(self) -> str:
        """Describe the array for messages."""
        return describe(self.seen())


class Ref(Located):
    """A reference to a cell, or to a view of it by steps that each have an exact inverse."""

    __slots__ = ("_read", "cell", "steps")

    def __init__(self, cell: Cell, steps: tuple[Step, ...] = (), read: Array | None = None) -> None:
        self.cell = cell
        self.steps = steps
        self._read: tuple[Array, Array] | None = None if read is None else (cell.content, read)
        """The content of the cell at the last read of the view, and the view."""

    def load(self) -> Array:
        """Apply the steps to the content of the cell, unless the last view is still valid."""
        whole = self.cell.content
        if not self.steps:
            return note_array(whole)
        if self._read is not None and self._read[0] is whole and self._is_at_hand(self._read[1]):
            return note_array(self._read[1])
        part = whole
        for step in self.steps:
            part = step.read(part)
        self._read = whole, part
        return note_array(part)

    def last_read(self) -> Array | None:
        """Return the view as last read; None if it was not read since the last store."""
        whole = self.cell.content
        if not self.steps:
            return whole
        return self._read[1] if self._read is not None and self._read[0] is whole else None

    def indices(self) -> Iterator[AnyValue]:
        """Yield the indices and bounds of slices that lead to the view."""
        for step in self.steps:
            if isinstance(step, Index):
                for index in step.index if is_tuple(step.index) else (step.index,):
                    yield from (
                        (index.start, index.stop, index.step) if is_slice(index) else (index,)
                    )

    def _is_at_hand(self, view: Array) -> bool:
        assert self.cell.session.program is not None
        return isinstance(view, Value) and reachable(view, self.cell.session.program.current)

    def cells(self) -> Sequence[Cell]:
        """Return the one cell that it shows."""
        return (self.cell,)

    def view(self, step: Step, read: Array) -> Ref:
        """Return a view of this array that shows `read` now."""
        return Ref(self.cell, (*self.steps, step), read)

    def store(self, here: Builder, index: AnyValue, value: AnyValue) -> None:
        """Write through the view into the cell."""
        self.cell.write(_put(here, self.cell.content, self.steps, index, value))


class Shared(Located):
    """A value that may be a view of other arrays or a copy, valid until one of them is written."""

    __slots__ = ("_stamps", "_value", "why")

    def __init__(self, value: Array, cells: Sequence[Cell], why: str) -> None:
        self._value = value
        self._stamps = tuple((cell, cell.stamp) for cell in cells)
        self.why = why
        """The call that made it: `np.reshape`."""

    def load(self) -> Array:
        """Return the value; a Failure if it may have changed."""
        if any(cell.stamp != stamp for cell, stamp in self._stamps):
            raise Failure(StaleView(by=self.why))
        return note_array(self._value)

    def seen(self) -> Array:
        """Return the value as it was when made."""
        return self._value

    def cells(self) -> Sequence[Cell]:
        """Return every cell whose view it may be."""
        return [cell for cell, _ in self._stamps]

    def store(self, here: Builder, index: AnyValue, value: AnyValue) -> None:
        """Raise a Failure: it is unknown which arrays would change."""
        why = f"may be a view of another array or a copy of it, made by {self.why}"
        raise Frozen(why).refusal()


class BoundArrayMethod(Open):
    """A method of an array, which reads the array when it is called."""

    __slots__ = ("name", "owner")

    def __init__(self, owner: Located, name: str) -> None:
        self.owner = owner
        self.name = name

    def holds(self) -> Sequence[Place]:
        """Return the array."""
        return (self.owner,)

    def description(self) -> str:
        """Describe the method for messages."""
        return f"the method `{self.name}` of an array"


class Walked(Open):
    """A lazy iterable over arrays, which reads them row by row when it is iterated."""

    located: tuple[Located, ...]


WHOLE: Final = Ellipsis
"""The index of all elements."""


def _put(
    here: Builder, whole: Array, steps: Sequence[Step], index: AnyValue, value: AnyValue
) -> Array:
    """Return the whole with a value at an index of the view that the steps lead to."""
    if not steps:
        return stored(here, whole, index, value)
    step, *rest = steps
    return step.write(here, whole, _put(here, step.read(whole), rest, index, value))


def stored(here: Builder, whole: Array, index: AnyValue, value: AnyValue) -> Array:
    """Return `whole` after `whole[index] = value`, in the dtype of `whole`."""
    changed: Array = update(here, whole, index, fitted(here, whole, value))
    return changed


def fitted(here: Builder, whole: Array, value: AnyValue) -> Array:
    """Return a value in the dtype of the array into which it is stored.

    NumPy's `y[i] = v` casts any value. Casts within a kind and to a higher kind are intended; a
    float in an array of integers loses its fraction, and is refused.
    """
    array = as_stored(here, value)
    if whole.dtype is KEY or array.dtype is KEY:
        raise Failure(StoreChangesKind(found=array.type, stored=whole.type, open=False))
    if isinstance(whole, Weak):
        lower = isinstance(array, Value) and array.dtype.kind < whole.kind
        if array.dtype.kind > whole.kind or lower:
            raise Failure(StoreChangesKind(found=array.type, stored=whole.type, open=lower))
        return array
    if isinstance(array, Weak):
        if not accepts_weak(whole.dtype, array.kind):
            raise Failure(StoreChangesKind(found=array.type, stored=whole.type, open=False))
        return array.at(whole.dtype)
    if not np.can_cast(to_numpy(array.dtype), to_numpy(whole.dtype), "same_kind"):
        raise Failure(StoreChangesKind(found=array.type, stored=whole.type, open=False))
    _keep_digits(here, whole, array)
    return cast(array, whole.dtype)


def _keep_digits(here: Builder, whole: Value, value: Value) -> None:
    """Ensure that a dtype chosen by inference costs no digits in a store."""
    program = here.program
    if not program.chosen or value.dtype.is_inexact != whole.dtype.is_inexact:
        return
    narrow, wide = value.dtype.real.bits, whole.dtype.real.bits
    short, other = (value, whole) if narrow < wide else (whole, value)
    if narrow != wide and program.sites(short):
        program.want(short, other.dtype)
        raise Failure(DtypesDiffer(left=whole.type, right=value.type, open=True))


def as_stored(here: Builder, value: AnyValue) -> Array:
    """Return the stored value as an array; as in NumPy, lists and tuples become arrays."""
    if is_poisoned(value):
        raise Poisoned
    if is_sequence(value):
        return apply_numpy(here, "array", value)
    return as_operand(here, value)


def is_basic(index: AnyValue) -> bool:
    """Return whether an index gives a view; one with an array, a list or a bool gives a copy."""
    return all(map(_is_basic_part, index if is_tuple(index) else (index,)))


def _is_basic_part(part: AnyValue) -> bool:
    if part is None or part is Ellipsis or is_slice(part):
        return True
    if isinstance(part, Value | Weak):
        return not part.ndim and part.dtype.is_integer
    return isinstance(part, int | Dim | np.integer) and not isinstance(part, bool)


def keeps_an_axis(index: AnyValue) -> bool:
    """Return whether an index gives an array even without axes: `x[0, ...]` is no scalar."""
    return any(part is Ellipsis for part in (index if is_tuple(index) else (index,)))


# Values with references among their parts.


def parts_of(value: Binding | Missing) -> Sequence[Place]:
    """Return the items of a static container, which may be references."""
    if is_sequence(value):
        return value
    if is_dict(value):
        return [*value.values()]
    if isinstance(value, Once):
        return value.items()
    return ()


def located_in(value: Binding | Missing) -> Iterator[Located]:
    """Yield the references in a value."""
    match value:
        case Located():
            yield value
        case BoundArrayMethod():
            yield value.owner
        case Walked():
            yield from value.located
        case Value() | Weak():
            return
        case _:
            for part in parts_of(value):
                yield from located_in(part)


def holds_references(value: Place) -> bool:
    """Return whether a value is a reference or holds one."""
    return next(located_in(value), None) is not None


@overload
def load(value: Several) -> Several: ...
@overload
def load(value: Place) -> AnyValue: ...
def load(value: Place) -> AnyValue:
    """Return a value with each reference replaced by the array that it shows now."""
    if isinstance(value, Located):
        return value.load()
    if isinstance(value, BoundArrayMethod):
        from pscdsl.numpy import methods  # imported when needed

        return methods.attribute(value.owner.load(), value.name)
    if is_traced(value) or isinstance(value, Walked) or not holds_references(value):
        return value
    if isinstance(value, Once):
        value.replace([load(item) for item in value.items()])
        return value
    if is_dict(value):
        return {key: load(item) for key, item in value.items()}
    assert is_sequence(value)
    return value.__class__([load(item) for item in value])


def load_arguments(
    args: Sequence[Place], kwargs: Mapping[str, Place]
) -> tuple[tuple[AnyValue, ...], dict[str, AnyValue]]:
    """Return the arguments of a call with each reference replaced by the array that it shows."""
    return tuple([load(arg) for arg in args]), {name: load(kwargs[name]) for name in kwargs}


def seen(value: Place) -> AnyValue:
    """Return a value of the same type, which may be older than the present value."""
    return value.seen() if isinstance(value, Located) else value


def held_in(session: Session, value: Binding) -> Iterator[Cell | Container]:
    """Yield the cells that a value refers to, and the containers in it."""
    from pscdsl._src.frontend.interpreter.containers import containers_in  # avoids an import cycle

    for each in located_in(value):
        yield from each.cells()
    yield from containers_in(session, value)


def freeze(session: Session, value: Place, frozen: Frozen) -> None:
    """Refuse stores into every cell that a value refers to, and changes of the containers in it."""
    for each in held_in(session, value):
        each.freeze(frozen)


def escaped(session: Session, value: Place, frozen: Frozen) -> AnyValue:
    """Return the value for code without references, and freeze the cells that it refers to."""
    if is_traced(value):
        return value
    freeze(session, value, frozen)
    return load(value)


@overload
def with_cells(session: Session, value: Several, frozen: Frozen | None = None) -> Several: ...
@overload
def with_cells(
    session: Session,
    value: Place,
    frozen: Frozen | None = None,
    *,
    scalars: bool = True,
    c_order: bool = False,
) -> Place: ...
def with_cells(
    session: Session,
    value: Place,
    frozen: Frozen | None = None,
    *,
    scalars: bool = True,
    c_order: bool = False,
) -> Place:
    """Give each array in `value` a cell; `frozen` says why the cells take no stores.

    An array without axes stays a scalar, unless `scalars` is false.
    """

    def made(part: Place) -> Place:
        if is_traced(part):
            if scalars and not part.ndim:
                return part
            return Ref(Cell(session, part, frozen, c_order))
        if not (is_sequence(part) or is_dict(part)) or id(part) in session.containers:
            return part  # the same object: others may hold it
        if not _holds_values(part):
            return part
        if is_dict(part):
            entries = {key: made(item) for key, item in part.items()}
            return part if all(entries[key] is part[key] for key in part) else entries
        items = [made(item) for item in part]
        return part if all(map(operator.is_, items, part)) else part.__class__(items)

    return made(value)


def _holds_values(value: Place) -> bool:
    return any(is_traced(part) or _holds_values(part) for part in parts_of(value))


def shared(value: AnyValue, cells: Sequence[Cell], why: str) -> Place:
    """Mark the arrays of a result as possible views of `cells`, valid until one is written."""
    if is_traced(value):
        return Shared(value, cells, why)
    if is_sequence(value) and type(value) in (tuple, list):
        return type(value)([shared(item, cells, why) for item in value])
    return value
