"""The processes of a campaign: one may crash or hang, which is a problem of the seed it was at."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Event, Timer
from typing import Any, Final

from tests.campaign.campaign import Campaign
from tests.campaign.outcomes import Outcome

ROOT: Final = Path(__file__).parents[2]
START: Final = 120.0
"""Seconds that a process may take to start."""
MOST: Final = 2000
"""Characters that are shown of what a process has written before it ended."""


def work(campaign: Campaign, given: Namespace) -> None:
    """Try the seeds of a worker, and write a line of JSON for each outcome."""
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # programs may print

    def say(said: dict[str, Any]) -> None:
        print(json.dumps(said), file=lines, flush=True)

    first, count = given.worker
    with campaign.around():
        for place in range(first, first + count):
            say({"begun": place})
            for outcome in campaign.outcomes(place, given):
                say(asdict(outcome))


@dataclass(frozen=True)
class Ended:
    """What a worker has said, and how it ended."""

    outcomes: dict[int, list[Outcome]]
    """Of each place that was begun."""
    code: int
    errors: str

    @property
    def begun(self) -> int:
        """The place that was begun last."""
        return max(self.outcomes)


@dataclass(frozen=True)
class Workers:
    """Starts workers of a campaign."""

    command: Sequence[str]
    """The command of the campaign, which each worker has, too."""
    campaign: Campaign
    given: Namespace
    stop: Event = field(default_factory=Event)
    """Ends the workers if it is set."""

    def chunk(self, first: int, count: int) -> Iterator[tuple[int, list[Outcome]]]:
        """Yield places and what became of them; those that end a process are tried in parts."""
        end = first + count
        while first < end and not self.stop.is_set():
            ended = self.ended(first, end - first)
            if self.stop.is_set():
                return
            last = ended.begun
            for place, outcomes in ended.outcomes.items():
                crash = ended.code != 0 and place == last
                yield place, self.parts(place, ended) if crash else outcomes
            first = last + 1

    def parts(self, place: int, whole: Ended) -> list[Outcome]:
        """Return what becomes of the programs at a place, each in a process of its own."""
        texts = self.campaign.texts(self.campaign.seed(self.given, place), self.given)
        outcomes: list[Outcome] = []
        alone = 0
        for part, text in enumerate(texts):
            ended = self.ended(place, 1, part) if len(texts) > 1 else whole
            if ended.code:
                alone += 1
                outcomes.append(_crash(ended, text))
            else:
                outcomes += ended.outcomes[place]
        if not alone:
            outcomes.append(_crash(whole, "none of its programs alone"))
        return outcomes

    def ended(self, first: int, count: int, part: int | None = None) -> Ended:
        """Return what a worker has said when it has ended."""
        command = [*self.command, "--worker", str(first), str(count)]
        if part is not None:
            command += ["--part", str(part)]
        outcomes: dict[int, list[Outcome]] = {}
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors,
            subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, "PSCDSL_CACHE": "off"},
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            ) as process,
        ):
            assert process.stdout is not None
            watch = self._watch(process, START)
            for line in process.stdout:
                if self.stop.is_set():
                    process.kill()
                found = json.loads(line)
                if "begun" in found:
                    watch.cancel()
                    watch = self._watch(process)
                    outcomes[found["begun"]] = []
                else:
                    outcomes[max(outcomes)].append(Outcome(**found))
            code = process.wait()
            watch.cancel()
            errors.seek(0)
            said = errors.read()[-MOST:]
            if code and not outcomes:
                raise RuntimeError(f"a worker does not start: {said}")
            return Ended(outcomes, code, said)

    def _watch(self, process: subprocess.Popen[str], more: float = 0.0) -> Timer:
        watch = Timer(self.campaign.patience + more, process.kill)
        watch.daemon = True
        watch.start()
        return watch


def _crash(ended: Ended, text: str) -> Outcome:
    return Outcome("crash", problem=f"exit code {ended.code}\n{ended.errors}".rstrip(), text=text)
