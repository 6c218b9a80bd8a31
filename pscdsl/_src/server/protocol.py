"""The protocol: requests and notifications, and the answers.

Everything runs in the event loop. A check is the longest period without reading input: texts that
change meanwhile make the next check superfluous.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, cast

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from pscdsl._src.checker.selection import Layer
from pscdsl._src.frontend.text.display import SUFFIX
from pscdsl._src.server import findings, kernels, size_names
from pscdsl._src.server.documents import Documents, encoded, is_checked, notebook
from pscdsl._src.server.explanations import Explanations, kind_of, page
from pscdsl._src.server.workspace import Checked, TextPosition, Workspace
from pscdsl.typing.diagnostics import Span

DELAY = 0.02
"""Seconds without an edit after which a check starts."""
_IDLE = 2.0
"""Seconds without a check after which the garbage of programs is collected."""
EXPLAIN = "pscdsl.explain"
_WATCHED = ("**/*.py", "**/*.ipynb", "**/pyproject.toml", "**/*.json")


class Server(LanguageServer):
    """The state of a session, and the reactions to changes."""

    def __init__(self, version: str) -> None:
        cells = types.NotebookDocumentFilterWithCells(
            notebook="*", cells=[types.NotebookCellLanguage(language="python")]
        )
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            "pscdsl",
            version,
            notebook_document_sync=types.NotebookDocumentSyncOptions(notebook_selector=[cells]),
        )
        self.files = Workspace()
        self.documents = Documents(self.files)
        self.explanations = Explanations()
        self._sent: dict[str, list[types.Diagnostic]] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_settled = False

    def begin(self, params: types.InitializeParams) -> None:
        """Take the folders and the settings that the editor names."""
        folders = [each.uri for each in params.workspace_folders or ()] or [params.root_uri or ""]
        paths = [path for uri in folders if (path := to_fs_path(uri)) and os.path.isdir(path)]
        if paths:
            os.chdir(paths[0])  # where `pscdsl check` would run
        options = _object(params.initialization_options)
        layer = Layer(
            _codes(options.get("select")) or None,
            _codes(options.get("extendSelect")),
            _codes(options.get("ignore")),
        )
        self.files = Workspace(paths, layer, self.tell)
        self.documents = Documents(self.files)
        self.documents.count_as(self.workspace.position_encoding)
        self.explanations = Explanations(str(options.get("documentation") or ""))

    def tell(self, text: str) -> None:
        """Write something into the editor's log."""
        self.window_log_message(types.LogMessageParams(types.MessageType.Warning, text))

    # Changes.

    def take(self, uri: str) -> None:
        """Take the text of a document as the editor has it."""
        document = self.workspace.get_text_document(uri)
        path = self.documents.file(uri)
        if path is not None and is_checked(path) and not path.endswith(SUFFIX):
            self.documents.uris[path] = uri
            self.files.put(path, encoded(document.source))
            self.later(path)

    def saved(self, uri: str) -> None:
        """Compare the disk with the files that were read, and check the saved file."""
        self.files.look()
        self.later(self.documents.file(uri))

    def take_notebook(self, uri: str) -> None:
        """Take the cells of a notebook as the editor has them."""
        document = self.workspace.get_notebook_document(notebook_uri=uri)
        path = self.documents.file(uri)
        if document is None or path is None:
            return
        self.documents.uris[path] = uri
        self.documents.cells[path] = [cell.document for cell in document.cells]
        texts = [self.workspace.get_text_document(cell.document) for cell in document.cells]
        self.files.put(path, notebook([(_is_python(each), each.source) for each in texts]))
        self.later(path)

    def leave(self, uri: str) -> None:
        """Take a file as it is on disk again."""
        path = self.documents.file(uri)
        if path is not None:
            self.files.drop(path)
            self.documents.uris.pop(path, None)
            self.later()

    def later(self, first: str | None = None) -> None:
        """Check the open documents soon, and the edited one first."""
        if self._task is not None:
            self._task.cancel()
        self._task = asyncio.get_running_loop().create_task(self._check_all(first))

    async def _check_all(self, first: str | None) -> None:
        await asyncio.sleep(DELAY)
        opened = [*self.files.buffers]
        for path in sorted(opened, key=lambda path: path != first):
            try:
                self.files.check(path)
                if path == first and len(opened) > 1:
                    self.publish()
            except Exception:
                self.tell(traceback.format_exc())
            await asyncio.sleep(0.001)  # input in the meantime may make the rest superfluous
        try:
            self.publish()
        except Exception:
            self.tell(traceback.format_exc())
        await asyncio.sleep(_IDLE)
        gc.collect()
        if not self._is_settled:
            gc.freeze()  # the project's trees stay, so the collector skips them
            self._is_settled = True

    def publish(self) -> None:
        """Send the changes of the reported findings."""
        found: dict[str, list[types.Diagnostic]] = {}
        for path, uri in self.documents.uris.items():
            found.update((each, []) for each in self.documents.cells.get(path, [uri]))
        for shown, reported in self.files.findings().items():
            if not shown.startswith("<"):
                uri = self.documents.uri(shown)
                rows = [
                    findings.shown(self.documents, self.explanations, each) for each in reported
                ]
                found.setdefault(uri, []).extend(rows)
        before, self._sent = self._sent, found
        for uri in dict.fromkeys((*found, *before)):
            if uri not in before or found.get(uri, []) != before[uri]:
                params = types.PublishDiagnosticsParams(uri, found.get(uri, []))
                self.text_document_publish_diagnostics(params)

    # Answers.

    def checked(self, uri: str) -> Checked | None:
        """Return the check of a document that is open."""
        path = self.documents.file(uri)
        return self.files.check(path) if path in self.files.buffers else None

    def asked(
        self, uri: str, position: types.Position
    ) -> tuple[Checked, TextPosition] | tuple[None, None]:
        """Return the check of an open document, and a place in it."""
        checked, place = self.checked(uri), self.documents.place(uri, position)
        return (None, None) if checked is None or place is None else (checked, place)

    def position(self, place: TextPosition) -> types.Position:
        """Return a place in the protocol's form."""
        span = Span(place.path, place.line, place.column, place.line, place.column)
        return self.documents.range(span).start

    def size_name(
        self, uri: str, position: types.Position
    ) -> tuple[str, list[Span], TextPosition] | None:
        """Return the name of a size at a position, and its places."""
        checked, place = self.asked(uri, position)
        source = None if checked is None else checked.source
        if source is None or place is None:
            return None
        found = size_names.occurrences(source, place)
        return None if found is None else (*found, place)


