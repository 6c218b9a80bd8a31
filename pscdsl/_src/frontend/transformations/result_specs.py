"""The results that transformations declare: those of a kernel, as what is made of it has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from pscdsl.typing.array_types import ArrayType, NoneType, RecordType, TupleType, Type
from pscdsl.typing.notation import Anonymous
from pscdsl.typing.python_containers import is_sequence
from pscdsl.typing.signatures import (
    ArraySpec,
    MapSpec,
    NoneSpec,
    OptionalSpec,
    RecordSpec,
    RepeatedSpec,
    Signature,
    Spec,
    StaticSpec,
    TreeSpec,
    TupleSpec,
)


def gradient_signature(argnums: Any, has_aux: bool, signature: Signature) -> Signature:
    """The signature of `grad`: gradients are like the arguments."""
    found, _, aux = _gradient(argnums, has_aux, signature)
    return replace(signature, result=None if found is None else _tuple(found, *aux))


def value_and_gradient_signature(argnums: Any, has_aux: bool, signature: Signature) -> Signature:
    """The signature of `value_and_grad`."""
    found, value, aux = _gradient(argnums, has_aux, signature)
    result = None if found is None or value is None else TupleSpec((_tuple(value, *aux), found))
    return replace(signature, result=result)


def _gradient(
    argnums: Any, has_aux: bool, signature: Signature
) -> tuple[Spec | None, Spec | None, list[Spec]]:
    """The gradient, the value, and what is returned besides."""
    value, *aux = _parted(signature.result, has_aux)
    return None if value is None else _chosen(signature, argnums), value, aux


def jacobian_signature(argnums: Any, has_aux: bool, signature: Signature) -> Signature:
    """The signature of `jacfwd` and `jacrev`: the argument's axes stand after the result's."""
    value, *aux = _parted(signature.result, has_aux)
    found = _chosen(signature, argnums)
    if value is None or found is None or None in aux:
        return replace(signature, result=None)
    inner = found

    def of_result(result: ArraySpec) -> Spec | None:
        return changed(inner, lambda x: replace(result, dims=(*result.dims, *x.dims)))

    result = changed(value, of_result)
    return replace(signature, result=None if result is None else _tuple(result, *aux))


def _parted(result: Spec | None, has_aux: bool) -> list[Any]:
    """The declared value, and what is declared besides."""
    if not has_aux:
        return [result]
    if isinstance(result, TupleSpec) and len(result.items) == 2:
        return list(result.items)
    return [None]


def _tuple(first: Spec, *more: Spec) -> Spec:
    return TupleSpec((first, *more)) if more else first


def _chosen(signature: Signature, argnums: Any) -> Spec | None:
    """The declared types of the arguments that `argnums` names."""
    specs = [p.spec for p in signature.parameters if not p.keyword_only]
    found: list[Spec] = []
    for place in argnums if is_sequence(argnums) else (argnums,):
        if not isinstance(place, int) or not -len(specs) <= place < len(specs):
            return None
        found.append(specs[place])
    return TupleSpec(tuple(found)) if is_sequence(argnums) else found[0]


def changed(spec: Spec, change: Callable[[ArraySpec], Spec | None]) -> Spec | None:
    """The same tree with something else in place of its arrays; None where that has no spec."""
    if isinstance(spec, ArraySpec):
        if any(isinstance(dim, Anonymous) for dim in spec.dims):
            return None  # each `_` is a size of its own
        return change(spec)
    if isinstance(spec, TupleSpec):
        items = _all(changed(each, change) for each in spec.items)
        return None if items is None else TupleSpec(items)
    if isinstance(spec, RecordSpec):
        items = _all(changed(each, change) for _, each in spec.fields)
        return None if items is None else _record(spec, items)
    if isinstance(spec, RepeatedSpec | MapSpec | OptionalSpec):
        item = changed(spec.item, change)
        return None if item is None else replace(spec, item=item)
    return None if isinstance(spec, StaticSpec | TreeSpec) else spec


def _all(specs: Iterable[Spec | None]) -> tuple[Spec, ...] | None:
    found = tuple(specs)
    known = tuple([each for each in found if each is not None])
    return known if len(known) == len(found) else None


def _record(like: RecordSpec | RecordType, items: Sequence[Spec]) -> RecordSpec:
    """A record with other fields than its class declares."""
    fields = tuple([(name, each) for (name, _), each in zip(like.fields, items, strict=True)])
    return RecordSpec(like.record, fields, spelled=True)


def spec_of_type(tree: Type | None) -> Spec | None:
    """The specification that fits one type only; None if there is none."""
    if isinstance(tree, ArrayType):
        return ArraySpec(tree.dtype, tree.shape)
    if isinstance(tree, TupleType):
        items = _all(map(spec_of_type, tree.items))
        return None if items is None else TupleSpec(items)
    if isinstance(tree, RecordType):
        items = _all(spec_of_type(each) for _, each in tree.fields)
        return None if items is None else _record(tree, items)
    return NoneSpec() if isinstance(tree, NoneType) else None
