"""Each way to write what a kernel captures is refused; programs without a writer are not."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from pathlib import Path

import pytest

from pscdsl._src.checker.check import check_paths, check_source
from tests.support.captured_ways import WRITERS, Way, program, ways, writes

SHARE = int(os.environ.get("CAPTURES_SHARE", "8"))
"""One of so many ways is tried; `make fuzz` tries each."""


@pytest.mark.parametrize("kind", ["array", "list", "name", "class"])
def test_every_way_to_write_is_refused(kind: str) -> None:
    found = [each for each in ways() if each.kind == kind]
    step = SHARE if kind == "array" else 1
    tried = [each for each in found[::step] if writes(each)]
    assert len(tried) > {"array": 2500 // step, "list": 60, "name": 35, "class": 17}[kind]
    accepted = [each.label for each in tried if _codes(each.text) != {"PSC206"}]
    assert not accepted


def _codes(text: str) -> set[str]:
    return {each.code for each in check_source(text, "way.py").diagnostics}


@pytest.mark.parametrize("value", ["W", "L[0]", "S", "C.r"])
def test_the_same_programs_without_a_writer_are_accepted(value: str) -> None:
    reads = "return W.sum() + W[0] + len(L) + L[0] + S + C.r, sorted(L), (W * 2).T, np.exp(W)"
    assert not _codes(program(reads, value))


@pytest.mark.parametrize("way", ["W", "L"])
def test_what_is_constant_may_go_anywhere(way: str) -> None:
    values = {"W": "np.ones(3, np.float32)", "L": "[1.0, 2.0]"}
    text = program(f"return same({way}), [{way}], globals()['{way}']", f"{way}[0]")
    text = text.replace(f"{way} = {values[way]}", f"{way} = psc.constant({values[way]})")
    assert not _codes(text)


@pytest.mark.parametrize(
    "text", ["repr(W)", 'f"{W!r}"', 'f"{W!a}"', '"%r" % W', "np.array_repr(W)"]
)
def test_a_repr_of_an_array_is_no_read(text: str) -> None:
    # `np.set_printoptions(override_repr=...)` hands the array to a function of the user's.
    assert _codes(program(f"return {text}", "W[0]")) == {"PSC206"}


@pytest.mark.parametrize("text", ["str(W)", 'f"{W} {W!s:>9}"', "print(W)", "repr(L)", "5 % W"])
def test_other_texts_are_reads(text: str) -> None:
    assert not _codes(program(f"return {text}", "W[0] * L[0]"))


LIBRARY = """\
import numpy as np
import pscdsl as psc
from pscdsl import f32

W = np.ones(3, np.float32)
V = np.full(3, 7, np.float32)
S = 1.0


@psc.kernel
def f(x: f32["3"]) -> f32["3"]:
    return x * W * S
