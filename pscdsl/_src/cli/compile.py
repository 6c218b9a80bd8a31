"""`pscdsl compile`: programs into the cache, for all sizes that are given."""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Any

from pscdsl._src.caching import store
from pscdsl._src.calls.errors import ArgumentError, CheckError
from pscdsl._src.cli import Unusable, say
from pscdsl._src.cli.kernel_arguments import chosen, dims
from pscdsl._src.kernels.compiling import obtained
from pscdsl._src.kernels.kernel import Kernel
from pscdsl._src.support.paths import admitted
from pscdsl._src.xla.device import DEVICES_VARIABLE
from pscdsl._src.xla.runtime.executable import Executable
from pscdsl._src.xla.specialisation import Specialisation
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.codes.limits import NoRule


@dataclass
class _Done:
    """The counts of kernels by outcome."""

    compiled: int = 0
    found: int = 0
    left_out: int = 0
    errors: int = 0

    def __str__(self) -> str:
        told = [f"{self.compiled} compiled", f"{self.found} there already"]
        told += [f"{self.left_out} left out"] if self.left_out else []
        told += [f"{self.errors} with errors"] if self.errors else []
        return ", ".join(told)


def run(arguments: argparse.Namespace) -> int:
    """Compile kernels, and report the outcome of each."""
    if arguments.gpu:
        from pscdsl._src.cli import compile_for_gpu  # whose plugin may not be installed

        return compile_for_gpu.run(arguments)
    mesh = dims(arguments.mesh, "mesh")
    if mesh:  # this process gets the devices, if its environment does not say otherwise
        os.environ.setdefault(DEVICES_VARIABLE, str(max(1, prod(mesh.values()))))
    if arguments.output:
        os.environ[store.FOLDER_VARIABLE] = admitted(arguments.output, [os.getcwd()])
    if store.cache_folder() is None:
        raise Unusable("nothing is kept: PSCDSL_CACHE is off (--output FOLDER names a place)")
    sizes = alternatives(arguments.dims)
    done = _Done()
    for kernel in chosen(arguments):
        try:
            for each in variants(kernel, sizes):
                if mesh:
                    _compile_on(kernel, each, mesh, done)
                else:
                    _compile(kernel, each, done)
        except CheckError as findings:
            foreign = [each.primitive for each in findings.diagnostics if isinstance(each, NoRule)]
            if len(foreign) == len(findings.diagnostics):
                names = ", ".join(f"`{each}`" for each in foreign)
                say(f"{kernel.name}: left out: the translation of {names} is not run here")
                done.left_out += 1
            else:
                say(findings, error=True)
                done.errors += 1
        except (Unusable, ArgumentError) as reason:
            say(f"{kernel.name}: left out: {reason}")
            done.left_out += 1
    say(f"{done} in {store.cache_folder()}")
    if done.errors:
        return 1
    return 0 if done.compiled or done.found else 2


def _compile(kernel: Kernel[..., Any], sizes: dict[str, int], done: _Done) -> None:
    """Compile the program that takes all numbers, and the one without those with defaults."""
    general = kernel.lower(**sizes).specialisation
    wanted = [general]
    trees, names = dict(general.program.parameters), tuple(kernel.number_defaults)
    if names and all(isinstance(trees[name], ArrayType) for name in names):  # none is None
        wanted.append(kernel.specialisation(general.choice, general.sizes, names))
    for each in wanted:
        _count(f"{kernel.name}{_told(each)}", obtained(each, ahead=each is general), done)


def _compile_on(
    kernel: Kernel[..., Any], sizes: dict[str, int], mesh: dict[str, int], done: _Done
) -> None:
    """Compile the program of the devices of a mesh."""
    placed = kernel.lower(**sizes).on_mesh(**mesh)
    try:
        executable = placed.compile()
    except ValueError as problem:  # this process has fewer devices than the mesh
        raise Unusable(str(problem)) from None
    _count(f"{kernel.name}{_told(placed.lowered.specialisation, mesh)}", executable, done)


def _count(told: str, executable: Executable, done: _Done) -> None:
    """Report whether a program was compiled, or found; Unusable if it is not stored."""
    if executable.not_stored:
        raise Unusable(executable.not_stored)
    if executable.source == "disk":
        done.found += 1
        say(f"{told}: there already")
    else:
        done.compiled += 1
        say(f"{told}: compiled in {executable.seconds:.2f} s")


def _told(wanted: Specialisation, mesh: Mapping[str, int] = MappingProxyType({})) -> str:
    parts = [f"{name}={size}" for name, size in wanted.sizes.items()]
    parts += [str(wanted.choice)] if str(wanted.choice) else []
    given = f" at {', '.join(parts)}" if parts else ""
    axes = ", ".join([f"{name}={size}" for name, size in mesh.items()])
    given += f" on Mesh({axes})" if mesh else ""
    return given + (", with its defaults" if wanted.constants else "")


def alternatives(options: Iterable[str]) -> dict[str, list[int]]:
    """Return all numbers that are given for each size."""
    found: dict[str, list[int]] = {}
    for item in (item for option in options for item in option.split(",")):
        for name, size in dims([item]).items():
            known = found.setdefault(name, [])
            known += [] if size in known else [size]
    return found


def variants(kernel: Kernel[..., Any], sizes: dict[str, list[int]]) -> Iterator[dict[str, int]]:
    """Yield the combinations of sizes that a kernel has."""
    program = kernel.ir()
    open_parts = kernel.signature.open_parts()
    missing = [name for name in program.dims if name not in sizes]
    if missing:
        raise Unusable(f"sizes are missing: {', '.join(missing)}")
    own = {n: s for n, s in sizes.items() if n in program.dims or n in open_parts}
    for numbers in itertools.product(*own.values()):
        yield dict(zip(own, numbers, strict=True))
