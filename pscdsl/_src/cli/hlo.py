"""`pscdsl hlo`: modules of StableHLO or HLO, printed."""

from __future__ import annotations

import argparse

from pscdsl._src.cli import Unusable, say
from pscdsl._src.cli.kernel_arguments import chosen, dims, reporting
from pscdsl._src.kernels.lowered import Lowered
from pscdsl._src.xla.device import UnsupportedDeviceError


def run(arguments: argparse.Namespace) -> int:
    """Print the module."""
    sizes = dims(arguments.dims)

    def work() -> None:
        for kernel in chosen(arguments):
            say(_text(kernel.lower(**sizes), arguments).rstrip())

    return reporting(work)


def _text(lowered: Lowered, arguments: argparse.Namespace) -> str:
    gpu = arguments.gpu
    if not arguments.optimized and not arguments.ptx:
        return lowered.text(target=gpu)
    if gpu is None:
        if arguments.ptx:
            raise Unusable("--ptx goes with --target")
        return lowered.compile().text()
    try:
        made = lowered.compile_for(gpu)
    except UnsupportedDeviceError as problem:
        raise Unusable(str(problem)) from None
    return made.ptx if arguments.ptx else made.text
