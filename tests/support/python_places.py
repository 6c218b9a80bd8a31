"""A program that is run wherever Python runs: as a file, by `-c`, in cells, at a prompt."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

CELLS = [
    dedent(text).strip() + "\n"
    for text in """
import enum
import functools
from dataclasses import dataclass
from typing import ClassVar, Generic, NamedTuple, TypeVar
import numpy as np
import pscdsl as psc
from pscdsl import f32
%%
class Layer(psc.Record):
    w: f32["d"]
    b: f32 = 0.5
    def on(self, x: f32["n d"]) -> f32["n"]:
        return x @ self.w + self.b
%%
class Pair(NamedTuple):
    first: f32["n"]
    second: f32["n"] | None = None
    @property
    def total(self):
        return self.first.sum()
%%
@dataclass(frozen=True)
class Options:
    scale: f32
    power: psc.Static[int] = 2
    OFFSET: ClassVar[float] = 10.0
    @staticmethod
    def twice(x):
        return x * 2
    @classmethod
    def unit(cls):
        return cls(1.0)
    @functools.cached_property
    def both(self):
        return self.scale * self.power
%%
class Kind(enum.Enum):
    PLAIN = 1
    ROUND = 2
%%
T = TypeVar("T", bound=psc.Tree)
%%
class Step(psc.Record, Generic[T]):
    at: T
    rate: f32
%%
class Deep(Step[Layer]):
    depth: f32 = 3.0
%%
class Table(psc.Record, dims="i o"):
    entries: f32["i o"]
%%
@psc.kernel
def layer(p: Layer, x: f32["n d"]) -> f32["n"]:
    return p.on(x)
%%
@psc.kernel
def mixed(pair: Pair, o: Options, k: psc.Static[Kind]) -> f32["n"]:
    y = pair.first * o.both + pair.total + Options.OFFSET + Options.twice(o.scale)
    return np.round(y) if k is Kind.ROUND else y * Options.unit().scale
%%
@psc.kernel
def deep(s: Deep, t: Table["d h"]) -> Layer:
    return Layer(s.at.w * s.rate + t.entries.sum(), s.depth)
%%
x = np.arange(6, dtype=np.float32).reshape(3, 2)
p = Layer(x[1])
print("RESULT", layer(p, x), mixed(Pair(x[2]), Options(1.25), Kind.PLAIN))
print("RESULT", mixed(Pair(x[2]), Options(1.25, 3), Kind.ROUND), layer.signature)
print("RESULT", deep(Deep(p, 2.0), Table(x[:2])))
%%
old, before = Layer, layer
class Layer(psc.Record):
    w: f32["d"]
    b: f32 = 0.5
    def on(self, x: f32["n d"]) -> f32["n"]:
        return 100 * (x @ self.w)
%%
@psc.kernel
def layer(p: Layer, x: f32["n d"]) -> f32["n"]:
    return p.on(x)
%%
print("RESULT", before(old(x[1]), x), layer(Layer(x[1]), x))
%%
def attempt(kernel, *arguments):
    try:
        print("RESULT", kernel(*arguments))
    except Exception as error:
        print("ERROR", type(error).__name__, error)
%%
attempt(before, Layer(x[1]), x)
%%
@psc.kernel
def mistaken(p: Pair, x: f32["n d"]) -> f32["n"]:
    return x + p.first
%%
attempt(mistaken, Pair(x[0]), x[:2])
%%
class Odd(psc.Record):
    w: f32["d d +"]
%%
@psc.kernel
def odd(o: Odd) -> f32:
    return o.w.sum()
%%
attempt(odd, Odd(x[0]))
""".split("%%\n")
]
"""What follows one after another; each is a cell, and what a prompt takes at once."""

PROGRAM = "\n".join(CELLS)

_IPYTHON = """
import sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance(colors="NoColor")
for cell in open(sys.argv[1]).read().split("%%\\n"):
    shell.run_cell(cell, store_history=True)
"""


def prompt_keeps_text() -> bool:
    """Whether Python's own prompt keeps what is typed."""
    return sys.version_info >= (3, 13)


def python(*args: str, stdin: str = "", folder: Path | None = None, **env: str) -> str:
    """What a Python of this version prints, to either stream."""
    made = subprocess.run(
        [sys.executable, *args],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **env},
    )
    return made.stdout + made.stderr + (f"\nended with {made.returncode}" * bool(made.returncode))


def in_file(text: str, folder: Path) -> str:
    """What it prints as a file."""
    path = folder / "program.py"
    path.write_text(text, encoding="utf-8")
    return python("program.py", folder=folder)


def in_command(text: str, folder: Path) -> str:
    """What it prints by `-c`."""
    return python("-c", text, folder=folder)


def in_cells(cells: list[str], folder: Path) -> str:
    """What it prints in cells of IPython's."""
    (folder / "cells.txt").write_text("%%\n".join(cells), encoding="utf-8")
    (folder / "driver.py").write_text(_IPYTHON, encoding="utf-8")
    return python("driver.py", "cells.txt", folder=folder, IPYTHONDIR=str(folder))


def at_prompt(pieces: list[str], *options: str) -> str:
    """What is printed at a prompt on a terminal, where lines are typed."""
    main, other = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-q", *options],
        stdin=other,
        stdout=other,
        stderr=other,
        close_fds=True,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "PYTHONUNBUFFERED": "1",
            "TERM": "xterm",
            "PYTHON_COLORS": "0",
        },
    )
    os.close(other)
    seen: list[str] = []
    try:
        seen.append(_until(main, ">>> "))
        for number, piece in enumerate([*pieces, "import sys\n"]):
            # Bracketed paste, as terminals do it: the prompt indents lines that are typed.
            paste = prompt_keeps_text()
            text = piece if piece.endswith("\n\n") or "\n" not in piece[:-1] else piece + "\n"
            if paste and "\n" in piece[:-1]:
                # What comes at once with the end of a paste is taken for a part of it.
                os.write(main, f"\x1b[200~{text}\x1b[201~".encode())
                seen.append(_until(main, text.split()[-1]))
                text = "\n"
            os.write(main, text.encode())
            seen.append(_until(main, ">>> "))
            os.write(main, f"print('DO' 'NE{number}')\n".encode())
            seen.append(_until(main, f"DONE{number}", ">>> "))
    finally:
        process.kill()
        process.wait()
        os.close(main)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\r", "", "".join(seen))


def _until(terminal: int, *texts: str, seconds: float = 120) -> str:
    """What comes until these texts have come, one after another, and nothing more for a moment."""
    wanted = re.compile(".*".join(map(re.escape, texts)), re.DOTALL)
    found, end = "", time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.05)[0]:
            try:
                found += os.read(terminal, 65536).decode(errors="replace")
            except OSError:
                return found
        elif wanted.search(found):
            return found
    raise TimeoutError(f"{texts} did not come: {found[-3000:]!r}")


def results(output: str) -> list[str]:
    """The lines with results."""
    return re.findall(r"^RESULT .*(?:\n .*)*", output, re.MULTILINE)
