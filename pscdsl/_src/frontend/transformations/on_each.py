"""`psc.on_each`: a function of one device's part of arrays, on all devices along a mesh axis.

The meaning is global, and the same on every backend. Over `R` devices along `data`, an argument is
cut into R equal pieces along an axis, the function is applied to the pieces in step, and results
are put together along an axis. So `psc.on_each("data", f)(x)` is

    pieces = x.reshape(R, n // R, …)              the first axis is placed along `data`
    rows   = psc.vmap(f)(pieces, np.arange(R))    all devices in step: a batch, one row for each
    result = rows.reshape(R * (n // R), …)

where, over that batch,

    axis_sum     adds along the first axis: parts, which the partition adds on all devices
    axis_gather  is the batch, whole on every device, merged into an axis of the rows
    axis_shift   rotates the first axis: a permutation of the devices
    axis_index   is `np.arange(R)`

and R is a size of the program by the name of the axis, 1 without a mesh or where the mesh has no
such axis. There is no primitive with a meaning of its own: derivatives, batches, loops, costs and
what is sent follow from the operations of the batch, and what the partition proves and counts of
these. A value that differs between devices is a batched one, and an equal value is one that is not,
as in `vmap`; `analysis/varying.py` finds what would be wrong, or would wait, on real devices:

    a result that varies, where `out_axes` says that all devices have the same
    a sum over devices of a value that all have, which is a multiple of it
    a collective in a branch or loop that devices decide differently
    a draw in the shape of a piece from a key that all devices have

Pieces are equal: `n % R == 0` has to be known, which the signature's `n@data` says and calls check.
A function that `psc.on_each` runs is a part of the kernel around it. Collectives have no
derivative: a derivative in the function is that of one device's part without them, and a derivative
around `psc.on_each` is that of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager

from pscdsl._src.analysis.varying import device_findings
from pscdsl._src.frontend.interpreter.frames import require_program
from pscdsl._src.frontend.transformations.traced import (
    Mapped,
    Transformed,
    argument_axes,
    axes_of,
    mapped,
    name_of,
    to_front,
)
from pscdsl._src.frontend.trees import applicable, flatten, strong, unflatten
from pscdsl._src.frontend.values import AnyValue, Applicable, Args, Kwargs, describe
from pscdsl._src.interpreters.replay import repeated
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.primitives.across import (
    Across,
    AcrossGather,
    AcrossShift,
    AcrossSum,
    merged,
    with_all,
)
from pscdsl._src.primitives.collectives import PlaceAlong
from pscdsl._src.primitives.shaping import Iota, Reshape
from pscdsl.typing.array_types import ArrayType, paths
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.control import AxisMismatch
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.placements import NotOnEach, UnequalPieces, VariesAlong
from pscdsl.typing.diagnostics import NOWHERE, Diagnostic, Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import I32, KEY


def on_each(
    here: Builder | None,
    axis: AnyValue,
    f: AnyValue,
    in_axes: AnyValue,
    out_axes: AnyValue,
) -> Transformed:
    """Return the function on all devices along an axis of the mesh."""
    function = applicable(f, "psc.on_each")
    along = _axis_name("psc.on_each", axis)

    def run(here: Builder, args: Args, kwargs: Kwargs) -> AnyValue:
        try:
            return applied(here, args, kwargs)
        except Failure as failure:
            raise Failure(*map(_of_on_each, failure.diagnostics)) from None

    def applied(here: Builder, args: Args, kwargs: Kwargs) -> AnyValue:
        _require_cut(here, along)
        count = here.program.along(along)
        given = argument_axes(in_axes, len(args), function) + [0] * len(kwargs)
        values = [*args, *kwargs.values()]
        axes: list[list[int | None]] = [[0]]
        pieces: list[AnyValue] = [here.bind(Iota((count,), 0, I32), ())[0]]
        for at, (value, own) in enumerate(zip(values, given, strict=True)):
            found: list[int | None] = []
            if own is not None:
                value, found = _cut(here, along, count, value, own, f"argument {at}")
            axes.append(found)
            pieces.append(value)
        made = mapped(
            here,
            "psc.on_each",
            _OneDevice(function, along),
            pieces[: len(args) + 1],
            dict(zip(kwargs, pieces[len(args) + 1 :], strict=True)),
            [at for at, found in enumerate(axes) if found],
            lambda at, _: axes[at],
            count,
            shares=True,
        )
        problems = device_findings(made.traced.block, made.flags, along)
        if problems:
            raise Failure(*problems)
        outs = axes_of("out_axes", out_axes, made.traced.result)
        return unflatten(made.traced.result, _results(here, along, made, outs))

    called = f'psc.on_each("{along}", {name_of(function)})'
    return Transformed("on_each", function, run, called=called)


def _of_on_each(finding: Diagnostic) -> Diagnostic:
    """Return a finding about axes with the name of this function, unless it is one of another's."""
    is_own = isinstance(finding, AxisMismatch) and finding.span is NOWHERE
    return finding.replaced(function="psc.on_each") if is_own else finding


