"""The baseline: what it knows is not reported, what is new is, and what is gone is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pscdsl._src.checker import baseline
from pscdsl._src.checker.baseline import Fingerprints
from pscdsl._src.cli import main
from pscdsl._src.frontend.text.display import Sources
from pscdsl.typing.codes.language import NotPython
from pscdsl.typing.diagnostics import Span

Capture = pytest.CaptureFixture[str]
HEAD = "import numpy as np\nimport pscdsl as psc\nfrom pscdsl import f32\n\n\n"
KERNEL = '@psc.kernel\ndef {}(x: f32["n"]) -> f32["n"]:\n    print(x)\n    return x\n\n\n'


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> Path:
    """A folder with a program whose two findings are in the baseline."""
    monkeypatch.chdir(tmp_path)
    write(KERNEL.format("f") + KERNEL.format("g"))
    assert main(["check", "--write-baseline", "known.json"]) == 0
    assert capsys.readouterr().out == "2 findings written to known.json\n"
    return tmp_path


def write(text: str, name: str = "a.py") -> None:
    """Write a program into the current folder."""
    Path(name).write_text(HEAD + text, encoding="utf-8")


def check(capsys: Capture, *arguments: str) -> tuple[int, str]:
    """Exit code and output of a check with the baseline."""
    capsys.readouterr()
    code = main(["check", "--format", "concise", "--baseline", "known.json", *arguments])
    return code, capsys.readouterr().out


def test_known_findings_are_not_reported(known: Path, capsys: Capture) -> None:
    assert check(capsys) == (0, "")
    assert main(["check", "--baseline", "known.json"]) == 0
    assert capsys.readouterr().out == "2 kernels checked in 1 file: no errors (2 in the baseline)\n"
    assert main(["check", "--format", "json", "--baseline", "known.json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["baselined"] == 2


def test_they_are_known_when_lines_move(known: Path, capsys: Capture) -> None:
    write("# a comment\n\n\n" + KERNEL.format("g") + "A = 1\n\n\n" + KERNEL.format("f"))
    assert check(capsys) == (0, "")


@pytest.mark.parametrize(
    "text",
    [
        KERNEL.format("f") + KERNEL.format("h"),  # in another function
        KERNEL.format("f") + KERNEL.format("g").replace("(x)\n", "(2 * x)\n"),  # another text
        KERNEL.format("f") + KERNEL.format("g").replace("print", "input"),  # another message
        KERNEL.format("f") + KERNEL.format("g").replace("    r", "    print(x)\n    r"),  # more
    ],
)
def test_another_finding_is_new(known: Path, capsys: Capture, text: str) -> None:
    write(text)
    code, out = check(capsys)
    assert (code, out.count("error[")) == (1, 1)


def test_the_same_in_another_file_is_new(known: Path, capsys: Capture) -> None:
    write(KERNEL.format("f"), "b.py")
    code, out = check(capsys)
    assert (code, out.startswith("b.py:")) == (1, True)


def test_what_is_gone_is_told(known: Path, capsys: Capture) -> None:
    write(KERNEL.format("f"))
    assert main(["check", "--baseline", "known.json"]) == 0
    assert "(1 in the baseline, 1 of the baseline is found no more)" in capsys.readouterr().out
    assert check(capsys, "--strict-baseline")[0] == 1
    assert check(capsys, "--strict-baseline", "--ignore", "PSC2")[0] == 0
    Path("a.py").unlink()
    write("", "b.py")
    assert check(capsys, "--strict-baseline", "b.py")[0] == 1


def test_of_files_that_are_not_checked_nothing_is_told(known: Path, capsys: Capture) -> None:
    write("", "b.py")
    assert check(capsys, "--strict-baseline", "b.py") == (0, "")


def test_from_another_folder_and_by_the_settings(
    known: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("pyproject.toml").write_text('[tool.pscdsl]\nbaseline = "known.json"\n', encoding="utf-8")
    Path("sub").mkdir()
    monkeypatch.chdir("sub")
    assert main(["check", ".."]) == 0
    assert main(["check", "--no-baseline", ".."]) == 1
    assert main(["check", "--write-baseline", "own.json", ".."]) == 0
    assert json.loads(Path("own.json").read_text())["entries"][0]["path"] == "../a.py"


def test_it_is_ordered_and_writes_the_same_twice(known: Path) -> None:
    first = Path("known.json").read_text(encoding="utf-8")
    rows = json.loads(first)["entries"]
    assert [row["path"] for row in rows] == ["a.py", "a.py"]
    assert first.count("\n") == len(rows) + 6
    assert main(["check", "--write-baseline", "known.json", "--baseline", "known.json"]) == 0
    assert Path("known.json").read_text(encoding="utf-8") == first
    assert [path.name for path in Path().iterdir() if path.name.startswith(".")] == []


def test_what_comments_silence_is_not_written(known: Path, capsys: Capture) -> None:
    write(KERNEL.format("f").replace("(x)\n", "(x)  # psc: ignore\n"))
    assert main(["check", "--write-baseline", "known.json"]) == 0
    assert capsys.readouterr().out == "0 findings written to known.json\n"
    assert baseline.read("known.json").entries == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "nonsense",
        '{"format": "other", "version": 1, "entries": []}',
        '{"format": "pscdsl-baseline", "version": 2, "entries": []}',
        '{"format": "pscdsl-baseline", "version": 1}',
        '{"format": "pscdsl-baseline", "version": 1, "entries": [1]}',
        '{"format": "pscdsl-baseline", "version": 1, "entries": [{"path": "a.py"}]}',
        "[" * 100_000,
    ],
)
def test_a_damaged_or_foreign_file_is_an_error(known: Path, capsys: Capture, text: str) -> None:
    Path("known.json").write_text(text, encoding="utf-8")
    assert check(capsys)[0] == 2


def test_every_cut_of_a_file_is_an_error(known: Path) -> None:
    whole = Path("known.json").read_bytes().rstrip()
    for length in range(len(whole)):
        Path("known.json").write_bytes(whole[:length])
        with pytest.raises(baseline.BaselineError):
            baseline.read("known.json")


def test_a_file_that_is_not_there_or_cannot_be_written(known: Path, capsys: Capture) -> None:
    assert main(["check", "--baseline", "none.json"]) == 2
    assert "--write-baseline none.json" in capsys.readouterr().err
    assert main(["check", "--write-baseline", "no/such/folder.json"]) == 2


def test_counts_are_kept(tmp_path: Path) -> None:
    path = str(tmp_path / "known.json")
    same = [NotPython(reason="x", span=Span("a.py", line, 1, line, 1)) for line in (1, 2, 3)]
    prints = Fingerprints(Sources({"a.py": "\n\n\n"}))
    assert baseline.write(path, same[:2], prints) == 2
    new, old, over = baseline.read(path).divide(same, prints)
    assert (len(new), len(old), over) == (1, 2, [])
    new, old, over = baseline.read(path).divide(same[:1], prints)
    assert (len(new), len(old), [entry.count for entry in over]) == (0, 1, [1])
