"""`pscdsl check --fix` on files: what is written, what is not, and that nothing else changes."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pscdsl._src.checker import fixing
from pscdsl._src.checker.fixing import Fixed, fix_all
from pscdsl._src.cli import main
from pscdsl._src.frontend.fixes.place import Encoded, Text, moved, replaced, written
from pscdsl.typing.diagnostics import Edit, Span

Capture = pytest.CaptureFixture[str]
Write = Callable[..., Path]

HEAD = "import numpy as np\nimport pscdsl as psc\nfrom pscdsl import f32\n\n\n"
BEFORE = HEAD + (
    '@psc.kernel\ndef f(x: f32["n"]) -> f32["n"]:\n    x[0] = 1.0\n    return x[:-2] * 2\n'
)
SAFE = BEFORE.replace("x[0] = 1.0", "x = psc.update(x, 0, 1.0)")
BROKEN = HEAD + '@psc.kernel\ndef f(x: f32["n"]) -> f32["n"]:\n    x[0] = 1.0\n    return x\n'
MENDED = BROKEN.replace("x[0] = 1.0", "x = psc.update(x, 0, 1.0)")


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a program into the current folder."""
    monkeypatch.chdir(tmp_path)

    def make(data: str | bytes, name: str = "program.py") -> Path:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    return make


def test_safe_fixes_are_written_and_counted(write: Write, capsys: Capture) -> None:
    path = write(BROKEN)
    assert main(["check", "--fix", str(path)]) == 0
    assert path.read_text() == MENDED
    assert capsys.readouterr().out == (
        "1 finding fixed in 1 file\n1 kernel checked in 1 file: no errors\n"
    )


def test_the_report_says_what_is_fixable_and_how(write: Write, capsys: Capture) -> None:
    both = BROKEN + '\n\n@psc.kernel\ndef g(x: f32["n"]) -> f32:\n    return x[3]\n'
    path = write(both)
    assert main(["check", str(path)]) == 1
    out = capsys.readouterr().out
    assert "error[PSC205] [*]: " in out
    assert "1 fixable with `--fix`, 1 more with `--fix --unsafe-fixes`\n" in out
    assert main(["check", "--format", "concise", str(path)]) == 1
    assert capsys.readouterr().out.count(" [*] ") == 2
    assert path.read_text() == both


def test_json_has_the_edits(write: Write, capsys: Capture) -> None:
    main(["check", "--format", "json", str(write(BROKEN))])
    [found] = json.loads(capsys.readouterr().out)["diagnostics"]
    assert found["fix"] == {
        "applicability": "safe",
        "message": "replace `x[0] = 1.0` by `x = psc.update(x, 0, 1.0)`",
        "edits": [
            {
                "path": "program.py",
                "line": 8,
                "column": 5,
                "end_line": 8,
                "end_column": 15,
                "text": "x = psc.update(x, 0, 1.0)",
            }
        ],
    }


def test_a_diff_writes_nothing_and_is_a_patch(write: Write, capsys: Capture) -> None:
    for data in (BROKEN, BROKEN.replace("\n", "\r\n"), BROKEN.rstrip("\n")):
        path = write(data)
        assert main(["check", "--diff", str(path)]) == 1
        assert path.read_bytes() == data.encode()
        diff = capsys.readouterr().out
        command = ["git", "apply", "-p0", "--whitespace=nowarn", "-"]
        subprocess.run(command, input=diff.encode(), check=True, capture_output=True)
        assert path.read_bytes() == data.replace("x[0] = 1.0", "x = psc.update(x, 0, 1.0)").encode()
    assert main(["check", "--diff", str(path)]) == 0
    assert capsys.readouterr().out == ""


def test_only_selected_findings_are_fixed(write: Write) -> None:
    path = write(BROKEN)
    assert main(["check", "--fix", "--ignore", "PSC205", str(path)]) == 0
    assert path.read_text() == BROKEN


def test_unsafe_fixes_need_fix_or_diff(write: Write) -> None:
    assert main(["check", "--unsafe-fixes", str(write(BROKEN))]) == 2


def test_a_suppressed_finding_is_not_fixed(write: Write) -> None:
    data = BROKEN.replace("= 1.0", "= 1.0  # psc: ignore[PSC205]")
    path = write(data)
    main(["check", "--fix", str(path)])
    assert path.read_text() == data


def test_permissions_are_kept(write: Write) -> None:
    path = write(BROKEN)
    path.chmod(0o750)
    main(["check", "--fix", str(path)])
    assert path.read_text() == MENDED
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert [each.name for each in Path().iterdir()] == ["program.py"]


