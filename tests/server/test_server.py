"""The language server, through its protocol: an editor without a screen."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

# pygls 2.1 asks what Python 3.14 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:'asyncio.iscoroutinefunction':DeprecationWarning")

PATIENCE = 12.0
"""Seconds in which an answer comes, on a machine with other work."""
ROOT = Path(__file__).parents[2]
MODEL = """\
import numpy as np
import pscdsl as psc
from pscdsl import f32


@psc.kernel
def mean(x: f32["n d"], y: f32["d"]):
    z = x * 2.0 + y
    return z.mean(axis=0)
"""
WRONG = MODEL.replace("+ y", "+ y[1:]")


class Client(LanguageClient):
    """What an editor receives."""

    def __init__(self) -> None:
        super().__init__("tests", "1")
        self.diagnostics: dict[str, Sequence[types.Diagnostic]] = {}
        self.log_messages: list[types.LogMessageParams] = []

        def report(params: types.PublishDiagnosticsParams) -> None:
            self.diagnostics[params.uri] = params.diagnostics

        def log(params: types.LogMessageParams) -> None:
            self.log_messages.append(params)

        known: Any = self
        known.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(report)
        known.feature(types.WINDOW_LOG_MESSAGE)(log)


class Editor:
    """An editor of the files in a folder."""

    def __init__(self, client: Client, folder: Path) -> None:
        self.client = client
        self.folder = folder
        self.version = 0

    def uri(self, name: str) -> str:
        """The URI of a file."""
        return (self.folder / name).as_uri()

    def open(self, name: str, text: str | None = None) -> None:
        """Open a file, or a text in the place of one."""
        text = (self.folder / name).read_text() if text is None else text
        item = types.TextDocumentItem(self.uri(name), "python", 0, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def change(self, name: str, text: str) -> None:
        """Type."""
        self.version += 1
        document = types.VersionedTextDocumentIdentifier(self.version, self.uri(name))
        whole = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [whole]))

    def close(self, name: str) -> None:
        """Close a file without saving it."""
        document = types.TextDocumentIdentifier(self.uri(name))
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(document))

    async def codes(self, name: str, *codes: str) -> list[types.Diagnostic]:
        """Wait until these codes and no others are reported of a file."""
        return await self.reported(self.uri(name), *codes)

    async def reported(self, uri: str, *codes: str) -> list[types.Diagnostic]:
        """Wait for these codes at a URI."""
        found = None
        for _ in range(round(PATIENCE / 0.02)):
            found = self.client.diagnostics.get(uri)
            if found is not None and [each.code for each in found] == [*codes]:
                return [*found]
            await asyncio.sleep(0.02)
        raise AssertionError(f"{uri}: {found}, not {codes}; {self.client.log_messages}")

    async def actions(
        self, name: str, line: int, only: Iterable[str] = ()
    ) -> list[types.CodeAction]:
        """What is offered on a line."""
        place = types.Position(line, 0)
        context = types.CodeActionContext([], only=[*only] or None)
        document = types.TextDocumentIdentifier(self.uri(name))
        params = types.CodeActionParams(document, types.Range(place, place), context)
        found = await self.client.text_document_code_action_async(params)
        return [each for each in found or () if isinstance(each, types.CodeAction)]

    async def hover(self, name: str, line: int, character: int) -> str:
        """What is shown of a place."""
        params = types.HoverParams(
            types.TextDocumentIdentifier(self.uri(name)), types.Position(line, character)
        )
        found = await self.client.text_document_hover_async(params)
        if found is None:
            return ""
        assert isinstance(found.contents, types.MarkupContent)
        return found.contents.value


def applied(text: str, edits: Iterable[types.TextEdit]) -> str:
    """A text of ASCII characters with edits made, as an editor makes them."""
    lines = text.splitlines(keepends=True)

    def offset(place: types.Position) -> int:
        return sum(map(len, lines[: place.line])) + place.character

    for edit in sorted(edits, key=lambda each: offset(each.range.start), reverse=True):
        text = text[: offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end) :]
    return text


def edits_of(action: types.CodeAction, uri: str) -> list[types.TextEdit]:
    assert action.edit is not None
    assert action.edit.changes is not None
    return [*action.edit.changes[uri]]


@asynccontextmanager
async def editing(folder: Path, *arguments: str, options: object = None) -> AsyncGenerator[Editor]:
    command = [sys.executable, *(arguments or ("-m", "pscdsl", "server"))]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    client = Client()
    process: Any = client
    await process.start_io(*command, env=environment)
    try:
        await client.initialize_async(
            types.InitializeParams(
                types.ClientCapabilities(),
                root_uri=folder.as_uri(),
                workspace_folders=[types.WorkspaceFolder(folder.as_uri(), "project")],
                initialization_options=options,
            )
        )
        client.initialized(types.InitializedParams())
        yield Editor(client, folder)
    finally:
        async with asyncio.timeout(PATIENCE):
            await client.shutdown_async(None)
            client.exit(None)
            await process.stop()


def run(test: object) -> None:
    asyncio.run(test)  # type: ignore[arg-type]


def test_what_is_typed_is_checked_before_it_is_saved(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)

    async def session() -> None:
        async with editing(tmp_path) as editor:
            editor.open("model.py")
            editor.change("model.py", WRONG)
            (found,) = await editor.codes("model.py", "PSC300")
            assert found.range.start == types.Position(7, 8)
            assert found.severity is types.DiagnosticSeverity.Error
            assert found.code_description is not None
            page = Path(found.code_description.href.removeprefix("file://")).read_text()
            assert page.startswith("# PSC300: ")
            editor.change("model.py", MODEL)
            await editor.codes("model.py")
            editor.change("model.py", WRONG)
            await editor.codes("model.py", "PSC300")
            editor.close("model.py")
            await editor.codes("model.py")

    run(session())


HELPER = "def halved(x):\n    return x * x[1:]\n"
USER = """\
import pscdsl as psc
from pscdsl import f32

