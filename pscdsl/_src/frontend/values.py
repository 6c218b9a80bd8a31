"""The values of Python expressions while a kernel is elaborated."""

from __future__ import annotations

import ast
import inspect
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from enum import Enum
from types import EllipsisType, NoneType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    NoReturn,
    TypeAlias,
    Union,
    cast,
)

import numpy as np

from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.language.elements import ElementType
from pscdsl._src.language.meanings import Applicable as Applicable
from pscdsl._src.language.meanings import Atomic as Atomic
from pscdsl._src.language.meanings import describe as describe
from pscdsl._src.language.meanings import not_taken
from pscdsl._src.language.meanings import shortened as shortened
from pscdsl.typing.array_types import (
    ContainerKind,
    DictType,
    ListType,
    MapType,
    RecordName,
    TupleType,
    VectorType,
)
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.language import BadArguments, NotCallable, NotStatic
from pscdsl.typing.codes.language_evaluation import TooLarge
from pscdsl.typing.codes.purity import IteratorUsed, SetOrder, StaleView
from pscdsl.typing.diagnostics import Diagnostic, Failure
from pscdsl.typing.dims import Dim
from pscdsl.typing.dtypes import BOOL, C128, F64, I64, DType
from pscdsl.typing.python_containers import is_dict, is_frozenset, is_sequence, is_tuple
from pscdsl.typing.signatures import DTypeClass

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from pscdsl._src.frontend.annotations import TypeVariable
    from pscdsl._src.frontend.interpreter.containers import Container
    from pscdsl._src.frontend.interpreter.frames import Binding, Frame
    from pscdsl._src.frontend.interpreter.iteration import Generated, Iterated, Long
    from pscdsl._src.frontend.interpreter.places import BoundArrayMethod, Located
    from pscdsl._src.frontend.interpreter.records import RecordClass
    from pscdsl._src.frontend.interpreter.state import Missing
    from pscdsl._src.frontend.interpreter.stores import CombinedAt
    from pscdsl._src.frontend.modules.live import LoadedModuleValue
    from pscdsl._src.frontend.modules.loaded_code import PartOfModule
    from pscdsl._src.frontend.modules.scope import ModuleValue as WrittenModule
    from pscdsl.numpy.constants import NumpyInfo

# All that an expression of a kernel may evaluate to. The aliases are texts, so that each class can
# stay beside the code that is about it.

Array: TypeAlias = "Value | Weak"
"""An array of the program. `Weak` are those without a dtype: Python's numbers among them."""
KnownNumber: TypeAlias = "bool | int | float | complex | np.generic[Any] | np.ndarray[Any, Any]"
"""A number or an array that is known during elaboration."""
NumericValue: TypeAlias = "Array | Dim | KnownNumber"
"""A value that can be used as an array."""
ConstantValue: TypeAlias = Union[
    "None",
    "str",
    "bytes",
    "slice[Any, Any, Any]",
    "range",
    "EllipsisType",
    "Enum",
    "EnumMember",
]
"""Another known value that CPython computes with."""
TreeValue: TypeAlias = Union[
    "tuple[AnyValue, ...]",
    "list[AnyValue]",
    "dict[Any, AnyValue]",
    "set[Any]",
    "frozenset[Any]",
    "RecordValue",
    "MapValue",
    "VectorValue",
]
"""A value with parts."""
IteratorValue: TypeAlias = "Once | Iterated | Long | Generated"
"""A value that is there to be iterated."""
FunctionValue: TypeAlias = "Applicable | CombinedAt"
"""A value that can be called."""
TypeValue: TypeAlias = Union[
    "DType",
    "DTypeClass",
    "np.dtype[Any]",
    "RecordClass",
    "TypeVariable",
    "Alias",
]
"""A value that names a type."""
ModuleValue: TypeAlias = "KnownModule | WrittenModule | LoadedModuleValue | PartOfModule"
ObjectValue: TypeAlias = "PythonObject | NumpyInfo"
"""An object of which only some questions are answered."""
UnknownValue: TypeAlias = "External | Poison"
"""A value that is not known: it is outside of the program, or an error was reported in it."""


