"""What the site has beside docs/: pages of codes, documents from elsewhere, the playground.

mkdocs calls the functions `on_…`; mkdocs.yml names this file.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from pscdsl._src.checker.selection import all_kinds

ROOT = Path(__file__).parent.parent.parent
INCLUDE = re.compile(r"^<!-- include (\S+) -->$", re.MULTILINE)
LINK_TO_CODE = re.compile(r"\[([^]]+)\]\([^)]+\.py\)")
PLAYGROUND = Path(sys.prefix) / "playground" / "site"
"""What `make playground` has built, complete if it has a table of contents."""
APP = """\
<div id="pg-page"></div>
<link rel="stylesheet" href="playground.css">
<script type="module" src="playground.js"></script>"""
NO_APP = """\
!!! note "The playground is not a part of this build of the site"
    `make playground docs` builds it where npm is installed and Pyodide's packages can be fetched.
"""
CODE_IN_TABLE = re.compile(r"^\| (PSC\d{3}) \|", re.MULTILINE)


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add a page for each code: the text that `pscdsl explain` prints."""
    for kind in all_kinds():
        head = f"# {kind.code}: {kind.slug()}\n\nSeverity: {kind.severity.value}.\n\n"
        path = f"reference/codes/{kind.code}.md"
        files.append(File.generated(config, path, content=head + kind.explanation() + "\n"))
    for source in played():
        path = f"playground/{source.relative_to(PLAYGROUND).as_posix()}"
        files.append(File.generated(config, path, abs_src_path=str(source)))
    return files


def played() -> list[Path]:
    """The files of the playground; none if it is not built."""
    if not (PLAYGROUND / "contents.json").exists():
        return []
    return [path for path in PLAYGROUND.rglob("*") if path.is_file()]


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Insert the documents that a page includes, and link codes in tables to their pages."""
    if page.file.src_uri == "playground.md":
        return markdown.replace(APP.partition("\n")[0], APP if played() else NO_APP)
    if page.file.src_uri == "reference/codes.md":
        return CODE_IN_TABLE.sub(r"| [\1](codes/\1.md) |", markdown)
    return INCLUDE.sub(lambda found: included(found[1]), markdown)


def included(name: str) -> str:
    """A document of the repository, without its title; modules are named, not linked."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return LINK_TO_CODE.sub(r"`\1`", text.partition("\n\n")[2])
