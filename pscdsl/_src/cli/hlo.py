"""Print the StableHLO of a kernel for given sizes, or the HLO that XLA optimised it to."""

from __future__ import annotations

import argparse

from pscdsl._src.cli import say
from pscdsl._src.cli.kernel_arguments import (
    add_derivatives,
    add_dims,
    add_target,
    chosen,
    dims,
    reporting,
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_target(parser)
    add_dims(parser)
    parser.add_argument(
        "--optimized", action="store_true", help="print what XLA compiles for this machine"
    )
    add_derivatives(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the module."""
    sizes = dims(arguments.dims)

    def work() -> None:
        for kernel in chosen(arguments):
            lowered = kernel.lower(**sizes)
            text = lowered.compile().text() if arguments.optimized else lowered.text()
            say(text.rstrip())

    return reporting(work)
