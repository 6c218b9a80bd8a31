"""`grad`, Jacobians and `hessian`; `checkpoint` and `stop_gradient`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, get_args

from pscdsl._src.frontend.transformations.modes import require_forward
from pscdsl._src.frontend.transformations.traced import (
    Options,
    Traced,
    Transformed,
    made_of,
    name_of,
    parts_of,
    trace,
    transformed,
)
from pscdsl._src.frontend.trees.pytrees import applicable, flatten, unflatten
from pscdsl._src.frontend.values.values import Applicable, StaticFunction, describe, is_traced
from pscdsl._src.interpreters.batching import batch, repeated
from pscdsl._src.interpreters.jvp import Mask, has_tangent
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.primitives.control.custom_derivatives import StopGradient
from pscdsl._src.primitives.control.remat import Checkpoint, Policy
from pscdsl._src.primitives.creation import Iota
from pscdsl._src.primitives.elementwise import Convert, equal
from pscdsl._src.primitives.shaping import Reshape, Slice, Transpose
from pscdsl._src.transforms.linearize import jvp_of, linearize
from pscdsl.typing.array_types import (
    ArrayType,
    NoneType,
    RecordType,
    TupleType,
    Type,
    leaves,
    paths,
    size_of,
)
from pscdsl.typing.codes.control import BadBody
from pscdsl.typing.codes.derivatives import NotAScalar
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import I32
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

# The results that transformations declare: those of a kernel, as what is made of it has them.


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
    fields = tuple([(name, item) for (name, _), item in zip(like.fields, items, strict=True)])
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


# `grad` and `value_and_grad`.


def grad(here: Builder | None, fun: Any, argnums: Any = 0, has_aux: bool = False) -> Transformed:
    """The gradient of a function of one real result."""
    return transformed(_run, gradient_signature, "grad", fun, argnums, has_aux)


def value_and_grad(
    here: Builder | None, fun: Any, argnums: Any = 0, has_aux: bool = False
) -> Transformed:
    """The value and the gradient."""
    return transformed(_run, value_and_gradient_signature, "value_and_grad", fun, argnums, has_aux)


def _run(options: Options, here: Builder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    where, traced = options.trace(here, args, kwargs)
    leaves = list(paths(traced.result))
    if len(leaves) != 1 or leaves[0][1].shape or not leaves[0][1].dtype.is_float:
        function, found = name_of(options.function), str(traced.result)
        raise Failure(NotAScalar(transformation=options.called, function=function, found=found))
    active = (*[False] * len(traced.captured), *[True] * len(traced.leaves))
    # What is returned besides is not differentiated: only the first result has a cotangent.
    results: list[Value] = []
    with made_of(here, traced.source, traced.operands, results):
        values, linear = linearize(here, traced.block, traced.operands, active, 1)
        results += values
        one = here.literal(1.0, results[0].dtype)
        cotangents = iter(linear.backward(here, [one]))
    gradient = options.selected(
        where, {at: unflatten(each.tree, cotangents) for at, each in traced.varying.items()}
    )
    value = unflatten(traced.result, iter(results[:1]))
    if traced.aux is None:
        return gradient if options.name == "grad" else (value, gradient)
    aux = unflatten(traced.aux, iter(results[1:]))
    return (gradient, aux) if options.name == "grad" else ((value, aux), gradient)


# `jacfwd`, `jacrev` and `hessian`: all derivatives of all results.


def jacfwd(here: Builder | None, fun: Any, argnums: Any = 0, has_aux: bool = False) -> Transformed:
    """All derivatives, a column at a time: for few inputs and many results."""
    return transformed(_run_jacobian, jacobian_signature, "jacfwd", fun, argnums, has_aux)


def jacrev(here: Builder | None, fun: Any, argnums: Any = 0, has_aux: bool = False) -> Transformed:
    """All derivatives, a row at a time: for many inputs and few results."""
    return transformed(_run_jacobian, jacobian_signature, "jacrev", fun, argnums, has_aux)


def hessian(here: Builder | None, fun: Any, argnums: Any = 0, has_aux: bool = False) -> Transformed:
    """All second derivatives: forward over reverse mode."""
    inner = transformed(_run_jacobian, jacobian_signature, "jacrev", fun, argnums, has_aux)
    made = transformed(_run_jacobian, jacobian_signature, "jacfwd", inner, argnums, has_aux)
    function = applicable(fun, "psc.hessian")
    return Transformed(
        "hessian", function, made.run, lambda own: made.signature(inner.signature(own))
    )


def _run_jacobian(
    options: Options, here: Builder, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    where, traced = options.trace(here, args, kwargs)
    options.require_tangents("the result", traced.result)
    count = sum(1 for _ in leaves(traced.result))
    active = (*[False] * len(traced.captured), *[True] * len(traced.leaves))
    ahead = _by_inputs if options.name == "jacfwd" else _by_outputs
    results: list[Value] = []
    with made_of(here, traced.source, traced.operands, results):
        found, rows = ahead(here, traced, active, count)
        results += found

    def of_inputs(output: int) -> Any:
        derivatives: dict[int, Any] = {}
        first = 0
        for at, each in traced.varying.items():
            size = len(each.leaves)
            derivatives[at] = unflatten(each.tree, iter(rows[output][first : first + size]))
            first += size
        return options.selected(where, derivatives)

    numbers = iter(range(count))
    jacobian = _tree_of(traced.result, lambda: of_inputs(next(numbers)))
    if traced.aux is None:
        return jacobian
    return jacobian, unflatten(traced.aux, iter(results[count:]))


def _tree_of(tree: Type, leaf: Callable[[], Any]) -> Any:
    """A tree with something else than arrays as its leaves."""
    return unflatten(tree, iter(range(sum(1 for _ in leaves(tree)))), lambda _: leaf())


def _by_inputs(
    here: Builder, traced: Traced, active: Mask, count: int
) -> tuple[list[Value], list[list[Value]]]:
    """The results, and for each the derivatives in each input: its shape, then the input's."""
    inputs = [leaf.type for leaf in traced.leaves]
    wanted = tuple(at < count for at in range(len(traced.block.results)))
    moving = jvp_of(here.facts, traced.block, active, wanted)
    require_forward(moving.equations)
    ones, places, size = _unit_rows(here, inputs)
    given = [*traced.operands, *ones]
    flags = [*[False] * len(traced.operands), *[True] * len(ones)]
    found, many = batch(here, moving, given, flags, size)
    first = len(wanted)
    columns = [
        x if is_batched else repeated(x, size)
        for x, is_batched in zip(found[first:], many[first:], strict=True)
    ]
    rows = [
        [_last(_rows_at(x, *place), type_) for place, type_ in zip(places, inputs, strict=True)]
        for x in columns
    ]
    return found[:first], rows


