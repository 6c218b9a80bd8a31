"""Plans of calls: what has to be done to arguments of known classes before C++ runs their program.

A plan belongs to the classes of all leaves of a call, their structure, and its static values. It
holds the places of the leaves that the program takes. What these are was decided once, by the way
through Python; the plan repeats only what depends on their contents.
"""

from __future__ import annotations

import struct
import sys
import threading
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from pscdsl._src.ir.numpy_dtypes import NUMPY
from pscdsl._src.support.tracebacks import shown
from pscdsl._src.xla import binding
from pscdsl._src.xla.binding import NARROW, NUMBERS, Args, Kwargs, bind_arguments
from pscdsl._src.xla.runtime.boot import JAX, ArrayImpl, Aval
from pscdsl._src.xla.runtime.devices import Placement, plain_truths

if TYPE_CHECKING:
    from pscdsl._src.xla.dispatch import BoundExecutable, Dispatcher, MissResult

Values: TypeAlias = Sequence[Any]
Rebuild: TypeAlias = Callable[[Values], tuple[Args, Kwargs]]

SLOW: Final = object()
"""The result of a plan for arguments that it does not fit."""
MISSING: Final = object()
"""The result of a call for which C++ has no program."""

# Note [Numbers of Python]
# `struct` writes numbers in the wanted dtype, rounds as NumPy does, and refuses what the dtype
# cannot hold. It accepts one kind of numbers that we refuse: those above the largest float that
# are rounded down to it. A text with the bits of the largest float goes through Python.

_FORMATS: Final[Mapping[str, str]] = {
    **{"bool": "?", "float32": "f", "float64": "d", "complex64": "ff", "complex128": "dd"},
    **{f"int{bits}": code for bits, code in zip((8, 16, 32, 64), "bhiq", strict=True)},
    **{f"uint{bits}": code for bits, code in zip((8, 16, 32, 64), "BHIQ", strict=True)},
}
_LARGEST: Final = b"\xff\xff\x7f"
"""The bytes that the largest numbers of f32, of both signs, have in common."""
_STATIC: Final = frozenset((bool, int, str))
"""Classes of static values for which equality tells programs apart, if the class is known."""
_LEAVES: Final = frozenset((ArrayImpl, np.ndarray, str, *NUMBERS))
"""Classes of leaves, besides NumPy's scalars."""

HELD_BYTES: Final = 1 << 12
"""The size of the largest arrays that are held."""
HELD_IN_ALL: Final = 1 << 16
"""The most bytes that a plan holds."""
_FIRST_WAIT: Final = 2
_LONGEST_WAIT: Final = 256
_LONGEST_CHAIN: Final = 8
"""The most plans for leaves of the same classes."""


class Held(NamedTuple):
    """Device arrays with the contents of the last calls' arguments; see Note [Held arguments]."""

    texts: Sequence[bytes] | None
    """The numbers as they are written in their dtypes; None if they are not held."""
    groups: Sequence[Any]
    """The device arrays of the groups of numbers."""
    substitutes: Sequence[tuple[int, Any]]
    """The device arrays of single numbers, and of arrays, by their place among the arguments."""
    arrays: Sequence[tuple[int, tuple[int, ...], bytes]]
    """Place, shape and contents of arrays."""


# Note [Held arguments]
# Most numbers and small arrays of the host are the same at the next call. To compare their bytes
# takes a tenth of a transfer. So where all numbers, or an array, were the same in two calls, the
# plan holds device arrays with these contents, and passes them while the contents are the same.
# When they change, they are transferred again, and compared after a number of calls that doubles.