AnyValue: TypeAlias = Union[
    "Array",
    "Dim",
    "Undecided",
    "KnownNumber",
    "ConstantValue",
    "TreeValue",
    "IteratorValue",
    "FunctionValue",
    "BoundArrayMethod",
    "TypeValue",
    "ModuleValue",
    "ObjectValue",
    "Marker",
    "UnknownValue",
    "Located",
]
"""Any value of an expression, after views of arrays were loaded."""
Place: TypeAlias = "AnyValue"
"""Any value of an expression that may be stored into: a view of an array is not loaded yet."""
CPythonFunction: TypeAlias = Callable[..., Any]
"""A function of CPython's that gives a value for values."""
Args: TypeAlias = "Sequence[Place]"
"""The arguments of a call by position, before views are loaded."""
Kwargs: TypeAlias = "Mapping[str, Place]"
"""The arguments of a call by keyword, before views are loaded."""


class Open:
    """A value that is no CPython value: Python's own protocols do not work on it.

    Code that asks for the truth, the items or the length of such a value has forgotten that it is
    open, and would take Python's answer for the program's: that is refused.
    """

    def holds(self) -> Sequence[Place]:
        """Return the values that it holds, and hands on when it is used."""
        return ()

    def _refuse(self, *_: object) -> NoReturn:
        raise Failure(NotStatic(what=describe(self)))

    __bool__ = __len__ = __iter__ = __contains__ = __getitem__ = __reversed__ = _refuse
    __int__ = __float__ = __complex__ = __index__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse


class Poison(Atomic):
    """Stands for an expression in which an error was found; silences whatever depends on it."""

    def __repr__(self) -> str:
        return "<error>"

    def description(self) -> str:
        """Return its name for messages; none should need it."""
        return "what was refused before"


POISON: Final = Poison()


class Poisoned(Exception):
    """An operation met an expression in which an error was reported already."""


@dataclass(frozen=True, eq=False)
class Undecided(Open):
    """Facts about sizes, all or any of which must hold; they are true for some sizes only."""

    facts: tuple[Fact, ...]
    any_of: bool = False

    def __eq__(self, other: object) -> bool:
        raise Failure(NotStatic(what=f"whether `{self}` is equal to something"))

    def __hash__(self) -> int:
        raise Failure(NotStatic(what=f"the hash of `{self}`"))

    def __str__(self) -> str:
        return (" or " if self.any_of else " and ").join(map(str, self.facts))

    def description(self) -> str:
        """Return its name for messages."""
        return f"the condition `{self}`"

    def negated(self) -> Undecided:
        """Return the opposite."""
        several = len(self.facts) > 1
        return Undecided(tuple(f.negated() for f in self.facts), several and not self.any_of)


@dataclass(frozen=True)
class Marker(Atomic):
    """A name that matters on its own: `typing.NamedTuple`, `pscdsl.Record`, `pyrsistent.PMap`."""

    name: str

    def description(self) -> str:
        """Return its name for messages."""
        return f"`{self.name}`"


@dataclass(frozen=True, eq=False)
class Alias(Applicable):
    """An applied type used as a value: `Matrix = f32["n m"]`, `Layer["d h"](…)`."""

    head: AnyValue
    frame: Frame
    node: ast.expr
    is_written: bool = True
    """Whether the node stands in a file; that of a real type was made from it."""

    def apply(
        self, here: Builder, args: Sequence[AnyValue], kwargs: Mapping[str, AnyValue]
    ) -> AnyValue:
        """Return an instance of a record class, whatever its sizes are called."""
        if not isinstance(self.head, Applicable):
            raise Failure(NotCallable(found=describe(self)))
        return self.head.apply(here, args, kwargs)

    def description(self) -> str:
        """Return its name for messages."""
        return f"the type of {describe(self.head)}"


@dataclass(frozen=True)
class KnownModule(Atomic):
    """A module whose functions have meanings of ours."""

    name: str

    def description(self) -> str:
        """Return its name for messages."""
        return f"the module `{self.name}`"


CALLED: Final = "(…)"
"""The end of the name of a result."""


