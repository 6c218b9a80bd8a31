"""Diagnostics as data: a kind of diagnostic is a class, an occurrence is an instance.

The class docstring is the explanation (title, meaning, `## Example`, `## Fix`), the fields are
the facts, the methods word them.  Rendering is done elsewhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import Enum
from inspect import cleandoc
from typing import ClassVar, Self

from pscdsl.typing.spans import NOWHERE, Span


class Severity(Enum):
    """How much a finding weighs."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Label:
    """A second place that matters for a finding, and what is to be said of it."""

    span: Span
    text: str


_FAMILY_SEVERITY = {"7": Severity.WARNING, "8": Severity.WARNING}
_REGISTRY: dict[str, type[Diagnostic]] = {}


@dataclass(frozen=True, kw_only=True)
class Diagnostic:
    """Base of every kind of diagnostic; `span` is filled in by whoever knows the place."""

    code: ClassVar[str] = ""
    severity: ClassVar[Severity] = Severity.ERROR

    span: Span = NOWHERE
    labels: tuple[Label, ...] = ()
    kernel: str = field(default="", compare=False)

    def __init_subclass__(cls, code: str = "", severity: Severity | None = None) -> None:
        super().__init_subclass__()
        if not code:
            return
        if code in _REGISTRY and _REGISTRY[code].__qualname__ != cls.__qualname__:
            raise TypeError(f"{code} is already {_REGISTRY[code].__qualname__}")
        cls.code = code
        cls.severity = severity or _FAMILY_SEVERITY.get(code[3], Severity.ERROR)
        _REGISTRY[code] = cls

    def message(self) -> str:
        """What is wrong, in one line without a final stop."""
        raise NotImplementedError

    def label(self) -> str:
        """Text beside the carets under the primary place."""
        return ""

    def help(self) -> str | None:
        """What to write instead."""
        return None

    def at(self, span: Span) -> Self:
        """This finding at a place, unless it has one already."""
        return self if self.span is not NOWHERE else replace(self, span=span)

    def relocated(self, span: Span) -> Self:
        """This finding at another place; the old one becomes a label."""
        old = () if self.span is NOWHERE else (Label(self.span, "required here"),)
        return replace(self, span=span, labels=self.labels + old)

    def labelled(self, *labels: Label) -> Self:
        """This finding with more places."""
        return replace(self, labels=self.labels + labels)

    @classmethod
    def slug(cls) -> str:
        """The class name as words joined by hyphens, for instance `inner-sizes-differ`."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()

    @classmethod
    def explanation(cls) -> str:
        """The long text that `pscdsl explain` prints; empty under `python -OO`."""
        return cleandoc(cls.__doc__ or "")

    @classmethod
    def title(cls) -> str:
        """The first line of the explanation."""
        return cls.explanation().split("\n", 1)[0].rstrip(".")


class Failure(Exception):
    """Carries one or more diagnostics out of a rule to whoever knows where they belong."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__(*diagnostics)
        self.diagnostics = diagnostics

    def __str__(self) -> str:
        return "; ".join(f"{d.span}: {d.code} {d.message()}" for d in self.diagnostics)

    def at(self, span: Span) -> Failure:
        """The same findings, those without a place put at `span`."""
        return Failure(*(d.at(span) for d in self.diagnostics))

    def labelled(self, *labels: Label) -> Failure:
        """The same findings with more places."""
        return Failure(*(d.labelled(*labels) for d in self.diagnostics))


def registered() -> tuple[type[Diagnostic], ...]:
    """Every kind of diagnostic that has been imported, by code."""
    return tuple(_REGISTRY[code] for code in sorted(_REGISTRY))


def find(code: str) -> type[Diagnostic] | None:
    """The kind of diagnostic with this code."""
    return _REGISTRY.get(code.upper())
