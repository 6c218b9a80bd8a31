"""Plain NumPy programs as kernels, beside NumPy, Numba and jax.jit.

`python -m tests.benchmarks.plain_numpy [NAME ...] [--seconds S] [--markdown]`

Each program is that of `tests.plain_numpy` with what makes it a kernel.  Each call gets new copies
of its arguments, which are NumPy arrays; copying them is not counted, writing into them is.  Numba
compiles the same text with `njit`, and jax.jit traces it, with `jax.numpy` for NumPy and Python's
integers static; where it cannot, a program may be written by hand for it.  Results are compared
before anything is timed.  Two run in turn, and medians count.
"""

from __future__ import annotations

import argparse
import copy
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pscdsl._src.kernels.kernel import load_kernel
from tests.benchmarks.measure import Ratio, alternating
from tests.benchmarks.plain_numpy.programs import MEASURED, SIZES, lines_of, measured_at
from tests.benchmarks.plain_numpy.report import Measured, markdown, plain
from tests.benchmarks.plain_numpy.rivals import Refused, is_installed, jax_of, numba_of, values
from tests.plain_numpy.acceptance import changed, outcome, source
from tests.plain_numpy.program import Program, difference

ROUNDS = 31
LEAST = 0.002
"""How many seconds of calls each turn has at least, so that the clock does not count."""
ROUNDING = 100
"""Larger arrays differ by so much more than those of the tests."""


def calls(
    function: Callable[..., Any], arguments: Sequence[Any], times: int
) -> Callable[[], float]:
    """How long a call takes, without the copies that it may write."""

    def run() -> float:
        total = 0.0
        for _ in range(times):
            given = copy.deepcopy(arguments)
            start = time.perf_counter()
            function(*given)
            total += time.perf_counter() - start
        return total / times

    return run


def compare(
    ours: Callable[..., Any], theirs: Callable[..., Any], arguments: Sequence[Any], seconds: float
) -> Ratio:
    """Both in turn, for as many seconds."""
    once = [calls(each, arguments, 1) for each in (ours, theirs)]
    mine, other = (min(each(), each()) for each in once)
    times = max(1, int(LEAST / max(mine, other)))
    rounds = max(3, min(ROUNDS, int(seconds / (times * (mine + other)))))
    return alternating(calls(ours, arguments, times), calls(theirs, arguments, times), rounds)


def results_of(
    program: Program, function: Callable[..., Any], arguments: Sequence[Any], pure: bool = False
) -> list[Any]:
    """What a call returns and then what it has written; a pure function returns both."""
    given = copy.deepcopy(arguments)
    found = function(*given)
    return values(found) if pure else values([found, program.written(given)])


def check(program: Program, name: str, found: Sequence[Any], wanted: Sequence[Any]) -> None:
    """Raise if results differ by more than roundings do."""
    pairs = list(zip(found, wanted, strict=True))
    apart = max((difference(x.astype(y.dtype), y) for x, y in pairs), default=0.0)
    if not apart <= ROUNDING * program.tolerance:
        raise Refused(f"other results, {apart:.0e}")


def measure(program: Program, seconds: float) -> Iterator[dict[str, Any]]:
    """What one program takes beside each of the others, as far as they take it."""
    warnings.simplefilter("ignore")
    arguments = program.inputs(measured_at(program))
    wanted = results_of(program, program.function, arguments)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{program.name}.py")
        path.write_text(source(program), encoding="utf-8")
        kernel: Any = load_kernel(path, program.name)
        check(program, "pscdsl", results_of(program, kernel, arguments), wanted)

        def beside(name: str, make: Callable[[], tuple[Callable[..., Any], bool]]) -> Any:
            try:
                theirs, pure = make()
                check(program, name, results_of(program, theirs, arguments, pure), wanted)
            except Refused as refusal:
                return {"rival": name, "refused": str(refusal)}
            ratio = compare(kernel, theirs, arguments, seconds)
            return {"rival": name, "ratio": vars(ratio), "by_hand": pure}

        yield beside("NumPy", lambda: (program.function, False))
        if is_installed("numba"):
            yield beside("Numba", lambda: (numba_of(program), False))
        if is_installed("jax"):
            yield beside("jax.jit", lambda: jax_of(program, arguments))


def apart(program: Program, seconds: float, limit: float) -> Measured:
    """A program measured in a process of its own, which ends when the time is over."""
    about = Measured(program.name, SIZES[program.name], lines_of(program), changed(source(program)))
    accepted = outcome(program)
    if accepted.verdict != "accepted":
        about.refusal = f"{accepted.code} {accepted.message}".strip()
        return about
    command = [sys.executable, "-m", "tests.benchmarks.plain_numpy", "--apart", program.name]
    command += ["--seconds", str(seconds)]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=limit)
        text = done.stdout
        about.failed = done.returncode != 0
    except subprocess.TimeoutExpired as expired:
        text = (expired.stdout or b"").decode()
        about.late = True
    for line in text.splitlines():
        row = json.loads(line)
        if "ratio" in row:
            about.ratios[row["rival"]] = Ratio(**row["ratio"])
        else:
            about.refusals[row["rival"]] = row["refused"]
        if row.get("by_hand"):
            about.by_hand = True
    return about


def main(given: Sequence[str]) -> int:
    """Measure what is named, or all."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.plain_numpy",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", help="of programs; all, if none is given")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each pair of two")
    parser.add_argument("--limit", type=float, default=120.0, help="of seconds for each program")
    parser.add_argument("--markdown", action="store_true", help="as the table of the documents")
    parser.add_argument("--apart", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(given)
    if unknown := set(options.names) - set(MEASURED):
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    names = options.names or list(MEASURED)
    if options.apart:
        for row in measure(MEASURED[names[0]], options.seconds):
            print(json.dumps(row), flush=True)
        return 0
    found: list[Measured] = []
    for name in names:
        found.append(apart(MEASURED[name], options.seconds, options.limit))
        print(plain(found[-1]), file=sys.stderr, flush=True)
    print(markdown(found) if options.markdown else "\n".join(map(plain, found)))
    return int(any(each.failed for each in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
