"""Export a kernel: one file that `psc.load` calls without its source, and jax too.

    pscdsl export model.py:predict --dims n=1,d=64 --dims n=32 --output predict.psca

Sizes that are given several times are combined with all others; all are in the one file.  What a
signature leaves open besides is the first that it admits, unless --dims names it.

It is signed with your key, the file that $PSCDSL_KEY names, or one among your settings: `psc.load`
accepts it from users who have that key.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from pscdsl._src.cli import Unusable, say
from pscdsl._src.cli.compile import alternatives, variants
from pscdsl._src.cli.kernel_arguments import (
    add_derivatives,
    add_dims,
    add_target,
    chosen,
    reporting,
)
from pscdsl._src.support.paths import admitted


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_target(parser)
    add_dims(parser)
    parser.add_argument("--output", metavar="FILE", help="the file; otherwise KERNEL.psca")
    parser.add_argument(
        "--target",
        dest="device",
        choices=("any", "cpu"),
        default="any",
        help="where it is to run: on any device, or on CPUs by what is fast there",
    )
    add_derivatives(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the file, and say what is in it."""
    return reporting(lambda: _export(arguments))


def _export(arguments: argparse.Namespace) -> None:
    from pscdsl._src.artefacts.format import SUFFIX
    from pscdsl._src.kernels.loaded import load

    found = list(chosen(arguments))
    if len(found) != 1:
        raise Unusable(f"{len(found)} kernels in {arguments.target}: name one, FILE:KERNEL")
    (kernel,) = found
    sizes = list(variants(kernel, alternatives(arguments.dims)))
    path = Path(arguments.output or f"{kernel.name}{SUFFIX}")
    admitted(str(path.parent), [os.getcwd()])
    try:
        data = kernel.export(path, *sizes, target=arguments.device)
    except OSError as problem:
        raise Unusable(f"{path} cannot be written: {problem.strerror}") from problem
    made = load(data)
    say(f"{path}: {made.signature}, {len(data)} bytes")
    for each in made.variants:
        say(f"  {each}" if str(each) else "  without sizes")
    if made.needs:
        say(f"  needs {', '.join(made.needs)}")
