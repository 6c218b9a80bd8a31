"""`pscdsl cost`: the cost of kernels, as text or JSON."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pscdsl._src.analysis.cost import Cost, cost
from pscdsl._src.calls.choices import fits
from pscdsl._src.cli import Unusable, say
from pscdsl._src.cli.kernel_arguments import chosen, dims, reporting
from pscdsl._src.frontend.definitions import Excluded
from pscdsl._src.frontend.text.display import printable_json
from pscdsl._src.ir.program import Function
from pscdsl._src.kernels.kernel import Kernel
from pscdsl._src.primitives.effects import without_effects
from pscdsl._src.transforms.simplify import simplify
from pscdsl.typing.signatures import Choice

ROWS = ("flops", "bytes", "arguments", "results", "peak")


def run(arguments: argparse.Namespace) -> int:
    """Print the costs."""
    sizes = dims(arguments.dims)

    def work() -> None:
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
    """Yield the programs of the choices that a signature admits, with each choice in words."""
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
                yield str(choice), simplify(without_effects(kernel.definition.instance(choice)))


def _text(head: str, costs: Mapping[Cost, Sequence[str]], beyond: Sequence[str]) -> str:
    lines = [head]
    for counted, choices in costs.items():
        where = " or ".join(each or "it is any other" for each in choices)
        lines += [f"  where {where}"] if len(costs) > 1 or any(choices) else []
        for name in ROWS:
            value = getattr(counted, name)
            unit = "" if name in ("flops", "bytes") else " bytes"
            lines.append(f"  {name:<10}{_number(value)}{unit}")
        lines += [f"  one step is counted of the while_loop at {place}" for place in counted.loops]
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
