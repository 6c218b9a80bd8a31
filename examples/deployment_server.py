"""Serves the classifier of `deployment.py` over HTTP, from files beside it, without its source.

    python deployment_server.py [--port PORT] [--patience SECONDS]

prints as JSON where it listens, once it can answer, and ends when it is told to (SIGTERM, Ctrl-C).
POST takes `{"pixels": [[…], …], "dtype": "float32"}` and gives the fields of the results; GET tells
what is served, and which modules that took.

Tornado reads the requests.  It waits for none of its clients, and closes the connection of one that
is idle or slow, or whose request is too large.  What a request says is read here: numbers are short
and finite, and dtypes are a few that are known.
"""

# Tornado's types are partly unknown, and so is what JSON holds.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from argparse import ArgumentParser
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias

import numpy as np
from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

import pscdsl as psc

LARGEST_HEADER: Final = 8 << 10  # bytes
LARGEST_BODY: Final = 1 << 20
MOST_CONNECTIONS: Final = 100
PATIENCE: Final = 10.0  # seconds for all of a header, from the first moment, and for all of a body
LONGEST_NUMBER: Final = 40  # characters
DTYPES: Final = ("float32", "float64", "int32", "int64")


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
            found = self.kernel(self.network, read(request))
        except psc.ArgumentError as problem:  # a size or a dtype that it is not for
            raise Unusable(str(problem)) from None
        fields = {name: np.asarray(each) for name, each in found._asdict().items()}
        if not all(np.isfinite(each).all() for each in fields.values()):
            raise Unusable("the result is not finite: the pixels are too large")
        return {name: each.tolist() for name, each in fields.items()}

    def about(self) -> dict[str, Any]:
        """What it serves, and the modules of the language that are loaded."""
        return {
            "kernel": str(self.kernel.signature),
            "sizes": self.kernel.sizes,
            "modules": sorted(name for name in sys.modules if name.startswith("pscdsl")),
        }


def read(request: bytes) -> np.ndarray:
    """The pixels of a request; Unusable if it is anything but rows of numbers."""
    try:
        content = json.loads(
            request, parse_int=short(int), parse_float=short(float), parse_constant=refuse
        )
    except (RecursionError, ValueError) as problem:
        raise Unusable(f"no JSON: {problem}") from None
    if not isinstance(content, dict) or not content.keys() <= {"pixels", "dtype"}:
        raise Unusable('no object with "pixels", and maybe a "dtype"')
    dtype, rows = content.get("dtype", DTYPES[0]), content.get("pixels")
    if dtype not in DTYPES:
        raise Unusable(f"the dtype is none of {', '.join(DTYPES)}")
    numbers = (int, float) if dtype.startswith("float") else (int,)
    if not (
        isinstance(rows, list)
        and all(isinstance(row, list) and len(row) == len(rows[0]) for row in rows)
        and all(type(each) in numbers for row in rows for each in row)
    ):
        raise Unusable(f"the pixels are no rows, equally long, of numbers that fit {dtype}")
    try:
        with np.errstate(over="ignore"):
            pixels = np.array(rows, dtype)
    except OverflowError:
        raise Unusable(f"a number is too large for {dtype}") from None
    if not np.isfinite(pixels).all():
        raise Unusable(f"a number is too large for {dtype}")
    return pixels


def short(convert: Callable[[str], Any]) -> Callable[[str], Any]:
    """The conversion, of short numbers alone: that of long ones takes long."""

    def converted(text: str) -> Any:
        if len(text) > LONGEST_NUMBER:
            raise ValueError(f"a number has more than {LONGEST_NUMBER} characters")
        return convert(text)

    return converted


def refuse(constant: str) -> NoReturn:
    """NaN and Infinity are Python's, not JSON's."""
    raise ValueError(f"{constant} is no number")


Method: TypeAlias = Callable[..., Awaitable[None] | None]


class Handler(RequestHandler):
    """One request."""

    def initialize(self, model: Model) -> None:
        """Tornado calls this with what the application was given."""
        self.model = model

    def tell(self) -> None:
        """Tell what is served."""
        self.finish(self.model.about())

    def answer(self) -> None:
        """Answer, or say what is wrong with the request."""
        kind = self.request.headers.get("Content-Type", "").partition(";")[0].strip()
        if kind.lower() != "application/json":
            self.send_error(415)
            return
        try:
            self.finish(self.model.answer(self.request.body))
        except Unusable as problem:
            self.set_status(400)
            self.finish({"error": str(problem)})

    get: Method = tell
    post: Method = answer

    def write_error(self, status_code: int, **_: Any) -> None:
        """Say in JSON that something else is wrong."""
        self.finish({"error": self._reason})


class Server(HTTPServer):
    """Tornado's server, with a bound of the connections that are open at a time."""

    connections = 0

    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> None:
        """Serve a connection, or close it if there are too many."""
        if self.connections >= MOST_CONNECTIONS:
            stream.close()
            return
        self.connections += 1
        super().handle_stream(stream, address)

    def on_close(self, server_conn: object) -> None:
        """Forget a connection."""
        self.connections -= 1
        super().on_close(server_conn)


async def serve(model: Model, port: int, patience: float) -> None:
    """Answer until the process is told to end.

    A call of the kernel takes less than a millisecond, for which all wait; a larger model would
    be called in a thread, `await asyncio.to_thread(model.answer, …)`.
    """
    server = Server(
        Application([("/", Handler, {"model": model})]),
        max_header_size=LARGEST_HEADER,
        max_body_size=LARGEST_BODY,
        max_buffer_size=2 * LARGEST_BODY,
        idle_connection_timeout=patience,
        body_timeout=patience,
    )
    (socket,) = bind_sockets(port, "127.0.0.1")
    server.add_socket(socket)
    told = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, told.set)
    print(json.dumps({"port": socket.getsockname()[1]}), flush=True)
    await told.wait()
    server.stop()
    await server.close_all_connections()


def main() -> None:
    """Load, listen, answer, end."""
    parser = ArgumentParser(description="Serve the classifier that lies beside this file.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--patience", type=float, default=PATIENCE, metavar="SECONDS")
    options = parser.parse_args()
    logging.getLogger("tornado.access").setLevel(logging.ERROR)  # who asks knows how it went
    asyncio.run(serve(Model(Path(__file__).parent), options.port, options.patience))


if __name__ == "__main__":
    main()
