"""Kernels of some seeds, each reported as a line of JSON: run as a process, since one may crash.

`python -m tests.differential.worker FIRST COUNT [--program INDEX] [--decorator "kernel(…)"]
[--without RULE]`
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any, Final
from unittest.mock import patch

from pscdsl._src.xla.device import Device
from tests.differential.programs import Mode, generate
from tests.differential.rules import RULES, without
from tests.differential.trials import Outcome, run

QUICK: Final = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}
"""XLA rewrites and fuses programs as ever, and LLVM does not optimise the code."""


def main() -> None:
    """Report the outcome of each seed, and before it that it has begun."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--program", type=int)
    parser.add_argument("--decorator", default="kernel")
    parser.add_argument("--without", choices=[*RULES])
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for seed in range(given.first, given.first + given.count):
        print(json.dumps({"begun": seed}), flush=True)
        try:
            kernel = generate(seed)
        except Exception as error:
            outcome = Outcome(model=[f"seed {seed} cannot be drawn: {error!r}"])
            print(json.dumps({"seed": seed, "mode": "users", **asdict(outcome)}), flush=True)
            continue
        if given.program is not None:
            kernel = replace(kernel, programs=(kernel.programs[given.program],))
        with compiled_as(kernel.mode), without(given.without):
            outcome = run(kernel, given.decorator)
        print(json.dumps({"seed": seed, "mode": kernel.mode, **asdict(outcome)}), flush=True)


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


if __name__ == "__main__":
    main()