@dataclass(frozen=True)
class External(Applicable):
    """An unknown value outside of the program, by its qualified name: `time.time`, `os.environ`."""

    name: str
    why: tuple[Diagnostic, ...] = ()
    """The findings in its definition."""
    library: bool = field(default=False, compare=False)
    """Whether it is a module, or was imported from one: its attributes may be named."""

    @property
    def is_result(self) -> bool:
        """True for a result of another library, or a part of one."""
        return self.library and not self.why and CALLED in self.name

    def apply(
        self, here: Builder, args: Sequence[AnyValue], kwargs: Mapping[str, AnyValue]
    ) -> AnyValue:
        """Refuse the call, also where another function makes it; in JAX programs, see there."""
        from pscdsl._src.frontend.jax_annotations import of_library  # these are about values
        from pscdsl._src.frontend.purity import external_use

        if (found := of_library(here, self, (*args, *kwargs.values()))) is not None:
            return found[0]
        raise Failure(external_use(self))

    def description(self) -> str:
        """Return its name for messages."""
        return f"`{self.name}`"


@dataclass(frozen=True, eq=False)
class PythonObject(Open, Atomic):
    """A static argument of a class that is not the language's: a function, a class, a path."""

    held: object

    def description(self) -> str:
        """Return its name for messages."""
        return describe(self.held)


_OURS = ("pscdsl._src.", "pscdsl.numpy.", "pscdsl.typing.")
_KNOWN = (
    *(int, float, complex, str, bytes, range, slice, NoneType, EllipsisType, Enum),
    *(np.ndarray, np.generic, np.dtype),
)


@dataclass(frozen=True, eq=False)
class Held(Atomic):
    """A default that has no hash, as a static argument: a list, a dict, a slice."""

    value: AnyValue

    def description(self) -> str:
        """Return its name for messages."""
        return describe(self.value)


def with_hash(value: AnyValue) -> object:
    """Return a value as a static argument."""
    try:
        hash(value)
    except TypeError:
        return Held(value)
    return value


def from_static(value: object) -> AnyValue:
    """Return the value in a kernel of a static argument."""
    if isinstance(value, Held):
        return copy(value.value)
    if is_tuple(value) or is_frozenset(value):
        parts = [from_static(each) for each in value]
        if all(map(operator.is_, parts, value)):
            return value
        if value.__class__ is tuple:
            return tuple(parts)
        return frozenset(parts) if value.__class__ is frozenset else PythonObject(value)
    kind = value.__class__
    ours = kind.__module__.startswith(_OURS) and not hasattr(kind, "__pscdsl_definition__")
    known = issubclass(kind, _KNOWN) or (ours and kind is not ElementType)
    return cast("AnyValue", value) if known else PythonObject(value)


def as_static(value: object) -> object:
    """Return the static argument of a value in a kernel."""
    if isinstance(value, PythonObject):
        return value.held
    if value.__class__ is tuple and is_tuple(value):
        return tuple(map(as_static, value))
    if value.__class__ is frozenset and is_frozenset(value):
        return frozenset(map(as_static, value))
    return value


Simple: TypeAlias = (
    Value
    | Weak
    | Dim
    | Undecided
    | DType
    | DTypeClass
    | Atomic
    | int
    | float
    | complex
    | str
    | bytes
    | range
    | slice
    | EllipsisType
    | np.ndarray
    | np.generic
    | np.dtype
    | None
)
"""The values without parts."""


@dataclass(frozen=True)
class EnumMember:
    """A member of an enumeration, read from its source; of a loaded one it is Python's own."""

    owner: str
    """The qualified name of the enumeration."""
    name: str
    value: AnyValue = field(compare=False)
    alone: bool = field(default=True, compare=False)
    """Whether it is equal to nothing but itself; members of an `IntEnum` are integers, too."""

    def __repr__(self) -> str:
        return f"{self.owner.rpartition('.')[2]}.{self.name}"

    def description(self) -> str:
        """Return its name for messages."""
        return f"`{self!r}`"