def test_a_link_out_of_the_folder_is_not_written_through(write: Write, capsys: Capture) -> None:
    outside = write(BROKEN, "outside/real.py")
    Path("inside").mkdir()
    link = Path("inside/link.py")
    link.symlink_to(outside.resolve())
    assert main(["check", "--fix", str(link)]) == 1
    assert outside.read_text() == BROKEN
    assert "is left alone" in capsys.readouterr().err
    main(["check", "--fix", "inside"])
    assert outside.read_text() == BROKEN


def test_a_link_inside_a_folder_stays_a_link(write: Write) -> None:
    path = write(BROKEN, "inside/real.py")
    link = Path("inside/link.py")
    link.symlink_to("real.py")
    assert main(["check", "--fix", "inside"]) == 0
    assert link.is_symlink()
    assert path.read_text() == MENDED


def test_a_file_outside_of_what_is_checked_is_left_alone(write: Write, capsys: Capture) -> None:
    helper = write("def put(x):\n    x[0] = 1.0\n    return x\n", "helper.py")
    before = helper.read_text()
    main_ = write(
        HEAD + 'from helper import put\n\n\n@psc.kernel\ndef f(x: f32["n"]):\n    return put(x)\n'
    )
    assert main(["check", "--fix", "--unsafe-fixes", str(main_)]) == 1
    assert helper.read_text() == before
    assert main(["check", "--fix", "--unsafe-fixes", str(main_), str(helper)]) == 0
    assert "psc.update(x, 0, 1.0)" in helper.read_text()
    assert helper.read_text().startswith("import pscdsl as psc\n")


def test_a_file_that_changes_meanwhile_is_left_alone(
    write: Write, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = write(BROKEN), BROKEN.replace("1.0", "3.0")

    def slow(*args: object, **kwargs: object) -> Fixed:
        result = fix_all(*args, **kwargs)  # type: ignore[arg-type]
        path.write_text(other)
        return result

    monkeypatch.setattr(fixing, "fix_all", slow)
    assert main(["check", "--fix", str(path)]) == 1
    assert path.read_text() == other
    captured = capsys.readouterr()
    assert "it was changed while it was checked" in captured.err
    assert "fixed" not in captured.out


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_folder_that_may_not_be_written(write: Write, capsys: Capture) -> None:
    path = write(BROKEN, "locked/program.py")
    path.parent.chmod(0o500)
    try:
        assert main(["check", "--fix", str(path)]) == 1
    finally:
        path.parent.chmod(0o700)
    assert path.read_text() == BROKEN
    assert "is left alone" in capsys.readouterr().err


def test_a_character_that_the_encoding_lacks() -> None:
    text = "# coding: latin-1\nx = 'ä'\n"
    encoded = Encoded.of(text.encode("latin-1"))
    assert encoded is not None
    assert encoded.bytes(text) == text.encode("latin-1")
    with pytest.raises(UnicodeEncodeError):
        encoded.bytes(text + "λ")


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xfe\x00",
        b"# coding: no-such-encoding\n",
        b"def (",
        b"\x00" * 100,
        b"# coding: utf-7\nx = '+AGE-'\n",
    ],
)
def test_files_that_cannot_be_read_or_written_back_stay_as_they_are(
    write: Write, data: bytes
) -> None:
    path = write(data)
    assert main(["check", "--fix", "--unsafe-fixes", str(path)]) in (0, 1)
    assert path.read_bytes() == data


ENCODINGS = ("utf-8", "utf-8-sig", "latin-1", "cp1252", "iso8859-15")
COMMENTS = st.text(st.sampled_from("abc äöü\t#'\"\\é$%{}"), max_size=12).map(
    lambda s: f"# {s}".rstrip()
)


