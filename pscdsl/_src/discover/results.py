"""What a function returns under a candidate, as a type that can be declared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pscdsl._src.discover.candidates import Candidate, generalised, map_arrays
from pscdsl._src.discover.trials import Trials, first_choice
from pscdsl.typing.arrays import ArrayType
from pscdsl.typing.dims import Dim, variable
from pscdsl.typing.dtypes import DType
from pscdsl.typing.notation import DimSpec, Variadic
from pscdsl.typing.signatures import (
    ArraySpec,
    DTypeClass,
    NoneSpec,
    Spec,
    StaticSpec,
    TupleSpec,
    walk_paths,
)
from pscdsl.typing.trees import NoneType, TupleType, Type

BATCH = Variadic("batch")


def declared_result(trials: Trials, candidate: Candidate) -> Spec | None:
    """A result type with which every choice of the candidate is accepted; None if there is none."""
    definition = trials.definition(candidate)
    program = trials.one(definition, first_choice(definition.signature)).program
    if program is None or program.result is None:
        return None
    for classes in (_classes(candidate), {}):
        spec = _result(program.result, classes)
        if spec is not None:
            for each in dict.fromkeys((*_over_statics(spec, candidate), spec)):
                if trials.accepts(candidate, each):
                    return each
    return None


def _classes(candidate: Candidate) -> dict[DType, DTypeClass]:
    """The classes of the parameters, by the dtypes that are tried first."""
    found: dict[DType, DTypeClass] = {}
    for name, spec in candidate.specs:
        for _, part in walk_paths(spec, name):
            if isinstance(part, ArraySpec) and isinstance(part.dtype, DTypeClass):
                if len(part.dtype.members) > 1:
                    found[part.dtype.usual_first()[0]] = part.dtype
    return found


def _result(tree: Type, classes: Mapping[DType, DTypeClass]) -> Spec | None:
    if isinstance(tree, ArrayType):
        dims = tuple(BATCH if dim == variable("batch_0") else dim for dim in tree.shape)
        return ArraySpec(classes.get(tree.dtype, tree.dtype), dims)
    if isinstance(tree, NoneType):
        return NoneSpec()
    if isinstance(tree, TupleType):
        items = [_result(each, classes) for each in tree.items]
        kept = tuple(each for each in items if each is not None)
        return TupleSpec(kept) if len(kept) == len(items) else None
    return None


def _over_statics(spec: Spec, candidate: Candidate) -> Iterator[Spec]:
    """The result with static parameters in place of the numbers that they are at first."""
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
