"""Links from code on the pages of the site to the entries of what it names.

Only names are linked that say where they are from: `psc.scan`, names that a block on the page
imports from the standard library, and on the pages of that library the names of the module whose
entry the block belongs to.
"""

from __future__ import annotations

import re
from html import unescape

PART = re.compile(r'id="(pscdsl(?:\.\w+)+)"|<pre>.*?</pre>', re.DOTALL)
TAG = re.compile(r"<[^>]*>")
WORD = r'<span class="n[cf]?">(\w+)</span>'
DOT = r'<span class="o">\.</span>'
QUALIFIED = re.compile(f'<span class="nd?">@?psc</span>{DOT}{WORD}(?:{DOT}{WORD})?')
ALONE = re.compile(f"({DOT})?{WORD}")
IMPORT = re.compile(r"from (pscdsl\.stdlib\.\w+) import (\([^)]*\)|[^\n]*)")


def linked(html: str) -> str:
    """Return the content of a page with names in code linked to their entries, where they exist."""
    entries = set(re.findall(r'id="(pscdsl\.stdlib\.\w+\.\w+)"', html))
    imported = {name: path for path, name in _imports(html)}
    module = ""

    def part(found: re.Match[str]) -> str:
        nonlocal module
        if found[1] is not None:
            module = ".".join(found[1].split(".")[:3])
            return found[0]
        block = QUALIFIED.sub(_qualified, found[0])
        return ALONE.sub(alone, block)

    def alone(found: re.Match[str]) -> str:
        path = imported.get(found[2]) or f"{module}.{found[2]}"
        known = found[2] in imported or path in entries
        return found[0] if found[1] or not known else _reference(path, found[0])

    return PART.sub(part, html)


def _imports(html: str) -> list[tuple[str, str]]:
    """The names that blocks import from the standard library, with their paths."""
    blocks = re.findall(r"<pre>.*?</pre>", html, re.DOTALL)
    text = "\n".join(unescape(TAG.sub("", block)) for block in blocks)
    return [
        (f"{found[1]}.{name}", name)
        for found in IMPORT.finditer(text)
        for name in re.findall(r"\w+", found[2])
    ]


def _qualified(found: re.Match[str]) -> str:
    path = ".".join(["pscdsl", *(each for each in found.groups() if each)])
    return _reference(path, found[0])


def _reference(path: str, html: str) -> str:
    """Mark a reference, which mkdocs-autorefs resolves, or leaves out if there is no such entry."""
    return f'<autoref identifier="{path}" optional>{html}</autoref>'
