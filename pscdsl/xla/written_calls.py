"""Calls with NumPy arrays, numbers, keywords or donated arrays: Python looks before C++ reads.

jaxlib takes NumPy arrays as fast as device arrays, but tells their dtypes apart by size and kind
alone, whatever the byte order, and takes subclasses for the class, whatever they mask.  So each
array is looked at, in less time than a general way through the arguments takes: for arguments like
those of one call a function is written out, which asks for the class of each container and the
dtype of each array, and leaves calls with other arguments to another function.  It hands over
Python's numbers in their dtype, for which C++ would have to ask, and keywords in their places; it
writes numbers and small arrays into device arrays, which C++ takes in less time (`staging`); and it
tells jaxlib of arrays whose memory a call took, so that the next one that is given these asks
us, and says whose memory it was.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

from pscdsl.tracebacks import WRITTEN, shown
from pscdsl.xla import trees
from pscdsl.xla.alike import Alike, Constants, reads
from pscdsl.xla.boot import ArrayImpl
from pscdsl.xla.leaves import ARRAYS
from pscdsl.xla.places import ABSENT, Apart, Args, Kwargs, Places, taken_apart
from pscdsl.xla.python_numbers import NUMBERS
from pscdsl.xla.rows import Row
from pscdsl.xla.staging import Handed, Leaf, Unlike

_delete: Final = ArrayImpl.delete
"""It gives None, so that `any` comes to the last of what it is called for."""


class Left(Exception):
    """Arguments are not what a function was written for, and C++ was first to see it."""


# Note [Left to C++]
# Of an argument whose leaves are all device arrays, only the way to the first of them is looked at:
# C++ compares their structure, dtypes and shapes, and knows device arrays from others.  For what it
# has no program for it asks us, and where there is something else among them then, that is Left.
# This is not done where Python's numbers are brought to a dtype that may hang on the arrays'.


class WrittenCall:
    """The text of a function for arguments like those of one call.

    An Unlike where there can be none for its `row` (see `Alike`, which is given `flatten`), or that
    is empty.  `changed` tells of the leaves that C++ is not given as they are, by their places;
    `stages` says that they are NumPy's small arrays as well.
    `lost` are the places in the row whose memory calls take: with True all of it, with False what
    has to be asked of each leaf.
    """

    def __init__(
        self,
        row: Row,
        flatten: Callable[[Any], tuple[Sequence[Any], Any]],
        changed: Mapping[int, Leaf],
        *,
        stages: bool = False,
        lost: Mapping[int, bool] = {},
    ) -> None:
        places, values = row
        if not values:
            raise Unlike
        names = [f"x{place}" for place in range(len(values))]
        self._constants = Constants()
        given_up = f"return leave({', '.join(names)})"
        leaves = [trees.flatten(value)[0] for value in values]
        flat = [leaf for inside in leaves for leaf in inside]
        numbers = any(flat[place].__class__ in NUMBERS for place in changed)
        alike = Alike(self._constants, given_up, flatten, device=numbers, strict=stages)
        checks: list[str] = []
        handed: list[str] = []
        apart: dict[int, Apart] = {}
        self.unseen: list[int] = []
        """The arguments, by place, that are left to C++: see Note [Left to C++]."""
        done = 0
        for place, value in enumerate(values):
            count = len(leaves[place])
            inside = [changed.get(done + part) for part in range(count)]
            given: Handed = names[place]
            if stages and not numbers and _is_on_device(flatten(value)[0]):
                lines = alike.first(names[place], value)
                self.unseen.append(place)
            else:
                lines, given = alike.read(names[place], value, inside)
            checks += lines
            handed.append(alike.stage.expression(given))
            if (known := taken_apart(value, given)) is not None:
                apart[place] = known
            done += count
        self._stage = alike.stage
        self.places = places._replace(apart=apart)
        """How what the function hands over lies in a row."""
        told = [
            line
            for place, certain in lost.items()
            for line in self._telling(names[place], values[place], certain=certain, strict=stages)
        ]
        declared = "".join(f"{name}=ABSENT, " for name in names[: places.positional])
        body = [
            f"if more or named: return partly(({', '.join(names)},), more, named)",
            *self._defaults(names),
            *checks,
            *self._staging(alike.writes),
            *self._calling(handed, told, given_up, donates=bool(lost)),
        ]
        call = [
            f"def call({declared and f'{declared}/, '}*more, **named):",
            "try:",
            *[f"    {line}" for line in (*self._keywords(names), *body)],
            "except Exception as error:",
            "    error.__traceback__ = shown(error)",
            "    raise",
        ]
        functions = (self._leaving(names, places), call)
        self._text = "\n".join(["\n    ".join(lines) for lines in functions])
        self.key: Hashable = (self._text, self._constants.key())
        """The same for all arguments that a function takes."""

    def written(
        self,
        function: Callable[..., Any],
        other: Callable[..., Any],
        failed: Callable[[Exception, Args, Kwargs], Any] | None = None,
    ) -> Any:
        """The function: it calls `function` with what C++ reads, or `other` as it was called.

        Where arguments are donated, errors are handed to `failed`, with the arguments.
        """

        def partly(row: Sequence[Any], more: Args, named: Kwargs) -> Any:
            args, kwargs = self.places.partly(row)
            return other(*args, *more, **kwargs, **named)

        def caught(error: Exception, row: Sequence[Any]) -> Any:
            assert failed is not None
            return failed(error, *self.places.given(row))

        made: dict[str, Any] = {
            "function": function,
            "partly": partly,
            "other": other,
            "caught": caught,
            "leaves": trees.registry.flatten,
            "Left": Left,
            "shown": shown,
            "ABSENT": ABSENT,
            "free": [],
            "stage": self._stage.made,
            **self._constants.names(),
        }
        exec(compile(self._text, WRITTEN, "exec"), made)
        return made["call"]

    def _leaving(self, names: Sequence[str], places: Places) -> list[str]:
        """A function that calls another one, as it was called: without what may be a constant."""
        first = places.positional
        pairs = zip(names[first:], places.parameters[first:], strict=True)
        named = ", ".join([f"{each.name!r}: {name}" for name, each in pairs])
        given = ", ".join([*names[:first], *([f"**{{{named}}}"] if named else [])])
        row = ", ".join(names)
        there = " and ".join([f"{name} is not ABSENT" for name in names])
        left_out = [
            f"if {name} is {self._constants.name(each.constant)}: {name} = ABSENT"
            for name, each in zip(names, places.parameters, strict=True)
            if each.default is not ABSENT and each.default is each.constant
        ]
        return [
            f"def leave({row}):",
            *left_out,
            f"return other({given}) if {there} else partly(({row},), (), {{}})",
        ]

    def _keywords(self, names: Sequence[str]) -> list[str]:
        """Statements that put keywords in their places."""
        first = self.places.positional
        given = list(zip(names, self.places.parameters, strict=True))
        lines = [f"{name} = named.pop({each.name!r}, ABSENT)" for name, each in given[first:]]
        late = [
            f"    if {name} is ABSENT: {name} = named.pop({each.name!r}, ABSENT)"
            for name, each in given[:first]
            if each.named
        ]
        return [*lines, *(["if named:", *late] if late else [])]

    def _defaults(self, names: Sequence[str]) -> list[str]:
        """Statements that put in place what is not given."""
        return [
            f"if {name} is ABSENT: {name} = {self._constants.name(each.default)}"
            for name, each in zip(names, self.places.parameters, strict=True)
            if each.default is not ABSENT
        ]

    def _staging(self, writes: Sequence[str]) -> list[str]:
        """Statements that write leaves into arrays that no other call has."""
        if not writes:
            return []
        names = "".join([f"{name}, " for name in self._stage.names()])
        return [
            "try: staged = free.pop()",
            "except IndexError: staged = stage()",
            f"{names}= staged",
            *writes,
        ]

    def _calling(
        self, handed: Sequence[str], told: Sequence[str], given_up: str, *, donates: bool
    ) -> list[str]:
        """Statements that call the function; what is `told` to jaxlib when that is done."""
        given = ", ".join(handed)
        end = [*told, *(["free.append(staged)"] if self._stage.names() else [])]
        rescue = ["except Left: pass"] if self.unseen else []
        if donates:
            rescue.append(f"except Exception as error: return caught(error, ({given},))")
        if not rescue:
            call = f"function({given})"
            return [f"result = {call}", *end, "return result"] if end else [f"return {call}"]
        return [
            f"try: result = function({given})",
            *rescue,
            "else:",
            *[f"    {line}" for line in (*end, "return result")],
            given_up,
        ]

    def _telling(self, name: str, value: Any, *, certain: bool, strict: bool) -> list[str]:
        """Statements that tell jaxlib of device arrays whose memory is gone.

        That is `certain`, or asked of each; `strict` says that there are device arrays where there
        were some.
        """
        classes: set[type[Any]] = {type(leaf) for leaf in trees.flatten(value)[0]}
        if classes.isdisjoint(ARRAYS):
            return []
        if certain and strict and classes == {ArrayImpl}:
            if type(value) in (tuple, list) and _is_on_device(value):
                return [f"any(map({self._constants.name(_delete)}, {name}))"]
            return [f"{read}.delete()" for read in reads(name, value)]
        lost = f"leaf.__class__ is {self._constants.name(ArrayImpl)} and leaf.is_deleted()"
        each = f"({name},)" if type(value) in ARRAYS else f"leaves({name})[0]"
        return [f"for leaf in {each}:", f"    if {lost}: leaf.delete()"]


def _is_on_device(values: Sequence[Any]) -> bool:
    """Whether there are some, and all are device arrays."""
    return bool(values) and all(each.__class__ is ArrayImpl for each in values)
