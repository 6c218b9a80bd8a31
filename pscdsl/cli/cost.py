"""Say what kernels cost: operations and memory, as polynomials in their sizes.

    pscdsl cost model.py:loss --grad --dims n=128

It is counted in the checked program: nothing is run.  Sizes that --dims names become numbers.
Bytes moved, and memory, are upper bounds, which XLA stays below by fusing; of a `while_loop`
without `max_steps` one step is counted.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from pscdsl.cli import Unusable, say
from pscdsl.cli.derivatives import add_derivatives, chosen
from pscdsl.cli.target import add_dims, add_target, dims, reporting
from pscdsl.report.sources import printable_json

if TYPE_CHECKING:
    from pscdsl.cost import Cost

ROWS = ("flops", "bytes", "arguments", "results", "peak")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_target(parser)
    add_dims(parser)
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="how to print it"
    )
    add_derivatives(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the costs."""
    sizes = dims(arguments.dims)

    def work() -> None:
        from pscdsl.cost import cost
        from pscdsl.transforms.simplify import simplify

        found: list[dict[str, Any]] = []
        known: set[str] = set()
        for kernel in chosen(arguments):
            program = simplify(kernel.ir())
            known.update(program.dims)
            each = cost(program).at(sizes)
            if arguments.format == "json":
                found.append(_data(program.name, each))
            else:
                say(_text(str(kernel.signature), each))
        if unknown := sizes.keys() - known:
            raise Unusable(f"no kernel here has the size {', '.join(sorted(unknown))}")
        if arguments.format == "json":
            print(printable_json(json.dumps(found, indent=1)))

    return reporting(work)


def _text(head: str, cost: Cost) -> str:
    lines = [head]
    for name in ROWS:
        value = getattr(cost, name)
        unit = "" if name in ("flops", "bytes") else " bytes"
        lines.append(f"  {name:<10}{_number(value)}{unit}")
    lines += [f"  one step is counted of the while_loop at {place}" for place in cost.loops]
    return "\n".join(lines)


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _data(name: str, cost: Cost) -> dict[str, Any]:
    numbers = {row: getattr(cost, row) for row in ROWS}
    shown = {k: v if isinstance(v, int) else str(v) for k, v in numbers.items()}
    return {"kernel": name, **shown, "loops": [str(place) for place in cost.loops]}
