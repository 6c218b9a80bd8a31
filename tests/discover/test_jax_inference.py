"""Types that are found for JAX functions without annotations."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from pscdsl._src.cli import main
from pscdsl._src.discover.jax_inference import inferred_functions
from pscdsl._src.frontend.modules.scope import Project
from pscdsl._src.frontend.text.source import Source
from tests.support.literate import Program, programs

PAGE = Path(__file__).parents[1] / "conformance" / "jax" / "infer.md"
SECONDS = 5
"""More than users wait, so that a slow machine finds the same."""


def expected(program: Program) -> dict[str, str]:
    """Return the comment above each function, by its name."""
    lines = program.text.splitlines()
    found: dict[str, str] = {}
    for node in ast.parse(program.text).body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        owner = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        for each in inner:
            if isinstance(each, ast.FunctionDef):
                first = min([each.lineno, *(x.lineno for x in each.decorator_list)])
                above = lines[first - 2].strip()
                if above.startswith("# "):
                    found[owner + each.name] = above.removeprefix("# ")
    return found


@pytest.mark.parametrize("program", programs(PAGE.read_text()), ids=lambda each: each.name)
def test_the_types_of_a_page(program: Program) -> None:
    module = Project().add(Source("infer.py", program.text), None)
    wanted = expected(program)
    assert wanted
    found = {each.name: each for each in inferred_functions(module, SECONDS)}
    assert found.keys() == wanted.keys()
    for name, text in wanted.items():
        if text.startswith("unknown: "):
            assert text.removeprefix("unknown: ") in found[name].unknown
        else:
            assert found[name].typing == text


PROGRAM = """\
import jax
from jaxtyping import Array, Float


def norm(x):
    return jax.numpy.sqrt(jax.numpy.sum(x**2))


def printed(x):
    print(x)
    return x


def annotated(x: Float[Array, "n"]) -> Float[Array, "n"]:
    return x + 1
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return str(path)


def test_a_check_infers_if_it_is_asked(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--no-cache", path]) == 0
    assert "other functions" not in capsys.readouterr().out
    assert main(["check", "--infer", "--infer-seconds", "5", "--no-cache", path]) == 0
    line = "2 other functions of jax: 1 right for every size of some typing (`--show-types`), "
    assert f"{line}1 not followed (`--show-unknown`)\n" in capsys.readouterr().out


def test_typings_and_causes_are_shown(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--infer", "--show-types", "--show-unknown", path]) == 0
    rows = [row.partition("program.py:")[2] for row in capsys.readouterr().out.splitlines()[:2]]
    assert rows == [
        "5:1: norm(x: f32[n]) -> f32",
        "9:1: `printed` is not followed: PSC201: `print` has a side effect",
    ]


def test_json_has_the_typings(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--infer", "--format", "json", path]) == 0
    first, second = json.loads(capsys.readouterr().out)["inferred"]
    assert (first["name"], first["line"], first["unknown"]) == ("norm", 5, "")
    assert first["typing"] == "norm(x: f32[n]) -> f32"
    assert (second["typing"], second["unknown"]) == ("", "PSC201: `print` has a side effect")


def test_the_time_is_bounded(path: str) -> None:
    module = Project().add(Source(path, PROGRAM), path)
    found = list(inferred_functions(module, SECONDS, end=0))
    assert [each.unknown for each in found] == ["the time for all functions was over"] * 3
    found = list(inferred_functions(module, 0))
    assert [each.unknown for each in found] == ["no types were found in time"] * 3


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project of three files, one of which imports another."""
    helper = "def scale(x):\n    return 2 * x\n"
    (tmp_path / "helper.py").write_text(f"import jax\n\n\n{helper}")
    calls = "def scaled(x):\n    return jnp.sum(scale(x))\n"
    (tmp_path / "calls.py").write_text(
        f"import jax.numpy as jnp\nfrom helper import scale\n\n\n{calls}"
    )
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


def inferred(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, str]:
    """Return the typings and causes that a check reports."""
    own = ["--infer-seconds", "5", "--format", "json", *options]
    assert main(["check", "--infer", *own, str(folder)]) == 0
    found = json.loads(capsys.readouterr().out).get("inferred", ())
    return {each["name"]: each["typing"] or each["unknown"] for each in found}


def test_processes_and_kept_results_give_what_one_cold_run_gives(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cold = inferred(project, capsys, "--no-cache", "--jobs", "1")
    assert cold["scaled"] == "scaled(x: f32[n]) -> f32"
    assert len(cold) == 4
    kept = ("--cache-dir", str(project / "cache"))
    assert inferred(project, capsys, *kept, "--jobs", "2") == cold

    def again(*args: object) -> None:
        raise AssertionError("types are looked for again")

    with monkeypatch.context() as patch:
        patch.setattr("pscdsl._src.discover.jax_inference.inferred_functions", again)
        assert inferred(project, capsys, *kept, "--jobs", "1") == cold
    helper = project / "helper.py"
    helper.write_text(helper.read_text().replace("2 * x", "x[None] * x[:, None]"))
    changed = inferred(project, capsys, *kept, "--jobs", "1")
    assert changed["scale"] == "scale(x: f32[n]) -> f32[n n]"
    assert changed == inferred(project, capsys, "--no-cache", "--jobs", "1")


def test_results_with_typings_are_kept_apart(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = ("--jobs", "1", "--cache-dir", str(project / "cache"))
    assert main(["check", *kept, "--format", "json", str(project)]) == 0
    assert not json.loads(capsys.readouterr().out).get("inferred")
    first = inferred(project, capsys, *kept)
    assert len(first) == 4

    def none(*args: object) -> tuple[()]:
        return ()

    monkeypatch.setattr("pscdsl._src.discover.jax_inference.inferred_functions", none)
    assert inferred(project, capsys, *kept, "--infer-seconds", "6") == {}
    assert inferred(project, capsys, *kept) == first
    assert main(["check", *kept, "--format", "json", str(project)]) == 0
    assert not json.loads(capsys.readouterr().out).get("inferred")


def test_results_of_another_dialect_are_kept_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "import jax\n\n\ndef twice(key):\n    x = jax.random.normal(key)\n"
    (tmp_path / "twice.py").write_text(f"{text}    return x + jax.random.normal(key)\n")
    codes: list[int] = []
    for dialect in ("jax", "psc", "jax"):
        (tmp_path / "pyproject.toml").write_text(f'[tool.pscdsl]\ndialect = "{dialect}"\n')
        codes.append(main(["check", "--cache-dir", str(tmp_path / "cache"), str(tmp_path)]))
    capsys.readouterr()
    assert codes == [1, 0, 1]
