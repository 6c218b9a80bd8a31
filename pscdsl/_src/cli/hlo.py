"""`pscdsl hlo`: modules of StableHLO or HLO, printed."""

from __future__ import annotations

import argparse

from pscdsl._src.cli import Unusable, say
from pscdsl._src.cli.kernel_arguments import chosen, dims, reporting
from pscdsl._src.kernels.lowered import Lowered
from pscdsl._src.kernels.lowered_on_mesh import LoweredOnMesh
from pscdsl._src.xla.device import UnsupportedDeviceError


def run(arguments: argparse.Namespace) -> int:
    """Print the module."""
    sizes, mesh = dims(arguments.dims), dims(arguments.mesh, "mesh")

    def work() -> None:
        for kernel in chosen(arguments):
            lowered = kernel.lower(**sizes)
            say(_text(lowered.on_mesh(**mesh) if mesh else lowered, arguments).rstrip())

    return reporting(work)


def _text(lowered: Lowered | LoweredOnMesh, arguments: argparse.Namespace) -> str:
    gpu = arguments.gpu
    if not arguments.optimized and not arguments.ptx:
        return lowered.text(target=gpu)
    if gpu is None:
        if arguments.ptx:
            raise Unusable("--ptx goes with --target")
        return _compiled_text(lowered)
    try:
        made = lowered.compile_for(gpu)
    except UnsupportedDeviceError as problem:
        raise Unusable(str(problem)) from None
    return made.ptx if arguments.ptx else made.text


def _compiled_text(lowered: Lowered | LoweredOnMesh) -> str:
    try:
        return str(lowered.compile().text())
    except ValueError as problem:  # this machine has fewer devices than the mesh
        if isinstance(lowered, Lowered):
            raise
        raise Unusable(str(problem)) from None
