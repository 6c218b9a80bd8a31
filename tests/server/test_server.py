"""The language server, through its protocol: an editor without a screen."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient

PATIENCE = 30.0
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


class Editor:
    """An editor of the files in a folder."""

    def __init__(self, client: LanguageClient, folder: Path) -> None:
        self.client = client
        self.folder = folder
        self.version = 0

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def open(self, name: str, text: str | None = None) -> None:
        text = (self.folder / name).read_text() if text is None else text
        item = types.TextDocumentItem(self.uri(name), "python", 0, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def change(self, name: str, text: str) -> None:
        self.version += 1
        document = types.VersionedTextDocumentIdentifier(self.version, self.uri(name))
        whole = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [whole]))

    def close(self, name: str) -> None:
        document = types.TextDocumentIdentifier(self.uri(name))
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(document))

    async def codes(self, name: str, *codes: str) -> list[types.Diagnostic]:
        """Wait until these codes and no others are reported of a file."""
        return await self.reported(self.uri(name), *codes)

    async def reported(self, uri: str, *codes: str) -> list[types.Diagnostic]:
        async with asyncio.timeout(PATIENCE):
            while True:
                found = self.client.diagnostics.get(uri)
                if found is not None and [each.code for each in found] == [*codes]:
                    return [*found]
                await asyncio.sleep(0.02)

    async def actions(
        self, name: str, line: int, only: Iterable[str] = ()
    ) -> list[types.CodeAction]:
        place = types.Position(line, 0)
        context = types.CodeActionContext([], only=[*only] or None)
        document = types.TextDocumentIdentifier(self.uri(name))
        params = types.CodeActionParams(document, types.Range(place, place), context)
        found = await self.client.text_document_code_action_async(params)
        return [each for each in found or () if isinstance(each, types.CodeAction)]

    async def hover(self, name: str, line: int, character: int) -> str:
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
async def editing(
    folder: Path, *arguments: str, options: object = None
) -> AsyncGenerator[Editor]:
    command = [sys.executable, *(arguments or ("-m", "pscdsl", "server"))]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    config = ClientServerConfig(server_command=command, server_env=environment)
    client = await config.start()
    assert isinstance(client, LanguageClient)
    try:
        await client.initialize_session(
            types.InitializeParams(
                types.ClientCapabilities(),
                root_uri=folder.as_uri(),
                workspace_folders=[types.WorkspaceFolder(folder.as_uri(), "project")],
                initialization_options=options,
            )
        )
        yield Editor(client, folder)
        await client.shutdown_session()
    finally:
        await client.stop()


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
