"""Modules that take arrays whose memory their large results get; see `pool`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pscdsl._src.xla.emit import context as c
from pscdsl._src.xla.runtime import pool
from pscdsl._src.xla.runtime.boot import Aval


def with_scratch(module: Any, outputs: Sequence[Aval]) -> Any:
    """A copy of a module that takes an array for each large result, after its parameters.

    None if it has none, or donated parameters: these give their memory to results as XLA sees fit.
    """
    places = pool.pooled(outputs)
    if not places or _donates(c.main(module).attributes):
        return None
    copy = module.operation.clone()
    main = c.main(copy)
    kind = c.mlir.FunctionType(main.attributes["function_type"].value)
    large = [kind.results[place] for place in places]
    with c.context(), c.unknown():
        main.attributes["function_type"] = c.mlir.TypeAttr.get(
            c.mlir.FunctionType.get([*kind.inputs, *large], kind.results)
        )
        main.attributes["arg_attrs"] = c.attribute(
            [{} for _ in kind.inputs]
            + [{"tf.aliasing_output": c.parsed(f"{place} : i32")} for place in places]
        )
    block = main.regions[0].blocks[0]
    for each in large:
        block.add_argument(each, c.unknown())
    return copy


def _donates(attributes: Any) -> bool:
    return "arg_attrs" in attributes and "jax.buffer_donor" in str(attributes["arg_attrs"])
