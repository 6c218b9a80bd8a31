"""Functions of JAX whose shapes are checked: what counts as right, and with which types."""

from pathlib import Path

import pytest

from pscdsl._src.checker.check import check_source
from pscdsl._src.cli import main
from pscdsl._src.dialects.jax.unknown import Annotated

HEADER = "import jax\nimport undocumented\nfrom jaxtyping import Array, Float\n"
UNION = 'Float[Array, "n"] | Float[Array, ""]'
DRAWN = """
def drawn(key: Array, x: Float[Array, "n"]) -> Float[Array, "n"]:
    return x + jax.random.normal(key, x.shape)
"""
MADE = """
def made(x: Float[Array, "n"]) -> undocumented.Thing:
    return undocumented.Thing(x + 1)
"""


def counted(text: str) -> tuple[Annotated, ...]:
    """Return what is counted of the functions of a program."""
    return check_source(HEADER + text, "program.py").annotated


def of_unions(parameters: int) -> Annotated:
    """Return what is counted of a function of so many unions."""
    given = ", ".join(f"x{number}: {UNION}" for number in range(parameters))
    (found,) = counted(f"def f({given}):\n    return x0\n")
    return found


def test_all_alternatives_are_tried_or_the_report_names_those_that_are() -> None:
    assert of_unions(4).is_proven
    assert not of_unions(4).tried
    assert of_unions(5).is_proven
    assert "x4: f32[n]" in of_unions(5).tried


def test_the_report_names_the_types_that_are_chosen() -> None:
    (found,) = counted(DRAWN)
    assert (found.is_proven, found.tried, found.outside) == (True, "key: Key", ())


def test_the_report_names_calls_of_other_libraries() -> None:
    (found,) = counted(MADE)
    assert (found.is_proven, found.tried, found.outside) == (True, "", ("undocumented.Thing",))


@pytest.mark.parametrize(
    "body",
    [
        "return x + undocumented.shifted(x)",
        "return undocumented.shifted(x)",
        "undocumented.sort([x])\n    return x",
        "return undocumented.mapped(lambda y: y, x)",
        "return undocumented.total(x).real",
        "return x if undocumented.flag() else x + 1",
    ],
)
def test_what_depends_on_another_library_is_not_followed(body: str) -> None:
    (found,) = counted(f'def f(x: Float[Array, "n"]) -> Float[Array, "n"]:\n    {body}\n')
    assert found.unknown
    assert not found.is_wrong


def test_functions_without_a_body_are_not_counted() -> None:
    bodies = ('"""Documented."""', "raise NotImplementedError", "...", "return x")
    functions = [
        f'def f{number}(x: Float[Array, "n"]):\n    {body}\n' for number, body in enumerate(bodies)
    ]
    (found,) = counted("\n".join(functions))
    assert found.name == "f3"


def test_the_summary_counts_chosen_types_and_other_libraries(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "program.py"
    path.write_text(HEADER + DRAWN + MADE)
    assert main(["check", "--show-types", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "drawn is right with key: Key\n" in shown
    assert "made is right but for calls of undocumented.Thing\n" in shown
    assert (
        "2 functions of jax with shapes: 2 right for every size (1 with types that we chose, "
        "1 but for calls of other libraries: `--show-types`)\n"
    ) in shown
