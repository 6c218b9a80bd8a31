"""Files of JAX's dialect: which they are, and the modules that stand for JAX's in them."""

from __future__ import annotations

import ast
import functools
import os
from collections.abc import Iterator
from enum import Enum
from typing import Final

from pscdsl._src.frontend.text.source import Source, last_name
from pscdsl._src.support.tracebacks import JAX_PACKAGES
from pscdsl.typing.diagnostics import Diagnostic, Span

_OTHERS: Final = frozenset({"mlx", "pscdsl", "tensorflow", "torch"})
"""Libraries that types of jaxtyping may be about, and our own."""
ROOTS: Final = frozenset({"jax", "equinox"})
"""Packages whose import makes a file a program of JAX, as does that of a part named `jax`."""
_TYPES: Final = "jaxtyping"
PACKAGES: Final = frozenset({"chex", "equinox", "jax"})
"""Packages that resolve to ours in such a file."""
BESIDE: Final = frozenset({"flax"})
"""Packages that resolve to ours in such a file if the project has none of that name."""
TRANSPARENT_DECORATORS: Final = frozenset(
    {
        *("abc.abstractmethod", "beartype.beartype", "jaxtyping.jaxtyped", "typeguard.typechecked"),
        *("typing.no_type_check", "typing.override", "typing_extensions.override"),
    }
)
"""Decorators that leave a function's results as they are."""
_X64: Final = "jax_enable_x64"
ARRAY_MEMBERS: Final = "jax._array"
"""The module of ours with the attributes that only arrays of JAX have: a class is a property."""
_OF_ARRAYS: Final = ("lax", "nn", "numpy", "random", "scipy")
_INSIDE: Final = os.path.join(JAX_PACKAGES, "")


def imports_of(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """Yield the names that an import binds, with the full names of what they are."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            root = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (root, root)
    else:
        module = "." * node.level + (f"{node.module}." if node.module else "")
        for alias in node.names:
            yield alias.asname or alias.name, f"{module}{alias.name}"


def is_package_of_ours(path: str | None, package: str = "") -> bool:
    """Return whether a file belongs to the packages that stand for JAX's, or to one of them."""
    return path is not None and os.path.realpath(path).startswith(os.path.join(_INSIDE, package))


class JaxUse(Enum):
    """A file's share in JAX's dialect."""

    NONE = "none"
    CALLS = "calls"
    """It calls JAX: its keys and effects are checked, and its functions may be kernels."""
    ALL = "all"
    """Its functions compute as JAX's, too."""


def jax_use(source: Source, path: str | None, dialect: str) -> JaxUse:
    """Return a file's share in JAX's dialect, by what it imports.

    Its functions compute as JAX's if it imports jax, equinox or jaxtyping, and no other library
    whose arrays its annotations may mean.
    """
    if is_package_of_ours(path):
        return JaxUse.ALL
    if dialect != "auto":
        return JaxUse.ALL if dialect == "jax" else JaxUse.NONE
    if not any(root in source.text for root in (*ROOTS, _TYPES)):
        return JaxUse.NONE
    found = {
        "jax" if "jax" in full.split(".")[1:] else full.partition(".")[0]
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for _, full in imports_of(node)
        if not full.startswith(".")
    }
    if found.isdisjoint(_OTHERS) and not found.isdisjoint({*ROOTS, _TYPES}):
        return JaxUse.ALL
    return JaxUse.NONE if found.isdisjoint(ROOTS) else JaxUse.CALLS


def enables_x64(source: Source) -> bool:
    """Return whether a file switches on arrays of 64 bits when it is loaded."""
    if _X64 not in source.text.lower():
        return False
    for node in source.tree.body:
        match node:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=owner, attr="update"),
                    args=[ast.Constant(value=str(name)), ast.Constant(value=value)],
                )
            ) if last_name(owner) == "config" and name == _X64:
                return bool(value)
            case ast.Assign(
                targets=[ast.Attribute(value=owner, attr=name)], value=ast.Constant(value=value)
            ) if last_name(owner) == "config" and name == _X64:
                return bool(value)
            case ast.Assign(
                targets=[ast.Subscript(value=owner, slice=ast.Constant(value=str(name)))],
                value=ast.Constant(value=str(value)),
            ) if last_name(owner) == "environ" and name == _X64.upper():
                return value.lower() in ("1", "y", "yes", "t", "true", "on")
            case _:
                pass
    return False


@functools.cache
def takes_arrays(path: str | None) -> bool:
    """Return whether a file has functions that take arrays as JAX's do, and no lists of them.

    Parameters with an annotation take anything.
    """
    return any(is_package_of_ours(path, os.path.join("jax", each)) for each in _OF_ARRAYS)


def place_outside(span: Span) -> Span:
    """Return a place, or the call that led there from the packages that stand for JAX's."""
    while span.call_site is not None and is_package_of_ours(span.path):
        span = span.call_site
    return span


def outside_packages(finding: Diagnostic) -> Diagnostic:
    """Return a finding in the packages that stand for JAX's at the call that led there."""
    span = place_outside(finding.span)
    return finding if span is finding.span else finding.replaced(span=span, labels=())
