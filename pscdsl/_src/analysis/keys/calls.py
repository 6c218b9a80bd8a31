"""What a called function does with its keys, as its caller sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pscdsl._src.analysis.keys.numbers import Number, Unknown
from pscdsl._src.analysis.keys.places import Place, Root, Seeds, When
from pscdsl._src.analysis.keys.uses import Use
from pscdsl._src.primitives.control import Call
from pscdsl.typing.dims import Size
from pscdsl.typing.spans import Span


@dataclass(frozen=True)
class Summary:
    """A function that was walked through, by itself."""

    params: tuple[Place | None, ...]
    """Its parameters; None for what is no key, nor a seed."""
    numbers: tuple[Number, ...]
    """What stands for its parameters in the integers that keys are folded with."""
    results: tuple[Place | None, ...]
    seeds: Seeds
    """What it makes of seeds that are no parameters."""


class Seen:
    """A summary in terms of one call: its operands for its parameters, all else made anew."""

    def __init__(
        self,
        summary: Summary,
        call: Call,
        given: Sequence[Place | None],
        numbers: Sequence[Number],
        seeds: Seeds,
        span: Span,
    ) -> None:
        self._summary = summary
        self._name = call.function.name
        self._sizes: Mapping[str, Size] = dict(call.sizes)
        self._span = span
        self._given = {
            param.root: operand
            for param, operand in zip(summary.params, given, strict=True)
            if param is not None and operand is not None
        }
        self._given[summary.seeds] = Place.whole(seeds)
        self._known: dict[Unknown, Number] = {}
        for param, operand in zip(summary.numbers, numbers, strict=True):
            self._known.update(dict.fromkeys(param.terms, operand))
        self._roots: dict[Root, Root] = {}
        self._call = object()

    def uses(self, when: When) -> Iterator[Use]:
        """What the call does with its operands."""
        for root in self._given:
            for use in root.uses:
                if self._summary.seeds.arguments not in use.agents:
                    yield self._use(use, when)

    def results(self) -> Iterator[Place | None]:
        """Where the results are from; None for what is no key, nor a seed."""
        for place in self._summary.results:
            yield None if place is None else self._place(place)

    def _use(self, use: Use, when: When = ()) -> Use:
        deed = "folded" if use.data is not None else "consumed"
        # Uses of one parameter were compared within the function; two may be given the same key.
        account = self._call, use.place.root
        return Use(
            self._place(use.place),
            f"{deed} by `{self._name}`",
            self._span,
            None if use.data is None else self._number(use.data),
            None if use.at is None else self._number(use.at),
            frozenset({account, *map(self._agent, use.agents)}),
            (*when, *self._when(use.when)),
        )

    def _place(self, place: Place) -> Place:
        outer = self._given.get(place.root)
        if outer is not None:
            return place.within(outer, self._sizes)
        ranges = tuple(each.substitute(self._sizes) for each in place.ranges)
        return replace(place, root=self._root(place.root), ranges=ranges, name="")

    def _root(self, root: Root) -> Root:
        found = self._roots.get(root)
        if found is None:
            sources = tuple((self._place(s), self._when(when)) for s, when in root.sources)
            agent = None if root.agent is root else self._agent(root.agent)
            shape = root.substituted(self._sizes)
            found = self._roots[root] = Root(shape, "", sources, root.repeated, agent)
            found.is_row = root.is_row
            if root.element is not None:
                found.element = self._number(root.element)
            for use in root.uses:
                found.add(self._use(use))
        return found

    def _agent(self, agent: object) -> object:
        return self._root(agent) if isinstance(agent, Root) else (self._call, id(agent))

    def _when(self, when: When) -> When:
        return tuple(((self._call, fork), branch) for fork, branch in when)

    def _number(self, number: Number) -> Number:
        for unknown in number.terms:
            if unknown not in self._known:
                self._known[unknown] = Number(0, {unknown.again(): 1})
        return number.replaced(self._known)
