"""Static parameters: which of their values a function takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pscdsl._src.discover.candidates import BOOL, FLOAT, INT, Candidate
from pscdsl._src.discover.obstacles import firmness
from pscdsl._src.discover.search import retyped
from pscdsl._src.discover.trials import Trials
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.dims import variable
from pscdsl.typing.signatures import Spec, StaticSpec
from pscdsl.typing.trees import StaticType

NUMBERS = (0, 1, 2, 3, 4)
"""What `psc.Static[int]` is tried with."""


def fixed(candidate: Candidate) -> Candidate:
    """Only the first of each parameter's static values."""
    return _with_samples(candidate, {n: (s.samples or ())[:1] for n, s in _static(candidate)})


def _static(candidate: Candidate) -> Iterator[tuple[str, StaticSpec]]:
    for name, spec in candidate.specs:
        if isinstance(spec, StaticSpec) and spec.kind != "Callable":
            yield name, spec


def _with_samples(candidate: Candidate, samples: dict[str, tuple[object, ...]]) -> Candidate:
    specs: list[tuple[str, Spec]] = []
    for name, spec in candidate.specs:
        if isinstance(spec, StaticSpec) and name in samples:
            spec = replace(spec, samples=samples[name])
        specs.append((name, spec))
    return replace(candidate, specs=tuple(specs))


def first_dtypes(candidate: Candidate) -> Candidate:
    """The usual dtype in place of each class."""
    for old, new in ((FLOAT, "f32"), (INT, "i32"), (BOOL, "bool")):
        candidate = retyped(candidate, old, new)
    return candidate


def opened(trials: Trials, candidate: Candidate) -> Candidate:
    """As many values of each static parameter as are accepted beside the defaults of the others."""
    quick = first_dtypes(fixed(candidate))
    taken: dict[str, tuple[object, ...]] = {}
    facts: list[Fact] = []
    for name, spec in _static(candidate):
        samples = spec.samples or ()
        good = [v for v in samples if trials.accepts(_with_samples(quick, {name: (v,)}))]
        taken[name] = tuple(good) or samples[:1]
        numbers = [v for v in NUMBERS if v in good]
        if spec.kind == "int" and numbers and numbers == list(range(numbers[0], 5)):
            if numbers[0]:
                facts.append(Fact("<=", numbers[0], variable(name)))
    several = _with_samples(replace(candidate, facts=(*facts, *candidate.facts)), taken)
    one = _with_samples(candidate, {n: s[:1] for n, s in taken.items()})
    return several if trials.accepts(first_dtypes(several)) else one


@dataclass(frozen=True)
class Refused:
    """A value of a static parameter that does not fit, and the obstacle."""

    parameter: str
    value: object
    finding: Diagnostic

    def __str__(self) -> str:
        return f"{self.parameter}={self.value!r}: {self.finding.code} {self.finding.message()}"


def refused_values(trials: Trials, tried: Candidate, final: Candidate) -> Iterator[Refused]:
    """The static values with which the function meets an obstacle that no signature mends."""
    quick = first_dtypes(fixed(tried))
    kept = dict(_static(final))
    for name, spec in _static(tried):
        if name not in kept or is_open(kept[name], final, name):
            continue
        fitting = {StaticType(each) for each in kept[name].samples or ()}
        for value in spec.samples or ():
            if StaticType(value) not in fitting:
                errors = trials.run(_with_samples(quick, {name: (value,)})).errors
                blocking = [each for each in errors if firmness(each)]
                if blocking:
                    yield Refused(name, value, blocking[0])


def is_open(spec: StaticSpec, candidate: Candidate, name: str) -> bool:
    """Whether a static parameter takes every value of its type that its preconditions admit."""
    samples = {StaticType(each) for each in spec.samples or ()}
    if spec.kind == "bool":
        return samples >= {StaticType(False), StaticType(True)}
    if spec.kind != "int":
        return False
    bounds = [
        fact.explicit_lower_bound() for fact in candidate.facts if fact.names() == frozenset({name})
    ]
    least = max((bound[1] for bound in bounds if bound is not None), default=0)
    return samples >= {StaticType(value) for value in NUMBERS if value >= least}
