"""Diagnostics as data: a kind of diagnostic is a class, an occurrence is an instance.

The class docstring is the title, the fields are the facts, the methods word them.  What a title
means, with an example and its fix, stands in `codes/explanations/`.  Rendering is done elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from functools import wraps
from inspect import get_annotations
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Self, dataclass_transform

if TYPE_CHECKING:
    from pscdsl.typing.facts import Fact


# Places in source text, and the chain of calls that led to them.


@dataclass(frozen=True, slots=True)
class Span:
    """A range of characters in a file; lines and columns are 1-based, the end column is exclusive.

    `call_site` is the place of the call through which an inlined helper was entered, and so on
    outwards to the kernel itself.
    """

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    call_site: Span | None = None

    def within(self, call_site: Span | None) -> Span:
        """This place as reached through a call."""
        return self if call_site is None else replace(self, call_site=call_site)

    def head(self, length: int) -> Span:
        """Return the first characters of this place, on its first line: a keyword, for instance."""
        return replace(self, end_line=self.line, end_column=self.column + length)

    def frames(self) -> tuple[Span, ...]:
        """This place and the calls that led to it, innermost first."""
        spans: list[Span] = [self]
        while (site := spans[-1].call_site) is not None:
            spans.append(site)
        return tuple(spans)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


NOWHERE = Span("<unknown>", 1, 1, 1, 1)


# Fixes as data: replacements of ranges of source text.


Applicability = Literal["safe", "unsafe"]
"""Whether a fix preserves the meaning of the code.

A safe fix makes an accepted kernel compute the result of the same function under plain NumPy (for
arguments that share no memory), or leaves the result of an accepted kernel unchanged. A fix that
makes a decision for the author is unsafe: a precondition, a cast, the removal of a statement.
"""


@dataclass(frozen=True, slots=True)
class Edit:
    """A range of a file and the text that replaces it; an empty range inserts.

    Lines in the text end in a newline character, independent of the line ends in the file.
    """

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """One way to fix a finding: all of its edits, in one file, or none are made."""

    message: str
    """The effect as an imperative: "replace `x[0] = 1` by `x = psc.update(x, 0, 1)`"."""
    edits: tuple[Edit, ...]
    applicability: Applicability = "unsafe"
    caveat: str = ""
    """A note about a change of meaning, shown when the fix is made."""

    @property
    def path(self) -> str:
        """The file that it changes."""
        return self.edits[0].span.path


class Severity(Enum):
    """The severity of a finding."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Label:
    """A second place that matters for a finding, with a text."""

    span: Span
    text: str


_UNCOMPARED = ("choice", "fixes", "is_sampled", "kernel", "precondition", "spelling")
_ASSERTION = re.compile(r"(?:(?! or )[^`])*`(assert [^`]*)`")
"""A help that names an `assert` first, and not as one way among others."""
_FAMILY_SEVERITY = {"7": Severity.WARNING, "8": Severity.WARNING}
_SIZED = re.compile(r"`(?:assert |range\(|\.reshape\(|np\.broadcast_to\()[^`]*`")
"""Code in a help text in which names are sizes."""
_REGISTRY: dict[str, type[Diagnostic]] = {}
EXPLANATIONS = Path(__file__).with_name("codes") / "explanations"
"""A file for each code, read when somebody asks what the code means."""
_LONE = re.compile(r"(?<=`assert )\(([^()]*)\) ([<>=]=|[<>]) ")
"""A size in parentheses that nothing is done with but to compare it."""
UNWRITABLE = "\N{WORD JOINER}"
"""A character in names that no program can write; texts omit it and the rest of the name."""
_HIDDEN = re.compile(f"{UNWRITABLE}\\d+")


def plainly(text: str) -> str:
    """Return a text with names as programs write them."""
    return _HIDDEN.sub("", text) if UNWRITABLE in text else text


def _shown(word: Callable[[Diagnostic], str | None]) -> Callable[[Diagnostic], str | None]:
    """Show the counters of loops in a finding's text as they are written.

    Suppress advice of an `assert` about a name that only a loop has.
    """

    @wraps(word)
    def shown(self: Diagnostic) -> str | None:
        text = word(self)
        if text is None or UNWRITABLE not in text:
            return text
        return None if word.__name__ == "help" and "`assert " in text else plainly(text)

    return shown


