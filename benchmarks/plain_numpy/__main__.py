"""Plain NumPy programs as kernels, beside NumPy, Numba and jax.jit.

`python -m benchmarks.plain_numpy [NAME ...] [--seconds S] [--json FILE] [--markdown]`

Each program is that of `tests.plain_numpy` with what makes it a kernel.  Each call gets new copies
of its arguments, which are NumPy arrays; copying them is not counted, writing into them is.  Numba
compiles the same text with `njit`, and jax.jit traces it, with `jax.numpy` for NumPy and Python's
integers static; where it cannot, a program may be written by hand for it.  Results are compared
before anything is timed.  Two run in turn, and medians count.  All have one processor, and its time
is measured: what else the machine does counts little.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.measure import Ratio, alternating
from benchmarks.plain_numpy.programs import MEASURED, SIZES, lines_of, measured_at
from benchmarks.plain_numpy.report import RIVALS, Measured, markdown, plain
from benchmarks.plain_numpy.rivals import Refused, is_installed, jax_of, numba_of, values
from pscdsl._src.checker.check import check_source
from pscdsl._src.kernels.kernel import load_kernel
from pscdsl.typing.diagnostics import Severity
from tests.plain_numpy.acceptance import changed, source
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
            start = time.process_time()
            function(*given)
            total += time.process_time() - start
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


def measure(
    program: Program, seconds: float, rivals: Sequence[str] = RIVALS
) -> Iterator[dict[str, Any]]:
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

        if "NumPy" in rivals:
            yield beside("NumPy", lambda: (program.function, False))
        if "Numba" in rivals and is_installed("numba"):
            yield beside("Numba", lambda: (numba_of(program), False))
        if "jax.jit" in rivals and is_installed("jax"):
            yield beside("jax.jit", lambda: jax_of(program, arguments))


def apart(
    program: Program,
    seconds: float,
    limit: float,
    rivals: Sequence[str] = RIVALS,
    before: Measured | None = None,
) -> Measured:
    """A program measured in a process of its own, which ends when the time is over.

    What was measured of it before beside others is in the result, too.
    """
    about = Measured(program.name, SIZES[program.name], lines_of(program), changed(source(program)))
    if before is not None:
        about.ratios, about.refusals = before.ratios, before.refusals
        about.by_hand = before.by_hand
    checked = check_source(source(program), f"{program.name}.py")
    errors = [each for each in checked.diagnostics if each.severity is Severity.ERROR]
    if errors:
        about.refusal = f"{errors[0].code} {errors[0].message()}"
        return about
    command = [sys.executable, "-m", "benchmarks.plain_numpy", "--apart", program.name]
    command += ["--seconds", str(seconds), "--rivals", ",".join(rivals)]
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
        prog="python -m benchmarks.plain_numpy",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", help="of programs; all, if none is given")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each pair of two")
    parser.add_argument("--limit", type=float, default=120.0, help="of seconds for each program")
    parser.add_argument("--markdown", action="store_true", help="as the table of the documents")
    parser.add_argument("--rivals", default=",".join(RIVALS), help="beside which; all, if not said")
    parser.add_argument("--json", type=Path, help="keeps what was measured of all programs")
    parser.add_argument("--apart", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(given)
    if unknown := set(options.names) - set(MEASURED):
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    names, rivals = options.names or list(MEASURED), options.rivals.split(",")
    if options.apart:
        for row in measure(MEASURED[names[0]], options.seconds, rivals):
            print(json.dumps(row), flush=True)
        return 0
    if hasattr(os, "sched_setaffinity"):  # which other processes inherit
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    found = read(options.json) if options.json and options.json.exists() else {}
    for name in names:
        found[name] = apart(MEASURED[name], options.seconds, options.limit, rivals, found.get(name))
        print(plain(found[name]), file=sys.stderr, flush=True)
        if options.json:
            data = {each.name: asdict(each) for each in found.values()}
            options.json.write_text(json.dumps(data, indent=1) + "\n")
    rows = [found[name] for name in MEASURED if name in found]
    print(markdown(rows) if options.markdown else "\n".join(map(plain, rows)))
    return int(any(each.failed for each in rows))


def read(path: Path) -> dict[str, Measured]:
    """What was measured before."""
    found: dict[str, Measured] = {}
    for name, row in json.loads(path.read_text()).items():
        row["ratios"] = {rival: Ratio(**ratio) for rival, ratio in row["ratios"].items()}
        found[name] = Measured(**row)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
