"""What other files write of a captured value, and the chain of calls to an impure act."""

from __future__ import annotations

from pathlib import Path

import pytest

from pscdsl._src.checker.check import check_paths
from pscdsl._src.checker.report.terminal import render_text
from pscdsl._src.checker.results import CheckResult
from pscdsl._src.frontend.text.display import Sources

HEAD = "import numpy as np\nimport pscdsl as psc\nfrom pscdsl import f32\n\n"
KERNEL = '@psc.kernel\ndef f(x: f32["n"]) -> f32["n"]:\n    return '
LIB = """import numpy as np

X = 1.0
LIST = [1.0]
TABLE = np.ones(3, np.float32)
MODE = "a"


def act(x):
    return 2 * x


class C:
    scale = 2.0
    items = [1.0]
"""


def check(folder: Path, files: dict[str, str], *given: str) -> CheckResult:
    """Write the files and check those that are given, or all."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return check_paths([folder / name for name in given] or [folder])


def codes(result: CheckResult) -> list[str]:
    """The codes of the errors."""
    return [d.code for d in result.diagnostics if d.severity.value == "error"]


def main(imports: str, value: str) -> str:
    """A file with a kernel that uses a value."""
    return f"{HEAD}{imports}\n\n\n{KERNEL}{value}\n"


WRITES = [
    ("import lib\nlib.X = 2.0\n", "x * lib.X"),
    ("import lib\n\n\ndef go():\n    lib.X = 2.0\n", "x * lib.X"),
    ("import lib as other\n\n\ndef go():\n    other.X += 1\n", "x * lib.X"),
    ("import lib\n\n\ndef go():\n    lib.X, y = 2.0, 3.0\n", "x * lib.X"),
    ("import lib\n\n\ndef go():\n    for lib.X in range(3):\n        pass\n", "x * lib.X"),
    ("import lib\n\n\ndef go():\n    del lib.X\n", "x * lib.X"),
    ("import lib\nsetattr(lib, 'X', 2.0)\n", "x * lib.X"),
    ("import lib\nvars(lib)['X'] = 2.0\n", "x * lib.X"),
    ("import lib\nvars(lib).update(X=2.0)\n", "x * lib.X"),
    ("import lib\nlib.__dict__['X'] = 2.0\n", "x * lib.X"),
    ("import lib\nlib.__setattr__('X', 2.0)\n", "x * lib.X"),
    ("import sys\nsys.modules['lib'].X = 2.0\n", "x * lib.X"),
    ("import importlib\nimportlib.import_module('lib').X = 2.0\n", "x * lib.X"),
    ("import lib\n\n\ndef go():\n    lib.MODE = 'b'\n", "x if lib.MODE == 'a' else 2 * x"),
    ("import lib\n\n\ndef go():\n    lib.act = abs\n", "lib.act(x)"),
    ("import lib\nlib.LIST.append(2.0)\n", "x * lib.LIST[0]"),
    ("from lib import LIST\nLIST.append(2.0)\n", "x * lib.LIST[0]"),
    ("from lib import LIST as mine\nyours = mine\nyours.append(2.0)\n", "x * lib.LIST[0]"),
    ("from lib import *\nLIST.append(2.0)\n", "x * lib.LIST[0]"),
    ("import lib\nlib.TABLE[0] = 2.0\n", "x * lib.TABLE[0]"),
    ("import lib\nview = lib.TABLE[1:].T\nview += 1\n", "x * lib.TABLE[0]"),
    ("import lib\nimport numpy as np\nnp.exp(lib.TABLE, out=lib.TABLE)\n", "x * lib.TABLE[0]"),
    ("import lib\nlib.C.scale = 3.0\n", "x * lib.C.scale"),
    ("from lib import C\n\n\ndef go():\n    C.scale += 1\n", "x * lib.C.scale"),
    ("from lib import C\nC.items.append(1.0)\n", "x * lib.C.items[0]"),
    ("from lib import C\nsetattr(C, 'scale', 3.0)\n", "x * lib.C.scale"),
]


@pytest.mark.parametrize(("writer", "value"), WRITES)
def test_what_another_file_writes_is_refused(tmp_path: Path, writer: str, value: str) -> None:
    files = {"lib.py": LIB, "writer.py": writer, "main.py": main("import lib", value)}
    assert codes(check(tmp_path, files)) == ["PSC206"]


@pytest.mark.parametrize(("writer", "value"), WRITES)
def test_it_is_accepted_without_the_other_file(tmp_path: Path, writer: str, value: str) -> None:
    del writer
    files = {"lib.py": LIB, "main.py": main("import lib", value)}
    assert codes(check(tmp_path, files)) == []


READS = [
    "import lib\n\n\ndef patch(module):\n    module.X = 2.0\n\n\npatch(lib)\n",
    "import lib\n\n\ndef fill(t):\n    t[0] = 1\n\n\nfill(lib.TABLE)\n",
    "import lib\nimport skimage\nskimage.Model().fit(lib.TABLE)\n",
    "from skimage import *\nimport lib\nfit(lib.TABLE)\n",
    "import lib\n\n\ndef go(name):\n    setattr(lib, name, 1.0)\n",
    "import lib\n\n\ndef go(names):\n    vars(lib).update(names)\n",
    "import lib\n\n\ndef go(lib):\n    lib.X = 2.0\n    lib.LIST.append(2.0)\n",
    "import lib\nLIST = lib.LIST if lib.X else []\nLIST.append(2.0)\n",
    "import lib\nw = lib.TABLE[[0, 1]]\nw[0] = 1\nlib.TABLE.T.copy()[0] = 2\n",
    "import lib\nprint(lib.X, lib.LIST, lib.TABLE, lib.MODE, lib.act(1), lib.C.scale)\n",
    "import lib\nX = lib.X\nX += 1\nLIST = list(lib.LIST)\nLIST.append(1.0)\n",
    "import other as lib\nlib.X = 1\nlib.LIST.append(2.0)\nlib.TABLE[0] = 1\n",
    "class Lib:\n    pass\n\n\nlib = Lib()\nlib.X = 1\nlib.LIST = []\nlib.LIST.append(2)\n",
    "import lib\nimport numpy as np\nnp.testing.assert_allclose(lib.TABLE, 1)\n",
    "import lib\nw = lib.TABLE * 2\nw[0] = 1\n",
    "import lib\n\n\nclass Box:\n    def __init__(self):\n        self.X, self.LIST = 1, []\n"
    "        self.LIST.append(lib.X)\n",
    "import lib\npicked = lib.LIST[[0, 1]]\npicked()\npart = lib.LIST[1:]\npart()\n",
    "import lib\nfor index, LIST in enumerate():\n    LIST.append(lib.LIST)\n",
]


@pytest.mark.parametrize("reader", READS)
def test_what_is_no_certain_write_is_accepted(tmp_path: Path, reader: str) -> None:
    value = "x * lib.X * lib.LIST[0] * lib.TABLE[0] * lib.C.scale * lib.C.items[0] + lib.act(x)"
    files = {"lib.py": LIB, "reader.py": reader, "main.py": main("import lib", value)}
    assert codes(check(tmp_path, files)) == []


IMPORTS = [
    ("from lib import LIST", "x * LIST[0]"),
    ("from lib import LIST as names", "x * names[0]"),
    ("from lib import *", "x * LIST[0]"),
    ("import lib as other", "x * other.LIST[0]"),
    ("from relay import LIST", "x * LIST[0]"),
    ("import relay", "x * relay.lib.LIST[0]"),
    ("from relay import first", "x * first"),
]


@pytest.mark.parametrize(("imports", "value"), IMPORTS)
def test_however_the_name_is_reached(tmp_path: Path, imports: str, value: str) -> None:
    relay = "import lib\nfrom lib import LIST\nfirst = LIST[0]\n"
    files = {"lib.py": LIB, "relay.py": relay, "main.py": main(imports, value)}
    assert codes(check(tmp_path, files)) == []
    files["writer.py"] = "import relay\nrelay.LIST.append(2.0)\n"
    assert codes(check(tmp_path, files)) == ["PSC206"]


def test_packages_and_relative_imports(tmp_path: Path) -> None:
    files = {
        "pkg/__init__.py": "from . import lib\nfrom .lib import LIST\n",
        "pkg/lib.py": LIB,
        "pkg/main.py": main("from . import lib", "x * lib.LIST[0] * lib.X"),
    }
    assert codes(check(tmp_path, files)) == []
    for writer in (
        "from .lib import LIST\nLIST.append(1.0)\n",
        "from . import lib\nlib.X = 2.0\n",
        "import pkg.lib\npkg.lib.X = 2.0\n",
        "import pkg\npkg.lib.LIST.append(1.0)\n",
        "import pkg\npkg.LIST.append(1.0)\n",
        "from pkg import lib as deep\ndeep.LIST.clear()\n",
    ):
        assert codes(check(tmp_path, {"pkg/writer.py": writer})) == ["PSC206"], writer


def test_an_impure_helper_is_told_with_the_chain_of_calls(tmp_path: Path) -> None:
    files = {
        "deep.py": "import time\n\n\ndef stamp(x):\n    return x * time.time()\n",
        "middle.py": "from deep import stamp as mark\n\n\ndef scaled(x):\n    return mark(x)\n",
        "main.py": main("import middle", "middle.scaled(x)"),
    }
    result = check(tmp_path, files)
    (found,) = result.diagnostics
    places = [(Path(s.path).name, s.line) for s in found.span.frames()]
    assert places == [("deep.py", 5), ("middle.py", 5), ("main.py", 10)]
    text = render_text(result.diagnostics, Sources({}))
    order = [text.index(name) for name in ("deep.py:5", "middle.py:5", "main.py:10")]
    assert order == sorted(order)


def test_a_closure_that_was_made_outside_is_told_with_its_call(tmp_path: Path) -> None:
    maker = "def make():\n    def say(x):\n        print(x)\n        return x\n    return say\n\n\n"
    files = {"main.py": HEAD + maker + "say = make()\n\n\n" + KERNEL + "say(x)\n"}
    (found,) = check(tmp_path, files).diagnostics
    assert [s.line for s in found.span.frames()] == [7, 17]


def test_a_file_that_is_no_python_writes_nothing(tmp_path: Path) -> None:
    files = {"lib.py": LIB, "broken.py": "lib.X = (", "main.py": main("import lib", "x * lib.X")}
    assert codes(check(tmp_path, files)) == ["PSC100"]


def test_many_files_that_use_each_other_take_linear_time(tmp_path: Path) -> None:
    count = 150
    files = {"lib.py": LIB}
    for number in range(count):
        helper = f"def helper{number}(t, f):\n    return f(t) if t is not None else t\n"
        use = f"import lib\nimport m{(number + 1) % count} as other\nTABLE = lib.TABLE.copy()\n"
        call = f"VALUE = other.helper{(number + 1) % count}(TABLE, len)\n"
        files[f"m{number}.py"] = f"{use}{helper}{call}"
    files["main.py"] = main("import lib", "x * lib.TABLE[0]")
    assert codes(check(tmp_path, files)) == []


PATCHES = [
    "def test(monkeypatch):\n    monkeypatch.setattr('lib.X', 5.0)\n",
    "import lib\n\n\ndef test(monkeypatch):\n    monkeypatch.setattr(lib, 'X', 5.0)\n",
    "import lib\n\n\ndef test(monkeypatch):\n    with monkeypatch.context() as m:\n"
    "        m.setattr(lib, 'X', 5.0)\n",
    "from unittest import mock\n\n\n@mock.patch('lib.X', 5.0)\ndef test():\n    pass\n",
    "import lib\nfrom unittest.mock import patch\n\nwith patch.object(lib, 'X', 5.0):\n    pass\n",
]


@pytest.mark.parametrize("patch", PATCHES)
def test_what_tests_patch_is_refused(tmp_path: Path, patch: str) -> None:
    files = {"lib.py": LIB, "test_lib.py": patch, "main.py": main("import lib", "x * lib.X")}
    assert codes(check(tmp_path, files)) == ["PSC206"]


def test_a_kernel_that_declares_to_write_is_given_what_another_captures(tmp_path: Path) -> None:
    kernel = '@psc.kernel(writes="out")\ndef fill(x: f32, out: f32["3"]) -> None:\n    out[:] = x\n'
    call = "from fills import fill\nimport lib\n\n\ndef go():\n    fill({})\n"
    files = {"lib.py": LIB, "fills.py": HEAD + kernel, "go.py": call.format("1.0, lib.TABLE")}
    files["main.py"] = main("import lib", "x * lib.TABLE[0]")
    assert codes(check(tmp_path, files)) == ["PSC206"]
    files["go.py"] = call.format("1.0, out=lib.TABLE")
    assert codes(check(tmp_path, files)) == ["PSC206"]
    files["go.py"] = call.format("lib.TABLE[0], lib.TABLE.copy()")
    assert codes(check(tmp_path, files)) == []


def test_modules_of_one_name_are_told_apart(tmp_path: Path) -> None:
    files = {"a/lib.py": LIB, "b/lib.py": LIB, "b/writer.py": "import lib\nlib.X = 2.0\n"}
    files["a/main.py"] = main("import lib", "x * lib.X")
    assert codes(check(tmp_path, files)) == []
    assert codes(check(tmp_path, {"a/writer.py": files["b/writer.py"]})) == ["PSC206"]
