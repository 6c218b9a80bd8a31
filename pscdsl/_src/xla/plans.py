"""Plans of calls: what has to be done to arguments of known classes before C++ runs their program.

A plan belongs to the classes of all leaves of a call, their structure, and its static values. It
holds the places of the leaves that the program takes. What these are was decided once, by the way
through Python; the plan repeats only what depends on their contents.
"""

from __future__ import annotations

import itertools
import struct
import sys
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from pscdsl._src.ir.numpy_dtypes import NUMPY
from pscdsl._src.support.generated import generated
from pscdsl._src.support.tracebacks import shown
from pscdsl._src.xla import binding
from pscdsl._src.xla.binding import NARROW, NUMBERS, Args, Kwargs
from pscdsl._src.xla.runtime.boot import JAX, ArrayImpl, Aval
from pscdsl._src.xla.runtime.devices import is_aligned, plain_truths
from pscdsl._src.xla.runtime.settings import calls_wait

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
# cannot hold, as the way through Python does.

_FORMATS: Final[Mapping[str, str]] = {
    **{"bool": "?", "float32": "f", "float64": "d", "complex64": "ff", "complex128": "dd"},
    **{f"int{bits}": code for bits, code in zip((8, 16, 32, 64), "bhiq", strict=True)},
    **{f"uint{bits}": code for bits, code in zip((8, 16, 32, 64), "BHIQ", strict=True)},
}
_OWN: Final[Mapping[type[Any], np.dtype[Any]]] = {
    cls: np.dtype(cls) for cls in (bool, int, float, complex)
}
"""The dtypes that C++ makes of Python's numbers; see `boot`."""
_STATIC: Final = frozenset((bool, int, str))
"""Classes of static values for which equality tells programs apart, if the class is known."""
_LEAVES: Final = frozenset((ArrayImpl, np.ndarray, str, *NUMBERS))
"""Classes of leaves, besides NumPy's scalars."""

HELD_BYTES: Final = 1 << 12
"""The size of the largest arrays that are held."""
HELD_IN_ALL: Final = 1 << 16
"""The most bytes that a plan holds."""
READ_BYTES: Final = 1 << 16
"""Below, arrays are copied by the calling thread; 100 KiB is XLA:CPU's own limit for that."""
_FIRST_WAIT: Final = 2
_LONGEST_WAIT: Final = 256
_LONGEST_CHAIN: Final = 8
"""The most plans for leaves of the same classes."""


# Note [Held arguments]
# Most numbers and small arrays of the host are the same at the next call. To compare their bytes
# takes a tenth of a transfer. So where all numbers, or an array, were the same in two calls, the
# plan holds device arrays with these contents, and passes them while the contents are the same.
# When they change, they are transferred again, and compared after a number of calls that doubles.


class Held(NamedTuple):
    """Device arrays with the contents of the last calls' arguments; see Note [Held arguments]."""

    texts: Sequence[bytes] | None
    """The numbers as they are written in their dtypes; None if they are not held."""
    contents: Mapping[int, tuple[tuple[int, ...], bytes]]
    """Shape and contents of arrays, by input."""
    inputs: Mapping[int, Any]
    """The device arrays of inputs."""
    groups: Sequence[Any]
    """The device arrays of groups of numbers."""