from helper import halved


@psc.kernel
def f(x: f32["n"]) -> f32["n"]:
    return x + halved(x)
"""


def test_other_places_are_related(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "user.py").write_text(USER)

    async def session() -> None:
        async with editing(tmp_path) as editor:
            editor.open("user.py")
            (found,) = await editor.codes("user.py", "PSC300")
            places = [each.location for each in found.related_information or ()]
            assert editor.uri("helper.py") in [each.uri for each in places]
            # The other file is seen as the editor has it, and again as it is on disk.
            editor.open("helper.py", HELPER.replace("[1:]", ""))
            await editor.codes("user.py")
            editor.close("helper.py")
            await editor.codes("user.py", "PSC300")
            (tmp_path / "helper.py").write_text(HELPER.replace("[1:]", ""))
            event = types.FileEvent(editor.uri("helper.py"), types.FileChangeType.Changed)
            editor.client.workspace_did_change_watched_files(
                types.DidChangeWatchedFilesParams([event])
            )
            await editor.codes("user.py")

    run(session())


def test_settings_and_suppressions_count(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.pscdsl]\nper-file-ignores = {"a.py" = ["PSC3"]}'
    )
    ignored = WRONG.replace("y[1:]", "y[1:]  # psc: ignore[PSC300]")

    async def session() -> None:
        async with editing(tmp_path, options={"ignore": ["PSC92"]}) as editor:
            editor.open("a.py", WRONG)
            editor.open("b.py", ignored)
            editor.open("c.py", WRONG)
            editor.open("d.py", MODEL.replace("+ y", "+ y  # psc: ignore[PSC300]"))
            await editor.codes("c.py", "PSC300")
            for name in ("a.py", "b.py", "d.py"):
                await editor.codes(name)
            assert (await editor.hover("b.py", 7, ignored.split("\n")[7].index("PSC"))).startswith(
                "**PSC300**: "
            )

    run(session())


FIXABLE = """\
import numpy as np
import pscdsl as psc
from pscdsl import f32


