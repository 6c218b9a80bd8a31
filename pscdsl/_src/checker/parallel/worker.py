"""A process that checks files for another one.

First a line comes in that says which files there are, and one goes out that it was understood.
Then a line with a path comes in, and a line of data goes out, until the input ends.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from typing import IO

from pscdsl._src.checker.check import check_file, deep_stack
from pscdsl._src.checker.parallel.reads import reads_of
from pscdsl._src.checker.parallel.recorded import plain
from pscdsl._src.frontend.modules.files import Files

READY = b"ready\n"
COLLECT_EVERY = 30
"""After so many files, the programs that were made for them are thrown away."""


def main() -> None:
    """Serve until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started this process ends it
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else may be written among the answers
    serve(sys.stdin.buffer, answers)


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Check the files that are asked for."""
    setup = json.loads(requests.readline())
    files = Files(setup["given"], setup["roots"], setup["bounds"])
    answers.write(READY)
    answers.flush()
    with deep_stack():
        for number, line in enumerate(requests, 1):
            path = json.loads(line)
            result, project = check_file(files, path)
            reads = reads_of(project, path) if setup["keep"] else None
            answer = [plain(reads), plain(result)]
            del project
            answers.write(json.dumps(answer).encode() + b"\n")
            answers.flush()
            if number % COLLECT_EVERY == 0:
                gc.collect()