def serve(version: str) -> None:
    """Serve an editor over standard input and output until it asks to exit."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else may be written among the answers
    logging.getLogger("pygls").setLevel(logging.ERROR)
    server = made(version)
    gc.collect()
    gc.freeze()  # loaded modules stay
    server.start_io(sys.stdin.buffer, answers)


def made(version: str) -> Server:
    """Return a server with all its handlers."""
    server = Server(version)
    _sync(server)
    _notebooks(server)
    _asks(server)
    _size_names(server)
    return server


def _sync(server: Server) -> None:
    @server.feature(types.INITIALIZE)
    def begin(params: types.InitializeParams) -> None:
        server.begin(params)

    @server.feature(types.INITIALIZED)
    async def watch(params: types.InitializedParams) -> None:
        workspace = server.client_capabilities.workspace
        watching = None if workspace is None else workspace.did_change_watched_files
        if watching is None or not watching.dynamic_registration:
            return
        patterns = [types.FileSystemWatcher(each) for each in _WATCHED]
        options = types.DidChangeWatchedFilesRegistrationOptions(patterns)
        method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
        registration = types.Registration("pscdsl-files", method, options)
        await server.client_register_capability_async(types.RegistrationParams([registration]))

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        server.take(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        server.take(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        server.saved(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        server.leave(params.text_document.uri)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def on_disk(params: types.DidChangeWatchedFilesParams) -> None:
        paths = (server.documents.file(each.uri) for each in params.changes)
        server.files.reread([path for path in paths if path is not None])
        server.later()


def _notebooks(server: Server) -> None:
    @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenNotebookDocumentParams) -> None:
        server.take_notebook(params.notebook_document.uri)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeNotebookDocumentParams) -> None:
        server.take_notebook(params.notebook_document.uri)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveNotebookDocumentParams) -> None:
        server.saved(params.notebook_document.uri)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseNotebookDocumentParams) -> None:
        uri = params.notebook_document.uri
        path = server.documents.file(uri)
        server.leave(uri)
        server.publish()  # while the cells are known
        server.documents.cells.pop(path or "", None)


def _asks(server: Server) -> None:
    options = types.CodeActionOptions(code_action_kinds=[*findings.KINDS])

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)
    def actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        checked = server.checked(params.text_document.uri)
        return [] if checked is None else [*findings.actions(server.documents, checked, params)]

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        checked, place = server.asked(params.text_document.uri, params.position)
        if checked is None or place is None:
            return None
        lines = server.documents.lines(place.path)
        line = lines[place.line - 1] if place.line <= len(lines) else ""
        found = kernels.hover(checked, place, line)
        if found is None:
            return None
        text, span = found
        content = types.MarkupContent(types.MarkupKind.Markdown, text)
        return types.Hover(content, None if span is None else server.documents.range(span))

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    def hints(params: types.InlayHintParams) -> list[types.InlayHint]:
        uri = params.text_document.uri
        checked, shown = server.checked(uri), server.documents.shown(uri)
        if checked is None or shown is None:
            return []
        return [
            types.InlayHint(
                server.position(each.place),
                each.text,
                kind=types.InlayHintKind.Type,
                tooltip=None if each.text == each.full else each.full,
            )
            for each in kernels.hints(checked, shown)
            if params.range.start.line < each.place.line <= params.range.end.line + 1
        ]

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS, types.CodeLensOptions(resolve_provider=True))
    def lenses(params: types.CodeLensParams) -> list[types.CodeLens]:
        uri = params.text_document.uri
        checked, shown = server.checked(uri), server.documents.shown(uri)
        if checked is None or shown is None:
            return []
        return [
            types.CodeLens(server.documents.range(span), data={"uri": uri, "kernel": name})
            for span, (name, _) in kernels.lenses(checked, shown)
        ]

    @server.feature(types.CODE_LENS_RESOLVE)
    def resolved(params: types.CodeLens) -> types.CodeLens:
        data = _object(params.data)
        checked = server.checked(str(data.get("uri")))
        for name, definition in () if checked is None else checked.kernels:
            if name == data.get("kernel"):
                text = kernels.cost_text(definition) or "no cost: see the findings"
                params.command = types.Command(text, "")
        return params

    @server.command(EXPLAIN)
    def explain(code: str) -> str:
        kind = kind_of(code)
        return f"no such code: {code}" if kind is None else page(kind)


def _size_names(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def definition(params: types.DefinitionParams) -> types.Location | None:
        uri = params.text_document.uri
        found = server.size_name(uri, params.position)
        if found is None:
            return None
        first = found[1][0]
        return types.Location(server.documents.uri(first.path), server.documents.range(first))

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    def references(params: types.ReferenceParams) -> list[types.Location] | None:
        found = server.size_name(params.text_document.uri, params.position)
        return found and [
            types.Location(server.documents.uri(each.path), server.documents.range(each))
            for each in found[1]
        ]

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    def rename(params: types.RenameParams) -> types.WorkspaceEdit | None:
        found = server.size_name(params.text_document.uri, params.position)
        if found is None:
            return None
        if not size_names.is_name(params.new_name):
            raise ValueError(f"`{params.new_name}` is not the name of a size")
        changes: dict[str, list[types.TextEdit]] = {}
        for each in found[1]:
            edit = types.TextEdit(server.documents.range(each), params.new_name)
            changes.setdefault(server.documents.uri(each.path), []).append(edit)
        return types.WorkspaceEdit(changes=changes)

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    def prepare(params: types.PrepareRenameParams) -> types.PrepareRenamePlaceholder | None:
        found = server.size_name(params.text_document.uri, params.position)
        if found is None:
            return None
        name, spans, place = found
        span = next(each for each in spans if place.within(each))
        return types.PrepareRenamePlaceholder(server.documents.range(span), name)


def _is_python(document: Any) -> bool:
    return document.language_id in (None, "python")


def _object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _codes(value: object) -> tuple[str, ...]:
    texts = cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()
    return tuple(str(each).upper() for each in texts)
