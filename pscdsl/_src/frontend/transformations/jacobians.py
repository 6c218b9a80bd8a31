"""`jacfwd`, `jacrev` and `hessian`: all derivatives of all results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pscdsl._src.frontend.transformations.forward_mode import require_forward
from pscdsl._src.frontend.transformations.options import Options, transformed
from pscdsl._src.frontend.transformations.origins import made_of
from pscdsl._src.frontend.transformations.result_specs import jacobian_signature
from pscdsl._src.frontend.transformations.traced import Traced, Transformed
from pscdsl._src.frontend.trees.pytrees import unflatten
from pscdsl._src.frontend.trees.tracing import applicable
from pscdsl._src.interpreters.batching import batch, repeated
from pscdsl._src.interpreters.jvp import Mask
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.primitives.creation import Iota
from pscdsl._src.primitives.elementwise import Convert, equal
from pscdsl._src.primitives.shaping import Reshape, Slice, Transpose
from pscdsl._src.transforms.linearize import jvp_of, linearize
from pscdsl.typing.array_types import ArrayType, Type, leaves, size_of
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import I32


def jacfwd(here: Builder | None, fun: Any, argnums: Any = 0, has_aux: bool = False) -> Transformed:
    """All derivatives, a column at a time: for few inputs and many results."""
    return transformed(_run, jacobian_signature, "jacfwd", fun, argnums, has_aux)


def jacrev(here: Builder | None, fun: Any, argnums: Any = 0, has_aux: bool = False) -> Transformed:
    """All derivatives, a row at a time: for many inputs and few results."""
    return transformed(_run, jacobian_signature, "jacrev", fun, argnums, has_aux)


def hessian(here: Builder | None, fun: Any, argnums: Any = 0, has_aux: bool = False) -> Transformed:
    """All second derivatives: forward over reverse mode."""
    inner = transformed(_run, jacobian_signature, "jacrev", fun, argnums, has_aux)
    made = transformed(_run, jacobian_signature, "jacfwd", inner, argnums, has_aux)
    function = applicable(fun, "psc.hessian")
    return Transformed(
        "hessian", function, made.run, lambda own: made.signature(inner.signature(own))
    )


def _run(options: Options, here: Builder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
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
    inputs = [each.type for each in traced.leaves]
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
    for each in types:
        end = total + size_of(each.shape)
        places.append((total, end))
        total = end
    found: list[Value] = []
    for each, (first, end) in zip(types, places, strict=True):
        size = end - first
        row = here.bind(Iota((total, size), 0, I32), ())[0]
        column = here.bind(Iota((total, size), 1, I32), ())[0]
        ones = Convert(each.dtype)(equal(row, column + here.size(first, I32)))
        found.append(Reshape((total, *each.shape))(ones))
    return found, places, total


def _rows_at(x: Value, first: Size, end: Size) -> Value:
    """Some rows of a batch."""
    rest = x.shape[1:]
    starts = (first, *[0 for _ in rest])
    return Slice(starts, (end, *rest), (1,) * x.ndim)(x)


def _last(x: Value, type_: ArrayType) -> Value:
    """A batch over the elements of an input, with these as its last axes."""
    moved = Transpose((*range(1, x.ndim), 0))(x)
    return Reshape((*x.shape[1:], *type_.shape))(moved)