class Plan:
    """The way of arguments of known classes to their program."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        rebuild: Rebuild,
        program: BoundExecutable,
        places: Sequence[int],
        values: Values,
        retire: Callable[[Plan], None],
    ) -> None:
        from pscdsl._src.xla.dispatch import in_cpp

        self._dispatcher, self._rebuild, self._retire = dispatcher, rebuild, retire
        self._given_away = frozenset(dispatcher.given_away(program))
        self._inputs = program.executable.inputs
        self._groups = program.executable.groups
        packed = {at for group in self._groups for at in group}
        self._rest = [at for at in range(len(places)) if at not in packed]
        """The inputs that are no parts of groups, in the order in which they are passed."""
        self._places = tuple(places)
        self._leaves = [values[place] for place in places]
        self._fast, self._alive = in_cpp(dispatcher.name, self._miss)
        self._learning = threading.local()
        self._held: Held | None = None
        self._last: tuple[Sequence[bytes], Mapping[int, bytes]] | None = None
        self._wait = self._backoff = _FIRST_WAIT
        self._numbers = [
            (at, self._rest[at]) for at in range(len(self._rest)) if self._is_number(self._rest[at])
        ]
        """The single numbers: their places among the arguments, and among the inputs."""
        self._holds_numbers = not any(
            self._is_number(at) and at in self._given_away for at in range(len(places))
        ) and bool(self._numbers or self._groups)
        self._holds_arrays = [
            at
            for at, place in enumerate(self._rest)
            if self._leaves[place].__class__ is np.ndarray and place not in self._given_away
        ]
        self.call = self._made_call(values)
        """The call of the program for the leaves of arguments; SLOW if they do not fit."""

    def _is_number(self, at: int) -> bool:
        return self._leaves[at].__class__ not in binding.ARRAYS

    def _made_call(self, values: Values) -> Callable[[Values], Any]:
        leaves = [self._leaves[at] for at in self._rest]
        hosts = tuple(
            [(at, leaf.dtype) for at, leaf in enumerate(leaves) if leaf.__class__ is np.ndarray]
        )
        truths = tuple([at for at, dtype in hosts if dtype == np.bool_])
        dynamic = frozenset(self._places)
        statics = tuple([each for each in enumerate(values) if each[0] not in dynamic])
        pythons = [at for at, source in self._numbers if leaves[at].__class__ in NUMBERS]
        makers = tuple([(at, self._inputs[self._rest[at]].dtype.type) for at in pythons])
        writers = self._writers(pythons)
        packed = tuple([(at, self._inputs[group[0]].dtype) for at, group in enumerate(self._groups)])
        taken = tuple(
            [
                at
                for at, source in enumerate(self._rest)
                if source in self._given_away and leaves[at].__class__ is ArrayImpl
            ]
        )
        is_wide = any(
            self._inputs[at].dtype not in NARROW
            for at, leaf in enumerate(self._leaves)
            if leaf.__class__ is not ArrayImpl
        )
        pick = _picker([self._places[at] for at in self._rest])
        can_hold = self._holds_numbers or bool(self._holds_arrays)
        fast, modules, frombuffer = self._fast, sys.modules, np.frombuffer

        def call(values: Values) -> Any:
            for at, value in statics:
                if values[at] != value:
                    return SLOW
            args = pick(values)
            for at, dtype in hosts:
                if args[at].dtype is not dtype:
                    return SLOW
            if is_wide and JAX in modules:
                return SLOW
            for at in truths:
                args[at] = plain_truths(args[at])
            try:
                texts = [write(values) for write in writers]
            except (struct.error, OverflowError):
                return SLOW
            held = self._held
            if held is not None:
                same = held.texts is None or held.texts == texts
                for at, shape, content in held.arrays:
                    given = args[at]
                    if given.shape != shape or given.tobytes() != content:
                        same = False
                        break
                if not same:
                    held = self._held = self._last = None
                    self._wait = self._backoff = min(2 * self._backoff, _LONGEST_WAIT)
            elif can_hold:
                self._wait -= 1
                if self._wait <= 0:
                    self._consider(args, texts)
            if held is not None:
                for at, array in held.substitutes:
                    args[at] = array
            if held is not None and held.texts is not None:
                args += held.groups
            else:
                for at, make in makers:
                    args[at] = make(args[at])
                for at, dtype in packed:
                    args.append(frombuffer(texts[at], dtype))
            result = fast(*args)
            if result is MISSING:
                result = self._learned(values, args)
            for at in taken:
                if args[at].is_deleted():
                    args[at].delete()
            return result

        return call

    def _writers(self, pythons: Collection[int]) -> Sequence[Callable[[Values], bytes]]:
        """Return functions that write the numbers, of each group, and then the single ones."""
        made: list[Callable[[Values], bytes]] = []
        singles = [source for _, source in self._numbers]
        mine = [self._rest[at] for at in pythons]
        for inputs in (*self._groups, mine, [at for at in singles if at not in mine]):
            if not inputs:
                continue
            pick = _picker([self._places[at] for at in inputs])
            if self._leaves[inputs[0]].__class__ in NUMBERS:
                made.append(_writer(pick, [self._inputs[at].dtype for at in inputs]))
            else:
                made.append(_joiner(pick))
        return made

    # Calls for which C++ has no program yet.

    def _learned(self, values: Values, args: list[Any]) -> Any:
        """Have C++ ask again, with an answer; return the result."""
        self._learning.values = values
        try:
            return self._fast(*args)
        finally:
            self._learning.values = None

    def _miss(self, *args: Any) -> MissResult:
        values = getattr(self._learning, "values", None)
        if values is None:
            return MISSING, None, True
        self._learning.values = None
        program, result, fast = self._dispatcher.planned_answer(*self._rebuild(values), args)
        mine = program.executable
        fits = mine.groups == self._groups and all(
            mine.inputs[at].dtype == self._inputs[at].dtype
            for at, leaf in enumerate(self._leaves)
            if leaf.__class__ is not ArrayImpl
        )
        if fast is None or not fits or self._given_away != {*self._dispatcher.given_away(program)}:
            self._retire(self)
            return result, None, True
        return result, fast, False

    # Held arguments.

    def _consider(self, args: Sequence[Any], texts: Sequence[bytes]) -> None:
        """Hold what is the same as in the last call, or wait longer."""
        total, now = 0, dict[int, bytes]()
        for at in self._holds_arrays:
            if args[at].nbytes <= HELD_BYTES and total + args[at].nbytes <= HELD_IN_ALL:
                total += args[at].nbytes
                now[at] = args[at].tobytes()
        last, self._last = self._last, (texts, now)
        self._wait = 1
        if last is None:
            return
        with_numbers = self._holds_numbers and last[0] == texts
        same = [at for at, content in now.items() if last[1].get(at) == content]
        self._last = None
        if not with_numbers and not same:
            self._wait = self._backoff = min(2 * self._backoff, _LONGEST_WAIT)
            return
        here = self._dispatcher.placement
        groups: list[Any] = []
        substitutes = [(at, here.put(args[at])) for at in same]
        if with_numbers:
            for group, text in zip(self._groups, texts, strict=False):
                groups.append(here.put(np.frombuffer(text, self._inputs[group[0]].dtype)))
            for at, source in self._numbers:
                substitutes.append((at, here.put(args[at], self._inputs[source])))
        self._held = Held(
            texts if with_numbers else None,
            groups,
            substitutes,
            [(at, args[at].shape, now[at]) for at in same],
        )


def _picker(places: Sequence[int]) -> Callable[[Values], list[Any]]:
    """Return a function that makes a list of the values in some places."""
    if not places:
        return lambda values: []
    if len(places) == 1:
        (place,) = places
        return lambda values: [values[place]]
    pick = itemgetter(*places)
    if [*places] == [*range(len(places))]:
        pick = itemgetter(slice(len(places)))
    return lambda values: [*pick(values)]


def _writer(
    pick: Callable[[Values], Sequence[Any]], dtypes: Sequence[np.dtype[Any]]
) -> Callable[[Values], bytes]:
    """Return a function that writes Python's numbers; see Note [Numbers of Python]."""
    pack = struct.Struct("=" + "".join([_FORMATS[dtype.name] for dtype in dtypes])).pack
    is_single = any(dtype.name in ("float32", "complex64") for dtype in dtypes)
    is_complex = any(dtype.kind == "c" for dtype in dtypes)
    kinds = [dtype.kind == "c" for dtype in dtypes]

    def write(values: Values) -> bytes:
        numbers = pick(values)
        if is_complex:
            numbers = [
                part
                for number, whole in zip(numbers, kinds, strict=True)
                for part in ((number.real, number.imag) if whole else (number,))
            ]
        text = pack(*numbers)
        if is_single and _LARGEST in text:
            raise OverflowError
        return text

    return write


