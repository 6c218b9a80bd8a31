"""`vmap`: a function of one row as a function of a batch of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pscdsl._src.analysis.warnings.performance import branches_run_by_all
from pscdsl._src.frontend.transformations.traced import (
    Argument,
    Transformed,
    made_of,
    name_of,
    over_rows,
    parts_of,
    trace,
)
from pscdsl._src.frontend.trees.pytrees import applicable, unflatten
from pscdsl._src.frontend.values.values import Applicable, describe
from pscdsl._src.interpreters.batching import batch, repeated
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.primitives.shaping import Transpose
from pscdsl.typing.array_types import ArrayType, Type, children, leaves, paths
from pscdsl.typing.codes.control import AxisMismatch, BatchSizesDiffer
from pscdsl.typing.codes.limits import NotSupported
from pscdsl.typing.codes.shapes import disagreement
from pscdsl.typing.diagnostics import Failure, Label
from pscdsl.typing.dims import Dim, Size, name
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

# Trees of axes that go with trees of arrays: an axis for a whole subtree, or one for each leaf.


def axes_of(name: str, axes: Any, tree: Type) -> list[int | None]:
    """The axis of each leaf of a tree; None for those that have none."""
    if axes is None or (isinstance(axes, int) and not isinstance(axes, bool)):
        return [axes] * sum(1 for _ in leaves(tree))
    if isinstance(tree, ArrayType):
        given = f"{name} is {describe(axes)} for {tree}"
        raise Failure(AxisMismatch(given=given, why="the axis of an array is an integer, or None"))
    parts = parts_of(axes)
    own = children(tree)
    if parts is None or len(parts) != len(own):
        why = f"it goes with {tree}, which has {len(own)} parts"
        raise Failure(AxisMismatch(given=f"{name} is {describe(axes)}", why=why))
    found: list[int | None] = []
    for part, (_, inner) in zip(parts, own, strict=True):
        found.extend(axes_of(name, part, inner))
    return found


# The signature of a function over a batch: an axis more in each parameter that is mapped.


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


def vmap(
    here: Builder | None, fun: Any, in_axes: Any = 0, out_axes: Any = 0, axis_size: Any = None
) -> Transformed:
    """The function over a batch: each argument along one of its axes, or the same for all."""
    function = applicable(fun, "psc.vmap")
    run = partial(_run, function, in_axes, out_axes, axis_size)
    return Transformed("vmap", function, run, partial(batched_signature, in_axes, out_axes))


def _run(
    function: Applicable,
    in_axes: Any,
    out_axes: Any,
    axis_size: Any,
    here: Builder,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:
    name = "psc.vmap"
    named = dict(kwargs)
    count = len(args)
    # Arguments given by keyword are batched along their first axis.
    values = [*args, *named.values()]
    axes: dict[int, list[int | None]] = {}
    given = _argument_axes(in_axes, count, function) + [0] * len(named)

    def rows(at: int, argument: Argument) -> list[ArrayType]:
        axes[at] = axes_of(f"in_axes of argument {at}", given[at], argument.tree)
        return [
            _row(leaf, axis, place)
            for leaf, axis, place in zip(
                argument.leaves, axes[at], _places(at, argument.tree), strict=True
            )
        ]

    varying = [at for at in range(len(values)) if given[at] is not None]
    wrapped = _Named(function, count, tuple(named))
    traced = trace(here, name, wrapped, values, {}, varying, rows)
    flags = [axis for at in traced.varying for axis in axes[at]]
    leaves = traced.leaves
    size = _size(here, axis_size, leaves, flags)
    moved = [
        x if axis is None else to_front(x, axis) for x, axis in zip(leaves, flags, strict=True)
    ]
    batched = [*[False] * len(traced.captured), *[axis is not None for axis in flags]]
    asked = Label(here.program.span, f"`psc.vmap({name_of(function)})` makes the batch")
    here.program.findings += branches_run_by_all(here.facts, traced.block, batched, asked)
    operands = [*traced.captured, *moved]
    found: list[Value] = []
    rows_block, order = over_rows(here, traced.source, batched, size)
    with made_of(here, rows_block, [operands[at] for at in order], found):
        results, many = batch(here, traced.block, operands, batched, size)
        found += results
    outs = axes_of("out_axes", out_axes, traced.result)
    placed = [
        _placed(x, is_batched, axis, size, place)
        for x, is_batched, axis, (place, _) in zip(
            found, many, outs, paths(traced.result, "result"), strict=True
        )
    ]
    return unflatten(traced.result, iter(placed))


class _Named:
    """A function whose last arguments are given by keyword."""

    def __init__(self, function: Applicable, count: int, names: tuple[str, ...]) -> None:
        self.function = function
        self.count = count
        self.names = names

    def apply(self, here: Builder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call it."""
        del kwargs
        named = dict(zip(self.names, args[self.count :], strict=True))
        return self.function.apply(here, args[: self.count], named)


