"""Primitives of a program that every device of a mesh runs on its own pieces.

They are in no program that a user writes: the pass `partition` puts them where pieces of one device
depend on those of others. `mesh` holds the axes of the mesh in order with their sizes, and `over`
the axes along which devices exchange; a device takes the place among its peers that its coordinates
along `over` say, those along the first axis of `over` changing slowest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeAlias, runtime_checkable

import numpy as np

from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl._src.primitives.pointwise import Linear
from pscdsl._src.primitives.reductions import (
    OPERATIONS,
    SIGNED,
    UFUNCS,
    Reduction,
    combinable,
    from_ordered,
    ordered,
    reducible,
)
from pscdsl._src.primitives.shaping import Transpose, inverted, stored
from pscdsl.typing.array_types import ArrayType, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size, numbers
from pscdsl.typing.dtypes import BF16, BOOL, I32, U16, U32, DType

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value

MeshAxes: TypeAlias = tuple[tuple[str, Size], ...]
"""The axes of a mesh in order, with their sizes."""


@runtime_checkable
class DeviceEvaluation(Evaluation, Protocol):
    """The context of a NumPy meaning on one of several devices that run in step."""

    @property
    def device(self) -> int:
        """Return the number of this device in the mesh."""
        ...

    def exchange(self, array: NDArray) -> Sequence[NDArray]:
        """Return the arrays that all devices give at this step, in the order of the devices."""
        ...


@dataclass(frozen=True)
class Collective(Primitive):
    """Base of the primitives that know the mesh."""

    over: tuple[str, ...]
    mesh: MeshAxes

    @property
    def count(self) -> Size:
        """Return the number of devices that exchange with each other."""
        sizes = dict(self.mesh)
        return size_of(tuple([sizes[axis] for axis in self.over]))

    def groups(self) -> NDArray:
        """Return the devices that exchange with each other, a row each; sizes are numbers."""
        names = [name for name, _ in self.mesh]
        sizes = numbers([size for _, size in self.mesh])
        apart = [n for n, name in enumerate(names) if name not in self.over]
        order = [*apart, *[names.index(name) for name in self.over]]
        devices = np.arange(np.prod(sizes, dtype=np.int64)).reshape(sizes)
        return devices.transpose(order).reshape(-1, *numbers([self.count]))

    def group(self, here: Evaluation) -> list[int]:
        """Return the devices with which this one exchanges, in their order."""
        device = on_device(here).device
        mesh = tuple([(name, here.size(size)) for name, size in self.mesh])
        (own,) = [row for row in replace(self, mesh=mesh).groups() if device in row]
        return [int(peer) for peer in own]

    def peers(self, here: Evaluation, x: NDArray) -> list[NDArray]:
        """Return the arrays of the devices with which this one exchanges, in their order."""
        given = on_device(here).exchange(x)
        return [given[peer] for peer in self.group(here)]

    def group_attribute(self, hlo: Hlo) -> Any:
        """Return the groups as an attribute of StableHLO's operations."""
        groups = self.groups()
        rows, columns = groups.shape
        return hlo.parse_attribute(f"dense<{groups.tolist()}> : tensor<{rows}x{columns}xi64>")

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return 0

    def require_mesh(self) -> None:
        """Refuse axes that the mesh has not, or that are named twice."""
        names = [name for name, _ in self.mesh]
        if len({*self.over}) < len(self.over) or not {*self.over} <= {*names}:
            self.ill_typed(f"axes {self.over} of the mesh {names}")


