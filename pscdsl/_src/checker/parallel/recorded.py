"""Results of checks as data.

Of a finding, the places, the kernel and the wording are kept, and so is its kind; the facts that
the wording was made from (types, sizes) are not.  Every report shows the same of both.
"""

from __future__ import annotations

from functools import cache
from typing import Any, get_type_hints

from pscdsl._src.checker.check import CheckResult
from pscdsl._src.checker.parallel.data import Unreadable, decode, encode
from pscdsl._src.checker.report.kinds import all_kinds
from pscdsl.typing.diagnostics import Diagnostic, find

_WORDING = ("message", "label", "help", "advice")


class Recorded(Diagnostic):
    """A finding that was read back: the wording is as it was written down."""

    wording: tuple[str | None, ...] = ()

    def message(self) -> str:
        """What is wrong."""
        return self.wording[0] or ""

    def label(self) -> str:
        """Text beside the carets."""
        return self.wording[1] or ""

    def help(self) -> str | None:
        """What to write instead."""
        return self.wording[2]

    def advice(self) -> str | None:
        """What to write instead, sizes written as the code can."""
        return self.wording[3]


@cache
def recorded_kind(code: str) -> type[Recorded]:
    """The class of findings with a code that were read back; raises `Unreadable` without one."""
    kind = find(code)
    if kind is None:
        all_kinds()  # those of its family have not been needed yet
        kind = find(code)
    if kind is None:
        raise Unreadable(f"no such code: {code}")
    body = {"__doc__": kind.__doc__, "__module__": kind.__module__, "code": kind.code}
    made = type(kind.__name__, (Recorded,), {**body, "severity": kind.severity})
    assert issubclass(made, Recorded)
    return made


@cache
def _kept() -> dict[str, Any]:
    """The fields that every finding has, and their types."""
    hints = get_type_hints(Diagnostic)
    return {name: hints[name] for name in Diagnostic.fact_names()}


def plain(value: Any) -> Any:
    """A result, or a part of one, as JSON data."""
    return encode(value, {Diagnostic: _written})


def _written(finding: Diagnostic) -> Any:
    wording = [getattr(finding, name)() for name in _WORDING]
    return [finding.code, wording, [plain(getattr(finding, name)) for name in _kept()]]


def read_result(data: Any) -> CheckResult:
    """A result from its data; raises `Unreadable` if it is none."""
    result: CheckResult = read(CheckResult, data)
    return result


def read(annotation: Any, data: Any) -> Any:
    """Any part of a result from its data."""
    return decode(annotation, data, {Diagnostic: _finding})


def _finding(data: Any) -> Recorded:
    code, wording, facts = read(tuple[str, tuple[str | None, ...], tuple[Any, ...]], data)
    kind = recorded_kind(code)
    if len(wording) != len(_WORDING) or len(facts) != len(_kept()):
        raise Unreadable(f"not a finding: {code}")
    known = {
        name: read(type_, fact) for (name, type_), fact in zip(_kept().items(), facts, strict=True)
    }
    return kind(wording=wording, **known)