@st.composite
def decorated(draw: st.DrawFn) -> tuple[str, str, str]:
    """A program with comments and empty lines, the same fixed, and an encoding."""
    encoding = draw(st.sampled_from(ENCODINGS))
    ends = ["\n", "\r\n"]
    if encoding.startswith("utf-8"):  # Python looks for a coding line in lines that end in \n
        ends.append("\r")
    newline = draw(st.sampled_from(ends))
    indent = draw(st.sampled_from(["    ", "\t", " ", "  "]))
    lines = [
        ("import numpy as np",) * 2,
        ("import pscdsl as psc",) * 2,
        ("from pscdsl import f32",) * 2,
        ("@psc.kernel",) * 2,
        ('def f(x: f32["n"], é: f32["n"]) -> f32["n"]:',) * 2,
        (indent + '"""ä."""',) * 2,
        (indent + "x[0] = 1.0", indent + "x = psc.update(x, 0, 1.0)"),
        (indent + "é.sort()", indent + "é = np.sort(é)"),
        (indent + "z = 'ö'; x[ 1:  ] =é[1:]",) * 2,
        (indent + "return np.where(0 < x < é, x, é)",) * 2,
    ]
    fixed = {
        8: indent + "z = 'ö'; x = psc.update(x, np.s_[1:], é[1:])",
        9: indent + "return np.where((0 < x) & (x < é), x, é)",
    }
    before = [] if encoding in ("utf-8", "utf-8-sig") else [f"# coding: {encoding}"]
    after = list(before)
    for number, (old, new) in enumerate(lines):
        tail = "  " + draw(COMMENTS) if number != 5 and draw(st.booleans()) else ""
        above = draw(st.lists(st.sampled_from(["", "  ", "# ü", "\x0c"]), max_size=2))
        if number in (4,):
            above = []
        before += [*above, old + tail]
        after += [*above, fixed.get(number, new) + tail]
    end = draw(st.sampled_from(["", newline]))
    return newline.join(before) + end, newline.join(after) + end, encoding


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(decorated())
def test_everything_outside_of_the_edits_is_kept(
    tmp_path_factory: pytest.TempPathFactory, program: tuple[str, str, str]
) -> None:
    before, after, encoding = program
    path = tmp_path_factory.mktemp("fixes") / "program.py"
    path.write_bytes(before.encode(encoding))
    assert main(["check", "--fix", str(path)]) == 0
    assert path.read_bytes() == after.encode(encoding)


@given(st.text("ab\n\r", max_size=30), st.data())
def test_edits_of_text(text: str, data: st.DataObject) -> None:
    lines = Text(text)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    pairs = list(zip(cuts[::2], cuts[1::2], strict=False))
    texts = data.draw(st.lists(st.text("xy", max_size=3), min_size=6, max_size=6))
    edits = [
        Edit(Span("a.py", *lines.place(start), *lines.place(end)), new)
        for (start, end), new in zip(pairs, texts, strict=False)
    ]
    done = lines.replacements(edits)
    assert [(each.start, each.end) for each in done] == pairs
    after = replaced(text, done)
    assert [after[a:b] for a, b in written(done)] == [each.text for each in done]
    untouched = [i for i in range(len(text)) if not any(a <= i < b for a, b in pairs)]
    assert all(after[moved(i, done)] == text[i] for i in untouched)


def test_a_diff_without_a_fix_says_so(write: Write, capsys: Capture) -> None:
    path = write(HEAD + '@psc.kernel\ndef g(x: f32["n"]) -> f32:\n    return x[3]\n')
    assert main(["check", "--diff", str(path)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "no fix applies: 1 fixable with `--fix --unsafe-fixes`" in err
    path = write(HEAD + '@psc.kernel\ndef g(x: f32["n"]) -> f32["m"]:\n    return x\n')
    assert main(["check", "--diff", "--unsafe-fixes", str(path)]) == 1
    assert "no fix applies" in capsys.readouterr().err


UNHELPED = HEAD.replace("numpy as np", "jax.numpy as jnp") + (
    '@psc.kernel\ndef g(x: f32["n"]) -> f32:\n    return jnp.sum(x, where=x > 0, promote=1)\n'
)


@pytest.mark.parametrize("jobs", [[], ["--jobs", "1"]])
def test_only_fixes_that_help_are_marked(write: Write, capsys: Capture, jobs: list[str]) -> None:
    path = write(UNHELPED)
    assert main(["check", *jobs, str(path)]) == 1
    out = capsys.readouterr().out
    assert "error[PSC910]" in out
    assert "[*]" not in out
    assert "fixable" not in out
    assert main(["check", "--fix", "--unsafe-fixes", str(path)]) == 1
    assert "fixable" not in capsys.readouterr().out
    assert path.read_text() == UNHELPED


def test_what_a_fix_changes_is_said(write: Write, capsys: Capture) -> None:
    path = write(
        HEAD.replace("numpy as np", "jax") + '@psc.kernel\ndef g(x: f32["n"], i: psc.i32):\n'
        "    return jax.lax.dynamic_slice(x, (i,), (1,))\n"
    )
    main(["check", "--fix", "--unsafe-fixes", str(path)])
    assert "a negative start is clamped to 0" in capsys.readouterr().err


def test_fixes_that_remove_lines_are_confirmed(write: Write, capsys: Capture) -> None:
    """Places of what is found afterwards are places in the fixed text."""
    path = write(
        HEAD.replace("numpy as np", "jax") + "@jax.jit\ndef h(x):\n    return x\n\n\n"
        '@psc.kernel\ndef g(x: f32["n"]) -> f32["n"]:\n    print(x)\n    return h(x)\n\n\n'
        '@psc.kernel\ndef k(x: f32["n"]) -> f32["n"]:\n    return jax.lax.rsqrt(x) + jax.nn.tanh(x)'
    )
    assert main(["check", str(path)]) == 1
    assert capsys.readouterr().out.count("[*]") == 3  # not for `rsqrt`
