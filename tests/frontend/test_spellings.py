"""Writes are found in whatever letters, lines, strings, encodings and cells they are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from pscdsl._src.checker.check import check_paths
from pscdsl._src.frontend.text.source import searchable
from tests.support.projects import notebook

LIBRARY = """\
import numpy as np
import pscdsl as psc
from pscdsl import f32

W = np.ones(3, np.float32)
ST = 1.0


@psc.kernel
def f(x: f32["3"]) -> f32["3"]:
    return x * W * ST
"""
HEAD = "import lib\nfrom unittest import mock\n\n\ndef update():\n    "
WRITES = [
    "lib.ST = 5.0",
    "lib.\N{FULLWIDTH LATIN CAPITAL LETTER S}T = 5.0",
    "lib.\N{FULLWIDTH LATIN CAPITAL LETTER W}[0] = 5.0",
    "lib.\N{MATHEMATICAL BOLD CAPITAL W}[0] = 5.0",
    "lib.\\\n    ST = 5.0",
    "lib.ST\\\n    = 5.0",
    "getattr(lib, '\\x57')[0] = 5.0",
    "getattr(lib, '\\127')[0] = 5.0",
    "getattr(lib, '\\u0057')[0] = 5.0",
    "getattr(lib, '\\N{LATIN CAPITAL LETTER W}')[0] = 5.0",
    "setattr(lib, 'S' 'T', 5.0)",
    "mock.patch('lib.S' 'T', 5.0).start()",
    "mock.patch('lib' '' r'.' # here\n        'ST', 5.0).start()",
    "mock.patch('lib.S\\\nT', 5.0).start()",
    "mock.patch('''lib.S''' \"T\", 5.0).start()",
]


def _codes(folder: Path, name: str, content: bytes) -> set[str]:
    (folder / "lib.py").write_text(LIBRARY, encoding="utf-8")
    (folder / name).write_bytes(content)
    return {each.code for each in check_paths([folder]).diagnostics}


@pytest.mark.parametrize("write", WRITES)
def test_a_write_is_found(tmp_path: Path, write: str) -> None:
    assert _codes(tmp_path, "other.py", (HEAD + write + "\n").encode()) == {"PSC206"}


@pytest.mark.parametrize(
    "content",
    [
        b"# coding: utf-7\nimport lib\nlib.+AFc-[0] = 5.0\n",
        b"# coding: utf-7\nimport lib\nlib.+AFM-T = 5.0\n",
        b"# coding: unicode_escape\nimport lib\nlib.\\x57[0] = 5.0\n",
        b"import\\\r\nlib\r\nlib.\\\r\nST = 5.0\r\n",
    ],
)
def test_a_write_is_found_in_every_encoding(tmp_path: Path, content: bytes) -> None:
    compile(content, "other.py", "exec")
    assert _codes(tmp_path, "other.py", content) == {"PSC206"}


def test_a_write_is_found_in_a_cell_whose_letters_are_escaped(tmp_path: Path) -> None:
    document = notebook("import lib\nlib.QQ[0] = 5.0").replace("QQ", "\\u0057")
    assert _codes(tmp_path, "other.ipynb", document.encode()) == {"PSC206"}


def test_what_is_written_plainly_is_searched_as_it_is() -> None:
    text = 'x = {"a": "b", "c": \'\'}\ny = """A text.\n"""\nz = ("one, ", "two")\n'
    assert searchable(text) == text


@pytest.mark.parametrize(
    "unit", ["'a'", "a'\n", "r'", "'#", "\\x41", "\\\n", "\\N{", "\N{ANGSTROM SIGN}"]
)
def test_long_texts_are_searched_soon(unit: str) -> None:
    assert len(searchable(unit * 200_000)) < 10_000_000
