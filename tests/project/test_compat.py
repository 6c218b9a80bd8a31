"""`make compat`: which interpreters it finds and makes, what it installs and runs with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import compat, pythons
from tests.compat import bound, chosen, not_tried
from tests.pythons import deb822_sources, debian_mirror, interpreters, one_line_sources


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
    made = stand_in(tmp_path / "made/3.15/usr/bin/python3.15", "[3, 15, 1, 'final', 0]")
    stand_in(tmp_path / "made/3.12/usr/bin/python3.12", "[3, 12, 9, 'final', 0]")
    found = interpreters(tmp_path / "made")
    assert found.keys() == {(3, 9), (3, 12), (3, 13), (3, 15)}
    assert (found[3, 12], found[3, 13], found[3, 15]) == (first, newer, made)
    assert interpreters().keys() == {(3, 9), (3, 12), (3, 13)}


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
    every = {version: here for version in compat.declared_pythons()}
    oldest, *between, newest = sorted(every)
    pairs = chosen({**every, (3, 10): here, (3, newest[1] + 1): here})
    assert [pair.version for pair in pairs.values()] == [oldest, *between, newest]
    assert list(chosen(every, brief=True)) == ["oldest", "newest"]
    assert both["newest"].tests[0] == "tests"
    brief = chosen({(3, 11): here, (3, 12): here}, brief=True)
    assert {*brief["oldest"].tests} < {*brief["newest"].tests}
    assert "tests/frontend/test_grammar.py" in brief["newest"].tests


def test_what_is_not_tried_is_said() -> None:
    here = Path("python3")
    declared = {(3, 11), (3, 12), (3, 13)}
    assert not_tried(declared, dict.fromkeys(declared, here)) == []
    assert not_tried(declared, {(3, 10): here, (3, 14): here}) == [
        "Python 3.11 was not found, and not tried, nor were the oldest jaxlib and NumPy.",
        "Python 3.12 was not found, and not tried.",
        "Python 3.13 was not found, and not tried, which is the newest.",
        "Python 3.14 was not tried: pyproject.toml does not name it.",
    ]


def test_there_are_tests_with_the_mark() -> None:
    assert len(compat.compiled_tests()) > 2


def only_one(folder: Path) -> dict[pythons.Version, Path]:
    """What stands for `interpreters`."""
    return {(3, 11): Path("python3")}


def test_interpreters_run_in_any_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    folders: list[Path] = []

    def tried(pair: compat.Pair, folder: Path, jobs: str) -> bool:
        folders.append(folder)
        return True

    monkeypatch.setattr(compat.Pair, "tried", tried)
    monkeypatch.setattr(compat, "interpreters", only_one)
    monkeypatch.setattr("sys.argv", ["compat", "--folder", "environments"])
    assert compat.main() == 0
    assert folders == [Path("environments").resolve()] * 2


def test_what_cannot_be_made_is_said_and_the_rest_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def tried(pair: compat.Pair, folder: Path, jobs: str) -> bool:
        return True

    monkeypatch.setattr(compat.Pair, "tried", tried)
    monkeypatch.setattr(compat, "interpreters", only_one)
    monkeypatch.setattr("sys.argv", ["compat", "--folder", str(tmp_path), "--make", "--brief"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert compat.main() == 0
    said = capsys.readouterr().out.splitlines()
    newest = pythons.text_of(max(compat.declared_pythons()))
    assert f"Python {newest} cannot be made: there is no apt-get" in said
    assert said[-1] == f"Python {newest} was not found, and not tried, which is the newest."


LINES = """\
# deb https://commented.example/debian trixie main
deb-src https://sources.example/debian trixie main
deb [arch=amd64 signed-by=/a/key] https://other.example/tools stable main
deb [ signed-by=/a/key ] https://mirror.example/debian trixie main contrib # ours
deb https://security.example/debian-security trixie-security main
"""

STANZAS = """\
Types: deb
URIs: https://off.example/debian
Suites: trixie
Components: main
Enabled: no

# what the machine's packages are from
Types: deb deb-src
URIs: https://first.example/debian
 https://second.example/debian
# a comment within
Suites: trixie
 trixie-updates
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 URIs: https://key.example
"""


def test_sources_of_packages_are_read() -> None:
    assert [(uri, *suites, *parts) for uri, suites, parts in one_line_sources(LINES)] == [
        ("https://other.example/tools", "stable", "main"),
        ("https://mirror.example/debian", "trixie", "main", "contrib"),
        ("https://security.example/debian-security", "trixie-security", "main"),
    ]
    assert list(deb822_sources(STANZAS)) == [
        ("https://first.example/debian", ["trixie", "trixie-updates"], ["main"]),
        ("https://second.example/debian", ["trixie", "trixie-updates"], ["main"]),
    ]


@pytest.mark.parametrize(
    ("name", "text", "mirror"),
    [
        ("sources.list", LINES, "https://mirror.example/debian"),
        ("sources.list.d/debian.sources", STANZAS, "https://first.example/debian"),
    ],
)
def test_the_mirror_is_the_machines_own(tmp_path: Path, name: str, text: str, mirror: str) -> None:
    release = tmp_path / "os-release"
    release.write_text('NAME="Debian"\nVERSION_CODENAME=trixie\nID=debian\n', encoding="utf-8")
    (tmp_path / "sources.list.d").mkdir()
    with pytest.raises(pythons.Unavailable, match="name no mirror"):
        debian_mirror(tmp_path, release)
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert debian_mirror(tmp_path, release) == mirror
    release.write_text("ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=trixie\n", encoding="utf-8")
    with pytest.raises(pythons.Unavailable, match="not a Debian"):
        debian_mirror(tmp_path, release)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("W: late\nE: Unable to locate package a\nE: nor b\n", "E: Unable to locate package a"),
        ("\nfirst\nlast \n\n", "last"),
        ("", "it says nothing"),
    ],
)
def test_a_failure_is_one_line(text: str, reason: str) -> None:
    assert pythons.reason(text) == reason
