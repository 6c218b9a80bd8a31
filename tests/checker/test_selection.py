"""Which codes are reported: by layers, by the longer prefix, and by file."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pscdsl._src.checker.selection import Layer, Selection
from pscdsl._src.cli import main
from pscdsl.typing.codes.projects import UnusedSuppression
from pscdsl.typing.diagnostics import Span

CODES = [f"PSC{n}" for n in (201, 301, 302, 311, 702)]
PREFIXES = st.lists(st.sampled_from(["PSC", "PSC3", "PSC30", "PSC301", "PSC7", "PSC702"]))


def reported(*layers: Layer) -> list[str]:
    """Those of the codes that are reported."""
    return [code for code in CODES if Selection(layers).includes(code, "a.py")]


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (Layer(), CODES),
        (Layer(select=("PSC3",)), ["PSC301", "PSC302", "PSC311"]),
        (Layer(ignore=("PSC3",)), ["PSC201", "PSC702"]),
        (Layer(select=("PSC3",), ignore=("PSC30",)), ["PSC311"]),
        (Layer(select=("PSC301",), ignore=("PSC3",)), ["PSC301"]),
        (Layer(select=("PSC3",), ignore=("PSC3",)), []),
        (Layer(select=("PSC3",), extend=("PSC7",)), ["PSC301", "PSC302", "PSC311", "PSC702"]),
        (Layer(extend=("PSC301",), ignore=("PSC3",)), ["PSC201", "PSC301", "PSC702"]),
        (Layer(select=()), []),
    ],
)
def test_the_longer_prefix_wins(layer: Layer, expected: list[str]) -> None:
    assert reported(layer) == expected


def test_later_layers_stand_on_earlier_ones() -> None:
    own = Layer(select=("PSC3", "PSC7"), ignore=("PSC301",))
    assert reported(own, Layer(ignore=("PSC7",))) == ["PSC302", "PSC311"]
    assert reported(own, Layer(extend=("PSC301", "PSC2"))) == CODES
    assert reported(own, Layer(select=("PSC301",))) == ["PSC301"]


@given(PREFIXES, PREFIXES)
def test_to_ignore_more_never_reports_more(few: list[str], more: list[str]) -> None:
    less = reported(Layer(ignore=(*few, *more)))
    assert set(less) <= set(reported(Layer(ignore=tuple(few))))
    assert set(reported(Layer(select=tuple(few)))) <= set(
        reported(Layer(select=tuple(few), extend=tuple(more)))
    )


def test_what_is_left_out_by_file() -> None:
    selection = Selection((), (("tests/**", ("PSC3",)), ("*_test.py", ("PSC",))), "/p")
    kept = [
        (path, code)
        for path, code in product(("/p/a.py", "/p/tests/a.py", "/p/a_test.py"), CODES)
        if selection.includes(code, path)
    ]
    assert kept == [
        *(("/p/a.py", code) for code in CODES),
        ("/p/tests/a.py", "PSC201"),
        ("/p/tests/a.py", "PSC702"),
    ]


@pytest.mark.parametrize(
    ("layer", "left"),
    [
        (Layer(), ("PSC201", "PSC3")),
        (Layer(ignore=("PSC2",)), ("PSC3",)),
        (Layer(ignore=("PSC3",)), ("PSC201",)),
        (Layer(ignore=("PSC301",)), ("PSC201", "PSC3")),  # other codes begin so
        (Layer(ignore=("PSC2", "PSC3")), None),
        (Layer(select=("PSC2", "PSC9")), ("PSC201",)),
        (Layer(select=("PSC2",)), None),
    ],
)
def test_a_suppression_of_what_is_not_reported_is_not_unused(
    layer: Layer, left: tuple[str, ...] | None
) -> None:
    finding = UnusedSuppression(codes=("PSC201", "PSC3"), span=Span("a.py", 1, 1, 1, 2))
    found = Selection((layer,)).narrowed(finding)
    assert (None if found is None else getattr(found, "codes", None)) == left


UNCHECKED = """
import pscdsl as psc
from pscdsl import f32


def make(scale):
    @psc.kernel
    def scaled(x: f32["n"]) -> f32["n"]:
        return scale * x

    return scaled
"""


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 0),
        (["--strict"], 1),
        (["--strict", "--select", "PSC903"], 1),
        (["--strict", "--select", "PSC3"], 1),
        (["--select", "PSC3"], 0),
        (["--strict", "--ignore", "PSC903"], 0),
    ],
)
def test_strict_is_not_content_with_what_was_not_checked(
    options: list[str], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "made.py"
    path.write_text(UNCHECKED, encoding="utf-8")
    assert main(["check", "--no-cache", *options, str(path)]) == code
    out = capsys.readouterr().out
    assert "0 kernels checked in 1 file, 1 not checked" in out
    assert ("PSC903" in out) == (code == 1 or not options)
