"""The server of the example, attacked: it answers in JSON or hangs up, and goes on answering."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from pscdsl.stdlib.layers import Dense
from tests.project.test_examples import example

pytest.importorskip("tornado", reason="the server of the example is Tornado's")

PATIENCE = 1.5
STRANGE: tuple[Any, ...] = (
    *("object", "U200000000", "(2,", "V1000000000", "f8,f8", "", None, []),
    {"names": ["a"], "formats": ["f4"], "itemsize": 10**9},
)
GOOD = json.dumps({"pixels": [[1, 0.5, 0, 0, 0, 0.25]]}).encode()


class Server(NamedTuple):
    """A process that serves."""

    port: int
    errors: Path

    def ask(self, body: bytes, kind: str = "application/json") -> tuple[int, Any]:
        """The status and the answer."""
        with contextlib.closing(HTTPConnection("127.0.0.1", self.port, timeout=10)) as connection:
            connection.request("POST", "/", body, {"Content-Type": kind})
            reply = connection.getresponse()
            return reply.status, json.loads(reply.read())

    def connect(self) -> socket.socket:
        """A connection whose reads end when the server hangs up."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def send(self, *parts: bytes) -> bytes:
        """What comes back for raw bytes until the server hangs up."""
        with self.connect() as connection:
            with contextlib.suppress(ConnectionError):
                for part in parts:
                    connection.sendall(part)
            return _rest(connection)


def _rest(connection: socket.socket) -> bytes:
    received = b""
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(1 << 16):
            received += part
    return received


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("served")
    deployment = example("deployment")
    hidden = Dense(np.full((6, 4), 100, np.float32), np.zeros(4, np.float32))
    output = Dense(np.tile(np.array([1, -1], np.float32), (4, 5)), np.zeros(10, np.float32))
    deployment.deploy(deployment.Network(hidden, output), folder)
    errors = folder / "errors.txt"
    command = [sys.executable, str(folder / "deployment_server.py"), "--patience", str(PATIENCE)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with errors.open("w") as written:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=written)
    with process:
        try:
            assert process.stdout is not None
            yield Server(json.loads(process.stdout.readline())["port"], errors)
            process.terminate()
            assert process.wait(timeout=20) == 0
        finally:
            process.kill()


@pytest.fixture(autouse=True)
def _still_serving(server: Server) -> Iterator[None]:
    yield
    begin = time.perf_counter()
    assert server.ask(GOOD)[0] == 200
    assert time.perf_counter() - begin < PATIENCE
    assert "Traceback" not in server.errors.read_text()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "no JSON"),
        (b"\xff", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[" * 100_000 + b"]" * 100_000, "no JSON"),
        (b"[]", "no object"),
        (b"{}", "no rows"),
        (b'{"pixels": [[1]], "more": 1}', "no object"),
        (b'{"pixels": [[NaN]]}', "NaN is no number"),
        (b'{"pixels": [[-Infinity]]}', "-Infinity is no number"),
        (b'{"pixels": [[1e999]]}', "too large for float32"),
        (b'{"pixels": [[1e39]]}', "too large for float32"),
        (b'{"pixels": [[1e308]], "dtype": "int32"}', "that fit int32"),
        (b'{"pixels": [[0.5]], "dtype": "int32"}', "that fit int32"),
        (b'{"pixels": [[9999999999]], "dtype": "int32"}', "too large for int32"),
        (b'{"pixels": [[' + b"9" * 401 + b"]]}", "more than 40 characters"),
        (b'{"pixels": [[' + b"9" * 1_000_000 + b"]]}", "more than 40 characters"),
        (b'{"pixels": [[0.' + b"1" * 1_000_000 + b"]]}", "more than 40 characters"),
        (b'{"pixels": [["1"]]}', "no rows"),
        (b'{"pixels": [[null]]}', "no rows"),
        (b'{"pixels": [[true]]}', "no rows"),
        (b'{"pixels": [[1], [1, 2]]}', "no rows"),
        (b'{"pixels": 1}', "no rows"),
        (b'{"pixels": [{"a": 1}]}', "no rows"),
        (b'{"pixels": []}', "`pixels` of `classify`"),
        (b'{"pixels": [[1]]}', r"`pixels` of `classify` is f32[1 1]"),
        (b'{"pixels": [[1, 2, 3, 4, 5, 6]], "dtype": "int64"}', "is i64[1 6]"),
        (b'{"pixels": [[3e38, 3e38, 3e38, 3e38, 3e38, 3e38]]}', "not finite"),
        *(
            (json.dumps({"pixels": [[1]], "dtype": dtype}).encode(), "the dtype is none of")
            for dtype in STRANGE
        ),
    ],
    ids=lambda each: str(each)[:40],
)
def test_contents(server: Server, body: bytes, why: str) -> None:
    status, answer = server.ask(body)
    assert status == 400
    assert why in answer["error"]


