"""Kernels, records and enums mean the same wherever Python keeps their text."""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl._src.frontend.text import code_texts
from tests.support.python_places import (
    CELLS,
    PROGRAM,
    at_prompt,
    in_cells,
    in_command,
    in_file,
    prompt_keeps_text,
    python,
    results,
)

HEAD = "import numpy as np\nimport pscdsl as psc\nfrom pscdsl import f32\n"
KERNEL = "@psc.kernel\ndef twice(x: f32['n']) -> f32['n']:\n    return x * 2\n"
CALL = "twice(np.ones(2, np.float32))\n"
WITHOUT = "error[PSC904]: the source of `twice` cannot be found"


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the program prints as a file."""
    return in_file(PROGRAM, tmp_path_factory.mktemp("file"))


def test_in_a_file(expected: str) -> None:
    assert results(expected) == [
        "RESULT [ 3.5 13.5 23.5] [31.5 34. ]",
        "RESULT [36. 40.] layer(p: Layer, x: f32[n d]) -> f32[n]",
        "RESULT Layer(w=pscdsl.Array([10., 12.], dtype=float32), "
        "b=pscdsl.Array(3., dtype=float32))",
        "RESULT [ 3.5 13.5 23.5] [ 300. 1300. 2300.]",
    ]
    assert "of another class `Layer`, as it was defined before or after" in expected
    assert_places(expected, r"program\.py:\d+")


def assert_places(output: str, place: str) -> None:
    """Each finding points at its text."""
    assert re.search(rf"error\[PSC300\][^\n]*\n *┌─ {place}:12\n", output)
    assert re.search(r"return x \+ p\.first\n *│ +\^{11} axis -1: d is not n", output)
    assert re.search(rf"error\[PSC104\][^\n]*\n *┌─ {place}:17\n", output)
    assert re.search(r'w: f32\["d d \+"\]\n *│ +\^\n', output)
    assert "Traceback" not in output


def test_by_command(expected: str, tmp_path: Path) -> None:
    found = in_command(PROGRAM, tmp_path)
    assert results(found) == results(expected)
    assert_places(found, r"<string>:\d+")


def test_in_cells(expected: str, tmp_path: Path) -> None:
    found = in_cells(CELLS, tmp_path)
    assert results(found) == results(expected)
    assert "of another class `Layer`" in found
    assert_places(found, r"In\[\d+\]:\d+")


def test_a_mistake_and_a_reload_in_cells(tmp_path: Path) -> None:
    text = HEAD + KERNEL
    (tmp_path / "module.py").write_text(text, encoding="utf-8")
    changed = text.replace("x * 2", "x * 30")
    cells = [
        "import numpy as np\nimport module\n",
        "print('RESULT', module.twice(np.ones(2, np.float32)))\n",
        f"open('module.py', 'w').write({changed!r})\nimport importlib\nimportlib.reload(module)\n",
        "print('RESULT', module.twice(np.ones(2, np.float32)))\n",
        HEAD + KERNEL.replace("x * 2", "x * y") + CALL,
        KERNEL + "print('RESULT', " + CALL.strip() + ")\n",
    ]
    found = in_cells(cells, tmp_path)
    assert results(found) == ["RESULT [2. 2.]", "RESULT [30. 30.]", "RESULT [2. 2.]"]
    # The traceback of the mistake: the cell, and nothing of ours.
    shown = found[found.index("Traceback (most recent call last)") :]
    assert "error[PSC102]: `y` is not defined" in shown
    assert re.findall(r"^(?:File|Cell) [^\n,:]*", shown, re.MULTILINE) == ["Cell In[5]"]


def test_at_the_prompt(expected: str) -> None:
    found = at_prompt(CELLS) if prompt_keeps_text() else at_prompt([HEAD, KERNEL, CALL])
    if prompt_keeps_text():
        assert results(found) == results(expected)
        assert_places(found, r"<python-input-\d+>:\d+")
    else:
        assert WITHOUT in found
        assert "prompt keeps no text before Python 3.13: define it in a file, in IPython" in found
        assert "pscdsl/" not in found.partition("Traceback")[2]


def test_where_no_text_is_kept() -> None:
    found = python(stdin=HEAD + KERNEL + CALL)
    assert WITHOUT in found
    assert "keeps no text of what it reads from standard input: put the program into" in found
    namespace: dict[str, Any] = {}
    exec(HEAD + KERNEL, namespace)
    with pytest.raises(psc.CheckError, match=r"no text of what `exec` or `eval` runs: define it"):
        namespace["twice"](np.ones(2, np.float32))


def test_a_command_and_its_options() -> None:
    # Code by `exec` has the same name as the text of `-c`, and is not taken for it.
    others = "exec(compile('''" + KERNEL.replace("x * 2", "x * 3") + "''', '<string>', 'exec'))\n"
    text = HEAD + KERNEL + f"print({CALL.strip()})\n" + others + CALL
    found = python("-X", "dev", "-W", "ignore", "-Buc", text, "-c", "more")
    assert "[2. 2.]" in found
    assert WITHOUT in found
    assert "keeps no text of what `exec` or `eval` runs: define it in a file" in found


@pytest.mark.skipif(sys.version_info < (3, 14), reason="a command is taken as it is")
def test_an_indented_command() -> None:
    text = HEAD + KERNEL + f"\nprint({CALL.strip()})\n \n'''\n a\n'''"
    assert python("-c", textwrap.indent(text, "  ")) == "[2. 2.]\n"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["-c", "x"], "x\n"),
        (["-cx"], "x\n"),
        (["-c", "\n  x"], "\nx\n" if sys.version_info >= (3, 14) else "\n  x\n"),
        (["-Bc", "x", "-c", "y"], "x\n"),
        (["-W", "ignore", "-c", "x"], "x\n"),
        (["-Wignore", "-c", "x"], "x\n"),
        (["-Xutf8", "-uc", "x"], "x\n"),
        (["-X", "dev", "-OOcx"], "x\n"),
        (["--check-hash-based-pycs", "always", "-c", "x"], "x\n"),
        (["-W", "-c", "-c", "x"], "x\n"),
        (["-c"], None),
        (["file.py", "-c", "x"], None),
        (["-m", "module", "-c", "x"], None),
        (["-Bm", "module", "-c", "x"], None),
        (["-", "-c", "x"], None),
        (["-i"], None),
        ([], None),
    ],
)
def test_which_word_is_the_command(
    words: list[str], text: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["python", *words])
    assert code_texts.command() == text


def test_in_doctests_and_under_pytest(tmp_path: Path) -> None:
    lines = (HEAD + "class P(psc.Record):\n    w: f32['n']\n").splitlines()
    kernel = "@psc.kernel\ndef twice(p: P) -> f32['n']:\n    return p.w * 2".splitlines()
    shown = [
        *[f">>> {line}" if not line.startswith(" ") else f"... {line}" for line in lines],
        "...",
        *[f"{'>>>' if at == 0 else '...'} {line}" for at, line in enumerate(kernel)],
        "...",
        ">>> twice(P(np.ones(2, np.float32)))",
        "pscdsl.Array([2., 2.], dtype=float32)",
    ]
    (tmp_path / "page.md").write_text("\n".join(shown) + "\n", encoding="utf-8")
    assert python("-m", "doctest", "page.md", folder=tmp_path).strip() == ""
    test = HEAD + KERNEL + "def test_it():\n    assert twice(np.ones(2, np.float32))[0] == 3\n"
    (tmp_path / "test_it.py").write_text(test, encoding="utf-8")
    alone = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"
    options = ("-q", "-p", "no:cacheprovider", "test_it.py")
    found = python("-m", "pytest", *options, folder=tmp_path, **{alone: "1"})
    assert "1 failed" in found
    assert "assert np.float32(2.0) == 3" in found


CLASSES = (
    "import sys\n"
    "if len(sys.argv) > 1:\n"
    "    class P(psc.Record):\n"
    "        w: f32['n']\n"
    "        def of(self): return self.w * 2\n"
    "else:\n"
    "    class P(psc.Record):\n"
    "        w: f32['n']\n"
    "        def of(self): return self.w * 3\n"
    "def made(k):\n"
    "    class Q(psc.Record):\n"
    "        w: f32['n']\n"
    "        def of(self): return self.w * k\n"
    "    @psc.kernel\n"
    "    def f(q: Q) -> f32['n']: return q.of()\n"
    "    return f, Q\n"
    "@psc.kernel\n"
    "def g(p: P) -> f32['n']: return p.of()\n"
    "x = np.ones(1, np.float32)\n"
    "print('RESULT', g(P(x)), *[f(Q(x)) for f, Q in map(made, (4.0, 5.0))])\n"
)


ANNOTATED = """
from typing import Annotated, Literal, Optional

