"""What `ir`, `hlo` and `run` work on: `FILE:KERNEL`, or `FILE` for all of its kernels."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pscdsl._src.cli import Unusable, say
from pscdsl._src.support.paths import admitted

if TYPE_CHECKING:
    from pscdsl._src.kernels.kernel import Kernel

_MOST_DIGITS = 18
"""Of a size: larger numbers have more than 64 bits."""


def add_target(parser: argparse.ArgumentParser) -> None:
    """Declare the argument."""
    parser.add_argument(
        "target",
        metavar="FILE[:KERNEL]",
        help="the file, and the kernel in it; without a name, all of its kernels",
    )


def add_dims(parser: argparse.ArgumentParser) -> None:
    """Declare the option."""
    parser.add_argument(
        "--dims",
        action="append",
        default=[],
        metavar="SIZES",
        help="sizes by name, for instance n=8,d=4",
    )


def dims(options: Iterable[str]) -> dict[str, int]:
    """The sizes that the options give."""
    sizes: dict[str, int] = {}
    given = [item.strip() for option in options for item in option.split(",")]
    for item in filter(None, given):
        name, _, number = (part.strip() for part in item.partition("="))
        if not name.isidentifier() or not number.isdecimal():
            raise Unusable(f"not a size: {item} (write --dims n=8,d=4)")
        if len(number) > _MOST_DIGITS:
            raise Unusable(f"too large for a size: {item}")
        sizes[name] = int(number)
    return sizes


def kernels(target: str) -> Iterator[Kernel[..., Any]]:
    """The kernels that are meant, built from the source without importing it."""
    from pscdsl._src.checker.check import check_paths, without_program
    from pscdsl._src.kernels.kernel import load_kernel

    path, name = _split(target)
    if name:
        try:
            yield load_kernel(path, name)
        except LookupError as problem:
            raise Unusable(str(problem)) from problem
        return
    found = check_paths([path]).kernels
    if not found:
        raise Unusable(f"no kernels in {path}")
    for kernel in found:
        try:
            yield load_kernel(path, kernel.name)
        except LookupError:  # it is made by a function that is not called here
            say(f"pscdsl: {without_program(kernel.name)}", error=True)


def reporting(action: Callable[[], None]) -> int:
    """Run a command's work; findings about the program go to standard error, with exit code 1."""
    import pscdsl

    try:
        action()
    except pscdsl.CheckError as findings:
        say(findings, error=True)
        return 1
    except pscdsl.ArgumentError as problem:
        raise Unusable(str(problem)) from problem
    return 0


def _split(target: str) -> tuple[Path, str]:
    path, colon, name = target.rpartition(":")
    if not colon or os.path.exists(target):
        path, name = target, ""
    if not os.path.isfile(path):
        raise Unusable(f"no such file: {path}")
    return Path(admitted(path, [os.getcwd()])), name