def _joiner(pick: Callable[[Values], Sequence[Any]]) -> Callable[[Values], bytes]:
    """Return a function that joins the bytes of NumPy's scalars."""
    return lambda values: b"".join(pick(values))


class Plans:
    """The plans of a dispatcher."""

    def __init__(self, dispatcher: Dispatcher, slow: Callable[..., Any]) -> None:
        self._dispatcher, self._slow = dispatcher, slow
        self._chains: dict[Hashable, list[Callable[[Values], Any]] | None] = {}
        """The plans by classes of leaves, and structure if there is any; None: see there."""
        self._tries: dict[Hashable, int] = {}
        self.entry = self._made_entry()

    def clear(self) -> None:
        """Forget all plans."""
        self._chains.clear()
        self._tries.clear()

    def _made_entry(self) -> Callable[..., Any]:
        chains, flatten, slow = self._chains, binding.registry.flatten, self._planning

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                if kwargs:
                    values: Values = (*args, *kwargs.values())
                    key: Hashable = (len(args), *kwargs, *map(type, values))
                else:
                    values, key = args, tuple(map(type, args))
                chain = chains.get(key, ())
                if chain is None:
                    values, structure = flatten((args, kwargs))
                    key = structure, tuple(map(type, values))
                    chain = chains.get(key, ())
                for planned in chain:  # type: ignore[union-attr]
                    result = planned(values)
                    if result is not SLOW:
                        return result
                return slow(args, kwargs, key)
            except Exception as error:
                error.__traceback__ = shown(error)
                raise

        return call

    def _planning(self, args: Args, kwargs: Kwargs, key: Hashable) -> Any:
        """Return the result of a call without a plan, and make one for the next."""
        result = self._slow(*args, **kwargs)
        tries = self._tries[key] = self._tries.get(key, 0) + 1
        if tries <= _LONGEST_CHAIN:
            self._add(args, kwargs)
        return result

    def _add(self, args: Args, kwargs: Kwargs) -> None:
        values: Values = (*args, *kwargs.values())
        count, names = len(args), tuple(kwargs)
        flat = (count, *kwargs, *map(type, values)) if kwargs else tuple(map(type, args))
        if all(map(_is_leaf, values)):

            def rebuild(values: Values) -> tuple[Args, Kwargs]:
                return tuple(values[:count]), dict(zip(names, values[count:], strict=True))

            self._try(flat, rebuild, values)
            return
        self._chains[flat] = None
        leaves, structure = binding.flatten((args, kwargs))

        def unflatten(values: Values) -> tuple[Args, Kwargs]:
            args, kwargs = structure.unflatten(values)
            return tuple(args), kwargs

        if all(map(_is_leaf, leaves)):
            self._try((structure, tuple(map(type, leaves))), unflatten, leaves)

    def _try(self, key: Hashable, rebuild: Rebuild, values: Values) -> None:
        dispatcher = self._dispatcher
        args, kwargs = dispatcher.bound(*rebuild(values))
        program = dispatcher.find(args, kwargs)
        places = self._places(program, rebuild, values)
        if places is None or program.executable.reuse is not None:
            return
        inputs = program.executable.inputs
        for place, aval in zip(places, inputs, strict=True):
            if not _can_be_planned(values[place], aval):
                return
        for at, value in enumerate(values):
            if at not in places and value.__class__ not in _STATIC:
                return

        def retire(plan: Plan) -> None:
            chain = self._chains.get(key) or []
            self._chains[key] = [each for each in chain if each != plan.call]
            self._tries[key] = _LONGEST_CHAIN

        plan = Plan(dispatcher, rebuild, program, places, values, retire)
        self._chains[key] = [*(self._chains.get(key) or ()), plan.call]

    def _places(
        self, program: BoundExecutable, rebuild: Rebuild, values: Values
    ) -> list[int] | None:
        """Return which leaf each input of a program is; None if one is no leaf."""
        marks = [_mark(value) for value in values]
        places = {id(mark): at for at, mark in enumerate(marks)}
        try:
            used = program.flatten(*self._dispatcher.bound(*rebuild(marks)))
        except Exception:  # the call itself went well: only its marks are refused
            return None
        found = [places.get(id(each), -1) for each in used]
        if -1 in found or len(found) != len(program.executable.inputs):
            return None
        return found