def first(k):
    class Q(psc.Record):
        w: f32['n']
        def of(self): return self.w * k
    Row, size = f32['n'], 'n'
    import pscdsl as local
    def helper(q: Q) -> Row: return q.of()
    @psc.kernel
    def f(
        q: Q, more: tuple[Q, ...], r: Row, s: f32[size], o: Q | None, p: Optional[Q],
        m: local.f32['n'], z: Annotated[Q, 3], how: local.Static[Literal['a', 'b']]
    ) -> Row:
        return helper(q) + more[0].of() + r + s + m + z.of()
    return f, Q

def second():
    class Q(psc.Record):
        w: f32['n']
    @psc.kernel
    def f(q: Q) -> f32['n']: return q.w * 100
    return f, Q

class P(psc.Record):
    w: f32['n']

@psc.kernel
def of_old(p: P) -> f32['n']: return p.w

of_old.signature  # from Python 3.14 on annotations mean what they do when they are first read
Old = P

class P(psc.Record):
    w: f32['n']

x = np.ones(1, np.float32)
f, Q = first(2.0)
g, R = second()
print('RESULT', f(Q(x), (Q(x),), x, x, Q(x), None, x, Q(x), 'a'), g(R(x)), of_old(Old(x)))
print(f.signature)
for kernel, wrong in ((g, Q), (of_old, P)):
    try:
        print(kernel(wrong(x)))
    except psc.ArgumentError as error:
        print('RESULT', 'of another class' in str(error))
"""


def test_classes_and_annotations_mean_what_they_did_where_they_stood(tmp_path: Path) -> None:
    (tmp_path / "classes.py").write_text(HEAD + CLASSES, encoding="utf-8")
    found = in_file(HEAD + ANNOTATED + "import classes\n", tmp_path)
    assert results(found) == [
        *("RESULT [9.] [100.] [1.]", "RESULT True", "RESULT True", "RESULT [3.] [4.] [5.]")
    ]
    assert (
        "f(q: Q, more: tuple[Q, ...], r: f32[n], s: f32[n], o: Q | None, p: Q | None, "
        "m: f32[n], z: Q, how: Static[Literal['a', 'b']]) -> f32[n]"
    ) in found


def test_without_the_new_prompt() -> None:
    if sys.version_info < (3, 13):
        pytest.skip("Python has one prompt")
    found = python("-i", "-q", stdin=f"{HEAD}{KERNEL}\nprint('RESULT', {CALL.strip()})\n")
    assert "RESULT [2. 2.]" in found
