"""Gradients that are not finite: our rules, our findings and our help, beside jax."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from pscdsl._src.checker.jax_gradients import gradient_at, points, small_sizes, visit_of
from pscdsl._src.dialects.jax.derivatives import RULES
from pscdsl._src.primitives.elementwise import bend
from pscdsl.typing.codes.numerics import GradientNotFinite
from tests.interop.jax_gradient_law import (
    COTANGENTS,
    FUNCTIONS,
    SPECIAL,
    Checked,
    all_finite,
    at,
    cases,
    differentiable_rows,
    gradients,
    named,
    ours,
    program_of_row,
    random_program,
    theirs,
)
from tests.support.share import some

jax: Any = pytest.importorskip("jax")

_BY_NAME: Final = {primitive.name: primitive for primitive in RULES if primitive is not bend}


@pytest.fixture(autouse=True)
def _narrow() -> Iterator[None]:
    """JAX's usual precision, which other tests may have changed."""
    with jax.enable_x64(False):
        yield


def test_each_rule_is_compared() -> None:
    assert _BY_NAME.keys() == FUNCTIONS.keys()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rules_are_those_of_jax(name: str) -> None:
    primitive, function = _BY_NAME[name], named(name)
    wrong: list[object] = []
    compared = 0
    for operands in product(SPECIAL, repeat=primitive.arity):
        for cotangent in COTANGENTS:
            mine = ours(primitive, operands, cotangent)
            if mine is None:
                continue
            compared += 1
            wanted = theirs(function, operands, cotangent)
            for own, other in zip(mine, wanted, strict=True):
                own = np.zeros_like(other) if own is None else own
                if not np.allclose(own, other, rtol=1e-5, equal_nan=True):
                    wrong.append((operands, cotangent, own, other))
    assert compared > 20
    assert not wrong


@pytest.mark.parametrize(("title", "text"), cases(), ids=[title for title, _ in cases()])
def test_conformance_cases_are_as_in_jax(title: str, text: str, tmp_path: Path) -> None:
    checked = Checked(tmp_path / "case.py", text)
    assert not checked.unknown
    assert bool(checked.findings) is not title.startswith("Right")
    names = checked.names()
    for finding in checked.findings:
        assert is_confirmed(names, finding)
    if not checked.findings:
        assert not missed(checked, names)


@pytest.mark.parametrize(
    ("title", "text"),
    [case for case in cases() if not case[0].startswith("Right")],
    ids=[title for title, _ in cases() if not title.startswith("Right")],
)
def test_the_help_is_right(title: str, text: str, tmp_path: Path) -> None:
    checked = Checked(tmp_path / "case.py", text)
    (finding,) = checked.findings
    if title in WITHOUT_HELP:
        assert not finding.rewrite
        return
    lines = text.split("\n")
    line, span = lines[finding.span.line - 1], finding.span
    assert span.line == span.end_line
    lines[span.line - 1] = line[: span.column - 1] + finding.rewrite + line[span.end_column - 1 :]
    changed = Checked(tmp_path / "changed.py", "\n".join(lines))
    assert not changed.findings
    assert not changed.unknown
    names, before = changed.names(), checked.names()
    assert not is_confirmed(names, finding)
    assert not missed(changed, names)
    shapes = [np.shape(x) for x in inputs_of(finding)]
    plain = [np.full(each, 0.5 + place / 4, np.float32) for place, each in enumerate(shapes)]
    old, new = (each[finding.function](*plain) for each in (before, names))
    for one, other in zip(jax.tree.leaves(old), jax.tree.leaves(new), strict=True):
        assert np.allclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=True)


WITHOUT_HELP: Final = (
    "Wrong: eigenvectors of equal eigenvalues",
    "Wrong: singular vectors of equal singular values",
)
"""Cases for which no other form is known."""


def inputs_of(finding: GradientNotFinite) -> list[Any]:
    """Return the input of a finding."""
    return at([text for _, text in finding.inputs])


