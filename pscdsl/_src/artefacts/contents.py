"""What an exported kernel is.

Three functions are between this and everything else: `writing.written` makes bytes of an artefact,
`reading.read` an artefact of bytes, and `exporting.artefact` of `kernels` an artefact of a kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pscdsl._src.support.tracebacks import UsersError
from pscdsl.typing.array_types import ArrayType, Type
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.signatures import Choice, Signature

Target: TypeAlias = Literal["any", "cpu"]
"""Where modules are to run: wherever XLA does, or on CPUs by what was measured to be fast there."""
TARGETS: Final[tuple[Target, ...]] = ("any", "cpu")


class ArtefactError(UsersError, ValueError):
    """A file is not an exported kernel, is damaged, or cannot be used here."""

    __module__ = "pscdsl"


@dataclass(frozen=True)
class Module:
    """A program at certain sizes."""

    sizes: Mapping[str, int]
    code: bytes
    """StableHLO as a portable artefact: one public function `main`, from arrays to arrays."""
    calls: tuple[str, ...] = ()
    """The custom calls in it, by their targets: what runs it has to know these."""
    donate: tuple[int, ...] = ()
    """The arrays, by their place, that give their memory to results."""


@dataclass(frozen=True)
class Program:
    """A kernel with all fixed that its signature leaves open, but for sizes."""

    choice: Choice
    dims: tuple[str, ...]
    facts: Assumptions
    """What sizes have to meet."""
    inputs: tuple[ArrayType, ...]
    """The arrays that `main` takes, in order, with names for sizes."""
    result: Type
    """The tree of the results, whose arrays `main` gives in order."""
    fingerprint: str
    """Equal for equal programs; empty if it holds what has none."""
    modules: tuple[Module, ...]


@dataclass(frozen=True)
class Artefact:
    """An exported kernel."""

    version: str
    """Of the pscdsl that wrote it."""
    stablehlo: str
    """The version of StableHLO that the modules are written in."""
    target: Target
    signature: Signature
    defaults: Mapping[str, object]
    """Of parameters that have one that can be written down."""
    donate: tuple[str, ...]
    """The parameters that give their memory to results."""
    source_hash: str
    """SHA-256 of the source text of the kernel and all that it calls."""
    programs: tuple[Program, ...]
