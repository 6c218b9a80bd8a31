"""What was done with a place, and whether two uses may meet in one key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pscdsl._src.analysis.keys.numbers import Number
from pscdsl._src.analysis.keys.places import Place, Root, Seeds, When, exclusive
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.keys import KeyReused
from pscdsl.typing.diagnostics import Label
from pscdsl.typing.spans import NOWHERE, Span

SPLIT = "`key, sub = psc.random.split(key)` gives two keys in the place of one"
LOOP = (
    "split it outside and give a key to each step or row, `psc.map(f, psc.random.split(key, n))`, "
    "or carry it, and split it in each step"
)
FOLD = "fold in integers that differ for sure, such as the counter of a loop, or fold twice"
EITHER = "derive all keys from it by `fold_in`, or all by `split`"
REPEATED = "`psc.random.split(key, n)` gives n keys that all differ"
SEEDED = "seeds that may be equal may give one key: make one key, and split it"
RETURNED = "return one of the keys that `psc.random.split` gives"


@dataclass(frozen=True)
class Use:
    """One use of a place: by which it is consumed, or folded with a number."""

    place: Place
    what: str
    """What is done with it: `consumed`, `folded`."""
    span: Span
    data: Number | None = None
    """What the key is folded with; None where it is consumed."""
    at: Number | None = None
    """Which place along the first axis it is, if it is one and can be told."""
    agents: frozenset[object] = frozenset()
    """On whose account: uses on one account are of different keys, or seen to elsewhere."""
    when: When = ()

    @property
    def cell(self) -> tuple[object, object]:
        """The one element that is used, and the number that it is folded with; None if unknown."""
        if isinstance(self.place.root, Seeds):
            return _residue(self.at), _residue(self.data)
        places = tuple(each.only for each in self.place.ranges)
        known = all(isinstance(each, int) for each in places)
        return places if known else None, _residue(self.data)

    def conflicts(self, other: Use, facts: Assumptions) -> bool:
        """Whether both may be of one key, and are not two foldings with different numbers."""
        if self.agents & other.agents:
            return False
        if self.data is not None and other.data is not None and self.data.differs(other.data):
            return False
        if self.at is not None and other.at is not None and self.place == other.place:
            if self.at.differs(other.at):
                return False
        return not exclusive(self.when, other.when) and not self.place.apart(other.place, facts)


def _residue(number: Number | None) -> int | None:
    """What numbers that are equal have in common, if it is known."""
    if number is None or number.terms or number.bits < _WORD:
        return None
    return number.constant % (1 << _WORD)


_WORD: Final = 32


def trail(whole: Place) -> Iterator[Use]:
    """A place, and all from where its keys may have been taken."""
    todo, seen = [Use(whole, "", NOWHERE)], set[object]()
    while todo:
        use = todo.pop()
        if (known := (use.place, use.agents)) in seen:
            continue
        seen.add(known)
        yield use
        root = use.place.root
        account = frozenset({object() if root.repeated else root.agent})
        for source, when in root.sources:
            place, either = use.place.before(source), (*use.when, *when)
            todo.append(Use(place, "", NOWHERE, None, root.element, account, either))


def share(one: Place, other: Place, facts: Assumptions) -> bool:
    """Whether one key may be in two places."""
    others = list(trail(other))
    return any(
        use.place.root is each.place.root and use.conflicts(each, facts)
        for use in trail(one)
        for each in others
    )


class Ledger:
    """The uses of one run through a program, and what is wrong with them."""

    def __init__(self, facts: Assumptions) -> None:
        self.facts = facts
        self.findings: dict[Span, KeyReused] = {}
        self._pairs: set[frozenset[Span | None]] = set()

    def record(self, use: Use) -> None:
        """Note a use, of the place and of where its keys were taken from."""
        self._record(use, use)

    def _record(self, use: Use, shown: Use) -> None:
        root = use.place.root
        if root.repeated and not use.place.single():
            self._report(shown, None)
        for old in _met(root, use.cell):
            if use.conflicts(old, self.facts):
                self._report(shown, old, SEEDED if isinstance(root, Seeds) else None)
                break
        root.add(use)
        account: frozenset[object] = frozenset({object() if root.repeated else root.agent})
        for place, when in root.sources:
            before = replace(
                use,
                place=use.place.before(place),
                at=root.element,
                agents=account,
                when=(*use.when, *when),
            )
            self._record(before, shown)

    def returned(self, places: Sequence[Place], span: Span) -> None:
        """Refuse keys that leave the program after they were consumed, or twice."""
        for index, place in enumerate(places):
            now = Use(place, "returned", span)
            use = spent(place, self.facts)
            if use is not None:
                self._report(now, use, RETURNED)
            elif any(each.place.root.repeated and not each.place.single() for each in trail(place)):
                self._report(now, None)
            elif any(share(place, other, self.facts) for other in places[:index]):
                self._report(now, now, RETURNED)

    def _report(self, now: Use, old: Use | None, rewrite: str | None = None) -> None:
        place, first = (now.span, None) if old is None else told_apart(now.span, old.span)
        pair = frozenset({place, first})
        if place in self.findings or pair in self._pairs:
            return
        self._pairs.add(pair)
        again = place == first
        labels: tuple[Label, ...] = ()
        if old is not None and first is not None and not again:
            labels = (Label(first, f"{old.what} here"),)
        self.findings[place] = KeyReused(
            name=str(now.place),
            before="" if old is None else old.what,
            now=now.what,
            again=again,
            rewrite=rewrite or _rewrite(now, old, again),
            span=place,
            labels=labels,
        )


def told_apart(one: Span, other: Span) -> tuple[Span, Span]:
    """Two places; of one line of a helper, the calls through which it was reached."""
    while one.call_site is not None and other.call_site is not None:
        if replace(one, call_site=None) != replace(other, call_site=None):
            break
        one, other = one.call_site, other.call_site
    return one, other


def _rewrite(now: Use, old: Use | None, again: bool) -> str:
    if old is None:
        return REPEATED
    if now.data is not None and old.data is not None:
        return FOLD
    if again:
        return LOOP
    return SPLIT if now.data is None and old.data is None else EITHER


def _met(root: Root, cell: tuple[object, object]) -> Iterator[Use]:
    """The uses of a root that are not surely of another element, or with another number."""
    element, constant = cell
    if element is None:
        yield from root.uses
        return
    for group in (root.cells.get(element, {}), root.cells.get(None, {})):
        for number in group if constant is None else (constant, None):
            yield from group.get(number, ())


def spent(place: Place, facts: Assumptions, when: When = (), besides: object = None) -> Use | None:
    """A use by which a key of a place was consumed, there or where it was taken from."""
    for use in place.root.uses:
        other = besides not in use.agents
        if use.data is None and other and not exclusive(when, use.when):
            if not place.apart(use.place, facts):
                return use
    for source, condition in place.root.sources:
        before = place.before(source)
        found = spent(before, facts, (*when, *condition), place.root.agent)
        if found is not None:
            return found
    return None
