"""Many kernels, each of some independent programs: `python -m tests.campaign differential`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from pscdsl._src.xla.device import Device
from tests.campaign.campaign import Campaign, deep_and_quiet
from tests.campaign.outcomes import Figures, Outcome
from tests.differential import coverage
from tests.differential.programs import Mode, generate
from tests.differential.rules import RULES, without
from tests.differential.trials import run

QUICK: Final = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}
"""XLA rewrites and fuses programs as ever, and LLVM does not optimise the code."""


ROWS: Final[Mapping[Mode, str]] = {
    "users": "compiled as for users",
    "quick": "with code that is not optimised",
}


def attempt(seed: int, given: Namespace) -> Iterator[Outcome]:
    """Try the kernel of a seed, or one of its programs."""
    kernel = generate(seed)
    if given.part is not None:
        kernel = replace(kernel, programs=(kernel.programs[given.part],))
    with compiled_as(kernel.mode), without(given.without):
        found = run(kernel, given.decorator)
    row = ROWS[kernel.mode]
    wrong = {
        "different": found.differences,
        "refused": found.refused,
        "NumPy outside of the bounds": found.model,
    }
    for kind, problems in wrong.items():
        for problem in problems:
            why, _, text = problem.partition("\n")
            yield Outcome(kind, row, problem=f"{kind}: {why}", text=text)
    right = Outcome("in bounds", row)
    yield from [right] * (found.programs - len(found.differences))
    counts = {"values": found.values, "unknown": found.unknown, **found.covered}
    yield Outcome("kernels", row, counts=counts)


def texts(seed: int, given: Namespace) -> Sequence[str]:
    """Return each program of a kernel as a module."""
    kernel = generate(seed)
    return [kernel.text([program], given.decorator) for program in kernel.programs]


def report(figures: Figures, _: Namespace) -> str:
    """Return how much was compared, and what the programs were made of."""
    values, unknown = (figures.counts[key] for key in ("values", "unknown"))
    share = 100 * unknown / max(values, 1)
    covered = {key: count for key, count in figures.counts.items() if " " in key}
    return (
        f"{values - unknown:,} values compared; nothing is known of {unknown:,} ({share:.2f} %)\n\n"
        f"{coverage.table(covered)}\n"
    )


def arguments(parser: ArgumentParser) -> None:
    """Add how programs are compiled."""
    parser.add_argument("--decorator", default="kernel", help="such as kernel(fast_math=True)")
    parser.add_argument("--without", choices=[*RULES], help="a rule, to see what it prevents")


@contextmanager
def compiled_as(mode: Mode) -> Generator[None]:
    """How kernels are compiled meanwhile.

    XLA takes 10 to 20 ms for each loop, however small, and a result has one of its own.  So only
    some kernels are compiled for "users" as they are; "quick" has code that is not optimised.
    """
    from pscdsl._src.xla.runtime.executable import compile_options, known

    more: dict[str, Any] = {"users": {}, "quick": known(QUICK)}[mode]

    def options(loop_bytes: int | None, chosen: Mapping[str, Any], device: Device) -> Any:
        return compile_options(loop_bytes, {**chosen, **more}, device)

    with patch("pscdsl._src.xla.compilation.compile_options", options):
        yield


CAMPAIGN = Campaign(
    about="Chains of operations beside NumPy, in bounds of rounding.",
    attempt=attempt,
    texts=texts,
    default=50_000,
    programs=14,
    chunk=50,
    patience=600,
    arguments=arguments,
    seed=lambda given, place: given.seed * 10**7 + place,
    around=deep_and_quiet,
    report=report,
)