@dataclass(frozen=True)
class Moving(Collective):
    """Base of the primitives that give each device something of the others' arrays."""

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        """Emit the operand if there is one device, or nothing in the arrays."""
        (x,), (result,) = operands, outputs
        if self.count == 1 or 0 in hlo.shape(result.shape):
            return (hlo.reshape(x, result),)
        return self.emit(hlo, x, inputs[0], result)

    def emit(self, hlo: Hlo, x: H, given: ArrayType, result: ArrayType) -> Sequence[H]:
        """Emit the result on several devices."""
        raise NotImplementedError

    def with_length(
        self, facts: Assumptions, x: ArrayType, axis: int, length: Size, *, cut: bool
    ) -> ArrayType:
        """Return the type with another length of an axis, which is cut, or put together."""
        self.require_mesh()
        if not 0 <= axis < x.rank:
            self.ill_typed(f"axis {axis} of {x}")
        part, whole = (length, x.shape[axis]) if cut else (x.shape[axis], length)
        if not facts.equal(part * self.count, whole):
            self.ill_typed(f"{self.count} parts of {part} are not {whole}, axis {axis} of {x}")
        return x.with_shape((*x.shape[:axis], length, *x.shape[axis + 1 :]))


@dataclass(frozen=True)
class AlongAxis(Moving):
    """Base of those that put pieces together along an axis, or cut them."""

    axis: int
    length: Size
    """The length of the axis in the result."""
    cuts: ClassVar[bool] = True
    """Whether the result is a part."""

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (x,) = operands
        return (self.with_length(facts, x, self.axis, self.length, cut=self.cuts),)

    def emit(self, hlo: Hlo, x: H, given: ArrayType, result: ArrayType) -> Sequence[H]:
        """Emit the move along the first axis, with the axis transposed there.

        XLA makes the axis of the move the major one in memory, and gives this layout to what
        computes the operand: its `fft` on CPUs then fails at run time.
        """
        if self.axis == 0:
            return self.emit_first(hlo, x, given, result)
        order = (self.axis, *[n for n in range(given.rank) if n != self.axis])
        first, last = [
            each.with_shape(tuple([each.shape[n] for n in order])) for each in (given, result)
        ]
        (x,) = Transpose(order).lower(hlo, (x,), (given,), (first,))
        made = self.emit_first(hlo, x, first, last)
        return Transpose(inverted(order)).lower(hlo, made, (last,), (result,))

    def emit_first(self, hlo: Hlo, x: H, given: ArrayType, result: ArrayType) -> Sequence[H]:
        """Emit the result on several devices, along the first axis."""
        raise NotImplementedError


def on_device(here: Evaluation) -> DeviceEvaluation:
    """Return the context of a meaning as that of one device."""
    if not isinstance(here, DeviceEvaluation):
        raise TypeError("a program for the devices of a mesh is evaluated on all of them at once")
    return here


def _combining(hlo: Hlo, kind: Reduction, given: ArrayType) -> Any:
    """Return the region that combines two elements of arrays."""
    scalar, operation = hlo.tensor(given.with_shape(())), OPERATIONS[kind]
    return hlo.region([scalar, scalar], lambda pair: (hlo.binary(operation, *pair),))


def _moved(
    hlo: Hlo, name: str, x: H, given: ArrayType, result: ArrayType, attributes: dict[str, Any]
) -> tuple[H, ...]:
    """Emit a move of elements; of bf16 as integers, or XLA:CPU would send them as f32."""
    if given.dtype is not BF16:
        return hlo.op(name, (x,), (result,), attributes)
    (bits,) = hlo.op("bitcast_convert", (x,), (given.with_dtype(U16),))
    (bits,) = hlo.op(name, (bits,), (result.with_dtype(U16),), attributes)
    return hlo.op("bitcast_convert", (bits,), (result,))


def is_sent_combined(kind: Reduction, dtype: DType) -> bool:
    """Return whether devices combine elements while they send them: not the bits of integers."""
    return kind not in ("and", "or", "xor") or (dtype is BOOL and kind != "xor")


