"""Warnings about derivatives and batches are about what the user wrote, not what was made of it.

A program that is derived is warned of as its function is: of the same, at the same places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pscdsl._src.analysis.warnings.findings import warnings
from pscdsl._src.frontend.definitions import Definition, Excluded
from pscdsl._src.ir.program import Function, walk
from pscdsl._src.primitives.control import Checkpoint
from pscdsl.typing.diagnostics import NOWHERE, Failure
from tests.derivatives.programs import HEAD
from tests.derivatives.subject import SUM_OF, Subject, over_batch
from tests.interpreters.test_derivatives_subjects import SUBJECTS
from tests.support.kernels_of import kernels_of
from tests.support.literate import programs
from tests.support.share import some

Finding = tuple[str, int, int]
ROOT = Path(__file__).parents[2]
TOTAL = """
def total(tree):
    if isinstance(tree, tuple):
        return sum(total(x) for x in tree)
    return np.real(np.sum(tree)) if tree is not None else 0
"""
WARNED = """
def f(x, i, w):
    y = np.log(1 + x) + np.log(np.exp(x) / np.sum(np.exp(x)))
    z = np.where(x > 0, np.sqrt(x), 0.0) + x[i]
    v = np.mean(x * x) - np.mean(x) ** 2
    return np.sum(y + z) + v + np.sum(psc.map(lambda row: w @ row, w.T))
"""


def found(definition: Definition) -> Iterator[tuple[Function, set[Finding]]]:
    """The programs of a kernel, and the warnings about each."""
    for choice in definition.signature.choices() or ():
        try:
            function = definition.instance(choice)
        except (Failure, Excluded):
            continue
        every = warnings(function, definition.source, declared=True)
        yield function, {(d.code, d.span.line, d.span.column) for d in every}


def derived(definition: str, params: dict[str, str], moving: list[str], cotangent: str) -> str:
    """The kernels: the function itself, derivatives of several kinds, and batches of these."""
    names, own = ", ".join(params), ", ".join(f"{a}: {b}" for a, b in params.items())
    places = tuple(at for at, name in enumerate(params) if name in moving)
    axes = tuple(0 if name in moving else None for name in params)
    rows = ", ".join(f"{a}: {over_batch(b) if a in moving else b}" for a, b in params.items())
    tangents = ", ".join(name if name in moving else "None" for name in params)
    slope = f"psc.grad(loss, argnums={places})({names}, c)"
    summed = f"lambda {names}: total(f({names}))"
    all_rows = f"lambda {names}: total(psc.vmap(f, in_axes={axes})({names}))"
    kernels = {
        "slope": (own, slope),
        "kept": (own, f"psc.grad(psc.checkpoint(loss), argnums={places})({names}, c)"),
        "along": (own, f"psc.jvp(lambda {names}: f({names}), ({names},), ({tangents},))"),
        "second": (own, f"psc.grad(lambda {names}: total({slope}), {places})({names})"),
        "rows": (rows, f"psc.vmap(f, in_axes={axes})({names})"),
        "slopes": (rows, f"psc.vmap(lambda {names}: {slope}, in_axes={axes})({names})"),
        "slope_of_rows": (rows, f"psc.grad({all_rows}, {places})({names})"),
        "jacobian": (own, f"psc.jacrev({summed}, argnums={places})({names})"),
        "hessian": (own, f"psc.hessian({summed}, argnums={places})({names})"),
    }
    text = [definition, SUM_OF, TOTAL, f"def loss({names}, c):\n    return sum_of(f({names}), c)\n"]
    text.append(f"@psc.kernel\ndef primal({own}):\n    return f({names})\n")
    for name, (taken, code) in kernels.items():
        text.append(f"@psc.kernel\ndef {name}({taken}, c: {cotangent}):\n    return {code}\n")
    return HEAD + "\n".join(text)


def of_subject(given: Subject) -> dict[str, Definition]:
    """A function as a kernel, and what is made of it."""
    params = {name: given.annotation(name) for name in given.params}
    return kernels_of(derived(given.definition, params, given.moving, given.cotangent))


@pytest.mark.parametrize("given", SUBJECTS[::6], ids=[name for name, _ in SUBJECTS[::6]])
def test_nothing_is_said_of_what_was_made(given: tuple[str, Subject]) -> None:
    known = of_subject(given[1])
    allowed = {each for _, own in found(known.pop("primal")) for each in own}
    made = [(name, own - allowed) for name, each in known.items() for _, own in found(each)]
    assert [each for each in made if each[1]] == []


def test_the_same_is_said_of_a_function_however_it_is_derived() -> None:
    params = {"x": 'f64["n"]', "i": "i32", "w": 'f64["n n"]'}
    known = kernels_of(derived(WARNED, params, ["x", "w"], "f64"))
    every = {name: own for name, each in known.items() for _, own in found(each)}
    assert len(every) == len(known) == 10
    assert sorted(code for code, _, _ in every["primal"]) == [
        "PSC704", "PSC705", "PSC707", "PSC708", "PSC711", "PSC804",
    ]  # fmt: skip
    assert all(own == every["primal"] for own in every.values())


def _sources() -> Iterator[tuple[str, str]]:
    for folder in ("numerics", "performance", "indexing", "control"):
        for path in sorted((ROOT / "tests" / "conformance" / folder).glob("*.md")):
            for each in programs(path.read_text(encoding="utf-8")):
                yield f"{path.stem}: {each.name}", each.text
    for folder in ("examples", "stdlib"):
        for path in sorted((ROOT / folder).glob("*.py"))[::4]:
            yield f"{folder}: {path.stem}", path.read_text(encoding="utf-8")


SOURCES = list(_sources())
KINDS = ("grad({})", "vmap({})", "vmap(psc.grad({}))", "grad(psc.checkpoint({}))", "jacfwd({})")


@pytest.mark.parametrize("text", [t for _, t in SOURCES], ids=[name for name, _ in SOURCES])
def test_kernels_that_a_module_makes_are_warned_of_as_their_kernels(text: str) -> None:
    bases = [name for name in kernels_of(text) if re.fullmatch(r"[a-z]\w*", name)]
    tried = some(KINDS, 2, text)
    kinds = {f"made_{at}_{name}": (name, kind) for name in bases for at, kind in enumerate(tried)}
    lines = [f"{made} = psc.{kind.format(name)}" for made, (name, kind) in kinds.items()]
    known = kernels_of("\n".join([text, "import pscdsl as psc", *lines, ""]))
    for made, (name, _) in kinds.items():
        if made in known:
            allowed = {each for _, own in found(known[name]) for each in own}
            assert all(own <= allowed for _, own in found(known[made])), made


def test_what_is_computed_again_has_the_places_of_what_was() -> None:
    code, array = "def f(x):\n    return np.tanh(x) * np.sin(x)\n", 'f64["n"]'
    known = kernels_of(derived(code, {"x": array}, ["x"], array))
    [(function, _)] = found(known["kept"])
    [again] = [
        each.primitive
        for each in walk(function.body)
        if isinstance(each.primitive, Checkpoint) and each.primitive.again
    ]
    assert again.body.equations
    assert all(each.span is not NOWHERE for each in again.body.equations)