@psc.kernel
def f(x: f32["n"]) -> f32["n"]:
    y = np.asarray(x)
    return np.zero_like(x) + y
"""


def test_fixes_make_it_clean(tmp_path: Path) -> None:
    async def session() -> None:
        async with editing(tmp_path) as editor:
            uri = editor.uri("model.py")
            editor.open("model.py", FIXABLE)
            await editor.codes("model.py", "PSC103")
            fix, ignore = await editor.actions("model.py", 8, ["quickfix"])
            assert "np.zeros_like" in applied(FIXABLE, edits_of(fix, uri))
            editor.change("model.py", applied(FIXABLE, edits_of(fix, uri)))
            await editor.codes("model.py")
            editor.change("model.py", applied(FIXABLE, edits_of(ignore, uri)))
            await editor.codes("model.py")

    run(session())


def test_all_safe_fixes_are_made_at_once(tmp_path: Path) -> None:
    async def session() -> None:
        async with editing(tmp_path) as editor:
            editor.open("model.py", STORES)
            (made,) = await editor.actions("model.py", 0, ["source.fixAll"])
            editor.change("model.py", applied(STORES, edits_of(made, editor.uri("model.py"))))
            await editor.codes("model.py")

    run(session())


STORES = """\
import numpy as np
import pscdsl as psc
from pscdsl import f32


@psc.kernel
def f(x: f32["n"]) -> f32["n"]:
    assert x.shape[0] >= 2
    x[0] = 1.0
    return x


@psc.kernel
def g(x: f32["n"]) -> f32["n"]:
    assert x.shape[0] >= 2
    x[1] = 1.0
    return x
"""


def test_types_signatures_and_costs_are_shown(tmp_path: Path) -> None:
    async def session() -> None:
        async with editing(tmp_path) as editor:
            editor.open("model.py", MODEL)
            document = types.TextDocumentIdentifier(editor.uri("model.py"))
            kernel = await editor.hover("model.py", 6, 5)
            assert "mean(x: f32[n d], y: f32[d]) -> f32[d]" in kernel
            assert "3*d*n+d flops" in kernel
            assert "x: f32[n d]" in await editor.hover("model.py", 7, 8)
            assert "z: f32[n d]" in await editor.hover("model.py", 8, 11)
            everything = types.Range(types.Position(0, 0), types.Position(20, 0))
            hints = await editor.client.text_document_inlay_hint_async(
                types.InlayHintParams(document, everything)
            )
            found = {
                (each.position.line, each.position.character): each.label for each in hints or ()
            }
            assert found == {(6, 36): " -> f32[d]", (7, 5): ": f32[n d]"}
            params = types.CodeLensParams(document)
            (lens,) = [*(await editor.client.text_document_code_lens_async(params) or ())]
            lens = await editor.client.code_lens_resolve_async(lens)
            assert lens.command is not None
            assert lens.command.title.startswith("3*d*n+d flops, ")
            text = await editor.client.workspace_execute_command_async(
                types.ExecuteCommandParams("pscdsl.explain", ["PSC300"])
            )
            assert str(text).startswith("# PSC300: ")

    run(session())


SIZES = """\
import pscdsl as psc
from pscdsl import f32


@psc.kernel  # psc: budget flops <= 100*n
def f(x: f32["n d"], n: int) -> f32["n"]:
    y: f32["n d"] = x + n
    return y.sum(axis=1)


@psc.kernel
def g(x: f32["n"]) -> f32["n"]:
    return x