@dataclass(frozen=True)
class AllReduce(Moving, name="all_reduce"):
    """The arrays of several devices combined element by element, on each of them."""

    kind: Reduction = "sum"

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (x,) = operands
        self.require_mesh()
        if not reducible(self.kind, x.dtype) or not is_sent_combined(self.kind, x.dtype):
            self.ill_typed(f"{self.kind} of {x}")
        return operands

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        (x,) = operands
        total, *others = [combinable(each) for each in self.peers(here, x)]
        with np.errstate(all="ignore"):
            for other in others:
                total = UFUNCS[self.kind](total, other)
            return (np.asarray(total).astype(x.dtype),)

    def emit(self, hlo: Hlo, x: H, given: ArrayType, result: ArrayType) -> Sequence[H]:
        if given.dtype.is_float and self.kind in ("maximum", "minimum"):
            # XLA may drop NaN in an extreme of floats; integers in their order keep it.
            signed = SIGNED[given.dtype.bits]
            number = ordered(hlo, x, given, signed.range[1 if self.kind == "maximum" else 0])
            (number,) = self._emit(hlo, number, given.with_dtype(signed))
            return (from_ordered(hlo, number, given),)
        return self._emit(hlo, x, given)

    def _emit(self, hlo: Hlo, x: H, given: ArrayType) -> tuple[H, ...]:
        body = _combining(hlo, self.kind, given)
        groups = {"replica_groups": self.group_attribute(hlo)}
        return hlo.op("all_reduce", (x,), (given,), groups, (body,))

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(outputs[0].shape)


@dataclass(frozen=True)
class AllGather(AlongAxis, name="all_gather"):
    """The pieces of several devices put together along an axis, on each of them."""

    meant: bool = field(default=False, compare=False)
    """Whether the source asks for it, or it puts together one element of each piece."""
    cuts: ClassVar[bool] = False

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        (x,) = operands
        return (np.concatenate(self.peers(here, x), self.axis),)

    def emit_first(self, hlo: Hlo, x: H, given: ArrayType, result: ArrayType) -> Sequence[H]:
        attributes = {"all_gather_dim": 0, "replica_groups": self.group_attribute(hlo)}
        return _moved(hlo, "all_gather", x, given, result, attributes)


@dataclass(frozen=True)
class ReduceScatter(AlongAxis, name="reduce_scatter"):
    """The arrays of several devices added, each device with its own part along an axis."""

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        if not operands[0].dtype.is_number:
            self.ill_typed(f"the sum of {operands[0]}")
        return super().type_rule(facts, *operands)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        (whole,) = AllReduce(self.over, self.mesh).evaluate(here, *operands)
        return OwnPart(self.over, self.mesh, self.axis, self.length).evaluate(here, whole)

    def emit_first(self, hlo: Hlo, x: H, given: ArrayType, result: ArrayType) -> Sequence[H]:
        body = _combining(hlo, "sum", given)
        attributes = {"scatter_dimension": 0, "replica_groups": self.group_attribute(hlo)}
        return hlo.op("reduce_scatter", (x,), (result,), attributes, (body,))

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(inputs[0].shape)


