"""Python's own functions over static values: builtins, functools, dataclasses, operator, math.

For closed values a function of the table is CPython's (see `purity`); for others it has a rule that
gives the exact result, or refuses. A rule has the parameters of the real function.
"""

from __future__ import annotations

import ast
import functools
import itertools
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeGuard

import numpy

from pscdsl._src.frontend.interpreter import counters, operators, python_numbers
from pscdsl._src.frontend.interpreter.calls import invoke
from pscdsl._src.frontend.interpreter.equality import (
    ABSENT,
    Absent,
    Table,
    is_key,
    isinstance_,
    meant,
)
from pscdsl._src.frontend.interpreter.frames import Frame, NoProgram, require_program, session_of
from pscdsl._src.frontend.interpreter.functions import Closure, items_of
from pscdsl._src.frontend.interpreter.iteration import (
    Generated,
    Long,
    backwards,
    counted_range,
    is_lazy,
    iterated,
    numbered,
    side_by_side,
)
from pscdsl._src.frontend.interpreter.operators import subscript
from pscdsl._src.frontend.interpreter.places import apply_numpy
from pscdsl._src.frontend.interpreter.python_numbers import numpy_function
from pscdsl._src.frontend.interpreter.records import RecordClass, as_function, replaced
from pscdsl._src.frontend.purity import (
    Sets,
    by_python,
    external_call,
    external_value,
    holds_arrays,
    is_closed,
    is_mutable,
    is_set,
    refused,
    require_closed,
)
from pscdsl._src.frontend.size_numbers import (
    DOMAINS,
    Bounds,
    Find,
    Number,
    absolute,
    applied,
    bounds_of,
    is_inside,
)
from pscdsl._src.frontend.text.source import Source
from pscdsl._src.frontend.trees import condition
from pscdsl._src.frontend.values import (
    PLACEHOLDER,
    AnyValue,
    Applicable,
    Array,
    Builtin,
    CPythonFunction,
    External,
    Given,
    MapValue,
    Marker,
    NumericValue,
    Once,
    Partial,
    Poisoned,
    RecordValue,
    StaticFunction,
    Undecided,
    UnorderedView,
    VectorValue,
    describe,
    is_placeholder,
    is_poisoned,
    is_traced,
    require_short,
)
from pscdsl._src.ir.builder import Builder, PythonNumber, Value, Weak, may_be_array, note_array
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl._src.primitives import elementwise
from pscdsl.numpy.shorthand import cast
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.element_types import ScalarDoesNotFit
from pscdsl.typing.codes.language import (
    LOOPS,
    ArrayLeavesProgram,
    BadArguments,
    NotCallable,
    NotStatic,
)
from pscdsl.typing.codes.language_evaluation import TooLarge
from pscdsl.typing.codes.purity import SetOrder
from pscdsl.typing.codes.shapes import UnprovenSize
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, maximum, minimum
from pscdsl.typing.dtypes import BOOL, F64, DType, Kind
from pscdsl.typing.python_containers import (
    is_constant,
    is_dict,
    is_known_array,
    is_scalar,
    is_sequence,
)

Rule = Callable[..., AnyValue]
"""The result of a function for values that are not closed: `(here, *arguments)`."""


@dataclass(frozen=True)
class Entry:
    """A Python function."""

    rule: Rule
    real: CPythonFunction | None = None
    """CPython's function, for closed arguments; None if the rule covers them, too."""
    consumes: bool = False
    """Whether it consumes its arguments immediately, so that a generator may be among them."""
    sets: Sets = Sets.DECIDE
    given: Given = Given.HELD
    makes_container: bool = False


_reading: Final = functools.partial(Entry, given=Given.READ)
_following: Final = functools.partial(Entry, given=Given.FOLLOWED)