def _axis_name(function: str, axis: AnyValue) -> str:
    if not isinstance(axis, str) or not axis.isidentifier():
        problem = f'takes the name of a mesh axis, `"data"`, and {describe(axis)} is none'
        raise Failure(BadArguments(function=function, problem=problem))
    return axis


def _require_cut(here: Builder, axis: str) -> None:
    """Refuse an axis along which the kernel has no parameters, or that is mapped already."""
    program = here.program
    if axis in program.lanes:
        problem = f"is inside of another one along `{axis}`"
        raise Failure(BadArguments(function="psc.on_each", problem=problem))
    known = {name for _, along in program.cut or () for name in along}
    if axis not in known:
        raise Failure(NotOnEach(function="psc.on_each", axis=axis))


def _cut(
    here: Builder, axis: str, count: Size, value: AnyValue, own: AnyValue, what: str
) -> tuple[AnyValue, list[int | None]]:
    """Return an argument with an axis of pieces first in its leaves, and 0 for each that has it."""
    given, tree = flatten(here, value, f"{what} of `psc.on_each`")
    axes = axes_of(f"in_axes of {what}", own, tree)
    leaves = [
        x if at is None else _pieces(here, axis, count, x, at, place)
        for x, at, (place, _) in zip(strong(given), axes, paths(tree, what), strict=True)
    ]
    return unflatten(tree, iter(leaves)), [None if at is None else 0 for at in axes]


