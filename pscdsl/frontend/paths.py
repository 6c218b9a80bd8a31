"""What is followed through the text of a project, and what is found."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from pscdsl.frontend.source import Source
from pscdsl.frontend.uses import ScopeNode
from pscdsl.typing.spans import Span

# Note [Paths].  What is followed is a value together with the steps from there to the object that
# matters: no steps are left where the value is the object itself or a part of it.  `T` inside
# `{"a": T}` is the dict with one step `[]`; the module `lib` is the object `lib.T` with the step
# `.T`.  Reading an item or attribute takes a step away, putting it into something adds one.  The
# step `.*` stands for every attribute of a module or class, and collects which are rebound; `~*`
# does the same for an instance, whose own attributes are not those of its class, `@*` for the dict
# of a module or class, `?*` for a module whose name is computed: it may be the one that matters.
Path: TypeAlias = tuple[str, ...]
ITEM = "[]"
EVERY = ".*"
OF_INSTANCE = "~*"
IN_DICT = "@"
COMPUTED = "?"
FUNCTION_PARTS = "__defaults__ __kwdefaults__ __code__ __globals__ __wrapped__ __closure__".split()
"""What can be changed of a function."""
MAX_CALLS = 4
"""Calls that are remembered on the way; a result goes back to the call that it belongs to."""
MAX_PATH = 6
"""Steps over modules that lead to an object: `a.b.c.TABLE`."""
MAX_USES = 20_000


@dataclass(frozen=True)
class Holder:
    """A name that holds a value: of a module, or of the scope of a function in it."""

    source: Source
    scope: ScopeNode | None
    name: str


@dataclass(frozen=True)
class Write:
    """A place where the object is written, or may be."""

    span: Span
    passed_to: str = ""
    """Code without text that the object is handed to; empty where the text shows the write."""


class Kind(Enum):
    """What an object is, as far as it matters for writes to its parts."""

    DEEP = "holds what can be changed"
    ARRAY = "an array: its parts are views, its copies are not"
    FLAT = "holds what cannot be changed"
    FUNCTION = "a function: only attributes such as `__defaults__` matter"


def text(node: ast.expr) -> str | None:
    """The string that an expression is."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