def _argument_axes(in_axes: Any, count: int, function: Applicable) -> list[Any]:
    """One axis, or tree of axes, for each positional argument."""
    if is_sequence(in_axes):
        items: list[Any] = list(in_axes)
        if len(items) != count and not _have_defaults(function, count, len(items)):
            given = f"in_axes has {_counted(len(items), 'item')}"
            why = f"{_counted(count, 'argument')} given by position"
            raise Failure(
                AxisMismatch(given=given, why=f"there {'is' if count == 1 else 'are'} {why}")
            )
        return items[:count]
    return [in_axes] * count


def _have_defaults(function: Applicable, start: int, stop: int) -> bool:
    """Whether there are such parameters, and none of them need be given."""
    from pscdsl._src.frontend.transformations.derived import signed  # which maps, too

    definition = signed(function)
    if definition is None or stop < start:
        return False
    positional = [p for p in definition.signature.parameters if not p.keyword_only]
    return stop <= len(positional) and all(p.has_default for p in positional[start:stop])


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _places(at: int, tree: Type) -> list[str]:
    return [place for place, _ in paths(tree, f"argument {at}")]


def _row(leaf: Value, axis: int | None, place: str) -> ArrayType:
    """The type of one row."""
    if axis is None:
        return leaf.type
    if not -leaf.ndim <= axis < leaf.ndim:
        raise Failure(AxisMismatch(given=f"axis {axis} of {place}", why=f"it is {leaf.type}"))
    axis %= leaf.ndim
    return leaf.type.with_shape((*leaf.shape[:axis], *leaf.shape[axis + 1 :]))


def _size(
    here: Builder, axis_size: Any, leaves: Sequence[Value], axes: Sequence[int | None]
) -> Size:
    """The common size of the mapped axes."""
    sizes: list[Size] = [
        leaf.shape[axis] for leaf, axis in zip(leaves, axes, strict=True) if axis is not None
    ]
    if axis_size is not None:
        if isinstance(axis_size, bool) or not isinstance(axis_size, int | Dim):
            given = f"axis_size is {describe(axis_size)}"
            raise Failure(
                AxisMismatch(given=given, why="it is a size that is known while checking")
            )
        sizes.append(axis_size)
    if not sizes:
        raise Failure(AxisMismatch(given="no axis is mapped", why="`in_axes` has only None"))
    for size in sizes[1:]:
        if not here.facts.equal(sizes[0], size):
            raise Failure(
                BatchSizesDiffer(
                    sizes=tuple(map(str, dict.fromkeys(sizes))),
                    why=disagreement(here.facts, sizes[0], size),
                )
            )
    return sizes[0]


def to_front(x: Value, axis: int) -> Value:
    """An array with one axis moved to the front."""
    axis %= x.ndim
    if not axis:
        return x
    return Transpose((axis, *[i for i in range(x.ndim) if i != axis]))(x)


def _placed(x: Value, is_batched: bool, axis: int | None, size: Size, place: str) -> Value:
    """A result with the batch where it is wanted."""
    if axis is None:
        if is_batched:
            why = f"{place} differs from row to row"
            raise Failure(AxisMismatch(given="out_axes is None", why=why))
        return x
    batch_ = x if is_batched else repeated(x, size)
    if not -batch_.ndim <= axis < batch_.ndim:
        row = batch_.type.with_shape(batch_.shape[1:])
        many = _counted(batch_.ndim, "axis").replace("axiss", "axes")
        why = f"{place} of a row is {row}: with the batch it has {many}"
        raise Failure(AxisMismatch(given=f"out_axes is {axis}", why=why))
    axis %= batch_.ndim
    if not axis:
        return batch_
    order = [*range(1, batch_.ndim)]
    order.insert(axis, 0)
    return Transpose(tuple(order))(batch_)
