"""Print the typed program of a kernel: what the checker made of the Python.

    pscdsl ir model.py:loss --grad --argnums 0,2

With --grad, --jvp or --vjp the program of a derivative; --simplified shows what is compiled.
"""

from __future__ import annotations

import argparse

from pscdsl._src.cli import say
from pscdsl._src.cli.kernel_arguments import add_derivatives, add_target, chosen, reporting


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_target(parser)
    parser.add_argument(
        "--simplified", action="store_true", help="without dead and repeated equations"
    )
    add_derivatives(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the program."""

    def work() -> None:
        from pscdsl._src.transforms.simplify.simplify import simplify

        for kernel in chosen(arguments):
            program = kernel.ir()
            say(str(simplify(program) if arguments.simplified else program).rstrip())

    return reporting(work)
