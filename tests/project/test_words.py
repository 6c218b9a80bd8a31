"""Words to avoid: CONTRIBUTING.md lists them, and says what to write in their place."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (
        *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "examples").glob("*.md"),
        *(ROOT / "pscdsl" / "numpy").glob("*.md"),
        *(ROOT / "typing" / "codes" / "explanations").glob("*.md"),
    )
)
BLOCK = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)

SOURCES = [
    path
    for folder in ("pscdsl", "typing", "stdlib")
    for path in (ROOT / folder).rglob("*.py*")
    if path.suffix in (".py", ".pyi")
]
BASELINE = {
    "told": 2,
    "kept": 5,
    "at once": 8,
}
"""How often docstrings have each word: lower a number when you have removed some."""


def avoided() -> list[str]:
    """The first column of the table in CONTRIBUTING.md."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = text.partition("| avoid | write |\n|---|---|\n")[2].partition("\n\n")[0]
    return [row.split("|")[1].strip() for row in rows.splitlines()]


WORDS = avoided()


def words(text: str) -> Iterator[str]:
    """Each use of a word to avoid, also over the end of a line, and with an ending."""
    flat = " ".join(text.lower().split())
    for word in WORDS:
        for _ in re.finditer(rf"\b{word}(s|ed|ing)?\b", flat):
            yield word


def prose(document: str) -> str:
    """A document without its blocks of code, and without the list of the words."""
    text = BLOCK.sub("", (ROOT / document).read_text(encoding="utf-8"))
    before, mark, after = text.partition("| avoid | write |\n")
    return before + after.partition("\n\n")[2] if mark else text


def test_the_list_is_read() -> None:
    assert len(WORDS) > 8
    assert list(words("It was kept at\nonce; mended.")) == ["kept", "at once", "mend"]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_documents_avoid_them(document: str) -> None:
    assert not Counter(words(prose(document)))


@cache
def parsed(path: Path) -> ast.Module:
    """Return the tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def in_docstrings() -> Counter[str]:
    """How often docstrings of the package, its types and its library have each word."""
    counted: Counter[str] = Counter()
    for path in SOURCES:
        for text in docstrings(parsed(path)):
            counted.update(words(text))
    return counted


def docstrings(tree: ast.Module) -> Iterator[str]:
    """Every string that stands alone: of modules, classes, functions and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, str):
                yield node.value.value


OPENERS = frozenset(("Of", "It", "That", "Those", "So", "As"))
"""A first sentence that begins so can only be read with the name above it."""


def test_docstrings_begin_with_what_they_describe() -> None:
    for path in SOURCES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = ast.get_docstring(node) or "."
                name = getattr(node, "name", "")
                assert text.split()[0] not in OPENERS, f"{path}: {name}: {text}"


RIDDLES = frozenset(("What", "Whether", "Which", "Where", "How"))
"""A function's docstring begins with a verb, a class's with a noun: not with a question."""
PLAIN = (
    *(f"pscdsl/_src/{room}" for room in "analysis artefacts caching cli discover".split()),
    *(f"pscdsl/_src/{room}" for room in "extensions interop interpreters ir plugins".split()),
    *(f"pscdsl/_src/{room}" for room in "primitives support targets transforms xla".split()),
    *(f"pscdsl/_src/{room}" for room in "calls checker frontend kernels language server".split()),
    "stdlib",
)
"""The folders in which no docstring begins so; add one when it is done."""


@pytest.mark.parametrize("folder", PLAIN)
def test_docstrings_ask_no_questions(folder: str) -> None:
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = ast.get_docstring(node) or "."
                name = getattr(node, "name", "")
                assert text.split()[0] not in RIDDLES, f"{path}: {name}: {text}"


@pytest.mark.parametrize("word", WORDS)
def test_docstrings_have_no_more_of_them(word: str) -> None:
    assert in_docstrings()[word] <= BASELINE.get(word, 0)
