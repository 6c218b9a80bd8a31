"""`pscdsl cost`: the cost of kernels, as text or JSON."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import inf
from typing import Any

from pscdsl._src.analysis.cost import Cost, cost
from pscdsl._src.analysis.scaling import MACHINES, Machine, Scaling, weak_scaling
from pscdsl._src.calls.choices import fits
from pscdsl._src.cli import Unusable, say
from pscdsl._src.cli.kernel_arguments import chosen, dims, reporting
from pscdsl._src.frontend.definitions import Excluded
from pscdsl._src.frontend.text.display import printable_json
from pscdsl._src.ir.program import Function
from pscdsl._src.kernels.kernel import Kernel
from pscdsl._src.kernels.mesh_programs import on_mesh, sizes_on
from pscdsl._src.primitives.effects import without_effects
from pscdsl._src.transforms.simplify import simplify
from pscdsl.typing.dims import Size
from pscdsl.typing.signatures import Choice

ROWS = ("flops", "bytes", "arguments", "results", "peak")


def run(arguments: argparse.Namespace) -> int:
    """Print the costs."""
    sizes = dims(arguments.dims)
    mesh = dims(arguments.mesh, "mesh")
    machine = _machine(arguments.machine) if arguments.machine else None
    if machine is not None and not mesh:
        raise Unusable("--machine goes with --mesh, for instance --mesh data=8")

    def work() -> None:
        found: list[dict[str, Any]] = []
        known: set[str] = set()
        for kernel in chosen(arguments):
            made = costs_of(kernel, sizes, mesh, machine)
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
    machine: Machine | None = None
    scaling: Mapping[Cost, Scaling] = field(default_factory=dict[Cost, Scaling])
    """The prediction for each cost on the machine."""
    mesh: Mapping[str, int] = field(default_factory=dict[str, int])

    def __str__(self) -> str:
        text = _text(str(self.kernel.signature), self.costs, self.beyond)
        return "\n".join([text, *self._predictions()])

    def _predictions(self) -> Iterator[str]:
        if self.machine is None:
            return
        yield f"  machine    {self.machine}"
        for found in self.scaling.values():
            here = found.times.get(self.mesh[found.axis])
            if here is not None:
                yield (
                    f"  predicted  {_seconds(here.seconds)} a call: {_seconds(here.computing)} "
                    f"computing, {_seconds(here.sending)} sending"
                )
            if len(found.times) > 1:
                yield (
                    f"  scaling    slope {found.slope:.3f} along {found.axis} from 1 to "
                    f"{max(found.times)} devices, with pieces of the same size; "
                    f"{found.efficiency:.0%} of the speed on each at {max(found.times)}"
                )

    def data(self) -> list[dict[str, Any]]:
        """Return the costs as data for JSON."""
        found = [
            _data(self.kernel.name, each, self.costs[each], self.beyond) for each in self.costs
        ]
        for data, each in zip(found, self.costs, strict=True):
            if self.machine is not None and each in self.scaling:
                data["machine"] = asdict(self.machine)
                times = self.scaling[each].times
                data["slope"] = self.scaling[each].slope if len(times) > 1 else None
                data["seconds"] = {n: t.seconds for n, t in times.items()}
        return found


def costs_of(
    kernel: Kernel[..., Any],
    sizes: Mapping[str, int],
    mesh: Mapping[str, int] | None = None,
    machine: Machine | None = None,
) -> KernelCosts:
    """Return the costs of a kernel, with numbers in place of some sizes.

    With the sizes of a mesh's axes, these are the costs on each of its devices. With a machine,
    their time is predicted, too.
    """
    known = {*kernel.signature.open_parts()}
    costs: dict[Cost, list[str]] = {}
    scaling: dict[Cost, Scaling] = {}
    for choice, words, program in _programs(kernel, sizes):
        known.update(program.dims)
        own, times = dict(sizes), None
        if mesh:
            placed = on_mesh(kernel.reading, choice, tuple(mesh))
            whole, program = program.dims, placed.function
            own = placed.some_sizes(sizes, mesh)
            if machine is not None:
                missing = [name for name in whole if name not in sizes]
                if missing:
                    raise Unusable(f"--machine needs all sizes: --dims {'=…,'.join(missing)}=…")
                given = {name: sizes[name] for name in whole}
                sizes_on(placed, given, mesh)  # pieces have to be equal
                times = weak_scaling(placed, given, mesh, machine)
        counted = _between(cost(program).at(own), mesh or {})
        costs.setdefault(counted, []).append(words)
        if times is not None:
            scaling[counted] = times
    beyond = kernel.definition.tried().unrolled_examples() if len(costs) > 1 else ()
    return KernelCosts(kernel, costs, beyond, frozenset(known), machine, scaling, mesh or {})


def _between(counted: Cost, mesh: Mapping[str, int]) -> Cost:
    """Return a cost without what is sent along axes with one device."""
    sent = [(axes, n) for axes, n in counted.sent if any(mesh.get(a) != 1 for a in axes.split("@"))]
    return replace(counted, sent=tuple(sent))


def _machine(text: str) -> Machine:
    """Return a machine by its name, or by its three numbers."""
    if text in MACHINES:
        return MACHINES[text]
    try:
        flops, link, latency = (float(number) for number in text.split(","))
    except ValueError:
        flops = link = latency = 0.0
    if not (0 < flops < inf and 0 < link < inf and 0 <= latency < inf):
        raise Unusable(
            f"no machine: {text} (there are {', '.join(MACHINES)}; or write its FLOP/s, the bytes "
            "a second of a link, and its latency in seconds: 60e12,12e9,1e-5)"
        )
    return Machine("machine", flops, link, latency)


def _seconds(seconds: float) -> str:
    """Return a time as text, in a unit that suits it."""
    for unit, name in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds * 1e6:.3g} us"


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
            lines.append(f"  {f'sent[{axes}]':<10} {_shown(size)} bytes")
        lines += [f"  one step is counted of the while_loop at {place}" for place in counted.loops]
    if beyond:
        lines.append(f"  tried by examples: {'; '.join(beyond)}; no other cost is known")
    return "\n".join(lines)


def amount(cost: Cost, row: str) -> str:
    """Return one of the numbers of a cost as text."""
    return _shown(getattr(cost, row)) + ("" if row in ("flops", "bytes") else " bytes")


def _shown(size: Size) -> str:
    """Return a number, or a polynomial, as text."""
    return f"{size:,}" if isinstance(size, int) else str(size)


def _data(name: str, cost: Cost, choices: Sequence[str], beyond: Sequence[str]) -> dict[str, Any]:
    shown = _plain({row: getattr(cost, row) for row in ROWS})
    loops = [str(place) for place in cost.loops]
    tried = {"choices": [*filter(None, choices)], "examples": [*beyond]}
    sent = _plain(dict(cost.sent))
    return {"kernel": name, **shown, "loops": loops, **tried, **({"sent": sent} if sent else {})}


def _plain(sizes: Mapping[str, Size]) -> dict[str, int | str]:
    """Return numbers as they are, and polynomials as text."""
    return {key: size if isinstance(size, int) else str(size) for key, size in sizes.items()}
