"""Latencies of language servers: from an edit to the findings of its version.

`python -m benchmarks.editing --kernels 1000 --edits 20` opens a file of the synthetic project
in each server, edits one kernel again and again, and prints medians: the time until the diagnostics
of an edit come, and the processor time of the server and its children.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from benchmarks.synthetic.generate import write

SERVERS = {
    "pscdsl": ("pscdsl", "server"),
    "ty": ("ty", "server"),
    "Pyrefly": ("pyrefly", "lsp"),
    "pyright": ("pyright-langserver", "--stdio"),
}
_QUIET = 1.0
"""Seconds without another message after which the server has said everything."""


class Client:
    """A language server in a process, spoken to by its protocol."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.received: Queue[dict[str, Any]] = Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self._number = 0

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while line := stream.readline():
            length = 0
            while line.strip():
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
                line = stream.readline()
            message = json.loads(stream.read(length))
            if "method" in message and "id" in message:
                self._answer(message)
            self.received.put(message)

    def _answer(self, request: dict[str, Any]) -> None:
        result: Any = None
        if request["method"] == "workspace/configuration":
            result = [None for _ in request["params"]["items"]]
        self.send({"id": request["id"], "result": result})

    def send(self, message: dict[str, Any]) -> None:
        """Send a message."""
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        stream = self.process.stdin
        assert stream is not None
        stream.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        stream.flush()

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self.send({"method": method, "params": params})

    def request(self, method: str, params: Any) -> Any:
        """Send a request, and return its result."""
        self._number += 1
        self.send({"id": self._number, "method": method, "params": params})
        while True:
            message = self.received.get(timeout=120)
            if message.get("id") == self._number and "method" not in message:
                return message.get("result")

    def diagnostics(self, uri: str, version: int) -> float:
        """Wait for the diagnostics of a version; return when they came."""
        while True:
            message = self.received.get(timeout=120)
            if message.get("method") == "textDocument/publishDiagnostics":
                params = message["params"]
                if params["uri"] == uri and params.get("version", version) == version:
                    return time.perf_counter()

    def settle(self) -> None:
        """Wait until no more messages come."""
        while True:
            try:
                self.received.get(timeout=_QUIET)
            except Empty:
                return


def processor_time(pid: int) -> float:
    """Return the processor time of a process and all below it, in seconds."""
    total = 0.0
    for each in _family(pid):
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def _family(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from _family(int(child))


def measured(command: Sequence[str], folder: Path, file: Path, edits: int) -> tuple[float, float]:
    """Return the median latency of an edit, and the processor time of one, in milliseconds."""
    client = Client(command, folder)
    uri, root = file.as_uri(), folder.as_uri()
    capabilities = {"textDocument": {"publishDiagnostics": {"versionSupport": True}}}
    folders = [{"uri": root, "name": "project"}]
    client.request(
        "initialize",
        {
            "processId": os.getpid(),
            "rootUri": root,
            "capabilities": capabilities,
            "workspaceFolders": folders,
        },
    )
    client.notify("initialized", {})
    text = file.read_text(encoding="utf-8")
    document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
    client.notify("textDocument/didOpen", {"textDocument": document})
    client.diagnostics(uri, 1)
    client.settle()
    latencies: list[float] = []
    before = processor_time(client.process.pid)
    line = next(n for n, row in enumerate(text.splitlines()) if row.strip().startswith("return "))
    for version in range(2, edits + 2):
        at = {"line": line, "character": len(text.splitlines()[line])}
        change = {
            "range": {"start": at, "end": at},
            "text": " + missing" if version % 2 == 0 else "",
        }
        if version % 2:
            change["range"] = {
                "start": at,
                "end": {**at, "character": at["character"] + len(" + missing")},
            }
        started = time.perf_counter()
        client.notify(
            "textDocument/didChange",
            {"textDocument": {"uri": uri, "version": version}, "contentChanges": [change]},
        )
        latencies.append(client.diagnostics(uri, version) - started)
        time.sleep(0.3)
    client.settle()
    used = processor_time(client.process.pid) - before
    client.process.kill()
    return 1000 * statistics.median(latencies), 1000 * used / edits


def main() -> None:
    """Measure each server in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, default=1000)
    parser.add_argument("--edits", type=int, default=20)
    given = parser.parse_args()
    bin_ = Path(sys.executable).parent
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder).resolve() / "project"
        write(project, given.kernels)
        file = max((project / "lab").rglob("m*.py"), key=lambda path: path.stat().st_size)
        print(f"{given.kernels} kernels, {file.relative_to(project)}")
        for name, (program, *arguments) in SERVERS.items():
            latency, used = measured((str(bin_ / program), *arguments), project, file, given.edits)
            print(
                f"{name:8} {latency:7.1f} ms until the findings, {used:7.1f} ms of processor time"
            )


if __name__ == "__main__":
    main()
