"""The layout: two real folders at the top, linked into the package; see CONTRIBUTING.md."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINKED = ("typing", "stdlib")


def _tracked() -> list[str]:
    """The files git knows, as `mode hash stage` and path."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a git checkout")
    command = ["git", "-C", str(ROOT), "ls-files", "--stage"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def test_every_file_that_contributing_names_is_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    folders = [ROOT / name for name in ("pscdsl", "typing", "tests", "benchmarks")]
    everywhere = {path.as_posix() for folder in folders for path in folder.rglob("*")}
    for name in re.findall(r"`([\w./]+(?:\.py|\.md|\w/))`", text):
        assert (ROOT / name).exists() or any(
            path.endswith(f"/{name.rstrip('/')}") for path in everywhere
        ), name


def test_the_folders_of_the_top_level_are_there() -> None:
    for name in ("pscdsl", "typing", "stdlib", "tests", "benchmarks", "examples"):
        assert (ROOT / name).is_dir(), name


@pytest.mark.parametrize("name", LINKED)
def test_the_link_leads_to_the_folder(name: str) -> None:
    assert (ROOT / "pscdsl" / name).resolve().samefile(ROOT / name)


@pytest.mark.parametrize("name", LINKED)
def test_no_module_hides_one_of_the_standard_library(name: str) -> None:
    taken = sys.stdlib_module_names | {"__init__"}
    names = {path.stem for path in (ROOT / name).iterdir()}
    assert not names & taken


def test_import_typing_at_the_root_is_the_standard_module() -> None:
    code = "import typing; print(typing.TYPE_CHECKING, typing.__file__)"
    command = [sys.executable, "-c", code]
    out = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert out.startswith("False")
    assert not Path(out.split(maxsplit=1)[1].strip()).is_relative_to(ROOT / "typing")


def test_git_holds_the_links_as_links_and_no_build_output() -> None:
    rows = _tracked()
    if not rows:
        pytest.skip("nothing is committed yet")
    modes = {path: info.split()[0] for info, path in (row.split("\t", 1) for row in rows)}
    for name in LINKED:
        assert modes[f"pscdsl/{name}"] == "120000"
    for path in modes:
        assert not path.endswith((".pyc", ".so", ".whl")), path
        assert "__pycache__" not in path
