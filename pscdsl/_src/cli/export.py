"""`pscdsl export`: a kernel into a file."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from pscdsl._src.artefacts.format import SUFFIX
from pscdsl._src.cli import Unusable, say
from pscdsl._src.cli.compile import alternatives, variants
from pscdsl._src.cli.kernel_arguments import chosen, dims, reporting
from pscdsl._src.kernels.loaded import load
from pscdsl._src.support.paths import admitted


def run(arguments: argparse.Namespace) -> int:
    """Write the file, and describe its contents."""
    return reporting(lambda: _export(arguments))


def _export(arguments: argparse.Namespace) -> None:
    found = list(chosen(arguments))
    if len(found) != 1:
        raise Unusable(f"{len(found)} kernels in {arguments.target}: name one, FILE:KERNEL")
    (kernel,) = found
    sizes = list(variants(kernel, alternatives(arguments.dims)))
    path = Path(arguments.output or f"{kernel.name}{SUFFIX}")
    admitted(str(path.parent), [os.getcwd()])
    try:
        mesh = dims(arguments.mesh, "mesh") or None
        data = kernel.export(path, *sizes, target=arguments.device, mesh=mesh)
    except OSError as problem:
        raise Unusable(f"{path} cannot be written: {problem.strerror}") from problem
    made = load(data)
    say(f"{path}: {made.signature}, {len(data)} bytes")
    for each in made.variants:
        say(f"  {each}" if str(each) else "  without sizes")
    if made.needs:
        say(f"  needs {', '.join(made.needs)}")
