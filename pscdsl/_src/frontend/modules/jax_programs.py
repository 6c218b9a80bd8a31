"""Files of JAX's dialect: which they are, and the modules that stand for JAX's in them."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from typing import Final

from pscdsl._src.frontend.text.source import Source
from pscdsl._src.support.tracebacks import JAX_PACKAGES
from pscdsl.typing.diagnostics import Diagnostic

_OTHERS: Final = frozenset({"mlx", "pscdsl", "tensorflow", "torch"})
"""Libraries that types of jaxtyping may be about, and our own."""
ROOTS: Final = frozenset({"jax", "equinox"})
"""Packages whose import makes a file a program of JAX."""
PACKAGES: Final = frozenset({"chex", "equinox", "jax"})
"""Packages that resolve to ours in such a file."""
TRANSPARENT_DECORATORS: Final = frozenset(
    {
        *("beartype.beartype", "jaxtyping.jaxtyped", "typeguard.typechecked"),
        *("typing.no_type_check", "typing.override", "typing_extensions.override"),
    }
)
"""Decorators that leave a function's results as they are."""
ARRAY_MEMBERS: Final = "jax._array"
"""The module of ours with the attributes that only arrays of JAX have: a class is a property."""
_INSIDE: Final = os.path.join(JAX_PACKAGES, "")


def imported_roots(source: Source) -> Iterator[str]:
    """Yield the top-level packages that a file imports."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").partition(".")[0]


def is_of_jax(source: Source) -> bool:
    """Return whether a file imports jax or equinox."""
    if not any(root in source.text for root in ROOTS):
        return False
    return not ROOTS.isdisjoint(imported_roots(source))


def is_package_of_ours(path: str | None) -> bool:
    """Return whether a file belongs to the packages that stand for JAX's."""
    return path is not None and path.startswith(_INSIDE)


def is_in_dialect(source: Source, path: str | None, dialect: str) -> bool:
    """Return whether the functions of a file compute as JAX's: it is JAX's, and names no kernel.

    So does a file with types of jaxtyping for no other library of arrays.
    """
    if is_package_of_ours(path):
        return True
    if dialect != "auto":
        return dialect == "jax"
    if not any(root in source.text for root in (*ROOTS, "jaxtyping")):
        return False
    found = frozenset(imported_roots(source))
    return found.isdisjoint(_OTHERS) and not found.isdisjoint({*ROOTS, "jaxtyping"})


def outside_packages(finding: Diagnostic) -> Diagnostic:
    """Return a finding in the packages that stand for JAX's at the call that led there."""
    span = finding.span
    while span.call_site is not None and is_package_of_ours(os.path.realpath(span.path)):
        span = span.call_site
    return finding if span is finding.span else finding.replaced(span=span, labels=())
