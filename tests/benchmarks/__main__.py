"""Measure ourselves beside jax: elaboration, new shapes, run time, and `pscdsl check`."""

from __future__ import annotations

import functools
import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pscdsl.ir import walk
from pscdsl.kernel import Kernel
from pscdsl.typing.signatures import Choice
from pscdsl.xla.emit import lower_module
from tests.benchmarks.measure import Ratio, compare, seconds, table
from tests.benchmarks.programs import WORKLOADS, Workload, jax_programs

ROUNDS = 15
HEAD = ("program", "ours", "jax", "ratio", "quartiles")


def row(name: str, found: Ratio, unit: float = 1e3, suffix: str = "ms") -> list[str]:
    """One line of a table."""
    return [
        name,
        f"{found.ours * unit:.3f} {suffix}",
        f"{found.theirs * unit:.3f} {suffix}",
        f"{found.median:.3f}",
        f"{found.low:.3f}-{found.high:.3f}",
    ]


def fresh(work: Workload) -> Kernel[Any, Any]:
    """The kernel as if it had never been elaborated."""
    return Kernel(work.kernel.__wrapped__)


def elaboration(jax: Any, theirs: dict[str, Any]) -> str:
    """Source to typed program beside `jax.make_jaxpr`, per operation of each."""
    rows: list[list[str]] = []
    for work in WORKLOADS:
        arguments = work.arguments(work.scale)
        program = fresh(work).ir()
        count = sum(1 for _ in walk(program.body))
        traced = jax.make_jaxpr(theirs[work.name])(*arguments)
        operations = _equations(traced.jaxpr)

        def trace(function: Any = theirs[work.name], arguments: Any = arguments) -> None:
            def anew(*args: Any) -> Any:  # a new function: no cache
                return function(*args)

            jax.make_jaxpr(anew)(*arguments)

        def elaborate(work: Workload = work) -> None:
            fresh(work).ir()

        found = compare(elaborate, trace)
        each = Ratio(
            found.ours / count,
            found.theirs / operations,
            found.low * operations / count,
            found.median * operations / count,
            found.high * operations / count,
        )
        rows.append([*row(work.name, each, 1e6, "us"), f"{count}/{operations}"])
    return table("elaboration, per operation", (*HEAD, "operations"), rows)


def _equations(jaxpr: Any) -> int:
    count = 0
    for equation in jaxpr.eqns:
        inner = [p for p in equation.params.values() if hasattr(p, "eqns") or hasattr(p, "jaxpr")]
        if equation.primitive.name != "jit" and equation.primitive.name != "pjit":
            count += 1
        for each in inner:
            count += _equations(getattr(each, "jaxpr", each))
    return count


def new_shape(jax: Any, theirs: dict[str, Any]) -> str:
    """A known kernel at sizes it has not seen, up to StableHLO; jax traces and lowers again."""
    rows: list[list[str]] = []
    for work in WORKLOADS:
        kernel = fresh(work)
        program = kernel.optimised(Choice())
        function = jax.jit(theirs[work.name])
        # Arguments of sizes never seen, made beforehand; each is used once.
        unseen = iter([work.arguments(work.scale + 1 + i) for i in range(2 * ROUNDS + 2)])

        def ours(kernel: Any = kernel, program: Any = program, unseen: Any = unseen) -> None:
            _, types = kernel.arguments(next(unseen), {})
            _, numbers = kernel.matched(types)
            lower_module(program, numbers)

        def jaxs(function: Any = function, unseen: Any = unseen) -> None:
            function.lower(*next(unseen))

        rows.append(row(work.name, compare(ours, jaxs, ROUNDS)))
    return table("a new shape, without XLA's compilation", HEAD, rows)


def run_time(jax: Any, theirs: dict[str, Any]) -> str:
    """Compiled programs on the same arguments, which are on the device already."""
    rows: list[list[str]] = []
    for work in WORKLOADS:
        arguments = work.arguments(work.scale)
        ours = [identity(a) for a in arguments]
        others = [jax.numpy.asarray(a) for a in arguments]
        function = jax.jit(theirs[work.name])
        mine, other = np.asarray(work.kernel(*ours)), np.asarray(function(*others))
        np.testing.assert_allclose(mine, other, rtol=2e-3, atol=2e-3)
        jaxs = functools.partial(_finished, function, others)
        times = max(1, int(0.02 / seconds(jaxs)))
        found = compare(
            functools.partial(_finished, work.kernel, ours), jaxs, rounds=31, times=times
        )
        rows.append(row(work.name, found))
    return table("run time", HEAD, rows)


def _finished(function: Callable[..., Any], arguments: Sequence[Any]) -> None:
    function(*arguments).block_until_ready()


def identity(array: Any) -> Any:
    """An array on the device."""
    from pscdsl.xla.client import put

    return put(array)


def checking() -> str:
    """`pscdsl check` from process start: one small file, and a hundred kernels."""
    source = Path(__file__).with_name("programs.py").read_text()
    kernels = source.split("def jax_programs")[0]
    small = kernels.split("@psc.kernel\ndef attention")[0]
    head, *bodies = kernels.split("@psc.kernel\n")
    with tempfile.TemporaryDirectory() as folder:
        one = Path(folder, "one.py")
        one.write_text(small)
        many = Path(folder, "many.py")
        copies = [
            "@psc.kernel\n" + body.replace("def ", f"def k{i}_", 1)
            for i in range(100)
            for body in [bodies[i % len(bodies)]]
        ]
        many.write_text(head + "".join(copies))
        rows = [
            ["bare python", f"{_process('-c', 'pass'):.3f} s"],
            ["import numpy", f"{_process('-c', 'import numpy'):.3f} s"],
            ["one small file", f"{_process('-m', 'pscdsl', 'check', str(one)):.3f} s"],
            ["100 kernels", f"{_process('-m', 'pscdsl', 'check', str(many)):.3f} s"],
        ]
    return table("pscdsl check, from process start (median of 7)", ("what", "time"), rows)


def _process(*arguments: str) -> float:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    times: list[float] = []
    for _ in range(8):
        times.append(
            seconds(
                lambda: subprocess.run(
                    [sys.executable, *arguments], check=True, capture_output=True, env=environment
                )
            )
        )
    return sorted(times[1:])[3]


def main(arguments: Sequence[str]) -> None:
    """Run the named measurements, or all."""
    jax: Any = importlib.import_module("jax")
    theirs = jax_programs()
    wanted = set(arguments) or {"elaboration", "new_shape", "run_time", "checking"}
    if "checking" in wanted:
        print(checking(), flush=True)
    for measure in (elaboration, new_shape, run_time):
        if measure.__name__ in wanted:
            print(measure(jax, theirs), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
