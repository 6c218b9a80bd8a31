"""Reports for GitHub Actions: no text of a program can end a command or begin another."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from pscdsl._src.checker.report import machine_readable
from pscdsl._src.frontend.text.display import display
from pscdsl.typing.codes.language import NotPython
from pscdsl.typing.codes.limits import KernelNotChecked
from pscdsl.typing.diagnostics import NOWHERE, Span

COMMAND = re.compile(r"::(error|warning|notice) ([^:]*)::(.*)")


def read(line: str) -> tuple[str, dict[str, str], str]:
    """A command as the runner reads it: its kind, its properties and its message."""
    found = COMMAND.fullmatch(line)
    assert found is not None, line
    properties = dict(each.split("=", 1) for each in found[2].split(","))
    for old, new in (("%2C", ","), ("%3A", ":")):
        properties = {name: value.replace(old, new) for name, value in properties.items()}
    return found[1], {k: unescaped(v) for k, v in properties.items()}, unescaped(found[3])


def unescaped(text: str) -> str:
    """What the runner makes of a text."""
    return text.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%")


def test_a_command() -> None:
    finding = NotPython(reason="100%", span=Span("a.py", 8, 12, 8, 17))
    assert machine_readable.render_github([finding]) == (
        "::error file=a.py,line=8,endLine=8,col=12,endColumn=17,title=PSC100::"
        "not Python source: 100%25\n"
    )


def test_a_note_is_a_notice_with_its_help_and_several_lines_have_no_columns() -> None:
    note = KernelNotChecked(kernel_name="f", reason="r", span=Span("a.py", 1, 5, 2, 3))
    kind, properties, message = read(machine_readable.render_github([note]).rstrip("\n"))
    assert (kind, properties) == (
        "notice",
        {"file": "a.py", "line": "1", "endLine": "2", "title": "PSC903"},
    )
    assert message.split("\n")[1].startswith("help: ")


def test_a_finding_without_a_place() -> None:
    _, properties, _ = read(
        machine_readable.render_github([NotPython(reason="x", span=NOWHERE)]).rstrip("\n")
    )
    assert properties == {"title": "PSC100"}


@given(st.text(), st.text(min_size=1))
def test_any_text_stays_within_its_command(said: str, name: str) -> None:
    path = f"<{name}>"
    finding = NotPython(reason=said, span=Span(path, 1, 1, 1, 1))
    rendered = machine_readable.render_github([finding])
    assert rendered.endswith("\n")
    line = rendered[:-1]
    assert "\n" not in line
    assert "\r" not in line
    _, properties, message = read(line)
    assert properties["file"] == display(path).text.replace("\\", "/")
    assert message.isprintable()
    plain = "".join(c for c in said if c.isprintable() and not c.isspace())
    assert plain in "".join(c for c in message if not c.isspace()) or "\ufffd" in message


@given(st.text())
def test_escaping_loses_nothing(text: str) -> None:
    assert unescaped(machine_readable.escaped(text)) == text
    once = machine_readable.escaped_property(text).replace("%2C", ",").replace("%3A", ":")
    assert unescaped(once) == text
    assert not set(machine_readable.escaped_property(text)) & set("\r\n:,")


def test_a_place_in_a_notebook_is_told_in_words() -> None:
    finding = NotPython(reason="odd", span=Span("n.ipynb:cell 3", 2, 5, 2, 6))
    _, properties, message = read(machine_readable.render_github([finding]).rstrip("\n"))
    assert properties == {"file": "n.ipynb", "title": "PSC100"}
    assert message.startswith("cell 3, line 2: ")
