"""Forks, threads, Ctrl-C, and the end of the process."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32
from tests.support.python_places import python

HEAD = """
import os, signal, sys, threading, time
import numpy as np
import pscdsl as psc
from pscdsl import f32, i32

@psc.kernel
def small(x: f32["n"]) -> f32["n"]:
    return np.sin(x) + 1

@psc.kernel
def product(x: f32["n n"]) -> f32["n n"]:
    return x @ x

@psc.kernel
def nothing() -> f32["3"]:
    return np.zeros(3, np.float32)

@psc.kernel
def long(x: f32, n: i32) -> f32:
    return psc.while_loop(
        lambda c: c[0] < n, lambda c: (c[0] + 1, np.sin(c[1]) + c[1]), (np.int32(0), x)
    )[1]

x = np.ones(5, np.float32)
"""
FORK = """
if FIRST:
    result = small(x)
    compiled = small.compile(n=5)
    compiled(x)
    nothing()

def attempt(name, run):
    try:
        print(name, run())
    except RuntimeError as error:
        print(name, type(error).__name__, "spawn" in str(error))

child = None
for end in END:
    child = os.fork()
    if not child:
        break
    os.waitpid(child, 0)[1] == 0 or print("child failed")
if not child:
    attempt("known", lambda: small(x))
    if FIRST:
        attempt("on device", lambda: small(result))
        attempt("compiled", lambda: compiled(x))
        attempt("leaves", lambda: compiled.run([x]))
        attempt("other size", lambda: small(x[:2]))
        attempt("other kernel", lambda: product(np.ones((2, 2), np.float32)))
        attempt("no arguments", lambda: nothing())
        attempt("derived", lambda: psc.jvp(small, (x,), (x,)))
        attempt("array", lambda: psc.from_dlpack(x))
        print("read", np.asarray(result)[0] == np.sin(x[0]) + 1, small.check())
    sys.stdout.flush()
    end(0)
print("parent", small(x)[0] > 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_says_what_to_do() -> None:
    ends = "[os._exit, sys.exit]"
    found = python("-W", "ignore", "-c", HEAD + FORK.replace("FIRST", "1").replace("END", ends))
    said = [line for line in found.splitlines() if "ForkedProcessError" in line]
    assert [line.endswith("ForkedProcessError True") for line in said] == [True] * 9 * 2
    assert found.count("read True ()") == 2
    assert "failed" not in found
    assert "parent True" in found


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_forked_before_the_first_call_computes() -> None:
    ends = "[sys.exit]"
    found = python("-W", "ignore", "-c", HEAD + FORK.replace("FIRST", "0").replace("END", ends))
    assert found.count("known [1.84") == 1
    assert "failed" not in found
    assert "parent True" in found


INTERRUPTED = """
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it in the background
long(np.float32(1), 3)
print("ready", flush=True)
try:
    while True:
        long(np.float32(1), 20_000_000)
except KeyboardInterrupt:
    print("answered", flush=True)
long(np.float32(1), 2_000_000_000)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals")
def test_one_interrupt_is_answered_when_the_call_returns_the_second_ends_a_long_one() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HEAD + INTERRUPTED],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "answered\n"
        for _ in range(2):
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
        started = time.monotonic()
        said, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert "interrupted twice" in said
    assert (process.returncode, time.monotonic() - started < 3) == (130, True)


THREADS = """
y = np.ones((700, 700), np.float32)
product(y)
long(np.float32(1), 3)

def products():
    while True:
        product(y)

def sizes():
    while True:
        small(np.ones(np.random.randint(1, 8), np.float32))

from multiprocessing.pool import ThreadPool
pool = ThreadPool(1)
pool.map_async(product, [y] * 10_000, chunksize=1000)
for run in (products, sizes, sizes):
    threading.Thread(target=run, daemon=True).start()
threading.Thread(target=threading.Event().wait, daemon=True).start()
time.sleep(0.3)
print("end")
sys.exit(7)
"""


def test_a_process_ends_while_threads_call() -> None:
    assert python("-c", HEAD + THREADS) == "end\n\nended with 7"


AT_EXIT = """
import atexit
small(x)

class Late:
    def __init__(self, x):
        self.call, self.x = small, x

    def __del__(self, write=os.write):  # names of the module may be gone by then
        try:
            said = f"known {float(self.call(self.x)[0]):.3f}\\n"
        except RuntimeError as error:
            said = f"{type(error).__name__}\\n"
        write(1, said.encode())

atexit.register(lambda: print(small(np.ones(7, np.float32)).shape, flush=True))
late = Late(x), Late(np.ones(9, np.float32))
"""


def test_kernels_at_the_end() -> None:
    lines = python("-c", HEAD + AT_EXIT).splitlines()
    assert lines[0] == "(7,)"
    assert sorted(lines[1:]) == ["ShutdownError", "known 1.841"]


RECORDS_AT_EXIT = """
class Pair(psc.Record):
    first: f32["n"]

@psc.kernel
def doubled(p: Pair) -> Pair:
    return Pair(p.first * 2)

class Late:
    def __del__(self, write=os.write):
        write(1, f"ends with {len(str(12))}".encode())

doubled(Pair(x))
late = Late()
"""


def test_objects_end_before_builtins_beside_records() -> None:
    assert python("-c", HEAD + RECORDS_AT_EXIT) == "ends with 2"


@psc.kernel
def halved(x: f32["n"]) -> f32["n"]:
    return x / 2


def test_threads_and_asyncio() -> None:
    sizes = [1 + i % 7 for i in range(100)]

    def one(n: int) -> bool:
        return bool(np.array_equal(halved(np.ones(n, np.float32)), np.full(n, 0.5, np.float32)))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(one, sizes))

    async def many() -> list[bool]:
        return await asyncio.gather(*[asyncio.to_thread(one, n) for n in sizes])

    assert all(asyncio.run(many()))
