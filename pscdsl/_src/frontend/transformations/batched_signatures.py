"""The signature of a function over a batch: an axis more in each parameter that is mapped."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pscdsl._src.frontend.transformations.parts import parts_of
from pscdsl._src.frontend.values.values import describe
from pscdsl.typing.codes.control import AxisMismatch
from pscdsl.typing.codes.limits import NotSupported
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, name
from pscdsl.typing.notation import Variadic
from pscdsl.typing.python_containers import is_sequence
from pscdsl.typing.signatures import (
    ArraySpec,
    MapSpec,
    NoneSpec,
    OptionalSpec,
    Parameter,
    RecordSpec,
    RepeatedSpec,
    Signature,
    Spec,
    TreeSpec,
    TupleSpec,
)


def batched_signature(in_axes: Any, out_axes: Any, signature: Signature) -> Signature:
    """The signature over a batch; its size gets a name that is not taken.

    A default is the same for all rows: of a parameter that has one, and is mapped, None says that
    it is left out.
    """
    taken = set(signature.size_names())
    called = "batch"
    while called in taken:
        called += "_"
    size = name(called)
    positional = [p for p in signature.parameters if not p.keyword_only]
    axes = list(in_axes) if is_sequence(in_axes) else [in_axes] * len(positional)
    if len(axes) > len(positional):
        why = f"`{signature.name}` has {len(positional)} positional parameters"
        raise Failure(AxisMismatch(given=f"in_axes has {len(axes)} items", why=why))
    by_name = dict(zip([p.name for p in positional], axes, strict=False))
    parameters: list[Parameter] = []
    for p in signature.parameters:
        if p.has_default and p in positional[len(axes) :]:
            parameters.append(replace(p, spec=NoneSpec()))
            continue
        spec = _batched(p.spec, by_name.get(p.name, 0), size, p.name)
        if p.has_default and spec != p.spec and not isinstance(spec, OptionalSpec):
            spec = OptionalSpec(spec)
        parameters.append(replace(p, spec=spec))
    result = signature.result
    try:
        result = None if result is None else _batched(result, out_axes, size, "the result")
    except Failure:
        result = None  # whoever makes the results says what is wrong
    return replace(signature, parameters=tuple(parameters), result=result)


def _batched(spec: Spec, axes: Any, size: Dim, where: str) -> Spec:
    if axes is None:
        return spec
    if isinstance(spec, ArraySpec):
        return replace(spec, dims=_inserted(spec, axes, size, where))
    if isinstance(spec, TreeSpec):
        if axes != 0:
            what = f"a batch along the axes {describe(axes)} of {where}, which is any tree"
            raise Failure(NotSupported(what=what, instead="let the batch be the first axis"))
        return replace(spec, batch=(size, *spec.batch))
    if isinstance(spec, OptionalSpec):
        return OptionalSpec(_batched(spec.item, axes, size, where))
    if isinstance(spec, RepeatedSpec | MapSpec):
        if not isinstance(axes, int):
            what = f"different axes for the items of {where}, which may be any number"
            raise Failure(NotSupported(what=what, instead="give one axis for all of them"))
        return replace(spec, item=_batched(spec.item, axes, size, where))
    if not isinstance(spec, TupleSpec | RecordSpec):
        return spec
    items = list(spec.items) if isinstance(spec, TupleSpec) else [each for _, each in spec.fields]
    own = [axes] * len(items) if isinstance(axes, int) else parts_of(axes)
    if own is None or len(own) != len(items):
        given = f"in_axes of {where} is {describe(axes)}"
        raise Failure(AxisMismatch(given=given, why=f"{where} is {spec}"))
    pairs = zip(items, own, strict=True)
    new = tuple(_batched(each, axis, size, where) for each, axis in pairs)
    if isinstance(spec, TupleSpec):
        return TupleSpec(new)
    names = [each for each, _ in spec.fields]
    return replace(spec, fields=tuple(zip(names, new, strict=True)), spelled=True)


def _inserted(spec: ArraySpec, axis: Any, size: Dim, where: str) -> tuple[Any, ...]:
    dims = list(spec.dims)
    rank = len(dims) + 1
    if not isinstance(axis, int) or not -rank <= axis < rank:
        raise Failure(AxisMismatch(given=f"axis {axis} of {where}", why=f"a row of it is {spec}"))
    at = axis % rank
    groups = [i for i, dim in enumerate(dims) if isinstance(dim, Variadic)]
    if groups and not (at <= groups[0] if axis >= 0 else at > groups[-1]):
        what = f"a batch along axis {axis} of {where}, which is {spec}"
        raise Failure(NotSupported(what=what, instead="let the batch be the first axis"))
    dims.insert(at, size)
    return tuple(dims)
