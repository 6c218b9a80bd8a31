"""Call a kernel, compiled, on files, literals or seeded random data, and print its results.

    pscdsl run model.py:predict --arg x=data.npy --arg p.b=0.5 --dims d=4

An argument that is not given is drawn at random; sizes come from --dims and from given arrays.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pscdsl._src.cli import Unusable, say
from pscdsl._src.cli.derivatives import add_derivatives, chosen
from pscdsl._src.cli.target import add_dims, add_target, dims, reporting
from pscdsl.typing.trees import paths

if TYPE_CHECKING:
    from pscdsl._src.ir.program import Function


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_target(parser)
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a JSON literal or a .npy file; NAME may select a leaf, for instance p.layers[0].w",
    )
    add_dims(parser)
    parser.add_argument("--seed", type=int, default=0, help="of the random data")
    add_derivatives(parser)


def run(arguments: argparse.Namespace) -> int:
    """Call the kernel and print each array of the result."""
    sizes = dims(arguments.dims)

    def work() -> None:
        import numpy as np

        from pscdsl._src.cli import values

        found = list(chosen(arguments))
        if len(found) != 1:
            raise Unusable(f"{len(found)} kernels in {arguments.target}: name one, FILE:KERNEL")
        kernel = found[0]
        function = kernel.ir()
        types = values.leaf_types(function.parameters)
        given = values.parse(arguments.arg, function.parameters)
        known = values.sizes_of(types, given, sizes)
        missing = [name for name in function.dims if name not in known]
        if missing:
            example = ",".join(f"{name}=8" for name in missing)
            raise Unusable(f"sizes are missing: write --dims {example}")
        used = {name: known[name] for name in function.dims}
        if not function.facts.admits(used):
            facts = ", ".join(map(str, function.facts.facts)) or "sizes are at least 1"
            raise Unusable(f"these sizes break a precondition: {facts}")
        leaves = values.complete(types, given, used, arguments.seed)
        results = kernel.lower(**used).compile().run(leaves)
        for where, result in zip(_places(function), results, strict=True):
            say(where)
            say(np.asarray(result))

    return reporting(work)


def _places(function: Function) -> list[str]:
    """What each array of the result is: where it is found, and its type."""
    if function.result is None:
        return [str(type_) for type_ in function.body.out_types]
    return [f"{name}: {type_}" if name else str(type_) for name, type_ in paths(function.result)]
