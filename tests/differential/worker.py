"""Kernels of some seeds, each reported as a line of JSON: run as a process, since one may crash.

`python -m tests.differential.worker FIRST COUNT [--program INDEX] [--decorator "kernel(…)"]`
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from tests.differential.programs import generate
from tests.differential.trials import run

TOGETHER: Final = 4
"""Of so many kernels, one is compiled with the options that users get; see `together`."""


def main() -> None:
    """Report the outcome of each seed, and before it that it has begun."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--program", type=int)
    parser.add_argument("--decorator", default="kernel")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for seed in range(given.first, given.first + given.count):
        print(json.dumps({"begun": seed}), flush=True)
        kernel = generate(seed)
        if given.program is not None:
            kernel = replace(kernel, programs=(kernel.programs[given.program],))
        plain = seed % TOGETHER == 0 or kernel.large
        with together(not plain):
            outcome = run(kernel, given.decorator)
        print(json.dumps({"seed": seed, "plain": plain, **asdict(outcome)}), flush=True)


class together:  # noqa: N801
    """Results of one shape are computed in one loop, as users have it for large ones.

    XLA takes 10 to 20 ms for each loop, however small, and most programs have one of their own.
    """

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted

    def __enter__(self) -> None:
        from pscdsl.xla import compile as compiling
        from pscdsl.xla.executable import compile_options
        from pscdsl.xla.siblings import OPTION

        def options(loop_bytes: int | None, chosen: Mapping[str, Any]) -> Any:
            return compile_options(loop_bytes, {**chosen, OPTION: "true"})

        compiling.compile_options = options if self.wanted else compile_options

    def __exit__(self, *_: object) -> None:
        from pscdsl.xla import compile as compiling
        from pscdsl.xla.executable import compile_options

        compiling.compile_options = compile_options


if __name__ == "__main__":
    main()
