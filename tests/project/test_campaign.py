"""The long runs: what raises, crashes or hangs is a problem of its seed; the others are tried."""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import tests.campaign.__main__ as command
from tests.campaign.campaign import Campaign
from tests.campaign.outcomes import Outcome, Problem
from tests.campaign.processes import Workers, work

PARTS = 3
WRONG, RAISES, CRASHES, HANGS, TOGETHER = 102, 103, 104, 105, 106


def attempt(seed: int, given: Namespace) -> Iterator[Outcome]:
    """Do what the seed says; the second part crashes or hangs."""
    print("what a program prints is no outcome")
    for part in range(PARTS) if given.part is None else [given.part]:
        if seed == CRASHES and part == 1:
            os._exit(3)
        if seed == HANGS and part == 1:
            time.sleep(60)
        if seed == TOGETHER and given.part is None:
            os._exit(4)
        if seed == RAISES:
            raise ValueError("no program")
        if seed == WRONG and part == 2:
            yield Outcome("different", problem="it differs", text=f"text of {part}")
        else:
            yield Outcome("equal")


TOY = Campaign(
    about="Toys.",
    attempt=attempt,
    texts=lambda _, __: [f"text of {part}" for part in range(PARTS)],
    default=20,
    programs=PARTS,
    chunk=4,
    patience=2,
)
COMMAND = (sys.executable, "-m", "tests.project.test_campaign")


def problems(*arguments: str, folder: Path | None = None) -> tuple[list[Problem], command.Run]:
    """What is wrong with some toys."""
    given = TOY.parser("").parse_args([*arguments, *(["--folder", str(folder)] if folder else [])])
    run = command.Run(Workers([*COMMAND, *arguments], TOY, given))
    run.run()
    return sorted(run.figures.problems, key=lambda each: each.seed), run


def test_crashes_and_hangs_are_problems_of_their_seeds(tmp_path: Path) -> None:
    found, run = problems("--seed", "100", "--jobs", "2", folder=tmp_path)
    assert [each.seed for each in found] == [WRONG, RAISES, CRASHES, HANGS, TOGETHER]
    wrong, raises, crashes, hangs, together = (each.outcome for each in found)
    assert (wrong.problem, wrong.text) == ("it differs", "text of 2")
    assert raises.problem.startswith("ValueError: no program\nTraceback")
    assert (crashes.problem, crashes.text) == ("exit code 3", "text of 1")
    assert (hangs.problem, hangs.text) == ("exit code -9", "text of 1")
    assert (together.problem, together.text) == ("exit code 4", "none of its programs alone")
    assert run.seeds == 7
    assert run.figures.count("equal") == 2 * PARTS + 2 + 2 + 2 + PARTS
    assert "7 seeds from 100" in (tmp_path / "report.txt").read_text("utf-8")
    assert len([*tmp_path.glob("*.py")]) == 5


def test_a_run_stops_at_the_first_problem() -> None:
    found, run = problems("--seed", str(WRONG), "--jobs", "1", "--first")
    assert found[0].outcome.problem == "it differs"
    assert run.seeds < 7


def test_a_run_stops_when_its_time_is_over() -> None:
    _, run = problems("--seed", "200", "--jobs", "1", "--minutes", "0.01")
    assert run.seeds in range(1, 100)


def test_a_worker_that_does_not_start_ends_the_run() -> None:
    given = TOY.parser("").parse_args([])
    with pytest.raises(RuntimeError, match="a worker does not start"):
        command.Run(Workers([sys.executable, "-c", "import nothing"], TOY, given)).run()


@pytest.mark.parametrize("name", command.CAMPAIGNS)
def test_each_campaign_has_a_command(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    module: ModuleType = __import__(command.CAMPAIGNS[name], fromlist=["CAMPAIGN"])
    campaign: Campaign = module.CAMPAIGN
    with pytest.raises(SystemExit):
        campaign.parser(name).parse_args(["--help"])
    assert campaign.about in capsys.readouterr().out.replace("\n", " ")


if __name__ == "__main__":
    work(TOY, TOY.parser("").parse_args())
