"""Whatever a file holds, `check` answers: soon, in little memory, and never with a traceback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pscdsl._src.support.paths import Folder, NotAFile
from tests.support.hostile_sources import HEAD, KERNEL, body, cases
from tests.support.share import some

SECONDS = 25.0
"""Of processor time, for a slow machine; most take less than one."""
MEGABYTES = 1000
LETTERS = 4_000_000
CASES = some(cases(), 3)


class Server:
    """The process that runs the command line in forks of itself."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.hostile_driver"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )

    def check(self, folder: Path, *arguments: str) -> dict[str, Any]:
        """Run `pscdsl check` in a folder."""
        return self.run(folder, "check", *arguments)

    def run(self, folder: Path, *arguments: str) -> dict[str, Any]:
        """Run `pscdsl` in a folder."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        request = {"folder": str(folder), "arguments": arguments}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    assert server.process.stdin is not None
    assert server.process.stdout is not None
    server.process.stdin.close()
    server.process.wait(timeout=60)
    server.process.stdout.close()


def bounded(answer: dict[str, Any], codes: tuple[int, ...] = (0, 1)) -> str:
    """The report, if the answer is as all answers must be."""
    out, err = str(answer["out"]), str(answer["err"])
    assert answer["code"] in codes, (answer["code"], out[-500:], err[-2000:])
    assert "Traceback" not in out + err, (out + err)[-2000:]
    assert "PSC999" not in out, out[:2000]
    assert answer["seconds"] < SECONDS, answer["seconds"]
    assert answer["megabytes"] < MEGABYTES, answer["megabytes"]
    assert len(out) < LETTERS
    control = {c for c in out if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160)}
    assert not control | ({"\u202e", "\u2066", "\u2028"} & set(out)), control
    return out


@pytest.mark.parametrize(("name", "text", "code"), CASES, ids=[name[:60] for name, *_ in CASES])
def test_a_file(server: Server, tmp_path: Path, name: str, text: Any, code: str) -> None:
    content = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    (tmp_path / "hostile.py").write_bytes(content)
    out = bounded(server.check(tmp_path, "hostile.py"))
    assert not code or re.search(rf"\[({code})", out), f"{name}: {out[:2000]}"


def test_pipes_devices_folders_and_files_that_may_not_be_read(
    server: Server, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "zero.py").symlink_to("/dev/zero")
    (tmp_path / "nowhere.py").symlink_to(tmp_path / "nothing.py")
    (tmp_path / "round.py").symlink_to(tmp_path / "round.py")
    (tmp_path / "secret.py").write_text(body("return y"))
    (tmp_path / "secret.py").chmod(0)
    bounded(server.check(tmp_path, "."))
    for name in ("pipe.py", "folder.py", "zero.py", "nowhere.py", "round.py", "secret.py"):
        bounded(server.check(tmp_path, name), (0, 1, 2))
    bounded(server.check(tmp_path, "/dev/zero"), (0, 1, 2))
    bounded(server.check(tmp_path, "/dev/null"), (0, 1, 2))


def test_links_that_go_round_or_lead_out(server: Server, tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside / "deep", outside):
        folder.mkdir(parents=True)
    (inside / "deep" / "round").symlink_to(inside)
    (inside / "itself").symlink_to(inside / "itself")
    (inside / "out").symlink_to(outside)
    (inside / "stolen.py").symlink_to(outside / "kernel.py")
    (inside / "kernel.py").write_text(body("return from_inside"))
    (outside / "kernel.py").write_text(body("return from_outside"))
    out = bounded(server.check(inside, "."))
    assert "from_inside" in out
    assert "from_outside" not in out


def test_imports_in_a_circle_and_by_the_thousand(server: Server, tmp_path: Path) -> None:
    count = 60
    for i in range(count):
        following = (i + 1) % count
        (tmp_path / f"m{i}.py").write_text(
            f"from m{following} import *\nfrom m{following} import a\nimport m{following}\n"
        )
    everything = "".join(f"import m{i}\nfrom m{i} import *\n" for i in range(count))
    (tmp_path / "main.py").write_text(everything + "import main\n" + body("return x + a"))
    assert "PSC" in bounded(server.check(tmp_path, "main.py"))
    bounded(server.check(tmp_path, "."))


def test_names_that_are_exported_twice_by_each_module(server: Server, tmp_path: Path) -> None:
    count = 40
    for i in range(count):
        both = f"from e{i + 1} import *\nfrom f{i + 1} import *\n"
        for letter in "ef":
            (tmp_path / f"{letter}{i}.py").write_text(both)
    for letter in "ef":
        (tmp_path / f"{letter}{count}.py").write_text("scale = 2.0\n")
    (tmp_path / "main.py").write_text("from e0 import *\n" + body("return x * scale"))
    bounded(server.check(tmp_path, "main.py"))


def test_names_of_files_that_write_to_the_terminal(server: Server, tmp_path: Path) -> None:
    for name in ("a\nb.py", "\x1b[31mred.py", "\u202eyp.py", "\udcff.py", "c\rd.py"):
        (tmp_path / name).write_text(body("return y"))
    for form in ("text", "concise", "json"):
        bounded(server.check(tmp_path, ".", "--format", form))


def test_a_file_that_shrinks_and_grows_while_it_is_checked(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "changing.py"
    change = (
        "import sys, time\n"
        "end = time.monotonic() + 60\n"
        "while time.monotonic() < end:\n"
        "    for text in ('', sys.argv[2], sys.argv[2] * 50, '(' * 100):\n"
        "        open(sys.argv[1], 'w').write(text)\n"
    )
    file.write_text("")
    with subprocess.Popen([sys.executable, "-c", change, str(file), body("return y")]) as writer:
        try:
            for _ in range(8):
                bounded(server.check(tmp_path, "changing.py"))
        finally:
            writer.kill()


def test_two_thousand_files(server: Server, tmp_path: Path) -> None:
    for i in range(2000):
        (tmp_path / f"k{i}.py").write_text("x = 1\n")
    (tmp_path / "kernel.py").write_text(HEAD + KERNEL + "    return y\n")
    assert "PSC102" in bounded(server.check(tmp_path, "."))


GOOD = HEAD + KERNEL + "    return x\n"
STRANGE = [
    *("missing.py", "missing/f.py", "good.py/f.py", "folder.py", "pipe.py", "zero.py", "round.py"),
    *("nowhere.py", "bytes.py", "empty.py", "syntax.py", "book.ipynb", "", ".", "..", "/", ":f"),
    *("a" * 5000 + ".py", "/dev/zero", "/dev/null", "/proc/self/mem", "\udcff.py", "good.py:"),
]
"""Paths of files that are none, or hold no program."""
FOLDERS = ("..", "/")


@pytest.fixture
def strange(tmp_path: Path) -> Path:
    """A folder with the files that `STRANGE` names."""
    (tmp_path / "good.py").write_text(GOOD)
    (tmp_path / "empty.py").touch()
    (tmp_path / "bytes.py").write_bytes(bytes(range(256)) * 10)
    (tmp_path / "syntax.py").write_text("def (")
    (tmp_path / "book.ipynb").write_text('{"cells": [')
    (tmp_path / "folder.py").mkdir()
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "zero.py").symlink_to("/dev/zero")
    (tmp_path / "round.py").symlink_to("round.py")
    (tmp_path / "nowhere.py").symlink_to("nothing.py")
    return tmp_path


@pytest.mark.parametrize("command", ["check", "discover", "ir", "cost", "hlo", "run", "compile"])
def test_each_command_on_files_that_are_none(server: Server, strange: Path, command: str) -> None:
    for path in STRANGE:
        if command not in ("check", "discover") or path not in FOLDERS:
            bounded(server.run(strange, command, path), (0, 1, 2))


@pytest.mark.parametrize("option", ["--config", "--baseline", "--cache-dir"])
def test_each_option_on_files_that_are_none(server: Server, strange: Path, option: str) -> None:
    for path in STRANGE:
        bounded(server.check(strange, "good.py", option, path), (0, 1, 2))


VALUES = [
    *("", "1", "[1", "NaN", "[[1]]", "[1, [2]]", "{}", "null", '"a"', "1e999", "9" * 5000),
    *("[" * 200_000, "missing.npy", "huge.npy", "bytes.npy", "pipe.npy", "zero.npy", "cut.npy"),
    *("folder.npy", "a" * 5000 + ".npy"),
]


def test_values_that_are_none(server: Server, strange: Path) -> None:
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999,), }"
    data = b"\x93NUMPY\x01\x00v\x00" + head.ljust(117).encode() + b"\n"
    (strange / "huge.npy").write_bytes(data)
    (strange / "cut.npy").write_bytes(data[:50])
    (strange / "bytes.npy").write_bytes(bytes(range(256)))
    (strange / "folder.npy").mkdir()
    os.mkfifo(strange / "pipe.npy")
    (strange / "zero.npy").symlink_to("/dev/zero")
    for value in VALUES:
        call = ("run", "good.py:kernel", "--dims", "n=4", "--arg", f"x={value}")
        bounded(server.run(strange, *call), (2,))
    for sizes in ("n", "n=", "n=x", "n=-1", "n=\u00b3", "n=1,m=2", "=3", "n=" + "9" * 5000):
        bounded(server.run(strange, "run", "good.py:kernel", "--dims", sizes), (0, 1, 2))


def test_only_files_and_links_are_replaced(server: Server, strange: Path) -> None:
    for name in ("pipe.py", "folder.py"):
        bounded(server.check(strange, "good.py", "--write-baseline", name), (2,))
        with pytest.raises(NotAFile, match="not a regular file"):
            export_to(strange / name)
    assert (strange / "pipe.py").is_fifo()
    assert (strange / "folder.py").is_dir()
    bounded(server.check(strange, "good.py", "--write-baseline", "round.py"), (0,))
    export_to(strange / "nowhere.py")
    assert not (strange / "nothing.py").exists()


def export_to(path: Path) -> None:
    with Folder(str(path.parent)) as folder:
        folder.replace(path.name, b"content")
