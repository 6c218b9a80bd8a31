"""What a kernel costs, in one line that is proven: an exact number of operations, or a bound.

    Cost: 2*n*d + 3*n flops.
    Cost: at most 8*s*s*t + 17*s*t + 5*t flops.

The name of a group of axes, `batch` of `*batch`, is the product of their sizes.  A line holds in
every choice of what a signature leaves open: of groups of no or one axis, of static values that
`pscdsl check` tries and of a larger one, of arguments that may be None.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Literal

from pscdsl._src.analysis.cost import cost
from pscdsl._src.frontend.definitions import Excluded
from pscdsl._src.kernels.kernel import Kernel
from pscdsl._src.transforms.simplify import simplify
from pscdsl.typing.array_types import StaticType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size, as_terms, from_terms, name, parse, substitute
from pscdsl.typing.facts import Fact
from pscdsl.typing.signatures import Choice, group_dims, static_sizes

WIDTH = 96
"""Of a line, indentation left out."""
LARGE = 9
"""A static value that `pscdsl check` does not try."""


@dataclass(frozen=True)
class Instance:
    """What one choice costs."""

    flops: Size
    """In the names of its sizes, a group of one axis under its own name."""
    facts: Assumptions
    statics: Mapping[str, Size]
    """Static values by name."""
    empty: Mapping[str, Size]
    """1 for groups without axes."""

    def is_proven(self, relation: Literal["==", "<="], claim: Size) -> bool:
        """Whether the cost is proven to stand so to a claim, for all sizes."""
        claimed = substitute(claim, {**self.statics, **self.empty})
        fact = Fact(relation, self.flops, claimed)
        return self.facts.proves(fact) or self._by_differences(fact)

    def _by_differences(self, claim: Fact) -> bool:
        """Whether it is proven with `w + more` in place of an n that is at least w."""
        for each in self.facts.facts:
            if each.relation == "<=" and str(each.right).isidentifier():
                more = name(f"{each.right}_more")
                larger = {str(each.right): each.left + more}
                facts = [fact.substitute(larger) for fact in self.facts.facts]
                known = Assumptions((*facts, Fact("<=", 0, more)))
                if known.proves(claim.substitute(larger)):
                    return True
        return False


@dataclass(frozen=True)
class Line:
    """What a docstring says."""

    flops: Size
    exact: bool
    one_step: bool
    """Whether loops that end when they have found something are counted with one step."""

    def __str__(self) -> str:
        bound = "" if self.exact else "at most "
        steps = ", with one step of its loop" if self.one_step else ""
        return f"Cost: {bound}{spaced(self.flops)} flops{steps}."

    def is_proven(self, found: Sequence[Instance]) -> bool:
        """Whether it is proven in every choice."""
        return all(each.is_proven("==" if self.exact else "<=", self.flops) for each in found)


def spaced(size: Size) -> str:
    """The text of a sum, with spaces around what stands between its terms."""
    texts = [str(from_terms({monomial: c})) for monomial, c in as_terms(size)] or ["0"]
    return reduce(lambda a, b: f"{a} - {b[1:]}" if b[0] == "-" else f"{a} + {b}", texts)


_LINE = re.compile(r"Cost: (at most )?(.+) flops(, with one step of its loop)?\.")


def line_of(docstring: str) -> Line | None:
    """What a docstring says in its last paragraph, if that is of costs."""
    found = _LINE.fullmatch(" ".join(docstring.rstrip().rpartition("\n\n")[2].split()))
    return found and Line(parse(found[2]), found[1] is None, found[3] is not None)


def counted_choices(kernel: Kernel[..., Any]) -> tuple[list[Instance], bool]:
    """What a kernel costs in each choice, and whether it has loops without a known end."""
    found: list[Instance] = []
    loops = False
    for choice in looked_at(kernel.signature.choices() or ()):
        try:
            program = simplify(kernel.definition.instance(choice))
        except Excluded:
            continue
        counted = cost(program)
        loops |= bool(counted.loops)
        ranks = dict(choice.ranks)
        names = {str(each): name(g) for g, rank in ranks.items() for each in group_dims(g, rank)}
        facts = [fact.substitute(names) for fact in program.facts.facts]
        flops = substitute(counted.flops, names)
        statics = static_sizes(dict(choice.statics))
        empty: dict[str, Size] = {group: 1 for group, rank in ranks.items() if rank == 0}
        found.append(Instance(flops, Assumptions(tuple(facts)), statics, empty))
    return found, loops


def looked_at(tried: Sequence[Choice]) -> Iterator[Choice]:
    """Those that are looked at; none if costs are no polynomials, as for tuples of any length.

    Operations depend neither on dtypes nor on how many axes a group has; without axes, one choice
    is enough.
    """
    first: Choice | None = None
    for each in tried:
        if each.lengths or each.trees or each.dtypes != tried[0].dtypes:
            continue
        ranks = {rank for _, rank in each.ranks}
        if ranks == {0} and first is None:
            first = each
            yield each
        if ranks <= {1}:
            numbers = static_sizes(dict(each.statics))
            if not numbers.keys() or set(numbers.values()) <= {0, 1, 4}:
                yield each
            if numbers and set(numbers.values()) == {4}:
                yield replace(each, statics=tuple(_enlarged(each.statics)))


def _enlarged(statics: Iterable[tuple[str, StaticType]]) -> Iterator[tuple[str, StaticType]]:
    for key, value in statics:
        yield key, StaticType(LARGE) if static_sizes({key: value}) else value
