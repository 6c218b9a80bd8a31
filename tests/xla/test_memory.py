"""Memory for results: what is told to the C library, and when it is left alone."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pscdsl._src.xla.runtime import memory

pytestmark = pytest.mark.jaxlib

ROOT = str(Path(__file__).parents[2])
needs_glibc = pytest.mark.skipif(not memory.glibc(), reason="the C library is another one")


@pytest.fixture
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in (memory.MEMORY_VARIABLE, "GLIBC_TUNABLES", *os.environ):
        if name in (memory.MEMORY_VARIABLE, "GLIBC_TUNABLES") or name.startswith("MALLOC_"):
            monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_the_environment_decides(nothing_said: pytest.MonkeyPatch) -> None:
    assert memory.wanted_memory() == "system"
    nothing_said.setenv(memory.MEMORY_VARIABLE, "reuse")
    assert memory.wanted_memory() == "reuse"
    for name, value in (
        (memory.MEMORY_VARIABLE, "system"),
        ("MALLOC_TRIM_THRESHOLD_", "131072"),
        ("MALLOC_ARENA_MAX", "1"),
        ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"),
    ):
        with pytest.MonkeyPatch.context() as here:
            here.setenv(name, value)
            assert memory.wanted_memory() == "system", name
    for name, value in ((memory.MEMORY_VARIABLE, "heap"), ("GLIBC_TUNABLES", "glibc.rtld.nns=2")):
        with pytest.MonkeyPatch.context() as here:
            here.setenv(name, value)
            assert memory.wanted_memory() != "system", name


def test_an_unknown_word_is_refused(nothing_said: pytest.MonkeyPatch) -> None:
    nothing_said.setenv(memory.MEMORY_VARIABLE, "sistem")
    with pytest.raises(
        ValueError, match="PSCDSL_MEMORY is `sistem`; it can be system, reuse, heap"
    ):
        memory.wanted_memory()


@needs_glibc
def test_another_malloc_is_left_alone() -> None:
    process = ctypes.CDLL(None)
    others = ctypes.CDLL("libm.so.6")
    names = "malloc", "free", "mallinfo", "mallopt", "gnu_get_libc_version", "dladdr"
    library = SimpleNamespace(**{name: getattr(process, name) for name in names})
    assert memory.malloc_is_glibcs(library)
    memory_of_another = ctypes.create_string_buffer(1 << 20)

    def malloc(size: int) -> int:
        del size
        return ctypes.addressof(memory_of_another)

    def free(block: ctypes.c_void_p) -> None:
        del block

    library.malloc, library.free = malloc, free  # as if they were preloaded
    assert not memory.malloc_is_glibcs(library)
    library.malloc, library.free = process.malloc, process.free
    library.mallopt = others.cos
    assert not memory.malloc_is_glibcs(library)
    del library.mallopt
    assert not memory.malloc_is_glibcs(library)


PROGRAM = """
import resource
import numpy as np
import pscdsl as psc
from pscdsl import f32
from pscdsl._src.xla.runtime import memory

@psc.kernel
def scaled(x: f32["n"], a: f32) -> f32["n"]:
    return x * a

x = scaled(np.ones(12 << 20, np.float32), np.float32(1))
for turn in range(24):
    if turn == 8:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    scaled(x, np.float32(2)).block_until_ready()
after = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
print(memory.keep_freed_memory(), (after - before) * resource.getpagesize() / 16 / x.nbytes)
"""
"""Results of 48 MiB; the part of each that was new memory."""


PIECES = """
import ctypes
import numpy as np
import pscdsl as psc
from pscdsl import f32
from pscdsl._src.xla.runtime import memory

@psc.kernel
def moved(xs: tuple[f32["8"], ...]) -> tuple[f32["8"], ...]:
    return tuple([x + 1 for x in xs])

class Malloc(ctypes.Structure):
    _fields_ = [(f"number_{place}", ctypes.c_size_t) for place in range(10)]

look = ctypes.CDLL(None).mallinfo2
look.restype = Malloc
xs = moved((np.zeros(8, np.float32),) * 10)
for _ in range(20_000):
    moved(xs)
print(memory.keep_freed_memory(), look().number_6)
"""
"""Small results, again and again; how many bytes of small free blocks lie about (fsmblks)."""


def run(tmp_path: Path, text: str = PROGRAM, **variables: str) -> tuple[str, float]:
    """Whether freed memory is kept in a new process, and the number that it tells."""
    program = tmp_path / "program.py"
    program.write_text(text)
    kept = {key: value for key, value in os.environ.items() if not key.startswith("MALLOC_")}
    environment = {**kept, memory.MEMORY_VARIABLE: "reuse", "PYTHONPATH": ROOT, **variables}
    done = subprocess.run(
        [sys.executable, program],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
        timeout=100,
    )
    told, part = done.stdout.split()
    return told, float(part)


@needs_glibc
def test_results_take_the_memory_of_earlier_ones(tmp_path: Path) -> None:
    told, _ = run(tmp_path)
    assert told == "True"
    told, part = run(tmp_path, **{memory.MEMORY_VARIABLE: "heap"})
    assert told == "True"
    assert part < 0.8


@pytest.mark.parametrize("word", ["reuse", "heap"])
def test_calls_find_their_memory_where_they_left_it(tmp_path: Path, word: str) -> None:
    if not memory.glibc() or not hasattr(ctypes.CDLL(None), "mallinfo2"):
        pytest.skip("the C library does not tell")
    told, free = run(tmp_path, PIECES, **{memory.MEMORY_VARIABLE: word})
    assert told == "True"
    assert free < 2 << 20


def test_nothing_is_set_where_the_user_says_so(tmp_path: Path) -> None:
    told, _ = run(tmp_path, **{memory.MEMORY_VARIABLE: "system"})
    assert told == "False"
