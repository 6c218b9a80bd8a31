"""Serves the classifier of `deployment.py` over HTTP, from files beside it, without its source.

    python deployment_server.py REQUESTS

prints as JSON where it listens, once it can answer, and ends after so many requests, or when none
has come for a while.  POST takes `{"pixels": [[…], …], "dtype": "float32"}` and gives the fields of
the results; GET tells what is served, and which modules that took.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

import pscdsl as psc

LARGEST = 1 << 20  # bytes of a request
PATIENCE = 20.0  # seconds


class Unusable(Exception):
    """A request that cannot be answered; says why."""


class Model:
    """A loaded kernel with its learnt parameters, compiled for every size that it has."""

    def __init__(self, folder: Path) -> None:
        self.kernel = psc.load(folder / "classify.psca")
        network, dense = (self.kernel.records[name] for name in ("Network", "Dense"))
        with np.load(folder / "network.npz") as learnt:
            self.network = network(
                dense(learnt["hidden.weights"], learnt["hidden.bias"]),
                dense(learnt["output.weights"], learnt["output.bias"]),
            )
        for sizes in self.kernel.sizes:
            self.kernel(self.network, np.zeros((sizes["n"], sizes["d"]), np.float32))

    def answer(self, request: bytes) -> dict[str, Any]:
        """The fields of what the kernel makes of a request."""
        try:
            content = json.loads(request)
            pixels = np.array(content["pixels"], content.get("dtype", "float32"))
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as problem:
            raise Unusable(f"no pixels: {type(problem).__name__}: {problem}") from None
        try:
            found = self.kernel(self.network, pixels)
        except psc.ArgumentError as problem:  # a size or a dtype that it is not for
            raise Unusable(str(problem)) from None
        return {name: np.asarray(each).tolist() for name, each in found._asdict().items()}

    def about(self) -> dict[str, Any]:
        """What it serves, and the modules of the language that are loaded."""
        return {
            "kernel": str(self.kernel.signature),
            "sizes": self.kernel.sizes,
            "modules": sorted(name for name in sys.modules if name.startswith("pscdsl")),
        }


class Server(HTTPServer):
    """Answers with a model, and gives up when nobody asks any more."""

    timeout = PATIENCE

    def __init__(self, model: Model) -> None:
        self.model = model
        super().__init__(("127.0.0.1", 0), Handler)

    def handle_timeout(self) -> NoReturn:
        """End: whoever started this is gone."""
        sys.exit(f"no request for {PATIENCE:.0f} seconds")


class Handler(BaseHTTPRequestHandler):
    """One request."""

    timeout = PATIENCE
    disable_nagle_algorithm = True

    @property
    def model(self) -> Model:
        """The server's."""
        assert isinstance(self.server, Server)
        return self.server.model

    def do_GET(self) -> None:
        """Tell what is served."""
        self.reply(200, self.model.about())

    def do_POST(self) -> None:
        """Answer, or say what is wrong with the request."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LARGEST:
            self.reply(413, {"error": f"requests have a length, of at most {LARGEST} bytes"})
            return
        try:
            self.reply(200, self.model.answer(self.rfile.read(int(length))))
        except Unusable as problem:
            self.reply(400, {"error": str(problem)})

    def reply(self, status: int, content: dict[str, Any]) -> None:
        """Send JSON."""
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: whoever asks knows how it went."""


def main() -> None:
    """Load, listen, answer, end."""
    with Server(Model(Path(__file__).parent)) as server:
        print(json.dumps({"port": server.server_port}), flush=True)
        for _ in range(int(sys.argv[1])):
            server.handle_request()


if __name__ == "__main__":
    main()