class Plan:
    """The way of arguments of known classes to their program.

    The function that does it is generated, without the steps that these classes do not need.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        rebuild: Rebuild,
        program: BoundExecutable,
        places: Sequence[int],
        values: Values,
        enter: Callable[[Plan], None],
    ) -> None:
        from pscdsl._src.xla.dispatch import in_cpp

        self._dispatcher, self._rebuild, self._enter = dispatcher, rebuild, enter
        self._given_away = frozenset(dispatcher.given_away(program))
        self._inputs, self._groups = program.executable.inputs, program.executable.groups
        self._places = tuple(places)
        self._large = self._large_among(values)
        """The arrays that are copied here, unless C++ finds them aligned."""
        self._count = len(values)
        self._statics = {at: each for at, each in enumerate(values) if at not in self._places}
        self._classes: list[type[Any]] = [type(values[place]) for place in places]
        packed = {at for group in self._groups for at in group}
        every = range(len(places))
        self._rest = program.executable.single
        hosts = [at for at in every if self._classes[at] is np.ndarray]
        numbers = [at for at in every if self._classes[at] not in binding.ARRAYS]
        self._dtypes = {at: values[places[at]].dtype for at in hosts}
        self._hosts, self._numbers = hosts, [at for at in numbers if at not in packed]
        """The arrays of the host, and the numbers that are passed alone."""
        self._pythons = [at for at in every if self._classes[at] in NUMBERS]
        self._can_hold = bool(numbers or packed) and not self._given_away.intersection(numbers)
        self._eligible = [at for at in hosts if at not in self._given_away and at not in packed]
        self._fast, self._alive = in_cpp(dispatcher.name, self._miss)
        self._learning = threading.local()
        self._last: tuple[Sequence[bytes], Mapping[int, bytes]] | None = None
        self._backoff = _FIRST_WAIT
        self.is_retired = False
        self._plain = self._made_call(None)
        self.call = self._plain
        """The call of the program for the leaves of arguments; SLOW if they do not fit."""

    def _large_among(self, values: Values) -> list[int]:
        """Return the large arrays of the host that the program only reads."""
        return [
            at
            for at, place in enumerate(self._places)
            if type(values[place]) is np.ndarray
            and values[place].nbytes >= READ_BYTES
            and at not in self._given_away
            and calls_wait()
        ]

    # The generated functions.

    def _made_call(self, held: Held | None) -> Callable[[Values], Any]:
        """Return the function for leaves; with `held`, one that passes what is held."""
        names: dict[str, Any] = {
            **{"SLOW": SLOW, "MISSING": MISSING, "JAX": JAX, "modules": sys.modules},
            **{
                "unwritable": (struct.error, OverflowError, BufferError, TypeError),
            },
            **{
                "plain_truths": plain_truths,
                "is_aligned": is_aligned,
                "copied": self._dispatcher.placement.put,
                "frombuffer": np.frombuffer,
                "join": b"".join,
            },
            **{"fast": self._fast, "learned": self._learned, "changed": self._changed},
            **{"consider": self._consider, "wait": self._backoff},
        }
        lines = [f"{', '.join([f'v{at}' for at in range(self._count)])}, = values"]
        lines += self._checks(held, names)
        texts = [*self._texts(names)]
        if texts:
            lines += ["try:", *[f" {line}" for line in texts]]
            lines += ["except unwritable:", " return SLOW"]
        count = len(self._writers())
        if held is not None:
            for at, text in enumerate(held.texts or ()):
                names[f"x{at}"] = text
                lines += [f"if t{at} != x{at}:", " return changed(values)"]
        elif self._can_hold or self._eligible:
            given = f"({self._joined([self._value(at) for at in self._eligible])})"
            written = f"({self._joined([f't{at}' for at in range(count)])})"
            lines += ["global wait", "wait -= 1", "if wait <= 0:"]
            lines += [f" wait = consider({given}, {written}, values)"]
        passed = ", ".join(self._passed(held, names))
        lines += [f"result = fast({passed})", "if result is MISSING:"]
        lines += [f" result = learned(values, [{passed}])"]
        for at in sorted(self._given_away):
            if self._classes[at] is ArrayImpl:
                value = self._value(at)
                lines += [f"if {value}.is_deleted():", f" {value}.delete()"]
        source = "\n ".join(["def call(values):", *lines, "return result"])
        return generated(source, names, __file__)

    def _joined(self, items: Iterable[str]) -> str:
        return "".join([f"{item}, " for item in items])

    def _value(self, at: int) -> str:
        """Return the name of the leaf of an input."""
        return f"v{self._places[at]}"

    def _checks(self, held: Held | None, names: dict[str, Any]) -> Iterator[str]:
        """Yield the lines that find out whether leaves fit."""
        for place, static in self._statics.items():
            names[f"s{place}"] = static
            yield from (f"if v{place} != s{place}:", " return SLOW")
        kinds = [aval.dtype for aval in self._inputs]
        if any(
            kinds[at] not in NARROW for at, cls in enumerate(self._classes) if cls is not ArrayImpl
        ):
            yield from ("if JAX in modules:", " return SLOW")
        for at in self._hosts:
            value = self._value(at)
            names[f"d{at}"] = self._dtypes[at]
            yield from (f"if {value}.dtype is not d{at}:", " return SLOW")
            if held is not None and at in held.contents:
                names[f"n{at}"], names[f"c{at}"] = held.contents[at]
                yield f"if {value}.shape != n{at} or {value}.tobytes() != c{at}:"
                yield " return changed(values)"
            elif kinds[at] == np.bool_ and at in self._rest:
                yield f"{value} = plain_truths({value})"
            if at in self._large:
                yield f"if not is_aligned({value}):"
                yield f" {value} = copied({value})"

    def _writers(self) -> list[Sequence[int]]:
        """Return the numbers that are written together: those of groups, and then single ones."""
        return [each for each in (*self._groups, self._numbers) if each]

    def _texts(self, names: dict[str, Any]) -> Iterator[str]:
        """Yield the lines that write numbers."""
        for index, inputs in enumerate(self._writers()):
            for at in inputs:
                if self._classes[at] is ArrayImpl:
                    names[f"a{at}"], value = self._inputs[at], f"{self._value(at)}.aval"
                    yield f"if {value}.shape or {value}.dtype != a{at}.dtype:"
                    yield " return SLOW"
                elif self._classes[at] is np.ndarray:
                    yield f"if {self._value(at)}.shape:"
                    yield " return SLOW"
            parts = [
                self._packed(list(run), names) if in_python else self._joined(map(self._value, run))
                for in_python, run in itertools.groupby(
                    inputs, lambda at: self._classes[at] in NUMBERS
                )
            ]
            only = len(parts) == 1 and self._classes[inputs[0]] in NUMBERS
            yield f"t{index} = {parts[0][:-2]}" if only else f"t{index} = join(({''.join(parts)}))"

    def _packed(self, inputs: Sequence[int], names: dict[str, Any]) -> str:
        """Return the call that writes Python's numbers; see Note [Numbers of Python]."""
        dtypes = [self._inputs[at].dtype for at in inputs]
        name = f"pack{inputs[0]}"
        names[name] = struct.Struct("=" + "".join([_FORMATS[each.name] for each in dtypes])).pack
        values = [
            f"{self._value(at)}.real, {self._value(at)}.imag"
            if dtype.kind == "c"
            else self._value(at)
            for at, dtype in zip(inputs, dtypes, strict=True)
        ]
        return f"{name}({', '.join(values)}), "

    def _passed(self, held: Held | None, names: dict[str, Any]) -> Iterator[str]:
        """Yield the arguments of the function in C++."""
        for at in self._rest:
            if held is not None and at in held.inputs:
                names[f"h{at}"] = held.inputs[at]
                yield f"h{at}"
            elif at in self._pythons and _OWN[self._classes[at]] != self._inputs[at].dtype:
                names[f"make{at}"] = self._inputs[at].dtype.type
                yield f"make{at}({self._value(at)})"
            else:
                yield self._value(at)
        for index, group in enumerate(self._groups):
            if held is not None and held.texts is not None:
                names[f"g{index}"] = held.groups[index]
                yield f"g{index}"
            else:
                names[f"k{index}"] = self._inputs[group[0]].dtype
                yield f"frombuffer(t{index}, k{index})"

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
        program, result, fast = self._dispatcher.planned_answer(
            *self._rebuild(values), args, [self._rest.index(at) for at in self._large]
        )
        mine = program.executable
        fits = mine.groups == self._groups and all(
            mine.inputs[at].dtype == self._inputs[at].dtype
            for at, cls in enumerate(self._classes)
            if cls is not ArrayImpl
        )
        fits = fits and {*self._large_among(values)} <= {*self._large}
        if (
            fast is None
            or not fits
            or self._given_away != frozenset(self._dispatcher.given_away(program))
        ):
            self.is_retired = True
            self._enter(self)
            return result, None, True
        return result, fast, False

    # Held arguments.

    def _consider(self, arrays: Sequence[Any], texts: Sequence[bytes], values: Values) -> int:
        """Hold what is the same as in the last call; return the number of calls to wait else."""
        total, now = 0, dict[int, bytes]()
        for at, array in zip(self._eligible, arrays, strict=True):
            if array.nbytes <= HELD_BYTES and total + array.nbytes <= HELD_IN_ALL:
                total += array.nbytes
                now[at] = array.tobytes()
        last, self._last = self._last, (texts, now)
        if last is None:
            return 1
        self._last = None
        with_numbers = self._can_hold and last[0] == texts
        same = [at for at, content in now.items() if last[1].get(at) == content]
        if not with_numbers and not same:
            self._backoff = min(2 * self._backoff, _LONGEST_WAIT)
            return self._backoff
        given = dict(zip(self._eligible, arrays, strict=True))
        put = self._dispatcher.placement.put
        inputs = {at: put(given[at]) for at in same}
        groups: list[Any] = []
        if with_numbers:
            for group, text in zip(self._groups, texts, strict=False):
                groups.append(put(np.frombuffer(text, self._inputs[group[0]].dtype)))
            for at in self._numbers:
                inputs[at] = put(values[self._places[at]], self._inputs[at])
        contents = {at: (given[at].shape, now[at]) for at in same}
        held = Held(texts if with_numbers else None, contents, inputs, groups)
        self.call = self._made_call(held)
        self._enter(self)
        return self._backoff

    def _changed(self, values: Values) -> Any:
        """Pass leaves that are not those that are held, and hold none."""
        self._backoff = min(2 * self._backoff, _LONGEST_WAIT)
        self.call = self._plain
        self._plain.__globals__["wait"] = self._backoff
        self._enter(self)
        return self._plain(values)


