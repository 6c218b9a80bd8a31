"""The release: its files are the same from each build, and work where nothing is fetched."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from trove_classifiers import classifiers

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WHEEL = f"pscdsl-{PROJECT['version']}-py3-none-any.whl"
SDIST = f"pscdsl-{PROJECT['version']}.tar.gz"
FOLDERS = ("pscdsl", "typing", "stdlib", "tests", "benchmarks", "examples", "docs")
EPOCH = 1_700_000_000
PROGRAM = """\
import numpy as np
import pscdsl as psc
from pscdsl import f32
from pscdsl.stdlib import losses


@psc.kernel
def double(x: f32["n"]) -> f32["n"]:
    return x + x


if __name__ == "__main__":
    print(double(np.ones(2, np.float32)), losses.__name__)
"""


def copied(folder: Path) -> Path:
    """Copy the checkout, without what was built in it."""
    for name in FOLDERS:
        built = shutil.ignore_patterns("__pycache__", "*.so", ".*")
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=built)
    for path in ROOT.iterdir():
        if path.is_file() and path.name != ".git":
            shutil.copy(path, folder)
    return folder


def build(source: Path, into: Path, umask: int) -> dict[str, str]:
    """Build the wheel and the sdist as any builder may; return their hashes by name."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", into],
        cwd=source,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH)},
        check=True,
        capture_output=True,
        umask=umask,
    )
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in into.iterdir()}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the wheel and the sdist."""
    folder = tmp_path_factory.mktemp("first")
    build(copied(folder / "source"), folder / "dist", 0o022)
    return folder / "dist"


def test_each_build_gives_the_same_files(dist: Path, tmp_path: Path) -> None:
    source = copied(tmp_path / "elsewhere" / "source")
    for path in source.rglob("*.py"):
        os.utime(path, (EPOCH + 5000, EPOCH + 5000))
        path.chmod(0o600)
    first = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in dist.iterdir()}
    assert sorted(first) == sorted([WHEEL, SDIST])
    assert build(source, tmp_path / "dist", 0o077) == first


def test_the_sdist_gives_the_same_wheel(dist: Path, tmp_path: Path) -> None:
    with tarfile.open(dist / SDIST) as archive:
        archive.extractall(tmp_path, filter="data")
    hashes = build(tmp_path / SDIST.removesuffix(".tar.gz"), tmp_path / "dist", 0o022)
    assert hashes[WHEEL] == hashlib.sha256((dist / WHEEL).read_bytes()).hexdigest()


def test_the_wheel_has_every_module_and_nothing_else(dist: Path) -> None:
    names = zipfile.ZipFile(dist / WHEEL).namelist()
    package = {name for name in names if name.startswith("pscdsl/")}
    here = {
        path.relative_to(ROOT).as_posix()
        for folder in (ROOT / "pscdsl", ROOT / "pscdsl/typing", ROOT / "pscdsl/stdlib")
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and "entry" not in path.parts
    }
    assert package == here
    others = {name for name in names if not name.startswith(("pscdsl/", "pscdsl-"))}
    assert others == {"pscdsl_typeguard.py", "pytest_pscdsl.py"}


@pytest.mark.parametrize("name", [WHEEL, SDIST])
def test_it_installs_and_works_where_nothing_is_fetched(
    dist: Path, tmp_path: Path, name: str
) -> None:
    installed = tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    command = [*pip, "--no-build-isolation", "--target", str(installed), str(dist / name)]
    subprocess.run(command, check=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": ""})
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")

    def printed(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, "-P", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(installed)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    assert printed("-m", "pscdsl", "--version") == f"pscdsl {PROJECT['version']}\n"
    assert printed("-m", "pscdsl", "check", "program.py").startswith("1 kernel checked")
    assert printed("program.py") == "[2. 2.] pscdsl.stdlib.losses\n"


def test_the_classifiers_are_known() -> None:
    assert set(PROJECT["classifiers"]) <= classifiers


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("README.md", r"The version is ([\d.]+), unreleased"),
        ("CHANGELOG.md", r"## ([\d.]+) \(unreleased\)"),
        ("CITATION.cff", r"(?m)^version: ([\d.]+)$"),
    ],
)
def test_documents_name_the_version_of_the_project(file: str, pattern: str) -> None:
    found = re.search(pattern, (ROOT / file).read_text(encoding="utf-8"))
    assert found is not None
    assert found[1] == PROJECT["version"]


def test_the_workflow_tries_every_python_that_is_declared() -> None:
    workflow = (ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8")
    [tried] = re.findall(r"python-version: \[(.+)\]", workflow)
    said = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert re.findall(r"\"(.+?)\"", tried) == said
