"""The devices of a mesh as threads that run in step: the NumPy meaning of a partitioned program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Barrier

import numpy as np

from pscdsl._src.ir.primitive import NDArray
from pscdsl._src.ir.program import Evaluator
from pscdsl._src.transforms.partition import Partitioned
from pscdsl.typing.placements import Placement
from tests.support.threads import on_devices


class _Exchange:
    """A place where all devices meet at every collective."""

    def __init__(self, count: int) -> None:
        self.barrier = Barrier(count, timeout=60)
        self.given: list[NDArray] = [np.empty(0)] * count


class DeviceEvaluator(Evaluator):
    """The meaning of a program on one device."""

    def __init__(self, sizes: Mapping[str, int], device: int, exchange: _Exchange) -> None:
        super().__init__(sizes)
        self.device = device
        self._exchange = exchange

    def exchange(self, array: NDArray) -> Sequence[NDArray]:
        """Return the arrays that all devices give at this step."""
        place = self._exchange
        place.given[self.device] = array
        place.barrier.wait()
        found = [*place.given]
        place.barrier.wait()
        return found

    def at(self, sizes: Mapping[str, int]) -> Evaluator:
        """Return the evaluator of a function that is called at these sizes."""
        return DeviceEvaluator(sizes, self.device, self._exchange)


def cut(x: NDArray, placement: Placement, mesh: Mapping[str, int], device: int) -> NDArray:
    """Return the piece of an array that a device has."""
    coordinates = dict(zip(mesh, np.unravel_index(device, tuple(mesh.values())), strict=True))
    for axis, along in enumerate(placement.axes):
        for name in along:
            length = x.shape[axis] // mesh[name]
            first = int(coordinates[name]) * length
            x = np.take(x, range(first, first + length), axis)
    return x


def joined(pieces: Sequence[NDArray], placement: Placement, mesh: Mapping[str, int]) -> NDArray:
    """Return the array whose pieces the devices have; devices with the same piece have to agree."""
    counts = placement.cuts(mesh)
    shape = [size * count for size, count in zip(pieces[0].shape, counts, strict=False)]
    whole = np.empty((*shape, *pieces[0].shape[len(shape) :]), pieces[0].dtype)
    written = np.zeros(tuple(shape), bool)
    places = np.arange(written.size).reshape(written.shape)
    for device, piece in enumerate(pieces):
        where = np.unravel_index(cut(places, placement, mesh, device), written.shape)
        again = written[where]
        assert whole[where][again].tobytes() == piece[again].tobytes(), "devices differ"
        whole[where] = piece
        written[where] = True
    assert written.all()
    return whole


def run(
    program: Partitioned,
    operands: Sequence[NDArray],
    sizes: Mapping[str, int],
    mesh: Mapping[str, int],
) -> list[NDArray]:
    """Return the whole results of a program on all devices of a mesh."""
    count = int(np.prod(list(mesh.values()), dtype=int))
    own = program.sizes(sizes, mesh)
    exchange = _Exchange(count)

    def work(device: int) -> Sequence[NDArray]:
        pieces = [
            cut(np.asarray(x), placement, mesh, device)
            for x, placement in zip(operands, program.arguments, strict=True)
        ]
        return DeviceEvaluator(own, device, exchange).block(program.function.body, pieces)

    results = on_devices(count, exchange.barrier, work)
    return [
        joined([each[n] for each in results], placement, mesh)
        for n, placement in enumerate(program.results)
    ]
