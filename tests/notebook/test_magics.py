"""The magic `%psc` in a shell of IPython."""

from __future__ import annotations

from pathlib import Path

import pytest

from pscdsl._src.frontend.text.display import CodeCell
from pscdsl._src.notebook.cells import check_cell, current
from tests.support.projects import HEAD, check, codes, kernel, notebook
from tests.support.python_places import in_cells

LOAD = "%load_ext pscdsl\n"
IMPORTS = "import numpy as np\n" + HEAD
RIGHT = "%%psc check\n" + kernel("2 * x") + "print('RAN', f(np.ones(2, np.float32)))\n"
WRONG = "%%psc check\nprint('RAN')\n" + kernel("x @ x[:, None] + missing")


def run(folder: Path, *cells: str) -> str:
    """What cells print, after the extension is loaded."""
    return in_cells([LOAD, IMPORTS, *cells], folder)


def test_a_cell_without_errors_is_run(tmp_path: Path) -> None:
    out = run(tmp_path, RIGHT + "f(np.ones(3, np.float32))\n")
    assert "RAN [2. 2.]" in out
    assert "Out[3]: pscdsl.Array([2., 2., 2.], dtype=float32)" in " ".join(out.split())


def test_a_cell_with_errors_is_not_run(tmp_path: Path) -> None:
    out = run(tmp_path, WRONG, "print('NEXT', 'f' in globals())\n")
    assert "RAN" not in out
    assert "error[PSC102]" in out
    assert "┌─ In[3]:6:29\n" in out
    line = "    return x @ x[:, None] + missing"
    assert f" 6│ {line}\n" in out
    marks = next(each for each in out.splitlines() if "^^^^^^^" in each)
    assert marks.index("^") - marks.index("│ ") - 2 == line.index("missing")
    assert "the cell was not run" in out
    assert "NEXT False" in out
    assert "Traceback" not in out


def test_a_warning_is_printed_and_the_cell_run(tmp_path: Path) -> None:
    out = run(tmp_path, "%%psc check\n" + kernel("np.log(1 + x)") + "print('RAN')\n")
    assert "warning[PSC708]" in out
    assert "In[3]:5:12\n" in out
    assert "RAN" in out


def test_an_error_of_a_run_is_in_its_line(tmp_path: Path) -> None:
    out = run(tmp_path, "%%psc check\nx = 1\nx / 0\n")
    assert "Cell In[3], line 3" in out
    assert "----> 3 x / 0" in out


def test_the_text_of_a_kernel_is_found_below_the_magic(tmp_path: Path) -> None:
    text = "%%psc check\n" + kernel("SCALE * x")
    out = run(tmp_path, "SCALE = 2.0\n", text, "print(f.definition.span, f.ir())\n")
    assert "In[4]:4:1" in out
    assert "multiply 2.0 x" in out


def test_cells_see_those_that_ran_and_no_others(tmp_path: Path) -> None:
    first = "%%psc check\n" + kernel("x + 1", "inner")
    refused = "%%psc check\n" + kernel("x + missing", "inner")
    last = "%%psc check\n" + kernel("inner(x)")
    out = run(tmp_path, first, refused, last, "print('DONE', f(np.zeros(2, np.float32)))\n")
    assert out.count("error[") == 1
    assert "DONE [1. 1.]" in out


def test_cells_that_are_run_again_count_once(tmp_path: Path) -> None:
    values = "SCALE = np.ones(3)\nSIZE = 3\n"
    cells = [values, kernel("SIZE * x", "g"), values, kernel("SIZE * x", "g"), values]
    out = run(tmp_path, *cells, "%%psc check\n" + kernel("g(x) * SIZE") + "print('RAN')\n")
    assert "RAN" in out
    assert "[PSC" not in out


def test_a_suppression_and_a_line_magic(tmp_path: Path) -> None:
    text = kernel("np.log(1 + x)").rstrip("\n") + "  # psc: ignore[PSC708]\n"
    out = run(tmp_path, text + "%psc check\nprint('RAN')\n")
    assert "PSC708" not in out
    assert "RAN" in out


def test_costs_programs_and_explanations(tmp_path: Path) -> None:
    cells = ["%psc cost f\n", "%psc cost f n=5\n", "%psc ir f\n", "%psc explain PSC301\n"]
    out = run(tmp_path, RIGHT, *cells)
    assert "flops     n\n" in out
    assert "flops     5\n" in out
    assert "f[n](x: f32[n]) -> f32[n]\n" in out
    assert "# PSC301: " in out


