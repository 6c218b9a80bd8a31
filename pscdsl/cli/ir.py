"""Print the typed program of a kernel: what the checker made of the Python."""

from __future__ import annotations

import argparse

from pscdsl.cli.target import add_target, kernels, reporting


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_target(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the program."""

    def work() -> None:
        for kernel in kernels(arguments.target):
            print(str(kernel.ir()).rstrip())

    return reporting(work)