"""


def test_sizes_are_renamed_in_one_kernel(tmp_path: Path) -> None:
    async def session() -> None:
        async with editing(tmp_path) as editor:
            editor.open("model.py", SIZES)
            document = types.TextDocumentIdentifier(editor.uri("model.py"))
            place = types.Position(6, 12)
            prepared = await editor.client.text_document_prepare_rename_async(
                types.PrepareRenameParams(document, place)
            )
            assert isinstance(prepared, types.PrepareRenamePlaceholder)
            assert (prepared.placeholder, prepared.range.start.character) == ("n", 12)
            edit = await editor.client.text_document_rename_async(
                types.RenameParams(document, place, "rows")
            )
            assert edit is not None
            assert edit.changes is not None
            after = applied(SIZES, edit.changes[document.uri])
            first, rest = after.split("\n\n\n@psc.kernel\ndef g")
            assert rest == SIZES.split("\n\n\n@psc.kernel\ndef g")[1]
            assert "<= 100*rows\n" in first
            assert 'x: f32["rows d"], rows: int) -> f32["rows"]' in first
            assert 'y: f32["rows d"] = x + rows\n' in first
            found = await editor.client.text_document_definition_async(
                types.DefinitionParams(document, place)
            )
            assert isinstance(found, types.Location)
            assert found.range.start == types.Position(5, 14)

    run(session())


def test_cells_have_findings_of_their_own(tmp_path: Path) -> None:
    cells = [
        "import pscdsl as psc\nfrom pscdsl import f32",
        "def helper(x):\n    return x + x[1:]",
        "@psc.kernel\ndef f(x: f32['n']):\n    return helper(x)",
    ]
    uris = [f"vscode-notebook-cell:/a.ipynb#{number}" for number in range(3)]

    async def session() -> None:
        async with editing(tmp_path) as editor:
            notebook = editor.uri("a.ipynb")
            kinds = [types.NotebookCell(types.NotebookCellKind.Code, uri) for uri in uris]
            texts = [
                types.TextDocumentItem(uri, "python", 0, text)
                for uri, text in zip(uris, cells, strict=True)
            ]
            editor.client.notebook_document_did_open(
                types.DidOpenNotebookDocumentParams(
                    types.NotebookDocument(notebook, "jupyter-notebook", 0, kinds), texts
                )
            )
            (found,) = await editor.reported(uris[1], "PSC300")
            assert found.range.start == types.Position(1, 11)
            assert uris[2] in [each.location.uri for each in found.related_information or ()]
            whole = types.TextDocumentContentChangeWholeDocument(cells[1].replace("[1:]", ""))
            changed = types.NotebookDocumentCellContentChanges(
                types.VersionedTextDocumentIdentifier(1, uris[1]), [whole]
            )
            editor.client.notebook_document_did_change(
                types.DidChangeNotebookDocumentParams(
                    types.VersionedNotebookDocumentIdentifier(1, notebook),
                    types.NotebookDocumentChangeEvent(
                        cells=types.NotebookDocumentCellChanges(text_content=[changed])
                    ),
                )
            )
            await editor.reported(uris[1])

    run(session())


CRASHING = """\
import sys
from pscdsl._src.checker import check
from pscdsl._src.cli import main
from pscdsl._src.server import workspace

own, reads = check.check_definition, workspace.reads_of

def crash(definition):
    if definition.name == "crash":
        raise RuntimeError("made up")
    return own(definition)

def crash_later(project, path):
    if path.endswith("later.py"):
        raise RuntimeError("made up later")
    return reads(project, path)

check.check_definition, workspace.reads_of = crash, crash_later
sys.exit(main(["server"]))
"""


def test_a_failure_of_ours_is_a_finding_or_a_message(tmp_path: Path) -> None:
    async def session() -> None:
        async with editing(tmp_path, "-c", CRASHING) as editor:
            editor.open("later.py", MODEL)
            editor.open("model.py", MODEL.replace("def mean", "def crash"))
            (found,) = await editor.codes("model.py", "PSC999")
            assert "made up" in found.message
            async with asyncio.timeout(PATIENCE):
                while not any("made up later" in e.message for e in editor.client.log_messages):
                    await asyncio.sleep(0.02)
            editor.change("model.py", WRONG)
            await editor.codes("model.py", "PSC300")

    run(session())


def test_what_is_missing_is_named() -> None:
    code = (
        "import sys; sys.modules['pygls'] = None; sys.modules['lsprotocol'] = None\n"
        "from pscdsl._src.cli import main; sys.exit(main(['server']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install pygls" in done.stderr