def _body(name: str, entry: Entry) -> Rule:
    real = entry.real
    if real is None:
        return entry.rule

    @functools.wraps(entry.rule)  # messages name its parameters
    def apply(here: Builder, *args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        alone = len(args) == 1 or name not in ("builtins.max", "builtins.min", "max", "min")
        taken = [*map(_taken, args[:1]), *args[1:]] if entry.consumes and alone else args
        if all(map(is_closed, (*taken, *kwargs.values()))):
            found: AnyValue = by_python(name, real, taken, kwargs, sets=entry.sets)
            return found
        return entry.rule(here, *taken, **kwargs)

    return apply


def _taken(value: AnyValue) -> AnyValue:
    """Return the remaining items of an iterator as a tuple; other values as given."""
    if isinstance(value, Once) and not isinstance(value, UnorderedView):
        return tuple(value.take())
    return value


def call(here: Builder, function: AnyValue, *args: AnyValue, **kwargs: AnyValue) -> AnyValue:
    function = as_function(function)
    if not isinstance(function, Applicable):
        raise Failure(NotCallable(found=describe(function)))
    return function.apply(here, args, kwargs)


def _refuse_arrays(name: str, rewrite: str, *values: AnyValue) -> None:
    """Refuse arrays among some values, and in sequences among them."""
    for value in values:
        for each in (value, *(value if is_sequence(value) else ())):
            if is_traced(each) or is_known_array(each):
                raise _leaving(name, each, rewrite)


def _leaving(name: str, array: AnyValue, rewrite: str) -> Failure:
    """Return the refusal to read the value of an array, or of a number without a dtype."""
    if isinstance(array, Weak) and not array.ndim:
        return Failure(NotStatic(what=f"the number that `{name}` is given"))
    return Failure(ArrayLeavesProgram(function=name, rewrite=rewrite))


def _needs_number(name: str, x: AnyValue, rewrite: str) -> Failure:
    """Return the refusal of an array, or of an unsuitable scalar, in place of a number."""
    given = f"one number, and is given an array ({describe(x)})"
    if is_traced(x) and not x.ndim:
        unsigned = x.dtype.is_unsigned
        given = f"a {'signed' if unsigned else 'real'} number, and is given {x.type}"
        rewrite = "`x.astype(np.int64)`" if unsigned else "`x.real`"
    return Failure(ArrayLeavesProgram(function=name, rewrite=rewrite, given=given))


def _len(here: Builder, obj: AnyValue, /) -> AnyValue:
    if isinstance(obj, Once):
        raise Failure(BadArguments(function="len", problem=f"of {obj.kind}, use a list"))
    if isinstance(obj, Long):
        return obj.length
    if is_traced(obj):
        if not obj.ndim:
            raise Failure(BadArguments(function="len", problem="of an array without axes"))
        return obj.shape[0]
    if (is_known_array(obj) and obj.ndim) or is_set(obj):
        return len(obj)
    if isinstance(obj, MapValue):
        return len(obj.items)
    if isinstance(obj, RecordValue):
        obj.cls.refuse_special("__len__")
    return len(items_of(obj))


def _range(here: Builder, *bounds: AnyValue) -> AnyValue:
    if not isinstance(here, NoProgram) and not all(map(is_closed, bounds)):
        found = counted_range(here, bounds)
        if found is not None:
            if any(map(python_numbers.is_number, bounds)):
                session_of(here).counts_given = True
            return found
    for bound in bounds:
        if is_traced(bound):
            raise Failure(
                ArrayLeavesProgram(
                    function="range", rewrite="`psc.fori_loop(low, high, body, init)`"
                )
            )
        if isinstance(bound, Dim):
            raise Failure(NotStatic(what=f"the size {bound} in a loop", rewrite=LOOPS))
    raise refused("`range`", *bounds)


def _enumerate(here: Builder, iterable: AnyValue, start: AnyValue = 0) -> AnyValue:
    require_closed("the `start` of `enumerate`", start)
    if not isinstance(start, int):
        raise Failure(BadArguments(function="enumerate", problem="starts from an integer"))
    counted = iterated(iterable)
    if counted is not None:
        return numbered(counted, start)
    items, lazy = items_of(iterable), is_lazy(iterable)
    return Once("an enumeration", list(enumerate(items, start)), lazy=lazy)


def _closed_truth(what: str, value: AnyValue) -> bool:
    require_closed(what, value)
    return bool(value)


def _zip(here: Builder, *iterables: AnyValue, strict: AnyValue = False) -> AnyValue:
    strict = _closed_truth("the `strict` of `zip`", strict)
    counted = [iterated(iterable) for iterable in iterables]
    if any(rows is not None for rows in counted):
        pairs = zip(iterables, counted, strict=True)
        return side_by_side(here, [items_of(x) if rows is None else rows for x, rows in pairs])
    columns = [items_of(iterable) for iterable in iterables]
    if strict and len({len(column) for column in columns}) > 1:
        raise Failure(BadArguments(function="zip", problem="got sequences of different lengths"))
    return Once("a `zip`", list(zip(*columns, strict=False)), lazy=is_lazy(*iterables))


def _reversed(here: Builder, sequence: AnyValue, /) -> AnyValue:
    if isinstance(sequence, Once):
        problem = f"of {sequence.kind}, use a list"
        raise Failure(BadArguments(function="reversed", problem=problem))
    counted = iterated(sequence)
    if counted is not None:
        return backwards(counted)
    known = isinstance(sequence, str | range | VectorValue) or (
        isinstance(sequence, RecordClass) and sequence.enumeration
    )
    if not (known or is_sequence(sequence) or is_dict(sequence)):
        raise Failure(NotStatic(what=f"the reverse of {describe(sequence)}"))
    return Once("the iterator of `reversed`", list(items_of(sequence))[::-1])


def _map(
    here: Builder, func: AnyValue, /, *iterables: AnyValue, strict: AnyValue = False
) -> AnyValue:
    if not iterables:
        raise Failure(BadArguments(function="map", problem="takes a function and its arguments"))
    strict = _closed_truth("the `strict` of `map`", strict)
    lazy = _reads_names(func) or is_lazy(*iterables)
    columns = [items_of(iterable) for iterable in iterables]
    if strict and len({len(column) for column in columns}) > 1:
        raise Failure(BadArguments(function="map", problem="got sequences of different lengths"))
    rows = zip(*columns, strict=False)
    return Once("a `map`", [call(here, func, *row) for row in rows], lazy=lazy)


def _filter(here: Builder, function: AnyValue, iterable: AnyValue, /) -> AnyValue:
    kept = [item for item in items_of(iterable) if _holds(here, function, item)]
    lazy = _reads_names(function) or is_lazy(iterable)
    return Once("a `filter`", kept, lazy=lazy)


def _reads_names(function: AnyValue) -> bool:
    """Return whether a function's results may depend on names that are rebound later."""
    if isinstance(function, Closure):
        return function.outer is not None
    return not (function is None or isinstance(function, StaticFunction | Meaning))


def _holds(here: Builder, function: AnyValue, item: AnyValue) -> bool:
    frame = frame_of(here)
    value = item if function is None else call(here, function, item)
    found = operators.static_truth(value, operators.decider(frame))
    if isinstance(found, Undecided):
        raise Failure(operators.undecided(operators.known_facts(frame), found))
    return found


def _sum(here: Builder, iterable: AnyValue, /, start: AnyValue = 0) -> AnyValue:
    if isinstance(iterable, Long | Generated):
        iterable = iterable.array()
    if is_traced(iterable):
        return _sum_of_array(here, iterable, start)
    items = items_of(iterable)
    if any(map(is_poisoned, items)):
        raise Poisoned
    if isinstance(start, str | bytes):
        raise Failure(BadArguments(function="sum", problem="does not add up texts"))
    total: AnyValue = start
    frame = frame_of(here)
    for item in items:
        first = isinstance(total, int) and total == 0
        if first and is_traced(item) and item.dtype.name != "bool":
            total = item  # adding 0 changes neither the value nor the dtype
        else:
            total = operators.binary(frame, NO_NODE, "Add", total, item)
    return total


def _sum_of_array(here: Builder, array: Array, start: AnyValue) -> Array:
    """Return `0 + x[0] + x[1] + …` as NumPy's sum, if both add in the same dtype."""
    dtype = array.dtype
    if start.__class__ is not int or start != 0:
        rewrite = f"`start + {array.type.dtype}_array.sum(axis=0)`"
        raise Failure(NotStatic(what="`sum` of an array with a start", rewrite=rewrite))
    if dtype.name == "bool" or dtype.bits < 32:
        raise Failure(NotStatic(what=f"`sum` of an array of {dtype}", rewrite="x.sum(axis=0)"))
    return apply_numpy(here, "sum", array, axis=0)


class _Unwritten(Source):
    """The source of nodes that a library function applies, which are in no file."""

    def text_of(self, node: ast.AST) -> str:
        """Return the text of a node."""
        return ast.unparse(node)


_UNWRITTEN: Final = _Unwritten("", "")


class _Here(Frame):
    """A frame that appends equations where the library function was called."""

    def here(self, node: ast.AST) -> Builder:
        program = self.session.program
        return NoProgram(self.session) if program is None else program.current


NO_NODE: Final = ast.Pass()
"""The node of an operation of a library function."""


def frame_of(here: Builder) -> Frame:
    return _Here(session_of(here), _UNWRITTEN, None)  # type: ignore[arg-type]


def _keys(here: Builder, name: str, key: AnyValue, items: Sequence[AnyValue]) -> list[AnyValue]:
    """Return the results of a `key` function, closed values that CPython compares."""
    keys = list(items) if key is None else [call(here, key, item) for item in items]
    _refuse_arrays(name, "", keys)
    require_closed(f"the order in which `{name}` puts its items", *keys)
    return keys


def _extremum(name: str, real: Callable[..., int]) -> Rule:
    def apply(
        here: Builder, *values: AnyValue, key: AnyValue = None, default: AnyValue | Absent = ABSENT
    ) -> AnyValue:
        if len(values) == 1 and is_traced(values[0]):
            raise Failure(ArrayLeavesProgram(function=name, rewrite=f"`x.{name}()`"))
        if not values or (len(values) > 1 and not isinstance(default, Absent)):
            raise Failure(BadArguments(function=name, problem="takes items, or a `default` of one"))
        items = items_of(values[0]) if len(values) == 1 else values
        if not items:
            if isinstance(default, Absent):
                raise Failure(BadArguments(function=name, problem="is given nothing"))
            return default
        found = python_numbers.extremum(here, name, items) if key is None else None
        if found is not None:
            return found
        if key is None and len(values) > 1 and _are_scalars(values):
            furthest = python_numbers.furthest(here, name, values)
            found = counters.extremum(here.program, name, values, furthest)
            is_array = any(map(may_be_array, values))
            return note_array(found) if is_array and is_traced(found) else found
        if key is None:
            rewrite = f"`np.{name}imum(a, b)`, or `np.{name}(x)` over an axis"
            _refuse_arrays(name, rewrite, list(items))
        sizes = [x for x in items if isinstance(x, int | Dim) and x.__class__ in (int, Dim)]
        if key is None and len(sizes) == len(items):
            return functools.reduce(minimum if name == "min" else maximum, sizes)
        keys = _keys(here, name, key, items)
        return items[by_python(name, real, (range(len(items)),), {"key": keys.__getitem__})]

    return apply


def _are_scalars(values: Sequence[AnyValue]) -> TypeGuard[Sequence[NumericValue]]:
    """Return whether all values are numbers, and some are computed by the program."""
    return any(is_traced(each) for each in values) and all(
        isinstance(each, int | float | Dim) or (is_traced(each) and not each.ndim)
        for each in values
    )


def _sorted(
    here: Builder, iterable: AnyValue, /, *, key: AnyValue = None, reverse: AnyValue = False
) -> AnyValue:
    require_closed("the `reverse` of `sorted`", reverse)
    if isinstance(iterable, UnorderedView | MapValue):
        return _sorted_map(iterable, key, reverse)
    items = items_of(iterable)
    if key is None:
        _refuse_arrays("sorted", "`np.sort(x)`", list(items))
    keys = _keys(here, "sorted", key, items)
    options = {"key": keys.__getitem__, "reverse": reverse}
    real: Callable[..., list[int]] = sorted
    return [items[i] for i in by_python("sorted", real, (range(len(items)),), options)]


def _sorted_map(value: UnorderedView | MapValue, key: AnyValue, reverse: AnyValue) -> AnyValue:
    """Sort the keys, values or items of a map, which have no order themselves."""
    items = list(value.items if isinstance(value, MapValue) else value.in_any_order())
    require_closed("what `sorted` compares", *items)
    found: list[AnyValue] = by_python("sorted", sorted, (items,), {"reverse": reverse})
    ties = any(a == b for a, b in itertools.pairwise(found))
    if key is not None or ties:
        raise Failure(SetOrder(kind="a PMap"))
    return found


def _truths(name: str) -> Rule:
    def apply(here: Builder, iterable: AnyValue, /) -> AnyValue:
        if isinstance(iterable, Long | Generated):
            items = iterable.array()
            if isinstance(items, Value) and items.ndim == 1 and items.dtype is BOOL:
                return apply_numpy(here, name, items)
        _refuse_arrays(name, f"`np.{name}(x)`", iterable)
        decide = operators.decider(frame_of(here))
        for each in items_of(iterable):
            found = operators.static_truth(each, decide)
            if isinstance(found, Undecided):
                raise Failure(NotStatic(what=f"`{name}` of conditions on sizes"))
            if found is (name == "any"):
                return found
        return name == "all"

    return apply


def _abs(here: Builder, x: AnyValue, /) -> AnyValue:
    if isinstance(x, Dim):
        require_program(here, "`abs` of a size")
        if here.facts.proves(Fact("<=", 0, x)):
            return x
        raise Failure(NotStatic(what=f"the sign of {x}"))
    if isinstance(x, Number) and x.kind is not Kind.BOOL:
        return operators.bounded(apply_numpy(here, "absolute", x), absolute(x.bounds))
    if python_numbers.is_number(x):
        return apply_numpy(here, "absolute", python_numbers.whole(x))
    if (is_traced(x) and not isinstance(x, Number)) or is_constant(x):
        size: AnyValue = invoke(frame_of(here), here, numpy_function("absolute"), (x,), {})
        return size
    raise refused("`abs`", x)


MAX_DIGITS = 10_000
"""The limit on the digits of `round`, whose time grows with their number."""


def _rounded(number: float, ndigits: int | None = None) -> AnyValue:
    """Return CPython's `round` to a bounded number of digits."""
    if isinstance(ndigits, int) and abs(ndigits) > MAX_DIGITS:
        raise Failure(TooLarge(what=f"a number of more than {MAX_DIGITS} digits"))
    return round(number) if ndigits is None else round(number, ndigits)


_rounded.__qualname__ = "round"  # the name in messages


def _round(here: Builder, number: AnyValue, ndigits: AnyValue = None) -> AnyValue:
    if isinstance(number, Number) and ndigits is None:
        return _integer(here, "rint", number)
    scalar = python_numbers.real_number(number)
    if scalar is not None and ndigits is None:
        return python_numbers.integer_of("rint", scalar)
    if isinstance(number, Dim) and ndigits is None:
        return number
    rewrite = "`np.round(x, digits)`"
    if isinstance(number, Number) or python_numbers.is_number(number):
        # Python rounds the exact number to digits, and NumPy rounds a product.
        raise Failure(NotStatic(what=f"{describe(number)} in decimal digits", rewrite=rewrite))
    if is_traced(number) and scalar is not None and number.dtype is not BOOL:
        args = number, ndigits
        rounded: AnyValue = invoke(frame_of(here), here, numpy_function("round"), args, {})
        return rounded
    if is_traced(number) or is_known_array(number):
        raise _needs_number("round", number, rewrite)
    raise refused("`round`", number, ndigits)


def _leaves(name: str, x: AnyValue) -> Failure:
    """Return the refusal to convert a value to a Python number."""
    if is_traced(x) or is_known_array(x):
        rewrite = f"take an element, `x[i]`, or all of them: `x.astype({name})`"
        return _needs_number(name, x, rewrite)
    return refused(f"`{name}`", x)


def _int(here: Builder, x: AnyValue = 0, /) -> AnyValue:
    if is_scalar(x):
        return by_python("int", int, (x,))
    if isinstance(x, Dim):
        return x
    if isinstance(x, Undecided):
        x = condition(here, x)
    if isinstance(x, Number):
        size = x.rounded("trunc")
        return _integer(here, "trunc", x) if size is None else size
    number = python_numbers.real_number(x)
    if number is not None:
        return python_numbers.integer_of("trunc", number)
    raise _leaves("int", x)


def _float(here: Builder, x: AnyValue = 0, /) -> AnyValue:
    if is_scalar(x):
        return by_python("float", float, (x,))
    if isinstance(x, Dim):
        return operators.binary(frame_of(here), NO_NODE, "Mult", x, 1.0)
    if isinstance(x, Number) and x.kind is Kind.FLOAT:
        return x
    if isinstance(x, Undecided):
        x = condition(here, x)
    number = python_numbers.real_number(x)
    if number is not None:
        return python_numbers.as_float(number)
    raise _leaves("float", x)


def _bool(here: Builder, x: AnyValue = False, /) -> AnyValue:
    if is_scalar(x):
        return bool(x)
    number = python_numbers.real_number(x)
    if number is not None:
        return python_numbers.truth(here, number)
    if is_traced(x) or is_known_array(x):
        raise _leaves("bool", x)
    return operators.static_truth(x, operators.decider(frame_of(here)))


def _complex(here: Builder, real: AnyValue = 0, imag: AnyValue = 0) -> AnyValue:
    """Return a complex number; it is weak if a size is among known parts."""
    parts = (real, imag)
    if any(python_numbers.real_number(each) is not None for each in parts):
        return python_numbers.complex_of(here, *parts)
    for each in parts:
        if not isinstance(each, Dim | int | float | complex):
            raise _leaves("complex", each)
    frame = frame_of(here)
    turned = operators.binary(frame, NO_NODE, "Mult", imag, 1j)
    return operators.binary(frame, NO_NODE, "Add", real, turned)


def _tuple(here: Builder, iterable: AnyValue = (), /) -> AnyValue:
    return tuple(items_of(iterable))


def _list(here: Builder, iterable: AnyValue = (), /) -> AnyValue:
    return list(items_of(iterable))


def _dict(here: Builder, iterable: AnyValue = (), /, **kwargs: AnyValue) -> dict[Any, AnyValue]:
    table = Table()
    if isinstance(iterable, MapValue):
        table = Table(iterable.items)
    elif is_dict(iterable):
        table = Table(iterable)
    else:
        for pair in items_of(iterable):
            items = items_of(pair)
            if len(items) != 2:
                raise Failure(BadArguments(function="dict", problem="takes pairs"))
            table.put(items[0], items[1])
    return {**table.items, **kwargs}


def _set(kind: type[set[Any] | frozenset[Any]]) -> Rule:
    def apply(here: Builder, iterable: AnyValue = (), /) -> AnyValue:
        from pscdsl._src.frontend.interpreter.expressions import set_of  # avoids an import cycle

        return kind(iterable if is_set(iterable) else set_of(list(items_of(iterable))))

    return apply


def _getattr(
    here: Builder, obj: AnyValue, name: AnyValue, default: AnyValue | Absent = ABSENT, /
) -> AnyValue:
    # The import is here since attributes may be those of this library.
    from pscdsl._src.frontend.interpreter.attributes import attribute

    if not isinstance(name, str):
        raise Failure(NotStatic(what="the attribute that `getattr` reads"))
    if not isinstance(default, Absent) and not (_has(obj, name) or _has_in_jax(here, obj, name)):
        what = f"whether {describe(obj)} has the attribute `{name}`"
        raise Failure(NotStatic(what=what, rewrite="leave the default out"))
    node = ast.Attribute(ast.Name("x", ast.Load()), name, ast.Load())
    frame = frame_of(here)
    for each in session_of(here).live[-1:]:
        frame.scope = each.scope
    found: AnyValue = attribute(frame, node, obj, name)
    return found


def _has(value: AnyValue, name: str) -> bool:
    """Return whether an attribute certainly exists; its absence is never certain."""
    return isinstance(value, RecordValue) and (name in value.fields or name in value.cls.members)


_OF_JAX_ARRAYS: Final = frozenset(
    "addressable_data addressable_shards at aval block_until_ready clone committed "
    "copy_to_host_async delete device_buffer device_buffers devices format global_shards "
    "is_deleted is_fully_addressable is_fully_replicated is_ready on_device_size_in_bytes "
    "platform sharding traceback unsafe_buffer_pointer weak_type".split()
)
"""Attributes of JAX's arrays that NumPy's arrays lack."""
_OF_NUMPY: Final = frozenset(
    "base ctypes data dump dumps fill flags getfield partition put resize setfield setflags "
    "strides tofile".split()
)
"""Attributes of NumPy's arrays that JAX's arrays lack."""


def _has_in_jax(here: Builder, value: AnyValue, name: str) -> bool:
    """Return whether an array of a JAX program has an attribute."""
    if isinstance(here, NoProgram) or here.program.jax is None or not isinstance(value, Value):
        return False
    shared = hasattr(numpy.ndarray, name) and not (name.startswith("_") or name in _OF_NUMPY)
    return shared or name in _OF_JAX_ARRAYS


def _hasattr(here: Builder, obj: AnyValue, name: AnyValue, /) -> bool:
    """Return whether an attribute exists, in a JAX program."""
    if isinstance(here, NoProgram) or here.program.jax is None:
        raise Failure(external_call("builtins.hasattr"))
    if isinstance(name, str) and _has(obj, name):
        assert isinstance(obj, RecordValue)
        if name in obj.fields or obj.cls.members[name].kind != "property":
            return True  # a property might raise an error
    elif isinstance(name, str) and _has_in_jax(here, obj, name):
        return True
    elif isinstance(name, str) and _lacks(here, obj, name):
        return False
    raise Failure(NotStatic(what=f"whether {describe(obj)} has the attribute {describe(name)}"))


def _lacks(here: Builder, value: AnyValue, name: str) -> bool:
    """Return whether an attribute certainly does not exist."""
    if isinstance(value, RecordValue):
        added = name in value.fields or name in session_of(here).added
        return not added and value.cls.lacks(name)
    if name.startswith("_") or not is_traced(value):
        return False
    return not hasattr(numpy.ndarray, name) and name not in _OF_JAX_ARRAYS


def _reduce(
    here: Builder, function: AnyValue, iterable: AnyValue, /, initial: AnyValue | Absent = ABSENT
) -> AnyValue:
    items = list(items_of(iterable))
    if not isinstance(initial, Absent):
        items.insert(0, initial)
    if not items:
        raise Failure(BadArguments(function="functools.reduce", problem="of nothing"))
    return functools.reduce(functools.partial(call, here, function), items)


def _partial(here: Builder, func: AnyValue, /, *args: AnyValue, **keywords: AnyValue) -> AnyValue:
    func = as_function(func)
    if not isinstance(func, Applicable):
        raise Failure(NotCallable(found=describe(func)))
    if any(map(is_placeholder, (*args[-1:], *keywords.values()))):
        problem = "takes `Placeholder` neither as its last argument nor by keyword"
        raise Failure(BadArguments(function="functools.partial", problem=problem))
    return Partial(func, args, keywords)


def _replace(here: Builder, obj: AnyValue, /, **changes: AnyValue) -> AnyValue:
    if not isinstance(obj, RecordValue) or obj.cls.kind not in ("dataclass", "record"):
        raise Failure(BadArguments(function="dataclasses.replace", problem="takes a dataclass"))
    return replaced(here, obj, changes)


def _asdict(here: Builder, obj: AnyValue) -> AnyValue:
    if not isinstance(obj, RecordValue) or obj.cls.kind not in ("dataclass", "record"):
        raise Failure(BadArguments(function="dataclasses.asdict", problem="takes a dataclass"))
    for field in obj.fields.values():
        if isinstance(field, RecordValue | tuple | list | dict):
            what = "`asdict` of a record that holds more than numbers and arrays"
            raise Failure(NotStatic(what=what, rewrite="name the fields"))
    return dict(obj.fields)


def _identity(here: Builder, function: AnyValue, /) -> AnyValue:
    return function


@dataclass(frozen=True, eq=False)
class Cached(Applicable):
    """A function with a cache, whose only effect is to hash the arguments.

    All calls with equal arguments share its results, so they must not be changed; and arguments of
    different types are equal, such as 1 and 1.0, unless the cache is `typed`.
    """

    function: Applicable
    typed: bool = False

    @property
    def name(self) -> str:
        """The name of the function."""
        return str(getattr(self.function, "name", "function"))

    def holds(self) -> Sequence[AnyValue]:
        """Return the function."""
        return (self.function,)

    def apply(
        self, here: Builder, args: Sequence[AnyValue], kwargs: Mapping[str, AnyValue]
    ) -> AnyValue:
        """Call the function; a Failure for arguments that cannot be keys."""
        for each in (*args, *kwargs.values()):
            if not (isinstance(each, Dim | RecordValue) or is_key(meant(each))):
                what = f"{describe(each)} as a key of the cache of `{self.name}`"
                raise Failure(NotStatic(what=what, rewrite="leave the cache out"))
        found = self.function.apply(here, args, kwargs)
        for each in (*args, *kwargs.values()):
            if not self._has_no_equals(each):
                what = f"what the cache of `{self.name}` has for {describe(each)}"
                rewrite = "leave the cache out, or use `functools.lru_cache(typed=True)`"
                raise Failure(NotStatic(what=what, rewrite=rewrite))
        if is_mutable(found) or holds_arrays(found):
            what = f"what all calls of `{self.name}` share, as they have a cache,"
            raise Failure(NotStatic(what=what, rewrite="leave the cache out"))
        return found

    def _has_no_equals(self, key: AnyValue) -> bool:
        """Return whether no key of another type is equal to this one for the cache."""
        if isinstance(key, bool | int | float | complex | Dim):
            return self.typed
        return isinstance(key, str | bytes | DType | Closure) or key is None


def _cache(here: Builder, user_function: AnyValue, /) -> Cached:
    if not isinstance(user_function, Applicable):
        raise Failure(NotCallable(found=describe(user_function)))
    return Cached(user_function)


def _lru_cache(here: Builder, maxsize: AnyValue = 128, typed: AnyValue = False) -> AnyValue:
    if isinstance(maxsize, Applicable):
        return Cached(maxsize)
    is_typed = _closed_truth("the `typed` of `lru_cache`", typed)

    def decorated(here: Builder, function: AnyValue, /) -> AnyValue:
        return replace(_cache(here, function), typed=is_typed)

    return StaticFunction("functools.lru_cache", decorated)


def _wraps(here: Builder, wrapped: AnyValue) -> AnyValue:
    return StaticFunction("functools.wraps", _identity)


def _pmap(here: Builder, initial: AnyValue = None) -> AnyValue:
    if isinstance(initial, MapValue):
        return initial
    items: dict[Any, AnyValue] = {} if initial is None else _dict(here, initial)
    for key in items:
        if not isinstance(key, str):
            raise Failure(NotStatic(what=f"a PMap with the key {describe(key)}"))
    return MapValue(items)


def _pvector(here: Builder, iterable: AnyValue = (), /) -> AnyValue:
    return VectorValue(tuple(items_of(iterable)))


def _m(here: Builder, **items: AnyValue) -> AnyValue:
    return MapValue(items)


def _v(here: Builder, *elements: AnyValue) -> AnyValue:
    return VectorValue(elements)


OTHER_NAMES = {
    **{"pow": "power", "asin": "arcsin", "acos": "arccos", "atan": "arctan"},
    **{"atan2": "arctan2", "fabs": "absolute"},
    **{f"a{name}": f"arc{name}" for name in ("sinh", "cosh", "tanh")},
    **{name: f"pscdsl.special.{name}" for name in ("erf", "erfc", "gamma")},
    "lgamma": "pscdsl.special.gammaln",
}
"""The names of functions of `math` in NumPy, or here."""


def _math(name: str) -> Rule:
    """Return a function of known numbers; for a size, it is NumPy's function of the same name."""
    ours = OTHER_NAMES.get(name, name)

    def apply(here: Builder, *args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        known = f"numpy.{ours}" in MEANINGS
        found = None if kwargs else python_numbers.of_math(here, name, ours, args)
        if found is not None:
            return found
        rewrite = f"`np.{ours}` works on arrays" if known else ""
        _refuse_arrays_but_quotients(f"math.{name}", rewrite, args)
        if len(args) == 1 and not kwargs:
            (x,) = args
            if isinstance(x, Number) and name in ("floor", "ceil"):
                size = x.rounded(name)
                if size is not None:
                    return size
            if isinstance(x, Dim) and name in ("floor", "ceil", "trunc"):
                return x
            if isinstance(x, Dim | Number):
                require_program(here, f"`math.{name}` of a size")
            if isinstance(x, Number) and name in ("floor", "ceil", "trunc"):
                return _integer(here, name, x)
            if isinstance(x, Dim | Number) and name in DOMAINS and known:
                bounds = _within_domain(here, name, x)
                result = apply_numpy(here, ours, x)
                if name in ("log2", "log10"):
                    result = python_numbers.logarithm(here, name, x, result)
                return operators.bounded(result, bounds)
            if isinstance(x, Dim) and name == "isqrt":
                return _root_of_size(here, x)
        raise refused(f"`math.{name}`", *args, *kwargs.values())

    return apply


def _within_domain(here: Builder, name: str, x: Dim | Number) -> Find:
    """Return the bounds of a function of `math`; a Failure if Python may raise."""
    given = bounds_of(here.facts, x)
    assert given is not None
    found = applied(name, getattr(math, name), given)
    if found is not None:
        return found
    if isinstance(x, Number):
        problem = f"may not be defined, where `np.{name}` gives NaN or an infinity"
        raise Failure(BadArguments(function=f"math.{name}", problem=problem))
    domain = DOMAINS[name]
    if given(True).low < domain.low:
        claim = Fact("<=", math.ceil(domain.low), x)
    else:
        claim = Fact("<=", x, math.floor(domain.high))
    raise Failure(UnprovenSize.of(here.facts, f"the number that `math.{name}` is given", claim))


def _refuse_arrays_but_quotients(name: str, rewrite: str, args: Sequence[AnyValue]) -> None:
    for argument in args:
        is_array = is_traced(argument) and python_numbers.real_number(argument) is None
        if is_array or is_known_array(argument):
            raise _needs_number(name, argument, rewrite)


def _root_of_size(here: Builder, size: Dim) -> Number:
    """Return `math.isqrt`, exactly: the f64 root of an integer below 2**52 suffices."""
    if not here.facts.proves(Fact("<=", 0, size)):
        raise Failure(NotStatic(what=f"the sign of {size}"))
    given = bounds_of(here.facts, size)
    assert given is not None

    def root(number: Value) -> Value:
        return elementwise.floor(elementwise.sqrt(number))

    def bounds(tight: bool) -> Bounds:
        low, high = given(tight)
        return Bounds(math.isqrt(max(0, math.floor(low))), math.isqrt(math.ceil(high)))

    return _rounded_number(here, here.weak(size), root, bounds)


_ROUNDINGS: dict[str, Callable[[float], float]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "rint": round,
}
"""The roundings of Python numbers, by the names of NumPy's functions."""


def _integer(here: Builder, rounding: str, x: Number) -> AnyValue:
    """Round a number computed from sizes to an integer as Python does."""
    require_program(here, "an integer made of sizes")
    if x.kind is Kind.INT:
        return x
    if x.kind is not Kind.FLOAT:
        return python_numbers.whole(PythonNumber(x.at(BOOL), adapts=True))
    apply, real = python_numbers.ROUNDINGS[rounding], _ROUNDINGS[rounding]

    def bounds(tight: bool) -> Bounds:
        return Bounds(*(end if math.isinf(end) else real(end) for end in x.bounds(tight)))

    return _rounded_number(here, x, apply, bounds)


def _rounded_number(
    here: Builder, x: Weak, rounded: Callable[[Value], Value], bounds: Find
) -> Number:
    """Return an integer computed in f64 from a number that is computed from sizes."""

    def at(dtype: DType) -> Value:
        narrow = dtype.is_integer and dtype.bits < 32  # larger ones hold sizes
        if narrow and not is_inside(bounds(True), Bounds(*dtype.range)):
            raise Failure(ScalarDoesNotFit(scalar="a number made of sizes", dtype=dtype))
        return cast(rounded(x.at(F64)), dtype)

    return Number(Weak(here, Kind.INT, (), at), bounds)


def _prod(here: Builder, iterable: AnyValue, /, *, start: AnyValue = 1) -> AnyValue:
    if is_traced(iterable) or is_known_array(iterable):
        raise _leaving("math.prod", iterable, "`np.prod(x, axis=0)`")
    total, frame = start, frame_of(here)
    for each in items_of(iterable):
        total = operators.binary(frame, NO_NODE, "Mult", total, each)
    return total


def _large(name: str, real: Callable[..., AnyValue]) -> Callable[..., AnyValue]:
    """Return a function of `math` that refuses arguments with very large results."""
    if name not in ("factorial", "comb", "perm"):
        return real

    def bounded(*args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        if any(isinstance(argument, int) and abs(argument) > 1000 for argument in args):
            raise Failure(TooLarge(what=f"`math.{name}` of numbers above 1000"))
        return real(*args, **kwargs)

    return bounded


def _operator(name: str) -> Rule:
    def apply(here: Builder, a: AnyValue, b: AnyValue, /) -> AnyValue:
        for each in (a, b):
            if isinstance(each, External):
                raise Failure(external_value(each))
        return operators.binary(frame_of(here), NO_NODE, name, a, b)

    return apply


def _pow(here: Builder, base: AnyValue, exp: AnyValue, mod: AnyValue = None) -> AnyValue:
    if mod is None:
        return _operator("Pow")(here, base, exp)
    require_closed("`pow` with three arguments", base, exp, mod)
    return by_python("pow", pow, (base, exp, mod))


def _divmod(here: Builder, x: AnyValue, y: AnyValue, /) -> AnyValue:
    return _operator("FloorDiv")(here, x, y), _operator("Mod")(here, x, y)


_ITEM: Final = ast.Subscript(ast.Name("x", ast.Load()), ast.Name("i", ast.Load()), ast.Load())


def _itemgetter(here: Builder, item: AnyValue, /, *items: AnyValue) -> AnyValue:
    def get(inner: Builder, value: AnyValue, /) -> AnyValue:
        found = [subscript(frame_of(inner), _ITEM, value, index) for index in (item, *items)]
        return tuple(found) if items else found[0]

    return StaticFunction("operator.itemgetter", get)


def _type(here: Builder, obj: AnyValue, /) -> AnyValue:
    if isinstance(obj, RecordValue):
        return obj.cls
    if obj is None:
        return Marker("types.NoneType")
    raise Failure(NotStatic(what=f"the class of {describe(obj)}"))


def _text(name: str) -> Rule:
    def apply(here: Builder, obj: AnyValue = "", /) -> AnyValue:
        if isinstance(obj, RecordValue):
            obj.cls.refuse_special("__str__", "__repr__")
        if isinstance(obj, External):
            raise Failure(external_value(obj))
        return External(f"the text of {describe(obj)}")  # for messages, which are never compared

    return apply


def _format(here: Builder, value: AnyValue, format_spec: AnyValue = "", /) -> AnyValue:
    require_closed("`format`", value, format_spec)
    return by_python("format", _formatted, (value, format_spec))


def _formatted(value: AnyValue, format_spec: str = "", /) -> str:
    require_short("format", f"{{:{format_spec}}}", (value,), {})
    return format(value, format_spec)


def _slice(here: Builder, *args: AnyValue) -> AnyValue:
    if not 1 <= len(args) <= 3:
        raise Failure(BadArguments(function="slice", problem="takes one to three bounds"))
    return slice(*args)


def _cast(here: Builder, typ: AnyValue, val: AnyValue) -> AnyValue:
    return val


def _callable(here: Builder, obj: AnyValue, /) -> bool:
    if isinstance(obj, External):
        raise Failure(external_value(obj))
    if isinstance(obj, RecordValue) and not obj.cls.has_unseen_bases:
        return "__call__" in obj.cls.members
    if is_closed(obj) or is_traced(obj):
        return False
    if isinstance(obj, Applicable):
        return True
    raise refused("whether one can call this", obj)


def _by_name(parameter: str, rule: Rule) -> Rule:
    """Return a rule with a parameter that may be passed by keyword from Python 3.14 on."""
    if sys.version_info >= (3, 14):
        return rule

    @functools.wraps(rule)
    def apply(here: Builder, *args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        if parameter in kwargs:
            function = rule.__name__.lstrip("_")
            problem = f"takes `{parameter}=` from Python 3.14 on"
            raise Failure(BadArguments(function=function, problem=problem))
        return rule(here, *args, **kwargs)

    return apply


FUNCTIONS: dict[str, Entry] = {
    "builtins.len": _reading(_len, sets=Sets.UNORDERED),
    "builtins.range": _reading(_range, range),
    "builtins.enumerate": _following(_enumerate, consumes=True),
    "builtins.zip": _following(_zip, consumes=True),
    "builtins.reversed": _following(_reversed),
    "builtins.map": Entry(_by_name("strict", _map), consumes=True),
    "builtins.filter": Entry(_filter, consumes=True),
    "builtins.sum": _reading(_sum, sum, consumes=True, sets=Sets.SUMMED),
    "builtins.min": _reading(_extremum("min", min), min, consumes=True, sets=Sets.SORTED),
    "builtins.max": _reading(_extremum("max", max), max, consumes=True, sets=Sets.SORTED),
    "builtins.sorted": _reading(
        _sorted, sorted, consumes=True, sets=Sets.SORTED, makes_container=True
    ),
    "builtins.all": _reading(_truths("all"), all, consumes=True, sets=Sets.UNORDERED),
    "builtins.any": _reading(_truths("any"), any, consumes=True, sets=Sets.UNORDERED),
    "builtins.abs": _reading(_abs, abs),
    "builtins.round": _reading(_round, _rounded),
    "builtins.int": _reading(_int, int),
    "builtins.float": _reading(_float, float),
    "builtins.bool": _reading(_bool, bool, sets=Sets.UNORDERED),
    "builtins.complex": _reading(_complex, complex),
    "builtins.tuple": _following(_tuple, tuple, consumes=True),
    "builtins.list": _following(_list, list, consumes=True, makes_container=True),
    "builtins.dict": _following(_dict, dict, consumes=True, makes_container=True),
    "builtins.set": _reading(
        _set(set), set, consumes=True, sets=Sets.UNORDERED, makes_container=True
    ),
    "builtins.frozenset": _reading(_set(frozenset), frozenset, consumes=True, sets=Sets.UNORDERED),
    "builtins.str": Entry(_text("str"), str),
    "builtins.repr": Entry(_text("repr"), repr),
    "builtins.format": Entry(_format),
    "builtins.slice": Entry(_slice),
    "builtins.isinstance": _reading(isinstance_),
    "builtins.callable": Entry(_callable),
    "builtins.getattr": Entry(_getattr),
    "builtins.hasattr": Entry(_hasattr),
    "builtins.type": Entry(_type),
    "builtins.pow": _reading(_pow),
    "builtins.divmod": _reading(_divmod, divmod),
    "functools.partial": Entry(_partial),
    "functools.reduce": Entry(_by_name("initial", _reduce), consumes=True),
    "functools.wraps": Entry(_wraps),
    "functools.cache": Entry(_cache),
    "functools.lru_cache": Entry(_lru_cache),
    "typeguard.typechecked": Entry(_identity),
    "dataclasses.replace": Entry(_replace),
    "dataclasses.asdict": Entry(_asdict),
    "pyrsistent.pmap": Entry(_pmap),
    "pyrsistent.m": Entry(_m),
    "pyrsistent.pvector": Entry(_pvector, consumes=True),
    "pyrsistent.v": Entry(_v),
    "operator.itemgetter": Entry(_itemgetter),
    "typing.cast": Entry(_cast),
    **{
        f"operator.{function}": Entry(_operator(name))
        for function, name in {
            "add": "Add",
            "sub": "Sub",
            "mul": "Mult",
            "truediv": "Div",
            "floordiv": "FloorDiv",
            "mod": "Mod",
            "pow": "Pow",
            "matmul": "MatMult",
            "and_": "BitAnd",
            "or_": "BitOr",
            "xor": "BitXor",
        }.items()
    },
    **{
        f"math.{name}": Entry(_math(name), _large(name, getattr(math, name)))
        for name in dir(math)
        if callable(getattr(math, name)) and not name.startswith("_")
    },
    "math.prod": Entry(_prod, math.prod, consumes=True, sets=Sets.SUMMED),
    "math.fsum": Entry(_math("fsum"), math.fsum, consumes=True),
}


def register() -> None:
    """Register these functions by name."""
    if hasattr(functools, "Placeholder"):
        MEANINGS[PLACEHOLDER.name] = PLACEHOLDER
    for name, entry in FUNCTIONS.items():
        body = _body(name.removeprefix("builtins."), entry)
        MEANINGS[name] = Builtin(name, body, entry.consumes, entry.given, entry.makes_container)
