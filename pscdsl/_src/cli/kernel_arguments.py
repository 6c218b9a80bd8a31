"""The arguments of `ir`, `hlo`, `cost`, `compile`, `export`, `run`: kernels and derivatives."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from pscdsl._src.calls.errors import ArgumentError, CheckError
from pscdsl._src.checker.check import check_paths, without_program
from pscdsl._src.cli import Unusable, say
from pscdsl._src.frontend.definitions import Definition
from pscdsl._src.frontend.transformations.derivatives import grad, jacfwd
from pscdsl._src.frontend.transformations.derived import DirectionalKernel, derived
from pscdsl._src.kernels.kernel import Kernel, load_kernel
from pscdsl._src.support.paths import admitted
from pscdsl.typing.array_types import leaves

# The first argument of `ir`, `hlo` and `run`: `FILE:KERNEL`, or `FILE` for all its kernels.


_MOST_DIGITS = 18
"""The most digits of a size: larger numbers have more than 64 bits."""


def dims(options: Iterable[str], option: str = "dims") -> dict[str, int]:
    """Return the sizes that the values of an option give."""
    sizes: dict[str, int] = {}
    given = [item.strip() for option in options for item in option.split(",")]
    for item in filter(None, given):
        name, _, number = (part.strip() for part in item.partition("="))
        if not name.isidentifier() or not number.isdecimal():
            example = "data=8" if option == "mesh" else "n=8,d=4"
            raise Unusable(f"not a size: {item} (write --{option} {example})")
        if len(number) > _MOST_DIGITS:
            raise Unusable(f"too large for a size: {item}")
        sizes[name] = int(number)
    return sizes


def kernels(target: str) -> Iterator[Kernel[..., Any]]:
    """Yield the kernels that are meant, built from the source without importing it."""
    path, name = _split(target)
    if name:
        try:
            yield load_kernel(path, name).functional
        except LookupError as problem:
            raise Unusable(str(problem)) from problem
        return
    found = check_paths([path]).kernels
    if not found:
        raise Unusable(f"no kernels in {path}")
    for kernel in found:
        try:
            yield load_kernel(path, kernel.name).functional
        except LookupError:  # it is made by a function that is not called here
            say(f"pscdsl: {without_program(kernel.name)}", error=True)


def reporting(action: Callable[[], None]) -> int:
    """Run a command's work; findings about the program go to standard error, with exit code 1."""
    try:
        action()
    except CheckError as findings:
        say(findings, error=True)
        return 1
    except ArgumentError as problem:
        raise Unusable(str(problem)) from problem
    return 0


def _split(target: str) -> tuple[Path, str]:
    path, colon, name = target.rpartition(":")
    if not colon or os.path.exists(target):
        path, name = target, ""
    if not os.path.isfile(path):
        raise Unusable(f"no such file: {path}")
    return Path(admitted(path, [os.getcwd()])), name


# The derivatives that `ir`, `hlo` and `run` can be asked for in place of a kernel.


MOST = 8
"""The highest order; programs grow with it."""


def chosen(arguments: argparse.Namespace) -> Iterator[Kernel[..., Any]]:
    """Yield the selected kernels, or the requested derivative."""
    found = kernels(arguments.target)
    mode = next((name for name in ("grad", "jvp", "vjp") if getattr(arguments, name)), "")
    for option in ("argnums", "order"):
        if getattr(arguments, option) is not None and mode != "grad":
            raise Unusable(f"--{option} goes with --grad")
    if not mode:
        yield from found
        return
    several = list(found)
    if len(several) != 1:
        raise Unusable(f"{len(several)} kernels in {arguments.target}: name one, FILE:KERNEL")
    yield _derivative(several[0], mode, arguments)


def _derivative(
    kernel: Kernel[..., Any], mode: str, arguments: argparse.Namespace
) -> Kernel[..., Any]:
    if mode == "grad":
        places, order = _places(arguments.argnums), arguments.order
        return Kernel.from_definition(_gradient(kernel, places, 1 if order is None else order))
    return Kernel.from_definition(
        DirectionalKernel(kernel.definition, "jvp" if mode == "jvp" else "vjp")
    )


def _gradient(kernel: Kernel[..., Any], places: int | tuple[int, ...], order: int) -> Definition:
    if not 1 <= order <= MOST:
        raise Unusable(f"--order is between 1 and {MOST}, not {order}")
    result = kernel.ir().result
    if not _is_real_number(result):
        raise Unusable(
            f"{kernel.name} returns {result}, and a gradient is one of a real number; "
            "--jvp and --vjp are derivatives of any result, along a direction"
        )
    made = grad(None, kernel.definition, places)
    for _ in range(order - 1):
        made = jacfwd(None, made, places)
    found = derived(made)
    assert found is not None
    return found


def _is_real_number(result: object) -> bool:
    found = [] if result is None else list(leaves(result))  # type: ignore[arg-type]
    return len(found) == 1 and not found[0].shape and found[0].dtype.is_float


def _places(text: str | None) -> int | tuple[int, ...]:
    """Return the value of `--argnums`: one index, or several."""
    try:
        places = tuple([int(part) for part in (text or "0").split(",") if part])
    except ValueError:
        raise Unusable(f"not places of arguments: {text} (write --argnums 0,2)") from None
    return places if "," in (text or "") else places[0]