PYTHON_DTYPES: Final = {
    "builtins.bool": BOOL,
    "builtins.int": I64,
    "builtins.float": F64,
    "builtins.complex": C128,
}
"""NumPy's dtypes for Python's types."""


@dataclass(frozen=True)
class StaticFunction(Applicable):
    """A Python function over static values and trees: `len`, `functools.partial`."""

    name: str
    body: Callable[..., AnyValue]

    def apply(
        self, here: Builder, args: Sequence[AnyValue], kwargs: Mapping[str, AnyValue]
    ) -> AnyValue:
        """Call it; an exception of Python's for bad arguments becomes a finding."""
        try:
            return self.body(here, *args, **kwargs)
        except (TypeError, ValueError, ArithmeticError, LookupError):
            name = self.name.removeprefix("builtins.")
            problem = self._misfit(args, kwargs)
            raise Failure(BadArguments(function=name, problem=problem)) from None

    def _misfit(self, args: Sequence[AnyValue], kwargs: Mapping[str, AnyValue]) -> str:
        """Return why it does not take some arguments, without internal names."""
        try:
            inspect.signature(self.body).bind(None, *args, **kwargs)
        except TypeError as error:
            return str(error)
        return not_taken(args, kwargs)


class Given(Enum):
    """The treatment of arguments by a Python function."""

    HELD = "it may hold them, or hand them on"
    READ = "it reads them, and returns what nobody else holds"
    FOLLOWED = "it hands them on, as the interpreter follows"


@dataclass(frozen=True)
class Builtin(StaticFunction):
    """A function of Python's: CPython's own on closed values, and a rule for others."""

    consumes: bool = False
    """Whether it consumes its arguments immediately and keeps none of them."""
    given: Given = Given.HELD
    makes_container: bool = False
    """Whether it makes a new list, dict or set."""


PLACEHOLDER: Final = Marker("functools.Placeholder")
"""The place in a `functools.partial` for an argument of the call, from Python 3.14 on."""


def is_placeholder(value: Place) -> bool:
    """Return whether a value is `functools.Placeholder`."""
    return isinstance(value, Marker) and value == PLACEHOLDER


@dataclass(frozen=True)
class Partial(Applicable):
    """A function with some of its arguments given."""

    function: Applicable
    args: tuple[AnyValue, ...]
    kwargs: Mapping[str, AnyValue]

    def apply(
        self, here: Builder, args: Sequence[AnyValue], kwargs: Mapping[str, AnyValue]
    ) -> AnyValue:
        """Call with all arguments, the first of them in the places that are left open."""
        due = list(args)
        places = sum(map(is_placeholder, self.args))
        if places > len(due):
            problem = f"takes at least {places} arguments by position, for its placeholders"
            raise Failure(BadArguments(function="functools.partial", problem=problem))
        given = [due.pop(0) if is_placeholder(each) else each for each in self.args]
        return self.function.apply(here, (*given, *due), {**self.kwargs, **kwargs})

    def holds(self) -> Sequence[AnyValue]:
        """Return the function and its arguments."""
        return self.function, *self.args, *self.kwargs.values()

    def description(self) -> str:
        """Return its name for messages."""
        return f"a `functools.partial` of {describe(self.function)}"


@dataclass(frozen=True, eq=False)
class RecordValue(Open):
    """An instance of a record class."""

    cls: RecordClass
    fields: Mapping[str, AnyValue]

    @property
    def name(self) -> RecordName:
        """The qualified name of the class."""
        return self.cls.name

    def description(self) -> str:
        """Return its name for messages."""
        return f"a record of the class `{self.cls.title}`"


@dataclass(frozen=True, eq=False)
class MapValue(Open):
    """A pyrsistent map with string keys."""

    kind: ClassVar = MapType
    items: Mapping[str, AnyValue]

    def description(self) -> str:
        """Return its name for messages."""
        return "a PMap"


@dataclass(frozen=True, eq=False)
class VectorValue(Open):
    """A pyrsistent vector."""

    kind: ClassVar = VectorType
    items: tuple[AnyValue, ...]

    def description(self) -> str:
        """Return its name for messages."""
        return "a PVector"


