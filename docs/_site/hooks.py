"""What the site has beside docs/: pages of codes and examples, the gallery, the playground.

mkdocs calls the functions `on_…`; mkdocs.yml names this file.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs._site.links import linked
from pscdsl import __version__
from pscdsl._src.checker.selection import all_kinds

ROOT = Path(__file__).parent.parent.parent
INCLUDE = re.compile(r"^<!-- include (\S+) -->$", re.MULTILINE)
LINK_TO_EXAMPLE = re.compile(r"\]\((\w+)\.py\)")
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
PICTURES = Path(sys.prefix) / "gallery"
"""The pictures that `make gallery` has drawn."""
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
BESIDE = {"programs": "explanation/comparison.md", "plain_numpy": "explanation/plain-numpy.md"}
"""The pictures of measurements, and the pages with their numbers."""
CODE_IN_TABLE = re.compile(r"^\| (PSC\d{3}) \|", re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Name the version that the site describes."""
    config.site_name = f"{config.site_name} {__version__}"
    return config


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Link the names in code to their entries."""
    return linked(html)


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add a page for each code: the text that `pscdsl explain` prints."""
    for kind in all_kinds():
        head = f"# {kind.code}: {kind.slug()}\n\nSeverity: {kind.severity.value}.\n\n"
        path = f"reference/codes/{kind.code}.md"
        files.append(File.generated(config, path, content=head + kind.explanation() + "\n"))
    for path in EXAMPLES:
        content = program(path)
        files.append(File.generated(config, f"gallery/{path.stem}.md", content=content))
    for path in PICTURES.glob("*.png"):
        files.append(File.generated(config, f"gallery/{path.name}", abs_src_path=str(path)))
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
    if page.file.src_uri == "gallery.md":
        return markdown + gallery()
    if page.file.src_uri == "reference/codes.md":
        return CODE_IN_TABLE.sub(r"| [\1](codes/\1.md) |", markdown)
    return INCLUDE.sub(lambda found: included(found[1]), markdown)


def included(name: str) -> str:
    """A document of the repository, without its title; files outside of docs/ are named."""
    text = (ROOT / name).read_text(encoding="utf-8").partition("\n\n")[2]
    text = LINK_TO_EXAMPLE.sub(r"](gallery/\1.md)", text)
    return text.replace("](docs/", "](").replace("[README](README.md)", "README")


def picture(name: str, folder: str = "") -> str:
    """A picture of the gallery in Markdown, if it was drawn."""
    about = name.replace("_", " ")
    drawn = (PICTURES / f"{name}.png").exists()
    return f"![{about}]({folder}{name}.png)\n\n" if drawn else ""


def described(path: Path) -> tuple[str, str]:
    """The first line of an example's docstring without its stop, and the rest."""
    first, _, rest = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n\n")
    return " ".join(first.split()).removesuffix("."), rest


def program(path: Path) -> str:
    """The page of an example: its picture, its docstring, and its source."""
    title, about = described(path)
    source = path.read_text(encoding="utf-8")
    head = f"# {path.stem}\n\n{title}.\n\n{picture(path.stem)}{about}\n\n"
    return f"{head}[What it prints](../examples.md)\n\n```python\n{source}```\n"


def gallery() -> str:
    """Each example with its picture, and then the pictures of measurements."""
    text = ""
    for path in sorted(EXAMPLES, key=lambda path: picture(path.stem) == ""):
        title, _ = described(path)
        text += f"\n## [{path.stem}](gallery/{path.stem}.md)\n\n{title}.\n\n"
        text += picture(path.stem, "gallery/")
    for name, page in BESIDE.items():
        if shown := picture(name, "gallery/"):
            text += f"\n## Measured: {name.replace('_', ' ')}\n\n{shown}[The numbers]({page})\n"
    return text