@dataclass(frozen=True)
class AllToAll(Moving, name="all_to_all"):
    """An array cut along one axis, whose pieces were along another one before."""

    cut: int
    part: Size
    """The length of a part of the axis that is cut."""
    joined: int
    length: Size
    """The length of the axis that was cut before."""

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (x,) = operands
        if self.cut == self.joined:
            self.ill_typed(f"axis {self.cut} of {x} twice")
        whole = self.with_length(facts, x, self.joined, self.length, cut=False)
        return (self.with_length(facts, whole, self.cut, self.part, cut=True),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        whole = np.concatenate(self.peers(here, operands[0]), self.joined)
        return OwnPart(self.over, self.mesh, self.cut, self.part).evaluate(here, whole)

    def emit(self, hlo: Hlo, x: H, given: ArrayType, result: ArrayType) -> Sequence[H]:
        attributes = {
            "split_dimension": self.cut,
            "concat_dimension": self.joined,
            "split_count": hlo.size(self.count),
            "replica_groups": self.group_attribute(hlo),
        }
        return _moved(hlo, "all_to_all", x, given, result, attributes)


@dataclass(frozen=True)
class CollectivePermute(Moving, name="collective_permute"):
    """The array of another device: the one a number of places before, in a ring."""

    by: int

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        self.require_mesh()
        return operands

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        place = self.group(here).index(on_device(here).device)
        peers = self.peers(here, operands[0])
        return (peers[(place - self.by) % len(peers)],)

    def emit(self, hlo: Hlo, x: H, given: ArrayType, result: ArrayType) -> Sequence[H]:
        groups = self.groups()
        if self.by % groups.shape[1] == 0:
            return (x,)
        targets = np.roll(groups, -self.by, axis=1)
        pairs = np.stack([groups, targets], axis=-1).reshape(-1, 2)
        attribute = f"dense<{pairs.tolist()}> : tensor<{len(pairs)}x2xi64>"
        attributes = {"source_target_pairs": hlo.parse_attribute(attribute)}
        return _moved(hlo, "collective_permute", x, given, result, attributes)


SENDING: Final = (AllReduce, AllGather, ReduceScatter, AllToAll, CollectivePermute)
"""The primitives for which something is sent."""


@dataclass(frozen=True)
class DevicePlace(Collective, name="device_place"):
    """The place of a device among those with which it exchanges, an i32."""

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        self.require_mesh()
        return (ArrayType(I32),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return (np.asarray(self.group(here).index(on_device(here).device), np.int32),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        if self.count == 1:
            return (hlo.full(0, outputs[0]),)
        (replica,) = hlo.op("replica_id", (), (ArrayType(U32),))
        device = hlo.op("convert", (replica,), outputs)[0]
        sizes = dict(zip(dict(self.mesh), numbers([s for _, s in self.mesh]), strict=True))
        inner = 1
        strides: dict[str, int] = {}
        for name in reversed(sizes):
            strides[name], inner = inner, inner * sizes[name]
        place = hlo.full(0, outputs[0])
        for name in self.over:
            along = hlo.binary("divide", device, hlo.full(strides[name], outputs[0]))
            along = hlo.binary("remainder", along, hlo.full(sizes[name], outputs[0]))
            place = hlo.binary("multiply", place, hlo.full(sizes[name], outputs[0]))
            place = hlo.binary("add", place, along)
        return (place,)


@dataclass(frozen=True)
class OwnPart(AlongAxis, name="own_part"):
    """The part along an axis that a device has of an array which all have whole."""

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        (x,) = operands
        (place,) = DevicePlace(self.over, self.mesh).evaluate(here)
        length = x.shape[self.axis] // len(self.group(here))
        whole: list[slice] = [slice(None)] * x.ndim
        whole[self.axis] = slice(int(place) * length, (int(place) + 1) * length)
        return (x[tuple(whole)],)

    def emit(self, hlo: Hlo, x: H, given: ArrayType, result: ArrayType) -> Sequence[H]:
        index = ArrayType(I32)
        (place,) = DevicePlace(self.over, self.mesh).lower(hlo, (), (), (index,))
        words = stored(result)
        zero = hlo.full(0, index)
        starts = [zero] * (result.rank + len(words))
        length = hlo.size(result.shape[self.axis])
        starts[self.axis] = hlo.binary("multiply", place, hlo.full(length, index))
        sizes = hlo.i64_array((*hlo.shape(result.shape), *words))
        return hlo.op("dynamic_slice", (x, *starts), (result,), {"slice_sizes": sizes})


@dataclass(frozen=True)
class PlaceAlong(Linear, name="place", cheap=True):
    """The operand itself, cut along axes of the mesh; it has no effect without a mesh."""

    axes: tuple[tuple[str, ...] | None, ...]
    """The mesh axes of each axis; None for an axis that stays as it is."""

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        if operands[0].rank != len(self.axes):
            self.ill_typed(f"{operands[0]} has no {len(self.axes)} axes")
        return operands

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return operands

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        return operands

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,) = cotangents
        assert cotangent is not None
        return self.bind(cotangent)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        return PlaceAlong((None, *self.axes)).bind(*operands), (True,)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return 0