def is_confirmed(names: dict[str, Any], finding: GradientNotFinite) -> bool:
    """Return whether jax computes a finite value, and a gradient that is not."""
    function, given = names[finding.function], inputs_of(finding)
    if finding.inside:
        return not all_finite(function(*given))
    is_finite, found = gradients(function, given)
    place = [name for name, _ in finding.inputs].index(finding.argument)
    return is_finite and not all_finite(found[place])


def missed(checked: Checked, names: dict[str, Any]) -> list[object]:
    """Return the inputs that we try at which gradients of jax are not finite."""
    wrong: list[object] = []
    for name, function, asked in checked.programs():
        sizes = small_sizes(function)
        assert sizes is not None
        for point in points(function, sizes):
            given = list(point.values)
            try:
                is_finite, found = gradients(names[name], given)
            except FloatingPointError:
                continue
            if not is_finite or (point.is_far and not np.any([np.isnan(x).any() for x in found])):
                continue
            places = {place for each in asked for place in each.arguments or range(len(given))}
            for place in places:
                if not all_finite(found[place]):
                    wrong.append((name, given, found[place]))
            if not asked and not all_finite(names[name](*given)):
                wrong.append((name, given))
    return wrong


PROGRAMS: Final = 500
"""The random programs, of which `make test` tries a share."""


def test_random_programs_are_judged_as_by_jax(tmp_path: Path) -> None:
    judged, wrong = 0, list[object]()
    seeds = some(range(PROGRAMS), 25)
    for seed in seeds:
        checked = Checked(tmp_path / f"program{seed}.py", random_program(seed))
        assert not checked.unknown
        names = checked.names()
        wrong += [x.message() for x in checked.findings if not is_confirmed(names, x)]
        verdicts = Counter(judgements(checked, names))
        judged += verdicts["same"]
        wrong += [(seed, each) for each in verdicts if each not in ("same", "unknown")]
    assert judged > 10 * len(seeds)
    assert not wrong


LEFT: Final = frozenset("lstsq qr".split())
"""Functions whose gradients are finite by our rules where those of JAX are not."""


def test_functions_of_packages_are_judged_as_by_jax(tmp_path: Path) -> None:
    judged, wrong = 0, list[object]()
    chosen = some(differentiable_rows(), 40)
    for number, (name, expression) in enumerate(chosen):
        checked = Checked(tmp_path / f"row{number}.py", program_of_row(expression))
        if checked.unknown:
            continue
        verdicts = Counter(judgements(checked, checked.names()))
        judged += verdicts["same"]
        allowed = {"same", "unknown", "missed"} if name in LEFT else {"same", "unknown"}
        wrong += [(expression, each) for each in verdicts if each not in allowed]
    assert judged > len(chosen)
    assert not wrong


def judgements(checked: Checked, names: dict[str, Any]) -> Iterator[str]:
    """Yield how our verdict on each input compares with that of jax.

    "unknown": what JAX computes is not known; "missed": our gradient is finite, and that of jax is
    not; "false": the other way around; "value": only we take the value for finite.
    """
    ((name, function, (asked,)),) = checked.programs()
    sizes = small_sizes(function)
    assert sizes is not None
    run = jax.jit(partial(gradients, names[name]))
    for point in points(function, sizes):
        visit = visit_of(function, asked, point, sizes)
        assert visit is not None
        known = gradient_at(visit, [0])
        is_finite, theirs = run(list(point.values))
        if known is None or not is_finite:
            yield "unknown" if known is None else "value"
            continue
        mine = [each is None or all_finite(each.value) for each in known[1]]
        if mine != list(map(all_finite, theirs)):
            # XLA contracts products and sums, so that equal numbers differ by their rounding.
            _, theirs = gradients(names[name], list(map(jax.numpy.asarray, point.values)))
        wanted = list(map(all_finite, theirs))
        if mine == wanted:
            yield "same"
        else:
            yield "missed" if all(mine) else "false"
