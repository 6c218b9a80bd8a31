"""The derivatives that `ir`, `hlo` and `run` can be asked for in place of a kernel."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pscdsl._src.cli import Unusable
from pscdsl._src.cli.target import kernels

if TYPE_CHECKING:
    from pscdsl._src.frontend.definitions import Definition
    from pscdsl._src.kernels.kernel import Kernel

MOST = 8
"""The highest order; programs grow with it."""


def add_derivatives(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    group = parser.add_argument_group(
        "derivatives", "in place of the kernel, what a transformation makes of it"
    )
    kind = group.add_mutually_exclusive_group()
    kind.add_argument(
        "--grad", action="store_true", help="the gradient, as psc.grad(kernel) computes it"
    )
    kind.add_argument(
        "--jvp", action="store_true", help="the result and its tangent, given those of arguments"
    )
    kind.add_argument(
        "--vjp", action="store_true", help="the result and cotangents, given that of the result"
    )
    group.add_argument(
        "--argnums",
        metavar="PLACES",
        help="with --grad: the arguments to differentiate in, for instance 0,2 (default: 0)",
    )
    group.add_argument(
        "--order",
        type=int,
        metavar="N",
        help="with --grad: 2 for the derivatives of the gradient (jacfwd of it), and so on",
    )


def chosen(arguments: argparse.Namespace) -> Iterator[Kernel[..., Any]]:
    """The kernels that are meant, or the derivative that is asked for."""
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
    from pscdsl._src.frontend.transformations.along import Along
    from pscdsl._src.kernels.kernel import Kernel

    if mode == "grad":
        places, order = _places(arguments.argnums), arguments.order
        return Kernel.from_definition(_gradient(kernel, places, 1 if order is None else order))
    return Kernel.from_definition(Along(kernel.definition, "jvp" if mode == "jvp" else "vjp"))


def _gradient(kernel: Kernel[..., Any], places: int | tuple[int, ...], order: int) -> Definition:
    from pscdsl._src.frontend.transformations.derived import derived
    from pscdsl._src.frontend.transformations.gradients import grad
    from pscdsl._src.frontend.transformations.jacobians import jacfwd

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
    from pscdsl.typing.trees import leaves

    found = [] if result is None else list(leaves(result))  # type: ignore[arg-type]
    return len(found) == 1 and not found[0].shape and found[0].dtype.is_float


def _places(text: str | None) -> int | tuple[int, ...]:
    """What `--argnums` says: one place, or several."""
    try:
        places = tuple([int(part) for part in (text or "0").split(",") if part])
    except ValueError:
        raise Unusable(f"not places of arguments: {text} (write --argnums 0,2)") from None
    return places if "," in (text or "") else places[0]
