"""Reports in SARIF: valid by the standard's own schema, and with the facts at their places."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pscdsl._src.checker.baseline import Fingerprints
from pscdsl._src.checker.check import check_source
from pscdsl._src.checker.report import machine_readable
from pscdsl._src.checker.selection import all_kinds
from pscdsl._src.cli import main
from pscdsl._src.frontend.text.display import Sources
from pscdsl.typing.codes.language import NotPython
from pscdsl.typing.diagnostics import NOWHERE, Diagnostic, Label, Span
from tests.support.sarif_schema import problems

HEAD = "import numpy as np\nimport pscdsl as psc\nfrom pscdsl import f32\n\n\n"
IMPURE = HEAD + '@psc.kernel\ndef f(x: f32["n"]) -> f32["n"]:\n    print(x)\n    return x\n'


def log(findings: list[Diagnostic], sources: Sources) -> Any:
    """The log of some findings."""
    rows = [machine_readable.SarifResult(f, p) for f, p in Fingerprints(sources).numbered(findings)]
    return machine_readable.document(rows, sources, version="1.0", exit_code=1)


def example(kind: type[Diagnostic]) -> str:
    """The program in the explanation that shows a kind of finding; empty if there is none."""
    found = re.search(r"^## Example\n+(.*?)(?=^## |\Z)", kind.explanation(), re.M | re.S)
    return "\n".join(re.findall(r"^```py\n(.*?)^```", found[1], re.M | re.S)) if found else ""


def test_the_schema_refuses_what_is_no_log() -> None:
    assert problems({"version": "2.1.0"})
    good = log([], Sources())
    assert not problems(good)
    good["runs"][0]["tool"]["driver"]["rules"] = [{"name": "no id"}]
    assert problems(good)


def test_a_log_of_every_kind_of_finding_is_valid() -> None:
    texts = {f"{kind.code}.py": example(kind) for kind in all_kinds() if example(kind)}
    found = [each for path, text in texts.items() for each in check_source(text, path).diagnostics]
    assert {each.code for each in found} == {Path(path).stem for path in texts}
    made = log(found, Sources(texts))
    assert problems(made) == []
    [run] = made["runs"]
    assert len(run["results"]) == len(found)
    assert len({result["partialFingerprints"][PRINT] for result in run["results"]}) == len(found)


PRINT = "pscdslFinding/v1"


@pytest.mark.parametrize("kind", all_kinds(), ids=lambda kind: kind.code)
def test_a_rule_says_what_its_class_says(kind: type[Diagnostic]) -> None:
    rule = machine_readable.rule(kind)
    assert (rule["id"], rule["name"]) == (kind.code, kind.__name__)
    assert rule["shortDescription"]["text"] == kind.title()
    assert rule["defaultConfiguration"]["level"] == kind.severity.value
    assert "## " not in rule["fullDescription"]["text"]
    assert kind.explanation() in rule["help"]["markdown"]
    made = log([], Sources())
    made["runs"][0]["tool"]["driver"]["rules"] = [rule]
    assert problems(made) == []


@settings(deadline=None)
@given(
    st.text(max_size=40).filter(lambda text: "\n" not in text and "\r" not in text),
    st.text(alphabet=st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=12),
    st.text(),
    st.data(),
)
def test_columns_count_utf_16_units_whatever_the_text(
    line: str, name: str, said: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(line)))
    end = data.draw(st.integers(start, len(line)))
    path = name.replace("/", "_").replace("\0", "_").strip(".") + ".py"
    span = Span(path, 1, start + 1, 1, end + 1)
    finding = NotPython(reason=said, span=span, labels=(Label(span, said),))
    made = json.loads(json.dumps(log([finding], Sources({path: line}))))
    assert problems(made) == []
    place = made["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    region = place["region"]
    units = line.encode("utf-16-le", "surrogatepass")
    cut = units[2 * (region["startColumn"] - 1) : 2 * (region["endColumn"] - 1)]
    assert cut.decode("utf-16-le", "surrogatepass") == line[start:end]
    assert unquote(str(place["artifactLocation"]["uri"])) == path


def test_places_labels_and_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = HEAD + (
        "def say(x):\n    print(x)\n    return x\n\n\n"
        '@psc.kernel\ndef f(x: f32["n"], y: f32["m"]) -> f32["n"]:\n    return say(x) + y\n'
    )
    Path("a b.py").write_text(text, encoding="utf-8")
    found = list(check_source(text, "a b.py").diagnostics)
    effect, shapes = log(found, Sources())["runs"][0]["results"]
    [where] = effect["locations"]
    assert where["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20b.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 7, "startColumn": 5, "endColumn": 13},
    }
    assert where["logicalLocations"] == [{"name": "f", "kind": "function"}]
    [call] = effect["relatedLocations"]
    assert call["physicalLocation"]["region"]["startLine"] == 13
    assert "call" in call["message"]["text"]
    assert [label["message"]["text"] for label in shapes["relatedLocations"]] == [
        "f32[n]",
        "f32[m]",
    ]


def test_a_finding_without_a_place_and_one_outside_of_the_folder() -> None:
    outside = Span("/elsewhere/x y.py", 1, 1, 3, 1)
    found: list[Diagnostic] = [
        NotPython(reason="a", span=NOWHERE),
        NotPython(reason="b", span=outside),
    ]
    made = log(found, Sources())
    assert problems(made) == []
    nowhere, elsewhere = made["runs"][0]["results"]
    assert nowhere["locations"] == []
    place = elsewhere["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "file:///elsewhere/x%20y.py"}
    assert (place["region"]["endLine"], place["region"]["endColumn"]) == (3, 1)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    """Exit code and log of a check."""
    code = main(["check", "--format", "sarif", *arguments])
    made = json.loads(capsys.readouterr().out)
    assert problems(made) == []
    return code, made["runs"][0]


def prints(results: Any) -> list[str]:
    """What the results are recognised by."""
    return [result["partialFingerprints"][PRINT] for result in results["results"]]


def test_fingerprints_stay_when_lines_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    twice = IMPURE.replace("    return x\n", "    print(x)\n    return x\n")
    Path("a.py").write_text(twice, encoding="utf-8")
    _, before = run(capsys, "a.py")
    assert len(set(prints(before))) == 2
    moved = "# a comment\n\n" + twice.replace("    print(x)", "    y = x\n\n    print(x)")
    Path("a.py").write_text(moved, encoding="utf-8")
    _, after = run(capsys, "a.py")
    assert prints(after) == prints(before)
    Path("a.py").write_text(twice.replace("def f", "def g"), encoding="utf-8")
    _, other = run(capsys, "a.py")
    assert not set(prints(other)) & set(prints(before))


def test_suppressed_results_and_the_state_of_the_invocation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text(IMPURE.replace("(x)\n", "(x)  # psc: ignore\n"), encoding="utf-8")
    Path("b.py").write_text(IMPURE, encoding="utf-8")
    assert main(["check", "--write-baseline", "known.json", "."]) == 0
    capsys.readouterr()
    Path("c.py").write_bytes(b"\xff\xfe\x00")
    code, found = run(capsys, "--baseline", "known.json", ".")
    kinds = [[each["kind"] for each in r.get("suppressions", ())] for r in found["results"]]
    assert kinds == [["inSource"], ["external"], []]
    assert [result["baselineState"] for result in found["results"]] == ["new", "unchanged", "new"]
    [invocation] = found["invocations"]
    assert (code, invocation["exitCode"]) == (1, 1)
    assert invocation["executionSuccessful"] is True
    [notification] = invocation["toolExecutionNotifications"]
    place = notification["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place["uri"] == "c.py"
    assert found["originalUriBaseIds"]["%SRCROOT%"]["uri"] == f"{tmp_path.as_uri()}/"
    _, short = run(capsys, "--baseline", "known.json", "--hide-suppressed", ".")
    assert [result["ruleId"] for result in short["results"]] == ["PSC100"]


def test_two_classes_of_one_code_are_one_rule() -> None:
    class Copied(NotPython):
        """A finding that was read back from somewhere."""

    span = Span("a.py", 1, 1, 1, 1)
    both: list[Diagnostic] = [NotPython(reason="a", span=span), Copied(reason="b", span=span)]
    [run] = log(both, Sources())["runs"]
    assert len(run["tool"]["driver"]["rules"]) == 1
    assert len(run["invocations"][0]["toolExecutionNotifications"]) == 2


def test_a_place_in_a_notebook_is_told_in_words() -> None:
    span = Span("n.ipynb:cell 3", 2, 5, 2, 6)
    finding = NotPython(reason="odd", span=span, labels=(Label(span, "here"),))
    made = log([finding], Sources({"n.ipynb:cell 3": "\n    x\n"}))
    assert problems(made) == []
    [result] = made["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "n.ipynb", "uriBaseId": "%SRCROOT%"}}
    assert result["message"]["text"].startswith("cell 3, line 2: ")
    assert result["relatedLocations"][0]["message"]["text"] == "cell 3, line 2: here"
