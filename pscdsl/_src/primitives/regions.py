"""The use that an equation with blocks makes of its operands, in one description for all passes.

Operands and results form groups, each with one role. A region is a block: it has a parameter for
each member of some groups, and a result for each member of others. So a carry is one group that is
an operand and a result of the equation, and a parameter and a result of the body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeVar

from pscdsl._src.ir.program import Atom, Block, Var
from pscdsl.typing.dims import Size, maximum

T = TypeVar("T")


class Role(Enum):
    """The use of the members of a group."""

    DECISION = auto()
    """The equation itself reads it: which branch is run, how many steps, whether to stop."""
    CONSTANT = auto()
    """An operand that each run of a block takes as it is."""
    ARGUMENT = auto()
    """An operand of a block that is run once."""
    CARRY = auto()
    """The first value is an operand, the next ones the run before gives; the last one is a
    result."""
    PARTIAL = auto()
    """A combination of rows in any grouping."""
    ROW = auto()
    """Each run takes one row of an operand."""
    STACK = auto()
    """Each run gives one row of a result."""
    RESULT = auto()
    """A result that the run of one block gives."""


_TAKEN: Final = frozenset({*Role} - {Role.STACK, Role.RESULT})
_RETURNED: Final = frozenset({Role.CARRY, Role.PARTIAL, Role.STACK, Role.RESULT})


@dataclass(frozen=True, eq=False, slots=True)
class Group:
    """Neighbours among the operands, the results, or both."""

    role: Role
    count: int
    field: str = ""
    """The field of the primitive that counts them, perhaps with another group; empty if none."""
    label: str = ""
    """The group's name in the text form."""
    given: bool = True
    """Whether operands of this role exist: a loop's condition has none."""

    @property
    def is_taken(self) -> bool:
        """Return whether the members are operands."""
        return self.given and self.role in _TAKEN

    @property
    def is_returned(self) -> bool:
        """Return whether the members are results."""
        return self.role in _RETURNED


class Nesting(Enum):
    """The way in which an equation runs a block."""

    NEVER = auto()
    """It only says something of the others."""
    ONCE = auto()
    BRANCH = auto()
    """Or not, as an operand says."""
    LOOP = auto()


@dataclass(frozen=True, eq=False, slots=True)
class Region:
    """A block, and the groups that its parameters and results belong to."""

    field: str
    """The field of the primitive that holds it, possibly with others."""
    block: Block
    takes: tuple[Group, ...]
    gives: tuple[Group, ...]
    nesting: Nesting
    times: Size | None = 1
    """The number of runs, at most; None if it is unknown."""
    label: str = ""
    """The block's name in the text form, if it differs from the field."""

    @property
    def is_body(self) -> bool:
        """Return whether it is the body of a loop, which gives the next carry."""
        return any(group.role is Role.CARRY for group in self.gives)

    def params(self) -> Iterator[tuple[Group, Sequence[Var]]]:
        """Yield the parameters by group; one that is taken twice comes twice."""
        return by_group(self.takes, self.block.params)

    def results(self) -> Iterator[tuple[Group, Sequence[Atom]]]:
        """Yield the results by group."""
        return by_group(self.gives, self.block.results)


@dataclass(frozen=True, eq=False, slots=True)
class Layout:
    """The groups of an equation, in the order of its operands and results, and its regions."""

    groups: tuple[Group, ...] = ()
    regions: tuple[Region, ...] = ()

    @classmethod
    def of(cls, body: Block) -> Layout:
        """Return the layout of a primitive that runs one block once, of its operands."""
        arguments = Group(Role.ARGUMENT, len(body.params))
        results = Group(Role.RESULT, len(body.results))
        region = Region("body", body, (arguments,), (results,), Nesting.ONCE)
        return cls((arguments, results), (region,))

    @property
    def is_repeated(self) -> bool:
        """Return whether, by the primitive's meaning, blocks may run more or less than once."""
        return any(region.nesting in (Nesting.LOOP, Nesting.BRANCH) for region in self.regions)

    @property
    def run(self) -> tuple[Region, ...]:
        """The regions that are run."""
        return tuple([region for region in self.regions if region.nesting is not Nesting.NEVER])

    def operands(self, operands: Sequence[T]) -> dict[Group, Sequence[T]]:
        """Return the operands, or something of each, by group."""
        return dict(by_group([group for group in self.groups if group.is_taken], operands))

    def results(self, results: Sequence[T]) -> dict[Group, Sequence[T]]:
        """Return the results, or something of each, by group."""
        return dict(by_group([group for group in self.groups if group.is_returned], results))

    def inputs(self, members: Mapping[Group, Sequence[T]]) -> tuple[T, ...]:
        """Return one sequence for all operands."""
        return tuple([x for group in self.groups if group.is_taken for x in members[group]])

    def outputs(self, members: Mapping[Group, Sequence[T]]) -> tuple[T, ...]:
        """Return one sequence for all results."""
        return tuple([x for group in self.groups if group.is_returned for x in members[group]])

    def counts(self, members: Mapping[Group, Sequence[object]]) -> dict[str, int]:
        """Return the fields of the primitive that count members, if these are left."""
        counts: dict[str, int] = {}
        for group in self.groups:
            if group.field:
                count = len(members[group]) if group.given else 0
                counts[group.field] = counts.get(group.field, 0) + count
        return counts

    def captured(self, region: Region) -> tuple[Group, ...]:
        """Return the groups that a region takes from outside, the same in each run."""
        return tuple([g for g in region.takes if g.role in (Role.CONSTANT, Role.DECISION)])

    def total(self, of: Callable[[Block], Size]) -> Size:
        """Return the total cost of all runs, given that of one run; for branches, the most."""
        total: Size = 0
        dearest: Size = 0
        for region in self.run:
            if region.nesting is Nesting.BRANCH:
                dearest = maximum(dearest, of(region.block))
            else:
                total = total + of(region.block) * (1 if region.times is None else region.times)
        return total + dearest

    def spread(
        self,
        operands: Sequence[bool],
        run: Callable[[Block, tuple[bool, ...]], Sequence[bool]],
    ) -> tuple[bool, ...]:
        """Return which results depend on some of the operands; see `dependent`."""
        return self.outputs(self.dependent(operands, run))

    def dependent(
        self,
        operands: Sequence[bool],
        run: Callable[[Block, tuple[bool, ...]], Sequence[bool]],
    ) -> dict[Group, list[bool]]:
        """Return which members of each group depend on some of the operands.

        `run` answers this for a block and some of its parameters; the last question about each
        block concerns all parameters that depend.
        """
        flags = {each: [False] * each.count for each in self.groups}
        flags.update({group: [*given] for group, given in self.operands(operands).items()})
        while True:
            before = {group: [*given] for group, given in flags.items()}
            for region in self.run:
                taken = tuple([flag for group in region.takes for flag in flags[group]])
                for group, given in by_group(region.gives, run(region.block, taken)):
                    flags[group] = [a or b for a, b in zip(flags[group], given, strict=True)]
            if any(any(flags[each]) for each in self.groups if each.role is Role.DECISION):
                flags.update({g: [True] * g.count for g in self.groups if g.is_returned})
            if flags == before:
                return flags


def by_group(groups: Sequence[Group], items: Sequence[T]) -> Iterator[tuple[Group, Sequence[T]]]:
    """Items that belong to the members of groups, group by group."""
    first = 0
    for group in groups:
        yield group, items[first : first + group.count]
        first += group.count
