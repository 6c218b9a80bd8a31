"""An accepted candidate made as general as the checker lets it be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pscdsl._src.discover.candidates import (
    FLOAT,
    INT,
    Alternative,
    Candidate,
    generalised,
    map_arrays,
)
from pscdsl._src.discover.search import (
    NUMBERS,
    Blame,
    Branches,
    Trials,
    firmness,
    first_choice,
    first_dtypes,
    fixed,
    is_open,
    retyped,
    search,
    statics,
    usual_dtype,
    with_samples,
)
from pscdsl._src.language.writes import own_type
from pscdsl.typing.array_types import ArrayType, NoneType, StaticType, TupleType, Type
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.shapes_of_arguments import AssertionFails
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.dims import Dim, names, variable
from pscdsl.typing.dtypes import DType
from pscdsl.typing.signatures import (
    ArraySpec,
    DimSpec,
    DTypeClass,
    NoneSpec,
    OptionalSpec,
    Spec,
    StaticSpec,
    TupleSpec,
    Variadic,
    arrays_of,
    walk_paths,
)

# The result of a function under a candidate, as a type that can be declared.


BATCH = Variadic("batch")


def declared_result(trials: Trials, candidate: Candidate) -> Spec | None:
    """Return a result type that every choice of the candidate satisfies; None if there is none."""
    if trials.exhausted:
        return None
    definition = trials.definition(candidate)
    program = trials.one(definition, first_choice(definition.signature)).program
    own = None if program is None else own_type(program.result, len(candidate.writes))
    if own is None:
        return None
    for classes in (_classes(candidate), {}):
        spec = _result(own, classes)
        if spec is not None:
            for each in dict.fromkeys((*_generalise_statics(spec, candidate), spec)):
                if trials.accepts(candidate, each):
                    return each
    return None


def _classes(candidate: Candidate) -> dict[DType, DTypeClass]:
    """Return the classes of the parameters, by the dtypes that are tried first."""
    found: dict[DType, DTypeClass] = {}
    for name, spec in candidate.specs:
        for _, part in walk_paths(spec, name):
            if isinstance(part, ArraySpec) and isinstance(part.dtype, DTypeClass):
                if len(part.dtype.members) > 1:
                    found[usual_dtype(part.dtype)] = part.dtype
    return found


def _result(tree: Type, classes: Mapping[DType, DTypeClass]) -> Spec | None:
    if isinstance(tree, ArrayType):
        dims = tuple(BATCH if dim == variable("batch_0") else dim for dim in tree.shape)
        return ArraySpec(classes.get(tree.dtype, tree.dtype), dims)
    if isinstance(tree, NoneType):
        return NoneSpec()
    if isinstance(tree, TupleType):
        items = [_result(item, classes) for item in tree.items]
        kept = tuple(item for item in items if item is not None)
        return TupleSpec(kept) if len(kept) == len(items) else None
    return None


def _generalise_statics(spec: Spec, candidate: Candidate) -> Iterator[Spec]:
    """Yield the result with static parameters in place of the numbers that they are at first."""
    changed = spec
    for name, each in candidate.specs:
        value = each.samples[0] if isinstance(each, StaticSpec) and each.samples else None
        if type(value) is int:
            yield _with_name(spec, name, value)
            changed = _with_name(changed, name, value)
    yield changed


def _with_name(spec: Spec, name: str, value: int) -> Spec:
    def changed(array: ArraySpec) -> ArraySpec:
        dims: tuple[DimSpec, ...] = tuple(
            generalised(dim, value, name) if isinstance(dim, int | Dim) else dim
            for dim in array.dims
        )
        return replace(array, dims=dims)

    return map_arrays(spec, changed)


# Static parameters: which of their values a function takes.


def opened(trials: Trials, candidate: Candidate) -> Candidate:
    """Add to each static parameter all values that are accepted together with defaults."""
    quick = first_dtypes(fixed(candidate))
    taken: dict[str, tuple[object, ...]] = {}
    facts: list[Fact] = []
    for name, spec in statics(candidate):
        samples = spec.samples or ()
        good = [v for v in samples if trials.accepts(with_samples(quick, {name: (v,)}))]
        taken[name] = tuple(good) or samples[:1]
        numbers = [v for v in NUMBERS if v in good]
        if spec.kind == "int" and numbers and numbers == list(range(numbers[0], 5)):
            if numbers[0]:
                facts.append(Fact("<=", numbers[0], variable(name)))
    several = with_samples(replace(candidate, facts=(*facts, *candidate.facts)), taken)
    one = with_samples(candidate, {n: s[:1] for n, s in taken.items()})
    return several if trials.accepts(first_dtypes(several)) else one


def suits(trials: Trials, candidate: Candidate) -> bool:
    """Return whether a candidate needs no particular number just to make it work.

    A static parameter takes every number from a bound on, or those that calls or a default of a
    size pass, or those that the function itself admits.
    """
    numbers = [name for name, spec in statics(candidate) if spec.kind == "int"]
    unproven = [name for name in numbers if not _spoken_for(trials, name)]
    if not unproven:
        return True
    final = opened(trials, candidate)
    kept = dict(statics(final))
    for name in unproven:
        good = [v for v in NUMBERS if v in (kept[name].samples or ())]
        rest = [v for v in NUMBERS if v not in good and (not good or v > good[0])]
        if not good or not all(_is_asserted(trials, candidate, name, value) for value in rest):
            return False
    return True


def _spoken_for(trials: Trials, name: str) -> bool:
    """Return whether a call or a default passes an integer where the function needs one."""
    passed = [each.arguments.get(name) for each in trials.calls if each.arguments is not None]
    if name in trials.sizes:
        passed.append(trials.closure.defaults.get(name))
    return any(type(value) is int for value in passed)


def _is_asserted(trials: Trials, candidate: Candidate, name: str, value: int) -> bool:
    """Return whether the function itself refuses a number."""
    quick = first_dtypes(fixed(candidate))
    errors = trials.run(with_samples(quick, {name: (value,)})).errors
    return bool(errors) and all(isinstance(error, AssertionFails) for error in errors)


@dataclass(frozen=True)
class MisfitValue:
    """A value of a static parameter that does not fit, and the obstacle."""

    parameter: str
    value: object
    finding: Diagnostic

    def __str__(self) -> str:
        return f"{self.parameter}={self.value!r}: {self.finding.code} {self.finding.message()}"


def refused_values(trials: Trials, tried: Candidate, final: Candidate) -> Iterator[MisfitValue]:
    """Yield the static values with which the function meets an obstacle for every signature."""
    quick = first_dtypes(fixed(tried))
    kept = dict(statics(final))
    for name, spec in statics(tried):
        if name not in kept or is_open(kept[name], final, name):
            continue
        fitting = {StaticType(each) for each in kept[name].samples or ()}
        for value in spec.samples or ():
            if StaticType(value) not in fitting:
                errors = trials.run(with_samples(quick, {name: (value,)})).errors
                blocking = [error for error in errors if firmness(error)]
                if blocking:
                    yield MisfitValue(name, value, blocking[0])


# Other ranks: signatures of the function in which one array has another number of axes.


MAX_TRIED = 4
MAX_STEPS = 6
"""The most trials for one array; they only ask which sizes have to be equal."""
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
    """Return the alternative that a type came from, its sizes not yet made equal to others."""
    for option in options:
        if isinstance(option.spec, ArraySpec) and isinstance(spec, ArraySpec):
            if option.spec.dtype == spec.dtype and len(option.spec.dims) == len(spec.dims):
                return option
    return next((option for option in options if option.spec == spec), options[0])


# Widening: an accepted candidate made as general as the checker lets it be.


def widened(trials: Trials, accepted: Candidate) -> Candidate | None:
    """Return the candidate with open static values, leading axes and dtypes; None if none fits."""
    if not trials.accepts(first_dtypes(fixed(accepted))):
        return None
    candidate = opened(trials, _apply_assertions(trials, accepted))
    fitting: Candidate | None = None
    for each in _dtypes(_open_batch(trials, candidate)):
        if trials.accepts(each):
            if not trials.refused(each):
                return each
            fitting = fitting or each
    return fitting


def _apply_assertions(trials: Trials, candidate: Candidate) -> Candidate:
    """Sizes that the function itself asserts to be equal, as one name."""
    program = trials.run(first_dtypes(fixed(candidate))).program
    changed = candidate
    for fact in () if program is None else program.facts.facts:
        if fact.relation == "==" and fact not in candidate.facts:
            renamed = {str(size) for size in (fact.left, fact.right)} <= set(changed.sizes())
            changed = (changed.requiring(fact) or changed) if renamed else changed
    return changed if trials.accepts(first_dtypes(fixed(changed))) else candidate


def has_group(spec: Spec) -> bool:
    """Return whether a type has an open number of leading axes."""
    return any(isinstance(dim, Variadic) for each in arrays_of(spec) for dim in each.dims)


def _open_batch(trials: Trials, candidate: Candidate) -> Candidate:
    """Leading axes left open, if the function lets them be."""
    quick = first_dtypes(fixed(candidate))
    for each in _groupings(candidate):
        grouped = replace(quick, specs=_group(quick, each))
        if trials.refused(replace(candidate, specs=_group(candidate, each))):
            continue
        if trials.accepts(grouped) and declared_result(trials, grouped) is not None:
            return replace(candidate, specs=_group(candidate, each))
    return candidate


Grouping = dict[str, int]
"""For some parameters, how many of their leading axes become one group."""


def _groupings(candidate: Candidate) -> Iterator[Grouping]:
    """Yield the groups to try, the largest first."""
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


def _group(candidate: Candidate, grouping: Grouping) -> tuple[tuple[str, Spec], ...]:
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
    """Yield the candidate over its classes of dtypes, then with ever fewer dtypes."""
    yield candidate
    classes = {
        part.dtype.name
        for name, spec in candidate.specs
        for _, part in walk_paths(spec, name)
        if isinstance(part, ArraySpec) and isinstance(part.dtype, DTypeClass)
    }
    if INT in classes:
        for dtype in ("i64", "i32"):
            yield retyped(candidate, INT, dtype)
    if FLOAT in classes:
        for dtype in ("f64", "f32"):
            narrow = retyped(candidate, FLOAT, dtype)
            yield narrow
            if INT in classes:
                yield retyped(narrow, INT, "i32" if dtype == "f32" else "i64")
    yield first_dtypes(fixed(candidate))
