"""Modules that several devices run, each on its own pieces of the arrays."""

from __future__ import annotations

from typing import Any, Final

from pscdsl._src.xla.emit import context as c

_REPLICAS: Final = "mhlo.num_replicas"
_PARTITIONS: Final = "mhlo.num_partitions"


def for_replicas(module: Any, count: int) -> Any:
    """Return a copy of a module, or of its text, that says for how many replicas it is."""
    with c.context(), c.unknown():
        copy = c.mlir.Module.parse(module if isinstance(module, str) else c.module_bytecode(module))
        attributes = copy.operation.attributes
        for name, wanted in ((_REPLICAS, count), (_PARTITIONS, 1)):
            if name in attributes and c.mlir.IntegerAttr(attributes[name]).value != wanted:
                raise ValueError(f"the module has {name} = {attributes[name]}, not {wanted}")
            attributes[name] = c.parsed(f"{wanted} : i32")
    return copy
