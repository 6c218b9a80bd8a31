"""`make compat`: which interpreters it finds, and what it installs and runs with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import compat
from tests.compat import bound, chosen, interpreters


def stand_in(path: Path, says: str, code: int = 0) -> Path:
    """What answers like an interpreter that is asked for its version."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\necho "{says}"\nexit {code}\n', encoding="utf-8")
    path.chmod(0o755)
    return path


def test_interpreters_are_on_the_path_and_in_the_folder_of_pyenv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pyenv, folder = tmp_path / "pyenv", tmp_path / "bin"
    monkeypatch.setenv("PYENV_ROOT", str(pyenv))
    monkeypatch.setenv("PATH", f"{pyenv}/shims:{folder}:{tmp_path}/nowhere")
    stand_in(pyenv / "shims" / "python3.14", "[3, 14, 0, 'final', 0]")
    first = stand_in(folder / "python3.12", "[3, 12, 1, 'final', 0]")
    stand_in(folder / "python3-config", "[3, 16, 0, 'final', 0]")
    stand_in(folder / "python3.11", "pyenv: python3.11: command not found", 127)
    stand_in(pyenv / "versions" / "3.12.9" / "bin" / "python3", "[3, 12, 9, 'final', 0]")
    stand_in(pyenv / "versions" / "3.9.9" / "bin" / "python3", "[3, 9, 9, 'final', 0]")
    newer = stand_in(pyenv / "versions" / "3.13.10" / "bin" / "python3", "[3, 13, 10, 'final', 0]")
    stand_in(pyenv / "versions" / "3.13.2" / "bin" / "python3", "[3, 13, 2, 'final', 0]")
    stand_in(pyenv / "versions" / "3.15-dev" / "bin" / "python3", "[3, 15, 0, 'alpha', 1]")
    found = interpreters()
    assert found.keys() == {(3, 9), (3, 12), (3, 13)}
    assert (found[3, 12], found[3, 13]) == (first, newer)


def test_bounds_become_versions() -> None:
    assert bound("jaxlib>=0.10.2,<=0.12.0.1", ">=") == "jaxlib==0.10.2"
    assert bound("jaxlib>=0.10.2,<=0.12.0.1", "<=") == "jaxlib==0.12.0.1"
    assert bound("rich>=13", "<=") is None


def test_what_is_tried_depends_on_what_is_there() -> None:
    here = Path("python3")
    assert chosen({}) == chosen({(3, 10): here}) == {}
    both = chosen({(3, 11): here, (3, 12): here})
    assert {name: pair.version for name, pair in both.items()} == {
        "oldest": (3, 11),
        "newest": (3, 12),
    }
    for name, sign in (("oldest", ">="), ("newest", "<=")):
        versions = [bound(each, sign) for each in compat.dependencies()]
        assert {each for each in versions if each} <= {*both[name].requirements}
    assert list(chosen({(3, 14): here})) == ["newest"]
    assert both["newest"].tests[0] == "tests"
    brief = chosen({(3, 11): here, (3, 12): here}, brief=True)
    assert {*brief["oldest"].tests} < {*brief["newest"].tests}
    assert "tests/frontend/test_grammar.py" in brief["newest"].tests


def test_there_are_tests_with_the_mark() -> None:
    assert len(compat.compiled_tests()) > 2


def test_interpreters_run_in_any_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    folders: list[Path] = []

    def tried(pair: compat.Pair, folder: Path, jobs: str) -> bool:
        folders.append(folder)
        return True

    monkeypatch.setattr(compat.Pair, "tried", tried)
    monkeypatch.setattr(compat, "interpreters", lambda: {(3, 11): Path("python3")})
    monkeypatch.setattr("sys.argv", ["compat", "--folder", "environments"])
    assert compat.main() == 0
    assert folders == [Path("environments").resolve()] * 2
