"""mypy with the plug-in: shapes are quiet, real mistakes are not."""

from __future__ import annotations

from pathlib import Path

import pytest

mypy_api = pytest.importorskip("mypy.api")

ROOT = Path(__file__).parents[2]

PROGRAM = """\
from __future__ import annotations

import pscdsl as psc
from pscdsl import f32


class Layer(psc.Record, dims="i o"):
    w: f32["o i"]
    b: f32["o"]


class Bias(psc.Record, dims="d"):
    b: f32["d"]


def lone(x: f32["n"], layer: Layer["n m"], bias: Bias["n"]) -> f32["m"]:
    def inner(y: tuple[f32["k"], psc.f32["2*k 3"]]) -> f32["k"] | None:
        return y[0]

    return x


def wrong(x: f32["n"], y: list["Nothing"]) -> int:
    return x
"""


def test_shapes_are_quiet_and_mistakes_are_not(tmp_path: Path) -> None:
    program, config = tmp_path / "program.py", tmp_path / "mypy.ini"
    program.write_text(PROGRAM, encoding="utf-8")
    plugin = ROOT / "pscdsl" / "mypy_plugin.py"
    config.write_text(
        f"[mypy]\nplugins = {plugin}\nmypy_path = {ROOT}\nfollow_imports = silent\n"
        f"cache_dir = {tmp_path / 'cache'}\n",
        encoding="utf-8",
    )
    out, err, _ = mypy_api.run(["--config-file", str(config), str(program)])
    assert not err
    errors = [line.split(": error: ")[1] for line in out.splitlines() if ": error: " in line]
    assert errors == [
        'Name "Nothing" is not defined  [name-defined]',
        'Incompatible return value type (got "f32 | Any", expected "int")  [return-value]',
    ]