"""
OTHER = """\
import builtins, contextlib, importlib, operator, sys
import numpy as np
from unittest import mock
"""
IMPORTS = {
    "from lib import W, V": "W",
    "from lib import W as R, V": "R",
    "from lib import *": "W",
    "import lib\nfrom lib import V": "lib.W",
    "import lib as z\nfrom lib import V": "z.W",
    "import lib\nfrom lib import V\nw = lib.W": "w",
    "import importlib\nfrom lib import V\nq = importlib.import_module('lib')": "q.W",
    "from lib import V, f": "f.__wrapped__.__globals__['W']",
    "from lib import V\n": "sys.modules['lib'].W",
    "import lib\nfrom lib import V\n": "getattr(lib, 'W')",
    "import lib\nfrom lib import V\n\n": "vars(lib)['W']",
    "import lib\nfrom lib import V\nname = 'W'": "getattr(lib, name)",
}
_FORMS = tuple(each for each in WRITERS if "Obj" not in each)
REBINDERS = [
    "import lib\ndef update():\n    lib.S = 5.0",
    "import lib\ndef update():\n    lib.S += 4.0",
    "import lib as z\ndef update():\n    z.S = 5.0",
    "import lib\ndef update():\n    setattr(lib, 'S', 5.0)",
    "import lib\ndef update(n='S'):\n    setattr(lib, n, 5.0)",
    "import lib\ndef update():\n    lib.__dict__['S'] = 5.0",
    "import lib\ndef update():\n    vars(lib).update(S=5.0)",
    "import lib\ndef update():\n    mock.patch('lib.S', 5.0).start()",
    "import lib\ndef update():\n    mock.patch.object(lib, 'S', 5.0).start()",
    "import lib\ndef update():\n    with mock.patch.dict(lib.__dict__, S=5.0):\n        pass",
    "def update():\n    sys.modules['lib'].S = 5.0",
    "def update():\n    importlib.import_module('lib').S = 5.0",
    "def update():\n    __import__('lib').S = 5.0",
    "import lib\ndef update():\n    for lib.S in [5.0]:\n        pass",
    "import lib\ndef update():\n    type(sys).__setattr__(lib, 'S', 5.0)",
    "import lib\ndef update():\n    exec('lib.S = 5.0')",
    "def test(monkeypatch):\n    monkeypatch.setattr('lib.S', 5.0)",
    "import lib\ndef test(monkeypatch):\n    monkeypatch.setattr(lib, 'S', 5.0)",
    "import lib\nL = [lib]\ndef update():\n    L[0].S = 5.0",
    "import lib\ndef g(m):\n    m.S = 5.0\ndef update():\n    g(lib)",
]


def _accepted(folder: Path, number: int, text: str) -> bool:
    place = folder / str(number)
    place.mkdir()
    (place / "lib.py").write_text(LIBRARY, encoding="utf-8")
    (place / "other.py").write_text(f"{OTHER}{text}\n", encoding="utf-8")
    found = {each.code for each in check_paths([place]).diagnostics}
    return found != {"PSC206"}


def _compiles(text: str) -> bool:
    try:
        compile(text, "other.py", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def test_every_way_to_write_from_another_file_is_refused(tmp_path: Path) -> None:
    programs = [
        f"{imports}\ndef update():\n    {writer.format(x=way)}"
        for (imports, way), writer in itertools.product(IMPORTS.items(), _FORMS)
    ]
    programs = [each for each in programs if _compiles(OTHER + each)]
    assert len(programs) > 380
    tried = [*programs[::SHARE], *REBINDERS]
    accepted = [each for number, each in enumerate(tried) if _accepted(tmp_path, number, each)]
    assert not accepted


def test_what_another_file_only_reads_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "lib.py").write_text(LIBRARY, encoding="utf-8")
    reads = "import lib\n\nprint(lib.W, lib.S, lib.f(lib.V))\n"
    (tmp_path / "other.py").write_text(OTHER + reads, encoding="utf-8")
    assert not check_paths([tmp_path]).diagnostics


def test_ways_are_of_all_kinds() -> None:
    counts = Counter(each.kind for each in ways())
    assert counts["array"] > 3000
    assert all(isinstance(each, Way) for each in itertools.islice(ways(), 3))


TABLES = """\
import numpy as np
import pscdsl as psc
from pscdsl import f32

KEPT = []
SHARED = np.ones(3, np.float32)


def table(n):
{body}


T = table(3)


@psc.kernel
def f(x: f32["3"]) -> f32["3"]:
    return x * T
"""


def _table(*lines: str) -> set[str]:
    return _codes(TABLES.format(body="".join(f"    {line}\n" for line in lines)))


@pytest.mark.parametrize(
    "lines",
    [
        ["return np.arange(n).astype(np.float32)"],
        ["t = np.zeros(n, np.float32)", "for i in range(n):", "    t[i] = i * i", "return t"],
        ["t = np.zeros(n, np.float32)", "t[:] = np.arange(n)", "return t"],
    ],
    ids=["returned", "filled", "stored"],
)
def test_a_table_that_a_function_makes_is_its_own(lines: list[str]) -> None:
    assert not _table(*lines)


@pytest.mark.parametrize("change", ["t *= 2", "t += np.arange(n)"])
def test_a_table_takes_no_in_place_operator(change: str) -> None:
    # These are followed in kernels; what is made outside of them is read only.
    assert _table("t = np.zeros(n, np.float32)", change, "return t") == {"PSC205"}


@pytest.mark.parametrize(
    "lines",
    [
        ["t = np.zeros(n, np.float32)", "KEPT.append(t)", "return t"],
        ["t = np.zeros(n, np.float32)", "u = t", "KEPT.append(u)", "return t"],
        [
            "t = np.zeros(n, np.float32)",
            "def write():",
            "    t[0] = 5",
            "KEPT.append(write)",
            "return t",
        ],
        ["t = np.zeros(n, np.float32)", "if n > 5:", "    t = SHARED", "return t"],
        ["t = SHARED[:]", "return t"],
        ["return SHARED"],
        ["return SHARED[:n]"],
        ["t = np.zeros(n, np.float32)", "KEPT.append([t])", "return t[:]"],
        ["t = np.zeros(n, np.float32)", "KEPT.append(t.T)", "return t"],
        ["global SHARED", "SHARED = np.zeros(n, np.float32)", "return SHARED"],
    ],
    ids=lambda lines: "; ".join(lines)[:50],
)
def test_a_table_that_somebody_else_has_is_not(lines: list[str]) -> None:
    assert "PSC206" in _table(*lines)
