"""The playground of the documentation: its half in Python, and the page in a headless Chromium.

The page runs twice: with Pyodide, as users have it, and with this Python in place of the worker's.
Each needs what `make playground` builds into the environment, and is skipped without.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support import chromium

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "docs" / "_site" / "playground"
SITE = Path(sys.prefix) / "playground" / "site"
EXAMPLES = {
    path.stem: path.read_text("utf-8") for path in sorted((SOURCES / "examples").glob("*.py"))
}


def load(name: str) -> Any:
    """Load one of the playground's modules."""
    spec = importlib.util.spec_from_file_location(f"playground_{name}", SOURCES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Return what answers the page's requests, in JSON."""
    monkeypatch.chdir(tmp_path)
    answering: Callable[[str], str] = load("session").answering(tmp_path)
    return answering


@pytest.fixture
def call(answer: Callable[[str], str]) -> Callable[..., Any]:
    """Return what calls the Python half as the page does."""

    def called(name: str, *given: object) -> Any:
        return json.loads(answer(json.dumps({"call": name, "arguments": given})))

    return called


# The half in Python.


FOUND: dict[str, tuple[list[str], list[str]]] = {
    "1_shapes": (["PSC300"], ["normalise"]),
    "2_gradient": ([], ["loss", "train"]),
    "3_keys": (["PSC601"], ["noisy"]),
    "4_dtypes": (["PSC401"], ["residual"]),
    "5_loops": (["PSC205"], ["smooth", "doubled"]),
    "6_numpy": ([], []),
}
"""The codes and the kernels of each example."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_has_its_findings(call: Callable[..., Any], name: str) -> None:
    codes, kernels = FOUND[name]
    found = call("check", EXAMPLES[name])
    assert [each["code"] for each in found["findings"]] == codes
    assert found["kernels"] == kernels
    assert all(f"[{code}]" in found["output"] for code in codes)


def test_the_page_names_every_example_by_its_first_line() -> None:
    titles = load("build").examples()
    assert [*titles.values()] == [*EXAMPLES.values()]
    assert all(text.startswith(f"# {title}\n") for title, text in titles.items())


def test_places_are_offsets_in_the_units_of_javascript(call: Callable[..., Any]) -> None:
    before = "# \N{MATHEMATICAL BOLD CAPITAL A}: two units\n"
    program = before + EXAMPLES["1_shapes"]
    [finding] = call("check", program)["findings"]
    units = program.encode("utf-16-le")
    shown = units[2 * finding["from"] : 2 * finding["to"]].decode("utf-16-le")
    assert shown == "x - x.mean(axis=1)"
    at = len(before) + 1 + EXAMPLES["1_shapes"].index("x.mean")
    assert call("hover", program, at) == {
        "text": "```python\nx: f32[n d]\n```",
        "from": at,
        "to": at + 1,
    }
    assert call("hover", program, 0) is None
    assert call("hover", program, len(units)) is None


def test_a_fix_makes_the_program_right(call: Callable[..., Any]) -> None:
    program = EXAMPLES["1_shapes"]
    [finding] = call("check", program)["findings"]
    [edit] = finding["fixes"][0]["edits"]
    fixed = program[: edit["from"]] + edit["insert"] + program[edit["to"] :]
    assert call("check", fixed)["findings"] == []


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["ir", "program.py:loss", "--grad"], "grad(loss)[d n]"),
        (["cost", "program.py:train"], "flops"),
        (["explain", "PSC300"], "do not broadcast together"),
        (["discover", "program.py"], "2 kernels already"),
        (["cost", "program.py:other"], "has no kernel `other`"),
    ],
)
def test_commands_print_what_they_print_elsewhere(
    call: Callable[..., Any], arguments: list[str], printed: str
) -> None:
    assert printed in call("command", EXAMPLES["2_gradient"], arguments)


@pytest.mark.parametrize("arguments", [[], ["run", "program.py:loss"], ["server"], ["--version"]])
def test_no_other_command_runs(call: Callable[..., Any], arguments: list[str]) -> None:
    with pytest.raises(ValueError, match="does not run in the playground"):
        call("command", EXAMPLES["2_gradient"], arguments)


def test_a_program_that_is_no_python_has_a_finding(call: Callable[..., Any]) -> None:
    found = call("check", "def f(:\n")
    assert [each["severity"] for each in found["findings"]] == ["error"]
    assert found["kernels"] == []


# The page.

PAGE = b"""<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="playground.css">
<div id="pg-page"></div><script type="module" src="playground.js"></script>"""
WORKER = b"""\
self.onmessage = async ({ data: { id, request } }) => {
  const response = await fetch("/call", { method: "POST", body: request });
  self.postMessage({ id, answer: await response.text() });
};"""


class Handler(SimpleHTTPRequestHandler):
    """Serves the files of the page; without Pyodide, also the answers."""

    def __init__(self, *given: Any, answer: Callable[[str], str] | None, **more: Any) -> None:
        self.answer = answer
        super().__init__(*given, directory=str(SITE), **more)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Send a file, or what the test has in its place."""
        if self.path == "/":
            self.reply(PAGE, "text/html")
        elif self.path == "/links.js":
            self.reply((SOURCES / "links.js").read_bytes(), "text/javascript")
        elif self.answer is not None and self.path == "/worker.js":
            self.reply(WORKER, "text/javascript")
        elif self.answer is not None and self.path == "/contents.json":
            contents = json.dumps({"examples": load("build").examples()})
            self.reply(contents.encode(), "application/json")
        else:
            super().do_GET()

    def do_POST(self) -> None:
        """Answer a request of the page."""
        assert self.answer is not None
        request = self.rfile.read(int(self.headers["Content-Length"]))
        self.reply(self.answer(request.decode()).encode(), "application/json")

    def reply(self, body: bytes, kind: str) -> None:
        """Send a body."""
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture(params=["pyodide", "beside"])
def address(request: pytest.FixtureRequest, answer: Callable[[str], str]) -> Iterator[str]:
    """Serve the page, and return its address."""
    if chromium.PROGRAM is None:
        pytest.skip("there is no Chromium")
    if not (SITE / "playground.js").exists():
        pytest.skip("`make playground` has not built the page")
    if request.param == "pyodide" and not (SITE / "contents.json").exists():
        pytest.skip("`make playground` could not fetch the packages of Pyodide")
    given = None if request.param == "pyodide" else answer
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, answer=given)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


