"""`pscdsl hlo`: modules of StableHLO or HLO, printed."""

from __future__ import annotations

import argparse

from pscdsl._src.cli import say
from pscdsl._src.cli.kernel_arguments import chosen, dims, reporting


def run(arguments: argparse.Namespace) -> int:
    """Print the module."""
    sizes = dims(arguments.dims)

    def work() -> None:
        for kernel in chosen(arguments):
            lowered = kernel.lower(**sizes)
            text = lowered.compile().text() if arguments.optimized else lowered.text()
            say(text.rstrip())

    return reporting(work)