def _pieces(here: Builder, axis: str, count: Size, x: Value, at: int, place: str) -> Value:
    """Return the pieces of an array along a first axis, which is cut along the axis of the mesh."""
    at = _within(x.type, at, place)
    size = x.shape[at]
    if not here.facts.proves(Fact("==", size % count, 0)):
        raise Failure(UnequalPieces(size=str(size), along=axis, pieces=count))
    parts = Reshape((*x.shape[:at], count, size // count, *x.shape[at + 1 :]))(x)
    front = to_front(parts, at)
    return PlaceAlong(((axis,), *(None,) * x.ndim))(front)


def _within(x: ArrayType, axis: int, place: str, what: str = "axis") -> int:
    """Return an axis counted from the first one."""
    if not -x.rank <= axis < x.rank:
        raise Failure(AxisMismatch(given=f"{what} {axis} of {place}", why=f"it is {x}"))
    return axis % x.rank


def _results(here: Builder, axis: str, made: Mapped, outs: Sequence[int | None]) -> Iterator[Value]:
    """Yield the results of all devices: put together, or the one that all have."""
    for x, varies, at, (place, type_) in zip(
        made.values, made.batched, outs, paths(made.traced.result, "result"), strict=True
    ):
        if at is None:
            if varies:
                raise Failure(VariesAlong(axis=axis, result=place, type=str(type_)))
            yield x
            continue
        at = _within(type_, at, place, "out_axes is")
        shape = with_all(here.facts, axis, type_.shape, at)
        yield merged(x if varies else repeated(x, made.size), at, shape)


class _OneDevice(Applicable):
    """A function that knows the place of the device, its first argument."""

    def __init__(self, function: Applicable, axis: str) -> None:
        self.function = function
        self.axis = axis
        self.name = name_of(function)

    def holds(self) -> Sequence[AnyValue]:
        """Return the function."""
        return (self.function,)

    def apply(self, here: Builder, args: Args, kwargs: Kwargs) -> AnyValue:
        """Call it on the part of one device."""
        place, *own = args
        assert isinstance(place, Value)
        with _lane(here, self.axis, place):
            return self.function.apply(here, own, kwargs)


@contextmanager
def _lane(here: Builder, axis: str, place: Value) -> Generator[None]:
    lanes = here.program.lanes
    lanes[axis] = place
    try:
        yield
    finally:
        del lanes[axis]


# The functions of one device's part.


def _place(here: Builder, function: str, axis: AnyValue) -> tuple[str, Value]:
    """Return the name of an axis, and the place of this device along it."""
    name = _axis_name(function, axis)
    here = require_program(here, f"`{function}`")
    place = here.program.lanes.get(name)
    if place is None:
        raise Failure(NotOnEach(function=function, axis=name))
    return name, place


def _across(
    here: Builder, function: str, x: AnyValue, place: Value, make: Callable[[Value], Across]
) -> AnyValue:
    given, tree = flatten(here, x, f"the argument of `{function}`")
    leaves = strong(given)
    if any(leaf.dtype is KEY for leaf in leaves):
        problem = "takes arrays of numbers: keys of other devices would be used again"
        raise Failure(BadArguments(function=function, problem=problem))
    here = here.program.current
    made = [here.bind(make(leaf), (leaf, place))[0] for leaf in leaves]
    return unflatten(tree, iter(made))


def axis_sum(here: Builder, x: AnyValue, axis: AnyValue) -> AnyValue:
    """Return the sum of the arrays of all devices."""
    what = "psc.axis_sum"
    name, place = _place(here, what, axis)

    def make(leaf: Value) -> Across:
        if not leaf.dtype.is_number:
            problem = f"adds numbers, and this is {leaf.type}"
            raise Failure(BadArguments(function=what, problem=problem))
        return AcrossSum(name)

    return _across(here, what, x, place, make)


def axis_gather(here: Builder, x: AnyValue, axis: AnyValue, dim: AnyValue) -> AnyValue:
    """Return the arrays of all devices, put together along an axis."""
    what = "psc.axis_gather"
    name, place = _place(here, what, axis)
    at = _integer(what, "dim", dim)

    def make(leaf: Value) -> Across:
        return AcrossGather(name, _within(leaf.type, at, f"the argument of `{what}`"))

    return _across(here, what, x, place, make)


def axis_shift(here: Builder, x: AnyValue, axis: AnyValue, by: AnyValue) -> AnyValue:
    """Return the array of the device some places before, in a ring."""
    what = "psc.axis_shift"
    name, place = _place(here, what, axis)
    places = _integer(what, "by", by)
    return _across(here, what, x, place, lambda _: AcrossShift(name, places))


def _integer(function: str, parameter: str, value: AnyValue) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        problem = f"takes an integer that is known while checking as `{parameter}`"
        raise Failure(BadArguments(function=function, problem=f"{problem}, not {describe(value)}"))
    return value


def axis_index(here: Builder, axis: AnyValue) -> Value:
    """Return the place of the device."""
    return _place(here, "psc.axis_index", axis)[1]


def axis_size(here: Builder, axis: AnyValue) -> Size:
    """Return the number of devices."""
    name, _ = _place(here, "psc.axis_size", axis)
    return here.program.along(name)
