"""Settings in pyproject.toml: found, read, overridden; what is wrong is told at its place."""

from __future__ import annotations

import contextlib
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pscdsl._src.checker.configuration import READERS, Settings, find_settings, read_settings
from pscdsl._src.cli import main
from pscdsl.typing.diagnostics import Failure

Capture = pytest.CaptureFixture[str]
HEAD = "import numpy as np\nimport pscdsl as psc\nfrom pscdsl import f32\n\n\n"
IMPURE = HEAD + '@psc.kernel\ndef f(x: f32["n"]) -> f32["n"]:\n    print(x)\n    return x\n'
CHOICES = HEAD + (
    "from pscdsl import Num\n\n@psc.kernel\n"
    'def f(a: Num["*a"], b: Num["*b"], c: Num["*c"]) -> f32:\n    return a.ndim + b.ndim\n'
)
UNUSED = HEAD + '@psc.kernel\ndef f(x: f32["n"]) -> f32["n"]:\n    return x  # psc: ignore\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, text: str) -> None:
    """Write a file below the current folder."""
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text, encoding="utf-8")


def settings(text: str) -> None:
    """Write the settings of the current folder."""
    write("pyproject.toml", f"[tool.pscdsl]\n{text}\n")


def found(capsys: Capture, *arguments: str) -> tuple[int, list[str]]:
    """Exit code, and path and code of each finding."""
    capsys.readouterr()
    code = main(["check", "--format", "concise", *arguments])
    rows = capsys.readouterr().out.splitlines()
    return code, [f"{row.split(':')[0]} {row.split('[')[1][:6]}" for row in rows]


def test_every_setting_has_a_field() -> None:
    names = {field.name.replace("_", "-") for field in fields(Settings)}
    assert names == {"root", *READERS}


def test_the_paths_are_those_of_the_settings(folder: Path, capsys: Capture) -> None:
    write("a/one.py", IMPURE)
    write("b/two.py", IMPURE)
    assert found(capsys) == (1, ["a/one.py PSC201", "b/two.py PSC201"])
    settings('paths = ["b"]')
    assert found(capsys) == (1, ["b/two.py PSC201"])
    assert found(capsys, "a") == (1, ["a/one.py PSC201"])
    settings('paths = ["c"]')
    assert main(["check"]) == 2


