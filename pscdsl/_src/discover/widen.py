"""Widening: an accepted candidate made as general as the checker lets it be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from pscdsl._src.discover.candidates import FLOAT, INT, Candidate, map_arrays
from pscdsl._src.discover.results import BATCH, declared_result
from pscdsl._src.discover.search import retyped
from pscdsl._src.discover.statics import first_dtypes, fixed, opened
from pscdsl._src.discover.trials import Trials
from pscdsl.typing.dims import Dim, names
from pscdsl.typing.notation import DimSpec, Variadic
from pscdsl.typing.signatures import (
    ArraySpec,
    DTypeClass,
    OptionalSpec,
    Spec,
    arrays_of,
    walk_paths,
)


def widened(trials: Trials, accepted: Candidate) -> Candidate | None:
    """The candidate with static values, leading axes and dtypes left open; None if none fits."""
    if not trials.accepts(first_dtypes(fixed(accepted))):
        return None
    candidate = opened(trials, _as_it_asserts(trials, accepted))
    candidate = _batched(trials, candidate)
    for each in _dtypes(candidate):
        if trials.accepts(each):
            return each
    return None


def _as_it_asserts(trials: Trials, candidate: Candidate) -> Candidate:
    """Sizes that the function itself asserts to be equal, as one name."""
    program = trials.run(first_dtypes(fixed(candidate))).program
    changed = candidate
    for fact in () if program is None else program.facts.facts:
        if fact.relation == "==" and fact not in candidate.facts:
            renamed = {str(size) for size in (fact.left, fact.right)} <= set(changed.sizes())
            changed = (changed.requiring(fact) or changed) if renamed else changed
    return changed if trials.accepts(first_dtypes(fixed(changed))) else candidate


def has_group(spec: Spec) -> bool:
    """Whether a type has an open number of leading axes."""
    return any(isinstance(dim, Variadic) for each in arrays_of(spec) for dim in each.dims)


def _batched(trials: Trials, candidate: Candidate) -> Candidate:
    """Leading axes left open, if the function lets them be."""
    quick = first_dtypes(fixed(candidate))
    for each in _groupings(candidate):
        grouped = replace(quick, specs=_grouped(quick, each))
        if trials.accepts(grouped) and declared_result(trials, grouped) is not None:
            return replace(candidate, specs=_grouped(candidate, each))
    return candidate


Grouping = dict[str, int]
"""For some parameters, how many of their leading axes become one group."""


def _groupings(candidate: Candidate) -> Iterator[Grouping]:
    """The groups to try, the largest first."""
    arrays: dict[str, tuple[DimSpec, ...]] = {}
    for name, spec in candidate.specs:
        inner = spec.item if isinstance(spec, OptionalSpec) else spec
        if isinstance(inner, ArraySpec) and inner.dims:
            arrays[name] = inner.dims
        elif not isinstance(inner, ArraySpec) and any(True for _ in arrays_of(inner)):
            return
    if not arrays:
        return
    demanded = frozenset[str]().union(*(fact.names() for fact in candidate.facts))
    shared = _common_prefix(list(arrays.values()))
    for length in range(shared, 0, -1):
        prefix = next(iter(arrays.values()))[:length]
        inside = frozenset[str]().union(*(_names(dims[length:]) for dims in arrays.values()))
        if not _names(prefix) & (inside | demanded) and len(_names(prefix)) == length:
            yield dict.fromkeys(arrays, length)
    yield dict.fromkeys(arrays, 0)
    if len(arrays) > 1:
        yield {next(iter(arrays)): 0}


def _grouped(candidate: Candidate, grouping: Grouping) -> tuple[tuple[str, Spec], ...]:
    def grouped(name: str) -> Callable[[ArraySpec], ArraySpec]:
        return lambda spec: replace(spec, dims=(BATCH, *spec.dims[grouping[name] :]))

    return tuple(
        (name, map_arrays(spec, grouped(name)) if name in grouping else spec)
        for name, spec in candidate.specs
    )


def _common_prefix(shapes: Sequence[tuple[DimSpec, ...]]) -> int:
    length = 0
    for dims in zip(*shapes, strict=False):
        if any(dim != dims[0] for dim in dims) or not isinstance(dims[0], Dim):
            break
        length += 1
    return length


def _names(dims: Sequence[DimSpec]) -> frozenset[str]:
    return frozenset[str]().union(*(names(dim) for dim in dims if isinstance(dim, Dim)))


def _dtypes(candidate: Candidate) -> Iterator[Candidate]:
    """The candidate over its classes of dtypes, then with ever fewer dtypes."""
    yield candidate
    classes = {
        part.dtype.name
        for name, spec in candidate.specs
        for _, part in walk_paths(spec, name)
        if isinstance(part, ArraySpec) and isinstance(part.dtype, DTypeClass)
    }
    if INT in classes:
        for dtype in ("i32", "i64"):
            yield retyped(candidate, INT, dtype)
    if FLOAT in classes:
        for dtype in ("f32", "f64"):
            narrow = retyped(candidate, FLOAT, dtype)
            yield narrow
            if INT in classes:
                yield retyped(narrow, INT, "i32" if dtype == "f32" else "i64")
    yield first_dtypes(fixed(candidate))