def test_a_choice_of_a_program(tmp_path: Path) -> None:
    text = "@psc.kernel\ndef f(x: psc.Float['n']) -> psc.Float['n']:\n    return x\n"
    out = run(tmp_path, text, "%psc ir f Float=f64\n", "%psc ir f size=3\n")
    assert "f[n](x: f64[n]) -> f64[n]" in out
    assert "UsageError: f does not leave size open" in out


def test_what_cannot_be_done_is_said(tmp_path: Path) -> None:
    wrong = {
        "": "usage:",
        "cost": "usage:",
        "check x": "usage:",
        "draw f": "usage:",
        "cost x": "`x` is no kernel here",
        "cost np.sin": "`np.sin` is no kernel here",
        "cost f k=3": "f has no size k",
        "cost f 3": "`3` is not NAME=VALUE",
        "explain PSC000": "no such code: PSC000",
    }
    out = run(tmp_path, kernel("x"), *(f"%psc {line}\n" for line in wrong))
    said = out.split("UsageError: ")[1:]
    assert [text.startswith(each) for text, each in zip(said, wrong.values(), strict=True)] == [
        True
    ] * len(wrong)
    assert "Traceback" not in out


def test_a_kernel_with_errors_has_no_program(tmp_path: Path) -> None:
    out = run(tmp_path, kernel("missing"), "%psc ir f\n")
    assert "error[PSC102]" in out
    assert "Traceback" not in out


def test_a_notebook_with_the_magic_is_checked_by_the_command(tmp_path: Path) -> None:
    cells = (LOAD, HEAD, "%%psc check\n" + kernel("missing"))
    assert codes(check(tmp_path, {"n.ipynb": notebook(*cells)})) == ["PSC102 n.ipynb:3:5"]


def cells(*texts: str) -> list[CodeCell]:
    """Cells with numbers from 1 on."""
    return [CodeCell(number, text) for number, text in enumerate(texts, 1)]


def left(*texts: str, bound: str = "x y z a f np") -> list[str]:
    """What is left of cells before the last one."""
    *ran, last = cells(*texts)
    return [each.text for each in current(ran, last, bound.split())]


def test_statements_that_bind_again_replace_earlier_ones() -> None:
    assert left("x = 1\ny = 2", "x = 3", "z = 1") == ["\ny = 2", "x = 3"]
    assert left("@d\ndef f():\n    pass", "def f(): pass", "z = 1") == ["\n\n", "def f(): pass"]
    assert left("x = 1; y = 2", "x = 3", "z = 1") == ["x = 1; y = 2", "x = 3"]
    assert left("x = 1", "x = 2\ny = (") == ["x = 1"]


def test_stores_are_never_left_out() -> None:
    assert left("x[0] = 1", "x = 1") == ["x[0] = 1"]
    assert left("x.y, z = 1, 2", "z = x = y = 1") == ["x.y, z = 1, 2"]
    assert left("x += 1", "x = 1") == ["x += 1"]
    assert left("for x in y:\n    a[x] = 1", "x = a = 1") == ["for x in y:\n    a[x] = 1"]


def test_what_failed_is_left_out() -> None:
    assert left("x = 1\nnever = 2", "z = 1") == ["x = 1\n"]
    assert left("def broken(:", "z = 1") == []
    assert left("%matplotlib inline\nx = 1", "z = 1") == ["%matplotlib inline\nx = 1"]


def test_a_finding_in_a_helper_of_an_earlier_cell_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = cells(HEAD, "def helper(x):\n    return x + missing\n", kernel("nowhere", "other"))
    found = check_cell(ran, CodeCell(4, kernel("helper(x)")), ["psc", "f32", "helper", "other"])
    (only,) = found.diagnostics
    assert only.code == "PSC102"
    text = found.text(colour=False)
    assert "In[2]:2:16" in text
    assert "in the call at In[4]:" in text
    assert not list(tmp_path.iterdir())


def test_the_settings_of_the_folder_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[tool.pscdsl]\nignore = ["PSC708"]\n')
    (tmp_path / "ops.py").write_text("def one(x):\n    return x + 1\n")
    text = "from ops import one\n" + kernel("np.log(1 + one(x))")
    found = check_cell(cells(IMPORTS), CodeCell(2, text), ["np", "psc", "f32"])
    assert not found.diagnostics
    assert not found.has_errors


def test_wrong_settings_are_said(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.pscdsl]\nselect = 3\n")
    out = run(tmp_path, RIGHT)
    assert "UsageError: error[" in out
    assert "RAN" not in out
    assert "Traceback" not in out
