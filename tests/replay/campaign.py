"""Many calls, compiled in batches and compared."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import contextlib
import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pscdsl._src.calls.errors import CheckError
from tests.replay.calls import Call, Recording
from tests.replay.documented import documented
from tests.replay.judging import Difference, NotCompared, differences
from tests.replay.kernels import HEAD, NotWritten, Written, loaded, written

BATCH: Final = 40
CHUNK: Final = 400
"""How many calls a process replays."""
PATIENCE: Final = 300
"""The most seconds that a process may take for a batch."""
MODULES: Final = {
    **{name: f"`{name}`" for name in ("numpy", "numpy.linalg", "numpy.fft")},
    **{name: f"`{name}`" for name in ("scipy.special", "scipy.linalg", "scipy.fft")},
    **{"ndarray": "methods of arrays", "operator": "operators", "builtins": "Python's functions"},
}
VERDICTS: Final = ("equal", "documented", "different", "refused", "not compared", "not written")


@dataclass
class Outcome:
    """What became of a call."""

    name: str
    verdict: str
    """`equal`, `refused`, `documented`, `different`, `not compared`, `not written`."""
    detail: str = ""
    source: str = ""


@dataclass
class Figures:
    """What became of many calls."""

    verdicts: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    """For each function."""
    details: Counter[str] = field(default_factory=Counter[str])
    problems: list[Outcome] = field(default_factory=list[Outcome])

    def add(self, outcome: Outcome) -> None:
        """Count a call."""
        self.verdicts.setdefault(outcome.name, Counter())[outcome.verdict] += 1
        if outcome.verdict == "different":
            self.problems.append(outcome)
        elif outcome.verdict != "equal":
            self.details[f"{outcome.verdict}: {outcome.detail}"] += 1

    def count(self, verdict: str) -> int:
        """Return the number of calls with a verdict."""
        return sum(of[verdict] for of in self.verdicts.values())

    def report(self, recording: Recording) -> str:
        """Return the differences, and tables of the others."""
        lines = [f"# {each.name}: {each.detail}\n{each.source}" for each in self.problems]
        lines += [f"{'':38}" + "".join(f"{verdict:>14}" for verdict in VERDICTS)]
        for name, of in [*sorted(self.verdicts.items()), ("all", self.all)]:
            lines.append(f"{name:38}" + "".join(f"{of[verdict]:>14,}" for verdict in VERDICTS))
        lines += ["", self.table()]
        lines += ["", *(f"{count:>8,}  {what}" for what, count in self.details.most_common())]
        lines += ["", "Calls that are not recorded:"]
        lines += [f"{count:>8,}  {what}" for what, count in recording.left_out.most_common()]
        return "\n".join(lines)

    def table(self) -> str:
        """Return the counts of each module as a table of Markdown."""
        modules: dict[str, Counter[str]] = {}
        for name, of in self.verdicts.items():
            module = name.rpartition(".")[0]
            known = MODULES.get(module, "methods of ufuncs")
            modules.setdefault(known, Counter()).update(of)
        rows = [*sorted(modules.items()), ("all", self.all)]
        lines = [f"| | calls | {' | '.join(VERDICTS)} |", "|---" * (len(VERDICTS) + 2) + "|"]
        for module, of in rows:
            counts = [of.total(), *(of[verdict] for verdict in VERDICTS)]
            lines.append(f"| {module} | {' | '.join(f'{count:,}' for count in counts)} |")
        return "\n".join(lines)

    @property
    def all(self) -> Counter[str]:
        """The counts of all functions."""
        return sum(self.verdicts.values(), Counter[str]())


def replayed(calls: Sequence[Call]) -> Iterator[Outcome]:
    """Yield what becomes of calls, compiled together.

    A call that is refused is tried with constants where it has arrays of integers.
    """
    refused = list[tuple[Call, Outcome]]()
    yield from _replayed(calls, False, refused)
    again = list[tuple[Call, Outcome]]()
    yield from _replayed([call for call, _ in refused], True, again)
    first = {id(call): outcome for call, outcome in refused}
    for call, _ in again:
        yield first[id(call)]


def _replayed(
    calls: Sequence[Call], constants: bool, refused: list[tuple[Call, Outcome]]
) -> Iterator[Outcome]:
    programs: list[Written] = []
    for call in calls:
        try:
            programs.append(written(call, constants))
        except NotWritten as reason:
            yield Outcome(call.name, "not written", str(reason))
    kernels = "\n\n".join(each.kernel(f"k{place}") for place, each in enumerate(programs))
    module = loaded(f"{HEAD}\n\n{kernels}")
    accepted: list[tuple[int, Written]] = []
    for place, each in enumerate(programs):
        try:
            getattr(module, f"k{place}").ir()
        except CheckError as error:
            codes = [finding.code for finding in error.diagnostics]
            if {*codes} & {"PSC902", "PSC999"}:
                yield _problem(each, Difference("crash", str(error)))
            else:
                refused.append((each.call, Outcome(each.call.name, "refused", codes[0])))
        except Exception:
            yield _problem(each, Difference("crash", traceback.format_exc()))
        else:
            accepted.append((place, each))
    if not accepted:
        return
    try:
        results = _together(kernels, accepted)
    except Exception:
        results = [_alone(module, place, each) for place, each in accepted]
    for (_, each), result in zip(accepted, results, strict=True):
        yield judged(each, result)


def _together(kernels: str, accepted: Sequence[tuple[int, Written]]) -> Sequence[Any]:
    parameters: list[str] = []
    operands: list[Any] = []
    calls: list[str] = []
    for place, each in accepted:
        names = [f"k{place}a{number}" for number in range(len(each.operands))]
        parameters += [f"{name}: {of}" for name, of in zip(names, each.parameters, strict=True)]
        operands += each.operands
        calls.append(f"        k{place}({', '.join(names)}),\n")
    main = f"@psc.kernel\ndef main({', '.join(parameters)}):\n    return (\n{''.join(calls)}    )\n"
    module = loaded(f"{HEAD}\n\n{kernels}\n\n{main}")
    results: Sequence[Any] = module.main(*operands)
    return results


def _alone(module: Any, place: int, each: Written) -> Any:
    try:
        return getattr(module, f"k{place}")(*each.operands)
    except Exception as error:
        return error


def judged(each: Written, result: Any) -> Outcome:
    """Return the verdict on a result."""
    name = each.call.name
    if isinstance(result, CheckError):
        return Outcome(name, "refused", result.diagnostics[0].code)
    if isinstance(result, Exception):
        return _problem(each, Difference("crash", f"{type(result).__name__}: {result}"))
    try:
        seen = differences(each.call, result)
    except NotCompared as reason:
        return Outcome(name, "not compared", str(reason))
    except Exception:
        return _problem(each, Difference("crash", traceback.format_exc()))
    rows = [(one, documented(each.call, one)) for one in seen]
    for one, row in rows:
        if row is None:
            return _problem(each, one)
    if rows:
        return Outcome(name, "documented", str(rows[0][1]))
    return Outcome(name, "equal")


def _problem(each: Written, difference: Difference) -> Outcome:
    source = each.reproduced()
    return Outcome(
        each.call.name, "different", f"{difference.kind}: {difference.detail[:2000]}", source
    )


@contextlib.contextmanager
def quietly() -> Generator[None]:
    """Code that XLA generates quickly, and no warnings."""
    from tests.differential.worker import compiled_as

    with compiled_as("quick"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def campaign(calls: Sequence[Call], jobs: int) -> Iterator[Figures]:
    """Replay calls in processes of their own; yield the figures so far now and then."""
    figures = Figures()
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(jobs) as pool:
        file = Path(place) / "calls.pickle"
        file.write_bytes(pickle.dumps(list(calls)))
        chunks = [(first, min(CHUNK, len(calls) - first)) for first in range(0, len(calls), CHUNK)]
        for outcomes in pool.map(lambda chunk: _chunk(file, calls, *chunk), chunks):
            for outcome in outcomes:
                figures.add(outcome)
            yield figures


def _chunk(file: Path, calls: Sequence[Call], first: int, count: int) -> list[Outcome]:
    """Replay some calls; those of a batch that ends a process, one by one."""
    outcomes: list[Outcome] = []
    end = first + count
    while first < end:
        begun, code = _worker(file, first, end - first, BATCH, outcomes)
        if code == 0:
            break
        first = min(begun + BATCH, end)
        for place in range(begun, first):
            _, alone = _worker(file, place, 1, 1, outcomes)
            if alone:
                try:
                    source = written(calls[place]).reproduced()
                except NotWritten:
                    source = ""
                text = f"crash: the process ends with {alone}"
                outcomes.append(Outcome(calls[place].name, "different", text, source))
    return outcomes


def _worker(
    file: Path, first: int, count: int, batch: int, outcomes: list[Outcome]
) -> tuple[int, int]:
    """Return the first call of the batch that was begun last, and how the process ended."""
    command = [sys.executable, "-m", "tests.replay.worker", str(file), str(first), str(count)]
    command += ["--batch", str(batch)]
    environment = {**os.environ, "PSCDSL_CACHE": "off"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    begun, pending = first, list[Outcome]()
    with process:
        last = [time.monotonic()]
        watch = threading.Thread(target=_end_if_it_hangs, args=(process, last), daemon=True)
        watch.start()
        assert process.stdout is not None
        for line in process.stdout:
            last[0] = time.monotonic()
            said = json.loads(line)
            if "begun" in said:
                begun = said["begun"]
                outcomes += pending
                pending = []
            else:
                pending.append(Outcome(**said))
    code = process.wait()
    if code == 0:
        outcomes += pending
    return begun, code


def _end_if_it_hangs(process: subprocess.Popen[str], last: list[float]) -> None:
    while process.poll() is None:
        time.sleep(1)
        if time.monotonic() - last[0] > PATIENCE:
            process.kill()
