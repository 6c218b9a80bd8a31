"""Say what kernels cost: operations and memory, as polynomials in their sizes.

    pscdsl cost model.py:loss --grad --dims n=128

It is counted in the checked program: nothing is run.  Sizes that --dims names become numbers.
Where the cost depends on a static value or a length, it is printed for all that were tried, or for
the one that --dims names; of dtypes and ranks that are open, the first is taken.  Bytes moved, and
memory, are upper bounds, which XLA stays below by fusing; of a `while_loop` without `max_steps` one
step is counted.
"""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pscdsl._src.cli import Unusable, say
from pscdsl._src.cli.kernel_arguments import (
    add_derivatives,
    add_dims,
    add_target,
    chosen,
    dims,
    reporting,
)
from pscdsl._src.frontend.text.display import printable_json

if TYPE_CHECKING:
    from pscdsl._src.analysis.cost import Cost
    from pscdsl._src.ir.program import Function
    from pscdsl._src.kernels.kernel import Kernel

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
        from pscdsl._src.analysis.cost import cost

        found: list[dict[str, Any]] = []
        known: set[str] = set()
        for kernel in chosen(arguments):
            costs: dict[Cost, list[str]] = {}
            for choice, program in _programs(kernel, sizes):
                known.update(program.dims, kernel.signature.open_parts())
                costs.setdefault(cost(program).at(sizes), []).append(choice)
            beyond = kernel.definition.tried().unrolled_examples() if len(costs) > 1 else ()
            if arguments.format == "json":
                found += [_data(kernel.name, each, costs[each], beyond) for each in costs]
            else:
                say(_text(str(kernel.signature), costs, beyond))
        if unknown := sizes.keys() - known:
            raise Unusable(f"no kernel here has the size {', '.join(sorted(unknown))}")
        if arguments.format == "json":
            print(printable_json(json.dumps(found, indent=1)))

    return reporting(work)


def _programs(kernel: Kernel[..., Any], sizes: Mapping[str, int]) -> Iterator[tuple[str, Function]]:
    """The programs of what the signature leaves open, with the choice in words."""
    from pscdsl._src.calls.choices import fits
    from pscdsl._src.frontend.definitions import Excluded
    from pscdsl._src.transforms.simplify.simplify import simplify
    from pscdsl.typing.signatures import Choice

    kernel.check()
    open_parts = kernel.signature.open_parts()
    given = {name: size for name, size in sizes.items() if name in open_parts}
    choices = kernel.definition.tried().choices()
    fitting = [each for each in choices or [Choice()] if fits(each, given)]
    if not fitting:
        yield "", simplify(kernel.ir(**given))
    for choice in fitting:
        if (choice.dtypes, choice.ranks) == (fitting[0].dtypes, fitting[0].ranks):
            with contextlib.suppress(Excluded):
                yield str(choice), simplify(kernel.definition.instance(choice))


def _text(head: str, costs: Mapping[Cost, Sequence[str]], beyond: Sequence[str]) -> str:
    lines = [head]
    for cost, choices in costs.items():
        where = " or ".join(each or "it is any other" for each in choices)
        lines += [f"  where {where}"] if len(costs) > 1 or any(choices) else []
        for name in ROWS:
            value = getattr(cost, name)
            unit = "" if name in ("flops", "bytes") else " bytes"
            lines.append(f"  {name:<10}{_number(value)}{unit}")
        lines += [f"  one step is counted of the while_loop at {place}" for place in cost.loops]
    if beyond:
        lines.append(f"  tried by examples: {'; '.join(beyond)}; no other cost is known")
    return "\n".join(lines)


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _data(name: str, cost: Cost, choices: Sequence[str], beyond: Sequence[str]) -> dict[str, Any]:
    numbers = {row: getattr(cost, row) for row in ROWS}
    shown = {k: v if isinstance(v, int) else str(v) for k, v in numbers.items()}
    loops = [str(place) for place in cost.loops]
    tried = {"choices": [*filter(None, choices)], "examples": [*beyond]}
    return {"kernel": name, **shown, "loops": loops, **tried}