class Once(Open):
    """An iterator that can be consumed once: a generator, or the result of `zip` or `map`.

    Python computes the items of a `lazy` one during iteration, with the bindings at that time. Here
    they are computed where the iterator is created, so it must be consumed there: it gets no name
    and does not escape otherwise.
    """

    def __init__(self, kind: str, items: Sequence[AnyValue], *, lazy: bool = False) -> None:
        self.kind = kind
        self.lazy = lazy
        self.sources: tuple[tuple[Container, int, bool], ...] = ()
        """The containers that it reads, when they were changed last, and whether in their order."""
        self._items: Sequence[AnyValue] | None = items

    def description(self) -> str:
        """Return its name for messages."""
        return self.kind

    def items(self) -> Sequence[AnyValue]:
        """Return the remaining items without consuming them."""
        return self._items or ()

    def replace(self, items: Sequence[AnyValue]) -> None:
        """Take other items in the place of those that are left."""
        if self._items is not None:
            self._items = items

    def require_current(self) -> None:
        """Raise a Failure if a container that it reads was changed since."""
        if any(container.stamp != stamp for container, stamp, _ in self.sources):
            raise Failure(StaleView(by=self.kind, items=True))

    def take(self) -> Sequence[AnyValue]:
        """Consume the items; a Failure if they were consumed before."""
        self.require_current()
        items, self._items = self._items, None
        if items is None:
            raise Failure(IteratorUsed(kind=self.kind))
        return items


class View(Once):
    """The keys, values or items of a dict, which can be iterated repeatedly; not a list."""

    def take(self) -> Sequence[AnyValue]:
        """Return the items."""
        self.require_current()
        return self._items or ()


class UnorderedView(View):
    """The keys, values or items of a map without an order."""

    def take(self) -> Sequence[AnyValue]:
        """Raise a Failure."""
        raise Failure(SetOrder(kind="a PMap"))

    def in_any_order(self) -> Sequence[AnyValue]:
        """Consume the items, for a caller that ignores their order."""
        return self._items or ()


def is_traced(value: Binding | Missing) -> TypeIs[Array]:
    """Return whether this is an array of the program."""
    return isinstance(value, (Value, Weak))


_NUMBERS = (Value, Weak, bool, int, float, complex, Dim, np.ndarray, np.generic)


def is_number(value: Binding) -> TypeIs[NumericValue]:
    """Return whether this can be used as an array."""
    return isinstance(value, _NUMBERS)


def tree_parts(value: Binding | Missing) -> Sequence[Place] | None:
    """Return the items of a container, maps in the order of their keys; None for anything else."""
    if is_sequence(value):
        return value
    if is_dict(value):
        return [*value.values()]
    if isinstance(value, RecordValue):
        return [*value.fields.values()]
    if isinstance(value, MapValue):
        return [value.items[key] for key in sorted(value.items)]
    return value.items if isinstance(value, VectorValue) else None


def with_tree_parts(value: AnyValue, parts: Sequence[AnyValue]) -> AnyValue:
    """Return a container of the same kind and keys that holds other parts."""
    if is_sequence(value):
        return list(parts) if isinstance(value, list) else tuple(parts)
    if is_dict(value):
        return dict(zip(value, parts, strict=True))
    if isinstance(value, RecordValue):
        return RecordValue(value.cls, dict(zip(value.fields, parts, strict=True)))
    if isinstance(value, MapValue):
        return MapValue(dict(zip(sorted(value.items), parts, strict=True)))
    assert isinstance(value, VectorValue)
    return VectorValue(tuple(parts))


def value_kind(value: Binding | Missing) -> ContainerKind | None:
    """Return the kind of a container that is no record; None for anything else."""
    if isinstance(value, list):
        return ListType
    if isinstance(value, tuple):
        return TupleType
    if isinstance(value, dict):
        return DictType
    return value.kind if isinstance(value, MapValue | VectorValue) else None


def container_value(
    kind: ContainerKind, keys: tuple[Any, ...], parts: Iterable[AnyValue]
) -> AnyValue:
    """Return a container of a kind from what its `apart` gives."""
    if kind is MapType:
        return MapValue(dict(zip(map(str, keys), parts, strict=True)))
    return VectorValue(tuple(parts)) if kind is VectorType else kind.made(keys, parts)


