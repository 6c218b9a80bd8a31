"""How long programs take to be made: elaborated, differentiated, and lowered for a new shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.measure import Ratio, compare
from benchmarks.workload import Workload, leaves, plain
from pscdsl._src.ir.program import walk
from pscdsl._src.kernels.kernel import Kernel
from pscdsl._src.targets.pipeline import lower_module
from pscdsl.typing.signatures import Choice

ROUNDS = 15
FIRST_CALLS = 5


def fresh(kernel: Kernel[Any, Any]) -> Kernel[Any, Any]:
    """A kernel as if it had never been elaborated."""
    function: Callable[..., Any] = vars(kernel)["__wrapped__"]
    return Kernel(function)


def elaboration(jax: Any, work: Workload) -> tuple[Ratio, int, int]:
    """Source to typed program beside `jax.make_jaxpr`, per operation; how many operations."""

    def elaborate() -> None:
        fresh(work.kernel).ir(**work.choices)

    program = fresh(work.kernel).ir(**work.choices)
    count = sum(1 for _ in walk(program.body))
    theirs = work.jax(jax)
    arguments = plain(work.arguments(work.scale))
    operations = _equations(jax.make_jaxpr(theirs)(*arguments).jaxpr)
    found = compare(elaborate, _tracing(jax, theirs, arguments), ROUNDS)
    part = operations / count
    each = Ratio(
        found.ours / count,
        found.theirs / operations,
        found.low * part,
        found.median * part,
        found.high * part,
    )
    return each, count, operations


def differentiation(jax: Any, work: Workload) -> Ratio:
    """A checked program to that of its derivative, beside jax's trace of the same function."""
    derived = work.derived
    assert derived is not None

    def checked() -> Iterator[Kernel[Any, Any]]:
        for _ in range(ROUNDS + 1):
            kernel = fresh(derived.forward)
            kernel.ir(**work.choices)
            yield kernel

    kernels = iter(list(checked()))

    def differentiate() -> None:
        derived.transform(next(kernels)).ir(**work.choices)

    arguments = plain(work.arguments(work.scale))
    return compare(differentiate, _tracing(jax, work.jax(jax), arguments), ROUNDS)


def first_call(jax: Any, work: Workload) -> Ratio:
    """From source to the first result in a process that runs: checked, lowered, compiled, run.

    Neither side keeps what it has compiled, in memory or on disk.
    """
    arguments = work.arguments(work.scale)
    numbers = plain(arguments)
    jax.config.update("jax_enable_x64", work.double)

    def ours() -> None:
        for each in leaves(fresh(work.kernel)(*arguments)):
            each.block_until_ready()

    def theirs() -> None:
        function = work.jax(jax)
        jax.clear_caches()
        jax.block_until_ready(jax.jit(function)(*numbers))

    return compare(ours, theirs, FIRST_CALLS)


def new_shape(jax: Any, work: Workload) -> Ratio:
    """A known kernel at sizes it has not seen, up to StableHLO; jax traces and lowers again."""
    kernel = fresh(work.kernel)
    program = kernel.optimised(Choice())
    function = jax.jit(work.jax(jax))
    # Arguments of sizes never seen, made beforehand; each is used once.
    unseen = iter([work.arguments(work.scale + 1 + i) for i in range(2 * ROUNDS + 2)])

    def ours() -> None:
        _, types = kernel.arguments(next(unseen), {})
        _, numbers = kernel.matched(types)
        lower_module(program, numbers)

    def theirs() -> None:
        function.lower(*plain(next(unseen)))

    return compare(ours, theirs, ROUNDS)


def _tracing(
    jax: Any, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> Callable[[], object]:
    def trace() -> None:
        def anew(*args: Any) -> Any:  # a new function: no cache
            return function(*args)

        jax.make_jaxpr(anew)(*arguments)

    return trace


def _equations(jaxpr: Any) -> int:
    count = 0
    for equation in jaxpr.eqns:
        inner = [p for p in equation.params.values() if hasattr(p, "eqns") or hasattr(p, "jaxpr")]
        if equation.primitive.name != "jit" and equation.primitive.name != "pjit":
            count += 1
        for each in inner:
            count += _equations(getattr(each, "jaxpr", each))
    return count
