"""`pscdsl cost`: the cost of kernels, as text or JSON."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pscdsl._src.analysis.cost import Cost, cost
from pscdsl._src.calls.choices import fits
from pscdsl._src.cli import Unusable, say
from pscdsl._src.cli.kernel_arguments import chosen, dims, reporting
from pscdsl._src.frontend.definitions import Excluded
from pscdsl._src.frontend.text.display import printable_json
from pscdsl._src.ir.program import Function
from pscdsl._src.kernels.kernel import Kernel
from pscdsl._src.kernels.mesh_programs import on_mesh
from pscdsl._src.primitives.effects import without_effects
from pscdsl._src.transforms.simplify import simplify
from pscdsl.typing.signatures import Choice

ROWS = ("flops", "bytes", "arguments", "results", "peak")


def run(arguments: argparse.Namespace) -> int:
    """Print the costs."""
    sizes = dims(arguments.dims)
    mesh = dims(arguments.mesh, "mesh")

    def work() -> None:
        found: list[dict[str, Any]] = []
        known: set[str] = set()
        for kernel in chosen(arguments):
            made = costs_of(kernel, sizes, mesh)
            known.update(made.known)
            if arguments.format == "json":
                found += made.data()
            else:
                say(str(made))
        if unknown := sizes.keys() - known:
            raise Unusable(f"no kernel here has the size {', '.join(sorted(unknown))}")
        if arguments.format == "json":
            print(printable_json(json.dumps(found, indent=1)))

    return reporting(work)


@dataclass(frozen=True)
class KernelCosts:
    """The costs of a kernel; printed, they are text."""

    kernel: Kernel[..., Any]
    costs: Mapping[Cost, Sequence[str]]
    """Each cost, and the choices with that cost in words."""
    beyond: Sequence[str]
    """The examples by which the signature was tried, if they have several costs."""
    known: frozenset[str]
    """The names of the sizes, and of all else that the signature leaves open."""

    def __str__(self) -> str:
        return _text(str(self.kernel.signature), self.costs, self.beyond)

    def data(self) -> list[dict[str, Any]]:
        """Return the costs as data for JSON."""
        return [_data(self.kernel.name, each, self.costs[each], self.beyond) for each in self.costs]


def costs_of(
    kernel: Kernel[..., Any], sizes: Mapping[str, int], mesh: Mapping[str, int] | None = None
) -> KernelCosts:
    """Return the costs of a kernel, with numbers in place of some sizes.

    With the sizes of a mesh's axes, these are the costs on each of its devices.
    """
    known = {*kernel.signature.open_parts()}
    costs: dict[Cost, list[str]] = {}
    for choice, words, program in _programs(kernel, sizes):
        known.update(program.dims)
        own = dict(sizes)
        if mesh:
            placed = on_mesh(kernel.reading, choice, tuple(mesh))
            program, own = placed.function, {**placed.some_sizes(sizes, mesh)}
        costs.setdefault(cost(program).at(own), []).append(words)
    beyond = kernel.definition.tried().unrolled_examples() if len(costs) > 1 else ()
    return KernelCosts(kernel, costs, beyond, frozenset(known))


def _programs(
    kernel: Kernel[..., Any], sizes: Mapping[str, int]
) -> Iterator[tuple[Choice, str, Function]]:
    """Yield the programs of the choices that a signature admits, with each choice in words."""
    kernel.check()
    open_parts = kernel.signature.open_parts()
    given = {name: size for name, size in sizes.items() if name in open_parts}
    choices = kernel.definition.tried().choices()
    fitting = [each for each in choices or [Choice()] if fits(each, given)]
    if not fitting:
        yield Choice(), "", simplify(kernel.ir(**given))
    for choice in fitting:
        if (choice.dtypes, choice.ranks) == (fitting[0].dtypes, fitting[0].ranks):
            with contextlib.suppress(Excluded):
                program = without_effects(kernel.definition.instance(choice))
                yield choice, str(choice), simplify(program)


def _text(head: str, costs: Mapping[Cost, Sequence[str]], beyond: Sequence[str]) -> str:
    lines = [head]
    for counted, choices in costs.items():
        where = " or ".join(each or "it is any other" for each in choices)
        lines += [f"  where {where}"] if len(costs) > 1 or any(choices) else []
        for name in ROWS:
            lines.append(f"  {name:<10}{amount(counted, name)}")
        for axes, size in counted.sent:
            number = f"{size:,}" if isinstance(size, int) else str(size)
            lines.append(f"  {f'sent[{axes}]':<10} {number} bytes")
        lines += [f"  one step is counted of the while_loop at {place}" for place in counted.loops]
    if beyond:
        lines.append(f"  tried by examples: {'; '.join(beyond)}; no other cost is known")
    return "\n".join(lines)


def amount(cost: Cost, row: str) -> str:
    """Return one of the numbers of a cost as text."""
    value = getattr(cost, row)
    unit = "" if row in ("flops", "bytes") else " bytes"
    return f"{value:,}{unit}" if isinstance(value, int) else f"{value}{unit}"


def _data(name: str, cost: Cost, choices: Sequence[str], beyond: Sequence[str]) -> dict[str, Any]:
    numbers = {row: getattr(cost, row) for row in ROWS}
    shown = {k: v if isinstance(v, int) else str(v) for k, v in numbers.items()}
    loops = [str(place) for place in cost.loops]
    tried = {"choices": [*filter(None, choices)], "examples": [*beyond]}
    sent = {axes: size if isinstance(size, int) else str(size) for axes, size in cost.sent}
    return {"kernel": name, **shown, "loops": loops, **tried, **({"sent": sent} if sent else {})}
