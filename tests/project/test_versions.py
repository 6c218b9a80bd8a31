"""Which versions are taken: what pyproject.toml asks for, README says, and the package warns of."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import pytest

import pscdsl as psc
from pscdsl._src.xla.runtime import boot
from pscdsl._src.xla.runtime.boot import NEWEST, OLDEST, warn_if_untried

pytestmark = pytest.mark.jaxlib

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def bounds(name: str) -> str:
    """What pyproject.toml says of a package behind its name."""
    given: list[str] = [each.partition(";")[0].strip() for each in PROJECT["dependencies"]]
    found = [each.removeprefix(name) for each in given if each.startswith(name)]
    assert len(found) == 1
    return found[0]


def rows() -> dict[str, tuple[str, str]]:
    """The table in README: the oldest and the newest version of each."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.partition("| | oldest | newest |\n")[2].partition("\n\n")[0]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[1:]]
    return {name: (oldest, newest) for name, oldest, newest in cells}


def test_the_readme_says_what_is_installed() -> None:
    said = rows()
    assert list(said) == ["Python", "jaxlib", "NumPy"]
    assert bounds("jaxlib") == ">={},<={}".format(*said["jaxlib"])
    assert bounds("numpy") == ">={}".format(said["NumPy"][0])
    assert PROJECT["requires-python"] == ">={}".format(said["Python"][0])


def test_every_python_between_is_classified() -> None:
    said = "Programming Language :: Python :: 3."
    found = [int(each.removeprefix(said)) for each in PROJECT["classifiers"] if said in each]
    oldest, newest = (int(each.removeprefix("3.")) for each in rows()["Python"])
    assert found == list(range(oldest, newest + 1))


def test_the_package_knows_the_same_bounds() -> None:
    assert rows()["jaxlib"] == (OLDEST, NEWEST)


def test_benchmarks_take_the_jax_that_goes_with_jaxlib() -> None:
    jax = [each for each in PROJECT["optional-dependencies"]["bench"] if re.match(r"jax\b", each)]
    assert jax == [f"jax>={OLDEST},<={NEWEST}"]


@pytest.mark.parametrize("version", [OLDEST, NEWEST, "0.10.2.1", "0.11", "0.11.2", "0.12.0"])
def test_what_is_tried_gives_no_warning(version: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_untried(version)


@pytest.mark.parametrize(
    ("version", "age"),
    [
        ("0.9.2", "older"),
        ("0.10.1", "older"),
        ("0.12.0.2", "newer"),
        ("0.12.1.dev20270101", "newer"),
        ("1.0.0rc1", "newer"),
    ],
)
def test_others_give_one_that_says_what_to_do(version: str, age: str) -> None:
    with pytest.warns(psc.UntriedVersionWarning) as given:
        warn_if_untried(version)
    said = str(given[0].message)
    assert said.startswith(f"jaxlib {version} is {age} than the versions that pscdsl is tried with")
    assert f"pip install 'jaxlib{bounds('jaxlib')}'" in said
    assert Path(given[0].filename) != Path(boot.__file__)


PROGRAM = """
import jaxlib.version
jaxlib.version.__version__ = "99.0.0"
import numpy as np
import pscdsl as psc
from pscdsl import f32

@psc.kernel
def scale(x: f32["n"]) -> f32["n"]:
    return x * 2

@psc.kernel
def shift(x: f32["n"]) -> f32["n"]:
    return x + 2

for n in (3, 4):
    print(scale(np.ones(n, np.float32)), shift(np.ones(n, np.float32)))  # here
"""


def run(program: Path) -> subprocess.CompletedProcess[str]:
    given = [sys.executable, str(program)]
    return subprocess.run(given, capture_output=True, text=True, check=False)


def filtered(action: str) -> str:
    """The program with a filter of its own; `-W` names no class that is installed."""
    text = "import warnings\nimport pscdsl\n"
    return f"{text}warnings.simplefilter({action!r}, pscdsl.UntriedVersionWarning)\n{PROGRAM}"


def test_a_newer_jaxlib_warns_once_where_it_is_used_and_works(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    done = run(program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0] == "[2. 2. 2.] [3. 3. 3.]"
    assert done.stderr.count("UntriedVersionWarning: jaxlib 99.0.0 is newer") == 1
    here = next(i for i, line in enumerate(PROGRAM.split("\n"), 1) if line.endswith("# here"))
    assert done.stderr.startswith(f"{program}:{here}: UntriedVersionWarning: ")
    program.write_text(filtered("ignore"), encoding="utf-8")
    ignored = run(program)
    assert (ignored.returncode, ignored.stderr) == (0, "")
    program.write_text(filtered("error"), encoding="utf-8")
    refused = run(program)
    assert refused.stderr.splitlines()[-1].startswith("pscdsl.UntriedVersionWarning: ")
