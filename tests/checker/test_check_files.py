"""Checks of several files: imports between them are followed by their text, nothing is imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from pscdsl._src.checker.check import check_paths
from pscdsl._src.checker.results import CheckResult

HEAD = "import pscdsl as psc\nfrom pscdsl import f32\n\n"
KERNEL = '@psc.kernel\ndef f(x: f32["n"]) -> f32["n"]:\n    return '


def check(folder: Path, files: dict[str, str], *given: str) -> CheckResult:
    """Write the files and check those that are given, or all."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return check_paths([folder / name for name in given] or [folder])


def found(result: CheckResult) -> list[tuple[str, str, int, int]]:
    """Code, file, line and column of the findings."""
    return [
        (d.code, Path(d.span.path).name, d.span.line, d.span.column) for d in result.diagnostics
    ]


def test_a_helper_of_another_file_is_read_at_its_call(tmp_path: Path) -> None:
    files = {
        "helpers.py": "def double(x):\n    return 2 * x\n",
        "main.py": HEAD + "from helpers import double\n\n" + KERNEL + "double(x)\n",
    }
    assert found(check(tmp_path, files, "main.py")) == []


def test_an_impure_helper_of_another_file_is_told_with_the_call(tmp_path: Path) -> None:
    files = {
        "helpers.py": "def say(x):\n    print(x)\n    return x\n",
        "main.py": HEAD + "import helpers\n\n" + KERNEL + "helpers.say(x)\n",
    }
    result = check(tmp_path, files, "main.py")
    assert found(result) == [("PSC201", "helpers.py", 2, 5)]
    call = result.diagnostics[0].span.call_site
    assert call is not None
    assert (Path(call.path).name, call.line, call.column) == ("main.py", 8, 12)


def test_a_helper_that_two_files_call_is_reported_once(tmp_path: Path) -> None:
    main = HEAD + "from helpers import say\n\n" + KERNEL + "say(x)\n"
    files = {
        "helpers.py": "def say(x):\n    print(x)\n    return x\n",
        "a.py": main,
        "b.py": main,
    }
    assert found(check(tmp_path, files)) == [("PSC201", "helpers.py", 2, 5)]


def test_a_kernel_of_another_file_is_checked_with_its_own_file(tmp_path: Path) -> None:
    files = {
        "lib.py": HEAD + KERNEL + "x + nothing\n",
        "main.py": HEAD + "import lib\n\n" + KERNEL + "lib.f(x)\n",
    }
    assert found(check(tmp_path, files)) == [("PSC102", "lib.py", 6, 16)]


def test_a_call_of_a_kernel_of_another_file_is_checked(tmp_path: Path) -> None:
    files = {
        "lib.py": HEAD
        + '@psc.kernel\ndef dot(x: f32["n"], y: f32["n"]) -> f32:\n    return x @ y\n',
        "main.py": HEAD
        + "from lib import dot\n\n"
        + '@psc.kernel\ndef f(x: f32["n"], y: f32["m"]) -> f32:\n    return dot(x, y)\n',
    }
    assert found(check(tmp_path, files, "main.py")) == [("PSC302", "main.py", 8, 12)]


def test_constants_and_records_of_another_file(tmp_path: Path) -> None:
    files = {
        "lib.py": HEAD + 'SCALE = 2.0\n\n\nclass P(psc.Record):\n    w: f32["n"]\n',
        "main.py": HEAD
        + "import lib\nfrom lib import P\n\n"
        + '@psc.kernel\ndef f(p: P, q: lib.P) -> f32["n"]:\n    return lib.SCALE * (p.w + q.w)\n',
    }
    assert found(check(tmp_path, files, "main.py")) == []


def test_a_list_that_another_file_writes_is_no_constant(tmp_path: Path) -> None:
    files = {
        "lib.py": "SCALES = [1.0]\n",
        "other.py": "import lib\n\nlib.SCALES.append(2.0)\n",
        "main.py": HEAD + "from lib import SCALES\n\n" + KERNEL + "x * SCALES[0]\n",
    }
    assert [code for code, *_ in found(check(tmp_path, files))] == ["PSC206"]


def test_a_list_that_the_importing_file_writes_is_no_constant(tmp_path: Path) -> None:
    files = {
        "lib.py": "SCALES = [1.0]\n",
        "main.py": HEAD
        + "from lib import SCALES\n\nSCALES.append(2.0)\n\n"
        + KERNEL
        + "x * SCALES[0]\n",
    }
    assert [code for code, *_ in found(check(tmp_path, files))] == ["PSC206"]


