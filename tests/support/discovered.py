"""Functions of plain NumPy code with the verdicts that are expected, read from Markdown.

Above each function stands a comment: `# PSC` with the signature if that matters, `# helper`, the
code of the first obstacle, or `# unknown` with a code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pscdsl._src.discover.verdicts import FunctionVerdict, discover_source

FOLDER = Path(__file__).parents[1] / "discover" / "discovery"
PRELUDE = """\
import os
import time

import numpy as np
from numba import njit
from scipy import special
from settings import SETTINGS

RADIUS = 6371.0
CALLS = 0
CACHE = {}


"""
_BLOCK = re.compile(r"^```py\n(.*?)^```", re.MULTILINE | re.DOTALL)
_EXPECTED = re.compile(r"# (PSC\d*|helper|unknown PSC\d+)(?: (\(.*))?$")


@dataclass(frozen=True)
class Expected:
    """One function, and what is to be found out about it."""

    name: str
    verdict: str
    signature: str


def module(name: str) -> str:
    """The functions of a Markdown file as one module."""
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    return PRELUDE + "\n\n".join(_BLOCK.findall(text))


def expected(text: str) -> Iterator[Expected]:
    """What the comments above the functions say."""
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            found = _EXPECTED.match(lines[first - 2])
            assert found, f"nothing is expected of {node.name}"
            yield Expected(node.name, found[1], found[2] or "")


def verdicts(text: str) -> dict[str, FunctionVerdict]:
    """What is found out about each function."""
    return {each.name: each for each in discover_source(text, "plain.py").verdicts}


def told(verdict: FunctionVerdict) -> str:
    """A verdict as the comments write it."""
    if verdict.status == "psc":
        return "PSC"
    code = verdict.findings[0].code if verdict.findings else ""
    return {"obstacle": code, "unknown": f"unknown {code}"}.get(verdict.status, verdict.status)


def pasted(text: str, verdict: FunctionVerdict) -> str:
    """The module with the definition that was found in place of the function's own."""
    assert verdict.written is not None
    lines = text.splitlines()
    node = next(
        each
        for each in ast.parse(text).body
        if isinstance(each, ast.FunctionDef) and each.name == verdict.name
    )
    body = node.body
    documented = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    start = min([node.lineno, *(each.lineno for each in node.decorator_list)]) - 1
    inside = body[0].end_lineno if documented else body[0].lineno - 1
    header = verdict.written.header.split("\n")
    asserts = [f"    {each}" for each in verdict.written.preconditions]
    assert inside is not None
    between = lines[body[0].lineno - 1 : inside] if documented else []
    function = [*header, *between, *asserts, *lines[inside:]]
    return "\n".join([*verdict.written.imports, *lines[:start], *function]) + "\n"
