"""`pscdsl compile --target`: kernels compiled for a GPU that need not be here."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from pscdsl._src.calls.errors import ArgumentError, CheckError
from pscdsl._src.cli import Unusable, say
from pscdsl._src.cli.compile import alternatives, variants
from pscdsl._src.cli.kernel_arguments import chosen, dims
from pscdsl._src.kernels.kernel import Kernel
from pscdsl._src.kernels.lowered_on_mesh import LoweredOnMesh
from pscdsl._src.support.paths import admitted
from pscdsl._src.targets.gpu.ahead import CompiledAhead
from pscdsl._src.xla.device import UnsupportedDeviceError
from pscdsl._src.xla.runtime.executable import CompilationFailed


def run(arguments: argparse.Namespace) -> int:
    """Compile each kernel at the given sizes, and print the outcome.

    With --output, the optimised program and the code of its functions are written to files.
    """
    folder = Path(admitted(arguments.output, [os.getcwd()])) if arguments.output else None
    sizes, mesh = alternatives(arguments.dims), dims(arguments.mesh, "mesh")
    compiled = errors = 0
    for kernel in chosen(arguments):
        try:
            for each in variants(kernel, sizes):
                lowered = kernel.lower(**each)
                placed = lowered.on_mesh(**mesh) if mesh else None
                made = (placed or lowered).compile_for(arguments.gpu)
                say(f"{_title(kernel, each | mesh)}: {_summary(made)}")
                if placed is not None:
                    say(f"  {_exchange(placed, made)}")
                if folder is not None:
                    _write(made, folder, kernel, each | mesh)
                compiled += 1
        except CheckError as findings:
            say(findings, error=True)
            errors += 1
        except UnsupportedDeviceError as problem:
            raise Unusable(str(problem)) from None
        except CompilationFailed as refusal:
            said = str(refusal).partition("\n")[0]
            say(f"{kernel.name}: XLA does not compile it: {said}", error=True)
            errors += 1
        except (Unusable, ArgumentError) as reason:
            say(f"{kernel.name}: left out: {reason}")
    where = f" in {folder}" if folder is not None else ""
    say(f"{compiled} compiled for {arguments.gpu}, {errors} with errors{where}")
    if errors:
        return 1
    return 0 if compiled else 2


def _title(kernel: Kernel[..., Any], sizes: dict[str, int]) -> str:
    given = ", ".join([f"{name}={size}" for name, size in sizes.items()])
    return f"{kernel.name} at {given}" if given else kernel.name


def _summary(made: CompiledAhead) -> str:
    called = ", ".join([f"{name} {count}x" for name, count in made.libraries.items()])
    parts = [
        f"compiled in {made.seconds:.2f} s",
        f"{made.functions} functions" if made.functions != 1 else "1 function",
        f"{made.memory['arguments']:,} B of arguments",
        f"{made.memory['results']:,} B of results",
        f"{made.memory['temporaries']:,} B of temporaries",
    ]
    return ", ".join([*parts, *([f"calls {called}"] if called else [])])


def _exchange(placed: LoweredOnMesh, made: CompiledAhead) -> str:
    """Describe what devices send each other, by the cost and in the compiled program."""
    predicted = [f"sent[{axes}] {size:,} bytes" for axes, size in placed.sent.items()]
    found = [
        f"{kind} {times}x of {size:,} bytes" for kind, (times, size) in made.collectives.items()
    ]
    return f"{', '.join(predicted) or 'nothing is sent'}: {', '.join(found) or 'no collective'}"


def _write(
    made: CompiledAhead, folder: Path, kernel: Kernel[..., Any], sizes: dict[str, int]
) -> None:
    name = "-".join([kernel.name, *[f"{name}{size}" for name, size in sizes.items()]])
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.hlo").write_text(made.text, encoding="utf-8")
        if made.ptx:
            (folder / f"{name}.ptx").write_text(made.ptx, encoding="utf-8")
    except OSError as problem:
        raise Unusable(f"{folder} cannot be written: {problem.strerror}") from problem