PACKAGE = {
    "pkg/__init__.py": "from .ops import double\nfrom . import ops\n",
    "pkg/ops.py": "from .deep.more import half\n\n\ndef double(x):\n    return 2 * x\n",
    "pkg/deep/__init__.py": "",
    "pkg/deep/more.py": "from ..ops import double\n\n\ndef half(x):\n    return double(x) / 4\n",
}


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        ("import pkg", "pkg.double(x)"),
        ("import pkg.ops", "pkg.ops.double(x)"),
        ("import pkg.ops as o", "o.half(x)"),
        ("from pkg import double", "double(x)"),
        ("from pkg import ops", "ops.half(x)"),
        ("from pkg.deep.more import half", "half(x)"),
        ("from pkg.deep import more", "more.half(x)"),
        ("from pkg.ops import *", "double(x) + half(x)"),
    ],
)
def test_packages(tmp_path: Path, imports: str, call: str) -> None:
    files = {**PACKAGE, "main.py": HEAD + imports + "\n\n" + KERNEL + call + "\n"}
    assert found(check(tmp_path, files, "main.py")) == []


def test_a_relative_import_inside_a_package(tmp_path: Path) -> None:
    files = {
        **PACKAGE,
        "pkg/kernels.py": HEAD + "from .deep.more import half\n\n" + KERNEL + "half(x)\n",
    }
    assert found(check(tmp_path, files, "pkg/kernels.py")) == []


def test_files_that_import_each_other(tmp_path: Path) -> None:
    files = {
        "a.py": HEAD + "import b\n\n\ndef one(x):\n    return x + 1\n\n\n" + KERNEL + "b.two(x)\n",
        "b.py": "import a\n\n\ndef two(x):\n    return a.one(x) + 1\n",
    }
    assert found(check(tmp_path, files)) == []


def test_constants_that_need_each_other(tmp_path: Path) -> None:
    files = {
        "a.py": HEAD + "import b\n\nN = b.M + 1\n\n\n" + KERNEL + "x * N\n",
        "b.py": "import a\n\nM = a.N + 1\n",
    }
    codes = {code for code, *_ in found(check(tmp_path, files))}
    assert codes
    assert "PSC999" not in codes


def test_a_name_that_the_other_file_has_not(tmp_path: Path) -> None:
    files = {
        "helpers.py": "def double(x):\n    return 2 * x\n",
        "main.py": HEAD + "import helpers\n\n" + KERNEL + "helpers.triple(x)\n",
        "other.py": HEAD + "from helpers import triple\n\n" + KERNEL + "triple(x)\n",
    }
    assert found(check(tmp_path, files, "main.py")) == [("PSC103", "main.py", 8, 12)]
    assert len(found(check(tmp_path, {}, "other.py"))) == 1


def test_a_file_that_is_not_python(tmp_path: Path) -> None:
    files = {
        "broken.py": "def (",
        "main.py": HEAD + "import broken\n\n" + KERNEL + "broken.g(x)\n",
    }
    result = found(check(tmp_path, files))
    assert ("PSC100", "broken.py", 1, 5) in result
    assert {code for code, *_ in result} <= {"PSC100", "PSC103", "PSC910"}


def test_the_library_may_be_used(tmp_path: Path) -> None:
    files = {
        "main.py": HEAD + "from pscdsl.stdlib.activations import relu\n\n" + KERNEL + "relu(x)\n"
    }
    assert found(check(tmp_path, files, "main.py")) == []


def test_nothing_is_run(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    bad = f"open({str(trace)!r}, 'w').write('run')\n"
    files = {
        "helpers.py": bad + "def double(x):\n    return 2 * x\n",
        "main.py": HEAD + bad + "from helpers import double\n\n" + KERNEL + "double(x)\n",
    }
    assert found(check(tmp_path, files)) == []
    assert not trace.exists()


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.py").write_text("def double(x):\n    return 2 * x\n", encoding="utf-8")
    folder = tmp_path / "inside"
    folder.mkdir()
    (folder / "secret.py").symlink_to(outside / "secret.py")
    main = HEAD + "from secret import double\n\n" + KERNEL + "double(x)\n"
    assert found(check(folder, {"main.py": main}, "main.py")) == [("PSC910", "main.py", 8, 12)]


@pytest.mark.parametrize("other", ["S = 2\n", "from .lower import *\nS = 2\n"])
def test_a_captured_array_beside_names_that_are_taken_together(tmp_path: Path, other: str) -> None:
    body = "TABLE = np.ones(3, np.float32)\n" + KERNEL.replace('"n"', '"3"') + "x * TABLE * S\n"
    head = "import numpy as np\n" + HEAD
    files = {
        "pkg/__init__.py": "",
        "pkg/lower.py": "from .upper import *\n",
        "pkg/upper.py": other,
        "pkg/main.py": head + "from .upper import *\n\n" + body,
    }
    assert found(check(tmp_path, files, "pkg/main.py")) == []
    files["pkg/lower.py"] = "import numpy as np\n\nTABLE = np.ones(3, np.float32)\n"
    shadowed = found(check(tmp_path, files, "pkg/main.py"))
    assert bool(shadowed) == ("lower" in other)  # of two arrays it is not said which is meant