def test_the_nearest_settings_upwards_count(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings('ignore = ["PSC201"]\npaths = ["a"]')
    write("a/b/c.py", IMPURE)
    write("a/b/pyproject.toml", '[project]\nname = "pscdsl-plays-no-role-here"\n')
    monkeypatch.chdir("a/b")
    assert find_settings(".").root == str(folder)
    assert found(capsys) == (0, [])
    write("pyproject.toml", "[tool.pscdsl]\n")
    assert found(capsys) == (1, ["c.py PSC201"])
    assert found(capsys, "--config", "../../pyproject.toml", "c.py") == (0, [])


def test_without_settings_there_are_the_usual_ones(folder: Path) -> None:
    assert find_settings(".") == Settings(root=str(folder))


def test_exclude_leaves_out_what_is_not_named(folder: Path, capsys: Capture) -> None:
    settings('exclude = ["gen/**", "*_old.py"]')
    for name in ("a.py", "a_old.py", "gen/b.py"):
        write(name, IMPURE)
    assert found(capsys, ".") == (1, ["a.py PSC201"])
    assert found(capsys, "gen") == (0, [])
    assert found(capsys, "gen/b.py") == (1, ["gen/b.py PSC201"])
    assert found(capsys, "--force-exclude", "gen/b.py") == (0, [])


def test_codes_by_settings_and_by_the_command_line(folder: Path, capsys: Capture) -> None:
    write("a.py", IMPURE)
    settings('select = ["psc2"]')
    assert found(capsys)[0] == 1
    assert found(capsys, "--select", "PSC3")[0] == 0
    settings('ignore = ["PSC2"]')
    assert found(capsys)[0] == 0
    assert found(capsys, "--extend-select", "PSC201")[0] == 1
    settings('per-file-ignores = {"a.py" = ["PSC201"]}')
    assert found(capsys, "--select", "PSC2")[0] == 0


def test_strict_and_format(folder: Path, capsys: Capture) -> None:
    write("a.py", UNUSED)
    settings('strict = true\nformat = "github"')
    assert main(["check"]) == 1
    assert capsys.readouterr().out.startswith("::warning file=a.py,")
    assert main(["check", "--no-strict", "--format", "concise"]) == 0
    assert capsys.readouterr().out.startswith("a.py:8:")


def test_what_is_not_reported_is_not_unused(folder: Path, capsys: Capture) -> None:
    text = UNUSED.replace("ignore", "ignore[PSC201, PSC7]")
    write("a.py", text)
    assert main(["check"]) == 0
    assert "PSC201, PSC7 are not found" in capsys.readouterr().out
    assert main(["check", "--ignore", "PSC7"]) == 0
    assert "PSC201 is not found" in capsys.readouterr().out
    assert found(capsys, "--ignore", "PSC2,PSC7") == (0, [])
    assert found(capsys, "--select", "PSC3,PSC9") == (0, [])


def problems(text: str) -> list[tuple[str, int, int]]:
    """Code, line and column of what is wrong with settings."""
    write("pyproject.toml", text)
    with pytest.raises(Failure) as failure:
        read_settings("pyproject.toml")
    return [(d.code, d.span.line, d.span.column) for d in failure.value.diagnostics]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("colour = 1", ("PSC923", 2, 1)),
        ("extend_select = []", ("PSC923", 2, 1)),
        ("strict = 1", ("PSC924", 2, 1)),
        ("paths = 'src'", ("PSC924", 2, 1)),
        ("paths = ['src', 1]", ("PSC924", 2, 1)),
        ("select = ['PSC3', 'PSC999x']", ("PSC924", 2, 19)),
        ("ignore = [\n  'PSC3',\n  'E501',\n]", ("PSC924", 4, 3)),
        ("format = 'runes'", ("PSC924", 2, 1)),
        ("baseline = ''", ("PSC924", 2, 1)),
        ("per-file-ignores = ['a']", ("PSC924", 2, 1)),
        ("per-file-ignores = { 'a' = ['x'] }", ("PSC924", 2, 29)),
        ("[tool.pscdsl.per-file-ignores]\n'a.b' = 1", ("PSC924", 3, 1)),
        ("select = ", ("PSC925", 2, 10)),
        ("text = '''\nselect = 1\n'''\nselect = 1", ("PSC923", 2, 1)),
    ],
)
def test_what_is_wrong_is_told_at_its_place(
    folder: Path, row: str, expected: tuple[str, int, int]
) -> None:
    assert problems(f"[tool.pscdsl]\n{row}\n")[0] == expected


def test_all_that_is_wrong_is_told_with_the_nearest_name(folder: Path, capsys: Capture) -> None:
    settings("extend_select = []\nstrict = 3\nignored = []")
    assert main(["check"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    for part in ("pyproject.toml:2:1", "`extend-select` is the nearest", "PSC924", "`ignore` is"):
        assert part in said.err


@pytest.mark.parametrize(
    "text",
    [
        "[tool]\npscdsl = 1\n",
        "tool = 'pscdsl'\n[other]\n",
        "tool.pscdsl.strict = 'no'\n",
        "[tool]\npscdsl = { strict = 'no' }\n",
        "[[tool.pscdsl]]\nstrict = true\n",
        '[tool."pscdsl"]\nstrict = 1\n',
        "[tool.pscdsl]\nstrict = " + "[" * 5000 + "\n",
    ],
)
def test_odd_ways_to_write_it(folder: Path, text: str) -> None:
    assert problems(text)


def test_what_is_no_text_and_what_is_too_large(folder: Path) -> None:
    Path("pyproject.toml").write_bytes(b"[tool.pscdsl]\nx = '\xff'\n")
    with pytest.raises(Failure):
        find_settings(".")
    Path("pyproject.toml").write_bytes(b"# pscdsl" * 1_000_000)
    with pytest.raises(Failure):
        find_settings(".")


def test_a_file_that_is_not_there_or_has_none(folder: Path, capsys: Capture) -> None:
    assert main(["check", "--config", "none.toml"]) == 2
    write("other.toml", "[tool.other]\n")
    assert main(["check", "--config", "other.toml"]) == 2
    assert "PSC925" in capsys.readouterr().err


def test_a_windows_file(folder: Path) -> None:
    Path("pyproject.toml").write_bytes(b"[tool.pscdsl]\r\nstrict = true\r\n")
    assert find_settings(".").strict


@given(st.text(max_size=60))
def test_any_text_is_settings_or_told_to_be_wrong(text: str) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as name:
        path = Path(name, "pyproject.toml")
        path.write_text(f"[tool.pscdsl]\n{text}", encoding="utf-8", errors="surrogatepass")
        with contextlib.suppress(Failure):
            read_settings(str(path))