class Plans:
    """The plans of a dispatcher."""

    def __init__(self, dispatcher: Dispatcher, slow: Callable[..., Any]) -> None:
        self._dispatcher, self._slow = dispatcher, slow
        self._chains: dict[Hashable, list[Callable[[Values], Any]] | None] = {}
        """The plans by classes of leaves, and structure if there is any; None: see there."""
        self._plans: dict[Hashable, list[Plan]] = {}
        self._tries: dict[Hashable, int] = {}
        self.entry = self._made_entry()

    def clear(self) -> None:
        """Forget all plans."""
        for each in (self._chains, self._plans, self._tries):
            each.clear()

    def _made_entry(self) -> Callable[..., Any]:
        chains, flatten, slow = self._chains, binding.registry.flatten, self._planning
        none: Sequence[Callable[[Values], Any]] = ()
        final, recover = self._dispatcher.final, self._dispatcher.recover

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                try:
                    if kwargs:
                        names = len(args), *kwargs
                        values: Values = (*args, *kwargs.values())
                        chain = chains.get((names, *map(type, values)), none)
                        if chain is None:
                            values, structure = flatten(values)
                            chain = chains.get((names, structure, *map(type, values)))
                    else:
                        values = args
                        chain = chains.get(tuple(map(type, args)), none)
                        if chain is None:
                            values, structure = flatten(args)
                            chain = chains.get((structure, *map(type, values)))
                    for planned in chain or none:
                        result = planned(values)
                        if result is not SLOW:
                            return result
                except final:
                    raise
                except (ValueError, RuntimeError) as error:
                    return recover(error, args, kwargs)
                return slow(args, kwargs)
            except Exception as error:
                error.__traceback__ = shown(error)
                raise

        return call

    def _planning(self, args: Args, kwargs: Kwargs) -> Any:
        """Return the result of a call without a plan, and make one for the next."""
        result = self._slow(*args, **kwargs)
        self._add(args, kwargs)
        return result

    def _add(self, args: Args, kwargs: Kwargs) -> None:
        given: Values = (*args, *kwargs.values())
        count, names = len(args), tuple(kwargs)
        head: tuple[Any, ...] = ((count, *names),) if names else ()

        def rebuild(given: Values) -> tuple[Args, Kwargs]:
            return tuple(given[:count]), dict(zip(names, given[count:], strict=True))

        if all(map(_is_leaf, given)):
            self._try((*head, *map(type, given)), rebuild, given)
            return
        self._chains[(*head, *map(type, given))] = None
        leaves, structure = binding.flatten(given)

        def unflatten(values: Values) -> tuple[Args, Kwargs]:
            return rebuild(structure.unflatten(values))

        if all(map(_is_leaf, leaves)):
            self._try((*head, structure, *map(type, leaves)), unflatten, leaves)

    def _try(self, key: Hashable, rebuild: Rebuild, values: Values) -> None:
        """Make a plan for leaves, unless there are too many for this key, or some cannot be."""
        tries = self._tries[key] = self._tries.get(key, 0) + 1
        if tries > _LONGEST_CHAIN or not values:
            return
        dispatcher = self._dispatcher
        program = dispatcher.find(*dispatcher.bound(*rebuild(values)))
        places = self._places(program, rebuild, values)
        if places is None or program.executable.reuse is not None:
            return
        inputs = program.executable.inputs
        if not all(
            _can_be_planned(values[place], aval) for place, aval in zip(places, inputs, strict=True)
        ):
            return
        if any(at not in places and type(each) not in _STATIC for at, each in enumerate(values)):
            return
        plans = self._plans.setdefault(key, [])

        def enter(plan: Plan) -> None:
            self._chains[key] = [each.call for each in plans if not each.is_retired]

        plans.append(Plan(dispatcher, rebuild, program, places, values, enter))
        enter(plans[-1])

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