_SCALARS: Final = frozenset(dtype.type for dtype in NUMPY if dtype.kind in "biufc")


def _is_leaf(value: Any) -> bool:
    cls: type[Any] = value.__class__
    return cls in _LEAVES or cls in _SCALARS


def _can_be_planned(value: Any, aval: Aval) -> bool:
    """Return whether a leaf is one that a plan passes for an input."""
    cls: type[Any] = value.__class__
    if cls is ArrayImpl:
        return True
    if cls in NUMBERS:
        return aval.dtype.name in _FORMATS and not aval.shape
    return value.dtype == aval.dtype and value.dtype in NUMPY


def _mark(value: Any) -> Any:
    """Return an object of the same kind as a leaf that is no other one."""
    cls: type[Any] = value.__class__
    if cls is ArrayImpl:
        return np.broadcast_to(np.zeros((), value.aval.dtype), value.aval.shape)
    if cls is np.ndarray:
        return np.broadcast_to(np.zeros((), value.dtype), value.shape)
    if cls is str:
        return value
    if cls is bool or cls is int:
        return np.int64(1 << 20)
    if cls in NUMBERS:
        return np.float64(1.5) if cls is float else np.complex128(1.5)
    return value.dtype.type(1) if value.dtype.kind != "b" else np.int64(1 << 20)
