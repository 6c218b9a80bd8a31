"""Which versions are taken: what pyproject.toml asks for, README says, and the package warns of."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import pytest

import pscdsl as psc
from pscdsl._src.support import versions
from pscdsl._src.support.versions import TESTED, warn_if_untried

pytestmark = pytest.mark.jaxlib

ROOT = Path(__file__).parents[2]
OLDEST, NEWEST = TESTED["jaxlib"]
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


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("README.md", r'python-version: "([\d.]+)"'),
        ("docs/how-to/ci.md", r'python-version: "([\d.]+)"'),
        ("CONTRIBUTING.md", r"PYTHON=python([\d.]+)"),
        ("Makefile", r"PYTHON=python([\d.]+)"),
    ],
)
def test_examples_name_the_newest_python(file: str, pattern: str) -> None:
    named = re.findall(pattern, (ROOT / file).read_text(encoding="utf-8"))
    assert set(named) == {TESTED["Python"][1]}


def test_the_package_knows_the_same_bounds() -> None:
    assert {name: rows()[name] for name in TESTED} == TESTED
    assert f"needs Python {TESTED['Python'][0]} or later" in (ROOT / "Makefile").read_text("utf-8")
    refusal = (ROOT / "pscdsl" / "__init__.py").read_text("utf-8")
    assert f"needs Python {TESTED['Python'][0]} or later" in refusal


def test_benchmarks_take_the_jax_that_goes_with_jaxlib() -> None:
    jax = [each for each in PROJECT["optional-dependencies"]["bench"] if re.match(r"jax\b", each)]
    assert jax == [f"jax>={OLDEST},<={NEWEST}"]


@pytest.mark.parametrize(
    ("name", "version"),
    [
        *[("jaxlib", version) for version in (OLDEST, NEWEST, "0.10.2.1", "0.11", "0.12.0")],
        ("Python", "3.11.0"),
        ("Python", f"{TESTED['Python'][1]}.12+"),
    ],
)
def test_what_is_tested_gives_no_warning(name: str, version: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_untried(name, version)


@pytest.mark.parametrize(
    ("name", "version", "age"),
    [
        ("jaxlib", "0.9.2", "older"),
        ("jaxlib", "0.10.1", "older"),
        ("jaxlib", "0.12.0.2", "newer"),
        ("jaxlib", "0.12.1.dev20270101", "newer"),
        ("jaxlib", "1.0.0rc1", "newer"),
        ("Python", "3.99.0a1+", "newer"),
        ("Python", "4.0.0", "newer"),
    ],
)
def test_others_give_one_that_says_what_to_do(name: str, version: str, age: str) -> None:
    with pytest.warns(psc.UntriedVersionWarning) as given:
        warn_if_untried(name, version)
    said = str(given[0].message)
    oldest, newest = TESTED[name]
    assert said.startswith(f"pscdsl is tested with {name} {oldest} to {newest}, and {version} is")
    assert age in said
    if name == "jaxlib":
        assert f"pip install 'jaxlib{bounds('jaxlib')}'" in said
    assert Path(given[0].filename) != Path(versions.__file__)


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


def run(*given: str | Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python, with a folder where it looks for `sitecustomize`."""
    environment = dict(os.environ)
    if path is not None:
        found = [str(path), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, found))
    command = [sys.executable, *given]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


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
    assert done.stderr.count("and 99.0.0 is newer: kernels may fail to compile") == 1
    here = next(i for i, line in enumerate(PROGRAM.split("\n"), 1) if line.endswith("# here"))
    assert done.stderr.startswith(f"{program}:{here}: UntriedVersionWarning: ")
    program.write_text(filtered("ignore"), encoding="utf-8")
    ignored = run(program)
    assert (ignored.returncode, ignored.stderr) == (0, "")
    program.write_text(filtered("error"), encoding="utf-8")
    refused = run(program)
    assert refused.stderr.splitlines()[-1].startswith("pscdsl.UntriedVersionWarning: ")


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """A folder that makes Python say that it is newer than the newest that is tested."""
    folder = tmp_path / "newer"
    folder.mkdir()
    text = "import sys\nsys.version = '3.99.0a1 (main)'\n"
    (folder / "sitecustomize.py").write_text(text, encoding="utf-8")
    return folder


def test_a_newer_python_warns_once_where_the_package_is_imported(
    tmp_path: Path, newer: Path
) -> None:
    library, program = tmp_path / "library.py", tmp_path / "program.py"
    library.write_text("import os\nfrom pscdsl import f32\n", encoding="utf-8")
    text = "import importlib\nimport library\nimport pscdsl\nimportlib.reload(pscdsl)\n"
    program.write_text(f"{text}print(pscdsl.UntriedVersionWarning)\n", encoding="utf-8")
    done = run(program, path=newer)
    assert (done.returncode, done.stdout) == (0, "<class 'pscdsl.UntriedVersionWarning'>\n")
    assert done.stderr.startswith(f"{library}:2: UntriedVersionWarning: pscdsl is tested with")
    assert done.stderr.count("Warning") == 1


@pytest.mark.parametrize("name", sorted(TESTED))
def test_the_documented_filter_is_set_before_the_import(
    name: str, tmp_path: Path, newer: Path
) -> None:
    text = psc.UntriedVersionWarning.__doc__ or ""
    documented = re.search(r"warnings\.filterwarnings\(.*\)", text)
    assert documented is not None
    program = tmp_path / "program.py"
    program.write_text(f"import warnings\n{documented[0]}\n{PROGRAM}", encoding="utf-8")
    done = run(program, path=newer if name == "Python" else None)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("body", "code"), [("x * 2", 0), ("x @ x.T", 1)])
def test_a_check_says_it_once_and_ends_as_usual(
    body: str, code: int, tmp_path: Path, newer: Path
) -> None:
    for name in ("a", "b", "c"):
        text = "import pscdsl as psc\nfrom pscdsl import f32\n\n@psc.kernel\n"
        text += f'def {name}(x: f32["n d"]) -> f32["n d"]:\n    return {body}\n'
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    given = ("-m", "pscdsl", "check", "--no-cache", "--jobs", "2", str(tmp_path))
    usual, done = run(*given), run(*given, path=newer)
    assert (done.returncode, done.stdout) == (usual.returncode, usual.stdout)
    assert (usual.returncode, usual.stderr) == (code, "")
    assert done.stderr.count("UntriedVersionWarning: pscdsl is tested with Python") == 1
    assert len(done.stderr.splitlines()) == 1


def test_a_python_without_its_lock_is_refused_when_the_package_is_imported(
    tmp_path: Path,
) -> None:
    text = "import sys\nsys._is_gil_enabled = lambda: False\n"
    (tmp_path / "sitecustomize.py").write_text(text, encoding="utf-8")
    done = run("-c", "import pscdsl", path=tmp_path)
    assert done.returncode == 1
    said = done.stderr.splitlines()[-1]
    assert said.startswith("ImportError: pscdsl needs the global interpreter lock")
    assert "PYTHON_GIL=1" in said


@pytest.mark.skipif(sys.version_info < (3, 14), reason="subinterpreters are new in Python 3.14")
@pytest.mark.parametrize("code", ["import pscdsl", "from pscdsl._src.cli import main"])
def test_a_subinterpreter_is_refused_when_the_package_is_imported(code: str) -> None:
    program = f"from concurrent import interpreters\ninterpreters.create().exec({code!r})\n"
    done = run("-c", program)
    assert done.returncode == 1
    assert "ImportError: pscdsl does not work in subinterpreters, because NumPy" in done.stderr
