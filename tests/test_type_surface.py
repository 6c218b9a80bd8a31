"""What pyright and mypy say of kernels: nothing, unless something is wrong."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import typing
from collections import defaultdict
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest
from pyrsistent import PRecord, field

import pscdsl as psc
from pscdsl import Float, Key, Static, f32, i32
from pscdsl.typing.notation import ShapeSyntaxError

KERNELS = Path(__file__).parent / "type_surface" / "kernels.py"
PACKAGE = Path(psc.__file__).parent
PATH = [] if "site-packages" in PACKAGE.parts else [str(PACKAGE.parent)]

UNANNOTATED = """\
# pyright: standard
import numpy as np
import pscdsl as psc
from pscdsl import f32


@psc.kernel
def k(x: f32["t n"], h0: f32["n"]) -> tuple[f32["n"], f32["t n"]]:
    def step(h, x):
        h = np.tanh(h + x)
        return h, h

    def double(v):
        return v * 2

    h, hs = psc.scan(step, h0, x)
    y = psc.map(double, hs)
    z = psc.cond(h.sum() > 0, double, lambda v: v, h)
    w = psc.fori_loop(0, 3, lambda i, v: double(v), np.zeros(3))
    u = psc.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, double(s[1])), (0, z))
    s = psc.switch(u[0], [double, lambda v: v], w)
    return s[0] + y[0] + u[1].sum(), hs
"""

WRONG = """\
import numpy as np
import pscdsl as psc
from pscdsl import f32
from pscdsl.stdlib import newton


class Params(psc.Record):
    w: f32["h h"]


@psc.kernel
def k(p: Params, x: f32["n"], m: psc.Static[int] = 1) -> f32:
    return x.nothing  # both


def integer(p: Params) -> int:
    return p.w  # both


def single(x: f32["n"]) -> f32["n"]:
    return x, x  # pyright


p = Params(w=np.ones(2))
Params(v=np.ones(2))  # both
p.w = np.ones(3)  # both
k(np.ones(2), np.ones(2))  # both
k(p)  # both
k(p, np.ones(2), z=1)  # both
k(p, np.ones(2), m="one")  # both
k(p, None)  # pyright
k(p, "text")  # pyright
k(p, np.ones(2)).nothing  # both
psc.update(p.w, 0, 0, combine="divide")  # both


def lowest(p: Params) -> f32:
    found = newton.newton_cg(lambda p: np.sum(p.w * p.w), p)
    return found.params.w + found.params.nothing  # both
"""

Found = dict[str, set[int]]


def _write(folder: Path) -> list[str]:
    texts = {"kernels": KERNELS.read_text("utf-8"), "unannotated": UNANNOTATED, "wrong": WRONG}
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return [f"{name}.py" for name in texts]


def _expected(checker: str) -> set[int]:
    lines = enumerate(WRONG.splitlines(), 1)
    return {number for number, line in lines if line.endswith((f"# {checker}", "# both"))}


def _run(module: str, *arguments: str, folder: Path) -> str:
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout, done.stderr
    return done.stdout


def test_pyright(tmp_path: Path) -> None:
    pytest.importorskip("pyright")
    include = _write(tmp_path)
    settings = {"typeCheckingMode": "strict", "extraPaths": PATH, "include": include}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    out = _run("pyright", "--outputjson", "--pythonpath", sys.executable, folder=tmp_path)
    report = json.loads(out)
    assert report["summary"]["filesAnalyzed"] == len(include)
    found: Found = defaultdict(set)
    for each in report["generalDiagnostics"]:
        found[Path(each["file"]).name].add(each["range"]["start"]["line"] + 1)
    assert found == {"wrong.py": _expected("pyright")}, out


def test_mypy(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    include = _write(tmp_path)
    (tmp_path / "mypy.ini").write_text(
        f"[mypy]\nplugins = {PACKAGE / 'mypy_plugin.py'}\nmypy_path = {':'.join(PATH)}\n"
        "strict = True\nfollow_imports = silent\nscripts_are_modules = True\n"
        "[mypy-unannotated]\ndisallow_untyped_defs = False\ndisallow_untyped_calls = False\n",
        encoding="utf-8",
    )
    for _ in range(2):  # from the sources, and with what it has stored
        out = _run("mypy", "--config-file", "mypy.ini", *include, folder=tmp_path)
        found: Found = defaultdict(set)
        for match in re.finditer(r"^(.*\.py):(\d+): error:", out, re.MULTILINE):
            found[match[1]].add(int(match[2]))
        assert found == {"wrong.py": _expected("mypy")}, out


def test_the_same_file_runs(capsys: pytest.CaptureFixture[str]) -> None:
    from tests.type_surface import kernels

    kernels.use()
    assert capsys.readouterr().out


class Layer(psc.Record, dims="i o"):
    """A record with size parameters."""

    w: f32["o i"]


class Pair(NamedTuple):
    """A named tuple of arrays."""

    left: f32["n"]
    right: "f32['n'] | None" = None


class Scale(PRecord):  # type: ignore[type-arg]
    """A persistent record."""

    factor = field(type=f32["n"])


def annotated(
    a: f32["n d"],
    b: tuple[f32["n"], ...],
    c: f32["n"] | None,
    d: Annotated[f32["n"], "note"],
    e: Layer["d h"] | None,
    f: Static[int],
    g: "tuple[Layer['d h'], Float['*b n']]",
    h: f32["a shape, that is none"],
) -> i32: ...


def test_annotations_are_ordinary_types_at_run_time() -> None:
    hints = typing.get_type_hints(annotated, include_extras=True)
    assert hints["a"] is f32["n d"]
    assert hints["b"] == tuple[f32["n"], ...]
    assert hints["c"] == (None | f32["n"])
    assert isinstance(Layer["d h"], GenericAlias)
    assert hints["e"] == Layer["d h"] | None
    assert hints["g"] == tuple[Layer["d h"], Float["*b n"]]
    assert hints["return"] is i32
    assert repr(hints["a"]) == 'f32["n d"]'
    assert typing.get_type_hints(Pair)["right"] == f32["n"] | None
    with pytest.raises(ShapeSyntaxError):
        _ = hints["h"].dims


def test_element_types_are_dtypes_of_numpy() -> None:
    element: Any = f32
    assert np.dtype(element) == np.float32
    assert np.zeros(2, element).astype(i32).dtype == np.int32
    zero = element(0)
    assert type(zero) is np.float32
    assert element(np.arange(2)).dtype == np.float32
    with pytest.raises(TypeError, match="Float is not one NumPy dtype"):
        np.zeros(2, Float)
    with pytest.raises(TypeError, match="Key is not one NumPy dtype"):
        np.zeros(2, Key)


def test_instances_have_the_dtype_and_any_shape() -> None:
    single: Any = f32["n"]
    key: Any = Key
    assert isinstance(np.ones((2, 2), np.float32), single)
    assert isinstance(1.0, single)
    assert not isinstance(np.ones(2), single)
    assert not isinstance("text", single)
    assert isinstance(np.zeros(2, np.uint32), key)
    assert not isinstance(np.zeros(3, np.uint32), key)
    assert Scale(factor=np.ones((3, 2), np.float32)).factor.shape == (3, 2)
    with pytest.raises(TypeError):
        Scale(factor=np.ones(2))


def test_records_applied_to_sizes_are_the_record() -> None:
    layer = Layer["d h"](w=np.ones((2, 3)))
    assert isinstance(layer, Layer)
    assert layer.replace(w=np.zeros((2, 3))).w.sum() == 0
