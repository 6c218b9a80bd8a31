"""The time of a program on the devices of a mesh, predicted by three numbers of a machine.

A device computes at its peak speed, and then sends: nothing overlaps, and everything is sent over
the slowest link. Devices send around a ring, so that a sum over R devices takes `2*(R-1)` steps and
`2*(R-1)/R` times its bytes, and anything else half of that. Collectives that do not need each
other's results take their steps together, as XLA combines them.

Computing takes longer than at peak speed, so that the share of sending is rather less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log, prod
from typing import Final

from pscdsl._src.analysis.cost import function_received
from pscdsl._src.ir.program import Atom, Block, Function
from pscdsl._src.primitives.collectives import SENDING, AllReduce, CollectivePermute, ReduceScatter
from pscdsl._src.primitives.control import Call, Control, function_cost
from pscdsl._src.transforms.partition import Partitioned
from pscdsl.typing.dims import Size, evaluate, names


@dataclass(frozen=True)
class Machine:
    """Devices, and the links between them."""

    name: str
    flops: float
    """The floating-point operations of a device in a second, at most."""
    link: float
    """The bytes that a device sends in a second."""
    latency: float
    """The seconds that a step of a ring takes in which nothing is sent."""
    source: str = "as given"

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.flops / 1e12:g} TFLOP/s, {self.link / 1e9:g} GB/s, "
            f"{self.latency * 1e6:g} us ({self.source})"
        )


_NCCL: Final = "a step of a ring between hosts in NCCL's own model"

MACHINES: Final = {
    each.name: each
    for each in (
        Machine("h100", 67e12, 50e9, 9.6e-6, f"data sheets: f32, a 400 Gb/s port each; {_NCCL}"),
        Machine("a100", 19.5e12, 25e9, 9.6e-6, f"data sheets: f32, a 200 Gb/s port each; {_NCCL}"),
    )
}
"""The machines by name."""
MOST: Final = 64
"""The number of devices up to which scaling is predicted."""


@dataclass(frozen=True)
class Prediction:
    """The seconds that a call takes on a mesh."""

    computing: float
    sending: float

    @property
    def seconds(self) -> float:
        """The seconds of the whole."""
        return self.computing + self.sending


def predicted(
    placed: Partitioned, whole: Mapping[str, int], mesh: Mapping[str, int], machine: Machine
) -> Prediction:
    """Return the time of a call on a mesh, with arrays of these sizes; a Failure if none fit."""
    sizes = placed.sizes(whole, mesh)
    flops = evaluate(function_cost(placed.function), sizes)
    function = placed.function
    steps = _steps(function.body, sizes)
    sending = _volume(function, sizes) / machine.link + steps * machine.latency
    return Prediction(flops / machine.flops, sending)


@dataclass(frozen=True)
class Scaling:
    """Weak scaling along an axis of a mesh: each device keeps as much to do."""

    axis: str
    times: Mapping[int, Prediction]
    """By the size of the axis."""

    @property
    def slope(self) -> float:
        """The slope of the logarithm of work a second over that of the number of devices."""
        points = [(log(n), log(n / each.seconds)) for n, each in self.times.items()]
        x, y = (sum(each) / len(points) for each in zip(*points, strict=True))
        rise = sum([(a - x) * (b - y) for a, b in points])
        slope: float = rise / sum([(a - x) ** 2 for a, _ in points])
        return slope

    @property
    def efficiency(self) -> float:
        """The speed of a device among most, as a part of that alone."""
        alone, *_, last = self.times.values()
        return alone.seconds / last.seconds


def weak_scaling(
    placed: Partitioned, whole: Mapping[str, int], mesh: Mapping[str, int], machine: Machine
) -> Scaling:
    """Return the times along the first axis of a mesh, whose pieces stay as long as they are.

    The pieces of a number get shorter: with one, there is only the time on the mesh itself.
    """
    axis = next(iter(mesh))
    if any(isinstance(size, int) and axis in along for size, along in placed.cut.values()):
        return Scaling(axis, {mesh[axis]: predicted(placed, whole, mesh, machine)})
    cut = {name for size, along in placed.cut.values() if axis in along for name in names(size)}
    piece = {name: whole[name] // mesh[axis] if name in cut else whole[name] for name in whole}
    times: dict[int, Prediction] = {}
    size = 1
    while size <= MOST:
        grown = {name: n * size if name in cut else n for name, n in piece.items()}
        times[size] = predicted(placed, grown, {**mesh, axis: size}, machine)
        size *= 2
    return Scaling(axis, times)


def _volume(function: Function, sizes: Mapping[str, int]) -> float:
    """Return the bytes that a device sends in one run of a function."""
    total = 0.0
    for (axes, kind), received in function_received(function).items():
        count = prod([sizes[axis] for axis in axes.split("@")])
        size = evaluate(received, sizes)
        if issubclass(kind, AllReduce):
            total += 2 * (count - 1) * size / count
        elif issubclass(kind, ReduceScatter):  # whose result is a piece
            total += (count - 1) * size
        elif issubclass(kind, CollectivePermute):
            total += size if count > 1 else 0
        else:
            total += (count - 1) * size / count
    return total


def _steps(block: Block, sizes: Mapping[str, int]) -> int:
    """Return the steps that devices send one after the other in one run of a block."""
    levels: dict[Atom, int] = {}
    for equation in block.equations:
        primitive = equation.primitive
        own = 0
        if isinstance(primitive, CollectivePermute):
            own = min(1, evaluate(primitive.count, sizes) - 1)
        elif isinstance(primitive, SENDING):
            own = evaluate(primitive.count, sizes) - 1
            own *= 2 if isinstance(primitive, AllReduce) else 1
        elif isinstance(primitive, Call):
            own = _steps(primitive.function.body, _inner(primitive, sizes))
        elif isinstance(primitive, Control):
            own = evaluate(primitive.layout.total(lambda b: _steps(b, sizes)), sizes)
        before = max((levels.get(atom, 0) for atom in equation.inputs), default=0)
        levels.update(dict.fromkeys(equation.outputs, before + own))
    return max(levels.values(), default=0)


def _inner(call: Call, sizes: Mapping[str, int]) -> dict[str, int]:
    named: dict[str, Size] = dict(call.sizes)
    return {name: evaluate(size, sizes) for name, size in named.items()}
