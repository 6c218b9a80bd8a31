"""Axes in another order, and broadcasting to a shape."""

from __future__ import annotations

from typing import Any

from pscdsl._src.ir.builder import Builder, Value, Weak, broadcast_to
from pscdsl._src.ir.builder import broadcast_shapes as joint
from pscdsl._src.language.meanings import function
from pscdsl.numpy.axes import normalize_axes, normalize_axis
from pscdsl.numpy.calling import of_arrays
from pscdsl.numpy.openness import as_operand, lifted
from pscdsl.numpy.shorthand import transposed
from pscdsl.numpy.sizes import as_shape
from pscdsl.typing.arrays import Shape
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import ShapesDoNotBroadcast
from pscdsl.typing.codes.shapes_manipulation import WrongNumberOfAxes
from pscdsl.typing.diagnostics import Failure


@of_arrays("numpy.transpose", together=("a",))
def transpose(a: Value, axes: Any = None) -> Value:
    """Axes in another order, by default the last first."""
    if axes is None:
        return transposed(a, tuple(reversed(range(a.ndim))))
    order = normalize_axes(axes, a.ndim, "numpy.transpose")
    if len(order) != a.ndim:
        axes_text = "1 axis" if len(order) == 1 else f"{len(order)} axes"
        wanted = f"an array with {axes_text}, as many as are listed"
        raise Failure(WrongNumberOfAxes(function="numpy.transpose", given=a.type, wanted=wanted))
    return transposed(a, order)


@of_arrays("numpy.permute_dims", together=("a",))
def permute_dims(a: Value, axes: Any = None) -> Value:
    """As `transpose`."""
    return transpose(a, axes)  # type: ignore[no-any-return]


@of_arrays("numpy.matrix_transpose", together=("x",))
def matrix_transpose(x: Value, /) -> Value:
    """The last two axes exchanged."""
    if x.ndim < 2:
        wanted = "two axes or more"
        raise Failure(
            WrongNumberOfAxes(function="numpy.matrix_transpose", given=x.type, wanted=wanted)
        )
    return transposed(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


@of_arrays("numpy.swapaxes", together=("a",))
def swapaxes(a: Value, axis1: int, axis2: int) -> Value:
    """Two axes exchanged."""
    order = list(range(a.ndim))
    one, other = (normalize_axis(axis, a.ndim, "numpy.swapaxes") for axis in (axis1, axis2))
    order[one], order[other] = order[other], order[one]
    return transposed(a, order)


@of_arrays("numpy.moveaxis", together=("a",))
def moveaxis(a: Value, source: Any, destination: Any) -> Value:
    """Some axes at other places, the rest in order."""
    sources = normalize_axes(source, a.ndim, "numpy.moveaxis")
    targets = normalize_axes(destination, a.ndim, "numpy.moveaxis")
    if len(sources) != len(targets):
        problem = f"takes as many places as axes, not {len(sources)} and {len(targets)}"
        raise Failure(BadArguments(function="numpy.moveaxis", problem=problem))
    order = [axis for axis in range(a.ndim) if axis not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        order.insert(target, origin)
    return transposed(a, order)


@of_arrays("numpy.rollaxis", together=("a",))
def rollaxis(a: Value, axis: int, start: int = 0) -> Value:
    """One axis moved to before another."""
    origin = normalize_axis(axis, a.ndim, "numpy.rollaxis")
    target = a.ndim if start == a.ndim else normalize_axis(start, a.ndim, "numpy.rollaxis")
    order = [place for place in range(a.ndim) if place != origin]
    order.insert(target - 1 if origin < target else target, origin)
    return transposed(a, order)


@function("numpy.broadcast_to")
def broadcast_to_(here: Builder, array: Any, shape: Any) -> Value | Weak:
    """Repeated along new leading axes and along axes of size 1."""
    wanted = as_shape(shape, "numpy.broadcast_to", here.facts)
    operand = as_operand(here, array)
    if operand.ndim > len(wanted):
        shapes = (operand.shape, wanted)
        raise Failure(
            ShapesDoNotBroadcast(shapes=shapes, axis=0, why="there are more axes already")
        )
    return lifted(here, operand, lambda x: broadcast_to(x, wanted))


@function("numpy.broadcast_arrays")
def broadcast_arrays(here: Builder, *args: Any) -> tuple[Value | Weak, ...]:
    """Arrays repeated to one shape, each in its own dtype."""
    arrays = [as_operand(here, x) for x in args]
    shape = joint(here.facts, *(x.shape for x in arrays)) if arrays else ()
    return tuple([lifted(here, x, lambda v: broadcast_to(v, shape)) for x in arrays])


@function("numpy.broadcast_shapes")
def broadcast_shapes(here: Builder, *args: Any) -> Shape:
    """The shape to which arrays of these shapes broadcast; static."""
    shapes = [as_shape(shape, "numpy.broadcast_shapes", here.facts) for shape in args]
    return joint(here.facts, *shapes) if shapes else ()