def test_other_kinds_and_methods_and_paths(server: Server) -> None:
    for kind in ("text/plain", "", "application/jsonp", "multipart/form-data; boundary=a"):
        assert server.ask(GOOD, kind)[0] in (400, 415)
    assert server.ask(GOOD, "Application/JSON; charset=utf-8")[0] == 200
    for line, status in (
        (b"PUT /", b"405"),
        (b"GET /../etc/passwd", b"404"),
        (b"nonsense", b"400"),
    ):
        reply = server.send(line + b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert reply.split()[1] == status


def test_large_headers_and_bodies_are_refused_before_they_are_read(server: Server) -> None:
    head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    begin = time.perf_counter()
    replies = [
        server.send(b"GET / HTTP/1.1\r\nHost: a\r\nLong: " + b"a" * 100_000 + b"\r\n\r\n"),
        server.send(b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n"),
        server.send(b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 100_000 + b"\r\n"),
        server.send(head + b"Content-Length: 1048577\r\n\r\n"),
        server.send(head + b"Content-Length: " + b"9" * 5001 + b"\r\n\r\n"),
        server.send(head + b"Content-Length: -1\r\n\r\n"),
        server.send(head + b"Content-Length: one\r\n\r\n"),
        server.send(
            head + b"Transfer-Encoding: chunked\r\n\r\n",
            *[b"10000\r\n" + b" " * 0x10000 + b"\r\n"] * 32,
        ),
    ]
    assert time.perf_counter() - begin < PATIENCE, "it waits for none of them"
    assert all(reply == b"" or reply.split()[1] == b"400" for reply in replies)
    largest = GOOD + b" " * ((1 << 20) - len(GOOD))
    assert server.ask(largest)[0] == 200


@pytest.mark.parametrize("length", [0, 1000], ids=["header", "body"])
def test_slow_clients_are_cut_off_and_keep_nobody_waiting(server: Server, length: int) -> None:
    first = b"POST / HTTP/1.1\r\nHost: a\r\n"
    if length:
        first += f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n".encode()
    with server.connect() as slow:
        slow.sendall(first)
        begin = time.perf_counter()
        with contextlib.suppress(ConnectionError):
            while time.perf_counter() - begin < 4 * PATIENCE:
                slow.sendall(b" " if length else b"A: b\r\n")
                assert server.ask(GOOD)[0] == 200
                time.sleep(0.1)
        assert _rest(slow) == b""
        assert time.perf_counter() - begin < 3 * PATIENCE


def test_many_connections_are_closed(server: Server) -> None:
    connections = [server.connect() for _ in range(300)]
    try:
        begin = time.perf_counter()
        for connection in connections:
            assert _rest(connection) == b""
        assert time.perf_counter() - begin < 3 * PATIENCE
    finally:
        for connection in connections:
            connection.close()


def test_one_connection_for_many_requests(server: Server) -> None:
    with contextlib.closing(HTTPConnection("127.0.0.1", server.port, timeout=10)) as connection:
        for body, status in ((GOOD, 200), (b"{}", 400), (GOOD, 200)):
            connection.request("POST", "/", body, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            assert (reply.status, reply.read() != b"") == (status, True)
