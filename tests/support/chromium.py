"""A headless Chromium, driven by its own protocol over a WebSocket."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import subprocess
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

PROGRAM: Final = next(
    filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None
)
"""The browser; None if there is none here."""
_LARGEST: Final = 1 << 26  # bytes of a message; a screenshot has some


class Page:
    """A page of the browser."""

    def __init__(self, socket: WebSocketClientConnection) -> None:
        self._socket = socket
        self._count = 0
        self.problems: list[str] = []
        """The exceptions that nothing in the page caught."""

    async def ask(self, method: str, **parameters: object) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self._count += 1
        asked = {"id": self._count, "method": method, "params": parameters}
        await self._socket.write_message(json.dumps(asked))
        while True:
            text = await self._socket.read_message()
            assert text is not None, "the browser has ended"
            said: dict[str, Any] = json.loads(text)
            if said.get("method") == "Runtime.exceptionThrown":
                self.problems.append(json.dumps(said["params"]["exceptionDetails"]))
            if said.get("id") == self._count:
                assert "error" not in said, said
                result: dict[str, Any] = said["result"]
                return result

    async def go(self, url: str) -> None:
        """Load a page."""
        await self.ask("Page.enable")
        await self.ask("Runtime.enable")
        await self.ask("Page.navigate", url=url)

    async def value(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript; a promise is waited for."""
        found = await self._evaluated(expression)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    async def until(self, expression: str, seconds: float = 60) -> Any:
        """Return the value of an expression as soon as it is true; an error is not."""
        clock = asyncio.get_running_loop()
        end = clock.time() + seconds
        while True:
            found = await self._evaluated(expression)
            if "exceptionDetails" not in found and found["result"].get("value"):
                return found["result"]["value"]
            assert clock.time() < end, f"never true: {expression} {self.problems}"
            await asyncio.sleep(0.05)

    async def _evaluated(self, expression: str) -> dict[str, Any]:
        return await self.ask(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )

    async def point(self, x: float, y: float) -> None:
        """Move the pointer."""
        for shift in (3, 0):  # from somewhere else
            await self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x + shift, y=y)

    async def screenshot(self, path: Path) -> None:
        """Write a picture of what is seen."""
        found = await self.ask("Page.captureScreenshot")
        path.write_bytes(base64.b64decode(found["data"]))


@asynccontextmanager
async def page(width: int = 1400, height: int = 900) -> AsyncGenerator[Page]:
    """Start a browser with one page, and end it."""
    assert PROGRAM is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = subprocess.Popen(
            [
                *(PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
                *("--remote-debugging-port=0", f"--user-data-dir={folder}"),
                *(f"--window-size={width},{height}", "about:blank"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            socket = await _connected(Path(folder))
            yield Page(socket)
            socket.close()
        finally:
            process.terminate()
            process.wait(20)


async def _connected(folder: Path) -> WebSocketClientConnection:
    from tornado.httpclient import AsyncHTTPClient

    port = folder / "DevToolsActivePort"
    for _ in range(600):
        if port.exists() and (text := port.read_text("utf-8").split()):
            break
        await asyncio.sleep(0.1)
    else:
        raise AssertionError("the browser did not start")
    found = await AsyncHTTPClient().fetch(f"http://127.0.0.1:{text[0]}/json/list")
    [target] = [each for each in json.loads(found.body) if each["type"] == "page"]
    request = HTTPRequest(target["webSocketDebuggerUrl"])
    return await websocket_connect(request, max_message_size=_LARGEST)
