"""Runs the command line on files that may hurt: one forked process each, with limits.

Requests are lines of JSON on standard input, answers lines of JSON on standard output.  The server
has loaded the checker before it forks, so that a case costs no start.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import sys
import tempfile
from typing import Any

import pscdsl._src.checker.check as _  # noqa: F401
from pscdsl._src.cli import main

FIRST = """\
import numpy as np
import pscdsl as psc
from pscdsl import f32


@psc.kernel
def f(x: f32["n"]) -> f32["n"]:
    return np.tanh(x) + y
"""
MEMORY = 2 << 30
"""Address space, of which an answer may use less than half."""
SECONDS = 30
"""Of processor time, after which the process is killed."""


def child(arguments: list[str], folder: str, out: int, err: int) -> None:
    """Run the command in this process, and end it."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.chdir(folder)
    os.dup2(out, 1)
    os.dup2(err, 2)
    code = main(arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """What became of one request."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = os.fork()
        if process == 0:
            try:
                child(request["arguments"], request["folder"], out.fileno(), err.fileno())
            finally:
                os._exit(70)
        _, status, usage = os.wait4(process, 0)
        texts: list[str] = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "backslashreplace"))
    return {
        "code": os.waitstatus_to_exitcode(status),
        "out": texts[0],
        "err": texts[1],
        "seconds": usage.ru_utime + usage.ru_stime,
        "megabytes": usage.ru_maxrss / 1024,
    }


def serve() -> None:
    """Answer requests until there are no more."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        path = os.path.join(folder, "kernel.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(FIRST)
        main(["check", "--no-cache", path])  # loads what is loaded when it is needed
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    serve()
