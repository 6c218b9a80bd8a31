"""Print the tables of `docs/how-to/many-devices.md` about training on many devices.

`python -m benchmarks.meshes [--write]`

What a device computes and sends is counted in its program, for meshes that need not be here. Runs
are on four CPU devices: in this process's child, and in two processes of two devices.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, Final

from benchmarks.meshes.programs import convolutions, transformer
from pscdsl._src.analysis.cost import cost
from pscdsl._src.analysis.scaling import MACHINES, weak_scaling
from pscdsl._src.kernels.lowered_on_mesh import LoweredOnMesh
from pscdsl._src.xla.runtime.settings import processors
from pscdsl.typing.dims import evaluate

PAGE: Final = Path(__file__).parents[2] / "docs" / "how-to" / "many-devices.md"
BEGIN, END = "<!-- python -m benchmarks.meshes --write -->\n", "<!-- end -->"
NETWORK: Final = {"c": 96, "h": 32, "w": 32}
"""The network at the sizes of CIFAR-10's images."""
BLOCK: Final = {"t": 128, "d": 512, "h": 8, "k": 64, "f": 2048}
MACHINE: Final = MACHINES["h100"]
COUNTS: Final = 1, 2, 4, 8
MESHES: Final = (
    {"data": 1, "model": 1},
    {"data": 2, "model": 1},
    {"data": 1, "model": 2},
    {"data": 2, "model": 2},
    {"data": 4, "model": 2},
    {"data": 2, "model": 4},
)


def main() -> None:
    """Print the tables, or write them into the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.meshes", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the page in docs/")
    text = "\n".join(tables())
    if not parser.parse_args().write:
        print(text)
        return
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def tables() -> Iterator[str]:
    """Yield the lines of all tables."""
    yield "A step of a network of convolutions (96 channels, images of 32 x 32), data parallel:"
    yield from table(
        ("devices", "images", "GFLOP on each", "all, of one device's", "sent to each"),
        [
            row(convolutions, {"n": n, **NETWORK, "Float": "f32"}, {"data": count}, f"{count}", n)
            for total in ("strong", "weak")
            for count in COUNTS
            for n in (256 if total == "strong" else 256 * count,)
            if total == "strong" or count > 1
        ],
    )
    yield "A step of a transformer block (512 features, 8 heads, 128 places), in both ways:"
    yield from table(
        ("data x model", "sequences", "GFLOP on each", "all, of one device's", "sent to each"),
        [
            row(transformer, {"n": 64, **BLOCK}, mesh, f"{mesh['data']} x {mesh['model']}", 64)
            for mesh in MESHES
        ],
    )
    yield f"Predicted weak scaling from 1 to 64 devices, by the model above ({MACHINE}):"
    yield from table(
        ("images on each device", "slope", "speed on each of 64"),
        [slope(count) for count in (64, 256, 1024, 4096, 8192)],
    )
    cores = f"{processors()} processors"
    yield f"The same steps, run on CPU devices, with smaller sizes, all devices on {cores}:"
    yield from table(
        (
            *("program", "devices", "largest difference from one device", "bytes predicted"),
            *("counted", "a step", "on one device"),
        ),
        list(runs()),
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table of Markdown, with empty lines around it."""
    yield ""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for each in rows:
        yield f"| {' | '.join(each)} |"
    yield ""


def on(kernel: Any, sizes: Mapping[str, Any], mesh: Mapping[str, int]) -> LoweredOnMesh:
    """The program of each device of a mesh."""
    placed: LoweredOnMesh = kernel.lower(**sizes).on_mesh(**mesh)
    return placed


def flops(placed: LoweredOnMesh) -> int:
    """The operations of a device."""
    made = placed.device_program
    return evaluate(cost(made.placed.function).flops, made.sizes)


def row(
    kernel: Any, sizes: Mapping[str, Any], mesh: Mapping[str, int], name: str, count: int
) -> tuple[str, ...]:
    """What a device computes and gets."""
    placed = on(kernel, sizes, mesh)
    devices = prod(mesh.values())
    own, alone = flops(placed), flops(on(kernel, sizes, dict.fromkeys(mesh, 1)))
    sent = ", ".join([f"{n / 1e6:.2f} MB over {axes}" for axes, n in placed.sent.items()])
    share = f"{own * devices / alone:.4f}"
    return name, f"{count}", f"{own / 1e9:.2f}", share, sent or "nothing"


def slope(count: int) -> tuple[str, ...]:
    """The predicted scaling with so many images on each device."""
    sizes = {**NETWORK, "n": count}
    placed = on(convolutions, {**sizes, "Float": "f32"}, {"data": 1}).device_program.placed
    found = weak_scaling(placed, sizes, {"data": 1}, MACHINE)
    return f"{count:,}", f"{found.slope:.3f}", f"{found.efficiency:.0%}"


def runs() -> Iterator[tuple[str, ...]]:
    """Yield what was found in runs on four devices, in one process and in two."""
    on_one: dict[str, float] = {}
    for processes in (1, 2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        job = {"WORLD_SIZE": f"{processes}", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": f"{port}"}
        children = [
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.meshes.worker"],
                env={
                    **os.environ,
                    **(job | {"RANK": f"{rank}", "LOCAL_RANK": f"{rank}"} if processes > 1 else {}),
                    "PSCDSL_DEVICES": f"{4 // processes}",
                },
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(processes)
        ]
        printed = [child.communicate(timeout=300)[0] for child in children]
        if any(child.returncode for child in children):
            raise SystemExit("a run on devices failed")
        where = "4 in one process" if processes == 1 else "2 in each of 2 processes"
        for name, mesh, difference, *numbers in json.loads(printed[0].splitlines()[-1]):
            predicted, counted, taken, alone = numbers
            alone = on_one.setdefault(name, alone)
            times = [f"{1e3 * each:.0f} ms" for each in (taken, alone)]
            yield (
                *(name, f"{mesh}: {where}", f"{difference:.0e}"),
                *(f"{predicted:,}", f"{counted:,}", *times),
            )


if __name__ == "__main__":
    main()
