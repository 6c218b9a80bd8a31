"""What devices send: predicted of a typed program, in its module, and in the compiled program.

Each is a count of collectives by kind and bytes. A module has exactly what is predicted. XLA keeps
that, except that it
* sends nothing for what its simplifier finds unneeded (`x ^ x`) or equal to what is sent already,
* adds numbers of bf16 as f32 on CPUs, in twice the bytes (`on_cpu`).
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import prod
from typing import Any, TypeAlias

from pscdsl._src.analysis.cost import bytes_of
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives.collectives import SENDING, AllReduce, CollectivePermute, ReduceScatter
from pscdsl._src.primitives.control import Call
from pscdsl._src.xla.emit import context as c
from pscdsl._src.xla.exchanged import collectives
from pscdsl.typing.dims import Size, evaluate
from pscdsl.typing.dtypes import BF16

Sent: TypeAlias = Counter[tuple[str, int]]
_KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute")


def predicted(block: Block, sizes: Mapping[str, int], *, on_cpu: bool = False) -> Sent:
    """The collectives of a typed program, each of which counts once in a loop."""
    found: Sent = Counter()
    for equation in block.equations:
        primitive, at = equation.primitive, sizes
        if isinstance(primitive, SENDING) and evaluate(primitive.count, sizes) > 1:
            (result,) = [var.type for var in equation.outputs]
            size = evaluate(bytes_of(result), sizes)
            is_sum = isinstance(primitive, ReduceScatter) or (
                isinstance(primitive, AllReduce) and primitive.kind in ("sum", "product")
            )
            if on_cpu and is_sum and result.dtype is BF16:
                size *= 2
            moves = not isinstance(primitive, CollectivePermute) or primitive.by % evaluate(
                primitive.count, sizes
            )
            if size and moves:
                found[primitive.label, size] += 1
        if isinstance(primitive, Call):
            inner: dict[str, Size] = dict(primitive.sizes)
            at = {name: evaluate(size, sizes) for name, size in inner.items()}
            found += predicted(primitive.function.body, at, on_cpu=on_cpu)
        for inner_block in primitive.blocks():
            found += predicted(inner_block, at, on_cpu=on_cpu)
    return found


def emitted(module: Any) -> Sent:
    """The collectives of a module, as often as its functions are called."""
    functions = {
        c.mlir.StringAttr(op.attributes["sym_name"]).value: op for op in module.body.operations
    }

    def of(op: Any) -> Sent:
        found: Sent = Counter()
        name = op.operation.name.removeprefix("stablehlo.")
        if name in _KINDS:
            (result,) = op.operation.results
            found[name, _bytes(result.type)] += 1
        elif name == "func.call":
            found += of(functions[c.mlir.FlatSymbolRefAttr(op.attributes["callee"]).value])
        for region in op.operation.regions:
            for block in region.blocks:
                for inner in block.operations:
                    found += of(inner)
        return found

    return of(functions["main"])


def _bytes(type_: Any) -> int:
    """The bytes of a tensor, whose element type ends in its number of bits."""
    tensor = c.mlir.RankedTensorType(type_)
    text = str(tensor.element_type)
    is_complex = text.startswith("complex")
    bits = int("".join(filter(str.isdigit, text)) or 8)
    size: int = prod(tensor.shape) * max(bits // 8, 1) * (2 if is_complex else 1)
    return size


def compiled(text: str) -> Sent:
    """The collectives of a compiled program, taken apart where XLA does several at once."""
    found: Sent = Counter()
    for kind, sizes in collectives(text):
        name = kind.replace("-", "_")
        for size in [sum(sizes)] if name == "all_to_all" else sizes:
            found[name, size] += 1
    return found
