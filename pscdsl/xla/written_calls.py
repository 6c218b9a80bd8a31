"""Calls with NumPy arrays, numbers, keywords or donated arrays: Python looks before C++ reads.

jaxlib takes NumPy arrays as fast as device arrays, but tells their dtypes apart by size and kind
alone, whatever the byte order, and takes subclasses for the class, whatever they mask.  So each
array is looked at, in less time than a general way through the arguments takes: for arguments like
those of one call a function is written out, which asks for the class of each container and the
dtype of each array, and leaves calls with other arguments to another function.  It hands over
Python's numbers in their dtype, for which C++ would have to ask, and keywords in their places; and
it tells jaxlib of arrays whose memory a call took, so that the next one that is given these asks
us, and says whose memory it was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any

from pscdsl.xla import trees
from pscdsl.xla.alike import Alike, Constants, Unlike
from pscdsl.xla.boot import ArrayImpl, Aval
from pscdsl.xla.kept_numbers import NUMBERS, Number
from pscdsl.xla.leaves import ARRAYS
from pscdsl.xla.places import ABSENT, Args, Kwargs, Places


class WrittenCall:
    """The text of a function for arguments like those of one call.

    `row` are the arguments, as they lie at `places`; an Unlike where there can be no function for
    them (see `Alike`, which is given `flatten`), or for none.  `numbers` tells of Python's
    numbers by their place among the leaves of the row; all other ones are static.  `donates` says
    whether calls take the memory of arguments.
    """

    def __init__(
        self,
        row: Sequence[Any],
        places: Places,
        flatten: Callable[[Any], tuple[Sequence[Any], Any]],
        numbers: Mapping[int, Number],
        *,
        donates: bool = False,
    ) -> None:
        if not row:
            raise Unlike
        names = [f"x{place}" for place in range(len(row))]
        self._constants = Constants()
        self._leave = f"return leave(({', '.join(names)},), more, named)"
        alike = Alike(self._constants, self._leave, flatten, device=bool(numbers))
        checks: list[str] = []
        handed: list[str] = []
        structures: dict[int, Any] = {}
        leaves = 0
        for place, (name, value) in enumerate(zip(names, row, strict=True)):
            parts, structure = trees.flatten(value)
            inside = [numbers.get(leaves + part) for part in range(len(parts))]
            lines, expression = alike.read(name, value, inside)
            checks += lines
            handed.append(expression)
            if expression != name and value.__class__ not in NUMBERS:
                structures[place] = structure
            leaves += len(parts)
        self._kept = alike.kept
        self.places = places._replace(structures=structures)
        """How what the function hands over lies in a row."""
        declared = "".join(f"{name}=ABSENT, " for name in names[: places.positional])
        lines = [
            f"def call({declared and f'{declared}/, '}*more, **named):",
            *self._keywords(names),
            f"if more or named: {self._leave}",
            *self._defaults(names),
            *checks,
            *self._calling(row, names, handed, donates=donates),
        ]
        self._text = "\n    ".join(lines)
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

        def leave(row: Sequence[Any], more: Args, named: Kwargs) -> Any:
            args, kwargs = self.places.partly(row)
            return other(*args, *more, **kwargs, **named)

        def caught(error: Exception, row: Sequence[Any]) -> Any:
            assert failed is not None
            return failed(error, *self.places.given(row))

        made: dict[str, Any] = {
            "function": function,
            "leave": leave,
            "caught": caught,
            "leaves": trees.registry.flatten,
            "ABSENT": ABSENT,
            **self._kept,
            **self._constants.names(),
        }
        exec(compile(self._text, "<pscdsl>", "exec"), made)
        return made["call"]

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

    def _calling(
        self, row: Sequence[Any], names: Sequence[str], handed: Sequence[str], *, donates: bool
    ) -> Sequence[str]:
        """Statements that call the function, and tell jaxlib whose memory is gone."""
        if not donates:
            return [f"return function({', '.join(handed)})"]
        array = self._constants.name(ArrayImpl)
        told: list[str] = []
        for name, value in zip(names, row, strict=True):
            if type(value) in ARRAYS:
                told.append(
                    f"if {name}.__class__ is {array} and {name}.is_deleted(): {name}.delete()"
                )
            elif any(type(leaf) in ARRAYS for leaf in trees.flatten(value)[0]):
                told += [
                    f"for leaf in leaves({name})[0]:",
                    f"    if leaf.__class__ is {array} and leaf.is_deleted(): leaf.delete()",
                ]
        return [
            f"row = ({', '.join(handed)},)",
            "try: result = function(*row)",
            "except Exception as error: result = caught(error, row)",
            *told,
            "return result",
        ]


def numbers_among(
    leaves: Sequence[Any], used: Sequence[Any], types: Sequence[Aval], donated: Collection[int]
) -> dict[int, Number]:
    """Python's numbers among leaves, by place, but for static ones.

    `used` are the leaves that a program takes, in order, of these `types`; those at `donated`
    places give their memory.  An Unlike where it cannot be told which of them is which: Python has
    one object for some numbers.
    """
    numbers = [place for place, leaf in enumerate(used) if leaf.__class__ in NUMBERS]
    if not numbers:
        return {}
    first = trees.places(used, leaves)
    last = trees.places(used[::-1], leaves[::-1])
    if first is None or last is None:
        raise Unlike
    if any(first[place] + last[~place] != len(leaves) - 1 for place in numbers):
        raise Unlike
    return {first[place]: Number(types[place].dtype, place not in donated) for place in numbers}
