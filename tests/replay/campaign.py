"""Many calls, compiled in batches and compared: `python -m tests.campaign replay`."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import contextlib
import tempfile
import traceback
import warnings
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from pscdsl._src.calls.errors import CheckError
from tests.campaign.campaign import Campaign
from tests.campaign.outcomes import Figures, Outcome
from tests.replay.calls import Call, Recording, sampled
from tests.replay.documented import documented
from tests.replay.judging import Difference, NotCompared, differences
from tests.replay.kernels import HEAD, NotWritten, Written, loaded, written
from tests.replay.recording import recorded

BATCH: Final = 40
MODULES: Final = {
    **{name: f"`{name}`" for name in ("numpy", "numpy.linalg", "numpy.fft")},
    **{name: f"`{name}`" for name in ("scipy.special", "scipy.linalg", "scipy.fft")},
    **{"ndarray": "methods of arrays", "operator": "operators", "builtins": "Python's functions"},
}
VERDICTS: Final = ("equal", "documented", "different", "refused", "not compared", "not written")


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
            yield Outcome("not written", call.name, str(reason))
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
                refused.append((each.call, Outcome("refused", each.call.name, codes[0])))
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
        return Outcome("refused", name, result.diagnostics[0].code)
    if isinstance(result, Exception):
        return _problem(each, Difference("crash", f"{type(result).__name__}: {result}"))
    try:
        seen = differences(each.call, result)
    except NotCompared as reason:
        return Outcome("not compared", name, str(reason))
    except Exception:
        return _problem(each, Difference("crash", traceback.format_exc()))
    rows = [(one, documented(each.call, one)) for one in seen]
    for one, row in rows:
        if row is None:
            return _problem(each, one)
    if rows:
        return Outcome("documented", name, str(rows[0][1]))
    return Outcome("equal", name)


def _problem(each: Written, difference: Difference) -> Outcome:
    source = each.reproduced()
    why = f"{difference.kind}: {difference.detail[:2000]}"
    return Outcome("different", each.call.name, problem=why, text=source)


@contextlib.contextmanager
def quietly() -> Generator[None]:
    """Code that XLA generates quickly, and no warnings."""
    from tests.differential.campaign import compiled_as

    with compiled_as("quick"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def attempt(batch: int, given: Namespace) -> Iterator[Outcome]:
    """Replay the calls of a batch, or one of them."""
    calls = chosen(given)[batch * BATCH : (batch + 1) * BATCH]
    yield from replayed(calls if given.part is None else [calls[given.part]])


def texts(batch: int, given: Namespace) -> Sequence[str]:
    """Return the calls of a batch as they are reproduced."""
    return [_text(call) for call in chosen(given)[batch * BATCH : (batch + 1) * BATCH]]


def _text(call: Call) -> str:
    try:
        return written(call).reproduced()
    except NotWritten:
        return call.name


def chosen(given: Namespace) -> Sequence[Call]:
    """Return the calls that a command names."""
    count = given.programs or CAMPAIGN.default
    return _chosen(given.recorded, given.jobs, given.function, count, given.seed)


@cache
def _chosen(folder: Path, jobs: int, function: str | None, count: int, seed: int) -> Sequence[Call]:
    calls = recording(folder, jobs).calls
    if function is not None:
        calls = [call for call in calls if call.name == function]
    return sampled(calls, count, seed)


@cache
def recording(folder: Path, jobs: int) -> Recording:
    """Return what NumPy's and SciPy's tests call; they are run if the folder does not have it."""
    return recorded(folder, jobs=jobs)


def report(figures: Figures, given: Namespace) -> str:
    """Return the table of modules, and what is not recorded."""
    left_out = recording(given.recorded, given.jobs).left_out
    lines = ["", table(figures), "", "Calls that are not recorded:"]
    lines += [f"{count:>8,}  {what}" for what, count in left_out.most_common()]
    return "\n".join(lines)


def table(figures: Figures) -> str:
    """Return the counts of each module as a table of Markdown."""
    modules: dict[str, Counter[str]] = {}
    for (name, verdict), count in figures.table.items():
        module = name.rpartition(".")[0]
        for row in (MODULES.get(module, "methods of ufuncs"), "all"):
            modules.setdefault(row, Counter())[verdict] += count
    lines = [f"| | calls | {' | '.join(VERDICTS)} |", "|---" * (len(VERDICTS) + 2) + "|"]
    for module, of in sorted(modules.items(), key=lambda pair: (pair[0] == "all", pair[0])):
        counts = [of.total(), *(of[verdict] for verdict in VERDICTS)]
        lines.append(f"| {module} | {' | '.join(f'{count:,}' for count in counts)} |")
    return "\n".join(lines)


def arguments(parser: ArgumentParser) -> None:
    """Add which calls are replayed."""
    versions = f"numpy-{version('numpy')}-scipy-{version('scipy')}"
    folder = Path(tempfile.gettempdir()) / f"pscdsl-replay-{versions}"
    parser.add_argument("--function", help="replay calls of this function alone")
    parser.add_argument("--recorded", type=Path, default=folder, help="folder of recorded calls")


def prepare(given: Namespace) -> None:
    """Record the calls."""
    recording(given.recorded, given.jobs)


CAMPAIGN = Campaign(
    about="The calls of NumPy's and SciPy's own tests, as kernels.",
    attempt=attempt,
    texts=texts,
    default=20_000,
    programs=BATCH,
    chunk=10,
    arguments=arguments,
    seed=lambda _, place: place,
    around=quietly,
    prepare=prepare,
    report=report,
)