SHOWN = "document.getElementById('pg-page').dataset.shown === '{}'"
TEXT = "document.querySelector('{}').textContent"
PLACE = """(() => {{
  const walker = document.createTreeWalker(
    document.querySelector(".cm-content"), NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode()); ) {{
    const at = node.data.indexOf("{0}");
    if (at < 0) continue;
    const range = document.createRange();
    range.setStart(node, at);
    range.setEnd(node, at + 1);
    const box = range.getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
  }}
}})()"""


def press(text: str) -> str:
    """Return what presses a button."""
    return (
        f"[...document.querySelectorAll('button')].find((b) => b.textContent === {text!r}).click()"
    )


def test_the_page_checks_a_program_while_it_is_edited(address: str) -> None:
    async def use() -> None:
        async with chromium.page() as page:
            await page.go(address)
            await page.until(SHOWN.format("check"), 180)
            # Findings in place and as in a terminal.
            carets = await page.value(TEXT.format(".pg-carets"))
            assert carets.lstrip().startswith("^" * 18 + " PSC300 axis -1: d is not n")
            assert "1 kernel checked in 1 file: 1 error" in await page.value(
                TEXT.format(".pg-output")
            )
            # The type of a name under the pointer, and beside it the finding with its fixes.
            await page.point(*await page.value(PLACE.format("x.")))
            assert await page.until("document.querySelector('.pg-hover')?.textContent") == (
                "x: f32[n d]"
            )
            await page.until("!!document.querySelector('.cm-diagnosticAction')")
            await page.value(
                "document.querySelector('.cm-diagnosticAction').dispatchEvent("
                "new MouseEvent('mousedown', {bubbles: true}))"
            )
            await page.until(f"{TEXT.format('.pg-output')}.includes('no errors')")
            assert "keepdims=True" in await page.value(TEXT.format(".cm-content"))
            assert await page.value("document.querySelector('.pg-carets')") is None
            # The meaning of a code; the other commands.
            await choose(page, 2)
            await page.until("!!document.querySelector('.pg-code')")
            await page.value(press("PSC601"))
            await page.until(SHOWN.format("explain PSC601"))
            assert "PSC601: " in await page.value(TEXT.format(".pg-output"))
            await choose(page, 1)
            for title, name, printed in (
                ("Gradient", "grad", "grad(loss)[d n]"),
                ("Typed program", "ir", "loss[d n]"),
                ("Cost", "cost", "flops     2*d*n+24*n+1"),
                ("Discover", "discover", "2 kernels already"),
            ):
                await page.value(press(title))
                await page.until(SHOWN.format(name))
                assert printed in await page.value(TEXT.format(".pg-output"))
            # A link with the program, which another page opens.
            await page.value(press("Copy link"))
            link = await page.until("location.hash.length > 9 && location.href")
            await page.go("about:blank")
            await page.go(link)
            await page.until(SHOWN.format("check"), 180)
            assert "def train(" in await page.value(TEXT.format(".cm-content"))
            assert page.problems == []

    asyncio.run(use())


async def choose(page: chromium.Page, example: int) -> None:
    """Pick an example."""
    await page.value(
        "((select) => { select.selectedIndex = INDEX; select.onchange(); })"
        "(document.getElementById('pg-examples'))".replace("INDEX", str(example))
    )


def test_links_carry_every_program_and_no_endless_one(address: str) -> None:
    async def use() -> None:
        async with chromium.page() as page:
            await page.go(address)
            await page.until("!!document.querySelector('.cm-content')", 60)
            for program in ("", "x = 1\n", "# \N{GREEK SMALL LETTER ALPHA}\n" * 2000, "\N{SNAKE}"):
                given = json.dumps(program)
                back = await page.value(
                    "import('/links.js').then(async (links) => "
                    f"links.programOf(await links.fragment({given})))"
                )
                assert back == program
            for fragment, why in (
                ("#program=%%%", "encoded"),
                ("#program=AAAA", ""),
                (None, "too long"),
            ):
                given = (
                    "await links.fragment('0'.repeat(1 << 21))"
                    if fragment is None
                    else json.dumps(fragment)
                )
                said = await page.value(
                    "import('/links.js').then(async (links) => "
                    f"links.programOf({given}).then(() => null, (e) => String(e)))"
                )
                assert said is not None
                assert why in said
            assert await page.value("import('/links.js').then((l) => l.programOf('#else'))") is None

    asyncio.run(use())