def is_poisoned(value: Binding | Missing) -> bool:
    """Return whether an error was reported in this or in a part of it."""
    if isinstance(value, (Value, Weak)):  # the most frequent case, for every value
        return False
    return isinstance(value, Poison) or any(map(is_poisoned, tree_parts(value) or ()))


def without_poison(value: AnyValue, unknown: External) -> AnyValue:
    """Return a value with something that is not known wherever an error was found."""
    if not is_poisoned(value):
        return value
    parts = tree_parts(value)
    if parts is None:
        return unknown
    return with_tree_parts(value, [without_poison(part, unknown) for part in parts])


def is_plain(value: Place) -> bool:
    """Return whether a value's text is the same in a check and in a run of the program."""
    return value is None or isinstance(value, str | bool | int | float | complex)


def is_type(value: Place) -> bool:
    """Return whether a value names a type, and has no effect as an annotation."""
    from pscdsl._src.frontend.annotations import TypeVariable  # which are values
    from pscdsl._src.frontend.interpreter.records import RecordClass  # which are values

    kinds = (Marker, StaticFunction, Alias, RecordClass, TypeVariable, DType, DTypeClass)
    return value is None or isinstance(value, kinds)


# The amount of static data in a value, which bounds the memory and the time of a check.


MAX_ITEMS = 100_000
"""No static value holds more items or characters."""
MAX_BITS = 4096
"""No static integer is longer."""
_WIDE = re.compile(r"[0-9]{6}")


def weight(value: Place) -> int:
    """Return the number of items and characters in a value; shared parts count at each place.

    Sharing makes a value that is small in memory and endless to walk through, so the count ends
    soon after MAX_ITEMS.
    """
    total = 0
    due: list[Place] = [value]
    while due and total <= MAX_ITEMS:
        each = due.pop()
        total += 1
        if isinstance(each, str | bytes):
            total += len(each)
            continue
        items = tree_parts(each) or ()
        if is_dict(each):
            items = [*each, *items]
        if total + len(due) + len(items) > MAX_ITEMS + 1:
            return MAX_ITEMS + 2
        due.extend(items)
    return total - 1


def require_small(value: Place) -> int:
    """Return the weight of a value; a Failure if it is too large."""
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise Failure(TooLarge(what=f"an integer of more than {MAX_BITS} bits"))
    found = weight(value)
    if found > MAX_ITEMS:
        kind = "a text" if isinstance(value, str | bytes) else "a value"
        unit = "characters" if isinstance(value, str | bytes) else "items"
        raise Failure(TooLarge(what=f"{kind} of more than {MAX_ITEMS} {unit}"))
    return found


def require_narrow(spec: str) -> None:
    """Raise a Failure if a format asks for a text that is too long."""
    if _WIDE.search(spec):
        raise Failure(TooLarge(what=f"a text of more than {MAX_ITEMS} characters"))


def require_short(
    name: str, text: str, args: Sequence[AnyValue], kwargs: Mapping[str, AnyValue]
) -> None:
    """Raise a Failure if a method of a string would make a text that is too long."""
    length = len(text)
    match name, args:
        case "join", [items, *_] if isinstance(items, str) or is_sequence(items) or is_dict(items):
            length = len(items) * length + sum(len(str(item)) for item in items)
        case "replace", [str() as old, str() as new, *_]:
            length += (text.count(old) if old else length + 1) * len(new)
        case "format" | "%", _:
            given = [*args, *kwargs.values()]
            nested = (name == "%" and "*" in text) or re.search(r"\{[^{}]*\{", text) is not None
            wide = nested and any(isinstance(x, int) and abs(x) > MAX_ITEMS for x in given)
            length += MAX_ITEMS if wide or _WIDE.search(text) else sum(map(weight, given))
        case _:
            pass
    if length > MAX_ITEMS:
        raise Failure(TooLarge(what=f"a text of more than {MAX_ITEMS} characters"))
