"""`jacfwd`, `jacrev` and `hessian`: all derivatives of all results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pscdsl.builder import Builder, Value
from pscdsl.frontend.pytrees import unflatten
from pscdsl.frontend.tracing import applicable
from pscdsl.frontend.transformations.forward_mode import require_forward
from pscdsl.frontend.transformations.options import Options, transformed
from pscdsl.frontend.transformations.traced import Transformed
from pscdsl.interpreters.replay import zeros
from pscdsl.primitives.creation import Iota
from pscdsl.primitives.elementwise import Convert, equal
from pscdsl.primitives.shaping import Reshape, Transpose
from pscdsl.transforms.linearize import Linear, linearize
from pscdsl.typing.arrays import ArrayType, size_of
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import I32
from pscdsl.typing.trees import Type, leaves


def jacfwd(here: Builder | None, fun: Any, argnums: Any = 0, has_aux: bool = False) -> Transformed:
    """All derivatives, a column at a time: for few inputs and many results."""
    return transformed(_run, "jacfwd", fun, argnums, has_aux)


def jacrev(here: Builder | None, fun: Any, argnums: Any = 0, has_aux: bool = False) -> Transformed:
    """All derivatives, a row at a time: for many inputs and few results."""
    return transformed(_run, "jacrev", fun, argnums, has_aux)


def hessian(here: Builder | None, fun: Any, argnums: Any = 0, has_aux: bool = False) -> Transformed:
    """All second derivatives: forward over reverse mode."""
    inner = transformed(_run, "jacrev", fun, argnums, has_aux)
    made = transformed(_run, "jacfwd", inner, argnums, has_aux)
    return Transformed("hessian", applicable(fun, "psc.hessian"), made.run)


def _run(options: Options, here: Builder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    where, traced = options.trace(here, args, kwargs)
    options.require_tangents("the result", traced.result)
    count = sum(1 for _ in leaves(traced.result))
    active = (*[False] * len(traced.captured), *[True] * len(traced.leaves))
    results, linear = linearize(here, traced.block, traced.operands, active, count)
    if options.name == "jacfwd":
        require_forward(linear.block.equations)
    rows = _by_inputs(here, linear) if options.name == "jacfwd" else _by_outputs(here, linear)

    def of_inputs(output: int) -> Any:
        found: dict[int, Any] = {}
        first = 0
        for at, each in traced.varying.items():
            size = len(each.leaves)
            found[at] = unflatten(each.tree, iter(rows[output][first : first + size]))
            first += size
        return options.selected(where, found)

    numbers = iter(range(count))
    jacobian = _tree_of(traced.result, lambda: of_inputs(next(numbers)))
    if traced.aux is None:
        return jacobian
    return jacobian, unflatten(traced.aux, iter(results[count:]))


def _tree_of(tree: Type, leaf: Callable[[], Any]) -> Any:
    """A tree with something else than arrays as its leaves."""
    return unflatten(tree, iter(range(sum(1 for _ in leaves(tree)))), lambda _: leaf())


def basis(here: Builder, type: ArrayType) -> tuple[Value, Size]:  # noqa: A002
    """All arrays of a type with a single 1, along a first axis, and how many there are."""
    size = size_of(type.shape)
    if not type.shape:
        return here.full(1, (1,), type.dtype), 1
    one = here.bind(Iota((size, size), 0, I32), ())[0]
    other = here.bind(Iota((size, size), 1, I32), ())[0]
    ones = Convert(type.dtype)(equal(one, other))
    return Reshape((size, *type.shape))(ones), size


def _by_inputs(here: Builder, linear: Linear) -> list[list[Value]]:
    """For each result and each input, the derivatives: shape of the result, then of the input."""
    columns: list[list[Value]] = []
    for number, type_ in enumerate(linear.inputs):
        ones, size = basis(here, type_)
        given = [
            ones if at == number else _zero_rows(here, each, size)
            for at, each in enumerate(linear.inputs)
        ]
        found = linear.forward_rows(here, given, size)
        columns.append([_last(x, type_) for x in found])
    return [list(row) for row in zip(*columns, strict=True)]


def _by_outputs(here: Builder, linear: Linear) -> list[list[Value]]:
    found: list[list[Value]] = []
    for number, type_ in enumerate(linear.outputs):
        ones, size = basis(here, type_)
        given = [
            ones if at == number else _zero_rows(here, each, size)
            for at, each in enumerate(linear.outputs)
        ]
        rows = linear.backward_rows(here, given, size)
        found.append([Reshape((*type_.shape, *x.shape[1:]))(x) for x in rows])
    return found


def _zero_rows(here: Builder, type_: ArrayType, size: Size) -> Value:
    return zeros(here, type_.with_shape((size, *type_.shape)))


def _last(x: Value, type_: ArrayType) -> Value:
    """A batch over the elements of an input, with these as its last axes."""
    moved = Transpose((*range(1, x.ndim), 0))(x)
    return Reshape((*x.shape[1:], *type_.shape))(moved)
