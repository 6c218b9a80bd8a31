"""What annotations and docstrings say of parameters, in the ways that are usual for NumPy code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["array", "scalar", "int", "bool", "str", "callable", "none", "dict", ""]

MAX_TEXT = 20_000
"""Longer docstrings are read up to here."""


@dataclass(frozen=True)
class Hint:
    """What a text says of one parameter."""

    kind: Kind = ""
    dims: tuple[str, ...] | None = None
    """Its shape, where one is given; names that are no identifiers are empty."""
    strings: tuple[str, ...] = ()
    dtype: str = ""
    """`Int` or `Bool` where the text says that the elements are no floating-point numbers."""


_ENTRY = re.compile(r"^(\s*)\**(\w+(?:\s*,\s*\**\w+)*)\s*:\s*(.+)$")
_GOOGLE = re.compile(r"^\s*(\w+)\s*\(([^)]*(?:\([^)]*\)[^)]*)*)\)\s*:(.*)$")
_SHAPE = re.compile(r"\(([\w\s,.*+-]*)\)")
_CHOICES = re.compile(r"\{([^}]*)\}")
_STRING = re.compile(r"""['"]([^'"]*)['"]""")
_WORDS: tuple[tuple[str, Kind], ...] = (
    (r"callable|function", "callable"),
    (r"dict\b|mapping", "dict"),
    (r"ndarray|array|matrix|vector|tensor|image|sequence of float|list of float", "array"),
    (r"\bint(eger)?\b", "int"),
    (r"\bbool(ean)?\b", "bool"),
    (r"\b(float|scalar|number|real)\b", "scalar"),
    (r"\bstr(ing)?\b", "str"),
)


def docstring_hints(text: str) -> dict[str, Hint]:
    """Hints by parameter, from a docstring in the style of numpydoc or of Google."""
    found: dict[str, Hint] = {}
    for line in text[:MAX_TEXT].splitlines():
        if ":" not in line or len(line) > 300:
            continue
        if entry := _ENTRY.match(line):
            for name in entry[2].split(","):
                found.setdefault(name.strip(" *"), hint(entry[3]))
        elif entry := _GOOGLE.match(line):
            told, shape = hint(entry[2]), hint(f"array {entry[3]}")
            if told.kind == "array" and told.dims is None:
                told = replace(told, dims=shape.dims)
            found.setdefault(entry[1], told)
    return found


def hint(text: str) -> Hint:
    """What a description of a type says."""
    choices = _CHOICES.search(text)
    strings = tuple(_STRING.findall(choices[1])) if choices else ()
    lowered = text.lower()
    kind: Kind = "str" if strings else _kind(lowered)
    shape = _SHAPE.search(text)
    dims = _dims(shape[1]) if shape and kind in ("array", "") else None
    if dims is not None:
        kind = "array"
    dtype = ""
    if kind == "array":
        dtype = "Int" if re.search(r"\bint", lowered) else "Bool" if "bool" in lowered else ""
    return Hint(kind, dims, strings, dtype)


def _kind(text: str) -> Kind:
    for pattern, kind in _WORDS:
        if re.search(pattern, text):
            return kind
    return ""


def _dims(text: str) -> tuple[str, ...] | None:
    """The names of sizes in `n, d`; None if it is no shape."""
    words = [word.strip() for word in text.strip().rstrip(",").split(",")]
    if words == [""] or not all(re.fullmatch(r"\w+", word) for word in words) or len(words) > 4:
        return None
    if "," not in text and not words[0].isdigit() and len(words[0]) > 10:
        return None
    return tuple(word if word.isidentifier() else "" for word in words)


_ANNOTATIONS: dict[str, Kind] = {
    "float": "scalar",
    "floating": "scalar",
    "complex": "scalar",
    "int": "int",
    "bool": "bool",
    "str": "str",
    "Callable": "callable",
    "ndarray": "array",
    "NDArray": "array",
    "ArrayLike": "array",
    "dict": "dict",
    "Dict": "dict",
    "Mapping": "dict",
}


def annotation_hint(node: ast.expr | None) -> Hint:
    """What an annotation that is none of ours says."""
    kinds = list(_kinds(node))
    named: list[Kind] = [kind for kind in kinds if kind != "none"]
    if not named:
        return Hint()
    kind: Kind = "array" if "array" in named else named[0]
    dtype = "Int" if kind == "array" and "int" in named else ""
    return Hint(kind, dtype="Bool" if kind == "array" and "bool" in named else dtype)


def _kinds(node: ast.expr | None) -> Iterator[Kind]:
    if isinstance(node, ast.Constant):
        if node.value is None:
            yield "none"
        elif isinstance(node.value, str) and len(node.value) < 200:
            try:
                yield from _kinds(ast.parse(node.value.strip(), mode="eval").body)
            except (SyntaxError, ValueError, RecursionError):
                return
    elif isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        name = re.sub(r"^(float|int|complex)(8|16|32|64|128)$", r"\1", name.removesuffix("_"))
        if name in _ANNOTATIONS:
            yield _ANNOTATIONS[name]
    elif isinstance(node, ast.BinOp):
        yield from _kinds(node.left)
        yield from _kinds(node.right)
    elif isinstance(node, ast.Subscript):
        yield from _kinds(node.value)
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for each in inner:
            yield from _kinds(each)
