"""Other ranks: signatures of the same function in which one array has another number of axes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pscdsl._src.discover.alternatives import Alternative
from pscdsl._src.discover.blame import Blame
from pscdsl._src.discover.candidates import Candidate
from pscdsl._src.discover.obstacles import Branches
from pscdsl._src.discover.search import search
from pscdsl._src.discover.trials import Trials
from pscdsl.typing.signatures import ArraySpec

MAX_TRIED = 4
MAX_STEPS = 6
"""Trials for one of them: what sizes have to be equal is all that is asked."""
MAX_OTHER = 2
"""Higher ranks are not tried."""


def other_ranks(
    trials: Trials,
    accepted: Candidate,
    options: Mapping[str, Sequence[Alternative]],
    blame: Blame,
    branches: Branches,
) -> Iterator[Candidate]:
    """Candidates that are accepted, too, each with another rank of one parameter."""
    tried = 0
    for name, spec in accepted.specs:
        if not isinstance(spec, ArraySpec):
            continue
        for option in options[name]:
            if not isinstance(option.spec, ArraySpec) or option.kind != "array":
                continue
            rank = len(option.spec.dims)
            if rank in (0, len(spec.dims)) or rank > MAX_OTHER or tried == MAX_TRIED:
                continue
            tried += 1
            pinned = {n: (_fresh(options[n], s),) for n, s in accepted.specs}
            options_here = {**pinned, name: (option,)}
            found = search(trials, options_here, blame, branches, MAX_STEPS, preconditions=False)
            if found.accepted is not None:
                yield found.accepted


def _fresh(options: Sequence[Alternative], spec: object) -> Alternative:
    """The alternative that a type came from, its sizes not yet made equal to others."""
    for option in options:
        if isinstance(option.spec, ArraySpec) and isinstance(spec, ArraySpec):
            if option.spec.dtype == spec.dtype and len(option.spec.dims) == len(spec.dims):
                return option
    return next((option for option in options if option.spec == spec), options[0])
