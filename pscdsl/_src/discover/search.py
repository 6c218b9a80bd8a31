"""The search for a signature: what an elaboration demands is granted, the cheapest first."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from pscdsl._src.discover.alternatives import Alternative
from pscdsl._src.discover.blame import Blame
from pscdsl._src.discover.candidates import FLOAT, Candidate, array, generalised, map_arrays
from pscdsl._src.discover.demands import demands
from pscdsl._src.discover.obstacles import Branches, Firmness, firmness
from pscdsl._src.discover.trials import Trial, Trials
from pscdsl.typing.assumptions import Assumptions, Fact, Verdict
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.signatures import ArraySpec, DTypeClass, Spec, StaticSpec

MAX_TRIALS = 48
"""Candidates that are tried for one function."""
MAX_TRIALS_BLOCKED = 8
"""The same, once an obstacle was found that stands in a branch only."""

_WANTS_STATIC = frozenset(
    f"PSC{number}" for number in (103, 108, 109, 110, 112, 113, 116, 120, 121, 122, 123)
)
_WANTS_TUPLE = frozenset({"PSC113", "PSC122", "PSC109"})


@dataclass
class Search:
    """What was found out about one function."""

    accepted: Candidate | None = None
    trial: Trial | None = None
    failed: list[tuple[Candidate, Trial]] = field(default_factory=list[tuple[Candidate, Trial]])
    blocked: tuple[Diagnostic, ...] = ()
    """Obstacles that no signature can mend and that stand in no branch."""


def search(
    trials: Trials,
    options: Mapping[str, Sequence[Alternative]],
    blame: Blame,
    branches: Branches,
    limit: int = MAX_TRIALS,
    preconditions: bool = True,
) -> Search:
    """The cheapest candidate that is accepted, or the trials that failed."""
    found = Search()
    start = Candidate(
        tuple((name, each[0].spec) for name, each in options.items()), (), (0,) * len(options)
    )
    order = count()
    queue = [(0, next(order), start)]
    seen = {start}
    while queue and len(found.failed) < limit and not trials.exhausted:
        _, _, candidate = heapq.heappop(queue)
        trial = trials.run(candidate)
        if trial.program is not None:
            found.accepted, found.trial = candidate, trial
            return found
        found.failed.append((candidate, trial))
        blocking = [each for each in trial.errors if firmness(each)]
        found.blocked = tuple(each for each in blocking if not branches.hold(each))
        if found.blocked:
            return found
        if blocking:
            limit = min(limit, MAX_TRIALS_BLOCKED)
        for successor in _successors(candidate, trial.errors, options, blame):
            if successor not in seen and (preconditions or not successor.facts):
                seen.add(successor)
                heapq.heappush(queue, (successor.cost, next(order), successor))
    return found


def _successors(
    candidate: Candidate,
    errors: Sequence[Diagnostic],
    options: Mapping[str, Sequence[Alternative]],
    blame: Blame,
) -> Iterator[Candidate]:
    """The candidates in which the first error may be mended."""
    guesses = [each for each in errors if firmness(each) is Firmness.GUESS]
    for first in (guesses or list(errors))[:1]:
        for fact in demands(first):
            for each in _in_terms_of_statics(candidate, fact):
                changed = candidate.requiring(each)
                if changed is not None and _consistent(changed):
                    extra = 0 if each is not fact or each.relation == "==" else 1
                    yield replace(changed, cost=changed.cost + extra)
        for name in blame.of(first):
            yield from _other_kinds(candidate, name, options[name], first)
        if first.code.startswith("PSC4") and "f64" in f"{first.message()} {first.label()}":
            yield retyped(candidate, FLOAT, "f64", cost=2)


def _in_terms_of_statics(candidate: Candidate, fact: Fact) -> Iterator[Fact]:
    """A demand with a static integer in place of the number that it has in this trial."""
    for name, spec in candidate.specs:
        value = spec.samples[0] if isinstance(spec, StaticSpec) and spec.samples else None
        if type(value) is not int or abs(value) < 2:
            continue
        left, right = (generalised(s, value, name) for s in (fact.left, fact.right))
        if left is not fact.left or right is not fact.right:
            yield Fact(fact.relation, left, right)
    yield fact


def _consistent(candidate: Candidate) -> bool:
    return Assumptions(candidate.facts).consistent() is not Verdict.NO


def _other_kinds(
    candidate: Candidate, name: str, options: Sequence[Alternative], finding: Diagnostic
) -> Iterator[Candidate]:
    """The next thing of each kind that a parameter may be."""
    index = [each for each, _ in candidate.specs].index(name)
    position = candidate.positions[index]
    current = options[position]
    wanted = {"array", "none", "declared"}
    if finding.code in _WANTS_STATIC or current.kind == "static":
        wanted.add("static")
    if finding.code in _WANTS_TUPLE or current.kind == "tuple":
        wanted.add("tuple")
    if finding.code.startswith("PSC4") or finding.code in ("PSC321", "PSC314", "PSC110"):
        wanted.add("dtype")
    for other, option in enumerate(options):
        if other == position or option.kind not in wanted:
            continue
        if option.kind == "dtype" and not _same_rank(option.spec, current.spec):
            continue
        if option.kind == "array" and option.spec == current.spec:
            continue
        wanted.discard(option.kind) if option.kind != "dtype" and other > position else None
        step = max(option.cost - current.cost, 0)
        if option.kind == "static" and finding.code in _WANTS_STATIC:
            step = 0
        yield candidate.with_spec(name, option.spec, other, 2 + step)


def _same_rank(one: Spec, other: Spec) -> bool:
    return (
        isinstance(one, ArraySpec)
        and isinstance(other, ArraySpec)
        and len(one.dims) == len(other.dims)
    )


def retyped(candidate: Candidate, old: str, new: str, cost: int = 0) -> Candidate:
    """Another dtype in place of a class, in every parameter."""

    def changed(spec: ArraySpec) -> ArraySpec:
        meant = isinstance(spec.dtype, DTypeClass) and spec.dtype.name == old
        return array(new, *spec.dims) if meant else spec

    specs = tuple((name, map_arrays(spec, changed)) for name, spec in candidate.specs)
    return replace(candidate, specs=specs, cost=candidate.cost + cost)