@dataclass_transform(frozen_default=True, kw_only_default=True)
class _Facts:
    """An immutable value with the annotated names of its class as keyword-only fields.

    It is equivalent to `dataclass(frozen=True, kw_only=True)`, without generating code for each of
    the many classes: all of them are created whenever the checker starts.
    """

    _fields: ClassVar[tuple[str, ...]] = ()
    _required: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        annotations = get_annotations(cls)
        own = [name for name, text in annotations.items() if "ClassVar" not in str(text)]
        cls._fields = tuple(dict.fromkeys((*cls._fields, *own)))
        cls._required = frozenset(name for name in cls._fields if not hasattr(cls, name))

    def __init__(self, **facts: object) -> None:
        missing = self._required.difference(facts)
        if missing or not facts.keys() <= set(self._fields):
            wrong = sorted(missing or facts.keys() - set(self._fields))
            raise TypeError(f"{type(self).__name__}: missing or unknown {', '.join(wrong)}")
        self.__dict__.update(facts)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._fields)
        return f"{type(self).__name__}({facts})"

    def _compared(self) -> tuple[object, ...]:
        return tuple([getattr(self, name) for name in self._fields if name not in _UNCOMPARED])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Facts) or type(self) is not type(other):
            return NotImplemented
        return self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash((type(self), self._compared()))

    @classmethod
    def fact_names(cls) -> tuple[str, ...]:
        """Return the names of the fields."""
        return cls._fields

    def replaced(self, **changes: object) -> Self:
        """Return a copy with other values in some fields."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, **changes)
        return copy


class Diagnostic(_Facts):
    """Base of every kind of diagnostic; `span` is filled in by the code that knows the place.

    A kind is a class with a code; its annotated names are keyword-only fields.
    """

    code: ClassVar[str] = ""
    severity: ClassVar[Severity] = Severity.ERROR

    span: Span = NOWHERE
    labels: tuple[Label, ...] = ()
    kernel: str = ""
    """The kernel with the finding; not compared."""
    choice: str = ""
    """The choice for which it was found, if the signature leaves something open; not compared."""
    precondition: str = ""
    """A condition on open parts of the signature that avoids the finding; not compared."""
    is_sampled: bool = False
    """Whether the help might differ for values that were not tried; not compared."""
    spelling: tuple[tuple[str, str], ...] = ()
    """The code's forms of the names of sizes: `n` is `x.shape[0]`; not compared."""
    fixes: tuple[Fix, ...] = ()
    """Alternative fixes, the most likely first; not compared."""

    def __init_subclass__(cls, code: str = "", severity: Severity | None = None) -> None:
        super().__init_subclass__()
        for name in ("message", "label", "help"):
            if name in cls.__dict__:
                setattr(cls, name, _shown(cls.__dict__[name]))
        if not code:
            return
        if code in _REGISTRY and _REGISTRY[code].__qualname__ != cls.__qualname__:
            raise TypeError(f"{code} is already {_REGISTRY[code].__qualname__}")
        cls.code = code
        cls.severity = severity or _FAMILY_SEVERITY.get(code[3], Severity.ERROR)
        _REGISTRY[code] = cls

    def message(self) -> str:
        """Return the problem in one line without a final stop."""
        raise NotImplementedError

    def label(self) -> str:
        """Return the text next to the carets under the primary place."""
        return ""

    def help(self) -> str | None:
        """Return the advice about what to write instead."""
        return None

    def advice(self) -> str | None:
        """Return the advice with sizes in forms that the code can use."""
        text = self.help()
        asks = text is not None and _ASSERTION.match(text) is not None
        if asks and self.is_sampled:
            text = None
        if self.precondition:
            add = f"add `assert {self.precondition}`"
            text = add if text is None or asks else f"{add}, or {text}"
        if text is None or not self.spelling:
            return text
        spelling = dict(self.spelling)

        def written(found: re.Match[str]) -> str:
            return re.sub(r"[A-Za-z_]\w*", lambda n: spelling.get(n[0], n[0]), found[0])

        return _SIZED.sub(lambda code: _LONE.sub(r"\1 \2 ", written(code)), text)

    def assertion(self) -> str | None:
        """Return the `assert` statement that the advice names before anything else, if it does."""
        found = _ASSERTION.match(self.advice() or "")
        return found[1] if found else None

    def claimed(self) -> tuple[Fact, ...]:
        """Return the claim of the advised `assert` about sizes, if that is the whole advice."""
        # Facts are about sizes; most findings name none.
        from pscdsl.typing.dims import DimSyntaxError
        from pscdsl.typing.facts import parse_fact

        found = _ASSERTION.match(self.help() or "")
        if found is None or self.severity is not Severity.ERROR:
            return ()
        try:
            return parse_fact(found[1].removeprefix("assert "))
        except DimSyntaxError:
            return ()

    def at(self, span: Span) -> Self:
        """This finding at a place, unless it has one already."""
        return self if self.span is not NOWHERE else self.replaced(span=span)

    def relocated(self, span: Span) -> Self:
        """This finding at another place; the old one becomes a label."""
        old = () if self.span is NOWHERE else (Label(self.span, "required here"),)
        return self.replaced(span=span, labels=self.labels + old)

    def labelled(self, *labels: Label) -> Self:
        """This finding with more places."""
        return self.replaced(labels=self.labels + labels)

    @classmethod
    def slug(cls) -> str:
        """Return the class name as words joined by hyphens, for instance `inner-sizes-differ`."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()

    @classmethod
    def explanation(cls) -> str:
        """Return the text that `pscdsl explain` prints: the title, then the code's file."""
        text = (EXPLANATIONS / f"{cls.code}.md").read_text(encoding="utf-8")
        _, _, meaning = text.partition("\n\n")  # below the heading
        return f"{cls.title()}.\n\n{meaning.rstrip()}"

    @classmethod
    def title(cls) -> str:
        """Return the class docstring without its final stop; under `python -OO`, the slug."""
        return (cls.__doc__ or cls.slug()).rstrip(".")


class Failure(Exception):
    """Carries one or more diagnostics out of a rule to the code that knows where they belong."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__(*diagnostics)
        self.diagnostics = diagnostics

    def __str__(self) -> str:
        return "; ".join(f"{d.span}: {d.code} {d.message()}" for d in self.diagnostics)

    def at(self, span: Span) -> Failure:
        """Return the findings, those without a place moved to `span`."""
        return Failure(*(d.at(span) for d in self.diagnostics))

    def labelled(self, *labels: Label) -> Failure:
        """Return the findings with more places."""
        return Failure(*(d.labelled(*labels) for d in self.diagnostics))


def registered() -> tuple[type[Diagnostic], ...]:
    """Return every kind of diagnostic that has been imported, by code."""
    return tuple(_REGISTRY[code] for code in sorted(_REGISTRY))


def find(code: str) -> type[Diagnostic] | None:
    """Return the kind of diagnostic with this code."""
    return _REGISTRY.get(code.upper())
