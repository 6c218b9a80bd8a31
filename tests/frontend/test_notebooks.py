"""Notebooks: the cells of a document as one module, and what the document may hold instead."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pscdsl._src.cli import main
from tests.support.projects import HEAD, check, codes, kernel, notebook


def found(folder: Path, *cells: str | list[str], **metadata: object) -> list[str]:
    """What is found in a notebook of these cells."""
    return codes(check(folder, {"n.ipynb": notebook(*cells, **metadata)}))


def test_cells_are_one_module_and_places_are_in_cells(tmp_path: Path) -> None:
    cells = (HEAD, ["# A title\n"], "SCALE = 2.0\n", kernel("SCALE * x"), kernel("y", "g"))
    assert found(tmp_path, *cells) == ["PSC102 n.ipynb:5:4"]


@pytest.mark.parametrize(
    "magic",
    [
        "%matplotlib inline\n",
        "!pip install something\n",
        "files = !ls\n",
        "t = %timeit -o 1 + 1\n",
        "HEAD?\n",
        "?print\n",
        "if True:\n    !ls it's\n",
        "%%bash\nfor x in $(ls); do\n  echo $x\ndone\n",
        "\n%%html\n<b>",
        "x = (7\n  % 2)\n%env X=1\n",
        "%%time\nUNUSED = 1\n",
        "await something()\n",
        "%%\n",
    ],
)
def test_what_ipython_adds_is_left_out(magic: str, tmp_path: Path) -> None:
    assert found(tmp_path, HEAD, magic + "\n", kernel("x + 1")) == []


def test_lines_keep_their_places_below_magics(tmp_path: Path) -> None:
    cell = "%load_ext x\n\n!ls\n" + kernel("x + missing")
    assert found(tmp_path, HEAD, cell) == ["PSC102 n.ipynb:2:7"]
    assert found(tmp_path, HEAD, "%%capture out\n" + cell) == ["PSC102 n.ipynb:2:8"]


def test_a_mistake_of_python_is_in_its_cell(tmp_path: Path) -> None:
    assert found(tmp_path, HEAD, "x = (\n", "y = 1\n") == ["PSC100 n.ipynb:2:1"]
    assert found(tmp_path, HEAD, "y = 1\n", "def f(:\n") == ["PSC100 n.ipynb:3:1"]


def test_a_finding_is_suppressed_in_its_cell(tmp_path: Path) -> None:
    text = kernel("missing").rstrip("\n") + "  # psc: ignore[PSC102]\n"
    assert found(tmp_path, HEAD, text) == []


def test_a_notebook_of_another_language_has_no_kernels(tmp_path: Path) -> None:
    assert found(tmp_path, "x <- 1\n", language_info={"name": "R"}) == []


@pytest.mark.parametrize(
    "document",
    [
        "",
        "[1",
        "[]",
        "null",
        '{"nbformat": 3, "worksheets": []}',
        '{"nbformat": 4}',
        '{"nbformat": 4, "cells": [1]}',
        '{"nbformat": 4, "cells": [{"cell_type": "code"}]}',
        '{"nbformat": 4, "cells": [{"cell_type": "code", "source": [1]}]}',
        "[" * 100_000,
        '{"nbformat": 4, "cells": [{"cell_type": "code", "source": "x = \\ud800"}]}',
    ],
)
def test_what_is_no_notebook_is_a_finding(document: str, tmp_path: Path) -> None:
    result = check(tmp_path, {"n.ipynb": document})
    assert [each.code for each in result.diagnostics] in (["PSC930"], ["PSC100"])


def test_metadata_of_any_kind_is_read(tmp_path: Path) -> None:
    strange: tuple[object, ...] = (None, [], {"kernelspec": 1}, {"language_info": {"name": 3}})
    for metadata in strange:
        document = json.loads(notebook(HEAD, kernel("missing")))
        document["metadata"] = metadata
        result = check(tmp_path, {"n.ipynb": json.dumps(document)})
        assert codes(result) == ["PSC102 n.ipynb:2:4"]


def test_the_text_shows_the_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = notebook(HEAD, "%magic\n" + kernel("x + missing"))
    (tmp_path / "n.ipynb").write_text(text, encoding="utf-8")
    assert main(["check", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "n.ipynb:cell 2:5:16\n" in out
    assert "\n 5│     return x + missing\n" in out


def test_a_notebook_imports_what_lies_beside_it(tmp_path: Path) -> None:
    files = {
        "ops.py": "def double(x):\n    return 2 * x\n",
        "n.ipynb": notebook(HEAD + "from ops import double\n", kernel("double(x)")),
    }
    assert codes(check(tmp_path, files)) == []


def test_findings_are_in_the_order_of_the_cells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = [kernel("y", f"f{number}") for number in range(12)]
    (tmp_path / "n.ipynb").write_text(notebook(HEAD, *cells))
    main(["check", "--no-cache", "--format", "concise", str(tmp_path / "n.ipynb")])
    said = capsys.readouterr().out.splitlines()
    assert [int(line.split("cell ")[1].split(":")[0]) for line in said] == [*range(2, 14)]
