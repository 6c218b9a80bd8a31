"""The tests with the oldest and the newest versions, and those between: `make compat`.

Each pair of a Python and of versions has an environment of its own:

* the oldest: the oldest Python of pyproject.toml, and of each dependency the lowest version.  The
  compiled half of the tests is run there, with the examples and the documents.
* the newest: the newest Python of pyproject.toml that is found, the newest jaxlib that is taken,
  and of all else what pip chooses.  README is tried with the wheel, as users have it, and then all
  tests are run; with `--brief` those that read Python or depend on jaxlib, which take a third of
  the time.
* each Python between, with what pip chooses: those tests that `--brief` leaves.  With `--brief`
  itself, none of these.

With `--make`, the Pythons of pyproject.toml that are not found are made: see `pythons`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests import pythons
from tests.pythons import Version, interpreters, text_of

ROOT: Final = Path(__file__).parent.parent
CHECKERS: Final = frozenset(
    {"mypy", "pyrefly", "pyright", "ruff", "ty", "types-jsonschema", "zuban"}
)
"""What only the tests of types and of style need."""
COMPILED: Final = "pytest.mark.jaxlib"
"""What modules hold that are run with the oldest versions."""
READING: Final = ("analysis", "checker", "frontend", "language")
"""The folders of tests of what reads Python, besides the conformance tests."""
PACKAGE: Final = "pscdsl"
"""The folder that the documents are tried without, with the wheel."""


def main() -> int:
    """Try each pair; 1 if one fails, or none can be tried."""
    options = argparse.ArgumentParser(description="Try the oldest and the newest versions.")
    options.add_argument("--folder", type=Path, default=ROOT / ".venv" / "compat")
    options.add_argument("--jobs", default="2", help="how many tests are run at a time")
    options.add_argument("--only", metavar="PAIR", help="oldest, newest, or a Python: 3.12")
    options.add_argument("--brief", action="store_true", help="fewer tests and two pairs")
    options.add_argument("--make", action="store_true", help="make the Pythons that are missing")
    given = options.parse_args()
    folder = given.folder.resolve()  # what runs an interpreter runs it in other folders
    declared = declared_pythons()
    python = _interpreters(declared, folder / "pythons", make=given.make)
    print("Python:", *(f"{text_of(version)} ({path})" for version, path in sorted(python.items())))
    pairs = {
        name: pair
        for name, pair in chosen(python, brief=given.brief).items()
        if given.only in (None, name, text_of(pair.version))
    }
    results = {name: pair.tried(folder, given.jobs) for name, pair in pairs.items()}
    for name, passed in results.items():
        print(f"{name}: {pairs[name]}: {'passed' if passed else 'FAILED'}")
    for sentence in not_tried(declared, python):
        print(sentence)
    return 0 if results and all(results.values()) else 1


def _interpreters(declared: set[Version], folder: Path, *, make: bool) -> Mapping[Version, Path]:
    """Return the interpreters of this machine, after those that are missing were made."""
    python = interpreters(folder)
    missing = sorted(declared - python.keys())
    if not make or not missing:
        return python
    print("Making Python", *map(text_of, missing), flush=True)
    for version, problem in pythons.make(missing, folder).items():
        print(f"Python {text_of(version)} cannot be made: {problem}")
    return interpreters(folder)


def not_tried(declared: set[Version], python: Mapping[Version, Path]) -> list[str]:
    """Return a sentence for each Python that is declared and not here, or here and too new."""
    ends = {
        min(declared): ", nor were the oldest jaxlib and NumPy",
        max(declared): ", which is the newest",
    }
    missing = [
        f"Python {text_of(version)} was not found, and not tried{ends.get(version, '')}."
        for version in sorted(declared - python.keys())
    ]
    newer = [
        f"Python {text_of(version)} was not tried: pyproject.toml does not name it."
        for version in sorted(python)
        if version > max(declared)
    ]
    return missing + newer


# ---- what is wanted --------------------------------------------------------------------------


def _project() -> Mapping[str, object]:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project: Mapping[str, object] = tomllib.loads(text)["project"]
    return project


def declared_pythons() -> set[Version]:
    """The versions that pyproject.toml says the package is for."""
    found = re.findall(r"Python :: 3\.(\d+)", str(_project()["classifiers"]))
    return {(3, int(each)) for each in found}


def dependencies() -> list[str]:
    """The requirements of the package, without conditions."""
    text = json.loads(json.dumps(_project()["dependencies"]))
    return [each.partition(";")[0].strip() for each in text]


def bound(requirement: str, sign: str) -> str | None:
    """The requirement with one of its bounds as the version: `a>=1,<=2` is `a==1`, or `a==2`."""
    name = re.match(r"[\w-]+", requirement)
    version = re.search(rf"{re.escape(sign)}([\w.]+)", requirement)
    return None if name is None or version is None else f"{name[0]}=={version[1]}"


def extras(*, checkers: bool) -> list[str]:
    """What the tests and the examples need, with or without what checks types and style."""
    optional: dict[str, list[str]] = json.loads(json.dumps(_project()["optional-dependencies"]))
    return [
        each
        for each in (*optional["test"], *optional["examples"])
        if checkers or re.split(r"[^\w-]", each)[0] not in CHECKERS
    ]


# ---- the pairs -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """A Python, versions to install there, and the tests that are run."""

    python: Path
    version: Version
    requirements: Sequence[str]
    tests: Sequence[str]
    wheel: bool = False
    """Whether README and the other documents are run with the wheel before."""

    def __str__(self) -> str:
        jaxlib = next(each for each in self.requirements if each.startswith("jaxlib"))
        return f"Python {text_of(self.version)}, {jaxlib.replace('==', ' ')}"

    def tried(self, folder: Path, jobs: str) -> bool:
        """Whether all passes."""
        print(f"\n== {self}", flush=True)
        started = time.monotonic()
        try:
            environment = self.environment(folder)
            _says_what_it_has(environment)
            if self.wheel:
                with tempfile.TemporaryDirectory() as scratch:
                    _with_the_wheel(environment, Path(scratch))
            _call(environment, "-m", "pip", "install", "-q", "--no-deps", "-e", str(ROOT))
            _call(environment, "-m", "pytest", "-q", "-n", jobs, *self.tests)
        except subprocess.CalledProcessError as failed:
            print(f"failed: {' '.join(map(str, failed.cmd))}")
            return False
        finally:
            print(f"== {time.monotonic() - started:.0f} s", flush=True)
        return True

    def environment(self, folder: Path) -> Path:
        """The interpreter of the environment, made anew if what it is to hold has changed."""
        content = "\n".join([str(self.python), *self.requirements])
        name = hashlib.sha256(content.encode()).hexdigest()[:16]
        place = folder / f"{text_of(self.version)}-{name}"
        python = place / "bin" / "python"
        if not (place / "made").is_file():
            shutil.rmtree(place, ignore_errors=True)
            subprocess.run([self.python, "-m", "venv", place], check=True)
            # A version without a wheel is an error, and not compiled for half an hour.
            wheels = ("--only-binary=:all:", "--prefer-binary")
            _call(python, "-m", "pip", "install", "-q", *wheels, *self.requirements)
            (place / "made").touch()
        return python


def chosen(python: Mapping[Version, Path], *, brief: bool = False) -> dict[str, Pair]:
    """Return the pairs that can be tried with these interpreters."""
    pairs: dict[str, Pair] = {}
    oldest = min(declared_pythons())
    declared = sorted(declared_pythons() & python.keys())
    fewer = list(dict.fromkeys((*compiled_tests(), *reading_tests())))
    if oldest in declared:
        lowest = [bound(each, ">=") or each for each in dependencies()]
        requirements = [*lowest, *extras(checkers=False)]
        pairs["oldest"] = Pair(python[oldest], oldest, requirements, compiled_tests())
    for version in () if brief else declared[:-1]:
        if version != oldest:
            requirements = [*dependencies(), *extras(checkers=True)]
            pairs[text_of(version)] = Pair(python[version], version, requirements, fewer)
    if declared:
        newest = declared[-1]
        requirements = [bound(each, "<=") or each for each in dependencies()]
        requirements += extras(checkers=True)
        tests = fewer if brief else ["tests", "--ignore=tests/interop"]
        pairs["newest"] = Pair(python[newest], newest, requirements, tests, wheel=True)
    return pairs


def compiled_tests() -> list[str]:
    """The tests that are run with the oldest versions."""
    folder = ROOT / "tests"
    found = [
        path for path in sorted(folder.rglob("test_*.py")) if COMPILED in path.read_text("utf-8")
    ]
    return [str(each.relative_to(ROOT)) for each in dict.fromkeys((*found, folder / "conformance"))]


def reading_tests() -> list[str]:
    """The tests of what reads Python."""
    folders = [ROOT / "tests" / name for name in READING]
    found = [path for folder in folders for path in sorted(folder.rglob("test_*.py"))]
    return [str(each.relative_to(ROOT)) for each in found]


def _with_the_wheel(python: Path, scratch: Path) -> None:
    """Install the wheel, and run what the documents show where nothing else has the package."""
    _call(python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(scratch), str(ROOT))
    wheel = next(scratch.glob("pscdsl-*.whl"))
    _call(python, "-m", "pip", "install", "-q", "--no-deps", "--force-reinstall", str(wheel))
    _call(python, "-m", "pip", "check")
    copy = scratch / "project"
    others = shutil.ignore_patterns(PACKAGE, "__pycache__", ".venv", ".git", "*_cache")
    shutil.copytree(ROOT, copy, ignore=others)
    _call(
        python,
        "-m",
        "pytest",
        "-q",
        "tests/project/test_readme.py",
        "tests/typing/test_codes.py",
        "-k",
        "the_blocks or every_file",
        folder=copy,
    )


def _says_what_it_has(python: Path) -> None:
    names = "numpy", "scipy", "jaxlib", "typeguard", "rich", "pyrsistent"
    asked = (
        "import sys, importlib.metadata as m; print(*(f'{n} {m.version(n)}' for n in sys.argv[1:]))"
    )
    _call(python, "-c", asked, *names)


def _call(python: Path, *given: str, folder: Path = ROOT) -> None:
    """Run an interpreter that finds nothing but what is installed; an error if it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    subprocess.run([python, *given], cwd=folder, env=environment, check=True)


if __name__ == "__main__":
    sys.exit(main())
