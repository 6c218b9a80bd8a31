"""Measure ourselves beside jax: elaboration, new shapes, run time, and `pscdsl check`."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from pscdsl.ir import walk
from pscdsl.kernel import Kernel
from pscdsl.typing.signatures import Choice
from pscdsl.xla import boot
from pscdsl.xla.client import client
from pscdsl.xla.emit import lower_module
from tests.benchmarks.measure import Ratio, compare, seconds, table
from tests.benchmarks.programs import WORKLOADS, Workload, jax_programs

ROUNDS = 15
PROCESSES = 7
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
    """Compiled programs on arguments that are on the device already.

    Where memory happens to lie, and on which core a thread wakes, changes a process's times by
    10 to 30 % for as long as it lives; so each pair is measured in several processes.
    """
    del jax, theirs
    rows: list[list[str]] = []
    for work in WORKLOADS:
        found = sorted(
            (_run_time_apart(work.name) for _ in range(PROCESSES)), key=lambda each: each.median
        )
        middle = found[PROCESSES // 2]
        whole = Ratio(middle.ours, middle.theirs, found[0].median, middle.median, found[-1].median)
        rows.append(row(work.name, whole))
    head = (*HEAD[:-1], "least and greatest process")
    return table(f"run time, median of {PROCESSES} processes", head, rows)


def _run_time_apart(name: str) -> Ratio:
    command = [sys.executable, "-m", "tests.benchmarks", "--apart", name]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Ratio(**json.loads(done.stdout.splitlines()[-1]))


def run_time_here(name: str) -> Ratio:
    """One pair, in this process; results are checked to be equal."""
    jax: Any = importlib.import_module("jax")
    share_client(jax)
    work = next(each for each in WORKLOADS if each.name == name)
    arguments = work.arguments(work.scale)
    ours = [identity(a) for a in arguments]
    others = [jax.numpy.asarray(a) for a in arguments]
    function = jax.jit(jax_programs()[name])
    mine, other = np.asarray(work.kernel(*ours)), np.asarray(function(*others))
    np.testing.assert_allclose(mine, other, rtol=2e-3, atol=2e-3)

    def run_ours() -> None:
        work.kernel(*ours).block_until_ready()

    def run_theirs() -> None:
        function(*others).block_until_ready()

    times = max(1, int(0.02 / seconds(run_theirs)))
    return compare(run_ours, run_theirs, rounds=31, times=times)


def share_client(jax: Any) -> None:
    """Run our programs on jax's client: a second one's threads would disturb both.

    A RuntimeError if ours exists already.
    """
    theirs = jax.devices()[0].client
    boot.boot()
    boot.xla.make_cpu_client = lambda: theirs
    if client() is not theirs:
        raise RuntimeError("a client was made before the benchmark could share jax's")


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
    if arguments[:1] == ["--apart"]:
        print(json.dumps(asdict(run_time_here(arguments[1]))))
        return
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