def _by_outputs(
    here: Builder, traced: Traced, active: Mask, count: int
) -> tuple[list[Value], list[list[Value]]]:
    """The same, by running backwards."""
    results, linear = linearize(here, traced.block, traced.operands, active, count)
    ones, places, size = _unit_rows(here, linear.outputs)
    found = linear.backward_rows(here, ones, size)
    rows = [
        [Reshape((*type_.shape, *x.shape[1:]))(_rows_at(x, *place)) for x in found]
        for place, type_ in zip(places, linear.outputs, strict=True)
    ]
    return results, rows


def _unit_rows(
    here: Builder, types: Sequence[ArrayType]
) -> tuple[list[Value], list[tuple[Size, Size]], Size]:
    """Trees of arrays with a single 1, in a batch of all of them.

    Also which rows have the 1 in each array, from and to, and how many there are.
    """
    total: Size = 0
    places: list[tuple[Size, Size]] = []
    for type_ in types:
        end = total + size_of(type_.shape)
        places.append((total, end))
        total = end
    values: list[Value] = []
    for type_, (first, end) in zip(types, places, strict=True):
        size = end - first
        row = here.bind(Iota((total, size), 0, I32), ())[0]
        column = here.bind(Iota((total, size), 1, I32), ())[0]
        ones = Convert(type_.dtype)(equal(row, column + here.size(first, I32)))
        values.append(Reshape((total, *type_.shape))(ones))
    return values, places, total


def _rows_at(x: Value, first: Size, end: Size) -> Value:
    """Some rows of a batch."""
    rest = x.shape[1:]
    starts = (first, *[0 for _ in rest])
    return Slice(starts, (end, *rest), (1,) * x.ndim)(x)


def _last(x: Value, type_: ArrayType) -> Value:
    """A batch over the elements of an input, with these as its last axes."""
    moved = Transpose((*range(1, x.ndim), 0))(x)
    return Reshape((*x.shape[1:], *type_.shape))(moved)


# `checkpoint` and `stop_gradient`: what is saved for the way back, and where the way ends.


def checkpoint(here: Builder | None, fun: Any = None, policy: Any = "nothing") -> Any:
    """The function; on the way back it is computed again."""
    if fun is None:
        return StaticFunction("psc.checkpoint", partial(checkpoint, policy=policy))
    function = applicable(fun, "psc.checkpoint")
    if policy not in get_args(Policy):
        known = ", ".join(map(repr, get_args(Policy)))
        needs = f"one of {known} as its policy"
        raise Failure(BadBody(combinator="psc.checkpoint", needs=needs, found=describe(policy)))
    return Transformed("checkpoint", function, partial(_run_checkpoint, function, policy))


def _run_checkpoint(
    function: Applicable,
    policy: Policy,
    here: Builder,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:
    varying = [place for place, argument in enumerate(args) if _has_arrays(argument)]
    traced = trace(here, "psc.checkpoint", function, args, kwargs, varying)
    results = here.bind(Checkpoint(traced.block, policy), traced.operands)
    return unflatten(traced.result, iter(results))


def _has_arrays(value: Any) -> bool:
    """Whether an argument varies; numbers, functions and the like are as they are."""
    parts = parts_of(value)
    return is_traced(value) if parts is None else any(map(_has_arrays, parts))


def stop_gradient(here: Builder, x: Any) -> Any:
    """The same tree, constant in derivatives."""
    leaves, tree = flatten(here, x, "the argument of `psc.stop_gradient`")
    stopped = [
        StopGradient()(leaf) if isinstance(leaf, Value) and has_tangent(leaf.type) else leaf
        for leaf in leaves
    ]
    return unflatten(tree, iter(stopped))
