"""Print the page of comparisons with jax.

`python -m benchmarks.comparison [--python PYTHON] [--write] [NAME …]`

PYTHON has jax, jaxtyping and typeguard 2, without `--python` it is this one; the type checkers are
this one's.  With `--write` the page is written, with the times that `benchmarks.comparison.times`
kept.  With names, only these programs are asked about: what is printed is about them, and a page
that is written has what the one before it says of the others.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.comparison.checkers import CHECKERS, new_codes
from benchmarks.comparison.core import ROOT
from benchmarks.comparison.program import Program, edited
from benchmarks.comparison.programs import PROGRAMS
from benchmarks.comparison.report import Line, page, read, spelled
from benchmarks.comparison.times import PAGE, kept, section

JAX_VERSIONS = """
import importlib.metadata, json
print(json.dumps({n: importlib.metadata.version(n) for n in ("jax", "jaxtyping", "typeguard")}))
"""


def main() -> None:
    """Ask all, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparison", description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="a Python that has jax")
    parser.add_argument("--write", action="store_true", help="write the page in docs/")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these programs")
    given = parser.parse_args()
    if unknown := set(given.names) - {program.name for program in PROGRAMS}:
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    programs = [each for each in PROGRAMS if not given.names or each.name in given.names]
    asked = subprocess.run(
        [given.python, "-c", JAX_VERSIONS], capture_output=True, text=True, check=True
    )
    versions: dict[str, str] = {
        **json.loads(asked.stdout),
        **{name: version(name) for name in CHECKERS},
    }
    before = PAGE.read_text(encoding="utf-8")
    if given.write and given.names and f"\n{spelled(versions)}.\n" not in before:
        parser.error("the page was made with other versions: write it of all programs")
    with tempfile.TemporaryDirectory() as folder:
        found = lines(Path(folder), given.python, programs)
    if given.write:
        others = [each for each in PROGRAMS if each not in programs]
        found = [*found, *read(before, others)]
        found.sort(key=lambda line: PROGRAMS.index(line.program))
    text = page(found, versions)
    if given.write:
        text += f"\n{section(kept())}"
        PAGE.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


def lines(folder: Path, python: str, programs: Sequence[Program]) -> list[Line]:
    """What all say of all mistakes."""
    for program in programs:
        texts = {"base": program.theirs}
        texts |= {str(i): edited(program.theirs, m.theirs) for i, m in enumerate(program.mistakes)}
        for name, text in texts.items():
            (folder / f"{program.name}_{name}.py").write_text(text, encoding="utf-8")
    said = {name: check(folder, python) for name, check in CHECKERS.items()}
    found: list[Line] = []
    for program in programs:
        outcomes = run(program.name, folder, python)
        before = {by: each.get(f"{program.name}_base", []) for by, each in said.items()}
        for i, mistake in enumerate(program.mistakes):
            file = f"{program.name}_{i}"
            codes = {by: new_codes(each.get(file, []), before[by]) for by, each in said.items()}
            results = {when: each[0] for when, each in outcomes["mistakes"][i].items()}
            found.append(Line(program, mistake, codes, results))
    return found


def run(name: str, folder: Path, python: str) -> Mapping[str, Any]:
    """What happens when a program is run, in a process of its own."""
    command = [python, "-m", "benchmarks.comparison.outcomes", name, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: Mapping[str, Any] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    main()
